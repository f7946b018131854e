//! Pictures of any colours as red, green and blue.

use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::{Dataset, MemoryStore};
use wellread_store::colors::Colors;
use wellread_store::{ImageView, OpenOptions, Store as _, WriteOptions, create};

#[test]
fn grey_becomes_three_colours_and_colours_stay() {
    let mut store = MemoryStore::new("mixed");
    for (name, channels) in [("grey", 1), ("alpha", 2), ("rgb", 3), ("rgba", 4)] {
        let shape = Shape([1, channels, 1, 2, 2]);
        let pixels = (0..shape.pixels()).map(|i| i as u8).collect();
        store.push(name.to_owned(), shape, PixelType::U8, pixels).unwrap();
    }
    let colors = Colors::new(Box::new(store));
    let read = |row| wellread_store::read_image(&colors, row).unwrap();
    for row in [0, 1] {
        let (info, pixels) = read(row);
        assert_eq!(
            (info.shape, &pixels[..]),
            (Shape([1, 3, 1, 2, 2]), &[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3][..])
        );
        let names: Vec<_> = colors.metadata(row).unwrap().channels.into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["Red", "Green", "Blue"]);
    }
    let first: Vec<u8> = (0..12).collect();
    assert_eq!((read(2).1, read(3).1), (first.clone(), first));
}

/// Pieces of a stack or series have several planes.
#[test]
fn planes_of_grey_become_three_colours() {
    let mut store = MemoryStore::new("stacks");
    let shape = Shape([2, 1, 3, 2, 2]);
    let pixels: Vec<u8> = (0..24).collect();
    store.push("grey", shape, PixelType::U8, pixels.clone()).unwrap();
    let (info, read) = wellread_store::read_image(&Colors::new(Box::new(store)), 0).unwrap();
    let times = pixels.chunks(12).flat_map(|time| [time; 3].concat());
    assert_eq!((info.shape, read), (Shape([2, 3, 3, 2, 2]), times.collect::<Vec<_>>()));
}

#[test]
fn pictures_of_several_folders_have_three_colours() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| dir.path().join(name));
    for path in &paths {
        let mut writer = create(path, "image-folder", &WriteOptions::default()).unwrap();
        let (metadata, shape) = (ImageMetadata::named("grey"), Shape::plane(2, 2));
        let view = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &[7; 4] };
        writer.write(&view).unwrap();
        writer.finish().unwrap();
    }
    let dataset = Dataset::open_in_color(paths.to_vec(), &OpenOptions::default()).unwrap();
    let shapes: Vec<Shape> = (0..dataset.len()).map(|row| dataset.row_info(row).unwrap().shape).collect();
    assert_eq!(shapes, [Shape([1, 3, 1, 2, 2]); 2]);
}
