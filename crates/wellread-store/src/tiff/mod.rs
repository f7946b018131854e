//! TIFF and OME-TIFF: single files, multi-page files and folders of them.
//!
//! Specifications: [TIFF 6.0](https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf),
//! [BigTIFF](https://www.awaresystems.be/imaging/tiff/bigtiff.html),
//! [OME-TIFF](https://docs.openmicroscopy.org/ome-model/latest/ome-tiff/specification.html).
//! Compatible implementations: tifffile, libtiff, Bio-Formats, ImageJ.
//!
//! ```text
//!  path ──listing──▶ files ──(first use)──▶ ifd ─▶ image ─▶ series ──▶ FileIndex, kept
//!                      │                   tags   pages    TCZYX planes    │
//!                      └── regular ─▶ codec ─▶ predictor ─▶ read ◀──────────┘
//!                                    lzw …                  │
//!                                                           ▼ Block … Block
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `listing` | which files a folder holds, and that it holds nothing else |
//! | `format` | [`FORMAT`] |
//! | `ifd`, `endian` | header, directories, tag values; byte order |
//! | `image`, `page_tags`, `pages` | one page: pixel layout, strips and tiles; the same by its tags; all pages of a file |
//! | `series`, `axes` | one 5D image: which page holds which plane; T, C and Z in lists |
//! | `ome`, `describe` | images by OME-XML; by ImageJ's and tifffile's descriptions |
//! | `slice_labels` | the labels that ImageJ shows above slices |
//! | `companion`, `wells` | OME-XML in a file of its own, and the files that it describes; the columns of its plates |
//! | `index` | pages → images by whichever of them the file has, or none; all that is kept of a file |
//! | `codec`, `lzw`, `predictor`, `samples` | bytes → samples |
//! | `nodata` | the value of strips and tiles that were never written |
//! | `planes` | the planes of a region, in order |
//! | `read`, `pieces`, `decode`, `ranges` | a region read; the strips and tiles that hold it; these → blocks; where they lie |
//! | `restarts` | where long LZW strips can be entered, for reads of a few rows |
//! | `scan` | the rows of a folder: which of its files are looked into when it is opened |
//! | `store` | the [`Store`](crate::Store) |
//! | `writer`, `encode` | the [`StoreWriter`](crate::StoreWriter) |
//! | `sums` | checksums of strips, tiles and directories |
//! | `unkept` | what a file's OME-XML says and no conversion keeps |
//! | `own` | whether a file was written here: asked before a folder of files is replaced |
//!
//! # Example
//!
//! ```no_run
//! let store = wellread_store::open("plate1/", &Default::default())?;
//! let (info, pixels) = wellread_store::read_image(&*store, 0)?;
//! println!("{} {} {} bytes", info.shape, info.dtype, pixels.len());
//! # Ok::<(), wellread_store::Error>(())
//! ```

mod axes;
mod codec;
mod companion;
mod decode;
mod describe;
mod encode;
mod endian;
mod format;
mod ifd;
mod image;
mod index;
mod listing;
mod lzw;
mod nodata;
mod ome;
mod own;
mod page_tags;
mod pages;
mod pieces;
mod planes;
mod predictor;
mod ranges;
mod read;
mod restarts;
mod samples;
mod scan;
mod series;
mod slice_labels;
mod store;
mod sums;
mod unkept;
mod wells;
mod writer;

pub use format::FORMAT;

use crate::{Result, Store};
use std::path::{Path, PathBuf};

/// Opens these files as one set, which is called `path`: a row for each image in them.
///
/// # Errors
/// None now: a file that cannot be read is a row whose use is an error.
pub(crate) fn open_files(path: &Path, files: Vec<PathBuf>) -> Result<Box<dyn Store>> {
    Ok(Box::new(of_files(path, files, None)?))
}

/// Opens the files that a companion in `folder` names as one set. It describes those that have no OME-XML of their own. `missing_parts` says
/// in sentences which images were left out, and `left_out` how many.
///
/// # Errors
/// As [`open_files`].
pub(crate) fn open_companion(
    folder: &Path,
    companion: Companion,
    missing_parts: Vec<String>,
    left_out: usize,
) -> Result<Box<dyn Store>> {
    let mut store = of_files(folder, companion.files.clone(), Some(companion))?;
    (store.missing_parts, store.left_out) = (missing_parts, left_out);
    Ok(Box::new(store))
}

fn of_files(path: &Path, files: Vec<PathBuf>, companion: Option<Companion>) -> Result<store::TiffStore> {
    let files = files.into_iter().map(|file| (file, None)).collect();
    store::TiffStore::of_files(path, store::NamedBy::Caller, files, companion::Companions::new(companion))
}

pub(crate) use companion::Companion;
pub(crate) use listing::is_companion;
pub(crate) use lzw::{Decoder as LzwDecoder, encode as lzw_encode};
