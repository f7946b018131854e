//! Targets beside the images: the same geometry by one draw, labels never mixed, errors and memory as of images.

use crate::support::{Fault, TestStore, bits, images, pixels};
use proptest::prelude::*;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::{
    Batch, Crop, DType, Dataset, Filter, Jitter, Loader, LoaderBuilder, MemoryStore, Noise, OnError, Output,
    Pairing, Placement, Resize, RightAngles, Scale, Targets, Transform,
};
use wellread_store::{ImageView, WriteOptions, create};

const SHAPE: Shape = Shape([1, 2, 1, 40, 52]);
const MASK: Shape = Shape([1, 1, 1, 40, 52]);

/// Masks of objects: a few values, and their images' names.
fn masks(n: usize, dtype: PixelType) -> MemoryStore {
    let mut store = MemoryStore::new("test-masks");
    for i in 0..n {
        let group = ["A", "B", "C"][i % 3];
        let labels = (0..MASK.pixels()).map(|p| (p / 52 / 7 * 5 + p % 52 / 9 + i) % 11 * 23);
        let bytes: Vec<u8> = match dtype {
            PixelType::U8 => labels.map(|label| label as u8).collect(),
            PixelType::U16 => labels.flat_map(|label| (label as u16 * 250).to_le_bytes()).collect(),
            // Numbers that a float does not hold.
            PixelType::U32 => labels.flat_map(|label| (label as u32 + (1 << 30)).to_le_bytes()).collect(),
            _ => labels.flat_map(|label| (label as f64 / 3.0).to_le_bytes()).collect(),
        };
        store.push(format!("{group}_{i}"), MASK, dtype, bytes).unwrap();
    }
    store
}

/// Cropped, flipped and turned by hand: rows of pixels, each as its bytes.
fn turned(plane: &[u8], size: usize, p: &Placement) -> Vec<Vec<Vec<u8>>> {
    let pixel = |y: usize, x: usize| plane[(y * 52 + x) * size..][..size].to_vec();
    let columns = || p.left..p.left + p.width;
    let rows = p.top..p.top + p.height;
    let mut image: Vec<Vec<Vec<u8>>> = rows.map(|y| columns().map(|x| pixel(y, x)).collect()).collect();
    if p.flip_vertical {
        image.reverse();
    }
    if p.flip_horizontal {
        for row in &mut image {
            row.reverse();
        }
    }
    for _ in 0..p.quarter_turns {
        let (h, w) = (image.len(), image[0].len());
        image = (0..w).map(|i| (0..h).map(|j| image[j][w - 1 - i].clone()).collect()).collect();
    }
    image
}

/// The position `p` mirrored into `0..=n - 1`, the edge pixel not repeated.
fn mirrored(p: f64, n: usize) -> f64 {
    let last = (n - 1) as f64;
    if last == 0.0 {
        return 0.0;
    }
    let p = p.rem_euclid(2.0 * last);
    if p > last { 2.0 * last - p } else { p }
}

/// The labels that may stand at (y, x) of the output: one, unless a position lies on the border of two pixels.
fn nearest(image: &[Vec<Vec<u8>>], to: (usize, usize), degrees: f64, y: usize, x: usize) -> Vec<Vec<u8>> {
    let (h, w) = (image.len(), image[0].len());
    let (sin, cos) = degrees.to_radians().sin_cos();
    let (my, mx) = ((to.0 - 1) as f64 / 2.0, (to.1 - 1) as f64 / 2.0);
    let (dy, dx) = (y as f64 - my, x as f64 - mx);
    let (py, px) = (my + cos * dy + sin * dx, mx - sin * dy + cos * dx);
    let source = |p: f64, n: usize, to: usize| {
        let at = (mirrored(p, to) + 0.5) * n as f64 / to as f64;
        [-1e-6, 1e-6].map(|margin| ((at + margin).max(0.0) as usize).min(n - 1))
    };
    let columns = source(px, w, to.1);
    source(py, h, to.0).iter().flat_map(|&y| columns.map(|x| image[y][x].clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]
    /// Labels are those of the image's crop, flip, turn, resize and rotation, byte by byte, whatever their type.
    #[test]
    fn labels_go_the_way_of_their_images(
        crop in 0u8..5, resize in prop::option::of((1usize..60, 1usize..60)), degrees in prop::option::of(1f32..60.0),
        turns in prop::sample::select(vec![RightAngles::None, RightAngles::HalfTurns, RightAngles::Fitting]),
        dtype in prop::sample::select(vec![PixelType::U8, PixelType::U16, PixelType::U32, PixelType::F64]),
        crops in 1usize..4, workers in 0usize..3, chunked: bool, floats: bool, seed: u64,
    ) {
        let mut transform = Transform::default().flip(0.5, 0.5).right_angles(turns).scale_to_unit();
        transform.crop = match crop {
            0 => Crop::None,
            1 => Crop::Center { height: 21, width: 30 },
            2 => Crop::CenterSquare { share: 0.7 },
            3 => Crop::Random { height: 17, width: 17 },
            _ => Crop::RandomResized { scale: [0.2, 0.9], ratio: [0.7, 1.4] },
        };
        let resize = resize.or((crop == 4).then_some((24, 20)));
        transform.resize = resize.map(|(height, width)| Resize { height, width, filter: Filter::Area });
        transform.max_degrees = degrees.unwrap_or(0.0);
        transform.jitter = Jitter { brightness: 0.3, contrast: 0.2, ..Jitter::default() };
        let labels = masks(5, dtype);
        let mut store = TestStore::new(labels.clone());
        store.chunk = chunked.then_some([1, 1, 1, 13, 16]);
        let images = TestStore::new(images(5, SHAPE, PixelType::U16)).dataset();
        let floats = floats && dtype != PixelType::U32;
        let output = if floats { Output::F32 } else { Output::Stored };
        let loader = Loader::builder(&images)
            .batch_size(2 * crops).crops_per_image(crops).shuffle(seed).workers(workers).transform(transform.clone())
            .targets(Targets::labels(&store.dataset()).output(output)).build().unwrap();
        prop_assert_eq!(loader.pairing(), Some(Pairing::Names));
        let plain = Loader::builder(&images)
            .batch_size(2 * crops).crops_per_image(crops).shuffle(seed).transform(transform.clone()).build().unwrap();
        for (batch, plain) in loader.collect_epoch().unwrap().iter().zip(plain.collect_epoch().unwrap()) {
            // The images are as they would be alone.
            prop_assert_eq!(bits(batch), bits(&plain));
            let targets = batch.targets().unwrap();
            let shape = batch.shape();
            prop_assert_eq!(targets.shape(), &[shape[0], 1, shape[2], shape[3]]);
            let size = targets.dtype().size();
            for i in 0..batch.len() {
                let row = batch.rows()[i];
                let placement = transform.placement_of_crop(SHAPE, seed, 0, row, i % crops).unwrap();
                let (_, stored) = wellread_store::read_image(&labels, row).unwrap();
                let image = turned(&stored, dtype.size(), &placement);
                let to = resize.unwrap_or((image.len(), image[0].len()));
                let each = &targets.bytes()[i * to.0 * to.1 * size..][..to.0 * to.1 * size];
                for (at, got) in each.chunks_exact(size).enumerate() {
                    let degrees = f64::from(placement.degrees);
                    let may = nearest(&image, to, degrees, at / to.1, at % to.1);
                    let is_one = if floats {
                        let got = f64::from(f32::from_le_bytes(got.try_into().unwrap()));
                        may.iter().any(|bytes| got == f64::from(dtype.value_at(bytes, 0) as f32))
                    } else {
                        may.iter().any(|bytes| bytes == got)
                    };
                    prop_assert!(is_one, "{got:?} is none of {may:?}, {placement:?}");
                }
            }
        }
    }

    /// Images as targets go the same way as the input, and take no part in its changes of intensity.
    #[test]
    fn images_as_targets_are_as_images(
        resize in prop::option::of((3usize..60, 3usize..60)), degrees in 0f32..50.0, workers in 0usize..3, seed: u64,
    ) {
        let set = TestStore::new(images(5, SHAPE, PixelType::U16)).dataset();
        let mut geometry = Transform::default().random_crop(20, 24).flip(0.5, 0.5).rotate_degrees(degrees);
        geometry.resize = resize.map(|(height, width)| Resize { height, width, filter: Filter::Antialias });
        let noisy = geometry.clone().scale_to_unit().channels([0]).noise(Noise { photon: 0.0, gaussian: 0.1 });
        let builder = Loader::builder(&set).batch_size(3).shuffle(seed).workers(workers);
        let targets = Targets::image(&set).channels([1]).scale(Scale::By(2.0));
        let both = builder.clone().transform(noisy).targets(targets).build().unwrap();
        let alone = builder.transform(geometry.channels([1]).scale(2.0)).build().unwrap();
        for (both, alone) in both.collect_epoch().unwrap().iter().zip(alone.collect_epoch().unwrap()) {
            let targets = both.targets().unwrap();
            prop_assert_eq!((targets.shape(), targets.dtype()), (alone.shape(), DType::F32));
            prop_assert_eq!(targets.bytes(), alone.bytes());
            prop_assert_ne!(both.bytes(), alone.bytes());
        }
    }
}

/// Shape, rows and all bytes of all arrays of each batch.
type Whole = Vec<(Vec<usize>, Vec<Vec<u8>>)>;

fn whole(batches: impl Iterator<Item = wellread_store::Result<Batch>>) -> Whole {
    let of = |batch: Batch| {
        let arrays = (0..batch.arrays()).map(|i| batch.array(i).bytes().to_vec()).collect();
        (batch.rows().to_vec(), arrays)
    };
    batches.map(|batch| of(batch.unwrap())).collect()
}

/// Small images, large ones whose batches are split among threads, and reads that are joined.
#[test]
fn batches_are_the_same_whatever_the_threads() {
    for (shape, joined) in [(SHAPE, 1), (SHAPE, 12), (Shape([1, 1, 1, 500, 600]), 1)] {
        let build = |workers: usize| {
            let mut store = TestStore::new(images(20, shape, PixelType::U16));
            store.rows_per_read = joined;
            let targets = TestStore::new(images(20, shape, PixelType::U8)).dataset();
            let builder = Loader::builder(&store.dataset()).batch_size(4).shuffle(5).workers(workers);
            let builder = builder.transform(Transform::preset("augment").unwrap()).views(2);
            builder.targets(Targets::labels(&targets)).build().unwrap()
        };
        let expected = whole(build(0).iter_at(1, 0));
        assert_eq!((expected.len(), expected[0].1.len()), (5, 4));
        for workers in [1, 3] {
            let loader = build(workers);
            assert!(whole(loader.iter_at(1, 0)) == expected, "{workers} workers, {shape}, {joined} joined");
            // A saved state goes on in the middle.
            let mut begun = loader.iter_at(1, 0);
            begun.next().unwrap().unwrap();
            assert!(whole(build(0).resume(&begun.state()).unwrap()) == expected[1..]);
        }
    }
}

/// A loader of 12 images and their targets, some of which cannot be read.
fn with_bad(images_at: &[usize], targets_at: &[usize], workers: usize) -> LoaderBuilder {
    let set = |bad: &[usize], dtype| {
        let mut store = TestStore::new(images(12, Shape::plane(8, 8), dtype));
        store.faults = bad.iter().map(|&row| (row, Fault::Fail)).collect();
        store.dataset()
    };
    let targets = Targets::labels(&set(targets_at, PixelType::U8));
    Loader::builder(&set(images_at, PixelType::U16)).batch_size(4).workers(workers).targets(targets)
}

#[test]
fn rows_whose_target_cannot_be_read_are_as_rows_that_cannot() {
    let fine = whole(with_bad(&[], &[], 0).build().unwrap().iter());
    for workers in [0, 2] {
        let loader = with_bad(&[2], &[1, 6, 8, 9, 10, 11], workers).on_error(OnError::Skip).build().unwrap();
        let mut batches = loader.iter();
        let got = whole(&mut batches);
        let rows: Vec<_> = got.iter().map(|(rows, _)| rows.clone()).collect();
        assert_eq!(rows, [vec![0, 3], vec![4, 5, 7]]);
        for ((rows, arrays), (_, all)) in got.iter().zip(&fine) {
            for (array, all) in arrays.iter().zip(all) {
                let each = all.len() / 4;
                let kept: Vec<u8> =
                    rows.iter().flat_map(|row| all[row % 4 * each..][..each].to_vec()).collect();
                assert_eq!(*array, kept);
            }
        }
        let skipped: Vec<usize> = batches.skipped().rows().iter().map(|(row, _)| *row).collect();
        assert_eq!(skipped, [1, 2, 6, 8, 9, 10, 11]);
        let raises = with_bad(&[], &[6], workers).build().unwrap();
        let errors: Vec<_> = raises.iter().map(|batch| batch.map(drop).map_err(|e| e.to_string())).collect();
        assert!(errors[0].is_ok() && errors[2].is_ok());
        assert!(errors[1].as_ref().unwrap_err().contains("row 6"), "{errors:?}");
    }
}

/// The same of files that cannot even be opened, images or targets, the first one or another.
#[test]
fn files_that_cannot_be_opened_are_rows_that_cannot_be_read() {
    for (damaged, row) in [("images", 0), ("images", 3), ("masks", 0), ("masks", 3)] {
        let dir = tempfile::tempdir().unwrap();
        for (folder, word) in [("images", ""), ("masks", "_mask")] {
            let path = dir.path().join(folder);
            let mut writer = create(&path, "tiff", &WriteOptions::default()).unwrap();
            for number in 0..6 {
                let metadata = ImageMetadata::named(format!("s{number}{word}"));
                let (shape, dtype, pixels) = (Shape::plane(8, 8), PixelType::U8, vec![number; 64]);
                writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
            }
            writer.finish().unwrap();
            if folder == damaged {
                std::fs::write(path.join(format!("s{row}{word}.ome.tiff")), "junk of some length").unwrap();
            }
        }
        let set = |folder: &str| Dataset::open(dir.path().join(folder)).unwrap();
        let targets = Targets::labels(&set("masks"));
        let builder = Loader::builder(&set("images")).batch_size(2).targets(targets);
        let loader = builder.clone().on_error(OnError::Skip).build().unwrap();
        assert_eq!(loader.pairing(), Some(Pairing::Names));
        let mut batches = loader.iter();
        let mut seen = vec![];
        for batch in &mut batches {
            let batch = batch.unwrap();
            for (i, &image) in batch.rows().iter().enumerate() {
                assert_eq!(batch.targets().unwrap().image_as::<u8>(i), [image as u8; 64]);
            }
            seen.extend_from_slice(batch.rows());
        }
        assert_eq!(seen, (0..6).filter(|&image| image != row).collect::<Vec<_>>());
        let skipped: Vec<usize> = batches.skipped().rows().iter().map(|(row, _)| *row).collect();
        assert_eq!(skipped, [row], "{damaged}");
        let error = builder.build().and_then(|loader| loader.collect_epoch()).err().unwrap();
        assert_eq!((error.row_index(), error.is_choice()), (Some(row), false), "{error}");
        assert!(error.path().starts_with(dir.path().join(damaged)), "{error}");
    }
}

#[test]
fn targets_are_found_by_name_and_rows_are_chosen_of_both() {
    let inner = images(6, Shape::plane(8, 8), PixelType::U8);
    let mut masks = MemoryStore::new("masks");
    for row in [4, 1, 5, 0, 3] {
        let (info, data) = wellread_store::read_image(&inner, row).unwrap();
        let name = Dataset::from_store(Box::new(inner.clone())).name(row).unwrap();
        masks.push(format!("{name}_mask"), info.shape, info.dtype, data).unwrap();
    }
    let [set, masks] = [inner, masks].map(|store| Dataset::from_store(Box::new(store)));
    let builder = Loader::builder(&set).batch_size(2).seed(3).random_crop(5, 5).flip(0.5, 0.5);
    let error = builder.clone().targets(Targets::labels(&masks)).build().unwrap_err().to_string();
    assert!(error.contains("1 of 6 images have no target among the 5 images of masks: C_2"), "{error}");
    let chosen = builder.clone().rows([5, 0, 3, 4]).targets(Targets::labels(&masks)).build().unwrap();
    let skipping = builder.targets(Targets::labels(&masks)).on_error(OnError::Skip).build().unwrap();
    assert_eq!(chosen.pairing(), Some(Pairing::Names));
    for loader in [chosen, skipping] {
        let mut batches = loader.iter();
        let mut rows = vec![];
        for batch in &mut batches {
            let batch = batch.unwrap();
            rows.extend_from_slice(batch.rows());
            let labels = batch.targets().unwrap().pixels_as::<u8>();
            assert!(batch.pixels().iter().zip(labels).all(|(pixel, &label)| *pixel == f32::from(label)));
        }
        let skips = batches.skipped().count();
        assert_eq!((rows.len(), skips), if skips == 0 { (4, 0) } else { (5, 1) });
    }
}

#[test]
fn depth_is_projected_or_kept() {
    let shape = Shape([1, 1, 3, 10, 12]);
    let set = |dtype| TestStore::new(images(3, shape, dtype)).dataset();
    let (stack, labels) = (set(PixelType::U16), set(PixelType::U8));
    let builder = Loader::builder(&stack).batch_size(3).seed(1).flip(1.0, 0.0);
    let kept = builder.clone().targets(Targets::labels(&labels)).build().unwrap();
    assert_eq!(kept.target_of(0), Some((shape, DType::U8)));
    for resize in [None, Some(Resize { height: 20, width: 24, filter: Filter::Area })] {
        let mut transform = Transform::default().max_projection().flip(1.0, 0.0);
        transform.resize = resize;
        let loader = builder.clone().transform(transform).targets(Targets::labels(&labels)).build().unwrap();
        let batch = loader.iter().next().unwrap().unwrap();
        let targets = batch.targets().unwrap();
        let by = if resize.is_some() { 2 } else { 1 };
        assert_eq!(targets.shape(), [3, 1, 10 * by, 12 * by]);
        for row in 0..3 {
            let stored = pixels(shape, PixelType::U8, row as u64 + 1);
            for (i, &got) in targets.image_as::<u8>(row).iter().enumerate() {
                let (y, x) = (i / (12 * by) / by, 11 - i % (12 * by) / by);
                let deepest = (0..3).map(|z| stored[(z * 10 + y) * 12 + x]).max().unwrap();
                assert_eq!(got, deepest, "row {row}, {y}, {x}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_told_when_the_loader_is_made() {
    let set = |n, shape, dtype| TestStore::new(images(n, shape, dtype)).dataset();
    let builder = Loader::builder(&set(4, SHAPE, PixelType::U8)).batch_size(2);
    let error = |targets: Targets| builder.clone().targets(targets).build().unwrap_err().to_string();
    let small = error(Targets::labels(&set(4, Shape::plane(40, 50), PixelType::U8)));
    assert!(small.contains("40x50") && small.contains("40x52") && small.contains("row 0"), "{small}");
    let masks = set(4, MASK, PixelType::U8);
    for (targets, part) in [
        (Targets::labels(&set(3, MASK, PixelType::U8)), "1 of 4 images have no target"),
        (Targets::labels(&masks).scale(Scale::Unit), "labels are neither scaled"),
        (Targets::labels(&masks).channels([1]), "channel 1 is selected, but the image has 1 channel"),
        (Targets::image(&masks).output(Output::Stored).scale(Scale::By(2.0)), "a scale is asked for"),
    ] {
        let text = error(targets);
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn labels_that_the_type_of_a_batch_would_round_are_refused() {
    let shape = Shape::plane(4, 4);
    let images = TestStore::new(images(1, shape, PixelType::U8)).dataset();
    let first = |label: u32, output: Output, degrees: f32| {
        let mut store = MemoryStore::new("ids");
        store.push("a", shape, PixelType::U32, label.to_le_bytes().repeat(16)).unwrap();
        let masks = Dataset::from_store(Box::new(store));
        let targets = Targets::labels(&masks).output(output).pairing(Pairing::Order);
        let builder = Loader::builder(&images).batch_size(1).rotate_degrees(degrees);
        builder.targets(targets).build().unwrap().iter().next().unwrap()
    };
    for (output, last) in [(Output::F16, 2047), (Output::BF16, 255), (Output::F32, (1 << 24) - 1)] {
        for degrees in [0.0, 20.0] {
            assert!(first(last, output, degrees).is_ok());
            let error = first(last + 2, output, degrees).unwrap_err().to_string();
            assert!(error.contains("row 0: labels of") && error.contains("are not exact in"), "{error}");
            // No float that a batch may have holds them all.
            let hint = "as they are stored, in uint32: leave their type out (target_dtype, Targets::output). int64 holds them all";
            assert!(error.contains(hint), "{error}");
        }
    }
    let stored = first(u32::MAX, Output::Stored, 0.0).unwrap();
    assert_eq!(stored.targets().unwrap().pixels_as::<u32>(), [u32::MAX; 16]);
}

/// The bound on memory counts targets as well: their batches, and the memory that each thread needs to read
/// them.
#[test]
fn a_bound_on_memory_counts_targets() {
    let shape = Shape::plane(256, 256);
    let set = |dtype| TestStore::new(images(16, shape, dtype)).dataset();
    let (input, stain) = (set(PixelType::U16), set(PixelType::U16));
    let builder = Loader::builder(&input).batch_size(4).workers(2).random_crop(200, 200).rotate_degrees(9.0);
    let alone = builder.clone().memory(1 << 30).build().unwrap();
    let both = builder.clone().memory(1 << 30).targets(Targets::image(&stain)).build().unwrap();
    let (alone, with) = (alone.memory().unwrap().clone(), both.memory().unwrap().clone());
    assert!(
        with.bytes_per_batch >= 2 * 4 * 200 * 200 * 4 && with.bytes_per_batch < 2 * alone.bytes_per_batch
    );
    assert!(with.bytes_per_thread >= 2 * alone.bytes_per_thread, "{with}, {alone}");
    let error = builder.clone().memory(1 << 20).targets(Targets::image(&stain)).build().unwrap_err();
    assert!(error.to_string().contains("exceeds the memory"), "{error}");
    let bounded = builder.memory(64 << 20).targets(Targets::image(&stain)).build().unwrap();
    assert!(bounded.memory().unwrap().total() <= 64 << 20);
    assert!(whole(bounded.iter_at(0, 0)) == whole(both.iter_at(0, 0)));
}
