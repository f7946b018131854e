//! `--on slurm` of `infer` and `tasks`. A program called srun writes down the requests to it and runs the command. Unlike nodes
//! are compared, too.

#![cfg(target_os = "linux")]

use crate::support::{Done, HAS_LINUX_CALLS};
use crate::tasks::{git, repository};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Writes its arguments down and runs the command. A node that has a task already is an error.
const SRUN: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "slurm 24.05.0"; exit 0; }
printf '%s\n' "$*" >> "$FAKE_SLURM/asked"
node=
while [ "${1#--}" != "$1" ]; do
  case "$1" in --nodelist=*) node="${1#--nodelist=}" ;; esac
  shift
done
[ -z "$node" ] || mkdir "$FAKE_SLURM/$node" || exit 77
"$@"
code=$?
[ -z "$node" ] || rmdir "$FAKE_SLURM/$node"
exit $code
"#;
const SCONTROL: &str = "#!/bin/sh\necho \"$*\" >> \"$FAKE_SLURM/listed\"\necho \"$3\" | tr , '\\n'\n";

struct Slurm {
    dir: tempfile::TempDir,
}

impl Slurm {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        for (name, text) in [("srun", SRUN), ("scontrol", SCONTROL)] {
            std::fs::write(bin.join(name), text).unwrap();
            std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs `wellread` in an allocation of these nodes; of none outside of one.
    fn run(&self, nodes: &str, args: &[&str]) -> Done {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(self.path("bin")).chain(std::env::split_paths(&path));
        let mut command = Command::new(env!("CARGO_BIN_EXE_wellread"));
        command.args(args).stdin(Stdio::null()).current_dir(self.dir.path());
        command.env("PATH", std::env::join_paths(paths).unwrap());
        command.env("FAKE_SLURM", self.dir.path()).env("XDG_CACHE_HOME", self.path("cache"));
        command.env_remove("SLURM_NODELIST").env("SLURM_JOB_NODELIST", nodes);
        let output = command.output().expect("the binary starts");
        Done {
            code: output.status.code().expect("no signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The requests to srun, in order of the parts.
    fn asked(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("asked")).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_by_key(|line| line.split("--node-part ").nth(1).map(str::to_owned));
        lines
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A model that is measured, and a file that is none.
fn infer(slurm: &Slurm, nodes: &str) -> (Done, Value) {
    std::fs::write(slurm.path("broken.onnx"), "no model").unwrap();
    let args = "--json infer --framework candle --model resnet50,broken.onnx --batch-sizes 1 2 --iterations 2 --warmup 0 \
                --threads 1 --output-dir raw --model-dir models --input-shape 3,32,32 --on slurm";
    let done = slurm.run(nodes, &args.split_whitespace().collect::<Vec<_>>());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let said = serde_json::from_str(&done.stdout).unwrap();
    (done, said)
}

#[test]
fn infer_gives_each_model_a_node_of_the_allocation_of_its_own() {
    let slurm = Slurm::new();
    let (_, said) = infer(&slurm, "n1,n2");
    let asked = slurm.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for (number, line) in asked.iter().enumerate() {
        let (options, command) = line.split_once(env!("CARGO_BIN_EXE_wellread")).unwrap();
        let options: Vec<&str> = options.split_whitespace().collect();
        assert_eq!(options[..4], ["--nodes=1", "--ntasks=1", "--cpu-bind=none", "--mem=0"]);
        assert!(
            ["--nodelist=n1", "--nodelist=n2"].contains(&options[4]) && !line.contains("--exclusive"),
            "{line}"
        );
        assert!(
            command.starts_with(" --quiet infer --framework candle --model resnet50,broken.onnx "),
            "{line}"
        );
        assert!(command.contains(&format!("--on slurm --node-part {number}:/")), "{line}");
    }
    assert_eq!(std::fs::read_to_string(slurm.path("listed")).unwrap(), "show hostnames n1,n2\n");
    let rows = said["results"].as_array().unwrap();
    let of = |row: &Value| {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        (text("model"), row["batch_size"].as_u64().unwrap(), text("status"))
    };
    let expected = [
        ("resnet50", 1, "ok"),
        ("resnet50", 2, "ok"),
        ("broken.onnx", 1, "failed"),
        ("broken.onnx", 2, "failed"),
    ];
    let expected: Vec<_> = expected.iter().map(|(m, b, s)| ((*m).to_owned(), *b, (*s).to_owned())).collect();
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for row in rows {
        assert!(row["node_cores"].as_u64().unwrap() >= 1, "{row}");
        // Only Linux tells its name and its memory.
        assert_eq!(row["node"], if HAS_LINUX_CALLS { host.trim() } else { "unnamed" }, "{row}");
        assert_eq!(row["node_memory_mb"].as_f64().is_some_and(|mb| mb > 64.0), HAS_LINUX_CALLS, "{row}");
    }
    let table = std::fs::read_to_string(
        slurm.path("raw").join(said["csv"].as_str().unwrap().trim_start_matches("raw/")),
    );
    assert_eq!(table.unwrap().lines().count(), 5);
    // Merged files are not left behind.
    let mut left = std::fs::read_dir(slurm.path("raw")).unwrap().flatten();
    assert!(left.all(|entry| entry.path().extension().is_none_or(|ending| ending != "nodes")));
}

#[cfg(not(feature = "portable"))]
#[test]
fn infer_says_which_host_lacks_a_framework_and_why() {
    let slurm = Slurm::new();
    std::fs::write(slurm.path("broken.onnx"), "no model").unwrap();
    let args = "infer --framework candle --model broken.onnx --batch-sizes 1 2 --output-dir raw --model-dir models --on slurm";
    let done = slurm.run("n1", &args.split_whitespace().collect::<Vec<_>>());
    assert_eq!(done.code, 1, "{}", done.stderr);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let said = format!("Benchmark: broken.onnx on {}: not available: ", host.trim());
    assert_eq!(done.stdout.matches(&said).count(), 1, "{}", done.stdout);
}

#[test]
fn one_node_has_one_part_at_a_time_and_outside_of_an_allocation_nodes_are_whole() {
    let slurm = Slurm::new();
    // The srun of this test fails where a node has two.
    infer(&slurm, "n1");
    assert!(slurm.asked().iter().all(|line| line.contains("--nodelist=n1 ")));
    let slurm = Slurm::new();
    infer(&slurm, "");
    let asked = slurm.asked();
    assert!(
        asked.len() == 2
            && asked.iter().all(|line| line.contains("--exclusive ") && !line.contains("--nodelist"))
    );
}

/// A repository with the experiments `e` and `f`.
fn repository_of_two(slurm: &Slurm) -> PathBuf {
    let repo = repository(slurm.dir.path());
    let script = std::fs::read_to_string(repo.join("configs/experiment/e.sh")).unwrap();
    std::fs::write(repo.join("configs/experiment/f.sh"), script).unwrap();
    git(&repo, &["add", "--all"]);
    git(&repo, &["commit", "--quiet", "-m", "f"]);
    repo
}

#[test]
fn tasks_give_each_experiment_a_node_and_compare_branches_within_it() {
    let slurm = Slurm::new();
    let repo = repository_of_two(&slurm);
    git(&repo, &["branch", "other"]);
    std::fs::write(slurm.path("tasks.csv"), "branch,experiment\nmain,e\nmain,f\nother,e\nother,f\n").unwrap();
    let args = "tasks train --config tasks.csv --output out.json --repo repo --compare --on slurm";
    let args: Vec<&str> = args.split_whitespace().collect();
    let done = slurm.run("n1,n2", &args);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(slurm.asked().len(), 2);
    let entries = read(&slurm.path("out.json"));
    let of = |entry: &Value| {
        format!("{} {}", entry["branch"].as_str().unwrap(), entry["experiment"].as_str().unwrap())
    };
    let names: Vec<String> = entries.as_array().unwrap().iter().map(of).collect();
    assert_eq!(names, ["main e", "main f", "other e", "other f"]);
    for entry in entries.as_array().unwrap() {
        assert_eq!(entry["success"], true, "{entry}");
        assert_eq!(entry["node"]["host"].is_string(), HAS_LINUX_CALLS, "{entry}");
        assert!(entry["node"]["cores"].as_u64() >= Some(1), "{entry}");
    }
    // One run of each gives ratios without a verdict, which is no failure.
    assert_eq!(done.stdout.matches("Within these runs only: ").count(), 2, "{}", done.stdout);
    assert!(done.stdout.contains("other compared with main"), "{}", done.stdout);
    let table = std::fs::read_to_string(slurm.path("out.report/tasks.csv")).unwrap();
    assert!(table.lines().next().unwrap().contains("node_cores"), "{table}");
    // A plan asks for no node.
    let planned = slurm.run("n1,n2", &[&args[..], &["--dry-run"]].concat());
    assert!(planned.code == 0 && slurm.asked().len() == 2, "{}", planned.stderr);
}

#[test]
fn a_part_that_fails_is_not_hidden_by_its_earlier_results_and_other_tasks_stay() {
    let slurm = Slurm::new();
    repository_of_two(&slurm);
    let run = |experiment: &str, more: &[&str]| {
        std::fs::write(slurm.path("tasks.csv"), format!("branch,experiment\nmain,{experiment}\n")).unwrap();
        let args = "tasks train --config tasks.csv --output out.json --repo repo --on slurm";
        let args: Vec<&str> = args.split_whitespace().chain(more.iter().copied()).collect();
        let done = slurm.run("n1", &args);
        let entries = read(&slurm.path("out.json"));
        let of = |entry: &Value| {
            let experiment = entry["experiment"].as_str().unwrap().to_owned();
            let error = entry["error"].as_str().unwrap_or_default().to_owned();
            assert_eq!(entry["success"], error.is_empty(), "{entry}");
            (experiment, entry["repeats"].as_array().unwrap().len(), error)
        };
        (done, entries.as_array().unwrap().iter().map(of).collect::<Vec<_>>())
    };
    let good = |name: &str| (name.to_owned(), 1, String::new());
    let (done, entries) = run("e", &[]);
    assert_eq!((done.code, entries), (0, vec![good("e")]), "{}", done.stderr);
    let (done, entries) = run("f", &["--resume"]);
    assert_eq!((done.code, entries), (0, vec![good("f"), good("e")]), "{}", done.stderr);
    // From here on nodes are lost before they have measured anything.
    std::fs::write(slurm.path("bin/srun"), "#!/bin/sh\n[ \"$1\" = --version ] || exit 9\n").unwrap();
    let (_, entries) = run("f", &["--resume", "--skip-failed", "--repeats", "2"]);
    assert_eq!(entries.len(), 2);
    let (name, runs, error) = &entries[0];
    assert!(name == "f" && *runs == 1 && error.contains("srun ended"), "{error}");
    assert_eq!(entries[1], good("e"));
    // All runs that are asked for are there.
    let (_, entries) = run("f", &["--resume", "--skip-failed"]);
    assert_eq!(entries, [good("f"), good("e")]);
}

#[test]
fn runs_of_a_commit_that_a_branch_has_left_are_moved_and_that_is_said() {
    let slurm = Slurm::new();
    let repo = repository_of_two(&slurm);
    std::fs::write(slurm.path("tasks.csv"), "branch,experiment\nmain,e\n").unwrap();
    let run = || {
        let args = "tasks train --config tasks.csv --output out.json --repo repo --on slurm --resume";
        let done = slurm.run("n1", &args.split_whitespace().collect::<Vec<_>>());
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stderr
    };
    let commits = |name: &str| -> Vec<String> {
        let entries = read(&slurm.path(name));
        let of = |entry: &Value| entry["git_info"]["commit_hash"].as_str().unwrap().to_owned();
        entries.as_array().unwrap().iter().map(of).collect()
    };
    run();
    let before = commits("out.json");
    git(&repo, &["commit", "--quiet", "--allow-empty", "-m", "moved"]);
    let said = run();
    assert!(said.contains("moved to out.earlier.json"), "{said}");
    assert_eq!((before.len(), commits("out.earlier.json")), (1, before.clone()));
    let now = commits("out.json");
    assert!(now.len() == 1 && now != before, "{now:?}");
}

#[test]
fn without_slurm_it_is_said_how_to_get_on() {
    let slurm = Slurm::new();
    std::fs::remove_file(slurm.path("bin/srun")).unwrap();
    let args =
        ["infer", "--framework", "candle", "--model", "resnet50", "--output-dir", "raw", "--on", "slurm"];
    let done = slurm.run("n1", &args);
    assert!(done.code == 1 && done.stderr.contains("cannot run srun"), "{} {}", done.code, done.stderr);
    assert!(!slurm.path("raw").exists());
    let wrong = slurm.run("n1", &["infer", "--on", "lsf"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("none of slurm, ray"), "{}", wrong.stderr);
}

#[test]
fn results_of_unlike_nodes_are_compared_only_when_that_is_asked_for() {
    let slurm = Slurm::new();
    let write = |name: &str, host: &str, cores: u64| {
        let task = json!({"branch": "main", "experiment": "e", "success": true, "error": null,
            "git_info": {"branch": "main", "commit_hash": "c"}, "task_config": {"batch_size": 4},
            "metrics": {"full_training": {"elapsed_seconds": 1.5, "peak_memory_mb": 5.0}},
            "node": {"host": host, "cpu": "Fast 9000", "cores": cores, "memory_bytes": 1u64 << 36, "gpus": []}});
        std::fs::write(slurm.path(name), json!([task]).to_string()).unwrap();
    };
    write("a.json", "n1", 8);
    write("like.json", "n2", 8);
    write("unlike.json", "n3", 16);
    assert_eq!(slurm.run("", &["compare", "a.json", "like.json"]).code, 0);
    let refused = slurm.run("", &["compare", "a.json", "unlike.json"]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    for part in ["unlike nodes", "8 cores", "16 cores", "64 GiB", "--assume-same-conditions"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    let asked = slurm.run("", &["compare", "a.json", "unlike.json", "--assume-same-conditions"]);
    assert!(asked.code == 0 && asked.stdout.contains("nodes"), "{} {}", asked.stdout, asked.stderr);
    // Two unlike nodes on one side, too.
    let args = ["compare", "a.json", "unlike.json", "--", "like.json"];
    assert_eq!(slurm.run("", &args).code, 1);
}

#[test]
fn inference_of_unlike_nodes_is_compared_only_when_that_is_asked_for() {
    let slurm = Slurm::new();
    let write = |name: &str, host: &str, cores: u64| {
        let row = json!({"framework": "candle", "model": "resnet50", "batch_size": 1, "device": "cpu", "dtype": "float32",
            "status": "ok", "node": host, "node_cpu": "Fast 9000", "node_cores": cores, "node_memory_mb": 65536.0});
        let round = json!({"round": 0, "samples_ns": [1_000_000, 1_000_000], "wall_ns": 2_000_000});
        let run = json!({"records": [{"row": row, "rounds": [round]}]});
        std::fs::write(slurm.path(name), run.to_string()).unwrap();
    };
    write("a.json", "n1", 8);
    write("like.json", "n2", 8);
    write("unlike.json", "n3", 16);
    assert_eq!(slurm.run("", &["compare", "a.json", "like.json"]).code, 0);
    let refused = slurm.run("", &["compare", "a.json", "unlike.json"]);
    assert!(refused.code == 1 && refused.stderr.contains("unlike nodes"), "{}", refused.stderr);
    let asked = slurm.run("", &["compare", "a.json", "unlike.json", "--assume-same-conditions"]);
    assert!(asked.code == 0 && asked.stdout.contains("nodes"), "{} {}", asked.stdout, asked.stderr);
}
