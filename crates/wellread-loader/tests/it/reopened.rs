//! A set that is opened again has the rows that it had, or is refused.

use crate::support::{images, parquet, written};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wellread_image::{PixelType, Shape};
use wellread_loader::{Dataset, MemoryStore};
use wellread_store::WriteOptions;

const SHAPE: Shape = Shape::plane(4, 4);

/// A folder with a file for each of `n` images.
fn folder(path: &Path, n: usize) -> Dataset {
    written(path, "tiff", &images(n, SHAPE, PixelType::U8), &WriteOptions::default())
}

fn remove(set: &Dataset, row: usize) {
    std::fs::remove_file(set.store().row_hints(row).unwrap().file().unwrap()).unwrap();
}

fn said(set: &Dataset) -> String {
    set.reopened().unwrap_err().to_string()
}

#[test]
fn a_folder_that_lost_a_file_is_another_set() {
    let dir = tempfile::tempdir().unwrap();
    let set = folder(&dir.path().join("set"), 20);
    let names: Vec<String> = (0..20).map(|row| set.name(row).unwrap()).collect();
    set.reopened().unwrap();
    // Cells aside, each set that is made of others compares those.
    let some = set.select(vec![7, 2]).unwrap();
    let both = Dataset::concat(&[set.clone(), folder(&dir.path().join("other"), 3)]).unwrap();
    let digests = set.row_digests().clone();
    remove(&set, 5);
    let wanted = format!("it had 20 images and has 19, and row 5 is now {}", names[6]);
    for set in [&set, &some, &both] {
        let said = said(set);
        assert!(said.contains(&wanted) && said.contains("open the dataset anew"), "{said}");
    }
    let now = Dataset::open(dir.path().join("set")).unwrap();
    assert!(digests.check(&now).unwrap_err().to_string().contains(&wanted));
    now.reopened().unwrap();
    remove(&now, 18);
    assert!(said(&now).contains("it had 19 images and has 18, and row 18 is gone"), "{}", said(&now));
}

#[test]
fn of_many_rows_the_block_is_told_that_has_another() {
    let dir = tempfile::tempdir().unwrap();
    let set = folder(&dir.path().join("set"), 1500);
    remove(&set, 101);
    let said = said(&set);
    let wanted = "it had 1500 images and has 1499, and one of the rows 100 to 101 is another";
    assert!(said.contains(wanted), "{said}");
}

#[test]
fn files_that_are_written_again_make_no_other_set() {
    let dir = tempfile::tempdir().unwrap();
    let set = folder(&dir.path().join("set"), 4);
    for row in 0..4 {
        let file = set.store().row_hints(row).unwrap().file().unwrap();
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, bytes).unwrap();
    }
    assert_eq!(set.reopened().unwrap().len(), 4);
}

/// Rows of tables have no files: they are compared by names that were read before.
#[test]
fn tables_are_compared_by_names_where_these_were_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set.parquet");
    let store = images(20, SHAPE, PixelType::U8);
    let set = parquet(&path, &store, None);
    set.remember();
    let mut reversed = MemoryStore::new("reversed");
    for row in (0..20).rev() {
        let (info, pixels) = wellread_store::read_image(&store, row).unwrap();
        let name = wellread_store::Store::name(&store, row).unwrap();
        reversed.push(name, info.shape, info.dtype, pixels).unwrap();
    }
    set.reopened().unwrap();
    std::fs::remove_file(&path).unwrap();
    parquet(&path, &reversed, None);
    let said = said(&set);
    assert!(said.contains("it still has 20 images, and row 0 is now B_19"), "{said}");
}

/// Names that cannot be known give no alarm; other numbers of rows always do.
#[test]
fn names_that_were_not_read_are_not_compared() {
    let grown = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&grown);
    let open = move || -> wellread_store::Result<Box<dyn wellread_store::Store>> {
        Ok(Box::new(images(if now.load(Ordering::Relaxed) { 9 } else { 8 }, SHAPE, PixelType::U8)))
    };
    let set = Dataset::from_fn(open).unwrap();
    set.reopened().unwrap();
    grown.store(true, Ordering::Relaxed);
    let said = said(&set);
    assert!(said.contains("it had 8 images and has 9 (hint"), "{said}");
}
