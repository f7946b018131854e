//! `StoreWriter`: the way of pixels into a format, and the duties of a writer. How they leave one is
//! [`crate::store`]'s.
//!
//! ```text
//!  WriteOptions ──Format::create──▶ StoreWriter ──write(ImageView) …──▶ complete_output ──▶ Finished ──commit──▶ a set
//! ```

use crate::finished::Finished;
use crate::process::ProcessOwned;
use crate::{Error, Result};
use arrow_array::RecordBatch;
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType, Shape};

/// One image to be written.
#[derive(Clone, Copy, Debug)]
pub struct ImageView<'a> {
    /// Name, channels, physical sizes.
    pub metadata: &'a ImageMetadata,
    /// Size along T, C, Z, Y, X.
    pub shape: Shape,
    /// Pixel type.
    pub dtype: PixelType,
    /// `shape.pixels() * dtype.size()` bytes, C order, little-endian.
    pub pixels: &'a [u8],
}

/// Writes images in order; nothing is visible at the target until [`StoreWriter::finish`].
///
/// Dropping a writer without finishing removes what it wrote. A process that is forked meanwhile cannot use a writer of
/// [`Format::writer`](crate::Format::writer), and to drop it there changes nothing.
pub trait StoreWriter: Send {
    /// Appends one image.
    fn write(&mut self, image: &ImageView<'_>) -> Result<()>;

    /// How many images, from the first on, an interrupted run has left complete ([`WriteOptions::resume`]).
    fn complete(&self) -> usize {
        0
    }

    /// Counts the next image, which is complete, as written.
    ///
    /// # Errors
    /// A writer that cannot resume.
    fn skip(&mut self, metadata: &ImageMetadata) -> Result<()> {
        Err(Error::new(&metadata.name, "this format cannot go on with an interrupted run"))
    }

    /// Takes the next image as another writer with the same options has written it: the file or folder at `from`, which is moved. For
    /// formats with a file or folder for each image.
    ///
    /// # Errors
    /// A format, or a target, that has several images in a file; a file that cannot be moved.
    fn adopt(&mut self, metadata: &ImageMetadata, from: &Path) -> Result<()> {
        let _ = metadata;
        Err(Error::new(from, "this format has no file or folder of its own for each image"))
    }

    /// Completes the output where it was written, which is not yet its place.
    ///
    /// # Errors
    /// Nothing was written, or the rest cannot be.
    fn complete_output(self: Box<Self>) -> Result<Finished>;

    /// Completes the output and moves it into place.
    ///
    /// # Errors
    /// As [`Self::complete_output`] and [`Finished::commit`].
    fn finish(self: Box<Self>) -> Result<()> {
        self.complete_output()?.commit()
    }
}

/// A writer that only the process which opened it uses and drops.
///
/// Threads, a journal and unfinished files are behind it. A forked process has none of the threads, and must not remove the files:
/// it forgets the writer.
struct OwnWriter {
    target: PathBuf,
    writer: ProcessOwned<Box<dyn StoreWriter>>,
}

impl OwnWriter {
    fn own(&mut self) -> Result<&mut dyn StoreWriter> {
        match self.writer.get_mut() {
            Some(writer) => Ok(writer.as_mut()),
            None => Err(of_another_process(&self.target)),
        }
    }
}

impl StoreWriter for OwnWriter {
    fn write(&mut self, image: &ImageView<'_>) -> Result<()> {
        self.own()?.write(image)
    }

    fn complete(&self) -> usize {
        self.writer.complete()
    }

    fn skip(&mut self, metadata: &ImageMetadata) -> Result<()> {
        self.own()?.skip(metadata)
    }

    fn adopt(&mut self, metadata: &ImageMetadata, from: &Path) -> Result<()> {
        self.own()?.adopt(metadata, from)
    }

    fn complete_output(self: Box<Self>) -> Result<Finished> {
        let Self { target, writer } = *self;
        writer.take().ok_or_else(|| of_another_process(&target))?.complete_output()
    }
}

/// The writer to `target` as one that a forked process neither uses nor drops.
pub(crate) fn owned(target: &Path, writer: Box<dyn StoreWriter>) -> Box<dyn StoreWriter> {
    Box::new(OwnWriter { target: target.to_owned(), writer: ProcessOwned::new(writer) })
}

/// The error of a forked process that goes on with what its parent writes.
fn of_another_process(target: &Path) -> Error {
    Error::new(target, "is written by another process, from which this one was forked")
        .hint("write in that process, or open a writer to another target in this one")
}

/// Compression asked of a writer; each format maps it to what it has, or refuses with the list of what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// The format's sensible default.
    Default,
    /// No compression.
    None,
    /// LZ4 where the format has it.
    Lz4,
    /// Zstandard at a level.
    Zstd(i32),
    /// Deflate (zlib, gzip) at a level.
    Deflate(i32),
    /// LZW (TIFF).
    Lzw,
    /// PackBits (TIFF).
    PackBits,
    /// Snappy (Parquet).
    Snappy,
}

impl Compression {
    /// Level of Zstandard where none is asked for.
    pub const ZSTD_LEVEL: i32 = 3;
    /// Level of Deflate where none is asked for.
    pub const DEFLATE_LEVEL: i32 = 6;
}

impl std::fmt::Display for Compression {
    /// As it is parsed: `zstd:3`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::None => f.write_str("none"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Deflate(level) => write!(f, "deflate:{level}"),
            Self::Lzw => f.write_str("lzw"),
            Self::PackBits => f.write_str("packbits"),
            Self::Snappy => f.write_str("snappy"),
        }
    }
}

impl serde::Serialize for Compression {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::str::FromStr for Compression {
    type Err = String;
    /// `none`, `lz4`, `zstd[:LEVEL]`, `deflate[:LEVEL]`, `lzw`, `packbits`, `snappy`, `default`.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, level) = text.split_once(':').map_or((text, None), |(n, l)| (n, Some(l)));
        let number = |default: i32, max: i32| match level {
            None => Ok(default),
            Some(l) => l
                .parse()
                .ok()
                .filter(|l| (0..=max).contains(l))
                .ok_or_else(|| format!("compression level {l:?} is not a whole number from 0 to {max}")),
        };
        match (name.to_ascii_lowercase().as_str(), level) {
            ("default", None) => Ok(Self::Default),
            ("none", None) => Ok(Self::None),
            ("lz4", None) => Ok(Self::Lz4),
            ("lzw", None) => Ok(Self::Lzw),
            ("packbits", None) => Ok(Self::PackBits),
            ("snappy", None) => Ok(Self::Snappy),
            ("zstd", _) => Ok(Self::Zstd(number(Self::ZSTD_LEVEL, 22)?)),
            ("deflate" | "zlib" | "gzip", _) => Ok(Self::Deflate(number(Self::DEFLATE_LEVEL, 9)?)),
            _ => Err(format!(
                "unknown compression {text:?}; known: default, none, lz4, zstd[:LEVEL], deflate[:LEVEL], lzw, packbits, snappy"
            )),
        }
    }
}

/// The access that a table format is laid out for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tune {
    /// Random reads of single images: small row groups, a page per image, page index.
    #[default]
    Random,
    /// Whole-set scans.
    Scan,
    /// Smallest files.
    Size,
    /// The defaults of the reference library, as upstream writes.
    Reference,
}

/// Options of a writer. Formats ignore what cannot apply to them and refuse what they cannot do.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Compression of pixels.
    pub compression: Compression,
    /// Chunk size along T, C, Z, Y, X; `None` for the format's default.
    pub chunk: Option<[usize; 5]>,
    /// The access to lay out for.
    pub tune: Tune,
    /// Replace an existing target.
    pub overwrite: bool,
    /// Threads for compression.
    pub jobs: usize,
    /// Bytes of pixels that wait for these threads at most, where that is bounded, in formats of a file or folder per image. One
    /// image always may.
    pub memory: Option<u64>,
    /// Format version or variant where there are several: `0.4`, `0.5` (OME-Zarr), `plain`, `ome` (TIFF).
    pub variant: Option<String>,
    /// Shard size along T, C, Z, Y, X (OME-Zarr 0.5).
    pub shard: Option<[usize; 5]>,
    /// Columns to stand beside the images, a row per image in the order of writing; formats that keep none
    /// ([`crate::Format::keeps_columns`]) leave them out.
    pub features: Option<RecordBatch>,
    /// Keeps complete images when writing is interrupted, and goes on with an earlier run's. The text names the images
    /// and options of the set in one line, which must be the same then. For formats that resume
    /// ([`crate::Format::cannot_resume`]).
    pub resume: Option<String>,
    /// Whether what is written carries checksums, where a format has or can be given a place for them. Readers then find
    /// damage that would else give other pixels (`docs/decisions/0032-checksums.md`).
    pub checksums: bool,
    /// Types of the images to come, as far as they are known: a table's pixels are of one type that holds them all.
    /// Where none is known, it is that of the first image, and images that it does not hold are refused.
    pub types: Vec<PixelType>,
    /// How many images are to come, 0 where that is not known. A target that may hold one image or several is laid out for several
    /// where this is more than one.
    pub images: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            compression: Compression::Default,
            chunk: None,
            tune: Tune::default(),
            overwrite: false,
            jobs: 1,
            memory: None,
            variant: None,
            shard: None,
            features: None,
            resume: None,
            checksums: true,
            types: vec![],
            images: 0,
        }
    }
}
