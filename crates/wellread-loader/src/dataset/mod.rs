//! A set of images: a store that is cheap to clone and may be shared by threads.

mod split;

use crate::cache::{Cache, CacheReport, CachedStore};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use wellread_image::ImageMetadata;
use wellread_store::words::counted;
use wellread_store::{Block, Error, OpenOptions, PixelSink, Request, Result, RowInfo, Scratch, Store};

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
    /// Opens the store beneath all caches anew; `None` where it was given.
    open: Option<Arc<Open>>,
    /// Caches over that, innermost first.
    caches: Vec<Cache>,
}

type Open = dyn Fn() -> Result<Arc<dyn Store>> + Send + Sync;

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let images = counted(self.len(), "image");
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
        Self::from_fn(move || wellread_store::open(&path, &options))
    }

    /// Makes a dataset of any store.
    pub fn from_store(store: Box<dyn Store>) -> Self {
        Self { store: store.into(), cache: None, open: None, caches: vec![] }
    }

    /// A set that `open` opens: now, and once more in every process that is forked from this one.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn from_fn(open: impl Fn() -> Result<Box<dyn Store>> + Send + Sync + 'static) -> Result<Self> {
        let open = move || open().map(Arc::from);
        Ok(Self { store: open()?, cache: None, open: Some(Arc::new(open)), caches: vec![] })
    }

    /// The same images opened anew, with empty caches: for a process that was forked from the one that opened
    /// them, where locks may be closed for ever that a thread held at that moment. Loaders do so by
    /// themselves. A dataset of [`Self::from_store`] is returned as it is.
    ///
    /// # Errors
    /// As [`Self::open`] and [`Self::with_cache`].
    pub fn reopened(&self) -> Result<Self> {
        let Some(open) = &self.open else { return Ok(self.clone()) };
        let bare = Self { store: open()?, cache: None, open: Some(Arc::clone(open)), caches: vec![] };
        self.caches.iter().try_fold(bare, Self::with_cache)
    }

    /// The same images behind a cache of their own.
    ///
    /// # Errors
    /// With [`Cache::File`] a file that cannot be made, with [`Cache::Preload`] a thread that cannot be started.
    pub fn with_cache(mut self, cache: &Cache) -> Result<Self> {
        if let Some(cached) = CachedStore::new(Arc::clone(&self.store), cache)? {
            let cached = Arc::new(cached);
            self.caches.push(cache.clone());
            self.store = cached.clone();
            self.cache = Some(cached);
        }
        Ok(self)
    }

    /// What the cache of [`Self::with_cache`] holds and has served; nothing without one.
    pub fn cache_report(&self) -> CacheReport {
        self.cache.as_ref().map(|cache| cache.report()).unwrap_or_default()
    }

    /// Whether images go to a cache of [`Self::with_cache`].
    pub(crate) const fn is_cached(&self) -> bool {
        self.cache.is_some()
    }

    /// The policies of [`Self::with_cache`].
    pub(crate) fn caches(&self) -> &[Cache] {
        &self.caches
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
        struct Ignore;
        impl PixelSink for Ignore {
            fn put(&mut self, _: usize, _: &Block<'_>) -> Result<()> {
                Ok(())
            }
        }
        let request = |row| Ok(Request { row, region: self.row_info(row)?.shape.full() });
        let requests = rows.map(request).collect::<Result<Vec<_>>>()?;
        self.store.read(&requests, &mut Scratch::default(), &mut Ignore)
    }

    fn check(&self, row: usize) -> Result<()> {
        if row < self.len() {
            return Ok(());
        }
        Err(Error::no_such_row(self.store.path(), row, self.len()))
    }
}
