//! From statistics of a set to the steps of a transform that need them: a normalisation, a range to scale.
//!
//! ```text
//!   file ──Stats::open──▶ Stats ─┬─normalize──▶ Normalize::Stored
//!                                └─range──────▶ Scale::Range
//! ```

use super::Stats;
use crate::transform::{Normalize, Scale};
use std::path::Path;
use wellread_store::{Error, Result};

impl Scale {
    /// The range between two percentiles of each channel of a set, of the file that `wellread stats --out` writes.
    ///
    /// # Errors
    /// A file that cannot be read or is none of statistics, percentiles that it does not hold, channels of one value.
    pub fn from_stats(path: impl AsRef<Path>, low: f64, high: f64) -> Result<Self> {
        Stats::open(path.as_ref())?.range(path.as_ref(), low, high)
    }
}

impl Normalize {
    /// The means and standard deviations of a set, of the file that `wellread stats --out` writes.
    ///
    /// # Errors
    /// A file that cannot be read or is none of statistics; a channel of one value.
    pub fn from_stats(path: impl AsRef<Path>) -> Result<Self> {
        Stats::open(path.as_ref())?.normalize(path.as_ref())
    }
}

impl Stats {
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
