//! Blocks of a database file: positional reads, each block checked against its checksum before anything in it is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::{grown, read_at};
use wellread_store::place::File;

/// Bytes before the first block: three headers.
pub(crate) const HEADERS: u64 = 3 * 4096;
/// Bytes of a block's own header: its checksum.
const BLOCK_HEADER: usize = 8;
/// Largest block that DuckDB makes.
const MOST_BLOCK_BYTES: usize = 1 << 20;
/// Bytes of indexes and small columns that are kept, at most.
const MOST_KEPT: usize = 64 << 20;

/// The blocks of an open database file; many threads may read them at once.
#[derive(Debug)]
pub(crate) struct Blocks {
    file: Arc<File>,
    /// Bytes of a block with its header.
    size: usize,
    count: u64,
    /// A bit for each block whose checksum was compared.
    verified: Box<[AtomicU64]>,
    /// Bytes that others keep of these blocks.
    kept: AtomicUsize,
}

impl Blocks {
    /// `count` blocks of `size` bytes. `None` where the file cannot be so.
    pub fn new(file: Arc<File>, size: u64, count: u64) -> Option<Self> {
        let size = usize::try_from(size).ok().filter(|s| *s <= MOST_BLOCK_BYTES)?;
        let needed = count.checked_mul(size as u64)?.checked_add(HEADERS)?;
        if size <= BLOCK_HEADER || !size.is_multiple_of(8) || needed > file.length().ok()? {
            return None;
        }
        let verified = (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Some(Self { file, size, count, verified, kept: AtomicUsize::new(0) })
    }

    /// Bytes of data in a block.
    pub fn room(&self) -> usize {
        self.size - BLOCK_HEADER
    }

    /// Whether there is such a block.
    pub fn has(&self, block: u64) -> bool {
        block < self.count
    }

    /// Whether `bytes` more may be kept in memory; if so, they count from now on.
    pub fn keep(&self, bytes: usize) -> bool {
        let fits = |kept: usize| kept.checked_add(bytes).filter(|sum| *sum <= MOST_KEPT);
        self.kept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Fills `out` from `offset` in the data of a block.
    pub(super) fn read_into(&self, block: u64, offset: usize, out: &mut [u8]) -> Result<(), Fault> {
        if !self.has(block) || offset.checked_add(out.len()).is_none_or(|end| end > self.room()) {
            return Err(Irregular("a segment outside of its block"));
        }
        let bit = 1 << (block % 64);
        let verified = &self.verified[(block / 64) as usize];
        if verified.load(Ordering::Acquire) & bit == 0 {
            self.verify(block)?;
            verified.fetch_or(bit, Ordering::Release);
        }
        self.fill(block, BLOCK_HEADER + offset, out)
    }

    /// The `length` bytes from `offset` in the data of a block, read to the start of `raw`, which grows to hold them.
    pub(super) fn read<'a>(
        &self,
        block: u64,
        offset: usize,
        length: usize,
        raw: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Fault> {
        if length > self.room() {
            return Err(Irregular("a segment outside of its block"));
        }
        let bytes = grown(raw, length)?;
        self.read_into(block, offset, bytes)?;
        Ok(bytes)
    }

    fn fill(&self, block: u64, at: usize, out: &mut [u8]) -> Result<(), Fault> {
        read_at(&self.file, out, HEADERS + block * self.size as u64 + at as u64)
    }

    /// Compares the checksum of a block.
    fn verify(&self, block: u64) -> Result<(), Fault> {
        let mut whole = vec![0; self.size];
        self.fill(block, 0, &mut whole)?;
        let words = whole.as_chunks::<8>().0;
        if u64::from_le_bytes(words[0]) == checksum(&words[1..]) {
            Ok(())
        } else {
            Err(Irregular("a block does not match its checksum"))
        }
    }
}

/// DuckDB's checksum of a block.
pub(crate) fn checksum(words: &[[u8; 8]]) -> u64 {
    let mix = |word: &[u8; 8]| u64::from_le_bytes(*word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    words.iter().fold(5381, |sum, word| sum ^ mix(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_verified_and_reads_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("blocks");
        let size = 4096;
        let mut bytes = vec![0u8; HEADERS as usize + 3 * size];
        for block in 0..3 {
            let at = HEADERS as usize + block * size;
            for (i, byte) in bytes[at + 8..at + size].iter_mut().enumerate() {
                *byte = (i * (block + 3) % 251) as u8;
            }
            let sum = checksum(bytes[at + 8..at + size].as_chunks::<8>().0);
            bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
        }
        // A bit of the last block is flipped.
        let last = HEADERS as usize + 2 * size + 100;
        bytes[last] ^= 4;
        std::fs::write(&path, &bytes).unwrap();
        let open =
            |count| Blocks::new(Arc::new(wellread_store::place::open(&path).unwrap().0), size as u64, count);
        assert!(open(4).is_none() && open(u64::MAX).is_none());
        let blocks = open(3).unwrap();
        let mut raw = vec![];
        for _ in 0..2 {
            assert_eq!(blocks.read(1, 10, 3, &mut raw).unwrap(), [40, 44, 48]);
            assert!(blocks.read(2, 0, 1, &mut raw).is_err());
        }
        for (block, offset, length) in [(3, 0, 1), (0, size - 8, 1), (0, 0, size), (0, usize::MAX, 2)] {
            assert!(blocks.read(block, offset, length, &mut raw).is_err());
        }
        assert_eq!(blocks.read(0, size - 9, 1, &mut raw).unwrap().len(), 1);
        assert!(blocks.keep(MOST_KEPT) && !blocks.keep(1));
    }
}
