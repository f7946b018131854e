//! A store's hints pass through every store that wraps it.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Int32Array, RecordBatch, StringArray};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use wellread_image::{PixelType, Shape};
use wellread_loader::{Cache, Dataset, MemoryStore};
use wellread_store::cells::{CellOptions, CellSource, Cells, CellsStore};
use wellread_store::concat::{Concat, Part};
use wellread_store::place::WantedRanges;
use wellread_store::planes::PlaneStore;
use wellread_store::subset::Subset;
use wellread_store::{
    Error, FeatureTable, Hints, LeftOut, PageCache, ReadExtent, Renamed, Request, Result, RowCut, RowFacts,
    RowInfo, Store, check_request, default_answers, default_columns, delegate_store, unkept,
};

/// A store with something to say about everything, and of each row something else.
struct Odd {
    inner: MemoryStore,
    pages: Arc<Pages>,
}

/// The requests for decoded pixels, and the images that were asked for ahead.
struct Pages {
    most: AtomicUsize,
    forgotten: AtomicUsize,
    asked: Mutex<Vec<usize>>,
}

impl PageCache for Pages {
    fn max_bytes(&self) -> usize {
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
    delegate_store!(self => self.inner; path, len, name, metadata, layout, files, row_info, read);
    default_answers!(row_hints, scan);

    fn format(&self) -> &'static str {
        "odd"
    }
    fn remote_path(&self) -> Option<&Path> {
        Some(Path::new("far://odd"))
    }
    fn files_of(&self, rows: &[usize]) -> Result<Vec<PathBuf>> {
        Ok(rows.iter().map(|&row| file(row)).collect())
    }
    fn heads(&self, rows: &[usize], _: ReadExtent, _: &mut WantedRanges) {
        self.pages.asked.lock().unwrap().extend(rows);
    }
    fn ranges(&self, requests: &[Request], _: &mut WantedRanges) -> Result<()> {
        self.pages.asked.lock().unwrap().extend(requests.iter().map(|request| request.row));
        Ok(())
    }
    fn has_checksums(&self) -> bool {
        true
    }
    fn hints(&self) -> Hints<'_> {
        Hints { rows_per_read: 7, page_cache: Some(&*self.pages), columns: Some(self), ..Hints::default() }
    }
    /// It knows of the second image that its file has not the bytes for it.
    fn check(&self, request: &Request) -> Result<RowInfo> {
        if request.row == 1 {
            return Err(Error::new(self.path(), NO_BYTES).row(request.row));
        }
        check_request(self, request)
    }
}

const NO_BYTES: &str = "there are no bytes for this image";

/// A fact of each image that no conversion keeps.
const UNKEPT: [&str; 4] = ["filters", "masks", "objectives", "translations"];

fn file(image: usize) -> PathBuf {
    PathBuf::from(format!("odd-{image}"))
}

fn cut(image: usize) -> RowCut {
    RowCut { start: [image as i64, -1], whole: [image + 20, 30] }
}

fn nested() -> LeftOut {
    LeftOut { name: "nested".to_owned(), why: "nested values" }
}

fn renamed() -> Renamed {
    Renamed { from: "place".to_owned(), to: "well".to_owned() }
}

impl FeatureTable for Odd {
    default_columns!(has_row_numbers);

    fn feature_names(&self) -> Vec<String> {
        vec!["well".to_owned()]
    }
    fn columns_left_out(&self) -> Vec<LeftOut> {
        vec![nested()]
    }
    fn columns_renamed(&self) -> Vec<Renamed> {
        vec![renamed()]
    }
    fn columns_in_utc(&self) -> Vec<String> {
        self.feature_names()
    }
    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        if names.is_empty() {
            return Ok(None);
        }
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
    fn file(&self, row: usize) -> Option<PathBuf> {
        Some(file(row))
    }
    fn cut(&self, row: usize) -> Option<RowCut> {
        Some(cut(row))
    }
    fn metadata_rows(&self, row: usize) -> usize {
        row + 2
    }
    fn unkept(&self, row: usize) -> Vec<&'static str> {
        vec![UNKEPT[row]]
    }
    fn working_bytes(&self, row: usize) -> Result<usize> {
        Ok(11 * row + 1)
    }
}

/// Four images of three planes, and the requests for their decoded pixels.
fn odd() -> (Box<dyn Store>, Arc<Pages>) {
    let mut inner = MemoryStore::new("odd");
    for i in 0..4 {
        inner.push(format!("f{i}"), Shape([1, 1, 3, 2, 2]), PixelType::U8, vec![i; 12]).unwrap();
    }
    let (most, forgotten) = (AtomicUsize::new(12_345), AtomicUsize::new(0));
    let pages = Arc::new(Pages { most, forgotten, asked: Mutex::default() });
    (Box::new(Odd { inner, pages: Arc::clone(&pages) }), pages)
}

/// Whether a store, each row of which is of one of the images, says all that they say.
fn check(store: &dyn Store, pages: &Pages, images: &[usize]) {
    assert_eq!(store.len(), images.len());
    assert!(store.has_checksums());
    let hints = store.hints();
    assert_eq!(hints.rows_per_read, 7);
    check_columns(store);
    let columns = hints.features(&hints.feature_names()).unwrap().unwrap();
    let wells: Vec<usize> =
        columns.column(0).as_primitive::<Int32Type>().values().iter().map(|&well| well as usize).collect();
    assert_eq!(wells, images.iter().map(|image| 10 * image).collect::<Vec<_>>());
    assert_eq!(hints.page_cache_bytes(), 12_345);
    hints.limit_page_cache(99);
    hints.forget_pages();
    assert_eq!(
        (hints.page_cache_bytes(), pages.max_bytes(), pages.forgotten.load(Ordering::Relaxed)),
        (99, 99, 1)
    );
    for (row, &image) in images.iter().enumerate() {
        let hints = store.row_hints(row).unwrap();
        assert_eq!(hints.position(), 1000 - 10 * image as u64);
        assert_eq!(hints.grid(), Some([image + 3, image + 5]));
        assert_eq!((hints.cut(), hints.working_bytes().unwrap()), (Some(cut(image)), 11 * image + 1));
        check_row(store, pages, row, image);
        check_bytes(store, row, image);
    }
}

/// Whether a row says what its image says, but for what a wrapper may have of its own: position, pieces, cut, memory.
fn check_row(store: &dyn Store, pages: &Pages, row: usize, image: usize) {
    let hints = store.row_hints(row).unwrap();
    assert_eq!(hints.file(), Some(file(image)));
    assert_eq!((hints.metadata_rows(), hints.unkept()), (image + 2, vec![UNKEPT[image]]));
    assert_eq!(store.remote_path(), Some(Path::new("far://odd")));
    assert_eq!(store.files_of(&[row]).unwrap(), [file(image)]);
    pages.asked.lock().unwrap().clear();
    let mut wanted = WantedRanges::default();
    store.heads(&[row], ReadExtent::Part, &mut wanted);
    let region = store.row_info(row).unwrap().shape.full();
    store.ranges(&[Request { row, region }], &mut wanted).unwrap();
    assert_eq!(*pages.asked.lock().unwrap(), [image, image]);
}

/// Whether a store says of its columns all that the images say.
fn check_columns(store: &dyn Store) {
    let hints = store.hints();
    assert_eq!(
        (hints.feature_names(), hints.columns_in_utc()),
        (vec!["well".to_owned()], vec!["well".to_owned()])
    );
    assert_eq!((hints.columns_left_out(), hints.columns_renamed()), (vec![nested()], vec![renamed()]));
}

/// The store's error for the image whose file has no bytes for it; other images are as large as they say.
fn check_bytes(store: &dyn Store, row: usize, image: usize) -> Option<Error> {
    let info = store.row_info(row).unwrap();
    let checked = store.check(&Request { row, region: info.shape.full() });
    assert_eq!(checked.is_err(), image == 1, "{checked:?}");
    let error = checked.err()?;
    assert!(error.to_string().contains(NO_BYTES), "{error}");
    Some(error)
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
    assert_eq!((hints.rows_per_read, hints.page_cache_bytes()), (1, 0));
    assert!(hints.feature_names().is_empty() && hints.columns_left_out().is_empty());
    assert!(hints.features(&[]).unwrap().is_none());
    let row = store.row_hints(0).unwrap();
    assert_eq!((row.position(), row.grid(), row.working_bytes().unwrap()), (0, None, 36));
}

/// Positions are those of the part, behind those of the parts before it.
#[test]
fn facts_pass_through_parts() {
    let parts: Vec<_> = (0..3).map(|_| odd()).collect();
    let pages: Vec<Arc<Pages>> = parts.iter().map(|(_, pages)| Arc::clone(pages)).collect();
    let part = |(number, (store, _)): (usize, (Box<dyn Store>, Arc<Pages>))| {
        let store: Arc<dyn Store> =
            if number == 1 { Arc::new(Subset::of(store, vec![2, 1])) } else { Arc::from(store) };
        Part { name: format!("part-{number}"), keys: vec![], store }
    };
    let parts = parts.into_iter().enumerate().map(part).collect();
    let set = Concat::new(PathBuf::from("set"), parts);
    let images = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 2), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3)];
    assert_eq!(set.len(), images.len());
    check_columns(&set);
    for (row, (part, image)) in images.into_iter().enumerate() {
        let hints = set.row_hints(row).unwrap();
        assert_eq!(hints.position(), ((part as u64) << 48) + 1000 - 10 * image as u64);
        assert_eq!(hints.grid(), Some([image + 3, image + 5]));
        assert_eq!((hints.cut(), hints.working_bytes().unwrap()), (Some(cut(image)), 11 * image + 1));
        check_row(&set, &pages[part], row, image);
        let refused = check_bytes(&set, row, image);
        assert_eq!(refused.and_then(|error| error.row_index()), (image == 1).then_some(row));
    }
    // The first image of each part is looked at, and each fact is told once.
    assert_eq!(unkept::of_first_images(&set), [UNKEPT[0], UNKEPT[2]]);
    let set: Box<dyn Store> = Box::new(set);
    assert_eq!(unkept::of_first_images(&Subset::of(set, vec![5, 4])), [UNKEPT[1]]);
}

#[test]
fn facts_of_images_pass_through_to_their_cells() {
    let (store, pages) = odd();
    let of = Arc::new(StringArray::from(vec!["f2", "f1", "f2"]));
    let (x, y) = (Arc::new(Int32Array::from(vec![0, 1, 1])), Arc::new(Int32Array::from(vec![0, 1, 0])));
    let table = RecordBatch::try_from_iter([("image", of as _), ("x", x as _), ("y", y as _)]).unwrap();
    let options = CellOptions { size: [1, 1], ..CellOptions::default() };
    let images: Arc<dyn Store> = Arc::from(store);
    let cells = Cells::of(&*images, CellSource::Memory(&[table]), &options, None).unwrap();
    let cells = CellsStore::new(images, Arc::new(cells)).unwrap();
    assert_eq!(cells.len(), 3);
    let hints = cells.hints();
    assert_eq!((hints.columns_left_out(), hints.columns_renamed()), (vec![nested()], vec![renamed()]));
    for (row, (image, start)) in [(2, [0, 0]), (1, [1, 1]), (2, [0, 1])].into_iter().enumerate() {
        let hints = cells.row_hints(row).unwrap();
        assert_eq!((hints.position(), hints.grid()), (1000 - 10 * image as u64, None));
        // The cell lies in an image that is a part itself.
        let RowCut { start: [y, x], whole } = cut(image);
        assert_eq!(hints.cut(), Some(RowCut { start: [start[0] + y, start[1] + x], whole }));
        // Beside the image, three planes of one pixel three times.
        assert_eq!(hints.working_bytes().unwrap(), 11 * image + 1 + 3 * 3);
        check_row(&cells, &pages, row, image);
    }
    assert_eq!(unkept::of_first_images(&cells), [UNKEPT[2]]);
}
