//! The arrays of a row in a batch: views of its image, and its target.
//!
//! ```text
//!  views, recipes ─▶ a transform for each view ─▶ arrays of the images   ┐
//!  targets ────────▶ its geometry for each view ─▶ arrays of the targets ┴▶ laid out in a batch's memory
//! ```

use super::{LoaderBuilder, Views};
use crate::compiled_transform::{ArrayPlan, CompiledTransform, check_output};
use crate::dataset::Dataset;
use crate::dtype::Output;
use crate::item::Reference;
use crate::order::Rows;
use crate::plan::SetPlan;
use crate::row_channels::RowChannels;
use crate::row_fields::LastFields;
use crate::row_groups::RowGroups;
use crate::skip::{OnError, Skipped};
use crate::targets::{Pairs, TargetKind, Targets};
use crate::transform::Transform;
use std::sync::Arc;
use wellread_store::row_location::{path_of_row, path_of_set};
use wellread_store::{Error, Result};

/// Views of a row, at most: DINO has ten.
const MAX_VIEWS: usize = 64;

impl LoaderBuilder {
    /// Makes `views` views of each row by the same transform, each with draws of its own, from one read: what SimCLR asks for.
    /// Every piece (chunk, tile, strip) is decoded once. They are arrays of their own in each batch
    /// ([`Batch::view`](crate::Batch::view)), in which image `i` is of the same row. View 0 is what there is without this, view 1
    /// what is crop 1 of [`Self::crops_per_image`].
    ///
    /// ```
    /// use wellread_image::{PixelType, Shape};
    /// use wellread_loader::{Dataset, Loader, MemoryStore};
    /// # let mut store = MemoryStore::new("example");
    /// # for i in 0..8u8 { store.push(format!("{i}"), Shape::plane(64, 64), PixelType::U8, (0..4096).map(|p| (p / 64) as u8 + i).collect::<Vec<u8>>())?; }
    /// # let dataset = Dataset::from_store(Box::new(store));
    /// let loader = Loader::builder(&dataset).batch_size(4).random_crop(32, 32).views(2).build()?;
    /// for batch in &loader {
    ///     let batch = batch?;
    ///     let (a, b) = (batch.view(0), batch.view(1));
    ///     assert_eq!((a.shape(), b.shape()), (&[4, 1, 32, 32][..], &[4, 1, 32, 32][..]));
    ///     assert_ne!(a.pixels(), b.pixels());
    /// }
    /// # Ok::<(), wellread_store::Error>(())
    /// ```
    pub fn views(mut self, views: usize) -> Self {
        self.views = Views::Same(views);
        self
    }

    /// Makes a view of each row by each of these transforms, in place of the loader's own, from one read. DINO's two
    /// global and eight local crops are ten recipes of two kinds. Each view has draws of its own; sizes may differ,
    /// channels may not.
    pub fn recipes(mut self, recipes: impl Into<Vec<Transform>>) -> Self {
        self.views = Views::Recipes(recipes.into());
        self
    }

    /// Reads a target beside each image: masks, another channel, another stain. Crops, flips, turns, rotations and sizes are
    /// those of the image, drawn once; changes of intensity are the image's alone. Targets are arrays of their own in each batch
    /// ([`Batch::targets`](crate::Batch::targets)), decoded straight into its memory. A target that cannot be read is treated
    /// as an image that cannot.
    ///
    /// Names or the order pair them with images: [`Pairing`](crate::Pairing).
    ///
    /// ```
    /// use wellread_image::{PixelType, Shape};
    /// use wellread_loader::{Dataset, Loader, MemoryStore, Targets};
    /// let (mut images, mut masks) = (MemoryStore::new("images"), MemoryStore::new("masks"));
    /// for i in 0..8u8 {
    ///     let bright: Vec<u8> = (0..1024).map(|p| if p % 32 < 16 { 200 } else { i }).collect();
    ///     let mask = bright.iter().map(|&v| u8::from(v == 200)).collect();
    ///     images.push(format!("{i}"), Shape::plane(32, 32), PixelType::U8, bright)?;
    ///     masks.push(format!("{i}_mask"), Shape::plane(32, 32), PixelType::U8, mask)?;
    /// }
    /// let [images, masks] = [images, masks].map(|store| Dataset::from_store(Box::new(store)));
    /// let loader = Loader::builder(&images)
    ///     .batch_size(4)
    ///     .shuffle(1)
    ///     .random_crop(16, 16)
    ///     .flip(0.5, 0.5)
    ///     .targets(Targets::labels(&masks))
    ///     .build()?;
    /// for batch in &loader {
    ///     let batch = batch?;
    ///     let masks = batch.targets().expect("there are targets");
    ///     for (pixel, &label) in batch.pixels().iter().zip(masks.pixels_as::<u8>()) {
    ///         assert_eq!(*pixel == 200.0, label == 1);
    ///     }
    /// }
    /// # Ok::<(), wellread_store::Error>(())
    /// ```
    pub fn targets(mut self, targets: Targets) -> Self {
        self.targets = Some(targets);
        self
    }

    /// The transform of each view, checked as far as no image is needed.
    pub(super) fn view_transforms(&self) -> Result<Vec<Transform>> {
        let path = || path_of_set(self.dataset.store());
        let (views, recipes) = match &self.views {
            Views::Same(views) => (*views, None),
            Views::Recipes(recipes) => (recipes.len(), Some(recipes)),
        };
        if !(1..=MAX_VIEWS).contains(&views) {
            return Err(Error::new(path(), format_args!("{views} views of each image were asked for"))
                .hint(format_args!("give 1 to {MAX_VIEWS}")));
        }
        let transforms = recipes.map_or_else(|| vec![self.transform.clone(); views], Clone::clone);
        let of_set = |transform| self.dataset.transform_of_set(transform);
        let transforms = transforms.into_iter().map(of_set).collect::<Result<Vec<Transform>>>()?;
        for transform in &transforms {
            if transform.channels != transforms[0].channels
                || transform.channel_names != transforms[0].channel_names
            {
                return Err(Error::new(path(), "views of an image differ in their channels")
                    .hint("give all recipes the same channels: they are cut out of one read"));
            }
            transform.check().map_err(|error| error.at(&path(), None))?;
            if self.output == Output::Stored {
                transform.check_stored().map_err(|error| error.at(&path(), None))?;
            }
        }
        Ok(transforms)
    }

    /// The arrays made of the images.
    pub(super) fn plan_images(&self, rows: &Rows, transforms: &[Transform]) -> Result<SetPlan> {
        let reference = self.reference(&self.dataset, transforms, rows, Ok)?;
        plan_set(&self.dataset, reference, transforms, self.output, (self.crops, false))
    }

    /// The arrays made of their targets, and the image of each target.
    pub(super) fn plan_targets(
        &self,
        targets: &Targets,
        rows: &Rows,
        views: &[Transform],
    ) -> Result<(SetPlan, Pairs)> {
        let Targets { dataset, .. } = targets;
        let skips = self.on_error == OnError::Skip;
        let pairs = Pairs::find(&self.dataset, dataset, rows, skips, targets.pairing)?;
        if !skips {
            let all = (0..rows.len()).map(|i| rows.get(i));
            let theirs = all.filter_map(|row| pairs.row(&self.dataset, row).ok());
            dataset.store().hints().complete(theirs)?;
        }
        let output = targets.chosen_output(self.output);
        let of_view = |view: &Transform| dataset.transform_of_set(targets.transform(view));
        let transforms = views.iter().map(of_view).collect::<Result<Vec<Transform>>>()?;
        for transform in &transforms {
            targets.check(transform, output)?;
        }
        let of_image = |row: usize| -> Result<usize> {
            let target = pairs.row(&self.dataset, row)?;
            // A target that cannot be read is no wrong choice.
            dataset.row_info(target).map_err(|error| error.row(target).unreadable())?;
            Pairs::check([&self.dataset, dataset], [row, target])?;
            Ok(target)
        };
        let reference = self.reference(dataset, &transforms, rows, of_image)?;
        let of = (self.crops, targets.kind() == TargetKind::Labels);
        Ok((plan_set(dataset, reference, &transforms, output, of)?, pairs))
    }

    /// The row of a set that all others must agree with. It is the first or, where rows may be skipped, the first that can be read
    /// and suits the transforms. `row_of` tells the set's row for one of the images.
    fn reference(
        &self,
        set: &Dataset,
        transforms: &[Transform],
        rows: &Rows,
        row_of: impl Fn(usize) -> Result<usize>,
    ) -> Result<Reference> {
        let of = |i: usize| {
            let row = row_of(rows.get(i))?;
            let info = set.row_info(row).map_err(|error| error.row(row).unreadable())?;
            for transform in transforms {
                let suits = transform.check_dtype(info.dtype);
                let output = suits.and_then(|()| transform.output_shape(info.shape));
                output.map_err(|error| error.at(&path_of_row(set.store(), row), Some(row)))?;
            }
            Ok(Reference { row, info })
        };
        match self.on_error {
            OnError::Raise => of(0),
            OnError::Skip => {
                let first = of(0);
                if first.is_ok() {
                    return first;
                }
                (1..rows.len().min(Skipped::LISTED)).find_map(|i| of(i).ok()).map_or(first, Ok)
            }
        }
    }
}

impl SetPlan {
    /// Checks that all is known that these rows take from columns beside them, as that they lack no file. It reads the illumination
    /// fields of the reference.
    ///
    /// # Errors
    /// The first row of an unknown group; a field that cannot be read or does not fit.
    pub(super) fn check_groups(&self, dataset: &Dataset, rows: &Rows) -> Result<()> {
        let Reference { row, info } = self.reference;
        let mut last = LastFields::default();
        for compiled in self.arrays.iter().map(|array| &array.compiled) {
            let lit = compiled.illuminated_image(dataset, row, info.shape)?;
            let Some(groups) = &compiled.groups else { continue };
            (0..rows.len()).try_for_each(|i| groups.check(rows.get(i)))?;
            if let Some(fields) = groups.fields() {
                fields.find(row, lit.shape, &mut last)?;
            }
        }
        Ok(())
    }
}

/// The arrays that rows like the reference become, one by each transform, of so many crops each; of labels or of images.
fn plan_set(
    set: &Dataset,
    reference: Reference,
    transforms: &[Transform],
    output: Output,
    (crops, is_of_labels): (usize, bool),
) -> Result<SetPlan> {
    let Reference { row, info } = reference;
    let path = || path_of_row(set.store(), row);
    let mut groups: Vec<(Transform, Option<Arc<RowGroups>>)> = vec![];
    let mut row_channels: Option<Arc<RowChannels>> = None;
    let plan = |(view, transform): (usize, &Transform)| -> Result<ArrayPlan> {
        let shape = transform.output_shape(info.shape).map_err(|error| error.at(&path(), Some(row)))?;
        check_output(shape).map_err(|cause| Error::new(path(), cause).row(row))?;
        let mut compiled = CompiledTransform::new(transform, output, info);
        // All views are cut out of one read: they have the same channels.
        if row_channels.is_none() {
            row_channels = RowChannels::of(set, transform, &compiled.channels)?.map(Arc::new);
        }
        if is_of_labels {
            compiled = compiled.of_labels();
        } else {
            // Views by the same numbers share them.
            let same = groups.iter().find(|(by, _)| RowGroups::are_same(by, transform));
            let found = match same {
                Some((_, found)) => found.clone(),
                None => RowGroups::of(set, transform, &compiled.corrected_channels())?.map(Arc::new),
            };
            groups.push((transform.clone(), found.clone()));
            compiled.groups = found;
        }
        // The first image of a view has the draws of the crop of that number.
        Ok(ArrayPlan { compiled, shape, first_draw: view.saturating_mul(crops) })
    };
    let mut arrays = transforms.iter().enumerate().map(plan).collect::<Result<Vec<_>>>()?;
    for array in &mut arrays {
        array.compiled.row_channels.clone_from(&row_channels);
    }
    Ok(SetPlan { arrays, reference })
}
