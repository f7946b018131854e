//! A figure as SVG and as PNG, and their files.

use super::figure::Figure;
use super::{font, render};
use crate::{Error, Result, staged};
use std::path::{Path, PathBuf};

impl Figure {
    /// The figure as SVG.
    pub fn svg(&self) -> String {
        render::svg(self)
    }

    /// The figure as PNG, `scale` pixels per SVG pixel (2 suits paper and sharp screens).
    ///
    /// # Errors
    /// A figure too large to be drawn.
    pub fn png(&self, scale: f32) -> Result<Vec<u8>> {
        png(&self.svg(), scale).map_err(|cause| Error::new(&self.name, cause))
    }

    /// Writes `NAME.svg` and `NAME.png` into a folder, each whole or not at all; returns their paths.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, dir: &Path) -> Result<[PathBuf; 2]> {
        let svg = self.svg();
        let paths = ["svg", "png"].map(|e| dir.join(format!("{}.{e}", self.name)));
        staged::write(&paths[0], svg.as_bytes())?;
        staged::write(&paths[1], &png(&svg, 2.0).map_err(|cause| Error::new(&paths[1], cause))?)?;
        Ok(paths)
    }
}

/// Draws SVG text with the embedded fonts only, so that it looks the same on every machine.
fn png(svg: &str, scale: f32) -> Result<Vec<u8>, String> {
    use resvg::{tiny_skia, usvg};
    let mut options = usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_font_data(font::REGULAR.to_vec());
    fonts.load_font_data(font::BOLD.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let tree = usvg::Tree::from_str(svg, &options).map_err(|e| e.to_string())?;
    let size = tree.size();
    let (width, height) = ((size.width() * scale).ceil(), (size.height() * scale).ceil());
    let mut pixmap = tiny_skia::Pixmap::new(width as u32, height as u32)
        .ok_or_else(|| format!("a picture of {width} × {height} pixels cannot be drawn"))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|e| e.to_string())
}
