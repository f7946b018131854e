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

/// Words that are known fields, and long enough that one may be misspelt.
const WORDS: [&str; 14] = [
    "time",
    "timepoint",
    "channel",
    "wavelength",
    "plane",
    "zstep",
    "plate",
    "well",
    "row",
    "col",
    "column",
    "site",
    "field",
    "fov",
];

/// Words of their own that are near one of [`WORDS`].
const OTHER_WORDS: [&str; 4] = ["tile", "place", "plan", "plant"];

/// The known field that a name of none is nearly. It is in other capital letters, as its plural, or misspelt in a letter or, of long ones,
/// two. `None` where it is known, or a word of its own.
pub(super) fn near(field: &str) -> Option<&'static str> {
    let lower = field.to_lowercase();
    if Role::of(field) != Role::Other || OTHER_WORDS.contains(&lower.as_str()) {
        return None;
    }
    let distance = |known: &str| match known.len() {
        _ if lower == known => Some(0),
        _ if lower.strip_suffix('s') == Some(known) => Some(1),
        // Another one of the same kind, such as site2.
        _ if lower.strip_prefix(known).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit())) => {
            None
        }
        // Short ones are near to too much.
        ..=3 => None,
        // A first letter is hardly ever mistyped; with another one it is another word, as cell is not well.
        length => Some(strsim::osa_distance(&lower, known))
            .filter(|&distance| distance <= length / 4 && lower.chars().next() == known.chars().next()),
    };
    WORDS
        .into_iter()
        .filter_map(|known| Some((distance(known)?, known)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_fields_are_told_from_words_of_their_own() {
        for (field, meant) in [
            ("chanel", "channel"),
            ("Channel", "channel"),
            ("chnanel", "channel"),
            ("channels", "channel"),
            ("wel", "well"),
            ("WELL", "well"),
            ("plat", "plate"),
            ("rows", "row"),
            ("Col", "col"),
            ("wavelenght", "wavelength"),
            ("sitee", "site"),
            ("tme", "time"),
        ] {
            assert_eq!(near(field), Some(meant), "{field}");
        }
        for field in [
            "channel",
            "c",
            "t",
            "z",
            "well",
            "col",
            "dose",
            "cell",
            "tile",
            "volume",
            "place",
            "drug",
            "raw",
            "cow",
            "rest",
            "stain",
            "batch",
            "site2",
            "x",
            "color",
            "measurement",
        ] {
            assert_eq!(near(field), None, "{field}");
        }
    }
}
