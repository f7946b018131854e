//! The columns of a table that place each cell: its image, its position in pixels, its number.

use super::keys::ImageOf;
use super::options::{CellOptions, Unit};
use super::positions::{CLASS, is_number_of_cell, label_column, labels, numbers, position_columns};
use super::table::CellTable;
use crate::surface::{self, Surface, option, option_as};
use crate::{Error, Result, Store};
use std::collections::HashMap;
use wellread_image::{PhysicalSize, ome_xml};

/// The columns of a table that say where its cells are.
pub(super) struct CellPositions {
    /// The image of each row.
    pub image: ImageOf,
    /// Positions, in pixels; NaN where there is none.
    pub y: Vec<f64>,
    /// The positions, in columns of pixels.
    pub x: Vec<f64>,
    /// The column of a cell's number in its image, and the numbers.
    pub labels: Option<(String, Vec<i64>)>,
    /// The rows that share a number, in words, where a column that may be classes is passed over for it.
    pub repeated: Option<String>,
}

impl CellPositions {
    /// The columns of positions and numbers; positions in pixels of the images, where these are given.
    pub fn of(
        table: &CellTable,
        image: ImageOf,
        images: Option<&dyn Store>,
        options: &CellOptions,
    ) -> Result<Self> {
        let [x_name, y_name] = position_columns(table, options)?;
        let label = label_column(table, options, &x_name)?;
        let mut names = vec![x_name.clone()];
        for name in std::iter::once(&y_name).chain(&label) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let columns = table.read(&names)?;
        let column = |name: &str| {
            let found = columns.column_by_name(name);
            found.ok_or_else(|| Error::new(&table.path, format_args!("has no column {name:?}")))
        };
        let mut x = numbers(table, &x_name, column(&x_name)?)?;
        let mut y = numbers(table, &y_name, column(&y_name)?)?;
        if let Some(images) = images.filter(|_| options.unit == Unit::Um) {
            in_pixels(images, &image.images, [&mut y, &mut x])?;
        }
        let (mut found, mut repeated) = (None, None);
        if let Some(name) = label {
            let cell = |row: usize| image.images[row].filter(|_| x[row].is_finite() && y[row].is_finite());
            let of_cells = column(&name)?;
            let values = labels(table, &name, of_cells, |row| cell(row).is_some());
            if options.label.is_some() || name != CLASS || is_number_of_cell(table, of_cells) {
                found = Some((name, values?));
            } else if let Ok(values) = values {
                // A column of that name may as well hold classes.
                if let Some(([one, other], of)) = first_repeat((0..values.len()).map(cell), &values) {
                    let of = images.map_or_else(|| Ok(format!("in row {of}")), |images| images.name(of))?;
                    let number = values[one];
                    repeated =
                        Some(format!("rows {one} and {other} both have {number} in it, in the image {of}"));
                } else {
                    found = Some((name, values));
                }
            }
        }
        Ok(Self { image, y, x, labels: found, repeated })
    }

    /// The note that rows number the cells, since a column that may be classes repeats.
    pub fn note(&self) -> Option<String> {
        let rows = self.repeated.as_ref()?;
        Some(format!(
            "column {CLASS:?} does not number the cells, and their rows in the table do: {rows}. If it holds their \
             numbers, leave rows out that are there twice; if it holds classes, rename it, or name the column of \
             numbers ({})",
            option("cells.label")
        ))
    }
}

/// The first two rows that have one number in one image, and that image. A row that is no cell has no image here.
fn first_repeat(of: impl Iterator<Item = Option<usize>>, numbers: &[i64]) -> Option<([usize; 2], usize)> {
    let mut known = HashMap::with_capacity(numbers.len());
    of.zip(numbers).enumerate().find_map(|(row, (image, number))| {
        let image = image?;
        known.insert((image, *number), row).map(|before| ([before, row], image))
    })
}

/// Positions in micrometres as those in pixels.
fn in_pixels(images: &dyn Store, of: &[Option<usize>], [y, x]: [&mut [f64]; 2]) -> Result<()> {
    let mut sizes: HashMap<usize, [f64; 2]> = HashMap::new();
    for (row, image) in of.iter().enumerate() {
        let Some(image) = *image else { continue };
        let size = if let Some(size) = sizes.get(&image) {
            *size
        } else {
            let metadata = readable(images.metadata(image), image)?;
            let both = [&metadata.physical_size_y, &metadata.physical_size_x];
            let [Some(height), Some(width)] = both.map(|size| size.as_ref().and_then(micrometres)) else {
                return Err(Error::new(images.path(), "does not say how large a pixel is, in micrometres")
                    .row(image)
                    .choice()
                    .hint(format_args!("give positions in pixels: {}", option_as("cells.unit", "pixel"))));
            };
            sizes.insert(image, [height, width]);
            [height, width]
        };
        y[row] /= size[0];
        x[row] /= size[1];
    }
    Ok(())
}

/// The result of a look into an image that has cells. An error says that the image cannot be read, and how to leave it out.
pub(super) fn readable<T>(found: Result<T>, image: usize) -> Result<T> {
    found.map_err(|error| {
        // No flag chooses images. --on-error skip of `convert` looks at images after their cells are found.
        let how = if surface::current() == Surface::CommandLine {
            "move its file away, or first convert the set by `convert --on-error skip`"
        } else {
            "select"
        };
        error.row(image).unreadable().or_hint(format_args!(
            "leave the image out of the set ({how}), and its cells by {}",
            option_as("cells.unmatched", "skip")
        ))
    })
}

/// The size of a pixel in micrometres; `None` for units that are no length and sizes that are none.
fn micrometres(size: &PhysicalSize) -> Option<f64> {
    let unit = if size.unit.is_empty() { "µm" } else { &size.unit };
    ome_xml::micrometres(size.value, unit).filter(|um| *um > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_pixels_are_micrometres() {
        let size = |value, unit: &str| micrometres(&PhysicalSize { value, unit: unit.to_owned() });
        assert_eq!(size(650.0, "nm"), Some(0.65));
        assert_eq!(size(0.65, "µm"), Some(0.65));
        assert_eq!([size(0.0, "µm"), size(f64::NAN, "µm"), size(1.0, "pixel")], [None; 3]);
    }
}
