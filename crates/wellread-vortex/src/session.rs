//! The library's settings before anything else: its registries and the runtime of its futures.

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;
use vortex::VortexSessionDefault;
use vortex::error::VortexError;
use vortex::io::runtime::BlockingRuntime;
use vortex::io::runtime::current::CurrentThreadRuntime;
use vortex::io::session::RuntimeSessionExt;
use vortex::session::VortexSession;
use wellread_store::direct::PlaceError;
use wellread_store::guard::guarded;
use wellread_store::{Error, Result};

/// A session and the runtime that it spawns on. Futures run on the threads that wait for them.
pub(crate) struct Session {
    pub runtime: CurrentThreadRuntime,
    pub session: VortexSession,
}

impl Session {
    pub fn new() -> Self {
        let runtime = CurrentThreadRuntime::new();
        let session = <VortexSession as VortexSessionDefault>::default().with_handle(runtime.handle());
        Self { runtime, session }
    }

    /// The one that all readers share.
    pub fn reading() -> &'static Self {
        static READING: OnceLock<Session> = OnceLock::new();
        READING.get_or_init(Self::new)
    }
}

/// An error of the library in one line: without the backtrace that it may carry.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The error of the file.
    Said(String),
    /// The place that it lies in could not be read.
    Place(std::io::Error),
}

impl From<VortexError> for Cause {
    fn from(error: VortexError) -> Self {
        if let Some(error) = PlaceError::find(&error) {
            return Self::Place(std::io::Error::new(error.kind(), error.to_string()));
        }
        let text = error.to_string();
        let text = text.split("\nBacktrace:").next().unwrap_or_default();
        Self::Said(text.trim().replace('\n', "; "))
    }
}

impl From<std::io::Error> for Cause {
    fn from(error: std::io::Error) -> Self {
        Self::Place(error)
    }
}

impl From<String> for Cause {
    fn from(text: String) -> Self {
        Self::Said(text)
    }
}

impl From<arrow_schema::ArrowError> for Cause {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::Said(error.to_string())
    }
}

impl From<wellread_store::table::arrow_schema::ArrowError> for Cause {
    fn from(error: wellread_store::table::arrow_schema::ArrowError) -> Self {
        Self::Said(error.to_string())
    }
}

impl From<std::num::TryFromIntError> for Cause {
    fn from(error: std::num::TryFromIntError) -> Self {
        Self::Said(error.to_string())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(text) => f.write_str(text),
            Self::Place(error) => fmt::Display::fmt(error, f),
        }
    }
}

/// Runs `work`, which reads from a file by the library: its panics and errors become ours, with what to do.
pub(crate) fn reading<T>(path: &Path, what: &str, work: impl FnOnce() -> Result<T, Cause>) -> Result<T> {
    guarded(path, what, || Ok::<_, Cause>(work()))?.map_err(|cause| {
        let text = match cause {
            Cause::Said(text) => text,
            Cause::Place(error) => return Error::io(path, what, &error),
        };
        // An encoding or a layout that the library does not know by name.
        let hint = if text.contains("Unknown encoding: ") || text.contains("Unknown layout encoding: ") {
            "the file was probably written by a newer Vortex: update wellread, or write it again with an older edition"
        } else {
            "the file is probably corrupt; copy or write it again"
        };
        Error::new(path, format_args!("{what}: {text}")).hint(hint)
    })
}
