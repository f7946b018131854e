//! Single images in Python: one turn of each framework, reader, transform and order.
//!
//! ```text
//!  sources ─▶ a variant each ─▶ request with the rows of the run ─▶ nanoseconds of each image, pixels ─▶ Measurement
//! ```
//!
//! Frameworks are measured without further transforms (scaled to [0, 1], crop and factor as asked for), but for `normalize`
//! and the user's own.

use crate::choices::{Access, Preset};
use crate::core::Session;
use crate::core::access::rows_of;
use crate::core::python_sources::{Lists, Source, seconds, sources};
use crate::core::variants::{Keys, Measurement, Unavailable, Variant};
use anyhow::Result;
use serde::Deserialize;
use serde_json::json;
use wellread_measure::interleave::Turn;
use wellread_report::Cell;

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

    /// The transform that the worker's pixels are compared by: a transform of the user's own is given those.
    fn delivered(self) -> Preset {
        match self {
            Self::Preset(preset) => preset,
            Self::User(_) => Preset::None,
        }
    }
}

/// Adds the variants of the frameworks to those of this program.
pub(super) fn add_variants<'s>(session: &'s Session<'s>, (variants, unavailable): Lists<'_, 's>) {
    let sources = sources(session, "dataset", unavailable);
    let config = session.config;
    // Without the plain images there is nothing to see a preset's cost by.
    let plain = config.transforms.contains(&Preset::None);
    let presets = config.transforms.iter().copied().filter(|p| plain && *p != Preset::Augment);
    let user = config.user_transforms.iter().map(|name| Single::User(name));
    let transforms: Vec<Single<'_>> = presets.map(Single::Preset).chain(user).collect();
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
                let job = move |source: &Source<'s>, turn| take(source, access, transform, turn);
                let variant = source.variant(keys, job);
                // A fault of the user's own transform is not the peer's.
                let peer = variant.peer && matches!(transform, Single::Preset(_));
                variants.push(Variant { peer, ..variant });
            }
        }
    }
}

fn take(source: &Source<'_>, access: Access, transform: Single<'_>, turn: Turn) -> Result<Measurement> {
    #[derive(Deserialize)]
    struct Answer {
        open_ns: u64,
        samples_ns: Vec<u64>,
        note: Option<String>,
    }
    let session = source.session;
    let n = session.prepared.expected.len();
    let rows = rows_of(access, n, session.config, turn.round as u64);
    let more = json!({ "rows": rows, "transform": transform.name() });
    let request = source.request("dataset", turn.warmup, more);
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
pub(super) fn only_in_python(name: &str) -> String {
    format!("{name} runs in Python only, and this program measures its own transforms")
}
