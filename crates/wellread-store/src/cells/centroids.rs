//! A label image as a table of cells: number, centroid and area of each label, in one pass over the pixels.

use super::classes::Classes;
use super::components::labelled;
use super::found::CountedNames;
use super::keys::ImageOf;
use super::mask_rows::of_another_shape;
use super::pairs::pair;
use super::pieces::{FewValues, MiddlePlane, pieces};
use super::sums::sums;
use super::table::CellTable;
use crate::surface::{option, option_as};
use crate::{Error, Result, RowInfo, Store, read_region};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use wellread_image::{PixelType, Shape};

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
    pub unpaired: CountedNames,
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
/// label in any of them. Binary masks, in which one value stands for all cells, maps of classes, and images of brightness.
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
    let mut unpaired = CountedNames::default();
    for label in (0..labels.len()).filter(|label| !paired.contains(label)) {
        unpaired.push(|| labels.name(label).unwrap_or_else(|_| format!("row {label}")));
    }
    let (mut of_image, mut names) = (vec![], vec![]);
    let (mut numbers, mut areas, mut ys, mut xs) = (vec![], vec![], vec![], vec![]);
    let (mut scratch, mut pixels) = (crate::Scratch::default(), vec![]);
    let (mut values, mut classes, mut shapes) = (FewValues::default(), Classes::default(), vec![]);
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
        // After labels that are no whole numbers, which have an error of their own.
        let plane = MiddlePlane::of(info.shape, info.dtype, &pixels);
        if let Some(seen) = plane.brightness(are_masks) {
            let cause = format!(
                "its {} values lie in {} pieces: this is an image of brightness. In a label image each cell has a number \
                 of its own, and a mask is 0 beside cells",
                seen.values, seen.pieces
            );
            return Err(refuse(cause).choice().hint("give the label images or masks of these images"));
        }
        if !are_masks {
            classes.observe(label, found.keys().copied(), &plane);
        }
        if !found.is_empty() {
            shapes.push(LabelShape { image, row: label, shape: info.shape });
        }
        let name = images.name(image)?;
        for (number, cell) in found {
            let [y, x] = cell.centre();
            of_image.push(Some(image));
            names.push(name.clone());
            numbers.push(number);
            areas.push(cell.pixels as i64);
            ys.push(y);
            xs.push(x);
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
    if let Some(map) = classes.first() {
        let cause = format!(
            "its {} values lie in {} pieces, each value all over the image: it is a map of classes, whose cells have no \
             numbers",
            map.seen.values, map.seen.pieces
        );
        return Err(Error::new(labels.path(), cause).row(map.row).choice().hint(format_args!(
            "give label images: skimage.measure.label(classes) numbers the pieces of each class; {} numbers the pieces \
             that touch, whatever their class. For label images whose cells are cut up, give the positions as a table",
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
