//! `wellread verify PATH [--against EXPECTED.json|OTHER_PATH]`

use super::{OpenArgs, default_jobs, parse_threads};
use crate::output::{Failure, Outcome, Ui, bytes};
use std::path::PathBuf;
use wellread_store::verify::{expected_of, verify};

/// Reads every pixel; exit code 1 when something is corrupt or differs.
#[derive(clap::Args)]
#[command(after_help = "\
Reads every pixel; exit code 1 when something cannot be read or differs. What a format keeps no checksums of
(Parquet without page checksums, Lance, Vortex, uncompressed TIFF) may be damaged and still be read: compare it with
expected checksums or with its source (--against).

Examples:
  wellread verify plate.parquet
  wellread verify plate.zarr --against plate.parquet
  wellread verify plate.parquet --against expected.json")]
pub struct Args {
    /// A file or folder of images.
    path: PathBuf,
    /// Expected checksums (JSON) or another set of the same images in any format.
    #[arg(long, value_name = "EXPECTED.json|PATH")]
    against: Option<PathBuf>,
    /// Problems to print.
    #[arg(long, default_value_t = 10)]
    show: usize,
    #[command(flatten)]
    open: OpenArgs,
    /// Threads.
    #[arg(long, default_value_t = default_jobs(), value_parser = parse_threads)]
    jobs: usize,
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let store = args.open.open(&args.path)?;
    let expected = match &args.against {
        None => None,
        Some(path) if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) && path.is_file() => {
            Some(wellread_store::checksum::read_expected(path)?)
        }
        Some(path) => {
            let options = OpenArgs { skip_null: args.open.skip_null, ..OpenArgs::default() };
            let other = options.open(path)?;
            let bar = ui.progress(other.len() as u64, "reading the other set");
            let sums = expected_of(&*other, args.jobs, &|| bar.inc(1))?;
            bar.finish_and_clear();
            Some(sums)
        }
    };
    let bar = ui.progress(store.len() as u64, "reading");
    let outcome = verify(&*store, expected.as_deref(), args.jobs, &|| bar.inc(1));
    bar.finish_and_clear();
    ui.document(&serde_json::json!({
        "path": args.path, "passed": outcome.passed(), "images": outcome.images,
        "bytes_of_pixels": outcome.bytes_of_pixels, "problems": outcome.problems,
    }))?;
    if outcome.passed() {
        if !ui.json {
            let agreed = if args.against.is_some() { ", and all agree" } else { "" };
            ui.say(format!(
                "{} images ({}) read without error{agreed}",
                outcome.images,
                bytes(outcome.bytes_of_pixels)
            ));
        }
        return Ok(());
    }
    for problem in outcome.problems.iter().take(args.show) {
        let row = problem.row.map_or(String::new(), |r| format!("row {r}: "));
        let name = problem.name.as_deref().map_or(String::new(), |n| format!("{n}: "));
        eprintln!("error: {}: {row}{name}{}", args.path.display(), problem.problem);
    }
    if outcome.problems.len() > args.show {
        eprintln!("… and {} more (raise --show)", outcome.problems.len() - args.show);
    }
    eprintln!("{} problems in {} images", outcome.problems.len(), outcome.images);
    Err(Failure::Reported)
}
