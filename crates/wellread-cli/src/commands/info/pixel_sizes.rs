//! The sizes of pixels: of the first image, and of all that are looked at where they are others.

use wellread_image::{ImageMetadata, ome_xml};
use wellread_store::words::counted;

/// The share by which two sizes may differ that are the same: they are rounded where they are written.
const ROUNDING: f64 = 1e-6;

/// Along z, y and x in micrometres, where an image tells it.
pub(super) type Size = [Option<f64>; 3];

/// The sizes of the images that were looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PixelSizes {
    first: Size,
    smallest: Size,
    largest: Size,
    /// Images whose size is not that of the first.
    unlike: usize,
}

impl PixelSizes {
    /// Those of the first image.
    pub(super) fn of(metadata: &ImageMetadata) -> Self {
        let first = size_of(metadata);
        Self { first, smallest: first, largest: first, unlike: 0 }
    }

    /// Looks at another image.
    pub(super) fn look_at(&mut self, metadata: &ImageMetadata) {
        let size = size_of(metadata);
        if size.iter().zip(&self.first).all(|(one, other)| are_alike(*one, *other)) {
            return;
        }
        self.unlike += 1;
        for (axis, length) in size.into_iter().enumerate() {
            let Some(length) = length else { continue };
            self.smallest[axis] = Some(self.smallest[axis].map_or(length, |least| least.min(length)));
            self.largest[axis] = Some(self.largest[axis].map_or(length, |most| most.max(length)));
        }
    }

    /// That of the first image, if it tells one.
    pub(super) fn first(&self) -> Option<Size> {
        self.first.iter().any(Option::is_some).then_some(self.first)
    }

    /// The smallest and the largest along each axis, where not all images have one size.
    pub(super) fn range(&self) -> Option<[Size; 2]> {
        (self.unlike > 0).then_some([self.smallest, self.largest])
    }

    /// `0.5000 x 0.2000 to 0.3000 x 0.2000 µm (ZYX)`; `None` where no image tells one. An image is
    /// called `thing`.
    pub(super) fn in_words(&self, thing: &str) -> Option<String> {
        self.largest.iter().flatten().next()?;
        let show = |length: Option<f64>| length.map_or("?".to_owned(), |length| format!("{length:.4}"));
        let along = |axis: usize| {
            let [least, most] = [self.smallest[axis], self.largest[axis]];
            let least_shown = show(least);
            if are_alike(least, most) { least_shown } else { format!("{least_shown} to {}", show(most)) }
        };
        let [z, y, x] = [0, 1, 2].map(along);
        let unlike = match self.unlike {
            0 => String::new(),
            unlike => format!(", of {} another than of the first", counted(unlike, thing)),
        };
        Some(format!("{z} x {y} x {x} µm (ZYX){unlike}"))
    }
}

fn size_of(metadata: &ImageMetadata) -> Size {
    let sizes = [&metadata.physical_size_z, &metadata.physical_size_y, &metadata.physical_size_x];
    sizes.map(|size| size.as_ref().and_then(|size| ome_xml::micrometres(size.value, &size.unit)))
}

fn are_alike(one: Option<f64>, other: Option<f64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= ROUNDING * one.abs().max(other.abs()),
        (one, other) => one.is_none() && other.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::PhysicalSize;

    fn image(z: Option<f64>, plane: Option<f64>) -> ImageMetadata {
        let size = |value: f64| PhysicalSize { value, unit: "µm".to_owned() };
        ImageMetadata {
            physical_size_z: z.map(size),
            physical_size_y: plane.map(size),
            physical_size_x: plane.map(size),
            ..ImageMetadata::named("a")
        }
    }

    #[test]
    fn several_sizes_are_a_range() {
        let mut sizes = PixelSizes::of(&image(Some(0.5), Some(0.2)));
        sizes.look_at(&image(Some(0.5), Some(0.2 + 1e-9)));
        assert_eq!((sizes.range(), sizes.first()), (None, Some([Some(0.5), Some(0.2), Some(0.2)])));
        assert_eq!(sizes.in_words("image").unwrap(), "0.5000 x 0.2000 x 0.2000 µm (ZYX)");
        for plane in [0.3, 0.1, 0.3] {
            sizes.look_at(&image(Some(0.5), Some(plane)));
        }
        let range = [[Some(0.5), Some(0.1), Some(0.1)], [Some(0.5), Some(0.3), Some(0.3)]];
        assert_eq!(sizes.range(), Some(range));
        assert_eq!(
            sizes.in_words("image").unwrap(),
            "0.5000 x 0.1000 to 0.3000 x 0.1000 to 0.3000 µm (ZYX), of 3 images another than of the first"
        );
        // The first does not tell its size.
        let mut sizes = PixelSizes::of(&image(None, None));
        assert_eq!((sizes.first(), sizes.in_words("image")), (None, None));
        sizes.look_at(&image(None, Some(0.2)));
        assert_eq!(
            sizes.in_words("image").unwrap(),
            "? x 0.2000 x 0.2000 µm (ZYX), of 1 image another than of the first"
        );
    }
}
