//! The options of `wellread bench`, those that do not go together, and the [`Config`] that they make.

use crate::commands::cells::CellArgs;
use crate::commands::command_line::{command_line, current, working_folder};
use crate::commands::result_file::local_folder;
use crate::commands::synthetic::{GENERATED, SyntheticArgs, check_disk};
use crate::commands::trace::TraceArgs;
use crate::commands::{
    SiteArgs, distinct, listed, outside_of, parse_crop, parse_positive, parse_seconds, parse_share,
    parse_threads, recipe,
};
use crate::output::{Failure, Outcome};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellread_bench::choices::{Access, ChunkLayout, Framework, Mode, SampleTransform, Sweep, in_python};
use wellread_bench::data::Source;
use wellread_bench::{Config, suite};
use wellread_loader::Cache;
use wellread_store::Compression;

/// Measures and writes tables (Parquet, CSV), summary.json, plots (PNG, SVG) and report.html.
#[derive(clap::Args)]
#[command(after_help = "\
Measures and writes tables (Parquet, CSV), summary.json, plots (PNG, SVG) and report.html.

Examples:
  wellread bench all
  wellread bench dataloader --input plate.parquet --formats parquet,tiff \\
      --workers 0,2
  wellread bench dataloader --input plate.parquet --in-place --batch-sizes 16
  wellread bench storage --images 1000 --size 100x100 --dtype uint8 --kind noise
  wellread bench storage --input plate.parquet --sweep compression
  wellread bench storage --depth 32 --sweep layout --formats ome-zarr,parquet
  wellread bench dataset dataloader loop conversion \\
      --framework rust,pytorch,jax --python venv/bin/python
  wellread bench dataloader --precision 2% --time-budget 600
  wellread bench dataloader --size 512x512 --random-crop 96x96 --crops 4
  wellread bench loop --input plate.parquet --repeats 1 --trace trace.json
  wellread bench --recipe recipes/quick.toml --out study
  wellread bench loop --framework pytorch --model python:mypackage.models:UNet \\
      --formats tiff
  wellread bench dataset --framework pytorch \\
      --transform none,python:mypackage.transforms:Blur --formats tiff")]
pub struct Args {
    #[arg(required_unless_present = "recipe", value_name = "WHAT", value_delimiter = ',', value_parser = parse_what, help = what_there_is())]
    what: Vec<String>,
    /// Run every [[run]] of this TOML file with its options, each into a folder of its own below --out.
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = recipe::REPLACED)]
    pub(super) recipe: Option<PathBuf>,
    /// Measure these images (a file or folder in any format) instead of generated ones.
    #[arg(long, visible_alias = "data", conflicts_with_all = GENERATED)]
    input: Option<PathBuf>,
    /// Measure the input where it is, instead of converting it to every format.
    #[arg(long, requires = "input", conflicts_with_all = ["formats", "data_dir"])]
    in_place: bool,
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Codec of the sets that are written: none, lz4, zstd[:LEVEL], deflate[:LEVEL] …; by default each format's own
    /// choice. Formats that lack the codec are shown as unavailable.
    #[arg(long, default_value = "default", hide_default_value = true, conflicts_with = "in_place")]
    compression: Compression,
    /// Take every plane as an image of its own; by default done if shapes differ.
    #[arg(long, requires = "input", conflicts_with = "cells")]
    planes: bool,
    #[command(flatten)]
    sites: SiteArgs,
    #[command(flatten)]
    cells: CellArgs,
    #[command(flatten)]
    synthetic: SyntheticArgs,
    /// Formats to measure: all, or a comma-separated list.
    #[arg(long, value_delimiter = ',', default_value = "all")]
    formats: Vec<String>,
    /// Measured rounds; every round runs every variant once, in random order.
    #[arg(long, default_value_t = Config::default().repeats, value_parser = parse_positive)]
    repeats: usize,
    /// Continue until the median of every configuration is known to this share, such as 2%, or the time budget is
    /// spent.
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(super) precision: Option<f64>,
    /// Measure in this many new processes, one after the other, and take the median of each as one value. The intervals
    /// then hold the differences between processes, such as the layout of memory. `compare` needs three or more; 5 are
    /// usual.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_positive)]
    pub(super) processes: usize,
    /// Results folder; the results of an earlier run there are replaced.
    #[arg(long, visible_alias = "output", default_value_os_t = Config::default().out, value_parser = local_folder())]
    pub(super) out: PathBuf,
    /// Folder of the prepared images: new, empty, or prepared before; by default `data` in the results folder.
    #[arg(long, value_parser = local_folder())]
    data_dir: Option<PathBuf>,
    /// Seconds for all benchmarks together, about, after the images are prepared; by default 120 for each benchmark.
    /// Steps, rounds and then whole configurations are cut to fit, and the report names the cuts. Finished results are
    /// in the results folder at once; `wellread report` shows them after an interruption.
    #[arg(long, value_parser = parse_seconds)]
    time_budget: Option<f64>,
    /// Orders of access: sequential, random, grouped (blocks of neighbours, in random order), block (also shuffles the
    /// images of several blocks among each other).
    #[arg(help_heading = "Dataset: single images", long, value_delimiter = ',', default_value = listed(&Config::default().access))]
    access: Vec<Access>,
    /// Images of a block, for grouped and block access.
    #[arg(help_heading = "Dataset: single images", long, default_value_t = Config::default().block_rows, value_parser = parse_positive)]
    block_rows: usize,
    /// Blocks whose images are shuffled among each other, for block access.
    #[arg(help_heading = "Dataset: single images", long, default_value_t = Config::default().block_window, value_parser = parse_positive)]
    block_window: usize,
    /// Transforms: none, normalize, augment. With a framework also python:package.module:Class, your own, which is
    /// called with each image.
    #[arg(help_heading = "Dataset: single images", long, value_delimiter = ',', default_value = listed(&Config::default().transforms))]
    transform: Vec<SampleTransform>,
    /// Caches to compare.
    #[arg(help_heading = "Dataset: single images", long, value_delimiter = ',', default_value = listed(&Config::default().caches))]
    cache: Vec<Cache>,
    /// Images per run of dataset and conversion.
    #[arg(help_heading = "Dataset: single images", long, default_value_t = Config::default().samples, value_parser = parse_positive)]
    samples: usize,
    /// Batch sizes.
    #[arg(help_heading = "Data loader: batches", long, value_delimiter = ',', default_value = listed(&Config::default().batch_sizes), value_parser = parse_positive)]
    batch_sizes: Vec<usize>,
    /// Numbers of worker threads. With 0 the loader reads each batch when it is asked for.
    #[arg(help_heading = "Data loader: batches", long, value_delimiter = ',', default_value = listed(&Config::default().workers), value_parser = parse_threads)]
    workers: Vec<usize>,
    /// Measure later epochs of one loader instead of opening anew in every round.
    #[arg(help_heading = "Data loader: batches", long)]
    keep_open: bool,
    /// With --keep-open, caches of images between epochs: none, memory[:SIZE] or SIZE, lru:SIZE, compressed[:SIZE],
    /// compressed-lru:SIZE, file[:SIZE], disk:FOLDER:SIZE (of sets in a bucket), preload[:SIZE], chunked:ROWS[:SIZE].
    /// Several are compared.
    #[arg(help_heading = "Data loader: batches", long, value_name = "POLICY", value_delimiter = ',', default_value = listed(&Config::default().loader_caches))]
    loader_cache: Vec<Cache>,
    /// Read random crops of this size (64x96, or 64 for a square), others in each epoch, instead of whole images. The
    /// column bytes_read_per_used has the bytes read for each byte used.
    #[arg(help_heading = "Data loader: batches", long, value_name = "HxW", value_parser = parse_crop, conflicts_with = "crop")]
    random_crop: Option<(usize, usize)>,
    /// With --random-crop, crops from each read of an image; batch sizes are multiples of it.
    #[arg(help_heading = "Data loader: batches", long, default_value_t = Config::default().crops, value_parser = parse_positive, requires = "random_crop")]
    crops: usize,
    /// Model: linear-probe (little work, so that waiting for data shows), small-cnn. With a framework also
    /// python:package.module:Class, a torch.nn.Module or Flax module, and FILE.onnx.
    #[arg(help_heading = "Model loop", long, default_value_t = Config::default().model, value_parser = parse_model)]
    model: String,
    /// Modes: train, inference.
    #[arg(help_heading = "Model loop", long, value_delimiter = ',', default_value = listed(&Config::default().modes))]
    mode: Vec<Mode>,
    /// Steps per run.
    #[arg(help_heading = "Model loop", long, default_value_t = Config::default().steps, value_parser = parse_positive)]
    steps: usize,
    /// Batch size.
    #[arg(help_heading = "Model loop", long, default_value_t = Config::default().batch_size, value_parser = parse_positive)]
    batch_size: usize,
    /// Worker threads of the loader. With 0 it reads each batch when it is asked for.
    #[arg(help_heading = "Model loop", long, default_value_t = Config::default().loop_workers, value_parser = parse_threads)]
    loop_workers: usize,
    /// Most memory of a loader in dataloader and loop: batches ahead, images that it decodes, caches. It reads fewer
    /// batches ahead until that fits.
    #[arg(long, value_name = "SIZE", value_parser = wellread_loader::cache::parse_bytes)]
    memory: Option<u64>,
    /// Batches that a loader with workers reads ahead in dataloader and loop; by default twice its workers, and 4 at
    /// least.
    #[arg(long, value_name = "BATCHES", value_parser = parse_positive)]
    prefetch: Option<usize>,
    /// Take the centre of every image first, of this size, such as 64x96, or 64 for a square.
    #[arg(long, value_name = "HxW", value_parser = parse_crop)]
    crop: Option<(usize, usize)>,
    /// Factor that pixels are multiplied by; by default the range of their type is scaled to [0, 1], and floats keep their values.
    #[arg(long, value_name = "FACTOR", value_parser = parse_factor)]
    scale: Option<f32>,
    /// Frameworks that run the loops: rust (this program), pytorch, jax. Several are measured side by side, in all
    /// benchmarks but storage. By default rust; conversion adds NumPy and torch if the Python has torch.
    #[arg(help_heading = "Frameworks in Python", long, value_delimiter = ',')]
    framework: Vec<Framework>,
    /// Python >= 3.10 that has the frameworks and the peers; by default that of WELLREAD_PYTHON, of wellread's own
    /// environment, or python3. wellread need not be installed there.
    #[arg(help_heading = "Frameworks in Python", long)]
    python: Option<PathBuf>,
    /// Readers measured in Python: all, or names such as wellread,upstream-cache,tifffile,zarr.
    #[arg(help_heading = "Frameworks in Python", long, value_delimiter = ',', default_value = "all")]
    loaders: Vec<String>,
    /// Seconds after which a Python worker that does not answer is ended; what it measured is then unavailable.
    #[arg(help_heading = "Frameworks in Python", long, default_value_t = Config::default().turn_limit.as_secs_f64(), value_parser = parse_seconds)]
    turn_limit: f64,
    /// Leave out cold-cache runs.
    #[arg(help_heading = "Storage", long)]
    no_cold: bool,
    /// Images of a random read; reads of a run of --sweep layout.
    #[arg(help_heading = "Storage", long, default_value_t = Config::default().random_images, value_parser = parse_positive)]
    random_images: usize,
    /// Also write the images in several ways and compare these, in tables of their own. compression: none, lz4, zstd:1,
    /// zstd:3, zstd:6 in every format, by chunk, container or file. layout: volumes in chunks of a plane, a block or
    /// all of it; reads a volume, a plane, a box. --sweep without a name takes both.
    #[arg(
        help_heading = "Storage",
        long,
        value_name = "SWEEPS",
        value_delimiter = ',',
        num_args = 0..=1,
        default_missing_values = ["compression", "layout"],
        conflicts_with = "in_place"
    )]
    sweep: Option<Vec<Sweep>>,
}

/// Time of each benchmark where none is given.
const BENCHMARK_BUDGET: Duration = Duration::from_mins(2);

/// Benchmarks and sweeps that share the time.
fn benchmarks_of(what: &[String], sweeps: usize) -> u32 {
    let benchmarks = suite::select(what).map_or(1, |benchmarks| benchmarks.len());
    u32::try_from(benchmarks + sweeps).unwrap_or(u32::MAX)
}

impl Args {
    /// The configuration to measure.
    ///
    /// # Errors
    /// Choices that do not go together.
    pub(super) fn config(&self) -> Outcome<Config> {
        let sweeps = distinct(self.sweep.as_deref().unwrap_or_default());
        // Files outlive the loader; what is in memory goes with it.
        let lost = |cache: &&Cache| !matches!(cache, Cache::None | Cache::File { .. } | Cache::Disk(_));
        if let Some(cache) = self.loader_cache.iter().find(lost).filter(|_| !self.keep_open) {
            return Err(Failure::Usage(format!(
                "--loader-cache {cache} keeps nothing without --keep-open: each round would begin with an empty one"
            )));
        }
        if !sweeps.is_empty() && !self.what.iter().any(|w| w == "all" || w == "storage") {
            return usage("--sweep belongs to the storage benchmark: wellread bench storage --sweep");
        }
        if self.random_crop.is_some() && !self.what.iter().any(|w| w == "all" || w == "dataloader") {
            return usage(
                "--random-crop belongs to the data-loader benchmark; ask for it: wellread bench dataloader \
                 --random-crop 96x96",
            );
        }
        self.check_frameworks()?;
        let formats =
            wellread_bench::data::parse_formats(&self.formats).map_err(|e| Failure::Usage(e.to_string()))?;
        let sites = self.sites.of(self.input.as_deref(), "--input")?;
        let source = if let Some(path) = &self.input {
            outside_of(path, "--out", &self.out)?;
            if let Some(folder) = &self.data_dir {
                outside_of(path, "--data-dir", folder)?;
            }
            let cells = self.cells.source();
            Source::Path { path: path.clone(), planes: self.planes.then_some(true), cells, sites }
        } else {
            if self.cells.cells.is_some() {
                return usage("--cells needs --input: the images that the cells are cut out of");
            }
            let spec = self.synthetic.spec()?;
            // Each setting of a sweep is a set in every format.
            let settings = sweeps.iter().map(|sweep| match sweep {
                Sweep::Compression => wellread_bench::sweep::compression::CODECS.len(),
                Sweep::Layout => ChunkLayout::ALL.len(),
            });
            let sets = formats.len() * (1 + settings.sum::<usize>());
            check_disk(&spec, sets, self.data_dir.as_ref().unwrap_or(&self.out))?;
            Source::Synthetic(spec)
        };
        let (mut presets, mut user_transforms) = (vec![], vec![]);
        for transform in distinct(&self.transform) {
            match transform {
                SampleTransform::Preset(preset) => presets.push(preset),
                SampleTransform::User(name) => user_transforms.push(name),
            }
        }
        let asked = (!self.framework.is_empty()).then(|| distinct(&self.framework));
        Ok(Config {
            what: self.what.clone(),
            source,
            formats: self.formats.clone(),
            in_place: self.in_place,
            compression: self.compression,
            repeats: self.repeats,
            precision: self.precision,
            seed: self.synthetic.seed,
            out: self.out.clone(),
            data_dir: self.data_dir.clone(),
            time_budget: self.time_budget.map_or_else(
                || BENCHMARK_BUDGET * benchmarks_of(&self.what, sweeps.len()),
                Duration::from_secs_f64,
            ),
            access: distinct(&self.access),
            block_rows: self.block_rows,
            block_window: self.block_window,
            transforms: presets,
            user_transforms,
            caches: distinct(&self.cache),
            samples: self.samples,
            batch_sizes: distinct(&self.batch_sizes),
            workers: distinct(&self.workers),
            keep_open: self.keep_open,
            loader_caches: distinct(&self.loader_cache),
            model: self.model.clone(),
            modes: distinct(&self.mode),
            steps: self.steps,
            batch_size: self.batch_size,
            loop_workers: self.loop_workers,
            memory: self.memory,
            prefetch: self.prefetch,
            crop: self.crop,
            random_crop: self.random_crop,
            crops: self.crops,
            scale: self.scale,
            find_torch: asked.is_none(),
            frameworks: asked.unwrap_or_else(|| Config::default().frameworks),
            loaders: distinct(&self.loaders),
            python: self.python.clone(),
            turn_limit: Duration::from_secs_f64(self.turn_limit),
            cold: !self.no_cold,
            random_images: self.random_images,
            sweeps,
            command: command_line(),
            working_folder: working_folder(),
            recipe: current().map(|current| current.text),
        })
    }
}

/// Refuses choices that do not go together.
fn usage<T>(text: &str) -> Outcome<T> {
    Err(Failure::Usage(text.to_owned()))
}

impl Args {
    /// Whether what is asked of frameworks makes sense.
    fn check_frameworks(&self) -> Outcome {
        let in_python = self.framework.iter().any(|framework| *framework != Framework::Rust);
        if in_python && self.random_crop.is_some() {
            return usage(
                "--random-crop is measured by this program alone; leave out the frameworks in Python",
            );
        }
        if in_python && self.in_place && !self.sites.options().is_default() {
            return usage(
                "frameworks in Python combine files by their names alone; leave out --in-place, --layout or --pattern",
            );
        }
        if in_python {
            return Ok(());
        }
        if is_python_model(&self.model) {
            return Err(Failure::Usage(format!(
                "--model {} runs in Python; add --framework pytorch or jax",
                self.model
            )));
        }
        let user = self.transform.iter().find(|t| matches!(t, SampleTransform::User(_)));
        if let Some(name) = user {
            return Err(Failure::Usage(format!(
                "--transform {name} runs in Python; add --framework pytorch or jax"
            )));
        }
        let converts = self.framework.is_empty() && self.what.iter().any(|w| w == "all" || w == "conversion");
        if !converts && (self.python.is_some() || self.loaders != ["all"]) {
            return usage(
                "--python and --loaders belong to frameworks in Python; add --framework pytorch or jax",
            );
        }
        Ok(())
    }
}

/// The benchmarks of this build, for the help text.
fn what_there_is() -> String {
    let list: Vec<_> = suite::BENCHMARKS.iter().map(|b| format!("- {}: {}", b.name, b.about)).collect();
    format!("Benchmarks to run: all, or some of these:\n{}", list.join("\n"))
}

fn parse_what(name: &str) -> Result<String, String> {
    suite::select(&[name.to_owned()]).map(|_| name.to_owned()).map_err(|e| e.to_string())
}

/// Whether a model is a user's own, for frameworks in Python.
fn is_python_model(name: &str) -> bool {
    name.starts_with("python:") || Path::new(name).extension().is_some_and(|ending| ending == "onnx")
}

fn parse_model(name: &str) -> Result<String, String> {
    let known: Vec<&str> = wellread_model::models().iter().map(|m| m.name).collect();
    if known.contains(&name) {
        return Ok(name.to_owned());
    }
    if let Some(checked) = in_python(name, "model") {
        return checked.map(|()| name.to_owned());
    }
    if is_python_model(name) {
        return Ok(name.to_owned());
    }
    Err(format!(
        "unknown model {name:?}; there are {}, and with --framework pytorch or jax python:package.module:Class and FILE.onnx",
        known.join(", ")
    ))
}

/// Parses a factor for pixels.
fn parse_factor(text: &str) -> Result<f32, String> {
    let factor = text.trim().parse().ok().filter(|f: &f32| f.is_finite() && *f != 0.0);
    factor.ok_or_else(|| format!("{text:?} is no factor; write a number such as 0.0039"))
}
