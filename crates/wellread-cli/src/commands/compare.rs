//! `wellread compare A B`

use super::{parse_positive, parse_share};
use crate::output::{Failure, Outcome, Ui, shown_on};
use serde_json::json;
use std::path::{Path, PathBuf};
use wellread_compare::revisions::{self, Revisions};
use wellread_compare::{Comparison, Options, Results, compare, figure, history, text};

/// Compares two results, or two revisions, and fails with code 3 when the second is slower.
#[derive(clap::Args)]
#[command(after_help = "\
Compares two results, or two revisions, and fails with code 3 when the second is slower.

A and B are result files (.parquet, .csv, .json as bench, infer and tasks write them), folders of them, or commits of
the repository around the working folder. Rows are matched by their configuration; each gets the ratio of B to A with
its 95 % interval and a verdict: faster, slower, same or unclear. Noise is no regression: an interval that holds 1,
a ratio below the noise floor of the runs, a probability that does not survive the correction for all rows of its table.

Examples:
  wellread compare results-before results-after
  wellread compare before/dataset.parquet after/dataset.parquet --threshold 3% --markdown report.md
  wellread compare main HEAD --features parquet,tiff -- dataloader --images 200 --formats parquet --repeats 3
  wellread compare results --history history.jsonl --label $(git rev-parse --short HEAD)
  wellread compare --history history.jsonl")]
pub struct Args {
    /// The baseline: a results file or folder, or a commit. Alone with --history, it is added there.
    a: Option<String>,
    /// What is compared with it.
    b: Option<String>,
    /// Slow-downs up to this are no regression.
    #[arg(long, default_value = "5%", value_parser = parse_share)]
    threshold: f64,
    /// Columns to compare, such as p50_s,open_s; all for every one. By default each table's headline.
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    quantity: Vec<String>,
    /// Tables to compare; by default all.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    table: Vec<String>,
    /// Write the comparison as Markdown, for a pull request; - writes it to stdout instead of the text.
    #[arg(long, value_name = "FILE|-")]
    markdown: Option<PathBuf>,
    /// Add B's figures (or A's, when it is alone) to this file of JSON lines, and say where in it a level changed.
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// What the record in the history is called; by default the commit that was measured.
    #[arg(long, requires = "history")]
    label: Option<String>,
    /// Seed of resampling and of the order of turns.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Rounds of two revisions; each runs A twice (for the noise floor) and B once.
    #[arg(help_heading = "Revisions", long, default_value_t = 10, value_parser = parse_positive)]
    rounds: usize,
    /// Cargo features to build revisions with, instead of the default ones.
    #[arg(help_heading = "Revisions", long, value_name = "LIST")]
    features: Option<String>,
    /// What to measure of revisions: arguments of `wellread bench`.
    #[arg(help_heading = "Revisions", last = true, value_name = "BENCH ARGUMENTS")]
    bench: Vec<String>,
}

/// What A and B are.
enum Given {
    Results,
    Revisions,
}

fn failed(error: &anyhow::Error) -> Failure {
    Failure::Failed(format!("{error:#}"))
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let mut options = Options {
        threshold: args.threshold,
        quantities: args.quantity.clone(),
        tables: args.table.clone(),
        seed: args.seed,
        ..Options::default()
    };
    match (&args.a, &args.b) {
        (None, _) => match &args.history {
            Some(path) if args.markdown.is_none() => show_history(path, None, &options, ui),
            Some(_) => Err(Failure::Usage("--markdown needs two results to compare".to_owned())),
            None => Err(Failure::Usage(
                "name two results to compare, or a history: wellread compare A B, wellread compare --history FILE".to_owned(),
            )),
        },
        (Some(a), None) => match &args.history {
            Some(path) if args.markdown.is_none() => {
                let results = open(a)?;
                show_history(path, Some((&results, label(args, &results))), &options, ui)
            }
            Some(_) => Err(Failure::Usage("--markdown needs two results to compare".to_owned())),
            None => Err(Failure::Usage(format!("name what to compare {a} with, or --history FILE to add it to"))),
        },
        (Some(a), Some(b)) => {
            let [first, second] = match given(args, a, b)? {
                Given::Results => [open(a)?, open(b)?],
                Given::Revisions => measure(args, [a, b], &mut options, ui)?,
            };
            let found = compare(&first, &second, &options).map_err(|e| failed(&e))?;
            let kept = match &args.history {
                Some(path) => Some(keep(path, &second, &label(args, &second), &options)?),
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
fn given(args: &Args, a: &str, b: &str) -> Outcome<Given> {
    let is_path = |name: &str| Path::new(name).exists();
    let is_commit = |name: &str| revisions::commit(Path::new("."), name).is_some();
    match (is_path(a), is_path(b)) {
        (true, true) if args.bench.is_empty() => Ok(Given::Results),
        (true, true) => Err(Failure::Usage(format!(
            "{a} and {b} are files or folders, whose results are compared as they are; arguments after -- are for commits"
        ))),
        (false, false) if is_commit(a) && is_commit(b) => {
            if args.bench.is_empty() {
                return Err(Failure::Usage(format!(
                    "{a} and {b} are commits; say what to measure, such as: wellread compare {a} {b} -- dataloader --images 200"
                )));
            }
            Ok(Given::Revisions)
        }
        (one, other) => {
            let unknown = if one || (!other && is_commit(a)) { b } else { a };
            let hint = if is_commit(unknown) {
                "is a commit and the other a file; compare two of a kind"
            } else {
                "is neither a results file or folder nor a commit of a repository here"
            };
            Err(Failure::Failed(format!("{unknown}: {hint}")))
        }
    }
}

fn open(path: &str) -> Outcome<Results> {
    if !Path::new(path).exists() {
        return Err(Failure::Failed(format!("{path}: there is no such file or folder")));
    }
    Results::open(Path::new(path)).map_err(|e| failed(&e))
}

fn measure(args: &Args, names: [&str; 2], options: &mut Options, ui: Ui) -> Outcome<[Results; 2]> {
    let revisions = Revisions {
        repository: PathBuf::from("."),
        cache: revisions::cache(),
        rounds: args.rounds,
        features: args.features.clone(),
        arguments: args.bench.clone(),
    };
    let bar = ui.progress(0, "building");
    let measured = revisions.measure(names, options, &shown_on(&bar));
    bar.finish_and_clear();
    measured.map_err(|e| failed(&e))
}

/// What the record is called: as asked, else the commit, else the version.
fn label(args: &Args, results: &Results) -> String {
    let text = |pointer: &str| results.detail(pointer).and_then(|value| value.as_str()).map(str::to_owned);
    let commit = text("/commit").or_else(|| text("/environment/git/commit"));
    let commit = commit.map(|commit| commit.chars().take(12).collect());
    args.label.clone().or(commit).or_else(|| text("/wellread")).unwrap_or_else(|| results.label.clone())
}

fn keep(path: &Path, results: &Results, label: &str, options: &Options) -> Outcome<Vec<history::Record>> {
    let record = history::record(results, label, options).map_err(|e| failed(&e))?;
    history::append(path, record).map_err(|e| failed(&e))
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
        Some((results, label)) => keep(path, results, &label, options)?,
        None => history::read(path).map_err(|e| failed(&e))?,
    };
    if records.is_empty() {
        return Err(Failure::Failed(format!("{}: holds no record yet", path.display())));
    }
    let all = history::series(&records, options.seed);
    ui.document(&json!({ "history": path, "runs": records.len(), "series": all }))?;
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
