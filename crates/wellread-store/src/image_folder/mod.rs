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
//! **Classes**: an image in a subfolder is called `class/stem`; [`class_of`] takes the class from the name.
//!
//! Decoding is by the crates png and zune-jpeg, encoding by image.

mod decode;
mod layout;
mod store;
mod writer;

use crate::Format;

/// PNG and JPEG files, folders and class folders.
pub static FORMAT: Format = Format {
    name: "image-folder",
    about: "PNG and JPEG: files, folders, and class folders as ImageNet is laid out",
    endings: &[".png", ".jpg", ".jpeg"],
    set_ending: "",
    holds_images: |_| true,
    parts: &[],
    keeps_features: false,
    has_tables: false,
    has_levels: false,
    heeds_tune: |_| false,
    cannot_resume: None,
    engine: || "png 0.18, zune-jpeg 0.5".to_owned(),
    recognise: layout::recognise,
    open: |path, options| Ok(Box::new(store::ImageFolder::open(path, options)?)),
    create: |path, options| Ok(Box::new(writer::PngWriter::create(path, options)?)),
};

/// The class of an image of an image folder: the part of its name before the last `/`, if there is one.
///
/// ```
/// use wellread_store::image_folder::class_of;
/// assert_eq!(class_of("n01440764/n01440764_10026"), Some("n01440764"));
/// assert_eq!(class_of("cell-17"), None);
/// ```
pub fn class_of(name: &str) -> Option<&str> {
    name.rsplit_once('/').map(|(class, _)| class)
}
