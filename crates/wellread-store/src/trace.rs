//! A timeline of what each thread does, recorded to a file in Chrome's trace format.
//!
//! ```text
//!  start(path) ─▶ spans of all threads, in memory ─▶ finish() ─▶ path, written beside and renamed
//! ```
//!
//! Stores and loaders say what they do by [`span`]; so can a program of its own steps. The file opens in Perfetto
//! (<https://ui.perfetto.dev>) and in `chrome://tracing`. There is one recording per process, and it costs little: see
//! `docs/trace.md`.

use crate::place;
use crate::staged::{Existing, Staged};
use crate::{Error, Result};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use wellread_trace::{Kind, LIMIT, Mark, Span, is_recording, labelled, span};

/// The beginning of a trace's file.
const BEGINNING: &[u8] = b"{\"traceEvents\":";

/// Where the recording under way goes.
struct Target {
    staged: Staged,
    file: File,
    about: String,
}

static TARGET: Mutex<Option<Target>> = Mutex::new(None);

fn target() -> MutexGuard<'static, Option<Target>> {
    TARGET.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The written trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub path: PathBuf,
    /// Spans in it.
    pub spans: usize,
    /// Spans that were not kept, because there were more than [`LIMIT`].
    pub dropped: u64,
}

/// Begins to record what threads do, for [`finish`] to write to `path`; a trace that is there is replaced then. `about`
/// says what is recorded, such as a command; it stands in the file.
///
/// # Errors
/// A recording is under way. Another file is at `path`. Nothing can be written there.
pub fn start(path: &Path, about: &str) -> Result<()> {
    let mut target = target();
    let busy = || Error::new(path, "a trace is being recorded already").hint("finish that one first");
    if target.is_some() {
        return Err(busy());
    }
    may_be_replaced(path)?;
    let staged = Staged::new(path, Existing::Replaced)?;
    // It is made now: a user who cannot write here shall know it before the work begins.
    let file = File::create(staged.path()).map_err(|e| Error::io(path, "cannot write", &e))?;
    if !wellread_trace::start() {
        return Err(busy());
    }
    *target = Some(Target { staged, file, about: about.to_owned() });
    Ok(())
}

/// Ends the recording and writes its file; `None` where there is none. Spans that are open are left out.
///
/// # Errors
/// The file cannot be written.
pub fn finish() -> Result<Option<Written>> {
    let Some(Target { staged, file, about }) = target().take() else { return Ok(None) };
    let Some(recorded) = wellread_trace::stop() else { return Ok(None) };
    let path = staged.target().to_owned();
    let about = [("program", concat!("wellread ", env!("CARGO_PKG_VERSION"))), ("command", about.as_str())];
    let mut out = BufWriter::with_capacity(1 << 20, file);
    recorded
        .write(&mut out, &about)
        .and_then(|()| out.flush())
        .map_err(|e| Error::io(&path, "cannot write the trace", &e))?;
    drop(out);
    staged.commit()?;
    Ok(Some(Written { path, spans: recorded.len(), dropped: recorded.dropped() }))
}

/// Whether nothing is at `path`, or a trace, or an empty file.
fn may_be_replaced(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let is_trace = place::open(path).is_ok_and(|(file, length)| {
        let mut beginning = vec![];
        let read = file.peek_after(0, length.min(BEGINNING.len() as u64), &mut beginning);
        length == 0 || read.is_ok() && beginning == BEGINNING
    });
    if is_trace {
        return Ok(());
    }
    Err(Error::new(path, "already exists and is no trace").hint("choose another name for the trace"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_only_a_trace_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/trace.json");
        assert_eq!(finish().unwrap(), None);
        for times in 1..=2 {
            start(&path, "a \"test\"").unwrap();
            assert!(start(&path, "").unwrap_err().to_string().contains("already"));
            for _ in 0..times {
                drop(span(Kind::Read).with(5, 0));
            }
            let written = finish().unwrap().unwrap();
            // Other tests of this program read files meanwhile.
            assert!(written.spans >= times && written.dropped == 0);
            let text = std::fs::read(&path).unwrap();
            let found: serde_json::Value = serde_json::from_slice(&text).unwrap();
            let spans = found["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "X").count();
            assert_eq!(spans, written.spans);
            assert_eq!(found["otherData"]["command"], "a \"test\"");
        }
        let names = std::fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(names.count(), 1, "nothing is left beside it");
        let other = folder.path().join("notes.json");
        std::fs::write(&other, "{\"notes\":1}").unwrap();
        for taken in [other.as_path(), folder.path()] {
            assert!(start(taken, "").unwrap_err().to_string().contains("is no trace"));
        }
        assert!(start(&other.join("x"), "").is_err());
        assert!(!is_recording());
        assert_eq!(std::fs::read(&other).unwrap(), b"{\"notes\":1}");
    }
}
