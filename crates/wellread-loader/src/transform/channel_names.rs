//! Names of the channels that statistics are of, and where an image's channels are found among them.

use super::error::TransformError;
use std::path::{Path, PathBuf};
use wellread_store::words::counted;

/// Means and standard deviations of channels with names, in units of stored values: [`Normalize::from_stats`](super::Normalize) of a
/// set whose images name their channels.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelNormalize {
    pub(super) path: PathBuf,
    pub(super) names: ChannelNames,
    pub(crate) mean: Vec<f32>,
    pub(crate) std: Vec<f32>,
}

/// Ranges of channels with names, in units of stored values: [`Scale::from_stats`](super::Scale) of a set whose images name their
/// channels.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelRange {
    pub(super) path: PathBuf,
    pub(super) names: ChannelNames,
    pub(crate) low: Vec<f32>,
    pub(crate) high: Vec<f32>,
}

/// The names of the channels of statistics, where they are known and no other channel has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChannelNames(Vec<Option<String>>);

impl ChannelNames {
    /// The names that a file has.
    pub(crate) fn new(names: impl IntoIterator<Item = Option<String>>) -> Self {
        let all: Vec<Option<String>> = names.into_iter().collect();
        let is_once = |name: &String| {
            !name.is_empty()
                && all.iter().filter(|other| other.as_deref() == Some(name.as_str())).count() == 1
        };
        Self(all.iter().map(|name| name.clone().filter(is_once)).collect())
    }

    /// The name of a channel, where it is known.
    pub(crate) fn name(&self, number: usize) -> Option<&str> {
        self.0.get(number)?.as_deref()
    }

    /// The number of the channel of this name.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|own| own.as_deref() == Some(name))
    }

    /// Whether any is known.
    pub(crate) fn is_any(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// For each channel of an image its place in the statistics. It goes by its name, or by its number where its name, or that in the
    /// statistics, is not known. A number counts only where the statistics have no more channels than images do. Channels that
    /// are not delivered have none.
    pub(super) fn positions(
        &self,
        path: &Path,
        images: &Delivered<'_>,
    ) -> Result<Vec<Option<usize>>, TransformError> {
        let mut places = vec![None; images.stored];
        for &(stored, name) in &images.channels {
            let Some(place) = places.get_mut(stored) else { continue };
            let named = name.and_then(|name| self.number(name));
            let has_number = matches!((name, self.0.get(stored)), (None, Some(_)) | (Some(_), Some(None)));
            *place = match (named, name) {
                (Some(at), _) => Some(at),
                // Where statistics have more channels, the number tells nothing: those images had other channels.
                (None, _) if has_number && self.0.len() <= images.stored => Some(stored),
                (None, Some(name)) if !has_number && self.is_any() => {
                    let there: Vec<&str> = self.0.iter().flatten().map(String::as_str).collect();
                    return Err(TransformError::new(
                        format!(
                            "{} has no statistics of the channel {name:?}: it has {}",
                            path.display(),
                            there.join(", ")
                        ),
                        "compute them of images whose channels have these names (wellread stats), or give numbers of your own",
                    ));
                }
                _ => return Err(self.other_count(path, images)),
            };
        }
        Ok(places)
    }

    /// Statistics of another number of channels than images have.
    fn other_count(&self, path: &Path, images: &Delivered<'_>) -> TransformError {
        let names = if self.is_any() {
            let each = self.0.iter().map(|name| name.as_deref().unwrap_or("one without a name"));
            format!(" ({})", each.collect::<Vec<_>>().join(", "))
        } else {
            String::new()
        };
        let without = match (images.channels.iter().all(|(_, name)| name.is_none()), images.stored) {
            (true, 1) => " without a name",
            (true, _) => " without names",
            (false, _) => "",
        };
        TransformError::new(
            format!(
                "{} has statistics of {}{names}, but the images have {}{without}",
                path.display(),
                counted(self.0.len(), "channel"),
                counted(images.stored, "channel")
            ),
            "open the images as they were opened for these statistics, choose channels by name where images and file have \
             names, or compute them here: `wellread stats`",
        )
    }
}

/// The channels that are delivered of the first image of a set, without its mask.
pub(super) struct Delivered<'a> {
    /// How many channels it has.
    pub(super) stored: usize,
    /// The number of each, and its name where it is known and no other channel has it.
    pub(super) channels: Vec<(usize, Option<&'a str>)>,
}

impl ChannelNormalize {
    /// Channel by channel; `path` is the file that they are of, for messages.
    pub(crate) fn new(path: &Path, names: ChannelNames, [mean, std]: [Vec<f32>; 2]) -> Self {
        Self { path: path.to_owned(), names, mean, std }
    }
}

impl ChannelRange {
    /// Channel by channel; `path` is the file that they are of, for messages.
    pub(crate) fn new(path: &Path, names: ChannelNames, [low, high]: [Vec<f32>; 2]) -> Self {
        Self { path: path.to_owned(), names, low, high }
    }
}
