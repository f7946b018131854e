use super::*;
use crate::phases::{Phase, Samples as Repeated};
use wellread_measure::PeakMemory;
use wellread_measure::memory::PeakSource;

fn config() -> TaskConfig {
    TaskConfig {
        mode: Mode::Train,
        branch: "main".into(),
        experiment: "e".into(),
        trainer: Trainer::Cpu,
        max_epochs: Some(1),
        batch_size: None,
        checkpoint_path: None,
        data_path: None,
        overrides: vec!["a=1".into()],
        adapter: "command".into(),
        seed: 0,
    }
}

fn repeat(number: usize, end: ExitReason, seconds: f64) -> Repeat {
    let peak =
        PeakMemory { bytes: None, at_start: None, source: PeakSource::Unavailable { reason: String::new() } };
    let mut said = PhaseReport::default();
    said.samples
        .push(("batch_loading".into(), Repeated { seconds: vec![9.0, seconds, seconds * 1.1], warm_up: 1 }));
    let mut repeat = Repeat {
        repeat: number,
        timestamp: now(),
        success: false,
        error: None,
        end: None,
        wall_seconds: None,
        metrics: Map::new(),
        said,
        output_dir: "out".into(),
        hardware: State::default(),
        hardware_after: None,
    };
    repeat.ended(
        Mode::Train,
        Some(1),
        &FinishedProcess { end, wall_seconds: seconds, peak, lack_of_memory: false },
        &["last words".to_owned()],
    );
    repeat
}

#[test]
fn metrics_are_those_of_the_median_run_and_survive_the_file() {
    let mut entry =
        Entry::new(config(), GitInfo { branch: "main".into(), ..GitInfo::default() }, Value::Null);
    for (number, seconds) in [3.0, 1.0, 2.0, 9.0].into_iter().enumerate() {
        entry.add(repeat(number, ExitReason::Success, seconds), 0);
    }
    assert!(entry.success && entry.error.is_none());
    assert_eq!(entry.metrics["total_training"]["elapsed_seconds"], 2.0);
    let loading = &entry.statistics["batch_loading"];
    assert_eq!(
        (&loading["runs"], &loading["steady"]["n"], &loading["warm_up"]["p50"]),
        (&4.into(), &8.into(), &9.0.into())
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/results.json");
    assert_eq!(read(&path).unwrap(), None);
    write(&path, [&entry]).unwrap();
    assert_eq!(read(&path).unwrap().unwrap(), [entry.clone()]);
    // Upstream's keys, in its order, come first.
    let list: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let keys: Vec<&String> = list[0].as_object().unwrap().keys().collect();
    let upstream =
        ["branch", "experiment", "timestamp", "success", "error", "git_info", "task_config", "metrics"];
    assert_eq!(keys[..8], upstream);
    assert!(entry.is_of(&config(), None) && !entry.is_of(&config(), Some("abc")));
    assert!(!entry.is_of(&TaskConfig { batch_size: Some(8), ..config() }, None));
}

#[test]
fn failures_say_how_and_the_last_lines() {
    let mut entry = Entry::new(config(), GitInfo::default(), Value::Null);
    entry.add(repeat(0, ExitReason::Success, 1.0), 0);
    entry.add(repeat(1, ExitReason::Timeout(5.0), 5.0), 0);
    let error = entry.error.clone().unwrap();
    assert!(!entry.success && error.starts_with("1 of 2 runs failed: took longer than 5 s"), "{error}");
    assert!(error.ends_with("last words"), "{error}");
    assert!(first_sentence(&error).ends_with("(--timeout allows more)"), "{}", first_sentence(&error));
    assert_eq!(first_sentence("exit code 3; its log is empty"), "exit code 3; its log is empty");
    assert_eq!(entry.metrics["total_training"]["elapsed_seconds"], 1.0);
    let mut own = repeat(0, ExitReason::Success, 1.0);
    own.said.error = Some("no images in /data".into());
    own.said.phases.push((
        "total_training".into(),
        Phase { elapsed_seconds: 0.5, memory_delta_mb: None, peak_memory_mb: None, peak_gpu_memory_mb: None },
    ));
    let peak =
        PeakMemory { bytes: None, at_start: None, source: PeakSource::Unavailable { reason: String::new() } };
    let ran =
        |end, lack_of_memory| FinishedProcess { end, wall_seconds: 1.0, peak: peak.clone(), lack_of_memory };
    own.ended(Mode::Train, None, &ran(ExitReason::Exit(1), false), &[]);
    assert_eq!(own.error.as_deref(), Some("no images in /data (exit code 1); its log is empty"));
    own.ended(Mode::Train, None, &ran(ExitReason::Exit(1), true), &[]);
    let error = own.error.clone().unwrap();
    assert!(error.starts_with("no images in /data (exit code 1; the kernel ended a process"), "{error}");
    own.ended(Mode::Train, None, &ran(ExitReason::Success, true), &[]);
    assert!(!own.success && own.error.unwrap().contains("ended with exit code 0"));
}

#[test]
fn a_file_of_something_else_is_not_taken_for_results() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.json");
    for text in ["{\"a\":1}", "[1]", "hello", "[{\"branch\":\"x\"}]"] {
        std::fs::write(&path, text).unwrap();
        let said = format!("{:#}", read(&path).unwrap_err());
        assert!(said.contains("--output") && said.contains("r.json"), "{said}");
    }
    std::fs::write(&path, " \n").unwrap();
    assert_eq!(read(&path).unwrap(), Some(vec![]));
    std::fs::write(&path, "[]").unwrap();
    assert_eq!(read(&path).unwrap(), Some(vec![]));
}
