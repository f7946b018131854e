//! `infer --on`: a model is a part, so that what is compared with each other, frameworks and batch sizes, is of one node.

use super::super::nodes::{self, Cluster};
use super::text::failed_on_nodes;
use crate::output::{Failure, Outcome, Ui};
use std::ffi::OsString;
use std::path::Path;
use wellread_infer::{Config, Record, Row, Run, result_files, suite};
use wellread_measure::Environment;
use wellread_measure::environment::Node;

/// Leaves of a run the part that is this process's, on this node.
///
/// # Errors
/// There is no such part.
pub fn take_part(config: &mut Config, (number, folder, node): (usize, &Path, Node)) -> Outcome {
    let Some(model) = config.models.get(number).cloned() else {
        return Err(Failure::Usage(format!("there is no part {number} of {} models", config.models.len())));
    };
    config.models = vec![model];
    folder.clone_into(&mut config.output_dir);
    config.node = Some(node);
    Ok(())
}

/// Whether a part has a row of the framework, its variant and the batch size of `row`.
fn is_measured(row: &Row, measured: &[Record]) -> bool {
    let key = |row: &Row| (row.framework.clone(), row.variant.clone(), row.batch_size);
    measured.iter().any(|known| key(&known.row) == key(row))
}

/// Leaves of `missing` the records that a part lacks, each with the node that its other rows name.
fn keep_unmeasured(missing: &mut Vec<Record>, measured: &[Record]) {
    missing.retain(|record| !is_measured(&record.row, measured));
    if let Some(node) = measured.iter().find_map(|known| known.row.on_node()) {
        for record in &mut *missing {
            record.row.set_node(&node);
        }
    }
}

/// Has a cluster measure, and writes the results of all parts as those of one run.
///
/// # Errors
/// No cluster; a folder that cannot be written. A part that failed is rows that say so.
pub fn run(cluster: &Cluster, config: &Config, program: &[OsString], ui: Ui) -> Outcome<Run> {
    let mut files = result_files::begin(&config.output_dir)?;
    let (csv, json) = (files.csv().to_owned(), files.json().to_owned());
    let folder = csv.with_extension("nodes");
    let made = nodes::parts(config.models.iter().cloned(), &folder);
    let ran = made.and_then(|parts| Ok((cluster.run(program, &parts, ui)?, parts)));
    let (ends, parts) = ran.inspect_err(|_| drop(std::fs::remove_dir_all(&folder)))?;
    let environment = Environment::capture(&[&config.output_dir]).with_git(Path::new("."));
    let mut run =
        Run { config: config.clone(), environment, records: Vec::new(), unreadable: Vec::new(), csv, json };
    let mut is_whole = true;
    for (part, end) in parts.iter().zip(ends) {
        let of_part = nodes::results_of(part).and_then(|value| serde_json::from_value::<Run>(value).ok());
        let mut measured = Vec::new();
        if let Some(of_part) = of_part {
            if run.records.is_empty() {
                run.environment = of_part.environment;
            }
            // All parts read the same images.
            if of_part.unreadable.len() > run.unreadable.len() {
                run.unreadable = of_part.unreadable;
            }
            measured = of_part.records;
        }
        let why = end.unwrap_or_else(|| "its node returned no results".to_owned());
        let mut missing = suite::unusable(&part.name, &why, &run)?;
        keep_unmeasured(&mut missing, &measured);
        is_whole &= missing.is_empty();
        run.records.extend(measured);
        run.records.extend(missing);
    }
    files.write(&run)?;
    for line in failed_on_nodes(run.rows()) {
        ui.say(line);
    }
    if is_whole {
        let _ = std::fs::remove_dir_all(&folder);
    } else {
        ui.hint(format!("Output of the parts: {}", folder.display()));
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_model_with_the_facts_of_the_node() {
        let models = vec!["resnet50".to_owned(), "vit_b_16".to_owned()];
        let whole = Config { models, ..Config::default() };
        let node = Node { host: Some("n1".to_owned()), cores: 4, ..Node::default() };
        let mut part = whole.clone();
        assert!(take_part(&mut part, (1, Path::new("/out/1"), node.clone())).is_ok());
        assert_eq!(
            (part.models, part.output_dir.as_path()),
            (vec!["vit_b_16".to_owned()], Path::new("/out/1"))
        );
        assert_eq!(part.node, Some(node.clone()));
        assert!(take_part(&mut whole.clone(), (2, Path::new("/out/2"), node)).is_err());
    }

    #[test]
    fn a_framework_or_variant_without_a_result_is_missing_beside_one_of_the_same_size() {
        let record = |framework: &str, variant: &str, batch_size| {
            let (framework, variant) = (framework.to_owned(), variant.to_owned());
            Record { row: Row { framework, variant, batch_size, ..Row::default() }, ..Record::default() }
        };
        let mut known = record("pytorch", "eager", 8);
        known.row.set_node(&Node { host: Some("n1".to_owned()), cores: 4, ..Node::default() });
        let asked = [
            record("pytorch", "eager", 8),
            record("pytorch", "compile", 8),
            record("onnxruntime", "", 8),
            record("pytorch", "eager", 16),
        ];
        let mut missing = asked.to_vec();
        keep_unmeasured(&mut missing, &[known]);
        let keys: Vec<_> = missing
            .iter()
            .map(|r| (r.row.framework.as_str(), r.row.variant.as_str(), r.row.batch_size))
            .collect();
        assert_eq!(keys, [("pytorch", "compile", 8), ("onnxruntime", "", 8), ("pytorch", "eager", 16)]);
        assert!(missing.iter().all(|record| record.row.node.as_deref() == Some("n1")), "{missing:?}");
        // A part without any row has no node to name.
        let mut missing = asked.to_vec();
        keep_unmeasured(&mut missing, &[]);
        assert!(missing.len() == 4 && missing.iter().all(|record| record.row.node.is_none()));
    }
}
