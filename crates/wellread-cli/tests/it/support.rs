//! Running the binary under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether the binary under test makes the calls that only Linux has.
pub const HAS_LINUX_CALLS: bool = cfg!(all(target_os = "linux", not(feature = "portable")));

/// The result of a finished process.
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `wellread` with these arguments.
pub fn wellread<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Done {
    wellread_into(args, Stdio::piped(), Stdio::piped())
}

/// As [`wellread`], with this working folder.
pub fn wellread_in<S: AsRef<std::ffi::OsStr>>(folder: &Path, args: &[S]) -> Done {
    finished(command(args).current_dir(folder))
}

/// As [`wellread`], with stdout and stderr going there; text that goes elsewhere than to a pipe is not in its
/// result.
pub fn wellread_into<S: AsRef<std::ffi::OsStr>>(
    args: &[S],
    stdout: impl Into<Stdio>,
    stderr: impl Into<Stdio>,
) -> Done {
    finished(command(args).stdout(stdout).stderr(stderr))
}

/// As [`wellread`], with this variable of the environment.
pub fn wellread_with<S: AsRef<std::ffi::OsStr>>(variable: (&str, &Path), args: &[S]) -> Done {
    finished(command(args).env(variable.0, variable.1))
}

fn command<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wellread"));
    command.args(args).stdin(Stdio::null());
    command
}

fn finished(command: &mut Command) -> Done {
    let output = command.output().expect("the binary starts");
    let done = Done {
        code: output.status.code().expect("no signal"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    };
    assert!(!done.stderr.contains("panicked"), "panic: {}", done.stderr);
    done
}

/// Runs and expects success; gives the JSON document.
pub fn json(args: &[&str]) -> serde_json::Value {
    let mut all = vec!["--json"];
    all.extend(args);
    let done = wellread(&all);
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {}", done.stdout))
}

/// Names of the images of a set, by its checksums.
pub fn image_names(set: &Path) -> Vec<String> {
    let sums = json(&["checksum", arg(set)]);
    sums.as_array().unwrap().iter().map(|image| image["name"].as_str().unwrap().to_owned()).collect()
}

/// A path as an argument.
pub fn arg(path: &Path) -> &str {
    path.to_str().expect("UTF-8 path")
}

/// Generates a small set of cells in all formats below `out`.
pub fn generate(out: &Path, images: usize, more: &[&str]) -> serde_json::Value {
    let images = images.to_string();
    let mut args = vec!["generate", arg(out), "--images", &images, "--size", "40x56"];
    args.extend(more);
    json(&args)
}

/// Names of the formats of the binary under test.
pub fn formats() -> Vec<String> {
    names_of("formats")
}

/// Whether the binary under test has this format.
pub fn has_format(name: &str) -> bool {
    formats().iter().any(|format| format == name)
}

/// Names of the formats that the binary under test was built without.
pub fn absent_formats() -> Vec<String> {
    names_of("formats_missing")
}

fn names_of(list: &str) -> Vec<String> {
    // Asked once by all tests: it takes a fifth of a second.
    static DOCUMENT: std::sync::OnceLock<serde_json::Value> = std::sync::OnceLock::new();
    let document = DOCUMENT.get_or_init(|| json(&["doctor", "--python", "no-such-python"]));
    let formats = document[list].as_array().expect("a list");
    formats.iter().map(|f| f["name"].as_str().expect("a name").to_owned()).collect()
}

/// Names in a folder that a killed or failed writer would leave.
pub fn leftovers(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder)
        .map(|d| d.flatten().map(|e| e.file_name().to_string_lossy().into_owned()))
        .into_iter()
        .flatten()
        .filter(|n| n.starts_with(".wellread-partial"))
        .collect()
}

/// Every file below a folder, with what is in it.
pub fn files_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(files_below(&path));
        } else {
            let content = std::fs::read(&path).unwrap();
            all.push((path, content));
        }
    }
    all.sort();
    all
}

/// Waits until something is so; five minutes at most.
#[cfg(unix)]
pub fn until(what: &str, so: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !so() {
        assert!(begin.elapsed() < std::time::Duration::from_mins(5), "{what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Sends a signal by its name, such as `INT`.
#[cfg(unix)]
pub fn signal(child: &std::process::Child, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status().unwrap();
    assert!(sent.success());
}

/// Runs `wellread` with these arguments and sends it a signal once it writes below `folder`. It ends as an interrupted program
/// does, and leaves nothing half-written there.
#[cfg(unix)]
pub fn interrupt<S: AsRef<std::ffi::OsStr>>(args: &[S], folder: &Path, name: &str) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_wellread"))
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    until("it never began", || !leftovers(folder).is_empty());
    signal(&child, name);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(leftovers(folder).is_empty(), "{:?}", leftovers(folder));
}

/// A set of 12 TIFF files, of which number 7 can be broken for a while: no file changes its size.
pub struct Breakable {
    /// The folder of the files.
    pub source: PathBuf,
    /// The files in order.
    pub files: Vec<PathBuf>,
    /// The content of file 7.
    pub whole: Vec<u8>,
    /// The same with a header that is none.
    pub broken: Vec<u8>,
}

impl Breakable {
    /// A new one below a folder.
    pub fn in_folder(folder: &Path) -> Self {
        let set = folder.join("set");
        generate(&set, 12, &["--formats", "tiff"]);
        let source = set.join("tiff");
        let mut files: Vec<_> = std::fs::read_dir(&source).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        let whole = std::fs::read(&files[7]).unwrap();
        let mut broken = whole.clone();
        broken[..8].fill(b'x');
        Self { source, files, whole, broken }
    }
}
