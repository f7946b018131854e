//! A label image as a table of cells: number, centroid and area of each label, in one pass over the pixels.

use super::components::labelled;
use super::found::Found;
use super::keys::ImageOf;
use super::mask_rows::of_another_shape;
use super::pairs::pair;
use super::pieces::{FewValues, pieces};
use super::table::CellTable;
use crate::surface::{option, option_as};
use crate::{Error, Result, RowInfo, Store, read_region};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use wellread_image::{PixelType, Shape};

/// Labels that are expected at most: more are no cells but another kind of image.
const MAX_LABELS: usize = 10_000_000;

/// Pixels of a label: how many, and the sums of their rows and columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    pixels: u64,
    y: u64,
    x: u64,
}

/// The labels of an image, in ascending order: whole numbers above 0, since 0 and negative numbers are what is no cell.
fn sums(shape: Shape, dtype: PixelType, pixels: &[u8]) -> Result<BTreeMap<i64, Sums>, String> {
    let mut found: BTreeMap<i64, Sums> = BTreeMap::new();
    let (height, width) = (shape.y(), shape.x());
    for row in 0..shape.planes() * height {
        let mut x = 0;
        while x < width {
            let value = dtype.value_at(pixels, row * width + x);
            // Labels come in runs: one look into the map for each.
            let start = x;
            while x < width && dtype.value_at(pixels, row * width + x).to_bits() == value.to_bits() {
                x += 1;
            }
            if value == 0.0 {
                continue;
            }
            if value.fract() != 0.0 || value.abs() > 9_007_199_254_740_992.0 {
                return Err(format!("the pixel value {value} is no label: labels are whole numbers"));
            }
            // Background too: OpenCV's watershed writes -1 between cells.
            if value < 0.0 {
                continue;
            }
            let sums = found.entry(value as i64).or_default();
            let run = (x - start) as u64;
            sums.pixels += run;
            sums.y += run * (row % height) as u64;
            // From `start` to `x - 1`.
            sums.x += run * (start + x - 1) as u64 / 2;
        }
        if found.len() > MAX_LABELS {
            return Err(format!("more than {MAX_LABELS} labels: it is no label image"));
        }
    }
    Ok(found)
}

/// The label image of an image: that image's row, its own, and its shape.
pub(super) struct LabelShape {
    image: usize,
    row: usize,
    shape: Shape,
}

/// The cells of a set of label images.
pub(super) struct LabelCells {
    /// A row per cell.
    pub table: CellTable,
    /// The image that each is of.
    pub image: ImageOf,
    /// Label images of no image.
    pub unpaired: Found,
    /// Label images with cells.
    pub shapes: Vec<LabelShape>,
}

/// Checks that label images have the rows and columns of their images, of which `infos` are known: else positions would be
/// those of other pixels. An image without one is left to its reader.
///
/// # Errors
/// A label image of another height or width.
pub(super) fn check_shapes(path: &Path, shapes: &[LabelShape], infos: &[Option<RowInfo>]) -> Result<()> {
    for LabelShape { image, row, shape } in shapes {
        let Some(RowInfo { shape: own, .. }) = infos.get(*image).copied().flatten() else { continue };
        if (shape.y(), shape.x()) != (own.y(), own.x()) {
            return Err(of_another_shape(path, *row, *shape, own));
        }
    }
    Ok(())
}

/// The cells of a set of label images as a table, the image that each is of, and label images of no image. Images without a label
/// image have no cells. For binary masks, where `are_masks`, the connected components are the cells.
///
/// # Errors
/// Label images that cannot be read, have several channels, or hold no whole numbers. None that belongs to an image, or no
/// label in any of them. Binary masks, in which one value stands for all cells.
pub(super) fn table(
    images: &dyn Store,
    labels: &dyn Store,
    by: &[String],
    are_masks: bool,
) -> Result<LabelCells> {
    let pairs = pair(images, labels, by)?;
    let paired: HashSet<usize> = pairs.iter().flatten().copied().collect();
    if paired.is_empty() && !images.is_empty() && !labels.is_empty() {
        let cause = format!(
            "no label image belongs to an image: the first image is called {}, the first label image {}",
            images.name(0)?,
            labels.name(0)?
        );
        return Err(Error::new(labels.path(), cause).choice().hint(format_args!(
            "the name of a label image begins with that of its image, or of a file of it; or name columns that both \
             have ({})",
            option("cells.by")
        )));
    }
    let mut unpaired = Found::default();
    for label in (0..labels.len()).filter(|label| !paired.contains(label)) {
        unpaired.push(|| labels.name(label).unwrap_or_else(|_| format!("row {label}")));
    }
    let (mut of_image, mut names) = (vec![], vec![]);
    let (mut numbers, mut areas, mut ys, mut xs) = (vec![], vec![], vec![], vec![]);
    let (mut scratch, mut pixels) = (crate::Scratch::default(), vec![]);
    let (mut values, mut shapes) = (FewValues::default(), vec![]);
    for (image, label) in pairs.into_iter().enumerate() {
        let Some(label) = label else { continue };
        let info = labels.row_info(label)?;
        let refuse = |cause: String| Error::new(labels.path(), cause).row(label);
        if info.shape.c() > 1 {
            let cause = format!("has {} channels, and a label image one", info.shape.c());
            return Err(refuse(cause).hint("give a set of label images"));
        }
        read_region(labels, label, &info.shape.full(), &mut scratch, &mut pixels)?;
        let found = if are_masks {
            let numbered = labelled(info.shape, info.dtype, &pixels).map_err(refuse)?;
            sums(info.shape, PixelType::U32, &numbered).map_err(refuse)?
        } else {
            let found = sums(info.shape, info.dtype, &pixels).map_err(refuse)?;
            values.observe(label, found.keys().copied(), || pieces(info.shape, info.dtype, &pixels));
            found
        };
        if !found.is_empty() {
            shapes.push(LabelShape { image, row: label, shape: info.shape });
        }
        let name = images.name(image)?;
        for (number, Sums { pixels, y, x }) in found {
            of_image.push(Some(image));
            names.push(name.clone());
            numbers.push(number);
            areas.push(pixels as i64);
            ys.push(y as f64 / pixels as f64);
            xs.push(x as f64 / pixels as f64);
        }
    }
    if numbers.is_empty() {
        return Err(Error::new(labels.path(), "no label image of these images holds a label")
            .hint("give label images whose cells have numbers from 1 on"));
    }
    if let Some(apart) = values.binary() {
        let values = apart.values.iter().map(i64::to_string).collect::<Vec<_>>().join(" or ");
        let cause = format!(
            "all pixels but 0 are {values}, here in {} pieces apart: it is a binary mask, whose cells have no numbers",
            apart.pieces
        );
        return Err(Error::new(labels.path(), cause).row(apart.row).choice().hint(format_args!(
            "{} numbers the pieces that touch, as skimage.measure.label(mask) does; or give label images with \
             these numbers. For label images whose cells are cut up, give the positions as a table",
            option_as("cells.label_masks", "true")
        )));
    }
    let columns: [(&str, ArrayRef); 5] = [
        ("ImageName", Arc::new(StringArray::from(names))),
        ("ObjectNumber", Arc::new(Int64Array::from(numbers))),
        ("Location_Center_X", Arc::new(Float64Array::from(xs))),
        ("Location_Center_Y", Arc::new(Float64Array::from(ys))),
        ("AreaShape_Area", Arc::new(Int64Array::from(areas))),
    ];
    let batch = RecordBatch::try_from_iter(columns).map_err(|e| Error::new(labels.path(), e))?;
    let table = CellTable::in_memory(labels.path(), batch);
    Ok(LabelCells { table, image: ImageOf::known(of_image), unpaired, shapes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centroids_are_means_of_pixel_positions() {
        // Rows 0 to 2 of columns 0 to 4.
        let pixels = [0, 1, 1, 1, 0, 7, 1, 0, 7, 7, 0, 0, 0, 7, 7];
        let found = sums(Shape::plane(3, 5), PixelType::U8, &pixels).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1, 7]);
        assert_eq!(found[&1], Sums { pixels: 4, y: 1, x: 1 + 2 + 3 + 1 });
        assert_eq!(found[&7], Sums { pixels: 5, y: 1 + 1 + 1 + 2 + 2, x: 3 + 4 + 3 + 4 });
        let two = [1, 0, 0, 1];
        assert_eq!(
            sums(Shape([2, 1, 1, 1, 2]), PixelType::U8, &two).unwrap()[&1],
            Sums { pixels: 2, y: 0, x: 1 }
        );
        let lines: Vec<u8> = [5i16, -1, -1, 0, 9].iter().flat_map(|label| label.to_le_bytes()).collect();
        let found = sums(Shape::plane(1, 5), PixelType::I16, &lines).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [5, 9]);
        let half = 0.5f32.to_le_bytes();
        assert!(sums(Shape::plane(1, 1), PixelType::F32, &half).unwrap_err().contains("0.5 is no label"));
    }
}
