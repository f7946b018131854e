//! A branch's Python environment: made once of its requirements, used again, never for the branch itself.

use crate::support::{Sandbox, alone, git};
use anyhow::Result;
use std::path::Path;
use std::process::Command;
use wellread_tasks::adapter::{Adapter, Site};
use wellread_tasks::environment::Pythons;
use wellread_tasks::repository::{Branch, Repository};
use wellread_tasks::task::{Mode, Row};

/// An adapter that needs a module.
struct Needs(&'static [&'static str]);

impl Adapter for Needs {
    fn name(&self) -> &'static str {
        "needs"
    }

    fn suits(&self, _: &Branch, _: &Row) -> Result<bool> {
        Ok(false)
    }

    fn check(&self, _: &Branch, _: &Row, _: Mode) -> Result<()> {
        Ok(())
    }

    fn modules(&self) -> Option<&'static [&'static str]> {
        Some(self.0)
    }

    fn command(&self, site: &Site<'_>) -> Result<Command> {
        Ok(site.python_command())
    }
}

/// Environments are made of the machine's `python3`, which `scripts/system-packages.sh` has given venv and ensurepip.
fn without_a_named_python() {
    let asked = Command::new("python3").args(["-c", "import venv, ensurepip"]).output();
    assert!(
        asked.is_ok_and(|output| output.status.success()),
        "this test makes Python environments: python3 with venv and ensurepip must be there (Debian: python3-venv)"
    );
    // SAFETY: tests of this binary run one after the other (`alone`), and nobody else reads it.
    unsafe { std::env::remove_var("WELLREAD_PYTHON") };
}

/// Makes a wheel of a module `tiny_extra` in a folder, so that there is something to install without a network.
fn make_wheel(folder: &Path) {
    const MAKE: &str = r"
import sys, zipfile
info = 'tiny_extra-1.0.dist-info/'
files = {
    'tiny_extra.py': 'x = 3\n',
    info + 'METADATA': 'Metadata-Version: 2.1\nName: tiny-extra\nVersion: 1.0\n',
    info + 'WHEEL': 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
}
files[info + 'RECORD'] = ''.join(f'{name},,\n' for name in [*files, info + 'RECORD'])
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
";
    std::fs::create_dir_all(folder).unwrap();
    let wheel = folder.join("tiny_extra-1.0-py3-none-any.whl");
    let made = Command::new("python3").args(["-c", MAKE]).arg(wheel).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn equal_requirements_share_an_environment() {
    let _alone = alone();
    without_a_named_python();
    let sandbox = Sandbox::new();
    // Nothing to install: no network is needed.
    git(&sandbox.repo(), &["checkout", "--quiet", "main"]);
    sandbox.commit("requirements.txt", "# nothing\n", "requirements");
    sandbox.commit("local_module.py", "x = 1\n", "a module");
    git(&sandbox.repo(), &["checkout", "--quiet", "-b", "same"]);
    sandbox.commit("local_module.py", "x = 2\n", "the branch's own");
    git(&sandbox.repo(), &["checkout", "--quiet", "-b", "other"]);
    let wheels = sandbox.path("wheels");
    make_wheel(&wheels);
    let requirements = format!("--no-index\n--find-links {}\ntiny-extra==1.0\n", wheels.display());
    sandbox.commit("requirements.txt", &requirements, "other requirements");
    let config = sandbox.table(&["main"]);
    let repository = Repository::open(&config.repository, &config.cache).unwrap();
    let branch = |name: &str| repository.branch(name).unwrap();
    let (main, same, other) = (branch("main"), branch("same"), branch("other"));
    let mut pythons = Pythons::new(None, &config.cache);
    assert!(pythons.plan(&main).unwrap().contains("to be made by"), "{}", pythons.plan(&main).unwrap());
    let tree = repository.worktree(&main).unwrap();
    let made = pythons.of(&main, &tree, &Needs(&["local_module"]), &|_| ()).unwrap();
    assert!(made.path.starts_with(config.cache.join("environments")), "{made:?}");
    // Another branch, another run: the same environment, and no branch is installed in it.
    let mut again = Pythons::new(None, &config.cache);
    assert!(again.plan(&same).unwrap().contains("there already"), "{}", again.plan(&same).unwrap());
    let told = std::cell::Cell::new(0);
    let used = again
        .of(&same, &repository.worktree(&same).unwrap(), &Needs(&["local_module"]), &|_| {
            told.set(told.get() + 1);
        })
        .unwrap();
    assert_eq!((&used, told.get()), (&made, 0));
    // Other requirements: another environment, with what they ask for in it and in no other.
    let theirs = again.of(&other, &repository.worktree(&other).unwrap(), &Needs(&["tiny_extra"]), &|_| ());
    let theirs = theirs.unwrap();
    assert_ne!(theirs.path, made.path);
    assert!(theirs.path.starts_with(config.cache.join("environments")), "{theirs:?}");
    assert_eq!(again.of(&other, &tree, &Needs(&["tiny_extra"]), &|_| ()).unwrap(), theirs);
    let error = again.of(&same, &tree, &Needs(&["tiny_extra"]), &|_| ()).unwrap_err();
    assert!(format!("{error:#}").contains("lacks tiny_extra"), "{error:#}");
    // The error names the missing module.
    let error = again.of(&same, &tree, &Needs(&["no_such_module"]), &|_| ()).unwrap_err();
    assert!(format!("{error:#}").contains("lacks no_such_module"), "{error:#}");
    // A Python that is given is used, and no environment is made.
    let given = Pythons::new(Some(Path::new("/usr/bin/python-of-mine")), &config.cache);
    assert!(
        given.plan(&other).unwrap().contains("as given; no environment"),
        "{}",
        given.plan(&other).unwrap()
    );
}

#[test]
fn requirements_that_cannot_be_met_are_said() {
    let _alone = alone();
    without_a_named_python();
    let sandbox = Sandbox::new();
    sandbox.commit("requirements.txt", "./no-such-folder\n", "requirements");
    let config = sandbox.table(&["main"]);
    let repository = Repository::open(&config.repository, &config.cache).unwrap();
    let main = repository.branch("main").unwrap();
    let tree = repository.worktree(&main).unwrap();
    let mut pythons = Pythons::new(None, &config.cache);
    let error = format!("{:#}", pythons.of(&main, &tree, &Needs(&[]), &|_| ()).unwrap_err());
    assert!(error.contains("--python names one") && error.contains("no-such-folder"), "{error}");
    assert!(pythons.plan(&main).unwrap().contains("to be made"), "half an environment is none");
}

#[test]
fn lock_files_of_other_tools_are_said_once() {
    let _alone = alone();
    without_a_named_python();
    let sandbox = Sandbox::new();
    sandbox.commit("poetry.lock", "# one\n", "a lock");
    let config = sandbox.table(&["main"]);
    let repository = Repository::open(&config.repository, &config.cache).unwrap();
    let main = repository.branch("main").unwrap();
    let tree = repository.worktree(&main).unwrap();
    let mut pythons = Pythons::new(None, &config.cache);
    let plan = pythons.plan(&main).unwrap();
    assert!(plan.starts_with("python3; the branch has poetry.lock ("), "{plan}");
    let notes = std::cell::RefCell::new(Vec::new());
    let say = |note: &str| notes.borrow_mut().push(note.to_owned());
    for _ in 0..2 {
        let python = pythons.of(&main, &tree, &Needs(&["json"]), &say).unwrap();
        assert!(python.about.contains("which is not read"), "{python:?}");
    }
    let notes = notes.into_inner();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with("branch \"main\" has poetry.lock (") && notes[0].contains("--python"),
        "{notes:?}"
    );
}
