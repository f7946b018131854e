//! Statistics of a set, channel by channel, in one parallel pass: what `wellread stats` prints and loaders normalise by.
//!
//! ```text
//!   rows, in groups ──threads──▶ counts of values (all of a thread's rows)  ──added──▶ percentiles, histogram
//!                            └──▶ sums of each group (32-bit and wider types) ──in order──▶ mean, deviation
//! ```
//!
//! Of 8- and 16-bit types every value is counted, so all is exact. Of wider types values are counted in bins whose
//! width is 2^-9 of the value: percentiles are off by at most 0.1 % of the value; mean, deviation, minimum and maximum
//! are those of all values in `f64`. The result is the same whatever the number of threads.

mod bins;
mod collect;
mod moments;

use crate::transform::{Normalize, Scale};
use serde::{Deserialize, Serialize};
use std::path::Path;
use wellread_store::{Error, Result, Store};

/// Percentiles that are computed unless others are asked for.
pub const PERCENTILES: [f64; 9] = [0.1, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9];

/// What the file says that it is.
const FORMAT: &str = "wellread-stats";
/// What to do about a file that is none.
const HINT: &str = "give a file that `wellread stats PATH --out FILE` wrote";
/// The newest version that this build writes and reads.
const VERSION: u32 = 1;
/// Largest file that is read: a thousand times what one is.
const LARGEST_FILE: u64 = 64 << 20;

/// Statistics of a set of images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Always `wellread-stats`.
    pub format: String,
    /// Version of this form.
    pub version: u32,
    /// Number of images.
    pub images: u64,
    /// Pixel type, by its NumPy name.
    pub dtype: String,
    /// Largest error of percentiles, relative to their value; 0 when they are exact.
    pub percentile_error: f64,
    /// One per channel.
    pub channels: Vec<ChannelStats>,
}

/// Statistics of one channel, of its finite values, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChannelStats {
    /// Its number, from 0.
    pub channel: usize,
    /// Its name in the first image that has one.
    #[serde(default)]
    pub name: Option<String>,
    /// Finite values.
    pub count: u64,
    /// Values that are no numbers; part of nothing else here.
    pub nan: u64,
    /// Infinite values; part of nothing else here.
    pub infinite: u64,
    /// Mean; like all below, absent where there is no finite value.
    pub mean: Option<f64>,
    /// Population standard deviation.
    pub std: Option<f64>,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// In ascending order.
    pub percentiles: Vec<Percentile>,
    /// Counts of values.
    pub histogram: Option<Histogram>,
}

/// A value that a share of all values lies below, interpolated as NumPy does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// 0 to 100.
    pub percent: f64,
    /// The value.
    pub value: f64,
}

/// Counts of values in bins of equal width; the last bin includes its upper end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Lower end of the first bin.
    pub low: f64,
    /// Upper end of the last bin.
    pub high: f64,
    /// One per bin.
    pub counts: Vec<u64>,
}

impl Stats {
    /// Reads every pixel of a set, with `jobs` threads. `done` is called once per row.
    ///
    /// # Errors
    /// The first row that cannot be read; images of several pixel types; more channels than memory has room to count.
    pub fn of(store: &dyn Store, percents: &[f64], jobs: usize, done: &(dyn Fn() + Sync)) -> Result<Self> {
        collect::collect(store, percents, jobs, done)
    }

    /// Reads the file that `wellread stats --out` writes.
    ///
    /// # Errors
    /// A file that cannot be read, is none of statistics, or is of a newer version.
    pub fn open(path: &Path) -> Result<Self> {
        let value = Self::document(path)?;
        if value["version"].as_u64().is_none_or(|version| version > u64::from(VERSION)) {
            return Err(Error::new(
                path,
                format_args!("its version is {}, this build knows up to {VERSION}", value["version"]),
            )
            .hint("update wellread, or compute the statistics again"));
        }
        serde_json::from_value(value)
            .map_err(|e| Error::new(path, format_args!("is no file of statistics: {e}")).hint(HINT))
    }

    /// Whether `path` is a file of statistics, of whatever version.
    pub fn is_file(path: &Path) -> bool {
        Self::document(path).is_ok()
    }

    /// What a file of statistics holds, of whatever version.
    fn document(path: &Path) -> Result<serde_json::Value> {
        let read = |e: std::io::Error| Error::io(path, "cannot read", &e);
        let size = std::fs::metadata(path).map_err(read)?.len();
        if size > LARGEST_FILE {
            return Err(Error::new(path, format_args!("{size} bytes are too many for statistics")).hint(HINT));
        }
        let bytes = std::fs::read(path).map_err(read)?;
        let value: serde_json::Value = serde_json::from_slice(&bytes)
            .map_err(|e| Error::new(path, format_args!("is no file of statistics: {e}")).hint(HINT))?;
        if value["format"] == FORMAT {
            return Ok(value);
        }
        Err(Error::new(path, "is no file of statistics").hint(HINT))
    }

    /// Means and standard deviations to normalise by; `path` is for errors.
    ///
    /// # Errors
    /// A channel without finite values, or of one value.
    pub fn normalize(&self, path: &Path) -> Result<Normalize> {
        let each = self.channels.iter().map(|channel| match (channel.mean, channel.std) {
            (Some(mean), Some(std)) if std > 0.0 => Ok((mean as f32, std as f32)),
            _ => Err(Error::new(
                path,
                format_args!("channel {} has no standard deviation to divide by", channel.channel),
            )
            .hint("select other channels, or normalise by numbers of your own")),
        });
        let (mean, std) =
            self.not_empty(path).and_then(|()| each.collect::<Result<Vec<_>>>())?.into_iter().unzip();
        Ok(Normalize::Stored { mean, std })
    }

    /// The range between two percentiles of each channel, to scale to 0 to 1.
    ///
    /// # Errors
    /// Percentiles that were not computed, or are equal.
    pub fn range(&self, path: &Path, low: f64, high: f64) -> Result<Scale> {
        self.not_empty(path)?;
        let mut ends = (vec![], vec![]);
        for channel in &self.channels {
            let find = |percent: f64| {
                let found = channel.percentiles.iter().find(|p| (p.percent - percent).abs() < 1e-9);
                found.map(|p| p.value as f32).ok_or_else(|| {
                    let there: Vec<String> =
                        channel.percentiles.iter().map(|p| p.percent.to_string()).collect();
                    Error::new(
                        path,
                        format_args!("holds no percentile {percent} of channel {}", channel.channel),
                    )
                    .hint(format_args!(
                        "choose from {}, or compute it: wellread stats --percentiles",
                        there.join(", ")
                    ))
                })
            };
            let (low, high) = (find(low)?, find(high)?);
            if low >= high {
                return Err(Error::new(
                    path,
                    format_args!("channel {} has no range: both percentiles are {low}", channel.channel),
                )
                .hint("choose percentiles further apart"));
            }
            ends.0.push(low);
            ends.1.push(high);
        }
        Ok(Scale::Range { low: ends.0, high: ends.1 })
    }

    fn not_empty(&self, path: &Path) -> Result<()> {
        if self.channels.is_empty() { Err(Error::new(path, "holds no channel")) } else { Ok(()) }
    }
}
