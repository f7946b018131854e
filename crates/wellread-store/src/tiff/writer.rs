//! Writes images as TIFF: a folder of one file per image, or one file for all.
//!
//! The target decides: a path that ends in `.tif` or `.tiff` is one file, anything else a folder. The variant
//! `ome` (the default) writes OME-TIFF, which keeps all metadata. `plain` writes dimensions and name only, as
//! tifffile does. `bare` writes single planes in files of their own and nothing about them, as microscopes do.
//! Pages are planes in the order T, C, Z. Pixels are not compressed by default, as tifffile and Bio-Formats do;
//! integers are differenced horizontally before LZW, Deflate and Zstandard.

use super::codec::Packing;
use super::encode::{Encoder, Layout};
use super::endian::Endian;
use super::{listing, store};
use crate::finished::Finished;
use crate::image_writers::{ImageWriters, WriteImage};
use crate::set_names::{Listing, SetNames, moved};
use crate::staged::Staged;
use crate::{Compression, Error, ImageView, Result, StoreWriter, Tune, WriteOptions};
use std::path::{Path, PathBuf};
use wellread_image::ImageMetadata;
use wellread_image::ome_xml::{self, OmeImage};

/// A TIFF set being written.
pub(super) struct TiffWriter {
    /// Before the staged folder, so that files are closed and threads have ended when that is removed.
    output: Output,
    staged: Staged,
    metadata_kind: FileMetadata,
    written: usize,
}

/// The metadata that a file has of its images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileMetadata {
    /// All, as OME-XML.
    Ome,
    /// Shape and name, as tifffile does.
    Plain,
    /// Nothing but what the tags of its one page say.
    Bare,
}

enum Output {
    /// One file for all images; `None` once finished or failed.
    File { encoder: Option<Encoder>, images: Vec<OmeImage> },
    /// A folder.
    Folder(Box<Folder>),
}

/// A folder of a file for each image.
struct Folder {
    names: SetNames,
    writers: ImageWriters<FileWriter>,
}

/// Writes one image as a file of a folder.
struct FileWriter {
    layout: Layout,
    metadata_kind: FileMetadata,
    /// The folder, named in errors.
    target: PathBuf,
}

impl WriteImage for FileWriter {
    fn write(&mut self, _: usize, image: &ImageView<'_>, path: &Path) -> Result<()> {
        let target = self.target.join(path.file_name().unwrap_or_default());
        let mut encoder = Encoder::create(path, &target, self.layout)?;
        write_pages(&mut encoder, image)?;
        match self.metadata_kind {
            FileMetadata::Ome => {
                let ome = OmeImage::new(image.metadata.clone(), image.shape, image.dtype);
                encoder.describe(0, ome_xml::write(&[ome]));
            }
            FileMetadata::Plain => encoder.describe(0, shaped(image)),
            FileMetadata::Bare => {}
        }
        encoder.finish()
    }
}

impl TiffWriter {
    /// Prepares writing to `path`.
    pub(super) fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        Self::with(path, options, Endian::Little, false)
    }

    /// As [`Self::create`], with the byte order and kind of file that tests want.
    fn with(path: &Path, options: &WriteOptions, endian: Endian, big: bool) -> Result<Self> {
        let is_file = path.file_name().is_some_and(|n| listing::is_tiff_name(&n.to_string_lossy()));
        let metadata_kind = match options.variant.as_deref() {
            None | Some("ome") => FileMetadata::Ome,
            Some("plain") => FileMetadata::Plain,
            Some("bare") => FileMetadata::Bare,
            Some(other) => {
                return Err(Error::new(path, format_args!("TIFF has no variant {other:?}"))
                    .choice()
                    .hint("TIFF has the variants ome, plain and bare"));
            }
        };
        let compression = match (options.compression, options.tune) {
            (Compression::Default, Tune::Size) => Compression::Deflate(9),
            (other, _) => other,
        };
        let packing = Packing::new(path, compression, options.checksums)?;
        let (tile, strip_rows) = pieces(path, options.chunk)?;
        let (checksums, jobs) = (options.checksums, options.jobs);
        let layout = Layout { packing, tile, strip_rows, endian, big, checksums, jobs };
        let staged = Staged::folder(path, options, is_file)?;
        let output = if is_file {
            let encoder = Encoder::create(staged.path(), path, layout)?;
            Output::File { encoder: Some(encoder), images: vec![] }
        } else {
            staged.create_dir()?;
            let ending = if metadata_kind == FileMetadata::Ome { ".ome.tiff" } else { ".tiff" };
            let names = SetNames::new(Listing { ending, sorts_ending: true, name_of: store::stem });
            let target = path.to_owned();
            let make = move || Ok(FileWriter { layout, metadata_kind, target: target.clone() });
            // One at a time on this machine: it is the pieces of an image that several threads compress.
            let writers = ImageWriters::new(&staged, 1, options.memory, make);
            Output::Folder(Box::new(Folder { names, writers }))
        };
        Ok(Self { output, staged, metadata_kind, written: 0 })
    }
}

/// Tiles or rows per strip from a chunk size.
fn pieces(path: &Path, chunk: Option<[usize; 5]>) -> Result<(Option<[usize; 2]>, Option<usize>)> {
    let Some([t, c, z, y, x]) = chunk else { return Ok((None, None)) };
    let refuse = |what: &str| {
        Err(Error::new(path, format_args!("TIFF cannot have chunks of {t},{c},{z},{y},{x} (TCZYX): {what}"))
            .choice()
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

/// Writes the planes of one image.
fn write_pages(encoder: &mut Encoder, image: &ImageView<'_>) -> Result<()> {
    let [.., y, x] = image.shape.0;
    for plane in image.pixels.chunks_exact(y * x * image.dtype.size()) {
        encoder.page(plane, [y, x], image.dtype)?;
    }
    Ok(())
}

/// tifffile's description of a stack, in ASCII as the tag wants it.
fn shaped(image: &ImageView<'_>) -> String {
    let text = serde_json::json!({ "shape": image.shape.0, "axes": "TCZYX", "name": image.metadata.name })
        .to_string();
    let mut units = [0; 2];
    text.chars().fold(String::with_capacity(text.len()), |mut ascii, c| {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            c.encode_utf16(&mut units).iter().for_each(|unit| ascii.push_str(&format!("\\u{unit:04x}")));
        }
        ascii
    })
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
        if self.metadata_kind == FileMetadata::Bare {
            let planes: usize = image.shape.0[..3].iter().product();
            let is_second = row > 0 && matches!(self.output, Output::File { .. });
            if planes > 1 || is_second {
                return Err(fault(
                    &"a bare TIFF file holds one plane, since nothing in it tells planes apart",
                )
                .hint("write with the variant ome or plain")
                .choice());
            }
        }
        match &mut self.output {
            Output::File { encoder, images } => {
                let mut open =
                    encoder.take().ok_or_else(|| fault(&"an earlier image could not be written"))?;
                let first = open.pages();
                write_pages(&mut open, image).map_err(|e| e.row(row))?;
                let encoder = encoder.insert(open);
                match self.metadata_kind {
                    FileMetadata::Ome => {
                        let mut ome = OmeImage::new(image.metadata.clone(), image.shape, image.dtype);
                        ome.planes[0].ifd = Some(first);
                        images.push(ome);
                    }
                    FileMetadata::Plain => encoder.describe(first, shaped(image)),
                    FileMetadata::Bare => {}
                }
            }
            Output::Folder(folder) => {
                let name = &image.metadata.name;
                let path = folder.names.next(self.staged.path(), "", name, name).map_err(|e| e.row(row))?;
                folder.writers.write(row, image, path)?;
            }
        }
        self.written += 1;
        Ok(())
    }

    fn complete(&self) -> usize {
        self.staged.complete()
    }

    fn skip(&mut self, metadata: &ImageMetadata) -> Result<()> {
        if let Output::Folder(folder) = &mut self.output {
            folder.names.next(self.staged.path(), "", &metadata.name, &metadata.name)?;
        }
        self.written += 1;
        Ok(())
    }

    fn adopt(&mut self, metadata: &ImageMetadata, from: &Path) -> Result<()> {
        let target = self.staged.target();
        let Output::Folder(folder) = &mut self.output else {
            return Err(Error::new(
                target,
                "is one file of all images, which no other file can become a part of",
            )
            .hint("write a folder of images: a name without an ending"));
        };
        let to = folder.names.next(self.staged.path(), "", &metadata.name, &metadata.name)?;
        moved(from, &to, target)?;
        self.staged.completed(self.written)?;
        self.written += 1;
        Ok(())
    }

    fn complete_output(self: Box<Self>) -> Result<Finished> {
        if self.written == 0 {
            return Err(Error::new(self.staged.target(), "no image was given to write"));
        }
        match self.output {
            Output::File { encoder, images } => {
                let mut encoder = encoder.ok_or_else(|| {
                    Error::new(self.staged.target(), "an earlier image could not be written")
                })?;
                if self.metadata_kind == FileMetadata::Ome {
                    encoder.describe(0, ome_xml::write(&images));
                }
                encoder.finish()?;
                Ok(self.staged.finished())
            }
            Output::Folder(mut folder) => {
                folder.writers.join()?;
                folder.names.finish(self.staged)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiff::store::TiffStore;
    use crate::{Store, read_image};
    use wellread_image::{ImageMetadata, PixelType, Shape};

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
}
