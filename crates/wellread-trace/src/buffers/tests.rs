//! Recording by several threads, beginning and ending.

use super::*;
use crate::span;

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn nothing_is_recorded_without_a_recording() {
    let _alone = alone();
    drop(span(Kind::Read).with(1, 0));
    assert!(!is_recording() && stop().is_none());
    assert!(start() && is_recording());
    assert!(!start(), "one at a time");
    let recorded = stop().unwrap();
    assert!(recorded.is_empty() && recorded.dropped() == 0 && recorded.seconds() > 0.0);
    assert!(stop().is_none());
}

#[test]
fn spans_nest_and_stay_with_their_thread() {
    let _alone = alone();
    // Open since before: of no recording.
    let early = span(Kind::Batch);
    assert!(start());
    for epoch in 0..5 {
        let threads = (0..3).map(|worker| {
            let thread = std::thread::Builder::new().name(format!("worker-{worker}"));
            let work = move || {
                for batch in 0..CHUNK as u64 {
                    let mut rows = span(Kind::Rows);
                    drop(span(Kind::Read).with(epoch, 0));
                    span(Kind::Decompress).cancel();
                    rows.set(batch, worker);
                }
            };
            thread.spawn(work).unwrap()
        });
        // Joined one by one: a scope does not wait for what threads do after their work.
        threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    }
    drop(early);
    let open = span(Kind::Step);
    let recorded = stop().unwrap();
    drop(open);
    assert_eq!(recorded.len(), 5 * 3 * CHUNK * 2);
    // Threads of five epochs in the lanes of three.
    let mut names = recorded.lanes.clone();
    names.sort();
    assert_eq!(names, ["worker-0", "worker-1", "worker-2"]);
    assert!(recorded.events.iter().all(|e| matches!(e.kind, Kind::Rows | Kind::Read)));
    for pair in recorded.events.windows(2).filter(|pair| pair[0].lane == pair[1].lane) {
        let [a, b] = pair else { unreachable!() };
        assert!(a.start <= b.start && a.start <= a.end);
        // Each rows has its read inside, and the next rows after it.
        match (a.kind, b.kind) {
            (Kind::Rows, Kind::Read) => assert!(b.end <= a.end),
            (Kind::Read, Kind::Rows) => assert!(b.start >= a.end),
            other => panic!("{other:?}"),
        }
    }
    let lane = |event: &Event| recorded.lanes[event.lane as usize].clone();
    assert!(
        recorded
            .events
            .iter()
            .filter(|e| e.kind == Kind::Rows)
            .all(|e| lane(e).ends_with(&format!("{}", e.args[1])))
    );
}

#[test]
fn threads_of_one_name_at_the_same_time_have_lanes_of_their_own() {
    let _alone = alone();
    assert!(start());
    let both = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let work = || {
                drop(span(Kind::Read));
                both.wait();
            };
            std::thread::Builder::new().name("same".into()).spawn_scoped(scope, work).unwrap();
        }
    });
    let mut names = stop().unwrap().lanes;
    names.sort();
    assert_eq!(names, ["same", "same (2)"]);
}

#[test]
fn a_thread_with_an_open_span_shares_its_lane_with_nobody() {
    let _alone = alone();
    assert!(start());
    // The second works while the span of the first is open, and has ended when that ends.
    let outer = std::thread::spawn(|| {
        let open = span(Kind::Batch);
        std::thread::spawn(|| drop(span(Kind::Read))).join().unwrap();
        drop(open);
    });
    outer.join().unwrap();
    // This span ends in a thread that has no span of its own.
    let mark = crate::Mark::now();
    std::thread::spawn(move || mark.end(Kind::Step, || "elsewhere".into())).join().unwrap();
    let recorded = stop().unwrap();
    let lane = |kind| recorded.events.iter().find(|event| event.kind == kind).map(|event| event.lane);
    assert_eq!(recorded.len(), 3);
    assert_ne!(lane(Kind::Batch).unwrap(), lane(Kind::Read).unwrap());
    // Both were free when the mark was made.
    assert!([Kind::Batch, Kind::Read].map(lane).contains(&lane(Kind::Step)));
}

#[test]
fn what_ends_elsewhere_is_in_no_line_that_had_spans_meanwhile() {
    let _alone = alone();
    assert!(start());
    let mark = crate::Mark::now();
    std::thread::spawn(|| drop(span(Kind::Read))).join().unwrap();
    std::thread::spawn(move || mark.end(Kind::Step, || "elsewhere".into())).join().unwrap();
    // Cancelled: no line, and no number.
    std::thread::spawn(|| span(Kind::Read).cancel()).join().unwrap();
    let mut names = stop().unwrap().lanes;
    names.sort();
    assert_eq!(names, ["thread", "thread (2)"]);
}

#[test]
fn what_does_not_fit_is_counted_and_parts_get_their_share() {
    let _alone = alone();
    assert!(start());
    let wanted = LIMIT / 2;
    section(2);
    let mut kept = vec![];
    for left in (1..=4).rev() {
        let turn = crate::labelled(Kind::Turn, || format!("turn {left}"));
        let part = part(left);
        for _ in 0..wanted {
            drop(span(Kind::Read));
        }
        kept.push(wanted as u64 - part.dropped());
        drop(turn);
    }
    // Nothing is left to this section, and half of it all to the other.
    section(1);
    drop(span(Kind::Read));
    let recorded = stop().unwrap();
    let share = (LIMIT / 8) as u64;
    assert!(kept.iter().all(|kept| kept.abs_diff(share) <= 2 * CHUNK as u64), "{kept:?}");
    assert_eq!(recorded.len() as u64, kept.iter().sum::<u64>() + 4 + 1);
    assert_eq!(recorded.dropped(), 4 * wanted as u64 - kept.iter().sum::<u64>());
    assert_eq!(recorded.labels, ["turn 4", "turn 3", "turn 2", "turn 1"]);
}

/// Ends the threads of a test when it ends, also by a failed assertion: else they would go on for ever.
struct EndThreads<'t>(&'t AtomicBool);

impl Drop for EndThreads<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_recording_can_be_ended_while_threads_go_on() {
    let _alone = alone();
    let (done, turn) = (AtomicBool::new(false), AtomicU64::new(0));
    let room = || current().unwrap().as_ref().unwrap().room;
    // Each thread has as many spans in each recording as end it, so that none is full, however late this thread gets its turn.
    let in_turns = || {
        let mut last = 0;
        while !done.load(Ordering::Relaxed) {
            let now = turn.load(Ordering::Acquire);
            if now == last {
                std::thread::yield_now();
                continue;
            }
            last = now;
            for _ in 0..4 * CHUNK {
                drop(span(Kind::Read).with(7, 9));
            }
        }
    };
    std::thread::scope(|scope| {
        let _end = EndThreads(&done);
        for _ in 0..2 {
            scope.spawn(in_turns);
        }
        for recording in 1..=20 {
            assert!(start());
            turn.store(recording, Ordering::Release);
            while room() < 4 * CHUNK {
                std::thread::yield_now();
            }
            let recorded = stop().unwrap();
            assert!(!recorded.is_empty());
            // Spans that end after the recording were none of its own.
            assert_eq!(recorded.dropped(), 0);
            assert!(recorded.events.iter().all(|e| e.args == [7, 9] && e.start <= e.end));
        }
    });
}
