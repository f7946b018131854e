//! Values that differ from plate to plate: normalisation by the statistics of each, against plain arithmetic; groups
//! that are unknown.

use crate::support::{TestStore, images};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use std::path::PathBuf;
use std::sync::Arc;
use wellread_image::{PixelType, Shape};
use wellread_loader::cache::parse_bytes;
use wellread_loader::stats::PERCENTILES;
use wellread_loader::{
    Dataset, Field, GroupFields, GroupStats, Grouping, ItemContext, Jitter, Loader, LoaderBuilder,
    MemoryStore, Normalize, OnError, Scale, Stats, Transform,
};

const SHAPE: Shape = Shape([1, 2, 1, 9, 7]);
const PLATES: [Option<&str>; 7] =
    [Some("BR2"), Some("BR1"), Some("BR2"), None, Some("BR1"), Some("BR1"), Some("BR2")];

/// Seven images of three plates, of which one has no name.
fn plates(dtype: PixelType) -> Dataset {
    let plates: ArrayRef = Arc::new(StringArray::from(PLATES.to_vec()));
    let columns = RecordBatch::try_from_iter_with_nullable([("Metadata_Plate", plates, true)]).unwrap();
    TestStore::new(images(PLATES.len(), SHAPE, dtype)).dataset().with_columns(columns).unwrap()
}

fn by_plate() -> Vec<String> {
    vec!["Metadata_Plate".to_owned()]
}

/// Statistics of each plate, in a file of a folder.
fn file(dataset: &Dataset) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let stats = GroupStats::of(dataset.store(), &by_plate(), &PERCENTILES, 3, &|| {}).unwrap();
    let path = dir.path().join("plate-stats.json");
    std::fs::write(&path, serde_json::to_vec(&stats).unwrap()).unwrap();
    (dir, path)
}

/// The values of channel `c` of the images of a plate.
fn values(dataset: &Dataset, plate: Option<&str>, c: usize) -> Vec<f64> {
    let rows = (0..PLATES.len()).filter(|&row| PLATES[row] == plate);
    let of_row = |row| {
        let (info, pixels) = dataset.read(row).unwrap();
        (c * 63..(c + 1) * 63).map(|i| info.dtype.value_at(&pixels, i)).collect::<Vec<_>>()
    };
    rows.flat_map(of_row).collect()
}

fn mean_and_std(values: &[f64]) -> [f64; 2] {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
    [mean, (squares / values.len() as f64).sqrt()]
}

#[test]
fn statistics_are_those_of_each_plate() {
    for dtype in [PixelType::U16, PixelType::F32] {
        let dataset = plates(dtype);
        let found = GroupStats::of(dataset.store(), &by_plate(), &[50.0], 2, &|| {}).unwrap();
        let keys: Vec<_> = found.groups.iter().map(|group| group.key[0].as_deref()).collect();
        assert_eq!(keys, [Some("BR2"), Some("BR1"), None], "in their order");
        for group in &found.groups {
            let rows = PLATES.iter().filter(|plate| **plate == group.key[0].as_deref()).count();
            assert_eq!(group.stats.images, rows as u64);
            for c in 0..2 {
                let [mean, std] = mean_and_std(&values(&dataset, group.key[0].as_deref(), c));
                let channel = &group.stats.channels[c];
                assert!((channel.mean.unwrap() - mean).abs() <= mean.abs() * 1e-9);
                assert!((channel.std.unwrap() - std).abs() <= std * 1e-6);
            }
        }
    }
    let dataset = plates(PixelType::U8);
    let error = GroupStats::of(dataset.store(), &["none".to_owned()], &[50.0], 1, &|| {}).unwrap_err();
    assert!(error.to_string().contains("no column \"none\""), "{error}");
}

#[test]
fn an_image_of_another_type_is_compared_with_the_first_of_its_group() {
    let mut store = MemoryStore::new("set");
    for (name, dtype) in [("a", PixelType::U8), ("b", PixelType::U16), ("c", PixelType::U8)] {
        store.push(name, Shape::plane(1, 2), dtype, vec![1; 2 * dtype.size()]).unwrap();
    }
    let plates: ArrayRef = Arc::new(StringArray::from(vec!["BR1", "BR2", "BR2"]));
    let columns = RecordBatch::try_from_iter([("Metadata_Plate", plates)]).unwrap();
    let dataset = Dataset::from_store(Box::new(store)).with_columns(columns).unwrap();
    let error = GroupStats::of(dataset.store(), &by_plate(), &[50.0], 1, &|| {}).unwrap_err();
    assert_eq!(error.row_index(), Some(2));
    assert!(error.to_string().contains("the image is uint8, but row 1 is uint16"), "{error}");
}

#[test]
fn each_row_is_normalised_by_its_plate() {
    let dataset = plates(PixelType::U16);
    let (_dir, path) = file(&dataset);
    let normalize = || Normalize::from_stats(&path).unwrap();
    // Nothing between, so that it is folded into the pass; clipped before, so that it is not.
    let plain = Transform::default().normalize_with(normalize());
    let unit = Transform::default().scale_to_unit().channels([1, 0]).normalize_with(normalize());
    let wide = Scale::Range { low: vec![-1.0], high: vec![70_000.0] };
    let clipped = Transform::default().scale_with(wide).normalize_with(normalize());
    for (transform, channels) in [(plain, [0, 1]), (unit, [1, 0]), (clipped, [0, 1])] {
        let loader = |workers| {
            let builder = Loader::builder(&dataset).batch_size(3).workers(workers);
            builder.transform(transform.clone()).build().unwrap()
        };
        let batches = |workers| -> Vec<f32> {
            loader(workers).iter().flat_map(|batch| batch.unwrap().pixels().to_vec()).collect()
        };
        let got = batches(0);
        assert_eq!(got, batches(3));
        let (mut one, mut context) = (vec![], ItemContext::new());
        for (row, plate) in PLATES.iter().enumerate() {
            dataset.sample_into(row, &transform, &mut one, &mut context).unwrap();
            assert_eq!(one, got[row * 126..(row + 1) * 126]);
            let (info, pixels) = dataset.read(row).unwrap();
            for (to, c) in channels.into_iter().enumerate() {
                let [mean, std] = mean_and_std(&values(&dataset, *plate, c));
                for i in 0..63 {
                    let expected = (info.dtype.value_at(&pixels, c * 63 + i) - mean) / std;
                    let got = f64::from(got[row * 126 + to * 63 + i]);
                    assert!((got - expected).abs() < 2e-3, "row {row} channel {c}: {got} {expected}");
                }
            }
        }
    }
    // Draws of other steps are as they would be.
    let jitter = Jitter { brightness: 0.3, ..Jitter::default() };
    let transform = Transform::default().jitter(jitter).normalize_with(normalize());
    let (mut bright, mut context) = (vec![], ItemContext::new());
    dataset.sample_into(1, &transform, &mut bright, &mut context).unwrap();
    let plain = Transform::default().jitter(jitter);
    let mut expected = vec![];
    dataset.sample_into(1, &plain, &mut expected, &mut context).unwrap();
    for c in 0..2 {
        let [mean, std] = mean_and_std(&values(&dataset, Some("BR1"), c));
        for i in c * 63..(c + 1) * 63 {
            assert!((f64::from(bright[i]) - (f64::from(expected[i]) - mean) / std).abs() < 2e-3);
        }
    }
}

#[test]
fn groups_that_are_unknown_are_named() {
    let dataset = plates(PixelType::U8);
    let (_dir, path) = file(&dataset.select([0, 1, 2, 3]).unwrap());
    let normalize = || Normalize::from_stats(&path).unwrap();
    Loader::builder(&dataset).normalize_with(normalize()).build().unwrap();
    let (_dir, few) = file(&dataset.select([0, 2]).unwrap());
    let normalize = || Normalize::from_stats(&few).unwrap();
    let build = |dataset: &Dataset| Loader::builder(dataset).normalize_with(normalize());
    let error = build(&dataset).build().unwrap_err();
    let said = error.to_string();
    assert_eq!(error.row_index(), Some(1), "{said}");
    assert!(said.contains("Metadata_Plate BR1") && said.contains("plate-stats.json"), "{said}");
    build(&dataset).rows([0, 6]).build().unwrap();
    let loader = build(&dataset).on_error(OnError::Skip).build().unwrap();
    let mut batches = loader.iter();
    let rows: Vec<usize> = batches.by_ref().flat_map(|batch| batch.unwrap().rows().to_vec()).collect();
    assert_eq!((rows, batches.skipped().count()), (vec![0, 2, 6], 4));
    // A set without the column, statistics of a whole set, and of other images.
    let bare = TestStore::new(images(2, SHAPE, PixelType::U8)).dataset();
    let error = build(&bare).build().unwrap_err().to_string();
    assert!(error.contains("no column \"Metadata_Plate\""), "{error}");
    let error = Stats::open(&few).unwrap_err().to_string();
    assert!(error.contains("for each Metadata_Plate"), "{error}");
    assert!(Scale::from_stats(&few, 1.0, 99.0).is_err());
    let error = build(&dataset).scale_by_percentiles(1.0, 99.0).build().unwrap_err().to_string();
    assert!(error.contains("percentiles"), "{error}");
    let text = std::fs::read_to_string(&few).unwrap();
    for (from, to, expected) in [
        ("\"version\":2", "\"version\":3", "update wellread"),
        ("\"groups\":[", "\"groups\":[],\"more\":[", "no group"),
        ("\"key\":[\"BR2\"]", "\"key\":3", "no file of statistics"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        std::fs::write(&few, changed).unwrap();
        let error = Normalize::from_stats(&few).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Writes a field of an image's size as NumPy does.
fn write_npy(path: &std::path::Path, values: &[f64]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut header = "{'descr': '<f8', 'fortran_order': False, 'shape': (9, 7), }".to_owned();
    while !(11 + header.len()).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    std::fs::write(path, bytes).unwrap();
}

/// The field of a plate and channel.
fn field(plate: &str, c: usize) -> Vec<f64> {
    let first = usize::from(*plate.as_bytes().last().unwrap()) + c * 3;
    (first..first + 63).map(|i| 1.0 + (i % 11) as f64 / 8.0).collect()
}

#[test]
fn illumination_is_that_of_each_plate_and_channel() {
    let dataset = plates(PixelType::U16).select([0, 1, 2, 4, 5, 6]).unwrap();
    let names: Vec<&str> = [0, 1, 2, 4, 5, 6].iter().map(|&row| PLATES[row].unwrap()).collect();
    let dir = tempfile::tempdir().unwrap();
    for plate in ["BR1", "BR2"] {
        for c in 0..2 {
            let file = dir.path().join(plate).join(format!("{plate}_Illum{}.npy", c + 1));
            write_npy(&file, &field(plate, c));
        }
    }
    let pattern =
        format!("{}/{{Metadata_Plate}}/{{Metadata_Plate}}_Illum{{channel:1}}.npy", dir.path().display());
    let fields = || GroupFields::new(pattern.clone(), None::<String>).unwrap();
    for channels in [vec![0, 1], vec![1]] {
        let load = |workers, memory: Option<usize>| -> Vec<f32> {
            let transform = Transform::default().channels(channels.clone()).illumination_by(fields());
            let builder = Loader::builder(&dataset).batch_size(4).workers(workers).transform(transform);
            let builder = memory.into_iter().fold(builder, LoaderBuilder::memory);
            builder.build().unwrap().iter().flat_map(|batch| batch.unwrap().pixels().to_vec()).collect()
        };
        let got = load(0, None);
        assert_eq!(got, load(3, None));
        assert_eq!(got, load(1, Some(16 << 20)));
        for (row, plate) in names.iter().enumerate() {
            let (info, pixels) = dataset.read(row).unwrap();
            for (to, &c) in channels.iter().enumerate() {
                let flat = field(plate, c);
                for (i, flat) in flat.iter().enumerate() {
                    let expected = info.dtype.value_at(&pixels, c * 63 + i) / flat;
                    let got = f64::from(got[(row * channels.len() + to) * 63 + i]);
                    assert!(
                        (got - expected).abs() <= expected.abs() * 1e-6,
                        "{row} {c} {i}: {got} {expected}"
                    );
                }
            }
        }
    }
    // The error names the row, the plate, the channel and the file.
    let build = |pattern: &str, dataset: &Dataset| {
        let fields = GroupFields::new(pattern, None::<String>).unwrap();
        Loader::builder(dataset).illumination_by(fields).build().unwrap_err().to_string()
    };
    std::fs::remove_file(dir.path().join("BR2/BR2_Illum2.npy")).unwrap();
    let said = build(&pattern, &dataset);
    let all = ["row 0", "Metadata_Plate BR2", "channel 1", "BR2_Illum2.npy"];
    assert!(all.iter().all(|part| said.contains(part)), "{said}");
    write_npy(&dir.path().join("BR2/BR2_Illum2.npy"), &[0.0; 63]);
    assert!(build(&pattern, &dataset).contains("nothing can be divided"));
    write_npy(&dir.path().join("BR2/BR2_Illum2.npy"), &[1.0; 62]);
    assert!(build(&pattern, &dataset).contains("its shape needs 504"));
    let said = build(&pattern, &plates(PixelType::U16));
    assert!(
        said.contains("row 3") && said.contains("\"Metadata_Plate\"") && said.contains("no value"),
        "{said}"
    );
    assert!(build("{Metadata_Plate}_{channel}.npy", &dataset).contains("has no name"));
    assert!(build("{none}.npy", &dataset).contains("no column \"none\""));
    let twice = Field::new([1, 9, 7], &[1.0; 63], None).unwrap();
    let builder = Loader::builder(&dataset).illumination(twice).illumination_by(fields());
    assert!(builder.build().unwrap_err().to_string().contains("one of both"));
}

/// One set may keep numbers of plates as floats, as where one is missing, and another one as whole numbers.
#[test]
fn plates_are_the_same_as_whole_numbers_and_as_floats() {
    let of = |plates: ArrayRef| {
        let columns = RecordBatch::try_from_iter_with_nullable([("Metadata_Plate", plates, true)]).unwrap();
        TestStore::new(images(3, SHAPE, PixelType::U16)).dataset().with_columns(columns).unwrap()
    };
    let whole = of(Arc::new(Int64Array::from(vec![7, 8, 7])));
    let floats = of(Arc::new(Float64Array::from(vec![7.0, 8.0, 7.0])));
    let build = |dataset: &Dataset, path: &std::path::Path| {
        Loader::builder(dataset).normalize_with(Normalize::from_stats(path).unwrap()).build().unwrap();
    };
    for (counted, loaded) in [(&whole, &floats), (&floats, &whole)] {
        let (_dir, path) = file(counted);
        build(loaded, &path);
    }
    // As older files have them.
    let (_dir, path) = file(&floats);
    let text = std::fs::read_to_string(&path).unwrap();
    let older = text.replace("[\"7\"]", "[\"7.0\"]").replace("[\"8\"]", "[\"8.0\"]");
    assert_ne!(older, text);
    std::fs::write(&path, older).unwrap();
    build(&floats, &path);
}

/// pandas keeps numbers of plates as floats where one is missing.
#[test]
fn whole_floats_are_whole_numbers_in_paths_of_fields() {
    let plates: ArrayRef = Arc::new(Float64Array::from(vec![Some(24277.0), None, Some(f64::NAN)]));
    let columns = RecordBatch::try_from_iter_with_nullable([("Metadata_Plate", plates, true)]).unwrap();
    let dataset = TestStore::new(images(3, SHAPE, PixelType::U16)).dataset().with_columns(columns).unwrap();
    let dir = tempfile::tempdir().unwrap();
    write_npy(&dir.path().join("24277.npy"), &field("BR1", 0));
    let pattern = format!("{}/{{Metadata_Plate}}.npy", dir.path().display());
    let build = |row: usize| {
        let fields = GroupFields::new(pattern.clone(), None::<String>).unwrap();
        Loader::builder(&dataset).rows([row]).illumination_by(fields).build()
    };
    build(0).unwrap();
    for row in [1, 2] {
        let error = build(row).unwrap_err().to_string();
        assert!(error.contains("\"Metadata_Plate\"") && error.contains("no value"), "{error}");
    }
}

#[test]
fn a_missing_field_ends_an_iteration_that_leaves_images_out() {
    let dataset = plates(PixelType::U16).select([0, 1, 4]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    write_npy(&dir.path().join("BR2.npy"), &[1.0; 63]);
    let pattern = format!("{}/{{Metadata_Plate}}.npy", dir.path().display());
    // The rows of the second plate in a batch of two, and each alone.
    for (workers, batch_size) in [(0, 2), (0, 1), (2, 2)] {
        let fields = GroupFields::new(pattern.clone(), None::<String>).unwrap();
        let builder = Loader::builder(&dataset).illumination_by(fields).on_error(OnError::Skip);
        let loader = builder.batch_size(batch_size).workers(workers).build().unwrap();
        let mut batches = loader.iter();
        let error = batches.by_ref().find_map(Result::err).unwrap();
        let said = error.to_string();
        assert_eq!((error.row_index(), error.is_choice()), (Some(1), true), "{said}");
        assert!(said.contains("Metadata_Plate BR1") && said.contains("BR1.npy"), "{said}");
        assert_eq!(batches.skipped().count(), 0);
    }
}

/// Fields that are kept take a part of the memory, which grows with it.
#[test]
fn the_memory_that_is_advised_has_room_for_fields() {
    let dataset = plates(PixelType::U16).select([0, 1, 4]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for plate in ["BR1", "BR2"] {
        write_npy(&dir.path().join(format!("{plate}.npy")), &[1.0; 63]);
    }
    let pattern = format!("{}/{{Metadata_Plate}}.npy", dir.path().display());
    for workers in [0, 2] {
        let loader = |memory| {
            let fields = GroupFields::new(pattern.clone(), None::<String>).unwrap();
            let builder = Loader::builder(&dataset).illumination_by(fields).batch_size(2);
            builder.workers(workers).memory(memory).build()
        };
        let error = loader(1).unwrap_err();
        let (_, amount) = error.hint_text().unwrap().split_once("give at least ").unwrap();
        let amount = parse_bytes(amount.trim_end_matches(" of memory")).unwrap();
        let enough = loader(usize::try_from(amount).unwrap());
        assert!(enough.is_ok(), "{error}, and then {}", enough.unwrap_err());
    }
}

#[test]
fn a_row_without_a_value_is_of_no_class() {
    let dataset = plates(PixelType::U8);
    let columns = Grouping::columns(["Metadata_Plate"]);
    // As Python gives one key per row, where one is missing.
    let keys = Grouping::keys(["a", "b", "a", "\0", "b", "a", "\0"]);
    for (by, count, row, of) in
        [(columns.clone(), "1 row has", 3, "in Metadata_Plate"), (keys, "2 rows have", 3, "as their key")]
    {
        let error = Loader::builder(&dataset).balanced(by, 1).build().unwrap_err();
        let expected = format!("of 7 images, {count} no value {of}, and so no class");
        assert_eq!((error.cause(), error.row_index()), (&*expected, Some(row)));
    }
    let loader =
        Loader::builder(&dataset).rows([0, 1, 2, 4, 5, 6]).batch_size(2).balanced(columns.clone(), 1);
    for batch in &loader.build().unwrap() {
        let batch = batch.unwrap();
        let of = |name: &str| batch.rows().iter().filter(|&&row| PLATES[row] == Some(name)).count();
        assert_eq!([of("BR1"), of("BR2")], [1, 1]);
    }
    // In an order of groups it is one of them.
    assert_eq!(Loader::builder(&dataset).grouped(columns, 1).build().unwrap().images(), 7);
}
