//! `wellread view PATH [--row N] [--out x.png]`

use super::OpenArgs;
use super::result_file::local_path;
use crate::output::{Failure, Outcome, Ui};
use std::path::{Path, PathBuf};
use wellread_measure::path_text::text;
use wellread_store::preview::{contact_sheet, is_drawn, preview};
use wellread_store::words::counted;
use wellread_store::{Store, each_row};

/// Draws pixels for a look: contrast by channel, the maximum over depth.
#[derive(clap::Args)]
#[command(after_help = "\
Stretches the contrast of each channel, and takes the maximum over depth. The picture is for looking, not for measuring.

Examples:
  wellread view plate.parquet --row 12 --out cell.png
  wellread view plate-tiff --row A01_s1
  wellread view plate.parquet --count 24
  wellread view plate-tiff --cells cells.csv --count 30 --out cells.png")]
pub struct Args {
    /// A file or folder of images, a folder of tables, a pattern such as 'plates/*.parquet', or an address such as s3://bucket/plate.
    path: PathBuf,
    /// Row to draw, by its number or by the name of its image; by default a contact sheet of the first rows.
    #[arg(long)]
    row: Option<String>,
    /// Images on a contact sheet.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1000), conflicts_with = "row")]
    count: u64,
    /// PNG file to write.
    #[arg(long, visible_alias = "output", default_value = "view.png", value_parser = local_path())]
    out: PathBuf,
    #[command(flatten)]
    open: OpenArgs,
}

/// Pixels that a side of an image has at most: on a contact sheet, and drawn by itself.
const MAX_SIDE: (usize, usize) = (256, 2048);

/// Refuses to write over anything but an earlier picture.
fn check_out(out: &Path) -> Outcome {
    if !out.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")) {
        return Err(Failure::Usage(format!(
            "--out {}: a PNG is written; give a name ending in .png",
            out.display()
        )));
    }
    let Ok(there) = std::fs::symlink_metadata(out) else { return Ok(()) };
    if there.is_file() && is_drawn(out) {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "{}: already exists and is no picture that wellread has drawn (hint: choose another --out)",
        out.display()
    )))
}

/// The row that is asked for, by its number or by the name of its image.
fn row_of(store: &dyn Store, asked: &str, path: &Path) -> Outcome<usize> {
    let wrong = |why: &str| {
        Err(Failure::Usage(format!(
            "--row {asked}: {why}; {} holds {}, rows 0 to {}",
            path.display(),
            counted(store.len(), store.hints().thing()),
            store.len() - 1
        )))
    };
    if let Ok(row) = asked.parse::<usize>() {
        return if row < store.len() { Ok(row) } else { wrong("there is no such row") };
    }
    let mut called = Vec::new();
    for (row, name) in each_row::names(store).enumerate() {
        if name? == asked {
            called.push(row);
        }
    }
    match called[..] {
        [row] => Ok(row),
        [] if asked.parse::<i64>().is_ok() => wrong("rows count from 0"),
        [] => wrong(&format!("no image is called that, as {:?} is that of row 0", store.name(0)?)),
        [first, second, ..] => wrong(&format!("rows {first} and {second} are called that: give the number")),
    }
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let store = args.open.open(&args.path, ui)?;
    if store.files()?.iter().any(|file| super::is_same_file(file, &args.out)) {
        return Err(Failure::Usage(format!(
            "--out {}: is one of the images to be viewed",
            args.out.display()
        )));
    }
    super::outside_of(&args.path, "--out", &args.out)?;
    check_out(&args.out)?;
    if store.is_empty() {
        return Err(Failure::Failed(format!("{}: there is no image in it", args.path.display())));
    }
    let mut first_shrunk = None;
    let (picture, rows) = if let Some(asked) = &args.row {
        let row = row_of(&*store, asked, &args.path)?;
        (preview(&*store, row, MAX_SIDE.1)?, vec![row])
    } else {
        let rows: Vec<usize> = (0..store.len().min(args.count as usize)).collect();
        let bar = ui.progress(rows.len() as u64, "drawing");
        let mut pictures = Vec::with_capacity(rows.len());
        for &row in &rows {
            pictures.push(preview(&*store, row, MAX_SIDE.0)?);
            let [.., height, width] = store.row_info(row)?.shape.0;
            if first_shrunk.is_none() && height.max(width) > MAX_SIDE.0 {
                first_shrunk = Some(row);
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        let columns = (rows.len() as f64).sqrt().ceil() as usize;
        (contact_sheet(&pictures, columns), rows)
    };
    wellread_store::staged::write(&args.out, picture.to_png()?)?;
    ui.document(&serde_json::json!({
        "out": text(&args.out), "width": picture.width, "height": picture.height, "rows": rows,
    }))?;
    if !ui.json {
        ui.say(format!("{} ({} x {} pixels)", args.out.display(), picture.width, picture.height));
        if let Some(row) = first_shrunk {
            let (small, large) = MAX_SIDE;
            ui.hint(format!(
                "note: a contact sheet draws sides of {small} pixels at most, and --row {row} draws that {} with sides of up to {large}",
                store.hints().thing()
            ));
        }
    }
    Ok(())
}
