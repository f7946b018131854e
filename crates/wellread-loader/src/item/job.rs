//! The inputs that make items, and the row that they must agree with.

use crate::budget::WorkingMemory;
use crate::compiled_transform::ArrayPlan;
use crate::dataset::Dataset;
use crate::targets::Pairs;
use std::sync::atomic::AtomicBool;
use wellread_store::row_location::{UnlikeRows, path_of_row};
use wellread_store::surface::option;
use wellread_store::{Error, Result, RowInfo};

/// The row that all others of a batch must agree with.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) row: usize,
    pub(crate) info: RowInfo,
}

/// The inputs that make a slice of a batch of one set; shared by all threads.
pub(crate) struct Job<'a> {
    pub(crate) dataset: &'a Dataset,
    /// The arrays made of each row, in a batch, all of the same channels.
    pub(crate) arrays: &'a [ArrayPlan],
    /// Which array of the batch the first of these is.
    pub(crate) first_array: usize,
    /// `None` for single items, which may have any shape.
    pub(crate) reference: Option<&'a Reference>,
    /// The images of its targets, where the set is of targets.
    pub(crate) of: Option<PairedImages<'a>>,
    /// Crops of each row in each array: as many images, one after the other.
    pub(crate) crops: usize,
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
    pub(crate) stop: Option<&'a AtomicBool>,
    /// The memory that may be used; `None` where nobody set a bound.
    pub(crate) working: Option<&'a WorkingMemory>,
}

/// The images that targets are of.
#[derive(Clone, Copy)]
pub(crate) struct PairedImages<'a> {
    pub(crate) images: &'a Dataset,
    pub(crate) pairs: &'a Pairs,
}

impl Job<'_> {
    /// Images that a row becomes, in all arrays.
    pub(super) const fn per_row(&self) -> usize {
        self.arrays.len() * self.crops
    }

    /// The row of the set that is read for a row of the images, and its info; checked that it can be.
    pub(super) fn row(&self, row: usize) -> Result<(usize, RowInfo)> {
        let Some(PairedImages { images, pairs }) = self.of else {
            let info = self.dataset.row_info(row)?;
            self.check(row, info)?;
            return Ok((row, info));
        };
        let target = pairs.row(images, row)?;
        let info = self.dataset.row_info(target)?;
        Pairs::check([images, self.dataset], [row, target])?;
        self.check(target, info)?;
        Ok((target, info))
    }

    /// Checks that a row makes an output like the reference row's.
    fn check(&self, row: usize, info: RowInfo) -> Result<()> {
        let store = self.dataset.store();
        let mut fits = true;
        for array in self.arrays {
            let output = array.compiled.transform.output_shape(array.compiled.checked_shape(info.shape));
            fits &= output.map_err(|error| error.at(&path_of_row(store, row), Some(row)).choice())?
                == array.shape;
        }
        let Some(reference) = self.reference else { return Ok(()) };
        let is_type = info.dtype == reference.info.dtype;
        if is_type && fits {
            return Ok(());
        }
        let UnlikeRows { path, image, other } = UnlikeRows::of(store, row, reference.row);
        if !is_type {
            return Err(Error::new(
                path,
                format_args!(
                    "{image} is {}, but {other} is {}; one loader delivers one pixel type",
                    info.dtype, reference.info.dtype
                ),
            )
            .row(row)
            .choice()
            .hint(format_args!(
                "load the rows of each pixel type by a loader of their own ({}), or have the files written anew in one type",
                option("rows")
            )));
        }
        let [a, b] = [info.shape, reference.info.shape];
        let error = Error::new(
            path,
            format_args!(
                "{image} has shape {a} (TCZYX), but {other} has {b}; the images of a batch must be equal in shape"
            ),
        )
        .row(row)
        .choice();
        Err(if (a.t(), a.c(), a.z()) == (b.t(), b.c(), b.z()) {
            error.hint(format_args!(
                "crop to at most {}x{} (by these two rows, others may be smaller), or resize to any size",
                a.y().min(b.y()),
                a.x().min(b.x())
            ))
        } else {
            error.hint(format_args!(
                "crop and resize change Y and X only: select channels that all images have, or load these rows by a loader of their own ({})",
                option("rows")
            ))
        })
    }
}
