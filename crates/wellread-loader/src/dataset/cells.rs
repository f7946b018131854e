//! Sets whose rows are cells, cut out of the images of another set.
//!
//! ```text
//!  images, with their caches ─▶ CellsStore ─▶ a set of cells        masks: label images, a set of their own
//! ```

use super::{CACHED_READ_BYTES, CellCrops, CellsFrom, Dataset};
use crate::cache::Cache;
use crate::draw::{Digest, key};
use std::path::Path;
use std::sync::Arc;
use wellread_store::cells::{CellOptions, CellSource, Cells, CellsStore, Mask};
use wellread_store::{Result, Store};

impl CellCrops {
    /// The same, of sets that are opened anew.
    pub(super) fn reopened(&self) -> Result<Dataset> {
        let masks = self.masks.as_ref().map(Dataset::reopened).transpose()?;
        Dataset::of_cells(self.images.reopened()?, Arc::clone(&self.cells), masks)
    }

    /// The same, with a cache of the images.
    pub(super) fn with_cache(&self, cache: &Cache) -> Result<Dataset> {
        let images = self.images.clone().with_cache(cache)?;
        Dataset::of_cells(images, Arc::clone(&self.cells), self.masks.clone())
    }

    /// See [`Dataset::made_by`]. Cells of other boxes, or with other masks, are other images of the same files.
    pub(super) fn made_by(&self) -> String {
        let mut digest = Digest::new(key([0x6365_6c6c_7300, 0, 0]));
        digest.numbers(self.cells.identity());
        let masks = self.masks.as_ref().map(Dataset::made_by).unwrap_or_default();
        format!("cells {:016x} of ({}), masks ({masks})", digest.finish(), self.images.made_by())
    }
}

impl Dataset {
    /// The cells of a table, or of a set of label images, in these images: a set whose rows are cells. Caches of this set stay below
    /// it, so that crops are cut out of images that are kept.
    ///
    /// ```
    /// use wellread_image::{PixelType, Shape};
    /// use wellread_loader::{Dataset, MemoryStore};
    /// use wellread_store::cells::CellOptions;
    /// # let dir = std::env::temp_dir().join(format!("wellread-cells-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let table = dir.join("cells.csv");
    /// # std::fs::write(&table, "Location_Center_X,Location_Center_Y,ObjectNumber\n20,30,1\n33,8,2\n").unwrap();
    /// let mut store = MemoryStore::new("one site");
    /// store.push("site", Shape::plane(64, 64), PixelType::U8, vec![0; 4096])?;
    /// let images = Dataset::from_store(Box::new(store));
    /// let cells = images.cells(&table, &CellOptions { size: [16, 16], ..CellOptions::default() })?;
    /// assert_eq!((cells.len(), cells.row_info(0)?.shape), (2, Shape::plane(16, 16)));
    /// assert_eq!(cells.name(1)?, "site/cell-2");
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), wellread_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cells::find`].
    pub fn cells(&self, table: impl AsRef<Path>, options: &CellOptions) -> Result<Self> {
        self.cells_from(CellsFrom::Path(table.as_ref()), None, options)
    }

    /// The same with any source of cells. `masks` are label images that are open, in place of [`CellOptions::masks`].
    /// They are some rows of a set, several sets, or label images opened with options of their own.
    ///
    /// # Errors
    /// As [`Cells::of`].
    pub fn cells_from(
        &self,
        from: CellsFrom<'_>,
        masks: Option<&Self>,
        options: &CellOptions,
    ) -> Result<Self> {
        let source = match from {
            CellsFrom::Path(path) => CellSource::Path(path),
            CellsFrom::Memory(batches) => CellSource::Memory(batches),
            CellsFrom::Labels(labels) => CellSource::Labels(labels.store()),
        };
        let cells = Cells::of(self.store(), source, options, masks.map(Self::store))?;
        let labels = match from {
            CellsFrom::Labels(labels) if options.masks.is_none() => Some(labels),
            _ => None,
        };
        let masks = masks.or(labels).filter(|_| options.mask != Mask::None);
        Self::of_cells(self.clone(), Arc::new(cells), masks.cloned())
    }

    /// Cells that were found in these images.
    fn of_cells(images: Self, cells: Arc<Cells>, masks: Option<Self>) -> Result<Self> {
        let open = masks.as_ref().map(|masks| Arc::clone(&masks.store));
        let store = CellsStore::of(Arc::clone(&images.store), Arc::clone(&cells), open)?;
        let most = if images.is_cached() { CACHED_READ_BYTES } else { usize::MAX };
        let store: Arc<dyn Store> = Arc::new(store.reading_at_most(most));
        let cache = images.cache.clone();
        // Masks may have caches of their own.
        let caches = images.caches().into_iter().chain(masks.iter().flat_map(Self::caches)).collect();
        let cell_crops = Some(Arc::new(CellCrops { images, cells, masks }));
        Ok(Self { cache, caches, cell_crops, ..Self::bare(store) })
    }
}
