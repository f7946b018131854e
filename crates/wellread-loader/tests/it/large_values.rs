//! Values that are large and close to each other, which `f32` arithmetic of factor and summand would cancel. And values so small
//! that `f32` has no factor for them.

use wellread_image::{PixelType, Shape};
use wellread_loader::{Dataset, ItemContext, MemoryStore, Normalize, Scale, Transform};

/// The pixels of one image of a row of values, as delivered.
fn delivered(dtype: PixelType, values: &[f64], transform: &Transform) -> Vec<f32> {
    let bytes = values.iter().flat_map(|&v| match dtype {
        PixelType::U16 => (v as u16).to_le_bytes().to_vec(),
        PixelType::U32 => (v as u32).to_le_bytes().to_vec(),
        PixelType::I32 => (v as i32).to_le_bytes().to_vec(),
        PixelType::F32 => (v as f32).to_le_bytes().to_vec(),
        _ => v.to_le_bytes().to_vec(),
    });
    let mut store = MemoryStore::new("large");
    store.push("a", Shape::plane(1, values.len()), dtype, bytes.collect()).unwrap();
    let dataset = Dataset::from_store(Box::new(store));
    let (mut out, mut context) = (vec![], ItemContext::new());
    context.set_seed(3, 0);
    dataset.sample_into(0, transform, &mut out, &mut context).unwrap();
    out
}

fn close(got: &[f32], expected: impl Iterator<Item = f64>, said: &str) {
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((f64::from(*got) - expected).abs() <= 1e-6, "{said}, value {i}: {got} {expected}");
    }
}

fn range(low: f32, high: f32) -> Transform {
    Transform::default().scale_with(Scale::Range { low: vec![low], high: vec![high] })
}

const LOW: f64 = 10_000_000.0;

#[test]
fn ranges_and_percentiles_of_large_values_are_exact() {
    let values: Vec<f64> = (0..=100).map(|i| LOW + f64::from(i)).collect();
    let unit = || values.iter().map(|v| (v - LOW) / 100.0);
    for dtype in [PixelType::U32, PixelType::I32, PixelType::F32, PixelType::F64] {
        let by_range = range(LOW as f32, LOW as f32 + 100.0);
        close(&delivered(dtype, &values, &by_range), unit(), &format!("{dtype} by range"));
        let by_percentiles = Transform::default().scale_by_percentiles(0.0, 100.0);
        close(&delivered(dtype, &values, &by_percentiles), unit(), &format!("{dtype} by percentiles"));
    }
    // Values that `f32` does not hold.
    let values: Vec<f64> = (0..=25_600).map(|i| 3e9 + f64::from(i)).collect();
    let got = delivered(PixelType::U32, &values, &range(3e9, 3_000_025_600.0));
    close(&got, (0..=25_600).map(|i| f64::from(i) / 25_600.0), "beyond f32");
}

#[test]
fn large_values_are_normalised_exactly() {
    let values: Vec<f64> = (0..=100).map(|i| LOW + f64::from(i)).collect();
    let stored = || Normalize::Stored { mean: vec![LOW as f32 + 51.0], std: vec![32.0] };
    let by_stored = || values.iter().map(|v| (v - LOW - 51.0) / 32.0);
    // The mean lies between two numbers that `f32` holds.
    let odd = &values[..100];
    let (mean, std) = (LOW + 49.5, ((100.0 * 100.0 - 1.0) / 12.0f64).sqrt());
    for dtype in [PixelType::U32, PixelType::I32, PixelType::F32, PixelType::F64] {
        let folded = delivered(dtype, &values, &Transform::default().normalize_with(stored()));
        close(&folded, by_stored(), &format!("{dtype} stored"));
        let scaled = delivered(dtype, &values, &Transform::default().scale(0.5).normalize_with(stored()));
        close(&scaled, by_stored(), &format!("{dtype} stored, scaled"));
        let of_image = delivered(dtype, odd, &Transform::default().normalize_with(Normalize::PerImage));
        close(&of_image, odd.iter().map(|v| (v - mean) / std), &format!("{dtype} per image"));
    }
}

/// Pixels of 16 bits have the bits of NumPy's `x.astype(float32) * k + b`, as ever.
#[test]
fn small_types_keep_their_bits() {
    let values: Vec<f64> = (59_990..=60_110).map(f64::from).collect();
    let got = delivered(PixelType::U16, &values, &range(60_000.0, 60_100.0));
    let (k, b) = ((1.0f64 / 100.0) as f32, (-60_000.0f64 / 100.0) as f32);
    for (got, v) in got.iter().zip(&values) {
        let product = std::hint::black_box(*v as f32 * k);
        assert_eq!(got.to_bits(), (product + b).clamp(0.0, 1.0).to_bits(), "{v}");
    }
    let got = delivered(PixelType::U16, &values, &Transform::default().scale_by_percentiles(0.0, 100.0));
    let k = 1.0 / 120.0f64;
    let (k, b) = (k as f32, (-59_990.0 * k) as f32);
    for (got, v) in got.iter().zip(&values) {
        let product = std::hint::black_box(*v as f32 * k);
        assert_eq!(got.to_bits(), (product + b).clamp(0.0, 1.0).to_bits(), "{v}");
    }
}

/// Maps of probabilities have values below the smallest normal number. The factor for their range is infinite as a single.
#[test]
fn tiny_values_are_scaled_as_others_are() {
    let tiny: Vec<f64> = (0..=100).map(|i| f64::from(f32::from_bits(1 + 7 * i))).collect();
    let by_percentiles = Transform::default().scale_by_percentiles(0.0, 100.0);
    let unit = (0..=100).map(|i| f64::from(i) / 100.0);
    close(&delivered(PixelType::F32, &tiny, &by_percentiles), unit, "percentiles");
    let per_image = Transform::default().normalize_with(Normalize::PerImage);
    let std = ((101.0 * 101.0 - 1.0) / 12.0f64).sqrt();
    let normal = (0..=100).map(|i| (f64::from(i) - 50.0) / std);
    close(&delivered(PixelType::F32, &tiny, &per_image), normal, "per image");
    // Beyond the percentiles there may be others, which are clipped.
    let mut with_others = tiny;
    with_others.extend([0.9, f64::from(f32::MAX), -1.0, f64::INFINITY]);
    let got = delivered(PixelType::F32, &with_others, &Transform::default().scale_by_percentiles(1.0, 97.0));
    assert!(got.iter().all(|value| (0.0..=1.0).contains(value)), "{got:?}");
    assert_eq!(got[101..], [1.0, 1.0, 0.0, 1.0]);
    assert!(got[1..101].is_sorted() && got[10] < got[50] && got[50] < got[90], "{got:?}");
}

/// A factor that is infinite would make NaN of the value that is to become 0.
#[test]
fn given_differences_without_a_reciprocal_are_refused() {
    let std = |std: f32| Transform::default().normalize([0.0], [std]).check();
    assert!(range(0.0, 1e-40).check().unwrap_err().cause.contains("0.0 to 1e-40"));
    assert!(std(1e-40).unwrap_err().cause.contains("1e-40"));
    for fine in [range(0.0, 1e-38), range(f32::MIN, f32::MAX), range(1.0, 1.000_001)] {
        assert_eq!(fine.check(), Ok(()));
    }
    assert_eq!(std(1e-38), Ok(()));
}
