//! `wellread infer`

mod on_nodes;
mod text;

use super::nodes::NodeArgs;
use super::result_file::local_folder;
use super::trace::TraceArgs;
use super::{MAX_THREADS, SiteArgs, left_out, listed, parse_jobs, parse_positive, parse_threads};
use crate::output::{Failure, Outcome, Ui};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use text::{Missing, RULE_LINE, lacking, print_event, shared_conditions};
use wellread_bench::machine;
use wellread_infer::config::{Config, DEVICES, PROVIDERS};
use wellread_infer::report::{self, Ranking};
use wellread_infer::results::{Row, Run, Status};
use wellread_infer::source;
use wellread_measure::{path_text, to_stderr};
use wellread_model::infer::Dtype;
use wellread_report::Fact;
use wellread_store::LeftOutCounts;
use wellread_store::words::{counted, counted_with};

/// Most passes.
const MAX_PASSES: usize = 1_000_000;
/// Measures latency, throughput and memory of inference; writes a table (CSV) and all samples (JSON).
#[derive(clap::Args)]
#[command(after_help = "\
All frameworks run the same weights on the same images, each in a process of its own with the same processors.

Examples:
  wellread infer --framework all --model resnet50 --batch-sizes 1 4 --check
  wellread infer --framework both --model both --batch-sizes 1 8 32 128 \\
      --iterations 200 --warmup 20
  wellread infer --framework pytorch --torch eager,compile,channels-last \\
      --model vit_b_16
  wellread infer --framework pytorch,onnxruntime --device-prefer cuda \\
      --dtype float16 --data-source imagenet100
  wellread infer --framework pytorch --model resnet50 \\
      --data-source imagenet100 --split val --on-error skip
  wellread infer --framework onnxruntime --model my.onnx \\
      --input-shape 3,256,256 --provider tensorrt
  wellread infer --framework all --model both --on slurm")]
pub struct Args {
    /// Frameworks: pytorch, jax, onnxruntime, candle, both (pytorch and jax), all.
    #[arg(long, value_delimiter = ',', num_args = 1.., default_value = "both", value_parser = parse_framework)]
    framework: Vec<String>,
    /// Models: resnet50, vit_b_16, both, or FILE.onnx.
    #[arg(long, value_delimiter = ',', num_args = 1.., default_value = "both", value_parser = parse_model)]
    model: Vec<String>,
    /// Images per pass.
    #[arg(long, value_delimiter = ',', num_args = 1.., default_value = listed(&Config::default().batch_sizes), value_parser = parse_positive)]
    batch_sizes: Vec<usize>,
    /// Measured passes.
    #[arg(long, default_value_t = Config::default().iterations, value_parser = parse_passes)]
    iterations: usize,
    /// Fewest warm-up passes; more follow until latency is steady. 0 for none.
    #[arg(long, default_value_t = Config::default().warmup, value_parser = parse_warmup)]
    warmup: usize,
    /// Device: cuda, mps, tpu or cpu; by default each framework's best. A named device that is missing is an error.
    #[arg(long, value_parser = DEVICES)]
    device_prefer: Option<String>,
    /// Type to compute in.
    #[arg(long, default_value = "float32", value_parser = Dtype::ALL.map(Dtype::name))]
    dtype: String,
    /// Channels, rows and columns of an image; by default the model's own.
    #[arg(long, value_name = "C,H,W", value_parser = parse_shape)]
    input_shape: Option<[usize; 3]>,
    /// Images: synthetic, or a set in any format, such as a folder laid out as ImageNet is. A set is also measured end
    /// to end.
    #[arg(long, aliases = ["data", "input"], default_value = "synthetic", value_name = "synthetic|PATH")]
    data_source: PathBuf,
    /// Split of the images, such as val of an ImageNet folder; by default all.
    #[arg(long, value_name = "NAME", alias = "table")]
    split: Option<String>,
    #[command(flatten)]
    sites: SiteArgs,
    /// Images that cannot be read: raise fails, skip takes the next ones and counts the skipped ones.
    #[arg(long, default_value = "raise", value_parser = ["raise", "skip"])]
    on_error: String,
    /// Channels of the images to take, such as 0,1,1; by default the first three, or the only one three times.
    #[arg(long, value_delimiter = ',')]
    channels: Option<Vec<usize>>,
    /// Threads of the loader that reads the images. With 0 it reads each batch when it is asked for.
    #[arg(long, default_value_t = Config::default().loader_workers, value_parser = parse_threads)]
    workers: usize,
    /// Folder of the results.
    #[arg(long, aliases = ["out", "output"], default_value_os_t = Config::default().output_dir, value_parser = local_folder())]
    output_dir: PathBuf,
    /// Run PyTorch with torch.compile.
    #[arg(help_heading = "Frameworks", long)]
    compile: bool,
    /// Ways to run PyTorch, each measured by itself: eager, compile (also compile=reduce-overhead,
    /// compile=max-autotune), channels-last, autocast, cuda-graphs, tensorrt, tf32. Join several with +, such as
    /// compile+channels-last.
    #[arg(help_heading = "Frameworks", long, value_delimiter = ',', default_value = "eager", value_parser = parse_torch)]
    torch: Vec<String>,
    /// Provider of ONNX Runtime; by default that of the device.
    #[arg(help_heading = "Frameworks", long, value_parser = PROVIDERS)]
    provider: Option<String>,
    /// Library of ONNX Runtime; by default that of the Python's onnxruntime package.
    #[arg(help_heading = "Frameworks", long, value_name = "LIBRARY")]
    onnxruntime: Option<PathBuf>,
    /// Python >= 3.10 that has the frameworks; by default that of WELLREAD_PYTHON, of wellread's own environment, or
    /// python3. wellread need not be installed there.
    #[arg(help_heading = "Frameworks", long)]
    python: Option<PathBuf>,
    /// Threads of every framework, one at least; by default one for each processor.
    #[arg(help_heading = "Frameworks", long, default_value_t = Config::default().threads.min(MAX_THREADS), value_parser = parse_jobs)]
    threads: usize,
    /// Seconds after which a framework that does not answer is ended; its row says so. Importing and loading may take
    /// five minutes in any case.
    #[arg(help_heading = "Frameworks", long, default_value_t = Config::default().turn_limit.as_secs_f64(), value_parser = super::parse_seconds)]
    turn_limit: f64,
    /// Print the largest difference of outputs between the frameworks, and fail if it is too large.
    #[arg(long)]
    check: bool,
    /// Exit code 0 although nothing was measured of a framework that is named. Those of both and all may fail anyway.
    /// If nothing at all was measured, the exit code stays 1.
    #[arg(help_heading = "Frameworks", long)]
    skip_failed: bool,
    /// Seed of weights, synthetic images and the order of turns.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder of weights and ONNX files, which are made once.
    #[arg(long, default_value_os_t = Config::default().model_dir)]
    model_dir: PathBuf,
    #[command(flatten)]
    nodes: NodeArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
}

impl Args {
    fn config(&self, program: Vec<OsString>) -> Config {
        let flat = |names: &[String], parse: fn(&str) -> _| -> Vec<String> {
            let parsed: Vec<Vec<String>> = names.iter().filter_map(|name| Result::ok(parse(name))).collect();
            super::distinct(&parsed.concat())
        };
        let torch = self.torch.iter().map(|way| match way.as_str() {
            way if !self.compile || way.split('+').any(|o| o.starts_with("compile")) => way.to_owned(),
            "eager" => "compile".to_owned(),
            way => format!("compile+{way}"),
        });
        let mut server = program;
        server.push("infer-worker".into());
        Config {
            frameworks: flat(&self.framework, Config::parse_framework),
            models: flat(&self.model, Config::parse_model),
            batch_sizes: super::distinct(&self.batch_sizes),
            iterations: self.iterations,
            warmup: self.warmup,
            device: self.device_prefer.clone(),
            dtype: self.dtype.clone(),
            input_shape: self.input_shape,
            data: (self.data_source.as_os_str() != "synthetic").then(|| self.data_source.clone()),
            split: self.split.clone(),
            sites: self.sites.options(),
            skip_unreadable: self.on_error == "skip",
            channels: self.channels.clone(),
            loader_workers: self.workers,
            output_dir: self.output_dir.clone(),
            torch: super::distinct(&torch.collect::<Vec<_>>()),
            provider: self.provider.clone(),
            onnxruntime: self.onnxruntime.clone(),
            check: self.check,
            threads: self.threads,
            seed: self.seed,
            python: self.python.clone(),
            turn_limit: Duration::from_secs_f64(self.turn_limit),
            model_dir: self.model_dir.clone(),
            server,
            command: super::command_line::command_line(),
            working_folder: super::command_line::working_folder(),
            recipe: super::command_line::current().map(|current| current.text),
            node: None,
        }
    }
}

/// Passes, whose times are all kept.
fn parse_passes(text: &str) -> Result<usize, String> {
    parse_positive(text).and_then(at_most_all)
}

fn parse_warmup(text: &str) -> Result<usize, String> {
    if text == "0" { Ok(0) } else { parse_passes(text) }
}

fn at_most_all(passes: usize) -> Result<usize, String> {
    if passes <= MAX_PASSES {
        Ok(passes)
    } else {
        Err(format!("{passes} are too many: {MAX_PASSES} at most"))
    }
}

fn parse_framework(name: &str) -> Result<String, String> {
    Config::parse_framework(name).map(|_| name.to_owned()).map_err(|e| e.to_string())
}

fn parse_model(name: &str) -> Result<String, String> {
    Config::parse_model(name).map(|_| name.to_owned()).map_err(|e| e.to_string())
}

fn parse_torch(text: &str) -> Result<String, String> {
    Config::parse_torch(text).map_err(|e| e.to_string())
}

fn parse_shape(text: &str) -> Result<[usize; 3], String> {
    Config::parse_shape(text).map_err(|e| e.to_string())
}

pub fn run(args: &Args, program: Vec<OsString>, ui: Ui) -> Outcome {
    let start = program.clone();
    let mut config = args.config(program);
    config.check().map_err(|e| Failure::Usage(format!("{e:#}")))?;
    if config.split.is_some() && config.data.is_none() {
        return Err(Failure::Usage(
            "--split chooses from stored images; name them with --data-source PATH".to_owned(),
        ));
    }
    args.sites.of(config.data.as_deref(), "--data-source")?;
    if let Some(data) = &config.data {
        super::outside_of(data, "--output-dir", &config.output_dir)?;
    }
    let left_out = say_left_out(&config, ui);
    if let Some(part) = args.nodes.part() {
        on_nodes::take_part(&mut config, part)?;
    }
    let run = if let Some(cluster) = args.nodes.cluster() {
        on_nodes::run(cluster, &config, &start, ui)?
    } else {
        let bar = ui.progress(0, "starting");
        let missing = Missing::default();
        let run = wellread_infer::run(&config, &|event| print_event(event, &missing, &bar, ui));
        bar.finish_and_clear();
        run?
    };
    let ending = if has_measured(&run) { "Benchmark Suite Complete" } else { "Nothing was measured" };
    ui.say(format!("\n{RULE_LINE}\n{ending}\n{RULE_LINE}"));
    let missing = run.rows().filter(|row| row.status == Status::Failed).count();
    let missing =
        if missing == 0 { String::new() } else { format!(", {missing} of which could not be measured") };
    ui.say(format!("Total configurations: {}{missing}", run.records.len()));
    ui.say(format!("Results saved to: {}", run.csv.display()));
    ui.hint(format!("All samples: {}", run.json.display()));
    if let Some(first) = run.unreadable.first() {
        let images = counted(run.unreadable.len(), "image");
        ui.say(format!("Skipped: {images} that cannot be read, the first: {}", first.reason));
    }
    let rankings = report::rankings(&run);
    for ranking in &rankings {
        ui.say(&ranking.text);
    }
    if !rankings.is_empty() {
        ui.hint(report::NEEDED);
    }
    let facts =
        machine::facts(&run.environment, machine::Moment::BeforeRun).into_iter().map(Fact::from).collect();
    let page = report::write(&run, facts, machine::short(&run.environment)).map(|f| f.join("report.html"));
    if let Ok(page) = &page {
        ui.say(format!("Report: {}", page.display()));
    }
    ui.hint(shared_conditions(&config));
    for warning in report::warnings(&run) {
        ui.hint(format!("Note: {warning}"));
    }
    // The results are told, whatever became of the report.
    let document = document(&run, &rankings, page.as_deref().ok());
    ui.document(&left_out::with_counts(document, left_out))?;
    page.map_err(|e| {
        Failure::Failed(format!("{e:#}; the results are in {} and {}", run.csv.display(), run.json.display()))
    })?;
    verdict(&run)?;
    if args.skip_failed {
        return Ok(());
    }
    let rows: Vec<&Row> = run.rows().collect();
    lacking(&args.framework, &rows).map_or(Ok(()), |why| Err(Failure::Failed(why)))
}

/// Says what opening the images leaves out, and counts it. Images that cannot be opened are an error of the run.
fn say_left_out(config: &Config, ui: Ui) -> LeftOutCounts {
    let Some(path) = &config.data else { return LeftOutCounts::default() };
    let Ok(images) = source::images(config, path) else { return LeftOutCounts::default() };
    left_out::say(&left_out::notes(&*images), path, ui);
    images.hints().left_out
}

/// The JSON document: rows, the largest difference of outputs, and which frameworks were fastest in this run.
fn document(run: &Run, rankings: &[Ranking], page: Option<&Path>) -> serde_json::Value {
    let rows: Vec<&Row> = run.rows().collect();
    let largest = rows
        .iter()
        .filter_map(|row| row.max_difference)
        .fold(None, |most: Option<f64>, d| Some(most.map_or(d, |most| most.max(d))));
    serde_json::json!({
        "csv": path_text::text(&run.csv),
        "samples": path_text::text(&run.json),
        "report": page.map(path_text::text),
        "max_difference": largest,
        "unreadable": run.unreadable,
        "fastest": rankings,
        "results": rows,
    })
}

/// Why `--check` has compared nothing: what was asked for failed.
fn nothing_compared<'r>(failed: impl Iterator<Item = &'r str>) -> String {
    let mut failed: Vec<_> = failed.collect();
    failed.sort_unstable();
    failed.dedup();
    format!(
        "--check compares frameworks, and only one could be measured: {} failed, for the reasons above. \
         --python PATH or WELLREAD_PYTHON names a Python that has them, and `wellread doctor` lists what is missing",
        failed.join(", ")
    )
}

/// Whether a configuration has figures.
fn has_measured(run: &Run) -> bool {
    run.rows().any(|row| row.status != Status::Failed)
}

/// The reason for which the command fails: nothing measured, or, with --check, outputs that differ.
fn verdict(run: &Run) -> Outcome {
    let of = |status| run.rows().filter(move |row| row.status == status);
    if !has_measured(run) {
        let mut reasons: Vec<_> = run.rows().filter_map(|row| row.reason.clone()).collect();
        reasons.dedup();
        return Err(Failure::Failed(format!("nothing was measured: {}", reasons.join("; "))));
    }
    let invalid = of(Status::Invalid).count();
    if invalid > 0 && !run.config.check {
        to_stderr(format!(
            "{invalid} of {} invalid: their outputs differ from the others', and their figures must not be used.",
            counted_with(run.records.len(), "configuration", ["is", "are"])
        ));
        if of(Status::Ok).next().is_none() {
            return Err(Failure::Failed("nothing valid was measured".to_owned()));
        }
    }
    if !run.config.check {
        return Ok(());
    }
    if let Some(row) = of(Status::Invalid).next() {
        return Err(Failure::Failed(format!(
            "{} {} batch {}: {}",
            row.framework,
            row.model,
            row.batch_size,
            row.reason.as_deref().unwrap_or_default()
        )));
    }
    let is_alone = |row: &&Row| row.status == Status::Ok && row.max_difference.is_none();
    let any_compared = run.rows().any(|row| row.max_difference.is_some());
    if let Some(row) = run.rows().find(is_alone).filter(|_| any_compared) {
        return Err(Failure::Failed(format!(
            "--check: {} {} batch {} was compared with no other framework, since the others failed",
            row.framework, row.model, row.batch_size
        )));
    }
    if !any_compared {
        return Err(Failure::Failed(nothing_compared(of(Status::Failed).map(|row| row.framework.as_str()))));
    }
    let allowed = run.rows().filter_map(|row| row.allowed_difference).fold(0.0, f64::max);
    let failed = of(Status::Failed).count();
    let but = match failed {
        0 => String::new(),
        n => {
            let all = counted(run.records.len(), "configuration");
            format!(" ({n} of {all} failed and were not compared)")
        }
    };
    to_stderr(format!("Outputs of all frameworks agree within {allowed:.0e} of the largest{but}."));
    Ok(())
}

#[cfg(test)]
mod tests;
