//! Writing PNG: 8 or 16 bits, grey or RGB, one file per image.

use super::layout::{self, NAMING};
use super::text_chunk::WithName;
use crate::file_names::safe;
use crate::finished::Finished;
use crate::format::{holds_one, is_name_of_a_format};
use crate::image_writers::{ImageWriters, WriteImage};
use crate::place;
use crate::png_encoder::Picture;
use crate::set_names::{Listing, SetNames, moved};
use crate::staged::Staged;
use crate::surface::option_as;
use crate::{Compression, Error, ImageView, Result, StoreWriter, WriteOptions, try_alloc};
use png::{BitDepth, ColorType, DeflateCompression, EncodingError};
use std::collections::{HashMap, HashSet};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType};

/// Writes a folder of PNG files, with class folders for names `class/stem`; or one file.
pub(super) struct PngWriter {
    /// Before the staged folder, so that they end before it is removed.
    writers: ImageWriters<FileWriter>,
    staged: Option<Staged>,
    target: PathBuf,
    /// The target is one file, not a folder.
    single: bool,
    names: SetNames,
    classes: ClassFolders,
    count: usize,
}

/// Writes one image as a PNG file.
struct FileWriter {
    compression: DeflateCompression,
    /// Named in errors.
    target: PathBuf,
    interleaved: Vec<u8>,
    /// Pixels of 16 bits as PNG has them.
    big_endian: Vec<u8>,
}

impl PngWriter {
    /// Starts a new set at `path`: one file if the name ends in `.png`, else a folder.
    ///
    /// # Errors
    /// An existing target (without `overwrite`), or options that PNG does not have.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        let compression = match options.compression {
            Compression::Default => DeflateCompression::FdeflateUltraFast,
            Compression::None => DeflateCompression::NoCompression,
            Compression::Deflate(level) => match u8::try_from(level.clamp(0, 9)) {
                Ok(0) | Err(_) => DeflateCompression::NoCompression,
                Ok(level) => DeflateCompression::Level(level),
            },
            other => {
                return Err(Error::new(
                    path,
                    format_args!("PNG has no compression {other}; it has none and deflate[:LEVEL]"),
                )
                .choice());
            }
        };
        if let Some(variant) = &options.variant {
            return Err(Error::new(path, format_args!("{} has no variant {variant:?}", NAMING.name)).choice());
        }
        if NAMING.has_ending(&path.to_string_lossy())
            && !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png"))
        {
            return Err(Error::new(
                path,
                "pictures are written as PNG, because JPEG would change their pixels",
            )
            .choice()
            .hint(format_args!(
                "give a name that ends in .png, or a folder and {}",
                option_as("format", "image-folder")
            )));
        }
        let single = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png"));
        if single && options.images > 1 {
            return Err(holds_one(path, ".png", NAMING.name).choice());
        }
        let staged = Staged::folder(path, options, single)?;
        if !single {
            staged.create_dir()?;
        }
        let target = path.to_owned();
        // One at a time on this machine, as pictures are small.
        let writers = ImageWriters::new(&staged, 1, options.memory, move || {
            Ok(FileWriter { compression, target: target.clone(), interleaved: vec![], big_endian: vec![] })
        });
        Ok(Self {
            writers,
            staged: Some(staged),
            target: path.to_owned(),
            single,
            names: SetNames::new(Listing { ending: ".png", sorts_ending: false, name_of: layout::name_of }),
            classes: ClassFolders::default(),
            count: 0,
        })
    }

    /// Where the image called `name` goes.
    fn file(&mut self, root: &Path, name: &str) -> Result<PathBuf> {
        let (class, stem) = name.rsplit_once('/').filter(|(c, _)| !c.is_empty()).unwrap_or(("", name));
        let folder = if class.is_empty() { "" } else { self.classes.folder(class) };
        self.names.next(root, folder, stem, name)
    }
}

/// Folders of classes: each its own, in any case of letters.
#[derive(Default)]
struct ClassFolders {
    known: HashMap<String, String>,
    taken: HashSet<String>,
}

impl ClassFolders {
    fn folder(&mut self, class: &str) -> &str {
        if !self.known.contains_key(class) {
            let mut folder = safe(class);
            // The folder above would be taken for one of another format, or for one with files that these are not.
            let is_json =
                Path::new(&folder).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
            if folder.contains('.') && (is_name_of_a_format(&folder) || is_json) {
                folder.push('_');
            }
            let number = self.known.len();
            while !self.taken.insert(folder.to_lowercase()) {
                folder.push_str(&format!("-{number:06}"));
            }
            self.known.insert(class.to_owned(), folder);
        }
        &self.known[class]
    }
}

/// The PNG colour type and depth for an image.
///
/// # Errors
/// The error for an image that PNG cannot hold; it names a format that can.
fn color(image: &ImageView<'_>) -> std::result::Result<(ColorType, BitDepth), String> {
    let [t, c, z, _, _] = image.shape.0;
    if t > 1 || z > 1 {
        return Err(format!("PNG holds single planes, and the image of {} has T or Z", image.shape));
    }
    match (c, image.dtype) {
        (1, PixelType::U8) => Ok((ColorType::Grayscale, BitDepth::Eight)),
        (1, PixelType::U16) => Ok((ColorType::Grayscale, BitDepth::Sixteen)),
        (3, PixelType::U8) => Ok((ColorType::Rgb, BitDepth::Eight)),
        (3, PixelType::U16) => Ok((ColorType::Rgb, BitDepth::Sixteen)),
        (1 | 3, other) => Err(format!("PNG holds uint8 and uint16, not {other}")),
        (other, _) => Err(format!("PNG is written with 1 channel (grey) or 3 (RGB), not {other}")),
    }
}

/// The picture that an image becomes.
///
/// # Errors
/// An image that PNG cannot hold.
fn picture(target: &Path, row: usize, image: &ImageView<'_>) -> Result<Picture> {
    let (color, depth) = color(image).map_err(|cause| {
        let hint = "write ome-zarr, tiff or parquet instead, which hold any image";
        Error::new(target, cause).row(row).hint(hint)
    })?;
    let (Ok(width), Ok(height)) = (u32::try_from(image.shape.x()), u32::try_from(image.shape.y())) else {
        let cause = format_args!("an image of {} is too large for PNG", image.shape);
        return Err(Error::new(target, cause).row(row));
    };
    Ok(Picture { width, height, color, depth })
}

impl WriteImage for FileWriter {
    fn write(&mut self, row: usize, image: &ImageView<'_>, path: &Path) -> Result<()> {
        let picture = picture(&self.target, row, image)?;
        let no_memory = |cause| Error::new(&self.target, cause);
        let mut pixels = image.pixels;
        if image.shape.c() > 1 {
            try_alloc::resize(&mut self.interleaved, pixels.len()).map_err(no_memory)?;
            interleave(image, &mut self.interleaved);
            pixels = &self.interleaved;
        }
        if image.dtype == PixelType::U16 {
            try_alloc::resize(&mut self.big_endian, pixels.len()).map_err(no_memory)?;
            for (to, from) in self.big_endian.chunks_exact_mut(2).zip(pixels.chunks_exact(2)) {
                to.copy_from_slice(&[from[1], from[0]]);
            }
            pixels = &self.big_endian;
        }
        let cannot = |e: &std::io::Error| Error::io(&self.target, "cannot write", e);
        let mut out = BufWriter::new(place::create(path).map_err(|e| cannot(&e))?);
        let named = WithName::new(&mut out, &image.metadata.name);
        picture.encode(named, self.compression, pixels).map_err(|e| match e {
            EncodingError::IoError(e) => cannot(&e),
            other => Error::new(&self.target, format_args!("cannot encode: {other}")),
        })?;
        out.flush().map_err(|e| cannot(&e))
    }
}

impl StoreWriter for PngWriter {
    fn write(&mut self, image: &ImageView<'_>) -> Result<()> {
        let row = self.count;
        let wrong = |target: &Path, cause: String| Error::new(target, cause).row(row);
        let bytes = image.shape.checked_bytes(image.dtype);
        let bytes = bytes.map_err(|e| wrong(&self.target, e.to_string()))?;
        if bytes != image.pixels.len() {
            return Err(wrong(
                &self.target,
                format!("{} bytes of pixels where {bytes} should be", image.pixels.len()),
            ));
        }
        picture(&self.target, row, image)?;
        let Some(root) = self.staged.as_ref().map(|s| s.path().to_owned()) else {
            return Err(wrong(&self.target, "the writer is finished".to_owned()));
        };
        let path = if !self.single {
            self.file(&root, &image.metadata.name)?
        } else if row == 0 {
            root
        } else {
            return Err(holds_one(&self.target, ".png", NAMING.name).choice().row(row));
        };
        self.count += 1;
        self.writers.write(row, image, path)
    }

    fn complete(&self) -> usize {
        self.staged.as_ref().map_or(0, Staged::complete)
    }

    fn skip(&mut self, metadata: &ImageMetadata) -> Result<()> {
        let root = self.staged.as_ref().map(|s| s.path().to_owned()).unwrap_or_default();
        self.count += 1;
        self.file(&root, &metadata.name).map(drop)
    }

    fn adopt(&mut self, metadata: &ImageMetadata, from: &Path) -> Result<()> {
        if self.single {
            return Err(holds_one(&self.target, ".png", NAMING.name).choice());
        }
        let Some(root) = self.staged.as_ref().map(|s| s.path().to_owned()) else {
            return Err(Error::new(&self.target, "the writer is finished"));
        };
        let to = self.file(&root, &metadata.name)?;
        moved(from, &to, &self.target)?;
        let row = self.count;
        self.count += 1;
        self.staged.as_ref().map_or(Ok(()), |staged| staged.completed(row))
    }

    fn complete_output(mut self: Box<Self>) -> Result<Finished> {
        if self.count == 0 {
            return Err(Error::new(&self.target, "there is no image to write"));
        }
        let Some(staged) = self.staged.take() else {
            return Err(Error::new(&self.target, "was completed before"));
        };
        self.writers.join()?;
        if self.single { Ok(staged.finished()) } else { self.names.finish(staged) }
    }
}

/// Planes to interleaved colours, of which there are as many bytes.
fn interleave(image: &ImageView<'_>, interleaved: &mut [u8]) {
    let (size, channels) = (image.dtype.size(), image.shape.c());
    let plane = image.pixels.len() / channels;
    for (i, pixel) in interleaved.chunks_exact_mut(size * channels).enumerate() {
        for (c, to) in pixel.chunks_exact_mut(size).enumerate() {
            let from = c * plane + i * size;
            to.copy_from_slice(&image.pixels[from..from + size]);
        }
    }
}
