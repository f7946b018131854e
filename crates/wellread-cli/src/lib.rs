//! The `wellread` command: argument parsing and printing only; the work is done by the other crates.
//!
//! A library, so that its parts have tests and documentation; the program is in `main.rs`.
//!
//! Imports go one way, from above to below:
//!
//! | layer | module | what it holds |
//! |---|---|---|
//! | the program | `out_of_memory`, `closed_stdout` | of `main.rs`: what it says when memory is refused; whether stdout was closed from the start |
//! | entry | `interrupted` | requests to end, such as Ctrl-C: nothing half-written stays but what can be gone on with |
//! | subcommands | `commands` | a file per subcommand: its arguments, and a `run` |
//! | printing | `text_table` | tables for a terminal |
//! | | `output` | progress, hints, JSON, text |
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a comparison found a regression, 130 interrupted.

mod commands;
mod interrupted;
mod output;
mod text_table;

// Links the storage engines.
use wellread as _;

use crate::commands::program::{Program, Run};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use wellread_store::journal::KeptPart;
use wellread_store::surface::{self, Surface};

/// Convert and check sets of microscopy images, and measure which format is fastest on your machine.
#[derive(Parser)]
#[command(name = "wellread", version, max_term_width = 110)]
struct Cli {
    /// Print one JSON document on stdout and everything else on stderr.
    #[arg(long, global = true, overrides_with = "json")]
    json: bool,
    /// Print neither progress nor hints.
    #[arg(long, short, global = true, overrides_with = "quiet")]
    quiet: bool,
    #[command(flatten)]
    link: commands::link::LinkArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a set's format, shapes, pixel type, channels, layout and size.
    Info(commands::info::Args),
    /// Print the SHA-256 of every image's pixels.
    Checksum(commands::checksum::Args),
    /// Read every pixel; compare with expected checksums or with another set.
    Verify(commands::verify::Args),
    /// Compute each channel's mean, deviation, percentiles and histogram over a set.
    Stats(commands::stats::Args),
    /// Convert a set of images from any format to any other.
    Convert(commands::convert::Args),
    /// Make a synthetic set of images in any or all formats.
    Generate(commands::generate::Args),
    /// Draw one image or a contact sheet as PNG.
    View(commands::view::Args),
    /// Check this machine; with --data, find what limits the loading of a set.
    Doctor(Box<commands::doctor::Args>),
    /// Recommend format, codec, chunks, workers, batch size and cache for a set.
    Advise(commands::advise::Args),
    /// Measure how fast stored images become tensors, and write a report.
    Bench(Box<commands::bench::Args>),
    /// Measure latency, throughput and memory of inference by framework.
    Infer(Box<commands::infer::Args>),
    /// Compute a table of features with a model, one row per image or cell.
    Embed(Box<commands::embed::Args>),
    /// The worker of infer and embed for models that this program runs.
    #[command(hide = true)]
    InferWorker,
    /// Measure training or inference across git branches, phase by phase.
    Tasks(Box<commands::tasks::Args>),
    /// Run a task whose experiment is wellread's own.
    #[command(hide = true)]
    TaskNative(commands::task_native::Args),
    /// Compare two results or revisions row by row: faster, slower, same or unclear.
    Compare(commands::compare::Args),
    /// Repeat the run of a summary.json, and report what differs.
    Rerun(commands::recipe::RerunArgs),
    /// Make plots and report.html again from a results folder.
    Report(commands::report::Args),
}

impl Command {
    /// Whether all that it writes before its end is its own affair, such as copies to measure: when it is interrupted, nobody
    /// looks for output.
    fn keeps_nothing(&self) -> bool {
        matches!(
            self,
            Self::Info(_)
                | Self::Checksum(_)
                | Self::Verify(_)
                | Self::Doctor(_)
                | Self::Advise(_)
                | Self::Infer(_)
                | Self::InferWorker
        )
    }
}

/// Parses the arguments; a negative number is a value that is refused, not an unknown option. Options of `compare` may stand behind
/// the results of B.
fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let args: Vec<OsString> = args.into_iter().collect();
    let mut command = Cli::command().mut_subcommands(|c| c.allow_negative_numbers(true));
    let cli = Cli::from_arg_matches(
        &command.try_get_matches_from_mut(&args).map_err(without_option).map_err(without_hidden)?,
    )?;
    let Command::Compare(compare) = &cli.command else { return Ok(cli) };
    let Some(known) = command.find_subcommand("compare").filter(|_| compare.has_options_behind_results())
    else {
        return Ok(cli);
    };
    let args = commands::compare::options_first(&args, known);
    Cli::from_arg_matches(&command.try_get_matches_from_mut(args)?)
}

/// The error of a command that there is not, without commands that nobody types among those that it may have been.
fn without_hidden(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let kind = ContextKind::SuggestedSubcommand;
    let command = Cli::command();
    let is_shown = |name: &String| command.find_subcommand(name).is_none_or(|found| !found.is_hide_set());
    let suggested = match error.get(kind) {
        Some(ContextValue::Strings(names)) => names.iter().filter(|name| is_shown(name)).cloned().collect(),
        _ => vec![],
    };
    error.remove(kind);
    if !suggested.is_empty() {
        error.insert(kind, ContextValue::Strings(suggested));
    }
    error
}

/// Options that a command lacks and users look for, and what serves in their place.
const SERVED_OTHERWISE: [(&str, &[&str], &str); 5] = [
    ("verify", &["--expected", "--checksums"], "checksums to compare with are --against EXPECTED.json"),
    ("view", &["--channel", "--channels"], "a picture has all channels, each in its colour"),
    ("convert", &["--to"], "the format to write is --format FORMAT, or the ending of the target"),
    (
        "convert",
        &["--row", "--rows", "--select"],
        "convert writes all images; in Python, ds.select(rows) is a set of some of them",
    ),
    (
        "infer",
        &["--time-budget", "--time-limit"],
        "infer ends after --iterations passes of each of --batch-sizes: give fewer of both",
    ),
];

/// The error of an option that a command lacks. Images and results have no option such as `--data` and `--out` of `bench` where a
/// command takes that path without one; others have another name. The option that is spelled most like it is about something else.
fn without_option(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        _ => String::new(),
    };
    let (option, usage) = (text(ContextKind::InvalidArg), text(ContextKind::Usage));
    let words: Vec<&str> = usage.split_whitespace().collect();
    let command = words.get(2).copied().unwrap_or_default();
    // The arguments of bench are words of compare.
    if error.kind() != ErrorKind::UnknownArgument || command == "compare" {
        return error;
    }
    let tip = tip_for(&option, command, &words);
    if tip.is_some() {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
    }
    // Nobody means the option as a path.
    let is_of_use = |tip: &String| !tip.contains("as a value, use");
    let suggested: Vec<String> = match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips.iter().map(ToString::to_string).collect(),
        _ => vec![],
    };
    let tips: Vec<String> =
        tip.map_or_else(|| suggested.into_iter().filter(is_of_use).collect(), |tip| vec![tip]);
    error.remove(ContextKind::Suggested);
    if !tips.is_empty() {
        let tips = tips.into_iter().map(Into::into).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// The words on how to do without an option that a command lacks. `usage` are the words of its usage.
fn tip_for(option: &str, command: &str, usage: &[&str]) -> Option<String> {
    // The thing that it names, and a word of the usage with the words that are typed instead.
    let (what, places) = match option {
        "--data" | "--input" | "--data-source" => {
            ("path of images", [("<PATH>", "PATH"), ("<SOURCE>", "SOURCE TARGET")])
        }
        "--out" | "--output" => {
            ("path of what is written", [("<OUT>", "OUT"), ("<TARGET>", "SOURCE TARGET")])
        }
        "--format" => {
            let cli = Cli::command();
            let known = cli.find_subcommand(command)?;
            let has = |long| known.get_arguments().any(|arg| arg.get_long() == Some(long));
            let of_set = if has("read-as") { "; the format of a set is --read-as FORMAT" } else { "" };
            return (!has("formats")).then(|| format!("JSON is --json{of_set}"));
        }
        _ => {
            let mut all = SERVED_OTHERWISE.iter();
            let found = all.find(|(of, options, _)| *of == command && options.contains(&option));
            return found.map(|(.., tip)| (*tip).to_owned());
        }
    };
    let (_, typed) = places.iter().find(|(word, _)| usage.contains(word))?;
    Some(format!("the {what} has no option here: wellread {command} {typed}"))
}

/// Parses a command that is not typed but was recorded, or is of a recipe: its words, without the program's name.
fn parse_words(words: &[String]) -> Result<Run, String> {
    let words = std::iter::once("wellread").chain(words.iter().map(String::as_str)).map(OsString::from);
    let cli = parse(words).map_err(|e| e.to_string().trim_start_matches("error: ").trim_end().to_owned())?;
    Ok(Box::new(move |program, ui| execute(cli.command, program, ui)))
}

/// Carries a command out. `program` is what starts this program again.
fn execute(command: Command, program: Vec<OsString>, ui: output::Ui) -> output::Outcome {
    match command {
        Command::Info(args) => commands::info::run(&args, ui),
        Command::Checksum(args) => commands::checksum::run(&args, ui),
        Command::Verify(args) => commands::verify::run(&args, ui),
        Command::Stats(args) => args.trace.record(ui, || commands::stats::run(&args, ui)),
        Command::Convert(args) => args.trace.record(ui, || commands::convert::run(&args, ui)),
        Command::Generate(args) => commands::generate::run(&args, ui),
        Command::View(args) => commands::view::run(&args, ui),
        Command::Doctor(args) => commands::doctor::run(&args, ui),
        Command::Advise(args) => args.trace.record(ui, || commands::advise::run(&args, ui)),
        Command::Bench(args) => {
            args.trace.record(ui, || commands::bench::run(&args, &this_program(program), ui))
        }
        Command::Infer(args) => args.trace.record(ui, || commands::infer::run(&args, program, ui)),
        Command::Embed(args) => args.trace.record(ui, || commands::embed::run(&args, &program, ui)),
        Command::InferWorker => {
            wellread_infer::serve::main();
            Ok(())
        }
        Command::Tasks(args) => args.trace.record(ui, || commands::tasks::run(&args, program, ui)),
        Command::TaskNative(args) => match commands::task_native::run(&args) {
            0 => Ok(()),
            code => Err(output::Failure::Ended(code)),
        },
        Command::Compare(args) => commands::compare::run(&args, ui),
        Command::Rerun(args) => commands::recipe::rerun(&args, &this_program(program), ui),
        Command::Report(args) => commands::report::run(&args, ui),
    }
}

/// This program, for commands that run others of it.
fn this_program(start: Vec<OsString>) -> Program {
    Program { start, parse: parse_words }
}

/// For the moment before the process ends because it could not get this many bytes of memory (`None`: the number is not
/// known). Removes output that is not finished, and returns the message. Waits for no lock that this thread might hold.
pub fn out_of_memory(bytes: Option<usize>) -> String {
    let what = bytes.map_or_else(
        || "the address space of this process is limited".to_owned(),
        |bytes| format!("a request for {} failed", output::bytes(bytes as u64)),
    );
    let kept = wellread_store::staged::try_remove_unfinished();
    let kept = if kept == Some(KeptPart::Complete) {
        "; the complete part is kept: the same command with --resume continues from it"
    } else {
        ""
    };
    format!(
        "error: not enough memory: {what}{kept} (hint: use smaller batches, fewer threads (--jobs, --workers) or \
         --memory, or raise the limit: ulimit -v)"
    )
}

/// Says that nobody gets what is printed on stdout, so that a command that prints something fails. To be called before [`run`].
pub fn stdout_is_closed() {
    output::refuse_stdout();
}

/// Runs the command with the arguments of this process, and returns its exit code. Takes over what happens on Ctrl-C for
/// the rest of the process: unfinished output is removed, and the process ends with code 130.
pub fn run() -> u8 {
    surface::set(Surface::CommandLine);
    // The path that starts this program again in a process of its own, as some benchmarks do. Without it, which no
    // system of today lacks, the program is found as the shell found it.
    let program = std::env::current_exe().map_or_else(|_| "wellread".into(), Into::into);
    let cli = match parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            if error.use_stderr() {
                // Where nobody reads it, nobody misses it.
                let _ = error.print();
            } else {
                output::to_stdout(|| error.print());
            }
            return ended(code);
        }
    };
    interrupted::install_handler(cli.command.keeps_nothing());
    cli.link.set();
    let ui = output::Ui::new(cli.json, cli.quiet);
    let result = execute(cli.command, vec![program], ui);
    // A command may have failed because its output is being removed.
    interrupted::wait_for_end();
    ended(match result {
        Ok(()) => 0,
        Err(output::Failure::Reported) => 1,
        Err(output::Failure::Ended(code)) => code,
        Err(output::Failure::Regression) => 3,
        Err(output::Failure::Usage(message)) => {
            wellread_measure::to_stderr(format!("error: {message}"));
            2
        }
        Err(output::Failure::Failed(message)) => {
            wellread_measure::to_stderr(format!("error: {message}"));
            1
        }
    })
}

/// The exit code of a command that has ended with `code`: another one where what it printed got lost.
fn ended(code: u8) -> u8 {
    let Some(why) = output::stdout_failure() else { return code };
    wellread_measure::to_stderr(format!("error: {why}"));
    if matches!(code, 0 | 3) { 1 } else { code }
}
