//! The illumination fields of rows, each read from its file when the first row needs it.
//!
//! ```text
//!   row ──columns──▶ group ──┬─ the thread's last group ──────────────────────▶ fields of all channels
//!                            └─ kept? ─ no ─▶ path of (group, channel) ─▶ file ┘
//! ```
//!
//! Fields are kept up to a number of bytes, those that were used last. If two threads want a file at once, one reads it. In a
//! forked process, where a lock may be held for ever, nothing is kept but what a thread has of its last group.

use crate::dataset::Dataset;
use crate::transform::field::Field;
use crate::transform::{ChannelPaths, GroupFields, Piece};
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread_image::Shape;
use wellread_store::{Error, Result, features, process};

/// Bytes of fields that are kept at most, unless the loader's memory is bounded to less.
const MOST_BYTES: usize = 256 << 20;

/// The fields of the rows of a set.
pub(crate) struct RowFields {
    /// The opened set, for messages.
    set: PathBuf,
    /// The paths of each channel that is delivered; of one, where files have the planes of all.
    paths: Vec<ChannelPaths>,
    /// Names and numbers of these, for messages.
    channels: Vec<String>,
    columns: Vec<String>,
    /// The values of the columns of each group.
    values: Vec<Vec<Option<String>>>,
    /// The group of each row.
    groups: Vec<u32>,
    kept: Kept,
}

impl fmt::Debug for RowFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowFields({} groups, {} channels)", self.values.len(), self.paths.len())
    }
}

/// The error of columns of paths. Where one is not there, its hint names what is no column in a path.
fn with_channel(error: Error, columns: &[String], dataset: &Dataset) -> Error {
    let there = dataset.store().hints().feature_names();
    let are_there = columns.iter().all(|column| there.contains(column));
    if are_there { error } else { error.or_hint("write {channel} where the channel's name is meant") }
}

/// The fields of the group that a thread used last.
#[derive(Debug, Default)]
pub(crate) struct LastFields {
    of: Option<(Arc<RowFields>, u32)>,
    fields: Vec<Arc<Field>>,
}

impl LastFields {
    /// The field of an output channel: that of all of them where there is one.
    pub(crate) fn channel(&self, channel: usize) -> &Field {
        &self.fields[if self.fields.len() == 1 { 0 } else { channel }]
    }
}

impl RowFields {
    /// The fields of the rows of a set, of which `channels` are delivered.
    ///
    /// # Errors
    /// Columns that are not there or cannot be read, channels without the names that are asked for.
    pub(crate) fn of(dataset: &Dataset, fields: &GroupFields, channels: &[usize]) -> Result<Self> {
        let set = dataset.store().path().to_owned();
        let refuse = |cause: String| Error::new(&set, cause).choice();
        let names: Vec<String> = if fields.has_names() {
            dataset.metadata(0)?.channels.into_iter().map(|channel| channel.name).collect()
        } else {
            vec![]
        };
        let channels = if fields.has_channels() { channels } else { &channels[..channels.len().min(1)] };
        let (mut paths, mut called) = (vec![], vec![]);
        for &channel in channels {
            let name = names.get(channel).map(String::as_str).filter(|name| !name.is_empty());
            paths.push(fields.of_channel(name, channel).map_err(refuse)?);
            called.push(name.map_or_else(|| channel.to_string(), str::to_owned));
        }
        let mut columns: Vec<String> = vec![];
        let pieces = paths.iter().flat_map(|(flat, dark)| flat.iter().chain(dark.iter().flatten()));
        for piece in pieces {
            if let Piece::Column(column) = piece
                && !columns.contains(column)
            {
                columns.push(column.clone());
            }
        }
        let (mut groups, mut values) = (vec![0; dataset.len()], vec![vec![]]);
        if !columns.is_empty() {
            values.clear();
            let mut number: HashMap<String, u32> = HashMap::new();
            let keys = features::written_keys(dataset.store(), &columns)
                .map_err(|error| with_channel(error, &columns, dataset))?;
            for (row, key) in keys.into_iter().enumerate() {
                groups[row] = *number.entry(key).or_insert_with_key(|key| {
                    values.push(features::key_values(key));
                    values.len() as u32 - 1
                });
            }
        }
        Ok(Self { set, paths, channels: called, columns, values, groups, kept: Kept::new() })
    }

    /// Keeps no more than so many bytes of fields of planes of so many pixels, and returns how many that will be at most.
    pub(crate) fn keep_at_most(&self, bytes: usize, pixels: usize) -> usize {
        let planes = self.values.len().saturating_mul(self.paths.len());
        let all = planes.saturating_mul(pixels).saturating_mul(2 * size_of::<f32>());
        let most = self.kept.most.fetch_min(bytes, Ordering::Relaxed).min(bytes);
        all.min(most)
    }

    /// Whether all columns of a row have values.
    ///
    /// # Errors
    /// No such row, or one without.
    pub(crate) fn check(&self, row: usize) -> Result<u32> {
        let group = self.groups.get(row).copied();
        let group = group.ok_or_else(|| Error::no_such_row(&self.set, row, self.groups.len()))?;
        let mut values = self.values[group as usize].iter().zip(&self.columns);
        match values.find(|(value, _)| value.is_none()) {
            None => Ok(group),
            Some((_, column)) => Err(Error::new(
                &self.set,
                format_args!("the column {column:?}, which tells the illumination field, has no value"),
            )
            .row(row)
            .choice()),
        }
    }

    /// Makes `last` hold the fields of a row of this shape.
    ///
    /// # Errors
    /// A file that cannot be read or does not fit the image: it names row, group, channel and file. One that cannot be read is no
    /// fault of the image.
    pub(crate) fn find(self: &Arc<Self>, row: usize, shape: Shape, last: &mut LastFields) -> Result<()> {
        let group = self.check(row)?;
        let is_last = last.of.as_ref().is_some_and(|(of, known)| Arc::ptr_eq(of, self) && *known == group);
        if !is_last {
            (last.of, last.fields) = (None, vec![]);
            for channel in 0..self.paths.len() {
                let field = self.kept.get((group, channel as u32), || self.read(group, channel));
                let field = field.map_err(|error| {
                    let named = self.named(row, group, channel, &error).of_shared_file();
                    if error.may_pass() { named } else { named.choice() }
                });
                last.fields.push(field?);
            }
            last.of = Some((Arc::clone(self), group));
        }
        for (channel, field) in last.fields.iter().enumerate() {
            let planes = if self.paths.len() == 1 { [1, shape.c()] } else { [1, 1] };
            let cause = match field.check(shape) {
                Err(error) => error.cause,
                Ok(()) if planes.contains(&field.planes()) => continue,
                Ok(()) => format!("has {} planes, where one channel has one", field.planes()),
            };
            let [flat, _] = self.files(group, channel);
            let error = Error::new(flat.unwrap_or_default(), cause);
            last.of = None;
            return Err(self.named(row, group, channel, &error));
        }
        Ok(())
    }

    /// An error with all that tells what it is about.
    fn named(&self, row: usize, group: u32, channel: usize, error: &Error) -> Error {
        let values = self.columns.iter().zip(&self.values[group as usize]);
        let mut of: Vec<String> = values
            .map(|(column, value)| format!("{column} {}", value.as_deref().unwrap_or("null")))
            .collect();
        if self.paths.len() > 1 {
            of.push(format!("channel {}", self.channels[channel]));
        }
        let of = if of.is_empty() { String::new() } else { format!(" of {}", of.join(", ")) };
        let named =
            Error::new(error.path(), format_args!("the illumination field{of}: {}", error.cause())).row(row);
        match error.hint_text() {
            Some(hint) => named.hint(hint),
            None => named,
        }
    }

    /// The files of a group and channel: flat field and dark field.
    fn files(&self, group: u32, channel: usize) -> [Option<PathBuf>; 2] {
        let values = &self.values[group as usize];
        let path = |pieces: &Vec<Piece>| {
            let text = pieces.iter().map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Column(name) => {
                    let at = self.columns.iter().position(|column| column == name);
                    at.and_then(|at| values.get(at)?.as_deref()).unwrap_or("")
                }
            });
            PathBuf::from(text.collect::<String>())
        };
        let (flat, dark) = &self.paths[channel];
        [Some(path(flat)), dark.as_ref().map(path)]
    }

    fn read(&self, group: u32, channel: usize) -> Result<Field> {
        let [flat, dark] = self.files(group, channel);
        Field::open(flat.unwrap_or_default(), dark.as_deref())
    }
}

/// A group and a channel.
type Key = (u32, u32);

/// Fields that are kept.
struct Kept {
    /// The process that keeps them.
    process: u32,
    most: AtomicUsize,
    bytes: AtomicUsize,
    clock: AtomicU64,
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
}

/// A field's place: the thread that has its lock reads the file.
#[derive(Default)]
struct Slot {
    field: Mutex<Option<Arc<Field>>>,
    /// Bytes, once it was read.
    bytes: AtomicUsize,
    /// When it was used last.
    used: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    fn new() -> Self {
        let (most, bytes) = (AtomicUsize::new(MOST_BYTES), AtomicUsize::new(0));
        Self { process: process::id(), most, bytes, clock: AtomicU64::new(0), slots: Mutex::default() }
    }

    /// A field, read where it is not kept.
    fn get(&self, key: Key, read: impl FnOnce() -> Result<Field>) -> Result<Arc<Field>> {
        if process::id() != self.process {
            return read().map(Arc::new);
        }
        let slot = Arc::clone(lock(&self.slots).entry(key).or_default());
        slot.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let mut field = lock(&slot.field);
        if let Some(field) = &*field {
            return Ok(Arc::clone(field));
        }
        let found = Arc::new(read()?);
        *field = Some(Arc::clone(&found));
        drop(field);
        self.admit(key, &slot, found.bytes());
        Ok(found)
    }

    /// Counts a field that was read, and forgets those used least recently until all that are kept fit.
    fn admit(&self, key: Key, slot: &Arc<Slot>, bytes: usize) {
        let mut slots = lock(&self.slots);
        // Only one that is still here counts.
        if !slots.get(&key).is_some_and(|own| Arc::ptr_eq(own, slot)) {
            return;
        }
        slot.bytes.store(bytes, Ordering::Relaxed);
        let mut all = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        while all > self.most.load(Ordering::Relaxed) {
            let loaded = slots.iter().filter(|(_, slot)| slot.bytes.load(Ordering::Relaxed) > 0);
            let oldest =
                loaded.min_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed)).map(|(key, _)| *key);
            let Some(gone) = oldest.and_then(|key| slots.remove(&key)) else { break };
            let bytes = gone.bytes.load(Ordering::Relaxed);
            all -= bytes;
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(value: f32) -> Field {
        Field::new([1, 4, 4], &[value; 16], None).unwrap()
    }

    #[test]
    fn fields_are_read_once_while_they_fit() {
        let kept = Kept::new();
        // Three of 64 bytes.
        kept.most.store(200, Ordering::Relaxed);
        let reads = AtomicUsize::new(0);
        let get = |number: u32| {
            kept.get((number, 0), || {
                reads.fetch_add(1, Ordering::Relaxed);
                Ok(field(1.0 + number as f32))
            })
            .unwrap()
        };
        for number in [0, 1, 2, 0, 1, 2] {
            assert_eq!(*get(number), field(1.0 + number as f32));
        }
        assert_eq!(reads.load(Ordering::Relaxed), 3);
        // The one that was used least recently goes.
        get(3);
        get(1);
        get(2);
        assert_eq!(reads.load(Ordering::Relaxed), 4);
        get(0);
        assert_eq!(reads.load(Ordering::Relaxed), 5);
        assert!(kept.bytes.load(Ordering::Relaxed) <= 200);
        let failed = kept.get((9, 0), || Err(Error::new("x", "broken")));
        assert!(failed.is_err());
        assert_eq!(*kept.get((9, 0), || Ok(field(2.0))).unwrap(), field(2.0), "a failure is not kept");
    }

    #[test]
    fn threads_that_want_a_file_at_once_read_it_once() {
        let kept = Kept::new();
        let reads = AtomicUsize::new(0);
        wellread_store::threads::share(4, || {
            for number in 0..20 {
                let read = || {
                    reads.fetch_add(1, Ordering::Relaxed);
                    Ok(field(1.0 + number as f32))
                };
                assert_eq!(*kept.get((number, 0), read).unwrap(), field(1.0 + number as f32));
            }
        });
        assert_eq!(reads.into_inner(), 20);
    }
}
