//! From what was measured of a configuration to its row, and the record of all samples behind it.

use crate::config::Config;
use crate::measure::Measured;
use crate::protocol::Opened;
use crate::results::{Record, Round, Row, Status};
use crate::runner::FrameworkRunner;
use crate::statistics;
use wellread_measure::environment::GitState;
use wellread_measure::process;
use wellread_measure::samples::median;

/// The subject of a row.
pub(crate) struct RowSubject<'a> {
    /// Name of the framework.
    pub framework: &'static str,
    /// The way it is run.
    pub variant: &'a str,
    /// Name of the model.
    pub model: &'a str,
    /// Channels, rows and columns, where they are known.
    pub input: Option<[usize; 3]>,
    /// Images per pass.
    pub size: usize,
    /// The framework's description of itself.
    pub opened: Option<&'a Opened>,
    /// The state of the working folder.
    pub git: Option<&'a GitState>,
    /// The configuration.
    pub config: &'a Config,
}

impl<'a> RowSubject<'a> {
    /// A runner and a batch size.
    pub fn runner(runner: &'a FrameworkRunner, of: &RowSubject<'a>) -> Self {
        RowSubject {
            framework: runner.backend.name(),
            variant: &runner.variant,
            opened: runner.opened.as_ref().ok(),
            ..*of
        }
    }

    /// The row of a configuration and its samples.
    pub fn record(&self, measured: Result<Measured, String>) -> Record {
        let opened = self.opened.cloned();
        let about = opened.clone().unwrap_or_default();
        let config = self.config;
        let mut row = Row {
            framework: self.framework.to_owned(),
            model: self.model.to_owned(),
            device: about.device,
            device_type: about.device_type,
            batch_size: self.size,
            input_shape: self.input.map(|[c, h, w]| format!("({c}, {h}, {w})")).unwrap_or_default(),
            dtype: config.dtype.clone(),
            timestamp: jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S").to_string(),
            git_commit: self.git.map(|git| git.commit.clone()),
            variant: self.variant.to_owned(),
            data_source: config
                .data
                .as_ref()
                .map_or("synthetic".to_owned(), |path| path.display().to_string()),
            threads: config.threads,
            processors: process::first_processors(config.threads).map(|p| listed(&p)),
            import_ms: opened.as_ref().map(|opened| opened.import_ms),
            load_ms: opened.as_ref().map(|opened| opened.load_ms),
            backend: opened.as_ref().map(|opened| opened.backend.clone()),
            device_name: about.device_name,
            layout: about.layout,
            seed: config.seed,
            wellread: env!("CARGO_PKG_VERSION").to_owned(),
            ..Row::default()
        };
        if let Some(node) = &config.node {
            row.set_node(node);
        }
        let measured = match measured {
            Ok(measured) => measured,
            Err(reason) => {
                row.reason = Some(reason);
                return Record { row, opened, ..Record::default() };
            }
        };
        fill(&mut row, &measured, config.seed);
        Record { row, opened, warmup_ns: measured.warm.samples_ns, rounds: measured.rounds }
    }
}

/// The figures of a row.
fn fill(row: &mut Row, measured: &Measured, seed: u64) {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let rounds: Vec<Vec<u64>> = measured.rounds.iter().map(|round| round.samples_ns.clone()).collect();
    let samples = rounds.concat();
    let Some(latency) = statistics::latency(&samples) else {
        row.reason = Some("no pass was measured".to_owned());
        return;
    };
    let size = row.batch_size;
    // As the report has it: a pause in one round does not move it.
    let of_rounds = |rate: fn(&Round, usize) -> Option<f64>| {
        median(&measured.rounds.iter().filter_map(|round| rate(round, size)).collect::<Vec<_>>())
    };
    row.status = Status::Ok;
    row.latency_p50_ms = Some(latency.p50);
    row.latency_p95_ms = Some(latency.p95);
    row.latency_p99_ms = Some(latency.p99);
    row.latency_mean_ms = Some(latency.mean);
    row.latency_std_ms = Some(latency.std);
    row.latency_min_ms = Some(latency.min);
    row.latency_max_ms = Some(latency.max);
    row.throughput_ips = of_rounds(Round::throughput);
    row.host_peak_mb = measured.peak.host.map(mib);
    row.device_peak_mb = measured.peak.device.map(mib);
    // The host memory of a process says nothing of a device whose allocator does not report.
    let host = row.host_peak_mb.filter(|_| row.device_type == "cpu");
    row.memory_mb = row.device_peak_mb.or(host);
    row.compilation_time_ms = measured.prepared.compilation_time_ms;
    row.latency_samples = samples.len();
    row.outliers = Some(latency.outliers);
    row.warmup_passes = Some(measured.warm.samples_ns.len());
    row.steady = measured.warm.steady;
    if let Some(interval) = statistics::interval(&rounds, seed) {
        row.latency_p50_low_ms = Some(interval.low);
        row.latency_p50_high_ms = Some(interval.high);
    }
    let steps: Vec<_> = measured.rounds.iter().flat_map(|round| &round.steps).collect();
    let whole: Vec<f64> = steps.iter().map(|step| step.whole_ns as f64 * 1e-6).collect();
    let total: f64 = whole.iter().sum();
    row.end_to_end_p50_ms = median(&whole);
    if row.end_to_end_p50_ms.is_some() {
        let waited: f64 = steps.iter().map(|step| step.wait_ns as f64 * 1e-6).sum();
        row.end_to_end_ips = of_rounds(Round::fed_throughput);
        row.data_wait_fraction = Some(waited / total);
    }
}

/// Processors as Linux writes them where they follow each other: `0-1`.
fn listed(processors: &[usize]) -> String {
    match (processors.first(), processors.last()) {
        (Some(first), Some(last)) if last > first && last - first + 1 == processors.len() => {
            format!("{first}-{last}")
        }
        _ => processors.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Peak, WarmupResult};
    use crate::protocol::Prepared;
    use crate::results::FedStep;

    fn measured(peak: Peak) -> Measured {
        let round = Round { samples_ns: vec![2_000_000; 3], wall_ns: 8_000_000, ..Round::default() };
        let warm = WarmupResult { samples_ns: vec![1, 2], steady: Some(true), logits: vec![] };
        Measured { prepared: Prepared { compilation_time_ms: None }, warm, rounds: vec![round], peak }
    }

    #[test]
    fn memory_is_the_devices_and_on_the_processor_that_of_the_processes() {
        let of = |device: &str, peak| {
            let mut row = Row { device_type: device.into(), batch_size: 4, ..Row::default() };
            fill(&mut row, &measured(peak), 0);
            (row.memory_mb, row.throughput_ips)
        };
        let (host, device) = (Some(3 << 20), Some(2 << 20));
        assert_eq!(of("cpu", Peak { host, device: None }), (Some(3.0), Some(1500.0)));
        assert_eq!(of("cuda", Peak { host, device }).0, Some(2.0));
        assert_eq!(of("cuda", Peak { host, device: None }).0, None);
    }

    /// A pause in one round of three would halve a rate over all of them.
    #[test]
    fn throughput_is_the_median_of_rounds() {
        let mut measured = measured(Peak::default());
        let step = FedStep { whole_ns: 4_000_000, ..FedStep::default() };
        let steady = Round { steps: vec![step; 2], ..measured.rounds[0].clone() };
        let step = FedStep { whole_ns: 40_000_000, ..step };
        let paused = Round { wall_ns: 48_000_000, steps: vec![step; 2], ..steady.clone() };
        measured.rounds = vec![steady.clone(), paused, steady];
        let mut row = Row { batch_size: 4, ..Row::default() };
        fill(&mut row, &measured, 0);
        assert_eq!((row.throughput_ips, row.end_to_end_ips), (Some(1500.0), Some(1000.0)));
    }

    #[test]
    fn processors_are_listed_as_linux_does() {
        assert_eq!(listed(&[0, 1, 2]), "0-2");
        assert_eq!(listed(&[0, 2]), "0,2");
        assert_eq!(listed(&[3]), "3");
    }
}
