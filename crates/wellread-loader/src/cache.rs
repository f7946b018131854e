//! A store that keeps what was read from another.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use wellread_image::ImageMetadata;
use wellread_store::{
    Block, CopySink, Error, PixelSink, Request, Result, RowInfo, Scratch, Store, StoreLayout,
};

/// Decoded images of an inner store, kept from the first read on while there is room. Reading a kept row
/// copies nothing: its pixels are handed over as one block. Rows for which there is no room are read from the
/// inner store each time, as if there were no cache.
pub(crate) struct CachedStore {
    inner: Arc<dyn Store>,
    rows: Vec<OnceLock<Box<[u8]>>>,
    /// Bytes that may still be kept.
    room: AtomicUsize,
}

/// Hands blocks on under the number that their request had in the caller's list.
struct Renumbered<'a> {
    numbers: &'a [usize],
    sink: &'a mut dyn PixelSink,
}

impl PixelSink for Renumbered<'_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        self.sink.put(self.numbers[request], block)
    }
}

impl CachedStore {
    /// A cache of at most `limit` bytes of pixels.
    pub(crate) fn new(inner: Arc<dyn Store>, limit: usize) -> Self {
        let rows = std::iter::repeat_with(OnceLock::new).take(inner.len()).collect();
        Self { inner, rows, room: AtomicUsize::new(limit) }
    }

    /// Takes room for an image, if there is enough.
    fn reserve(&self, bytes: usize) -> bool {
        self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes)).is_ok()
    }

    /// Reads whole images, all in one call, and keeps those for which there is room.
    fn fill(&self, missing: &[usize], scratch: &mut Scratch) -> Result<()> {
        let mut images = Vec::with_capacity(missing.len());
        for &row in missing {
            let info = self.inner.row_info(row)?;
            let bytes = info
                .shape
                .checked_bytes(info.dtype)
                .map_err(|error| Error::new(self.path(), error).row(row))?;
            if !self.reserve(bytes) {
                continue;
            }
            let mut pixels: Vec<u8> = Vec::new();
            pixels.try_reserve_exact(bytes).map_err(|_| {
                // What was reserved for this image and those before it is free again.
                let before: usize = images.iter().map(|(.., pixels): &(_, _, Vec<u8>)| pixels.len()).sum();
                self.room.fetch_add(bytes + before, Ordering::Relaxed);
                Error::new(self.path(), format_args!("not enough memory to keep an image of {bytes} bytes"))
                    .row(row)
                    .hint("read without the memory cache")
            })?;
            pixels.resize(bytes, 0);
            images.push((Request { row, region: info.shape.full() }, info.dtype, pixels));
        }
        let requests: Vec<Request> = images.iter().map(|(request, ..)| *request).collect();
        let targets = images
            .iter_mut()
            .map(|(request, dtype, pixels)| (request.region, *dtype, pixels.as_mut_slice()))
            .collect();
        let result = self.inner.read(&requests, scratch, &mut CopySink::new(targets));
        for (request, _, pixels) in images {
            let bytes = pixels.len();
            // Another thread may have been first; its pixels are the same.
            if result.is_err() || self.rows[request.row].set(pixels.into_boxed_slice()).is_err() {
                self.room.fetch_add(bytes, Ordering::Relaxed);
            }
        }
        result
    }
}

impl Store for CachedStore {
    fn format(&self) -> &'static str {
        self.inner.format()
    }
    fn path(&self) -> &Path {
        self.inner.path()
    }
    fn len(&self) -> usize {
        self.inner.len()
    }
    fn row_info(&self, row: usize) -> Result<RowInfo> {
        self.inner.row_info(row)
    }
    fn name(&self, row: usize) -> Result<String> {
        self.inner.name(row)
    }
    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        self.inner.metadata(row)
    }
    fn layout(&self) -> Result<StoreLayout> {
        self.inner.layout()
    }
    fn files(&self) -> Result<Vec<PathBuf>> {
        self.inner.files()
    }
    fn position(&self, row: usize) -> u64 {
        self.inner.position(row)
    }
    fn rows_per_read(&self) -> usize {
        self.inner.rows_per_read()
    }
    fn grid(&self, row: usize) -> Option<[usize; 2]> {
        self.inner.grid(row)
    }
    fn feature_names(&self) -> Vec<String> {
        self.inner.feature_names()
    }
    fn features(&self) -> Result<Option<wellread_store::features::FeatureColumns>> {
        self.inner.features()
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        let kept = |row: usize| self.rows.get(row).and_then(OnceLock::get);
        if requests.iter().any(|request| kept(request.row).is_none()) {
            let mut missing = vec![];
            for request in requests.iter().filter(|request| kept(request.row).is_none()) {
                self.check(request)?;
                // Requests for several channels of a row stand together; a row read twice would do no harm.
                if missing.last() != Some(&request.row) {
                    missing.push(request.row);
                }
            }
            self.fill(&missing, scratch)?;
        }
        let (mut others, mut numbers) = (vec![], vec![]);
        for (i, request) in requests.iter().enumerate() {
            let info = self.check(request)?;
            if let Some(data) = kept(request.row) {
                sink.put(i, &Block { region: info.shape.full(), data, dtype: info.dtype })?;
            } else {
                others.push(*request);
                numbers.push(i);
            }
        }
        if others.is_empty() {
            return Ok(());
        }
        self.inner.read(&others, scratch, &mut Renumbered { numbers: &numbers, sink })
    }
}
