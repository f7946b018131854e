//! Pictures of any colours as red, green and blue.

use wellread_image::{PixelType, Shape};
use wellread_loader::MemoryStore;
use wellread_store::Store as _;
use wellread_store::colors::Colors;

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
