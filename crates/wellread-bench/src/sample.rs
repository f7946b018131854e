//! A bounded part of a user's own set, to be studied without reading all of it.

use anyhow::{Result, bail};
use serde::Serialize;
use wellread_image::Shape;
use wellread_loader::order::Permutation;
use wellread_store::store::RowsAhead;
use wellread_store::{Store, each_row};

/// How much of a set is taken at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Images.
    pub images: usize,
    /// Bytes of pixels; one batch is taken whatever that needs.
    pub bytes: u64,
}

/// Images of a batch where none is asked for, as in the benchmarks; and most bytes of such a batch.
const BATCH: (usize, f64) = (16, (128 << 20) as f64);

/// A batch size for a set where none is asked for: fewer where images are large, because several batches are in memory at a
/// time.
///
/// # Errors
/// A first image that cannot be looked at.
pub fn batch_size(store: &dyn Store, crop: Option<(usize, usize)>) -> Result<usize> {
    if store.is_empty() {
        return Ok(BATCH.0);
    }
    let fitting = BATCH.1 / delivered_bytes(store.row_info(0)?.shape.0, crop);
    Ok((fitting as usize).clamp(1, BATCH.0))
}

/// Bytes of an image of this size in a batch of `float32`: of what a crop leaves of it, which is never more than all.
pub(crate) fn delivered_bytes([t, c, z, y, x]: [usize; 5], crop: Option<(usize, usize)>) -> f64 {
    let (y, x) = crop.map_or((y, x), |(height, width)| (height.min(y), width.min(x)));
    4.0 * (t * c * z * y * x) as f64
}

/// Rows of a set.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// The rows, rising: drawn at random, or all.
    #[serde(skip)]
    pub rows: Vec<usize>,
    /// Images of the whole set.
    pub of: usize,
    /// One of them in a word: an image, or a cell.
    #[serde(skip)]
    pub thing: &'static str,
    /// Size of the first along T, C, Z, Y, X.
    pub shape_tczyx: [usize; 5],
    /// Their pixel type.
    pub dtype: String,
    /// Bytes of the pixels of an image as stored, on average.
    pub image_bytes: f64,
    /// Images of a batch: as asked for, or all there are.
    pub batch_size: usize,
}

/// The error for two images that differ in time points, channels or planes, which no crop makes alike.
pub(crate) fn differing_stacks(one: [usize; 5], other: [usize; 5]) -> Option<String> {
    const AXES: [&str; 3] = ["time points (T)", "channels (C)", "planes (Z)"];
    let differing: Vec<&str> = AXES
        .into_iter()
        .enumerate()
        .filter(|(axis, _)| one[*axis] != other[*axis])
        .map(|(_, name)| name)
        .collect();
    (!differing.is_empty()).then(|| {
        format!(
            "their numbers of {} differ, which no crop makes alike: take images of one kind",
            differing.join(", ")
        )
    })
}

/// Whether two images cannot be in one batch, of each of which `crop` is taken.
fn differ(one: Shape, other: Shape, crop: Option<(usize, usize)>) -> bool {
    differing_stacks(one.0, other.0).is_some() || one != other && crop.is_none()
}

/// Rows that are looked at, at most, to name the first that differs: each may be a file to open.
const MAX_LOOKED_AT: usize = 10_000;

/// Row 0 and the first row that differs from it, with their shapes, among the rows up to `last`. It is `None` where those are too many or
/// one cannot be looked at.
fn first_that_differ(
    store: &dyn Store,
    last: usize,
    crop: Option<(usize, usize)>,
) -> Option<[(usize, Shape); 2]> {
    if last >= MAX_LOOKED_AT {
        return None;
    }
    let first = store.row_info(0).ok()?.shape;
    for (row, info) in each_row::infos(store, last + 1).enumerate() {
        let other = info.ok()?.shape;
        if differ(first, other, crop) {
            return Some([(0, first), (row, other)]);
        }
    }
    None
}

impl Sample {
    /// Draws rows of `store`: whole batches of `batch_size`, no more than `limits` allow.
    ///
    /// # Errors
    /// A set without images, or rows that cannot be looked at. Images that differ in shape, unless a part of each is
    /// cut out (`crop`), because they cannot be joined in batches.
    pub fn draw(
        store: &dyn Store,
        limits: Limits,
        batch_size: usize,
        seed: u64,
        crop: Option<(usize, usize)>,
    ) -> Result<Self> {
        if store.is_empty() {
            bail!("{}: there are no images to study", store.path().display());
        }
        let order = Permutation::new(store.len(), seed, 0);
        let first_row = order.at(0);
        let first = store.row_info(first_row)?;
        let (mut rows, mut bytes) = (Vec::new(), 0u64);
        let mut ahead = RowsAhead::of_heads(store, store.len(), |i| Some(order.at(i)));
        for i in 0..store.len() {
            ahead.before(i);
            let row = order.at(i);
            let info = store.row_info(row)?;
            let size = (info.shape.pixels() * info.dtype.size()) as u64;
            let enough = rows.len() >= batch_size && bytes + size > limits.bytes;
            if enough || rows.len() >= limits.images.max(batch_size) {
                break;
            }
            if differ(info.shape, first.shape, crop) {
                let drawn = [(first_row, first.shape), (row, info.shape)];
                let named = first_that_differ(store, first_row.max(row), crop);
                let which = if named.is_some() { "" } else { ", of rows drawn at random" };
                let [(row, shape), (other_row, other)] = named.unwrap_or(drawn);
                bail!(
                    "{}: the images differ in shape, and a loader joins them in batches: row {row} is {shape} (TCZYX), row \
                     {other_row} is {other}{which} (hint: {})",
                    store.path().display(),
                    differing_stacks(shape.0, other.0)
                        .unwrap_or_else(|| "--crop HxW takes the centre of each".to_owned())
                );
            }
            rows.push(row);
            bytes += size;
        }
        let image_bytes = bytes as f64 / rows.len() as f64;
        let batch_size = batch_size.clamp(1, rows.len());
        rows.truncate(rows.len() - rows.len() % batch_size);
        rows.sort_unstable();
        let Shape(shape_tczyx) = first.shape;
        Ok(Self {
            rows,
            of: store.len(),
            thing: store.hints().thing(),
            shape_tczyx,
            dtype: first.dtype.name().to_owned(),
            image_bytes,
            batch_size,
        })
    }

    /// Bytes of an image in a batch of `float32`.
    pub fn delivered_bytes(&self, crop: Option<(usize, usize)>) -> f64 {
        delivered_bytes(self.shape_tczyx, crop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::PixelType;
    use wellread_loader::MemoryStore;

    fn store(shapes: &[(usize, usize)]) -> MemoryStore {
        let mut store = MemoryStore::new("set");
        for (i, &(y, x)) in shapes.iter().enumerate() {
            store.push(format!("{i}"), Shape::plane(y, x), PixelType::U16, vec![0; 2 * y * x]).unwrap();
        }
        store
    }

    #[test]
    fn a_sample_is_whole_batches_within_its_limits() {
        let store = store(&[(10, 10); 50]);
        let draw = |images, bytes, batch| {
            Sample::draw(&store, Limits { images, bytes }, batch, 3, None)
                .map(|s| (s.rows.len(), s.batch_size))
        };
        assert_eq!(draw(20, 1 << 20, 8).unwrap(), (16, 8));
        assert_eq!(draw(100, 1 << 20, 16).unwrap(), (48, 16));
        assert_eq!(draw(100, 2_000, 4).unwrap(), (8, 4));
        assert_eq!(draw(100, 1, 16).unwrap(), (16, 16), "one batch, whatever it needs");
        assert_eq!(draw(100, 1 << 20, 64).unwrap(), (50, 50));
        let sample = Sample::draw(&store, Limits { images: 20, bytes: 1 << 20 }, 4, 3, None).unwrap();
        assert!(sample.rows.windows(2).all(|w| w[0] < w[1]) && *sample.rows.last().unwrap() < 50);
        assert_ne!(sample.rows, (0..20).collect::<Vec<_>>(), "not the first ones");
        assert_eq!((sample.image_bytes, sample.delivered_bytes(None)), (200.0, 400.0));
        assert_eq!(sample.delivered_bytes(Some((5, 4))), 80.0);
        assert_eq!(sample.delivered_bytes(Some((5, 40))), 200.0, "no more than there is");
    }

    #[test]
    fn batches_of_large_images_are_smaller() {
        let of = |shape, crop| batch_size(&store(&[shape]), crop).unwrap();
        assert_eq!(of((10, 10), None), 16);
        assert_eq!((of((4096, 4096), None), of((4096, 4096), Some((100, 100)))), (2, 16));
    }

    #[test]
    fn what_cannot_be_batched_is_refused() {
        let limits = Limits { images: 9, bytes: 1 << 20 };
        let mixed = store(&[(10, 10), (10, 12), (9, 9)]);
        let error = Sample::draw(&mixed, limits, 3, 0, None).unwrap_err().to_string();
        assert!(error.contains("differ in shape") && error.contains("--crop"), "{error}");
        assert!(Sample::draw(&mixed, limits, 3, 0, Some((8, 8))).is_ok());
        // The first that differs is named, whichever rows were drawn first.
        for seed in 0..8 {
            let error = Sample::draw(&mixed, limits, 3, seed, None).unwrap_err().to_string();
            let first =
                format!("row 0 is {} (TCZYX), row 1 is {} (", Shape::plane(10, 10), Shape::plane(10, 12));
            assert!(error.contains(&first), "{error}");
        }
        assert_eq!(first_that_differ(&mixed, MAX_LOOKED_AT, None), None, "too many to look at");
        assert_eq!(differing_stacks([1, 2, 3, 4, 5], [1, 2, 3, 9, 9]), None);
        assert_eq!(
            differing_stacks([1, 2, 3, 4, 5], [1, 4, 5, 4, 5]).unwrap(),
            "their numbers of channels (C), planes (Z) differ, which no crop makes alike: take images of one kind"
        );
        assert!(Sample::draw(&store(&[]), limits, 3, 0, None).unwrap_err().to_string().contains("no images"));
    }
}
