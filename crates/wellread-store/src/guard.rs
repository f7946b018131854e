//! The guard around libraries that panic on corrupt files.

use crate::{Error, Result};
use std::any::Any;
use std::cell::Cell;
use std::fmt::Display;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

/// Runs `work`, which calls a library, and turns its errors into ours.
///
/// Libraries panic on some corrupt files. Since a corrupt file is never a bug of the caller, such a
/// panic is an error like any other. Nothing that `work` may leave half-done outlives it.
pub fn guarded<T, E: Display>(
    path: &Path,
    what: &str,
    work: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    let hint = "the file is probably corrupt; copy or write it again";
    match caught(work) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Error::new(path, format_args!("{what}: {error}")).hint(hint)),
        Err(panic) => {
            let text = panic_message(&*panic);
            Err(Error::new(path, format_args!("{what}: {text}")).hint(hint))
        }
    }
}

/// The message of a panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

thread_local! {
    /// Whether panics of this thread are caught and become errors.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; a panic in it is returned and, unlike other panics, not printed: the error says what is wrong.
fn caught<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    install();
    let outer = CATCHING.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(outer);
    result
}

/// For threads of an engine's own runtime, whose panics arrive as errors where their results are awaited: panics of
/// this thread are not printed.
pub fn quiet_this_thread() {
    install();
    CATCHING.set(true);
}

fn install() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !CATCHING.try_with(Cell::get).unwrap_or(false) {
                before(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_of_the_library_are_errors() {
        let e =
            guarded(Path::new("f"), "cannot read", || -> std::result::Result<(), String> { panic!("oh") });
        assert_eq!(
            e.unwrap_err().to_string(),
            "f: cannot read: oh (hint: the file is probably corrupt; copy or write it again)"
        );
    }

    /// Output can only be seen from outside: this test runs itself again and reads its output.
    #[test]
    fn caught_panics_print_nothing() {
        const INSIDE: &str = "WELLREAD_TEST_PANICS";
        if std::env::var_os(INSIDE).is_some() {
            let quiet = || -> std::result::Result<(), String> { panic!("the quiet one") };
            guarded(Path::new("f"), "cannot read", quiet).unwrap_err();
            assert!(panic::catch_unwind(|| panic!("the loud one")).is_err());
            return;
        }
        let this = "guard::tests::caught_panics_print_nothing";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", this, "--nocapture"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}");
        assert!(printed.contains("the loud one") && !printed.contains("the quiet one"), "{printed}");
    }
}
