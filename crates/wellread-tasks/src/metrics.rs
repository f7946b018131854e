//! From the reports of a process, and the measurements of it from outside, to the `metrics` of upstream's
//! results.
//!
//! Timers are `{elapsed_seconds, memory_delta_mb, peak_memory_mb, peak_host_memory_mb}`, seconds and MB; the peak is
//! the GPU's where the task runs on one, else the host's. Every key of upstream's results is there; an unknown value is
//! null. A task that reports no total has that of its process, and `measured_by` says so.
//!
//! **Throughput**, alike for every adapter, is images by the time of one pass over the data. The time per batch is that
//! time by its batches: see [`pass`].

use crate::phases::{Phase, PhaseReport};
use crate::process::FinishedProcess;
use crate::task::Mode;
use serde_json::{Map, Value, json};
use wellread_measure::samples::median;

/// Bytes of a MB.
const MEGABYTE: f64 = 1e6;

/// Phases that have their own place at the top.
const AT_TOP: [&str; 4] = ["model_initialization", "configuration", "data_setup", "checkpoint_loading"];
/// Phases of the first batch.
const OF_FIRST_BATCH: [&str; 4] =
    ["first_batch_loading", "first_batch_to_device", "first_batch_forward", "first_batch_postprocess"];
/// Repeated phases that there is one of for each batch.
const OF_EVERY_BATCH: [&str; 4] = ["batch_step", "batch_forward", "batch_loading", "batch_postprocess"];

/// The `metrics` of one run; `epochs` is what the table says.
pub fn metrics(
    mode: Mode,
    epochs: Option<u32>,
    said: &PhaseReport,
    ran: &FinishedProcess,
) -> Map<String, Value> {
    let mut metrics = Map::new();
    // The program's own peak may have come between two looks at it.
    let told = said.phases.iter().filter_map(|(_, phase)| phase.peak_memory_mb);
    let peak = ran.peak.bytes.map(|bytes| bytes as f64 / MEGABYTE).into_iter().chain(told).reduce(f64::max);
    let (total, measured_by) = match said.phase(mode.total()) {
        Some(phase) => (phase.clone(), "the task's own timer"),
        None => (elapsed(ran.wall_seconds), "wall time of the process"),
    };
    let total = Phase { peak_memory_mb: total.peak_memory_mb.or(peak), ..total };
    let mut total = timer(Some(&total));
    total.insert("measured_by".to_owned(), measured_by.into());
    metrics.insert(mode.total().to_owned(), total.into());
    let documented = match mode {
        Mode::Train => ["model_initialization", "data_setup"],
        Mode::Inference => ["model_initialization", "checkpoint_loading"],
    };
    for name in AT_TOP {
        if documented.contains(&name) || said.phase(name).is_some() {
            insert(&mut metrics, name, said.phase(name));
        }
    }
    if mode == Mode::Train {
        let mut epoch = Map::new();
        insert(&mut epoch, "first_epoch", said.phase("first_epoch"));
        insert(&mut epoch, "data_loading_first_batch", said.phase("first_batch_loading"));
        insert(&mut epoch, "model_forward_first_batch", said.phase("first_batch_forward"));
        put(&mut metrics, "epoch_breakdown", epoch);
    }
    let mut batch = Map::new();
    for name in OF_FIRST_BATCH {
        if mode == Mode::Inference || said.phase(name).is_some() {
            insert(&mut batch, name, said.phase(name));
        }
    }
    put(&mut metrics, "batch_breakdown", batch);
    insert(&mut metrics, mode.full(), said.phase(mode.full()));
    let others = said.phases.iter().filter(|(name, _)| {
        let name = name.as_str();
        !AT_TOP.contains(&name)
            && !OF_FIRST_BATCH.contains(&name)
            && ![mode.total(), mode.full(), "first_epoch"].contains(&name)
    });
    let others = others.map(|(name, phase)| (name.clone(), timer(Some(phase)).into()));
    put(&mut metrics, "phases", others.collect());
    let place = if mode == Mode::Train { "dataset_info" } else { "inference_info" };
    metrics.insert(place.to_owned(), info(mode, epochs, said).into());
    metrics.insert("final_metrics".to_owned(), said.final_metrics.clone().into());
    let process = json!({"wall_seconds": ran.wall_seconds, "peak_memory_mb": peak});
    metrics.insert("process".to_owned(), process);
    metrics
}

/// The report of the task on its batches, and the figures that follow from it. The program's own throughput counts
/// where nothing follows.
fn info(mode: Mode, epochs: Option<u32>, said: &PhaseReport) -> Map<String, Value> {
    let mut info = said.info.clone();
    let number =
        |name: &str| said.info.get(name).and_then(Value::as_f64).filter(|n| n.is_finite() && *n > 0.0);
    let epochs = number("epochs").or(epochs.map(f64::from));
    let batches = number("num_batches").or_else(|| counted(mode, epochs, said));
    let samples = number("num_samples");
    let pass = pass(mode, epochs, said);
    let per = |count: Option<f64>| Some((pass?.0, count?));
    let derived = [
        ("throughput_samples_per_sec", per(samples).map(|(seconds, samples)| samples / seconds)),
        ("avg_time_per_batch", per(batches).map(|(seconds, batches)| seconds / batches)),
    ];
    for (name, value) in derived {
        if let Some(value) = value {
            info.insert(name.to_owned(), value.into());
        }
    }
    if !info.contains_key("num_batches") {
        info.insert("num_batches".to_owned(), batches.map(|batches| batches as u64).into());
    }
    if mode == Mode::Train {
        let batches = info["num_batches"].clone();
        info.insert("num_train_batches".to_owned(), batches);
    }
    info.insert("measured_over".to_owned(), pass.map(|(_, what)| what).into());
    for name in ["num_samples", "batch_size", "throughput_samples_per_sec", "avg_time_per_batch"] {
        info.entry(name).or_insert(Value::Null);
    }
    info
}

/// Seconds of one pass over the data, and the timed part: for a training run an epoch, for an inference all of
/// it.
///
/// An epoch is without validation where the task tells epochs one by one. It is the median of those after the
/// warm-up; a single one counts too. Without single epochs, it is the training divided by its epochs.
fn pass(mode: Mode, epochs: Option<f64>, said: &PhaseReport) -> Option<(f64, &'static str)> {
    let phase = |name: &'static str| Some((said.phase(name)?.elapsed_seconds, name));
    let found = match mode {
        Mode::Inference => phase(mode.full()).or_else(|| phase(mode.total())),
        Mode::Train => {
            let told = said.samples("epoch");
            let whole = || {
                let (seconds, name) = phase(mode.full()).or_else(|| phase(mode.total()))?;
                Some((seconds / epochs?, name))
            };
            told.and_then(|told| median(told.steady()))
                .map(|seconds| (seconds, "epoch"))
                .or_else(|| median(&told?.seconds).map(|seconds| (seconds, "first_epoch")))
                .or_else(|| phase("first_epoch"))
                .or_else(whole)
        }
    };
    found.filter(|(seconds, _)| *seconds > 0.0)
}

/// Batches of a pass, counted by what was timed of each.
fn counted(mode: Mode, epochs: Option<f64>, said: &PhaseReport) -> Option<f64> {
    let samples = OF_EVERY_BATCH.iter().find_map(|name| said.samples(name))?;
    let batches = samples.seconds.len() as f64;
    let passes = match mode {
        Mode::Inference => 1.0,
        Mode::Train => said.samples("epoch").map(|told| told.seconds.len() as f64).or(epochs)?,
    };
    Some(batches / passes).filter(|batches| *batches > 0.0 && batches.fract() == 0.0)
}

fn elapsed(seconds: f64) -> Phase {
    Phase { elapsed_seconds: seconds, memory_delta_mb: None, peak_memory_mb: None, peak_gpu_memory_mb: None }
}

/// A timer, whose values are null where the task tells nothing of it.
fn timer(phase: Option<&Phase>) -> Map<String, Value> {
    let mut timer = Map::new();
    let (gpu, host) = phase.map_or((None, None), |phase| (phase.peak_gpu_memory_mb, phase.peak_memory_mb));
    timer.insert("elapsed_seconds".to_owned(), phase.map(|phase| phase.elapsed_seconds).into());
    timer.insert("memory_delta_mb".to_owned(), phase.and_then(|phase| phase.memory_delta_mb).into());
    timer.insert("peak_memory_mb".to_owned(), gpu.or(host).into());
    timer.insert("peak_host_memory_mb".to_owned(), host.into());
    if gpu.is_some() {
        timer.insert("peak_gpu_memory_mb".to_owned(), gpu.into());
    }
    timer
}

fn insert(into: &mut Map<String, Value>, name: &str, phase: Option<&Phase>) {
    into.insert(name.to_owned(), timer(phase).into());
}

fn put(into: &mut Map<String, Value>, name: &str, group: Map<String, Value>) {
    if !group.is_empty() {
        into.insert(name.to_owned(), group.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::Samples;
    use crate::process::ExitReason;
    use wellread_measure::PeakMemory;
    use wellread_measure::memory::PeakSource;

    fn ran() -> FinishedProcess {
        let source = PeakSource::TreeSamples { samples: 1, processes: 1, resident_instead: 0 };
        let peak = PeakMemory { bytes: Some(50_000_000), at_start: Some(0), source };
        FinishedProcess { end: ExitReason::Success, wall_seconds: 9.5, peak, lack_of_memory: false }
    }

    #[test]
    fn the_names_are_upstreams() {
        let mut said = PhaseReport::default();
        for name in [
            "model_initialization",
            "data_setup",
            "first_batch_loading",
            "first_batch_forward",
            "first_epoch",
            "full_training",
            "total_training",
            "own_phase",
        ] {
            said.phases.push((name.to_owned(), elapsed(2.0)));
        }
        said.info.insert("num_samples".into(), 30.into());
        said.info.insert("num_batches".into(), 3.into());
        said.samples.push(("epoch".into(), Samples { seconds: vec![9.0, 2.0, 2.0], warm_up: 1 }));
        said.final_metrics.insert("val_dice".into(), 0.8.into());
        let m = Value::from(metrics(Mode::Train, None, &said, &ran()));
        for path in [
            "/total_training/elapsed_seconds",
            "/model_initialization/elapsed_seconds",
            "/epoch_breakdown/first_epoch/elapsed_seconds",
            "/epoch_breakdown/data_loading_first_batch/elapsed_seconds",
            "/epoch_breakdown/model_forward_first_batch/elapsed_seconds",
            "/batch_breakdown/first_batch_loading/elapsed_seconds",
            "/full_training/elapsed_seconds",
            "/phases/own_phase/elapsed_seconds",
        ] {
            assert_eq!(m.pointer(path).and_then(Value::as_f64), Some(2.0), "{path}");
        }
        assert_eq!(m["total_training"]["peak_memory_mb"], 50.0);
        // Every timer has upstream's three keys, whatever the task reported of them.
        for path in ["/model_initialization", "/epoch_breakdown/first_epoch", "/full_training"] {
            let timer = m.pointer(path).unwrap().as_object().unwrap();
            assert_eq!(timer.get("memory_delta_mb"), Some(&Value::Null), "{path}");
            assert_eq!(timer.get("peak_memory_mb"), Some(&Value::Null), "{path}");
            assert!(!timer.contains_key("peak_gpu_memory_mb"), "{path}");
        }
        assert_eq!(m["dataset_info"]["throughput_samples_per_sec"], 15.0);
        assert!((m["dataset_info"]["avg_time_per_batch"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(m["final_metrics"]["val_dice"], 0.8);
        assert_eq!(m.pointer("/phases").unwrap().as_object().unwrap().len(), 1);
    }

    #[test]
    fn of_a_silent_program_wall_time_and_memory_are_known() {
        let m = Value::from(metrics(Mode::Inference, None, &PhaseReport::default(), &ran()));
        assert_eq!(m["total_inference"]["elapsed_seconds"], 9.5);
        assert_eq!(m["total_inference"]["measured_by"], "wall time of the process");
        assert_eq!(m["process"]["peak_memory_mb"], 50.0);
        // Upstream's keys are there, without values.
        for path in ["/batch_breakdown/first_batch_forward/elapsed_seconds", "/inference_info/num_batches"] {
            assert_eq!(m.pointer(path), Some(&Value::Null), "{path}");
        }
    }

    #[test]
    fn the_peak_is_no_less_than_what_the_program_tells() {
        let peak = |seen: Option<u64>, told: &[f64]| {
            let mut said = PhaseReport::default();
            for &mb in told {
                said.phases.push(("own".into(), Phase { peak_memory_mb: Some(mb), ..elapsed(1.0) }));
            }
            let mut ran = ran();
            ran.peak.bytes = seen;
            Value::from(metrics(Mode::Train, None, &said, &ran))["process"]["peak_memory_mb"].as_f64()
        };
        assert_eq!(peak(Some(390_000), &[40.0, 812.0, 60.0]), Some(812.0));
        assert_eq!(peak(Some(900_000_000), &[812.0]), Some(900.0));
        assert_eq!(peak(None, &[5.0]), Some(5.0));
        assert_eq!(peak(None, &[]), None);
    }

    #[test]
    fn inference_has_its_throughput_from_the_whole_prediction() {
        let mut said = PhaseReport::default();
        said.phases.push(("full_prediction".into(), elapsed(2.0)));
        said.info.insert("num_samples".into(), 30.into());
        said.info.insert("avg_time_per_batch".into(), 7.into());
        let m = Value::from(metrics(Mode::Inference, None, &said, &ran()));
        assert_eq!(m["inference_info"]["throughput_samples_per_sec"], 15.0);
        // Nothing else is known of its batches.
        assert_eq!(m["inference_info"]["avg_time_per_batch"], 7);
        said.info.insert("num_batches".into(), 4.into());
        let m = Value::from(metrics(Mode::Inference, None, &said, &ran()));
        assert_eq!(m["inference_info"]["avg_time_per_batch"], 0.5, "the same definition for all");
        assert_eq!(m["inference_info"]["measured_over"], "full_prediction");
    }

    /// Key by key, the examples of upstream's cytodl-benchmarks.md and what it lists as metrics.
    #[test]
    fn every_key_of_upstreams_results_is_there_with_its_value() {
        let mut said = PhaseReport::default();
        let phase = |name: &str, seconds: f64| {
            let phase =
                Phase { peak_memory_mb: Some(900.0), peak_gpu_memory_mb: Some(4096.2), ..elapsed(seconds) };
            (name.to_owned(), phase)
        };
        for (name, seconds) in [
            ("total_training", 120.5),
            ("first_epoch", 25.3),
            ("first_batch_loading", 0.5),
            ("first_batch_forward", 0.1),
            ("model_initialization", 3.0),
            ("data_setup", 4.0),
            ("full_training", 110.0),
        ] {
            said.phases.push(phase(name, seconds));
        }
        said.info.insert("num_batches".into(), 100.into());
        said.info.insert("batch_size".into(), 8.into());
        let m = Value::from(metrics(Mode::Train, Some(5), &said, &ran()));
        for (path, value) in [
            ("/total_training/elapsed_seconds", 120.5),
            ("/total_training/peak_memory_mb", 4096.2),
            ("/total_training/peak_host_memory_mb", 900.0),
            ("/epoch_breakdown/first_epoch/elapsed_seconds", 25.3),
            ("/epoch_breakdown/data_loading_first_batch/elapsed_seconds", 0.5),
            ("/epoch_breakdown/model_forward_first_batch/elapsed_seconds", 0.1),
            ("/model_initialization/elapsed_seconds", 3.0),
            ("/data_setup/elapsed_seconds", 4.0),
            ("/full_training/elapsed_seconds", 110.0),
            ("/dataset_info/num_train_batches", 100.0),
            ("/dataset_info/batch_size", 8.0),
            // The first epoch's, since no others were told.
            ("/dataset_info/avg_time_per_batch", 0.253),
        ] {
            assert_eq!(m.pointer(path).and_then(Value::as_f64), Some(value), "{path}");
        }
        let mut said = PhaseReport::default();
        for (name, seconds) in [
            ("total_inference", 20.0),
            ("model_initialization", 1.0),
            ("checkpoint_loading", 2.0),
            ("first_batch_loading", 3.0),
            ("first_batch_to_device", 4.0),
            ("first_batch_forward", 5.0),
            ("first_batch_postprocess", 6.0),
            ("full_prediction", 8.0),
        ] {
            said.phases.push((name.to_owned(), elapsed(seconds)));
        }
        said.info.insert("num_batches".into(), 1.into());
        said.info.insert("num_samples".into(), 16.into());
        let m = Value::from(metrics(Mode::Inference, None, &said, &ran()));
        for (path, value) in [
            ("/total_inference/elapsed_seconds", 20.0),
            ("/total_inference/peak_memory_mb", 50.0),
            ("/total_inference/peak_host_memory_mb", 50.0),
            ("/model_initialization/elapsed_seconds", 1.0),
            ("/checkpoint_loading/elapsed_seconds", 2.0),
            ("/batch_breakdown/first_batch_loading/elapsed_seconds", 3.0),
            ("/batch_breakdown/first_batch_to_device/elapsed_seconds", 4.0),
            ("/batch_breakdown/first_batch_forward/elapsed_seconds", 5.0),
            ("/batch_breakdown/first_batch_postprocess/elapsed_seconds", 6.0),
            ("/full_prediction/elapsed_seconds", 8.0),
            ("/inference_info/num_batches", 1.0),
            // One batch's, too.
            ("/inference_info/throughput_samples_per_sec", 2.0),
            ("/inference_info/avg_time_per_batch", 8.0),
        ] {
            assert_eq!(m.pointer(path).and_then(Value::as_f64), Some(value), "{path}");
        }
    }

    #[test]
    fn a_pass_is_a_steady_epoch_or_what_is_told_of_one() {
        let mut said = PhaseReport::default();
        said.info.insert("num_samples".into(), 12.into());
        let of = |said: &PhaseReport, epochs| {
            let info = info(Mode::Train, epochs, said);
            (info["throughput_samples_per_sec"].as_f64(), info["measured_over"].as_str().map(str::to_owned))
        };
        assert_eq!(of(&said, Some(2)), (None, None));
        said.phases.push(("total_training".into(), elapsed(12.0)));
        assert_eq!(of(&said, None).0, None);
        assert_eq!(of(&said, Some(2)), (Some(2.0), Some("total_training".into())));
        said.phases.push(("full_training".into(), elapsed(8.0)));
        assert_eq!(of(&said, Some(2)), (Some(3.0), Some("full_training".into())));
        said.phases.push(("first_epoch".into(), elapsed(6.0)));
        assert_eq!(of(&said, Some(2)), (Some(2.0), Some("first_epoch".into())));
        said.samples.push(("epoch".into(), Samples { seconds: vec![4.0], warm_up: 1 }));
        assert_eq!(of(&said, Some(2)), (Some(3.0), Some("first_epoch".into())));
        said.samples[0].1.seconds.extend([2.0, 1.0, 3.0]);
        assert_eq!(of(&said, Some(2)), (Some(6.0), Some("epoch".into())));
        // Eight steps in four epochs.
        said.samples.push(("batch_step".into(), Samples { seconds: vec![0.1; 8], warm_up: 1 }));
        let info = info(Mode::Train, None, &said);
        assert_eq!((&info["num_train_batches"], &info["avg_time_per_batch"]), (&json!(2), &json!(1.0)));
    }
}
