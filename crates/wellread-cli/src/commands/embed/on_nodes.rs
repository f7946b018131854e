//! `wellread embed … --on ray`: model actors on the nodes of a Ray cluster compute parts, and this machine puts them together.
//!
//! ```text
//!  wellread embed … --on ray ─▶ python: wellread.ray ─▶ an actor on a node ─▶ wellread embed --part-worker …: the model, opened once
//!        ▲   ◀─ opened ──────────────┤                                            │ a part at a time, as one machine writes it
//!        │   ── parts that are left ─▶┤ dealt out; those of a node that is gone once more  ▼
//!        └── the table of all parts ◀─┴── whole ◀────────── PATH/.wellread-resume-NAME/part-000007.parquet
//! ```

use crate::commands::command_line::{command_line, split};
use crate::commands::on::{On, parse_on};
use crate::commands::parse_positive;
use crate::output::{Failure, Outcome, Ui};
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use wellread_infer::embed::{Described, EmbedOptions, Event, Gatherer, PartWorker, RemainingWork, Summary};
use wellread_store::Store;

/// The option that makes this command one of a node; behind the command's name.
const PART_WORKER: &str = "--part-worker";

/// Where features are computed.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct NodeArgs {
    /// Compute on the nodes of a Ray cluster. ray takes the cluster of RAY_ADDRESS, or else one on this machine;
    /// ray:ADDRESS names one, such as ray:10.0.0.1:6379. All nodes must see the paths. Needs a Python with the
    /// package wellread and Ray (pip install '.[ray]' in a clone).
    #[arg(help_heading = "Cluster", long, value_name = "ray[:ADDRESS]", value_parser = parse_on, conflicts_with = "trace")]
    on: Option<On>,
    /// Models that are open at once, each in an actor of Ray; by default as many as fit on the cluster.
    #[arg(help_heading = "Cluster", long, value_name = "N", requires = "on", value_parser = parse_positive)]
    actors: Option<usize>,
    /// Processors of an actor; by default 1. Both the model and reading take as many threads, unless --threads and
    /// --workers are given.
    #[arg(help_heading = "Cluster", long, value_name = "N", requires = "on", value_parser = parse_positive)]
    cpus_per_actor: Option<usize>,
    /// GPUs of an actor: a share such as 0.5, or a whole number; by default none, and the model runs on processors.
    #[arg(help_heading = "Cluster", long, value_name = "SHARE", requires = "on", value_parser = parse_share)]
    gpus_per_actor: Option<f64>,
    /// Compute the parts that stdin asks for; a node runs this.
    #[arg(long, hide = true)]
    part_worker: bool,
}

/// GPUs as Ray shares them.
fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.trim().parse().ok().filter(|&share: &f64| share > 0.0 && share <= 1024.0);
    let share = share.filter(|&share| share <= 1.0 || share.fract() == 0.0);
    share.ok_or_else(|| {
        format!("{text:?} is neither a share of a GPU, such as 0.5, nor a whole number of GPUs")
    })
}

impl NodeArgs {
    /// The cluster, unless this process is on a node of it.
    pub fn on(&self) -> Option<&On> {
        self.on.as_ref().filter(|_| !self.part_worker)
    }

    /// Whether this process computes parts for another.
    pub fn is_worker(&self) -> bool {
        self.part_worker
    }

    fn cpus(&self) -> usize {
        self.cpus_per_actor.unwrap_or(1)
    }

    /// Threads where nobody says otherwise: on a node those of the actor.
    pub fn threads(&self, all: usize) -> usize {
        if self.part_worker { self.cpus() } else { all }
    }
}

/// A part that is asked for.
#[derive(Deserialize)]
struct PartRequest {
    part: usize,
    folder: PathBuf,
}

/// Parts that stdin asks for, a line each. Nobody needs the results once stdin ends: this process ends, too.
fn part_requests() -> Receiver<PartRequest> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let asked = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            let Some(asked) = asked else { break };
            if send.send(asked).is_err() {
                return;
            }
        }
        std::process::exit(0);
    });
    receive
}

/// Writes a line to stdout.
fn answer(said: &Value) -> Outcome {
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{said}").and_then(|()| out.flush());
    written.map_err(|e| Failure::Failed(format!("cannot answer: {e}")))
}

/// An error as a line.
fn refusal(error: &anyhow::Error) -> Value {
    let is_choice =
        error.downcast_ref::<wellread_store::Error>().is_some_and(wellread_store::Error::is_choice);
    json!({ "error": format!("{error:#}"), "usage": is_choice })
}

/// Opens the model, then computes the parts that are asked for on stdin, until it ends.
///
/// # Errors
/// Stdout is gone. Other failures are answers.
pub fn work(store: Box<dyn Store>, options: EmbedOptions) -> Outcome {
    let parts = part_requests();
    let mut worker = match PartWorker::open(store, options) {
        Ok(worker) => worker,
        Err(error) => return answer(&refusal(&error)),
    };
    answer(&json!({ "opened": worker.describe() }))?;
    for PartRequest { part, folder } in parts {
        let said = match worker.part(part, &folder) {
            Ok(images) => json!({ "images": images }),
            Err(error) => refusal(&error),
        };
        answer(&said)?;
    }
    Ok(())
}

/// A path that cannot go to a cluster.
fn not_utf8(path: &Path) -> Failure {
    let path = path.display();
    Failure::Failed(format!("{path}: a path for a cluster must be UTF-8 text (hint: rename it)"))
}

/// The command of a node: this one, as it was typed, that computes parts.
fn command_of(program: &[OsString], mut words: Vec<String>) -> Outcome<Vec<String>> {
    words.retain(|word| !["--json", "--quiet", "-q"].contains(&word.as_str()));
    let at = words.iter().position(|word| word == "embed");
    let at =
        at.ok_or_else(|| Failure::Failed("--on ray: the command cannot be told to the nodes".to_owned()))?;
    words.insert(at + 1, PART_WORKER.to_owned());
    let program: Outcome<Vec<String>> = program
        .iter()
        .map(|word| word.to_str().map(str::to_owned).ok_or_else(|| not_utf8(Path::new(word))))
        .collect();
    let mut line = program?;
    line.push("--quiet".to_owned());
    line.extend(words);
    Ok(line)
}

/// Has a cluster compute the parts, and puts them together; what came of it, and what the nodes did.
///
/// # Errors
/// No cluster, an error of a node, or a table that is there. Parts that are whole are kept.
pub fn run(
    on: &On,
    (nodes, program): (&NodeArgs, &[OsString]),
    (store, options): (Box<dyn Store>, &EmbedOptions),
    print: &dyn Fn(&Event<'_>, &ProgressBar),
    ui: Ui,
) -> Outcome<(Summary, Value)> {
    if nodes.gpus_per_actor.is_none()
        && options.frameworks.device.as_deref().is_some_and(|device| device != "cpu")
    {
        return Err(Failure::Usage(
            "--on ray: a model on a GPU needs --gpus-per-actor, such as 1 or 0.5, by which Ray gives it one"
                .to_owned(),
        ));
    }
    let mut words = split(&command_line()).map_err(Failure::Failed)?;
    if !words.is_empty() {
        words.remove(0);
    }
    let line = command_of(program, words)?;
    let here = std::env::current_dir().ok().and_then(|folder| folder.to_str().map(str::to_owned));
    let mut request = Map::new();
    request.insert("line".to_owned(), line.into());
    request.insert("folder".to_owned(), here.into());
    request.insert("actors".to_owned(), json!(nodes.actors));
    request.insert("cpus".to_owned(), nodes.cpus().into());
    request.insert("gpus".to_owned(), nodes.gpus_per_actor.unwrap_or(0.0).into());
    request.insert("most_parts".to_owned(), store.len().div_ceil(options.part_rows).into());
    let mut gatherer = Gatherer::new(store, options)?;
    let mut complete = None;
    let mut reply = |told: &Value, bar: &ProgressBar| -> Outcome<Option<Value>> {
        if let Some(part) = told.get("part").and_then(Value::as_u64) {
            gatherer.completed(part as usize)?;
            return Ok(None);
        }
        let Some(opened) = told.get("opened") else { return Ok(None) };
        let opened: Described = serde_json::from_value(opened.clone())
            .map_err(|e| Failure::Failed(format!("--on ray: the answer of a node is damaged: {e}")))?;
        let left = gatherer.begin(&opened, &|event| print(event, bar))?;
        Ok(Some(match left {
            RemainingWork::Nothing(summary) => {
                complete = Some(summary);
                json!({ "parts": [], "images": 0, "folder": "" })
            }
            RemainingWork::Parts { parts, images, folder } => {
                let folder = folder.to_str().ok_or_else(|| not_utf8(&folder))?;
                json!({ "parts": parts, "images": images, "folder": folder })
            }
        }))
    };
    let found = match on.exchange("embed", request, "embedding", ui, &mut reply) {
        Ok(found) => found,
        Err(failure) => {
            gatherer.give_up();
            return Err(failure);
        }
    };
    if let Some(summary) = complete {
        return Ok((summary, found.cluster));
    }
    let bar = ProgressBar::hidden();
    let summary = gatherer.finish(&|event| print(event, &bar))?;
    Ok((summary, found.cluster))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_shared_as_ray_shares_them() {
        for (text, share) in [("0.5", 0.5), ("1", 1.0), ("2", 2.0), ("0.25", 0.25)] {
            assert_eq!(parse_share(text), Ok(share));
        }
        for wrong in ["0", "-1", "1.5", "NaN", "inf", "half", ""] {
            assert!(parse_share(wrong).unwrap_err().contains("0.5"), "{wrong}");
        }
    }

    #[test]
    fn a_node_runs_the_same_command_and_nothing_typed_hides_what_it_is() {
        let words =
            ["--json", "embed", "--on", "ray", "--model", "m.onnx", "--", "-plate"].map(str::to_owned);
        let line = command_of(&["/bin/wellread".into()], words.to_vec()).unwrap();
        let wanted = [
            "/bin/wellread",
            "--quiet",
            "embed",
            "--part-worker",
            "--on",
            "ray",
            "--model",
            "m.onnx",
            "--",
            "-plate",
        ];
        assert_eq!(line, wanted);
        assert!(command_of(&["/bin/wellread".into()], vec!["recipe".to_owned()]).is_err());
    }

    #[test]
    fn threads_are_those_of_the_actor_on_a_node() {
        let here = NodeArgs { cpus_per_actor: Some(3), ..NodeArgs::default() };
        assert_eq!((here.threads(8), here.is_worker()), (8, false));
        let node = NodeArgs { part_worker: true, ..here };
        assert_eq!((node.threads(8), node.is_worker(), node.on()), (3, true, None));
        assert_eq!(NodeArgs { part_worker: true, ..NodeArgs::default() }.threads(8), 1);
    }
}
