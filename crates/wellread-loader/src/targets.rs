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
use wellread_image::Shape;
use wellread_store::words::counted;
use wellread_store::{Error, Result, cells};

/// What targets are.
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
    output: Option<Output>,
    scale: Scale,
    normalize: Option<Normalize>,
    pub(crate) pairing: Option<Pairing>,
}

impl Targets {
    /// Masks or label images, delivered as they are stored unless [`Self::output`] says otherwise.
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

    /// What they are.
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
        let path = self.dataset.store().path();
        let is_of_labels = self.kind == TargetKind::Labels;
        if is_of_labels && (self.scale != Scale::None || self.normalize.is_some()) {
            return Err(Error::new(path, "labels are neither scaled nor normalised").choice().hint(
                "leave the scale out, or take the targets as images (Targets::image, target_kind=\"image\")",
            ));
        }
        transform.check().map_err(|error| error.at(path, None))?;
        if output == Output::Stored && !is_of_labels {
            transform.check_stored().map_err(|error| error.at(path, None))?;
        }
        Ok(())
    }
}

/// How targets were found for the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// The first is of the first image, and so on: the sets have equally many rows, and names that agree, or agree in part: each
    /// two begin with the same word or end with the same number, or those of one set are mere numbers. Names that have nothing in
    /// common are an error unless this is asked for ([`Targets::pairing`]).
    Order,
    /// By names: that of the image, and words after it (`B7_s1_mask`), whatever the folder.
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
    /// Images without a target, counted, with the first few; names that fit two; other numbers of images where order is chosen.
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
            let (all, there) = (counted(images.len(), "image"), counted(targets.len(), "target"));
            let cause = format_args!("there are {there} for {all}, and they were to be told by their order");
            return Err(Error::new(other.path(), cause).choice().hint("give one target for each image"));
        }
        if chosen == Some(Pairing::Order) || chosen.is_none() && ptr::addr_eq(own, other) {
            return Ok(Self::Order);
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
                return Ok(Self::Order);
            }
        }
        let found = cells::pair(own, other, &[])?;
        let none = found.iter().all(Option::is_none);
        if none && chosen.is_none() && are_as_many && cells::agree_in_order(own, other)? {
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
            counted(rows.len(), "image"),
            counted(targets.len(), "image"),
            other.path().display(),
            names.join(", ")
        );
        let example = if targets.is_empty() { String::new() } else { other.name(0)? };
        Err(Error::new(own.path(), cause).choice().hint(format_args!(
            "targets are told by the names of their images, with words after them; where names have nothing in common and there are equally many, pairing=\"order\" (Targets::pairing) takes them in their order; the first target is called {example:?}"
        )))
    }

    /// How they were found.
    pub(crate) const fn pairing(&self) -> Pairing {
        match self {
            Self::Order => Pairing::Order,
            Self::Names(_) => Pairing::Names,
        }
    }

    /// The target of an image.
    ///
    /// # Errors
    /// An image that has none.
    pub(crate) fn row(&self, images: &Dataset, row: usize) -> Result<usize> {
        match self {
            Self::Order => Ok(row),
            Self::Names(found) => found.get(row).copied().flatten().ok_or_else(|| {
                Error::new(images.store().path(), "the image has no target").row(row).choice()
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
        let path = targets.store().path();
        let cause = format_args!(
            "the target has shape {own} (TCZYX), its image, row {row} of {}, {image}",
            images.store().path().display()
        );
        Err(Error::new(path, cause).row(target).choice().hint(
            "targets have the height and width of their images, and their time points and depth or one of each; resize them before",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;
    use wellread_image::PixelType;

    fn set(names: &[&str], shape: Shape) -> Dataset {
        let mut store = MemoryStore::new("set");
        for name in names {
            store.push(*name, shape, PixelType::U8, vec![0; shape.pixels()]).unwrap();
        }
        Dataset::from_store(Box::new(store))
    }

    fn find(images: &[&str], targets: &[&str], rows: Option<&[usize]>, is_lenient: bool) -> Result<Pairs> {
        let shape = Shape::plane(2, 2);
        let (images, targets) = (set(images, shape), set(targets, shape));
        let rows = rows.map_or(Rows::All(images.len()), |rows| Rows::Some(rows.into()));
        Pairs::find(&images, &targets, &rows, is_lenient, None)
    }

    #[test]
    fn targets_are_found_by_names_else_by_order() {
        for (images, targets) in [
            (["a", "b"], ["a", "b"]),
            (["a", "b"], ["0", "1"]),
            (["image_1", "image_2"], ["mask_1", "mask_2"]),
            (["s1_ch1", "s2_ch1"], ["s1_ch2", "s2_ch2"]),
        ] {
            assert!(matches!(find(&images, &targets, None, false), Ok(Pairs::Order)), "{targets:?}");
        }
        let by_name = |targets: &[&str]| match find(&["a", "b"], targets, None, false) {
            Ok(Pairs::Names(found)) => found,
            other => panic!("{other:?}"),
        };
        assert_eq!(by_name(&["b", "a"]), [Some(1), Some(0)]);
        assert_eq!(by_name(&["c_mask", "b_mask", "a_mask"]), [Some(2), Some(1)]);
    }

    #[test]
    fn names_with_nothing_in_common_are_taken_in_order_where_that_is_asked_for() {
        let error = find(&["a", "b"], &["x", "y"], None, false).unwrap_err();
        assert!(error.is_choice() && error.to_string().contains("pairing=\"order\""), "{error}");
        let shape = Shape::plane(2, 2);
        let by = |images: &[&str], targets: &[&str], pairing| {
            let (images, targets) = (set(images, shape), set(targets, shape));
            Pairs::find(&images, &targets, &Rows::All(images.len()), false, Some(pairing))
        };
        assert!(matches!(by(&["a", "b"], &["x", "y"], Pairing::Order), Ok(Pairs::Order)));
        assert!(matches!(by(&["a", "b"], &["b", "a"], Pairing::Order), Ok(Pairs::Order)));
        let other = by(&["a", "b"], &["x"], Pairing::Order).unwrap_err();
        assert!(other.is_choice() && other.to_string().contains("1 target for 2 images"), "{other}");
        assert!(matches!(by(&["a", "b"], &["a", "b"], Pairing::Names), Ok(Pairs::Names(_))));
        assert!(by(&["a", "b"], &["0", "1"], Pairing::Names).is_err());
    }

    #[test]
    fn images_without_targets_are_counted_and_named() {
        let error = find(&["a", "b", "c", "d", "e"], &["a_mask"], None, false).unwrap_err().to_string();
        assert!(
            error.contains("4 of 5 images have no target among the 1 image of set: b, c, d …"),
            "{error}"
        );
        // Those that are not loaded need none, and may lack one where rows may be skipped.
        assert!(find(&["a", "b"], &["a_mask"], Some(&[0]), false).is_ok());
        let lenient = find(&["a", "b"], &["a_mask"], None, true).unwrap();
        let images = set(&["a", "b"], Shape::plane(2, 2));
        assert_eq!(lenient.row(&images, 0).unwrap(), 0);
        assert!(lenient.row(&images, 1).unwrap_err().to_string().contains("row 1: the image has no target"));
        assert!(find(&["a", "b"], &["x"], None, true).is_err(), "nothing fits");
    }

    #[test]
    fn targets_are_as_large_as_their_images() {
        let check = |image: [usize; 5], target: [usize; 5]| {
            Pairs::check([&set(&["a"], Shape(image)), &set(&["a"], Shape(target))], [0, 0])
        };
        assert!(check([1, 3, 4, 8, 9], [1, 1, 1, 8, 9]).is_ok());
        assert!(check([2, 3, 4, 8, 9], [2, 1, 4, 8, 9]).is_ok());
        for target in [[1, 1, 1, 9, 8], [1, 1, 2, 8, 9], [2, 1, 1, 8, 9]] {
            let error = check([1, 3, 4, 8, 9], target).unwrap_err().to_string();
            assert!(error.contains("row 0") && error.contains("(TCZYX)"), "{error}");
        }
    }
}
