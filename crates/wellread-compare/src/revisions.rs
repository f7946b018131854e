//! Two revisions of this repository: each built in a worktree of its own, then measured in turns.
//!
//! ```text
//!  A, B ─git rev-parse─▶ commits ─worktree, cargo build─▶ CACHE/bin/COMMIT-FEATURES/wellread   (kept)
//!       rounds in random order: A, B, and A once more ──▶ a results folder each ──▶ medians per process
//! ```
//!
//! The user's checkout is never touched. A round runs the same `bench` with each program in a fresh process, and
//! one process gives one value per configuration. So differences between processes (memory layout, the order of
//! hash tables) are part of the noise, as they are for users. The second turn of A is the A/A pair.

use crate::Results;
use crate::judge::Options;
use crate::rounds;
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wellread_measure::interleave::{Event, Plan};
use wellread_measure::intervals::Pairing;
use wellread_report::Table;

/// The revisions to build and to run.
#[derive(Clone, Debug)]
pub struct Revisions {
    /// A folder in the repository.
    pub repository: PathBuf,
    /// Where programs are kept from run to run.
    pub cache: PathBuf,
    /// A folder for results and images of rounds, which the caller removes.
    pub scratch: PathBuf,
    /// Rounds; each runs A twice and B once.
    pub rounds: usize,
    /// Cargo features of the command instead of its default ones.
    pub features: Option<String>,
    /// The arguments after `wellread bench`.
    pub arguments: Vec<String>,
}

/// The commit that a name stands for, if the folder is in a repository that has it.
pub fn commit(repository: &Path, name: &str) -> Option<String> {
    // A name that begins with a dash would be an option.
    if name.is_empty() || name.starts_with('-') {
        return None;
    }
    git(repository, &["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")])
        .ok()
}

/// Where programs are kept: `wellread/revisions` in the user's cache folder.
pub fn cache() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("wellread").join("revisions")
}

impl Revisions {
    /// Builds both and measures them in turns. Sets `options` up for figures of rounds: pairs, and noise floors by row.
    ///
    /// # Errors
    /// A revision that does not build (with what the compiler said), no round that both finished.
    pub fn measure(
        &self,
        [a, b]: [&str; 2],
        options: &mut Options,
        tell: &dyn Fn(&str, usize, usize),
    ) -> Result<[Results; 2]> {
        ensure!(
            !self.arguments.is_empty(),
            "say what to measure after --, such as: -- dataloader --images 200"
        );
        let taken = ["--out", "--output", "--data-dir", "--json"];
        let refused = |word: &&String| taken.iter().any(|t| word == t || word.starts_with(&format!("{t}=")));
        if let Some(word) = self.arguments.iter().find(refused) {
            bail!("{word} is set by the comparison itself; leave it out");
        }
        let commits = [self.commit_of(a)?, self.commit_of(b)?];
        let mut programs = Vec::new();
        for (i, (name, commit)) in [a, b].into_iter().zip(&commits).enumerate() {
            tell(&format!("building {name}"), i, 2);
            programs.push(self.build(commit).with_context(|| format!("cannot build {name} ({commit})"))?);
        }
        let turn = |side: usize, round: usize, twin: bool| -> Result<Results> {
            let out = self.scratch.join(format!("{side}-{round}-{}", u8::from(twin)));
            let mut results =
                self.bench(&programs[side], &out, &self.scratch.join(format!("data-{side}")))?;
            results.tables = results.tables.iter().map(|table| rounds::condensed(table, round)).collect();
            // Gigabytes of images would otherwise wait for the end of all rounds.
            let _ = std::fs::remove_dir_all(&out);
            Ok(results)
        };
        let outcome = Plan::new(options.seed)
            .rounds(self.rounds)
            .warmup(1)
            .add_with_turn("A", |t| turn(0, t.round, t.twin))
            .add_with_turn("B", |t| turn(1, t.round, false))
            .twin("A")
            .run(|p| {
                if !matches!(p.event, Event::Started) {
                    tell("measuring in turns", p.turns_done, p.turns);
                }
            })?;
        let mut sides = Vec::new();
        for variant in outcome.variants {
            if let Some(failure) = variant.failure {
                let name = if variant.name == "B" { b } else { a };
                bail!("{name}: {}", failure.message);
            }
            let mut results = joined(variant.runs.into_iter().map(|run| run.value).collect())?;
            let side = usize::from(variant.name == "B");
            results.label = format!("{} ({})", [a, b][side], &commits[side][..commits[side].len().min(12)]);
            results.details.insert("commit".to_owned(), commits[side].clone().into());
            // That of the folder the programs were started in: the same for both, and of neither.
            if let Some(environment) = results.details.get_mut("environment").and_then(|e| e.as_object_mut())
            {
                environment.remove("git");
            }
            sides.push(results);
        }
        let [a, b, twin] = <[Results; 3]>::try_from(sides).map_err(|_| anyhow!("a round is incomplete"))?;
        options.pairing = Pairing::Paired;
        options.row_floors = rounds::row_floors(&a, &twin, options)?;
        // Those of the processes themselves are replaced by those between processes.
        let without = |results: Results| Results { noise_floors: BTreeMap::new(), ..results };
        Ok([without(a), without(b)])
    }

    fn commit_of(&self, name: &str) -> Result<String> {
        commit(&self.repository, name).with_context(|| {
            format!("{name} is no commit of the repository at {}", self.repository.display())
        })
    }

    /// The program of a commit: kept from an earlier time, or built.
    fn build(&self, commit: &str) -> Result<PathBuf> {
        let features = self.features.as_deref().map_or("default".to_owned(), |list| {
            list.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '+' }).collect()
        });
        let folder = self.cache.join("bin").join(format!("{commit}-{features}"));
        let program = folder.join(format!("wellread{}", std::env::consts::EXE_SUFFIX));
        if program.is_file() {
            return Ok(program);
        }
        // Two that build the same at once would share a worktree.
        std::fs::create_dir_all(&self.cache)
            .with_context(|| format!("cannot make {}", self.cache.display()))?;
        let lock = self.cache.join(".lock");
        let lock = File::create(&lock).with_context(|| format!("cannot write {}", lock.display()))?;
        lock.lock().context("cannot lock the cache of programs")?;
        if program.is_file() {
            return Ok(program);
        }
        let tree = self.cache.join("worktree");
        let tree_text = tree.to_str().context("the cache folder's name is no text")?;
        self.remove(&tree);
        git(&self.repository, &["worktree", "add", "--detach", "--force", tree_text, commit])?;
        let built = self.cargo(&tree);
        let copied = built.and_then(|built| {
            std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            let partial = folder.join(".partial");
            std::fs::copy(&built, &partial)
                .and_then(|_| std::fs::rename(&partial, &program))
                .with_context(|| format!("cannot copy {} to {}", built.display(), program.display()))
        });
        self.remove(&tree);
        copied?;
        Ok(program)
    }

    fn remove(&self, tree: &Path) {
        // A folder that git does not know may lie there all the same, after a run that was killed.
        let _ = std::fs::remove_dir_all(tree);
        let _ = git(&self.repository, &["worktree", "prune"]);
    }

    fn cargo(&self, tree: &Path) -> Result<PathBuf> {
        // Shared by all revisions, so that dependencies are compiled once.
        let target = self.cache.join("target");
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["build", "--release", "--locked", "-p", "wellread-cli", "--bin", "wellread"]);
        if let Some(features) = &self.features {
            command.args(["--no-default-features", "--features", features]);
        }
        let output = command
            .current_dir(tree)
            .env("CARGO_TARGET_DIR", &target)
            .stdin(Stdio::null())
            .output()
            .context("cannot start cargo; is Rust installed?")?;
        if !output.status.success() {
            bail!("cargo build failed:\n{}", last_lines(&output.stderr, 30));
        }
        Ok(target.join("release").join(format!("wellread{}", std::env::consts::EXE_SUFFIX)))
    }

    fn bench(&self, program: &Path, out: &Path, data: &Path) -> Result<Results> {
        let mut command = Command::new(program);
        command.args(["--quiet", "bench"]).args(&self.arguments).arg("--out").arg(out);
        // Images that are measured where they are have no copies.
        if !self.arguments.iter().any(|word| word == "--in-place") {
            command.arg("--data-dir").arg(data);
        }
        let output = command
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", program.display()))?;
        if !output.status.success() {
            bail!("wellread bench {} failed:\n{}", self.arguments.join(" "), last_lines(&output.stderr, 10));
        }
        Results::open(out)
    }
}

/// The runs of one side as one: all rows of each table, and the other facts from the last.
fn joined(runs: Vec<Results>) -> Result<Results> {
    let mut tables: Vec<Table> = Vec::new();
    runs.iter().flat_map(|run| &run.tables).for_each(|table| rounds::append(&mut tables, table));
    let last = runs.into_iter().next_back().context("no round was measured")?;
    Ok(Results { tables, ..last })
}

fn git(repository: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("cannot start git; is it installed?")?;
    if !output.status.success() {
        bail!("git {} failed: {}", arguments.join(" "), last_lines(&output.stderr, 5));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn last_lines(text: &[u8], n: usize) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}
