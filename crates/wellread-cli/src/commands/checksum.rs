//! `wellread checksum PATH`

use super::on::{self, OnArgs};
use super::{OpenArgs, default_jobs, left_out, parse_jobs, unreadable};
use crate::output::{Outcome, Ui};
use std::borrow::Cow;
use std::path::PathBuf;

/// Prints row, name, shape, pixel type and SHA-256 of the C-order little-endian pixel bytes per image.
#[derive(clap::Args)]
#[command(after_help = "\
Prints row, name, shape, pixel type and SHA-256 of the C-order little-endian pixel bytes per image.

Examples:
  wellread checksum plate.parquet --json > expected.json
  wellread checksum screen.parquet --json --on ray > expected.json
  wellread checksum screen-tiff --json --on-error skip > expected.json")]
pub struct Args {
    /// A file or folder of images, a folder of tables, a pattern such as 'plates/*.parquet', or an address such as s3://bucket/plate.
    path: PathBuf,
    #[command(flatten)]
    open: OpenArgs,
    /// Threads, one at least; by default one for each processor.
    #[arg(long, default_value_t = default_jobs(), value_parser = parse_jobs)]
    jobs: usize,
    /// Images that cannot be read: raise fails at the first, skip leaves them out and lists them.
    #[arg(long, default_value = "raise", value_parser = ["raise", "skip"])]
    on_error: String,
    #[command(flatten)]
    on: OnArgs,
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let read = if let Some(on) = args.on.cluster() {
        let mut found = on.sums(&[(&args.open, args.path.as_path())], &args.on_error, "reading", ui)?;
        on::say(&found.cluster, ui);
        found.sets.pop().unwrap_or_default()
    } else {
        let store = args.open.open(&args.path, ui)?;
        let bar = ui.progress(store.len() as u64, "reading");
        let sums = wellread_store::checksum::all(&*store, args.jobs, &|| bar.inc(1));
        bar.finish_and_clear();
        sums
    };
    let (mut sums, mut failed) = (Vec::with_capacity(read.len()), vec![]);
    for (row, sum) in read.into_iter().enumerate() {
        match sum {
            Ok(sum) => sums.push(sum),
            Err(error) if args.on_error == "skip" && !error.is_of_link() => failed.push((row, error)),
            Err(error) => return Err(error.into()),
        }
    }
    if sums.is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).1.into());
    }
    if !failed.is_empty() {
        let store = args.open.open(&args.path, ui)?;
        // The document is a list of images that were read.
        left_out::warn_all(&unreadable::listed(&*store, failed), ui);
    }
    if ui.json {
        return ui.document(&sums);
    }
    for sum in &sums {
        let shape = sum.shape_tczyx.map(|n| n.to_string()).join("x");
        ui.say(format!("{}  {:>6}  {shape} {}  {}", sum.sha256, sum.row, sum.dtype, in_a_line(&sum.name)));
    }
    Ok(())
}

/// A name as it is, unless it would not stay in its line.
fn in_a_line(name: &str) -> Cow<'_, str> {
    if name.contains(char::is_control) {
        Cow::Owned(name.escape_debug().to_string())
    } else {
        Cow::Borrowed(name)
    }
}
