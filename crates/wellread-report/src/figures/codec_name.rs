//! The name of a codec above the formats that have it: `zstd+predictor` and `zstd` are one.

/// The name of a codec above its part, by parts of its own name: the first that fits. Filters before a codec make no
/// part.
static CODECS: [(&str, &str); 9] = [
    ("zstd", "Zstandard"),
    ("lz4", "LZ4"),
    ("snappy", "Snappy"),
    ("lzw", "LZW"),
    ("packbits", "PackBits"),
    ("gzip", "Deflate"),
    ("deflate", "Deflate"),
    ("bit", "Bit packing"),
    ("crc32c", NOT_COMPRESSED),
];
/// The name of no codec, also where chunks have checksums.
pub(super) const NOT_COMPRESSED: &str = "Not compressed";

/// The name of a codec; an unknown one keeps its name.
pub(super) fn codec_name(codec: &str) -> String {
    if codec == "none" {
        return NOT_COMPRESSED.to_owned();
    }
    let known = CODECS.iter().find(|(part, _)| codec.contains(part));
    known.map_or_else(|| codec.to_owned(), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_called_by_what_compresses() {
        let names = [
            "none",
            "crc32c",
            "zstd+predictor",
            "blosc(lz4, bitshuffle)+crc32c",
            "bit-packed, zstd",
            "bitpacking+rle",
        ];
        assert_eq!(
            names.map(codec_name),
            ["Not compressed", "Not compressed", "Zstandard", "LZ4", "Zstandard", "Bit packing"]
        );
        assert_eq!(
            (codec_name("png (deflate)"), codec_name("webp")),
            ("Deflate".to_owned(), "webp".to_owned())
        );
    }
}
