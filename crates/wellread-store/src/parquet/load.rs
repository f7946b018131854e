//! Pages read, decompressed and taken apart: levels and values.
//!
//! ```text
//!  Page ──read──▶ bytes ──check_sum──▶ ──decompress──▶ Body: repetition levels, definition levels, values
//! ```

use super::file::PositionalFile;
use super::levels::{Start, split_stream};
use super::pages::{FastPathError, Page, check_sum, damaged};
use super::thrift::{Encoding, PageHeader, PageKind};
use crate::{Error, try_alloc};
use parquet::basic::{Compression, Type as Physical};
use wellread_trace::{Kind, span};

/// A page, decompressed and taken apart.
#[derive(Debug)]
pub(super) struct Body<'a> {
    pub repetition: &'a [u8],
    pub definition: &'a [u8],
    pub values: &'a [u8],
}

/// Decompressors that a thread keeps, and a list that it uses again.
#[derive(Default)]
pub(super) struct Codecs {
    /// Where rows and pieces start in a page.
    pub starts: Vec<Start>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    deflate: Option<libdeflater::Decompressor>,
}

/// Most bytes of a page of `values` numbers: they take 8 bytes at most. Levels and indices, even one run each, less
/// than as much again.
fn numbers_limit(values: usize) -> usize {
    4096 + values.saturating_mul(20)
}

/// Most bytes of a page of a column: numbers have a size, byte arrays (names, well labels) have any length.
///
/// A page of byte arrays may hold 64 MiB, and more where its compressed bytes justify that. Equal names compress by a
/// factor of thousands with Zstandard, so that the compressed size alone would refuse small pages.
pub(super) fn column_limit(physical: Physical, header: &PageHeader) -> usize {
    let numbers = numbers_limit(header.values);
    match physical {
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => {
            numbers.max((64 << 20) + header.compressed.saturating_mul(1024))
        }
        _ => numbers,
    }
}

/// Reads, checks and decompresses the page of numbers whose header is at `offset`. The page takes `size` bytes with
/// it and has `entries` entries of levels. Where these do not agree with its header it is for the general reader.
pub(super) fn load_at<'a>(
    file: &PositionalFile,
    (offset, size): (u64, u32),
    entries: u64,
    codec: Compression,
    max: (i16, i16),
    raw: &'a mut Vec<u8>,
    decoded: &'a mut Vec<u8>,
    codecs: &mut Codecs,
) -> std::result::Result<(Encoding, Body<'a>), FastPathError> {
    file.read(offset, size as usize, raw)?;
    let header = PageHeader::parse(raw).map_err(|_| FastPathError::General)?;
    let is_data = matches!(header.kind, PageKind::V1 { .. } | PageKind::V2 { .. });
    if !is_data || header.length + header.compressed != raw.len() || header.values as u64 != entries {
        return Err(FastPathError::General);
    }
    check_size(file, offset, &header, numbers_limit(header.values))?;
    let body =
        check_and_decompress(file, offset, &header, codec, max, &raw[header.length..], decoded, codecs)?;
    Ok((header.encoding, body))
}

/// Reads, checks and decompresses a page. `max` are the largest levels: a stream of levels that can only be
/// zero is not there.
pub(super) fn load<'a>(
    file: &PositionalFile,
    page: &Page,
    codec: Compression,
    max: (i16, i16),
    raw: &'a mut Vec<u8>,
    decoded: &'a mut Vec<u8>,
    codecs: &mut Codecs,
) -> std::result::Result<Body<'a>, FastPathError> {
    load_within(file, page, codec, max, numbers_limit(page.header.values), raw, decoded, codecs)
}

/// As [`load`], for values of any length: a page that declares more than `limit` bytes is corrupt.
pub(super) fn load_within<'a>(
    file: &PositionalFile,
    page: &Page,
    codec: Compression,
    max: (i16, i16),
    limit: usize,
    raw: &'a mut Vec<u8>,
    decoded: &'a mut Vec<u8>,
    codecs: &mut Codecs,
) -> std::result::Result<Body<'a>, FastPathError> {
    check_size(file, page.offset, &page.header, limit)?;
    file.read(page.offset, page.header.compressed, raw)?;
    check_and_decompress(file, page.offset, &page.header, codec, max, raw, decoded, codecs)
}

fn corrupt(file: &PositionalFile, offset: u64, why: &dyn std::fmt::Display) -> FastPathError {
    FastPathError::Error(damaged(file, offset, why))
}

/// Refuses a page that declares more than `limit` bytes.
fn check_size(
    file: &PositionalFile,
    offset: u64,
    header: &PageHeader,
    limit: usize,
) -> Result<(), FastPathError> {
    if header.uncompressed > limit {
        let why = format_args!("declares {} bytes for {} values", header.uncompressed, header.values);
        return Err(corrupt(file, offset, &why));
    }
    Ok(())
}

/// Checks and decompresses a page of which `raw` is all after its header, which is the file's from `offset` on.
fn check_and_decompress<'a>(
    file: &PositionalFile,
    offset: u64,
    header: &PageHeader,
    codec: Compression,
    max: (i16, i16),
    raw: &'a [u8],
    decoded: &'a mut Vec<u8>,
    codecs: &mut Codecs,
) -> std::result::Result<Body<'a>, FastPathError> {
    check_sum(file, offset, header, raw)?;
    let corrupt = |why: &dyn std::fmt::Display| corrupt(file, offset, why);
    let short = || corrupt(&"it ends within its levels");
    if codec != Compression::UNCOMPRESSED {
        try_alloc::reserve(decoded, header.uncompressed)
            .map_err(|cause| FastPathError::Error(Error::new(file.path(), cause)))?;
    }
    match header.kind {
        PageKind::V1 { levels } => {
            let data = decompress(codec, raw, header.uncompressed, decoded, codecs, &corrupt)?;
            let mut rest = data;
            let mut stream = |max: i16, encoding: Encoding| {
                if max == 0 {
                    return Ok(&[][..]);
                }
                if encoding != Encoding::Rle {
                    return Err(FastPathError::General);
                }
                let (stream, after) = split_stream(rest).ok_or_else(short)?;
                rest = after;
                Ok(stream)
            };
            let repetition = stream(max.0, levels[0])?;
            let definition = stream(max.1, levels[1])?;
            Ok(Body { repetition, definition, values: rest })
        }
        PageKind::V2 { repetition_bytes, definition_bytes, compressed } => {
            let (repetition, rest) = raw.split_at_checked(repetition_bytes).ok_or_else(short)?;
            let (definition, rest) = rest.split_at_checked(definition_bytes).ok_or_else(short)?;
            let size =
                header.uncompressed.checked_sub(repetition_bytes + definition_bytes).ok_or_else(short)?;
            if size == 0 {
                // Nothing but nulls; some codecs make a few bytes even of nothing.
                return Ok(Body { repetition, definition, values: &[] });
            }
            let codec = if compressed { codec } else { Compression::UNCOMPRESSED };
            let values = decompress(codec, rest, size, decoded, codecs, &corrupt)?;
            Ok(Body { repetition, definition, values })
        }
        PageKind::Dictionary => {
            let values = decompress(codec, raw, header.uncompressed, decoded, codecs, &corrupt)?;
            Ok(Body { repetition: &[], definition: &[], values })
        }
        PageKind::Unknown => Err(FastPathError::General),
    }
}

/// `input` decompressed to exactly `size` bytes.
fn decompress<'a>(
    codec: Compression,
    input: &'a [u8],
    size: usize,
    out: &'a mut Vec<u8>,
    codecs: &mut Codecs,
    corrupt: &dyn Fn(&dyn std::fmt::Display) -> FastPathError,
) -> std::result::Result<&'a [u8], FastPathError> {
    let failed = |e: &dyn std::fmt::Display| corrupt(&format_args!("cannot be decompressed: {e}"));
    if codec == Compression::UNCOMPRESSED {
        return if input.len() == size {
            Ok(input)
        } else {
            Err(corrupt(&format_args!("has {} bytes and declares {size}", input.len())))
        };
    }
    let _decompress = span(Kind::Decompress).with(input.len() as u64, size as u64);
    let length = match codec {
        Compression::UNCOMPRESSED => input.len(),
        Compression::ZSTD(_) => {
            out.clear();
            out.reserve(size);
            let zstd = match &mut codecs.zstd {
                Some(zstd) => zstd,
                none => none.insert(try_alloc::zstd_decompressor().map_err(|e| failed(&e))?),
            };
            // The buffer may have room for more than was asked: the bytes are checked below.
            zstd.decompress_to_buffer(input, out).map_err(|e| failed(&e))?
        }
        Compression::SNAPPY => {
            let length = snap::raw::decompress_len(input).map_err(|e| failed(&e))?;
            if length == size {
                out.resize(size, 0);
                snap::raw::Decoder::new().decompress(input, out).map_err(|e| failed(&e))?;
            }
            length
        }
        Compression::LZ4_RAW => {
            out.resize(size, 0);
            lz4_flex::block::decompress_into(input, out).map_err(|e| failed(&e))?
        }
        Compression::GZIP(_) => {
            out.resize(size, 0);
            let deflate = codecs.deflate.get_or_insert_with(libdeflater::Decompressor::new);
            match deflate.gzip_decompress(input, out) {
                Ok(length) if length == size => length,
                // Several members in a row are allowed: rare, and left to a decoder that takes them. It also
                // says what is wrong where something is.
                _ => fill(flate2::read::MultiGzDecoder::new(input), out).map_err(|e| failed(&e))?,
            }
        }
        Compression::BROTLI(_) => {
            out.resize(size, 0);
            fill(brotli::Decompressor::new(input, 4096), out).map_err(|e| failed(&e))?
        }
        Compression::LZ4 => {
            out.resize(size, 0);
            old_lz4(input, out).ok_or_else(|| failed(&"no known form of LZ4"))?
        }
        Compression::LZO => {
            return Err(corrupt(
                &"is compressed with LZO, which nobody writes any more and wellread cannot read",
            ));
        }
    };
    if length == size {
        Ok(&out[..size])
    } else {
        Err(corrupt(&format_args!("has {length} bytes and declares {size}")))
    }
}

/// Fills `out` from `decoder` as far as it goes. Returns the number of bytes that came, one more than there is room
/// for where that is not all.
fn fill(mut decoder: impl std::io::Read, out: &mut [u8]) -> std::io::Result<usize> {
    let mut n = 0;
    while n < out.len() {
        match decoder.read(&mut out[n..])? {
            0 => return Ok(n),
            k => n += k,
        }
    }
    // Checksums stand at the end: only a decoder that is asked for more gets to see them.
    Ok(n + decoder.read(&mut [0])?)
}

/// The deprecated `LZ4`, which was never specified. It depends on the writer: blocks in Hadoop's framing
/// (both sizes in front, as big-endian 32-bit numbers), the LZ4 frame format, or one bare block.
fn old_lz4(input: &[u8], out: &mut [u8]) -> Option<usize> {
    let hadoop = |out: &mut [u8]| -> Option<usize> {
        let (mut rest, mut n) = (input, 0usize);
        while !rest.is_empty() {
            let (sizes, after) = rest.split_first_chunk::<8>()?;
            let size = |at: usize| u32::from_be_bytes(sizes[at..at + 4].try_into().expect("four")) as usize;
            let (block, after) = after.split_at_checked(size(4))?;
            let target = out.get_mut(n..n.checked_add(size(0))?)?;
            n += lz4_flex::block::decompress_into(block, target).ok().filter(|&k| k == size(0))?;
            rest = after;
        }
        (n == out.len()).then_some(n)
    };
    hadoop(out)
        .or_else(|| fill(lz4_flex::frame::FrameDecoder::new(input), out).ok())
        .or_else(|| lz4_flex::block::decompress_into(input, out).ok())
}
