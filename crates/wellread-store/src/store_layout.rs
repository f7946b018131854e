//! How a set keeps its pixels, in words: what `wellread info` says of its files.
//!
//! ```text
//!  Store::layout ─▶ StoreLayout: codec, pieces, variant, chunk ─▶ `info`, `advise`, `convert --resume`
//!                        └─ lost_display_settings ─▶ what a conversion says that it does not keep
//! ```

use crate::words::counted_with;

/// How a store keeps its pixels, for `wellread info`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreLayout {
    /// Compression of the first image's pixels, such as `zstd`, `lzw+predictor`, `none`.
    pub codec: String,
    /// Compressions of the files that were looked into, with how many files have each. Empty where files are not told apart.
    pub codecs: Vec<(String, usize)>,
    /// Share of the bytes of those files that holds the pixels of their images. Files may have other bytes, such as smaller levels of a
    /// pyramid. `None` where they are not told apart.
    pub pixel_share: Option<f64>,
    /// One decodable piece, such as `row group of 64 images, pages of 1 MiB` or `chunk 1x1x1x256x256`.
    pub pieces: String,
    /// Format variant, such as `typed chunks`, `inferred 64-bit chunks+planes`, `0.5 (zarr v3)`, `BigTIFF`.
    pub variant: String,
    /// Times, channels, planes, rows and columns of one chunk, where each chunk is stored whole, also beyond the image's border.
    pub chunk: Option<[usize; 5]>,
    /// Images whose file says that small numbers are bright (TIFF's `WhiteIsZero`), of those that were looked into.
    pub white_is_zero_images: usize,
    /// Images of indices into a palette of colours in their file, of those that were looked into.
    pub palette_images: usize,
}

/// The checksum that OME-Zarr has behind the codec of a chunk, as the name of both ends.
const CHECKSUM: &str = "crc32c";

/// The name of what compresses, and that of the checksum behind it: a checksum is no codec, and saves nothing.
///
/// ```
/// use wellread_store::without_checksum;
///
/// assert_eq!(without_checksum("zstd"), ("zstd", None));
/// assert_eq!(without_checksum("crc32c"), ("none", Some("crc32c")));
/// assert_eq!(without_checksum("blosc(lz4, shuffle)+crc32c"), ("blosc(lz4, shuffle)", Some("crc32c")));
/// ```
pub fn without_checksum(codec: &str) -> (&str, Option<&'static str>) {
    match codec.strip_suffix(CHECKSUM) {
        Some("") => ("none", Some(CHECKSUM)),
        Some(before) => (before.strip_suffix('+').unwrap_or(before), Some(CHECKSUM)),
        None => (codec, None),
    }
}

/// Adds files to the count of their codec; codecs stay in the order in which they came.
pub(crate) fn count_codec(codecs: &mut Vec<(String, usize)>, codec: String, files: usize) {
    match codecs.iter_mut().find(|(known, _)| *known == codec) {
        Some((_, count)) => *count += files,
        None => codecs.push((codec, files)),
    }
}

impl StoreLayout {
    /// The display settings in the files that pixels, which are stored numbers, do not have: a sentence each.
    pub fn lost_display_settings(&self) -> Vec<String> {
        let images = |n| counted_with(n, "image", ["is", "are"]);
        let mut notes = vec![];
        if self.white_is_zero_images > 0 {
            notes.push(format!(
                "{} WhiteIsZero (small numbers are bright); the numbers are kept, the look is not",
                images(self.white_is_zero_images)
            ));
        }
        if self.palette_images > 0 {
            notes.push(format!(
                "{} of indices into a palette; the indices are kept, the colours are not",
                images(self.palette_images)
            ));
        }
        notes
    }
}
