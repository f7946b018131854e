//! A set of images: a store that is cheap to clone and may be shared by threads.
//!
//! ```text
//!  store ─▶ caches                        a set of images
//!  store ─▶ caches ─▶ CellsStore          a set of cells, cut out of images that the caches keep
//!  sets ─▶ Subset, Concat ─▶ caches       some rows of a set; several sets as one
//!  any of them ─▶ WithColumns             the same rows, with more columns beside them
//! ```

mod cells;
mod reopened;
mod split;
mod view;

pub use reopened::RowDigests;
pub(crate) use reopened::sampled;

use crate::cache::{Cache, CacheReport, CachedStore};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use wellread_image::ImageMetadata;
use wellread_store::cells::{Cells, CellsReport};
use wellread_store::disk_cache::{self, DiskCache, DiskCacheReport};
use wellread_store::features::FeatureColumns;
use wellread_store::row_location::path_of_set;
use wellread_store::with_columns::WithColumns;
use wellread_store::words::counted;
use wellread_store::{Discard, Error, OpenOptions, Request, Result, RowInfo, Scratch, Store};

/// Bytes of images that a cache decodes at a time for cells of them: a batch of cells of many images is small beside these.
const CACHED_READ_BYTES: usize = 64 << 20;

/// A set of images, open for reading. Clones share everything.
///
/// ```no_run
/// let dataset = wellread_loader::Dataset::open("plate.parquet")?;
/// println!("{} images, the first {}", dataset.len(), dataset.row_info(0)?.shape);
/// # Ok::<(), wellread_store::Error>(())
/// ```
#[derive(Clone)]
pub struct Dataset {
    store: Arc<dyn Store>,
    /// The same, where it is a cache.
    cache: Option<Arc<CachedStore>>,
    /// Opens the store beneath all caches anew, or has the one that was given; `None` where others make up the set.
    reopen: Option<Arc<Reopen>>,
    /// The options that it was opened with: [`options_key_of`].
    options_key: Option<Arc<str>>,
    /// Caches over that, innermost first.
    caches: Vec<Cache>,
    /// The images and which cells, where the rows are cells cut out of them.
    cell_crops: Option<Arc<CellCrops>>,
    /// The sets that this one is made of, where it is some rows of one or several together.
    view: Option<Arc<View>>,
    /// The set without them, where columns were put beside it.
    with_columns: Option<Arc<ImagesWithColumns>>,
    /// See [`Self::row_digests`]: once they were asked for.
    row_digests: Arc<OnceLock<RowDigests>>,
}

/// Columns, and the set that they stand beside.
struct ImagesWithColumns {
    images: Dataset,
    columns: Arc<FeatureColumns>,
}

/// Cells, and the images that they are cut out of.
struct CellCrops {
    images: Dataset,
    cells: Arc<Cells>,
    /// Label images that were given as a set and are masks.
    masks: Option<Dataset>,
}

/// The source of cells for [`Dataset::cells_from`].
#[derive(Clone, Copy, Debug)]
pub enum CellsFrom<'a> {
    /// A file: a table, or a set of label images.
    Path(&'a Path),
    /// A table that the program has, in one batch or several.
    Memory(&'a [FeatureColumns]),
    /// Label images: their labels are the cells.
    Labels(&'a Dataset),
}

/// The parts of a set that is no set of its own.
enum View {
    /// Some rows of a set.
    Rows(Dataset, Vec<usize>),
    /// One set after the other.
    Sets(Vec<Dataset>),
}

type Reopen = dyn Fn() -> Result<Arc<dyn Store>> + Send + Sync;

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let images = counted(self.len(), self.store.hints().thing());
        write!(f, "Dataset({images}, {}, {})", self.store.format(), self.store.path().display())
    }
}

impl Dataset {
    /// Opens a file or folder of images, recognising its format by content.
    ///
    /// # Errors
    /// Missing or unreadable path, unknown or corrupt content.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &OpenOptions::default())
    }

    /// Opens with options: format, table, column, level.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let (path, options) = (path.as_ref().to_owned(), options.clone());
        let options_key = options_key_of(&options);
        Ok(Self { options_key, ..Self::from_fn(move || wellread_store::open(&path, &options))? })
    }

    /// A store and nothing else.
    fn bare(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            cache: None,
            reopen: None,
            options_key: None,
            caches: vec![],
            cell_crops: None,
            view: None,
            with_columns: None,
            row_digests: Arc::default(),
        }
    }

    /// Makes a dataset of any store.
    pub fn from_store(store: Box<dyn Store>) -> Self {
        let store: Arc<dyn Store> = store.into();
        let given = Arc::clone(&store);
        Self { reopen: Some(Arc::new(move || Ok(Arc::clone(&given)))), ..Self::bare(store) }
    }

    /// A set that `open` opens: now, and once more in every process that is forked from this one.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn from_fn(open: impl Fn() -> Result<Box<dyn Store>> + Send + Sync + 'static) -> Result<Self> {
        let open = move || open().map(Arc::from);
        let store = open()?;
        Ok(Self { reopen: Some(Arc::new(open)), ..Self::bare(store) })
    }

    /// The same images behind a cache of their own. For a set of cells ([`Self::cells`]), the images are kept, decoded
    /// once for all of their cells, and not the crops.
    ///
    /// # Errors
    /// With [`Cache::File`] a file that cannot be made, with [`Cache::Preload`] a thread that cannot be started. [`Cache::Disk`] for a
    /// set on this machine, or whose folder cannot be used; [`Cache::File`] for one of which some lies behind a network.
    pub fn with_cache(mut self, cache: &Cache) -> Result<Self> {
        if let Some(with_columns) = &self.with_columns {
            return Self::of_columns(
                with_columns.images.clone().with_cache(cache)?,
                Arc::clone(&with_columns.columns),
            );
        }
        if let Some(crops) = &self.cell_crops {
            return crops.with_cache(cache);
        }
        cache.begin_opened(self.store.path(), self.is_remote())?;
        let made_by = if matches!(cache, Cache::File { .. }) { self.made_by() } else { String::new() };
        if let Some(cached) = CachedStore::new(Arc::clone(&self.store), cache, &made_by)? {
            let cached = Arc::new(cached);
            self.caches.push(cache.clone());
            self.store = cached.clone();
            self.cache = Some(cached);
        }
        Ok(self)
    }

    /// The options and the rows by which these are the images of their files. Other images of the same files have another cache
    /// file.
    fn made_by(&self) -> String {
        if let Some(with_columns) = &self.with_columns {
            return with_columns.images.made_by();
        }
        if let Some(crops) = &self.cell_crops {
            return crops.made_by();
        }
        match &self.view {
            Some(view) => view.made_by(),
            None => self.options_key.as_deref().unwrap_or_default().to_owned(),
        }
    }

    /// The same images with more columns beside them, a row per image: those of a table that the program has. Columns of names that
    /// are there already take their place. [`wellread_store::with_columns::joined`] brings a table to a row per image.
    ///
    /// # Errors
    /// Columns of more or fewer rows than there are images.
    pub fn with_columns(&self, columns: FeatureColumns) -> Result<Self> {
        Self::of_columns(self.clone(), Arc::new(columns))
    }

    fn of_columns(images: Self, columns: Arc<FeatureColumns>) -> Result<Self> {
        let store = WithColumns::new(Arc::clone(&images.store), Arc::clone(&columns))?;
        let (cache, caches) = (images.cache.clone(), images.caches.clone());
        let (cell_crops, view) = (images.cell_crops.clone(), images.view.clone());
        let with_columns = Some(Arc::new(ImagesWithColumns { images, columns }));
        Ok(Self { cache, caches, cell_crops, view, with_columns, ..Self::bare(Arc::new(store)) })
    }

    /// The result of reading the table whose cells the rows are; `None` where they are images.
    pub fn cells_report(&self) -> Option<&CellsReport> {
        match &self.view {
            Some(view) => view.cells_report(),
            None => self.cell_crops.as_ref().map(|crops| crops.cells.report()),
        }
    }

    /// The shape of what a cache keeps of a row: the image, where the row is a cell cut out of it.
    ///
    /// # Errors
    /// As [`Self::row_info`].
    pub(crate) fn kept_info(&self, row: usize) -> Result<RowInfo> {
        if let Some(view) = &self.view {
            return view.kept_info(self, row);
        }
        match &self.cell_crops {
            Some(crops) => match crops.cells.image_of(row) {
                Some(image) => crops.images.kept_info(image),
                None => Err(Error::no_such_row(self.store.path(), row, self.len())),
            },
            None => self.row_info(row),
        }
    }

    /// Bytes of what a cache keeps that it reads at a time, at most; one row may have more.
    pub(crate) fn kept_at_once(&self) -> usize {
        match &self.view {
            Some(view) => view.kept_at_once(),
            None if self.cell_crops.is_some() => CACHED_READ_BYTES,
            None => usize::MAX,
        }
    }

    /// How many rows a cache may keep: those of the images, where rows are cells cut out of them.
    pub(crate) fn kept_rows(&self) -> usize {
        match (&self.view, &self.cell_crops) {
            (Some(view), _) => view.kept_rows(),
            (None, Some(crops)) => crops.images.kept_rows(),
            (None, None) => self.len(),
        }
    }

    /// The content and the counts of the cache of [`Self::with_cache`]; nothing without one.
    pub fn cache_report(&self) -> CacheReport {
        match (&self.cache, &self.view, &self.cell_crops) {
            (Some(cache), _, _) => cache.report(),
            (None, Some(view), _) => view.cache_report(),
            (None, None, Some(crops)) => crops.images.cache_report(),
            (None, None, None) => CacheReport::default(),
        }
    }

    /// The counts of this process's cache on disk, for all sets behind a network that it reads. It is `None` for a set on
    /// this machine, and where there is no such cache.
    pub fn disk_cache_report(&self) -> Option<DiskCacheReport> {
        let may_have_one = self.is_remote() || self.caches().iter().any(is_on_disk);
        let cache = if may_have_one { disk_cache::current().ok().flatten() } else { None };
        cache.map(DiskCache::report)
    }

    /// A sentence that the cache of [`Self::with_cache`] is too small for the first image, and which size would do; `None` where it
    /// keeps it. The sentence calls the cache `option`. Sets behind a network are not looked at.
    pub fn first_beyond_cache(&self, option: &str) -> Option<String> {
        let largest = self.caches.iter().max_by_key(|cache| cache.limit())?;
        if largest.limit() == usize::MAX || self.is_remote() {
            return None;
        }
        let info = self.kept_info(0).ok()?;
        let bytes = info.shape.checked_bytes(info.dtype).ok().filter(|bytes| *bytes > largest.limit())?;
        let amount = counted(bytes, "byte");
        let when = if largest.compresses() { " before it is compressed" } else { "" };
        Some(format!(
            "the first image takes {amount}{when}, and {option} cannot keep it: give a size of {amount} or more"
        ))
    }

    /// Whether images go to a cache of [`Self::with_cache`].
    pub(crate) fn is_cached(&self) -> bool {
        let is_below = self.view.as_ref().is_some_and(|view| view.is_cached());
        is_below || self.cache.is_some() || self.cell_crops.as_ref().is_some_and(|of| of.images.is_cached())
    }

    /// The policies of [`Self::with_cache`], of this set and of those that it is made of.
    pub(crate) fn caches(&self) -> Vec<Cache> {
        let mut caches = self.caches.clone();
        if let Some(view) = &self.view {
            caches.extend(view.caches());
        }
        caches
    }

    /// Whether it, or a part of it, is remote: it lies in a place other than the file system of this machine. A local table that
    /// names images in a bucket is remote, too.
    pub fn is_remote(&self) -> bool {
        self.store().remote_path().is_some()
    }

    /// Whether it is the same set as another, with the same caches.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.store, &other.store)
    }

    /// The store beneath.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// Shape and pixel type of a row, without reading its pixels.
    ///
    /// # Errors
    /// No such row, or a header that cannot be read.
    pub fn row_info(&self, row: usize) -> Result<RowInfo> {
        self.check(row)?;
        self.store.row_info(row)
    }

    /// Name of a row.
    ///
    /// # Errors
    /// As [`Self::row_info`].
    pub fn name(&self, row: usize) -> Result<String> {
        self.check(row)?;
        self.store.name(row)
    }

    /// Everything known about a row beside its pixels.
    ///
    /// # Errors
    /// As [`Self::row_info`].
    pub fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        self.check(row)?;
        self.store.metadata(row)
    }

    /// Reads one whole image: native pixels, C order, little-endian.
    ///
    /// # Errors
    /// No such row, or pixels that cannot be read.
    pub fn read(&self, row: usize) -> Result<(RowInfo, Vec<u8>)> {
        wellread_store::read_image(&*self.store, row)
    }

    /// Reads whole images in one go and hands them to nobody: into the cache of [`Self::with_cache`], as far as there is
    /// room. For programs that read row by row a store whose reads have a price of their own
    /// ([`wellread_store::Hints::rows_per_read`]).
    ///
    /// # Errors
    /// No such row, or pixels that cannot be read.
    pub fn warm(&self, rows: std::ops::Range<usize>) -> Result<()> {
        let request = |row| Ok(Request { row, region: self.row_info(row)?.shape.full() });
        let requests = rows.map(request).collect::<Result<Vec<_>>>()?;
        self.store.read(&requests, &mut Scratch::default(), &mut Discard)
    }

    fn check(&self, row: usize) -> Result<()> {
        if row < self.len() {
            return Ok(());
        }
        Err(Error::no_such_row(path_of_set(self.store()), row, self.len()))
    }
}

/// Options that make images of files, as text; `None` where all are the default ones. The format is left out: a set
/// tells it.
fn options_key_of(options: &OpenOptions) -> Option<Arc<str>> {
    let options_key = format!("{:?}", OpenOptions { format: None, ..options.clone() });
    (options_key != format!("{:?}", OpenOptions::default())).then(|| options_key.into())
}

fn is_on_disk(cache: &Cache) -> bool {
    matches!(cache, Cache::Disk(_))
}
