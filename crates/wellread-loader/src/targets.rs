//! Targets: a second set beside the images, such as masks, another channel or another stain, read along with them.
//!
//! ```text
//!  images  row 7 ── draws of row 7 ──▶ crop, flip, turn, resize, rotate ──▶ scale, jitter … ──▶ batch: view
//!  targets row 7 (or of the same name) ─▶ the same ─ nearest for labels ──▶ own scale       ──▶ batch: targets
//! ```

use crate::dataset::Dataset;
use crate::dtype::Output;
use crate::order::Rows;
use crate::transform::{Normalize, Scale, Transform};
use std::fmt;
use std::ptr;
use std::sync::Arc;
use wellread_image::Shape;
use wellread_store::cells::{self, ByNumbers};
use wellread_store::row_location::path_of_set;
use wellread_store::surface::option_as;
use wellread_store::words::counted;
use wellread_store::{Error, Result, Store};

/// The kind of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// Numbers of classes or of objects: a resize and a rotation take the nearest, and nothing is scaled.
    Labels,
    /// Intensities, such as a stain to be predicted: resized and rotated as the images are.
    Image,
}

/// A second set, whose rows are the targets of the images: see [`crate::LoaderBuilder::targets`].
#[derive(Clone, Debug)]
pub struct Targets {
    pub(crate) dataset: Dataset,
    kind: TargetKind,
    channels: Option<Vec<usize>>,
    channel_names: Option<Arc<[String]>>,
    output: Option<Output>,
    scale: Scale,
    normalize: Option<Normalize>,
    pub(crate) pairing: Option<Pairing>,
}

impl Targets {
    /// Masks or label images, delivered as they are stored unless [`Self::output`] says otherwise. Labels that its type would
    /// round are an error.
    pub fn labels(dataset: &Dataset) -> Self {
        Self::new(dataset, TargetKind::Labels)
    }

    /// Images, delivered in the type of the input unless [`Self::output`] says otherwise, not scaled unless [`Self::scale`] does.
    pub fn image(dataset: &Dataset) -> Self {
        Self::new(dataset, TargetKind::Image)
    }

    fn new(dataset: &Dataset, kind: TargetKind) -> Self {
        Self {
            dataset: dataset.clone(),
            kind,
            channels: None,
            channel_names: None,
            output: None,
            scale: Scale::None,
            normalize: None,
            pairing: None,
        }
    }

    /// How they are found for the images, where names are not to decide it.
    pub fn pairing(mut self, pairing: Pairing) -> Self {
        self.pairing = Some(pairing);
        self
    }

    /// Takes these channels of the targets, in this order.
    pub fn channels(mut self, channels: impl Into<Vec<usize>>) -> Self {
        self.channels = Some(channels.into());
        self.channel_names = None;
        self
    }

    /// Takes the channels of these names: see [`Transform::named_channels`].
    pub fn named_channels<'a>(mut self, channels: impl IntoIterator<Item = (&'a str, usize)>) -> Self {
        let Transform { channels, channel_names, .. } = Transform::default().named_channels(channels);
        (self.channels, self.channel_names) = (channels, channel_names);
        self
    }

    /// The type of the numbers.
    pub fn output(mut self, output: Output) -> Self {
        self.output = Some(output);
        self
    }

    /// Scales the values of [`TargetKind::Image`].
    pub fn scale(mut self, scale: Scale) -> Self {
        self.scale = scale;
        self
    }

    /// Normalises the values of [`TargetKind::Image`].
    pub fn normalize(mut self, normalize: Normalize) -> Self {
        self.normalize = Some(normalize);
        self
    }

    /// Their kind.
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// The type that they are delivered in, beside images of type `images`.
    pub(crate) fn chosen_output(&self, images: Output) -> Output {
        self.output.unwrap_or(match self.kind {
            TargetKind::Labels => Output::Stored,
            TargetKind::Image => images,
        })
    }

    /// The transform that goes with a view's: its geometry, and no other of its steps.
    pub(crate) fn transform(&self, view: &Transform) -> Transform {
        Transform {
            project: view.project,
            channels: self.channels.clone(),
            channel_names: self.channel_names.clone(),
            crop: view.crop,
            flip_horizontal: view.flip_horizontal,
            flip_vertical: view.flip_vertical,
            right_angles: view.right_angles,
            resize: view.resize,
            max_degrees: view.max_degrees,
            scale: self.scale.clone(),
            normalize: self.normalize.clone(),
            ..Transform::default()
        }
    }

    /// Checks that nothing is to be computed with labels, and that pixels that stay as stored are not computed with.
    ///
    /// # Errors
    /// A scale or a normalisation of labels; with [`Output::Stored`], the first step that computes.
    pub(crate) fn check(&self, transform: &Transform, output: Output) -> Result<()> {
        let path = || path_of_set(self.dataset.store());
        let is_of_labels = self.kind == TargetKind::Labels;
        if is_of_labels && (self.scale != Scale::None || self.normalize.is_some()) {
            return Err(Error::new(path(), "labels are neither scaled nor normalised").choice().hint(
                "leave the scale out, or take the targets as images (Targets::image, target_kind=\"image\")",
            ));
        }
        transform.check().map_err(|error| error.at(&path(), None))?;
        if output == Output::Stored && !is_of_labels {
            transform.check_stored().map_err(|error| error.at(&path(), None))?;
        }
        Ok(())
    }
}

/// How targets were found for the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// The first target is of the first image, and so on. The sets have equally many rows, and names that agree, or
    /// agree in part. Each two have the same numbers, begin with the same word or end with the same number. Or those of
    /// one set are mere numbers and the other's have none. Names that have nothing in common are an error unless this is asked
    /// for ([`Targets::pairing`]). So are numbers or words that contradict that order, in folders as well.
    Order,
    /// By names: that of the image, or of one of its files where it has several, and words after it (`B7_s1_mask`), whatever the
    /// folder. Labels may lie in their image or in a folder of its name (`A/1/0/labels/nuclei`, `s1/mask`). Where no name fits,
    /// by the numbers in them and in their folders. Both sets must have the same ones (`img_2` and `002`, `A2/1` and `A02_1_mask`).
    Names,
}

impl fmt::Display for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Order => "order",
            Self::Names => "names",
        })
    }
}

/// Which row of the targets is of which image.
#[derive(Debug)]
pub(crate) enum Pairs {
    /// The same row.
    Order,
    /// The same row, which has the very name of the image.
    SameNames,
    /// One for each row of the images.
    Names(Vec<Option<usize>>),
}

/// Names that an error lists.
const LISTED: usize = 3;

impl Pairs {
    /// Finds the targets of `rows`, by `chosen` where that is said; with `is_lenient`, some may have none, which shows when their
    /// turn comes.
    ///
    /// # Errors
    /// Images without a target, counted, with the first few. Names that fit two. Other numbers of images where order is
    /// chosen.
    pub(crate) fn find(
        images: &Dataset,
        targets: &Dataset,
        rows: &Rows,
        is_lenient: bool,
        chosen: Option<Pairing>,
    ) -> Result<Self> {
        let (own, other) = (images.store(), targets.store());
        let are_as_many = images.len() == targets.len();
        if chosen == Some(Pairing::Order) && !are_as_many {
            let thing = own.hints().thing();
            let (all, there) = (counted(images.len(), thing), counted(targets.len(), "target"));
            let cause = format_args!("there are {there} for {all}, and pairing is by order");
            return Err(Error::new(path_of_set(other), cause)
                .choice()
                .hint(format_args!("give one target for each {thing}")));
        }
        if chosen == Some(Pairing::Order) {
            return Ok(Self::Order);
        }
        if chosen.is_none() && ptr::addr_eq(own, other) {
            return Ok(Self::SameNames);
        }
        if chosen.is_none() && are_as_many {
            let mut agree = true;
            for row in 0..images.len() {
                if own.name(row)? != other.name(row)? {
                    agree = false;
                    break;
                }
            }
            if agree {
                return Ok(Self::SameNames);
            }
        }
        let found = cells::pair(own, other, &[]).map_err(|error| {
            // Cells of images and of their masks have the same names in folders of other ones.
            if chosen.is_none() && are_as_many {
                error.or_hint(format_args!(
                    "take them in their order, if that is right: {}",
                    option_as("pairing", "order")
                ))
            } else {
                error
            }
        })?;
        let none = found.iter().all(Option::is_none);
        let lacks = found.iter().any(Option::is_none);
        let numbers = if lacks && are_as_many { cells::by_numbers(own, other)? } else { ByNumbers::Silent };
        // Names that were found keep their targets.
        let agrees =
            |rows: &[usize]| found.iter().zip(rows).all(|(found, row)| found.is_none_or(|at| at == *row));
        let is_open = none && chosen.is_none();
        let by_numbers = match numbers {
            ByNumbers::InOrder if is_open => return Ok(Self::Order),
            ByNumbers::InOrder => Some((0..images.len()).collect()),
            ByNumbers::Found(rows) => Some(rows),
            ByNumbers::Contradict(row) if is_open => return Err(contradiction([own, other], row, "numbers")),
            ByNumbers::OtherWords(row) if is_open => return Err(contradiction([own, other], row, "words")),
            ByNumbers::Silent | ByNumbers::Contradict(_) | ByNumbers::OtherWords(_) => None,
        };
        if let Some(rows) = by_numbers.filter(|rows| agrees(rows)) {
            return Ok(Self::Names(rows.into_iter().map(Some).collect()));
        }
        if is_open && are_as_many && cells::agree_in_order(own, other)? {
            return Ok(Self::Order);
        }
        let mut lacking = (0..rows.len()).map(|i| rows.get(i)).filter(|&row| found[row].is_none());
        let first: Vec<usize> = lacking.by_ref().take(LISTED).collect();
        let count = first.len() + lacking.count();
        if count == 0 || (is_lenient && !none) {
            return Ok(Self::Names(found));
        }
        let names = first.iter().map(|&row| own.name(row)).collect::<Result<Vec<_>>>()?;
        let more = if count > names.len() { " …" } else { "" };
        let cause = format!(
            "{count} of {} have no target among the {} of {}: {}{more}",
            counted(rows.len(), own.hints().thing()),
            counted(targets.len(), other.hints().thing()),
            path_of_set(other).display(),
            names.join(", ")
        );
        let example = if targets.is_empty() { String::new() } else { other.name(0)? };
        Err(Error::new(path_of_set(own), cause).choice().hint(format_args!(
            "targets are matched by the names of their images, or of a file of theirs, with words after them. \
             {} takes equally many in their order. The first target is called {example:?}",
            option_as("pairing", "order")
        )))
    }

    /// How they were found.
    pub(crate) const fn pairing(&self) -> Pairing {
        match self {
            Self::Order => Pairing::Order,
            Self::SameNames | Self::Names(_) => Pairing::Names,
        }
    }

    /// The target of an image.
    ///
    /// # Errors
    /// An image that has none.
    pub(crate) fn row(&self, images: &Dataset, row: usize) -> Result<usize> {
        match self {
            Self::Order | Self::SameNames => Ok(row),
            Self::Names(found) => found.get(row).copied().flatten().ok_or_else(|| {
                let thing = images.store().hints().thing();
                Error::new(path_of_set(images.store()), format_args!("the {thing} has no target"))
                    .row(row)
                    .choice()
            }),
        }
    }

    /// Checks that a target is as large as its image.
    ///
    /// # Errors
    /// Another height or width, or other time points or depths where there are more than one.
    pub(crate) fn check([images, targets]: [&Dataset; 2], [row, target]: [usize; 2]) -> Result<()> {
        let (image, own) = (images.row_info(row)?.shape, targets.row_info(target)?.shape);
        let fits = |of: fn(Shape) -> usize| of(own) == of(image) || of(own) == 1;
        if (image.y(), image.x()) == (own.y(), own.x()) && fits(Shape::t) && fits(Shape::z) {
            return Ok(());
        }
        let [own_set, image_set] = [targets, images].map(|set| path_of_set(set.store()));
        let cause = format_args!(
            "the target has shape {own} (TCZYX), its image, row {row} of {}, {image}",
            image_set.display()
        );
        Err(Error::new(own_set, cause).row(target).choice().hint(
            "targets have the height and width of their images, and their time points and depth or one of each; resize them before",
        ))
    }
}

/// The error for targets that are not of the images in their places, as `kind` in their names tell: first that of `row`.
fn contradiction([images, targets]: [&dyn Store; 2], row: usize, kind: &str) -> Error {
    let name = |store: &dyn Store| store.name(row).unwrap_or_else(|_| format!("row {row}"));
    let [image, target] = [name(images), name(targets)];
    let cause = format_args!(
        "the {kind} in names do not match targets to images: row {row} is {image} and its target would be {target}"
    );
    Error::new(path_of_set(targets), cause).choice().hint(format_args!(
        "give targets the names or the numbers of their images; where the order is right, ask for it: {}",
        option_as("pairing", "order")
    ))
}

#[cfg(test)]
mod tests;
