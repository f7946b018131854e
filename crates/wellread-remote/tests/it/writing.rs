//! Objects that are written: there when they are complete, and not before.

use crate::copying::copy_later;
use crate::request::SLOW;
use crate::{gate, pages, server};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::convert::ConvertOptions;
use wellread_store::parted::{PartedSet, write_part};
use wellread_store::place::{self, Kind};
use wellread_store::staged::{Existing, Staged};
use wellread_store::subset::Subset;
use wellread_store::{ImageView, OpenOptions, Store, WriteOptions, create, open, read_image};

fn at(address: &str) -> &Path {
    server::url();
    Path::new(address)
}

#[test]
fn small_objects_are_one_request_and_there_after_the_flush() {
    let path = at("s3://small/x/a");
    let mut file = place::create(path).unwrap();
    file.write_all(b"hallo").unwrap();
    file.seek(SeekFrom::Start(1)).unwrap();
    file.write_all(b"e").unwrap();
    assert!(server::get("small/x/a").is_none());
    file.flush().unwrap();
    file.flush().unwrap();
    assert_eq!(server::get("small/x/a").unwrap(), b"hello");
    assert_eq!(server::requests("small/x/a"), ["PUT"]);
    assert_eq!(place::read(path).unwrap(), b"hello");
}

#[test]
fn large_objects_go_in_parts_whose_beginning_may_be_written_again() {
    let path = at("s3://large/a");
    let bytes: Vec<u8> = (0..(40 << 20)).map(|i: usize| (i % 249) as u8).collect();
    let mut file = place::create(path).unwrap();
    for chunk in bytes.chunks(1 << 20) {
        file.write_all(chunk).unwrap();
    }
    file.seek(SeekFrom::Start(2)).unwrap();
    file.write_all(b"head").unwrap();
    assert!(server::get("large/a").is_none());
    file.flush().unwrap();
    let mut expected = bytes;
    expected[2..6].copy_from_slice(b"head");
    assert!(server::get("large/a").unwrap() == expected);
    assert_eq!(server::open_uploads("large"), 0);
    assert!(file.write_all(b"more").is_err());
    // And it is read in pieces, all at once.
    assert!(place::read(path).unwrap() == expected);
    place::of(path).patch(path, (17 << 20) - 2, b"patch").unwrap();
    expected[(17 << 20) - 2..(17 << 20) + 3].copy_from_slice(b"patch");
    assert!(place::read(path).unwrap() == expected);
}

#[test]
fn a_slow_link_is_waited_for_while_it_takes_more() {
    let path = at("s3://slow-link/a");
    let bytes = vec![3; (16 << 20) - 1];
    place::write(path, &bytes).unwrap();
    // A limit from the first byte on would end every attempt. A busy machine may need a second one.
    assert!(server::requests(&format!("{SLOW}a")).iter().all(|method| method == "PUT"));
    assert!(server::get(&format!("{SLOW}a")).unwrap() == bytes);
}

#[test]
fn a_folder_is_one_where_nobody_tells_that_no_object_has_its_name() {
    server::url();
    // One of these is most likely a folder, and one a file.
    let names = ["set", "set.x"];
    for name in names {
        server::put(&format!("untold/{name}/a"), b"bytes");
    }
    for name in names {
        let [set, moved] = ["", "-moved"].map(|end| PathBuf::from(format!("s3://untold/{name}{end}")));
        assert!(place::is_folder(at(&format!("s3://untold/{name}"))), "{name}");
        assert_eq!(place::of(&set).files_below(&set).unwrap(), [Path::new("a")], "{name}");
        let error = Staged::new(&set, Existing::Kept).err().unwrap().to_string();
        assert!(error.contains("already exists"), "{error}");
        place::rename(&set, &moved).unwrap();
        assert_eq!(server::keys(&format!("untold/{name}/")), Vec::<String>::new());
        assert_eq!(server::get(&format!("untold/{name}-moved/a")).unwrap(), b"bytes");
        // There is nothing any more, and nobody tells.
        for error in [place::metadata(&set).unwrap_err(), place::rename(&set, &moved).unwrap_err()] {
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
        }
    }
    // Nor that an earlier run has left no journal.
    let staged = Staged::resumable(Path::new("s3://untold/new"), Existing::Kept, "these images").unwrap();
    place::write(&staged.path().join("a"), b"bytes").unwrap();
    staged.commit().unwrap();
    assert_eq!(server::keys("untold/new/"), ["untold/new/a"]);
}

/// A refusal alone means a free place to those who may write: output went into the set that is there.
#[test]
fn a_refusal_beside_a_listing_that_failed_is_no_free_place() {
    server::url();
    pages::fail_to_list("untold-unlisted");
    // One of these is most likely a folder, and one a file.
    for name in ["set", "set.x"] {
        server::put(&format!("untold-unlisted/{name}/a"), b"bytes");
        let set = PathBuf::from(format!("s3://untold-unlisted/{name}"));
        let error = Staged::new(&set, Existing::Kept).err().unwrap().to_string();
        assert!(error.contains("cannot look whether something is there"), "{error}");
        assert!(error.contains("501"), "{error}");
    }
}

#[test]
fn what_is_dropped_before_the_flush_is_nowhere() {
    let mut file = place::create(at("s3://dropped/a")).unwrap();
    file.write_all(&vec![1; 33 << 20]).unwrap();
    assert_eq!(server::open_uploads("dropped"), 1);
    drop(file);
    assert_eq!((server::open_uploads("dropped"), server::keys("dropped/")), (0, vec![]));
}

#[test]
fn an_upload_is_thrown_away_also_by_a_thread_that_is_to_stop() {
    let mut file = place::create(at("s3://stopped/a")).unwrap();
    file.write_all(&vec![1; 33 << 20]).unwrap();
    assert_eq!(server::open_uploads("stopped"), 1);
    let stop = Arc::new(AtomicBool::new(true));
    // The request to throw it away is answered when another one is there.
    gate::expect_rounds("stopped", &[2]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Longer than a thread that is to stop waits. If it is short on a busy machine, the test still passes.
            std::thread::sleep(Duration::from_millis(100));
            assert!(!place::exists(Path::new("s3://stopped/b.tif")));
        });
        place::until(&stop, || drop(file));
    });
    assert_eq!((server::open_uploads("stopped"), server::keys("stopped/")), (0, vec![]));
}

#[test]
fn copies_and_uploads_that_fail_after_their_status_are_made_again() {
    let path = at("s3://late/a");
    place::write(path, b"bytes").unwrap();
    server::fail_late("late", &["InternalError", "SlowDown"]);
    place::rename(path, Path::new("s3://late/b")).unwrap();
    assert_eq!(
        (server::keys("late/"), server::get("late/b").unwrap()),
        (vec!["late/b".into()], b"bytes".into())
    );
    assert_eq!(server::changes("late/b"), ["PUT late/b"; 3]);
    let large = vec![7; 17 << 20];
    server::fail_late("late-parts", &["InternalError"]);
    place::write(at("s3://late-parts/a"), &large).unwrap();
    assert!(server::get("late-parts/a").unwrap() == large);
    assert_eq!(server::open_uploads("late-parts"), 0);
}

#[test]
fn an_older_object_is_not_taken_for_a_completed_upload() {
    let (old, new) = (vec![1; 17 << 20], vec![2; 17 << 20]);
    let lost = at("s3://answer-lost/a");
    server::put("answer-lost/a", &old);
    server::fail_late("answer-lost", &["Lost"]);
    place::write(lost, &new).unwrap();
    assert!(server::get("answer-lost/a").unwrap() == new);
    let gone = at("s3://upload-gone/a");
    server::put("upload-gone/a", &old);
    server::fail_late("upload-gone", &["Gone"]);
    let error = place::write(gone, &new).unwrap_err().to_string();
    assert!(
        error.contains("POST the parts of s3://upload-gone/a: the server answered 404 NoSuchUpload"),
        "{error}"
    );
    assert!(server::get("upload-gone/a").unwrap() == old);
}

#[test]
fn a_copy_that_the_store_refuses_after_its_status_removes_nothing() {
    let path = at("s3://late-refused/a");
    place::write(path, b"bytes").unwrap();
    server::fail_late("late-refused", &["AccessDenied"]);
    let error = place::rename(path, Path::new("s3://late-refused/b")).unwrap_err().to_string();
    assert!(error.contains("COPY of s3://late-refused/a: the server answered 200 AccessDenied"), "{error}");
    assert!(!error.contains('<') && !error.contains("secret"), "{error}");
    assert_eq!(server::keys("late-refused/"), ["late-refused/a"]);
    assert_eq!(server::get("late-refused/a").unwrap(), b"bytes");
}

#[test]
fn a_copy_that_the_store_makes_later_is_waited_for_before_its_source_goes() {
    let path = at("s3://copied-later/a");
    place::write(path, b"bytes").unwrap();
    copy_later("copied-later/b", 2);
    place::rename(path, Path::new("s3://copied-later/b")).unwrap();
    let mut requests = server::all_requests("copied-later");
    let copied = requests.iter().position(|request| request == "PUT copied-later/b").unwrap();
    let look = "HEAD copied-later/b";
    assert_eq!(requests.split_off(copied), ["PUT copied-later/b", look, look, look, "DELETE copied-later/a"]);
    assert_eq!(server::get("copied-later/b").unwrap(), b"bytes");
}

#[test]
fn folders_are_prefixes() {
    let folder = at("s3://folders/set");
    assert!(!place::exists(folder) && place::list(folder).is_err());
    place::create_folder(folder).unwrap();
    for name in ["a", "b c", "sub/d", "sub/e", "f", "g", "h", "i", "j"] {
        place::write(&folder.join(name), name.as_bytes()).unwrap();
    }
    assert!(place::is_folder(folder) && place::is_folder(Path::new("s3://folders")));
    assert!(place::is_file(&folder.join("b c")) && !place::exists(&folder.join("su")));
    let mut listed: Vec<_> = place::list(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.name().into_string().unwrap(), entry.kind().unwrap() == Kind::Folder)
        })
        .collect();
    listed.sort();
    let names = ["a", "b c", "f", "g", "h", "i", "j"].map(|name| (name.to_owned(), false));
    assert_eq!(listed[..7], names);
    assert_eq!(listed[7..], [("sub".to_owned(), true)]);
    place::rename(folder, Path::new("s3://folders/moved")).unwrap();
    assert!(!place::exists(folder));
    assert_eq!(place::read(Path::new("s3://folders/moved/sub/d")).unwrap(), b"sub/d");
    assert_eq!(place::read(Path::new("s3://folders/moved/b c")).unwrap(), b"b c");
    let place = place::of(folder);
    place.remove_file(Path::new("s3://folders/moved/a")).unwrap();
    assert!(place.remove_file(Path::new("s3://folders/moved/a")).is_err());
    place.remove_folder(Path::new("s3://folders/moved")).unwrap();
    assert_eq!(server::keys("folders/"), Vec::<String>::new());
    assert!(place::rename(folder, Path::new("s3://folders/other")).is_err());
    assert!(place.remove_folder(Path::new("s3://folders")).is_err());
}

/// No remote place renames a folder at once. A reader sees no smaller set meanwhile, nor after a process that was
/// killed.
#[test]
fn the_list_of_a_sets_parts_is_there_before_them() {
    let target = at("s3://parted/set.parquet");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("source.parquet");
    let mut writer = create(&path, "parquet", &WriteOptions::default()).unwrap();
    for i in 0..40u8 {
        let metadata = ImageMetadata::named(format!("image-{i:02}"));
        let (shape, dtype, pixels) = (Shape::plane(2, 2), PixelType::U8, &[i; 4]);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels }).unwrap();
    }
    writer.finish().unwrap();
    let source: Arc<dyn Store> = open(&path, &OpenOptions::default()).unwrap().into();
    let (options, how) = (WriteOptions::default(), ConvertOptions::default());
    let set = PartedSet::begin(target, "parquet", Existing::Kept, None).unwrap();
    let names: Vec<String> = (0..20).map(|number| set.part_name(number)).collect();
    for (number, name) in names.iter().enumerate() {
        let rows = Subset::of(Arc::clone(&source), vec![2 * number, 2 * number + 1]);
        write_part(&rows, &set.part(name), "parquet", &options, how, true, &mut |_| ()).unwrap();
    }
    assert_eq!(set.commit(&names, &options).unwrap(), 40);
    let changes = server::changes("parted/set.parquet/");
    assert_eq!((changes.len(), &*changes[0]), (21, "PUT parted/set.parquet/wellread-parts.json"));
    assert_eq!(open(target, &OpenOptions::default()).unwrap().len(), 40);
    place::of(target).remove_file(&target.join(&names[19])).unwrap();
    let error = open(target, &OpenOptions::default()).err().unwrap().to_string();
    assert!(error.contains("part-00019.parquet: is a part of the set, and is not there"), "{error}");
}

#[test]
fn files_of_a_folder_are_written_many_at_once() {
    const IMAGES: usize = 16;
    server::url();
    for format in ["tiff", "ome-zarr", "image-folder"] {
        let bucket = format!("written-{format}");
        let path = PathBuf::from(format!("s3://{bucket}/set"));
        let (shape, dtype) = (Shape([1, 1, 1, 8, 8]), PixelType::U8);
        let pixels = |i: usize| vec![i as u8; shape.pixels()];
        let options = WriteOptions { jobs: 1, ..WriteOptions::default() };
        let mut writer = create(&path, format, &options).unwrap();
        gate::hold(&bucket, IMAGES);
        for i in 0..IMAGES {
            let metadata = ImageMetadata::named(format!("image-{i:02}"));
            writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels(i) }).unwrap();
        }
        writer.finish().unwrap();
        assert!(gate::most_at_once(&bucket) >= IMAGES, "{format}");
        let set = open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(set.len(), IMAGES, "{format}");
        for i in 0..IMAGES {
            assert_eq!(set.name(i).unwrap(), format!("image-{i:02}"), "{format}");
            assert_eq!(read_image(&*set, i).unwrap().1, pixels(i), "{format} {i}");
        }
    }
}
