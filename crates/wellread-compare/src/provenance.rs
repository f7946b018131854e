//! The differences of two results besides their figures: pixels, machine, versions, configuration, seed.
//!
//! Different pixels make a comparison meaningless: no row of it gets a verdict. A different machine, seed or
//! configuration is said before anything else, since it may be all that the ratios show. Versions are expected to
//! differ, and named.

use crate::Results;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

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
    /// The fact, such as `processor`.
    pub what: String,
    /// On the side of A.
    pub a: String,
    /// On the side of B.
    pub b: String,
    /// How much it matters.
    pub weight: Weight,
}

/// The compared facts: a name and the place in `summary.json`.
const COMPARED_FACTS: &[(&str, &str, Weight)] = &[
    ("checksum of the pixels", "/pixel_checksum", Weight::Fatal),
    ("processor", "/environment/cpu/model", Weight::Caution),
    ("processors to use", "/environment/cpu/available", Weight::Caution),
    ("limit of processors", "/environment/limits/cpus", Weight::Caution),
    ("memory", "/environment/memory/total", Weight::Caution),
    ("NUMA nodes", "/environment/cpu/numa_nodes", Weight::Caution),
    ("highest frequency in MHz", "/environment/cpu/max_mhz", Weight::Caution),
    ("boost", "/environment/cpu/boost", Weight::Caution),
    ("governor", "/environment/cpu/governor", Weight::Caution),
    ("kernel", "/environment/platform/kernel", Weight::Caution),
    ("virtual machine", "/environment/platform/virtual_machine", Weight::Caution),
    ("container", "/environment/platform/container", Weight::Caution),
    ("filesystem", "/environment/storage/0/filesystem", Weight::Caution),
    ("device of the filesystem", "/environment/storage/0/device", Weight::Caution),
    ("disk", "/environment/storage/0/model", Weight::Caution),
    ("build profile", "/environment/build/profile", Weight::Caution),
    ("nodes", "/nodes", Weight::Caution),
    ("images", "/images", Weight::Caution),
    ("seed", "/seed", Weight::Caution),
    ("compiler", "/environment/build/rustc", Weight::Info),
    ("version of wellread", "/wellread", Weight::Info),
    ("commit of the working folder", "/environment/git/commit", Weight::Info),
    ("commit", "/commit", Weight::Info),
    ("branch", "/branch", Weight::Info),
];

/// Parts whose every value is a version or what was run on. They are storage engines, frameworks (with their device, such as a
/// GPU), the commits of the branches of tasks.
const VERSION_SECTIONS: [&str; 3] = ["engines", "frameworks", "commits"];

/// Parts of the configuration that say where things are, or how long was measured; neither changes what is measured.
const IGNORED_SETTINGS: &[&str] = &[
    "command",
    "working_folder",
    "out",
    "output",
    "output_dir",
    "report",
    "data_dir",
    "model_dir",
    "python",
    "server",
    "table",
    "repository",
    "resume",
    "skip_failed",
    "repeats",
    "time_budget_s",
    "turn_limit_s",
    "turn_limit",
    "timeout",
    "precision",
    "what",
    "formats",
    "seed",
    "recipe",
    "node",
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
            push("machine and settings (perhaps)", neither.clone(), neither, Weight::Caution);
            return found;
        }
        (no_a, no_b) => {
            let word = |unknown| if unknown { "unknown (no summary.json)" } else { "known" }.to_owned();
            push("machine and settings", word(no_a), word(no_b), Weight::Caution);
            return found;
        }
    }
    // One line for a machine of which nothing was recorded, not one per part of it.
    let machines = [a, b].map(|results| results.detail("/environment").is_some());
    if machines[0] != machines[1] {
        let [a, b] = machines.map(|known| if known { "known" } else { "unknown" }.to_owned());
        push("machine", a, b, Weight::Caution);
    }
    let both = machines == [true; 2];
    // A path from the folder of a run, and the same one with the folder before it, are one path.
    let folders: Vec<String> = [a, b]
        .into_iter()
        .filter_map(|results| results.detail("/configuration/working_folder")?.as_str())
        .map(|folder| format!("{}/", folder.trim_end_matches('/')))
        .filter(|folder| folder.len() > 1)
        .collect();
    let plain = |value: Option<&Value>| {
        value.map(|value| folders.iter().fold(value.to_string(), |text, folder| text.replace(folder, "")))
    };
    let differ = |a: Option<&Value>, b: Option<&Value>| a != b && plain(a) != plain(b);
    for (what, pointer, weight) in
        COMPARED_FACTS.iter().filter(|fact| both || !fact.1.starts_with("/environment/"))
    {
        let (a, b) = (a.detail(pointer), b.detail(pointer));
        if differ(a, b) {
            // A checksum that is missing cannot vouch, but does not say that the pixels are others either.
            let unknown = a.is_none() || b.is_none();
            let weight = if unknown { Weight::Caution.max(*weight) } else { *weight };
            push(what, known(a), known(b), weight);
        }
    }
    let part = |results: &Results, name: &str| {
        results.detail(&format!("/{name}")).and_then(Value::as_object).cloned()
    };
    if let (Some(a), Some(b)) = (part(a, "configuration"), part(b, "configuration")) {
        for (key, value) in a.iter().filter(|(key, _)| !IGNORED_SETTINGS.contains(&key.as_str())) {
            // A choice that a version does not have yet is no difference.
            if let Some(other) = b.get(key).filter(|other| differ(Some(value), Some(*other))) {
                push(&format!("configuration: {key}"), shown(value), shown(other), Weight::Caution);
            }
        }
    }
    for name in VERSION_SECTIONS {
        let (Some(a), Some(b)) = (part(a, name), part(b, name)) else { continue };
        let (mut of_a, mut of_b) = (BTreeMap::new(), BTreeMap::new());
        leaves(&a, "", &mut of_a);
        leaves(&b, "", &mut of_b);
        let paths: BTreeSet<&String> = of_a.keys().chain(of_b.keys()).collect();
        for path in paths {
            let (a, b) = (of_a.get(path).copied(), of_b.get(path).copied());
            if a != b {
                push(&format!("{name}: {path}"), known(a), known(b), Weight::Info);
            }
        }
    }
    found.sort_by_key(|difference| difference.weight);
    found
}

/// The kinds of nodes of a cluster that both sides were measured on, in words, each once. With more than one, the
/// difference of a row may be that of the nodes.
pub fn node_kinds(a: &Results, b: &Results) -> BTreeSet<String> {
    let of = |results: &Results| -> Vec<String> {
        let all = results.detail("/nodes").and_then(Value::as_array);
        all.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    of(a).into_iter().chain(of(b)).collect()
}

/// Every value of a tree that is not null, by the keys that lead to it.
fn leaves<'v>(tree: &'v Map<String, Value>, above: &str, found: &mut BTreeMap<String, &'v Value>) {
    for (key, value) in tree {
        let path = if above.is_empty() { key.clone() } else { format!("{above} {key}") };
        match value {
            Value::Object(tree) => leaves(tree, &path, found),
            Value::Null => (),
            value => {
                found.insert(path, value);
            }
        }
    }
}

/// A value that one side may lack.
fn known(value: Option<&Value>) -> String {
    value.map_or_else(|| "unknown".to_owned(), shown)
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

    fn names(a: &Results, b: &Results) -> Vec<String> {
        differences(a, b).into_iter().map(|difference| difference.what).collect()
    }

    #[test]
    fn what_differs_is_named_by_its_weight() {
        let a = results(&json!({"wellread": "1", "pixel_checksum": "aa", "seed": 1, "images": "x",
            "configuration": {"steps": 5, "out": "a"}, "environment": {"cpu": {"model": "fast"}}}));
        let b = results(&json!({"wellread": "2", "pixel_checksum": "bb", "seed": 2, "images": "x",
            "configuration": {"steps": 6, "out": "b", "new": 1}, "environment": {"cpu": {"model": "slow"}}}));
        let found = differences(&a, &b);
        assert_eq!(
            names(&a, &b),
            ["checksum of the pixels", "processor", "seed", "configuration: steps", "version of wellread"]
        );
        assert_eq!(found[0].weight, Weight::Fatal);
        assert!(differences(&a, &a).is_empty());
        let unknown = differences(&a, &results(&json!({})));
        assert!(unknown.len() == 1 && unknown[0].b.contains("unknown"), "{unknown:?}");
        let mut no_sum = a.clone();
        no_sum.details.insert("pixel_checksum".to_owned(), Value::Null);
        let found = differences(&a, &no_sum);
        assert_eq!((found.len(), found[0].weight), (1, Weight::Caution), "{found:?}");
        assert_eq!(machine(&a), "fast");
    }

    #[test]
    fn kinds_of_nodes_are_counted_over_both_sides() {
        let of = |kinds: &[&str]| results(&json!({"wellread": "1", "nodes": kinds}));
        let (small, large) = (of(&["small"]), of(&["large"]));
        assert_eq!(node_kinds(&small, &small).len(), 1);
        assert_eq!(node_kinds(&small, &large).into_iter().collect::<Vec<_>>(), ["large", "small"]);
        assert_eq!(node_kinds(&small, &results(&json!({"wellread": "1", "nodes": []}))).len(), 1);
        assert_eq!(names(&small, &large), ["nodes"]);
    }

    #[test]
    fn a_path_from_the_folder_of_a_run_is_the_same_with_the_folder_before_it() {
        let of = |folder: &str, path: &str, steps: i32| {
            results(&json!({"images": format!("3 images of {path}"),
                "configuration": {"working_folder": folder, "source": {"input": path}, "steps": steps}}))
        };
        let old = of("/data/a", "set/tiff", 5);
        assert!(names(&old, &of("/home/b", "/data/a/set/tiff", 5)).is_empty());
        assert!(names(&old, &of("/", "set/tiff", 5)).is_empty());
        assert_eq!(
            names(&old, &of("/home/b", "/data/c/set/tiff", 6)),
            ["images", "configuration: source", "configuration: steps"]
        );
    }

    #[test]
    fn versions_and_hardware_that_differ_are_named_also_where_one_side_does_not_know_them() {
        let a = results(&json!({"wellread": "1", "engines": {"tiff": "1", "lance": "2", "duckdb": "3"},
            "frameworks": {"jax": {"versions": {"jax": "0.5", "jaxlib": "0.5"}, "device": "A100"}},
            "environment": {"cpu": {"model": "fast", "numa_nodes": 1, "boost": null, "max_mhz": 3000},
                "platform": {"container": "docker"}, "storage": [{"device": "sda", "model": "quick"}]}}));
        let mut b = a.clone();
        b.details["wellread"] = "2".into();
        b.details["environment"]["cpu"]["model"] = "slow".into();
        b.details["engines"]["tiff"] = "1.1".into();
        assert_eq!(names(&a, &b), ["processor", "version of wellread", "engines: tiff"]);
        let c = results(&json!({"wellread": "1", "engines": {"tiff": "1", "lance": "2"},
            "frameworks": {"jax": {"versions": {"jax": "0.6", "jaxlib": "0.5"}, "device": "H200"}},
            "environment": {"cpu": {"model": "fast", "numa_nodes": 2, "boost": true, "max_mhz": 3500},
                "platform": {"container": null}, "storage": [{"device": "sdb", "model": "slow"}]}}));
        let hardware = [
            "NUMA nodes",
            "highest frequency in MHz",
            "boost",
            "container",
            "device of the filesystem",
            "disk",
        ];
        let versions = ["engines: duckdb", "frameworks: jax device", "frameworks: jax versions jax"];
        assert_eq!(names(&a, &c), [&hardware[..], &versions].concat());
        let found = differences(&a, &c);
        let of = |what: &str| found.iter().find(|one| one.what == what).unwrap();
        assert_eq!((of("boost").a.as_str(), of("boost").b.as_str()), ("unknown", "true"));
        assert_eq!((of("engines: duckdb").b.as_str(), of("container").b.as_str()), ("unknown", "unknown"));
        // A machine that was not recorded is one difference.
        let mut nowhere = a.clone();
        nowhere.details.insert("environment".to_owned(), Value::Null);
        assert_eq!(names(&a, &nowhere), ["machine"]);
    }
}
