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

use super::{OpenArgs, link, opening};
use crate::output::{Failure, Outcome, Ui};
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use wellread_store::checksum::{ImageChecksum, SentRow};
use wellread_worker::{python, python_command, question};

/// The code that the Python runs.
const CODE: &str = "from wellread.ray.__main__ import main; sys.exit(main())";
/// How what is missing can be had.
const HINT: &str = "pip install 'wellread[ray]'; the variable WELLREAD_PYTHON names the Python that has it, if it is not that of this program";

/// Where a whole-set command is done.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct OnArgs {
    /// Run on the nodes of a Ray cluster. ray takes the cluster of RAY_ADDRESS, or else one on this machine;
    /// ray:ADDRESS names one, such as ray:10.0.0.1:6379. All nodes must see the paths. Needs a Python with
    /// wellread[ray].
    #[arg(long, value_name = "ray[:ADDRESS]", value_parser = parse_on, conflicts_with = "jobs")]
    pub on: Option<On>,
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct On {
    address: Option<String>,
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
    Ok(On { address })
}

/// The result of a cluster, and the work of its nodes.
pub struct Found {
    pub result: Value,
    pub cluster: Value,
}

/// The answer of a command to a line, if the line asks for something.
type Hear<'a> = dyn FnMut(&Value, &ProgressBar) -> Outcome<Option<Value>> + 'a;

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

/// A process that ends when this is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl On {
    /// Has the cluster do `command` to the set at `path`. `more` are further fields of the request. Progress over its images is shown
    /// under the name `what`.
    ///
    /// # Errors
    /// No Python with Ray; what the command says itself.
    pub fn ask(
        &self,
        command: &str,
        (open, path): (&OpenArgs, &Path),
        more: Map<String, Value>,
        what: &str,
        ui: Ui,
    ) -> Outcome<Found> {
        let mut request = more;
        request.insert("path".to_owned(), text(path)?.into());
        request.insert("options".to_owned(), opening::options(open).into());
        request.insert("cells".to_owned(), cells(open)?);
        self.send(command, request, what, ui)
    }

    /// As [`Self::ask`], of no set: `request` has all that the command needs.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn send(&self, command: &str, request: Map<String, Value>, what: &str, ui: Ui) -> Outcome<Found> {
        self.converse(command, request, what, ui, &mut |_, _| Ok(None))
    }

    /// As [`Self::send`], where the Python tells and asks meanwhile. `hear` is given each `told`, with the bar that is shown, and its answer
    /// is a line on stdin.
    ///
    /// # Errors
    /// As [`Self::ask`]; what `hear` says, which ends the Python.
    pub fn converse(
        &self,
        command: &str,
        mut request: Map<String, Value>,
        what: &str,
        ui: Ui,
        hear: &mut Hear<'_>,
    ) -> Outcome<Found> {
        request.insert("command".to_owned(), command.into());
        request.insert("address".to_owned(), self.address.clone().into());
        let python = python(None);
        for module in ["ray", "wellread"] {
            if let Some(why) = question::lacks(&python, module) {
                return Err(Failure::Failed(format!("--on ray needs Ray: {why} (hint: {HINT})")));
            }
        }
        let failed = |doing: &str, why: &dyn std::fmt::Display| {
            Failure::Failed(format!("--on ray: {doing} {}: {why}", python.display()))
        };
        let mut start = python_command(&python, CODE);
        let child = start.envs(link::environment()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = Ended(child.map_err(|e| failed("cannot start", &e))?);
        let mut stdin = child.0.stdin.take();
        let mut write = |said: &Value| {
            let line = format!("{said}\n");
            stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(line.as_bytes()))
        };
        write(&Value::Object(request)).map_err(|e| failed("cannot ask", &e))?;
        let bar = ui.progress(0, what);
        let mut last = None;
        let lines = child.0.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        for line in lines.into_iter().flatten() {
            let line = line.and_then(|line| read(&line, &bar));
            let line = line.map_err(|e| failed("cannot read the answer of", &e))?;
            if let Some(answer) = line.told.as_ref().map(|told| hear(told, &bar)).transpose()?.flatten() {
                write(&answer).map_err(|e| failed("cannot answer", &e))?;
            }
            last = Some(line);
        }
        bar.finish_and_clear();
        let status = child.0.wait().map_err(|e| failed("cannot wait for", &e))?;
        match last {
            Some(Line { error: Some(error), usage: true, .. }) => Err(Failure::Usage(error)),
            Some(Line { error: Some(error), .. }) => Err(Failure::Failed(error)),
            Some(Line { result: Some(result), cluster, .. }) => Ok(Found { result, cluster }),
            _ => Err(failed("no answer from", &status)),
        }
    }

    /// The result of each row of a set, and the work of the nodes.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn sums(
        &self,
        set: (&OpenArgs, &Path),
        what: &str,
        ui: Ui,
    ) -> Outcome<Vec<Result<ImageChecksum, wellread_store::Error>>> {
        let path = set.1;
        let Found { result, cluster } = self.ask("checksum", set, Map::new(), what, ui)?;
        let rows: Vec<SentRow> = serde_json::from_str(result.as_str().unwrap_or_default())
            .map_err(|e| Failure::Failed(format!("--on ray: the answer is damaged: {e}")))?;
        say(&cluster, ui);
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(rows.into_iter().map(|row| as_typed(row, path, &whole).received()).collect())
    }
}

/// A row whose error names a file of the set as it would here: below the path as it was typed. Nodes know the `whole` path.
fn as_typed(row: SentRow, typed: &Path, whole: &Path) -> SentRow {
    let SentRow::Failed { path, row, cause, hint } = row else { return row };
    let path = match Path::new(&path).strip_prefix(whole) {
        Ok(below) if below.as_os_str().is_empty() => typed.to_string_lossy().into_owned(),
        Ok(below) => typed.join(below).to_string_lossy().into_owned(),
        Err(_) => path,
    };
    SentRow::Failed { path, row, cause, hint }
}

/// Reads a line, and moves the bar as it says.
fn read(line: &str, bar: &ProgressBar) -> std::io::Result<Line> {
    let line: Line = serde_json::from_str(line)?;
    if let Some(total) = line.total {
        bar.inc_length(total);
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
            "node {} ({}): {} in {}, {} images/s a task, slowest task {} s{mark}",
            name.get(..8).unwrap_or(name),
            node["host"].as_str().unwrap_or("?"),
            count(&node["images"], "image"),
            count(&node["tasks"], "task"),
            number(&node["images_per_s_per_task"]),
            number(&node["slowest_task_seconds"]),
        ));
    }
    let lost = cluster["lost_nodes"].as_array().map_or(0, Vec::len);
    if lost > 0 {
        let lost = wellread_store::words::counted_with(lost, "node", ["was", "were"]);
        ui.warn(format!("{lost} lost meanwhile; what was begun there was done on others"));
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
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
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
        };
        let said = |path: &str| {
            let row = as_typed(failed(path), Path::new("plate"), Path::new("/data/plate"));
            row.received().unwrap_err().path().to_owned()
        };
        assert_eq!(said("/data/plate/a.tiff"), Path::new("plate/a.tiff"));
        assert_eq!(said("/data/plate"), Path::new("plate"));
        assert_eq!(said("/data/plates/a.tiff"), Path::new("/data/plates/a.tiff"));
    }
}
