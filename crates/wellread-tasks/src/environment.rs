//! The Python of a branch: the one the user names, else an environment made of the branch's own lock file or
//! requirements. Every branch that has the same uses it again.
//!
//! ```text
//!  uv.lock, pylock.toml, pyproject.toml, requirements*.txt and what they include, .python-version, the base Python
//!      ──SHA-256──▶ CACHE/environments/KEY   made by uv, or by venv and pip
//! ```
//!
//! Files of tools that neither uv nor pip read (poetry.lock, environment.yml …) are named and count for the key.
//!
//! The branch is imported from its worktree, so that two branches with the same requirements share an environment and none
//! runs the other's code. Where the branch would be installed too (requirements that name a folder of it; pip, which cannot
//! leave it out), the environment is the commit's.

mod requirements;
mod tools;

use crate::adapter::Adapter;
use crate::process::{self, ExitReason};
use crate::repository::{self, Branch};
use crate::stop;
use anyhow::{Context as _, Result, bail};
use requirements::Requirements;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tools::{Tools, interpreter};

/// Written into an environment when it is complete.
const COMPLETE: &str = ".wellread-complete";

/// A Python, and where it comes from in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Python {
    /// The interpreter.
    pub path: PathBuf,
    /// Where it comes from: for the record.
    pub about: String,
    /// Whether it is of an environment that was made here: then the branch's files say what is in it.
    made: bool,
}

/// The environments of a run.
#[derive(Debug)]
pub struct Pythons {
    given: Option<PathBuf>,
    cache: PathBuf,
    made: HashMap<String, Python>,
    /// Notes that were said: once, however many rows a branch has.
    said: HashSet<String>,
    tools: OnceCell<Tools>,
}

impl Pythons {
    /// `given` is the Python that the user names; environments are made in `cache`.
    pub fn new(given: Option<&Path>, cache: &Path) -> Self {
        let named = std::env::var_os("WELLREAD_PYTHON").filter(|value| !value.is_empty());
        let given = given.map(PathBuf::from).or(named.map(PathBuf::from));
        // It is started in a worktree. A name alone is looked for on the PATH.
        let given = given.map(|path| {
            if path.components().count() > 1 { std::path::absolute(&path).unwrap_or(path) } else { path }
        });
        Self {
            given,
            cache: cache.join("environments"),
            made: HashMap::new(),
            said: HashSet::new(),
            tools: OnceCell::new(),
        }
    }

    /// The tools for environments; looked for once.
    fn tools(&self) -> &Tools {
        self.tools.get_or_init(Tools::find)
    }

    /// The environment that a branch will be given, in words: for the plan.
    ///
    /// # Errors
    /// A repository that cannot be read.
    pub fn plan(&self, branch: &Branch) -> Result<String> {
        if let Some(python) = &self.given {
            return Ok(format!("{} as given; no environment is made", python.display()));
        }
        let wanted = Requirements::of(branch)?;
        let unread = wanted.unread(self.tools());
        Ok(match wanted.key(self.tools()) {
            None => format!("python3; {}", nothing_read(unread.as_deref())),
            Some(key) if self.folder(&key).join(COMPLETE).is_file() => {
                with(&format!("environment {key} ({}), there already", wanted.names()), unread.as_deref())
            }
            Some(key) => {
                let by =
                    if self.tools().uv.is_some() { "uv" } else { "venv and pip, because there is no uv" };
                with(
                    &format!("environment {key} ({}), to be made by {by}", wanted.names()),
                    unread.as_deref(),
                )
            }
        })
    }

    /// The Python of a branch, its environment made when there is none yet; `say` is told what takes time.
    ///
    /// # Errors
    /// An environment that cannot be made, or that lacks what the adapter needs.
    pub fn of(
        &mut self,
        branch: &Branch,
        worktree: &Path,
        adapter: &dyn Adapter,
        say: &dyn Fn(&str),
    ) -> Result<Python> {
        let python = if let Some(python) = &self.given {
            Python {
                path: python.clone(),
                about: "as given; no environment was made".to_owned(),
                made: false,
            }
        } else {
            let wanted = Requirements::of(branch)?;
            let unread = wanted.unread(self.tools());
            if let Some(unread) = &unread {
                let note = format!("branch {:?} has {unread}", branch.name);
                if self.said.insert(note.clone()) {
                    say(&note);
                }
            }
            match wanted.key(self.tools()) {
                None => Python {
                    path: "python3".into(),
                    about: format!("the machine's; {}", nothing_read(unread.as_deref())),
                    made: false,
                },
                Some(key) => {
                    if !self.made.contains_key(&key) {
                        let python = self.make(&key, &wanted, branch, worktree, say)?;
                        self.made.insert(key.clone(), python);
                    }
                    self.made[&key].clone()
                }
            }
        };
        check(&python, worktree, adapter.modules().unwrap_or_default())
            .with_context(|| format!("Python of branch {:?} ({})", branch.name, python.about))?;
        Ok(python)
    }

    fn folder(&self, key: &str) -> PathBuf {
        self.cache.join(key)
    }

    fn make(
        &self,
        key: &str,
        wanted: &Requirements,
        branch: &Branch,
        worktree: &Path,
        say: &dyn Fn(&str),
    ) -> Result<Python> {
        let folder = self.folder(key);
        let path = interpreter(&folder);
        let unread = wanted.unread(self.tools());
        let about = with(&format!("environment {key} of {}", wanted.names()), unread.as_deref());
        std::fs::create_dir_all(&self.cache)
            .with_context(|| format!("cannot make {}", self.cache.display()))?;
        let _alone = repository::lock(&self.cache.join(format!("{key}.lock")), || {
            format!("another run is making the environment {key}")
        })?;
        if folder.join(COMPLETE).is_file() {
            return Ok(Python { path, about, made: true });
        }
        // An interrupted run's folder cannot be trusted.
        let _ = std::fs::remove_dir_all(&folder);
        stop::remove_at_end(&folder, &[]);
        say(&format!("making the Python environment of {} from {}", branch.name, wanted.names()));
        let log = self.cache.join(format!("{key}.log"));
        for command in wanted.commands(self.tools(), &folder, worktree) {
            if let Err(error) = run(command, worktree, &log) {
                stop::unregister(&folder);
                let _ = std::fs::remove_dir_all(&folder);
                return Err(error.context(format!(
                    "cannot make the Python environment of branch {:?} (--python names one)",
                    branch.name
                )));
            }
        }
        stop::unregister(&folder);
        std::fs::write(folder.join(COMPLETE), wanted.names())
            .with_context(|| format!("cannot write in {}", folder.display()))?;
        Ok(Python { path, about, made: true })
    }
}

/// Why a branch gets no environment.
fn nothing_read(unread: Option<&str>) -> String {
    unread.map_or_else(
        || "the branch has neither lock file nor requirements".to_owned(),
        |unread| format!("the branch has {unread}"),
    )
}

fn with(text: &str, unread: Option<&str>) -> String {
    unread.map_or_else(|| text.to_owned(), |unread| format!("{text}; the branch has {unread}"))
}

/// Runs a command in the worktree, ended with all it started should this program end; of one that fails, the last lines
/// it said.
fn run(mut command: Command, worktree: &Path, log: &Path) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    // The variables of the environment that this program itself may run in.
    command.env_remove("VIRTUAL_ENV").env_remove("PYTHONPATH").current_dir(worktree);
    let ran = process::run(command, log, log, None);
    stop::wait_if_interrupted();
    let ran = ran?;
    if ran.end == ExitReason::Success {
        return Ok(());
    }
    let said = process::tail(log);
    bail!(
        "{name} failed ({}): {} (all of it: {})",
        ran.end.problem().unwrap_or_default(),
        said.join("; "),
        log.display()
    );
}

/// Whether a Python runs and finds these modules, seen from the worktree.
fn check(python: &Python, worktree: &Path, modules: &[&str]) -> Result<()> {
    const PROBE_SCRIPT: &str = "\
import importlib.util, sys
print(','.join(m for m in sys.argv[1:] if importlib.util.find_spec(m) is None))";
    let path = python.path.display();
    let mut command = Command::new(&python.path);
    command.args(["-c", PROBE_SCRIPT]).args(modules).current_dir(worktree).stdin(Stdio::null());
    let output = command.output().with_context(|| {
        format!("cannot start the Python {path} (--python PATH or WELLREAD_PYTHON names one)")
    })?;
    let missing = String::from_utf8_lossy(&output.stdout);
    let missing = missing.trim();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        bail!("{path} does not work: {last}");
    }
    if missing.is_empty() {
        return Ok(());
    }
    if python.made {
        bail!("lacks {missing}: add it to the branch's requirements, or name another Python with --python");
    }
    bail!("{path} lacks {missing}; install it there, or name another with --python");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_is_named_from_where_the_program_was_started() {
        let given = |path: &str| Pythons::new(Some(Path::new(path)), Path::new("cache")).given.unwrap();
        let from = std::env::current_dir().unwrap();
        assert_eq!(given("env/bin/python"), from.join("env/bin/python"));
        assert_eq!(given("../env/python"), from.join("../env/python"));
        assert_eq!(given("/env/python"), Path::new("/env/python"));
        assert_eq!(given("python3.12"), Path::new("python3.12"));
    }

    #[test]
    fn a_python_that_is_none_or_lacks_modules_is_told() {
        let here = Path::new(".");
        let of = |path: &str| Python { path: path.into(), about: String::new(), made: false };
        let said = |python: &str, modules: &[&str]| match check(&of(python), here, modules) {
            Ok(()) => String::new(),
            Err(error) => format!("{error:#}"),
        };
        assert!(said("/no/such/python", &[]).contains("--python"), "{}", said("/no/such/python", &[]));
        assert!(said("false", &[]).contains("does not work"));
        if Command::new("python3").arg("--version").output().is_ok() {
            assert_eq!(said("python3", &["sys", "json"]), "");
            assert!(said("python3", &["json", "no_such_module"]).contains("lacks no_such_module;"));
            let made = Python { made: true, ..of("python3") };
            let why = check(&made, here, &["no_such_module"]).unwrap_err().to_string();
            assert!(why.contains("the branch's requirements"), "{why}");
        }
    }
}
