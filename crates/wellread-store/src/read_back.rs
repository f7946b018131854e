//! Reading back what a conversion has written, before it says that it is done.
//!
//! ```text
//!  source ──scan──▶ convert ──digest of each image──▶ Digests ─┐
//!                      └──▶ target (complete, opened again) ───┴──▶ check: rows, names, shapes, pixels, columns
//! ```
//!
//! A digest is XXH3-64 of the pixels as they were handed to the writer. It guards against mistakes of a writer or a
//! reader and against bad storage, not against intent. Checksums that are published are SHA-256 ([`crate::checksum`]).

use crate::features::{self, FeatureColumns};
use crate::preview::own_color;
use crate::words::counted;
use crate::{Error, Format, Result, RowInfo, Scratch, Store, read_region};
use arrow_array::Array as _;
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use wellread_image::ome_arrow::{ROW_ID, UNKNOWN_ILLUMINATION};
use wellread_image::ome_xml::{ILLUMINATION_TYPES, is_xml_char};
use wellread_image::{Channel, ImageMetadata};
use xxhash_rust::xxh3::xxh3_64;

const ACQUIRED: &str = "times of acquisition";

/// About how many bytes of columns are read back at once.
const MOST_COLUMN_BYTES: usize = 256 << 20;

/// A fact of an image by name, and whether an image has it.
type Fact = (&'static str, fn(&ImageMetadata) -> bool);

/// All of [`SIZES_ALONG`], where the size of no axis is kept.
const PIXEL_SIZES: &str = "pixel sizes";
/// The size of a pixel along each axis.
const SIZES_ALONG: [&str; 3] = ["pixel sizes along X", "pixel sizes along Y", "pixel sizes along Z"];

/// Facts of images that a format may have no place for. The last three are changed by a format that has a place for the others.
const FACTS: [Fact; 12] = [
    ("channel names", |m| m.channels.iter().any(|c| !c.name.is_empty())),
    ("wavelengths", |m| m.channels.iter().any(has_wavelength)),
    (SIZES_ALONG[0], |m| has_sizes(m)[0]),
    (SIZES_ALONG[1], |m| has_sizes(m)[1]),
    (SIZES_ALONG[2], |m| has_sizes(m)[2]),
    ("times between time points", |m| m.time_increment.is_some()),
    (ACQUIRED, |m| m.acquired.is_some()),
    ("channel colours", |m| m.channels.iter().any(|c| own_color(c).is_some())),
    ("kinds of illumination", |m| m.channels.iter().any(|c| illumination(c).is_some())),
    ("control characters in channel names (U+FFFD stands in their place)", |m| {
        m.channels.iter().any(|c| c.name.contains(|c| !is_xml_char(c)))
    }),
    ("kinds of illumination beside OME's (\"Other\" stands in their place)", |m| {
        m.channels.iter().any(|c| illumination(c).is_some_and(|kind| !ILLUMINATION_TYPES.contains(&kind)))
    }),
    ("zones of times of acquisition (the times are in UTC)", has_zone),
];

/// Digests of the images that a conversion has written, by row of its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    pixels: Vec<Option<u64>>,
    /// The first row that has each of [`FACTS`].
    described: [Option<usize>; FACTS.len()],
}

impl Digests {
    /// For `rows` images, none of which is known yet.
    pub(crate) fn new(rows: usize) -> Self {
        Self { pixels: vec![None; rows], described: [None; FACTS.len()] }
    }

    /// Takes the pixels of a row that is written now.
    pub(crate) fn note(&mut self, row: usize, pixels: &[u8]) {
        self.pixels[row] = Some(xxh3_64(pixels));
    }

    /// Takes the metadata of a row, which is written now or was written before.
    pub(crate) fn describe(&mut self, row: usize, metadata: &ImageMetadata) {
        for (first, (_, has)) in self.described.iter_mut().zip(FACTS) {
            if first.is_none() && has(metadata) {
                *first = Some(row);
            }
        }
    }
}

fn has_wavelength(channel: &Channel) -> bool {
    channel.emission_um.is_some() || channel.excitation_um.is_some()
}

/// The illumination of a channel, where somebody states it.
fn illumination(channel: &Channel) -> Option<&str> {
    channel.illumination.as_deref().filter(|kind| !kind.is_empty() && *kind != UNKNOWN_ILLUMINATION)
}

/// Whether the time of acquisition is one of a zone beside UTC, whose hours are others.
fn has_zone(metadata: &ImageMetadata) -> bool {
    let is_utc = |time: &str| ["Z", "z", "+00:00", "-00:00"].iter().any(|utc| time.ends_with(utc));
    let time = metadata.acquired.as_deref().filter(|time| !is_utc(time));
    time.is_some_and(|time| time.parse::<jiff::Timestamp>().is_ok())
}

/// Whether a name differs from another only by U+FFFD in place of control characters.
fn is_replaced(had: &str, has: &str) -> bool {
    let stands_for =
        |(c, there): (char, char)| c == there || !is_xml_char(c) && there == char::REPLACEMENT_CHARACTER;
    had != has && had.chars().count() == has.chars().count() && had.chars().zip(has.chars()).all(stands_for)
}

/// Whether X, Y and Z have a size of a pixel.
fn has_sizes(metadata: &ImageMetadata) -> [bool; 3] {
    [&metadata.physical_size_x, &metadata.physical_size_y, &metadata.physical_size_z].map(Option::is_some)
}

/// Reads the first `rows` rows of `target` with `jobs` threads and compares them with those of `source`: names, shapes and
/// pixels. `done` is called once per image.
///
/// Rows without a digest (of an interrupted run) are read from the source once more. So are rows whose pixel type the
/// target has changed; their values are compared.
///
/// Returns what the target has no place for: `channel names`, `pixel sizes` and the like. It looks at the first image
/// that has each of them. If the target holds the time of acquisition of that image, and not those of others, there is
/// `some times of acquisition`.
///
/// # Errors
/// The first row, by number, that differs or that cannot be read.
pub fn check(
    source: &dyn Store,
    digests: &Digests,
    target: &dyn Store,
    rows: usize,
    jobs: usize,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<&'static str>> {
    if target.len() != source.len() {
        return Err(Error::new(
            target.path(),
            format_args!("has {}, {} were written", counted(target.len(), "image"), source.len()),
        ));
    }
    // Neighbouring rows share pages and chunks, and some stores a query: threads take them in groups.
    let group = target.hints().rows_per_read.max(16);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let has_lost_time = AtomicBool::new(false);
    let first: Mutex<Option<(usize, Error)>> = Mutex::default();
    let end = rows.min(target.len());
    crate::threads::share(jobs.clamp(1, end.max(1)), || {
        while !failed.load(Ordering::Relaxed) {
            let start = next.fetch_add(group, Ordering::Relaxed);
            if start >= end {
                return;
            }
            let mut row = start;
            let rows = start..(start + group).min(end);
            let checked = target.scan(rows.clone(), &mut |at, info, pixels| {
                if at != row {
                    return Err(passed_over(target));
                }
                compare(source, digests, target, at, info, pixels)?;
                if !has_lost_time.load(Ordering::Relaxed) && loses_acquisition_time(source, target, at) {
                    has_lost_time.store(true, Ordering::Relaxed);
                }
                row = at + 1;
                done();
                Ok(())
            });
            let checked =
                checked.and_then(|()| if row == rows.end { Ok(()) } else { Err(passed_over(target)) });
            if let Err(error) = checked {
                failed.store(true, Ordering::Relaxed);
                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|(other, _)| row < *other) {
                    *first = Some((row, error.row(row)));
                }
            }
        }
    });
    let first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, error)) = first {
        return Err(error);
    }
    let mut lost = left_out(source, digests, target)?;
    if has_lost_time.into_inner() && !lost.contains(&ACQUIRED) {
        lost.push("some times of acquisition");
    }
    Ok(lost)
}

/// The error of an image that its reader has not handed on, so that it was compared with nothing.
fn passed_over(target: &dyn Store) -> Error {
    Error::new(target.path(), "was passed over by its reader")
}

/// Compares the columns beside the first `rows` rows of `target` with `columns`, which its writer was given. They may have the names and types
/// that its format has in place of theirs.
///
/// # Errors
/// A column that is not there, or the first row of one with other values; columns that cannot be read.
pub fn check_columns(
    columns: &FeatureColumns,
    format: &Format,
    target: &dyn Store,
    rows: usize,
) -> Result<()> {
    let wrong = |e| Error::new(target.path(), e);
    let (mut wanted, _) = features::renamed(columns, &format.own_columns).map_err(wrong)?;
    if !format.keeps_durations {
        wanted = features::without_durations(&wanted).map_err(wrong)?;
    }
    let wanted = wanted.slice(0, rows.min(wanted.num_rows()));
    let has: HashSet<String> = target.hints().feature_names().into_iter().collect();
    let mut names = vec![];
    for (field, column) in wanted.schema_ref().fields().iter().zip(wanted.columns()) {
        let name = field.name();
        if has.contains(name) {
            names.push(name.clone());
        } else if column.null_count() < column.len() && name != ROW_ID {
            return Err(Error::new(target.path(), format_args!("has no column {name:?}, which was written")));
        }
    }
    // The columns that were written are in memory already: only some of these are beside them.
    let at_once = (MOST_COLUMN_BYTES / (8 * rows.max(1))).max(1);
    for names in names.chunks(at_once) {
        let Some(found) = target.hints().features(names)? else { continue };
        let found = found.slice(0, rows.min(found.num_rows()));
        if let Some((name, row)) = features::first_difference(&wanted, &found) {
            let cause = format_args!("has another value in the column {name:?} than was written");
            return Err(Error::new(target.path(), cause).row(row));
        }
    }
    Ok(())
}

/// Whether an image of `target` lacks its time of acquisition. The target may have none of that year.
fn loses_acquisition_time(source: &dyn Store, target: &dyn Store, row: usize) -> bool {
    let has = |store: &dyn Store| store.metadata(row).is_ok_and(|metadata| metadata.acquired.is_some());
    has(source) && !has(target)
}

/// The facts that `target` lacks: of the first image, and of the first one that has each of them by `digests`. No pixels are read.
///
/// # Errors
/// Metadata that cannot be read.
pub fn left_out(source: &dyn Store, digests: &Digests, target: &dyn Store) -> Result<Vec<&'static str>> {
    if source.is_empty() {
        return Ok(vec![]);
    }
    let rows: BTreeSet<usize> = digests.described.iter().copied().flatten().chain([0]).collect();
    let mut all = [false; FACTS.len()];
    let mut keeps_a_size = false;
    for row in rows {
        let has = target.metadata(row)?;
        keeps_a_size |= has_sizes(&has).contains(&true);
        for (all, lost) in all.iter_mut().zip(lost(&source.metadata(row)?, &has)) {
            *all |= lost;
        }
    }
    let lost = FACTS.iter().zip(all).filter(|(_, is_lost)| *is_lost).map(|((what, _), _)| *what);
    let named = |what| if keeps_a_size || !SIZES_ALONG.contains(&what) { what } else { PIXEL_SIZES };
    let mut named: Vec<&'static str> = lost.map(named).collect();
    named.dedup();
    Ok(named)
}

/// Which of [`FACTS`] an image had and has no more.
fn lost(had: &ImageMetadata, has: &ImageMetadata) -> [bool; FACTS.len()] {
    let wavelengths = |m: &ImageMetadata| m.channels.iter().filter(|&c| has_wavelength(c)).count();
    let pairs: Vec<(&Channel, Option<&Channel>)> =
        had.channels.iter().enumerate().map(|(i, channel)| (channel, has.channels.get(i))).collect();
    let has_replaced = |(channel, there): (&Channel, Option<&Channel>)| {
        there.is_some_and(|there| is_replaced(&channel.name, &there.name))
    };
    // A picture's channels are called red, green and blue, whatever they were.
    let is_renamed = |(channel, there): (&Channel, Option<&Channel>)| {
        !channel.name.is_empty()
            && there.is_none_or(|there| there.name != channel.name)
            && !has_replaced((channel, there))
    };
    let is_uncolored = |(channel, there): (&Channel, Option<&Channel>)| {
        own_color(channel).is_some() && own_color(channel) != there.and_then(own_color)
    };
    let is_dark = |(channel, there): (&Channel, Option<&Channel>)| {
        illumination(channel).is_some() && there.and_then(illumination).is_none()
    };
    let is_of_another_kind = |(channel, there): (&Channel, Option<&Channel>)| {
        let kinds = illumination(channel).zip(there.and_then(illumination));
        kinds.is_some_and(|(kind, there)| kind != there)
    };
    let (sizes, there) = (has_sizes(had), has_sizes(has));
    [
        pairs.iter().copied().any(is_renamed),
        wavelengths(has) < wavelengths(had),
        sizes[0] && !there[0],
        sizes[1] && !there[1],
        sizes[2] && !there[2],
        had.time_increment.is_some() && has.time_increment.is_none(),
        had.acquired.is_some() && has.acquired.is_none(),
        pairs.iter().copied().any(is_uncolored),
        pairs.iter().copied().any(is_dark),
        pairs.iter().copied().any(has_replaced),
        pairs.iter().copied().any(is_of_another_kind),
        has_zone(had) && has.acquired.is_some() && !has_zone(has),
    ]
}

fn compare(
    source: &dyn Store,
    digests: &Digests,
    target: &dyn Store,
    row: usize,
    info: RowInfo,
    pixels: &[u8],
) -> Result<()> {
    let wrong = |what: std::fmt::Arguments<'_>| Err(Error::new(target.path(), what));
    let (name, expected) = (target.name(row)?, source.name(row)?);
    if name != expected {
        return wrong(format_args!("is named {name:?}, the source's image is {expected:?}"));
    }
    let original = source.row_info(row)?;
    if info.shape != original.shape {
        return wrong(format_args!("has shape {}, the source's image has {}", info.shape, original.shape));
    }
    let same = match digests.pixels.get(row).copied().flatten() {
        Some(digest) if info.dtype == original.dtype => xxh3_64(pixels) == digest,
        _ => {
            let (mut scratch, mut own) = (Scratch::default(), vec![]);
            read_region(source, row, &original.shape.full(), &mut scratch, &mut own)?;
            if info.dtype == original.dtype {
                own == pixels
            } else {
                let equal = |i| {
                    info.dtype.value_at(pixels, i).to_bits() == original.dtype.value_at(&own, i).to_bits()
                };
                (0..info.shape.pixels()).all(equal)
            }
        }
    };
    if same { Ok(()) } else { wrong(format_args!("has other pixels than the source's image {expected:?}")) }
}
