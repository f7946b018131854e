//! Images of a set that have other channels at the same numbers: taken by number, a batch of them has two stains in one channel.
//!
//! ```text
//!   sets that are one:   b.parquet: DNA ER     c.parquet: AGP DNA ─▶ b: DNA ER, c: AGP DNA
//!   images of one set:   x.ome.tif: DNA ER     y.ome.tif: ER DNA  ─▶ x: DNA ER, y: ER DNA
//! ```
//!
//! The first image of each set is looked at, and images all over the whole. Metadata alone is read.

use crate::store::RowsAhead;
use crate::{SetPart, Store};
use std::collections::HashSet;
use std::fmt;
use wellread_image::ImageMetadata;

/// Images that a command which reads all of a set looks at, at most: a small part of the time that it takes.
pub const MAX_IMAGES: usize = 10_000;

/// Sets whose first images are looked at, at most: of some storage each look is a request.
const MAX_SETS: usize = 64;

/// Further images that are looked at of a set behind a network, at most.
const MAX_REMOTE: usize = 8;

/// Two sets, or two images of one, that have other channels at the same numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedChannels {
    /// The name of each, and the names of those channels that are taken.
    pub two: [(String, Vec<String>); 2],
}

impl fmt::Display for MixedChannels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(one, own), (other, there)] = &self.two;
        write!(
            f,
            "channels are {own:?} in {one}, and {there:?} in {other}: taken by number they are mixed, and by name each image's own are taken"
        )
    }
}

/// Finds two sets in `store`, or two of its images, that have other channels at the same numbers. `None` where all that were looked at
/// agree, or have no names. `rows` and `channels` narrow the search to these rows and to the channels of these numbers.
///
/// Beside the first image of each set, `most` images are looked at, all over the rows, and fewer where they lie behind a network.
/// An image that cannot be read is passed over: the loader tells of it when its turn comes. A server that does not answer ends the search.
pub fn find(
    store: &dyn Store,
    rows: Option<&[usize]>,
    channels: Option<&[usize]>,
    most: usize,
) -> Option<MixedChannels> {
    let parts = store.hints().set_parts();
    let names = |metadata: ImageMetadata| -> Option<Vec<String>> {
        let there: Vec<String> = metadata.channels.into_iter().map(|channel| channel.name).collect();
        let taken: Vec<String> = match channels {
            None => there,
            Some(numbers) => numbers.iter().map(|&n| there.get(n).cloned().unwrap_or_default()).collect(),
        };
        taken.iter().any(|name| !name.is_empty()).then_some(taken)
    };
    let mut first: Option<(usize, Vec<String>)> = None;
    let looked_at = looked_at(store, &parts, rows, most);
    // Behind a network their heads are asked for together.
    let mut ahead = RowsAhead::of_heads(store, looked_at.len(), |i| looked_at.get(i).copied());
    for (i, &row) in looked_at.iter().enumerate() {
        ahead.before(i);
        let metadata = match store.metadata(row) {
            Ok(metadata) => metadata,
            Err(error) if error.may_pass() && store.remote_path().is_some() => return None,
            Err(_) => continue,
        };
        let Some(there) = names(metadata) else { continue };
        match &first {
            None => first = Some((row, there)),
            Some((one, own)) if are_mixed(own, &there) => {
                let [own_name, name] = called(store, &parts, [*one, row]);
                return Some(MixedChannels { two: [(own_name, own.clone()), (name, there)] });
            }
            Some(_) => {}
        }
    }
    None
}

/// Whether two images have channels of other names at the same number.
pub fn are_mixed(one: &[String], other: &[String]) -> bool {
    one.iter().zip(other).any(|(one, other)| !one.is_empty() && !other.is_empty() && one != other)
}

/// The rows to look at: the first of each set, then some all over, the last one too.
fn looked_at(store: &dyn Store, parts: &[SetPart], rows: Option<&[usize]>, most: usize) -> Vec<usize> {
    let wanted: Option<HashSet<usize>> = rows.map(|rows| rows.iter().copied().collect());
    let is_wanted = |row: &usize| wanted.as_ref().is_none_or(|wanted| wanted.contains(row));
    let first = |part: &SetPart| part.rows.iter().cloned().flatten().find(is_wanted);
    let mut found: Vec<usize> = parts.iter().take(MAX_SETS).filter_map(first).collect();
    let all = rows.map_or(store.len(), <[usize]>::len);
    let most = all.min(if store.remote_path().is_some() { most.min(MAX_REMOTE) } else { most });
    let at = |i: usize| if most == all { i } else { i * (all - 1) / (most - 1).max(1) };
    found.extend((0..most).map(at).filter_map(|at| match rows {
        None => Some(at),
        Some(rows) => rows.get(at).copied(),
    }));
    found
}

/// Names of two rows: those of their sets where these are two, else their own, by which one can be found.
fn called(store: &dyn Store, parts: &[SetPart], rows: [usize; 2]) -> [String; 2] {
    if let [Some(one), Some(other)] = rows.map(|row| parts.iter().find(|part| part.contains(row)))
        && one.name != other.name
    {
        return [one.name.clone(), other.name.clone()];
    }
    let names = rows.map(|row| store.name(row).unwrap_or_default());
    if names[0] == names[1] || names.iter().any(String::is_empty) {
        return rows.map(|row| format!("row {row}"));
    }
    names
}
