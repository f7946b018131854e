//! `wellread tasks`

mod on_nodes;

use super::nodes::NodeArgs;
use super::parse_positive;
use super::result_file::{local_folder, local_path};
use super::trace::TraceArgs;
use crate::output::{Failure, Outcome, Ui, shown_on};
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use wellread_bench::machine;
use wellread_measure::path_text;
use wellread_report::Fact;
use wellread_tasks::config::Config;
use wellread_tasks::plan::Planned;
use wellread_tasks::suite::{self, Event};
use wellread_tasks::task::Mode;
use wellread_tasks::{adapter, report, text};

/// Most runs of a task.
const MAX_REPEATS: usize = 1000;

/// Measures training or inference across git branches, phase by phase; writes JSON and a report.
#[derive(clap::Args)]
#[command(after_help = "\
The table is a CSV file: branch,experiment,trainer,max_epochs,batch_size,overrides (train) or \
branch,experiment,checkpoint_path,data_path,trainer,batch_size,overrides (inference); # begins a comment. Each branch \
has a git worktree of its own, so your checkout stays as it is.

Examples:
  wellread tasks train --config tasks.csv --output results/train.json --dry-run
  wellread tasks train --config tasks.csv --output results/train.json \\
      --repeats 5 --compare
  wellread tasks inference --config tasks.csv --output results/inference.json \\
      --skip-failed --baseline main
  wellread tasks train --config tasks.csv --output results/train.json \\
      --timeout 3600 --resume
  wellread tasks train --config tasks.csv --output results/train.json \\
      --repeats 5 --on slurm")]
pub struct Args {
    /// Mode to measure.
    #[arg(value_parser = ["train", "inference"])]
    mode: String,
    /// The table of tasks, a CSV file.
    #[arg(long, value_name = "TASKS.csv")]
    config: PathBuf,
    /// The results, a JSON file; logs, checkpoints and the report go beside it.
    #[arg(long, alias = "out", value_name = "RESULTS.json", value_parser = local_path())]
    output: PathBuf,
    /// The git repository, or a folder of it.
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
    /// How experiments are run; auto chooses by the files of the branch.
    #[arg(long, default_value = "auto", value_parser = adapter::names())]
    adapter: String,
    /// Go on after a task that fails, and leave out rows that cannot run.
    #[arg(long)]
    skip_failed: bool,
    /// Print how each branch compares with the baseline, phase by phase. A verdict needs three runs of each.
    #[arg(long)]
    compare: bool,
    /// Runs of each task; those of one experiment alternate in random order. With one or two, ratios hold within these
    /// runs only, and there is no verdict.
    #[arg(long, default_value_t = 1, value_parser = parse_repeats)]
    repeats: usize,
    /// Branch to compare the others with; by default the first row of each experiment. Implies --compare.
    #[arg(long, value_name = "BRANCH")]
    baseline: Option<String>,
    /// Seconds after which a run is ended with all processes that it started; its error says so.
    #[arg(long, value_name = "SECONDS", value_parser = super::parse_seconds)]
    timeout: Option<f64>,
    /// Keep results of the same tasks at the same commits, and run what is missing.
    #[arg(long)]
    resume: bool,
    /// Python for adapters in Python; by default that of WELLREAD_PYTHON, else an environment made from each branch's
    /// lock file or requirements.
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Folder of the report; by default RESULTS.report beside the results.
    #[arg(long, alias = "out-report", value_name = "DIR", value_parser = local_folder())]
    report: Option<PathBuf>,
    /// Check everything that can be checked, print the plan, and run nothing.
    #[arg(long)]
    dry_run: bool,
    /// Seed of the tasks and of the order of runs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    nodes: NodeArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
}

impl Args {
    fn config(&self, program: Vec<OsString>) -> Config {
        Config {
            mode: if self.mode == "train" { Mode::Train } else { Mode::Inference },
            table: self.config.clone(),
            output: self.output.clone(),
            repository: self.repo.clone(),
            adapter: self.adapter.clone(),
            skip_failed: self.skip_failed,
            repeats: self.repeats,
            baseline: self.baseline.clone(),
            timeout: self.timeout.map(Duration::from_secs_f64),
            resume: self.resume,
            python: self.python.clone(),
            report: self.report.clone(),
            dry_run: self.dry_run,
            seed: self.seed,
            program,
            cache: wellread_worker::cache_folder(),
            command: super::command_line::command_line(),
            working_folder: super::command_line::working_folder(),
            recipe: super::command_line::current().map(|current| current.text),
            node: None,
            on_other_machines: false,
            experiment: None,
        }
    }
}

fn parse_repeats(text: &str) -> Result<usize, String> {
    parse_positive(text).and_then(|n| {
        if n <= MAX_REPEATS { Ok(n) } else { Err(format!("{n} are too many: {MAX_REPEATS} at most")) }
    })
}

pub fn run(args: &Args, program: Vec<OsString>, ui: Ui) -> Outcome {
    let mut config = args.config(program);
    if let Some(part) = args.nodes.part() {
        on_nodes::take_part(&mut config, part);
    } else if !config.resume && config.output.is_file() {
        // Said while it can still be stopped, and of a plan, too.
        ui.hint(format!(
            "note: the results of an earlier run in {} will be replaced (--resume goes on with them, --output ANOTHER keeps both)",
            config.output.display()
        ));
    }
    let bar = ui.progress(0, "preparing");
    let print = |event: &Event<'_>| print_event(event, &bar, ui);
    let outcome = match args.nodes.cluster().filter(|_| !config.dry_run) {
        Some(cluster) => on_nodes::run(cluster, &config, &print, ui),
        None => suite::run(&config, &print).map_err(failed),
    };
    bar.finish_and_clear();
    let outcome = outcome?;
    if config.dry_run {
        ui.say(text::plan(&outcome.planned, config.repeats).trim_end());
        return ui.document(&plan_document(&outcome.planned));
    }
    let compared = report::comparisons(&config, &outcome);
    let facts = machine::facts(&outcome.environment, machine::Moment::BeforeRun)
        .into_iter()
        .map(Fact::from)
        .collect();
    let page = report::write(&config, &outcome, &compared, facts, machine::short(&outcome.environment));
    ui.say(text::summary(&outcome).trim_end());
    if (args.compare || args.baseline.is_some()) && !compared.is_empty() {
        ui.say(format!("\n{}", text::compared(&compared).trim_end()));
    }
    if outcome.resumed > 0 {
        let runs = wellread_store::words::counted(outcome.resumed, "run");
        let were = if outcome.resumed == 1 { "was" } else { "were" };
        ui.hint(format!("{runs} of an earlier call {were} kept"));
    }
    ui.say(format!("\nResults: {}", config.output.display()));
    if let Ok(page) = &page {
        ui.say(format!("Report: {}", page.display()));
    }
    for warning in report::warnings(&outcome) {
        ui.hint(format!("Note: {warning}"));
    }
    ui.document(&serde_json::json!({
        "output": path_text::text(&config.output),
        "report": page.as_deref().ok().map(path_text::text),
        "results": outcome.entries,
        "comparisons": compared,
        "stopped": outcome.stopped,
    }))?;
    // The results are told first.
    page.map_err(failed)?;
    if let Some(why) = outcome.stopped {
        let hint = "the results so far are kept; --skip-failed continues after a failure, --resume continues \
                    from the results";
        return Err(Failure::Failed(format!("{why}\n{hint}")));
    }
    if outcome.entries.iter().all(|entry| entry.successful().next().is_none()) {
        let first = outcome.entries.iter().find_map(|entry| entry.error.clone()).unwrap_or_default();
        return Err(Failure::Failed(format!("every task failed; the first: {first}")));
    }
    Ok(())
}

fn failed(error: impl Into<wellread_tasks::Error>) -> Failure {
    Failure::Failed(format!("{:#}", error.into()))
}

fn plan_document(planned: &[Planned]) -> serde_json::Value {
    let tasks: Vec<_> = planned
        .iter()
        .map(|task| {
            let ready = task.ready.as_ref();
            serde_json::json!({
                "label": task.label,
                "task_config": task.config,
                "git_info": task.git_info(),
                "python": ready.ok().and_then(|ready| ready.python.clone()),
                "error": ready.err(),
            })
        })
        .collect();
    serde_json::json!({ "plan": tasks })
}

fn print_event(event: &Event<'_>, bar: &ProgressBar, ui: Ui) {
    match event {
        Event::Note(text) => bar.suspend(|| ui.hint(text)),
        Event::Begin { what, done, of } => shown_on(bar)(what, *done, *of),
        Event::End { what, repeat } => bar.suspend(|| match (&repeat.error, repeat.wall_seconds) {
            (Some(error), _) => ui.hint(format!("{what}: failed: {error}")),
            (None, seconds) => ui.hint(format!("{what}: {:.1} s", seconds.unwrap_or(0.0))),
        }),
    }
}
