//! Steps that change values: against definitions in `f64`, alone and together.

use crate::support::{Bits, TestStore, bits, images};
use std::path::Path;
use wellread_image::{PixelType, Shape};
use wellread_loader::{
    Dataset, Field, Filter, ItemContext, Jitter, Loader, MemoryStore, Noise, Normalize, Resize, Scale,
    Transform,
};

const SHAPE: Shape = Shape([2, 3, 2, 20, 30]);

fn dataset() -> Dataset {
    TestStore::new(images(6, SHAPE, PixelType::U16)).dataset()
}

/// One image as delivered: channels of values.
fn sample(dataset: &Dataset, row: usize, transform: &Transform) -> Vec<Vec<f64>> {
    let (mut out, mut context) = (vec![], ItemContext::new());
    context.set_seed(5, 1);
    let shape = dataset.sample_into(row, transform, &mut out, &mut context).unwrap();
    let volume = shape.z() * shape.y() * shape.x();
    let mut channels = vec![vec![]; shape.c()];
    for (i, run) in out.chunks_exact(volume).enumerate() {
        channels[i % shape.c()].extend(run.iter().map(|v| f64::from(*v)));
    }
    channels
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64).sqrt()
}

/// As `numpy.percentile`.
fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = percent / 100.0 * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at as usize], sorted[(at as usize + 1).min(sorted.len() - 1)]);
    low + (high - low) * at.fract()
}

fn close(got: &[Vec<f64>], expected: &[Vec<f64>], tolerance: f64) {
    assert_eq!(got.len(), expected.len());
    for (g, e) in got.iter().flatten().zip(expected.iter().flatten()) {
        assert!((g - e).abs() <= tolerance, "{g} {e}");
    }
}

fn map(channels: &[Vec<f64>], f: impl Fn(usize, &[f64], f64) -> f64) -> Vec<Vec<f64>> {
    let each = channels.iter().enumerate();
    each.map(|(c, values)| values.iter().map(|v| f(c, values, *v)).collect()).collect()
}

#[test]
fn normalisation_per_image_and_by_stored_statistics() {
    let dataset = dataset();
    let plain = sample(&dataset, 1, &Transform::default());
    let got = sample(&dataset, 1, &Transform::default().normalize_with(Normalize::PerImage));
    close(&got, &map(&plain, |_, all, v| (v - mean(all)) / deviation(all)), 2e-6);
    let stored = Normalize::Stored { mean: vec![100.0, 200.0, 300.0], std: vec![10.0, 20.0, 30.0] };
    for t in [Transform::default(), Transform::default().scale_to_unit(), Transform::default().scale(0.01)] {
        let t = t.channels([2, 0]).normalize_with(stored.clone());
        let expected = map(&[plain[2].clone(), plain[0].clone()], |c, _, v| {
            let stored = [2.0, 0.0][c];
            (v - 100.0 * (stored + 1.0)) / (10.0 * (stored + 1.0))
        });
        close(&sample(&dataset, 1, &t), &expected, 1e-3);
    }
}

/// Ranges given by hand go by the channels that are selected, as means do. Those of statistics go by the stored ones.
#[test]
fn ranges_go_by_selected_channels() {
    let dataset = dataset();
    let (low, high) = (vec![0.0, 1000.0, 5000.0], vec![60_000.0, 40_000.0, 50_000.0]);
    let ends = [(0.0, 60_000.0), (1000.0, 40_000.0), (5000.0, 50_000.0)];
    let to_unit = |(low, high): (f64, f64), v: f64| ((v - low) / (high - low)).clamp(0.0, 1.0);
    let of_two = || Transform::default().channels([2, 0]);
    let plain = sample(&dataset, 2, &of_two());
    let given = Scale::Range { low: low[..2].to_vec(), high: high[..2].to_vec() };
    let got = sample(&dataset, 2, &of_two().scale_with(given.clone()));
    close(&got, &map(&plain, |c, _, v| to_unit(ends[c], v)), 1e-5);
    let got = sample(&dataset, 2, &of_two().scale_with(given.clone()).normalize([0.1, 0.2], [2.0, 4.0]));
    let mean_and_std = [(0.1, 2.0), (0.2, 4.0)];
    let normal = |c: usize, v: f64| (to_unit(ends[c], v) - mean_and_std[c].0) / mean_and_std[c].1;
    close(&got, &map(&plain, |c, _, v| normal(c, v)), 1e-5);
    let stored = Scale::Stored { low: low.clone(), high: high.clone() };
    let got = sample(&dataset, 2, &of_two().scale_with(stored.clone()));
    close(&got, &map(&plain, |c, _, v| to_unit(ends[[2, 0][c]], v)), 1e-5);
    // All channels have one order.
    let all = Scale::Range { low, high };
    let of_all = |scale| sample(&dataset, 2, &Transform::default().scale_with(scale));
    assert_eq!(of_all(all.clone()), of_all(stored));
    for (transform, said) in [
        (Transform::default().channels([1]).scale_with(given.clone()), "but there is 1 channel"),
        (of_two().scale_with(all), "but there are 2 channels"),
        (Transform::default().scale_with(given), "but there are 3 channels"),
    ] {
        let error = transform.output_shape(SHAPE).unwrap_err().to_string();
        assert!(error.contains("ranges to scale") && error.contains(said), "{error}");
        assert!(error.contains("one per (selected) channel"), "{error}");
    }
}

#[test]
fn percentiles_are_those_of_numpy_and_clip() {
    let dataset = dataset();
    let plain = sample(&dataset, 2, &Transform::default());
    for (low, high) in [(0.0, 100.0), (1.0, 99.0), (33.3, 50.0), (0.1, 1.2)] {
        let got = sample(&dataset, 2, &Transform::default().scale_by_percentiles(low, high));
        let expected = map(&plain, |_, all, v| {
            let (low, high) = (percentile(all, f64::from(low)), percentile(all, f64::from(high)));
            ((v - low) / (high - low)).clamp(0.0, 1.0)
        });
        close(&got, &expected, 2e-5);
    }
    let range = Scale::Range { low: vec![1000.0], high: vec![50_000.0] };
    let got = sample(&dataset, 2, &Transform::default().scale_with(range).normalize([0.5], [0.25]));
    close(&got, &map(&plain, |_, _, v| (((v - 1000.0) / 49_000.0).clamp(0.0, 1.0) - 0.5) / 0.25), 1e-5);
    // One value, and none.
    for value in [7.0f32, f32::NAN] {
        let mut store = MemoryStore::new("flat");
        store.push("a", Shape::plane(3, 3), PixelType::F32, value.to_le_bytes().repeat(9)).unwrap();
        let flat = Dataset::from_store(Box::new(store));
        for t in [
            Transform::default().scale_by_percentiles(1.0, 99.0),
            Transform::default().normalize_with(Normalize::PerImage),
        ] {
            let got = sample(&flat, 0, &t).concat();
            assert!(got.iter().all(|v| if value.is_nan() { v.is_nan() } else { *v == 0.0 }), "{got:?}");
        }
    }
}

/// The weights of a resize are rounded, so pixels of one value differ in their last bits: no noise to be scaled up.
#[test]
fn an_image_of_one_value_is_flat_after_a_resize() {
    let value = 200u8;
    let store = |corner: u8| {
        let mut pixels = vec![value; 256 * 256];
        pixels[0] = corner;
        let mut store = MemoryStore::new("flat");
        store.push("a", Shape::plane(256, 256), PixelType::U8, pixels).unwrap();
        Dataset::from_store(Box::new(store))
    };
    let resize = Resize { height: 224, width: 224, filter: Filter::Antialias };
    let plain = sample(&store(value), 0, &Transform::default().resize_with(resize)).concat();
    assert!(plain.iter().any(|v| *v != 200.0), "rounding is what this is about");
    let of_own_values = [
        Transform::default().scale_by_percentiles(1.0, 99.0),
        Transform::default().normalize_with(Normalize::PerImage),
    ];
    for transform in of_own_values {
        let transform = transform.resize_with(resize);
        let got = sample(&store(value), 0, &transform).concat();
        assert!(got.iter().all(|v| *v == 0.0), "{transform:?}: {:?}", &got[..4]);
    }
    // One pixel that differs is seen.
    let normalize = Transform::default().normalize_with(Normalize::PerImage).resize_with(resize);
    let got = sample(&store(201), 0, &normalize);
    assert!(got[0][0] > 10.0 && (deviation(&got[0]) - 1.0).abs() < 1e-2, "{:?}", &got[0][..4]);
}

/// Infinite pixels count as little as NaN, and are clipped to the ends.
#[test]
fn percentiles_leave_out_infinite_values() {
    let scaled = |values: &[f32], low, high| {
        let mut store = MemoryStore::new("infinite");
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        store.push("a", Shape::plane(1, values.len()), PixelType::F32, bytes).unwrap();
        let dataset = Dataset::from_store(Box::new(store));
        sample(&dataset, 0, &Transform::default().scale_by_percentiles(low, high)).concat()
    };
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    assert_eq!(scaled(&[0.0, 1.0, inf, 2.0, 4.0], 0.0, 100.0), [0.0, 0.25, 1.0, 0.5, 1.0]);
    assert_eq!(scaled(&[-inf, -inf, -inf, 0.0, 2.0, 1.0], 1.0, 99.0)[..4], [0.0; 4]);
    let middle = scaled(&[-inf, -inf, -inf, 0.0, 2.0, 1.0], 1.0, 99.0);
    assert!(middle[4] == 1.0 && (middle[5] - 0.5).abs() < 1e-6, "{middle:?}");
    // One finite value, and none.
    let flat = scaled(&[7.0, -inf, inf, nan, 7.0], 1.0, 99.0);
    assert_eq!([0, 1, 2, 4].map(|i| flat[i]), [0.0, 0.0, 1.0, 0.0]);
    assert!(flat[3].is_nan(), "{flat:?}");
    assert_eq!(scaled(&[-inf, inf], 1.0, 99.0), [0.0, 1.0]);
}

/// Factors are not known to the test: each change is recognised by what it keeps.
#[test]
fn jitter_multiplies_spreads_and_bends() {
    let dataset = dataset();
    let unit = || Transform::default().scale_to_unit();
    let plain = sample(&dataset, 0, &unit());
    let jitter = |jitter| sample(&dataset, 0, &unit().jitter(jitter));
    let off = Jitter::default();
    let factors =
        |got: &[Vec<f64>]| -> Vec<f64> { got.iter().zip(&plain).map(|(g, p)| mean(g) / mean(p)).collect() };
    for per_channel in [false, true] {
        let got = jitter(Jitter { brightness: 0.3, per_channel, ..off });
        let by = factors(&got);
        assert!(by.iter().all(|f| (0.7..=1.3).contains(f) && *f != 1.0));
        assert_eq!((by[0] - by[1]).abs() > 1e-3, per_channel, "{by:?}");
        close(&got, &map(&plain, |c, _, v| v * by[c]), 1e-6);

        let got = jitter(Jitter { contrast: 0.3, per_channel, ..off });
        let by: Vec<f64> = got.iter().zip(&plain).map(|(g, p)| deviation(g) / deviation(p)).collect();
        assert!(by.iter().all(|f| (0.7..=1.3).contains(f)) && (by[0] - 1.0).abs() > 1e-3);
        close(&got, &map(&plain, |c, all, v| mean(all) + (v - mean(all)) * by[c]), 1e-6);

        let got = jitter(Jitter { gamma: 0.5, per_channel, ..off });
        let power = |c: usize| got[c][0].ln() / plain[c][0].ln();
        assert!((0..3).all(|c| (1.0 / 1.5..=1.5).contains(&power(c))));
        assert_eq!((power(0) - power(1)).abs() > 1e-3, per_channel);
        close(&got, &map(&plain, |c, _, v| v.powf(power(c))), 1e-5);
    }
    // Folded into one pass or not, brightness is the same.
    let bright = Jitter { brightness: 0.3, ..off };
    let range = Scale::Range { low: vec![0.0], high: vec![65535.0] };
    let late = sample(&dataset, 0, &Transform::default().scale_with(range).jitter(bright));
    close(&late, &jitter(bright), 1e-6);
}

#[test]
fn noise_has_the_variance_it_should() {
    let values = [0.0f32, 0.25, 1.0];
    let mut store = MemoryStore::new("steps");
    let pixels = values.iter().flat_map(|v| v.to_le_bytes().repeat(200 * 200)).collect();
    store.push("a", Shape([1, 3, 1, 200, 200]), PixelType::F32, pixels).unwrap();
    let dataset = Dataset::from_store(Box::new(store));
    let got = sample(&dataset, 0, &Transform::default().noise(Noise { photon: 0.04, gaussian: 0.1 }));
    for (channel, value) in got.iter().zip(values.map(f64::from)) {
        let expected = (0.04 * value + 0.01).sqrt();
        // Six standard errors.
        let n = channel.len() as f64;
        assert!((mean(channel) - value).abs() < 6.0 * expected / n.sqrt());
        assert!((deviation(channel) / expected - 1.0).abs() < 6.0 / (2.0 * n).sqrt());
    }
    // Channels have noise of their own, and photon noise none where it is dark.
    assert_ne!(got[0][0], got[1][0] - 0.25);
    let dark = sample(&dataset, 0, &Transform::default().noise(Noise { photon: 0.04, gaussian: 0.0 }));
    assert!(dark[0].iter().all(|v| *v == 0.0) && deviation(&dark[2]) > 0.1);
}

#[test]
fn photon_noise_keeps_values_that_are_not_finite() {
    let values = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, 4.0];
    let mut store = MemoryStore::new("steps");
    let pixels = values.iter().flat_map(|v| v.to_le_bytes().repeat(64)).collect();
    store.push("a", Shape([1, 5, 1, 8, 8]), PixelType::F32, pixels).unwrap();
    let dataset = Dataset::from_store(Box::new(store));
    let got = sample(&dataset, 0, &Transform::default().noise(Noise { photon: 2.0, gaussian: 0.0 }));
    for (channel, value) in got.iter().zip(values).take(4) {
        let same = |v: &f64| *v == f64::from(value) || (v.is_nan() && value.is_nan());
        assert!(channel.iter().all(same), "{value}: {channel:?}");
    }
    assert!(deviation(&got[4]) > 1.0);
}

#[test]
fn dropped_channels_are_zero_and_one_stays() {
    let dataset = dataset();
    let (mut dropped, n) = (0, 600);
    let t = Transform::default().crop(2, 2).channel_dropout(0.4);
    for epoch in 0..n {
        let (mut out, mut context) = (vec![], ItemContext::new());
        context.set_seed(1, epoch);
        dataset.sample_into(0, &t, &mut out, &mut context).unwrap();
        let zero = |c: usize| (0..2).all(|t| out[(t * 3 + c) * 8..][..8].iter().all(|v| *v == 0.0));
        let count = (0..3).filter(|c| zero(*c)).count();
        assert!(count < 3);
        dropped += count;
    }
    // 3 * 0.4, less the one that is spared with probability 0.064; six standard deviations.
    let expected = (1.2 - 0.064) * n as f64;
    assert!((f64::from(dropped as u32) - expected).abs() < 6.0 * (0.72 * n as f64).sqrt(), "{dropped}");
}

#[test]
fn illumination_is_divided_by_before_all_turning() {
    let dataset = dataset();
    let plane = 20 * 30;
    let flat: Vec<f32> = (0..3 * plane).map(|i| 0.5 + (i % 97) as f32 / 97.0).collect();
    let dark: Vec<f32> = (0..3 * plane).map(|i| (i % 13) as f32).collect();
    let field = Field::new([3, 20, 30], &flat, Some(dark.clone())).unwrap();
    let t = Transform::default().illumination(field).channels([2, 1]).random_crop(9, 7).flip(1.0, 0.0);
    for project in [false, true] {
        let mut t = t.clone();
        t.project = project;
        let p = t.placement(SHAPE, 5, 1, 3).unwrap();
        let got = sample(&dataset, 3, &t);
        let (_, pixels) = dataset.read(3).unwrap();
        for (to, c) in [2usize, 1].into_iter().enumerate() {
            let depth = if project { 1 } else { 2 };
            for (i, got) in got[to].iter().enumerate() {
                let (time, z) = (i / (depth * 63), i / 63 % depth);
                let (y, x) = (p.top + i / 7 % 9, p.left + 6 - i % 7);
                let at = |z: usize| {
                    PixelType::U16.value_at(&pixels, ((time * 3 + c) * 2 + z) * plane + y * 30 + x)
                };
                let value = if project { at(0).max(at(1)) } else { at(z) };
                let (dark, flat) = (dark[c * plane + y * 30 + x], flat[c * plane + y * 30 + x]);
                let expected = (value - f64::from(dark)) / f64::from(flat);
                assert!((got - expected).abs() <= expected.abs() * 1e-6 + 1e-3, "{got} {expected}");
            }
        }
    }
}

#[test]
fn fields_that_do_not_fit_are_refused() {
    let dataset = dataset();
    let refusal =
        |field: Field| Loader::builder(&dataset).illumination(field).build().unwrap_err().to_string();
    assert!(refusal(Field::new([3, 20, 29], &[1.0; 1740], None).unwrap()).contains("3 x 20 x 29"));
    assert!(refusal(Field::new([2, 20, 30], &[1.0; 1200], None).unwrap()).contains("one per channel"));
    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-45] {
        let error = Field::new([1, 1, 2], &[1.0, bad], None).unwrap_err().to_string();
        assert!(error.contains("column 1"), "{error}");
    }
    assert!(Field::new([1, 2, 2], &[1.0; 3], None).is_err());
    assert!(Field::new([usize::MAX, 2, 2], &[1.0; 3], None).is_err());
    assert!(Field::new([1, 1, 1], &[1.0], Some(vec![f32::NAN])).is_err());
    assert!(Field::open(Path::new("no-such-field.tif"), None).unwrap_err().is_missing());
}

/// All at once: the same bits whatever the threads, other bits in another epoch, and each step's draws its own.
#[test]
fn everything_together_is_the_same_whatever_the_threads() {
    let mut store = TestStore::new(images(23, Shape([1, 3, 2, 40, 36]), PixelType::U16));
    store.chunk = Some([1, 1, 1, 16, 16]);
    let dataset = store.dataset();
    let field: Vec<f32> = (0..40 * 36).map(|i| 0.8 + (i % 50) as f32 / 100.0).collect();
    let transform = Transform::default()
        .max_projection()
        .illumination(Field::new([1, 40, 36], &field, None).unwrap())
        .random_resized_crop(17, 19)
        .flip(0.5, 0.5)
        .right_angles(wellread_loader::RightAngles::Fitting)
        .rotate_degrees(10.0)
        .scale_by_percentiles(1.0, 99.0)
        .jitter(Jitter { brightness: 0.2, contrast: 0.2, gamma: 0.2, per_channel: true })
        .noise(Noise { photon: 0.01, gaussian: 0.02 })
        .normalize_with(Normalize::PerImage)
        .channel_dropout(0.2);
    let run = |workers, epoch| -> Vec<Bits> {
        let builder = Loader::builder(&dataset).batch_size(6).shuffle(11).workers(workers);
        let loader = builder.crops_per_image(3).transform(transform.clone()).build().unwrap();
        loader.iter_at(epoch, 0).map(|batch| bits(&batch.unwrap())).collect()
    };
    let expected = run(0, 0);
    for workers in 1..4 {
        assert!(run(workers, 0) == expected, "{workers} workers");
    }
    assert!(run(2, 1) != expected);

    let unit = || Transform::default().scale_to_unit();
    let gamma = Jitter { gamma: 0.5, ..Jitter::default() };
    let plain = sample(&dataset, 0, &unit().jitter(gamma));
    let noisy = sample(
        &dataset,
        0,
        &unit().jitter(gamma).noise(Noise { photon: 0.0, gaussian: 1e-4 }).flip(0.0, 0.0),
    );
    close(&noisy, &plain, 1e-3);
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let jitter = Jitter::default();
    let noise = Noise::default();
    let t = Transform::default;
    for (transform, expected) in [
        (t().jitter(Jitter { brightness: -0.1, ..jitter }), "brightness"),
        (t().jitter(Jitter { contrast: 2.0, ..jitter }), "contrast"),
        (t().jitter(Jitter { gamma: f32::NAN, ..jitter }), "gamma"),
        (t().noise(Noise { gaussian: -1.0, ..noise }), "Gaussian"),
        (t().noise(Noise { photon: f32::INFINITY, ..noise }), "photon"),
        (t().channel_dropout(1.1), "dropping a channel"),
        (t().scale_by_percentiles(50.0, 50.0), "percentiles"),
        (t().scale_by_percentiles(f32::NAN, 50.0), "percentiles"),
        (t().scale_with(Scale::Range { low: vec![1.0], high: vec![1.0] }), "range"),
        (t().scale_with(Scale::Range { low: vec![], high: vec![] }), "0 lower"),
        (
            t().scale_by_percentiles(1.0, 99.0)
                .normalize_with(Normalize::Stored { mean: vec![1.0], std: vec![1.0] }),
            "stored values",
        ),
    ] {
        let error = transform.check().unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let error = t().jitter(Jitter { gamma: 0.2, ..jitter }).check_dtype(PixelType::U8).unwrap_err();
    assert!(error.to_string().contains("0 to 1"));
    let two = Normalize::Stored { mean: vec![1.0; 2], std: vec![1.0; 2] };
    assert!(t().normalize_with(two).output_shape(SHAPE).unwrap_err().to_string().contains("2 channels"));
}
