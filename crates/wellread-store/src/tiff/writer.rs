//! Writes images as TIFF: a folder of one file per image, or one file for all.
//!
//! The target decides: a path that ends in `.tif` or `.tiff` is one file, anything else a folder. The variant
//! `ome` (the default) writes OME-TIFF, which keeps all metadata; `plain` writes the dimensions only, as
//! tifffile does. Pages are planes in the order T, C, Z. Pixels are not compressed by default, as tifffile
//! and Bio-Formats do; integers are differenced horizontally before LZW, Deflate and Zstandard.

use super::codec::Packing;
use super::encode::{Encoder, Layout};
use super::{Endian, listing};
use crate::staged::Staged;
use crate::{Compression, Error, ImageView, Result, StoreWriter, Tune, WriteOptions};
use std::collections::HashMap;
use std::path::Path;
use wellread_image::ome_xml::{self, OmeImage};
use wellread_image::{ImageMetadata, Shape};

/// Longest file name made of an image's name, in bytes.
const MAX_NAME: usize = 200;

/// A TIFF set being written.
pub(super) struct TiffWriter {
    /// Dropped after `file`, which must be closed by then.
    output: Output,
    staged: Staged,
    layout: Layout,
    ome: bool,
    written: usize,
}

enum Output {
    /// One file for all images; `None` once finished or failed.
    File { encoder: Option<Encoder>, images: Vec<OmeImage> },
    /// A folder, with the names already taken and how often they were asked for again.
    Folder { taken: HashMap<String, usize> },
}

impl TiffWriter {
    /// Prepares writing to `path`.
    pub(super) fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        Self::with(path, options, Endian::Little, false)
    }

    /// As [`Self::create`], with the byte order and kind of file that tests want.
    fn with(path: &Path, options: &WriteOptions, endian: Endian, big: bool) -> Result<Self> {
        let ome = match options.variant.as_deref() {
            None | Some("ome") => true,
            Some("plain") => false,
            Some(other) => {
                return Err(Error::new(path, format_args!("TIFF has no variant {other:?}"))
                    .hint("TIFF has the variants ome and plain"));
            }
        };
        let compression = match (options.compression, options.tune) {
            (Compression::Default, Tune::Size) => Compression::Deflate(9),
            (other, _) => other,
        };
        let packing = Packing::new(path, compression)?;
        let (tile, strip_rows) = pieces(path, options.chunk)?;
        let layout = Layout { packing, tile, strip_rows, endian, big, jobs: options.jobs };
        let is_file = path.file_name().is_some_and(|n| listing::is_tiff_name(&n.to_string_lossy()));
        let staged = Staged::folder(path, options, is_file)?;
        let output = if is_file {
            let encoder = Encoder::create(staged.path(), path, layout)?;
            Output::File { encoder: Some(encoder), images: vec![] }
        } else {
            staged.create_dir()?;
            Output::Folder { taken: HashMap::new() }
        };
        Ok(Self { output, staged, layout, ome, written: 0 })
    }
}

/// Tiles or rows per strip from a chunk size.
fn pieces(path: &Path, chunk: Option<[usize; 5]>) -> Result<(Option<[usize; 2]>, Option<usize>)> {
    let Some([t, c, z, y, x]) = chunk else { return Ok((None, None)) };
    let refuse = |what: &str| {
        Err(Error::new(path, format_args!("TIFF cannot have chunks of {t},{c},{z},{y},{x} (TCZYX): {what}"))
            .hint("give 1,1,1,Y,X with Y and X multiples of 16, or X = 0 for strips of Y rows"))
    };
    if t > 1 || c > 1 || z > 1 {
        return refuse("each page holds one plane");
    }
    match (y, x) {
        (0, _) => refuse("tiles need a height"),
        (_, 0) => Ok((None, Some(y))),
        _ if y % 16 == 0 && x % 16 == 0 => Ok((Some([y, x]), None)),
        _ => refuse("the sides of tiles are multiples of 16"),
    }
}

/// A file name, without extension, for an image's name: characters that some file system refuses become `_`.
pub(super) fn file_name_of(name: &str) -> String {
    let mut clean: String = name
        .trim()
        .chars()
        .map(|c| if c.is_control() || r#"/\:*?"<>|"#.contains(c) { '_' } else { c })
        .collect();
    let end = (0..=MAX_NAME.min(clean.len())).rev().find(|&i| clean.is_char_boundary(i)).unwrap_or(0);
    clean.truncate(end);
    // Leading dots would hide the file; trailing ones are lost on some systems.
    let visible = clean.trim_end_matches([' ', '.']);
    match visible.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if visible.is_empty() => "image".to_owned(),
        None => visible.to_owned(),
    }
}

/// Writes the planes of one image.
fn write_pages(encoder: &mut Encoder, image: &ImageView<'_>) -> Result<()> {
    let [.., y, x] = image.shape.0;
    for plane in image.pixels.chunks_exact(y * x * image.dtype.size()) {
        encoder.page(plane, [y, x], image.dtype)?;
    }
    Ok(())
}

/// tifffile's description of a stack.
fn shaped(shape: Shape) -> String {
    serde_json::json!({ "shape": shape.0, "axes": "TCZYX" }).to_string()
}

impl StoreWriter for TiffWriter {
    fn write(&mut self, image: &ImageView<'_>) -> Result<()> {
        let row = self.written;
        let fault = |cause: &dyn std::fmt::Display| Error::new(self.staged.target(), cause).row(row);
        let bytes = image.shape.checked_bytes(image.dtype).map_err(|e| fault(&e))?;
        if bytes != image.pixels.len() {
            return Err(fault(&format_args!(
                "{} of {} need {bytes} bytes, but {} were given",
                image.shape,
                image.dtype,
                image.pixels.len()
            )));
        }
        match &mut self.output {
            Output::File { encoder, images } => {
                let mut open =
                    encoder.take().ok_or_else(|| fault(&"an earlier image could not be written"))?;
                let first = open.pages();
                write_pages(&mut open, image).map_err(|e| e.row(row))?;
                let encoder = encoder.insert(open);
                if self.ome {
                    let mut ome = OmeImage::new(image.metadata.clone(), image.shape, image.dtype);
                    ome.planes[0].ifd = Some(first);
                    images.push(ome);
                } else {
                    encoder.describe(first, shaped(image.shape));
                }
            }
            Output::Folder { taken } => {
                let name = unused(&file_name_of(&image.metadata.name), taken);
                let name = format!("{name}{}", if self.ome { ".ome.tiff" } else { ".tiff" });
                let target = self.staged.target().join(&name);
                let mut encoder = Encoder::create(&self.staged.path().join(&name), &target, self.layout)?;
                write_pages(&mut encoder, image).map_err(|e| e.row(row))?;
                let text = if self.ome {
                    ome_xml::write(&[OmeImage::new(image.metadata.clone(), image.shape, image.dtype)])
                } else {
                    shaped(image.shape)
                };
                encoder.describe(0, text);
                encoder.finish().map_err(|e| e.row(row))?;
                self.staged.completed(row)?;
            }
        }
        self.written += 1;
        Ok(())
    }

    fn complete(&self) -> usize {
        self.staged.complete()
    }

    fn skip(&mut self, metadata: &ImageMetadata) -> Result<()> {
        if let Output::Folder { taken } = &mut self.output {
            unused(&file_name_of(&metadata.name), taken);
        }
        self.written += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.written == 0 {
            return Err(Error::new(self.staged.target(), "no image was given to write"));
        }
        if let Output::File { encoder, images } = &mut self.output {
            let mut encoder = encoder
                .take()
                .ok_or_else(|| Error::new(self.staged.target(), "an earlier image could not be written"))?;
            if self.ome {
                encoder.describe(0, ome_xml::write(images));
            }
            encoder.finish()?;
        }
        self.staged.commit()
    }
}

/// `name`, or `name-1`, `name-2` … where it is taken. Names that differ only in case count as the same, as
/// they do on some file systems.
fn unused(name: &str, taken: &mut HashMap<String, usize>) -> String {
    let mut n = *taken.entry(name.to_lowercase()).and_modify(|n| *n += 1).or_insert(0);
    if n == 0 {
        return name.to_owned();
    }
    loop {
        let candidate = format!("{name}-{n}");
        if taken.insert(candidate.to_lowercase(), 0).is_none() {
            taken.insert(name.to_lowercase(), n);
            return candidate;
        }
        n += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiff::store::TiffStore;
    use crate::{Store, read_image};
    use wellread_image::{ImageMetadata, PixelType};

    #[test]
    fn byte_orders_and_big_files() {
        let dir = tempfile::tempdir().unwrap();
        let shape = Shape([1, 2, 1, 33, 50]);
        let metadata = ImageMetadata::named("image");
        for (i, dtype) in PixelType::ALL.into_iter().enumerate() {
            let pixels: Vec<u8> = (0..shape.pixels() * dtype.size()).map(|p| (p * 3 / 2) as u8).collect();
            for compression in [Compression::None, Compression::Lzw, Compression::Deflate(6)] {
                for endian in [Endian::Little, Endian::Big] {
                    for big in [false, true] {
                        for chunk in [None, Some([1, 1, 1, 16, 16])] {
                            let path = dir.path().join(format!("{i}.tif"));
                            let options =
                                WriteOptions { compression, chunk, overwrite: true, ..Default::default() };
                            let mut writer =
                                Box::new(TiffWriter::with(&path, &options, endian, big).unwrap());
                            let view = ImageView { metadata: &metadata, shape, dtype, pixels: &pixels };
                            writer.write(&view).unwrap();
                            writer.finish().unwrap();
                            let store = TiffStore::open(&path, &crate::OpenOptions::default()).unwrap();
                            let (info, got) = read_image(&store, 0).unwrap();
                            assert_eq!((info.shape, info.dtype), (shape, dtype));
                            assert!(got == pixels, "{dtype} {compression:?} {endian:?} {big}");
                            let variant = store.layout().unwrap().variant;
                            assert_eq!(variant.contains("BigTIFF"), big);
                            assert_eq!(variant.contains("big-endian"), endian == Endian::Big);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn file_names() {
        assert_eq!(file_name_of("plate/well:A01"), "plate_well_A01");
        assert_eq!(file_name_of(" .. "), "image");
        assert_eq!(file_name_of(""), "image");
        assert_eq!(file_name_of("a."), "a");
        assert_eq!(file_name_of(&"µ".repeat(300)).len(), 200);
        let mut taken = HashMap::new();
        let names = ["a", "a", "A", "a-1", "a"].map(|n| unused(n, &mut taken));
        assert_eq!(names, ["a", "a-1", "A-2", "a-1-1", "a-3"]);
    }
}
