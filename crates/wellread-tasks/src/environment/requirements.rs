//! The requirements of a branch, read from its files without checking it out, and the commands that install
//! them.
//!
//! ```text
//!  requirements*.txt, else one of requirements/ ─▶ files they include (-r, -c)   ┐
//!  pyproject.toml with [project] or [build-system], else setup.py, setup.cfg     ├─▶ key ─▶ commands
//!  uv.lock, pylock.toml, .python-version, requires-python                        ┘
//!  poetry.lock, environment.yml …: not read, which is said
//! ```

use super::tools::{PYLOCK_SINCE, Tools, interpreter};
use crate::repository::{self, Branch};
use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::Command;

/// Files that requirements may include, all together.
const MAX_INCLUDED_FILES: usize = 100;
/// Files beside requirements that uv or pip read.
const READ: [&str; 6] =
    ["uv.lock", "pylock.toml", "pyproject.toml", "setup.py", "setup.cfg", ".python-version"];
/// Files of other tools, which neither reads.
const OF_OTHERS: [&str; 9] = [
    "poetry.lock",
    "pdm.lock",
    "Pipfile",
    "Pipfile.lock",
    "environment.yml",
    "environment.yaml",
    "conda-lock.yml",
    "pixi.toml",
    "pixi.lock",
];
/// Folder of requirements, for branches that have none at the top.
const FOLDER: &str = "requirements";
/// The file of that folder that is installed: the first of these that is there.
const IN_FOLDER: [&str; 4] = ["requirements.txt", "main.txt", "base.txt", "default.txt"];

/// The files of a branch that say what it needs, with their texts.
#[derive(Debug, Default)]
pub(super) struct Requirements {
    /// Those that are read.
    files: Vec<(String, String)>,
    /// The files that requirements include.
    included: Vec<(String, String)>,
    /// Those that ask for something and that neither uv nor pip read.
    of_others: Vec<(String, String)>,
    /// The file by which the branch is a project with dependencies.
    project: Option<&'static str>,
    /// Whether only building the project tells its dependencies: any file of the branch may have a say then.
    built: bool,
    /// The version of Python that is asked for, as uv takes it.
    python: Option<String>,
    /// Whether requirements name a folder of the branch itself.
    itself: bool,
    commit: String,
}

impl Requirements {
    /// Reads them from git's objects.
    ///
    /// # Errors
    /// A repository that cannot be read; a pyproject.toml that is no TOML.
    pub fn of(branch: &Branch) -> Result<Self> {
        let top = branch.list_top()?;
        let below = if top.iter().any(|name| name == FOLDER) { branch.list(FOLDER)? } else { Vec::new() };
        Self::from_names(&top, &below, &branch.commit, &|path: &str| branch.read(path))
            .with_context(|| format!("branch {:?}", branch.name))
    }

    /// `top` are the names at the top of the branch, `below` those in its folder of requirements.
    fn from_names(
        top: &[String],
        below: &[String],
        commit: &str,
        read: &impl Fn(&str) -> Result<Option<String>>,
    ) -> Result<Self> {
        let mut wanted = Self { commit: commit.to_owned(), ..Self::default() };
        for name in top {
            let to = if OF_OTHERS.contains(&name.as_str()) {
                &mut wanted.of_others
            } else if is_requirements(name) || READ.contains(&name.as_str()) {
                &mut wanted.files
            } else {
                continue;
            };
            if let Some(text) = read(name)? {
                to.push((name.clone(), text));
            }
        }
        if !top.iter().any(|name| is_requirements(name)) {
            wanted.add_folder(below, read)?;
        }
        wanted.find_project()?;
        wanted.include(read)?;
        Ok(wanted)
    }

    fn add_folder(&mut self, below: &[String], read: &impl Fn(&str) -> Result<Option<String>>) -> Result<()> {
        if let Some(name) = IN_FOLDER.into_iter().find(|known| below.iter().any(|name| name == known)) {
            let path = format!("{FOLDER}/{name}");
            if let Some(text) = read(&path)? {
                self.files.push((path, text));
            }
        } else if below.iter().any(|name| is_text(name)) {
            // Which of them is meant cannot be told.
            self.of_others.push((format!("{FOLDER}/ without {}", IN_FOLDER.join(", ")), below.join("\n")));
        }
        Ok(())
    }

    /// Finds the file of the project and the Python it asks for, and leaves files out that ask for nothing.
    fn find_project(&mut self) -> Result<()> {
        let parse = |text: &str| text.parse::<toml::Table>().context("pyproject.toml is no TOML");
        let table = self.text("pyproject.toml").map(parse).transpose()?;
        let has = |key: &str| table.as_ref().is_some_and(|table| table.contains_key(key));
        let of_project =
            |key: &str| -> Option<toml::Value> { table.as_ref()?.get("project")?.get(key).cloned() };
        let is_project = has("project");
        let options = self.text("setup.cfg").is_some_and(has_options);
        (self.project, self.built) = if is_project {
            let dynamic = of_project("dynamic");
            let mut dynamic = dynamic.as_ref().and_then(toml::Value::as_array).into_iter().flatten();
            (Some("pyproject.toml"), dynamic.any(|name| name.as_str() == Some("dependencies")))
        } else if !self.requirements().is_empty() || self.text("pylock.toml").is_some() {
            // A build asks for tools and runs the branch's code: only where nothing else says what is needed.
            (None, false)
        } else if has("build-system") {
            (Some("pyproject.toml"), true)
        } else if self.text("setup.py").is_some() {
            (Some("setup.py"), true)
        } else if options && table.is_some() {
            (Some("setup.cfg"), true)
        } else {
            if options {
                self.of_others
                    .extend(self.taken("setup.cfg", "setup.cfg without setup.py or pyproject.toml"));
            }
            (None, false)
        };
        let poetry = table.as_ref().and_then(|table| table.get("tool")?.get("poetry")).is_some();
        if poetry && !is_project && !has("build-system") {
            self.of_others.extend(self.taken("pyproject.toml", "pyproject.toml with [tool.poetry] alone"));
        }
        // A lock is of a project.
        if !is_project {
            self.of_others.extend(self.taken("uv.lock", "uv.lock without [project]"));
        }
        let project = self.project;
        self.files.retain(|(name, _)| match name.as_str() {
            "uv.lock" => is_project,
            "pyproject.toml" | "setup.py" | "setup.cfg" => project == Some(name.as_str()),
            _ => true,
        });
        let pinned = self.text(".python-version").and_then(|text| {
            text.lines()
                .map(str::trim)
                .find(|line| !line.is_empty() && !line.starts_with('#'))
                .map(str::to_owned)
        });
        let required = of_project("requires-python").and_then(|value| value.as_str().map(str::to_owned));
        self.python = pinned.or(required);
        Ok(())
    }

    /// Reads what requirements include.
    fn include(&mut self, read: &impl Fn(&str) -> Result<Option<String>>) -> Result<()> {
        let mut left: Vec<(String, String)> =
            self.files.iter().filter(|(name, _)| is_text(name)).cloned().collect();
        while let Some((name, text)) = left.pop() {
            for line in text.lines() {
                self.itself |= names_a_folder(line);
                let Some(path) = included(line).and_then(|file| beside(&name, file)) else { continue };
                let known = self.files.iter().chain(&self.included).any(|(known, _)| *known == path);
                if !known
                    && self.included.len() < MAX_INCLUDED_FILES
                    && let Some(text) = read(&path)?
                {
                    left.push((path.clone(), text.clone()));
                    self.included.push((path, text));
                }
            }
        }
        self.included.sort();
        Ok(())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.files.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// A file's text under another name.
    fn taken(&self, name: &str, said: &str) -> Option<(String, String)> {
        Some((said.to_owned(), self.text(name)?.to_owned()))
    }

    /// The lock file that says alone what is installed.
    fn lock(&self, tools: &Tools) -> Option<&'static str> {
        let uv = tools.uv.as_ref()?;
        if self.text("uv.lock").is_some() {
            return Some("uv.lock");
        }
        (uv.reads_pylock && self.text("pylock.toml").is_some()).then_some("pylock.toml")
    }

    /// The key that tells environments apart; `None` when nothing is asked for that could be installed.
    pub fn key(&self, tools: &Tools) -> Option<String> {
        let lock = self.lock(tools);
        if lock.is_none() && self.project.is_none() && self.requirements().is_empty() {
            return None;
        }
        let installs_itself = self.itself || self.built || (tools.uv.is_none() && self.project.is_some());
        let commit = if installs_itself { self.commit.as_str() } else { "" };
        let by = if tools.uv.is_some() { "uv" } else { "pip" };
        let mut all = format!("{by}\0{}\0{}\0{commit}\0", tools.base.display(), tools.version);
        // Branches that differ in what is not read are not taken for equal.
        let of_others: &[(String, String)] = if lock.is_some() { &[] } else { &self.of_others };
        for (name, text) in self.files.iter().chain(&self.included).chain(of_others) {
            all += &format!("{name}\0{text}\0");
        }
        Some(repository::hash(&all)[..16].to_owned())
    }

    /// The files, by name.
    pub fn names(&self) -> String {
        self.files.iter().chain(&self.included).map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The files of the branch that nobody reads, with a part of each text's hash, and the advice: "poetry.lock
    /// (1a2b3c4d), which is not read: …".
    pub fn unread(&self, tools: &Tools) -> Option<String> {
        if self.lock(tools).is_some() {
            return None;
        }
        let name = |(name, text): (&str, &str)| format!("{name} ({})", &repository::hash(text)[..8]);
        let listed = |names: &[String]| {
            format!("{}, which {} not read", names.join(", "), if names.len() == 1 { "is" } else { "are" })
        };
        let others: Vec<String> =
            self.of_others.iter().map(|(file, text)| name((file.as_str(), text.as_str()))).collect();
        let locks = ["uv.lock", "pylock.toml"].into_iter();
        let locks: Vec<String> = locks.filter_map(|lock| Some(name((lock, self.text(lock)?)))).collect();
        let mut said = Vec::new();
        if !locks.is_empty() {
            let [major, minor, patch] = PYLOCK_SINCE;
            said.push(format!("{}: install uv {major}.{minor}.{patch} or newer", listed(&locks)));
        }
        if !others.is_empty() {
            said.push(format!(
                "{}: name an environment made of it with --python, or export it to requirements.txt",
                listed(&others)
            ));
        }
        Some(said.join("; ")).filter(|said| !said.is_empty())
    }

    /// The requirement files that are installed: the plain one, or all where there is none.
    fn requirements(&self) -> Vec<&str> {
        let all = self.files.iter().map(|(name, _)| name.as_str()).filter(|name| is_text(name));
        if self.text("requirements.txt").is_some() { vec!["requirements.txt"] } else { all.collect() }
    }

    /// The commands that make the environment in `folder`, in order; to be run in the worktree.
    pub fn commands(&self, tools: &Tools, folder: &Path, worktree: &Path) -> Vec<Command> {
        let python = interpreter(folder);
        let new = |program: &Path, args: &[&str]| {
            let mut command = Command::new(program);
            command.args(args);
            command
        };
        let Some(uv) = &tools.uv else {
            let mut make = new(&tools.base, &["-m", "venv"]);
            make.arg(folder);
            let mut install = new(&python, &["-m", "pip", "install", "--disable-pip-version-check"]);
            for file in self.requirements() {
                install.args(["-r", file]);
            }
            // Beside requirements with hashes pip refuses what has none; those are a whole lock.
            let hashed = self.files.iter().chain(&self.included).any(|(_, text)| text.contains("--hash="));
            if self.project.is_some() && !hashed {
                // Pip cannot install what a project needs without the project; its worktree goes before that copy.
                install.arg(worktree);
            }
            return vec![make, install];
        };
        let mut make = new(&uv.program, &["venv", "--quiet", "--no-project", "--python"]);
        match &self.python {
            Some(version) => make.arg(version),
            None => make.arg(&tools.base),
        };
        make.arg(folder);
        let lock = self.lock(tools);
        if lock == Some("uv.lock") {
            // Refused where the lock is not of the project as it is now.
            let mut sync = new(&uv.program, &["sync", "--locked", "--no-install-project", "--no-dev"]);
            sync.env("UV_PROJECT_ENVIRONMENT", folder);
            return vec![make, sync];
        }
        let mut install = new(&uv.program, &["pip", "install", "--python"]);
        install.arg(&python);
        let files = match lock {
            Some(lock) => vec![lock],
            None => self.requirements().into_iter().chain(self.project).collect(),
        };
        for file in files {
            install.args(["-r", file]);
        }
        vec![make, install]
    }
}

fn is_requirements(name: &str) -> bool {
    name.starts_with("requirements") && is_text(name)
}

/// Whether a setup.cfg describes a package, and does not only hold settings of tools.
fn has_options(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == "[options]")
}

fn is_text(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "txt")
}

/// The file that a line of requirements includes.
fn included(line: &str) -> Option<&str> {
    let line = line.trim();
    for long in ["--requirement", "--constraint"] {
        if let Some(rest) = line.strip_prefix(long) {
            return rest
                .strip_prefix('=')
                .or_else(|| rest.strip_prefix(char::is_whitespace))
                .map(uncommented);
        }
    }
    ["-r", "-c"].iter().find_map(|short| line.strip_prefix(short)).map(uncommented)
}

fn uncommented(text: &str) -> &str {
    text.split_once(" #").map_or(text, |(text, _)| text).trim()
}

/// Whether a line of requirements installs a folder.
fn names_a_folder(line: &str) -> bool {
    let line = line.trim();
    let editable =
        ["-e ", "--editable"].iter().any(|option| line.starts_with(option)) && !line.contains("://");
    editable || line == "." || line.starts_with("./") || line.starts_with("../") || line.contains("file:")
}

/// The path in the branch of a file that `of` names; `None` of a URL and of what lies outside of the branch.
fn beside(of: &str, file: &str) -> Option<String> {
    if file.is_empty() || file.contains("://") || file.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = of.split('/').collect();
    parts.pop();
    for part in file.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests;
