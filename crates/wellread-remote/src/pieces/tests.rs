//! Tests of pieces without a server.

use super::*;
use bytes::Bytes;
use std::sync::atomic::AtomicBool;
use tokio::sync::Semaphore;

fn pieces() -> &'static Pieces {
    Box::leak(Box::default())
}

fn version() -> Version {
    Version::new(Some("a".into()), 1)
}

/// Answers with bytes that are as large as their offset.
fn fill(piece: &Arc<Piece>) {
    let Range { start, end } = piece.range;
    let chunks = vec![(start..end).map(|at| at as u8).collect::<Vec<_>>().into()];
    let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let head = Head { length: 100, version: version() };
    Slot::begin(&piece.slot).unwrap().finish(Ok((ranges::Piece { start, chunks }, head)), room);
}

#[test]
fn bytes_are_read_over_the_borders_of_pieces_and_only_where_all_are_there() {
    let (all, name) = (pieces(), Arc::from("s3://b/k"));
    let two = [all.add(&name, 20..30), all.add(&name, 10..20)];
    for piece in &two {
        fill(piece);
    }
    let mut bytes = [0; 12];
    all.read(&name, &version(), 15, &mut bytes).unwrap().unwrap();
    assert_eq!(bytes, std::array::from_fn::<u8, 12, _>(|i| 15 + i as u8));
    assert!(all.read(&name, &version(), 5, &mut bytes).is_none());
    assert!(all.read(&name, &version(), 25, &mut bytes).is_none());
    let other = Version::new(Some("b".into()), 1);
    assert!(all.read(&name, &other, 15, &mut bytes).is_none());
    assert_eq!(all.head(&name).unwrap().unwrap().length, 100);
    let (held, missing) = all.cover(&name, &(0..40));
    assert_eq!((held.len(), missing), (2, vec![0..10, 30..40]));
    drop((held, two));
    assert_eq!(all.objects(), 0, "what nobody keeps is forgotten");
    assert!(all.head(&name).is_none());
}

#[test]
fn an_error_is_told_once_and_who_reads_then_asks_again() {
    let (all, name) = (pieces(), Arc::from("s3://b/k"));
    let piece = all.add(&name, 0..10);
    let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    Slot::begin(&piece.slot).unwrap().finish(Err(io::ErrorKind::NotFound.into()), room);
    let mut bytes = [0; 10];
    let error = all.read(&name, &version(), 0, &mut bytes).unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(all.read(&name, &version(), 0, &mut bytes).is_none());
}

#[test]
fn what_is_given_up_or_has_no_room_is_left_to_the_reader() {
    let (all, name) = (pieces(), Arc::from("s3://b/k"));
    let (given_up, queued) = (all.add(&name, 0..10), all.add(&name, 10..20));
    drop(Slot::begin(&given_up.slot).unwrap());
    let mut bytes = [0; 10];
    assert!(all.read(&name, &version(), 0, &mut bytes).is_none());
    assert!(all.read(&name, &version(), 10, &mut bytes).is_none());
    assert!(Slot::begin(&queued.slot).is_none(), "the reader has asked for it");
    // So it is asked for anew by who wants it next.
    assert_eq!(all.cover(&name, &(0..20)).1, std::slice::from_ref(&(0..20)));
}

#[test]
fn who_waits_and_is_to_stop_is_told_so_and_others_ask_by_themselves() {
    let (all, name) = (pieces(), Arc::from("s3://b/k"));
    let (one, two) = (all.add(&name, 0..10), all.add(&name, 10..20));
    let (slot, kept) = (Arc::clone(&one.slot), Arc::clone(&two));
    let filler = Slot::begin(&slot).unwrap();
    let stopped = || place::until(&Arc::new(AtomicBool::new(true)), || slot.wait());
    let is_told = || stopped().unwrap().unwrap_err().to_string().contains("given up");
    assert!(is_told(), "while it is on its way");
    Piece::give_up(one);
    assert!(is_told() && slot.wait().is_none());
    drop(filler);
    assert!(is_told() && slot.wait().is_none(), "for good");
    Piece::give_up(two);
    assert!(kept.slot.is_of_use(), "somebody else wants it");
}

#[test]
fn a_reader_waits_for_what_is_on_its_way() {
    let (all, name) = (pieces(), Arc::from("s3://b/k"));
    let piece = all.add(&name, 0..10);
    let filler = Slot::begin(&piece.slot).unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = [0; 10];
        all.read("s3://b/k", &version(), 0, &mut bytes).map(|read| read.map(|()| bytes))
    });
    let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let came = ranges::Piece { start: 0, chunks: vec![Bytes::from_static(&[7; 10])] };
    filler.finish(Ok((came, Head { length: 10, version: version() })), room);
    assert_eq!(reader.join().unwrap().unwrap().unwrap(), [7; 10]);
}
