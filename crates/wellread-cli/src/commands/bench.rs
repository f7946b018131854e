//! `wellread bench WHAT…`

use super::generate::KindArg;
use super::{parse_bytes, parse_size};
use crate::output::{Failure, Outcome, Ui};
use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;
use wellread_bench::data::{SetSpec, Source};
use wellread_bench::{Config, suite};
use wellread_image::{PixelType, Shape};
use wellread_report::Severity;

/// Measures and writes tables (Parquet, CSV), summary.json, plots (PNG, SVG) and report.html.
#[derive(clap::Args)]
#[command(after_help = "\
Measures and writes tables (Parquet, CSV), summary.json, plots (PNG, SVG) and report.html.

Examples:
  wellread bench all
  wellread bench dataloader --input plate.parquet --formats parquet,tiff --workers 0,2
  wellread bench dataloader --input plate.parquet --in-place --batch-sizes 16
  wellread bench storage --images 1000 --size 100x100 --dtype uint8 --kind noise")]
pub struct Args {
    /// What to measure: storage, dataset, dataloader, loop, conversion, or all.
    #[arg(required = true, value_name = "WHAT")]
    what: Vec<String>,
    /// Measure these images (a file or folder in any format) instead of generated ones.
    #[arg(long)]
    input: Option<PathBuf>,
    /// Measure the input as it lies there instead of converting it to every format.
    #[arg(long, requires = "input")]
    in_place: bool,
    /// Take every plane as an image of its own; by default done when shapes differ.
    #[arg(long, requires = "input")]
    planes: bool,
    /// Generated images.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    images: u64,
    /// Their height and width.
    #[arg(long, value_name = "HxW", default_value = "100x100", value_parser = parse_size)]
    size: (usize, usize),
    /// Their channels.
    #[arg(long, default_value_t = 1)]
    channels: usize,
    /// Their pixel type.
    #[arg(long, default_value = "uint16")]
    dtype: PixelType,
    /// cells or noise.
    #[arg(long, value_enum, default_value_t = KindArg::Cells)]
    kind: KindArg,
    /// Formats to measure: all, or a comma-separated list.
    #[arg(long, value_delimiter = ',', default_value = "all")]
    formats: Vec<String>,
    /// Measured rounds; every round runs every variant once, in random order.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..))]
    repeats: u64,
    /// Seed of images, orders and intervals.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Results folder.
    #[arg(long, default_value = "results")]
    out: PathBuf,
    /// Folder of the prepared images; by default `data` in the results folder.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Seconds after which no further round of a benchmark begins.
    #[arg(long, default_value_t = 120.0)]
    time_budget: f64,
    /// dataset: orders of access.
    #[arg(long, value_delimiter = ',', default_value = "sequential,random,grouped")]
    access: Vec<String>,
    /// dataset: transforms.
    #[arg(long, value_delimiter = ',', default_value = "none,normalize,augment")]
    transform: Vec<String>,
    /// dataset: caches.
    #[arg(long, value_delimiter = ',', default_value = "none,memory")]
    cache: Vec<String>,
    /// dataset, conversion: images per run.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    /// dataloader: batch sizes.
    #[arg(long, value_delimiter = ',', default_value = "1,4,16")]
    batch_sizes: Vec<usize>,
    /// dataloader: worker threads.
    #[arg(long, value_delimiter = ',', default_value = "0,2,4")]
    workers: Vec<usize>,
    /// dataloader: later epochs of one loader instead of opening anew in every round.
    #[arg(long)]
    keep_open: bool,
    /// dataloader: with --keep-open, keep up to this many bytes of decoded pixels from epoch to epoch.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "0", requires = "keep_open")]
    loader_cache: u64,
    /// loop: model.
    #[arg(long, default_value = "small-cnn")]
    model: String,
    /// loop: train, inference.
    #[arg(long, value_delimiter = ',', default_value = "train,inference")]
    mode: Vec<String>,
    /// loop: steps per run.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// loop: batch size.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    batch_size: u64,
    /// loop: worker threads of the loader.
    #[arg(long, default_value_t = 1)]
    loop_workers: usize,
    /// Take the centre of every image first.
    #[arg(long, value_name = "HxW", value_parser = parse_size)]
    crop: Option<(usize, usize)>,
    /// storage: leave out cold-cache runs.
    #[arg(long)]
    no_cold: bool,
    /// storage: images of a random read.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    random_images: u64,
}

impl Args {
    fn config(&self) -> Outcome<Config> {
        one_of("--access", &self.access, &["sequential", "random", "grouped"])?;
        one_of("--transform", &self.transform, &wellread_loader::Transform::PRESETS)?;
        one_of("--cache", &self.cache, &["none", "memory"])?;
        one_of("--mode", &self.mode, &["train", "inference"])?;
        let models: Vec<&str> = wellread_model::models().iter().map(|m| m.name).collect();
        one_of("--model", std::slice::from_ref(&self.model), &models)?;
        if self.batch_sizes.contains(&0) {
            return Err(Failure::Usage("--batch-sizes: a batch holds at least one image".to_owned()));
        }
        if !(self.time_budget.is_finite() && self.time_budget > 0.0) {
            return Err(Failure::Usage("--time-budget: give a positive number of seconds".to_owned()));
        }
        suite::select(&self.what).map_err(|e| Failure::Usage(e.to_string()))?;
        wellread_bench::data::parse_formats(&self.formats).map_err(|e| Failure::Usage(e.to_string()))?;
        let shape = Shape([1, self.channels, 1, self.size.0, self.size.1]);
        shape.checked_bytes(self.dtype).map_err(|e| Failure::Usage(e.to_string()))?;
        let source = match &self.input {
            Some(path) => Source::Path { path: path.clone(), planes: self.planes.then_some(true) },
            None => Source::Synthetic(SetSpec {
                images: self.images as usize,
                shape,
                dtype: self.dtype,
                kind: self.kind.into(),
                seed: self.seed,
            }),
        };
        Ok(Config {
            what: self.what.clone(),
            source,
            formats: self.formats.clone(),
            in_place: self.in_place,
            repeats: self.repeats as usize,
            seed: self.seed,
            out: self.out.clone(),
            data_dir: self.data_dir.clone(),
            time_budget: Duration::from_secs_f64(self.time_budget.min(1e7)),
            access: self.access.clone(),
            transforms: self.transform.clone(),
            caches: self.cache.clone(),
            samples: self.samples as usize,
            batch_sizes: self.batch_sizes.clone(),
            workers: self.workers.clone(),
            keep_open: self.keep_open,
            loader_cache: usize::try_from(self.loader_cache).unwrap_or(usize::MAX),
            model: self.model.clone(),
            modes: self.mode.clone(),
            steps: self.steps as usize,
            batch_size: self.batch_size as usize,
            loop_workers: self.loop_workers,
            crop: self.crop,
            cold: !self.no_cold,
            random_images: self.random_images as usize,
            command: command_line(),
        })
    }
}

/// The command as typed, with the program's name instead of its path.
fn command_line() -> String {
    std::iter::once("wellread".to_owned())
        .chain(std::env::args().skip(1).map(|a| if a.contains(' ') { format!("'{a}'") } else { a }))
        .collect::<Vec<_>>()
        .join(" ")
}

fn one_of(flag: &str, given: &[String], known: &[&str]) -> Outcome {
    match given.iter().find(|g| !known.contains(&g.as_str())) {
        Some(unknown) => {
            Err(Failure::Usage(format!("{flag}: unknown {unknown:?}; there are {}", known.join(", "))))
        }
        None => Ok(()),
    }
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let config = args.config()?;
    let bar = ui.progress(0, "preparing images");
    let last = RefCell::new(String::new());
    let outcome = suite::run(&config, &|what, done, of| {
        if *last.borrow() != what {
            bar.set_message(what.to_owned());
            what.clone_into(&mut last.borrow_mut());
        }
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    })
    .map_err(|e| Failure::Failed(format!("{e:#}")))?;
    bar.finish_and_clear();
    if ui.json {
        ui.document(&outcome.report.to_summary())?;
    } else {
        print_outcome(&outcome, &config, ui);
    }
    if !outcome.failures.is_empty() {
        for failure in &outcome.failures {
            eprintln!("error: {failure}");
        }
        return Err(Failure::Reported);
    }
    if !outcome.verified {
        return Err(Failure::Failed("pixels differ from the expected ones; see the report".to_owned()));
    }
    Ok(())
}

fn print_outcome(outcome: &suite::Outcome, config: &Config, ui: Ui) {
    let report = &outcome.report;
    ui.say(format!("{}\n", report.description));
    for table in &report.tables {
        ui.say(super::report::text_table(table));
    }
    for finding in &report.findings {
        let mark = match finding.severity {
            Severity::Good => "+",
            Severity::Info => "·",
            Severity::Caution => "!",
            Severity::Bad => "!!",
        };
        ui.say(format!("{mark} {}.", finding.text));
        if !finding.detail.is_empty() {
            ui.say(format!("    {}", finding.detail));
        }
    }
    for warning in &report.warnings {
        ui.hint(format!("note: {warning}"));
    }
    if let Some(noise) = report.noise_floor {
        ui.say(format!("Noise floor (the same measured twice): {:.1} %.", 100.0 * noise));
    }
    ui.say(format!("Report: {}", config.out.join("report.html").display()));
}
