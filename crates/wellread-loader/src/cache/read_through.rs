//! The inner store of a cache and what is kept of it.
//!
//! ```text
//!   CachedStore, Preload ──rows that are missing──▶ ReadThroughCache ──read, each by one thread──▶ inner store
//!                                                     └──pixels, where there is room──▶ CacheBackend
//! ```

use super::CacheBackend;
use super::in_flight::InFlightReads;
use crate::reader_faults::{check_block, too_few};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use wellread_image::PixelType;
use wellread_store::{Block, CopySink, Error, PixelSink, Request, Result, Scratch, Store};

/// Bytes of images that a thread reads in one call where others may miss the same ones. Larger images are read one by one, so that all
/// threads take part.
const SHARED_BYTES: usize = 4 << 20;

/// The inner store and what is kept of it; shared with the thread that preloads.
pub(super) struct ReadThroughCache {
    pub(super) inner: Arc<dyn Store>,
    pub(super) backend: Box<dyn CacheBackend>,
    /// Rows that are read together when one of them is missing.
    pub(super) chunk: usize,
    /// Rows that threads are reading.
    pub(super) in_flight: InFlightReads,
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
}

/// Room that was taken for images on their way. Room of images that are not kept in the end is given back, also when
/// a reader panics.
struct Reserved<'a> {
    backend: &'a dyn CacheBackend,
    bytes: usize,
}

impl Reserved<'_> {
    /// Whether there is room for an image of so many bytes, which is taken then.
    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.backend.reserve(bytes);
        self.bytes += if fits { bytes } else { 0 };
        fits
    }

    /// Keeps an image in room that was taken for it.
    fn insert(&mut self, row: usize, pixels: Vec<u8>) {
        self.bytes -= pixels.len();
        self.backend.insert(row, pixels);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.backend.release(self.bytes);
        }
    }
}

/// Copies whole images, and counts their pixels: memory that was another image's would keep some of that.
struct CompleteSink<'a> {
    path: &'a Path,
    requests: &'a [Request],
    /// The type of each request's pixels, and how many are still to come.
    left: Vec<(PixelType, usize)>,
    copied: CopySink<'a>,
}

impl CompleteSink<'_> {
    fn check_complete(&self) -> Result<()> {
        let mut all = self.requests.iter().zip(&self.left);
        match all.find(|(_, (_, left))| *left > 0) {
            Some((request, (_, left))) => Err(too_few(self.path, request.row, *left)),
            None => Ok(()),
        }
    }
}

impl PixelSink for CompleteSink<'_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        let Request { row, region } = self.requests[request];
        let (dtype, left) = &mut self.left[request];
        check_block(self.path, row, *dtype, block)?;
        let pixels = block.region.intersection(&region).map_or(0, |part| part.pixels());
        *left = left.saturating_sub(pixels);
        self.copied.put(request, block)
    }

    fn mark_unmasked(&mut self, _: usize, _: &Block<'_>) {}
}

impl ReadThroughCache {
    pub fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    pub fn contains(&self, row: usize) -> bool {
        self.backend.contains(row)
    }

    /// Reads whole images, all in one call, and keeps those for which there is room. Returns whether there was any
    /// for which there was none.
    pub fn fill(&self, missing: &[usize], scratch: &mut Scratch) -> Result<bool> {
        let path = self.inner.path();
        let mut sizes = Vec::with_capacity(missing.len());
        for &row in missing {
            let info = self.inner.row_info(row)?;
            let bytes = info.shape.checked_bytes(info.dtype);
            let bytes = bytes.map_err(|error| Error::new(path, error).row(row))?;
            let request = Request { row, region: info.shape.full() };
            // Before there is memory for it: a damaged shape costs none.
            self.inner.check(&request)?;
            sizes.push((request, info.dtype, bytes));
        }
        let mut images = Vec::with_capacity(missing.len());
        let mut full = false;
        let mut reserved = Reserved { backend: &*self.backend, bytes: 0 };
        for (request, dtype, bytes) in sizes {
            if !reserved.take(bytes) {
                full = true;
                continue;
            }
            // A read puts every pixel of what it was asked for, or is an error.
            let mut pixels = self.backend.reused(bytes).unwrap_or_default();
            pixels.try_reserve_exact(bytes - pixels.len()).map_err(|_| {
                Error::new(path, format_args!("not enough memory to keep an image of {bytes} bytes"))
                    .row(request.row)
                    .hint("read without the memory cache, or give it a limit")
            })?;
            pixels.resize(bytes, 0);
            images.push((request, dtype, pixels));
        }
        let requests: Vec<Request> = images.iter().map(|(request, ..)| *request).collect();
        let left = images.iter().map(|(request, dtype, _)| (*dtype, request.region.pixels())).collect();
        let targets = images
            .iter_mut()
            .map(|(request, dtype, pixels)| (request.region, *dtype, pixels.as_mut_slice()))
            .collect();
        let copied = CopySink::new(targets);
        let mut sink = CompleteSink { path, requests: &requests, left, copied };
        self.inner.read(&requests, scratch, &mut sink)?;
        sink.check_complete()?;
        for (request, _, pixels) in images {
            reserved.insert(request.row, pixels);
        }
        Ok(full)
    }

    /// As [`Self::fill`], but that each image is read by one thread: those that another one reads are waited for.
    pub fn fill_shared(&self, missing: &[usize], scratch: &mut Scratch) -> Result<()> {
        if !self.in_flight.is_of_this_process() {
            return self.fill(missing, scratch).map(drop);
        }
        // One that has no size is an error where it is read.
        let bytes = |row: usize| {
            let info = self.inner.row_info(row).ok();
            info.and_then(|info| info.shape.checked_bytes(info.dtype).ok()).unwrap_or(0)
        };
        let mut left: Vec<(usize, usize)> = missing.iter().map(|&row| (row, bytes(row))).collect();
        loop {
            let claim = self.in_flight.claim(&left, SHARED_BYTES);
            if claim.rows().is_empty() {
                break;
            }
            // Another thread may have read them since they were looked for.
            let rows: Vec<usize> = claim.rows().iter().copied().filter(|&row| !self.contains(row)).collect();
            if !rows.is_empty() {
                self.fill(&rows, scratch)?;
            }
            left.retain(|(row, _)| !claim.rows().contains(row));
        }
        self.in_flight.wait(&left);
        Ok(())
    }

    /// Rows that are read when `row` is missing: those of its chunk that are missing too.
    pub fn missing_in_chunk(&self, row: usize, missing: &mut Vec<usize>) {
        let first = row / self.chunk * self.chunk;
        let chunk = first..(first + self.chunk).min(self.inner.len());
        // A neighbour that is no image is an error where it is asked for.
        let wanted = |&other: &usize| {
            !self.backend.contains(other) && (other == row || self.inner.row_info(other).is_ok())
        };
        missing.extend(chunk.filter(wanted));
    }
}
