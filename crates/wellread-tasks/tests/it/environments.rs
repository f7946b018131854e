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

fn can_make_environments() -> bool {
    let asked = Command::new("python3").args(["-c", "import venv, ensurepip"]).output();
    asked.is_ok_and(|output| output.status.success())
}

#[test]
fn equal_requirements_share_an_environment() {
    let _alone = alone();
    if !can_make_environments() {
        return;
    }
    let sandbox = Sandbox::new();
    // Nothing to install: no network is needed.
    git(&sandbox.repo(), &["checkout", "--quiet", "main"]);
    sandbox.commit("requirements.txt", "# nothing\n", "requirements");
    sandbox.commit("local_module.py", "x = 1\n", "a module");
    git(&sandbox.repo(), &["checkout", "--quiet", "-b", "same"]);
    sandbox.commit("local_module.py", "x = 2\n", "the branch's own");
    git(&sandbox.repo(), &["checkout", "--quiet", "-b", "other"]);
    sandbox.commit("requirements-extra.txt", "# more\n", "other requirements");
    let config = sandbox.table(&["main"]);
    let repository = Repository::open(&config.repository, &config.cache).unwrap();
    let branch = |name: &str| repository.branch(name).unwrap();
    let (main, same, other) = (branch("main"), branch("same"), branch("other"));
    let mut pythons = Pythons::new(None, &config.cache);
    if std::env::var_os("WELLREAD_PYTHON").is_some() {
        return;
    }
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
    assert_eq!((used, told.get()), (made, 0));
    assert_ne!(again.plan(&other).unwrap(), again.plan(&same).unwrap());
    // What it lacks is said.
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
    if !can_make_environments() || std::env::var_os("WELLREAD_PYTHON").is_some() {
        return;
    }
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
