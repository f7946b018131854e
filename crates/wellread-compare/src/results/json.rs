//! JSON results: `summary.json`, the samples of `wellread infer`, the results of `wellread tasks`.
//!
//! Read by their keys, not as the types that wrote them: a comparison is of two versions as often as not.

use super::latency;
use super::types::Results;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use wellread_measure::environment::Node;
use wellread_measure::samples::median;
use wellread_report::{Cell, Table};

pub(super) fn read(path: &Path) -> Result<Results> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let value: Value = serde_json::from_slice(&bytes).with_context(|| {
        format!("{}: is no JSON that can be read (cut short? run the command again)", path.display())
    })?;
    match value {
        Value::Object(run) if run.get("records").is_some_and(Value::is_array) => Ok(inference(&run)),
        Value::Object(summary) if summary.contains_key("aggregates") => Ok(aggregates(summary)),
        Value::Array(tasks) if tasks.iter().any(|task| task.get("metrics").is_some()) => Ok(of_tasks(&tasks)),
        _ => bail!(
            "{}: holds JSON, but no results: neither a summary.json nor what `wellread infer` or `wellread tasks` write",
            path.display()
        ),
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// One row per configuration and round.
fn inference(run: &Map<String, Value>) -> Results {
    let mut table = Table::new(latency::NAME);
    let records = run.get("records").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for record in records {
        let row = &record["row"];
        let mut keys =
            vec![("framework", Cell::from(latency::framework(text(row, "framework"), text(row, "variant"))))];
        for key in ["model", "device", "dtype"] {
            keys.push((key, Cell::from(text(row, key))));
        }
        keys.insert(2, ("batch_size", Cell::from(row["batch_size"].as_i64())));
        if text(row, "status") != "ok" {
            keys.push(("status", Cell::from("failed")));
            keys.push(("reason", Cell::from(row["reason"].as_str())));
            table.push(keys);
            continue;
        }
        for round in record["rounds"].as_array().map_or(&[][..], Vec::as_slice) {
            let nanoseconds = round["samples_ns"].as_array().map_or(&[][..], Vec::as_slice);
            let seconds: Vec<f64> = nanoseconds.iter().filter_map(|ns| Some(ns.as_f64()? * 1e-9)).collect();
            let images = row["batch_size"].as_f64().unwrap_or(f64::NAN) * seconds.len() as f64;
            let wall = round["wall_ns"].as_f64().unwrap_or(f64::NAN) * 1e-9;
            let mut cells = keys.clone();
            cells.push(("run", Cell::from(round["round"].as_i64())));
            cells.push(("latency_p50_s", Cell::from(median(&seconds))));
            cells.push(("throughput_ips", Cell::from(Some(images / wall).filter(|rate| rate.is_finite()))));
            cells.push(("status", Cell::from("ok")));
            table.push(cells);
        }
    }
    let first = records.first().map_or(&Value::Null, |record| &record["row"]);
    let details = [
        ("wellread", first["wellread"].clone()),
        ("seed", first["seed"].clone()),
        ("images", first["data_source"].clone()),
        ("configuration", run.get("config").cloned().unwrap_or_default()),
        ("environment", run.get("environment").cloned().unwrap_or_default()),
        ("nodes", kinds(records.iter().filter_map(|record| node_of_row(&record["row"])))),
    ];
    let details = details.into_iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.to_owned(), v));
    Results { tables: vec![table], details: details.collect(), ..Results::default() }
}

/// The node of a cluster that a row of inference names, as `wellread infer --on` writes it.
fn node_of_row(row: &Value) -> Option<Node> {
    Some(Node {
        host: Some(row["node"].as_str()?.to_owned()),
        cpu: row["node_cpu"].as_str().map(str::to_owned),
        cores: row["node_cores"].as_u64().unwrap_or(0) as usize,
        memory_bytes: row["node_memory_mb"].as_f64().map(|mib| (mib * f64::from(1 << 20)) as u64),
        gpus: row["node_gpus"]
            .as_str()
            .into_iter()
            .flat_map(|all| all.split("; "))
            .map(str::to_owned)
            .collect(),
    })
}

/// The kinds of these nodes, each once; null where there is none.
fn kinds(nodes: impl Iterator<Item = Node>) -> Value {
    let kinds: BTreeSet<String> = nodes.map(|node| node.kind()).collect();
    if kinds.is_empty() { Value::Null } else { kinds.into_iter().collect() }
}

/// The medians of a summary, one row per configuration; their intervals where they are of 95 %.
fn aggregates(mut summary: Map<String, Value>) -> Results {
    let mut tables = Vec::new();
    let groups = summary.remove("aggregates").unwrap_or_default();
    for (name, rows) in groups.as_object().into_iter().flatten() {
        let mut table = Table::new(name);
        for row in rows.as_array().into_iter().flatten().filter_map(Value::as_object) {
            let mut cells: Vec<(String, Cell)> = Vec::new();
            for (column, value) in row {
                match value {
                    Value::Object(estimate) => {
                        let number = |key: &str| estimate.get(key).and_then(Value::as_f64);
                        cells.push((column.clone(), Cell::from(number("value"))));
                        if estimate.get("interval").and_then(Value::as_str) == Some("ci95") {
                            cells.push((format!("{column}_ci_low"), Cell::from(number("low"))));
                            cells.push((format!("{column}_ci_high"), Cell::from(number("high"))));
                        }
                    }
                    Value::String(reason) if column == "unavailable" => {
                        cells.push(("status".to_owned(), Cell::from("unavailable")));
                        cells.push(("reason".to_owned(), Cell::from(reason)));
                    }
                    other => cells.push((column.clone(), cell(other))),
                }
            }
            table.push(cells);
        }
        tables.push(table);
    }
    let report = summary.remove("report").unwrap_or_default();
    let noise_floors = report["noise_floors"].as_object().into_iter().flatten();
    let noise_floors =
        noise_floors.filter_map(|(name, floor)| Some((name.clone(), floor.as_f64()?))).collect();
    Results { tables, details: summary, noise_floors, ..Results::default() }
}

/// Name of the table of tasks.
pub(crate) const TASKS: &str = "tasks";

/// One row per task and repeat, every timer a column. A task of upstream has no repeats: it is one row.
fn of_tasks(tasks: &[Value]) -> Results {
    let mut table = Table::new(TASKS);
    let branches: Vec<&str> = tasks.iter().map(|task| text(task, "branch")).collect();
    // Results of one branch each are those of two branches: the branch is what is compared.
    let several = branches.iter().any(|branch| *branch != branches[0]);
    let mut keys = vec!["trainer", "batch_size", "max_epochs", "overrides"];
    // Where these tell nothing apart, another machine may have the same files elsewhere.
    keys.extend(["checkpoint_path", "data_path"].into_iter().filter(|key| tells_apart(tasks, key)));
    for task in tasks {
        let settings = &task["task_config"];
        let mut cells: Vec<(String, Cell)> = Vec::new();
        if several {
            cells.push(("branch".to_owned(), Cell::from(text(task, "branch"))));
        }
        cells.push(("experiment".to_owned(), Cell::from(text(task, "experiment"))));
        for &key in &keys {
            let value = match &settings[key] {
                Value::Array(list) => {
                    Cell::from(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
                }
                value => cell(value),
            };
            // Some write numbers of the CSV file as texts.
            let value = if value == Cell::Null { Cell::from("") } else { Cell::from(value.text()) };
            cells.push((key.to_owned(), value));
        }
        // The task's own metrics are those of its median run: of several runs they would be one process.
        let repeats = task["repeats"].as_array().filter(|repeats| !repeats.is_empty());
        for run in repeats.map_or(std::slice::from_ref(task), Vec::as_slice) {
            let mut cells = cells.clone();
            timers(&run["metrics"], &mut String::new(), &mut cells);
            if run["success"] == Value::Bool(false) {
                cells.push(("status".to_owned(), Cell::from("failed")));
                cells.push(("reason".to_owned(), Cell::from(text(run, "error"))));
            }
            table.push(cells);
        }
    }
    let commit = &tasks[0]["git_info"]["commit_hash"];
    let nodes = tasks.iter().filter(|task| task["node"].is_object());
    let nodes = nodes.filter_map(|task| Node::deserialize(&task["node"]).ok());
    let details = Map::from_iter([
        ("commit".to_owned(), commit.clone()),
        ("branch".to_owned(), branches[0].into()),
        ("nodes".to_owned(), kinds(nodes)),
    ]);
    Results { tables: vec![table], details, ..Results::default() }
}

/// Whether tasks of one branch and experiment differ in this setting.
fn tells_apart(tasks: &[Value], key: &str) -> bool {
    let mut first: BTreeMap<[&str; 2], &Value> = BTreeMap::new();
    tasks.iter().any(|task| {
        let value = &task["task_config"][key];
        *first.entry(["branch", "experiment"].map(|name| text(task, name))).or_insert(value) != value
    })
}

/// Every `{elapsed_seconds, peak_memory_mb}` of a tree as columns `NAME_s` and `NAME_peak_mb`.
fn timers(tree: &Value, name: &mut String, cells: &mut Vec<(String, Cell)>) {
    let Value::Object(parts) = tree else { return };
    if let Some(seconds) = parts.get("elapsed_seconds").and_then(Value::as_f64) {
        cells.push((format!("{name}_s"), Cell::F64(seconds)));
        if let Some(peak) = parts.get("peak_memory_mb").and_then(Value::as_f64) {
            cells.push((format!("{name}_peak_mb"), Cell::F64(peak)));
        }
    }
    for (key, part) in parts.iter().filter(|(_, part)| part.is_object()) {
        let length = name.len();
        if !matches!(key.as_str(), "epoch_breakdown" | "batch_breakdown") {
            if !name.is_empty() {
                name.push('_');
            }
            name.push_str(key);
        }
        timers(part, name, cells);
        name.truncate(length);
    }
}

fn cell(value: &Value) -> Cell {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => Cell::Null,
        Value::Bool(value) => Cell::Bool(*value),
        Value::Number(value) => {
            value.as_i64().map(Cell::I64).or(value.as_f64().map(Cell::F64)).unwrap_or(Cell::Null)
        }
        Value::String(value) => Cell::from(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tasks_are_rows_with_every_timer() {
        let task = |seconds: f64| {
            json!({"branch": "main", "experiment": "a", "success": true, "git_info": {"commit_hash": "c"},
                "task_config": {"batch_size": 4, "overrides": ["x=1", "y=2"]},
                "metrics": {"full_training": {"elapsed_seconds": seconds, "peak_memory_mb": 5.0},
                    "batch_breakdown": {"first_batch_forward": {"elapsed_seconds": 0.5}},
                    "final_metrics": {"loss": 0.1}}})
        };
        let failed =
            json!({"branch": "main", "experiment": "b", "success": false, "error": "no data", "metrics": {}});
        let found = of_tasks(&[task(1.0), task(2.0), failed]);
        let table = &found.tables[0];
        assert_eq!((table.rows(), table.f64("full_training_s", 1)), (3, Some(2.0)));
        assert_eq!(table.f64("first_batch_forward_s", 0), Some(0.5));
        assert_eq!(table.str("overrides", 0), Some("x=1 y=2"));
        assert!(table.column("branch").is_none() && table.column("loss").is_none());
        assert_eq!(table.unavailable(2).as_deref(), Some("failed: no data"));
    }

    /// Their times would be those of one task, and a verdict one on both together.
    #[test]
    fn tasks_of_other_images_or_models_are_told_apart() {
        let task = |key: &str, path: &str, seconds: f64| {
            json!({"branch": "main", "experiment": "a", "success": true, "git_info": {}, "task_config": {key: path},
                "metrics": {"full_inference": {"elapsed_seconds": seconds}}})
        };
        for key in ["checkpoint_path", "data_path"] {
            let table = &of_tasks(&[task(key, "/a", 1.0), task(key, "/b", 9.0)]).tables[0];
            assert_eq!([0, 1].map(|row| table.str(key, row)), [Some("/a"), Some("/b")]);
            assert!(wellread_report::columns::keys(table).contains(&key));
            // The same files may lie elsewhere on another machine.
            assert!(of_tasks(&[task(key, "/a", 1.0)]).tables[0].column(key).is_none());
        }
    }

    #[test]
    fn each_repeat_of_a_task_is_a_row_and_a_process() {
        let run = |seconds: f64| json!({"success": true, "metrics": {"full_training": {"elapsed_seconds": seconds}}});
        let task = |repeats: &[f64]| {
            json!({"branch": "main", "experiment": "a", "success": true, "git_info": {}, "task_config": {"batch_size": 4},
                "metrics": {"full_training": {"elapsed_seconds": repeats[1]}},
                "repeats": repeats.iter().map(|seconds| run(*seconds)).collect::<Vec<_>>()})
        };
        let found = of_tasks(&[task(&[1.0, 2.0, 3.0])]);
        let table = &found.tables[0];
        let seconds: Vec<_> = (0..table.rows()).map(|row| table.f64("full_training_s", row)).collect();
        assert_eq!(seconds, [Some(1.0), Some(2.0), Some(3.0)]);

        let dir = tempfile::tempdir().unwrap();
        let side = |name: &str, repeats: &[f64]| {
            let path = dir.path().join(name);
            std::fs::write(&path, json!([task(repeats)]).to_string()).unwrap();
            crate::sides::open(&[path.as_path()]).unwrap()
        };
        let (a, b) = (side("a.json", &[1.0, 1.01, 1.02]), side("b.json", &[2.0, 2.02, 2.04]));
        assert_eq!((a.processes, b.processes), (3, 3));
        let compared = crate::compare(&a, &b, &crate::Options::default()).unwrap();
        assert_eq!(compared.regressions, 1, "{:?}", compared.rows);
    }

    #[test]
    fn one_repeat_that_failed_leaves_its_task_without_a_verdict() {
        let task = json!({"branch": "main", "experiment": "a", "success": false, "error": "1 of 2 runs failed: killed",
            "metrics": {"full_training": {"elapsed_seconds": 1.0}},
            "repeats": [
                {"success": true, "metrics": {"full_training": {"elapsed_seconds": 1.0}}},
                {"success": false, "error": "killed", "metrics": {}}]});
        let table = &of_tasks(&[task]).tables[0];
        assert_eq!((table.rows(), table.f64("full_training_s", 0)), (2, Some(1.0)));
        assert_eq!((table.unavailable(0), table.unavailable(1).as_deref()), (None, Some("failed: killed")));
    }

    #[test]
    fn a_summary_alone_gives_medians_with_their_intervals() {
        let summary = json!({"seed": 1, "report": {"noise_floors": {"dataset": 0.03}}, "aggregates": {"dataset": [
            {"format": "tiff", "p50_s": {"value": 1.0, "low": 0.9, "high": 1.1, "interval": "ci95", "n": 7}},
            {"format": "a", "p50_s": {"value": 1.0, "low": 0.9, "high": 1.1, "interval": "range", "n": 3}},
            {"format": "b", "unavailable": "unavailable: not built in"}]}});
        let Value::Object(summary) = summary else { unreachable!("an object") };
        let found = aggregates(summary);
        let table = &found.tables[0];
        assert_eq!((table.f64("p50_s_ci_low", 0), table.f64("p50_s_ci_low", 1)), (Some(0.9), None));
        assert!(table.unavailable(2).is_some());
        assert_eq!(found.noise_floors["dataset"], 0.03);
        assert_eq!(found.detail("/seed"), Some(&json!(1)));
    }
}
