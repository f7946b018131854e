//! Output types: half precision is the rounded `f32`, stored pixels are those of the file.

use crate::support::{TestStore, images};
use half::{bf16, f16};
use proptest::prelude::*;
use wellread_image::{PixelType, Shape};
use wellread_loader::{DType, Loader, LoaderBuilder, Noise, Normalize, Output, RightAngles, Transform};

fn a_transform() -> impl Strategy<Value = Transform> {
    (any::<[bool; 6]>(), 0..4u8).prop_map(|([crop, flip, turn, resize, project, per_image], channels)| {
        let mut t = Transform::default().scale_to_unit();
        if crop {
            t = t.random_crop(11, 11);
        }
        if flip {
            t = t.flip(0.5, 0.5);
        }
        if turn {
            t = t.right_angles(RightAngles::Fitting);
        }
        if resize {
            t = t.resize(7, 9).rotate_degrees(20.0);
        }
        if project {
            t = t.max_projection();
        }
        if per_image {
            t = t.noise(Noise { photon: 0.01, gaussian: 0.1 }).normalize_with(Normalize::PerImage);
        }
        match channels {
            0 => t.channels([1, 0]),
            1 => t.channel_dropout(0.5),
            _ => t,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn halves_are_rounded_floats(
        transform in a_transform(), dtype in prop::sample::select(&PixelType::ALL[..]), workers in 0usize..3,
    ) {
        let mut store = TestStore::new(images(5, Shape([2, 2, 3, 14, 19]), dtype));
        store.chunk = Some([1, 1, 2, 8, 8]);
        let dataset = store.dataset();
        let loader = |output| {
            let builder = Loader::builder(&dataset).batch_size(2).shuffle(3).workers(workers);
            builder.transform(transform.clone()).output(output).build().unwrap()
        };
        let floats = loader(Output::F32).collect_epoch().unwrap();
        let halves = loader(Output::F16).collect_epoch().unwrap();
        let brains = loader(Output::BF16).collect_epoch().unwrap();
        for ((floats, halves), brains) in floats.iter().zip(&halves).zip(&brains) {
            prop_assert_eq!((halves.dtype(), brains.dtype()), (DType::F16, DType::BF16));
            prop_assert_eq!((floats.shape(), floats.rows()), (halves.shape(), halves.rows()));
            prop_assert_eq!(halves.bytes().len() * 2, floats.bytes().len());
            for ((f, h), b) in floats.pixels().iter().zip(halves.pixels_as::<f16>()).zip(brains.pixels_as::<bf16>()) {
                prop_assert!(h.to_bits() == f16::from_f32_const(*f).to_bits() || f.is_nan() && h.is_nan());
                prop_assert!(b.to_bits() == bf16::from_f32_const(*f).to_bits() || f.is_nan() && b.is_nan());
            }
        }
    }

    /// Whole numbers of up to 16 bits are the same as floats, so the geometry of floats tells where pixels go.
    #[test]
    fn stored_pixels_go_where_floats_go(
        dtype in prop::sample::select(&[PixelType::U8, PixelType::I8, PixelType::U16, PixelType::I16][..]),
        size in (1usize..90, 1usize..90), project: bool, workers in 0usize..3,
    ) {
        let mut store = TestStore::new(images(4, Shape([1, 2, 3, size.0, size.1]), dtype));
        store.chunk = Some([1, 2, 1, 32, 50]);
        let dataset = store.dataset();
        let loader = |output| {
            let mut transform = Transform::default()
                .random_crop(size.0.min(70), size.1.min(70)).flip(0.5, 0.5).right_angles(RightAngles::Fitting);
            transform.project = project;
            let builder = Loader::builder(&dataset).batch_size(3).workers(workers);
            builder.transform(transform).output(output).build().unwrap()
        };
        let floats = loader(Output::F32).collect_epoch().unwrap();
        let stored = loader(Output::Stored).collect_epoch().unwrap();
        for (floats, stored) in floats.iter().zip(&stored) {
            prop_assert_eq!(stored.dtype().name(), dtype.name());
            let n = floats.pixels().len();
            prop_assert_eq!(stored.bytes().len(), n * dtype.size());
            for i in 0..n {
                prop_assert_eq!(dtype.value_at(stored.bytes(), i), f64::from(floats.pixels()[i]));
            }
        }
    }
}

#[test]
fn what_computes_is_refused_for_stored_pixels() {
    let dataset = TestStore::new(images(3, Shape::plane(8, 8), PixelType::U16)).dataset();
    let builder = || Loader::builder(&dataset).output(Output::Stored);
    let refused: [(LoaderBuilder, &str); 5] = [
        (builder().scale_to_unit(), "a scale"),
        (builder().normalize([0.5], [0.5]), "a normalisation"),
        (builder().resize(4, 4), "a resize"),
        (builder().rotate_degrees(3.0), "a rotation"),
        (builder().noise(Noise { photon: 0.0, gaussian: 1.0 }), "noise"),
    ];
    for (builder, expected) in refused {
        let text = builder.build().unwrap_err().to_string();
        assert!(text.contains(expected) && text.contains("on the device"), "{text}");
    }
    let batch = builder().crop(4, 6).build().unwrap().iter().next().unwrap().unwrap();
    assert_eq!((batch.dtype(), batch.pixels_as::<u16>().len()), (DType::U16, 3 * 24));
    assert_eq!(batch.bytes().as_ptr() as usize % 64, 0);
}

/// The maximum over depth is that of whole images, and each piece is read once.
#[test]
fn the_projection_is_the_maximum_over_depth() {
    for dtype in PixelType::ALL {
        let shape = Shape([2, 3, 5, 12, 10]);
        let mut store = TestStore::new(images(2, shape, dtype));
        store.chunk = Some([1, 1, 2, 12, 10]);
        let blocks = store.blocks.clone();
        let dataset = store.dataset();
        let loader =
            Loader::builder(&dataset).max_projection().channels([2, 0]).flip(0.0, 1.0).build().unwrap();
        assert_eq!(loader.image_shape(), Shape([2, 2, 1, 12, 10]));
        let batch = loader.iter().next().unwrap().unwrap();
        // Two time points, two channels, three pieces along Z, two rows.
        assert_eq!(blocks.load(std::sync::atomic::Ordering::Relaxed), 2 * 2 * 3 * 2);
        for row in 0..2 {
            let (_, pixels) = dataset.read(row).unwrap();
            let value = |t, c, z, y, x| dtype.value_at(&pixels, (((t * 3 + c) * 5 + z) * 12 + y) * 10 + x);
            for (i, got) in batch.image(row).iter().enumerate() {
                let (t, c, y, x) = (i / 240, [2, 0][i / 120 % 2], 11 - i / 10 % 12, i % 10);
                let expected = (0..5).map(|z| value(t, c, z, y, x)).fold(f64::NEG_INFINITY, f64::max);
                assert_eq!(*got, expected as f32, "{dtype} {i}");
            }
        }
    }
}
