//! `wellread tasks` as a user runs it: its output, and its leftovers when it is interrupted or killed.

#![cfg(target_os = "linux")]

use crate::support::{Done, arg, files_below, generate, signal, until};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub fn git(folder: &Path, args: &[&str]) -> String {
    // The user who runs the tests may sign commits.
    let settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").arg("-C").arg(folder).args(settings).args(args).output().expect("git");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A repository with a quick branch and one that does not end, and a table of both.
pub fn repository(dir: &Path) -> PathBuf {
    let repo = dir.join("repo");
    std::fs::create_dir_all(repo.join("configs/experiment")).unwrap();
    git(&repo, &["init", "--quiet", "--initial-branch=main"]);
    let commit = |script: &str| {
        std::fs::write(repo.join("configs/experiment/e.sh"), script).unwrap();
        git(&repo, &["add", "--all"]);
        git(&repo, &["commit", "--quiet", "-m", "e"]);
    };
    commit("echo '{\"samples\":\"batch_step\",\"seconds\":[0.1,0.1]}' >> \"$WELLREAD_PHASES\"\n");
    git(&repo, &["checkout", "--quiet", "-b", "endless"]);
    commit("sleep 600 & echo $! > \"$(dirname \"$WELLREAD_PHASES\")/child\"; wait\n");
    git(&repo, &["checkout", "--quiet", "main"]);
    // Staged, changed and untracked.
    std::fs::write(repo.join("staged"), "1\n").unwrap();
    git(&repo, &["add", "staged"]);
    std::fs::write(repo.join("staged"), "2\n").unwrap();
    std::fs::write(repo.join("untracked"), "3\n").unwrap();
    std::fs::write(dir.join("tasks.csv"), "branch,experiment\nmain,e\nendless,e\n").unwrap();
    repo
}

/// The program, whose worktrees are below `dir`.
fn program(dir: &Path) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_wellread"));
    program.env("XDG_CACHE_HOME", dir.join("cache")).stdin(Stdio::null());
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

fn command(dir: &Path, more: &[&str]) -> Command {
    let mut command = program(dir);
    command.args(["tasks", "train", "--config", arg(&dir.join("tasks.csv"))]);
    command.args(["--output", arg(&dir.join("out.json")), "--repo", arg(&dir.join("repo"))]).args(more);
    command
}

/// Runs the tasks of [`repository`].
pub fn run(dir: &Path, more: &[&str]) -> Done {
    ended(&mut command(dir, more))
}

/// Runs another command with the same cache.
pub fn wellread(dir: &Path, args: &[&str]) -> Done {
    ended(program(dir).args(args))
}

fn ended(command: &mut Command) -> Done {
    let output = command.output().expect("the binary starts");
    Done {
        code: output.status.code().expect("no signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The endless task's own child, once it is there.
fn started(dir: &Path) -> String {
    let find = || {
        let runs = std::fs::read_dir(dir.join("out.runs")).ok()?;
        let mut files = runs.flatten().map(|task| task.path().join("run-1/child"));
        let text = std::fs::read_to_string(files.find(|file| file.is_file())?).ok()?;
        Some(text.trim().to_owned()).filter(|pid| !pid.is_empty())
    };
    until("the task starts", || find().is_some());
    find().unwrap()
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

fn worktrees(dir: &Path) -> usize {
    let folders = std::fs::read_dir(dir.join("cache/wellread/worktrees")).into_iter().flatten().flatten();
    let inside = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
    inside.filter(|entry| entry.file_name() != "lock").count()
}

/// Where the images of native inference are, the column or the branch's settings may say.
#[test]
fn native_inference_takes_its_images_from_the_settings_of_the_branch() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    std::fs::create_dir_all(repo.join("configs/experiment/im2im")).unwrap();
    git(&repo, &["init", "--quiet", "--initial-branch=main"]);
    let planned = |settings: &str| {
        std::fs::write(repo.join("configs/experiment/im2im/segmentation.toml"), settings).unwrap();
        git(&repo, &["add", "--all"]);
        git(&repo, &["commit", "--quiet", "-m", "settings"]);
        std::fs::write(dir.path().join("best.safetensors"), "weights").unwrap();
        std::fs::write(
            dir.path().join("tasks.csv"),
            "branch,experiment,checkpoint_path\nmain,im2im/segmentation,best.safetensors\n",
        )
        .unwrap();
        let (table, out) = (dir.path().join("tasks.csv"), dir.path().join("out.json"));
        let at = ["--config", arg(&table), "--output", arg(&out), "--repo", arg(&repo)];
        let done = wellread(
            dir.path(),
            &[&["tasks", "inference"], &at[..], &["--adapter", "native", "--dry-run"]].concat(),
        );
        (done.code, done.stdout + &done.stderr)
    };
    let (code, said) = planned("[data]\nimages = \"set\"\n");
    assert!(code == 0 && !said.contains("cannot run"), "{code} {said}");
    // In neither: both are named.
    let (_, said) = planned("[model]\nwidth = 4\n");
    assert!(said.contains("data.images names no images") && said.contains("data_path"), "{said}");
}

#[test]
fn ctrl_c_ends_the_task_and_removes_what_is_not_the_users() {
    let dir = tempfile::tempdir().unwrap();
    let repo = repository(dir.path());
    let before = files_below(&repo);
    let temporary = dir.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let child = command(dir.path(), &[]).env("TMPDIR", &temporary).spawn().unwrap();
    let task = started(dir.path());
    assert!(std::fs::read_dir(&temporary).unwrap().count() > 0);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("--resume"), "{said}");
    until("the task has ended", || !is_alive(&task));
    assert_eq!(worktrees(dir.path()), 0);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    assert!(files_below(&repo) == before);
}

#[test]
fn a_killed_run_leaves_the_repository_alone_and_the_next_clears_up() {
    let dir = tempfile::tempdir().unwrap();
    let repo = repository(dir.path());
    let before = files_below(&repo);
    // An experiment each, so that the quick one has ended when the other begins.
    std::fs::write(
        dir.path().join("tasks.csv"),
        "branch,experiment\nmain,e\nendless,sh configs/experiment/e.sh\n",
    )
    .unwrap();
    let mut child = command(dir.path(), &[]).spawn().unwrap();
    let task = started(dir.path());
    signal(&child, "KILL");
    child.wait().unwrap();
    until("the watchdog has ended the task", || !is_alive(&task));
    assert!(worktrees(dir.path()) > 0, "nobody could remove them");
    assert!(files_below(&repo) == before);
    let earlier: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("out.json")).unwrap()).unwrap();
    assert_eq!(earlier.as_array().unwrap().len(), 1, "{earlier}");
    let done = run(dir.path(), &["--resume", "--skip-failed", "--timeout", "1"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("removed what a run that was killed had left"), "{}", done.stderr);
    assert!(done.stderr.contains("1 run of an earlier call was kept"), "{}", done.stderr);
    assert_eq!(worktrees(dir.path()), 0);
    assert!(files_below(&repo) == before);
}

#[test]
fn one_document_and_exit_codes() {
    let dir = tempfile::tempdir().unwrap();
    repository(dir.path());
    let plan = run(dir.path(), &["--dry-run", "--json"]);
    assert_eq!(plan.code, 0, "{}", plan.stderr);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!(plan["plan"][1]["task_config"]["adapter"], "command");
    assert!(!dir.path().join("out.json").exists());
    // A failure stops the run with code 1, and the measurements so far are in the document and the file.
    std::fs::write(dir.path().join("tasks.csv"), "branch,experiment\nmain,e\nendless,e\nmain,exit 4\n")
        .unwrap();
    let stopped = run(dir.path(), &["--timeout", "4", "--json", "--compare", "--baseline", "main"]);
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    let document: Value = serde_json::from_str(&stopped.stdout).unwrap();
    assert!(document["stopped"].as_str().unwrap().contains("took longer than 4 s"), "{document}");
    assert!(Path::new(document["report"].as_str().unwrap()).is_file());
    let kept: Value = serde_json::from_slice(&std::fs::read(dir.path().join("out.json")).unwrap()).unwrap();
    assert!(kept.as_array().unwrap().iter().any(|entry| entry["success"] == false));
    let skipped = run(dir.path(), &["--timeout", "4", "--skip-failed", "--compare"]);
    assert_eq!(skipped.code, 0, "{}", skipped.stderr);
    assert!(skipped.stdout.contains("endless did not run to its end"), "{}", skipped.stdout);
    let note = "the results of an earlier run in";
    assert!(skipped.stderr.contains(note) && !stopped.stderr.contains(note), "{}", skipped.stderr);
    // A report that cannot be written is an error, and the document is there all the same.
    std::fs::create_dir_all(dir.path().join("blocked/report.html/folder")).unwrap();
    let blocked = arg(&dir.path().join("blocked")).to_owned();
    let failed = run(dir.path(), &["--timeout", "4", "--skip-failed", "--json", "--report", &blocked]);
    assert!(failed.code == 1 && failed.stderr.contains("report.html"), "{}", failed.stderr);
    let document: Value = serde_json::from_str(&failed.stdout).unwrap();
    assert!(document["report"].is_null() && document["results"][0]["success"] == true, "{document}");
    // The report is made again from what is on disk.
    for named in ["out.report", "out.json"] {
        let again = crate::support::wellread(&["report", arg(&dir.path().join(named))]);
        assert_eq!(again.code, 0, "{}", again.stderr);
        assert!(again.stdout.contains("out.report"), "{}", again.stdout);
    }
    for wrong in
        [&["--repeats", "0"][..], &["--adapter", "magic"], &["--timeout", "-1"], &["--repeats", "1001"]]
    {
        assert_eq!(run(dir.path(), wrong).code, 2, "{wrong:?}");
    }
}

/// A repository whose branches differ in the native experiment, with images that lie beside it.
fn native(dir: &Path) {
    generate(&dir.join("set"), 4, &["--masks", "--formats", "parquet"]);
    let repo = dir.join("repo");
    let folder = repo.join("configs/experiment/im2im");
    std::fs::create_dir_all(&folder).unwrap();
    git(&repo, &["init", "--quiet", "--initial-branch=main"]);
    let branch = |name: &str, images: &str, data: &str, augment: &str, width: usize| {
        if name != "main" {
            git(&repo, &["checkout", "--quiet", "-b", name, "main"]);
        }
        // Read where it is waited for, by one thread: each phase is the time of its own work.
        let settings = format!(
            "[data]\nimages = \"{set}/{images}\"\nmasks = \"{set}/masks\"\npatch = [40, 40]\n\
             patches_per_image = 8\nworkers = 0\n{data}\n[augment]\nflip = false\nturns = false\n{augment}\n\
             [model]\nwidth = {width}\ndepth = 2\n[training]\nepochs = 2\nbatch_size = 2\nthreads = 1\n",
            set = arg(&dir.join("set")),
        );
        std::fs::write(folder.join("segmentation.toml"), settings).unwrap();
        git(&repo, &["add", "--all"]);
        git(&repo, &["commit", "--quiet", "-m", name]);
    };
    branch("main", "images.parquet", "", "", 4);
    // Every patch decodes its image again and is bent between all of its pixels.
    branch("slow-loading", "images.parquet", "cache = \"none\"", "elastic = 3.0\nelastic_spacing = 1", 4);
    branch("big-model", "images.parquet", "", "", 16);
    branch("broken", "gone.parquet", "", "", 4);
    let rows = ["main", "slow-loading", "big-model", "broken"]
        .map(|name| format!("{name},im2im/segmentation\n"))
        .concat();
    std::fs::write(dir.join("tasks.csv"), format!("branch,experiment\n{rows}")).unwrap();
}

/// The comparison of a branch in a document of [`native`] experiments.
fn of<'d>(document: &'d Value, branch: &str) -> &'d Value {
    let compared = document["comparisons"].as_array().unwrap();
    compared.iter().find(|one| one["candidate"] == branch).expect("it is compared")
}

/// Whether the whole interval of a phase's ratio says that a branch is slower than the baseline. Its verdict asks for more: it allows
/// for all phases that are compared, and four runs beside other work may not do for that.
fn is_slower(document: &Value, branch: &str, phase: &str) -> bool {
    let phases = of(document, branch)["phases"].as_array().unwrap();
    let found = phases.iter().find(|one| one["phase"] == phase).expect("the phase is compared");
    found["ratio"]["low"].as_f64().expect("there is an interval") > 1.1
}

#[test]
fn native_experiments_of_three_branches_are_told_apart() {
    // The times are real: where other work slows one branch down and not the other, all is measured again.
    let mut tries = 0;
    let (_dir, document) = loop {
        let dir = tempfile::tempdir().unwrap();
        native(dir.path());
        // Four runs: with three, a phase whose times vary in one branch only has two degrees of freedom.
        let more = ["--adapter", "native", "--repeats", "4", "--skip-failed", "--compare", "--json"];
        let done = run(dir.path(), &more);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let document: Value = serde_json::from_str(&done.stdout).unwrap();
        let slower = |branch: &str, phase: &str| is_slower(&document, branch, phase);
        let said =
            |branch: &str, what: &str| of(&document, branch)["sentence"].as_str().unwrap().starts_with(what);
        let told = [
            slower("slow-loading", "batch_loading"),
            !slower("slow-loading", "batch_forward"),
            said("slow-loading", "Data loading of slow-loading takes "),
            slower("big-model", "batch_forward"),
            slower("big-model", "batch_step"),
            said("big-model", "The model's "),
        ];
        if told.iter().all(|so| *so) {
            break (dir, document);
        }
        tries += 1;
        assert!(tries < 20, "{told:?}: {}", document["comparisons"]);
    };
    let broken = of(&document, "broken")["sentence"].as_str().unwrap();
    assert!(broken.contains("did not run to its end"), "{broken}");
    let broken = &document["results"][3];
    assert!(
        broken["success"] == false && broken["error"].as_str().unwrap().contains("gone.parquet"),
        "{broken}"
    );

    let main = &document["results"][0];
    // The first epoch is warm-up: 12 batches of each run are left.
    assert_eq!(main["statistics"]["batch_step"]["steady"]["n"], 48, "{}", main["statistics"]);
    let timer = &main["metrics"]["total_training"];
    assert!(timer.get("memory_delta_mb").is_some() && timer.get("peak_memory_mb").is_some(), "{timer}");
    let page = std::fs::read_to_string(document["report"].as_str().unwrap()).unwrap();
    for part in [
        "src=\"data:image/png;base64,",
        "<figcaption>main: im2im/segmentation</figcaption>",
        ">Losses and scores</h2>",
        "<td data-v=\"batch_loading\">batch_loading</td><td data-v=\"slower\">slower</td>",
    ] {
        assert!(page.contains(part), "{part}");
    }
}
