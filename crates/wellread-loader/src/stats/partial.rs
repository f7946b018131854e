//! Statistics of a part of a set, to be put together with those of the other parts: tasks on several machines hand them
//! back.
//!
//! ```text
//!  rows of a part ──pass──▶ PartialStats ──JSON──▶ add, add, … in order ──finish──▶ Stats
//!                            counts of values           │
//!                            moments of each group ─────┘ side by side: summed once, in order
//! ```
//!
//! Counts are whole numbers, which any order adds exactly. Moments are sums of floats, whose order matters. A part
//! keeps those of each of its groups, and they are summed when all parts are there, as one pass over the set does. So
//! the result is the same to the bit.

use super::bins::{Counts, WIDE_ERROR, is_exact};
use super::channel_order::ChannelOrder;
use super::document::{ChannelStats, FORMAT, Stats, VERSION};
use super::moments::Moments;
use serde::{Deserialize, Serialize};
use wellread_image::PixelType;

/// The counts of some rows of a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartialStats {
    dtype: PixelType,
    images: u64,
    /// By channel.
    counts: Vec<Counts>,
    /// Those of each channel for each group of rows, in order; none for types of which every value is
    /// counted.
    groups: Vec<Vec<Moments>>,
}

impl PartialStats {
    pub(super) fn new(dtype: PixelType, images: u64, counts: Vec<Counts>, groups: Vec<Vec<Moments>>) -> Self {
        let groups = if is_exact(dtype) { vec![] } else { groups };
        Self { dtype, images, counts, groups }
    }

    /// Adds those of the rows that follow.
    ///
    /// # Errors
    /// They are of another pixel type, in words.
    pub fn add(&mut self, next: &Self) -> Result<(), String> {
        if next.dtype != self.dtype || next.counts.iter().any(|counts| !counts.is_of(self.dtype)) {
            return Err(format!("a part is {}, and those before it are {}", next.dtype, self.dtype));
        }
        for (c, counts) in next.counts.iter().enumerate() {
            match self.counts.get_mut(c) {
                Some(sum) => sum.add(counts),
                None => self.counts.push(counts.clone()),
            }
        }
        self.images += next.images;
        self.groups.extend(next.groups.iter().cloned());
        Ok(())
    }

    /// The statistics of all that was added, whose channels are in this order.
    pub fn finish(&self, order: &ChannelOrder, percents: &[f64]) -> Stats {
        let exact = is_exact(self.dtype);
        let channels = self.counts.iter().enumerate().map(|(c, counts)| {
            let moments = if exact {
                Moments::of_counts(counts)
            } else {
                self.groups.iter().filter_map(|all| all.get(c)).fold(Moments::NONE, |sum, m| sum.merge(*m))
            };
            let name = order.names.get(c).cloned().flatten();
            of_channel(c, name, moments, counts, percents)
        });
        Stats {
            format: FORMAT.into(),
            version: VERSION,
            images: self.images,
            dtype: self.dtype.name().into(),
            percentile_error: if exact { 0.0 } else { WIDE_ERROR },
            reordered: order.reordered() as u64,
            other_names: order.other_names as u64,
            channels: channels.collect(),
        }
    }
}

fn of_channel(
    channel: usize,
    name: Option<String>,
    moments: Moments,
    counts: &Counts,
    percents: &[f64],
) -> ChannelStats {
    let Moments { count, min, max, nan, infinite, .. } = moments;
    let there = |value: f64| (count > 0).then_some(value);
    ChannelStats {
        channel,
        name,
        count,
        nan,
        infinite,
        mean: there(moments.mean()),
        std: there(moments.std()),
        min: there(min),
        max: there(max),
        percentiles: counts.percentiles(percents, (min, max)),
        histogram: (count > 0).then(|| counts.histogram((min, max))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PERCENTILES, RowNames, group_of};
    use super::*;
    use crate::MemoryStore;
    use wellread_image::{Channel, ImageMetadata, Shape};

    /// Fifty images of two channels, whose values are spread over many powers of two; every third has its channels in turn.
    fn set(dtype: PixelType) -> MemoryStore {
        let mut store = MemoryStore::new("set");
        let shape = Shape([1, 2, 1, 5, 7]);
        for image in 0..50u32 {
            let mut names = ["DNA", "ER"];
            if image % 3 == 1 {
                names.swap(0, 1);
            }
            let channels =
                names.iter().map(|name| Channel { name: (*name).to_owned(), ..Channel::default() }).collect();
            let metadata = ImageMetadata { channels, ..ImageMetadata::named(format!("{image}")) };
            let bytes = (0..shape.pixels() as u32).flat_map(|pixel| {
                let value = (image * 7919 + pixel * 104_729) % 65_521;
                match dtype {
                    PixelType::F32 => {
                        (value as f32 * 1.1f32.powi((pixel % 60) as i32)).to_le_bytes().to_vec()
                    }
                    _ => (value as u16).to_le_bytes().to_vec(),
                }
            });
            store.push_with(metadata, shape, dtype, bytes.collect()).unwrap();
        }
        store
    }

    #[test]
    fn parts_make_the_statistics_of_the_whole_to_the_bit() {
        for dtype in [PixelType::U16, PixelType::F32] {
            let store = set(dtype);
            let whole = Stats::of(&store, &PERCENTILES, 3, &|| ()).unwrap();
            assert_eq!(whole.reordered, 17);
            let rows: Vec<usize> = (0..50).collect();
            let names = RowNames::of(&store, &rows).unwrap();
            let order = ChannelOrder::of_names(names.row(0).unwrap(), names.each());
            let parts = rows.chunks(group_of(&store)).map(|rows| {
                let part = PartialStats::of(&store, rows, 0, &order, 2, &|| ()).unwrap();
                let text = serde_json::to_string(&part).unwrap();
                let read: PartialStats = serde_json::from_str(&text).unwrap();
                assert_eq!(read, part);
                read
            });
            let sum = parts.reduce(|mut sum, next| sum.add(&next).map(|()| sum).unwrap()).unwrap();
            let text = |stats: &Stats| serde_json::to_string(stats).unwrap();
            assert_eq!(text(&sum.finish(&order, &PERCENTILES)), text(&whole), "{dtype}");
        }
    }

    #[test]
    fn parts_of_two_pixel_types_are_refused() {
        let part = |dtype| {
            let order = ChannelOrder::default();
            PartialStats::of(&set(dtype), &[0], 0, &order, 1, &|| ()).unwrap()
        };
        let why = part(PixelType::U16).add(&part(PixelType::F32)).unwrap_err();
        assert_eq!(why, "a part is float32, and those before it are uint16");
    }

    #[test]
    fn a_bin_that_there_is_not_is_an_error() {
        let text = r#"{"dtype":"uint8","near":[[256,1]],"far":[]}"#;
        assert!(serde_json::from_str::<Counts>(text).unwrap_err().to_string().contains("no bin 256"));
    }
}
