//! Conversion in Python: one turn of each framework, format and path from a host array to a tensor.
//!
//! ```text
//!  sources, one reader for each format ─▶ a variant per path ─▶ request ─▶ both clocks of each image, bytes copied ─▶ Measurement
//! ```

use super::columns::measurement;
use crate::choices::{Access, Preset};
use crate::core::Session;
use crate::core::access::rows_of;
use crate::core::frameworks::Conversion;
use crate::core::python_sources::{Lists, Source, seconds, sources};
use crate::core::variants::{Keys, Measurement, Unavailable};
use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::json;
use wellread_measure::interleave::Turn;
use wellread_measure::samples::Samples;
use wellread_report::Cell;

/// How often a conversion copied the pixels of an image.
pub(crate) const NEVER: &str = "never";
pub(crate) const ALWAYS: &str = "always";
pub(crate) const SOMETIMES: &str = "sometimes";

/// Adds the variants of the frameworks to those of this program: every path, with one reader for each format. It is wellread where
/// Python has it, else the format's first.
pub(super) fn add_variants<'s>(session: &'s Session<'s>, (variants, unavailable): Lists<'_, 's>) {
    let mut sources = sources(session, "conversion", unavailable);
    sources.retain(|source| source.reader.native);
    // A missing package concerns the readers of the other tracks, unless nothing else is there.
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
    for Source { session, python, set, reader } in chosen {
        for way in python.conversions() {
            let source = Source { session, python, set, reader };
            let keys = vec![("path", Cell::from(&way.path))];
            if let Some(reason) = &way.unavailable {
                unavailable.push(Unavailable { keys: source.keys(keys), reason: reason.clone() });
                continue;
            }
            variants.push(source.variant(keys, move |source, turn| convert(source, way, turn)));
        }
    }
}

fn convert(source: &Source<'_>, way: &Conversion, turn: Turn) -> Result<Measurement> {
    #[derive(Deserialize)]
    struct Answer {
        arrays_ns: Vec<u64>,
        conversions_ns: Vec<u64>,
        copied_bytes: Vec<u64>,
        note: String,
    }
    let session = source.session;
    let rows = rows_of(Access::Random, session.prepared.expected.len(), session.config, turn.round as u64);
    let more = json!({ "rows": rows, "conversion": way.path });
    let request = source.request("conversion", turn.warmup, more);
    let (measured, _) = source.turn(turn, Preset::None, &request, |answer| {
        let answer = Answer::deserialize(answer).context("the worker's samples")?;
        let samples = |ns: &[u64]| -> Samples { seconds(ns).into_iter().collect() };
        let (arrays, conversions) = (samples(&answer.arrays_ns), samples(&answer.conversions_ns));
        let copied = answer.copied_bytes.iter().sum::<u64>() as f64 / answer.copied_bytes.len().max(1) as f64;
        let mut measured = measurement(&arrays, &conversions, copied);
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
