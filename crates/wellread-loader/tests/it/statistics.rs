//! Statistics of sets against naive ones, their file, and damaged files.

use crate::support::{TestStore, images};
use proptest::prelude::*;
use std::path::Path;
use wellread_image::{PixelType, Shape};
use wellread_loader::stats::PERCENTILES;
use wellread_loader::{Dataset, Loader, MemoryStore, Normalize, Scale, Stats};

fn stats(dataset: &Dataset, jobs: usize) -> Stats {
    Stats::of(dataset.store(), &PERCENTILES, jobs, &|| {}).unwrap()
}

/// A file of this test alone, gone at its end.
struct File(tempfile::TempPath);

impl File {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let prefix = format!("wellread-stats-{name}-");
        let file = tempfile::Builder::new().prefix(&prefix).suffix(".json").tempfile().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Self(file.into_temp_path())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn statistics_are_those_of_all_values(
        dtype in prop::sample::select(&PixelType::ALL[..]), n in 1usize..40, size in (1usize..9, 1usize..9),
        rows_per_read in 1usize..20,
    ) {
        let shape = Shape([2, 2, 2, size.0, size.1]);
        let mut store = TestStore::new(images(n, shape, dtype));
        store.rows_per_read = rows_per_read;
        let dataset = store.dataset();
        let got = stats(&dataset, 1);
        prop_assert_eq!((got.images, got.channels.len(), got.dtype.as_str()), (n as u64, 2, dtype.name()));
        for jobs in [2, 5] {
            prop_assert_eq!(&stats(&dataset, jobs), &got);
        }
        let volume = 2 * size.0 * size.1;
        for (c, got) in got.channels.iter().enumerate() {
            let mut values = vec![];
            for row in 0..n {
                let (_, pixels) = dataset.read(row).unwrap();
                for run in [c, 2 + c] {
                    values.extend((run * volume..(run + 1) * volume).map(|i| dtype.value_at(&pixels, i)));
                }
            }
            values.sort_by(f64::total_cmp);
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let std = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / count).sqrt();
            let largest = values[0].abs().max(values[values.len() - 1].abs()).max(1.0);
            prop_assert!((got.mean.unwrap() - mean).abs() <= 1e-9 * largest);
            prop_assert!((got.std.unwrap() - std).abs() <= 1e-6 * largest);
            prop_assert_eq!((got.min, got.max), (Some(values[0]), values.last().copied()));
            prop_assert_eq!((got.count, got.nan, got.infinite), (values.len() as u64, 0, 0));
            for p in &got.percentiles {
                let at = p.percent / 100.0 * (count - 1.0);
                let (low, high) = (values[at as usize], values[(at as usize + 1).min(values.len() - 1)]);
                let expected = low + (high - low) * at.fract();
                let error = if dtype.size() <= 2 { 1e-9 } else { 1.0 / 1024.0 };
                prop_assert!((p.value - expected).abs() <= error * low.abs().max(high.abs()) + 1e-9, "{p:?} {expected}");
            }
            let histogram = got.histogram.as_ref().unwrap();
            prop_assert_eq!(histogram.counts.iter().sum::<u64>(), values.len() as u64);
            prop_assert!(histogram.low <= values[0] && histogram.high >= values[values.len() - 1]);
        }
    }

    /// A damaged file is an error or other statistics, never a panic.
    #[test]
    fn damaged_files_are_refused(cut in 0.0f64..1.0, at in 0.0f64..1.0, bit in 0u8..8) {
        let dataset = TestStore::new(images(3, Shape::plane(4, 4), PixelType::U8)).dataset();
        let text = serde_json::to_vec(&stats(&dataset, 1)).unwrap();
        let file = File::new("cut", &text[..(cut * text.len() as f64) as usize]);
        let error = Normalize::from_stats(&file.0).unwrap_err().to_string();
        prop_assert!(error.contains("wellread-stats-") && error.contains("wellread stats PATH --out"), "{error}");
        let mut flipped = text.clone();
        flipped[(at * text.len() as f64) as usize] ^= 1 << bit;
        let file = File::new("flipped", &flipped);
        if let Ok(normalize) = Normalize::from_stats(&file.0) {
            // The remaining values are checked as numbers given by hand are.
            let _ = Loader::builder(&dataset).normalize_with(normalize).build();
        }
        let _ = Scale::from_stats(&file.0, 1.0, 99.0);
    }
}

#[test]
fn numbers_that_are_none_are_counted_apart() {
    let values = [f32::NAN, f32::INFINITY, 1.0, 3.0, f32::NEG_INFINITY, f32::NAN];
    let mut store = MemoryStore::new("odd");
    let pixels = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    store.push("a", Shape::plane(2, 3), PixelType::F32, pixels).unwrap();
    store.push("b", Shape::plane(1, 1), PixelType::F32, f32::NAN.to_le_bytes().to_vec()).unwrap();
    let got = stats(&Dataset::from_store(Box::new(store)), 2).channels.remove(0);
    assert_eq!((got.count, got.nan, got.infinite), (2, 3, 2));
    assert_eq!((got.mean, got.std, got.min, got.max), (Some(2.0), Some(1.0), Some(1.0), Some(3.0)));

    let mut store = MemoryStore::new("none");
    store.push("a", Shape::plane(1, 1), PixelType::F64, f64::NAN.to_le_bytes().to_vec()).unwrap();
    let none = stats(&Dataset::from_store(Box::new(store)), 1);
    assert_eq!((none.channels[0].mean, none.channels[0].percentiles.len()), (None, 0));
    let error = none.normalize(Path::new("set.json")).unwrap_err().to_string();
    assert!(error.contains("set.json") && error.contains("channel 0"), "{error}");
}

/// Values beyond the range of `f32`, and values with squares beyond that of `f64`.
#[test]
fn very_large_and_very_small_values_have_statistics() {
    let of = |planes: &[&[f64]]| {
        let mut store = MemoryStore::new("extreme");
        for (i, plane) in planes.iter().enumerate() {
            let pixels = plane.iter().flat_map(|v| v.to_le_bytes()).collect();
            store.push(format!("{i}"), Shape::plane(1, plane.len()), PixelType::F64, pixels).unwrap();
        }
        let dataset = Dataset::from_store(Box::new(store));
        Stats::of(dataset.store(), &[0.0, 25.0, 50.0, 100.0], 1, &|| {}).unwrap().channels.remove(0)
    };
    let near = |got: Option<f64>, expected: f64, error: f64| {
        let got = got.unwrap();
        assert!((got - expected).abs() <= error * expected.abs(), "{got} {expected}");
    };
    let got = of(&[&[1e300, -1e300, 1e-320, 5.0]]);
    near(got.std, 1e300 / 2f64.sqrt(), 1e-12);
    assert_eq!((got.min, got.max), (Some(-1e300), Some(1e300)));
    // Neighbours are interpolated between: half of 1e-320 and 5, and three quarters of the way from -1e300.
    let p: Vec<f64> = got.percentiles.iter().map(|p| p.value).collect();
    near(Some(p[0]), -1e300, 0.001);
    near(Some(p[1]), -0.25e300, 0.001);
    near(Some(p[2]), 2.5, 0.001);
    near(Some(p[3]), 1e300, 0.001);
    assert_eq!(got.histogram.unwrap().counts.iter().sum::<u64>(), 4);
    // As NumPy's mean and std of these.
    let got = of(&[&[1e200, -1e200, 5e199, 5.0]]);
    near(got.mean, 1.25e199, 1e-12);
    near(got.std, 7.395_099_728_874_52e199, 1e-12);
    // In several planes, zeros among them, and at the ends of all numbers.
    let got = of(&[&[0.0, 0.0], &[1e-50, 2e-50], &[3e-50, 4e-50]]);
    near(got.mean, 10e-50 / 6.0, 1e-12);
    near(got.percentiles[2].value.into(), 1.5e-50, 0.001);
    let got = of(&[&[0.0, 0.0], &[1e-200, 3e-200]]);
    near(got.std, 1.224_744_871_391_589e-200, 1e-12);
    let got = of(&[&[f64::MAX, -f64::MAX], &[0.0, 0.0]]);
    assert_eq!(got.mean, Some(0.0));
    near(got.std, f64::MAX / 2f64.sqrt(), 1e-12);
    assert_eq!(got.histogram.unwrap().counts.iter().sum::<u64>(), 4);
    let got = of(&[&[1e-320, 3e-320]]);
    near(got.mean, 2e-320, 0.001);
    near(got.std, 1e-320, 0.001);
    // Zeros are zeros, not the middle of a bin.
    assert_eq!(of(&[&[0.0, -1.0, 0.0, 1.0]]).percentiles[2].value, 0.0);
}

#[test]
fn loaders_take_the_file() {
    let dataset = TestStore::new(images(8, Shape([1, 2, 1, 20, 20]), PixelType::U16)).dataset();
    let found = stats(&dataset, 2);
    let file = File::new("whole", &serde_json::to_vec(&found).unwrap());
    // Reading a decimal number may be off by its last bit.
    let read = Stats::open(&file.0).unwrap();
    for (read, found) in read.channels.iter().zip(&found.channels) {
        assert_eq!(
            (read.count, read.min, read.percentiles.len()),
            (found.count, found.min, found.percentiles.len())
        );
        assert!((read.mean.unwrap() / found.mean.unwrap() - 1.0).abs() < 1e-12);
    }
    assert_eq!((read.images, read.channels.len()), (8, 2));
    let load = |builder: wellread_loader::LoaderBuilder| {
        builder.batch_size(8).build().unwrap().iter().next().unwrap().unwrap().pixels().to_vec()
    };
    let builder = || Loader::builder(&dataset);
    let normalize = || Normalize::from_stats(&file.0).unwrap();
    for pixels in [
        load(builder().normalize_with(normalize())),
        load(builder().scale_to_unit().normalize_with(normalize())),
    ] {
        for c in 0..2 {
            let channel: Vec<f64> =
                pixels.chunks(400).skip(c).step_by(2).flatten().map(|v| f64::from(*v)).collect();
            let mean = channel.iter().sum::<f64>() / channel.len() as f64;
            let square = channel.iter().map(|v| v * v).sum::<f64>() / channel.len() as f64;
            assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-5, "{mean} {square}");
        }
    }
    let scaled = load(builder().scale_with(Scale::from_stats(&file.0, 1.0, 99.0).unwrap()));
    let outside = scaled.iter().filter(|v| **v == 0.0 || **v == 1.0).count() as f64 / scaled.len() as f64;
    assert!((0.015..0.025).contains(&outside), "{outside}");
    let error = Scale::from_stats(&file.0, 2.0, 99.0).unwrap_err().to_string();
    assert!(error.contains("percentile 2") && error.contains("0.1, 1"), "{error}");
}

/// They would normalise, or scale, all stains by one's.
#[test]
fn statistics_of_one_channel_are_not_those_of_three() {
    let set =
        |channels: usize| TestStore::new(images(3, Shape([1, channels, 1, 8, 8]), PixelType::U16)).dataset();
    let (one, three) = (set(1), set(3));
    let file = File::new("one", &serde_json::to_vec(&stats(&one, 1)).unwrap());
    let normalized = |dataset: &Dataset| {
        Loader::builder(dataset).normalize_with(Normalize::from_stats(&file.0).unwrap()).build()
    };
    let scaled = |dataset: &Dataset| {
        Loader::builder(dataset).scale_with(Scale::from_stats(&file.0, 1.0, 99.0).unwrap()).build()
    };
    assert!(normalized(&one).is_ok() && scaled(&one).is_ok());
    for refused in [normalized(&three).err(), scaled(&three).err()] {
        let error = refused.unwrap().to_string();
        assert!(error.contains("has statistics of 1 channel, but the images have 3 channels"), "{error}");
    }
}

#[test]
fn foreign_and_newer_files_are_named() {
    for (name, text, expected) in [
        ("empty", "", "no file of statistics"),
        ("foreign", "{\"a\": 1}", "no file of statistics"),
        ("list", "[1, 2]", "no file of statistics"),
        ("newer", "{\"format\": \"wellread-stats\", \"version\": 2}", "update wellread"),
        ("short", "{\"format\": \"wellread-stats\", \"version\": 1}", "no file of statistics"),
        (
            "bare",
            "{\"format\":\"wellread-stats\",\"version\":1,\"images\":0,\"dtype\":\"uint8\",\"percentile_error\":0,\"channels\":[]}",
            "no channel",
        ),
    ] {
        let file = File::new(name, text.as_bytes());
        let error = Normalize::from_stats(&file.0).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
    assert!(Stats::open(Path::new("no-such-stats.json")).unwrap_err().is_missing());
}

#[test]
fn sets_that_cannot_be_counted_are_refused() {
    let empty = Dataset::from_store(Box::new(MemoryStore::new("none")));
    let of = |dataset: &Dataset, percents: &[f64]| Stats::of(dataset.store(), percents, 2, &|| {});
    assert!(of(&empty, &[50.0]).unwrap_err().to_string().contains("no images"));
    let mut mixed = images(3, Shape::plane(4, 4), PixelType::U8);
    mixed.push("wide", Shape::plane(4, 4), PixelType::U16, vec![0; 32]).unwrap();
    let error = of(&Dataset::from_store(Box::new(mixed)), &[50.0]).unwrap_err().to_string();
    assert!(error.contains("row 3") && error.contains("uint16"), "{error}");
    let fine = Dataset::from_store(Box::new(images(3, Shape::plane(4, 4), PixelType::U8)));
    assert!(of(&fine, &[101.0]).unwrap_err().to_string().contains("101"));
    let mut many = MemoryStore::new("many channels");
    many.push("a", Shape([1, 1000, 1, 1, 1]), PixelType::F32, vec![0; 4000]).unwrap();
    let error = of(&Dataset::from_store(Box::new(many)), &[50.0]).unwrap_err().to_string();
    assert!(error.contains("1000") && error.contains("another axis"), "{error}");
    let mut broken = TestStore::new(images(40, Shape::plane(4, 4), PixelType::U8));
    broken.faults = vec![(33, crate::support::Fault::Fail)];
    let error = of(&broken.dataset(), &[50.0]).unwrap_err().to_string();
    assert!(error.contains("row 33"), "{error}");
}
