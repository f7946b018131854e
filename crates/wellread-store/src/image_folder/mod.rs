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
//! **Classes**: an image in a subfolder is called `class/stem`; [`class_of`] takes the class from the name. Columns beside the
//! images say it too: `class`, `label` (its number), `class_name` (from `Labels.json`).
//!
//! **Splits**: where class folders lie in folders called `train`, `val` and so on, images are called `split/class/stem`, and
//! `split` is a column. `train.X1`, `train.X2` … are parts of `train`. [`OpenOptions::table`] opens one split.
//!
//! Decoding is by the crates png and zune-jpeg, encoding by image.

mod cmyk;
mod decode;
mod layout;
mod splits;
mod store;
mod text_chunk;
mod writer;

use crate::Format;
#[cfg(doc)]
use crate::OpenOptions;

/// PNG and JPEG files, folders and class folders.
pub static FORMAT: Format = Format {
    name: "image-folder",
    about: "PNG and JPEG: files, folders, and class folders as ImageNet is laid out",
    endings: &[".png", ".jpg", ".jpeg"],
    set_ending: "",
    holds_images: |_| true,
    parts: &[],
    keeps_features: false,
    keeps_durations: false,
    holds_bare_pixels: false,
    has_checksums: true,
    has_tables: true,
    has_columns: false,
    has_levels: false,
    heeds_tune: |_| false,
    cannot_resume: None,
    engine: || Ok("png 0.18, zune-jpeg 0.5".to_owned()),
    recognise: layout::recognise,
    open: |path, options| Ok(Box::new(store::ImageFolder::open(path, options)?)),
    create: |path, options| Ok(Box::new(writer::PngWriter::create(path, options)?)),
};

/// The class of an image of an image folder: the folder that it lies in, by its name.
///
/// ```
/// use wellread_store::image_folder::class_of;
/// assert_eq!(class_of("n01440764/n01440764_10026"), Some("n01440764"));
/// assert_eq!(class_of("train/n01440764/n01440764_10026"), Some("n01440764"));
/// assert_eq!(class_of("cell-17"), None);
/// ```
pub fn class_of(name: &str) -> Option<&str> {
    let (folder, _) = name.rsplit_once('/')?;
    folder.rsplit('/').next()
}
