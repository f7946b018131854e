//! Channels by name: where they stand in each row, which may be another place than in the first image.
//!
//! ```text
//!   row ─ known? ─┬─ where they are in the first image ──▶ the runs of the compiled transform
//!                 └─ elsewhere ─▶ names of its channels ─▶ runs of its own
//! ```
//!
//! The names of a row are looked at once, when its turn comes or, where metadata of many rows is read together, in the beginning. From then on a byte says whether its channels stand where they do in the first image.

use crate::dataset::Dataset;
use crate::transform::Transform;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use wellread_store::row_location::path_of_set;
use wellread_store::surface::option;
use wellread_store::{Error, Result};

/// The row was not looked at yet.
const UNKNOWN: u8 = 0;
/// Its channels stand where they do in the first image.
const SAME: u8 = 1;
/// They stand elsewhere.
const OTHER: u8 = 2;

/// Why channels that illumination fields go by may not stand elsewhere.
const NO_NAMES: &str = "names that repeat or are missing do not tell the illumination field of a channel";
const BY_NUMBER: &str =
    "the path of illumination fields has the number that a channel has in the first image";

/// The channels of the rows of a set, by their names.
pub(crate) struct RowChannels {
    dataset: Dataset,
    names: Arc<[String]>,
    /// Their numbers in the first image.
    channels: Vec<usize>,
    /// Why they may not stand elsewhere, where that is so.
    fixed: Option<&'static str>,
    /// For each row.
    known: Vec<AtomicU8>,
}

impl fmt::Debug for RowChannels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowChannels({:?} are {:?})", self.names, self.channels)
    }
}

impl RowChannels {
    /// The channels of this set's rows that a transform names, or that have their statistics or illumination fields by
    /// name; `None` where nothing does. `channels` are their numbers in the first image.
    ///
    /// # Errors
    /// Metadata of the first image that cannot be read.
    pub(crate) fn of(dataset: &Dataset, transform: &Transform, channels: &[usize]) -> Result<Option<Self>> {
        let chosen = transform.channel_names.as_ref().or(transform.statistics_names.as_ref());
        let fields = transform.fields.as_deref();
        let mut fixed = fields.filter(|fields| fields.has_numbers()).map(|_| BY_NUMBER);
        let names: Arc<[String]> = match (chosen, fields) {
            (Some(names), _) => Arc::clone(names),
            (None, Some(fields)) if fields.has_names() => {
                let all = names_of(dataset, 0)?;
                let name = |&channel: &usize| all.get(channel).cloned().unwrap_or_default();
                let named: Vec<String> = channels.iter().map(name).collect();
                let is_one = |name: &String| {
                    !name.is_empty() && all.iter().filter(|other| *other == name).count() == 1
                };
                if !named.iter().all(is_one) {
                    fixed = Some(NO_NAMES);
                }
                named.into()
            }
            _ => return Ok(None),
        };
        let known = (0..dataset.len()).map(|_| AtomicU8::new(UNKNOWN)).collect();
        let found = Self { dataset: dataset.clone(), names, channels: channels.to_vec(), fixed, known };
        found.look_at_joint();
        Ok(Some(found))
    }

    /// Looks at the rows whose metadata is read together with that of others, where it is read once for all. A row's
    /// error is reported when its turn comes. Each row would wait for a server that does not answer: the first one ends it.
    fn look_at_joint(&self) {
        let hints =
            (0..self.known.len()).filter_map(|row| Some((self.dataset.store().row_hints(row).ok()?, row)));
        let joint = hints.filter(|(hints, _)| hints.metadata_rows() > 1);
        let mut rows: Vec<(u64, usize)> = joint.map(|(hints, row)| (hints.position(), row)).collect();
        rows.sort_unstable();
        for (_, row) in rows {
            if self.has_other_channel_order(&self.dataset, row).is_err_and(|error| error.may_pass()) {
                return;
            }
        }
    }

    /// Whether the rows are those of this set.
    pub(crate) fn is_of(&self, dataset: &Dataset) -> bool {
        self.dataset.is_same(dataset)
    }

    /// Whether the channels of a row stand elsewhere than in the first image. `set` has the same rows; in a forked process it
    /// was opened anew.
    ///
    /// # Errors
    /// No such row; one without a channel of each name. Channels that may not stand elsewhere and do.
    pub(crate) fn has_other_channel_order(&self, set: &Dataset, row: usize) -> Result<bool> {
        let known = self.known.get(row);
        match known.map_or(UNKNOWN, |known| known.load(Ordering::Relaxed)) {
            SAME => Ok(false),
            OTHER => Ok(true),
            _ => {
                let has_other_channel_order = match self.fixed {
                    None => self.find(set, row)? != self.channels,
                    Some(why) => self.check_fixed(set, row, why).map(|()| false)?,
                };
                if let Some(known) = known {
                    known.store(if has_other_channel_order { OTHER } else { SAME }, Ordering::Relaxed);
                }
                Ok(has_other_channel_order)
            }
        }
    }

    /// The numbers of the channels in a row of `set`, which is as [`Self::has_other_channel_order`] takes it.
    ///
    /// # Errors
    /// No such row; one without a channel of each name.
    pub(crate) fn find(&self, set: &Dataset, row: usize) -> Result<Vec<usize>> {
        let there = names_of(set, row)?;
        let number = |name: &String| {
            let mut of_name = there.iter().enumerate().filter(|(_, other)| *other == name);
            match (of_name.next(), of_name.next()) {
                (Some((number, _)), None) => Ok(number),
                (found, _) => Err(refusal(set, row, name, found.is_some(), &there)),
            }
        };
        self.names.iter().map(number).collect()
    }

    /// Checks that the channels of a row are called as those of the first image at the same numbers.
    fn check_fixed(&self, set: &Dataset, row: usize, why: &str) -> Result<()> {
        let there = names_of(set, row)?;
        let is_same = |(&channel, name): (&usize, &String)| {
            there.get(channel).map_or(name.is_empty(), |other| other == name)
        };
        if self.channels.iter().zip(self.names.iter()).all(is_same) {
            return Ok(());
        }
        let (numbers, names) = (&self.channels, &self.names);
        let cause = format_args!(
            "the channels are {there:?}, and channels {numbers:?} of the first image are {names:?}; {why}"
        );
        Err(Error::new(path_of_set(set.store()), cause).row(row).choice().hint(format_args!(
            "give each channel a name of its own and write {{channel}} into the path, or load these rows by a loader of \
             their own ({})",
            option("rows")
        )))
    }
}

/// The error of a row that has no channel of a name, or two.
fn refusal(set: &Dataset, row: usize, name: &str, is_twice: bool, there: &[String]) -> Error {
    let store = set.store();
    let parts = store.hints().set_parts();
    let part = parts.iter().find(|part| part.contains(row));
    let of = part.map_or_else(String::new, |part| format!(" of {}", part.name));
    let has = if is_twice { "two channels" } else { "no channel" };
    let cause = format_args!("the image{of} has {has} {name:?}: its channels are {there:?}");
    Error::new(path_of_set(store), cause).row(row).choice().hint(format_args!(
        "take channels that all images have, load these rows by a loader of their own ({}), or give numbers of channels. \
         Statistics and illumination by the names of channels need them, too",
        option("rows")
    ))
}

fn names_of(dataset: &Dataset, row: usize) -> Result<Vec<String>> {
    Ok(dataset.metadata(row)?.channels.into_iter().map(|channel| channel.name).collect())
}

/// Rows whose names are asked for at most, where those of the first cannot be read.
const MAX_TRIED_ROWS: usize = 100;

impl Dataset {
    /// A transform as it is for the images of this set. It has what the set says of itself, and statistics in the order of its channels.
    ///
    /// # Errors
    /// Statistics that lack a channel. A server that does not answer.
    pub(crate) fn transform_of_set(&self, transform: Transform) -> Result<Transform> {
        let transform = transform.for_set(self.store().hints());
        if !transform.has_named_statistics() {
            return Ok(transform);
        }
        let first = self.first_channels()?;
        let Some(there) = first else { return Ok(transform) };
        let placed = transform.with_statistics_of(&there);
        placed.map_err(|error| error.at(&path_of_set(self.store()), None).choice())
    }

    /// The names of the channels of the first row that can be read. The error of one that cannot is reported when its turn comes.
    ///
    /// # Errors
    /// A server that does not answer: each row would wait for it.
    fn first_channels(&self) -> Result<Option<Vec<String>>> {
        for row in 0..self.len().min(MAX_TRIED_ROWS) {
            match names_of(self, row).and_then(|there| Ok((there, self.row_info(row)?.shape.c()))) {
                Ok((mut there, channels)) => {
                    // Images without names have as many channels all the same.
                    there.resize(channels, String::new());
                    return Ok(Some(there));
                }
                Err(error) if self.is_remote() && error.may_pass() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(None)
    }
}
