//! What a branch asks for, told from its files without checking it out, and the commands that make it.
//!
//! ```text
//!  top of the branch ─▶ requirements*.txt ─▶ files they include (-r, -c)   ┐
//!                       pyproject.toml with [project], uv.lock             ├─▶ key ─▶ commands
//!                       .python-version, requires-python                   ┘
//! ```

use crate::repository::{self, Branch};
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files that requirements may include, all together.
const MOST_INCLUDED: usize = 100;

/// What environments are made with on this machine.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    /// Whether there is uv.
    pub uv: bool,
    /// The Python that environments are made of unless the branch asks for another.
    base: PathBuf,
    /// What it says of its version; empty where it cannot be asked.
    version: String,
}

impl Tools {
    /// Looks for them.
    pub fn find() -> Self {
        let said = |command: &mut Command| {
            let output = command.stdin(Stdio::null()).output().ok().filter(|output| output.status.success());
            output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let base = wellread_worker::python(None);
        let version = said(Command::new(&base).args(["-c", "import sys; print(sys.version)"]));
        let uv = said(Command::new("uv").arg("--version")).is_some();
        Self { uv, base, version: version.unwrap_or_default() }
    }
}

/// The files of a branch that say what it needs, with their texts.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// At the top of the branch.
    files: Vec<(String, String)>,
    /// What requirements include.
    included: Vec<(String, String)>,
    /// The version of Python that is asked for, as uv takes it.
    python: Option<String>,
    /// Whether requirements name a folder of the branch itself.
    itself: bool,
    commit: String,
}

impl Wanted {
    /// Reads them from git's objects.
    ///
    /// # Errors
    /// A repository that cannot be read; a pyproject.toml that is no TOML.
    pub fn of(branch: &Branch) -> Result<Self> {
        let mut files = Vec::new();
        for name in branch.list_top()? {
            let requirements = name.starts_with("requirements") && is_text(&name);
            if (requirements || ["uv.lock", "pyproject.toml", ".python-version"].contains(&name.as_str()))
                && let Some(text) = branch.read(&name)?
            {
                files.push((name, text));
            }
        }
        Self::from_files(files, &branch.commit, |path| branch.read(path))
            .with_context(|| format!("branch {:?}", branch.name))
    }

    fn from_files(
        files: Vec<(String, String)>,
        commit: &str,
        read: impl Fn(&str) -> Result<Option<String>>,
    ) -> Result<Self> {
        let mut wanted = Self { files, commit: commit.to_owned(), ..Self::default() };
        let project = match wanted.text("pyproject.toml") {
            Some(text) => {
                let table = text.parse::<toml::Table>().context("pyproject.toml is no TOML")?;
                table.get("project").cloned()
            }
            None => None,
        };
        // A pyproject.toml that only configures tools asks for nothing, and a lock is of a project.
        if project.is_none() {
            wanted.files.retain(|(name, _)| name != "pyproject.toml" && name != "uv.lock");
        }
        let pinned = wanted.text(".python-version").and_then(|text| {
            text.lines()
                .map(str::trim)
                .find(|line| !line.is_empty() && !line.starts_with('#'))
                .map(str::to_owned)
        });
        let required =
            project.as_ref().and_then(|project| project.get("requires-python")?.as_str().map(str::to_owned));
        wanted.python = pinned.or(required);
        // A version alone asks for no environment.
        if wanted.files.iter().all(|(name, _)| name == ".python-version") {
            wanted.files.clear();
        }
        let mut left: Vec<(String, String)> =
            wanted.files.iter().filter(|(name, _)| is_text(name)).cloned().collect();
        while let Some((name, text)) = left.pop() {
            for line in text.lines() {
                wanted.itself |= names_a_folder(line);
                let Some(path) = included(line).and_then(|file| beside(&name, file)) else { continue };
                let known = wanted.files.iter().chain(&wanted.included).any(|(known, _)| *known == path);
                if !known
                    && wanted.included.len() < MOST_INCLUDED
                    && let Some(text) = read(&path)?
                {
                    left.push((path.clone(), text.clone()));
                    wanted.included.push((path, text));
                }
            }
        }
        wanted.included.sort();
        Ok(wanted)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.files.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// What tells environments apart; `None` when nothing is asked for.
    pub fn key(&self, tools: &Tools) -> Option<String> {
        if self.files.is_empty() {
            return None;
        }
        let installs_itself = self.itself || (!tools.uv && self.text("pyproject.toml").is_some());
        let commit = if installs_itself { self.commit.as_str() } else { "" };
        let by = if tools.uv { "uv" } else { "pip" };
        let mut all = format!("{by}\0{}\0{}\0{commit}\0", tools.base.display(), tools.version);
        for (name, text) in self.files.iter().chain(&self.included) {
            all += &format!("{name}\0{text}\0");
        }
        Some(repository::hash(&all)[..16].to_owned())
    }

    /// The files, by name.
    pub fn names(&self) -> String {
        self.files.iter().chain(&self.included).map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The requirement files that are installed: the plain one, or all where there is none.
    fn requirements(&self) -> Vec<&str> {
        let all = self.files.iter().map(|(name, _)| name.as_str()).filter(|name| is_text(name));
        if self.text("requirements.txt").is_some() { vec!["requirements.txt"] } else { all.collect() }
    }

    /// What makes the environment in `folder`, in order; to be run in the worktree.
    pub fn commands(&self, tools: &Tools, folder: &Path, worktree: &Path) -> Vec<Command> {
        let python = super::interpreter(folder);
        let new = |program: &Path, args: &[&str]| {
            let mut command = Command::new(program);
            command.args(args);
            command
        };
        let project = self.text("pyproject.toml").is_some();
        if !tools.uv {
            let mut make = new(&tools.base, &["-m", "venv"]);
            make.arg(folder);
            let mut install = new(&python, &["-m", "pip", "install", "--disable-pip-version-check"]);
            for file in self.requirements() {
                install.args(["-r", file]);
            }
            if project {
                // Pip cannot install what a project needs without the project; its worktree goes before that copy.
                install.arg(worktree);
            }
            return vec![make, install];
        }
        let uv = Path::new("uv");
        let mut make = new(uv, &["venv", "--quiet", "--no-project", "--python"]);
        match &self.python {
            Some(version) => make.arg(version),
            None => make.arg(&tools.base),
        };
        make.arg(folder);
        if project && self.text("uv.lock").is_some() {
            // Refused where the lock is not of the project as it is now.
            let mut sync = new(uv, &["sync", "--locked", "--no-install-project", "--no-dev"]);
            sync.env("UV_PROJECT_ENVIRONMENT", folder);
            return vec![make, sync];
        }
        let mut install = new(uv, &["pip", "install", "--python"]);
        install.arg(&python);
        for file in self.requirements() {
            install.args(["-r", file]);
        }
        if project {
            install.args(["-r", "pyproject.toml"]);
        }
        vec![make, install]
    }
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
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn wanted_of(top: &[(&str, &str)], below: &[(&str, &str)], commit: &str) -> Wanted {
        let below = files(below);
        let read = |path: &str| Ok(below.iter().find(|(name, _)| name == path).map(|(_, text)| text.clone()));
        Wanted::from_files(files(top), commit, read).unwrap()
    }

    fn wanted(top: &[(&str, &str)]) -> Wanted {
        wanted_of(top, &[], "abc")
    }

    fn tools(uv: bool) -> Tools {
        Tools { uv, base: "python3".into(), version: "3.12".into() }
    }

    const PROJECT: (&str, &str) = ("pyproject.toml", "[project]\nname = 'x'\nrequires-python = '>=3.13'\n");

    #[test]
    fn equal_files_are_one_environment_and_others_are_not() {
        let key = |top: &[(&str, &str)]| wanted(top).key(&tools(true));
        let one = key(&[("requirements.txt", "torch==2\n"), PROJECT, ("uv.lock", "x")]);
        assert_eq!(one, key(&[("requirements.txt", "torch==2\n"), PROJECT, ("uv.lock", "x")]));
        assert_ne!(one, key(&[("requirements.txt", "torch==2\n"), PROJECT, ("uv.lock", "y")]));
        assert_ne!(key(&[("requirements.txt", "a\0b")]), key(&[("requirements.txt", "a")]));
        assert_eq!(key(&[]), None);
        assert_eq!(key(&[(".python-version", "3.12")]), None);
        // Tools' settings, and a lock of nothing.
        assert_eq!(
            key(&[("pyproject.toml", "# [project] is not here\n[tool.ruff]\n"), ("uv.lock", "x")]),
            None
        );
        let read = |_: &str| Ok(None);
        assert!(Wanted::from_files(files(&[("pyproject.toml", "[project")]), "", read).is_err());
        // Another Python, another environment.
        let requirements = wanted(&[("requirements.txt", "six")]);
        let newer = Tools { version: "3.13".into(), ..tools(true) };
        assert_ne!(requirements.key(&tools(true)), requirements.key(&newer));
    }

    #[test]
    fn included_requirements_count() {
        let top = [(
            "requirements.txt",
            "-r requirements/base.txt  # all\n--constraint=limits.txt\n-r https://x/y.txt\n",
        )];
        let below = |version| {
            [
                (
                    "requirements/base.txt",
                    "-c../limits.txt\n--requirement more/deep.txt\n-r ../../outside.txt\n",
                ),
                ("requirements/more/deep.txt", version),
                ("limits.txt", "-r requirements.txt\nnumpy<3\n"),
                ("outside.txt", "no"),
            ]
        };
        let old = wanted_of(&top, &below("six==1.16.0"), "abc");
        assert_eq!(
            old.names(),
            "requirements.txt, limits.txt, requirements/base.txt, requirements/more/deep.txt"
        );
        assert_eq!(old.key(&tools(true)), wanted_of(&top, &below("six==1.16.0"), "def").key(&tools(true)));
        assert_ne!(old.key(&tools(true)), wanted_of(&top, &below("six==1.17.0"), "abc").key(&tools(true)));
        assert_eq!(old.requirements(), ["requirements.txt"]);
    }

    #[test]
    fn an_environment_with_the_branch_in_it_is_the_commits_alone() {
        for line in ["-e .", "--editable=./net", ".", "../x", "net @ file:///x"] {
            let of = |commit| wanted_of(&[("requirements.txt", line)], &[], commit).key(&tools(true));
            assert_ne!(of("abc"), of("def"), "{line}");
        }
        let of = |commit, uv| wanted_of(&[PROJECT], &[], commit).key(&tools(uv));
        assert_eq!(of("abc", true), of("def", true));
        assert_ne!(of("abc", false), of("def", false));
        let of = |commit| {
            wanted_of(&[("requirements.txt", "-e git+https://x/y.git")], &[], commit).key(&tools(true))
        };
        assert_eq!(of("abc"), of("def"));
    }

    #[test]
    fn the_commands_are_what_the_files_ask_for() {
        let shown = |wanted: &Wanted, uv: bool| -> Vec<String> {
            let commands = wanted.commands(&tools(uv), Path::new("E"), Path::new("W"));
            let words = |c: &Command| {
                let all = std::iter::once(c.get_program()).chain(c.get_args());
                all.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
            };
            commands.iter().map(words).collect()
        };
        let dev = ("requirements-dev.txt", "pytest");
        let plain = wanted(&[dev, ("requirements.txt", "numpy")]);
        assert_eq!(
            shown(&plain, true),
            [
                "uv venv --quiet --no-project --python python3 E",
                "uv pip install --python E/bin/python -r requirements.txt"
            ]
        );
        assert_eq!(wanted(&[dev, ("requirements_gpu.txt", "x")]).requirements().len(), 2);
        let locked = wanted(&[PROJECT, ("uv.lock", "x")]);
        assert_eq!(
            shown(&locked, true),
            [
                "uv venv --quiet --no-project --python >=3.13 E",
                "uv sync --locked --no-install-project --no-dev"
            ]
        );
        let pinned = wanted(&[PROJECT, (".python-version", "# ours\n3.12\n")]);
        assert_eq!(shown(&pinned, true)[0], "uv venv --quiet --no-project --python 3.12 E");
        assert!(shown(&pinned, false)[1].ends_with("--disable-pip-version-check W"));
    }
}
