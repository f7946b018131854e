//! The settings of a task: defaults, the branch's file, overrides.
//!
//! ```text
//! Experiment::defaults ◀─ configs/experiment/NAME.toml ◀─ overrides key=value ◀─ max_epochs, batch_size, data_path
//! ```

use crate::config::{Config, FOLDER, Validation};
use crate::experiment::{self, Experiment};
use crate::task::{Mode, Task};
use anyhow::{Context as _, Result, bail, ensure};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

impl Config {
    /// The settings of a task and its experiment.
    ///
    /// # Errors
    /// No such experiment in the branch, a file that is no TOML, unknown keys, values that make no sense.
    pub fn of_task(task: &Task) -> Result<(&'static Experiment, Self)> {
        let (file, mut table) = branch_file(task)?;
        rename(&mut table);
        let origin = file.as_ref().map_or_else(|| task.experiment.clone(), |file| file.display().to_string());
        let mut set = Table::new();
        for line in &task.overrides {
            put(&mut set, line)?;
        }
        rename(&mut set);
        let kind =
            [&set, &table].iter().find_map(|t| t.get("kind").and_then(Value::as_str).map(str::to_owned));
        let experiment =
            experiment::named(kind.as_deref().unwrap_or(&task.experiment)).with_context(|| {
                if kind.is_some() { origin.clone() } else { format!("{origin} says no `kind`") }
            })?;
        let defaults = (experiment.defaults)();
        let known = Table::try_from(&defaults).context("the defaults are no TOML")?;
        check_keys(&table, &known, "", &origin)?;
        check_keys(&set, &known, "", "overrides")?;
        merge(&mut table, set);
        if let Some(n) = task.max_epochs {
            put(&mut table, &format!("training.epochs={n}"))?;
        }
        if let Some(n) = task.batch_size {
            put(&mut table, &format!("training.batch_size={n}"))?;
        }
        let mut all = known;
        merge(&mut all, table);
        let mut config: Self = all.try_into().with_context(|| origin.clone())?;
        // By whatever name it was called.
        experiment.name.clone_into(&mut config.kind);
        if let Some(path) = &task.data_path {
            config.data.images.clone_from(path);
        }
        for path in [&mut config.data.images, &mut config.data.targets] {
            if !path.as_os_str().is_empty() {
                *path = task.resolve(path);
            }
        }
        config.check(task.mode).with_context(|| origin)?;
        Ok((experiment, config))
    }

    /// Refuses values that make no sense.
    fn check(&self, mode: Mode) -> Result<()> {
        if self.data.images.as_os_str().is_empty() {
            bail!("data.images names no images: set it, or the column data_path");
        }
        let positive = [
            ("data.patches_per_image", self.data.patches_per_image),
            ("data.patch", self.data.patch[0].min(self.data.patch[1])),
            ("training.epochs", self.training.epochs),
            ("training.batch_size", self.training.batch_size),
            ("augment.elastic_spacing", self.augment.elastic_spacing),
            ("model.width", self.model.width),
        ];
        for (key, value) in positive {
            ensure!(value > 0, "{key} must be at least 1");
        }
        let most = |key: &str, value: usize, most: usize| {
            ensure!(value <= most, "{key} is {value}: choose {most} at most");
            Ok(())
        };
        most("data.workers", self.data.workers, 256)?;
        most("training.threads", self.training.threads, 1024)?;
        most("training.epochs", self.training.epochs, 1_000_000)?;
        most("training.batch_size", self.training.batch_size, 65_536)?;
        most("data.patches_per_image", self.data.patches_per_image, 1_000_000)?;
        ensure!(
            matches!(self.model.dimensions, 2 | 3),
            "model.dimensions is {}: choose 2 or 3",
            self.model.dimensions
        );
        ensure!((1..=8).contains(&self.model.depth), "model.depth is {}: choose 1 to 8", self.model.depth);
        let least = 4 << self.model.depth;
        ensure!(
            self.inference.tile >= least,
            "inference.tile is {}: a network of depth {} needs {least} at least",
            self.inference.tile,
            self.model.depth
        );
        let within = |key: &str, value: f64, [low, high]: [f64; 2]| {
            ensure!((low..=high).contains(&value), "{key} is {value}: choose {low} to {high}");
            Ok(())
        };
        within("optimizer.lr", self.optimizer.lr, [0.0, 10.0])?;
        within("optimizer.weight_decay", self.optimizer.weight_decay, [0.0, 10.0])?;
        within("inference.threshold", self.inference.threshold, [0.0, 1.0])?;
        within("augment.rotate_degrees", self.augment.rotate_degrees.into(), [0.0, 180.0])?;
        within("augment.brightness", self.augment.brightness.into(), [0.0, 1.0])?;
        within("augment.contrast", self.augment.contrast.into(), [0.0, 1.0])?;
        within("augment.elastic", self.augment.elastic.into(), [0.0, 1000.0])?;
        if let (Mode::Train, Validation::Share(share)) = (mode, &self.data.validation) {
            within("data.validation", *share, [0.0, 0.99])?;
        }
        Ok(())
    }
}

/// The experiment's file in the branch and what it says. No file where the branch has no folder of experiments and the
/// experiment is built in.
fn branch_file(task: &Task) -> Result<(Option<PathBuf>, Table)> {
    let folder = task.worktree.join(FOLDER);
    let file = folder.join(format!("{}.toml", task.experiment));
    let inside = !task.experiment.split(['/', '\\']).any(|part| part == ".." || part.is_empty());
    if inside && file.is_file() {
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let table = text.parse::<Table>().with_context(|| format!("{} is no TOML", file.display()))?;
        return Ok((Some(file), table));
    }
    if !folder.is_dir() {
        experiment::named(&task.experiment)
            .with_context(|| format!("the branch {:?} has no folder {FOLDER}", task.branch))?;
        return Ok((None, Table::new()));
    }
    let mut there = vec![];
    list(&folder, "", &mut there);
    there.sort();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    bail!("the branch {:?} has no experiment {:?}; it has: {there}", task.branch, task.experiment)
}

/// Names of the experiments below a folder.
fn list(folder: &Path, prefix: &str, into: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            list(&path, &format!("{prefix}{name}/"), into);
        } else if let Some(name) = name.strip_suffix(".toml") {
            into.push(format!("{prefix}{name}"));
        }
    }
}

/// Sets `key.of.table=value`; a value that is no TOML is a text.
fn put(table: &mut Table, line: &str) -> Result<()> {
    let (key, value) =
        line.split_once('=').with_context(|| format!("the override {line:?} is no key=value"))?;
    let value = value.trim();
    let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut t| t.remove("value"));
    let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
    let mut parts = key.trim().split('.').collect::<Vec<_>>();
    let last = parts.pop().unwrap_or_default();
    let mut at = table;
    for part in parts {
        let entry = at.entry(part).or_insert_with(|| Value::Table(Table::new()));
        at = entry.as_table_mut().with_context(|| format!("the override {line:?}: {part} is no table"))?;
    }
    at.insert(last.to_owned(), value);
    Ok(())
}

/// Targets that are masks may be called so.
fn rename(table: &mut Table) {
    let Some(Value::Table(data)) = table.get_mut("data") else { return };
    for (mask, target) in
        [("masks", "targets"), ("mask_names", "target_names"), ("mask_channel", "target_channel")]
    {
        if let Some(value) = data.remove(mask) {
            data.insert(target.to_owned(), value);
        }
    }
}

fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(into)), Value::Table(from)) => merge(into, from),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// Refuses keys that are not `known`, with the nearest that are.
fn check_keys(table: &Table, known: &Table, prefix: &str, origin: &str) -> Result<()> {
    for (key, value) in table {
        let name = format!("{prefix}{key}");
        match (known.get(key), value) {
            (Some(Value::Table(known)), Value::Table(table)) => {
                check_keys(table, known, &format!("{name}."), origin)?;
            }
            (Some(Value::Table(_)), _) => bail!("{origin}: {name} is a table of settings, not one"),
            (Some(_), _) => {}
            (None, _) => {
                let mut all: Vec<String> = known.keys().map(|key| format!("{prefix}{key}")).collect();
                all.sort_by_cached_key(|other| strsim::osa_distance(&name, other));
                all.truncate(3);
                bail!("{origin}: there is no setting {name}; the nearest are {}", all.join(", "))
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_are_toml_values_or_texts() {
        let mut table = Table::new();
        for line in
            ["model.width=32", "data.images = a/b c.parquet", "data.validation=[\"x\", \"y\"]", "a.b=\"3\""]
        {
            put(&mut table, line).unwrap();
        }
        assert_eq!(table["model"]["width"].as_integer(), Some(32));
        assert_eq!(table["data"]["images"].as_str(), Some("a/b c.parquet"));
        assert_eq!(table["data"]["validation"].as_array().unwrap().len(), 2);
        assert_eq!(table["a"]["b"].as_str(), Some("3"));
        assert!(put(&mut table, "model.width").is_err());
        assert!(put(&mut table, "model.width.more=1").is_err());
    }
}
