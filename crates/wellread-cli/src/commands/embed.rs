//! `wellread embed PATH --model MODEL --out profiles.parquet`

mod input;
mod on_nodes;

use super::command_line::{command_line, without};
use super::result_file::local_path;
use super::trace::TraceArgs;
use super::{
    OpenArgs, default_jobs, identity, is_same_file, left_out, on, outside_of, parse_jobs, parse_positive,
    parse_seconds, parse_threads,
};
use crate::output::{Failure, Outcome, Ui};
use indicatif::ProgressBar;
use input::InputArgs;
use on_nodes::NodeArgs;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wellread_infer::config::{Config, DEVICES, PROVIDERS};
use wellread_infer::embed::{self, EmbedOptions, Event, FeatureLayout, ModelName, Pool, Summary};
use wellread_measure::path_text::text;
use wellread_store::features::left_out_in_words;
use wellread_store::words::{counted, plural};
use wellread_store::{LeftOut, LeftOutCounts, Store, journal, masks, mixed_channels, staged};

/// Images of a batch.
const BATCH_SIZE: usize = 64;
/// Images of a part, about.
const PART_ROWS: usize = 4096;

/// Whether parts of a table are being computed by this process.
static IS_COMPUTING_PARTS: AtomicBool = AtomicBool::new(false);

/// The way to keep more of an interrupted run, where this process computes parts of a table.
pub(crate) fn way_to_keep_more() -> Option<&'static str> {
    IS_COMPUTING_PARTS
        .load(Ordering::Relaxed)
        .then_some("with a smaller --part-rows it has parts to continue from sooner")
}

/// Computes the features of every image, or of every cell, by a model. Writes them beside the columns of the set: a table that
/// pycytominer and pandas read.
#[derive(clap::Args)]
#[command(after_help = "\
The table has the columns of the set, with Metadata_ before their names, and the features as embedding_0000, \
embedding_0001 and so on. It appears when it is complete. An interrupted run keeps its finished parts, and the same \
command with --resume continues from them.

Examples:
  wellread embed plate.parquet --model dino.onnx --out profiles.parquet \\
      --resize 224x224 --channels DNA,ER,AGP
  wellread embed plate-tiff --cells cells.csv --cells-size 96x96 \\
      --model cells.onnx --out cells-profiles.parquet
  wellread embed plate.parquet --model resnet.onnx --model-output layer4 \\
      --pool mean --normalize imagenet --out profiles.parquet
  wellread embed plate.parquet --model python:mypackage.models:Encoder \\
      --out profiles.parquet --resume
  wellread embed screen.parquet --model dino.onnx --out profiles.parquet \\
      --resize 224x224 --on ray --gpus-per-actor 0.5
  wellread embed pictures --model resnet50 --weights resnet50.safetensors \\
      --resize 224x224 --normalize imagenet --out p.parquet")]
pub struct Args {
    /// A file or folder of images, a folder of tables, a pattern such as 'plates/*.parquet', or an address such as s3://bucket/plate.
    path: PathBuf,
    /// Model: FILE.onnx runs in ONNX Runtime; resnet50 and vit_b_16 run in this program. Those two give the scores of
    /// 1,000 classes; for the layer before, give an ONNX file or a class that ends there. python:package.module:Class is
    /// a torch.nn.Module or a callable. It takes a float32 batch N x C x H x W and returns a row of features per image.
    #[arg(long, value_name = "MODEL")]
    model: ModelName,
    /// Table to write (Parquet).
    #[arg(long, visible_alias = "output", value_name = "FILE", value_parser = local_path())]
    out: PathBuf,
    #[command(flatten)]
    open: OpenArgs,
    /// Columns of the set to keep; by default all.
    #[arg(long, value_name = "COLUMN[,COLUMN…]", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Layout of the features: columns gives each feature a column, as pycytominer takes them; list gives one column of
    /// lists.
    #[arg(long, default_value = "columns", value_name = "columns|list")]
    features: FeatureLayout,
    #[command(flatten)]
    input: InputArgs,
    /// Output of the ONNX file to take; by default the first.
    #[arg(help_heading = "Model", long, value_name = "NAME")]
    model_output: Option<String>,
    /// Feature maps (N x C x H x W) and tokens (N x T x F): none refuses them, mean takes their mean.
    #[arg(help_heading = "Model", long, default_value = "none", value_name = "none|mean")]
    pool: Pool,
    /// Safetensors file with the weights of resnet50 or vit_b_16, named as torchvision's. By default the weights are
    /// random, from the seed 0: such features tell images apart, but not by their content.
    #[arg(help_heading = "Model", long, value_name = "FILE.safetensors")]
    weights: Option<PathBuf>,
    /// Images of a batch; a model that takes only one size decides.
    #[arg(long, default_value_t = BATCH_SIZE, value_parser = parse_positive)]
    batch_size: usize,
    /// Threads that read images; by default one for each processor. With 0 the command reads each batch when the model
    /// asks for it.
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    workers: Option<usize>,
    /// Images that cannot be read, or whose features are NaN or infinite: raise fails, skip leaves them out and lists
    /// them.
    #[arg(long, default_value = "raise", value_parser = ["raise", "skip"])]
    on_error: String,
    /// Keep features that are NaN or infinite.
    #[arg(long)]
    allow_nan: bool,
    /// Replace an existing table.
    #[arg(long)]
    overwrite: bool,
    /// Continue an interrupted run of the same command.
    #[arg(long)]
    resume: bool,
    /// Images of a part, about. An interrupted run repeats its unfinished parts.
    #[arg(long, default_value_t = PART_ROWS, value_parser = parse_positive)]
    part_rows: usize,
    /// Device: cuda, mps or cpu; by default the best there is. A named device that is missing is an error.
    #[arg(help_heading = "Model", long, value_parser = DEVICES)]
    device_prefer: Option<String>,
    /// Provider of ONNX Runtime; by default that of the device.
    #[arg(help_heading = "Model", long, value_parser = PROVIDERS)]
    provider: Option<String>,
    /// Library of ONNX Runtime; by default that of the Python's onnxruntime package.
    #[arg(help_heading = "Model", long, value_name = "LIBRARY")]
    onnxruntime: Option<PathBuf>,
    /// Python >= 3.10 that has the model, or ONNX Runtime; by default that of WELLREAD_PYTHON, of wellread's own
    /// environment, or python3. wellread need not be installed there.
    #[arg(help_heading = "Model", long)]
    python: Option<PathBuf>,
    /// Threads of the model, one at least; by default one for each processor.
    #[arg(help_heading = "Model", long, value_name = "N", value_parser = parse_jobs)]
    threads: Option<usize>,
    /// Seconds after which a model that does not answer is ended.
    #[arg(help_heading = "Model", long, default_value_t = Config::default().turn_limit.as_secs_f64(), value_parser = parse_seconds)]
    turn_limit: f64,
    /// Folder of random weights, which are made once.
    #[arg(help_heading = "Model", long, default_value_os_t = Config::default().model_dir)]
    model_dir: PathBuf,
    #[command(flatten)]
    nodes: NodeArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
}

/// The command that a table tells of. It leaves out the machines, how often the command was begun and the printing: no value depends
/// on them. So the table is the same to the byte wherever it was made.
fn recorded_command(line: &str) -> String {
    let valued = ["on", "actors", "cpus-per-actor", "gpus-per-actor"];
    without(line, &valued, &["--resume", "--overwrite", "--json", "--quiet", "-q"])
}

impl Args {
    fn options(&self, store: &dyn Store, program: &[OsString]) -> Outcome<EmbedOptions> {
        let mut server = program.to_vec();
        server.push("infer-worker".into());
        let cells: Vec<_> = self.open.cells.paths().map(identity::file).collect();
        let source = serde_json::json!({
            "path": identity::path(&self.path), "opened": format!("{:?}", self.open), "cells": cells,
            "bytes": left_out::bytes_on_disk(store, self.on_error == "skip")?,
        });
        Ok(EmbedOptions {
            model: self.model.clone(),
            weights: self.weights.clone(),
            output: self.model_output.clone(),
            pool: self.pool,
            transform: self.input.transform(store)?,
            batch_size: self.batch_size,
            workers: self.workers.unwrap_or_else(|| self.nodes.threads(default_jobs())),
            skip: self.on_error == "skip",
            allow_nan: self.allow_nan,
            columns: self.columns.clone(),
            layout: self.features,
            out: self.out.clone(),
            overwrite: self.overwrite,
            resume: self.resume,
            part_rows: self.part_rows,
            source,
            frameworks: Config {
                device: self.device_prefer.clone(),
                provider: self.provider.clone(),
                onnxruntime: self.onnxruntime.clone(),
                threads: self.threads.unwrap_or_else(|| self.nodes.threads(Config::default().threads)),
                python: self.python.clone(),
                turn_limit: Duration::from_secs_f64(self.turn_limit),
                model_dir: self.model_dir.clone(),
                server,
                command: recorded_command(&command_line()),
                ..Config::default()
            },
        })
    }

    /// Refuses to write into the images, or over what is read.
    fn check_paths(&self) -> Outcome {
        outside_of(&self.path, "--out", &self.out)?;
        let model = match &self.model {
            ModelName::Onnx(path) => Some(path.as_path()),
            _ => self.weights.as_deref(),
        };
        let mut read = std::iter::once(self.path.as_path()).chain(model).chain(self.open.cells.paths());
        match read.find(|path| is_same_file(path, &self.out)) {
            None => Ok(()),
            Some(path) => Err(Failure::Usage(format!(
                "--out {}: is the same file as {}, which is read; choose another name",
                self.out.display(),
                path.display()
            ))),
        }
    }
}

pub fn run(args: &Args, program: &[OsString], ui: Ui) -> Outcome {
    args.check_paths()?;
    let store = args.open.open(&args.path, ui)?;
    let options = args.options(&*store, program)?;
    options.check().map_err(|e| Failure::Usage(format!("{e:#}")))?;
    if args.nodes.is_worker() {
        return on_nodes::work(store, options);
    }
    if args.input.takes_by_number()
        && let Some(mixed) =
            mixed_channels::find(&*store, None, args.input.numbers().as_deref(), mixed_channels::MAX_IMAGES)
    {
        ui.warn(format!("note: {mixed}"));
    }
    let scaled = args.input.scaled_masks(&*store);
    if !scaled.is_empty() {
        ui.warn(format!(
            "note: a mask by its name is scaled like a stain: {} (--channels takes others)",
            scaled.join(", ")
        ));
    }
    // Those of cells name their masks themselves.
    if args.open.cells.source().is_none()
        && let Some((mask, image)) = masks::among_files(&*store)
    {
        ui.warn(format!(
            "note: {mask} is a mask of {image} by its name, and gets features like an image (the folder of one kind has no masks)"
        ));
    }
    let others = if args.columns.is_none() { store.hints().columns_left_out() } else { vec![] };
    if !others.is_empty() {
        ui.warn(format!("note: columns are left out: {}", left_out_in_words(&others)));
    }
    let (thing, counts) = (store.hints().thing(), store.hints().left_out);
    let are_drawn = matches!((&args.model, &args.weights), (ModelName::BuiltIn(_), None));
    let print = |event: &Event<'_>, bar: &ProgressBar| {
        print_event(event, bar, thing, ui);
        // No wrong usage has anything to do with it.
        if are_drawn && matches!(event, Event::Opened(..)) {
            bar.suspend(|| {
                ui.hint(
                    "note: the weights are drawn at random; --weights FILE.safetensors takes trained ones",
                );
            });
        }
    };
    IS_COMPUTING_PARTS.store(true, Ordering::Relaxed);
    if let Some(on) = args.nodes.on() {
        let (summary, cluster) = on_nodes::run(on, (&args.nodes, program), (store, &options), &print, ui)
            .map_err(|failure| with_kept(failure, args))?;
        return report(&summary, &others, Some(&cluster), (thing, counts), ui);
    }
    let bar = ui.progress(store.len() as u64, "embedding");
    let done = embed::run(store, &options, &|event| {
        if let Event::Resumed(images) | Event::Images(images) = event {
            bar.inc(*images as u64);
        }
        print(event, &bar);
    });
    bar.finish_and_clear();
    let summary = done.map_err(|error| with_kept(Failure::from(error), args))?;
    report(&summary, &others, None, (thing, counts), ui)
}

/// Says what happens, above the bar. A row is a `thing`.
fn print_event(event: &Event<'_>, bar: &ProgressBar, thing: &str, ui: Ui) {
    match event {
        Event::Opened(backend, notes) => bar.suspend(|| {
            ui.hint(format!("model: {backend}"));
            for note in *notes {
                ui.hint(format!("note: {note}"));
            }
        }),
        Event::Discarded(folder) => bar.suspend(|| {
            let folder = folder.display();
            ui.hint(format!(
                "note: {folder}, which an interrupted run had left, was removed: this run begins anew"
            ));
        }),
        Event::Resumed(images) => bar.suspend(|| {
            let images = counted(*images, thing);
            ui.say(format!("continuing after {images} that an interrupted run completed"));
        }),
        Event::Renamed(columns) => bar.suspend(|| {
            for column in *columns {
                ui.warn(format!("note: the column {:?} is {:?} in the table", column.from, column.to));
            }
        }),
        Event::Images(_) => (),
    }
}

/// A failure with what is kept for a later run, if anything is.
fn with_kept(failure: Failure, args: &Args) -> Failure {
    match (failure, staged::part(&args.out).filter(|part| journal::is_any_complete(part))) {
        (Failure::Failed(why), Some(folder)) => Failure::Failed(format!(
            "{why}\nthe complete part is kept in {}: the same command with --resume continues from it",
            folder.display()
        )),
        (failure, _) => failure,
    }
}

/// Says what came of it, which columns of the set are left out, and what the nodes of a cluster did. A row is a `thing`, and `counts` is what
/// opening the set left out.
fn report(
    summary: &Summary,
    others: &[LeftOut],
    cluster: Option<&Value>,
    (thing, counts): (&str, LeftOutCounts),
    ui: Ui,
) -> Outcome {
    let done = (summary.images + summary.left_out.len()).saturating_sub(summary.resumed);
    let rate = (summary.seconds > 0.0).then(|| done as f64 / summary.seconds);
    let document = serde_json::json!({
        "out": text(&summary.out), "images": summary.images, "features": summary.features,
        "columns_left_out": others.iter().map(|column| &column.name).collect::<Vec<_>>(),
        "images_skipped": summary.left_out.len(), "skipped": summary.left_out,
        "images_resumed": summary.resumed, "complete_before": summary.complete,
        "seconds": summary.seconds, "images_per_second": rate,
        "backend": summary.backend, "model_sha256": summary.sha256,
    });
    let mut document = left_out::with_counts(document, counts);
    if let Some(cluster) = cluster {
        document["cluster"] = cluster.clone();
        on::say(cluster, ui);
    }
    ui.document(&document)?;
    left_out::warn(&summary.left_out, ui);
    if ui.json {
        return Ok(());
    }
    let out = summary.out.display();
    if summary.complete {
        ui.say(format!("{out} is complete: it is the result of this command, and nothing is left to do"));
        return Ok(());
    }
    let speed = rate.map_or_else(String::new, |rate| format!(" ({rate:.1} {}/s)", plural(thing)));
    ui.say(format!(
        "{} features of {} in {:.2} s{speed}: {out}",
        summary.features,
        counted(summary.images, thing),
        summary.seconds
    ));
    Ok(())
}
