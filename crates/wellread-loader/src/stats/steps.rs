//! From statistics of a set to the steps of a transform that need them: a normalisation, a range to scale.
//!
//! ```text
//!   file ──Stats::open──▶ Stats ─┬─normalize──▶ Normalize::Channels, of channels with names, or Normalize::Stored
//!                                └─range──────▶ Scale::Channels, likewise, or Scale::Stored
//!   file of groups ──GroupStats::open──▶ Normalize::Groups
//! ```

use super::{GroupStats, Stats};
use crate::transform::{ChannelNames, ChannelNormalize, ChannelRange, GroupNormalize, Normalize, Scale};
use std::path::Path;
use std::sync::Arc;
use wellread_store::{Error, Result, features};

impl Scale {
    /// The range between two percentiles of each channel of a set, of the file that `wellread stats --out` writes. It goes by the
    /// channel's name, where images and file have names.
    ///
    /// # Errors
    /// A file that cannot be read or is none of statistics, percentiles that it does not hold, channels of one value.
    pub fn from_stats(path: impl AsRef<Path>, low: f64, high: f64) -> Result<Self> {
        Stats::open(path.as_ref())?.range(path.as_ref(), low, high)
    }
}

impl Normalize {
    /// The means and standard deviations of a set, of the file that `wellread stats --out` writes; with `--by` those of the group of
    /// each row.
    ///
    /// # Errors
    /// A file that cannot be read or is none of statistics; a channel of one value.
    pub fn from_stats(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        match GroupStats::open(path)? {
            Some(groups) => groups.normalize(path),
            None => Stats::open(path)?.normalize(path),
        }
    }
}

impl GroupStats {
    /// Means and standard deviations of each group to normalise its rows by; `path` is for errors.
    ///
    /// # Errors
    /// No group, or groups of different numbers of channels. A channel without finite values, or of one
    /// value.
    pub fn normalize(&self, path: &Path) -> Result<Normalize> {
        let mut groups = vec![];
        for group in &self.groups {
            let name = features::key_of(&group.key);
            let said = features::key_in_words(&name);
            let (mean, std) = group.stats.moments(path).map_err(|error| {
                let cause = format!("{} {said}: {}", self.by.join(", "), error.cause());
                Error::new(path, cause).hint(error.hint_text().unwrap_or("compute the statistics again"))
            })?;
            groups.push((name, mean, std));
        }
        let groups = GroupNormalize::new(path, self.by.clone(), groups).map_err(|e| Error::new(path, e))?;
        let groups = groups.with_names(self.groups.iter().map(|group| group.stats.names()).collect());
        Ok(Normalize::Groups(Arc::new(groups)))
    }
}

impl Stats {
    /// Means and standard deviations to normalise by; `path` is for errors.
    ///
    /// # Errors
    /// A channel without finite values, or of one value.
    pub fn normalize(&self, path: &Path) -> Result<Normalize> {
        let (mean, std) = self.moments(path)?;
        let names = self.names();
        // Those of one channel are of that one, not of each that images have.
        if names.is_any() || mean.len() == 1 {
            return Ok(Normalize::Channels(Arc::new(ChannelNormalize::new(path, names, [mean, std]))));
        }
        Ok(Normalize::Stored { mean, std })
    }

    /// The names of its channels.
    fn names(&self) -> ChannelNames {
        ChannelNames::new(self.channels.iter().map(|channel| channel.name.clone()))
    }

    fn moments(&self, path: &Path) -> Result<(Vec<f32>, Vec<f32>)> {
        // One that is 0 or infinite as a single, or whose reciprocal is, would make infinities or nothing of all values.
        let single =
            |number: Option<f64>| number.map(|number| number as f32).filter(|number| number.is_finite());
        let each = self.channels.iter().map(|channel| match (single(channel.mean), single(channel.std)) {
            (Some(mean), Some(std)) if std >= f32::MIN_POSITIVE => Ok((mean, std)),
            _ => Err(Error::new(
                path,
                format_args!("channel {} has no standard deviation to divide by", channel.channel),
            )
            .hint("select other channels, or normalise by numbers of your own")),
        });
        Ok(self.not_empty(path).and_then(|()| each.collect::<Result<Vec<_>>>())?.into_iter().unzip())
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
        let names = self.names();
        // Those of one channel are of that one, not of each that images have.
        if names.is_any() || ends.0.len() == 1 {
            return Ok(Scale::Channels(Arc::new(ChannelRange::new(path, names, [ends.0, ends.1]))));
        }
        Ok(Scale::Stored { low: ends.0, high: ends.1 })
    }

    fn not_empty(&self, path: &Path) -> Result<()> {
        if self.channels.is_empty() { Err(Error::new(path, "holds no channel")) } else { Ok(()) }
    }
}
