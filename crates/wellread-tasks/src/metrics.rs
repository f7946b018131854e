//! From what a process said, and what was measured of it from outside, to the `metrics` of upstream's results.
//!
//! Timers are `{elapsed_seconds, memory_delta_mb, peak_memory_mb}`, seconds and MB; what is not known is null. A task that
//! reports no total has that of its process, and `measured_by` says so.

use crate::phases::{Phase, Said};
use crate::process::Ran;
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

/// The `metrics` of one run.
pub fn metrics(mode: Mode, said: &Said, ran: &Ran) -> Map<String, Value> {
    let mut metrics = Map::new();
    let peak = ran.peak.bytes.map(|bytes| bytes as f64 / MEGABYTE);
    let (total, measured_by) = match said.phase(mode.total()) {
        Some(phase) => (phase.clone(), "the task's own timer"),
        None => (elapsed(ran.wall_seconds), "wall time of the process"),
    };
    let total = Phase { peak_memory_mb: total.peak_memory_mb.or(peak), ..total };
    let mut total = timer(&total);
    total.insert("measured_by".to_owned(), measured_by.into());
    metrics.insert(mode.total().to_owned(), total.into());
    for name in AT_TOP {
        insert(&mut metrics, name, said.phase(name));
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
        insert(&mut batch, name, said.phase(name));
    }
    put(&mut metrics, "batch_breakdown", batch);
    insert(&mut metrics, mode.full(), said.phase(mode.full()));
    let others = said.phases.iter().filter(|(name, _)| {
        let name = name.as_str();
        !AT_TOP.contains(&name)
            && !OF_FIRST_BATCH.contains(&name)
            && ![mode.total(), mode.full(), "first_epoch"].contains(&name)
    });
    put(&mut metrics, "phases", others.map(|(name, phase)| (name.clone(), timer(phase).into())).collect());
    let place = if mode == Mode::Train { "dataset_info" } else { "inference_info" };
    put(&mut metrics, place, info(mode, said));
    metrics.insert("final_metrics".to_owned(), said.final_metrics.clone().into());
    let process = json!({"wall_seconds": ran.wall_seconds, "peak_memory_mb": peak});
    metrics.insert("process".to_owned(), process);
    metrics
}

/// What the task said of its batches, and what follows from that.
fn info(mode: Mode, said: &Said) -> Map<String, Value> {
    let mut info = said.info.clone();
    let number = |info: &Map<String, Value>, name: &str| {
        info.get(name).and_then(Value::as_f64).filter(|n| n.is_finite() && *n > 0.0)
    };
    let positive = |seconds: f64| Some(seconds).filter(|s| *s > 0.0);
    let (batches, samples) = (number(&info, "num_batches"), number(&info, "num_samples"));
    // Of a training run, an epoch in the steady state; of an inference, the whole of it.
    let whole = match mode {
        Mode::Train => said.samples("epoch").and_then(|epochs| median(epochs.steady())),
        Mode::Inference => said.phase(mode.full()).map(|phase| phase.elapsed_seconds),
    };
    if let Some(whole) = whole.and_then(positive) {
        let derived = [
            ("throughput_samples_per_sec", samples.map(|samples| samples / whole)),
            ("avg_time_per_batch", batches.map(|batches| whole / batches)),
        ];
        for (name, value) in derived {
            if let Some(value) = value.filter(|_| !info.contains_key(name)) {
                info.insert(name.to_owned(), value.into());
            }
        }
    }
    info
}

fn elapsed(seconds: f64) -> Phase {
    Phase { elapsed_seconds: seconds, memory_delta_mb: None, peak_memory_mb: None, peak_gpu_memory_mb: None }
}

fn timer(phase: &Phase) -> Map<String, Value> {
    match json!(phase) {
        Value::Object(timer) => timer,
        _ => Map::new(),
    }
}

fn insert(into: &mut Map<String, Value>, name: &str, phase: Option<&Phase>) {
    if let Some(phase) = phase {
        into.insert(name.to_owned(), timer(phase).into());
    }
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
    use crate::process::End;
    use wellread_measure::PeakMemory;
    use wellread_measure::memory::PeakSource;

    fn ran() -> Ran {
        let source = PeakSource::TreeSamples { samples: 1, processes: 1, resident_instead: 0 };
        let peak = PeakMemory { bytes: Some(50_000_000), at_start: Some(0), source };
        Ran { end: End::Success, wall_seconds: 9.5, peak, lack_of_memory: false }
    }

    #[test]
    fn the_names_are_upstreams() {
        let mut said = Said::default();
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
        let m = Value::from(metrics(Mode::Train, &said, &ran()));
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
        let m = Value::from(metrics(Mode::Inference, &Said::default(), &ran()));
        assert_eq!(m["total_inference"]["elapsed_seconds"], 9.5);
        assert_eq!(m["total_inference"]["measured_by"], "wall time of the process");
        assert_eq!(m["process"]["peak_memory_mb"], 50.0);
        assert!(m.get("batch_breakdown").is_none() && m.get("inference_info").is_none());
    }

    #[test]
    fn inference_has_its_throughput_from_the_whole_prediction() {
        let mut said = Said::default();
        said.phases.push(("full_prediction".into(), elapsed(2.0)));
        said.info.insert("num_samples".into(), 30.into());
        said.info.insert("avg_time_per_batch".into(), 7.into());
        let m = Value::from(metrics(Mode::Inference, &said, &ran()));
        assert_eq!(m["inference_info"]["throughput_samples_per_sec"], 15.0);
        assert_eq!(m["inference_info"]["avg_time_per_batch"], 7);
    }
}
