//! Illumination: a field of the size of the images that each pixel is divided by.
//!
//! `v' = (v - dark) / flat`, in units of stored values. The flat field is taken as given: let its mean be about 1, as
//! BaSiC and CellProfiler write it, and values keep their size.

use super::error::TransformError;
use super::npy;
use crate::kernels::plane::{self, FieldPart};
use crate::simd::Level;
use std::fmt;
use std::path::Path;
use std::ptr;
use wellread_image::Shape;
use wellread_store::{Error, OpenOptions, Result, Store};

/// Largest field that is taken: a gigabyte of floats.
const MAX_FIELD_PIXELS: usize = 1 << 28;

/// A flat field and, if need be, a dark field: a plane for all channels or one per channel.
#[derive(Clone)]
pub struct Field {
    /// Channels, rows, columns.
    size: [usize; 3],
    /// 1 over the flat field.
    gain: Vec<f32>,
    dark: Option<Vec<f32>>,
}

/// A field is equal to itself without a look at its values: single items compare their transform with the last one's, and fields
/// have megabytes.
impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        let Self { size, gain, dark } = self;
        ptr::eq(self, other) || *size == other.size && *gain == other.gain && *dark == other.dark
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [channels, height, width] = self.size;
        let dark = if self.dark.is_some() { " with a dark field" } else { "" };
        write!(f, "Field({channels} x {height} x {width}{dark})")
    }
}

impl Field {
    /// Reads a flat field, and a dark field if one is given, from files or folders of any format, or NumPy's `.npy`. A
    /// field is one image with a plane per channel (or one for all), or an image of one plane for each channel.
    ///
    /// # Errors
    /// Files that cannot be read, more than one time point or depth, fields that differ in size. So are pixels of
    /// the flat field that cannot be divided by.
    pub fn open(flat: impl AsRef<Path>, dark: Option<&Path>) -> Result<Self> {
        let path = flat.as_ref();
        let (size, flat) = read(path)?;
        let dark = dark.map(|dark_path| read(dark_path).map(|read| (dark_path, read))).transpose()?;
        if let Some((dark_path, (other, _))) = &dark
            && *other != size
        {
            return Err(Error::new(
                dark_path,
                format_args!(
                    "the dark field is of {other:?} (channels, rows, columns), the flat field of {size:?}"
                ),
            )
            .hint("give both for the same camera and channels"));
        }
        Self::new(size, &flat, dark.map(|(_, (_, dark))| dark)).map_err(|error| error.at(path, None))
    }

    /// A field of `[channels, rows, columns]`, in C order.
    ///
    /// # Errors
    /// Another number of values, or values of the flat field that cannot be divided by.
    pub fn new(
        size: [usize; 3],
        flat: &[f32],
        dark: Option<Vec<f32>>,
    ) -> std::result::Result<Self, TransformError> {
        let pixels = size.iter().try_fold(1usize, |n, &s| n.checked_mul(s)).unwrap_or(0);
        let dark_len = dark.as_ref().map_or(pixels, Vec::len);
        if pixels == 0 || flat.len() != pixels || dark_len != pixels {
            return Err(TransformError::new(
                format!("{} values are given for a field of {size:?} (channels, rows, columns)", flat.len()),
                "give one value per pixel",
            ));
        }
        if let Some(at) = flat.iter().position(|v| !(*v > 0.0 && (1.0 / *v).is_finite() && v.is_finite())) {
            return Err(TransformError::new(
                format!(
                    "the field is {} at row {}, column {} of plane {}: nothing can be divided by it",
                    flat[at],
                    at / size[2] % size[1],
                    at % size[2],
                    at / (size[1] * size[2])
                ),
                "give positive numbers, about 1 on average",
            ));
        }
        if dark.as_ref().is_some_and(|dark| dark.iter().any(|v| !v.is_finite())) {
            return Err(TransformError::new(
                "the dark field holds numbers that are not finite",
                "give finite numbers",
            ));
        }
        Ok(Self { size, gain: flat.iter().map(|v| 1.0 / v).collect(), dark })
    }

    /// How many planes there are.
    pub(crate) fn planes(&self) -> usize {
        self.size[0]
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        (self.gain.len() + self.dark.as_ref().map_or(0, Vec::len)) * size_of::<f32>()
    }

    /// Checks that images of `shape` are of the field's size.
    pub(crate) fn check(&self, shape: Shape) -> std::result::Result<(), TransformError> {
        let [channels, height, width] = self.size;
        if [height, width] != [shape.y(), shape.x()] || ![1, shape.c()].contains(&channels) {
            return Err(TransformError::new(
                format!(
                    "the illumination field is {channels} x {height} x {width} (channels, rows, columns), the image {} x {} x {}",
                    shape.c(),
                    shape.y(),
                    shape.x()
                ),
                "give a field of the size of the stored images, with one plane or one per channel",
            ));
        }
        Ok(())
    }

    /// Corrects a plane of rows of `width` pixels, which begins at `start` of the field. A pixel outside of the field
    /// is no part of an image and stays as it is.
    pub(crate) fn correct(
        &self,
        level: Level,
        channel: usize,
        start: [i64; 2],
        width: usize,
        plane: &mut [f32],
    ) {
        let [_, rows, columns] = self.size;
        let height = plane.len() / width;
        // The rows, or columns, of the plane that lie inside.
        let inside = |start: i64, length: usize, of: usize| {
            let within = |at: i64| at.clamp(0, length as i64) as usize;
            within(start.saturating_neg())..within((of as i64).saturating_sub(start))
        };
        let (y, x) = (inside(start[0], height, rows), inside(start[1], width, columns));
        if y.is_empty() || x.is_empty() {
            return;
        }
        let at = |start: i64, first: usize| (start + first as i64) as usize;
        if y.len() == height && x.len() == width {
            plane::correct(level, self.part(channel, at(start[0], 0), at(start[1], 0)), width, plane);
            return;
        }
        for (row, pixels) in plane.chunks_exact_mut(width).enumerate().take(y.end).skip(y.start) {
            let part = self.part(channel, at(start[0], row), at(start[1], x.start));
            plane::correct(level, part, x.len(), &mut pixels[x.clone()]);
        }
    }

    /// The part for channel `channel` from row `top`, column `left` on.
    fn part(&self, channel: usize, top: usize, left: usize) -> FieldPart<'_> {
        let [channels, height, width] = self.size;
        let plane = if channels == 1 { 0 } else { channel };
        let start = (plane * height + top) * width + left;
        FieldPart {
            dark: self.dark.as_ref().map(|dark| &dark[start..]),
            gain: &self.gain[start..],
            stride: width,
        }
    }
}

/// The planes of a field, and their number and size.
fn read(path: &Path) -> Result<([usize; 3], Vec<f32>)> {
    if npy::is_one(path) {
        return npy::read(path, MAX_FIELD_PIXELS);
    }
    let store = wellread_store::open(path, &OpenOptions::default())?;
    let first = store.row_info(0)?.shape;
    let mut planes = vec![];
    let mut channels = 0;
    for row in 0..store.len() {
        let shape = store.row_info(row)?.shape;
        let fits = shape.t() == 1 && shape.z() == 1 && (shape.y(), shape.x()) == (first.y(), first.x());
        if !fits || (store.len() > 1 && shape.c() > 1) {
            return Err(Error::new(
                path,
                format_args!("an image of {shape} (TCZYX) is no illumination field"),
            )
            .row(row)
            .hint("give one image with a plane per channel, or an image of one plane for each channel"));
        }
        if planes.len().saturating_add(shape.pixels()) > MAX_FIELD_PIXELS {
            return Err(Error::new(path, "more pixels than an illumination field may have (2^28)").row(row));
        }
        planes.extend(values(&*store, row)?);
        channels += shape.c();
    }
    Ok(([channels, first.y(), first.x()], planes))
}

fn values(store: &dyn Store, row: usize) -> Result<Vec<f32>> {
    let (info, data) = wellread_store::read_image(store, row)?;
    let mut values = vec![0f32; info.shape.pixels()];
    crate::kernels::convert(info.dtype, &data, crate::kernels::Affine::IDENTITY, &mut values);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_field_is_itself_without_a_look_at_its_values() {
        let of = |gain: f32| Arc::new(Field { size: [1, 1, 1], gain: vec![gain], dark: None });
        // No value of a field: it tells whether values are compared.
        let field = of(f32::NAN);
        assert!(field == Arc::clone(&field) && field != of(f32::NAN));
        assert!(of(2.0) == of(2.0) && of(2.0) != of(3.0));
    }
}
