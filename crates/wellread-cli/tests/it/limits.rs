//! Refusals of the system: address space, disk space.
#![cfg(target_os = "linux")]

use crate::support::{arg, formats, generate, has_format, json};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs `wellread` with one of its resources limited; exit code and what it said. A signal is a failure of the test.
fn limited(resource: libc::__rlimit_resource_t, limit: u64, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wellread"));
    // Without memory for a backtrace the standard library waits for itself: the lock of backtraces is held by who writes one.
    command.args(args).stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    let limits = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: only system calls are made between fork and exec.
    unsafe {
        command.pre_exec(move || {
            if libc::setrlimit(resource, &raw const limits) == 0 {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
    let output = command.output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let signal = output.status.signal();
    assert!(signal.is_none(), "{args:?} within {limit} ended by signal {signal:?}: {said}");
    (output.status.code().unwrap(), said)
}

/// The least address space, in MiB, in which the program is loaded at all. With less, the kernel or the system's loader
/// ends it before its first instruction, and no program can say why.
fn least_to_load() -> u64 {
    let is_loaded = |megabytes: u64| {
        let mut command = Command::new("sh");
        let script = format!("ulimit -v {} && exec \"$0\" --version", megabytes << 10);
        command.args(["-c", &script, env!("CARGO_BIN_EXE_wellread")]);
        command.output().expect("a shell").status.success()
    };
    let (mut least, mut enough) = (0, 2048);
    assert!(is_loaded(enough));
    while least + 1 < enough {
        let middle = least.midpoint(enough);
        if is_loaded(middle) {
            enough = middle;
        } else {
            least = middle;
        }
    }
    enough
}

/// However little address space there is above what the program takes to be loaded: done, or a message and exit code 1.
#[test]
fn too_little_address_space_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let formats = ["tiff", "ome-zarr", "image-folder"];
    json(&[
        "generate",
        arg(&set),
        "--images",
        "12",
        "--size",
        "400x400",
        "--formats",
        "parquet,tiff,ome-zarr,image-folder",
    ]);
    // Images that are much beside the program itself.
    let large = dir.path().join("large");
    json(&[
        "generate",
        arg(&large),
        "--images",
        "2",
        "--size",
        "1500x1500",
        "--kind",
        "noise",
        "--formats",
        "parquet",
    ]);
    let (parquet, large) = (set.join("images.parquet"), large.join("images.parquet"));
    let (results, target) = (dir.path().join("results"), dir.path().join("target"));
    let folders: Vec<PathBuf> = formats.iter().map(|f| set.join(f)).collect();
    let least = least_to_load();
    let mut done = [0; 2];
    for more in [0, 1, 2, 4, 8, 32, 2048] {
        let megabytes = least + more;
        let mut commands: Vec<Vec<&str>> = vec![
            vec!["info", arg(&parquet)],
            vec!["verify", arg(&parquet), "--jobs", "4"],
            vec!["stats", arg(&parquet)],
            vec!["verify", arg(&large), "--jobs", "4"],
            vec![
                "convert",
                arg(&large),
                arg(&target),
                "--format",
                "parquet",
                "--jobs",
                "2",
                "--compression",
                "none",
            ],
        ];
        for (folder, format) in folders.iter().zip(formats) {
            commands.push(vec!["verify", arg(folder), "--jobs", "4"]);
            commands.push(vec!["convert", arg(&parquet), arg(&target), "--format", format, "--jobs", "4"]);
        }
        if [0, 8, 2048].contains(&more) {
            let common =
                ["--in-place", "--out", arg(&results), "--repeats", "1", "--samples", "4", "--no-cold"];
            let words = ["--time-budget", "1", "--batch-sizes", "2", "--workers", "0,2", "--input"];
            for what in ["dataset", "dataloader"] {
                commands.push([&["bench", what][..], &common, &words, &[arg(&parquet)]].concat());
            }
        }
        for command in commands {
            let is_done = is_done_within(megabytes, &command);
            done[usize::from(is_done)] += 1;
            nothing_left(&target, is_done);
        }
    }
    assert!(done[0] > 0 && done[1] > 0, "{done:?}");
}

/// Whether a command ends well with so much address space. If not, it is an error with exit code 1.
fn is_done_within(megabytes: u64, command: &[&str]) -> bool {
    let (code, said) = limited(libc::RLIMIT_AS, megabytes << 20, command);
    assert!(code == 0 || code == 1, "{command:?} within {megabytes} MiB: exit code {code}: {said}");
    assert!(code != 1 || said.contains("error:"), "{command:?} within {megabytes} MiB: {said}");
    assert!(!said.contains("panicked"), "{command:?} within {megabytes} MiB: {said}");
    code == 0
}

/// Vortex, whose library decodes in threads of this program. In a build without it the test ends at once.
#[test]
fn too_little_address_space_for_an_engine_is_an_error() {
    if !has_format("vortex") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let words = ["--images", "4", "--size", "900x900", "--kind", "noise", "--formats", "parquet,vortex"];
    json(&[&["generate", arg(&set)], &words[..]].concat());
    let (parquet, vortex) = (set.join("images.parquet"), set.join("images.vortex"));
    let target = dir.path().join("target");
    let least = least_to_load();
    let mut done = [0; 2];
    for more in [1, 4, 16, 64, 2048] {
        for command in [
            &["verify", arg(&vortex), "--jobs", "2"][..],
            &["convert", arg(&parquet), arg(&target), "--format", "vortex", "--jobs", "2"],
        ] {
            let is_done = is_done_within(least + more, command);
            done[usize::from(is_done)] += 1;
            nothing_left(&target, is_done);
        }
    }
    assert!(done[0] > 0 && done[1] > 0, "{done:?}");
}

/// Removes a target that was written; of one that was not there is nothing.
fn nothing_left(target: &Path, is_done: bool) {
    if is_done && target.is_dir() {
        fs::remove_dir_all(target).unwrap();
    } else if is_done && target.exists() {
        fs::remove_file(target).unwrap();
    }
    let left: Vec<_> =
        fs::read_dir(target.parent().unwrap()).unwrap().flatten().map(|e| e.file_name()).collect();
    let partial = left.iter().any(|name| name.to_string_lossy().starts_with(".wellread"));
    assert!(!partial && !target.exists(), "{left:?}");
}

/// No file may grow beyond 2 KiB, and each image has more. It is a full disk for processes that may not mount one.
#[test]
fn files_that_may_not_grow_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (set, small) = (dir.path().join("set"), dir.path().join("small"));
    generate(&set, 40, &["--formats", "parquet", "--kind", "noise"]);
    fs::create_dir(&small).unwrap();
    let (source, target) = (set.join("images.parquet"), small.join("target"));
    for format in formats() {
        let args = ["convert", arg(&source), arg(&target), "--format", &format];
        let (code, said) = limited(libc::RLIMIT_FSIZE, 2 << 10, &args);
        assert_eq!(code, 1, "{format}: {said}");
        assert!(said.contains("error: "), "{format}: {said}");
        let left: Vec<_> = fs::read_dir(&small).unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(left.is_empty(), "{format} left {left:?}");
    }
}

/// A disk that is full: the message names the part that `--resume` left, and the same command goes on with
/// it.
#[test]
fn a_full_disk_says_what_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 40, &["--formats", "parquet,tiff", "--kind", "noise"]);
    // One image that does not fit where the others do.
    let source = dir.path().join("source");
    fs::rename(set.join("tiff"), &source).unwrap();
    let mut files: Vec<_> = fs::read_dir(&source).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let small = fs::metadata(&files[0]).unwrap().len();
    let big = dir.path().join("big");
    json(&[
        "generate",
        arg(&big),
        "--images",
        "1",
        "--size",
        "900x900",
        "--formats",
        "tiff",
        "--kind",
        "noise",
    ]);
    let large = fs::read_dir(big.join("tiff")).unwrap().next().unwrap().unwrap().path();
    fs::copy(large, &files[20]).unwrap();
    let resumable = ["tiff", "ome-zarr", "image-folder", "lance", "duckdb"];
    for format in formats().iter().filter(|f| resumable.contains(&f.as_str())) {
        let target = dir.path().join(format!("target-{format}"));
        let folder = target.with_file_name(format!(".wellread-resume-target-{format}"));
        let plain = [
            "convert",
            arg(&source),
            arg(&target),
            "--format",
            format,
            "--jobs",
            "1",
            "--compression",
            "none",
        ];
        let limit = if ["lance", "duckdb"].contains(&format.as_str()) { 600 << 10 } else { small * 20 };
        let (code, said) = limited(libc::RLIMIT_FSIZE, limit, &plain);
        assert_eq!(code, 1, "{format}: {said}");
        assert!(said.contains("nothing was left behind"), "{format}: {said}");
        assert!(!target.exists() && !folder.exists(), "{format}");
        let args = [&plain[..], &["--resume"]].concat();
        let (code, said) = limited(libc::RLIMIT_FSIZE, limit, &args);
        assert_eq!(code, 1, "{format}: {said}");
        let place = folder.canonicalize().ok();
        let resumed = json(&args)["images_resumed"].as_u64().unwrap();
        // Where no image was complete, nothing is left to go on with.
        assert_eq!(place.is_some(), resumed > 0, "{format}: {said}");
        assert_eq!(said.contains("nothing was left"), resumed == 0, "{format}: {said}");
        let next =
            if resumed == 0 { "the same command begins anew" } else { "the same command continues from it" };
        for words in place.as_deref().map(arg).into_iter().chain([next]) {
            assert!(said.contains(words), "{format}: {said}");
        }
        if ["tiff", "ome-zarr", "image-folder"].contains(&format.as_str()) {
            assert_eq!(resumed, 20, "{format}: {said}");
            assert!(said.contains("20 of 40 images are complete"), "{format}: {said}");
        }
        assert!(!folder.exists(), "{format}");
        let [before, after] = [&source, &target].map(|set| json(&["checksum", arg(set)])["images"].clone());
        assert_eq!(before, after, "{format}");
    }
}
