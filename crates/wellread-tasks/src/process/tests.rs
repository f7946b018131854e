use super::*;
use std::sync::Mutex;

/// A call of `stop` stops the whole process: one task at a time, as in the program.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn run_shell(script: &str, timeout: Option<Duration>) -> (FinishedProcess, Vec<String>, tempfile::TempDir) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log.txt");
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(dir.path());
    let ran = run(command, &log, &dir.path().join("phases"), timeout).unwrap();
    (ran, tail(&log), dir)
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // One that has ended and that nobody has waited for is still listed.
    !stat.is_empty() && !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
}

/// Waits until the process is gone: once killed, it may take the kernel a moment.
fn assert_ends(pid: &str) {
    for _ in 0..6_000 {
        if !is_alive(pid) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("process {pid} is still there");
}

#[test]
fn ends_are_told_apart() {
    let (ran, log, _dir) = run_shell("echo out; echo err >&2; printf '1 %%\\r100 %%\\n'", None);
    assert_eq!((ran.end.clone(), ran.end.problem()), (ExitReason::Success, None));
    assert_eq!(log, ["out", "err", "100 %"]);
    assert!(ran.wall_seconds > 0.0);
    let (ran, ..) = run_shell("exit 3", None);
    assert_eq!((ran.end.clone(), ran.end.problem().unwrap().as_str()), (ExitReason::Exit(3), "exit code 3"));
    let (ran, ..) = run_shell("kill -SEGV $$", None);
    assert_eq!(ran.end.problem().unwrap(), "ended by SIGSEGV");
    let (ran, ..) = run_shell("sh -c 'kill -BUS $$'; exit $?", None);
    assert!(ran.end.problem().unwrap().contains("SIGBUS"), "{:?}", ran.end);
    assert_eq!(
        exit_reason(std::os::unix::process::ExitStatusExt::from_raw(9), true),
        ExitReason::OutOfMemory
    );
    assert!(ExitReason::OutOfMemory.problem().unwrap().contains("out of memory"));
}

#[test]
fn memory_that_was_looked_at_only_before_the_program_was_loaded_is_unknown() {
    let of = |samples: u64| {
        let source = PeakSource::TreeSamples { samples, processes: 1, resident_instead: 0 };
        seen(PeakMemory { bytes: Some(390_000), at_start: Some(390_000), source })
    };
    assert_eq!((of(1).bytes, of(1).at_start), (None, None));
    assert!(matches!(of(1).source, PeakSource::Unavailable { .. }));
    assert_eq!(of(2).bytes, Some(390_000));
}

#[test]
fn a_worker_that_the_kernel_killed_is_told_of_its_leader() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let (log, marked) = (dir.path().join("log"), dir.path().join("phases"));
    let run = |script: &str, limit: Option<u64>, killed: &dyn Fn() -> u64| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run_counting(command, &log, &marked, limit.map(Duration::from_millis), killed).unwrap()
    };
    // The kernel's count rises by one while the run is on.
    let count = std::cell::Cell::new(4);
    let rises = || count.replace(count.get() + 1);
    let failed = run("sh -c 'kill -KILL $$'; exit 1", None, &rises);
    assert_eq!(failed.end, ExitReason::Exit(1));
    let problem = failed.problem().unwrap();
    assert!(problem.starts_with("exit code 1; the kernel ended a process for lack of memory"), "{problem}");
    let hung = run("sleep 600", Some(200), &rises).problem().unwrap();
    assert!(hung.starts_with("took longer") && hung.contains("lack of memory"), "{hung}");
    // It says so of the process itself without being told again, and nothing of a success.
    let itself = run("kill -KILL $$", None, &rises);
    assert_eq!(
        (&itself.end, itself.problem()),
        (&ExitReason::OutOfMemory, ExitReason::OutOfMemory.problem())
    );
    assert_eq!(run("true", None, &rises).problem(), None);
    let alone = run("exit 1", None, &|| 4);
    assert_eq!(alone.problem().as_deref(), Some("exit code 1"));
}

#[test]
fn the_kernels_count_of_processes_killed_for_memory() {
    assert_eq!(oom_kills("pgfault 7\noom_kill 3\nnuma_hit 9\n"), 3);
    assert_eq!(oom_kills("low 0\noom 5\noom_kill 2\noom_group_kill 1\n"), 2);
    assert_eq!(oom_kills("oom_group_kill 1\n"), 0);
}

#[cfg(not(feature = "portable"))]
#[test]
fn a_time_limit_ends_everything_that_was_started() {
    // One in the group, one that has left it, as torchrun's workers do.
    let script = "sleep 600 & echo $! > one; setsid sleep 600 & echo $! > two; sleep 600";
    // Longer limits are for machines on which it takes that long to start them.
    let started = [0.4, 4.0, 40.0].into_iter().any(|limit| {
        let (ran, _, dir) = run_shell(script, Some(Duration::from_secs_f64(limit)));
        assert_eq!(ran.end, ExitReason::Timeout(limit));
        assert!(ran.end.problem().unwrap().contains(&format!("longer than {limit} s")));
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        let both = ["one", "two"].map(read);
        both.iter().filter(|pid| !pid.is_empty()).for_each(|pid| assert_ends(pid));
        both.iter().all(|pid| !pid.is_empty())
    });
    assert!(started, "the script does not start both");
}

#[test]
fn what_a_task_leaves_running_is_ended_with_it() {
    let (ran, _, dir) = run_shell("sleep 600 & echo $! > one", None);
    assert_eq!(ran.end, ExitReason::Success);
    assert_ends(&std::fs::read_to_string(dir.path().join("one")).unwrap());
}

#[test]
fn the_watchdog_ends_a_task_whose_program_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let marked = dir.path().join("some phases").into_os_string();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "sleep 600 & echo $! > one; setsid sleep 600 & echo $! > two; wait"])
        .current_dir(dir.path());
    shell.env(phases::VARIABLE, &marked);
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    let mut task = shell.spawn().unwrap();
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
    while read("two").is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut watchdog = Watchdog::over(task.id(), &marked);
    // The kernel does the same when the program is killed.
    drop(watchdog.0.as_mut().unwrap().stdin.take());
    watchdog.0.as_mut().unwrap().wait().unwrap();
    task.wait().unwrap();
    for name in ["one", "two"] {
        assert_ends(&read(name));
    }
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let command = Command::new("/no/such/program");
    let error = run(command, &dir.path().join("log"), &dir.path().join("phases"), None).unwrap_err();
    assert!(format!("{error:#}").contains("cannot start /no/such/program"), "{error:#}");
}

#[cfg(not(feature = "portable"))]
#[test]
fn the_memory_of_the_tree_is_measured() {
    // 64 MB of text in the memory of a child of the process; for longer, should nobody have got a turn to look.
    let seen = ["0.6", "6", "60"].iter().any(|seconds| {
        let text = "x=$(head -c 64000000 /dev/zero | tr \"\\0\" x)";
        let (ran, ..) = run_shell(&format!("sh -c '{text}; sleep {seconds}; : \"$x\"'; true"), None);
        println!("{:?}", ran.peak);
        ran.peak.bytes.is_some_and(|bytes| bytes > 50 << 20)
    });
    assert!(seen, "never was all of it seen");
}

#[test]
fn the_last_lines_of_a_log_are_few_and_clean() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let text = (0..5000).map(|i| format!("line {i}\u{1b}[0m\n\n")).collect::<Vec<_>>().concat();
    std::fs::write(&log, text).unwrap();
    let lines = tail(&log);
    assert_eq!((lines.len(), lines.last().unwrap().as_str()), (LOG_TAIL_LINES, "line 4999[0m"));
    assert!(tail(&dir.path().join("none")).is_empty());
}
