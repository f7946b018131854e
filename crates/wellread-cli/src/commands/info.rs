//! `wellread info PATH`

mod channels;
mod describe;
mod doubled;
mod pieces;
mod pixel_sizes;
mod text;

use super::OpenArgs;
use crate::output::{Outcome, Ui};
use std::path::PathBuf;
use wellread_store::sites::{FILES, layout_by_name};

/// Rows that are looked at unless a number is given. There is one number for a set on this machine, and one for a set behind
/// a network. Looking at a row may take requests there.
const ROWS: usize = 100_000;
const REMOTE_ROWS: usize = 1000;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wellread info plate.parquet
  wellread info plate.zarr --level 1 --json
  wellread info plate/Images --layout harmony
  wellread info s3://bucket/plate.parquet --anonymous
  wellread info images --pattern '{well}_*_{site:d}_{channel:a}_001.tif'")]
pub struct Args {
    /// A file or folder of images, a folder of tables, a pattern such as 'plates/*.parquet', or an address such as s3://bucket/plate.
    path: PathBuf,
    /// Most rows to look at for shapes; a larger set is marked as sampled [default: 100000, or 1000 in a bucket].
    #[arg(long)]
    rows: Option<usize>,
    #[command(flatten)]
    open: OpenArgs,
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let store = args.open.open_to_describe(&args.path, ui)?;
    let most_rows = args.rows.unwrap_or(if store.remote_path().is_some() { REMOTE_ROWS } else { ROWS });
    let mut described = describe::describe(&*store, most_rows)?;
    if described.info.layout_preset.is_none() {
        // A companion tells the files of its images, whatever they are called.
        let asked = args.open.sites.layout.clone().filter(|name| name != FILES);
        described.info.layout_preset = asked.or_else(|| layout_by_name(&args.path).map(str::to_owned));
    }
    if ui.json {
        return ui.document(&described.info);
    }
    ui.say(format!("{}", args.path.display()));
    text::say(&described, &store.name(0).unwrap_or_default(), ui);
    Ok(())
}
