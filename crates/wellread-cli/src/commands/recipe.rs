//! `wellread bench --recipe FILE.toml` and `wellread rerun summary.json`: studies that can be repeated.
//!
//! A recipe is a list of runs. Each is a command of this program with its options as keys. The parser of typed commands
//! parses all of them before the first runs. So a recipe can do what the command line can, and no more.
//!
//! ```toml
//! title = "Which format for random access?"
//!
//! [[run]]
//! command = "bench"            # bench, infer, tasks, generate or convert
//! arguments = ["dataset"]      # words without a dash
//! name = "small"               # folder of its results below --out
//! images = 200                 # every other key is an option: --images 200
//! formats = ["parquet", "tiff"]
//! keep-open = true             # a flag; false leaves it out
//! ```
//!
//! `{out}` in a value stands for the results folder of the study, `{recipe}` for the folder that the recipe is in.

use super::command_line::{
    RunningRecipe, joined, remove, remove_idle, replace, split, value, with_current, working_folder,
};
use super::program::{Parse, Program, Run};
use super::result_file::local_folder;
use super::{distinct, is_same_file, recorded_paths};
use crate::output::{Failure, Outcome, Ui};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use wellread_compare::{Results, coverage, provenance};
use wellread_measure::{path_text, to_stderr};
use wellread_report::summary;
use wellread_store::words::counted;

/// Arguments of `bench` that a recipe stands in for: all but the results folder.
#[rustfmt::skip]
pub const REPLACED: [&str; 58] = [
    "what", "input", "in_place", "compression", "planes", "images", "size", "channels", "depth", "time", "dtype", "kind",
    "seed", "formats", "repeats", "precision", "processes", "data_dir", "time_budget", "access", "block_rows",
    "block_window", "transform", "cache", "samples", "batch_sizes", "workers", "keep_open", "loader_cache", "model",
    "mode", "steps", "batch_size", "loop_workers", "memory", "prefetch", "random_crop", "crops", "crop", "scale",
    "framework", "python", "loaders", "turn_limit", "no_cold", "random_images", "sweep", "cells", "cells_size", "cells_x",
    "cells_y", "cells_by", "cells_edge", "cells_unit", "cells_mask", "cells_masks", "cells_label", "cells_unmatched",
];

/// Commands that a recipe may run, and the option that names where their results go.
const COMMANDS: [(&str, Option<&str>); 5] = [
    ("bench", Some("out")),
    ("infer", Some("output-dir")),
    ("tasks", Some("output")),
    ("generate", None),
    ("convert", None),
];

/// All names of these options: each command has one, and others by which it also goes.
const TARGETS: [&str; 3] = ["out", "output", "output-dir"];

/// The results of tasks that are run again, beside which their report is.
const TASKS_FILE: &str = "tasks.json";

/// One run, ready.
struct Step {
    name: String,
    words: Vec<String>,
    run: Run,
}

/// Runs every step of a recipe, each into a folder below `out`; goes on after one that fails, and fails at the end.
pub fn run(path: &Path, out: &Path, program: &Program, ui: Ui) -> Outcome {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::Failed(format!("cannot read the recipe {}: {e}", path.display())))?;
    let usage = |cause: String| Failure::Usage(format!("{}: {cause}", path.display()));
    let recipe: toml::Table = toml::from_str(&text).map_err(|e| usage(format!("is no TOML: {e}")))?;
    let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let steps = steps(&recipe, beside, out, program.parse).map_err(usage)?;
    let recipe = serde_json::to_value(&recipe).map_err(|e| usage(e.to_string()))?;
    if let Some(title) = recipe["title"].as_str() {
        ui.say(title);
    }
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    let of = steps.len();
    for (i, step) in steps.into_iter().enumerate() {
        let command = joined(step.words);
        ui.say(format!("\n[{} of {of}] {}: {command}", i + 1, step.name));
        let current = RunningRecipe { command: command.clone(), text: recipe.clone() };
        let result = with_current(current, || (step.run)(program.start.clone(), ui.nested()));
        let error = match result {
            Ok(()) => None,
            Err(Failure::Usage(message) | Failure::Failed(message)) => Some(message),
            Err(Failure::Reported | Failure::Regression | Failure::Ended(_)) => Some("see above".to_owned()),
        };
        if let Some(message) = &error {
            to_stderr(format!("error: {}: {message}", step.name));
            failed.push(step.name.clone());
        }
        done.push(
            json!({ "name": step.name, "command": command, "out": path_text::text(&out.join(&step.name)), "error": error }),
        );
    }
    ui.document(&json!({ "recipe": recipe, "runs": done }))?;
    if failed.is_empty() {
        return Ok(());
    }
    let all = counted(of, "run");
    Err(Failure::Failed(format!("{} of {all} of the recipe failed: {}", failed.len(), failed.join(", "))))
}

/// The runs of a recipe as parsed commands.
fn steps(recipe: &toml::Table, beside: &Path, out: &Path, parse: Parse) -> Result<Vec<Step>, String> {
    if let Some(key) = recipe.keys().find(|key| !["title", "description", "run"].contains(&key.as_str())) {
        return Err(format!("there is no key {key:?}; a recipe has title, description and [[run]]"));
    }
    let runs = recipe.get("run").and_then(toml::Value::as_array).filter(|runs| !runs.is_empty());
    let runs = runs.ok_or("holds no [[run]]")?;
    let mut steps: Vec<Step> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let at = |cause: String| format!("run {}: {cause}", i + 1);
        let run = run.as_table().ok_or_else(|| at("is no table; write [[run]]".to_owned()))?;
        let step = step(run, i, beside, out, parse).map_err(at)?;
        if steps.iter().any(|other| other.name == step.name) {
            return Err(at(format!("a run before it is named {:?} too; give it another name", step.name)));
        }
        steps.push(step);
    }
    Ok(steps)
}

fn step(run: &toml::Table, i: usize, beside: &Path, out: &Path, parse: Parse) -> Result<Step, String> {
    let command = run.get("command").and_then(toml::Value::as_str).unwrap_or("bench");
    let known = COMMANDS.iter().find(|(name, _)| *name == command);
    let (_, target) = known.ok_or_else(|| {
        let names: Vec<_> = COMMANDS.iter().map(|(name, _)| *name).collect();
        format!("a recipe cannot run {command:?}; there are {}", names.join(", "))
    })?;
    let folder = out.to_str().ok_or("the results folder's name is no text")?;
    let beside = beside.to_str().ok_or("the name of the recipe's folder is no text")?;
    let filled = |text: &str| text.replace("{out}", folder).replace("{recipe}", beside);
    let mut words = vec![command.to_owned()];
    if let Some(arguments) = run.get("arguments") {
        words.extend(texts(arguments, "arguments")?.iter().map(|word| filled(word)));
    }
    let name = match run.get("name") {
        Some(name) => name.as_str().ok_or("name is no text")?.to_owned(),
        None => format!("{}-{command}", i + 1),
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        return Err(format!("{name:?} is no name of a folder; use letters, digits, - and _"));
    }
    for (key, value) in
        run.iter().filter(|(key, _)| !["command", "arguments", "name"].contains(&key.as_str()))
    {
        if target.is_some() && TARGETS.contains(&key.as_str()) {
            return Err(format!("--{key} is set by the recipe's name; leave it out"));
        }
        match value {
            toml::Value::Boolean(true) => words.push(format!("--{key}")),
            toml::Value::Boolean(false) => (),
            value => words.push(format!("--{key}={}", filled(&texts(value, key)?.join(",")))),
        }
    }
    if let Some(target) = target {
        let file = if *target == "output" { format!("{name}.json") } else { name.clone() };
        let path = out.join(file);
        words.push(format!("--{target}={}", path.to_str().ok_or("the results folder's name is no text")?));
    }
    let run = parse(&words)?;
    Ok(Step { name, words, run })
}

/// A value, or a list of them, as texts.
fn texts(value: &toml::Value, key: &str) -> Result<Vec<String>, String> {
    match value {
        toml::Value::String(text) => Ok(vec![text.clone()]),
        toml::Value::Integer(number) => Ok(vec![number.to_string()]),
        toml::Value::Float(number) => Ok(vec![number.to_string()]),
        toml::Value::Array(list) => {
            let all: Vec<Vec<String>> =
                list.iter().map(|value| texts(value, key)).collect::<Result<_, _>>()?;
            Ok(distinct(&all.concat()))
        }
        _ => Err(format!("{key} is neither text, number, true or false, nor a list of texts and numbers")),
    }
}

/// Repeats the run that a summary.json is of, and says which versions, hardware and figures differ.
#[derive(clap::Args)]
#[command(after_help = "\
Repeats the run of bench, infer or tasks that wrote a summary.json, into a folder beside the old one. Reports which \
versions, hardware and settings differ. Then `wellread compare` reports what became faster or slower. Relative paths \
begin at the run's working folder, which summary.json names. Those that are not there begin at this folder. If pixels \
differ from then, the exit code is 1.

Example:
  wellread rerun results/summary.json --out again")]
pub struct RerunArgs {
    /// The summary.json of the run, or its folder.
    summary: PathBuf,
    /// Folder of the new results; by default the old one's name with -rerun.
    #[arg(long, alias = "output", value_parser = local_folder())]
    out: Option<PathBuf>,
}

/// Runs `wellread rerun`.
pub fn rerun(args: &RerunArgs, program: &Program, ui: Ui) -> Outcome {
    let folder = if args.summary.is_dir() {
        args.summary.as_path()
    } else {
        args.summary.parent().unwrap_or(Path::new(""))
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let old = Results::open(&args.summary)?;
    let failed = |cause: String| Failure::Failed(format!("{}: {cause}", args.summary.display()));
    let line = old.detail("/configuration/command").and_then(Value::as_str).filter(|line| !line.is_empty());
    let line = line.ok_or_else(|| failed("does not name its command".to_owned()))?;
    let mut words = split(line).map_err(|e| failed(format!("its command cannot be read: {e}")))?;
    // The program's own name, and what all commands take before theirs (--json, --quiet).
    let before = 1 + words.iter().skip(1).take_while(|word| word.starts_with('-')).count();
    words.drain(..before.min(words.len()));
    let target = words.first().and_then(|first| COMMANDS.iter().find(|(name, _)| name == first)?.1);
    let target = target.ok_or_else(|| {
        failed(format!("cannot run {line:?} again; only bench, infer and tasks can run again"))
    })?;
    let out = args.out.clone().unwrap_or_else(|| beside(folder));
    check_out(folder, &words, target, &out)?;
    let there = old.detail("/configuration/working_folder").and_then(Value::as_str).map(Path::new);
    let lost = recorded_paths::resolve(&mut words, there, &working_folder().unwrap_or_default());
    // The old run's timeline and report are kept, and none of its results are taken over.
    for option in ["trace", "report", "out-report"] {
        remove(&mut words, option);
    }
    words.retain(|word| word != "--resume");
    remove_idle(&mut words);
    // By whichever name the command had it.
    for option in TARGETS {
        remove(&mut words, option);
    }
    let path = if target == "output" { out.join(TASKS_FILE) } else { out.clone() };
    replace(&mut words, target, path.to_str().ok_or_else(|| failed("--out is no text".to_owned()))?);
    let command = joined(words.clone());
    ui.say(&command);
    let run = (program.parse)(&words)
        .map_err(|e| failed(format!("this version does not take its command: {e}")))?;
    let text = old.detail("/configuration/recipe").cloned().unwrap_or_default();
    let done = with_current(RunningRecipe { command: command.clone(), text }, || {
        run(program.start.clone(), ui.nested())
    });
    let with_hint = |why: String| lost.iter().fold(why, |why, hint| format!("{why} {hint}"));
    done.map_err(|failure| match failure {
        Failure::Failed(why) => Failure::Failed(with_hint(why)),
        Failure::Usage(why) => Failure::Usage(with_hint(why)),
        other => other,
    })?;
    let results = results(target, &out);
    let new = Results::open(&results)?;
    let mut differences = provenance::differences(&old, &new);
    differences.extend(coverage::differences(&old, &new));
    if differences.is_empty() {
        ui.say("Nothing known differs between the two runs but their figures.");
    }
    for difference in &differences {
        ui.say(format!("{} differs: {} then, {} now", difference.what, difference.a, difference.b));
    }
    let next = [folder, &results].map(|path| path.to_string_lossy().into_owned());
    ui.hint(format!("Next: {}", joined(std::iter::once("compare".to_owned()).chain(next))));
    ui.document(&json!({ "command": command, "out": path_text::text(&out), "results": path_text::text(&results), "differences": differences }))?;
    if differences.iter().any(|difference| difference.weight == provenance::Weight::Fatal) {
        return Err(Failure::Failed(format!(
            "the pixels differ from those of {}: this is no repetition of it (hint: run it on the same images)",
            folder.display()
        )));
    }
    Ok(())
}

/// The folder beside a folder of results that their repetition goes to.
fn beside(folder: &Path) -> PathBuf {
    let named = |name: &OsStr| format!("{}-rerun", name.to_string_lossy());
    if let Some(name) = folder.file_name() {
        return folder.with_file_name(named(name));
    }
    // Such as . and x/..
    let place = folder.canonicalize().ok();
    let name = place.as_deref().and_then(Path::file_name).unwrap_or(OsStr::new("results"));
    let above = if folder == Path::new(".") { PathBuf::from("..") } else { folder.join("..") };
    above.join(named(name))
}

/// Refuses a folder of new results where they would replace those of `folder`, which are repeated and were written by the
/// command `words`.
fn check_out(folder: &Path, words: &[String], target: &str, out: &Path) -> Outcome {
    // Tasks write a file, with a report beside it or elsewhere.
    let file = out.join(TASKS_FILE);
    let old_file = ["output", "out"].iter().find_map(|option| value(words, option));
    let replaces = is_same_file(folder, out)
        || target == "output"
            && (is_same_file(folder, &results(target, out))
                || old_file.is_some_and(|old| is_same_file(Path::new(old), &file)));
    if !replaces {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} holds the run to repeat: the new results would replace it (hint: name another folder by --out, or \
         leave --out out)",
        folder.display()
    )))
}

/// The folder below `out` that holds the summary of the run that has just ended.
fn results(target: &str, out: &Path) -> PathBuf {
    match target {
        "output" => out.join(TASKS_FILE).with_extension("report"),
        "output-dir" => {
            let folders = std::fs::read_dir(out).into_iter().flatten().flatten().map(|entry| entry.path());
            // Named by when they began.
            let newest = folders.filter(|folder| folder.join(summary::FILE_NAME).is_file()).max();
            newest.unwrap_or_else(|| out.to_owned())
        }
        _ => out.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_lies_beside_what_is_repeated_by_a_path_to_be_read() {
        assert_eq!(beside(Path::new("a b/x")), Path::new("a b/x-rerun"));
        assert_eq!(beside(Path::new("x")), Path::new("x-rerun"));
        assert_eq!(beside(Path::new("/data/x/")), Path::new("/data/x-rerun"));
        let dir = tempfile::tempdir().unwrap();
        let (x, above) = (dir.path().join("x"), dir.path().join("x/y/.."));
        std::fs::create_dir_all(x.join("y")).unwrap();
        assert_eq!(beside(&above), above.join("../x-rerun"));
        assert!(beside(Path::new(".")).starts_with(".."));
    }

    #[test]
    fn recipes_are_checked_before_anything_is_run() {
        let wrong = |text: &str| {
            let recipe: toml::Table = toml::from_str(text).unwrap();
            steps(&recipe, Path::new("in"), Path::new("out"), crate::parse_words).err().unwrap()
        };
        assert!(wrong("title = 'x'").contains("[[run]]"));
        assert!(wrong("[[runs]]").contains("\"runs\""));
        assert!(wrong("[[run]]\ncommand = 'rm'").contains("cannot run \"rm\""));
        assert!(wrong("[[run]]\narguments = ['dataset']\nimags = 3").contains("--imags"));
        assert!(wrong("[[run]]\narguments = ['dataset']\nout = 'x'").contains("--out"));
        let other_name = wrong("[[run]]\narguments = ['dataset']\noutput = 'x'");
        assert!(other_name.contains("--output is set by the recipe's name"), "{other_name}");
        assert!(wrong("[[run]]\narguments = ['dataset']\nname = '../x'").contains("no name of a folder"));
        assert!(wrong("[[run]]\narguments = ['dataset']\nimages = 1979-01-01").contains("images"));
        let twice = "[[run]]\narguments = ['dataset']\nname = 'a'\n";
        assert!(wrong(&format!("{twice}{twice}")).contains("run 2"));
        let recipe: toml::Table =
            toml::from_str("[[run]]\narguments = ['dataset']\nformats = ['tiff', 'parquet']\nno-cold = true")
                .unwrap();
        let all = steps(&recipe, Path::new("in"), Path::new("out"), crate::parse_words).unwrap();
        assert_eq!(
            all[0].words,
            ["bench", "dataset", "--formats=tiff,parquet", "--no-cold", "--out=out/1-bench"]
        );
        let recipe = "[[run]]\ncommand = 'tasks'\narguments = ['train']\nconfig = '{recipe}/a.csv'";
        let all =
            steps(&toml::from_str(recipe).unwrap(), Path::new("in"), Path::new("out"), crate::parse_words)
                .unwrap();
        assert_eq!(all[0].words, ["tasks", "train", "--config=in/a.csv", "--output=out/1-tasks.json"]);
    }

    #[test]
    fn the_recipes_that_come_with_the_program_can_be_run() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "toml") {
                continue;
            }
            let recipe: toml::Table = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let all = steps(&recipe, &folder, Path::new("out"), crate::parse_words);
            let all = all.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            for table in
                all.iter().flat_map(|step| &step.words).filter_map(|word| word.strip_prefix("--config="))
            {
                assert!(Path::new(table).is_file(), "{table}");
            }
            names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        }
        names.sort();
        assert_eq!(
            names,
            ["cyto-dl", "inference-suite", "quick", "upstream-caches", "upstream-storage", "upstream-tracks"]
        );
    }
}
