//! `wellread generate OUT`

use super::note_leftovers;
use super::plate::{self, PlateArgs};
use super::result_file::local_path;
use super::synthetic::{SyntheticArgs, check_disk};
use super::without_checksums::{UNSEEN, has_checksums};
use super::write_options::WriteArgs;
use crate::output::{Failure, Outcome, Ui};
use serde_json::Value;
use std::path::PathBuf;
use wellread_bench::data::{self, EXPECTED, FormatSet};
use wellread_image::synthetic::Kind;
use wellread_measure::path_text::text;

/// Writes OUT/images.parquet, OUT/tiff, OUT/ome-zarr … and OUT/expected.json with the checksum of every image.
#[derive(clap::Args)]
#[command(after_help = "\
Writes OUT/images.parquet, OUT/tiff, OUT/ome-zarr … and OUT/expected.json with the checksum of every image.

Examples:
  wellread generate demo --images 64 --size 256x256
  wellread generate noise --images 1000 --size 100x100 --dtype uint8 \\
      --kind noise --formats parquet,tiff
  wellread generate plate --plate 384 --fields 9 --channels 5 --size 1080x1080 \\
      --cells-table --masks
  wellread generate plate --plate 2x3 --fields 2 --layout hcs-zarr --variant 0.4")]
pub struct Args {
    /// Folder to write.
    #[arg(value_parser = local_path())]
    out: PathBuf,
    #[command(flatten)]
    synthetic: SyntheticArgs,
    /// Formats to write: all, or a comma-separated list.
    #[arg(long, value_delimiter = ',', default_value = "all")]
    formats: Vec<String>,
    /// Write ground-truth label masks beside the images (cells only).
    #[arg(long)]
    masks: bool,
    #[command(flatten)]
    plate: PlateArgs,
    #[command(flatten)]
    write: WriteArgs,
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    if let Some(size) = args.plate.plate {
        return plate::run(&args.out, &args.plate, size, &args.synthetic, &args.write, args.masks, ui);
    }
    args.plate.refuse_without_plate()?;
    let formats = data::parse_formats(&args.formats).map_err(|e| Failure::Usage(e.to_string()))?;
    let spec = args.synthetic.spec()?;
    if args.masks && spec.kind == Kind::Noise {
        return Err(Failure::Usage("--masks needs --kind cells: noise has no objects".to_owned()));
    }
    for format in &formats {
        args.write.say_what_is_ignored(format, ui);
    }
    check_disk(&spec, formats.len(), &args.out)?;
    let bar = ui.progress(spec.images as u64, "generating");
    let written =
        data::generate(&args.out, &spec, &formats, &args.write.options(), args.masks, &|| bar.inc(1))?;
    bar.finish_and_clear();
    note_leftovers(&args.out, ui);
    let documents = documents_of(&written, args, ui);
    ui.document(&serde_json::json!({ "out": text(&args.out), "images": spec.images, "written": documents }))?;
    if !ui.json {
        for set in &written {
            match &set.error {
                None => ui.say(format!("{:<19}{}", set.format, set.path.display())),
                Some(e) => ui.say(format!("{:<19}not written: {e}", set.format)),
            }
        }
    }
    if written.iter().all(|set| set.error.is_some()) {
        return Err(Failure::Failed("no format could hold these images".to_owned()));
    }
    // `all` means all that can; a format that was named had to be written.
    let named = |format: &str| args.formats.iter().any(|f| f == format);
    if let Some(missing) = written.iter().find(|set| set.error.is_some() && named(set.format)) {
        return Err(Failure::Failed(format!("{} was asked for and could not be written", missing.format)));
    }
    Ok(())
}

/// The sets as JSON, each with whether its files have checksums of their own. A line names those that have none.
fn documents_of(written: &[FormatSet], args: &Args, ui: Ui) -> Vec<Value> {
    let mut without = vec![];
    let mut documents = Vec::with_capacity(written.len());
    for set in written {
        let has = if set.error.is_none() { has_checksums(&set.path, set.format) } else { None };
        if has == Some(false) {
            without.push(set.format);
        }
        let mut document = serde_json::json!(set);
        document["has_checksums"] = has.into();
        documents.push(document);
    }
    if !args.write.no_checksums && !without.is_empty() {
        let expected = args.out.join(EXPECTED);
        ui.hint(format!(
            "note: what was written as {} {UNSEEN}: compare it by `wellread verify SET --against {}`",
            without.join(", "),
            expected.display()
        ));
    }
    documents
}
