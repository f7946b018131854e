//! The fuzz targets of engines, run with random inputs, and damage to whole sets of every format. They run without libFuzzer, nightly
//! or a second build of the engines.
//!
//! `WELLREAD_MUTATIONS=N` runs N inputs of each kind. The long campaign, through processes and with other libraries
//! beside it, is `make campaign`.

// Links the engines.
use wellread as _;

// The crates of fuzz targets are no members of the workspace; their code is compiled in here under their names.
extern crate self as wellread_fuzz;
#[path = "../../../fuzz/engines/src/lib.rs"]
mod engines;
#[path = "../../../fuzz/src/lib.rs"]
mod stores;
pub use stores::{file, folder, patch, read_all};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stores::mutate::{KINDS, Random, damage};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{
    Compression, ImageView, OpenOptions, RowInfo, Tune, WriteOptions, create, read_image, registry,
};

fn inputs(otherwise: u64) -> u64 {
    std::env::var("WELLREAD_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

/// An input of a few patches: flipped bits, small numbers, large numbers, noise.
fn input(seed: u64) -> Vec<u8> {
    let random = &mut Random(seed);
    let mut data = vec![random.number() as u8];
    for _ in 0..=random.below(4) {
        data.extend((random.number() as u32).to_le_bytes());
        let patch = match random.below(4) {
            0 => vec![random.number() as u8],
            1 => (random.below(300) as u32).to_le_bytes().to_vec(),
            2 => vec![0xff; 1 + random.below(8) as usize],
            _ => (0..=random.below(40)).map(|_| random.number() as u8).collect(),
        };
        data.push(patch.len() as u8);
        data.extend(patch);
    }
    data
}

fn is_here(format: &str) -> bool {
    let found = wellread_store::formats().iter().any(|f| f.name == format);
    if !found {
        println!("skipped: {format} is not in this build");
    }
    found
}

fn run(format: &str, target: fn(&[u8])) {
    if !is_here(format) {
        return;
    }
    // As it is, it must be readable.
    (0..4).for_each(|which| target(&[which]));
    for seed in 0..inputs(300) {
        let data = input(seed);
        let outcome = std::panic::catch_unwind(|| target(&data));
        assert!(outcome.is_ok(), "{format}: input {seed} panics: {data:?}");
    }
}

#[test]
fn patched_lance_datasets() {
    run("lance", engines::lance);
}

#[test]
fn patched_duckdb_databases() {
    run("duckdb", engines::duckdb);
}

#[test]
fn patched_vortex_files() {
    run("vortex", engines::vortex);
}

/// All images of a set.
type Images = Vec<(RowInfo, Vec<u8>)>;

/// Images that no two rows, columns or blocks of are alike, of odd sizes; the largest make several strips and tiles.
fn images() -> Images {
    let random = &mut Random(7);
    let mut image = |shape: Shape| {
        let noise = (0..shape.pixels()).map(|p| {
            let [.., x] = shape.0;
            (400 + p % x * 3 + p / x * 5 + random.below(60) as usize) as u16
        });
        let pixels: Vec<u8> = noise.flat_map(u16::to_le_bytes).collect();
        (RowInfo { shape, dtype: PixelType::U16 }, pixels)
    };
    vec![image(Shape::plane(90, 70)), image(Shape([1, 2, 2, 33, 41])), image(Shape::plane(90, 70))]
}

/// Everything, or `None` where anything is an error.
fn read(path: &Path, format: &str) -> Option<Images> {
    let options = OpenOptions { format: Some(format.to_owned()), ..OpenOptions::default() };
    let store = (registry::format_named(format).ok()?.open)(path, &options).ok()?;
    let small = |row| store.row_info(row).is_ok_and(|info| info.shape.pixels() <= stores::LARGEST);
    (0..store.len()).map(|row| small(row).then(|| read_image(&*store, row).ok()).flatten()).collect()
}

fn files_below(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(path) else { return files.push(path.to_owned()) };
    let mut entries: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for entry in &entries {
        files_below(entry, files);
    }
}

/// Pieces of damage, and how many of them gave other images without an error.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    tried: u64,
    wrong: u64,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.tried += other.tried;
        self.wrong += other.wrong;
    }

    /// At most one in a hundred. Fewer than a hundred pieces tell nothing: they are judged with others.
    fn is_rare(self) -> bool {
        self.tried < 100 || self.wrong * 100 <= self.tried
    }
}

/// The result of the damage to one set.
#[derive(Default)]
struct Silent {
    all: Count,
    /// By kind of damage, as [`KINDS`] numbers them.
    kinds: [Count; KINDS.len()],
    /// By file that was damaged.
    files: BTreeMap<PathBuf, Count>,
}

impl Silent {
    fn add(&mut self, kind: usize, file: &Path, is_wrong: bool) {
        let one = Count { tried: 1, wrong: u64::from(is_wrong) };
        self.all.add(one);
        self.kinds[kind].add(one);
        self.files.entry(file.to_owned()).or_default().add(one);
    }
}

/// Damages a set, once for each seed; how often it then gives other images without an error. `each_file` says that files
/// are damaged as often as each other, not by their size.
fn silent(path: &Path, format: &str, seeds: u64, each_file: bool) -> Silent {
    let good = read(path, format).expect("a good set");
    let mut files = vec![];
    files_below(path, &mut files);
    let sizes: Vec<u64> = files.iter().map(|file| file.metadata().expect("a file").len()).collect();
    let mut counts = Silent::default();
    for seed in 0..seeds {
        let random = &mut Random(seed << 8 | u64::from(each_file));
        let mut at = random.below(sizes.iter().sum());
        let by_size = sizes
            .iter()
            .position(|&size| {
                size > at || {
                    at -= size;
                    false
                }
            })
            .expect("a file");
        let which = if each_file { random.below(files.len() as u64) as usize } else { by_size };
        let whole = std::fs::read(&files[which]).expect("a file");
        if whole.is_empty() {
            continue;
        }
        let mut bytes = whole.clone();
        let kind = damage(&mut bytes, random);
        // A new file: a process that has the old one open keeps it.
        std::fs::remove_file(&files[which]).expect("a file");
        std::fs::write(&files[which], &bytes).expect("room");
        let found = std::panic::catch_unwind(|| read(path, format));
        let Ok(found) = found else { panic!("{format}: seed {seed} panics at {}", files[which].display()) };
        let is_wrong = found.is_some_and(|found| found != good);
        counts.add(kind, &files[which], is_wrong);
        if is_wrong && std::env::var_os("WELLREAD_MUTATIONS").is_some() {
            let first = bytes.iter().zip(&whole).position(|(a, b)| a != b);
            println!("{}: seed {seed}, {}, byte {first:?}", files[which].display(), KINDS[kind]);
        }
        std::fs::remove_file(&files[which]).expect("a file");
        std::fs::write(&files[which], &whole).expect("room");
    }
    counts
}

/// A set as it is written with these options.
struct Way {
    format: &'static str,
    ending: &'static str,
    options: WriteOptions,
}

fn way(format: &'static str, ending: &'static str, compression: Compression) -> Way {
    let options = WriteOptions { compression, types: vec![PixelType::U16], ..WriteOptions::default() };
    Way { format, ending, options }
}

fn with(way: Way, change: &dyn Fn(&mut WriteOptions)) -> Way {
    let mut way = way;
    change(&mut way.options);
    way
}

/// How sets are written that have no place for checksums of pixels.
fn ways_without_checksums() -> Vec<Way> {
    let version = |codec| with(way("ome-zarr", "", codec), &|o| o.variant = Some("0.4".into()));
    [Compression::None, Compression::Lz4].map(version).into()
}

/// How sets are written whose damage is found.
fn ways() -> Vec<Way> {
    use Compression as C;
    let tiles = Some([1, 1, 1, 16, 32]);
    let mut all = vec![];
    for codec in [C::None, C::Lzw, C::PackBits, C::Deflate(6), C::Zstd(3)] {
        all.push(way("tiff", "", codec));
        all.push(with(way("tiff", ".tif", codec), &|o| o.chunk = tiles));
        all.push(with(way("tiff", "", codec), &|o| o.variant = Some("plain".into())));
    }
    for codec in [C::None, C::Lz4, C::Snappy, C::Deflate(6), C::Zstd(3)] {
        all.push(way("parquet", ".parquet", codec));
        all.push(with(way("parquet", ".parquet", codec), &|o| o.tune = Tune::Reference));
        all.push(way("ome-arrow-dataset", "", codec));
    }
    for codec in [C::None, C::Lz4, C::Deflate(6), C::Zstd(1)] {
        all.push(way("ome-zarr", "", codec));
        all.push(with(way("ome-zarr", "", codec), &|o| {
            o.chunk = tiles;
            o.shard = Some([1, 1, 1, 64, 64]);
        }));
    }
    for codec in [C::Deflate(6), C::Zstd(1)] {
        all.push(with(way("ome-zarr", "", codec), &|o| o.variant = Some("0.4".into())));
    }
    // PNG and DuckDB have checksums of their own.
    all.push(way("image-folder", "", C::Default));
    all.push(way("duckdb", ".duckdb", C::Default));
    all
}

fn write(way: &Way, path: &Path) {
    let mut writer = create(path, way.format, &way.options).expect("a writer");
    // A PNG holds one plane.
    let is_held = |info: &RowInfo| way.format != "image-folder" || info.shape.pixels() == 90 * 70;
    for (i, (info, pixels)) in images().iter().filter(|(info, _)| is_held(info)).enumerate() {
        let metadata = ImageMetadata::named(format!("image {i}"));
        let (shape, dtype) = (info.shape, info.dtype);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels }).expect("room");
    }
    writer.finish().expect("room");
}

/// In sets with checksums, damage gives other pixels without an error at most once in a hundred. This holds for all
/// sets together, for each set and for each kind of damage. With [`inputs`] of a hundred and more it also holds for each
/// of both ways to choose a file, and for files. A set without checksums shows that the damage would have done so.
#[test]
fn damage_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let seeds = inputs(60);
    let mut all = Count::default();
    let mut kinds = [Count::default(); KINDS.len()];
    let mut table = String::new();
    let mut faults = Vec::new();
    for (i, way) in ways().iter().enumerate().filter(|(_, way)| is_here(way.format)) {
        let path = dir.path().join(format!("{i}{}", way.ending));
        write(way, &path);
        let mut both = Count::default();
        for each_file in [false, true] {
            let found = silent(&path, way.format, seeds, each_file);
            let name = format!(
                "{} {:?} {:?} {:?}, {}",
                way.format,
                way.options.compression,
                way.options.tune,
                way.options.variant,
                if each_file { "each file" } else { "by size" }
            );
            let by_kind: Vec<u64> = found.kinds.iter().map(|count| count.wrong).collect();
            table += &format!("{name}: {} of {} {by_kind:?}\n", found.all.wrong, found.all.tried);
            if !found.all.is_rare() {
                faults.push(format!("{name}: {:?}", found.all));
            }
            for (file, count) in found.files.iter().filter(|(_, count)| !count.is_rare()) {
                faults.push(format!("{name}, {}: {count:?}", file.display()));
            }
            both.add(found.all);
            for (sum, count) in kinds.iter_mut().zip(found.kinds) {
                sum.add(count);
            }
        }
        all.add(both);
        if !both.is_rare() {
            faults.push(format!("{} {:?}: {both:?}", way.format, way.options.compression));
        }
    }
    for (kind, count) in KINDS.iter().zip(kinds) {
        table += &format!("{kind}: {} of {}\n", count.wrong, count.tried);
        assert!(count.tried > 0, "no damage of the kind {kind}");
        if !count.is_rare() {
            faults.push(format!("{kind}: {count:?}"));
        }
    }
    println!("{table}{} of {}", all.wrong, all.tried);
    assert!(all.wrong * 100 <= all.tried, "{table}{all:?} pieces of damage give other pixels");
    assert!(faults.is_empty(), "{table}{}", faults.join("\n"));
    let without = Way {
        format: "tiff",
        ending: "",
        options: WriteOptions { checksums: false, ..WriteOptions::default() },
    };
    let path = dir.path().join("without");
    write(&without, &path);
    let unseen = silent(&path, "tiff", 60, false).all.wrong;
    assert!(unseen >= 30, "{unseen} of 60");
}

/// Damage to sets without checksums of pixels may give other pixels. It is no panic, and no reader believes that there
/// are checksums.
#[test]
fn damage_without_checksums_is_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    for (i, way) in ways_without_checksums().iter().enumerate().filter(|(_, way)| is_here(way.format)) {
        let path = dir.path().join(i.to_string());
        write(way, &path);
        let store = wellread_store::open(&path, &OpenOptions::default()).expect("a good set");
        assert!(!store.has_checksums(), "{:?}", way.options.compression);
        drop(store);
        let seeds = inputs(60);
        for each_file in [false, true] {
            assert!(silent(&path, way.format, seeds, each_file).all.tried > 0);
        }
    }
}
