//! Errors of the store and the loader as Python's exceptions, which `wellread/errors.py` defines.

use crossbeam_channel::{Receiver, RecvTimeoutError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wellread::Error;
use wellread::store::{place, staged};

/// How long to wait before signals are looked for: Ctrl-C is answered that late at most.
pub(crate) const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Stack of threads that do what was asked of the main thread: as much as that usually has.
const STACK: usize = 8 << 20;

/// The activity in which an error came up, which decides its kind.
#[derive(Clone, Copy)]
pub(crate) enum Activity {
    /// Opening a set, or looking something up in it.
    Opening,
    /// Reading an image that is there.
    Reading,
    /// Checking what the caller chose.
    Choosing,
}

/// The exception for an error.
pub(crate) fn exception(py: Python<'_>, error: &Error, doing: Activity) -> PyErr {
    let name = match doing {
        _ if error.is_missing() => "MissingError",
        _ if error.is_unsupported() => "UnsupportedImageError",
        Activity::Opening | Activity::Choosing if error.is_unreadable() => "CorruptImageError",
        Activity::Choosing => "ChoiceError",
        Activity::Opening | Activity::Reading if error.is_choice() => "ChoiceError",
        Activity::Reading if error.row_index().is_some() => "CorruptImageError",
        Activity::Opening | Activity::Reading => "Error",
    };
    let make = || -> PyResult<PyErr> {
        let keywords = PyDict::new(py);
        keywords.set_item("path", error.path())?;
        keywords.set_item("row", error.row_index())?;
        keywords.set_item("hint", error.hint_text())?;
        let class = module(py)?.getattr(name)?;
        let made = class.call((error.to_string(),), Some(&keywords))?;
        // Each image of the set would wait for the same server.
        made.setattr("_is_of_link", error.is_of_link())?;
        Ok(PyErr::from_value(made))
    };
    make().unwrap_or_else(|failed| failed)
}

fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("wellread.errors").map(Bound::unbind))?;
    Ok(module.bind(py))
}

/// Does `work` without holding the interpreter. A panic, which is a defect of wellread, becomes an exception that
/// `except Exception` catches.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    doing: Activity,
    work: impl FnOnce() -> wellread::Result<T> + Send,
) -> PyResult<T> {
    into_python_result(py, py.detach(|| catch_unwind(AssertUnwindSafe(work))), doing)
}

/// As [`detached`], in a thread beside this one, which looks for signals meanwhile: Python sees them in this one only.
/// At the first, `stop` is to make the work end, which is waited for: it may borrow. Work that may take long before it
/// looks whether it is to stop belongs in [`abandonable`].
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    doing: Activity,
    stop: impl FnOnce(),
    work: impl FnOnce() -> wellread::Result<T> + Send,
) -> PyResult<T> {
    let (send, receive) = crossbeam_channel::bounded(1);
    std::thread::scope(|scope| {
        // Nobody waits for it any more when this cannot be sent.
        let work = move || drop(send.send(catch_unwind(AssertUnwindSafe(work))));
        if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, work) {
            return Err(no_thread(py, &error, doing));
        }
        wait_for_result(py, &receive, doing, || {
            stop();
            // Nothing of the thread needs the interpreter.
            let _ = py.detach(|| receive.recv());
        })
    })
}

/// As [`detached`] of work on this machine. Work on a set that `is_remote`, as behind a network, runs as
/// [`interruptible`]: at the first signal it gives up waiting in places.
pub(crate) fn detached_from<T: Send>(
    py: Python<'_>,
    is_remote: bool,
    doing: Activity,
    work: impl FnOnce() -> wellread::Result<T> + Send,
) -> PyResult<T> {
    if !is_remote {
        return detached(py, doing, work);
    }
    let stop = Arc::new(AtomicBool::new(false));
    interruptible(py, doing, || stop.store(true, Ordering::Relaxed), || place::until(&stop, work))
}

/// As [`interruptible`], of work that owns all that it uses. At the first signal it is told to stop and left to itself.
/// Its thread ends when it looks, waits for a place, or is done, and drops there what it made.
pub(crate) fn abandonable<T: Send + 'static>(
    py: Python<'_>,
    doing: Activity,
    work: impl FnOnce(&AtomicBool) -> wellread::Result<T> + Send + 'static,
) -> PyResult<T> {
    let (send, receive) = crossbeam_channel::bounded(1);
    let stop = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stop);
    let thread = std::thread::Builder::new().name("wellread".to_owned()).stack_size(STACK);
    let work = move || place::until(&stops, || work(&stops));
    let work = move || drop(send.send(catch_unwind(AssertUnwindSafe(work))));
    if let Err(error) = thread.spawn(work) {
        return Err(no_thread(py, &error, doing));
    }
    wait_for_result(py, &receive, doing, || stop.store(true, Ordering::Relaxed))
}

fn no_thread(py: Python<'_>, error: &std::io::Error, doing: Activity) -> PyErr {
    let error = Error::new("wellread", format_args!("cannot start a thread: {error}"));
    exception(py, &error.hint("end some threads or processes"), doing)
}

/// The value that a thread beside this one sends when it is done. At the first signal `interrupted` is called, and
/// the signal's exception returned.
fn wait_for_result<T: Send>(
    py: Python<'_>,
    receive: &Receiver<std::thread::Result<wellread::Result<T>>>,
    doing: Activity,
    interrupted: impl FnOnce(),
) -> PyResult<T> {
    loop {
        match py.detach(|| receive.recv_timeout(SIGNAL_POLL_INTERVAL)) {
            Ok(done) => return into_python_result(py, done, doing),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(error_of_panic(&"a thread ended without a word"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    interrupted();
                    wait_for_replacing(py);
                    return Err(signal);
                }
            }
        }
    }
}

/// Waits while a set in a bucket is being replaced, until another signal comes: the program may end with the exception of the first.
fn wait_for_replacing(py: Python<'_>) {
    while staged::is_replacing() && py.check_signals().is_ok() {
        py.detach(|| std::thread::sleep(SIGNAL_POLL_INTERVAL));
    }
}

fn into_python_result<T>(
    py: Python<'_>,
    done: std::thread::Result<wellread::Result<T>>,
    doing: Activity,
) -> PyResult<T> {
    match done {
        Ok(result) => result.map_err(|error| exception(py, &error, doing)),
        Err(panic) => Err(error_of_panic(&*panic)),
    }
}

fn error_of_panic(panic: &(dyn Any + Send)) -> PyErr {
    let said = wellread::store::guard::panic_message(panic);
    pyo3::exceptions::PyRuntimeError::new_err(format!("a defect of wellread, please report it: {said}"))
}
