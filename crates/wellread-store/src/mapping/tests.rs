//! Files that are shortened while they are mapped.

use super::*;
use std::io::Write as _;
use std::process::Command;

const PAGES: usize = 8;
const PAGE: usize = 16 << 10;

fn file(byte: u8) -> (tempfile::TempDir, std::path::PathBuf, File) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mapped.bin");
    std::fs::write(&path, vec![byte; PAGES * PAGE]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    (dir, path, file)
}

/// Runs a test of this module in a process of its own, with a word that tells it that it is the inner one.
fn within(test: &str) -> std::process::Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("mapping::tests::{test}"), "--nocapture"])
        .env("WELLREAD_TEST_MAPPING", test)
        .output()
        .unwrap()
}

fn is_within(test: &str) -> bool {
    std::env::var("WELLREAD_TEST_MAPPING").is_ok_and(|inner| inner == test)
}

#[test]
fn what_was_cut_off_is_an_error_and_no_signal() {
    let this = "what_was_cut_off_is_an_error_and_no_signal";
    if !is_within(this) {
        let output = within(this);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        // A path that no test has runs none, which is no failure.
        assert!(output.status.success() && said.contains("1 passed"), "{:?}: {said}", output.status);
        return;
    }
    let (_dir, path, file) = file(7);
    let whole = (PAGES * PAGE) as u64;
    let (cut, other) = (Mapping::of(&file).unwrap(), self::file(9));
    let untouched = Mapping::of(&other.2).unwrap();
    let sum = |map: &Mapping| map.as_ref().iter().map(|b| u64::from(*b)).sum::<u64>();
    assert_eq!(sum(&cut), 7 * whole);
    cut.check(&file, &path, whole).unwrap();
    // Within a page no signal comes: the length tells.
    file.set_len(whole - 100).unwrap();
    let error = cut.check(&file, &path, whole).unwrap_err().to_string();
    assert!(error.contains("mapped.bin") && error.contains("was shortened to 130972 bytes"), "{error}");
    cut.check(&file, &path, whole - 100).unwrap();
    // Behind the end zeros are read, by all threads.
    file.set_len(PAGE as u64).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(sum(&cut), 7 * PAGE as u64));
        }
    });
    assert!(cut.check(&file, &path, whole).is_err());
    // Also when it has grown again.
    file.set_len(whole).unwrap();
    let error = cut.check(&file, &path, whole).unwrap_err().to_string();
    assert!(error.contains("mapped.bin") && error.contains("was shortened"), "{error}");
    // Another mapping of the file is good, and so is one of another file.
    let anew = Mapping::part(&file, PAGE as u64, PAGE).unwrap();
    anew.check(&file, &path, whole).unwrap();
    assert_eq!(sum(&untouched), 9 * whole);
    untouched.check(&other.2, &other.1, whole).unwrap();
    // One that is written to.
    let written = Mapping::shared(&file, PAGES * PAGE).unwrap();
    file.set_len(PAGE as u64).unwrap();
    // SAFETY: within the mapping, and nobody else looks at it.
    unsafe { written.as_mut_ptr().add(3 * PAGE).write_volatile(5) };
    assert_eq!(written.as_ref()[3 * PAGE], 5);
    assert!(written.check(&file, &path, 0).is_err());
    // Slots are used again, and begin anew.
    drop((cut, anew, written));
    let again = Mapping::of(&file).unwrap();
    again.check(&file, &path, PAGE as u64).unwrap();
}

/// Reads a page of a file mapped without [`Mapping`], behind the file's end: a signal that is not ours.
fn read_behind_the_end() -> ! {
    let (_dir, _, file) = file(1);
    let map = MmapOptions::new().map_raw_read_only(&file).unwrap();
    file.set_len(0).unwrap();
    // SAFETY: the process ends here.
    let byte = unsafe { map.as_ptr().read_volatile() };
    unreachable!("read {byte}");
}

/// A handler of another program, which ends the process with code 42.
extern "C" fn ends_with_42(_: libc::c_int) {
    // SAFETY: may be called in a handler.
    unsafe { libc::_exit(42) }
}

/// Installs [`ends_with_42`].
fn install_theirs() {
    // SAFETY: it may be a handler.
    unsafe { libc::signal(libc::SIGBUS, ends_with_42 as extern "C" fn(_) as libc::sighandler_t) };
}

#[test]
fn other_signals_end_the_process_as_before() {
    use std::os::unix::process::ExitStatusExt as _;
    let this = "other_signals_end_the_process_as_before";
    if !is_within(this) {
        let output = within(this);
        assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{:?}", output.status);
        return;
    }
    let (_dir, _, file) = file(1);
    let _guarded = Mapping::of(&file).unwrap();
    read_behind_the_end();
}

#[test]
fn a_handler_that_was_there_before_gets_what_is_not_ours() {
    let this = "a_handler_that_was_there_before_gets_what_is_not_ours";
    if !is_within(this) {
        let output = within(this);
        assert_eq!(output.status.code(), Some(42), "{:?}", output.status);
        return;
    }
    install_theirs();
    let (_dir, _, file) = file(1);
    let ours = Mapping::of(&file).unwrap();
    file.set_len(0).unwrap();
    assert_eq!(ours.as_ref()[0], 0);
    let _ = std::io::stdout().flush();
    read_behind_the_end();
}

#[test]
fn one_that_sends_the_signal_again_ends_the_process() {
    use std::os::unix::process::ExitStatusExt as _;
    let this = "one_that_sends_the_signal_again_ends_the_process";
    if !is_within(this) {
        let output = within(this);
        assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{:?}", output.status);
        return;
    }
    // As Python's faulthandler: never puts itself out of the way, for ours was there before it.
    extern "C" fn theirs(signal: libc::c_int) {
        // SAFETY: may be called in a handler.
        unsafe { libc::raise(signal) };
    }
    // SAFETY: `theirs` may be a handler.
    unsafe { libc::signal(libc::SIGBUS, theirs as extern "C" fn(_) as libc::sighandler_t) };
    let (_dir, _, file) = file(1);
    let _ours = Mapping::of(&file).unwrap();
    read_behind_the_end();
}

/// Waits until the handler is looked for again.
fn next_look() {
    std::thread::sleep(std::time::Duration::from_millis(2));
    before_reading();
}

#[test]
fn a_handler_that_is_installed_later_gets_only_what_is_not_ours() {
    let this = "a_handler_that_is_installed_later_gets_only_what_is_not_ours";
    if !is_within(this) {
        let output = within(this);
        assert_eq!(output.status.code(), Some(42), "{:?}", output.status);
        return;
    }
    let (_dir, path, file) = file(1);
    let ours = Mapping::of(&file).unwrap();
    install_theirs();
    next_look();
    file.set_len(0).unwrap();
    let is_error = ours.as_ref()[0] == 0 && ours.check(&file, &path, 1).is_err();
    // Ends otherwise than by their handler.
    assert!(is_error);
    let _ = std::io::stdout().flush();
    read_behind_the_end();
}

#[test]
fn a_later_handler_that_calls_the_one_before_ends_the_process() {
    use std::os::unix::process::ExitStatusExt as _;
    use std::sync::atomic::{AtomicUsize, Ordering};
    type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    static BEFORE: AtomicUsize = AtomicUsize::new(0);
    let this = "a_later_handler_that_calls_the_one_before_ends_the_process";
    if !is_within(this) {
        let output = within(this);
        assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{:?}", output.status);
        return;
    }
    extern "C" fn theirs(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: the handler of this crate, which has three arguments.
        let before = unsafe { std::mem::transmute::<usize, Handler>(BEFORE.load(Ordering::Relaxed)) };
        before(signal, info, context);
    }
    let (_dir, _, file) = file(1);
    let _ours = Mapping::of(&file).unwrap();
    // SAFETY: zeros are a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = theirs as Handler as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: zeros are a valid action.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `theirs` may be a handler.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, &raw mut before) };
    BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
    next_look();
    read_behind_the_end();
}
