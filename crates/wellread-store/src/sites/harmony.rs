//! Opera Phenix and Operetta, exported by Harmony; the JUMP Cell Painting plates.
//!
//! `BR00116991__2020-11-05T19_51_35-Measurement1/Images/r01c01f01p01-ch2sk1fk1fl1.tiff`: row, column, field, plane of the
//! stack, channel, slow kinetics (time), fast kinetics, state of the flim. `Index.xml` beside the images says what channels
//! are called and how large pixels are. Harmony 3 wrote a record for each channel, `r02c07f01p01rc2-ch1sk1fk1fl1.tiff`, in which `ch` is 1.
//!
//! The text behind the plate in the folder's name is the measurement. For two measurements of one plate it is the
//! column `Metadata_Measurement`.

use super::layout::{Layout, none};

/// The layout.
pub(super) static LAYOUT: Layout = Layout {
    name: "harmony",
    about: "Opera Phenix, Operetta, JUMP: r01c01f01p01-ch1sk1fk1fl1.tiff, Index.xml",
    patterns: &[
        "{plate}__{Metadata_Measurement}/Images/r{row:d}c{col:d}f{site:d}p{z:d}-ch{channel:d}sk{time:d}fk{kinetic:d}fl{flim:d}",
        "{plate}/Images/r{row:d}c{col:d}f{site:d}p{z:d}-ch{channel:d}sk{time:d}fk{kinetic:d}fl{flim:d}",
        "r{row:d}c{col:d}f{site:d}p{z:d}-ch{channel:d}sk{time:d}fk{kinetic:d}fl{flim:d}",
        "{plate}__{Metadata_Measurement}/Images/r{row:d}c{col:d}f{site:d}p{z:d}rc{channel:d}-ch{:d}sk{time:d}fk{kinetic:d}fl{flim:d}",
        "{plate}/Images/r{row:d}c{col:d}f{site:d}p{z:d}rc{channel:d}-ch{:d}sk{time:d}fk{kinetic:d}fl{flim:d}",
        "r{row:d}c{col:d}f{site:d}p{z:d}rc{channel:d}-ch{:d}sk{time:d}fk{kinetic:d}fl{flim:d}",
    ],
    passes_over: none,
    details: super::index_xml::details,
};
