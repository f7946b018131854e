//! `wellread compare A B`

use super::result_file::local_path;
use super::{parse_positive, parse_share};
use crate::output::{Failure, Outcome, Ui, shown_on};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use wellread_compare::revisions::{self, Revisions};
use wellread_compare::{Comparison, Options, Results, compare, figure, history, sides, text};
use wellread_measure::path_text;
use wellread_report::summary;
use wellread_store::staged::ScratchFolder;

/// Compares two results, or two revisions, and fails with code 3 when the second is slower.
#[derive(clap::Args)]
#[command(after_help = "\
Compares two results, or two revisions, and fails with code 3 when the second is slower.

A and B are result files (.parquet, .csv, .json as bench, infer and tasks write them) or folders of them. They may \
also be commits of the repository around the working folder. Either side may be several results: A1 A2 A3 -- B1 B2 B3. \
Rows are matched by their configuration. Each gets the ratio of B to A with its 95 % interval and a verdict: faster, \
slower, same or unclear. The interval counts processes, since rounds of one process do not predict the next. Fewer \
than three processes a side give a ratio within these runs, no verdict and no code 3. Noise is no regression: the \
interval must not hold 1, and the probability must survive the correction for all rows of its table.

Examples:
  wellread bench dataloader --input plate.parquet --processes 5 --out before
  wellread compare before after
  wellread compare before-1 before-2 before-3 -- after-1 after-2 after-3 \\
      --threshold 3% --markdown report.md
  wellread compare main HEAD --features parquet,tiff -- dataloader \\
      --images 200 --formats parquet --repeats 3
  wellread compare results --history history.jsonl \\
      --label $(git rev-parse --short HEAD)
  wellread compare --history history.jsonl")]
pub struct Args {
    /// The baseline, then its competitor: results files or folders, or commits. Several results of each have -- between
    /// the two sides. --history takes a single one, too.
    #[arg(value_name = "A B")]
    given: Vec<String>,
    /// A slower row is a regression where its interval reaches this slow-down.
    #[arg(long, default_value = "5%", value_parser = parse_share, allow_hyphen_values = true)]
    threshold: f64,
    /// Columns to compare, such as p50_s,open_s, or all; by default each table's headline.
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    quantity: Vec<String>,
    /// Tables to compare; by default all.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    table: Vec<String>,
    /// Write the comparison as Markdown to this file, for a pull request; - prints it to stdout instead of the text.
    #[arg(long, value_name = "FILE|-", value_parser = local_path())]
    markdown: Option<PathBuf>,
    /// Add B's figures (or A's, if it is alone) to this file of JSON lines, and report where a level changed.
    #[arg(long, value_name = "FILE", value_parser = local_path())]
    history: Option<PathBuf>,
    /// Name of the record in the history; by default the measured commit.
    #[arg(long, requires = "history")]
    label: Option<String>,
    /// Judge rounds of one process a side, as if the next process were the same. This interval misses differences
    /// between processes and between hours. Also compare results from unlike nodes of a cluster.
    #[arg(long)]
    assume_same_conditions: bool,
    /// Seed of resampling and of the order of turns.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Rounds of two revisions; each runs A twice (for the noise floor) and B once.
    #[arg(help_heading = "Revisions", long, default_value_t = 10, value_parser = parse_positive)]
    rounds: usize,
    /// Cargo features to build revisions with, instead of the default ones.
    #[arg(help_heading = "Revisions", long, value_name = "LIST")]
    features: Option<String>,
    /// Results of B, behind those of A. For two commits: arguments of `wellread bench`, which say what to measure.
    #[arg(last = true, value_name = "B RESULTS | BENCH ARGUMENTS")]
    after: Vec<String>,
}

/// The kind of A and B.
enum ComparedInputs<'a> {
    /// Files and folders of each side.
    Results(Vec<&'a str>, Vec<&'a str>),
    /// A commit of each.
    Revisions([&'a str; 2]),
}

impl Args {
    /// Whether options may stand behind the results of B: after -- of two commits come arguments of bench, and nothing is known of
    /// them.
    pub fn has_options_behind_results(&self) -> bool {
        let is_option = |word: &String| word.starts_with('-') && !Path::new(word).exists();
        self.given.iter().all(|name| Path::new(name).exists()) && self.after.iter().any(is_option)
    }
}

/// The words of a command line with the options that `compare` has before its --, wherever they stand.
pub fn options_first(words: &[OsString], compare: &clap::Command) -> Vec<OsString> {
    let Some(at) = words.iter().position(|word| word.to_str() == Some("--")) else { return words.to_vec() };
    let (mut first, mut behind) = (words[..at].to_vec(), vec![words[at].clone()]);
    let mut rest = words[at + 1..].iter().cloned();
    while let Some(word) = rest.next() {
        match word.to_str().and_then(|text| takes_next_word(text, compare)) {
            None => behind.push(word),
            Some(takes_next) => {
                first.push(word);
                if takes_next {
                    first.extend(rest.next());
                }
            }
        }
    }
    first.extend(behind);
    first
}

/// Whether the next word is the value of this one; `None` if this one is no option of the command.
fn takes_next_word(word: &str, command: &clap::Command) -> Option<bool> {
    let (name, has_value) = word.split_once('=').map_or((word, false), |(name, _)| (name, true));
    let is_meant = |arg: &&clap::Arg| match name.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| name == format!("-{short}")),
    };
    let arg = command.get_arguments().find(is_meant)?;
    Some(arg.get_action().takes_values() && !has_value)
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let mut options = Options {
        threshold: args.threshold,
        quantities: args.quantity.clone(),
        tables: args.table.clone(),
        seed: args.seed,
        same_conditions: args.assume_same_conditions,
        ..Options::default()
    };
    match (args.given.as_slice(), args.after.is_empty()) {
        ([], _) => match &args.history {
            Some(_) if args.label.is_some() || !args.table.is_empty() || !args.quantity.is_empty() => {
                Err(Failure::Usage(
                    "--label, --table and --quantity are of results that are added to a history; name these: wellread compare \
                     RESULTS --history FILE"
                        .to_owned(),
                ))
            }
            Some(path) if args.markdown.is_none() => show_history(path, None, &options, ui),
            Some(_) => Err(Failure::Usage("--markdown needs two results to compare".to_owned())),
            None => Err(Failure::Usage(
                "name two results to compare, or a history: wellread compare A B, wellread compare --history FILE".to_owned(),
            )),
        },
        ([a], true) => match &args.history {
            Some(path) if args.markdown.is_none() => {
                let results = open(&[a])?;
                show_history(path, Some((&results, label(args, &results))), &options, ui)
            }
            Some(_) => Err(Failure::Usage("--markdown needs two results to compare".to_owned())),
            None => Err(Failure::Usage(format!("name what to compare {a} with, or --history FILE to add it to"))),
        },
        _ => {
            let [first, second] = match given(args)? {
                ComparedInputs::Results(a, b) => {
                    on_one_side(&a, &b)?;
                    [open(&a)?, open(&b)?]
                }
                ComparedInputs::Revisions(names) => measure(args, names, &mut options, ui)?,
            };
            let found = compare(&first, &second, &options)?;
            let kept = match &args.history {
                Some(path) => Some(keep(path, &second, &label(args, &second), &options, ui)?),
                None => None,
            };
            print(args, &found, kept.as_deref(), ui)?;
            if !found.comparable {
                return Err(Failure::Failed(
                    "the two were not measured on the same pixels; measure both on the same images".to_owned(),
                ));
            }
            if found.regressions > 0 { Err(Failure::Regression) } else { Ok(()) }
        }
    }
}

/// Files and folders before commits of the same name; both sides alike.
fn given(args: &Args) -> Outcome<ComparedInputs<'_>> {
    fn all(names: &[String]) -> Vec<&str> {
        names.iter().map(String::as_str).collect()
    }
    let is_path = |name: &str| Path::new(name).exists();
    let is_commit = |name: &str| revisions::commit(Path::new("."), name).is_some();
    let (before, after) = (all(&args.given), all(&args.after));
    match before.as_slice() {
        [a, b] if after.is_empty() && is_path(a) && is_path(b) => {
            Ok(ComparedInputs::Results(vec![a], vec![b]))
        }
        [a, b] if !is_path(a) && !is_path(b) && is_commit(a) && is_commit(b) => {
            if after.is_empty() {
                return Err(Failure::Usage(format!(
                    "{a} and {b} are commits; say what to measure, such as: wellread compare {a} {b} -- dataloader --images 200"
                )));
            }
            Ok(ComparedInputs::Revisions([a, b]))
        }
        _ => {
            // The first that is of another kind than it should be.
            if let Some(unknown) = before.iter().find(|name| !is_path(name)) {
                let hint = if is_commit(unknown) {
                    "is a commit; two commits are compared, or results"
                } else {
                    "is neither a results file or folder nor a commit of a repository here"
                };
                return Err(Failure::Failed(format!("{unknown}: {hint}")));
            }
            if let Some(missing) = after.iter().find(|name| !is_path(name)) {
                return Err(Failure::Usage(format!(
                    "{missing} is no file or folder: give the results of B after --, if those of A are before it. \
                     Arguments of bench are for two commits alone"
                )));
            }
            if after.is_empty() {
                return Err(Failure::Usage(
                    "put -- before the results of B: wellread compare A1 A2 A3 -- B1 B2 B3".to_owned(),
                ));
            }
            Ok(ComparedInputs::Results(before, after))
        }
    }
}

/// Checks that no results stand on both sides: they agree with themselves, whatever they are.
fn on_one_side(a: &[&str], b: &[&str]) -> Outcome {
    fn canonical(path: &str) -> Option<PathBuf> {
        let at = Path::new(path).canonicalize().ok()?;
        // The summary of a folder stands for all of its results.
        let is_summary = at.file_name().is_some_and(|name| name == summary::FILE_NAME);
        if is_summary { at.parent().map(Path::to_owned) } else { Some(at) }
    }
    let of_a: Vec<PathBuf> = a.iter().filter_map(|path| canonical(path)).collect();
    match b.iter().find(|path| canonical(path).is_some_and(|at| of_a.contains(&at))) {
        Some(path) => Err(Failure::Usage(format!(
            "{path} is on both sides of the comparison, and results do not differ from themselves; name other results for A or B"
        ))),
        None => Ok(()),
    }
}

fn open(paths: &[&str]) -> Outcome<Results> {
    if let Some(path) = paths.iter().find(|path| !Path::new(path).exists()) {
        return Err(Failure::Failed(format!("{path}: there is no such file or folder")));
    }
    let paths: Vec<&Path> = paths.iter().map(Path::new).collect();
    sides::open(&paths).map_err(Failure::from)
}

fn measure(args: &Args, names: [&str; 2], options: &mut Options, ui: Ui) -> Outcome<[Results; 2]> {
    let cache = revisions::cache();
    let scratch = std::fs::create_dir_all(&cache).and_then(|()| ScratchFolder::within(&cache));
    let scratch =
        scratch.map_err(|e| Failure::Failed(format!("cannot make a folder in {}: {e}", cache.display())))?;
    let revisions = Revisions {
        repository: PathBuf::from("."),
        cache,
        scratch: scratch.path().to_owned(),
        rounds: args.rounds,
        features: args.features.clone(),
        arguments: args.after.clone(),
    };
    let bar = ui.progress(0, "building");
    let measured = revisions.measure(names, options, &shown_on(&bar));
    bar.finish_and_clear();
    measured.map_err(Failure::from)
}

/// The name of the record: as asked, else the commit, else the version.
fn label(args: &Args, results: &Results) -> String {
    let text = |pointer: &str| results.detail(pointer).and_then(|value| value.as_str()).map(str::to_owned);
    let commit = text("/commit").or_else(|| text("/environment/git/commit"));
    let commit = commit.map(|commit| commit.chars().take(12).collect());
    args.label.clone().or(commit).or_else(|| text("/wellread")).unwrap_or_else(|| results.label.clone())
}

/// Adds the results to a history, and says where they are in it already; all of its records.
fn keep(
    path: &Path,
    results: &Results,
    label: &str,
    options: &Options,
    ui: Ui,
) -> Outcome<Vec<history::Record>> {
    let record = history::record(results, label, options)?;
    let (records, is_added) = history::append(path, record)?;
    if !is_added {
        ui.hint(format!("{} is in the history already: nothing was added", results.label));
    }
    Ok(records)
}

fn print(args: &Args, found: &Comparison, kept: Option<&[history::Record]>, ui: Ui) -> Outcome {
    let to_stdout = args.markdown.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if ui.json {
        ui.document(found)?;
    }
    if to_stdout {
        ui.say(text::markdown(found).trim_end());
    } else if !ui.json {
        ui.say(text::plain(found));
    }
    if let Some(path) = args.markdown.as_ref().filter(|_| !to_stdout) {
        wellread_report::staged::write(path, text::markdown(found).as_bytes())
            .map_err(|e| Failure::Failed(e.to_string()))?;
        ui.hint(format!("Markdown: {}", path.display()));
    }
    if let (Some(records), Some(path)) = (kept, &args.history) {
        let all = history::series(records, args.seed);
        ui.hint(format!("History: {}", history::text(records, &all)));
        draw(path, records, &all, ui)?;
    }
    Ok(())
}

/// Adds a record, where there is one, and says what the history shows.
fn show_history(path: &Path, new: Option<(&Results, String)>, options: &Options, ui: Ui) -> Outcome {
    let records = match new {
        Some((results, label)) => keep(path, results, &label, options, ui)?,
        None => history::read(path)?,
    };
    if records.is_empty() {
        return Err(Failure::Failed(format!("{}: holds no record yet", path.display())));
    }
    let all = history::series(&records, options.seed);
    ui.document(&json!({ "history": path_text::text(path), "runs": records.len(), "series": all }))?;
    if !ui.json {
        ui.say(history::text(&records, &all));
    }
    draw(path, &records, &all, ui)
}

/// The figure beside the history's file.
fn draw(path: &Path, records: &[history::Record], all: &[history::Series], ui: Ui) -> Outcome {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    let Some(figure) = figure::history(&name, records, all) else { return Ok(()) };
    let [svg, _] = figure.write(folder).map_err(|e| Failure::Failed(e.to_string()))?;
    ui.hint(format!("Figure: {}", svg.display()));
    Ok(())
}
