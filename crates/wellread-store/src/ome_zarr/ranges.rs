//! Where the bytes of chunks lie: for those who ask for them before they are read.
//!
//! ```text
//!  request ─▶ chunks ─┬─ a file each ──────────────────────────▶ all of it
//!                     └─ in shards ─┬─ small, or wanted whole ─▶ the shard, its index with it
//!                                   └─ else ─ index, read once ─▶ its inner chunks
//! ```

use super::array::ArrayPlan;
use super::chain::Kind;
use super::grid::{block_region, covering, for_each_index, part_inside};
use super::shard::ShardCodec;
use super::store::OmeZarrStore;
use crate::place::{self, Wanted};
use crate::{Error, Request, Result};
use std::io::ErrorKind;
use std::path::Path;

/// Shards of so many bytes of pixels are fetched whole rather than their index first.
const SMALL_SHARD: u64 = 1 << 20;

impl OmeZarrStore {
    /// Adds the metadata of rows that were not looked into, where they are called as those of a row that was.
    pub(super) fn metadata_files(&self, rows: &[usize], wanted: &mut Wanted) {
        let Some(known) = self.rows.iter().find_map(|row| row.loaded.get()) else { return };
        for &row in rows {
            let Ok(entry) = self.rows.row(row) else { continue };
            if entry.loaded.get().is_some() || self.absent.contains(&row) {
                continue;
            }
            let dir = self.rows.path_of(entry);
            let array = dir.join(&known.dataset);
            // Who reads looks for the newer one first.
            wanted.head(&dir.join("zarr.json"));
            if known.is_v3 {
                wanted.head(&array.join("zarr.json"));
            } else {
                wanted.head(&dir.join(".zgroup"));
                wanted.head(&dir.join(".zattrs"));
                wanted.head(&array.join(".zarray"));
            }
        }
    }

    /// Adds the chunks of some requests.
    pub(super) fn chunk_ranges(&self, requests: &[Request], wanted: &mut Wanted) -> Result<()> {
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
                let file = dir.join(&key);
                match &plan.chain.kind {
                    Kind::Chunk(_) => wanted.push(&file, 0, at_most(chunk_bytes(plan))),
                    Kind::Shard(codec) => self.shard_ranges(request, plan, codec, at, &file, wanted)?,
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }

    /// Adds what a request wants of the shard at `at`.
    fn shard_ranges(
        &self,
        request: &Request,
        plan: &ArrayPlan,
        codec: &ShardCodec,
        at: [usize; 5],
        path: &Path,
        wanted: &mut Wanted,
    ) -> Result<()> {
        let origin = block_region(at, &plan.chunk).start;
        let part = part_inside(&request.region, origin, &plan.chunk);
        let is_whole = (0..5).all(|a| {
            part.start[a] == 0 && part.size[a] == plan.chunk[a].min(plan.info.shape.0[a] - origin[a])
        });
        let bytes = chunk_bytes(plan);
        if is_whole || bytes <= SMALL_SHARD {
            wanted.push(path, 0, at_most(bytes).saturating_add(codec.index_bytes()));
            return Ok(());
        }
        let linear = (0..5).fold(0, |n, a| n * plan.grid[a] + at[a]);
        let number = (request.row, linear);
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

/// Bytes of the pixels of a chunk, or of a shard.
fn chunk_bytes(plan: &ArrayPlan) -> u64 {
    let size = plan.info.dtype.size() as u64;
    plan.chunk.iter().fold(size, |bytes, &n| bytes.saturating_mul(n as u64))
}

/// Bytes that so many may take as they are stored: what does not compress becomes longer by a little.
fn at_most(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 64).saturating_add(4096)
}
