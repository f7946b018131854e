//! What the library needs to be told before anything else: its registries and where its futures run.

use std::fmt;
use std::sync::OnceLock;
use vortex::VortexSessionDefault;
use vortex::error::VortexError;
use vortex::io::runtime::BlockingRuntime;
use vortex::io::runtime::current::CurrentThreadRuntime;
use vortex::io::session::RuntimeSessionExt;
use vortex::session::VortexSession;

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
pub(crate) struct Cause(String);

impl From<VortexError> for Cause {
    fn from(error: VortexError) -> Self {
        let text = error.to_string();
        let text = text.split("\nBacktrace:").next().unwrap_or_default();
        Self(text.trim().replace('\n', "; "))
    }
}

impl From<String> for Cause {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<arrow_schema::ArrowError> for Cause {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self(error.to_string())
    }
}

impl From<std::num::TryFromIntError> for Cause {
    fn from(error: std::num::TryFromIntError) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
