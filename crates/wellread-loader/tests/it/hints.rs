//! A store's hints pass through every store that wraps it.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Int32Array, RecordBatch};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_image::{PixelType, Shape};
use wellread_loader::{Cache, Dataset, MemoryStore};
use wellread_store::planes::PlaneStore;
use wellread_store::subset::Subset;
use wellread_store::{
    FeatureTable, Hints, LeftOut, PageCache, Result, RowFacts, RowHints, Store, delegate_store,
};

/// A store with something to say about everything, and of each row something else.
struct Odd {
    inner: MemoryStore,
    pages: Arc<Pages>,
}

/// The requests for decoded pixels.
struct Pages {
    most: AtomicUsize,
    forgotten: AtomicUsize,
}

impl PageCache for Pages {
    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
    fn keep_at_most(&self, bytes: usize) {
        self.most.fetch_min(bytes, Ordering::Relaxed);
    }
    fn forget_all(&self) {
        self.forgotten.fetch_add(1, Ordering::Relaxed);
    }
}

impl Store for Odd {
    delegate_store!(self => self.inner; path, len, metadata, layout, files, row_info, read);

    fn format(&self) -> &'static str {
        "odd"
    }
    fn has_checksums(&self) -> bool {
        true
    }
    fn hints(&self) -> Hints<'_> {
        Hints { rows_per_read: 7, pages: Some(&*self.pages), columns: Some(self), ..Hints::default() }
    }
    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        Ok(RowHints::new(self, row))
    }
}

fn nested() -> LeftOut {
    LeftOut { name: "nested".to_owned(), why: "nested values" }
}

impl FeatureTable for Odd {
    fn feature_names(&self) -> Vec<String> {
        vec!["well".to_owned()]
    }
    fn columns_left_out(&self) -> Vec<LeftOut> {
        vec![nested()]
    }
    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        assert_eq!(names, self.feature_names());
        let wells: Int32Array = (0..self.len()).map(|row| Some(10 * row as i32)).collect();
        Ok(Some(RecordBatch::try_from_iter([("well", Arc::new(wells) as _)]).unwrap()))
    }
}

impl RowFacts for Odd {
    fn position(&self, row: usize) -> u64 {
        1000 - 10 * row as u64
    }
    fn grid(&self, row: usize) -> Option<[usize; 2]> {
        Some([row + 3, row + 5])
    }
    fn working_bytes(&self, row: usize) -> Result<usize> {
        Ok(11 * row + 1)
    }
}

/// Four images of three planes, and the requests for their decoded pixels.
fn odd() -> (Box<dyn Store>, Arc<Pages>) {
    let mut inner = MemoryStore::new("odd");
    for i in 0..4 {
        inner.push(format!("{i}"), Shape([1, 1, 3, 2, 2]), PixelType::U8, vec![i; 12]).unwrap();
    }
    let pages = Arc::new(Pages { most: AtomicUsize::new(12_345), forgotten: AtomicUsize::new(0) });
    (Box::new(Odd { inner, pages: Arc::clone(&pages) }), pages)
}

/// Whether a store, each row of which is of one of the images, says all that they say.
fn check(store: &dyn Store, pages: &Pages, images: &[usize]) {
    assert_eq!(store.len(), images.len());
    assert!(store.has_checksums());
    let hints = store.hints();
    assert_eq!(hints.rows_per_read, 7);
    assert_eq!(hints.feature_names(), ["well"]);
    assert_eq!(hints.columns_left_out(), [nested()]);
    let columns = hints.features(&hints.feature_names()).unwrap().unwrap();
    let wells: Vec<usize> =
        columns.column(0).as_primitive::<Int32Type>().values().iter().map(|&well| well as usize).collect();
    assert_eq!(wells, images.iter().map(|image| 10 * image).collect::<Vec<_>>());
    assert_eq!(hints.page_cache(), 12_345);
    hints.limit_page_cache(99);
    hints.forget_pages();
    assert_eq!((hints.page_cache(), pages.most(), pages.forgotten.load(Ordering::Relaxed)), (99, 99, 1));
    for (row, &image) in images.iter().enumerate() {
        let hints = store.row_hints(row).unwrap();
        assert_eq!(hints.position(), 1000 - 10 * image as u64);
        assert_eq!(hints.grid(), Some([image + 3, image + 5]));
        assert_eq!(hints.working_bytes().unwrap(), 11 * image + 1);
    }
}

#[test]
fn hints_pass_through_every_wrapper() {
    let (store, pages) = odd();
    check(&*store, &pages, &[0, 1, 2, 3]);
    let (store, pages) = odd();
    let subset = Subset::of(store, vec![3, 0, 2]);
    check(&subset, &pages, &[3, 0, 2]);
    assert!(subset.row_hints(3).is_err());
    let (store, pages) = odd();
    let planes = PlaneStore::new(store).unwrap();
    check(&planes, &pages, &[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    assert!(planes.row_hints(12).is_err());
    let (store, pages) = odd();
    let cached = Dataset::from_store(store).with_cache(&Cache::MEMORY).unwrap();
    check(cached.store(), &pages, &[0, 1, 2, 3]);
    // One in the other.
    let (store, pages) = odd();
    let planes = PlaneStore::new(Box::new(Subset::of(store, vec![2, 1]))).unwrap();
    let cached = Dataset::from_store(Box::new(planes)).with_cache(&Cache::MEMORY).unwrap();
    check(cached.store(), &pages, &[2, 2, 2, 1, 1, 1]);
}

#[test]
fn a_store_with_nothing_to_say_says_nothing() {
    let mut store = MemoryStore::new("plain");
    store.push("a", Shape::plane(2, 3), PixelType::U16, vec![0; 12]).unwrap();
    let hints = store.hints();
    hints.limit_page_cache(0);
    hints.forget_pages();
    assert_eq!((hints.rows_per_read, hints.page_cache()), (1, 0));
    assert!(hints.feature_names().is_empty() && hints.columns_left_out().is_empty());
    assert!(hints.features(&[]).unwrap().is_none());
    let row = store.row_hints(0).unwrap();
    assert_eq!((row.position(), row.grid(), row.working_bytes().unwrap()), (0, None, 36));
}
