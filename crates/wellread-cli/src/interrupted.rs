//! Ctrl-C, and other requests to end: nothing half-written stays but what can be gone on with. Without a handler it would, until the
//! next run.
//!
//! ```text
//!  first signal ─▶ a thread: results, processes, output of this machine, output in buckets ─▶ said on standard error ─▶ exit code 130
//!  a second one, a second later or more ─▶ exit code 130: the rest stays until the next run
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use wellread_bench::suite::InterruptedState;
use wellread_store::journal::KeptPart;

/// The exit code.
const CODE: i32 = 130;
/// Signals that come sooner after the first are of the same request.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// Whether the process is being ended.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Takes over what happens on Ctrl-C for the rest of the process. A command that `keeps_nothing` has no output that could be removed.
pub(crate) fn install_handler(keeps_nothing: bool) {
    let mut first: Option<Instant> = None;
    let _ = ctrlc::set_handler(move || match first {
        Some(first) if first.elapsed() < SAME_REQUEST => {}
        Some(_) => {
            crate::commands::on::kill();
            std::process::exit(CODE)
        }
        None => {
            first = Some(Instant::now());
            IS_ENDING.store(true, Ordering::SeqCst);
            // In a thread of its own, so that another signal is heard.
            if std::thread::Builder::new().spawn(move || end(keeps_nothing)).is_err() {
                end(keeps_nothing);
            }
        }
    });
}

/// Waits for the end of a process that is being ended.
pub(crate) fn wait_for_end() {
    while IS_ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Cleans up, and ends the process.
fn end(keeps_nothing: bool) {
    // The main thread waits for the end, so it has to come.
    let _ = std::panic::catch_unwind(|| clean_up(keeps_nothing));
    std::process::exit(CODE);
}

/// How long the removal of output may take without a word.
const SILENCE: Duration = Duration::from_secs(1);

/// Runs `remove`, and tells that it does where that takes long: the request to end was heard.
fn saying_so_if_long<T>(is_removing: bool, remove: impl FnOnce() -> T) -> T {
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    let wait = move || {
        if waiting.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
            wellread_measure::to_stderr("interrupted; unfinished output is being removed");
        }
    };
    if is_removing {
        let _ = std::thread::Builder::new().spawn(wait);
    }
    let removed = remove();
    drop(done);
    removed
}

/// Removes what is unfinished, and says what is kept.
fn clean_up(keeps_nothing: bool) {
    // The trace of the work until now, before its file is removed as unfinished.
    let _ = wellread_store::trace::finish();
    wellread_model::infer::remove_unfinished();
    let tasks = wellread_tasks::stop::interrupt();
    crate::commands::processes::interrupt();
    crate::commands::nodes::interrupt();
    if crate::commands::on::is_running() {
        wellread_measure::to_stderr(
            "interrupted; the tasks on the cluster are being ended (again Ctrl-C does not wait for that)",
        );
    }
    crate::commands::on::interrupt();
    let writing = !keeps_nothing && wellread_store::staged::is_writing();
    let in_bucket = wellread_store::staged::is_writing_remotely();
    if in_bucket {
        wellread_measure::to_stderr(
            "interrupted; unfinished output in the bucket is being removed (again Ctrl-C leaves it there)",
        );
    }
    let part = saying_so_if_long(writing && !in_bucket, wellread_store::staged::remove_unfinished);
    let of_bench = wellread_bench::suite::interrupted_state().map(|kept| match kept {
        InterruptedState::Results(folder) => format!(
            "interrupted; the results so far are in {0}: `wellread report {0}` shows them",
            folder.display()
        ),
        InterruptedState::Begun(folder) => format!(
            "interrupted while images were prepared; unfinished sets were removed from {}, and the same command makes them again",
            folder.display()
        ),
        InterruptedState::Images(folder) => format!(
            "interrupted before a benchmark was finished; the images that were prepared stay in {}",
            folder.display()
        ),
    });
    let of_infer = wellread_infer::result_files::interrupted_table()
        .map(|table| format!("interrupted; the results so far are in {}", table.display()));
    let begun = (part == KeptPart::Begun).then(|| {
        let way = crate::commands::embed::way_to_keep_more();
        let way = way.map_or_else(String::new, |way| format!("; {way}"));
        format!("interrupted before anything was complete: the same command begins anew{way}")
    });
    let kept = of_bench.or(of_infer).or_else(|| begun.filter(|_| !tasks));
    let said = if let Some(kept) = &kept {
        kept
    } else if tasks {
        "interrupted; the task's processes were ended, its worktrees removed, and --resume continues from the \
         results"
    } else if part == KeptPart::Complete {
        "interrupted; the complete part is kept: the same command with --resume continues from it"
    } else if writing {
        "interrupted; unfinished output was removed"
    } else {
        "interrupted"
    };
    // A terminal that is gone must not keep the program from ending.
    wellread_measure::to_stderr(said);
}
