//! The facts of a run beside its tables: its settings, the machine, and the keys of `summary.json`.

use crate::config::Config;
use crate::core::Session;
use crate::data::{FormatSet, Source};
use crate::machine;
use anyhow::Result;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wellread_measure::clock::Clock;
use wellread_measure::environment::Environment;
use wellread_measure::limits::CopyLimits;
use wellread_measure::path_text;
use wellread_report::Fact;
use wellread_store::registry;

/// The images and settings of a run. `rounds` has the measured rounds of each benchmark in words.
pub(super) fn configuration(
    config: &Config,
    session: &Session<'_>,
    rounds: &str,
    checksum: Option<&str>,
) -> Vec<Fact> {
    let or_more = config
        .precision
        .map_or(String::new(), |share| format!(", or more until medians are known to {} %", 100.0 * share));
    let rounds = format!(
        "{rounds} (interleaved in random order, after 1 of warm-up; {} asked for{or_more})",
        config.repeats
    );
    let mut facts: Vec<Fact> = vec![
        ("images", session.prepared.about.clone()).into(),
        ("pixels", bytes(session.prepared.bytes_of_pixels())).into(),
        ("measured rounds", rounds).into(),
        ("codecs", codecs(session)).into(),
        ("seed", config.seed).into(),
    ];
    facts.extend(checksum.map(|sum| Fact::from(("checksum of the batches", sum))));
    facts
}

/// The machine, the speed of its memory where that is known, and the engines of the formats.
pub(super) fn of_machine(
    session: &Session<'_>,
    environment: &Environment,
    limits: Option<&CopyLimits>,
    engines: &BTreeMap<&'static str, String>,
) -> Vec<Fact> {
    let mut facts: Vec<Fact> =
        machine::facts(environment, machine::Moment::BeforeRun).into_iter().map(Fact::from).collect();
    facts.extend(limits.map(|limits| {
        Fact::from((
            "memory copy",
            format!(
                "{:.1} GB/s with one thread, {:.1} GB/s with {}",
                limits.one_thread.bytes_per_second / 1e9,
                limits.all_threads.bytes_per_second / 1e9,
                limits.threads
            ),
        ))
    }));
    facts.extend(engines_of(session, engines).into_iter().map(Fact::from));
    facts
}

/// The things that `summary.json` tells of a run at its top level.
pub(super) struct Details<'r, 's> {
    pub config: &'r Config,
    pub session: &'r Session<'s>,
    pub environment: &'r Environment,
    pub limits: Option<&'r CopyLimits>,
    pub engines: &'r BTreeMap<&'static str, String>,
    pub frameworks: Value,
    /// Benchmarks that are still to come.
    pub rest: &'r [&'r str],
    pub checksum: Option<String>,
    pub verified: bool,
    /// The noise floor of each benchmark.
    pub noise: Map<String, Value>,
}

impl Details<'_, '_> {
    /// The keys of `summary.json`.
    pub(super) fn keys(self) -> Result<Map<String, Value>> {
        let mut keys = Map::new();
        if !self.rest.is_empty() {
            keys.insert("unfinished".into(), serde_json::to_value(self.rest)?);
        }
        keys.insert("wellread".into(), env!("CARGO_PKG_VERSION").into());
        keys.insert("configuration".into(), serde_json::to_value(self.config)?);
        keys.insert("data_dir".into(), path_text::text(&self.session.prepared.folder).into());
        keys.insert("images".into(), self.session.prepared.about.clone().into());
        keys.insert("seed".into(), self.config.seed.into());
        keys.insert("pixel_checksum".into(), self.checksum.into());
        keys.insert("verified".into(), self.verified.into());
        keys.insert("noise_floor".into(), self.noise.into());
        keys.insert("environment".into(), serde_json::to_value(self.environment)?);
        keys.insert("clock".into(), serde_json::to_value(Clock::calibrated())?);
        keys.insert("limits".into(), serde_json::to_value(self.limits)?);
        keys.insert("frameworks".into(), self.frameworks);
        keys.insert("engines".into(), serde_json::to_value(self.engines)?);
        let missing = registry::missing_formats().into_iter();
        let missing: Map<String, Value> =
            missing.map(|(name, how_to_get)| (name.to_owned(), how_to_get.into())).collect();
        keys.insert("engines_missing".into(), missing.into());
        Ok(keys)
    }
}

/// Library and file format behind each format that was measured.
fn engines_of(session: &Session<'_>, engines: &BTreeMap<&'static str, String>) -> Vec<(String, String)> {
    let engine =
        |set: &FormatSet| Some((format!("engine of {}", set.format), engines.get(set.format)?.clone()));
    session.prepared.sets.iter().filter_map(engine).collect()
}

/// Codec of each set, and whether it was converted for this comparison.
fn codecs(session: &Session<'_>) -> String {
    let of = |set: &FormatSet| format!("{}: {}", set.format, set.codec.as_deref().unwrap_or("unknown"));
    let list: Vec<_> = session.prepared.sets.iter().filter(|s| s.error.is_none()).map(of).collect();
    let how = match (&session.config.source, session.config.in_place) {
        (Source::Path { .. }, false) => {
            " (all written anew from the source; --in-place measures it as it lies there)"
        }
        _ => "",
    };
    format!("{}{how}", list.join(", "))
}

fn bytes(n: u64) -> String {
    format!("{:.1} MB", n as f64 / 1e6)
}
