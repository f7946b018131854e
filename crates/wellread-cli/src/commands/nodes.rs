//! `--on slurm|ray[:ADDRESS]` of the commands that measure: the command in parts, each on a node of a cluster that has nothing
//! else to do.
//!
//! ```text
//!  wellread infer … --on slurm ─▶ parts (models; of tasks experiments) ─▶ a queue ─┬▶ node a: wellread infer … --node-part 0:FOLDER
//!        ▲                                                                         └▶ node b: wellread infer … --node-part 1:FOLDER
//!        └──────────── results of the folders, as those of one run ◀── each row with the facts of its node
//! ```
//!
//! A node has one part at a time, so that timings are as on an idle machine. Results that a command compares with each
//! other are one part, and never of two nodes. All nodes must see the program and the paths.

mod part;
mod slurm;

use super::command_line::{command_line, split};
use super::on::{On, parse_on};
use crate::output::{Failure, Outcome, Ui};
use serde_json::{Map, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use wellread_measure::environment::Node;

use part::{LOG, with_log};
pub use part::{Part, parts, results_of};
pub use slurm::interrupt;

/// Where a command that measures is run.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct NodeArgs {
    /// Run on the nodes of a cluster, one part of the work on each at a time. slurm starts parts with srun, on the
    /// nodes of the allocation or else on whole nodes that it asks for. ray and ray:ADDRESS take a Ray cluster. That needs a
    /// Python with the package wellread and Ray (pip install '.[ray]' in a clone). All nodes must see this program and the
    /// paths.
    #[arg(long, value_name = "slurm|ray[:ADDRESS]", value_parser = parse_cluster, conflicts_with = "trace")]
    pub on: Option<Cluster>,
    /// A part of the work, and the folder of its results; a node runs this.
    #[arg(long, hide = true, value_name = "NUMBER:FOLDER", value_parser = parse_part)]
    node_part: Option<PartArg>,
}

/// The manager of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cluster {
    /// Slurm, by `srun`.
    Slurm,
    /// Ray.
    Ray(On),
}

/// The part that this process does.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PartArg {
    number: usize,
    folder: PathBuf,
}

fn parse_cluster(text: &str) -> Result<Cluster, String> {
    if text == "slurm" {
        return Ok(Cluster::Slurm);
    }
    parse_on(text).map(Cluster::Ray).map_err(|_| format!("{text:?} is none of slurm, ray and ray:ADDRESS"))
}

fn parse_part(text: &str) -> Result<PartArg, String> {
    let part = text.split_once(':').and_then(|(number, folder)| {
        let folder = PathBuf::from(Some(folder).filter(|folder| !folder.is_empty())?);
        Some(PartArg { number: number.parse().ok()?, folder })
    });
    part.ok_or_else(|| format!("{text:?} is no part: NUMBER:FOLDER"))
}

impl NodeArgs {
    /// The cluster, unless this process does a part already.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.on.as_ref().filter(|_| self.node_part.is_none())
    }

    /// The part that this process does: its number, the folder of its results, and the node that it is on.
    pub fn part(&self) -> Option<(usize, &Path, Node)> {
        self.node_part.as_ref().map(|part| (part.number, part.folder.as_path(), Node::here()))
    }
}

/// The command of a part: this one with the part behind its options. Behind a `--` that was typed there are none.
fn command_of(program: &[OsString], words: &[String], number: usize, part: &Part) -> Vec<OsString> {
    let mut line = program.to_vec();
    line.push("--quiet".into());
    let (options, others) = words.split_at(words.iter().position(|word| word == "--").unwrap_or(words.len()));
    line.extend(options.iter().map(OsString::from));
    let mut of = OsString::from(format!("{number}:"));
    of.push(&part.folder);
    line.extend(["--node-part".into(), of]);
    line.extend(others.iter().map(OsString::from));
    line
}

impl Cluster {
    /// Runs this command in parts; says for each part how its command failed, if it did. Its output is in its folder.
    ///
    /// # Errors
    /// No cluster of that kind here.
    pub fn run(&self, program: &[OsString], parts: &[Part], ui: Ui) -> Outcome<Vec<Option<String>>> {
        let mut words = split(&command_line()).map_err(Failure::Failed)?;
        if !words.is_empty() {
            words.remove(0);
        }
        words.retain(|word| !["--json", "--quiet", "-q"].contains(&word.as_str()));
        let commands: Vec<Vec<OsString>> =
            parts.iter().enumerate().map(|(at, part)| command_of(program, &words, at, part)).collect();
        let ends = match self {
            Self::Slurm => slurm::run(&commands, parts, ui)?,
            Self::Ray(on) => on_ray(on, &commands, parts, ui)?,
        };
        let ends = ends.into_iter().zip(parts);
        Ok(ends.map(|(end, part)| end.map(|why| with_log(&why, &part.folder.join(LOG)))).collect())
    }
}

/// Has a Ray cluster run the commands, one on a node at a time.
fn on_ray(on: &On, commands: &[Vec<OsString>], parts: &[Part], ui: Ui) -> Outcome<Vec<Option<String>>> {
    let mut lines = Vec::new();
    for (command, part) in commands.iter().zip(parts) {
        let words: Option<Vec<&str>> = command.iter().map(|word| word.to_str()).collect();
        let (Some(words), Some(log)) = (words, part.folder.join(LOG).to_str().map(str::to_owned)) else {
            return Err(Failure::Failed(format!(
                "{}: the words of a command for a cluster must be UTF-8 text (hint: rename it)",
                part.folder.display()
            )));
        };
        lines.push(json!({ "line": words, "log": log }));
    }
    let folder = std::env::current_dir().ok().and_then(|folder| folder.to_str().map(str::to_owned));
    let mut request = Map::new();
    request.insert("commands".to_owned(), lines.into());
    request.insert("folder".to_owned(), folder.into());
    let found = on.send("run", request, "parts", ui)?;
    let ends = found.result.as_array().filter(|ends| ends.len() == parts.len());
    let ends = ends.ok_or_else(|| Failure::Failed("--on ray: the answer is damaged".to_owned()))?;
    Ok(ends.iter().map(|end| end.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_and_a_part_are_named() {
        assert_eq!(parse_cluster("slurm"), Ok(Cluster::Slurm));
        assert_eq!(parse_cluster("ray:auto"), parse_on("ray:auto").map(Cluster::Ray));
        for wrong in ["", "slurm:", "srun", "ray:"] {
            assert!(parse_cluster(wrong).unwrap_err().contains("none of slurm, ray"), "{wrong}");
        }
        let part = parse_part("3:/a:b");
        assert_eq!(part, Ok(PartArg { number: 3, folder: PathBuf::from("/a:b") }));
        for wrong in ["", "3", "3:", ":/a", "x:/a", "-1:/a"] {
            assert!(parse_part(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_part_is_the_same_command_with_the_part_behind_it() {
        let part = Part { name: "resnet50".to_owned(), folder: PathBuf::from("/out/1") };
        let words = ["infer", "--batch-sizes", "1", "4"].map(str::to_owned);
        let line = command_of(&["/bin/wellread".into()], &words, 1, &part);
        let wanted =
            ["/bin/wellread", "--quiet", "infer", "--batch-sizes", "1", "4", "--node-part", "1:/out/1"];
        assert_eq!(line, wanted.map(OsString::from));
    }

    #[test]
    fn a_part_is_an_option_where_there_are_words_that_are_none() {
        let part = Part { name: "a".to_owned(), folder: PathBuf::from("/out/0") };
        let words = ["tasks", "--on", "slurm", "--", "train"].map(str::to_owned);
        let line = command_of(&["/bin/wellread".into()], &words, 0, &part);
        let wanted =
            ["/bin/wellread", "--quiet", "tasks", "--on", "slurm", "--node-part", "0:/out/0", "--", "train"];
        assert_eq!(line, wanted.map(OsString::from));
    }
}
