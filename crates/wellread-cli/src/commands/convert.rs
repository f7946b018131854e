//! `wellread convert SRC DST`
//!
//! ```text
//!  source ─▶ checked_types, LeftBehind ─▶ features_of ─┬─ a cluster ──▶ on_cluster::run
//!                                                       ├─ --resume, and the target is complete ─▶ complete::of_earlier_run
//!                                                       └─▶ write_checked: written, read back ─▶ to its place ─▶ what is said
//! ```

mod check;
mod complete;
mod failure;
mod features;
mod larger;
mod layouts;
mod left_behind;
mod on_cluster;
mod target;

use super::trace::TraceArgs;
use super::write_options::WriteArgs;
use super::{OpenArgs, identity, left_out, note_leftovers_beside, unreadable, without_checksums};
use crate::output::{Failure, Outcome, Ui, bytes};
use check::{Check, Checked};
use complete::bytes_of_pixels;
use failure::left_of;
use features::{Features, JoinUnmatched, Joining, Note, features_of, parse_join_unmatched};
pub(super) use features::{unsupported_columns, unsupported_note};
use layouts::LayoutArg;
use left_behind::{LeftBehind, notes_of_unlike_channels};
use on_cluster::{ClusterArgs, OnValues};
use std::path::{Path, PathBuf};
use target::{check_files, check_paths, note_on_part, refuse_ignored, target_format};
use wellread_image::PixelType;
use wellread_loader::cache::parse_bytes;
use wellread_measure::path_text::text;
use wellread_store::convert::{ConvertOptions, Converted, convert, one_pixel_type, pixel_types};
use wellread_store::features::digest;
use wellread_store::words::counted;
use wellread_store::{Format, Store, WriteOptions, masks, registry, staged};

/// Pixels stay the same to the byte. Metadata is kept as far as the target format has a place for it. The target
/// appears when it is complete, and the command reads it back and compares it with the source.
#[derive(clap::Args)]
#[command(after_help = "\
Pixels stay the same to the byte. Metadata (names, channels, wavelengths, physical sizes) is kept as far as the target \
format has a place for it. The target appears when it is complete. A failed conversion leaves nothing, or with \
--resume the complete part. The command reads the target back and compares it with the source.

Examples:
  wellread convert tiff-folder plate.parquet
  wellread convert plate.parquet plate-zarr --format ome-zarr \\
      --compression zstd:3 --chunk 1,1,1,256,256
  wellread convert 'plates/*.parquet' screen.parquet
  wellread convert screen-tiff screen.parquet --on ray
  wellread convert screen-tiff screen.parquet --on-error skip
  wellread convert images plate.duckdb --join profiles.parquet \\
      --on Image_FileName_DAPI,Image_FileName_GFP
  wellread convert images plate.parquet --join profiles.parquet --on FileName \\
      --columns Metadata_Well,Metadata_dose
  wellread convert images plate.parquet --join profiles.parquet --on FileName \\
      --on ray")]
pub struct Args {
    /// A file or folder of images, a folder of tables, a pattern such as 'plates/*.parquet', or an address such as s3://bucket/plate.
    source: PathBuf,
    /// File or folder to write.
    target: PathBuf,
    /// Target format; by default the ending of the target's name decides, such as .parquet, .tiff, .zarr, .png.
    #[arg(long)]
    format: Option<String>,
    #[command(flatten)]
    write: WriteArgs,
    /// Most bytes of pixels that wait between reading and writing.
    #[arg(long, default_value = "1GiB", value_parser = parse_bytes)]
    memory: u64,
    /// Table whose columns are added to the images (Parquet, CSV or TSV). It has profiles with one row per image, or
    /// a plan whose rows many images share.
    #[arg(long, value_name = "PROFILES", requires = "on")]
    join: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Images without a row in the profiles: null leaves their columns empty and says how many there are (unless given), error
    /// writes nothing.
    #[arg(long, value_name = "null|error", requires = "join", value_parser = parse_join_unmatched)]
    join_unmatched: Option<JoinUnmatched>,
    /// Keep what is complete when interrupted, and go on with what an earlier run of the same command left. For tiff,
    /// ome-zarr, image-folder, lance and duckdb.
    #[arg(long)]
    resume: bool,
    /// Do not read the target back.
    #[arg(long)]
    no_verify: bool,
    /// Images that cannot be read: raise fails at the first, skip leaves them out and lists them. Each image is read twice
    /// with skip: its set must be known before it is written.
    #[arg(long, default_value = "raise", value_parser = ["raise", "skip"])]
    on_error: String,
    /// Write images of several pixel types, or images and their masks, into one set; by default this is an error.
    #[arg(long)]
    mixed: bool,
    /// Add these columns of the profiles alone; by default all.
    #[arg(long, value_name = "COLUMN[,COLUMN…]", requires = "join", value_delimiter = ',')]
    columns: Vec<String>,
    /// Leave these columns of the source and of the profiles out, without reading them; by default all go along. A value that is
    /// the whole name of a column is one name, with its commas. May be given several times. --columns takes one of the profiles all
    /// the same.
    #[arg(long, visible_alias = "without-columns", value_name = "COLUMN[,COLUMN…]")]
    without_column: Vec<String>,
    /// Layout of OME-Arrow Parquet: nested is one table (format parquet), dataset is a folder of tables of chunks
    /// (format ome-arrow-dataset). --layout nested and --layout dataset mean the same; they say nothing of the source.
    #[arg(long, value_enum, conflicts_with = "format")]
    parquet_layout: Option<LayoutArg>,
    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let layout = args.parquet_layout.or_else(|| layouts::of_target(&args.open));
    let format = target_format(&args.target, args.format.as_deref(), layout)?;
    refuse_ignored(&args.write, format)?;
    let OnValues { on, keys } = on_cluster::parse_on_values(&args.cluster.on, args.join.is_some())?;
    on_cluster::refuse_without(on.as_ref(), &args.without_column)?;
    args.cluster.refuse_parts(on.as_ref())?;
    args.write.say_what_is_ignored(format, ui);
    let open = layouts::of_source(&args.open);
    let mut source = open.open(&args.source, ui)?;
    let mut skipped = vec![];
    if args.on_error == "skip" {
        (source, skipped) =
            unreadable::without(source, (&open, &args.source), args.write.jobs, on.as_ref(), ui)?;
    }
    source.hints().complete(0..source.len())?;
    check_paths(&args.source, &args.target)?;
    let types = checked_types(&*source, args)?;
    let mut notes = notes_of_unlike_channels(&*source, args.open.cells.adds_mask());
    let left_behind = LeftBehind::of(&*source, args.open.sites.missing);
    notes.extend(left_behind.notes(&*source));
    let mut options = args.write.options();
    let joining = args.join.as_deref().zip(keys);
    let unmatched = args.join_unmatched.unwrap_or_default();
    let joining = joining.map(|(profiles, on)| Joining { profiles, on, columns: &args.columns, unmatched });
    let Features { columns, joined, left_out, renamed, notes: of_columns } =
        features_of(&*source, &args.without_column, joining.as_ref(), format)?;
    notes.extend(of_columns);
    // The columns beside the images, and those that are left out.
    let beside = serde_json::json!({
        "feature_columns": columns.as_ref().map_or(0, wellread_store::features::FeatureColumns::num_columns),
        "images_with_profile": joined.as_ref().map(|j| j.matched),
        "images_without_profile": joined.as_ref().map(|j| &j.images_alone),
        "profiles_without_image": joined.as_ref().map(|j| &j.profiles_alone),
        "profile_of_another_folder": joined.as_ref().and_then(|j| j.other_folder.as_ref()),
        "columns_left_out": left_out.iter().map(|column| &column.name).collect::<Vec<_>>(),
        "columns_renamed": renamed.iter().map(|column| [&column.from, &column.to]).collect::<Vec<_>>(),
        "labels_left_out": left_behind.labels.as_ref().map_or(&[][..], |labels| labels.names.as_slice()),
        "looks_left_out": left_behind.display_settings,
        "metadata_left_out": left_behind.metadata,
        "planes_of_zeros": left_behind.zeros[0], "images_with_zeros": left_behind.zeros[1],
        "images_skipped": skipped.len(),
        "skipped": skipped,
    });
    let beside = left_out::with_counts(beside, source.hints().left_out);
    let skipped: Vec<usize> = skipped.iter().map(|image| image.row).collect();
    if let Some(on) = &on {
        for note in notes {
            note.print(ui);
        }
        let how = serde_json::json!({
            "overwrite": args.write.overwrite, "resume": args.resume, "verify": !args.no_verify, "mixed": args.mixed,
            "memory": args.memory, "rows_per_part": args.cluster.rows_per_part,
        });
        let join = joining.as_ref().map(Joining::document).transpose()?;
        return on_cluster::run(
            on,
            (&open, &args.source, &*source),
            (args.target.as_path(), format),
            [args.write.document(), how, join.into(), skipped.into()],
            &beside,
            ui,
        );
    }
    (options.features, options.images) = (columns, source.len());
    options.memory = Some(ConvertOptions { memory: args.memory }.of_writer());
    if format.keeps_features {
        options.types = types;
    }
    if args.resume {
        options.resume = Some(resume_note(&*source, args, format, &options, &skipped)?);
    }
    let document = |bytes: u64, seconds: f64, resumed: usize| {
        let done = serde_json::json!({
            "source": text(&args.source), "source_format": source.format(), "target": text(&args.target), "format": format.name,
            "images": source.len(), "bytes_of_pixels": bytes, "seconds": seconds, "images_resumed": resumed,
        });
        on_cluster::with_fields(done, &beside)
    };
    let verified = |document, seconds: Option<f64>, lost: Vec<&str>, sums: Option<bool>| {
        let how = serde_json::json!({ "verified": seconds.is_some(), "verify_seconds": seconds, "facts_left_out": lost,
            "has_checksums": without_checksums::say_of_new(&args.target, sums, !args.write.no_checksums, ui) });
        on_cluster::with_fields(document, &how)
    };
    let is_of_cells = args.open.cells.cells.is_some();
    let with_pixels = !args.no_verify || is_of_cells;
    if args.resume
        && !args.write.overwrite
        && let Some((bytes, compared, sums)) =
            complete::of_earlier_run(&*source, &args.target, format, &options, with_pixels, ui)?
    {
        let (seconds, left_out) =
            compared.filter(|_| !args.no_verify).map(|same| (same.seconds, same.left_out)).unzip();
        let document = document(bytes, 0.0, source.len());
        return ui.document(&verified(document, seconds, left_out.unwrap_or_default(), Some(sums)));
    }
    let Written { converted, left_out, resumed, pixel_bytes, seconds, check_seconds } =
        write_checked(&*source, args, format, &options, notes, ui)?;
    let (sums, placing) = (converted.has_checksums.get().copied(), std::time::Instant::now());
    converted.commit().map_err(|error| failed(error, &*source, args, format, &options))?;
    let seconds = seconds + placing.elapsed().as_secs_f64();
    ui.document(&verified(document(pixel_bytes, seconds, resumed), check_seconds, left_out, sums))?;
    if !ui.json {
        let read_back =
            check_seconds.map_or(String::new(), |s| format!(", read back and compared in {s:.2} s"));
        ui.say(format!(
            "{} ({} of pixels) from {} to {} in {seconds:.2} s{read_back}: {}",
            counted(source.len(), source.hints().thing()),
            bytes(pixel_bytes),
            source.format(),
            format.name,
            args.target.display()
        ));
    }
    // Cells have but a part of the bytes of their images.
    if !is_of_cells {
        larger::say(&*source, &args.target, format, &options, ui);
    }
    Ok(())
}

/// The pixel types of the source. It is refused where the target would replace a file of it. So is a source of several types, or with
/// masks, unless such a set is wanted.
fn checked_types(source: &dyn Store, args: &Args) -> Outcome<Vec<PixelType>> {
    let types = pixel_types(source);
    if args.write.overwrite {
        let others: Vec<&Path> = args.join.as_deref().into_iter().chain(args.open.cells.paths()).collect();
        check_files(source, &others, &args.target)?;
    }
    if !args.mixed {
        let of_one_type = if types.len() > 1 { one_pixel_type(source) } else { Ok(()) };
        of_one_type.and_then(|()| masks::none_beside_images(source)).map_err(|error| {
            error.hint(
                "images and masks are two sets: convert the folder of each by itself; or keep both in one set: --mixed",
            )
        })?;
    }
    Ok(types)
}

/// All images, written and not yet in their place.
struct Written {
    converted: Converted,
    /// Facts of images that the target has no place for.
    left_out: Vec<&'static str>,
    /// Images that an interrupted run had completed.
    resumed: usize,
    pixel_bytes: u64,
    /// The time of writing.
    seconds: f64,
    /// The time of reading back, where all of it was compared.
    check_seconds: Option<f64>,
}

/// Writes the images and compares them with the source. Images of an interrupted run are written again from a damaged one on.
/// `notes` are printed once the target can be written.
fn write_checked(
    source: &dyn Store,
    args: &Args,
    format: &Format,
    options: &WriteOptions,
    notes: Vec<Note>,
    ui: Ui,
) -> Outcome<Written> {
    let part = staged::part(&args.target).filter(|_| !args.resume);
    let mut writer = registry::create(&args.target, format.name, options)?;
    for note in notes {
        note.print(ui);
    }
    if let Some(part) = part {
        ui.hint(note_on_part(&part));
    }
    // The remains of this target are removed by now.
    note_leftovers_beside(&args.target, ui);
    let failed = |error| failed(error, source, args, format, options);
    let start = std::time::Instant::now();
    loop {
        let resumed = writer.complete();
        if resumed > 0 {
            let images = counted(resumed, source.hints().thing());
            ui.say(format!("continuing after {images} that an interrupted run completed"));
        }
        let bar = ui.progress(source.len() as u64, "converting");
        // Images that were complete before count as well.
        let mut pixel_bytes = bytes_of_pixels(source, resumed)?;
        let converted = convert(source, writer, ConvertOptions { memory: args.memory }, &mut |n| {
            pixel_bytes += n;
            bar.inc(1);
        });
        bar.finish_and_clear();
        let converted = converted.map_err(failed)?;
        let seconds = start.elapsed().as_secs_f64();
        // Kept images are compared in any case: the files that they were made of may have changed.
        if args.no_verify && resumed == 0 {
            let left_out = check::say_left_out(format, converted.left_out(source, format.name), ui);
            return Ok(Written { converted, left_out, resumed, pixel_bytes, seconds, check_seconds: None });
        }
        let check = Check {
            source,
            target: &args.target,
            format,
            columns: options.features.as_ref(),
            rows: if args.no_verify { resumed } else { source.len() },
            resumed,
            jobs: args.write.jobs,
        };
        match check.run(converted, &failed, ui)? {
            Checked::Same(converted, left_out, took) => {
                let (converted, check_seconds) = (*converted, Some(took).filter(|_| !args.no_verify));
                return Ok(Written { converted, left_out, resumed, pixel_bytes, seconds, check_seconds });
            }
            // Fewer images are left each time, so that this ends.
            Checked::Truncated(what) => {
                ui.warn(what);
                writer = registry::create(&args.target, format.name, options)?;
            }
        }
    }
}

/// The message of a failed conversion: the reason, and the files that it left.
fn failed(
    error: wellread_store::Error,
    source: &dyn Store,
    args: &Args,
    format: &Format,
    options: &WriteOptions,
) -> Failure {
    let way = if args.on_error == "skip" { "" } else { "--on-error skip leaves such images out" };
    let is_of_source = check::is_of_source(&error, source, &args.target);
    let error = if is_of_source { unreadable::with_ways_out(error, &args.source, way) } else { error };
    let why = match Failure::from(error) {
        Failure::Failed(why) => why,
        other => return other,
    };
    let left = if args.resume {
        left_of(&args.target, source.len(), format, options)
    } else {
        "nothing was left behind".to_owned()
    };
    Failure::Failed(format!("{why}\n{left}"))
}

/// The ingredients of a resumable set: the source, by place and number of images, and all that decides what is written.
fn resume_note(
    source: &dyn Store,
    args: &Args,
    format: &Format,
    options: &WriteOptions,
    skipped: &[usize],
) -> Outcome<String> {
    if let Some(why) = format.cannot_resume {
        let can = registry::formats().iter().filter(|f| f.cannot_resume.is_none()).map(|f| f.name);
        return Err(Failure::Usage(format!(
            "{} cannot be resumed: {why}; formats that can: {}",
            format.name,
            can.collect::<Vec<_>>().join(", ")
        )));
    }
    let WriteArgs { compression, chunk, shard, variant, .. } = &args.write;
    let cells: Vec<_> = args.open.cells.paths().map(identity::file).collect();
    let profiles = args.join.as_deref().map(identity::file);
    let bytes = left_out::bytes_on_disk(source, args.on_error == "skip")?;
    // A table has the columns of its rows; other formats have those of all images in one file, which is written last.
    let values = options.features.as_ref().filter(|_| format.keeps_features).map(digest);
    Ok(serde_json::json!({
        "source": identity::path(&args.source), "images": source.len(), "bytes": bytes,
        "opened": format!("{:?}", args.open), "format": format.name, "types": options.types,
        "compression": compression, "chunk": chunk, "shard": shard, "variant": variant,
        "tune": format!("{:?}", args.write.tune), "checksums": !args.write.no_checksums, "join": profiles, "on": args.cluster.on.first(),
        "cells": cells,
        "columns": args.columns, "values": values,
        "without": args.without_column,
        "skipped": skipped,
        "wellread": env!("CARGO_PKG_VERSION"),
    })
    .to_string())
}

#[cfg(test)]
mod tests;
