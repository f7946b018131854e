//! A store that keeps what was read from another.

use super::compressed::{Compressed, CompressedLru};
use super::in_flight::InFlightReads;
use super::lru::Lru;
use super::mapped::Mapped;
use super::memory::Memory;
use super::preload::Preload;
use super::read_through::ReadThroughCache;
use super::{Cache, CacheBackend, CacheReport};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wellread_store::place::WantedRanges;
use wellread_store::{
    Block, NumberedSink, PixelSink, ReadExtent, Request, Result, Scratch, Store, check_request,
    default_answers, delegate_store,
};

/// Images of an inner store, kept from the first read on while there is room. Reading a kept row copies
/// nothing: its pixels are handed over as one block. Rows for which there is no room are read from the inner
/// store each time, as if there were no cache.
pub(crate) struct CachedStore {
    kept: Arc<ReadThroughCache>,
    /// Ends with the store.
    _preload: Option<Preload>,
}

impl CachedStore {
    /// `inner` behind a cache; `None` for [`Cache::None`] and [`Cache::Disk`]. `made_by` tells its images from others of
    /// the same files.
    ///
    /// # Errors
    /// A cache file or a thread that cannot be made.
    pub(crate) fn new(inner: Arc<dyn Store>, cache: &Cache, made_by: &str) -> Result<Option<Self>> {
        let rows = inner.len();
        let backend: Box<dyn CacheBackend> = match cache {
            // On disk lie bytes as they were fetched: below the set, not before it.
            Cache::None | Cache::Disk(_) => return Ok(None),
            Cache::Memory { limit } | Cache::Preload { limit } | Cache::Chunked { limit, .. } => {
                Box::new(Memory::new(rows, *limit))
            }
            Cache::Lru { limit } => Box::new(Lru::<Box<[u8]>>::new(*limit)),
            Cache::Compressed { limit } => Box::new(Compressed::new(rows, *limit)),
            Cache::CompressedLru { limit } => Box::new(CompressedLru::new(*limit)),
            Cache::File { folder, limit } => {
                Box::new(Mapped::open(&*inner, made_by, folder.as_deref(), *limit)?)
            }
        };
        let chunk = if let Cache::Chunked { rows, .. } = cache { *rows } else { 1 };
        let (hits, misses) = Default::default();
        let in_flight = InFlightReads::default();
        let kept = Arc::new(ReadThroughCache { inner, backend, chunk, in_flight, hits, misses });
        let preload = matches!(cache, Cache::Preload { .. }).then(|| Preload::start(&kept)).transpose()?;
        Ok(Some(Self { kept, _preload: preload }))
    }
}

impl Store for CachedStore {
    delegate_store!(self => self.kept.inner; format, path, remote_path, len, row_info, name, metadata);
    delegate_store!(self => self.kept.inner; layout, files, files_of, has_checksums, hints, row_hints, check);
    // By its own reads, which keep what they read.
    default_answers!(scan);

    fn heads(&self, rows: &[usize], _: ReadExtent, wanted: &mut WantedRanges) {
        let missing: Vec<usize> =
            rows.iter().copied().filter(|&row| !self.kept.backend.contains(row)).collect();
        self.kept.inner.heads(&missing, ReadExtent::Whole, wanted);
    }

    /// Adds whole images for rows that are not kept: they are read whole, to be kept.
    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        let missing = requests.iter().filter(|request| !self.kept.backend.contains(request.row));
        let whole = missing.map(|request| {
            let info = self.row_info(request.row)?;
            Ok(Request { row: request.row, region: info.shape.full() })
        });
        let mut whole = whole.collect::<Result<Vec<_>>>()?;
        whole.dedup();
        self.kept.inner.ranges(&whole, wanted)
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        self.kept.backend.while_whole(&mut || self.read_kept(requests, scratch, sink))
    }
}

impl CachedStore {
    /// Reads what is kept, and the rest from the inner store.
    fn read_kept(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        let ReadThroughCache { inner, backend, chunk, hits, misses, .. } = &*self.kept;
        let mut missing = vec![];
        let (mut read, mut before) = (0, None);
        for request in requests {
            // Requests for several channels of a row stand together; a row read twice would do no harm.
            let is_same = before.replace(request.row) == Some(request.row);
            if is_same || backend.contains(request.row) {
                continue;
            }
            check_request(self, request)?;
            read += 1;
            if *chunk == 1 {
                missing.push(request.row);
            } else if !missing.contains(&request.row) {
                self.kept.missing_in_chunk(request.row, &mut missing);
            }
        }
        if !missing.is_empty()
            && let Err(error) = self.kept.fill_shared(&missing, scratch)
            // Not for a neighbour that cannot be read: then only what was asked for, below.
            && *chunk == 1
        {
            return Err(error);
        }
        misses.fetch_add(read, Ordering::Relaxed);
        let (mut others, mut numbers) = (vec![], vec![]);
        let mut buffer = std::mem::take(&mut scratch.pixels);
        let mut result = Ok(());
        for (i, request) in requests.iter().enumerate() {
            let served = check_request(self, request).and_then(|info| {
                backend.with_pixels(request.row, &mut buffer, &mut |data| {
                    sink.put(i, &Block { region: info.shape.full(), data, dtype: info.dtype })
                })
            });
            match served {
                Ok(true) => {}
                Ok(false) => {
                    others.push(*request);
                    numbers.push(i);
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        scratch.pixels = buffer;
        result?;
        // The first request of a row that is kept from now on was no hit, nor was any of a row without room.
        let rows_of_others = others.chunk_by(|a, b| a.row == b.row).count() as u64;
        let served = (requests.len() - others.len()) as u64;
        hits.fetch_add(served.saturating_sub(read.saturating_sub(rows_of_others)), Ordering::Relaxed);
        if others.is_empty() {
            return Ok(());
        }
        inner.read(&others, scratch, &mut NumberedSink { numbers: &numbers, sink })
    }

    /// The kept images and the reads that they served.
    pub(crate) fn report(&self) -> CacheReport {
        let (bytes, images) = self.kept.backend.size();
        CacheReport {
            bytes,
            images,
            hits: self.kept.hits.load(Ordering::Relaxed),
            misses: self.kept.misses.load(Ordering::Relaxed),
        }
    }
}
