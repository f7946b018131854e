//! How columns are encoded, in a few words: for people who ask how a set is stored.

use lance_encoding::decoder::{ColumnInfo, PageEncoding};
use lance_encoding::format::metadata::compressive_encoding::Compression;
use lance_encoding::format::metadata::page_layout::Layout;
use lance_encoding::format::metadata::{BufferCompression, CompressionScheme, CompressiveEncoding};

/// How the values of a column are encoded, in a few words; `None` for a column without pages.
pub(crate) fn encoding(column: &ColumnInfo) -> Option<String> {
    let encoding = match &column.page_infos.first()?.encoding {
        PageEncoding::Structural(layout) => match layout.layout.as_ref()? {
            Layout::MiniBlockLayout(chunks) => match (&chunks.dictionary, &chunks.value_compression) {
                (None, Some(encoding)) => words(encoding),
                (Some(_), Some(encoding)) => format!("dictionary, {}", words(encoding)),
                _ => "unknown".into(),
            },
            Layout::FullZipLayout(zipped) => {
                zipped.value_compression.as_ref().map_or_else(String::new, words)
            }
            Layout::ConstantLayout(_) => "constant".into(),
            Layout::BlobLayout(_) => "blobs".into(),
        },
        PageEncoding::Legacy(_) => "file format 2.0".into(),
        PageEncoding::Planar(_) => "file format 2.3".into(),
    };
    Some(encoding)
}

/// The encoding in a few words.
fn words(encoding: &CompressiveEncoding) -> String {
    let of = |inner: Option<&CompressiveEncoding>| inner.map_or_else(|| "none".into(), words);
    match encoding.compression.as_ref() {
        Some(Compression::Flat(_)) => "none".into(),
        Some(Compression::InlineBitpacking(_) | Compression::OutOfLineBitpacking(_)) => "bit-packed".into(),
        Some(Compression::Rle(_)) => "run lengths".into(),
        Some(Compression::Dictionary(_)) => "dictionary".into(),
        Some(Compression::ByteStreamSplit(split)) => match of(split.values.as_deref()).as_str() {
            "none" => "byte streams".into(),
            inner => format!("byte streams, {inner}"),
        },
        Some(Compression::General(general)) => {
            let scheme = match general.compression.as_ref().map(BufferCompression::scheme) {
                Some(CompressionScheme::CompressionAlgorithmLz4) => "lz4",
                Some(CompressionScheme::CompressionAlgorithmZstd) => "zstd",
                _ => "compressed",
            };
            match of(general.values.as_deref()).as_str() {
                "none" => scheme.into(),
                inner => format!("{inner}, {scheme}"),
            }
        }
        _ => "other".into(),
    }
}
