//! A repository with branches, and runs of its tasks.

use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use wellread_tasks::config::Config;
use wellread_tasks::suite::{self, Event, Outcome};
use wellread_tasks::task::Mode;

/// The whole process knows the present run, as in the program: one run after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs git in a folder, its own settings apart, and expects success.
pub fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"])
        // The user who runs the tests may sign commits.
        .args(["-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"])
        .args(args)
        .output()
        .expect("git is there");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A task that loads batches and computes, with these milliseconds for each; both are real waits.
pub fn training(load: u32, step: u32) -> String {
    format!(
        r#"set -e
echo "training in $PWD"
say() {{ echo "$1" >> "$WELLREAD_PHASES"; }}
now() {{ read -r up _ < /proc/uptime; date +%s%N; }}
lap() {{ a=$(date +%s%N); sleep $1; b=$(date +%s%N); echo $(( (b - a) / 1000 )) | sed 's/$/e-6/'; }}
say '{{"phase":"model_initialization","elapsed_seconds":0.01,"peak_memory_mb":5}}'
loading=; steps=
for i in 1 2 3 4 5 6 7 8; do
  loading="$loading${{loading:+,}}$(lap 0.0{load:02})"
  steps="$steps${{steps:+,}}$(lap 0.0{step:02})"
done
say "{{\"samples\":\"batch_loading\",\"seconds\":[$loading],\"warm_up\":1}}"
say "{{\"samples\":\"batch_step\",\"seconds\":[$steps],\"warm_up\":1}}"
say '{{"info":{{"num_batches":8,"num_samples":16,"batch_size":2}}}}'
say '{{"final_metrics":{{"val_dice":0.9}}}}'
"#
    )
}

/// A repository with the branches main, slow-loading, slow-model and broken; each holds `configs/experiment/unet.sh`.
pub struct Sandbox {
    pub dir: TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        let sandbox = Self { dir: tempfile::tempdir().expect("a folder") };
        let repo = sandbox.repo();
        std::fs::create_dir_all(&repo).unwrap();
        git(&repo, &["init", "--quiet", "--initial-branch=main"]);
        std::fs::write(repo.join("README"), "a repository\n").unwrap();
        std::fs::write(repo.join("data.txt"), "data\n").unwrap();
        sandbox.branch("main", &training(20, 20));
        for (name, script) in [
            ("slow-loading", training(60, 20)),
            ("slow-model", training(20, 60)),
            ("broken", "echo about to fail; echo no such layer >&2; exit 3\n".to_owned()),
        ] {
            git(&repo, &["checkout", "--quiet", "-b", name, "main"]);
            sandbox.branch(name, &script);
        }
        git(&repo, &["checkout", "--quiet", "main"]);
        sandbox
    }

    /// Commits an experiment to the branch that is checked out.
    pub fn branch(&self, name: &str, script: &str) {
        self.commit("configs/experiment/unet.sh", script, name);
    }

    pub fn commit(&self, path: &str, text: &str, message: &str) {
        let file = self.repo().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        git(&self.repo(), &["add", "--all"]);
        git(&self.repo(), &["commit", "--quiet", "--message", message]);
    }

    pub fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A table of these branches with the experiment `unet`.
    pub fn table(&self, branches: &[&str]) -> Config {
        let rows: String = branches.iter().flat_map(|branch| [*branch, ",unet,cpu,1,2,\n"]).collect();
        self.config(&format!("branch,experiment,trainer,max_epochs,batch_size,overrides\n{rows}"))
    }

    pub fn config(&self, table: &str) -> Config {
        std::fs::write(self.path("tasks.csv"), table).unwrap();
        Config {
            mode: Mode::Train,
            table: self.path("tasks.csv"),
            output: self.path("results/out.json"),
            repository: self.repo(),
            adapter: "auto".into(),
            skip_failed: false,
            repeats: 1,
            baseline: None,
            timeout: None,
            resume: false,
            python: None,
            report: None,
            dry_run: false,
            seed: 7,
            program: vec!["wellread".into()],
            cache: self.path("cache"),
            command: "wellread tasks".into(),
            working_folder: None,
            recipe: None,
            node: None,
            on_other_machines: false,
            experiment: None,
        }
    }

    /// The entries left in the cache of worktrees: nothing but locks.
    pub fn leftovers(&self) -> Vec<String> {
        let mut left = Vec::new();
        let repositories = std::fs::read_dir(self.path("cache/worktrees")).into_iter().flatten().flatten();
        for repository in repositories {
            let inside = std::fs::read_dir(repository.path()).into_iter().flatten().flatten();
            left.extend(inside.map(|entry| entry.file_name().to_string_lossy().into_owned()));
        }
        left.retain(|name| name != "lock");
        left
    }
}

/// Runs without being told of events.
pub fn run(config: &Config) -> Result<Outcome> {
    suite::run(config, &|_: &Event<'_>| ())
}

/// The error of a run that must not begin.
pub fn refused(config: &Config) -> String {
    match run(config) {
        Ok(_) => panic!("it ran"),
        Err(error) => format!("{error:#}"),
    }
}
