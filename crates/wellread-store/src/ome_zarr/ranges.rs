//! Where the bytes of chunks lie: for those who ask for them before they are read.
//!
//! ```text
//!  request ─▶ chunks ─┬─ a file each ──────────────────────────▶ all of it
//!                     └─ in shards ─┬─ small, or wanted whole ─▶ the shard, its index with it
//!                                   └─ else ─ index, read once ─▶ its inner chunks
//! ```
//!
//! Indices are asked for with the heads of rows, and those that are missing still, of all shards of the requests at once.

use super::array::ArrayPlan;
use super::chunk_codecs::Kind;
use super::grid::{block_region, covering, for_each_index, part_inside};
use super::shard::ShardCodec;
use super::store::OmeZarrStore;
use crate::ahead::Fetching;
use crate::place::{self, PrefetchGuard, WantedRanges};
use crate::{Error, ReadExtent, Request, Result, Store as _};
use std::convert::Infallible;
use std::io::ErrorKind;
use std::path::Path;

/// Shards that an image may have whose indices are asked for before it is known which of them are wanted.
const FEW_SHARDS: usize = 4;
/// Shards of so many bytes of pixels are fetched whole rather than their index first.
const SMALL_SHARD: u64 = 1 << 20;

impl OmeZarrStore {
    /// Adds the metadata of rows that were not looked into, and the indices of shards, unless these are going to be
    /// read whole. It assumes the names of a row that was looked into.
    pub(super) fn metadata_files(&self, rows: &[usize], extent: ReadExtent, wanted: &mut WantedRanges) {
        let Some(known) = self.rows.iter().find_map(|row| row.loaded.get()) else { return };
        for &row in rows {
            let Ok(entry) = self.rows.row(row) else { continue };
            if self.absent.contains(&row) {
                continue;
            }
            if let Some(plan) = entry.loaded.get() {
                if extent == ReadExtent::Part {
                    self.few_indices(row, plan, wanted);
                }
                continue;
            }
            let dir = self.rows.path_of(entry);
            if self.consolidated.has(&dir) {
                if extent == ReadExtent::Part {
                    self.few_indices(row, known, wanted);
                }
                continue;
            }
            let array = dir.join(&known.dataset);
            // A reader looks for the newer one first.
            wanted.head(&dir.join("zarr.json"));
            if known.is_v3 {
                wanted.head(&array.join("zarr.json"));
            } else {
                wanted.head(&dir.join(".zgroup"));
                wanted.head(&dir.join(".zattrs"));
                wanted.head(&array.join(".zarray"));
            }
            if extent == ReadExtent::Part {
                self.few_indices(row, known, wanted);
            }
        }
    }

    /// Adds the chunks of some requests.
    pub(super) fn chunk_ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        let mut indices = WantedRanges::default();
        self.each_chunk(requests, |request, plan, at, file| {
            if let Kind::Shard(codec) = &plan.codecs.kind
                && !is_fetched_whole(request, plan, at)
                && !self.shard_indices.has((request.row, linear(plan, at)))
            {
                codec.want_index(file, &mut indices);
            }
            Ok(())
        })?;
        // Until all of them were read.
        let _held = self.fetched(&indices);
        self.each_chunk(requests, |request, plan, at, file| match &plan.codecs.kind {
            Kind::Chunk(_) => {
                wanted.push(file, 0, at_most(chunk_bytes(plan)));
                Ok(())
            }
            Kind::Shard(codec) => self.shard_ranges(request, plan, codec, at, file, wanted),
        })
    }

    fn fetched(&self, wanted: &WantedRanges) -> Vec<PrefetchGuard> {
        let fetching = if wanted.is_empty() { None } else { Fetching::of(self.path(), None) };
        fetching.map(|mut fetching| fetching.fetch(wanted)).unwrap_or_default()
    }

    /// Hands on the chunks, or shards, that some requests touch, and their files.
    fn each_chunk(
        &self,
        requests: &[Request],
        mut each: impl FnMut(&Request, &ArrayPlan, [usize; 5], &Path) -> Result<()>,
    ) -> Result<()> {
        let mut key = String::new();
        for request in requests.iter().filter(|request| !self.absent.contains(&request.row)) {
            let plan = self.plan(request.row)?;
            if !request.region.fits(plan.info.shape) {
                continue;
            }
            let dir = self.rows.path_of(self.rows.row(request.row)?).join(&plan.dataset);
            let (first, last) = covering(&request.region, &plan.chunk);
            for_each_index(first, last, |at| {
                plan.key(at, &mut key);
                each(request, plan, at, &dir.join(&key))
            })?;
        }
        Ok(())
    }

    /// Adds the indices of an image's shards, where these are few and not fetched whole.
    fn few_indices(&self, row: usize, plan: &ArrayPlan, wanted: &mut WantedRanges) {
        let Kind::Shard(codec) = &plan.codecs.kind else { return };
        let shards = plan.grid.iter().fold(1, |shards: usize, &n| shards.saturating_mul(n));
        let Ok(entry) = self.rows.row(row) else { return };
        if chunk_bytes(plan) <= SMALL_SHARD || !(1..=FEW_SHARDS).contains(&shards) {
            return;
        }
        let (dir, mut key) = (self.rows.path_of(entry).join(&plan.dataset), String::new());
        let _ = for_each_index([0; 5], plan.grid.map(|n| n - 1), |at| {
            if !self.shard_indices.has((row, linear(plan, at))) {
                plan.key(at, &mut key);
                codec.want_index(&dir.join(&key), wanted);
            }
            Ok::<_, Infallible>(())
        });
    }

    /// Adds what a request wants of the shard at `at`.
    fn shard_ranges(
        &self,
        request: &Request,
        plan: &ArrayPlan,
        codec: &ShardCodec,
        at: [usize; 5],
        path: &Path,
        wanted: &mut WantedRanges,
    ) -> Result<()> {
        if is_fetched_whole(request, plan, at) {
            wanted.push(path, 0, at_most(chunk_bytes(plan)).saturating_add(codec.index_bytes()));
            return Ok(());
        }
        let origin = block_region(at, &plan.chunk).start;
        let part = part_inside(&request.region, origin, &plan.chunk);
        let number = (request.row, linear(plan, at));
        let file = match self.files.get(number, || place::open(path)) {
            Ok(file) => file,
            // A shard that is not there is none of its chunks.
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(Error::io(path, "cannot open", &e)),
        };
        let read = || codec.read_index(&file.file, file.length);
        let index = self.shard_indices.get(number, read).map_err(|cause| Error::new(path, cause))?;
        let (first, last) = covering(&part, &codec.inner);
        for_each_index(first, last, |at| {
            if let Some(piece) = codec.piece(&index, at, file.length)? {
                wanted.push(path, piece.offset, piece.length);
            }
            Ok::<_, String>(())
        })
        .map_err(|cause| Error::new(path, cause))
    }
}

/// The number of a chunk, or shard, among those of its image.
fn linear(plan: &ArrayPlan, at: [usize; 5]) -> usize {
    (0..5).fold(0, |n, a| n * plan.grid[a] + at[a])
}

/// Whether a shard is small, or a request wants all of it, so that its index need not be known first.
fn is_fetched_whole(request: &Request, plan: &ArrayPlan, at: [usize; 5]) -> bool {
    let origin = block_region(at, &plan.chunk).start;
    let part = part_inside(&request.region, origin, &plan.chunk);
    let is_whole = (0..5)
        .all(|a| part.start[a] == 0 && part.size[a] == plan.chunk[a].min(plan.info.shape.0[a] - origin[a]));
    is_whole || chunk_bytes(plan) <= SMALL_SHARD
}

/// Bytes of the pixels of a chunk, or of a shard.
fn chunk_bytes(plan: &ArrayPlan) -> u64 {
    let size = plan.stored.size() as u64;
    plan.chunk.iter().fold(size, |bytes, &n| bytes.saturating_mul(n as u64))
}

/// Bytes that so many may take as they are stored: incompressible bytes become longer by a little.
fn at_most(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 64).saturating_add(4096)
}
