//! The definition of a layout: the names that one microscope, or one program, gives to the files of a site.
//!
//! ```text
//!  layouts: harmony, imagexpress, …      a file each in this folder, and a line in `layouts.rs`
//!     patterns ─▶ fields of each file    plate, well, row, col, site · channel, time, z · others
//!     details  ─▶ channel names, pixel sizes, from a file that lies beside the images
//! ```
//!
//! A new layout is a file with a [`Layout`] and a line in `layouts.rs`.

use std::path::Path;
use wellread_image::{Channel, PhysicalSize};

/// How the files of a site are called.
pub struct Layout {
    /// Name as in `--layout`.
    pub name: &'static str,
    /// One line for help texts.
    pub about: &'static str,
    /// Patterns of names without ending, the first that fits counts. With folders, they are held against the end of the path.
    pub(super) patterns: &'static [&'static str],
    /// Files that such a microscope writes beside the images and that are none, such as thumbnails: by name without ending.
    pub(super) passes_over: fn(&str) -> bool,
    /// Further facts of the images in a folder.
    pub(super) details: fn(&Path) -> Option<Details>,
}

/// Facts of a microscope about its images, beside their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Details {
    /// The name of each channel in file names, and its metadata.
    pub channels: Vec<(String, Channel)>,
    /// Size of a pixel along X, Y and Z.
    pub sizes: [Option<PhysicalSize>; 3],
}

/// The role of a field of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The axis T, C or Z of the image, by its number.
    Axis(usize),
    Plate,
    Well,
    Row,
    Column,
    Site,
    /// A column of its own.
    Other,
}

impl Role {
    /// By the name of a field.
    pub fn of(field: &str) -> Self {
        match field {
            "time" | "t" | "timepoint" => Self::Axis(0),
            "channel" | "ch" | "c" | "wavelength" => Self::Axis(1),
            "z" | "plane" | "zstep" => Self::Axis(2),
            "plate" => Self::Plate,
            "well" => Self::Well,
            "row" => Self::Row,
            "col" | "column" => Self::Column,
            "site" | "field" | "fov" => Self::Site,
            _ => Self::Other,
        }
    }

    pub fn is_axis(self) -> bool {
        matches!(self, Self::Axis(_))
    }
}

/// For layouts whose microscope writes nothing beside the images that is known here.
pub(super) fn nothing_beside(_: &Path) -> Option<Details> {
    None
}

/// For layouts that have no files but images.
pub(super) fn none(_: &str) -> bool {
    false
}
