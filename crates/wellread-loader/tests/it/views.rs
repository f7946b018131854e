//! Several views of a row from one read.

use crate::support::{TestStore, images};
use std::sync::atomic::Ordering;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::{Crop, Dataset, Loader, RightAngles, Targets, Transform};
use wellread_store::{ImageView, WriteOptions};

const SHAPE: Shape = Shape([1, 2, 1, 48, 56]);

#[test]
fn views_are_the_draws_of_crops_and_differ() {
    let dataset = TestStore::new(images(9, SHAPE, PixelType::U8)).dataset();
    let transform = Transform::preset("augment").unwrap().random_crop(16, 16);
    let builder = Loader::builder(&dataset).batch_size(4).shuffle(3).transform(transform);
    let single = builder.clone().build().unwrap().collect_epoch().unwrap();
    let crops = builder.clone().batch_size(12).crops_per_image(3).build().unwrap().collect_epoch().unwrap();
    for workers in [0, 2] {
        let loader = builder.clone().views(3).workers(workers).build().unwrap();
        assert_eq!((loader.views(), loader.images(), loader.len()), (3, 9, 3));
        assert_eq!(loader.view_shape(2), Some(Shape([1, 2, 1, 16, 16])));
        assert_eq!(loader.view_shape(3), None);
        for ((batch, single), crops) in loader.iter_at(0, 0).zip(&single).zip(&crops) {
            let batch = batch.unwrap();
            assert_eq!((batch.rows(), batch.shape()), (single.rows(), single.shape()));
            assert_eq!(batch.pixels(), single.pixels());
            for view in 0..3 {
                for i in 0..batch.len() {
                    assert_eq!(batch.view(view).image_as::<f32>(i), crops.image(3 * i + view));
                }
            }
            assert_ne!(batch.view(0).pixels(), batch.view(1).pixels());
            assert_ne!(batch.view(1).pixels(), batch.view(2).pixels());
        }
    }
}

/// As DINO has them: two kinds of crops, of sizes of their own.
#[test]
fn recipes_have_sizes_and_draws_of_their_own() {
    let dataset = TestStore::new(images(7, SHAPE, PixelType::U16)).dataset();
    let recipe = |size: usize, scale: [f32; 2], degrees: f32| {
        let mut recipe = Transform::default().random_resized_crop(size, size).flip(0.5, 0.0).scale_to_unit();
        recipe.crop = Crop::RandomResized { scale, ratio: [0.75, 1.33] };
        recipe.right_angles(RightAngles::QuarterTurns).rotate_degrees(degrees)
    };
    let (global, local) = (recipe(32, [0.4, 1.0], 0.0), recipe(12, [0.05, 0.4], 20.0));
    let recipes = [global.clone(), global, local.clone(), local.clone(), local];
    let builder = Loader::builder(&dataset).batch_size(3).shuffle(8);
    for workers in [0, 2] {
        let loader = builder.clone().recipes(recipes.clone()).workers(workers).build().unwrap();
        for (view, recipe) in recipes.iter().enumerate() {
            // The draws of a view are those of the crop of its number.
            let crops = view + 1;
            let alone = builder.clone().batch_size(3 * crops).crops_per_image(crops);
            let alone = alone.transform(recipe.clone()).build().unwrap();
            for (batch, alone) in loader.iter_at(2, 0).zip(alone.iter_at(2, 0)) {
                let (batch, alone) = (batch.unwrap(), alone.unwrap());
                for i in 0..batch.len() {
                    assert_eq!(batch.view(view).image_as::<f32>(i), alone.image(i * crops + view));
                }
            }
        }
    }
}

#[test]
fn each_view_has_its_targets() {
    let dataset = TestStore::new(images(6, SHAPE, PixelType::U8)).dataset();
    let transform = Transform::default().random_crop(20, 24).flip(0.5, 0.5).channels([1]);
    let targets = Targets::labels(&dataset).channels([1]);
    let loader = Loader::builder(&dataset).batch_size(4).crops_per_image(2).seed(4).transform(transform);
    let loader = loader.views(2).targets(targets).build().unwrap();
    for batch in &loader {
        let batch = batch.unwrap();
        assert_eq!((batch.len(), batch.rows()[0], batch.rows()[1]), (4, batch.rows()[0], batch.rows()[0]));
        for view in 0..2 {
            let (view, targets) = (batch.view(view), batch.targets_of(view).unwrap());
            assert_eq!(view.shape(), targets.shape());
            let labels = targets.pixels_as::<u8>();
            assert!(view.pixels().iter().zip(labels).all(|(pixel, &label)| *pixel == f32::from(label)));
        }
    }
}

/// Pieces are decoded once for all views, and files are read once.
#[test]
fn views_are_cut_out_of_one_read() {
    let blocks = |views: usize, random: bool| {
        let mut store = TestStore::new(images(6, SHAPE, PixelType::U8));
        store.chunk = Some([1, 2, 1, 16, 16]);
        let blocks = store.blocks.clone();
        let dataset = store.dataset();
        let transform = Transform::default().flip(0.5, 0.5);
        let transform = if random { transform.random_crop(16, 16) } else { transform };
        let builder = Loader::builder(&dataset).batch_size(3).shuffle(1).transform(transform);
        builder.views(views).build().unwrap().collect_epoch().unwrap();
        blocks.load(Ordering::Relaxed)
    };
    assert_eq!((blocks(1, false), blocks(4, false)), (6 * 12, 6 * 12));
    // At most four pieces each, of twelve that there are.
    assert!(blocks(64, true) <= 6 * 12);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let options = WriteOptions { compression: wellread_store::Compression::None, ..WriteOptions::default() };
    let mut writer = wellread_store::create(&path, "tiff", &options).unwrap();
    for row in 0..4u8 {
        let metadata = ImageMetadata::named(format!("image {row}"));
        let (shape, dtype, pixels) = (Shape::plane(64, 64), PixelType::U8, vec![row; 4096]);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
    }
    writer.finish().unwrap();
    let dataset = Dataset::open(&path).unwrap();
    let traffic = |views: usize| {
        let loader = Loader::builder(&dataset).batch_size(2).views(views).flip(0.5, 0.5).build().unwrap();
        loader.collect_epoch().unwrap();
        loader.traffic()
    };
    let (first, one, two) = (traffic(1), traffic(1), traffic(2));
    assert!(first.read > 0);
    assert_eq!((one.read, one.used), (two.read, two.used / 2));
}

#[test]
fn views_that_make_no_sense_are_refused() {
    let dataset = TestStore::new(images(3, SHAPE, PixelType::U8)).dataset();
    let builder = Loader::builder(&dataset).batch_size(2);
    for (builder, part) in [
        (builder.clone().views(0), "0 views"),
        (builder.clone().views(65), "65 views"),
        (builder.clone().recipes(Vec::<Transform>::new()), "0 views"),
        (
            builder.clone().recipes([Transform::default(), Transform::default().channels([0])]),
            "differ in their channels",
        ),
        (builder.clone().recipes([Transform::default(), Transform::default().crop(99, 9)]), "larger than"),
        (builder.clone().views(2).crops_per_image(usize::MAX - 1).batch_size(usize::MAX - 1), "exceeds"),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
