//! PNG and JPEG: a single file, a folder of files, or class folders as ImageNet is laid out.
//!
//! ```text
//!  path ──layout──▶ rows (file, name)        a.png, b.jpg … or cat/001.jpeg, dog/002.jpeg … by name
//!                      │ first access: the header alone (size, colours, bits)
//!                      ▼
//!        request ──decode──▶ the whole picture, interleaved ──▶ planes ──▶ one Block ──▶ sink
//! ```
//!
//! Colours lie along the C axis: grey is C = 1, grey with alpha C = 2, RGB and palettes C = 3, with alpha
//! C = 4. 16-bit PNG is `uint16`, everything else `uint8`. Compressed pictures have no random access, so a
//! request for a region decodes the whole picture and the sink clips it.
//!
//! **Names**: a PNG that wellread wrote carries its image's name in a text chunk, for when it is opened by itself.
//!
//! JPEG of four colours (CMYK, YCCK) becomes red, green and blue, as Pillow converts it.
//!
//! **Classes**: an image in a subfolder is called `class/stem`, and [`class_of`] takes the class from the name. Where
//! folders lie in folders, as plate/well/site, the class is the whole path (`A01/site1`). Columns beside the images say
//! it too: `class`, `label` (its number), `class_name` (from `Labels.json`).
//!
//! **Splits**: where class folders lie in folders called `train`, `val` and so on, images are called `split/class/stem`, and
//! `split` is a column. `train.X1`, `train.X2` … are parts of `train`. [`OpenOptions::table`] opens one split.
//!
//! The crates png and zune-jpeg decode, and png encodes.

mod cmyk;
mod decode;
mod format;
mod layout;
mod splits;
mod store;
mod text_chunk;
mod writer;

pub use format::FORMAT;
pub use splits::class_of;

use crate::Store;
use std::path::{Path, PathBuf};

/// Opens these pictures as one set, which is called `path`: a row each. A file that cannot be read is a row whose use is an error.
pub(crate) fn open_files(path: &Path, files: Vec<PathBuf>) -> Box<dyn Store> {
    Box::new(store::ImageFolder::of_files(path, files))
}

#[cfg(doc)]
use crate::OpenOptions;
