//! `wellread checksum PATH`

use super::on::OnArgs;
use super::{OpenArgs, default_jobs, parse_jobs};
use crate::output::{Outcome, Ui};
use std::path::PathBuf;

/// Prints row, name, shape, pixel type and SHA-256 of the C-order little-endian pixel bytes per image.
#[derive(clap::Args)]
#[command(after_help = "\
Prints row, name, shape, pixel type and SHA-256 of the C-order little-endian pixel bytes per image.

Examples:
  wellread checksum plate.parquet --json > expected.json
  wellread checksum screen.parquet --json --on ray > expected.json")]
pub struct Args {
    /// A file or folder of images, a folder of tables, or a pattern such as 'plates/*.parquet'.
    path: PathBuf,
    #[command(flatten)]
    open: OpenArgs,
    /// Threads, one at least; by default one for each processor.
    #[arg(long, default_value_t = default_jobs(), value_parser = parse_jobs)]
    jobs: usize,
    #[command(flatten)]
    on: OnArgs,
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let sums = if let Some(on) = &args.on.on {
        on.sums((&args.open, &args.path), "reading", ui)?
    } else {
        let store = args.open.open(&args.path, ui)?;
        let bar = ui.progress(store.len() as u64, "reading");
        let sums = wellread_store::checksum::all(&*store, args.jobs, &|| bar.inc(1));
        bar.finish_and_clear();
        sums
    };
    let sums = sums.into_iter().collect::<Result<Vec<_>, _>>()?;
    if ui.json {
        return ui.document(&sums);
    }
    for sum in &sums {
        let shape = sum.shape_tczyx.map(|n| n.to_string()).join("x");
        ui.say(format!("{}  {:>6}  {shape} {}  {}", sum.sha256, sum.row, sum.dtype, sum.name));
    }
    Ok(())
}
