//! Bytes of the pieces that pixels lie in, such as chunks, and how they are compressed.

use crate::output::Outcome;
use std::path::{Path, PathBuf};
use wellread_store::words::counted;
use wellread_store::{Error, StoreLayout, registry, without_checksum};

/// Names of files beside chunks: metadata, and the names and columns of a set of OME-Zarr.
const BESIDE_PIXELS: [&str; 8] = [
    "zarr.json",
    ".zarray",
    ".zattrs",
    ".zgroup",
    ".zmetadata",
    "METADATA.ome.xml",
    "wellread-columns.parquet",
    "wellread-names.json",
];

/// How pixels are compressed.
#[derive(serde::Serialize)]
pub(super) struct Codecs {
    /// That of the first image.
    codec: String,
    /// All codecs, where the files that were looked into have several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    codecs: Vec<CodecFiles>,
}

/// A codec, and how many files have it.
#[derive(serde::Serialize)]
struct CodecFiles {
    codec: String,
    files: usize,
}

impl Codecs {
    /// Those of a set.
    pub fn of(layout: &StoreLayout) -> Self {
        let several = layout.codecs.iter().filter(|_| layout.codecs.len() > 1);
        Self {
            codec: layout.codec.clone(),
            codecs: several
                .map(|(codec, files)| CodecFiles { codec: codec.clone(), files: *files })
                .collect(),
        }
    }

    /// That of the first image.
    pub fn first(&self) -> &str {
        &self.codec
    }

    /// The codecs of all files where they differ, or else that of the first image; of a set of so many images and files.
    pub fn in_words(&self, images: usize, files: usize) -> String {
        if self.codecs.is_empty() {
            let of = if images > 1 && files > 1 { " (first image)" } else { "" };
            return format!("{}{of}", codec_in_words(&self.codec));
        }
        let each = self
            .codecs
            .iter()
            .map(|one| format!("{} ({})", codec_in_words(&one.codec), counted(one.files, "file")));
        let looked_into: usize = self.codecs.iter().map(|one| one.files).sum();
        let of = if looked_into < files { "; others were not looked into" } else { "" };
        each.collect::<Vec<_>>().join(", ") + of
    }

    /// Whether pixels are as they are, without a codec.
    fn are_none(&self) -> bool {
        let (codec, _) = without_checksum(&self.codec);
        self.codecs.is_empty()
            && ["", "none", "uncompressed"].iter().any(|none| codec.eq_ignore_ascii_case(none))
    }
}

/// A codec as people read it: `zstd`, or `none, checksums crc32c`.
fn codec_in_words(codec: &str) -> String {
    let (compressor, checksum) = without_checksum(codec);
    checksum.map_or_else(|| codec.to_owned(), |checksum| format!("{compressor}, checksums {checksum}"))
}

/// Bytes of pixels, as they are and in files.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    /// Bytes of the pixels in their pieces without a codec: chunks are whole also where the image ends within them.
    pub plain: u64,
    /// Bytes that the pieces have in files, without metadata, columns and other levels of a pyramid.
    pub stored: u64,
}

/// A line for compression that makes the pixels of a format larger than they are. `about` stands before a figure that some rows tell.
pub(super) fn larger_than_pixels(
    (format, codecs): (&str, &Codecs),
    Pieces { plain, stored }: Pieces,
    about: &str,
) -> Option<String> {
    let as_they_are = registry::format_named(format).is_ok_and(|format| format.holds_bare_pixels);
    (as_they_are && !codecs.are_none() && plain > 0 && stored > plain).then(|| {
        let all: Vec<&str> = codecs.codecs.iter().map(|one| one.codec.as_str()).collect();
        format!(
            "the compressed pixels are {about}{} % larger than the pixels: {} nothing in total (wellread convert --compression \
             none)",
            percent(stored as f64 / plain as f64 - 1.0),
            if all.is_empty() {
                format!("{} saves", without_checksum(codecs.first()).0)
            } else {
                format!("{} save", all.join(" and "))
            }
        )
    })
}

/// A share above zero in whole percent.
fn percent(share: f64) -> String {
    if share < 0.01 { "less than 1".to_owned() } else { format!("{:.0}", 100.0 * share) }
}

/// Bytes of those of `files` that hold pixels.
pub(super) fn bytes_of_pieces(files: &[PathBuf]) -> Outcome<u64> {
    let mut sum = 0;
    for file in files.iter().filter(|file| !is_beside_pixels(file)) {
        sum +=
            wellread_store::place::metadata(file).map_err(|e| Error::io(file, "cannot look at", &e))?.length;
    }
    Ok(sum)
}

/// Whether a file has something else than pixels.
fn is_beside_pixels(file: &Path) -> bool {
    file.file_name().is_some_and(|name| BESIDE_PIXELS.iter().any(|own| name == *own))
}

/// Bytes of an image of this shape in whole chunks, where `layout` has some; of a pixel of so many bytes.
pub(super) fn bytes_in_chunks(shape: [usize; 5], pixel: usize, layout: &StoreLayout) -> u128 {
    let chunk = layout.chunk.unwrap_or([1; 5]);
    let sizes = shape.iter().zip(chunk).map(|(&n, chunk)| n.next_multiple_of(chunk.max(1)) as u128);
    sizes.product::<u128>() * pixel as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_metadata_are_no_pixels() {
        for beside in
            ["s.zarr/OME/wellread-columns.parquet", "s/zarr.json", "s/.zarray", "s/OME/METADATA.ome.xml"]
        {
            assert!(is_beside_pixels(Path::new(beside)), "{beside}");
        }
        for pixels in ["s.zarr/0/0/c/0/1/0/0/0", "s.zarr/0/0/0.1.0.0.0", "a.ome.tiff", "plate.parquet"] {
            assert!(!is_beside_pixels(Path::new(pixels)), "{pixels}");
        }
    }

    #[test]
    fn a_checksum_is_no_codec() {
        let of = |codec: &str| {
            let codecs = Codecs::of(&StoreLayout { codec: codec.to_owned(), ..StoreLayout::default() });
            (codecs.in_words(2, 2), codecs.are_none())
        };
        assert_eq!(of("zstd"), ("zstd (first image)".to_owned(), false));
        assert_eq!(of("crc32c"), ("none, checksums crc32c (first image)".to_owned(), true));
        let packed = "blosc(lz4, bitshuffle), checksums crc32c (first image)".to_owned();
        assert_eq!(of("blosc(lz4, bitshuffle)+crc32c"), (packed, false));
        let layout = StoreLayout { codec: "crc32c".to_owned(), ..StoreLayout::default() };
        let sums = Pieces { plain: 4096, stored: 4100 };
        assert_eq!(larger_than_pixels(("ome-zarr", &Codecs::of(&layout)), sums, ""), None);
    }

    /// The share is that of compressed pixels, and the sentence names these: files have other bytes too.
    #[test]
    fn the_share_is_that_of_what_the_sentence_names() {
        let of = |codecs: &[(&str, usize)], plain, stored, about| {
            let layout = StoreLayout {
                codec: codecs[0].0.to_owned(),
                codecs: codecs.iter().map(|(codec, files)| ((*codec).to_owned(), *files)).collect(),
                ..StoreLayout::default()
            };
            larger_than_pixels(("tiff", &Codecs::of(&layout)), Pieces { plain, stored }, about)
        };
        // Three files of 8,018,423 bytes in all, of which strips have 7,766,666.
        assert_eq!(
            of(&[("lzw", 3)], 6_998_400, 7_766_666, "").unwrap(),
            "the compressed pixels are 11 % larger than the pixels: lzw saves nothing in total (wellread convert --compression none)"
        );
        let several = of(&[("lzw", 2), ("deflate", 1)], 1_000, 1_146, "about ").unwrap();
        assert!(
            several.starts_with(
                "the compressed pixels are about 15 % larger than the pixels: lzw and deflate save nothing in total"
            ),
            "{several}"
        );
        let little = of(&[("zstd", 1)], 32_768, 32_828, "").unwrap();
        assert!(little.starts_with("the compressed pixels are less than 1 % larger"), "{little}");
        assert_eq!(of(&[("lzw", 3)], 6_998_400, 6_998_400, ""), None);
        assert_eq!(of(&[("none", 3)], 6_998_400, 7_766_666, ""), None);
    }
}
