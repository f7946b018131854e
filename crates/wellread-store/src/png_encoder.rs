//! Pictures as PNG: those of sets, and what is drawn of a set.

use png::{BitDepth, ColorType, DeflateCompression, EncodingError, Filter};
use std::io::Write;

/// Size and kind of a picture.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Picture {
    pub width: u32,
    pub height: u32,
    pub color: ColorType,
    pub depth: BitDepth,
}

impl Picture {
    /// Writes the picture to its end. Samples of 16 bits are big-endian, as PNG has them.
    ///
    /// # Errors
    /// Those of the writer beneath, as they are; pixels of another size than the picture's.
    pub fn encode<W: Write>(
        self,
        to: W,
        compression: DeflateCompression,
        pixels: &[u8],
    ) -> Result<(), EncodingError> {
        let mut encoder = png::Encoder::new(to, self.width, self.height);
        encoder.set_color(self.color);
        encoder.set_depth(self.depth);
        encoder.set_deflate_compression(compression);
        encoder.set_filter(Filter::Adaptive);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(pixels)?;
        writer.finish()
    }
}
