//! Shards (`sharding_indexed`): one file with many chunks and an index of where each lies.
//!
//! The index is read once per shard and kept (a bounded number of them); chunks are then read by byte range,
//! neighbours in one go.
//!
//! Specification: <https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/index.html>.

use super::chunk::{Target, checked};
use super::codec::ChunkCodec;
use super::order::Reorder;
use crate::place::{File, Part, WantedRanges};
use crate::refusal::Refusal;
use serde_json::Value;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// Marks an inner chunk that is not there.
const MISSING: u64 = u64::MAX;
/// Inner chunks closer than this are read together.
const MAX_JOINED_GAP: u64 = 32 << 10;
/// Upper bound of one joint read, unless a single inner chunk is larger.
const MAX_JOINED_READ: u64 = 8 << 20;
/// Bytes of the joint reads that are made in one call where that saves waiting.
const MAX_AT_ONCE: u64 = 8 << 20;

/// How shards of an array are laid out.
#[derive(Debug)]
pub(super) struct ShardCodec {
    /// Inner chunk length along TCZYX.
    pub inner: [usize; 5],
    /// Number of inner chunks in a shard, along the dimensions of `axes`.
    counts: Vec<usize>,
    /// TCZYX axis of each (transposed) dimension.
    axes: Vec<usize>,
    index_at_end: bool,
    index_crc32c: bool,
    index_big_endian: bool,
    /// Decodes an inner chunk.
    pub codec: ChunkCodec,
    /// How to bring a decoded inner chunk to TCZYX order, unless it is.
    pub reorder: Option<Reorder>,
}

/// Length of the inner chunks of shards of `target` along each dimension, by the configuration of `sharding_indexed`.
pub(super) fn inner_chunk(configuration: &Value, target: &Target<'_>) -> Result<Vec<usize>, Refusal> {
    let inner: Vec<usize> = configuration
        .get("chunk_shape")
        .and_then(Value::as_array)
        .ok_or("sharding_indexed has no chunk_shape")?
        .iter()
        .filter_map(Value::as_u64)
        .filter_map(|n| usize::try_from(n).ok())
        .collect();
    let fits = inner.len() == target.chunk.len()
        && inner.iter().zip(target.chunk).all(|(&i, &c)| i > 0 && c % i == 0);
    if !fits {
        let cause = format!("shards of {:?} cannot be divided into chunks of {inner:?}", target.chunk);
        return Err(cause.into());
    }
    Ok(inner)
}

/// Byte ranges of the inner chunks of one shard, in C order of the shard's dimensions.
pub(super) type Index = Vec<(u64, u64)>;

/// An inner chunk that is there: where its bytes are, and its coordinates (TCZYX, in inner chunks) in the shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub offset: u64,
    pub length: u64,
    pub at: [usize; 5],
}

impl ShardCodec {
    /// How shards of `target` are laid out by the configuration of `sharding_indexed`. Its inner chunks are of length
    /// `inner` along each dimension and are decoded by `codec` and `reorder`.
    pub fn new(
        configuration: &Value,
        target: &Target<'_>,
        inner: &[usize],
        codec: ChunkCodec,
        reorder: Option<Reorder>,
    ) -> Result<Self, Refusal> {
        let index_at_end = match configuration.get("index_location").and_then(Value::as_str) {
            Some("end") | None => true,
            Some("start") => false,
            Some(other) => return Err(format!("unknown index_location {other:?}").into()),
        };
        let (mut index_crc32c, mut index_big_endian) = (false, false);
        for codec in configuration.get("index_codecs").and_then(Value::as_array).into_iter().flatten() {
            let name = codec.get("name").and_then(Value::as_str).or(codec.as_str()).unwrap_or_default();
            match name {
                "bytes" => {
                    let endian = codec.pointer("/configuration/endian").and_then(Value::as_str);
                    index_big_endian = endian == Some("big");
                }
                "crc32c" if !index_crc32c => index_crc32c = true,
                other => {
                    let cause = format_args!("shard index codec {other:?} is not supported");
                    return Err(Refusal::unsupported(cause));
                }
            }
        }
        let mut by_axis = [1; 5];
        for (&axis, &n) in target.axes.iter().zip(inner) {
            by_axis[axis] = n;
        }
        let counts = inner.iter().zip(target.chunk).map(|(i, c)| c / i).collect();
        Ok(Self {
            inner: by_axis,
            counts,
            axes: target.axes.to_vec(),
            index_at_end,
            index_crc32c,
            index_big_endian,
            codec,
            reorder,
        })
    }

    /// Bytes of the index of a shard; more than any file has where there are more chunks than can be counted.
    pub fn index_bytes(&self) -> u64 {
        self.counts.iter().fold(16u64, |n, &c| n.saturating_mul(c as u64)).saturating_add(4)
    }

    /// Adds where the index of a shard is hoped to lie: at the end or the beginning of its file.
    pub fn want_index(&self, file: &Path, wanted: &mut WantedRanges) {
        if self.index_at_end { wanted.tail(file) } else { wanted.head(file) }
    }

    /// Position in the index of the inner chunk at `at` (TCZYX, in inner chunks, within the shard).
    fn position(&self, at: [usize; 5]) -> usize {
        self.axes.iter().zip(&self.counts).fold(0, |p, (&axis, &count)| p * count + at[axis])
    }

    /// Reads the index of a shard file of `length` bytes.
    pub fn read_index(&self, file: &File, length: u64) -> Result<Index, String> {
        let chunks = self.counts.iter().try_fold(1u64, |n, &c| n.checked_mul(c as u64));
        let size = chunks
            .and_then(|n| n.checked_mul(16))
            .and_then(|n| n.checked_add(if self.index_crc32c { 4 } else { 0 }))
            .filter(|&size| size <= length)
            .ok_or_else(|| format!("its {length} bytes are too few for the index of a shard"))?;
        let start = if self.index_at_end { length - size } else { 0 };
        let mut bytes = vec![0; size as usize];
        file.read_exact_at(&mut bytes, start).map_err(|e| format!("cannot read the shard's index: {e}"))?;
        let entries = if self.index_crc32c {
            checked(&bytes).map_err(|e| format!("the shard's index: {e}"))?
        } else {
            &bytes
        };
        let number = |b: [u8; 8]| {
            if self.index_big_endian { u64::from_be_bytes(b) } else { u64::from_le_bytes(b) }
        };
        let (numbers, _) = entries.as_chunks::<8>();
        Ok(numbers.chunks_exact(2).map(|pair| (number(pair[0]), number(pair[1]))).collect())
    }

    /// Looks up inner chunk `at`; `None` when it is missing and stands for the fill value.
    pub fn piece(&self, index: &Index, at: [usize; 5], file_length: u64) -> Result<Option<Piece>, String> {
        let &(offset, length) =
            index.get(self.position(at)).ok_or("the shard's index is shorter than its chunks")?;
        if offset == MISSING && length == MISSING {
            return Ok(None);
        }
        if offset.checked_add(length).is_none_or(|end| end > file_length) {
            return Err(format!(
                "the shard's index places chunk {at:?} (TCZYX) at {offset}+{length}, beyond the {file_length} bytes of the file"
            ));
        }
        Ok(Some(Piece { offset, length, at }))
    }
}

/// Sorts pieces by offset and groups those that are worth reading in one go. Yields `(start, end)` in bytes
/// and how many pieces, in their new order, lie within.
pub(super) fn joint_reads(pieces: &mut [Piece]) -> Vec<(u64, u64, usize)> {
    pieces.sort_unstable_by_key(|p| p.offset);
    let mut reads: Vec<(u64, u64, usize)> = Vec::new();
    for piece in pieces.iter() {
        let end = piece.offset + piece.length;
        match reads.last_mut() {
            Some((start, stop, count))
                if piece.offset <= stop.saturating_add(MAX_JOINED_GAP)
                    && end.saturating_sub(*start) <= MAX_JOINED_READ =>
            {
                *stop = end.max(*stop);
                *count += 1;
            }
            _ => reads.push((piece.offset, end, 1)),
        }
    }
    reads
}

/// Those of [`joint_reads`] that are made in one call. They are made one by one of a local file; elsewhere, where each is a wait, as many
/// as have [`MAX_AT_ONCE`] bytes together.
pub(super) fn at_once<'a>(
    reads: &'a [(u64, u64, usize)],
    file: &File,
) -> impl Iterator<Item = &'a [(u64, u64, usize)]> + use<'a> {
    let most = if file.local().is_some() { 0 } else { MAX_AT_ONCE };
    let mut rest = reads;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut bytes = 0_u64;
        let fits = rest.iter().take_while(|(start, end, _)| {
            bytes = bytes.saturating_add(end - start);
            bytes <= most
        });
        let (now, later) = rest.split_at(fits.count().max(1));
        rest = later;
        Some(now)
    })
}

/// Fills `raw` with the bytes of some [`joint_reads`], one behind the other.
pub(super) fn fetch(file: &File, reads: &[(u64, u64, usize)], mut raw: &mut [u8]) -> io::Result<()> {
    if let [(start, ..)] = reads {
        return file.read_exact_at(raw, *start);
    }
    let mut parts = Vec::with_capacity(reads.len());
    for &(offset, end, _) in reads {
        let (buffer, rest) = std::mem::take(&mut raw).split_at_mut((end - offset) as usize);
        parts.push(Part { offset, buffer });
        raw = rest;
    }
    file.read_ranges(&mut parts)
}

/// Indices of shards that were read, by row and linear shard number.
#[derive(Debug, Default)]
pub(super) struct IndexCache(RwLock<Indices>);

#[derive(Debug, Default)]
struct Indices {
    by_shard: HashMap<(usize, usize), Arc<Index>>,
    /// Entries of all indices together.
    entries: usize,
}

impl IndexCache {
    /// Entries kept over all shards (16 bytes each: 64 MiB); beyond that the cache starts anew.
    const MAX_ENTRIES: usize = 4 << 20;

    /// Whether the index under `key` was read and is here.
    pub fn has(&self, key: (usize, usize)) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).by_shard.contains_key(&key)
    }

    /// The index under `key`, read by `read` if it is not there yet.
    pub fn get(
        &self,
        key: (usize, usize),
        read: impl FnOnce() -> Result<Index, String>,
    ) -> Result<Arc<Index>, String> {
        if let Some(found) = self.0.read().unwrap_or_else(PoisonError::into_inner).by_shard.get(&key) {
            return Ok(found.clone());
        }
        let index = Arc::new(read()?);
        let mut indices = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if indices.entries + index.len() > Self::MAX_ENTRIES {
            *indices = Indices::default();
        }
        if indices.by_shard.insert(key, index.clone()).is_none() {
            indices.entries += index.len();
        }
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Elsewhere;

    impl crate::place::ReadRanges for Elsewhere {
        fn length(&self) -> io::Result<u64> {
            Ok(256)
        }

        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            for (at, byte) in (offset..).zip(buffer) {
                *byte = at as u8;
            }
            Ok(())
        }
    }

    #[test]
    fn reads_elsewhere_are_made_together_up_to_a_bound() {
        let file = File::Other(Box::new(Elsewhere));
        let reads = [(0, 2, 1), (7, 8, 1), (9, 9 + MAX_AT_ONCE, 1), (100, 101, 1)];
        let counts: Vec<_> = at_once(&reads, &file).map(<[_]>::len).collect();
        assert_eq!(counts, [2, 1, 1]);
        let mut raw = [0; 3];
        fetch(&file, &reads[..2], &mut raw).unwrap();
        assert_eq!(raw, [0, 1, 7]);
        let local = File::from(tempfile::tempfile().unwrap());
        assert_eq!(at_once(&reads, &local).count(), 4);
        assert_eq!(at_once(&[], &local).count(), 0);
    }

    #[test]
    fn neighbours_are_read_together() {
        let piece = |offset, length| Piece { offset, length, at: [0; 5] };
        let mut pieces = [piece(1 << 20, 10), piece(10, 10), piece(0, 10), piece(9 << 20, 20 << 20)];
        assert_eq!(
            joint_reads(&mut pieces),
            [(0, 20, 2), (1 << 20, (1 << 20) + 10, 1), (9 << 20, 29 << 20, 1)]
        );
    }

    #[test]
    fn cache_starts_anew_when_full() {
        let cache = IndexCache::default();
        for shard in 0..5 {
            let index = cache.get((0, shard), || Ok(vec![(0, 0); IndexCache::MAX_ENTRIES / 2])).unwrap();
            assert_eq!(index.len(), IndexCache::MAX_ENTRIES / 2);
        }
        assert!(cache.has((0, 4)) && !cache.has((1, 4)));
        assert!(cache.0.read().unwrap().by_shard.len() <= 2);
        assert!(cache.get((0, 4), || Err("must be cached".into())).is_ok());
    }
}
