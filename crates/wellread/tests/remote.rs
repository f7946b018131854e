//! Sets of the engines in a bucket and on a web server: read as from a folder, written as to one.

#[path = "../../wellread-remote/tests/it/copying.rs"]
#[allow(dead_code, reason = "the server is that of wellread-remote's tests, which do more with it")]
mod copying;
#[path = "../../wellread-remote/tests/it/gate.rs"]
#[allow(dead_code, reason = "the gate is that of wellread-remote's tests, which do more with it")]
mod gate;
#[path = "../../wellread-remote/tests/it/half.rs"]
mod half;
#[path = "../../wellread-remote/tests/it/pages.rs"]
#[allow(dead_code, reason = "the server is that of wellread-remote's tests, which do more with it")]
mod pages;
#[path = "../../wellread-remote/tests/it/request.rs"]
#[allow(dead_code, reason = "the server is that of wellread-remote's tests, which do more with it")]
mod request;
#[path = "../../wellread-remote/tests/it/server.rs"]
#[allow(dead_code, reason = "the server is that of wellread-remote's tests, which do more with it")]
mod server;
#[path = "../../wellread-store/tests/it/place_sets.rs"]
#[allow(dead_code, reason = "those are the sets of the formats that wellread-store has")]
mod sets;

use sets::{NAMES, copy, options, recognised, write};
use std::path::{Path, PathBuf};
use wellread::loader::{Dataset, Loader};
use wellread::store::place::WantedRanges;
use wellread::store::{ImageView, OpenOptions, Request, Store, WriteOptions, create, open, read_image};
use wellread::{ImageMetadata, PixelType, Shape};

/// Name of the set and its format.
const SETS: [(&str, &str); 5] = [
    ("a.lance", "lance"),
    ("b.lancedb", "lance"),
    ("c.vortex", "vortex"),
    ("d.duckdb", "duckdb"),
    ("e.parquet", "parquet-duckdb"),
];

#[track_caller]
fn assert_alike(there: &dyn Store, here: &dyn Store) {
    assert_eq!((there.format(), there.len()), (here.format(), here.len()));
    for row in 0..here.len() {
        assert_eq!(there.name(row).unwrap(), here.name(row).unwrap(), "{}", here.format());
        assert_eq!(there.metadata(row).unwrap(), here.metadata(row).unwrap());
        assert_eq!(read_image(there, row).unwrap(), read_image(here, row).unwrap(), "{}", here.format());
    }
}

#[test]
fn sets_of_engines_are_read_from_a_bucket() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in SETS {
        let (local, other) = (dir.path().join(name), Path::new("s3://engines-read/sets").join(name));
        write(&local, format, &options(None, None));
        copy(&local, &other);
        let (there, here) = (recognised(&other), recognised(&local));
        assert_eq!(here.len(), NAMES.len());
        assert_alike(&*there, &*here);
        assert_eq!(there.bytes_on_disk().unwrap(), here.bytes_on_disk().unwrap());
    }
    let by_duckdb = OpenOptions { format: Some("parquet-duckdb".to_owned()), ..OpenOptions::default() };
    let there = open("s3://engines-read/sets/e.parquet", &by_duckdb).unwrap();
    assert_alike(&*there, &*open(dir.path().join("e.parquet"), &by_duckdb).unwrap());
}

#[test]
fn sets_of_engines_are_written_to_a_bucket() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in SETS {
        let (local, other) = (dir.path().join(name), Path::new("s3://engines-written/sets").join(name));
        write(&local, format, &options(None, None));
        write(&other, format, &options(None, None));
        assert_alike(&*recognised(&other), &*recognised(&local));
        let again = create(&other, format, &options(None, None)).err().unwrap().to_string();
        assert!(again.contains("already exists"), "{again}");
        let overwrite = WriteOptions { overwrite: true, ..options(None, None) };
        if format == "duckdb" {
            let refused = create(&other, format, &overwrite).err().unwrap().to_string();
            assert!(refused.contains("is not replaced there"), "{refused}");
            continue;
        }
        write(&other, format, &overwrite);
        assert_alike(&*recognised(&other), &*recognised(&local));
        let resume = WriteOptions { resume: Some("these".into()), ..options(None, None) };
        assert!(create(&other, format, &resume).is_err());
    }
    let keys = server::keys("engines-written/");
    assert!(!keys.iter().any(|key| key.contains(".wellread-")), "{keys:?}");
    assert_eq!(server::open_uploads("engines-written"), 0);
}

/// Its version takes the place of the old one at once, when all of its data are there.
#[test]
fn a_lance_dataset_that_is_half_replaced_is_the_old_one_or_the_new_one() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    let shape = Shape([1, 1, 1, 40, 56]);
    let write = |path: &Path, seed: usize, overwrite: bool| {
        let options = WriteOptions { overwrite, ..WriteOptions::default() };
        let mut writer = create(path, "lance", &options).unwrap();
        for row in 0..3 {
            let (metadata, pixels) = (ImageMetadata::named(format!("image {row}")), noise(shape, seed + row));
            let view = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels };
            writer.write(&view).unwrap();
        }
        writer.finish().unwrap();
    };
    let images = |path: &Path| {
        let store = recognised(path);
        (0..store.len()).map(|row| read_image(&*store, row).unwrap()).collect::<Vec<_>>()
    };
    for (kind, name) in ["a.lance", "b.lancedb"].into_iter().enumerate() {
        let [old, new] = [1, 100].map(|seed| {
            let local = dir.path().join(format!("{seed}-{name}"));
            write(&local, seed, false);
            images(&local)
        });
        let set = Path::new("s3://engines-half").join(name);
        write(&set, 1, false);
        let states = half::states(&format!("engines-half/{name}/"), || write(&set, 100, true));
        let mut is_new = vec![];
        for (step, state) in states.iter().enumerate() {
            let bucket = format!("engines-half-{kind}-{step}/");
            let found = images(&half::publish(state, "engines-half/", &bucket, name));
            assert!(found == old || found == new, "{name} after {step} changes");
            is_new.push(found == new);
        }
        assert!(is_new.is_sorted() && !is_new[0] && is_new[is_new.len() - 1], "{name}: {is_new:?}");
    }
    // An old version that would be the newest goes before its data do.
    let extra = "engines-half/a.lance/_versions/18446744073709551613.manifest";
    let version = server::keys("engines-half/a.lance/_versions/").remove(0);
    server::put(extra, &server::get(&version).unwrap());
    let before = server::changes("engines-half/a.lance/").len();
    write(Path::new("s3://engines-half/a.lance"), 7, true);
    let changes = server::changes("engines-half/a.lance/").split_off(before);
    let at = |what: &str| changes.iter().position(|change| change.starts_with(what));
    let version = at(&format!("DELETE {extra}"));
    assert!(version.is_some() && version < at("DELETE engines-half/a.lance/data/"), "{changes:?}");
}

#[test]
fn sets_of_engines_are_read_from_a_web_server() {
    let url = server::url();
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in SETS {
        let local = dir.path().join(name);
        write(&local, format, &options(None, None));
        copy(&local, &Path::new("s3://web-engines").join(name));
        let there: PathBuf = Path::new(url).join("web-engines").join(name);
        assert_alike(&*recognised(&there), &*recognised(&local));
    }
}

#[test]
fn faults_that_pass_change_no_pixel() {
    use server::Wrong::{Cut, Range, Short, Status};
    server::url();
    let dir = tempfile::tempdir().unwrap();
    let faults = [Status(503, "SlowDown"), Cut, Short, Range, Status(500, "InternalError")];
    for (name, format) in SETS {
        let (local, other) = (dir.path().join(name), Path::new("s3://engines-spoiled").join(name));
        write(&local, format, &options(None, None));
        copy(&local, &other);
        server::spoil("engines-spoiled", &faults);
        assert_alike(&*recognised(&other), &*recognised(&local));
    }
}

#[test]
fn what_a_server_refuses_is_said_as_it_said_it() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    for (name, format) in SETS {
        let (local, other) = (dir.path().join(name), Path::new("s3://engines-refused").join(name));
        write(&local, format, &options(None, None));
        copy(&local, &other);
        server::spoil("engines-refused", &[server::Wrong::Status(403, "AccessDenied"); 200]);
        let error = open(&other, &OpenOptions::default()).err().unwrap().to_string();
        server::spoil("engines-refused", &[]);
        assert!(error.starts_with("s3://engines-refused/"), "{error}");
        assert!(error.contains("403") && !error.contains("corrupt"), "{error}");
    }
}

/// An image that no codec makes smaller.
fn noise(shape: Shape, row: usize) -> Vec<u8> {
    let mut state = row as u64 + 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..shape.pixels()).map(next).collect()
}

/// Writes a set of such images.
fn write_noise(path: &Path, format: &str, shape: Shape, images: usize) {
    let mut writer = create(path, format, &WriteOptions::default()).unwrap();
    for row in 0..images {
        let metadata = ImageMetadata::named(format!("image {row}"));
        let pixels = noise(shape, row);
        let view = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels };
        writer.write(&view).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn sets_of_several_parts_are_written_and_read_by_ranges() {
    server::url();
    let shape = Shape([1, 1, 1, 1024, 1024]);
    for (name, format) in &SETS[..4] {
        let address = Path::new("s3://engines-large").join(name);
        write_noise(&address, format, shape, 20);
        let store = recognised(&address);
        assert_eq!(store.len(), 20);
        for row in [19, 0, 7] {
            assert!(read_image(&*store, row).unwrap().1 == noise(shape, row), "{name}: {row}");
        }
    }
    assert_eq!(server::open_uploads("engines-large"), 0);
    // The parts of a Vortex file that three images lie in are read, and not the rest.
    let fetched = || -> usize {
        server::requests("engines-large/c.vortex").iter().filter_map(|request| length(request)).sum()
    };
    let store = recognised(Path::new("s3://engines-large/c.vortex"));
    let before = fetched();
    for row in [3, 12, 13] {
        assert!(read_image(&*store, row).unwrap().1 == noise(shape, row), "{row}");
    }
    let all = fetched();
    assert!(all > 6 << 20 && all - before < 10 << 20, "{before} {all}");
}

/// Rows and pixels of an epoch, image by image in a random order.
fn epoch(path: &Path) -> impl Fn() -> Vec<(Vec<usize>, Vec<f32>)> {
    let loader = Loader::builder(&Dataset::from_store(recognised(path))).batch_size(1).shuffle(7).workers(2);
    let loader = loader.build().unwrap();
    move || {
        loader.set_epoch(0);
        let batches = loader.iter().map(Result::unwrap);
        batches.map(|batch| (batch.rows().to_vec(), batch.pixels().to_vec())).collect()
    }
}

#[test]
fn batches_of_engines_are_asked_for_at_once_and_each_byte_once() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    let shape = Shape([1, 1, 1, 300, 400]);
    // Images that lie together in a piece of Vortex are one request; Lance's bytes are not kept.
    for (name, format, at_once, epochs) in [("a.lance", "lance", 16, 2), ("c.vortex", "vortex", 3, 1)] {
        let bucket = format!("ahead-{format}");
        let (local, other) = (dir.path().join(name), PathBuf::from(format!("s3://{bucket}/{name}")));
        // More than the end of the file that is asked for when it is opened.
        write_noise(&local, format, shape, 48);
        copy(&local, &other);
        let store = recognised(&other);
        let request = Request { row: 5, region: shape.full() };
        let mut wanted = WantedRanges::default();
        store.ranges(&[request], &mut wanted).unwrap();
        let bytes: u64 = wanted.files().flat_map(|(_, ranges)| ranges).map(|r| r.end - r.start).sum();
        let pixels = shape.pixels() as u64;
        assert!(bytes >= pixels && bytes <= 10 * pixels, "{format}: {bytes}");

        let (there, here) = (epoch(&other), epoch(&local)());
        // Where pages lie is known after the first epoch.
        for _ in 1..epochs {
            assert_eq!(there(), here, "{format}");
        }
        let files = server::keys(&format!("{bucket}/"));
        let length_of = |file: &String| server::get(file).map_or(0, |bytes| bytes.len());
        let largest = files.iter().max_by_key(|file| length_of(file)).unwrap();
        let fetched = || -> usize { server::requests(largest).iter().filter_map(|one| length(one)).sum() };
        let before = fetched();
        gate::hold(&bucket, at_once);
        assert_eq!(there(), here, "{format}");
        assert!(gate::most_at_once(&bucket) >= at_once, "{format}");
        let all = fetched() - before;
        assert!(all <= length_of(largest) * 5 / 4, "{format}: {all} of {}", length_of(largest));
    }
}

/// From an address to the first batch in four round trips, as for the formats in `rounds.rs` of wellread-remote's tests.
#[test]
fn a_lance_dataset_has_its_first_batch_after_four_round_trips() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    let (local, other) = (dir.path().join("a.lance"), PathBuf::from("s3://rounds-lance/a.lance"));
    // Pixels lie between the small columns and the end of the file, and are more than is asked for of that.
    write_noise(&local, "lance", Shape([1, 1, 1, 300, 400]), 48);
    copy(&local, &other);
    pages::lengthen_pages("rounds-lance");
    let batch = |path: &Path| {
        let dataset = Dataset::from_store(open(path, &OpenOptions::default()).unwrap());
        let rows: Vec<usize> = (0..16).collect();
        let loader = Loader::builder(&dataset).rows(rows).batch_size(16).workers(1).build().unwrap();
        loader.iter().next().unwrap().unwrap().pixels().to_vec()
    };
    // The first round asks for the object, for the listing and for those of two folders in it. The second one asks for the manifest and the
    // end of the data file. Small columns follow, with the positions of rows, and then rows that lie together.
    let rounds = [4, 2, 1, 1];
    let before = server::all_requests("rounds-lance").len();
    gate::expect_rounds("rounds-lance", &rounds);
    let there = batch(&other);
    let asked = server::all_requests("rounds-lance").split_off(before);
    assert_eq!(
        (asked.len(), gate::rounds_left("rounds-lance")),
        (rounds.iter().sum::<usize>(), 0),
        "{asked:?}"
    );
    assert!(there == batch(&local));
}

/// Data files of which the ends are asked for before the manifest is read may be those of an old version.
#[test]
fn the_latest_version_of_a_lance_dataset_is_read_whatever_lies_beside_it() {
    server::url();
    let dir = tempfile::tempdir().unwrap();
    let [old, new] = [3, 5].map(|images| {
        let local = dir.path().join(format!("{images}.lance"));
        write_noise(&local, "lance", Shape([1, 1, 1, 40, 56]), images);
        local
    });
    let other = Path::new("s3://rounds-versions/a.lance");
    copy(&old, other);
    copy(&new.join("data"), &other.join("data"));
    let mut files = std::fs::read_dir(new.join("_versions")).unwrap().map(|entry| entry.unwrap().path());
    let manifest = files.find(|path| path.extension().is_some_and(|e| e == "manifest")).unwrap();
    // That of the second version, by its name.
    let name = "rounds-versions/a.lance/_versions/18446744073709551613.manifest";
    server::put(name, &std::fs::read(manifest).unwrap());
    assert_eq!(server::keys("rounds-versions/a.lance/data/").len(), 2);
    assert_alike(&*recognised(other), &*recognised(&new));
    // More data files than a page of a listing has, and a picture.
    for i in 0..1000 {
        server::put(&format!("rounds-versions/a.lance/data/{i}.lance"), b"old");
    }
    server::put("rounds-versions/a.lance/look.png", b"a picture");
    pages::lengthen_pages("rounds-versions");
    assert_alike(&*recognised(other), &*recognised(&new));
}

/// Bytes of a request such as `GET bytes=0-99`.
fn length(request: &str) -> Option<usize> {
    let (first, last) = request.strip_prefix("GET bytes=")?.split_once('-')?;
    Some(last.parse::<usize>().ok()? + 1 - first.parse::<usize>().ok()?)
}
