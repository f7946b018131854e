//! The process of a framework: a Python, or this program, on as many processors as it has threads.

use crate::config::Config;
use wellread_measure::process;
use wellread_worker::Launch;

/// The process of a framework in Python.
pub(crate) fn in_python(config: &Config) -> Launch {
    let python = wellread_worker::python(config.python.as_deref());
    pinned(Launch::python(python, config.threads, config.turn_limit), config)
}

/// The process of a backend in Rust: this program.
pub(crate) fn in_rust(config: &Config) -> Launch {
    pinned(Launch::native(config.server.clone(), config.threads, config.turn_limit), config)
}

/// As many processors as threads, the same for all: XLA takes as many threads as it sees processors.
fn pinned(launch: Launch, config: &Config) -> Launch {
    match process::first_processors(config.threads) {
        Some(processors) => launch.on_processors(processors),
        None => launch,
    }
}
