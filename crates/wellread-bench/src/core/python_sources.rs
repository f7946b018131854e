//! The sets that frameworks in Python read, and one turn of it: the request, and the check of the pixels of
//! its answer.
//!
//! ```text
//!  Frameworks × sets × readers ─▶ sources ─▶ Source::variant ─▶ Source::turn: request ─▶ answer, pixels compared ─▶ Measurement
//! ```
//!
//! A benchmark lists its own variants and then adds those of the frameworks (its file `python.rs`): one per source and
//! whatever the benchmark varies.

use super::frameworks::{InPython, Reader};
use super::measurement::{Keys, MIN_ITEMS, Measurement, Unavailable, Variant};
use super::session::{MIN_ROUNDS, RowFiles, Session};
use crate::choices::Preset;
use crate::data::FormatSet;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use wellread_measure::interleave::Turn;
use wellread_measure::path_text;
use wellread_report::Cell;
use wellread_worker::Pixels;

/// Fewest seconds that a turn is given, so that a loader's processes can start.
const MIN_TURN_SECONDS: f64 = 0.4;
/// Seconds that a peer is given to have all its pixels compared, at least.
const MIN_FULL_CHECK_SECONDS: f64 = 10.0;

/// The lists of a benchmark: variants that are measured, and those that cannot be.
pub(crate) type Lists<'l, 's> = (&'l mut Vec<Variant<'s>>, &'l mut Vec<Unavailable>);

/// Marks a benchmark's own variants as such, where frameworks stand beside them.
pub(crate) fn mark_own(session: &Session<'_>, (variants, unavailable): Lists<'_, '_>) {
    if session.config.in_python() {
        let keys =
            variants.iter_mut().map(|v| &mut v.keys).chain(unavailable.iter_mut().map(|u| &mut u.keys));
        for keys in keys {
            keys.splice(1..1, [("framework", Cell::from("rust")), ("loader", Cell::from("wellread"))]);
        }
    }
}

/// A framework, a set and a reader of it.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    pub(crate) session: &'s Session<'s>,
    pub(crate) python: &'s InPython,
    pub(crate) set: &'s FormatSet,
    pub(crate) reader: &'s Reader,
}

impl<'s> Source<'s> {
    /// The keys that tell a variant of it apart.
    pub(crate) fn keys(&self, more: Keys) -> Keys {
        let mut keys: Keys = vec![
            ("format", Cell::from(self.set.format)),
            ("framework", Cell::from(self.python.framework)),
            ("loader", Cell::from(&self.reader.name)),
        ];
        keys.extend(more);
        keys
    }

    /// The request to a worker for a turn.
    pub(crate) fn request(&self, track: &str, full: bool, more: Value) -> Value {
        let config = self.session.config;
        let share_s = self.session.turn_seconds().max(MIN_TURN_SECONDS);
        let mut request = Map::new();
        let common = json!({
            "do": track, "format": self.set.format, "path": path_text::text(&self.set.path), "reader": self.reader.name,
            "copies": !config.in_place,
            "crop": config.crop, "scale": config.scale, "dtype": self.session.expected.pixel_type(), "seed": config.seed, "full": full, "share_s": share_s,
            "full_s": (!self.reader.is_own()).then(|| (share_s * MIN_ROUNDS as f64).max(MIN_FULL_CHECK_SECONDS)),
            "least": MIN_ITEMS,
            "files": (!self.reader.is_own()).then(|| row_files(self.session, self.set).ok().flatten()).flatten().as_deref(),
        });
        for part in [common, more] {
            if let Value::Object(part) = part {
                request.extend(part);
            }
        }
        request.into()
    }

    /// One turn, its pixels compared with those of a preset; `measure` makes a measurement of the answer.
    pub(crate) fn turn(
        &self,
        turn: Turn,
        preset: Preset,
        request: &Value,
        measure: impl FnOnce(&Value) -> Result<Measurement>,
    ) -> Result<(Measurement, Check<'s>)> {
        let mut check = Check::new(self.session, preset);
        let measured = self.python.turn(turn, request, |pixels| check.compare(pixels), measure)?;
        Ok((Measurement { verified: check.is_verified(), ..measured }, check))
    }

    /// A variant that measures by `job`.
    pub(crate) fn variant(
        self,
        keys: Keys,
        job: impl FnMut(&Self, Turn) -> Result<Measurement> + 's,
    ) -> Variant<'s> {
        let (keys, peer, mut job) = (self.keys(keys), !self.reader.is_own(), job);
        Variant { keys, peer, job: Box::new(move |turn| job(&self, turn)) }
    }
}

/// The file of each row, or its folder of OME-Zarr, of a set that is measured as it lies there. It is for readers that read such alone.
/// They are in the rows' order, which need not be that of the names. `None` of sets that are written here, and of tables.
///
/// # Errors
/// Why such a reader cannot read the set.
fn find_row_files(session: &Session<'_>, set: &FormatSet) -> RowFiles {
    let is_zarr = match set.format {
        "tiff" | "image-folder" => false,
        "ome-zarr" => true,
        _ => return Ok(None),
    };
    if !session.config.in_place {
        return Ok(None);
    }
    let store = session.open(set).map_err(|error| format!("{error:#}"))?;
    let mut found = Vec::with_capacity(store.len());
    for row in 0..store.len() {
        let files = store.files_of(&[row]).map_err(|error| error.to_string())?;
        let file = match files.as_slice() {
            [first, ..] if is_zarr => {
                first.ancestors().find(|folder| folder.extension().is_some_and(|ending| ending == "zarr"))
            }
            [file] => Some(file.as_path()),
            _ => return Err("the rows are of several files each, which readers in Python do not put together (leave out --in-place)".to_owned()),
        };
        found.extend(file.map(|file| path_text::text(file).into_owned()));
    }
    let distinct = found.iter().collect::<HashSet<_>>().len();
    if found.len() < store.len() || distinct < store.len() {
        return Err("the rows are parts of a file or group, which readers in Python do not look for (leave out --in-place)".to_owned());
    }
    Ok(Some(found.into()))
}

/// As [`find_row_files`], looked for once.
fn row_files(session: &Session<'_>, set: &FormatSet) -> RowFiles {
    let mut known = session.row_files.borrow_mut();
    known.entry(set.format).or_insert_with(|| find_row_files(session, set)).clone()
}

/// Every framework with every set and every reader of it; missing ones go to `unavailable`.
pub(crate) fn sources<'s>(
    session: &'s Session<'s>,
    track: &'static str,
    unavailable: &mut Vec<Unavailable>,
) -> Vec<Source<'s>> {
    let mut sources = Vec::new();
    for python in session.frameworks.of(track) {
        for set in &session.prepared.sets {
            let parts = if session.config.source.cells().is_some() {
                Some(
                    "the rows are cells of images, which readers in Python do not cut out (leave out --in-place)",
                )
            } else if session.prepared.planes {
                Some(
                    "the rows are planes of images, which readers in Python do not make (leave out --in-place)",
                )
            } else {
                None
            };
            let parts = parts.filter(|_| session.config.in_place);
            if let Some(reason) = python.unavailable().or(set.error.as_deref()).or(parts) {
                let keys =
                    vec![("format", Cell::from(set.format)), ("framework", Cell::from(python.framework))];
                unavailable.push(Unavailable { keys, reason: reason.to_owned() });
                continue;
            }
            for reader in python.readers(session.config, set.format, track) {
                let source = Source { session, python, set, reader };
                let files = || if reader.is_own() { None } else { row_files(session, set).err() };
                match reader.unavailable.clone().or_else(files) {
                    Some(reason) => unavailable.push(Unavailable { keys: source.keys(vec![]), reason }),
                    None => sources.push(source),
                }
            }
        }
    }
    sources
}

/// Compares what a worker delivered with what must be.
pub(crate) struct Check<'s> {
    session: &'s Session<'s>,
    preset: Preset,
    verified: bool,
    /// How often each row came, where all of them are to come.
    pub(crate) seen: Vec<usize>,
}

impl<'s> Check<'s> {
    fn new(session: &'s Session<'s>, preset: Preset) -> Self {
        Self { session, preset, verified: true, seen: vec![0; session.prepared.expected.len()] }
    }

    /// Whether there were pixels, and all of them were the expected ones.
    fn is_verified(&self) -> bool {
        self.verified && self.seen.iter().any(|&times| times > 0)
    }

    fn compare(&mut self, pixels: &Pixels) {
        let each = pixels.values.len() / pixels.rows.len().max(1);
        self.verified &= each * pixels.rows.len() == pixels.values.len();
        for (&row, values) in pixels.rows.iter().zip(pixels.values.chunks(each.max(1))) {
            self.verified &= self.session.expected.agrees(self.preset, row, values, pixels.all);
            if let Some(seen) = self.seen.get_mut(row) {
                *seen += 1;
            }
        }
    }
}

/// Nanoseconds of a worker as seconds.
pub(crate) fn seconds(nanoseconds: &[u64]) -> Vec<f64> {
    nanoseconds.iter().map(|&ns| ns as f64 * 1e-9).collect()
}
