//! `--on ray[:ADDRESS]`: what a command does to a whole set, done by the nodes of a Ray cluster.
//!
//! ```text
//!  the command ──a request, JSON on stdin──▶ python: wellread.ray ──tasks──▶ the nodes, each over the same crates
//!      ▲                                        │
//!      └── total, done, told … ◀── the result ──┘  lines of JSON; what is told may be answered on stdin
//! ```
//!
//! The Python is that of [`wellread_worker::python`]. Its results have the form of this program's own, so that the same
//! code prints and writes them.

mod process;

use super::{OpenArgs, link, opening};
use crate::output::{Failure, Outcome, Ui};
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use wellread_store::checksum::{ImageChecksum, SentRow};
use wellread_worker::{python, python_command, question};

use process::Process;
pub use process::{interrupt, is_running, kill};

/// The code that the Python runs. Until all is imported, a signal ends it at once: it has nothing to remove.
const CODE: &str = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); \
    from wellread.ray.__main__ import main; sys.exit(main())";
/// How what is missing can be had.
const HINT: &str = "pip install '.[ray]' in a clone of wellread; the variable WELLREAD_PYTHON names the Python that has it, if it is not that of this program";

/// Where a whole-set command is done.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct OnArgs {
    /// Run on the nodes of a Ray cluster. ray takes the cluster of RAY_ADDRESS, or else one on this machine;
    /// ray:ADDRESS names one, such as ray:10.0.0.1:6379. All nodes must see the paths. Needs a Python with the
    /// package wellread and Ray (pip install '.[ray]' in a clone).
    #[arg(long, value_name = "ray[:ADDRESS]", value_parser = parse_on, conflicts_with = "jobs")]
    pub on: Option<On>,
    /// With --on: keep on this machine what nodes have found, until the command is done. It goes on with what an interrupted run for
    /// the same set left, on any cluster. Images are read again where time or size of the set differ.
    #[arg(long, requires = "on")]
    pub resume: bool,
}

impl OnArgs {
    /// The cluster that was asked for.
    pub fn cluster(&self) -> Option<On> {
        self.on.clone().map(|on| On { resume: self.resume, ..on })
    }
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct On {
    address: Option<String>,
    /// Whether answers of nodes are kept, and those of an interrupted run are taken.
    resume: bool,
}

/// A cluster by its name.
///
/// # Errors
/// A text that is no cluster.
pub fn parse_on(text: &str) -> Result<On, String> {
    let address = match text.strip_prefix("ray") {
        Some("") => None,
        // An address of Ray's own client.
        Some(rest) if rest.starts_with("://") && rest.len() > 3 => Some(text.to_owned()),
        Some(rest) if rest.len() > 1 && rest.starts_with(':') && !rest.starts_with("://") => {
            Some(rest[1..].to_owned())
        }
        _ => return Err(format!("{text:?} is neither ray nor ray:ADDRESS")),
    };
    Ok(On { address, resume: false })
}

/// The result of a cluster, and the work of its nodes.
pub struct Answer {
    pub result: Value,
    pub cluster: Value,
}

/// The result of each row of sets, and the work of the nodes.
pub struct Checksums {
    /// The rows of each set. The last sets may be missing where one before them has a row that cannot be read.
    pub sets: Vec<Vec<Result<ImageChecksum, wellread_store::Error>>>,
    pub cluster: Value,
}

/// The answer of a command to a line, if the line asks for something.
type MessageHandler<'a> = dyn FnMut(&Value, &ProgressBar) -> Outcome<Option<Value>> + 'a;

/// A line of the Python.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    total: Option<u64>,
    done: Option<u64>,
    told: Option<Value>,
    error: Option<String>,
    usage: bool,
    result: Option<Value>,
    cluster: Value,
}

/// A path as text, which requests are.
fn text(path: &Path) -> Outcome<&str> {
    path.to_str().ok_or_else(|| {
        Failure::Failed(format!(
            "{}: a path for a cluster must be UTF-8 text (hint: rename it)",
            path.display()
        ))
    })
}

/// How cells are cut out of the images, as Python's Dataset.cells takes it; null where images are whole.
fn cells(open: &OpenArgs) -> Outcome<Value> {
    if let Some((table, options)) = open.cells.chosen() {
        text(table)?;
        options.masks.as_deref().map_or(Ok(""), text)?;
    }
    Ok(opening::cells(open))
}

/// A set as a request names it: its path, the options of opening, and the cells that are cut out.
fn named((open, path): (&OpenArgs, &Path)) -> Outcome<Map<String, Value>> {
    let mut fields = Map::new();
    fields.insert("path".to_owned(), text(path)?.into());
    fields.insert("options".to_owned(), opening::options(open).into());
    fields.insert("cells".to_owned(), cells(open)?);
    Ok(fields)
}

/// The failure for an answer that is not what was asked for.
fn damaged(error: &serde_json::Error) -> Failure {
    Failure::Failed(format!("--on ray: the answer is damaged: {error}"))
}

impl On {
    /// Has the cluster do `command` to `set`, by its options of opening and its path. `more` are further fields of the request. Progress over its images is shown
    /// under the name `what`.
    ///
    /// # Errors
    /// No Python with Ray; what the command says itself.
    pub fn ask(
        &self,
        command: &str,
        set: (&OpenArgs, &Path),
        more: Map<String, Value>,
        what: &str,
        ui: Ui,
    ) -> Outcome<Answer> {
        let mut request = more;
        request.extend(named(set)?);
        self.send(command, request, what, ui)
    }

    /// As [`Self::ask`], of no set: `request` has all that the command needs.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn send(&self, command: &str, request: Map<String, Value>, what: &str, ui: Ui) -> Outcome<Answer> {
        self.exchange(command, request, what, ui, &mut |_, _| Ok(None))
    }

    /// As [`Self::send`], where the Python tells and asks meanwhile. `reply` is given each `told`, with the bar that is
    /// shown. Its result is a line on stdin.
    ///
    /// # Errors
    /// As [`Self::ask`]; what `reply` says, which ends the Python.
    pub fn exchange(
        &self,
        command: &str,
        mut request: Map<String, Value>,
        what: &str,
        ui: Ui,
        reply: &mut MessageHandler<'_>,
    ) -> Outcome<Answer> {
        request.insert("command".to_owned(), command.into());
        request.insert("address".to_owned(), self.address.clone().into());
        request.insert("resume".to_owned(), self.resume.into());
        let python = python(None);
        for module in ["ray", "wellread"] {
            if let Some(why) = question::why_module_is_missing(&python, module) {
                return Err(Failure::Failed(format!("--on ray needs Ray: {why} (hint: {HINT})")));
            }
        }
        let failed = |doing: &str, why: &dyn std::fmt::Display| {
            Failure::Failed(format!("--on ray: {doing} {}: {why}", python.display()))
        };
        let process = Process::start(python_command(&python, CODE).envs(link::environment()));
        // The Python ends once its stdin does, so that is open until then.
        let (process, mut stdin, stdout) = process.map_err(|e| failed("cannot start", &e))?;
        let mut write = |said: &Value| {
            let line = format!("{said}\n");
            stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(line.as_bytes()))
        };
        write(&Value::Object(request)).map_err(|e| failed("cannot ask", &e))?;
        let bar = ui.progress(0, what);
        let mut last = None;
        for line in stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()) {
            let line = line.and_then(|line| read(&line, &bar));
            let line = line.map_err(|e| failed("cannot read the answer of", &e))?;
            if let Some(answer) = line.told.as_ref().map(|told| reply(told, &bar)).transpose()?.flatten() {
                write(&answer).map_err(|e| failed("cannot answer", &e))?;
            }
            last = Some(line);
        }
        bar.finish_and_clear();
        let status = process.wait().map_err(|e| failed("cannot wait for", &e))?;
        match last {
            Some(Line { error: Some(error), usage: true, .. }) => Err(Failure::Usage(error)),
            Some(Line { error: Some(error), .. }) => Err(Failure::Failed(error)),
            Some(Line { result: Some(result), cluster, .. }) => Ok(Answer { result, cluster }),
            _ => Err(failed("no answer from", &status)),
        }
    }

    /// The result of each row of sets, which are read one after the other in one job. `on_error` is raise where an image that cannot
    /// be read fails the command. The next run has the answers that were kept then, and may find the image repaired.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn sums(
        &self,
        sets: &[(&OpenArgs, &Path)],
        on_error: &str,
        what: &str,
        ui: Ui,
    ) -> Outcome<Checksums> {
        let mut names = Vec::with_capacity(sets.len());
        for &set in sets {
            names.push(Value::Object(named(set)?));
        }
        let mut request = Map::new();
        request.insert("sets".to_owned(), Value::Array(names));
        request.insert("on_error".to_owned(), on_error.into());
        let Answer { result, cluster } = self.send("checksum", request, what, ui)?;
        let texts: Vec<String> = serde_json::from_value(result).map_err(|e| damaged(&e))?;
        let mut found = Vec::with_capacity(sets.len());
        for (&(_, path), text) in sets.iter().zip(&texts) {
            let rows: Vec<SentRow> = serde_json::from_str(text).map_err(|e| damaged(&e))?;
            found.push(rows.into_iter().map(|row| as_typed(row, path).received()).collect());
        }
        Ok(Checksums { sets: found, cluster })
    }
}

/// The rows of the set at `path` that could not be read, from the list of them that an answer has.
///
/// # Errors
/// It is no such list.
pub fn failed_rows(list: &Value, path: &Path) -> Outcome<Vec<(usize, wellread_store::Error)>> {
    let rows: Vec<(usize, SentRow)> = serde_json::from_value(list.clone()).map_err(|e| damaged(&e))?;
    let failed =
        |(row, sent): (usize, SentRow)| as_typed(sent, path).received().err().map(|error| (row, error));
    Ok(rows.into_iter().filter_map(failed).collect())
}

/// A row whose error names a file of the set as it would here: below the path as it was typed. Nodes know the whole path.
fn as_typed(row: SentRow, typed: &Path) -> SentRow {
    let whole = std::path::absolute(typed).unwrap_or_else(|_| typed.to_owned());
    let SentRow::Failed { path, row, cause, hint, may_pass } = row else { return row };
    let path = match Path::new(&path).strip_prefix(&whole) {
        Ok(below) if below.as_os_str().is_empty() => typed.to_string_lossy().into_owned(),
        Ok(below) => typed.join(below).to_string_lossy().into_owned(),
        Err(_) => path,
    };
    SentRow::Failed { path, row, cause, hint, may_pass }
}

/// Reads a line, and moves the bar as it says.
fn read(line: &str, bar: &ProgressBar) -> std::io::Result<Line> {
    let line: Line = serde_json::from_str(line)?;
    if let Some(total) = line.total {
        // A bar without a length stays without one where it is made longer.
        bar.set_length(bar.length().unwrap_or(0).saturating_add(total));
    }
    bar.inc(line.done.unwrap_or(0));
    Ok(line)
}

/// Says what the nodes did, and which was slow.
pub fn say(cluster: &Value, ui: Ui) {
    let number = |value: &Value| value.as_f64().map_or("?".to_owned(), |n| format!("{n:.1}"));
    let count = |value: &Value, what: &str| {
        let number = value.as_u64().and_then(|n| usize::try_from(n).ok());
        wellread_store::words::counted(number.unwrap_or(0), what)
    };
    let empty = Map::new();
    let nodes = cluster["nodes"].as_object().unwrap_or(&empty);
    let slowest = cluster["slowest_node"].as_str();
    for (name, node) in nodes {
        let mark = if nodes.len() > 1 && slowest == Some(name.as_str()) { ", the slowest" } else { "" };
        ui.hint(format!(
            "node {} ({}): {} in {}, {} images/s, {} images/s a task, slowest task {} s{mark}",
            name.get(..8).unwrap_or(name),
            node["host"].as_str().unwrap_or("?"),
            count(&node["images"], "image"),
            count(&node["tasks"], "task"),
            number(&node["images_per_s"]),
            number(&node["images_per_s_per_task"]),
            number(&node["slowest_task_seconds"]),
        ));
    }
    let lost = cluster["lost_nodes"].as_array().map_or(0, Vec::len);
    if lost > 0 {
        let lost = wellread_store::words::counted_with(lost, "node", ["was", "were"]);
        ui.warn(format!("{lost} lost meanwhile; what was begun there was done on others"));
    }
    let resumed = cluster["images_resumed"].as_u64().unwrap_or_default() as usize;
    if resumed > 0 {
        ui.hint(format!(
            "an interrupted run had read {}; these were not read again",
            wellread_store::words::counted(resumed, "image")
        ));
    }
    ui.hint(format!(
        "on ray: {} images/s in {} s on {}",
        number(&cluster["images_per_s"]),
        number(&cluster["seconds"]),
        wellread_store::words::counted(nodes.len(), "node"),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::ProgressDrawTarget;

    #[test]
    fn a_cluster_is_named_by_its_address() {
        let address = |text: &str| parse_on(text).map(|on| on.address);
        assert_eq!(address("ray"), Ok(None));
        assert_eq!(address("ray:auto"), Ok(Some("auto".to_owned())));
        assert_eq!(address("ray:10.0.0.1:6379"), Ok(Some("10.0.0.1:6379".to_owned())));
        assert_eq!(address("ray://head:10001"), Ok(Some("ray://head:10001".to_owned())));
        for wrong in ["", "slurm", "ray:", "ray://", "rays"] {
            assert!(address(wrong).unwrap_err().contains("neither ray nor ray:ADDRESS"), "{wrong}");
        }
    }

    #[test]
    fn lines_move_the_bar_and_say_what_came_of_it() {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        for line in ["{\"total\": 5}", "{\"done\": 3, \"told\": {\"part\": 1}}", "{\"done\": 2}"] {
            let line = read(line, &bar).unwrap();
            assert!(line.result.is_none() && line.error.is_none());
        }
        assert_eq!((bar.position(), bar.length()), (5, Some(5)));
        let line = read("{\"result\": \"[]\", \"cluster\": {}}", &bar).unwrap();
        assert_eq!(line.result, Some("[]".into()));
        assert!(read("Traceback", &bar).is_err());
    }

    #[test]
    fn errors_name_files_as_they_were_typed() {
        let failed = |path: &str| SentRow::Failed {
            path: path.to_owned(),
            row: Some(3),
            cause: "is damaged".to_owned(),
            hint: None,
            may_pass: false,
        };
        let here = std::path::absolute("plate").unwrap();
        let said = |path: &Path| {
            let row = as_typed(failed(&path.to_string_lossy()), Path::new("plate"));
            row.received().unwrap_err().path().to_owned()
        };
        assert_eq!(said(&here.join("a.tiff")), Path::new("plate/a.tiff"));
        assert_eq!(said(&here), Path::new("plate"));
        let other = here.with_file_name("plates").join("a.tiff");
        assert_eq!(said(&other), other);
    }

    #[test]
    fn rows_that_failed_are_told_by_their_numbers() {
        let list = serde_json::json!([[7, { "path": "/data/a.tiff", "row": 7, "cause": "is cut off", "hint": null }]]);
        let found = failed_rows(&list, Path::new("/data")).unwrap();
        let said: Vec<_> = found.iter().map(|(row, error)| (*row, error.cause())).collect();
        assert_eq!(said, [(7, "is cut off")]);
        assert!(failed_rows(&serde_json::json!("nothing"), Path::new("/data")).is_err());
    }

    #[test]
    fn answers_are_kept_where_that_is_asked_for() {
        let cluster = |resume| OnArgs { on: parse_on("ray").ok(), resume }.cluster().map(|on| on.resume);
        assert_eq!([false, true].map(cluster), [Some(false), Some(true)]);
        assert_eq!(OnArgs { on: None, resume: true }.cluster(), None);
    }
}
