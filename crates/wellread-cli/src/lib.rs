//! The `wellread` command: argument parsing and printing only; the work is done by the other crates.
//!
//! A library, so that the Python package is the same command ([`run`]); the program is in `main.rs`.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.

mod commands;
mod output;

// Links the storage engines.
use wellread as _;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::io::Write as _;

/// Read microscopy images into models at memory speed, and measure every step honestly.
#[derive(Parser)]
#[command(name = "wellread", version, about, max_term_width = 110)]
struct Cli {
    /// Print one JSON document on stdout and everything else on stderr.
    #[arg(long, global = true)]
    json: bool,
    /// Print neither progress nor hints.
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show what a set of images is: format, shapes, pixel type, channels, layout, size.
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
    /// Say what works on this machine, and how to get what is missing.
    Doctor(commands::doctor::Args),
    /// Measure how fast stored images become tensors, step by step; ends with a report.
    Bench(Box<commands::bench::Args>),
    /// Measure inference: latency, throughput and memory of PyTorch, JAX, ONNX Runtime and candle.
    Infer(Box<commands::infer::Args>),
    /// The worker of infer for backends in Rust.
    #[command(hide = true)]
    InferWorker,
    /// Make plots and report.html again from a results folder.
    Report(commands::report::Args),
}

/// Parses the arguments; a negative number is a value that is refused, not an unknown option.
fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let command = Cli::command().mut_subcommands(|c| c.allow_negative_numbers(true));
    Cli::from_arg_matches(&command.try_get_matches_from(args)?)
}

/// Runs the command with these arguments, of which the first is the program's name, and returns its exit code. Takes over
/// what happens on Ctrl-C for the rest of the process: unfinished output is removed, and the process ends with code 130.
///
/// `program` is what starts this command again in a process of its own, before any arguments: some benchmarks do.
pub fn run(program: Vec<OsString>, args: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match parse(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Where nobody reads it, nobody misses it.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    // Interrupted or asked to end: nothing half-written stays but what can be gone on with. Without a handler it would,
    // until the next run.
    let _ = ctrlc::set_handler(|| {
        let said = if wellread_store::staged::remove_unfinished() {
            "interrupted; what is complete is kept: the same command goes on with it"
        } else {
            "interrupted; unfinished output was removed"
        };
        // A terminal that is gone must not keep the program from ending.
        let _ = writeln!(std::io::stderr(), "{said}");
        std::process::exit(130);
    });
    let ui = output::Ui::new(cli.json, cli.quiet);
    let result = match cli.command {
        Command::Info(args) => commands::info::run(&args, ui),
        Command::Checksum(args) => commands::checksum::run(&args, ui),
        Command::Verify(args) => commands::verify::run(&args, ui),
        Command::Stats(args) => commands::stats::run(&args, ui),
        Command::Convert(args) => commands::convert::run(&args, ui),
        Command::Generate(args) => commands::generate::run(&args, ui),
        Command::View(args) => commands::view::run(&args, ui),
        Command::Doctor(args) => commands::doctor::run(&args, ui),
        Command::Bench(args) => commands::bench::run(&args, ui),
        Command::Infer(args) => commands::infer::run(&args, program, ui),
        Command::InferWorker => {
            wellread_infer::serve::main();
            Ok(())
        }
        Command::Report(args) => commands::report::run(&args, ui),
    };
    match result {
        Ok(()) => 0,
        Err(output::Failure::Reported) => 1,
        Err(output::Failure::Usage(message)) => {
            eprintln!("error: {message}");
            2
        }
        Err(output::Failure::Failed(message)) => {
            eprintln!("error: {message}");
            1
        }
    }
}
