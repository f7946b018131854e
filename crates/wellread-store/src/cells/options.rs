//! Options of single-cell crops.

pub use crate::format::Unmatched;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The treatment of a cell whose box reaches beyond its image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Edge {
    /// The box is moved inside: the cell is not in its middle then.
    #[default]
    Shift,
    /// Pixels outside are 0.
    Pad,
    /// The cell is left out.
    Drop,
}

/// The unit of positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Pixels, the centre of the first one at 0.
    #[default]
    Pixel,
    /// Micrometres; the metadata of each image has to say how large its pixels are.
    Um,
}

/// The use of a label image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mask {
    /// Nothing.
    #[default]
    None,
    /// Pixels that are not the cell's own are 0.
    Zero,
    /// One more channel, the last: 1 where a pixel is the cell's own, 0 elsewhere.
    Channel,
}

/// A choice among words: each value's word.
macro_rules! words {
    ($($type:ident: $($value:ident $word:literal),+;)+) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$value => $word),+ })
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$value),)+
                    other => Err(format!("{other:?} is not one of {}", [$($word),+].join(", "))),
                }
            }
        }
    )+};
}

words! {
    Edge: Shift "shift", Pad "pad", Drop "drop";
    Unit: Pixel "pixel", Um "um";
    Mask: None "none", Zero "zero", Channel "channel";
}

/// How cells are cut out of images.
///
/// ```
/// use wellread_store::cells::{CellOptions, Edge};
/// let options = CellOptions { size: [64, 64], edge: Edge::Pad, ..CellOptions::default() };
/// assert_eq!(options.unit.to_string(), "pixel");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellOptions {
    /// Column of the horizontal position; `None` takes the one of CellProfiler's names that is there.
    pub x: Option<String>,
    /// Column of the vertical position.
    pub y: Option<String>,
    /// Rows and columns of a crop, in pixels.
    pub size: [usize; 2],
    /// Columns that the table and the images share and that together identify an image, such as `Plate`, `Well`,
    /// `Site` (`Metadata_Plate` counts as `Plate`). Or one column of the table that has names of images. Empty:
    /// found by themselves where they can be.
    pub by: Vec<String>,
    /// The treatment of cells at the border.
    pub edge: Edge,
    /// The unit of `x` and `y`.
    pub unit: Unit,
    /// The treatment of cells that cannot be cut out: without an image, without a position, outside of their image.
    pub unmatched: Unmatched,
    /// The use of the label images.
    pub mask: Mask,
    /// The label images: a set that has one for each image, told by names or by `by`. Where the table of cells is a set of
    /// label images, that one unless said otherwise.
    pub masks: Option<PathBuf>,
    /// Whether label images, those that are the table and those of [`Self::masks`], are binary masks. Their connected
    /// components are then numbered: pixels that are not 0 and touch, also at a corner. The numbers are those of
    /// scikit-image's `label(mask > 0)`.
    pub label_masks: bool,
    /// Column of the cell's number in its label image; `None` takes `ObjectNumber` and the like.
    pub label: Option<String>,
}

impl Default for CellOptions {
    /// Crops of 96 x 96 pixels, moved inside at the border. Positions are in pixels, there is no mask, and nothing
    /// may be left out.
    fn default() -> Self {
        Self {
            x: None,
            y: None,
            size: [96, 96],
            by: vec![],
            edge: Edge::default(),
            unit: Unit::default(),
            unmatched: Unmatched::default(),
            mask: Mask::default(),
            masks: None,
            label_masks: false,
            label: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_shown() {
        for edge in [Edge::Shift, Edge::Pad, Edge::Drop] {
            assert_eq!(edge.to_string().parse(), Ok(edge));
        }
        for mask in [Mask::None, Mask::Zero, Mask::Channel] {
            assert_eq!(mask.to_string().parse(), Ok(mask));
        }
        assert_eq!("um".parse(), Ok(Unit::Um));
        assert_eq!("skip".parse(), Ok(Unmatched::Skip));
        let error = "moved".parse::<Edge>().unwrap_err();
        assert_eq!(error, "\"moved\" is not one of shift, pad, drop");
    }
}
