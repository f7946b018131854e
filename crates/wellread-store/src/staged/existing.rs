//! Whether a writer keeps or replaces a file or folder that is at its target.

/// Whether a file or folder that is at the target already is kept or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing is written there.
    Kept,
    /// The output takes its place: that of a file, an empty folder, or a folder that holds a set of images and nothing else.
    Replaced,
}

impl Existing {
    /// As the option `overwrite` of a writer says.
    pub fn from_overwrite(overwrite: bool) -> Self {
        if overwrite { Self::Replaced } else { Self::Kept }
    }
}
