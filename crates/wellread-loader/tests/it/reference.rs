//! Every transform against a naive implementation that works step by step on an array of `f64`.

use crate::support::{TestStore, pixels};
use proptest::prelude::*;
use wellread_image::{PixelType, Shape};
use wellread_loader::{
    Crop, Filter, ItemContext, Loader, MemoryStore, Normalize, Placement, Resize, RightAngles, Scale,
    Transform,
};

/// A plane as rows of numbers.
type Plane = Vec<Vec<f64>>;

fn value(dtype: PixelType, b: &[u8]) -> f32 {
    match dtype {
        PixelType::U8 => b[0] as f32,
        PixelType::I8 => b[0] as i8 as f32,
        PixelType::U16 => u16::from_le_bytes([b[0], b[1]]) as f32,
        PixelType::I16 => i16::from_le_bytes([b[0], b[1]]) as f32,
        PixelType::U32 => u32::from_le_bytes(b.try_into().unwrap()) as f32,
        PixelType::I32 => i32::from_le_bytes(b.try_into().unwrap()) as f32,
        PixelType::F32 => f32::from_le_bytes(b.try_into().unwrap()),
        PixelType::F64 => f64::from_le_bytes(b.try_into().unwrap()) as f32,
    }
}

fn rot90(plane: &Plane) -> Plane {
    let (h, w) = (plane.len(), plane[0].len());
    (0..w).map(|i| (0..h).map(|j| plane[j][w - 1 - i]).collect()).collect()
}

fn resize(plane: &Plane, to: Resize) -> Plane {
    let weight = |from: usize, to: usize, filter, i: usize, s: usize| {
        let ratio = from as f64 / to as f64;
        if filter == Filter::Area && from > to {
            let (low, high) = (i as f64 * ratio, (i + 1) as f64 * ratio);
            (high.min(s as f64 + 1.0) - low.max(s as f64)).max(0.0) / ratio
        } else {
            let at = ((i as f64 + 0.5) * ratio - 0.5).clamp(0.0, from as f64 - 1.0);
            (1.0 - (at - s as f64).abs()).max(0.0)
        }
    };
    let (h, w) = (plane.len(), plane[0].len());
    let cell = |y: usize, x: usize| {
        let mut sum = 0.0;
        for (v, row) in plane.iter().enumerate() {
            let wy = weight(h, to.height, to.filter, y, v);
            for (u, value) in row.iter().enumerate() {
                sum += wy * weight(w, to.width, to.filter, x, u) * value;
            }
        }
        sum
    };
    (0..to.height).map(|y| (0..to.width).map(|x| cell(y, x)).collect()).collect()
}

fn mirror(i: f64, n: usize) -> usize {
    let mut i = i as i64;
    let last = n as i64 - 1;
    while last > 0 && !(0..=last).contains(&i) {
        i = if i < 0 { -i } else { 2 * last - i };
    }
    if last == 0 { 0 } else { i as usize }
}

fn rotate(plane: &Plane, degrees: f32) -> Plane {
    let (h, w) = (plane.len(), plane[0].len());
    let (sin, cos) = (degrees as f64).to_radians().sin_cos();
    let cell = |y: usize, x: usize| {
        let (dy, dx) = (y as f64 - (h as f64 - 1.0) / 2.0, x as f64 - (w as f64 - 1.0) / 2.0);
        let sy = (h as f64 - 1.0) / 2.0 + sin * dx + cos * dy;
        let sx = (w as f64 - 1.0) / 2.0 + cos * dx - sin * dy;
        let (fy, fx) = (sy - sy.floor(), sx - sx.floor());
        let at = |v: f64, u: f64| plane[mirror(sy.floor() + v, h)][mirror(sx.floor() + u, w)];
        at(0.0, 0.0) * (1.0 - fy) * (1.0 - fx)
            + at(0.0, 1.0) * (1.0 - fy) * fx
            + at(1.0, 0.0) * fy * (1.0 - fx)
            + at(1.0, 1.0) * fy * fx
    };
    (0..h).map(|y| (0..w).map(|x| cell(y, x)).collect()).collect()
}

/// The definition. Values are scaled in `f64`.
fn reference(t: &Transform, p: &Placement, shape: Shape, dtype: PixelType, data: &[u8]) -> Vec<f64> {
    let all: Vec<usize> = (0..shape.c()).collect();
    let channels = t.channels.as_ref().unwrap_or(&all);
    let mut out = vec![];
    for time in 0..shape.t() {
        for (to, &c) in channels.iter().enumerate() {
            for z in 0..shape.z() {
                let at = |y: usize, x: usize| {
                    let i = (((time * shape.c() + c) * shape.z() + z) * shape.y() + y) * shape.x() + x;
                    let (min, max) = dtype.range();
                    let v = value(dtype, &data[i * dtype.size()..(i + 1) * dtype.size()]) as f64;
                    let v = match t.scale {
                        Scale::None => v,
                        Scale::By(k) => v * k as f64,
                        Scale::Unit => (v - min) / (max - min),
                        ref other => unreachable!("{other:?} is tested elsewhere"),
                    };
                    match &t.normalize {
                        None => v,
                        Some(Normalize::Given { mean, std }) => {
                            let i = if mean.len() == 1 { 0 } else { to };
                            (v - mean[i] as f64) / std[i] as f64
                        }
                        Some(other) => unreachable!("{other:?} is tested elsewhere"),
                    }
                };
                let mut plane: Plane = (0..p.height)
                    .map(|y| (0..p.width).map(|x| at(p.top + y, p.left + x)).collect())
                    .collect();
                if p.flip_vertical {
                    plane.reverse();
                }
                if p.flip_horizontal {
                    for row in &mut plane {
                        row.reverse();
                    }
                }
                for _ in 0..p.quarter_turns {
                    plane = rot90(&plane);
                }
                if let Some(to) = t.resize {
                    plane = resize(&plane, to);
                }
                if p.degrees != 0.0 {
                    plane = rotate(&plane, p.degrees);
                }
                out.extend(plane.concat());
            }
        }
    }
    out
}

fn a_transform(shape: Shape) -> impl Strategy<Value = Transform> {
    let crop = (0..3u8, 1..=shape.y(), 1..=shape.x()).prop_map(|(kind, height, width)| match kind {
        0 => Crop::None,
        1 => Crop::Center { height, width },
        _ => Crop::Random { height, width },
    });
    let resize = prop::option::weighted(
        0.3,
        (1usize..12, 1usize..12, any::<bool>()).prop_map(|(height, width, area)| Resize {
            height,
            width,
            filter: if area { Filter::Area } else { Filter::Bilinear },
        }),
    );
    let turns = prop_oneof![
        2 => Just(RightAngles::None), 1 => Just(RightAngles::HalfTurns),
        1 => Just(RightAngles::QuarterTurns), 2 => Just(RightAngles::Fitting),
    ];
    let scale = prop_oneof![Just(Scale::None), Just(Scale::Unit), (0.001f32..2.0).prop_map(Scale::By)];
    let channels = prop::option::weighted(0.4, prop::collection::vec(0..shape.c(), 1..4));
    let degrees = prop_oneof![2 => Just(0.0f32), 1 => 0.1f32..180.0];
    let flips =
        (prop_oneof![Just(0.0f32), Just(0.5), Just(1.0)], prop_oneof![Just(0.0f32), Just(0.5), Just(1.0)]);
    (crop, resize, turns, scale, channels, degrees, flips, 0..3u8).prop_map(
        move |(crop, resize, right_angles, scale, channels, max_degrees, flips, normal)| {
            let count = channels.as_ref().map_or(shape.c(), Vec::len);
            let normalize = match normal {
                0 => None,
                1 => Some(Normalize::Given { mean: vec![0.5], std: vec![0.25] }),
                _ => Some(Normalize::Given {
                    mean: (0..count).map(|c| c as f32 / 8.0).collect(),
                    std: (0..count).map(|c| 0.5 + c as f32 / 4.0).collect(),
                }),
            };
            Transform {
                channels,
                crop,
                flip_horizontal: flips.0,
                flip_vertical: flips.1,
                right_angles,
                resize,
                max_degrees,
                scale,
                normalize,
                ..Transform::default()
            }
        },
    )
}

fn a_case() -> impl Strategy<Value = (Shape, Transform)> {
    let shape = (1usize..3, 1usize..4, 1usize..3, 1usize..24, 1usize..24)
        .prop_map(|(t, c, z, y, x)| Shape([t, c, z, y, x]));
    shape.prop_flat_map(|shape| (Just(shape), a_transform(shape)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Loader and single items give what the definition says, whatever pieces the store delivers.
    #[test]
    fn transforms_are_their_definition(
        (shape, transform) in a_case(),
        dtype in prop::sample::select(&PixelType::ALL[..]),
        chunk in prop::option::of(prop::array::uniform5(1usize..9)),
        seed: u64, epoch in 0u64..3, backwards: bool,
    ) {
        let n = 3;
        let mut inner = MemoryStore::new("images");
        for i in 0..n {
            inner.push(format!("{i}"), shape, dtype, pixels(shape, dtype, seed ^ i)).unwrap();
        }
        let mut store = TestStore::new(inner.clone());
        (store.chunk, store.backwards) = (chunk, backwards);
        let dataset = store.dataset();
        let mut context = ItemContext::new();
        context.set_seed(seed, epoch);
        let mut single = vec![];
        let Ok(output) = transform.output_shape(shape) else {
            // The only reason a generated transform may not fit.
            prop_assert_eq!(transform.right_angles, RightAngles::QuarterTurns);
            prop_assert!(dataset.sample_into(0, &transform, &mut single, &mut context).is_err());
            prop_assert!(Loader::builder(&dataset).transform(transform).build().is_err());
            return Ok(());
        };
        let loader = Loader::builder(&dataset)
            .batch_size(2).seed(seed).epoch(epoch).transform(transform.clone()).build().unwrap();
        let batches = loader.collect_epoch().unwrap();
        for row in 0..n as usize {
            let placement = transform.placement(shape, seed, epoch, row).unwrap();
            let (_, data) = dataset.read(row).unwrap();
            let expected = reference(&transform, &placement, shape, dtype, &data);
            prop_assert_eq!(output.pixels(), expected.len());
            let got = batches[row / 2].image(row % 2);
            let largest = expected.iter().fold(1.0f64, |m, v| m.max(v.abs()));
            // Normalisation may cancel leading digits; positions of a rotation are single precision.
            let cancelled = if transform.normalize.is_some() { 8.0 } else { 1.0 };
            let tolerance = if placement.degrees == 0.0 { 3e-6 } else { 3e-5 } * largest * cancelled;
            for (g, e) in got.iter().zip(&expected) {
                prop_assert!((*g as f64 - e).abs() <= tolerance, "{g} {e} of {largest}");
            }
            let shape = dataset.sample_into(row, &transform, &mut single, &mut context).unwrap();
            prop_assert_eq!(shape, output);
            prop_assert!(single.iter().zip(got).all(|(a, b)| a.to_bits() == b.to_bits()));
            prop_assert_eq!(single.len(), got.len());
        }
    }

    /// Random crops lie inside and reach every place, the corners included.
    #[test]
    fn random_crops_stay_inside(y in 1usize..40, x in 1usize..40, h in 1usize..40, w in 1usize..40, seed: u64) {
        let (h, w) = (h.min(y), w.min(x));
        let transform = Transform::default().random_crop(h, w);
        for row in 0..50 {
            let p = transform.placement(Shape::plane(y, x), seed, 0, row).unwrap();
            prop_assert!(p.top + h <= y && p.left + w <= x);
        }
    }
}

#[test]
fn random_crops_reach_every_place() {
    let transform = Transform::default().random_crop(6, 7);
    let mut seen = [[0; 4]; 5];
    for row in 0..2000 {
        let p = transform.placement(Shape::plane(10, 10), 1, 0, row).unwrap();
        seen[p.top][p.left] += 1;
    }
    // 100 expected of each; six standard deviations.
    assert!(seen.concat().iter().all(|n| (40..160).contains(n)), "{seen:?}");
}

#[test]
fn unsigned_types_scale_exactly_as_numpy() {
    let mut store = MemoryStore::new("ramp");
    store
        .push(
            "a",
            Shape::plane(256, 256),
            PixelType::U16,
            (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
        )
        .unwrap();
    let dataset = wellread_loader::Dataset::from_store(Box::new(store));
    let loader = Loader::builder(&dataset).scale_to_unit().build().unwrap();
    let batch = loader.iter().next().unwrap().unwrap();
    let k = 1.0f32 / 65535.0;
    assert!(batch.pixels().iter().enumerate().all(|(i, v)| v.to_bits() == (i as f32 * k).to_bits()));
    assert_eq!((batch.pixels()[0], batch.pixels()[65535]), (0.0, 1.0));
}

#[test]
fn signed_types_scale_from_zero_to_one() {
    for dtype in [PixelType::I8, PixelType::I16, PixelType::I32] {
        let affine = Transform::default().scale_to_unit().affine(dtype, 0);
        let (min, max) = dtype.range();
        assert_eq!(min as f32 * affine.scale + affine.offset, 0.0, "{dtype}");
        assert!((max as f32 * affine.scale + affine.offset - 1.0).abs() < 1e-6, "{dtype}");
    }
}

#[test]
fn nan_and_infinity_pass_through() {
    let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0];
    let mut store = MemoryStore::new("odd");
    store
        .push("a", Shape::plane(2, 2), PixelType::F32, values.iter().flat_map(|v| v.to_le_bytes()).collect())
        .unwrap();
    let dataset = wellread_loader::Dataset::from_store(Box::new(store));
    let batch = Loader::builder(&dataset).scale_to_unit().build().unwrap().iter().next().unwrap().unwrap();
    assert!(batch.pixels()[0].is_nan());
    assert_eq!(batch.pixels()[1..3], values[1..3]);
    assert_eq!(batch.pixels()[3].to_bits(), (-0.0f32).to_bits());
}

#[test]
fn presets_exist_and_run() {
    let mut store = MemoryStore::new("squares");
    let shape = Shape::plane(20, 20);
    let stored = pixels(shape, PixelType::U8, 1);
    store.push("a", shape, PixelType::U8, stored.clone()).unwrap();
    let dataset = wellread_loader::Dataset::from_store(Box::new(store));
    let unit: Vec<f32> = stored.iter().map(|&value| f32::from(value) / 255.0).collect();
    for name in Transform::PRESETS {
        let transform = Transform::preset(name).unwrap();
        assert_eq!(transform.is_random(), name == "augment");
        let batch =
            Loader::builder(&dataset).transform(transform).build().unwrap().iter().next().unwrap().unwrap();
        let low = if name == "normalize" { -1.0 } else { 0.0 };
        assert!(batch.pixels().iter().all(|v| (low - 1e-6..=1.0 + 1e-6).contains(v)), "{name}");
        let differ = |wanted: &dyn Fn(f32) -> f32| {
            batch.pixels().iter().zip(&unit).any(|(found, &value)| (found - wanted(value)).abs() > 1e-6)
        };
        match name {
            "none" => assert!(!differ(&|value| value)),
            "normalize" => assert!(!differ(&|value| (value - 0.5) / 0.5)),
            // Flipped, turned and rotated.
            _ => assert!(differ(&|value| value)),
        }
    }
    assert!(Transform::preset("blur").is_none());
}
