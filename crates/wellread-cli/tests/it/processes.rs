//! Several processes at once, and processes that are killed: they leave one whole set or none.

use crate::support::{Breakable, arg, formats, generate, has_format, json, leftovers, wellread};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn start<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_wellread"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

/// The output of a process that was not killed.
fn end(child: Child) -> (bool, String) {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(!stderr.contains("panicked"), "{stderr}");
    match status.code() {
        Some(0) => (true, stderr),
        Some(1) => (false, stderr),
        other => panic!("exit {other:?}: {stderr}"),
    }
}

/// The target's folder for an interrupted run.
fn left(target: &Path) -> PathBuf {
    target.with_file_name(format!(".wellread-resume-{}", target.file_name().unwrap().to_str().unwrap()))
}

fn bytes_below(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else { return path.metadata().map_or(0, |m| m.len()) };
    entries.flatten().map(|entry| bytes_below(&entry.path())).sum()
}

/// Killed once something is complete, and whenever it happens after that.
#[cfg(unix)]
#[test]
fn a_killed_conversion_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    json(&["generate", arg(&set), "--images", "200", "--size", "512x512", "--formats", "tiff"]);
    let source = set.join("tiff");
    for (format, name, more) in
        [("lance", "a.lance", ["--compression", "zstd:15"]), ("duckdb", "a.duckdb", ["--jobs", "1"])]
    {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(name);
        let args = [&["convert", arg(&source), arg(&target), "--resume"], more.as_slice()].concat();
        let left = left(&target);
        // A part of 64 MiB, whatever it takes in the file.
        let complete = || match format {
            "lance" => std::fs::read_to_string(left.join(".wellread-journal"))
                .is_ok_and(|journal| journal.lines().count() > 1),
            _ => bytes_below(&left) > 60 << 20,
        };
        // The signal may come after the process has ended: then once more.
        let killed = (0..20).any(|_| {
            let mut child = start(&args);
            while !complete() && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            if target.is_dir() {
                std::fs::remove_dir_all(&target).unwrap();
            } else if target.exists() {
                std::fs::remove_file(&target).unwrap();
            } else {
                return left.exists();
            }
            let _ = std::fs::remove_dir_all(&left);
            false
        });
        assert!(killed, "{format} was too fast to be killed");
        for delay in [5, 50, 300] {
            let mut child = start(&args);
            std::thread::sleep(Duration::from_millis(delay));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // The last of them may have come to its end.
        if !target.exists() {
            let done = json(&args);
            // DuckDB may have been killed before it had committed all of its first part.
            let resumed = done["images_resumed"].as_u64().unwrap();
            assert!(format == "duckdb" || resumed >= 128, "{done}");
        }
        let verified = json(&["verify", arg(&target), "--against", arg(&set.join("expected.json"))]);
        assert_eq!(verified["passed"], true, "{format}");
        let whole = dir.path().join(format!("whole-{name}"));
        json(&[&["convert", arg(&source), arg(&whole)], more.as_slice()].concat());
        assert_eq!(json(&["checksum", arg(&target)]), json(&["checksum", arg(&whole)]));
        if format == "lance" {
            let (resumed, whole) = (bytes_below(&target), bytes_below(&whole));
            assert!(resumed < whole + whole / 50, "{resumed} bytes, in one run {whole}");
            assert_eq!(std::fs::read_dir(target.join("_versions")).unwrap().count(), 2);
        }
        assert!(!left.exists());
    }
}

/// A kill's leftovers of a table, changed: a run goes on with each or refuses it, and never ends in a wrong
/// set.
#[test]
fn what_is_left_may_be_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let Breakable { source, files, whole, broken } = Breakable::in_folder(dir.path());
    let set = dir.path().join("set");
    for (format, name) in [("lance", "a.lance"), ("duckdb", "a.duckdb")] {
        if !has_format(format) {
            continue;
        }
        let target = dir.path().join(name);
        let left = left(&target);
        let args = ["convert", arg(&source), arg(&target), "--resume", "--read-as", "tiff"];
        let journal = left.join(".wellread-journal");
        let data = || match format {
            "lance" => std::fs::read_dir(left.join("data")).unwrap().next().unwrap().unwrap().path(),
            _ => left.join("images.duckdb"),
        };
        let damages: [&dyn Fn(); 6] = [
            &|| std::fs::remove_file(data()).unwrap(),
            &|| std::fs::write(data(), "").unwrap(),
            &|| std::fs::write(data(), &std::fs::read(data()).unwrap()[..3000]).unwrap(),
            &|| std::fs::remove_file(&journal).unwrap(),
            &|| std::fs::write(&journal, "").unwrap(),
            &|| {
                let text = std::fs::read_to_string(&journal).unwrap();
                std::fs::write(&journal, format!("{text}[{{\"id\":0,\"files\":\n")).unwrap();
            },
        ];
        for (i, damage) in damages.iter().enumerate() {
            std::fs::write(&files[7], &broken).unwrap();
            assert_eq!(wellread(&args).code, 1);
            std::fs::write(&files[7], &whole).unwrap();
            damage();
            let done = wellread(&args);
            if done.code != 0 {
                assert!(done.stderr.contains("remove "), "{format} {i}: {}", done.stderr);
                assert!(!target.exists());
                std::fs::remove_dir_all(&left).unwrap();
                continue;
            }
            let verified = json(&["verify", arg(&target), "--against", arg(&set.join("expected.json"))]);
            assert_eq!(verified["passed"], true, "{format} {i}");
            json(&["checksum", arg(&target)]);
            assert!(!left.exists());
            if target.is_dir() {
                std::fs::remove_dir_all(&target).unwrap();
            } else {
                std::fs::remove_file(&target).unwrap();
            }
        }
    }
}

/// Two conversions to one target: each ends well or says why not, and the target is whole.
#[test]
fn two_conversions_to_one_target() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    generate(&set, 40, &["--formats", "tiff"]);
    let source = set.join("tiff");
    for format in formats() {
        for (i, more) in
            [&[][..], &["--overwrite"], &["--resume"], &["--resume", "--overwrite"]].iter().enumerate()
        {
            let folder = dir.path().join(format!("{format}-{i}"));
            std::fs::create_dir(&folder).unwrap();
            let target = folder.join("set");
            let args = [&["convert", arg(&source), arg(&target), "--format", &format], *more].concat();
            if more.contains(&"--resume") && wellread(&[&args[..], &["--quiet"]].concat()).code == 2 {
                continue;
            }
            if more.contains(&"--resume") && !more.contains(&"--overwrite") {
                // Written by the question whether it can be.
                let there = target.clone();
                if there.is_dir() {
                    std::fs::remove_dir_all(there).unwrap();
                } else {
                    std::fs::remove_file(there).unwrap();
                }
            }
            let ends: Vec<_> =
                (0..3).map(|_| start(&args)).collect::<Vec<_>>().into_iter().map(end).collect();
            assert!(ends.iter().any(|e| e.0), "{format} {more:?}: {ends:?}");
            for (ok, said) in &ends {
                let clear = ["already exists", "another process", "other processes"];
                assert!(*ok || clear.iter().any(|c| said.contains(c)), "{format} {more:?}: {said}");
            }
            let verify = ["verify", arg(&target), "--read-as", &format];
            let verified = json(&[&verify[..], &["--against", arg(&set.join("expected.json"))]].concat());
            assert_eq!(verified["passed"], true, "{format} {more:?}");
            let entries: Vec<_> =
                std::fs::read_dir(&folder).unwrap().flatten().map(|e| e.file_name()).collect();
            assert_eq!(entries, ["set"], "{format} {more:?}");
        }
    }
}

/// Sets of one call belong together: two calls at once do not mix theirs.
#[test]
fn two_generators_of_one_folder() {
    let dir = tempfile::tempdir().unwrap();
    for more in [&[][..], &["--overwrite"]] {
        let out = dir.path().join(format!("set{}", more.len()));
        let children: Vec<_> = ["1", "2", "3"]
            .map(|seed| {
                let args = ["generate", arg(&out), "--images", "8", "--size", "40x56", "--seed", seed];
                start(&[&args[..], more].concat())
            })
            .into_iter()
            .collect();
        let ends: Vec<_> = children.into_iter().map(end).collect();
        assert!(ends.iter().any(|e| e.0), "{ends:?}");
        for (ok, said) in &ends {
            assert!(*ok || said.contains("already exists") || said.contains("another process"), "{said}");
        }
        let mut verified = 0;
        let expected = out.join("expected.json");
        for entry in std::fs::read_dir(&out).unwrap().flatten() {
            let set = entry.path();
            if set != expected {
                let verify = json(&["verify", arg(&set), "--against", arg(&expected)]);
                assert_eq!(verify["passed"], true, "{}", set.display());
                verified += 1;
            }
        }
        assert!(verified >= 4);
        assert_eq!(leftovers(&out), [""; 0]);
    }
}
