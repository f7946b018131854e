//! What items are made by, and the row that they must agree with.

use crate::budget::WorkingMemory;
use crate::compiled_transform::CompiledTransform;
use crate::dataset::Dataset;
use std::sync::atomic::AtomicBool;
use wellread_image::Shape;
use wellread_store::{Error, Result, RowInfo};

/// The row that all others of a batch must agree with.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) row: usize,
    pub(crate) info: RowInfo,
    /// Shape of its output.
    pub(crate) output: Shape,
}

/// What a slice of a batch is made by; shared by all threads.
pub(crate) struct Job<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) compiled: &'a CompiledTransform,
    /// `None` for single items, which may have any shape.
    pub(crate) reference: Option<&'a Reference>,
    /// Crops of each row: as many images, one after the other.
    pub(crate) crops: usize,
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
    pub(crate) stop: Option<&'a AtomicBool>,
    /// What may be used of memory; `None` where nobody set a bound.
    pub(crate) working: Option<&'a WorkingMemory>,
}

impl Job<'_> {
    /// Checks that a row makes an output like the reference row's.
    pub(super) fn check(&self, row: usize, info: RowInfo) -> Result<()> {
        let path = self.dataset.store().path();
        let output =
            self.compiled.transform.output_shape(info.shape).map_err(|error| error.at(path, Some(row)))?;
        let Some(reference) = self.reference else { return Ok(()) };
        if info.dtype != reference.info.dtype {
            return Err(Error::new(
                path,
                format_args!(
                    "the image is {}, but row {} is {}; one loader delivers one pixel type",
                    info.dtype, reference.row, reference.info.dtype
                ),
            )
            .row(row)
            .choice()
            .hint("load the rows of each pixel type by a loader of their own (rows), or convert the set to one type"));
        }
        if output == reference.output {
            return Ok(());
        }
        let [a, b] = [info.shape, reference.info.shape];
        let error = Error::new(
            path,
            format_args!(
                "the image has shape {a} (TCZYX), but row {} has {b}; the images of a batch must be equal in shape",
                reference.row
            ),
        )
        .row(row)
        .choice();
        Err(if (a.t(), a.c(), a.z()) == (b.t(), b.c(), b.z()) {
            error.hint(format_args!(
                "crop to at most {}x{}, or resize to any size",
                a.y().min(b.y()),
                a.x().min(b.x())
            ))
        } else {
            error.hint(
                "crop and resize change Y and X only: select channels that all images have, or load these rows by a loader of their own (rows)",
            )
        })
    }
}
