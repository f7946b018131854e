//! The model loop in Python: one turn of each framework, reader and mode.
//!
//! ```text
//!  sources ─▶ a variant each ─▶ request with model and mode ─▶ nanoseconds of each wait and step, loss ─▶ Measurement
//! ```

use super::thresholds::{advice, utilisation_mark};
use crate::choices::Preset;
use crate::core::Session;
use crate::core::python_sources::{Lists, Source, seconds, sources};
use crate::core::variants::{Measurement, Unavailable};
use crate::traffic;
use serde::Deserialize;
use serde_json::json;
use std::cell::Cell as Shared;
use wellread_loader::Traffic;
use wellread_measure::samples::median;
use wellread_report::Cell;
use wellread_store::place::LinkUse;

/// Steps of a warm-up turn, in which every pixel is compared.
const WARMUP_STEPS: usize = 2;

/// Adds the variants of the frameworks to those of this program.
pub(super) fn add_variants<'s>(session: &'s Session<'s>, (variants, unavailable): Lists<'_, 's>) {
    #[derive(Deserialize)]
    struct Answer {
        first_batch_ns: u64,
        first_step_ns: Option<u64>,
        waits_ns: Vec<u64>,
        steps_ns: Vec<u64>,
        images: usize,
        first_epoch: Option<(u64, usize)>,
        traffic: Option<(u64, u64)>,
        link: Option<(u64, u64, f64)>,
        loss: Option<f64>,
        backend: String,
    }
    let config = session.config;
    let sources = sources(session, "loop", unavailable);
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
                let request = source.request("loop", turn.warmup, json!({
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
                        ("steps", items.len() as f64),
                    ];
                    let rate = |(ns, images): (u64, usize)| images as f64 / (ns as f64 * 1e-9);
                    values.extend(answer.first_epoch.map(|epoch| ("first_epoch_images_per_s", rate(epoch))));
                    values.extend(answer.loss.map(|loss| ("loss", loss)));
                    let counted = answer.traffic.map(|(read, used)| Traffic { read, used });
                    values.extend(counted.and_then(traffic::amplification));
                    let link =
                        answer.link.map(|(requests, bytes, waited_s)| LinkUse { requests, bytes, waited_s });
                    let over_link = traffic::over_link(link, counted.map_or(0, |traffic| traffic.used));
                    traffic::put(&mut values, over_link);
                    let texts = vec![
                        ("advice", advice(waiting).to_owned()),
                        ("utilisation_mark", utilisation_mark(1.0 - waiting).to_owned()),
                        ("backend", answer.backend),
                    ];
                    Ok(Measurement { values, texts, items, ..Measurement::default() })
                })?;
                Ok(measured)
            }));
        }
    }
}
