//! Sets that take the place of others, and sets that are gone on with after their writer was killed.

use crate::gate;
use crate::half;
use crate::server::{self, Wrong};
use crate::sets::{NAMES, SETS, assert_same, options, recognised, write, write_rows};
use crate::web::publish;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::journal::KeptPart;
use wellread_store::{ImageView, OpenOptions, WriteOptions, create, open, place, read_image, staged};

/// Says to the program that is started again what to write.
const ADDRESS: &str = "WELLREAD_TEST_WRITES";
/// Says to the program that is started again that it is to be interrupted when nothing answers.
const SILENCE: &str = "WELLREAD_TEST_SILENCE";
/// Says to the program that is started again that it is to be interrupted while it replaces a set.
const REPLACES: &str = "WELLREAD_TEST_REPLACES";
/// So many images of that set have metadata whose removal takes a while.
const MANY: usize = 100;

fn at(address: &str) -> PathBuf {
    server::url();
    PathBuf::from(address)
}

fn hidden(bucket: &str) -> Vec<String> {
    server::keys(bucket).into_iter().filter(|key| key.contains(".wellread-")).collect()
}

#[test]
fn every_format_takes_the_place_of_a_set() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format, variant, shard) in SETS {
        let (local, other) = (dir.path().join(name), at("s3://overwritten").join(name));
        let options = options(variant, shard);
        write(&local, format, &options);
        for overwrite in [false, true] {
            write(&other, format, &WriteOptions { overwrite, ..options.clone() });
            assert_same(&*recognised(&other), &*recognised(&local));
        }
        let error = create(&other, format, &options).err().unwrap().to_string();
        assert!(error.contains("already exists") && error.contains("overwrite true"), "{error}");
    }
    assert_eq!((hidden("overwritten/"), server::open_uploads("overwritten")), (vec![], 0));
}

#[test]
fn a_target_that_cannot_be_looked_at_is_not_taken_for_free() {
    let set = at("s3://unseen/set.parquet");
    write(&set, "parquet", &options(None, None));
    let before = server::get("unseen/set.parquet").unwrap();
    server::spoil("unseen", &[Wrong::Status(500, "InternalError"); 20]);
    let error = create(&set, "parquet", &options(None, None)).err().unwrap().to_string();
    server::spoil("unseen", &[]);
    assert!(error.contains("cannot look whether something is there"), "{error}");
    assert!(error.contains("answered 500 InternalError"), "{error}");
    assert!(server::get("unseen/set.parquet").unwrap() == before);
}

#[test]
fn metadata_are_replaced_last_and_what_is_left_of_the_old_set_goes_then() {
    let set = at("s3://order/set");
    let zarr = |variant: &str| WriteOptions { overwrite: true, ..options(Some(variant), None) };
    write(&set, "ome-zarr", &zarr("0.4"));
    let before = server::changes("order/set").len();
    let old = server::keys("order/set/");
    write(&set, "ome-zarr", &zarr("0.5"));
    let mut changes = server::changes("order/set").split_off(before);
    changes.retain(|change| !change.ends_with("/.wellread-partial-replaced"));
    let new = server::keys("order/set/");
    let depth = |change: &String| change.matches('/').count();
    let is_chunk =
        |change: &String| change.rsplit('/').next().unwrap().starts_with(|c: char| c.is_ascii_digit());
    let is_copy = |change: &String| change.starts_with("PUT");
    let (heads, rest) = changes.split_at(changes.iter().position(is_copy).unwrap());
    let (copies, gone) = rest.split_at(new.len());
    // Metadata go first, and chunks last.
    let mut arrays = old.iter().filter(|key| key.ends_with("/.zarray"));
    assert!(arrays.all(|key| heads.contains(&format!("DELETE {key}"))), "{heads:?}");
    assert!(!heads.iter().any(is_chunk) && gone.iter().any(is_chunk), "{changes:?}");
    assert!(
        copies.iter().all(is_copy) && copies.is_sorted_by_key(|change| std::cmp::Reverse(depth(change))),
        "{copies:?}"
    );
    assert!(heads.iter().chain(gone).all(|change| change.starts_with("DELETE")), "{changes:?}");
    assert_eq!(recognised(&set).len(), NAMES.len());
    // A folder with other files than a set is not replaced.
    server::put("order/set/notes.txt", b"mine");
    let error = create(&set, "ome-zarr", &zarr("0.5")).err().unwrap().to_string();
    assert!(error.contains("notes.txt"), "{error}");
}

#[test]
fn an_upload_that_is_cut_off_leaves_the_old_object() {
    let path = at("s3://cut-off/a.parquet");
    place::write(&path, b"old").unwrap();
    let mut file = place::create(&path).unwrap();
    file.write_all(&vec![1; 33 << 20]).unwrap();
    drop(file);
    assert_eq!(place::read(&path).unwrap(), b"old");
    assert_eq!(server::open_uploads("cut-off"), 0);
}

fn resume() -> WriteOptions {
    WriteOptions { resume: Some("these images".into()), ..WriteOptions::default() }
}

/// The test of the started program; nothing among the other tests. It waits for its end.
#[test]
fn writer() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let format = if address.ends_with("zarr") { "ome-zarr" } else { "tiff" };
    let mut writer = create(&address, format, &resume()).unwrap();
    write_rows(&mut *writer, 0..1);
    // Longer than between two writes of the journal.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    write_rows(&mut *writer, 1..2);
    wait_for_notes(Path::new(&address));
    if address.contains("interrupted") {
        let mut large = place::create(Path::new("s3://interrupted/large")).unwrap();
        large.write_all(&vec![1; 33 << 20]).unwrap();
        assert_eq!(staged::remove_unfinished(), KeptPart::Complete);
        assert!(large.write_all(b"more").is_err() && large.flush().is_err());
    }
    println!("two are written");
    std::thread::sleep(std::time::Duration::from_mins(10));
}

/// Waits until the journal of a set being written notes that its first two images are complete: threads write them.
fn wait_for_notes(set: &Path) {
    for _ in 0..6000 {
        let journal = staged::part(set).map(|part| part.join(".wellread-journal"));
        let text = journal.and_then(|journal| place::read(&journal).ok()).unwrap_or_default();
        if String::from_utf8_lossy(&text).lines().any(|line| line == "0-1") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the journal does not note two images");
}

/// A test of this file in a process of its own, which does its work where a variable is set.
fn started(test: &str, variable: &str, value: &str) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &format!("replacing::{test}"), "--nocapture"]).env(variable, value);
    child
}

/// Starts the program again, lets it write two images, and kills it.
fn killed_after_two(address: &str) {
    server::url();
    let mut child = started("writer", ADDRESS, address).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let has_written = lines.map_while(Result::ok).any(|line| line.contains("two are written"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(has_written);
}

#[test]
fn a_set_whose_writer_was_killed_is_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in [("set-tiff", "tiff"), ("set-zarr", "ome-zarr")] {
        let (local, other) = (dir.path().join(name), at("s3://killed-writer").join(name));
        write(&local, format, &WriteOptions::default());
        killed_after_two(other.to_str().unwrap());
        assert!(!place::exists(&other) && staged::part(&other).is_some());
        let mut writer = create(&other, format, &resume()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(writer.complete(), 2);
        NAMES[..2].iter().for_each(|name| writer.skip(&ImageMetadata::named(*name)).unwrap());
        write_rows(&mut *writer, 2..NAMES.len());
        writer.finish().unwrap_or_else(|e| panic!("{e}"));
        assert_same(&*recognised(&other), &*recognised(&local));
    }
    assert_eq!((hidden("killed-writer/"), server::open_uploads("killed-writer")), (vec![], 0));
}

#[test]
fn a_writer_that_is_interrupted_throws_its_uploads_away() {
    at("s3://interrupted");
    killed_after_two("s3://interrupted/set-tiff");
    assert_eq!(server::open_uploads("interrupted"), 0);
    assert!(!server::keys("interrupted/").contains(&"interrupted/large".to_owned()));
    assert!(staged::part(Path::new("s3://interrupted/set-tiff")).is_some());
    // A new run does not keep it.
    write(Path::new("s3://interrupted/set-tiff"), "tiff", &WriteOptions::default());
    assert_eq!(hidden("interrupted/"), Vec::<String>::new());
}

/// The test of another started program: its place stops answering, and then it is interrupted.
#[test]
fn interrupted_in_silence() {
    if std::env::var_os(SILENCE).is_none() {
        return;
    }
    let set = at("s3://silent/set");
    // SAFETY: no other test runs in this process, and no other thread reads the environment.
    unsafe { std::env::set_var("WELLREAD_ABORT_TIMEOUT", "0.3") };
    let mut writer = create(&set, "tiff", &options(None, None)).unwrap();
    write_rows(&mut *writer, 0..1);
    gate::expect_rounds("silent", &[usize::MAX]);
    let before = server::all_requests("silent").len();
    assert!(staged::is_writing_remotely());
    staged::remove_unfinished();
    println!("made {} requests", server::all_requests("silent").len() - before);
    // Without what dropping the writer asks for.
    std::process::exit(0);
}

#[test]
fn a_writer_that_is_interrupted_does_not_wait_for_a_place_that_is_silent() {
    let done = started("interrupted_in_silence", SILENCE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let made = said.split("made ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    // Each request is made six times where nobody gives it up. On a busy machine none may be there in time.
    assert!(made.is_some_and(|made| made < 6), "{said}");
}

/// The test of another started program: it is interrupted once it has begun to remove the metadata of the set that it replaces.
#[test]
fn interrupted_while_it_replaces() {
    if std::env::var_os(REPLACES).is_none() {
        return;
    }
    let set = at("s3://ends/zarr");
    // SAFETY: no other test runs in this process, and no other thread reads the environment.
    unsafe { std::env::set_var("WELLREAD_ABORT_TIMEOUT", "60") };
    let write = |value: u8, options: &WriteOptions| {
        let (shape, pixels) = (Shape::plane(8, 8), [value; 64]);
        let mut writer = create(&set, "ome-zarr", options).unwrap();
        for row in 0..MANY {
            let metadata = ImageMetadata::named(format!("image {row}"));
            let view = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels };
            writer.write(&view).unwrap();
        }
        writer.finish().unwrap();
    };
    write(3, &WriteOptions::default());
    let (before, replaced) = (server::changes("ends/zarr/").len(), set.clone());
    let interrupting = std::thread::spawn(move || {
        // The list of what may lie there, and one file.
        while server::changes("ends/zarr/").len() < before + 2 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        staged::remove_unfinished();
        // As the set is where the process would end now.
        let found = recognised(&replaced);
        let is_new = |row: &usize| read_image(&*found, *row).unwrap().1 == [100; 64];
        (0..found.len()).filter(is_new).count()
    });
    write(100, &overwrite());
    println!("{} are new", interrupting.join().unwrap());
}

#[test]
fn a_writer_that_is_interrupted_while_it_replaces_a_set_replaces_all_of_it() {
    let done = started("interrupted_while_it_replaces", REPLACES, "1").output().unwrap();
    let [said, errors] = [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(done.status.success() && said.contains(&format!("{MANY} are new")), "{said}{errors}");
}

fn overwrite() -> WriteOptions {
    WriteOptions { overwrite: true, ..WriteOptions::default() }
}

/// A set of two images whose pixels begin with `first`.
fn two_images(path: &Path, format: &str, first: u8, options: &WriteOptions) {
    let shape = Shape([1, 1, 1, 30, 50]);
    let mut writer = create(path, format, options).unwrap();
    for (row, name) in ["a", "b"].into_iter().enumerate() {
        let pixels: Vec<u8> =
            (0..shape.pixels()).map(|i| first.wrapping_add((i * (usize::from(first) + row)) as u8)).collect();
        let metadata = ImageMetadata::named(name);
        let view = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels };
        writer.write(&view).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn who_opens_a_set_gets_what_another_process_has_just_written() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in
        [("tiff", "tiff"), ("zarr", "ome-zarr"), ("png", "image-folder"), ("table.parquet", "parquet")]
    {
        for (scheme, bucket) in [("s3:/", "anew"), (server::url(), "web-anew")] {
            let other = at(&format!("{scheme}/{bucket}/{name}"));
            for first in [3, 100] {
                let local = dir.path().join(format!("{first}-{bucket}-{name}"));
                two_images(&local, format, first, &WriteOptions::default());
                publish(&local, &format!("{bucket}/{name}"));
                let (there, here) = (recognised(&other), recognised(&local));
                assert_eq!((there.format(), there.len()), (here.format(), here.len()));
                for row in 0..here.len() {
                    let images = [&there, &here].map(|store| read_image(&**store, row).unwrap());
                    assert!(images[0] == images[1], "{} row {row} of {first}", other.display());
                }
            }
        }
    }
}

#[test]
fn what_this_process_has_replaced_is_read_anew_and_a_set_that_was_open_has_no_image_of_it() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in [("tiff", "tiff"), ("table.parquet", "parquet")] {
        let other = at(&format!("s3://own/{name}"));
        let [old, new] = [3, 100].map(|first| {
            let local = dir.path().join(format!("{first}-{name}"));
            two_images(&local, format, first, &WriteOptions::default());
            recognised(&local)
        });
        two_images(&other, format, 3, &WriteOptions::default());
        let before = recognised(&other);
        two_images(&other, format, 100, &overwrite());
        let after = recognised(&other);
        for row in 0..new.len() {
            assert!(read_image(&*after, row).unwrap() == read_image(&*new, row).unwrap(), "{name} row {row}");
            // A small file may have been kept whole.
            match read_image(&*before, row) {
                Ok(image) => assert!(image == read_image(&*old, row).unwrap(), "{name} row {row}"),
                Err(error) => assert!(error.to_string().contains("was replaced"), "{error}"),
            }
        }
    }
}

/// A reader may find images of both sets where the process that replaced one was killed, and no image that is made of both.
#[test]
fn an_image_of_a_set_that_is_half_replaced_is_of_one_set() {
    let dir = tempfile::tempdir().unwrap();
    for (name, format, chunk) in [
        ("tiff", "tiff", None),
        ("zarr", "ome-zarr", Some([1, 1, 1, 16, 16])),
        ("png", "image-folder", None),
        ("dataset", "ome-arrow-dataset", None),
    ] {
        let options = [false, true].map(|overwrite| WriteOptions { overwrite, chunk, ..options(None, None) });
        let locals = [3, 100].map(|first| {
            let local = dir.path().join(format!("{name}-{first}"));
            two_images(&local, format, first, &options[0]);
            recognised(&local)
        });
        let images: Vec<_> =
            locals.iter().flat_map(|set| [0, 1].map(|row| read_image(&**set, row).unwrap())).collect();
        let set = at("s3://half").join(name);
        two_images(&set, format, 3, &options[0]);
        let states = half::states(&format!("half/{name}/"), || two_images(&set, format, 100, &options[1]));
        assert!(states.len() > 2, "{name}: a set of several objects");
        let mut whole = 0;
        for (step, state) in states.iter().enumerate() {
            let set = half::publish(state, "half/", &format!("half-{name}-{step}/"), name);
            let Ok(found) = open(&set, &OpenOptions::default()) else { continue };
            let read: Vec<_> = (0..found.len()).filter_map(|row| read_image(&*found, row).ok()).collect();
            assert!(read.iter().all(|image| images.contains(image)), "{name} after {step} changes");
            whole += usize::from(read == images[..2] || read == images[2..]);
        }
        // Before the first change, and after the last.
        assert!(whole >= 2, "{name}");
    }
}

/// A list tells what a writer has left that failed or was killed. Other files are kept.
#[test]
fn a_set_that_is_half_replaced_is_replaced_by_the_next_run() {
    let set = at("s3://once-more/zarr");
    let list = set.join(".wellread-partial-replaced");
    two_images(&set, "ome-zarr", 3, &WriteOptions::default());
    let old = recognised(&set);
    let old = [0, 1].map(|row| read_image(&*old, row).unwrap());
    // More than the attempts of all copies that are made at once.
    server::fail_late("once-more", &["InternalError"; 1000]);
    let mut writer = create(&set, "ome-zarr", &overwrite()).unwrap();
    write_rows(&mut *writer, 0..1);
    let error = writer.finish().err().unwrap().to_string();
    server::fail_late("once-more", &[]);
    let kept = "the new output is kept: what is not in s3://once-more/zarr yet is in s3://once-more/.wellread-partial";
    assert!(error.contains(kept), "{error}");
    assert!(place::exists(&list));
    // Its names are there, and no image of it is another than before.
    if let Ok(half) = open(&set, &OpenOptions::default()) {
        let read: Vec<_> = (0..half.len()).filter_map(|row| read_image(&*half, row).ok()).collect();
        assert!(read.iter().all(|image| old.contains(image)), "{} images", read.len());
    }
    server::put("once-more/zarr/notes.txt", b"mine");
    let error = create(&set, "ome-zarr", &overwrite()).err().unwrap().to_string();
    assert!(error.contains("not replaced"), "{error}");
    place::of(&set).remove_file(&set.join("notes.txt")).unwrap();
    two_images(&set, "ome-zarr", 100, &overwrite());
    assert!(recognised(&set).len() == 2 && !place::exists(&list));
}
