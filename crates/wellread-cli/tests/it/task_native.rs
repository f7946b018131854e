//! `wellread task-native`: the process that `wellread tasks` starts for our own experiments.

use crate::support::{arg, generate, wellread};
use std::process::Command;

/// Runs the process with a task; gives exit code, stderr and the lines of phases.
fn run(task: &serde_json::Value, folder: &std::path::Path) -> (i32, String, Vec<serde_json::Value>) {
    let (file, phases) = (folder.join("task.json"), folder.join("phases.jsonl"));
    std::fs::write(&file, task.to_string()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_wellread"))
        .arg("task-native")
        .env("WELLREAD_TASK", &file)
        .env("WELLREAD_PHASES", &phases)
        .output()
        .unwrap();
    let text = std::fs::read_to_string(&phases).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap(), lines)
}

#[test]
fn generated_cells_are_trained_on() {
    let folder = tempfile::tempdir().unwrap();
    generate(&folder.path().join("set"), 4, &["--masks", "--formats", "parquet"]);
    let experiments = folder.path().join("configs/experiment/im2im");
    std::fs::create_dir_all(&experiments).unwrap();
    let settings = "\
        [data]\nimages = \"set/images.parquet\"\nmasks = \"set/masks\"\npatch = [24, 24]\npatches_per_image = 2\n\
        [model]\nwidth = 4\ndepth = 2\n[training]\nthreads = 2\n";
    std::fs::write(experiments.join("segmentation.toml"), settings).unwrap();
    let out = folder.path().join("out");
    let mut task = serde_json::json!({
        "mode": "train", "branch": "main", "commit": "0", "experiment": "im2im/segmentation", "trainer": "cpu",
        "max_epochs": 2, "batch_size": 2, "checkpoint_path": null, "data_path": null, "overrides": [], "seed": 1,
        "repeat": 0, "worktree": folder.path(), "output_dir": out,
    });
    let (code, stderr, lines) = run(&task, folder.path());
    assert_eq!(code, 0, "{stderr}");
    assert!(lines.iter().any(|line| line["phase"] == "total_training"));
    assert!(out.join("checkpoints/best.safetensors").is_file() && out.join("overlay.png").is_file());

    task["mode"] = "inference".into();
    task["checkpoint_path"] = arg(&out.join("checkpoints/best.safetensors")).into();
    let (code, stderr, lines) = run(&task, folder.path());
    assert_eq!(code, 0, "{stderr}");
    assert!(lines.iter().any(|line| line["phase"] == "total_inference"));
    assert_eq!(std::fs::read_dir(out.join("predictions")).unwrap().count(), 4);

    task["overrides"] = serde_json::json!(["model.widht=3"]);
    let (code, stderr, lines) = run(&task, folder.path());
    assert!(code == 1 && stderr.contains("model.width"), "{code} {stderr}");
    assert!(lines.last().unwrap()["error"].as_str().unwrap().contains("model.widht"));
}

#[test]
fn without_a_task_it_says_who_starts_it() {
    let done = wellread(&["task-native"]);
    assert!(done.code == 2 && done.stderr.contains("wellread tasks"), "{}", done.stderr);
    assert!(!wellread(&["--help"]).stdout.contains("task-native"));
}
