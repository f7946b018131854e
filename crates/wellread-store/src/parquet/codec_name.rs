//! Names of codecs, as `--compression` takes them and `wellread info` shows them.

use parquet::basic::Compression;

/// The codec as users type it.
pub(super) fn codec_name(codec: Compression) -> &'static str {
    match codec {
        Compression::UNCOMPRESSED => "none",
        Compression::SNAPPY => "snappy",
        Compression::GZIP(_) => "gzip",
        Compression::LZO => "lzo",
        Compression::BROTLI(_) => "brotli",
        Compression::LZ4 | Compression::LZ4_RAW => "lz4",
        Compression::ZSTD(_) => "zstd",
    }
}
