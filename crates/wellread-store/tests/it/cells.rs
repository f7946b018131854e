//! Cells cut out of images: every format and edge against slices of whole images; pieces decoded once; masks; bad tables.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::{ImageMetadata, PhysicalSize, PixelType, Region, Shape};
use wellread_store::cells::{CellOptions, CellsStore, Edge, Mask, Unit, Unmatched};
use wellread_store::place::bytes_read;
use wellread_store::{
    Compression, CopySink, ImageView, OpenOptions, Request, Result, Scratch, Store, WriteOptions, create,
    open, read_image, read_region,
};

/// A whole number below `n`.
fn below(random: &mut ChaCha8Rng, n: usize) -> usize {
    (random.next_u64() % n as u64) as usize
}

/// An image to be written.
struct Image {
    metadata: ImageMetadata,
    shape: Shape,
    dtype: PixelType,
    pixels: Vec<u8>,
}

impl Image {
    fn noise(name: &str, shape: Shape, dtype: PixelType, random: &mut ChaCha8Rng) -> Self {
        let mut pixels = vec![0; shape.pixels() * dtype.size()];
        random.fill_bytes(&mut pixels);
        Self { metadata: ImageMetadata::named(name), shape, dtype, pixels }
    }

    fn labels(name: &str, shape: Shape, label: impl Fn(usize, usize) -> u16) -> Self {
        let at = |i: usize| label(i / shape.x() % shape.y(), i % shape.x());
        let pixels = (0..shape.pixels()).flat_map(|i| at(i).to_le_bytes()).collect();
        Self { metadata: ImageMetadata::named(name), shape, dtype: PixelType::U16, pixels }
    }
}

fn write(path: &Path, format: &str, options: &WriteOptions, images: &[Image]) -> Box<dyn Store> {
    let mut writer = create(path, format, options).unwrap();
    for Image { metadata, shape, dtype, pixels } in images {
        writer.write(&ImageView { metadata, shape: *shape, dtype: *dtype, pixels }).unwrap();
    }
    writer.finish().unwrap();
    open(path, &OpenOptions { format: Some(format.to_owned()), ..OpenOptions::default() }).unwrap()
}

/// A table of names, x and y.
fn table(folder: &Path, cells: &[(String, f64, f64)]) -> PathBuf {
    let mut text = "ImageName,Location_Center_X,Location_Center_Y\n".to_owned();
    for (name, x, y) in cells {
        writeln!(text, "{name},{x},{y}").unwrap();
    }
    let path = folder.join("cells.csv");
    std::fs::write(&path, text).unwrap();
    path
}

/// The box of a cell by slicing the whole image, zeros where it is outside.
fn sliced(image: &Image, start: [i64; 2], size: [usize; 2], region: &Region) -> Vec<u8> {
    let (bytes, [_, c, z, height, width]) = (image.dtype.size(), image.shape.0);
    let mut out = Vec::with_capacity(region.pixels() * bytes);
    let [t0, c0, z0, y0, x0] = region.start;
    let [nt, nc, nz, ny, nx] = region.size;
    assert!(y0 + ny <= size[0] && x0 + nx <= size[1]);
    for (ti, ci, zi) in
        (t0..t0 + nt).flat_map(|t| (c0..c0 + nc).flat_map(move |c| (z0..z0 + nz).map(move |z| (t, c, z))))
    {
        for yi in y0..y0 + ny {
            for xi in x0..x0 + nx {
                let [y, x] = [start[0] + yi as i64, start[1] + xi as i64];
                if y < 0 || x < 0 || y >= height as i64 || x >= width as i64 {
                    out.extend(std::iter::repeat_n(0, bytes));
                    continue;
                }
                let at = (((ti * c + ci) * z + zi) * height + y as usize) * width + x as usize;
                out.extend_from_slice(&image.pixels[at * bytes..(at + 1) * bytes]);
            }
        }
    }
    out
}

/// The first row, or column, of a box, as it is documented, and whether it lies inside.
fn documented(at: f64, size: usize, whole: usize, edge: Edge) -> (i64, bool) {
    let start = (at + 0.5).floor() as i64 - size as i64 / 2;
    let last = whole as i64 - size as i64;
    let moved = if edge == Edge::Shift { start.clamp(0, last) } else { start };
    (moved, (0..=last).contains(&start))
}

/// Reads boxes of cells in one call.
fn read(store: &dyn Store, requests: &[Request], scratch: &mut Scratch) -> Result<Vec<Vec<u8>>> {
    let mut out = vec![];
    for request in requests {
        let info = store.check(request)?;
        out.push((request.region, info.dtype, vec![0xa5; request.region.pixels() * info.dtype.size()]));
    }
    let targets =
        out.iter_mut().map(|(region, dtype, data)| (*region, *dtype, data.as_mut_slice())).collect();
    store.read(requests, scratch, &mut CopySink::new(targets))?;
    Ok(out.into_iter().map(|(.., data)| data).collect())
}

/// A part of a row.
fn part(random: &mut ChaCha8Rng, shape: Shape) -> Region {
    let mut region = shape.full();
    if below(random, 3) > 0 {
        for axis in 0..5 {
            region.start[axis] = below(random, shape.0[axis]);
            region.size[axis] = 1 + below(random, shape.0[axis] - region.start[axis]);
        }
    }
    region
}

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
    // What is looked up once is known by then.
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

/// Of pixels that are stored as they are, the rows between two cells of an image are not read.
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
    // What is looked up once is known by then.
    let apart: Vec<_> =
        requests.iter().map(|one| read(&store, &[*one], &mut scratch).unwrap().remove(0)).collect();
    let before = bytes_read();
    assert!(read(&store, &requests, &mut scratch).unwrap() == apart);
    assert_eq!(bytes_read() - before, (2 * 16 * side * 2) as u64);
}

/// What a table is refused for names the file, and the row where it is one.
#[test]
fn bad_tables_say_what_is_wrong() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let dir = tempfile::tempdir().unwrap();
    let images: Vec<Image> = ["a", "b", "c"]
        .map(|name| Image::noise(name, Shape::plane(40, 40), PixelType::U8, &mut random))
        .into();
    let set = dir.path().join("set.parquet");
    drop(write(&set, "parquet", &WriteOptions::default(), &images));
    let cells = |text: &str, options: &CellOptions| {
        let path = dir.path().join("cells.csv");
        std::fs::write(&path, text).unwrap();
        CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &path, options)
    };
    let small = CellOptions { size: [8, 8], ..CellOptions::default() };
    let refusal = |text: &str, options: &CellOptions| match cells(text, options) {
        Ok(store) => panic!("{} cells were found", store.len()),
        Err(error) => error.to_string(),
    };
    let bad = "image,x,y,ObjectNumber\na,1,2,1\nb,,2,1\nnone,1,2,1\na,40,2,2\nc,nan,3,1\n";
    let error = refusal(bad, &small);
    for part in [
        "cells.csv: 4 of 5 cells cannot be cut out",
        "1 cell of no image of this set: row 2 (image none)",
        "2 cells without a position (null, NaN or infinite): row 1 (image b), row 4 (image c)",
        "1 cell outside of the image: row 3 (image a) at y 2, x 40",
        "unmatched skip",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let far = refusal("image,x,y\na,1e300,2\n", &small);
    assert!(far.contains("at y 2, x 1e300"), "{far}");
    let skipping = CellOptions { unmatched: Unmatched::Skip, ..small.clone() };
    let store = cells(bad, &skipping).unwrap();
    assert_eq!((store.len(), store.name(0).unwrap()), (1, "a/cell-1".to_owned()));
    let report = store.cells().report();
    assert_eq!(report.images_without_cells.first, ["b", "c"]);
    assert_eq!((report.cells, report.images, report.rows), (1, 1, 5));
    assert!(refusal("image,x,y\nnone,1,1\n", &skipping).contains("1 of 1 cell cannot be cut out"));
    let twice = refusal("image,x,y,ObjectNumber\na,1,2,7\nb,1,2,7\na,3,4,7\n", &small);
    assert!(
        twice.contains("row 2: rows 0 and 2 are both cell 7 (column \"ObjectNumber\") of the image a"),
        "{twice}"
    );
    // A column of that name may hold classes.
    assert_eq!(cells("image,x,y,label\na,1,2,1\na,3,4,1\n", &small).unwrap().name(1).unwrap(), "a/cell-1");
    let whole = CellOptions { size: [41, 8], ..small.clone() };
    let large = refusal("image,x,y\na,1,2\n", &whole);
    assert!(large.contains("40 x 40 pixels") && large.contains("edge pad"), "{large}");
    let padded = CellOptions { edge: Edge::Pad, ..whole };
    assert_eq!(cells("image,x,y\na,1,2\n", &padded).unwrap().len(), 1);
    let dropped = CellOptions { edge: Edge::Drop, ..small.clone() };
    assert!(refusal("image,x,y\na,1,2\n", &dropped).contains("no cell is left"));
    assert!(refusal("x,y\n1,2\n", &small).contains("which image a cell is of"));
    assert!(refusal("image,left,top\na,1,2\n", &small).contains("name both, x and y"));
    assert!(refusal("image,x,y\na,one,2\n", &small).contains("\"x\" holds no numbers"));
    assert!(refusal("image,x,y\na,1\n", &small).contains("line 2: 2 fields"));
    let um = CellOptions { unit: Unit::Um, ..small.clone() };
    assert!(refusal("image,x,y\na,1,2\n", &um).contains("how large a pixel is"));
    let by = |names: &[&str]| CellOptions {
        by: names.iter().map(|&name| name.to_owned()).collect(),
        ..small.clone()
    };
    assert!(refusal("Well,x,y\nA01,1,2\n", &by(&["Wells"])).contains("no column \"Wells\""));
    let error = refusal("Plate,Well,x,y\nP,A01,1,2\n", &by(&["Plate", "Well"]));
    assert!(error.contains("\"Plate\" beside the images"), "{error}");
    for size in [[0, 8], [8, usize::MAX]] {
        assert!(refusal("image,x,y\na,1,2\n", &CellOptions { size, ..small.clone() }).contains("crops of"));
    }
    let mask = CellOptions { mask: Mask::Zero, ..small };
    assert!(refusal("image,x,y\na,1,2\n", &mask).contains("a mask needs label images"));
}

/// A table of the program is one like those of files.
#[test]
fn tables_in_memory_are_tables_of_cells() {
    use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    use wellread_store::cells::Cells;
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let dir = tempfile::tempdir().unwrap();
    let image = Image::noise("a", Shape::plane(20, 20), PixelType::U8, &mut random);
    let set = write(&dir.path().join("set.parquet"), "parquet", &WriteOptions::default(), &[image]);
    let batch = |rows: usize| {
        let columns: [(&str, ArrayRef); 3] = [
            ("image", Arc::new(StringArray::from(vec!["a"; rows]))),
            ("x", Arc::new(Float64Array::from(vec![4.0; rows]))),
            ("y", Arc::new(Float64Array::from(vec![5.0; rows]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let options = CellOptions { size: [8, 8], ..CellOptions::default() };
    let cells = Cells::find_in_memory(&*set, &[batch(2), batch(1)], &options).unwrap();
    assert_eq!((cells.len(), cells.table_rows()), (3, &[0, 1, 2][..]));
    let error = Cells::find_in_memory(&*set, &[batch(0)], &options).unwrap_err();
    assert!(error.is_choice() && error.to_string().contains("no rows"), "{error}");
}

/// Keys of plate, well and site tell images; columns of both stand beside the cells.
#[test]
fn cells_are_joined_by_columns_and_have_them() {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let images: Vec<Image> = ["p", "q", "r"]
        .map(|name| Image::noise(name, Shape::plane(30, 30), PixelType::U8, &mut random))
        .into();
    let dir = tempfile::tempdir().unwrap();
    let wells: ArrayRef = Arc::new(StringArray::from(vec!["A01", "A01", "B02"]));
    let sites: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 1]));
    let features = RecordBatch::try_from_iter([("Metadata_Well", wells), ("Metadata_Site", sites)]).unwrap();
    let options = WriteOptions { features: Some(features), ..WriteOptions::default() };
    let set = dir.path().join("set.parquet");
    drop(write(&set, "parquet", &options, &images));
    let path = dir.path().join("cells.tsv");
    let text = "Well\tSite\tCells_Location_Center_X\tCells_Location_Center_Y\tarea\n\
                B02\t1.0\t10\t11\t5.5\nA01\t2.0\t12\t13\t6.5\nA01\t1.0\t14\t15\t7.5\n";
    std::fs::write(&path, text).unwrap();
    let options = CellOptions { size: [4, 4], ..CellOptions::default() };
    for by in [vec![], vec!["Well".to_owned(), "Site".to_owned()]] {
        let images = open(&set, &OpenOptions::default()).unwrap();
        let store = CellsStore::open(images, &path, &CellOptions { by, ..options.clone() }).unwrap();
        let names: Vec<String> = (0..3).map(|row| store.name(row).unwrap()).collect();
        assert_eq!(names, ["r/cell-0", "q/cell-1", "p/cell-2"]);
        assert_eq!(store.metadata(1).unwrap().name, "q/cell-1");
        let columns = wellread_store::features::all(&store).unwrap().unwrap();
        let names = store.hints().feature_names();
        assert_eq!(names.len(), 7);
        assert_eq!(columns.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>(), names);
        let areas = columns.column_by_name("area").unwrap().as_primitive::<Float64Type>();
        assert_eq!(areas.values(), &[5.5, 6.5, 7.5]);
        let sites = columns.column_by_name("Metadata_Site").unwrap().as_primitive::<Int64Type>();
        assert_eq!(sites.values(), &[1, 2, 1]);
    }
    // A table that is long enough for several threads, sorted and not.
    let (keys, mut long) = ([("B02", 1, 'r'), ("A01", 2, 'q'), ("A01", 1, 'p')], Vec::new());
    for row in 0..20_000_usize {
        long.push(if row < 10_000 { row / 4000 } else { row * 7 % 3 });
    }
    let mut text = "Well\tSite\tx\ty\n".to_owned();
    for &key in &long {
        writeln!(text, "{}\t{}\t12\t13", keys[key].0, keys[key].1).unwrap();
    }
    let path_of_long = dir.path().join("long.tsv");
    std::fs::write(&path_of_long, text).unwrap();
    let images = open(&set, &OpenOptions::default()).unwrap();
    let store = CellsStore::open(images, &path_of_long, &options).unwrap();
    assert_eq!(store.len(), long.len());
    for (row, &key) in long.iter().enumerate().step_by(97) {
        assert_eq!(store.name(row).unwrap(), format!("{}/cell-{row}", keys[key].2));
    }
    let images = open(&set, &OpenOptions::default()).unwrap();
    let by = vec!["Well".to_owned()];
    let refused = CellsStore::open(images, &path_of_long, &CellOptions { by, ..options.clone() });
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("row 4000: could be of either of two images, p and q"), "{error}");
    // Of the well alone there are two images.
    let images = open(&set, &OpenOptions::default()).unwrap();
    let by = vec!["Well".to_owned()];
    let error = CellsStore::open(images, &path, &CellOptions { by, ..options }).err().unwrap().to_string();
    assert!(error.contains("row 1: could be of either of two images, p and q"), "{error}");
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

/// A label image gives the cells, and its labels mask them: pixels of others are 0, or one more channel says which are theirs.
#[test]
fn label_images_are_cells_and_masks() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let shape = Shape([1, 2, 1, 40, 40]);
    let images: Vec<Image> =
        ["f1", "f2"].map(|name| Image::noise(name, shape, PixelType::U16, &mut random)).into();
    // Two touching rectangles, and one at the corner.
    let label = |y: usize, x: usize| match (y, x) {
        (10..20, 10..16) => 3,
        (10..20, 16..22) => 9,
        (36.., 36..) => 200,
        _ => 0,
    };
    let labels = [
        Image::labels("f2_MaskCells", Shape::plane(40, 40), |y, x| label(y, x) / 3),
        Image::labels("f1_MaskCells", Shape::plane(40, 40), label),
    ];
    let dir = tempfile::tempdir().unwrap();
    let (set, masks) = (dir.path().join("set"), dir.path().join("masks"));
    drop(write(&set, "tiff", &WriteOptions::default(), &images));
    drop(write(&masks, "tiff", &WriteOptions::default(), &labels));
    let cells = |mask, edge, size| {
        let options = CellOptions { mask, edge, size, ..CellOptions::default() };
        CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &masks, &options).unwrap()
    };
    let plain = cells(Mask::None, Edge::Pad, [9, 9]);
    let names: Vec<String> = (0..plain.len()).map(|row| plain.name(row).unwrap()).collect();
    assert_eq!(names, ["f1/cell-3", "f1/cell-9", "f1/cell-200", "f2/cell-1", "f2/cell-3", "f2/cell-66"]);
    let columns = plain.hints().feature_names();
    assert_eq!(
        columns,
        ["ImageName", "ObjectNumber", "Location_Center_X", "Location_Center_Y", "AreaShape_Area"]
    );
    // The first cell's centre is row 14.5, column 12.5: the box starts at row 15 - 4, column 13 - 4.
    let starts = [[11, 9], [11, 15], [34, 34], [11, 9], [11, 15], [34, 34]];
    let ids = [3, 9, 200, 1, 3, 66];
    for mask in [Mask::None, Mask::Zero, Mask::Channel] {
        let store = cells(mask, Edge::Pad, [9, 9]);
        let mut scratch = Scratch::default();
        for (row, (start, id)) in starts.into_iter().zip(ids).enumerate() {
            let image = &images[row / 3];
            let of_image = &labels[1 - row / 3];
            let own = |y: i64, x: i64| {
                let inside = (0..40).contains(&y) && (0..40).contains(&x);
                inside && {
                    let at = 2 * (y * 40 + x) as usize;
                    i32::from(u16::from_le_bytes([of_image.pixels[at], of_image.pixels[at + 1]])) == id
                }
            };
            let shape = Shape([1, if mask == Mask::Channel { 3 } else { 2 }, 1, 9, 9]);
            assert_eq!(store.row_info(row).unwrap().shape, shape);
            let mut wanted = sliced(image, start, [9, 9], &Shape([1, 2, 1, 9, 9]).full());
            if mask == Mask::Channel {
                wanted.resize(3 * 81 * 2, 0);
            }
            for i in 0..shape.pixels() {
                let [y, x] = [i / 9 % 9, i % 9].map(|i| i as i64);
                let own = own(start[0] + y, start[1] + x);
                if mask == Mask::Zero && !own {
                    wanted[2 * i..2 * i + 2].fill(0);
                }
                if mask == Mask::Channel && i >= 2 * 81 {
                    wanted[2 * i] = u8::from(own);
                }
            }
            let (_, whole) = read_image(&store, row).unwrap();
            assert!(whole == wanted, "{mask} row {row}");
            // A part of it, with and without the last channel.
            for _ in 0..20 {
                let region = part(&mut random, shape);
                let mut got = vec![];
                read_region(&store, row, &region, &mut scratch, &mut got).unwrap();
                let mut expected = vec![0; region.pixels() * 2];
                wellread_image::clip_runs(&shape.full(), &region, |from, to, n| {
                    expected[2 * to..2 * (to + n)].copy_from_slice(&wanted[2 * from..2 * (from + n)]);
                });
                assert!(got == expected, "{mask} row {row} {region:?}");
            }
        }
    }
    // A table of its own, with the same label images as masks.
    let table = dir.path().join("cells.csv");
    std::fs::write(&table, "ImageName,x,y,ObjectNumber\nf1,12.5,14.5,3\n").unwrap();
    let options =
        CellOptions { mask: Mask::Zero, masks: Some(masks.clone()), size: [9, 9], ..CellOptions::default() };
    let images_again = || open(&set, &OpenOptions::default()).unwrap();
    let store = CellsStore::open(images_again(), &table, &options).unwrap();
    assert_eq!(read_image(&store, 0).unwrap(), read_image(&cells(Mask::Zero, Edge::Pad, [9, 9]), 0).unwrap());
    std::fs::write(&table, "ImageName,x,y\nf1,12.5,14.5\n").unwrap();
    let error = CellsStore::open(images_again(), &table, &options).err().unwrap().to_string();
    assert!(error.contains("needs the number of each cell"), "{error}");
    // Of another size.
    let other = [Image::labels("f1", Shape::plane(20, 40), label)];
    let others = dir.path().join("others.parquet");
    drop(write(&others, "parquet", &WriteOptions::default(), &other));
    std::fs::write(&table, "ImageName,x,y,ObjectNumber\nf1,12.5,14.5,3\n").unwrap();
    let options = CellOptions { masks: Some(others), ..options };
    let error = CellsStore::open(images_again(), &table, &options).err().unwrap().to_string();
    assert!(error.contains("1x1x1x20x40") && error.contains("rows and columns of its image"), "{error}");
}

/// One value for all cells of an image would make them one: a binary mask is refused, a set of one cell an image is not.
#[test]
fn binary_masks_are_no_label_images() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let images: Vec<Image> =
        ["f1", "f2"].map(|name| Image::noise(name, Shape::plane(40, 40), PixelType::U16, &mut random)).into();
    drop(write(&set, "tiff", &WriteOptions::default(), &images));
    let cells = |folder: &str, label: fn(usize, usize) -> u16| {
        let masks = dir.path().join(folder);
        let labels = ["f1_mask", "f2_mask"].map(|name| Image::labels(name, Shape::plane(40, 40), label));
        drop(write(&masks, "tiff", &WriteOptions::default(), &labels));
        let options = CellOptions { size: [9, 9], ..CellOptions::default() };
        CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &masks, &options)
    };
    // Two rectangles, both 255.
    let error =
        cells("binary", |y, x| if y < 12 && !(12..=20).contains(&x) { 255 } else { 0 }).err().unwrap();
    let said = error.to_string();
    assert!(error.is_choice() && error.row_index() == Some(0), "{said}");
    assert!(
        said.contains("all pixels but 0 are 255, here in 2 pieces") && said.contains("skimage"),
        "{said}"
    );
    // Each with a number of its own, and one cell in each image.
    let numbered = |y: usize, x: usize| if y < 12 { u16::from(x < 12) + 2 * u16::from(x > 20) } else { 0 };
    assert_eq!(cells("numbered", numbered).unwrap().len(), 4);
    assert_eq!(cells("alone", |y, x| u16::from(y < 12 && x < 12)).unwrap().len(), 2);
}

/// A table that counts its cells in another way than the label images would give black crops: the first one that is read says so.
#[test]
fn numbers_that_are_no_labels_are_refused_where_they_are_read() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let dir = tempfile::tempdir().unwrap();
    let (set, masks) = (dir.path().join("set"), dir.path().join("masks"));
    let image = Image::noise("f1", Shape::plane(40, 40), PixelType::U16, &mut random);
    let labels = Image::labels("f1_mask", Shape::plane(40, 40), |y, x| if y < 12 && x < 12 { 3 } else { 0 });
    drop(write(&set, "tiff", &WriteOptions::default(), &[image]));
    drop(write(&masks, "tiff", &WriteOptions::default(), &[labels]));
    let table = dir.path().join("cells.csv");
    std::fs::write(&table, "ImageName,x,y,ObjectNumber,parent\nf1,6,6,3,1\nf1,8,8,4,3\n").unwrap();
    for mask in [Mask::Zero, Mask::Channel] {
        let options =
            CellOptions { mask, masks: Some(masks.clone()), size: [9, 9], ..CellOptions::default() };
        let cells = |options: &CellOptions| {
            CellsStore::open(open(&set, &OpenOptions::default()).unwrap(), &table, options).unwrap()
        };
        let store = cells(&options);
        assert!(read_image(&store, 0).is_ok());
        let error = read_image(&store, 1).unwrap_err().to_string();
        for part in [
            "masks",
            "label image f1_mask has no pixel of label 4",
            "the cell f1/cell-4, row 1 of the cells",
            "(label)",
            "unmatched skip",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        // A part of a crop need not have one.
        let (mut scratch, mut pixels) = (Scratch::default(), vec![]);
        let corner = Region { start: [0; 5], size: [1, 1, 1, 2, 2] };
        assert!(read_region(&store, 1, &corner, &mut scratch, &mut pixels).is_ok());
        let skipping = CellOptions { unmatched: Unmatched::Skip, ..options.clone() };
        let (_, pixels) = read_image(&cells(&skipping), 1).unwrap();
        assert_eq!(pixels.iter().all(|&byte| byte == 0), mask == Mask::Zero, "{mask}");
        // Where the column is named, it has the numbers of the labels: the second row alone has that one.
        std::fs::write(dir.path().join("own.csv"), "ImageName,x,y,ObjectNumber,parent\nf1,8,8,4,3\n")
            .unwrap();
        let named = CellOptions { label: Some("parent".into()), ..options };
        let images = open(&set, &OpenOptions::default()).unwrap();
        let store = CellsStore::open(images, &dir.path().join("own.csv"), &named).unwrap();
        assert!(read_image(&store, 0).unwrap().1.iter().any(|&byte| byte != 0));
    }
}
