use super::*;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{ImageView, WriteOptions};

/// That pixels are read here, and not by Lance, could only be told by a clock otherwise.
#[test]
fn numbers_are_read_by_this_crate_and_text_by_lance() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.lance");
    let mut writer = crate::writer::create(&path, &WriteOptions::default()).unwrap();
    let metadata = ImageMetadata { name: "a".into(), ..ImageMetadata::default() };
    let shape = Shape::plane(50, 60);
    let pixels: Vec<u8> = (0..shape.pixels() * 2).map(|i| (i % 97) as u8).collect();
    for _ in 0..5 {
        let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels };
        writer.write(&image).unwrap();
    }
    writer.finish().unwrap();
    let table = LanceTable::open(&path, &OpenOptions::default()).unwrap();
    let path = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let pixels = [path(&["ome_image", "chunks", "x"]), path(&["ome_image", "chunks", "pixels"])];
    assert!(table.direct(&table.plan(&pixels).unwrap(), 0).is_some());
    let name = [path(&["ome_image", "name"])];
    assert!(table.direct(&table.plan(&name).unwrap(), 0).is_none());
    let size = path(&["ome_image", "pixels_meta", "size_x"]);
    let text = path(&["ome_image", "pixels_meta", "type"]);
    assert!(table.is_constant(&[size.clone(), text, name[0].clone()]));
    // Lists, structs and missing columns are none.
    for other in [&["ome_image", "chunks", "x"][..], &["ome_image", "pixels_meta"], &["ome_image", "nothing"]]
    {
        assert!(!table.is_constant(&[size.clone(), path(other)]), "{other:?}");
    }
    let mut rows = 0;
    table
        .read(Rows::Chosen(&[0, 2, 3]), &name, &mut FormatContext::default(), &mut |batch| {
            rows += batch.num_rows();
            Ok(())
        })
        .unwrap();
    assert_eq!(rows, 3);
    let absent = [path(&["ome_image", "nothing"])];
    let error = table
        .read(Rows::Range(0..1), &absent, &mut FormatContext::default(), &mut |_| Ok(()))
        .unwrap_err()
        .to_string();
    assert!(error.contains("no column ome_image.nothing"), "{error}");
}

#[test]
fn datasets_of_newer_releases_are_read_by_lance() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.lance");
    let mut writer = crate::writer::create(&path, &WriteOptions::default()).unwrap();
    let metadata = ImageMetadata::default();
    let shape = Shape::plane(5, 6);
    writer.write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &[7; 30] }).unwrap();
    writer.finish().unwrap();
    let mut table = LanceTable::open(&path, &OpenOptions::default()).unwrap();
    assert!(table.is_tested && RELEASE.covers(&path, crate::LANCE), "what is written here was tested");
    let changed = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = table.dataset.manifest().clone();
        change(&mut manifest);
        is_tested(&path, &manifest)
    };
    let by = |library: &str, version: &str| {
        changed(&|manifest| {
            let writer = manifest.writer_version.as_mut().unwrap();
            (writer.library, writer.version) = (library.to_owned(), version.to_owned());
        })
    };
    assert!(by("lance", "14.0.9") && by("lance", "9.1.0") && by("other", "99.0.0"));
    assert!(!by("lance", "14.1.0") && !by("lance", "15.0.0"));
    let of = |minor| {
        changed(&|manifest| {
            let fragments = Arc::make_mut(&mut manifest.fragments);
            fragments[0].files[0].file_minor_version = minor;
        })
    };
    assert!(of(1) && of(2) && !of(3));
    // Pages of a format that is newer, and that this release of Lance reads, are followed all the same.
    let mut newer = table.dataset.manifest().clone();
    Arc::make_mut(&mut newer.fragments)[0].files[0].file_minor_version = 3;
    assert!(table.is_followed && is_of_tested_release(&path, &newer));

    table.is_tested = false;
    let pixels = [["ome_image", "chunks", "pixels"].map(str::to_owned).to_vec()];
    assert!(table.direct(&table.plan(&pixels).unwrap(), 0).is_none());
    let mut rows = 0;
    table
        .read(Rows::Range(0..1), &pixels, &mut FormatContext::default(), &mut |batch| {
            rows += batch.num_rows();
            Ok(())
        })
        .unwrap();
    assert_eq!(rows, 1);
    let mut each = |_, _: &dyn wellread_store::table::RowPieces| Ok(());
    let read = table.read_pieces(&[0], &pixels, &mut FormatContext::default(), &mut each).unwrap();
    assert_eq!(read, 0);
}

/// Calls `each` with batches of `rows` rows, of all columns, as Lance decodes them.
fn each_batch(table: &LanceTable, rows: u32, each: &mut dyn FnMut(RecordBatch)) {
    let columns: Vec<_> = table.schema().fields().iter().map(|f| vec![f.name().clone()]).collect();
    let plan = table.plan(&columns).unwrap();
    for (index, fragment) in table.fragments.iter().enumerate() {
        let positions: Vec<u32> = (0..fragment.lance.physical_rows.unwrap() as u32).collect();
        for block in positions.chunks(rows as usize) {
            table
                .read_by_engine(&plan, index, block, &mut |batch| {
                    each(batch);
                    Ok(())
                })
                .unwrap();
        }
    }
}

#[test]
fn a_large_set_has_several_fragments() {
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = ["a.lance", "b.lance"].map(|name| dir.path().join(name));
    let mut writer = crate::writer::create(&from, &WriteOptions::default()).unwrap();
    let shape = Shape::plane(5, 6);
    for row in 0..20 {
        let metadata = ImageMetadata { name: format!("image {row}"), ..ImageMetadata::default() };
        let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &[row; 30] };
        writer.write(&image).unwrap();
    }
    writer.finish().unwrap();
    let one = LanceTable::open(&from, &OpenOptions::default()).unwrap();
    let (sender, receiver) = crossbeam_channel::unbounded();
    each_batch(&one, 4, &mut |batch| sender.send(batch).unwrap());
    drop(sender);
    // Among batches of 4 rows, the second is the one that reaches 7.
    crate::writer::write(&to, one.schema(), &receiver, 7).unwrap();
    let several = LanceTable::open(&to, &OpenOptions::default()).unwrap();
    let rows: Vec<_> = several.fragments.iter().map(|f| (f.lance.id, f.lance.physical_rows)).collect();
    assert_eq!(rows, [(0, Some(8)), (1, Some(8)), (2, Some(4))]);
    let all = |table: &LanceTable| {
        let mut batches = vec![];
        each_batch(table, 1, &mut |batch| batches.push(batch));
        batches
    };
    assert_eq!(all(&several), all(&one));
}

#[test]
fn null_rows_do_not_keep_this_crate_from_reading_the_others() {
    use arrow_array::StructArray;
    use arrow_array::cast::AsArray;
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = ["a.lance", "b.lance"].map(|name| dir.path().join(name));
    let mut writer = crate::writer::create(&from, &WriteOptions::default()).unwrap();
    let metadata = ImageMetadata { name: "a".into(), ..ImageMetadata::default() };
    let shape = Shape([1, 2, 1, 40, 30]);
    let pixels = |row: usize| (0..shape.pixels() * 2).map(|i| ((i + row) % 97) as u8).collect::<Vec<_>>();
    for row in 0..50 {
        let pixels = pixels(row);
        let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels };
        writer.write(&image).unwrap();
    }
    writer.finish().unwrap();
    let is_null = |row: usize| row % 7 == 3 || row < 2 || row == 49;
    let whole = LanceTable::open(&from, &OpenOptions::default()).unwrap();
    let (sender, receiver) = crossbeam_channel::unbounded();
    let mut row = 0;
    each_batch(&whole, 50, &mut |batch| {
        let at = batch.schema().index_of("ome_image").unwrap();
        let (fields, children, _) = batch.column(at).as_struct().clone().into_parts();
        let there: Vec<_> = (row..row + batch.num_rows()).map(|row| !is_null(row)).collect();
        row += batch.num_rows();
        let mut columns = batch.columns().to_vec();
        columns[at] = Arc::new(StructArray::new(fields, children, Some(there.into())));
        sender.send(RecordBatch::try_new(batch.schema(), columns).unwrap()).unwrap();
    });
    drop(sender);
    crate::writer::write(&to, whole.schema(), &receiver, u64::MAX).unwrap();
    let path = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let size = [path(&["ome_image", "pixels_meta", "size_x"])];
    assert!(LanceTable::open(&from, &OpenOptions::default()).unwrap().is_constant(&size));
    let table = LanceTable::open(&to, &OpenOptions::default()).unwrap();
    assert!(!table.is_constant(&size), "null in some rows");
    let columns = ["z", "c", "shape_y", "pixels"].map(|name| path(&["ome_image", "chunks", name]));
    let plan = table.plan(&columns).unwrap();
    let direct = table.direct(&plan, 0).expect("pages with null rows are known");
    // Against Lance, which has each row alone, in pairs, and all.
    for rows in [(0..50).collect::<Vec<u32>>(), vec![0], vec![3], vec![2, 3, 4], vec![1, 9, 10, 48, 49]] {
        let (mut ours, mut theirs) = (vec![], vec![]);
        direct
            .read(&rows, &mut FormatContext::default(), &mut |batch| {
                ours.push(batch);
                Ok(())
            })
            .unwrap();
        table
            .read_by_engine(&plan, 0, &rows, &mut |batch| {
                theirs.push(batch);
                Ok(())
            })
            .unwrap();
        let rows_of = |batches: &[RecordBatch]| -> Vec<String> {
            let mut texts = vec![];
            for batch in batches {
                let column = batch.column(0);
                for i in 0..column.len() {
                    let text = format!("{:?}", column.slice(i, 1));
                    texts.push(if column.is_null(i) { "null".into() } else { text });
                }
            }
            texts
        };
        let ours = rows_of(&ours);
        assert_eq!(ours, rows_of(&theirs), "{rows:?}");
        assert!(ours.iter().zip(&rows).all(|(text, row)| (text == "null") == is_null(*row as usize)));
    }
}

/// A dataset compressed by zstd with names so long that they are compressed too. Beside it its data file, and the places
/// of the sizes that compressed pieces claim.
fn compressed(folder: &Path) -> (PathBuf, PathBuf, Vec<usize>) {
    let path = folder.join("a.lance");
    let options =
        WriteOptions { compression: wellread_store::Compression::Zstd(3), ..WriteOptions::default() };
    let mut writer = crate::writer::create(&path, &options).unwrap();
    let shape = Shape::plane(50, 60);
    for row in 0..5u8 {
        let pixels: Vec<u8> = (0..shape.pixels() * 2).map(|i| (i / 7 % 97) as u8 + row).collect();
        let name: String = (0..40_000).map(|i| char::from(b'a' + (i * i / 7 % 23) as u8)).collect();
        let metadata = ImageMetadata { name: format!("{row}{name}"), ..ImageMetadata::default() };
        let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels };
        writer.write(&image).unwrap();
    }
    writer.finish().unwrap();
    let file = std::fs::read_dir(path.join(DATA)).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&file).unwrap();
    // Each stands before a frame.
    let frames = bytes.windows(12).enumerate();
    let frames = frames.filter(|(_, bytes)| bytes[8..] == [0x28, 0xb5, 0x2f, 0xfd] && bytes[4..8] == [0; 4]);
    let claims: Vec<usize> = frames.map(|(at, _)| at).collect();
    assert!(!claims.is_empty());
    (path, file, claims)
}

/// Reads a column of all rows by Lance, whoever else could read it.
fn read_by_lance(path: &Path, column: &[&str]) -> Result<usize> {
    let table = LanceTable::open(path, &OpenOptions::default())?;
    let columns = [column.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()];
    let plan = table.plan(&columns)?;
    let _ = plan.fragments[0].direct.set(None);
    let mut bytes = 0;
    table.read(Rows::Range(0..5), &columns, &mut FormatContext::default(), &mut |batch| {
        bytes += batch.get_array_memory_size();
        Ok(())
    })?;
    Ok(bytes)
}

/// Lance asks for as many bytes, and the process ends where there are not so many.
#[test]
fn pieces_that_claim_more_than_they_become_are_errors_before_lance_decodes_them() {
    const PIXELS: &[&str] = &["ome_image", "chunks", "pixels"];
    const NAME: &[&str] = &["ome_image", "name"];
    let dir = tempfile::tempdir().unwrap();
    let (path, file, claims) = compressed(dir.path());
    let good = std::fs::read(&file).unwrap();
    assert!(read_by_lance(&path, PIXELS).unwrap() >= 5 * 50 * 60 * 2);
    assert!(read_by_lance(&path, NAME).unwrap() >= 5 * 40_000);
    let mut found = [0; 2];
    for at in claims {
        let mut bytes = good.clone();
        // 32 TiB more.
        bytes[at + 5] = 0x20;
        std::fs::write(&file, &bytes).unwrap();
        for (column, found) in [PIXELS, NAME].into_iter().zip(&mut found) {
            if let Err(error) = read_by_lance(&path, column) {
                let error = error.to_string();
                assert!(error.contains("a.lance") && error.contains("larger than it can be"), "{error}");
                *found += 1;
            }
        }
    }
    assert!(found.iter().all(|&found| found > 0), "{found:?}");
}
