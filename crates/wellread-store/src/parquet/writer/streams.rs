//! Zstandard for pages of `BYTE_STREAM_SPLIT`: a block ends where a byte stream does.
//!
//! ```text
//! page      │ levels │ lowest bytes of all pixels │ next bytes │ 0 0 0 0 … │ 0 0 0 0 … │
//! blocks    │ as they compress                    │            │ a zero, so often      │   128 KiB each, at most
//! ```
//!
//! The bytes that a pixel of 8 or 16 bits does not have are zeros: half or three quarters of a page. A block with
//! others copies them from the zeros before them, eight bytes at a time. That took a third of the time of a small
//! image's first read. A block of zeros alone is one byte that is repeated (RFC 8878, 3.1.1.2.2). Any reader of
//! Zstandard reads either. The other streams have tables of frequencies of their own.

use super::super::levels::split_stream;
use parquet::errors::{ParquetError, Result};
use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

/// Bytes that the end of a block before its time takes at most. They are its header, and that of one that would have been a part of it.
const BLOCK_END: usize = 16;

/// Compresses the pages of one column after the other.
pub(super) struct StreamCompressor(Encoder<'static>);

fn failed(error: std::io::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl StreamCompressor {
    /// At this level of Zstandard.
    ///
    /// # Errors
    /// There is not enough memory, or no such level.
    pub fn new(level: i32) -> Result<Self> {
        // The library panics where there is none.
        zstd::zstd_safe::CCtx::try_create().ok_or_else(|| {
            ParquetError::General("not enough memory for a Zstandard compressor".to_owned())
        })?;
        Encoder::new(level).map(Self).map_err(failed)
    }

    /// A frame of `page`, of which `levels` bytes are levels and the others `streams` streams of one length.
    ///
    /// # Errors
    /// The library's error.
    pub fn compress(&mut self, page: &[u8], levels: usize, streams: usize) -> Result<Vec<u8>> {
        let Self(encoder) = self;
        encoder.reinit().map_err(failed)?;
        encoder.set_pledged_src_size(Some(page.len() as u64)).map_err(failed)?;
        let room = zstd::zstd_safe::compress_bound(page.len()) + streams * BLOCK_END;
        let mut out: Vec<u8> = Vec::with_capacity(room);
        let mut output = OutBuffer::around(&mut out);
        let stream = (page.len() - levels) / streams;
        let mut start = 0;
        for end in (1..=streams).map(|n| levels + n * stream) {
            let mut input = InBuffer::around(&page[start..end]);
            while input.pos() < end - start {
                encoder.run(&mut input, &mut output).map_err(failed)?;
            }
            if end < page.len() {
                while encoder.flush(&mut output).map_err(failed)? > 0 {}
            }
            start = end;
        }
        while encoder.finish(&mut output, true).map_err(failed)? > 0 {}
        out.shrink_to_fit();
        Ok(out)
    }
}

/// How many bytes of levels a page begins with that has streams of levels before its values (data pages of version 1), `streams` of
/// them.
pub(super) fn bytes_of_levels(page: &[u8], streams: usize) -> Option<usize> {
    let mut rest = page;
    for _ in 0..streams {
        (_, rest) = split_stream(rest)?;
    }
    Some(page.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Blocks of a frame (RFC 8878, 3.1.1): kind (0 raw, 1 repeated, 2 compressed) and bytes that are declared.
    fn blocks(frame: &[u8]) -> Vec<(u32, usize)> {
        let (id, single) = (frame[4] & 3, frame[4] & 0x20 != 0);
        let content = match (frame[4] >> 6, single) {
            (0, single) => usize::from(single),
            (n, _) => 1 << n,
        };
        let mut at = 5 + usize::from(!single) + [0, 1, 2, 4][usize::from(id)] + content;
        let mut blocks = vec![];
        loop {
            let header = u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], 0]);
            let (kind, size) = (header >> 1 & 3, (header >> 3) as usize);
            blocks.push((kind, size));
            at += 3 + if kind == 1 { 1 } else { size };
            if header & 1 == 1 {
                assert_eq!(at, frame.len());
                return blocks;
            }
        }
    }

    #[test]
    fn zeros_are_blocks_of_one_repeated_byte() {
        let mut noise = 1u32;
        let mut noise = |n: usize| -> Vec<u8> {
            std::iter::repeat_with(|| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (noise >> 24) as u8
            })
            .take(n)
            .collect()
        };
        let mut compressor = StreamCompressor::new(3).unwrap();
        // 8-bit pixels.
        let page = [noise(20), noise(10_000), vec![0; 30_000]].concat();
        let frame = compressor.compress(&page, 20, 4).unwrap();
        assert_eq!(blocks(&frame)[1..], [(1, 10_000); 3]);
        assert!(frame.len() < 10_100, "{} bytes", frame.len());
        assert_eq!(zstd::bulk::decompress(&frame, page.len()).unwrap(), page);
        // 16-bit pixels, streams longer than a block.
        let page = [noise(20), noise(2 * 300_000), vec![0; 2 * 300_000]].concat();
        let frame = compressor.compress(&page, 20, 4).unwrap();
        let zeros: usize = blocks(&frame).into_iter().filter(|&(kind, _)| kind == 1).map(|(_, n)| n).sum();
        assert_eq!(zeros, 600_000);
        assert_eq!(zstd::bulk::decompress(&frame, page.len()).unwrap(), page);
    }

    proptest! {
        #[test]
        fn any_page_comes_back(
            levels in prop::collection::vec(any::<u8>(), 0..50),
            (streams, length) in (1usize..=8, 0usize..3000),
            byte in any::<u8>(),
            level in -3i32..=19,
        ) {
            let values: Vec<u8> = (0..streams * length)
                .map(|i| if i < length { byte.wrapping_mul(i as u8) ^ (i >> 8) as u8 } else { 0 })
                .collect();
            let page = [levels.clone(), values].concat();
            let mut compressor = StreamCompressor::new(level).unwrap();
            for _ in 0..2 {
                let frame = compressor.compress(&page, levels.len(), streams).unwrap();
                prop_assert_eq!(zstd::bulk::decompress(&frame, page.len()).unwrap(), page.clone());
            }
        }

        #[test]
        fn levels_end_within_the_page(page in prop::collection::vec(any::<u8>(), 0..40), streams in 0usize..3) {
            if let Some(n) = bytes_of_levels(&page, streams) {
                prop_assert!(n >= 4 * streams && n <= page.len());
            }
        }
    }

    #[test]
    fn levels_are_told_from_values() {
        let page = [&2u32.to_le_bytes()[..], &[7, 7], &1u32.to_le_bytes(), &[7], &[9; 8]].concat();
        assert_eq!(bytes_of_levels(&page, 2), Some(11));
        assert_eq!(bytes_of_levels(&page, 0), Some(0));
        assert_eq!(bytes_of_levels(&page[..10], 2), None);
    }
}
