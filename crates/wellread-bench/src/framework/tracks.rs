//! One turn of each benchmark in a framework: the request, and the measurement from the raw samples of its answer.
//!
//! A benchmark lists its own variants and then calls the function of its name here, which adds those of the
//! frameworks: one per framework, format, reader and whatever the benchmark varies. Frameworks are measured without
//! further transforms (scaled to [0, 1], crop and factor as asked for), but for `normalize` and the user's own of single
//! images.

use super::{Conversion, InPython, Reader};
use crate::choices::{Access, Preset};
use crate::data::FormatSet;
use crate::suite::Session;
use crate::variants::{Keys, Measurement, Unavailable, Variant};
use crate::{conversion as conversions, dataset as single, model_loop, traffic};
use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::cell::Cell as Shared;
use wellread_loader::Traffic;
use wellread_measure::interleave::Turn;
use wellread_measure::samples::{Samples, median};
use wellread_report::Cell;
use wellread_store::words::counted;
use wellread_worker::Pixels;

/// Turns of a variant that are taken whatever the time budget: a warm-up and two rounds.
const LEAST_ROUNDS: usize = 3;
/// Fewest seconds that a turn is given, so that a loader's processes can start.
const LEAST_SHARE: f64 = 0.4;
/// Seconds that a peer is given to have all its pixels compared, at least.
const LEAST_FULL: f64 = 10.0;
/// Fewest images or steps of a turn, however slow they are.
const LEAST: usize = 4;
/// Steps of a warm-up turn, in which every pixel is compared.
const WARMUP_STEPS: usize = 2;
/// How often a conversion copied the pixels of an image.
pub(super) const NEVER: &str = "never";
pub(super) const ALWAYS: &str = "always";
pub(super) const SOMETIMES: &str = "sometimes";
/// Epochs of a turn are repeated until so many seconds have gone by; most epochs of a turn.
const TURN: (f64, u64) = (0.12, 50);

/// What a benchmark is made of: variants that are measured, and what cannot be.
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

/// Seconds that each of so many variants may take in a turn.
fn share(session: &Session<'_>, variants: usize) -> f64 {
    (session.seconds() / (variants * LEAST_ROUNDS).max(1) as f64).max(LEAST_SHARE)
}

/// A framework, a set and a reader of it.
#[derive(Clone, Copy)]
struct Source<'s> {
    session: &'s Session<'s>,
    python: &'s InPython,
    set: &'s FormatSet,
    reader: &'s Reader,
}

impl<'s> Source<'s> {
    fn keys(&self, more: Keys) -> Keys {
        let mut keys: Keys = vec![
            ("format", Cell::from(self.set.format)),
            ("framework", Cell::from(self.python.framework)),
            ("loader", Cell::from(&self.reader.name)),
        ];
        keys.extend(more);
        keys
    }

    fn request(&self, track: &str, share_s: f64, full: bool, more: Value) -> Value {
        let config = self.session.config;
        let mut request = Map::new();
        let common = json!({
            "do": track, "format": self.set.format, "path": self.set.path, "reader": self.reader.name,
            "crop": config.crop, "scale": config.scale, "dtype": self.session.expected.pixel_type(), "seed": config.seed, "full": full, "share_s": share_s,
            "full_s": (!self.reader.is_own()).then(|| (share_s * LEAST_ROUNDS as f64).max(LEAST_FULL)),
            "least": LEAST,
        });
        for part in [common, more] {
            if let Value::Object(part) = part {
                request.extend(part);
            }
        }
        request.into()
    }

    /// One turn, its pixels compared with those of a preset; `measure` makes a measurement of the answer.
    fn turn(
        &self,
        turn: Turn,
        preset: Preset,
        request: &Value,
        measure: impl FnOnce(&Value) -> Result<Measurement>,
    ) -> Result<(Measurement, Check<'s>)> {
        let mut check = Check::new(self.session, preset);
        let measured = self.python.turn(turn, request, |pixels| check.look(pixels), measure)?;
        Ok((Measurement { verified: check.verified, ..measured }, check))
    }

    fn variant(self, keys: Keys, job: impl FnMut(&Self, Turn) -> Result<Measurement> + 's) -> Variant<'s> {
        let (keys, peer, mut job) = (self.keys(keys), !self.reader.is_own(), job);
        Variant { keys, peer, job: Box::new(move |turn| job(&self, turn)) }
    }
}

/// Every framework with every set and every reader of it; what is missing goes to `unavailable`.
fn sources<'s>(
    session: &'s Session<'s>,
    track: &'static str,
    unavailable: &mut Vec<Unavailable>,
) -> Vec<Source<'s>> {
    let mut sources = Vec::new();
    for python in session.frameworks.of(track) {
        for set in &session.prepared.sets {
            let planes = session.config.in_place && session.prepared.planes;
            let planes = planes.then_some(
                "the rows are planes of images, which readers in Python do not make (leave out --in-place)",
            );
            if let Some(reason) = python.unavailable().or(set.error.as_deref()).or(planes) {
                let keys =
                    vec![("format", Cell::from(set.format)), ("framework", Cell::from(python.framework))];
                unavailable.push(Unavailable { keys, reason: reason.to_owned() });
                continue;
            }
            for reader in python.readers(session.config, set.format, track) {
                let source = Source { session, python, set, reader };
                match &reader.unavailable {
                    Some(reason) => {
                        unavailable.push(Unavailable { keys: source.keys(vec![]), reason: reason.clone() });
                    }
                    None => sources.push(source),
                }
            }
        }
    }
    sources
}

/// Compares what a worker delivered with what must be.
struct Check<'s> {
    session: &'s Session<'s>,
    preset: Preset,
    verified: bool,
    /// How often each row came, where all of them are to come.
    seen: Vec<usize>,
}

impl<'s> Check<'s> {
    fn new(session: &'s Session<'s>, preset: Preset) -> Self {
        Self { session, preset, verified: true, seen: vec![0; session.prepared.expected.len()] }
    }

    fn look(&mut self, pixels: &Pixels) {
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

fn seconds(nanoseconds: &[u64]) -> Vec<f64> {
    nanoseconds.iter().map(|&ns| ns as f64 * 1e-9).collect()
}

/// Transforms that single images are measured with.
#[derive(Clone, Copy)]
enum Single<'s> {
    Preset(Preset),
    User(&'s str),
}

impl<'s> Single<'s> {
    fn name(self) -> &'s str {
        match self {
            Self::Preset(preset) => preset.name(),
            Self::User(name) => name,
        }
    }

    /// What the worker's pixels are compared with: those that a transform of the user's own is given.
    fn delivered(self) -> Preset {
        match self {
            Self::Preset(preset) => preset,
            Self::User(_) => Preset::None,
        }
    }
}

/// Track 1.
pub(crate) fn dataset<'s>(session: &'s Session<'s>, own: usize, (variants, unavailable): Lists<'_, 's>) {
    let sources = sources(session, "dataset", unavailable);
    let config = session.config;
    // Without the plain images there is nothing to see a preset's cost by.
    let plain = config.transforms.contains(&Preset::None);
    let presets = config.transforms.iter().copied().filter(|p| plain && *p != Preset::Augment);
    let user = config.user_transforms.iter().map(|name| Single::User(name));
    let transforms: Vec<Single<'_>> = presets.map(Single::Preset).chain(user).collect();
    let share = share(session, own + sources.len() * config.access.len() * transforms.len());
    for source in sources {
        for &transform in &transforms {
            let reason = match transform {
                Single::User(name) => source.python.transform_unavailable(name),
                Single::Preset(_) => None,
            };
            if let Some(reason) = reason {
                let keys = source.keys(vec![("transform", Cell::from(transform.name()))]);
                unavailable.push(Unavailable { keys, reason });
                continue;
            }
            for &access in &config.access {
                let keys: Keys = vec![
                    ("access", Cell::from(access)),
                    ("transform", Cell::from(transform.name())),
                    ("cache", Cell::from("none")),
                ];
                let job = move |source: &Source<'s>, turn| take(source, access, transform, share, turn);
                let variant = source.variant(keys, job);
                // What the user's own transform does wrong is no peer's affair.
                let peer = variant.peer && matches!(transform, Single::Preset(_));
                variants.push(Variant { peer, ..variant });
            }
        }
    }
}

fn take(
    source: &Source<'_>,
    access: Access,
    transform: Single<'_>,
    share: f64,
    turn: Turn,
) -> Result<Measurement> {
    #[derive(Deserialize)]
    struct Answer {
        open_ns: u64,
        samples_ns: Vec<u64>,
        note: Option<String>,
    }
    let session = source.session;
    let n = session.prepared.expected.len();
    let rows = single::rows_of(access, n, session.config, turn.round as u64);
    let more = json!({ "rows": rows, "transform": transform.name() });
    let request = source.request("dataset", share, turn.warmup, more);
    let (measured, check) = source.turn(turn, transform.delivered(), &request, |answer| {
        let answer = Answer::deserialize(answer)?;
        let items = seconds(&answer.samples_ns);
        let values = vec![
            ("samples_per_sec", items.len() as f64 / items.iter().sum::<f64>()),
            (
                "first_epoch_images_per_s",
                items.len() as f64 / (answer.open_ns as f64 * 1e-9 + items.iter().sum::<f64>()),
            ),
            ("num_samples", items.len() as f64),
            ("open_s", answer.open_ns as f64 * 1e-9),
        ];
        let texts = answer.note.map(|note| ("note", note)).into_iter().collect();
        Ok(Measurement { values, texts, items, ..Measurement::default() })
    })?;
    let looked_at: usize = check.seen.iter().sum();
    let verified = measured.verified && looked_at == measured.items.len();
    Ok(Measurement { verified, ..measured })
}

/// Why a transform of the user's own is not measured in this program.
pub(crate) fn only_in_python(name: &str) -> String {
    format!("{name} runs in Python only, and this program measures its own transforms")
}

/// One epoch of track 2. What a kept loader did not do again is missing.
#[derive(Deserialize)]
struct Epoch {
    open_ns: Option<u64>,
    first_batch_ns: Option<u64>,
    whole_ns: u64,
    items_ns: Vec<u64>,
    images: usize,
    whole: bool,
    readers: Option<usize>,
    /// Bytes read and used when the epoch began and when it ended, of loaders that count them.
    traffic: Option<[(u64, u64); 2]>,
}

/// Track 2.
pub(crate) fn dataloader<'s>(session: &'s Session<'s>, own: usize, (variants, unavailable): Lists<'_, 's>) {
    let config = session.config;
    let sources = sources(session, "dataloader", unavailable);
    let share = share(session, own + sources.len() * config.batch_sizes.len() * config.workers.len());
    for Source { session, python, set, reader } in sources {
        for &batch_size in &config.batch_sizes {
            for &workers in &config.workers {
                let source = Source { session, python, set, reader };
                let keys = vec![("batch_size", Cell::from(batch_size)), ("workers", Cell::from(workers))];
                let images = session.prepared.expected.len();
                if batch_size > images {
                    let reason = format!("the set has only {}", counted(images, "image"));
                    unavailable.push(Unavailable { keys: source.keys(keys), reason });
                    continue;
                }
                let first = Shared::new(None);
                let key = format!("dataloader {} {} {batch_size} {workers}", set.format, reader.name);
                variants.push(source.variant(keys, move |source, turn| {
                    let request = source.request("dataloader", share, turn.warmup, json!({
                        "key": key, "keep": config.keep_open, "batch_size": batch_size, "workers": workers,
                        "first_epoch": turn.round as u64 * TURN.1, "turn_s": TURN.0, "most_epochs": TURN.1,
                    }));
                    let (measured, check) = source
                        .turn(turn, Preset::None, &request, |answer| epochs(session, answer, &first))?;
                    // A warm-up turn is one whole epoch, every row once, unless a slow peer was cut short; of any other
                    // the worker looks at some.
                    let once = |&times: &usize| times == 1 || times == 0 && !source.reader.is_own();
                    let mut seen = check.seen.iter();
                    let enough = if turn.warmup { seen.all(once) } else { seen.any(|&times| times > 0) };
                    Ok(Measurement { verified: measured.verified && enough, ..measured })
                }));
            }
        }
    }
}

/// A measurement of a turn's epochs. `first` is the time to the first batch of a loader that is kept, and images per second of its
/// first epoch.
fn epochs(session: &Session<'_>, answer: &Value, first: &Shared<Option<(f64, f64)>>) -> Result<Measurement> {
    let epochs = Vec::<Epoch>::deserialize(&answer["epochs"])?;
    // Of a loader that is kept the worker makes one more, once.
    let opened = Option::<Epoch>::deserialize(&answer["first"])?;
    let n = epochs.len().max(1) as f64;
    let images: usize = epochs.iter().map(|e| e.images).sum();
    let total: f64 = epochs.iter().map(|e| e.whole_ns as f64 * 1e-9).sum();
    let mean = |of: fn(&Epoch) -> Option<u64>| {
        let known: Vec<f64> = epochs.iter().filter_map(of).map(|ns| ns as f64 * 1e-9).collect();
        if known.is_empty() { f64::NAN } else { known.iter().sum::<f64>() / known.len() as f64 }
    };
    if let Some(opened) = &opened {
        let first_batch = opened.first_batch_ns.map_or(f64::NAN, |ns| ns as f64 * 1e-9);
        first.set(Some((first_batch, first_epoch(std::slice::from_ref(opened)))));
    }
    let (first_batch, first_epoch) =
        first.get().unwrap_or_else(|| (mean(|e| e.first_batch_ns), first_epoch(&epochs)));
    let image = session.prepared.delivered_bytes(session.config.crop);
    let whole = epochs.iter().all(|e| e.whole);
    let mut values = vec![
        ("samples_per_sec", images as f64 / total),
        ("first_epoch_images_per_s", first_epoch),
        ("first_batch_s", first_batch),
        // Of an epoch that was cut short there is no time.
        ("epoch_s", if whole { total / n } else { f64::NAN }),
        ("open_s", mean(|e| e.open_ns)),
        ("num_samples", images as f64 / n),
        ("readers", epochs.iter().find_map(|e| e.readers).map_or(f64::NAN, |n| n as f64)),
        ("delivered_bytes_per_s", images as f64 * image / total),
    ];
    let counted: Vec<_> = epochs.iter().filter_map(|e| e.traffic).collect();
    if let Some(&[(read, used), _]) = counted.first() {
        // Of loaders that each epoch opens anew every one begins at nothing.
        let more = |of: fn((u64, u64)) -> u64| {
            counted.iter().map(|&[a, b]| of(b).saturating_sub(of(a))).sum::<u64>()
        };
        let before = Traffic { read, used };
        let after = Traffic { read: read + more(|t| t.0), used: used + more(|t| t.1) };
        values.extend(traffic::amplification_since(before, after));
    }
    let items = epochs.iter().flat_map(|e| seconds(&e.items_ns)).collect();
    Ok(Measurement { values, items, ..Measurement::default() })
}

/// Images per second of epochs that opened a set, opening included; NaN where one was cut short, or found it open.
fn first_epoch(epochs: &[Epoch]) -> f64 {
    let seconds: Option<f64> = epochs
        .iter()
        .map(|epoch| Some((epoch.open_ns.filter(|_| epoch.whole)? + epoch.whole_ns) as f64 * 1e-9))
        .sum();
    seconds
        .map_or(f64::NAN, |seconds| epochs.iter().map(|epoch| epoch.images).sum::<usize>() as f64 / seconds)
}

/// Track 3.
pub(crate) fn model_loop<'s>(session: &'s Session<'s>, own: usize, (variants, unavailable): Lists<'_, 's>) {
    #[derive(Deserialize)]
    struct Answer {
        first_batch_ns: u64,
        first_step_ns: Option<u64>,
        waits_ns: Vec<u64>,
        steps_ns: Vec<u64>,
        images: usize,
        traffic: Option<(u64, u64)>,
        loss: Option<f64>,
        backend: String,
    }
    let config = session.config;
    let sources = sources(session, "loop", unavailable);
    let share = share(session, own + sources.len() * config.modes.len());
    for Source { session, python, set, reader } in sources {
        for &mode in &config.modes {
            let source = Source { session, python, set, reader };
            let batch_size = config.batch_size.min(session.prepared.expected.len());
            let keys = vec![
                ("mode", Cell::from(mode)),
                ("model", Cell::from(&config.model)),
                ("batch_size", Cell::from(batch_size)),
            ];
            if let Some(reason) = python.model_unavailable(mode) {
                unavailable.push(Unavailable { keys: source.keys(keys), reason });
                continue;
            }
            let first_step = Shared::new(f64::NAN);
            let key = format!("loop {} {} {mode}", set.format, reader.name);
            variants.push(source.variant(keys, move |source, turn| {
                let steps = if turn.warmup { config.steps.min(WARMUP_STEPS) } else { config.steps };
                let request = source.request("loop", share, turn.warmup, json!({
                    "key": key, "mode": mode, "model": config.model, "batch_size": batch_size, "steps": steps,
                    "workers": config.loop_workers, "first_epoch": turn.round as u64 * 1_000_000,
                }));
                let (measured, _) = source.turn(turn, Preset::None, &request, |answer| {
                    let answer = Answer::deserialize(answer)?;
                    if let Some(ns) = answer.first_step_ns {
                        first_step.set(ns as f64 * 1e-9);
                    }
                    let (items, waits) = (seconds(&answer.steps_ns), seconds(&answer.waits_ns));
                    let computes: Vec<f64> =
                        items.iter().zip(&waits).map(|(step, wait)| step - wait).collect();
                    let total: f64 = items.iter().sum();
                    let waiting = waits.iter().sum::<f64>() / total;
                    let mut values = vec![
                        ("data_wait_fraction", waiting),
                        ("accelerator_utilisation", 1.0 - waiting),
                        ("images_per_sec", answer.images as f64 / total),
                        ("wait_p50_s", median(&waits).unwrap_or(f64::NAN)),
                        ("compute_p50_s", median(&computes).unwrap_or(f64::NAN)),
                        ("first_batch_s", answer.first_batch_ns as f64 * 1e-9),
                        ("first_step_s", first_step.get()),
                    ];
                    values.extend(answer.loss.map(|loss| ("loss", loss)));
                    let counted = answer.traffic.map(|(read, used)| Traffic { read, used });
                    values.extend(counted.and_then(traffic::amplification));
                    let texts = vec![
                        ("advice", model_loop::advice(waiting).to_owned()),
                        ("utilisation_mark", model_loop::utilisation_mark(1.0 - waiting).to_owned()),
                        ("backend", answer.backend),
                    ];
                    Ok(Measurement { values, texts, items, ..Measurement::default() })
                })?;
                Ok(measured)
            }));
        }
    }
}

/// Track 4: every path, with one reader for each format: wellread where Python has it, else the format's first.
pub(crate) fn conversion<'s>(session: &'s Session<'s>, own: usize, (variants, unavailable): Lists<'_, 's>) {
    let mut sources = sources(session, "conversion", unavailable);
    sources.retain(|source| source.reader.native);
    // What is missing belongs to the readers of the other tracks, unless it is all there is.
    let mut chosen: Vec<Source<'s>> = Vec::new();
    for source in sources {
        let is_same = |c: &Source<'_>| {
            c.set.format == source.set.format && c.python.framework == source.python.framework
        };
        if !chosen.iter().any(is_same) {
            chosen.push(source);
        }
    }
    let has_reader = |keys: &Keys| {
        let cell = |name: &str| keys.iter().find(|(n, _)| *n == name).map(|(_, cell)| cell.clone());
        chosen.iter().any(|c| {
            cell("format") == Some(c.set.format.into())
                && cell("framework") == Some(c.python.framework.into())
        })
    };
    unavailable.retain(|missing| !has_reader(&missing.keys));
    let paths = |python: &InPython| python.conversions().iter().filter(|c| c.unavailable.is_none()).count();
    let share = share(session, own + chosen.iter().map(|source| paths(source.python)).sum::<usize>());
    for Source { session, python, set, reader } in chosen {
        for way in python.conversions() {
            let source = Source { session, python, set, reader };
            let keys = vec![("path", Cell::from(&way.path))];
            if let Some(reason) = &way.unavailable {
                unavailable.push(Unavailable { keys: source.keys(keys), reason: reason.clone() });
                continue;
            }
            variants.push(source.variant(keys, move |source, turn| convert(source, way, share, turn)));
        }
    }
}

fn convert(source: &Source<'_>, way: &Conversion, share: f64, turn: Turn) -> Result<Measurement> {
    #[derive(Deserialize)]
    struct Answer {
        arrays_ns: Vec<u64>,
        conversions_ns: Vec<u64>,
        copied_bytes: Vec<u64>,
        note: String,
    }
    let session = source.session;
    let rows =
        single::rows_of(Access::Random, session.prepared.expected.len(), session.config, turn.round as u64);
    let more = json!({ "rows": rows, "conversion": way.path });
    let request = source.request("conversion", share, turn.warmup, more);
    let (measured, _) = source.turn(turn, Preset::None, &request, |answer| {
        let answer = Answer::deserialize(answer).context("the worker's samples")?;
        let samples = |ns: &[u64]| -> Samples { seconds(ns).into_iter().collect() };
        let (arrays, conversions) = (samples(&answer.arrays_ns), samples(&answer.conversions_ns));
        let copied = answer.copied_bytes.iter().sum::<u64>() as f64 / answer.copied_bytes.len().max(1) as f64;
        let mut measured = conversions::measurement(&arrays, &conversions, copied);
        measured.texts.push(("note", answer.note));
        measured.texts.push(("copied", how_often(&answer.copied_bytes).to_owned()));
        Ok(measured)
    })?;
    Ok(measured)
}

/// How often pixels were copied, of the bytes that each image had copied.
fn how_often(copied_bytes: &[u64]) -> &'static str {
    let copied = copied_bytes.iter().filter(|bytes| **bytes > 0).count();
    match copied {
        0 => NEVER,
        all if all == copied_bytes.len() => ALWAYS,
        _ => SOMETIMES,
    }
}

/// Why the loop's model cannot run in this program, if it cannot.
pub(crate) fn not_for_rust(model: &str) -> Option<String> {
    let known = wellread_model::models().iter().any(|m| m.name == model);
    (!known).then(|| format!("{model} runs in Python only; the models of this program are: {}", names()))
}

fn names() -> String {
    wellread_model::models().iter().map(|m| m.name).collect::<Vec<_>>().join(", ")
}
