//! The definition of a generated plate.

use super::layout::PlateLayout;
use super::wells::{PlateSize, Site};
use anyhow::{Result, bail};
use std::path::Path;
use wellread_image::synthetic::{self, Kind};
use wellread_image::{PixelType, Shape};

/// Fields of a well at most: numbers of two digits.
const MOST_FIELDS: usize = 99;

/// A generated plate.
#[derive(Clone, Debug)]
pub struct PlateSpec {
    /// Its name, in names of files and as `Metadata_Plate`.
    pub name: String,
    /// Rows and columns of wells.
    pub size: PlateSize,
    /// Fields of view of each well.
    pub fields: usize,
    /// Channels of each field.
    pub channels: usize,
    /// Height and width of each field.
    pub pixels: [usize; 2],
    /// Pixel type.
    pub dtype: PixelType,
    /// Seed of the images.
    pub seed: u64,
    /// The layout whose files are written.
    pub layout: PlateLayout,
    /// Whether to write the table of nuclei.
    pub table: bool,
    /// Whether to write label images of the nuclei.
    pub masks: bool,
}

impl PlateSpec {
    /// A name for the plate in `folder`: the part of the folder's name that can stand in names of files.
    pub fn name_of(folder: &Path) -> String {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let kept: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let kept = kept.trim_matches('-');
        if kept.is_empty() { "plate".to_owned() } else { kept.to_owned() }
    }

    /// Shape of each field.
    pub fn shape(&self) -> Shape {
        let [y, x] = self.pixels;
        Shape([1, self.channels, 1, y, x])
    }

    /// Number of sites: fields of all wells.
    pub fn sites(&self) -> usize {
        self.size.wells() * self.fields
    }

    /// The site of a number: fields of a well follow each other, wells row by row.
    pub(super) fn site(&self, index: usize) -> Site {
        Site { well: self.size.well(index / self.fields.max(1)), field: index % self.fields.max(1) }
    }

    /// The images of its sites.
    pub(super) fn image(&self) -> synthetic::Spec {
        synthetic::Spec { kind: Kind::Cells, shape: self.shape(), dtype: self.dtype, seed: self.seed }
    }

    /// Refuses what names of the layout cannot say.
    ///
    /// # Errors
    /// More fields or channels than there are names for, or none.
    pub(super) fn check(&self) -> Result<()> {
        if self.fields == 0 || self.fields > MOST_FIELDS {
            bail!("{} fields: a well has 1 to {MOST_FIELDS}", self.fields);
        }
        let most = self.layout.most_channels();
        if self.channels == 0 || self.channels > most {
            bail!("{} channels: {} has names for 1 to {most}", self.channels, self.layout);
        }
        Ok(())
    }
}
