//! Processes that measure for this program: frameworks in Python, and backends that should not share its memory.
//!
//! ```text
//!  Launch (a Python with the sources that this program carries, or any program that speaks the protocol)
//!     │ threads, processors, time limit
//!     ▼
//!  Worker ── a request, a JSON line ──▶ the process ── answers, raw samples, pixels ──▶ Worker::ask
//! ```
//!
//! The Python sources are those of `python/wellread/_bench`, compiled into the program by `build.rs`: no Python package
//! needs to be installed but the frameworks themselves. Each benchmark has its own requests; nothing here knows them.
//! The adapters of `wellread tasks` (`python/wellread/_tasks`) come in the same way, for whoever starts them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`process`] | [`Launch`], [`Worker`]: starting, asking, time limit, ending |
//! | [`question`] | a program that is asked once, such as a Python for what it has |
//! | `sources` | the Python sources |

pub mod process;
pub mod question;
mod sources;

pub use process::{Launch, Pixels, Worker};
pub use sources::{TASKS, unpack_tasks};
pub use wellread_store::python::command as python_command;

use std::path::{Path, PathBuf};

/// The Python to use: the one given, else [that of this program](wellread_store::python::program).
pub fn python(given: Option<&Path>) -> PathBuf {
    given.map_or_else(wellread_store::python::program, Path::to_owned)
}

/// Threads that every framework is told to use where nobody says otherwise: the processors this process may run on.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Where this program keeps what it makes once and uses again: `wellread` in the user's cache folder.
pub fn cache_folder() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("wellread")
}
