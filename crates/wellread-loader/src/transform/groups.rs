//! Normalisation by the group that a row belongs to: its plate, or the control wells of its plate.

use super::channel_names::ChannelNames;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use wellread_store::words::counted;

/// Means and standard deviations of groups of rows, told by columns beside the images: [`Normalize::from_stats`](super::Normalize) of
/// a file that `wellread stats --by` wrote. In units of stored values, one of each per channel of the stored image.
#[derive(Clone, PartialEq)]
pub struct GroupNormalize {
    path: PathBuf,
    columns: Vec<String>,
    /// The number of each group, by the text of [`wellread_store::features::keys`].
    numbers: HashMap<String, u32>,
    /// The names of each group's channels; none where they go by number.
    names: Vec<ChannelNames>,
    channels: usize,
    /// For each group, channel by channel.
    mean: Vec<f32>,
    std: Vec<f32>,
}

impl fmt::Debug for GroupNormalize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = counted(self.numbers.len(), "group");
        write!(f, "GroupNormalize({groups} by {}, {})", self.columns.join(", "), self.path.display())
    }
}

impl GroupNormalize {
    /// Groups by the values of `columns`, each with its key ([`wellread_store::features::key_of`]), means and standard deviations.
    /// `path` is the file that they are of, for messages.
    ///
    /// # Errors
    /// No group, one that is there twice, groups of different numbers of channels, in words.
    pub fn new(
        path: &Path,
        columns: Vec<String>,
        groups: Vec<(String, Vec<f32>, Vec<f32>)>,
    ) -> Result<Self, String> {
        let channels = groups.first().map_or(0, |(_, mean, _)| mean.len());
        if channels == 0 {
            return Err("holds no group of images with channels".to_owned());
        }
        let (mut numbers, mut means, mut stds) = (HashMap::new(), vec![], vec![]);
        for (number, (key, mean, std)) in groups.into_iter().enumerate() {
            let said = wellread_store::features::key_in_words(&key);
            if mean.len() != channels || std.len() != channels {
                let n = counted(mean.len(), "channel");
                return Err(format!("{said} has {n}, and the first group {channels}"));
            }
            if numbers.insert(key, number as u32).is_some() {
                return Err(format!("{said} is there twice"));
            }
            means.extend(mean);
            stds.extend(std);
        }
        Ok(Self { path: path.to_owned(), columns, numbers, names: vec![], channels, mean: means, std: stds })
    }

    /// The same with the names of each group's channels.
    pub(crate) fn with_names(self, names: Vec<ChannelNames>) -> Self {
        Self { names, ..self }
    }

    /// The names of each group's channels; none where they go by number.
    pub(crate) fn names(&self) -> &[ChannelNames] {
        &self.names
    }

    /// The same groups with the numbers of other channels, so many, which go by number.
    pub(crate) fn with_numbers(&self, channels: usize, [mean, std]: [Vec<f32>; 2]) -> Self {
        Self { channels, mean, std, names: vec![], ..self.clone() }
    }

    /// The columns whose values tell the groups.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The file that they are of.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many channels stored images have.
    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    /// All means, and all standard deviations.
    pub(crate) fn numbers(&self) -> [&[f32]; 2] {
        [&self.mean, &self.std]
    }

    /// The group of a key.
    pub(crate) fn group(&self, key: &str) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// Mean and standard deviation of a channel of the stored images.
    pub(crate) fn of(&self, group: u32, channel: usize) -> [f64; 2] {
        let at = group as usize * self.channels + channel;
        [f64::from(self.mean[at]), f64::from(self.std[at])]
    }
}
