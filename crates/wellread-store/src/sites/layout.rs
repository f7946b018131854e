//! What a layout is: how one microscope, or one program, calls the files of a site.
//!
//! ```text
//!  LAYOUTS: harmony, imagexpress, …      a file each in this folder, and a line below
//!     patterns ─▶ fields of each file    plate, well, row, col, site · channel, time, z · others
//!     details  ─▶ channel names, pixel sizes, from a file that lies beside the images
//! ```
//!
//! A new layout is a file with a [`Layout`] and a line in [`LAYOUTS`].

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
    /// What else is known of the images in a folder.
    pub(super) details: fn(&Path) -> Option<Details>,
}

/// What a microscope says of its images, beside their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Details {
    /// What each channel is called in file names, and what is known of it.
    pub channels: Vec<(String, Channel)>,
    /// Size of a pixel along X, Y and Z.
    pub sizes: [Option<PhysicalSize>; 3],
}

/// All layouts that are recognised by names, in this order. One line per layout.
pub(super) static LAYOUTS: &[&Layout] = &[
    &super::harmony::LAYOUT,
    &super::imagexpress::LAYOUT,
    &super::cellvoyager::LAYOUT,
    &super::incell::LAYOUT,
    &super::cellomics::LAYOUT,
];

/// What a field of a name stands for.
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

/// The column of plates, wells and sites, as CellProfiler and pycytominer call them.
pub(crate) const PLATE: &str = "Metadata_Plate";
pub(crate) const WELL: &str = "Metadata_Well";
pub(crate) const SITE: &str = "Metadata_Site";

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

#[cfg(test)]
mod tests {
    use super::super::pattern::Pattern;
    use super::*;

    #[test]
    fn every_layout_is_whole() {
        for (i, layout) in LAYOUTS.iter().enumerate() {
            assert!(LAYOUTS[..i].iter().all(|other| other.name != layout.name), "{} twice", layout.name);
            assert!(!layout.about.is_empty() && !layout.patterns.is_empty(), "{}", layout.name);
            for text in layout.patterns {
                let pattern = Pattern::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
                let roles: Vec<Role> = pattern.fields().map(Role::of).collect();
                assert!(roles.iter().any(|role| role.is_axis()), "{text} has no axis");
                let has = |role| roles.contains(&role);
                assert!(has(Role::Well) || has(Role::Row) && has(Role::Column), "{text} has no well");
            }
        }
    }
}
