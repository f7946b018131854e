//! Crops against slices of their images, units of positions, and pieces that are decoded once.

use super::{Image, below, documented, part, read, sliced, table, write};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use wellread_image::{PhysicalSize, PixelType, Shape};
use wellread_store::cells::{CellOptions, CellsStore, Edge, Unit};
use wellread_store::place::bytes_read;
use wellread_store::{Compression, OpenOptions, Request, Scratch, Store, WriteOptions, open, read_image};

/// Thousands of crops of every built-in format, of every edge, several of an image in one read, whole and in part.
#[test]
fn crops_are_slices_of_their_images() {
    let mut random = ChaCha8Rng::seed_from_u64(293);
    let volume = Shape([2, 3, 2, 61, 83]);
    let grey = Shape::plane(70, 50);
    let sets = [
        ("parquet", volume, PixelType::U16, None),
        ("ome-arrow-dataset", Shape([1, 2, 1, 61, 83]), PixelType::U16, None),
        ("tiff", volume, PixelType::U16, None),
        ("ome-zarr", volume, PixelType::F32, Some([1, 2, 1, 16, 20])),
        ("image-folder", grey, PixelType::U8, None),
    ];
    for (format, shape, dtype, chunk) in sets {
        let dir = tempfile::tempdir().unwrap();
        let images: Vec<Image> =
            (0..3).map(|i| Image::noise(&format!("site-{i}"), shape, dtype, &mut random)).collect();
        let options = WriteOptions { chunk, ..WriteOptions::default() };
        let ending = wellread_store::registry::format_named(format).unwrap().set_ending;
        let set = dir.path().join(format!("set{ending}"));
        drop(write(&set, format, &options, &images));
        let cells: Vec<(String, f64, f64)> = (0..400)
            .map(|_| {
                let image = below(&mut random, 3);
                // In quarters of a pixel, from the first pixel's border to the last one's.
                let x = below(&mut random, 4 * shape.x()) as f64 / 4.0 - 0.5;
                let y = below(&mut random, 4 * shape.y()) as f64 / 4.0 - 0.5;
                (format!("site-{image}"), x, y)
            })
            .collect();
        let table = table(dir.path(), &cells);
        for (edge, size) in [
            (Edge::Shift, [17, 24]),
            (Edge::Pad, [17, 24]),
            (Edge::Pad, [90, 7]),
            (Edge::Drop, [24, 17]),
            (Edge::Shift, [1, 1]),
        ] {
            let images_again = open(&set, &OpenOptions::default()).unwrap();
            let options = CellOptions { size, edge, ..CellOptions::default() };
            let store = CellsStore::open(images_again, &table, &options).unwrap();
            let placed = cells.iter().map(|(name, x, y)| {
                let (y, is_inside_y) = documented(*y, size[0], shape.y(), edge);
                let (x, is_inside_x) = documented(*x, size[1], shape.x(), edge);
                (name, [y, x], is_inside_y && is_inside_x)
            });
            let expected: Vec<_> =
                placed.filter(|(.., is_inside)| edge != Edge::Drop || *is_inside).collect();
            assert_eq!(store.len(), expected.len(), "{format} {edge}");
            let report = store.cells().report();
            assert_eq!((report.rows, report.dropped.count), (400, 400 - expected.len()), "{format} {edge}");
            let mut scratch = Scratch::default();
            for _ in 0..12 {
                let requests: Vec<Request> = (0..=below(&mut random, 24))
                    .map(|_| {
                        let row = below(&mut random, store.len());
                        Request { row, region: part(&mut random, store.row_info(row).unwrap().shape) }
                    })
                    .collect();
                let crops = read(&store, &requests, &mut scratch).unwrap();
                for (request, crop) in requests.iter().zip(&crops) {
                    let (name, start, _) = &expected[request.row];
                    let image = images.iter().find(|image| image.metadata.name == **name).unwrap();
                    let wanted = sliced(image, *start, size, &request.region);
                    assert!(*crop == wanted, "{format} {edge} {size:?}: {request:?} at {start:?} of {name}");
                }
            }
            // All of them in storage order.
            let mut rows = 0;
            store
                .scan(0..store.len(), &mut |row, info, pixels| {
                    let (name, start, _) = &expected[row];
                    let image = images.iter().find(|image| image.metadata.name == **name).unwrap();
                    assert_eq!(info.shape, Shape([shape.t(), shape.c(), shape.z(), size[0], size[1]]));
                    assert!(
                        pixels == sliced(image, *start, size, &info.shape.full()),
                        "{format} {edge}: row {row}"
                    );
                    assert_eq!(row, rows);
                    rows += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(rows, store.len());
        }
    }
}

/// Cells of one image in one read fetch each of its pieces once, however many cells a piece is in.
#[test]
fn pieces_are_read_once_for_all_cells() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let (side, piece) = (128, 32);
    let image = Image::noise("a", Shape::plane(side, side), PixelType::U16, &mut random);
    // A line of overlapping cells, all of them in the pieces of the second row.
    let cells: Vec<_> = (0..20).map(|i| ("a".to_owned(), 30.0 + f64::from(i) * 3.0, 48.0)).collect();
    let dir = tempfile::tempdir().unwrap();
    let table = table(dir.path(), &cells);
    let options = WriteOptions {
        chunk: Some([1, 1, 1, piece, piece]),
        compression: Compression::None,
        checksums: false,
        ..WriteOptions::default()
    };
    let set = write(&dir.path().join("set.zarr"), "ome-zarr", &options, &[image]);
    let store =
        CellsStore::open(set, &table, &CellOptions { size: [16, 16], ..CellOptions::default() }).unwrap();
    let shape = store.row_info(0).unwrap().shape;
    let requests: Vec<Request> = (0..20).map(|row| Request { row, region: shape.full() }).collect();
    let mut scratch = Scratch::default();
    let one_by_one = |scratch: &mut Scratch| {
        let before = bytes_read();
        let crops: Vec<_> =
            requests.iter().map(|one| read(&store, &[*one], scratch).unwrap().remove(0)).collect();
        (crops, bytes_read() - before)
    };
    // Facts that are looked up once are known by then.
    one_by_one(&mut scratch);
    let (apart, bytes_apart) = one_by_one(&mut scratch);
    let before = bytes_read();
    let together = read(&store, &requests, &mut scratch).unwrap();
    let bytes_together = bytes_read() - before;
    assert!(together == apart);
    // Columns 22 to 94 are in pieces 0 to 2.
    let of_piece = (piece * piece * 2) as u64;
    assert!((3 * of_piece..4 * of_piece).contains(&bytes_together), "{bytes_together}");
    assert!(bytes_apart >= 20 * of_piece, "{bytes_apart}");
}

/// Uncompressed rows between two cells of an image are not read.
#[test]
fn rows_between_cells_are_not_read() {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let side = 128;
    let image = Image::noise("a", Shape::plane(side, side), PixelType::U16, &mut random);
    let dir = tempfile::tempdir().unwrap();
    let cells = [("a".to_owned(), 20.0, 20.0), ("a".to_owned(), 90.0, 100.0)];
    let table = table(dir.path(), &cells);
    let options = WriteOptions { checksums: false, ..WriteOptions::default() };
    let set = write(&dir.path().join("set"), "tiff", &options, &[image]);
    let store =
        CellsStore::open(set, &table, &CellOptions { size: [16, 16], ..CellOptions::default() }).unwrap();
    let shape = store.row_info(0).unwrap().shape;
    let requests = [0, 1].map(|row| Request { row, region: shape.full() });
    let mut scratch = Scratch::default();
    // Facts that are looked up once are known by then.
    let apart: Vec<_> =
        requests.iter().map(|one| read(&store, &[*one], &mut scratch).unwrap().remove(0)).collect();
    let before = bytes_read();
    assert!(read(&store, &requests, &mut scratch).unwrap() == apart);
    assert_eq!(bytes_read() - before, (2 * 16 * side * 2) as u64);
}

/// Positions in micrometres are those in pixels of each image's own size.
#[test]
fn micrometres_are_pixels_of_the_images_size() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut image = Image::noise("a", Shape::plane(50, 60), PixelType::U8, &mut random);
    let size = |value: f64, unit: &str| Some(PhysicalSize { value, unit: unit.to_owned() });
    image.metadata.physical_size_x = size(0.5, "µm");
    image.metadata.physical_size_y = size(250.0, "nm");
    let dir = tempfile::tempdir().unwrap();
    let table = table(dir.path(), &[("a".to_owned(), 15.0, 5.0)]);
    let set = write(
        &dir.path().join("set.parquet"),
        "parquet",
        &WriteOptions::default(),
        std::slice::from_ref(&image),
    );
    let options = CellOptions { size: [5, 5], unit: Unit::Um, ..CellOptions::default() };
    let store = CellsStore::open(set, &table, &options).unwrap();
    // Column 30, row 20.
    let (info, pixels) = read_image(&store, 0).unwrap();
    assert_eq!(pixels, sliced(&image, [18, 28], [5, 5], &info.shape.full()));
    assert_eq!(store.metadata(0).unwrap().physical_size_x, size(0.5, "µm"));
}
