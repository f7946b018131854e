//! The measurements, in a form that other programs read. A flat [`Row`] per configuration has the columns of
//! the CSV file in order as its fields. The [`Record`] has all raw samples behind it.

use crate::config::Config;
use crate::protocol::Opened;
use crate::source::Unreadable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use wellread_measure::Environment;
use wellread_measure::environment::Node;

/// A configuration: a framework, a model and a batch size. Fields are columns; upstream's come first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Framework, such as `pytorch`.
    pub framework: String,
    /// Model.
    pub model: String,
    /// Identifier of the device, such as `cuda:0`.
    pub device: String,
    /// `cpu`, `cuda`, `mps` or `tpu`.
    pub device_type: String,
    /// Images per pass.
    pub batch_size: usize,
    /// Shape of one image, as Python writes it: `(3, 224, 224)`.
    pub input_shape: String,
    /// Type that is computed in.
    pub dtype: String,
    /// Median.
    pub latency_p50_ms: Option<f64>,
    /// 95th percentile; how many passes it is of is `latency_samples`.
    pub latency_p95_ms: Option<f64>,
    /// 99th percentile, likewise.
    pub latency_p99_ms: Option<f64>,
    /// Mean.
    pub latency_mean_ms: Option<f64>,
    /// Standard deviation.
    pub latency_std_ms: Option<f64>,
    /// Least.
    pub latency_min_ms: Option<f64>,
    /// Most.
    pub latency_max_ms: Option<f64>,
    /// Images per second of wall time: the median of the rounds.
    pub throughput_ips: Option<f64>,
    /// Peak memory in MiB: the device's, where the framework's allocator tells it, else that of its processes.
    pub memory_mb: Option<f64>,
    /// Time to compile for this batch; empty where nothing is compiled.
    pub compilation_time_ms: Option<f64>,
    /// When it was done: local time, ISO 8601.
    pub timestamp: String,
    /// Commit of the working folder.
    pub git_commit: Option<String>,
    /// `ok`, `invalid` (outputs differ from those of the others) or `failed`.
    pub status: Status,
    /// Why not `ok`.
    pub reason: Option<String>,
    /// A note for the reader of the figures.
    pub note: Option<String>,
    /// The way the framework was run, such as `compile+channels-last`.
    pub variant: String,
    /// Passes measured: so many stand behind every figure of latency.
    #[serde(alias = "samples")]
    pub latency_samples: usize,
    /// Samples beyond Tukey's fences; they are not dropped.
    pub outliers: Option<usize>,
    /// Passes before them.
    pub warmup_passes: Option<usize>,
    /// Whether the warm-up ended because latency was steady.
    pub steady: Option<bool>,
    /// 95 % interval of the median, by the medians of rounds: lower end.
    pub latency_p50_low_ms: Option<f64>,
    /// Upper end.
    pub latency_p50_high_ms: Option<f64>,
    /// Peak of the framework's processes in MiB, shared pages counted in part (proportional set).
    pub host_peak_mb: Option<f64>,
    /// Peak of the framework's allocator on the device in MiB.
    pub device_peak_mb: Option<f64>,
    /// Largest difference from the reference's outputs, relative to its largest.
    pub max_difference: Option<f64>,
    /// The framework whose outputs are the reference.
    pub reference: Option<String>,
    /// Largest difference allowed; empty for the reference itself.
    pub allowed_difference: Option<f64>,
    /// Images per second from the stored images on, through the loader: the median of the rounds. Empty for synthetic images.
    pub end_to_end_ips: Option<f64>,
    /// Median of a step of that: a batch asked for, delivered, moved and run.
    pub end_to_end_p50_ms: Option<f64>,
    /// Share of that in which the loader was waited for.
    pub data_wait_fraction: Option<f64>,
    /// `synthetic`, or the path of the images.
    pub data_source: String,
    /// Images of that left out so far because they cannot be read; empty for synthetic ones.
    #[serde(default)]
    pub images_skipped: Option<usize>,
    /// Threads the framework was told to use.
    pub threads: usize,
    /// Processors its process was kept to; empty for all there are.
    pub processors: Option<String>,
    /// Time to import the framework.
    pub import_ms: Option<f64>,
    /// Time to load the model.
    pub load_ms: Option<f64>,
    /// Library, version, device and threads, in words.
    pub backend: Option<String>,
    /// Name of the device.
    pub device_name: Option<String>,
    /// Memory layout of images in the model.
    pub layout: Option<String>,
    /// Seed of weights, images and order.
    pub seed: u64,
    /// Version of this program.
    pub wellread: String,
    /// Host name of the node of a cluster that it was measured on; this and what follows are empty without `--on`.
    #[serde(default)]
    pub node: Option<String>,
    /// Model of the node's processors.
    #[serde(default)]
    pub node_cpu: Option<String>,
    /// Processors that a process may use there.
    #[serde(default)]
    pub node_cores: Option<usize>,
    /// The node's main memory in MiB.
    #[serde(default)]
    pub node_memory_mb: Option<f64>,
    /// Names of the node's NVIDIA GPUs, joined by `; `.
    #[serde(default)]
    pub node_gpus: Option<String>,
}

/// The result of a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Measured, and the outputs agree where they were compared.
    Ok,
    /// Measured, but the outputs differ from those of the other frameworks.
    Invalid,
    /// Not measured.
    #[default]
    Failed,
}

/// Passes of one round, as they were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Number of the round.
    pub round: usize,
    /// Place in it: which framework was measured after which.
    pub position: usize,
    /// Nanoseconds of each pass.
    pub samples_ns: Vec<u64>,
    /// From the first's beginning to the last's end.
    pub wall_ns: u64,
    /// Fed steps, where images came through the loader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<FedStep>,
}

impl Round {
    /// Images per second of its passes, each of a batch of this size.
    pub(crate) fn throughput(&self, batch_size: usize) -> Option<f64> {
        rate(batch_size * self.samples_ns.len(), self.wall_ns)
    }

    /// The same of its fed steps.
    pub(crate) fn fed_throughput(&self, batch_size: usize) -> Option<f64> {
        rate(batch_size * self.steps.len(), self.steps.iter().map(|step| step.whole_ns).sum())
    }
}

/// Images per second; none where there are no images or no time passed.
fn rate(images: usize, nanoseconds: u64) -> Option<f64> {
    (images > 0 && nanoseconds > 0).then(|| images as f64 / (nanoseconds as f64 * 1e-9))
}

/// One fed step, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FedStep {
    /// From asking the loader to having the batch.
    pub wait_ns: u64,
    /// Shared memory to the device, as the framework sees it.
    pub fetch_ns: u64,
    /// The pass.
    pub forward_ns: u64,
    /// All of it, from asking the loader to the answer.
    pub whole_ns: u64,
}

/// A row and what it was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The row.
    pub row: Row,
    /// The framework's description of itself.
    pub opened: Option<Opened>,
    /// Nanoseconds of the passes of warm-up.
    pub warmup_ns: Vec<u64>,
    /// The measured rounds.
    pub rounds: Vec<Round>,
}

/// A run: all records, and the facts needed to repeat it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The configuration.
    pub config: Config,
    /// The machine.
    pub environment: Environment,
    /// Every configuration, in the order measured.
    pub records: Vec<Record>,
    /// Images that were left out because they cannot be read.
    #[serde(default)]
    pub unreadable: Vec<Unreadable>,
    /// The CSV file.
    #[serde(serialize_with = "wellread_measure::path_text::serialize")]
    pub csv: PathBuf,
    /// The file of this, with all samples.
    #[serde(serialize_with = "wellread_measure::path_text::serialize")]
    pub json: PathBuf,
}

impl Row {
    /// The node of a cluster that it was measured on; `None` without `--on`.
    pub fn on_node(&self) -> Option<Node> {
        let host = Some(self.node.clone()?);
        Some(Node {
            host,
            cpu: self.node_cpu.clone(),
            cores: self.node_cores.unwrap_or(0),
            memory_bytes: self.node_memory_mb.map(|mib| (mib * f64::from(1 << 20)) as u64),
            gpus: self.node_gpus.iter().flat_map(|all| all.split("; ")).map(str::to_owned).collect(),
        })
    }

    /// Records the node of a cluster that it is measured on.
    pub fn set_node(&mut self, node: &Node) {
        self.node = Some(node.host.clone().unwrap_or_else(|| "unnamed".to_owned()));
        self.node_cpu.clone_from(&node.cpu);
        self.node_cores = Some(node.cores);
        self.node_memory_mb = node.memory_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
        self.node_gpus = (!node.gpus.is_empty()).then(|| node.gpus.join("; "));
    }
}

impl Run {
    /// The kinds of nodes that rows were measured on, in words, each once; empty without `--on`.
    pub fn node_kinds(&self) -> BTreeSet<String> {
        self.rows().filter_map(Row::on_node).map(|node| node.kind()).collect()
    }

    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.records.iter().map(|record| &record.row)
    }
}
