//! What two results differ in besides their figures: pixels, machine, versions, configuration, seed.
//!
//! Different pixels make a comparison meaningless: no row of it gets a verdict. A different machine, seed or
//! configuration is said before anything else, since it may be all that the ratios show. Versions are expected to
//! differ, and named.

use crate::Results;
use serde::Serialize;
use serde_json::Value;

/// How much a difference matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// No verdict is possible.
    Fatal,
    /// The ratios may show this and nothing else.
    Caution,
    /// Worth knowing: often what is being compared.
    Info,
}

/// Something in which two results differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What, such as `processor`.
    pub what: String,
    /// On the side of A.
    pub a: String,
    /// On the side of B.
    pub b: String,
    /// How much it matters.
    pub weight: Weight,
}

/// What is compared: a name and the place in `summary.json`.
const FACTS: &[(&str, &str, Weight)] = &[
    ("checksum of the pixels", "/pixel_checksum", Weight::Fatal),
    ("processor", "/environment/cpu/model", Weight::Caution),
    ("processors to use", "/environment/cpu/available", Weight::Caution),
    ("limit of processors", "/environment/limits/cpus", Weight::Caution),
    ("memory", "/environment/memory/total", Weight::Caution),
    ("governor", "/environment/cpu/governor", Weight::Caution),
    ("kernel", "/environment/platform/kernel", Weight::Caution),
    ("virtual machine", "/environment/platform/virtual_machine", Weight::Caution),
    ("filesystem", "/environment/storage/0/filesystem", Weight::Caution),
    ("build profile", "/environment/build/profile", Weight::Caution),
    ("images", "/images", Weight::Caution),
    ("seed", "/seed", Weight::Caution),
    ("compiler", "/environment/build/rustc", Weight::Info),
    ("version of wellread", "/wellread", Weight::Info),
    ("commit of the working folder", "/environment/git/commit", Weight::Info),
    ("commit", "/commit", Weight::Info),
    ("branch", "/branch", Weight::Info),
];

/// Parts of the configuration that say where things are, or how long was measured; neither changes what is measured.
const INCIDENTAL: &[&str] = &[
    "command",
    "out",
    "output_dir",
    "data_dir",
    "model_dir",
    "python",
    "server",
    "repeats",
    "time_budget_s",
    "turn_limit_s",
    "turn_limit",
    "precision",
    "what",
    "formats",
    "seed",
    "recipe",
];

/// All differences, the weightiest first.
pub fn differences(a: &Results, b: &Results) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut push = |what: &str, a: String, b: String, weight| {
        found.push(Difference { what: what.to_owned(), a, b, weight });
    };
    match (a.details.is_empty(), b.details.is_empty()) {
        (false, false) => (),
        (true, true) => {
            let neither = "unknown (no summary.json)".to_owned();
            push("what it was measured on (perhaps)", neither.clone(), neither, Weight::Caution);
            return found;
        }
        (no_a, no_b) => {
            let word = |unknown| if unknown { "unknown (no summary.json)" } else { "known" }.to_owned();
            push("what it was measured on and with", word(no_a), word(no_b), Weight::Caution);
            return found;
        }
    }
    for (what, pointer, weight) in FACTS {
        match (a.detail(pointer), b.detail(pointer)) {
            (Some(a), Some(b)) if a != b => push(what, shown(a), shown(b), *weight),
            // A version that did not write it yet is no difference; a checksum that is missing cannot vouch.
            (Some(known), None) if *weight == Weight::Fatal => {
                push(what, shown(known), "unknown".to_owned(), Weight::Caution);
            }
            (None, Some(known)) if *weight == Weight::Fatal => {
                push(what, "unknown".to_owned(), shown(known), Weight::Caution);
            }
            _ => (),
        }
    }
    for (part, weight) in [("configuration", Weight::Caution), ("engines", Weight::Info)] {
        let of = |results: &Results| results.detail(&format!("/{part}")).and_then(Value::as_object).cloned();
        let (Some(a), Some(b)) = (of(a), of(b)) else { continue };
        for (key, value) in &a {
            if let Some(other) = b.get(key).filter(|other| *other != value)
                && !(part == "configuration" && INCIDENTAL.contains(&key.as_str()))
            {
                push(&format!("{part}: {key}"), shown(value), shown(other), weight);
            }
        }
    }
    found.sort_by_key(|difference| difference.weight);
    found
}

/// A value in a few words.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= 100 { text } else { text.chars().take(99).chain(['…']).collect() }
}

/// The machine of results in a few words, to tell machines of a history apart; empty when unknown.
pub fn machine(results: &Results) -> String {
    let parts = ["/environment/cpu/model", "/environment/cpu/available", "/environment/storage/0/filesystem"];
    let known: Vec<String> = parts.iter().filter_map(|pointer| results.detail(pointer)).map(shown).collect();
    known.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results(details: &Value) -> Results {
        Results { details: details.as_object().cloned().unwrap_or_default(), ..Results::default() }
    }

    #[test]
    fn what_differs_is_named_by_its_weight() {
        let a = results(&json!({"wellread": "1", "pixel_checksum": "aa", "seed": 1, "images": "x",
            "configuration": {"steps": 5, "out": "a"}, "environment": {"cpu": {"model": "fast"}}}));
        let b = results(&json!({"wellread": "2", "pixel_checksum": "bb", "seed": 2, "images": "x",
            "configuration": {"steps": 6, "out": "b", "new": 1}, "environment": {"cpu": {"model": "slow"}}}));
        let found = differences(&a, &b);
        let names: Vec<_> = found.iter().map(|d| d.what.as_str()).collect();
        assert_eq!(
            names,
            ["checksum of the pixels", "processor", "seed", "configuration: steps", "version of wellread"]
        );
        assert_eq!(found[0].weight, Weight::Fatal);
        assert!(differences(&a, &a).is_empty());
        let unknown = differences(&a, &results(&json!({})));
        assert!(unknown.len() == 1 && unknown[0].b.contains("unknown"), "{unknown:?}");
        let no_sum = results(&json!({"pixel_checksum": null, "seed": 1, "images": "x"}));
        let found = differences(&a, &no_sum);
        assert_eq!((found.len(), found[0].weight), (1, Weight::Caution), "{found:?}");
        assert_eq!(machine(&a), "fast");
    }
}
