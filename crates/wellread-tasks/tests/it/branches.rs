//! The user's repository stays as it is, whatever it is like; branches come from where they are.

use crate::support::{Sandbox, alone, git, refused, run};
use std::path::Path;
use wellread_tasks::repository::Repository;

/// Every file of a folder with its content, git's own included.
fn everything(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                let content = std::fs::read(&path).unwrap_or_default();
                all.push((path.to_string_lossy().into_owned(), content));
            }
        }
    }
    all.sort();
    all
}

/// Staged, unstaged and untracked changes.
fn make_dirty(repo: &Path) {
    std::fs::write(repo.join("README"), "staged\n").unwrap();
    git(repo, &["add", "README"]);
    std::fs::write(repo.join("README"), "staged, and then changed\n").unwrap();
    std::fs::write(repo.join("data.txt"), "unstaged\n").unwrap();
    std::fs::write(repo.join("new.txt"), "untracked\n").unwrap();
    std::fs::write(repo.join("configs/experiment/unet.sh"), "exit 9\n").unwrap();
}

#[test]
fn not_a_byte_of_a_dirty_repository_changes() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let repo = sandbox.repo();
    make_dirty(&repo);
    let status = git(&repo, &["status", "--porcelain=v2", "--branch"]);
    assert_eq!(status.lines().filter(|line| !line.starts_with('#')).count(), 4, "{status}");
    let before = everything(&repo);
    let outcome = run(&sandbox.table(&["main", "slow-model"])).unwrap();
    // The commit was measured, not what lies in the tree.
    assert!(outcome.entries.iter().all(|entry| entry.success), "{:?}", outcome.entries[0].error);
    assert!(everything(&repo) == before, "git's own files are the user's too");
    assert_eq!(git(&repo, &["status", "--porcelain=v2", "--branch"]), status);
    assert_eq!(git(&repo, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_hook_of_the_user_is_not_run() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let hook = sandbox.repo().join(".git/hooks/post-checkout");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", sandbox.path("ran").display())).unwrap();
    std::os::unix::fs::PermissionsExt::set_mode(&mut hook.metadata().unwrap().permissions(), 0o755);
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert!(run(&sandbox.table(&["main"])).unwrap().entries[0].success);
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn a_branch_that_is_only_at_the_remote_is_fetched() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let clone = sandbox.path("clone");
    git(sandbox.dir.path(), &["clone", "--quiet", "repo", "clone"]);
    // Made after the clone, so that it has not heard of it.
    git(&sandbox.repo(), &["checkout", "--quiet", "-b", "feature/new", "main"]);
    sandbox.branch("new", "echo new\n");
    git(&sandbox.repo(), &["tag", "-a", "v1", "-m", "v1"]);
    let commit = git(&sandbox.repo(), &["rev-parse", "HEAD"]);
    git(&clone, &["remote", "set-url", "origin", "../repo"]);
    let before = everything(&clone);
    let mut config = sandbox.table(&["feature/new", "slow-model", "v1", commit.trim()]);
    config.repository.clone_from(&clone);
    let outcome = run(&config).unwrap();
    assert!(outcome.entries.iter().all(|entry| entry.success), "{:?}", outcome.entries);
    assert_eq!(outcome.entries[0].git_info.commit_hash.as_deref(), Some(commit.trim()));
    assert_eq!(outcome.entries[2].git_info.commit_hash.as_deref(), Some(commit.trim()));
    assert!(
        outcome.notes.iter().any(|note| note == "feature/new: fetched from origin"),
        "{:?}",
        outcome.notes
    );
    assert!(
        outcome.notes.iter().any(|note| note.contains("slow-model: as last fetched")),
        "{:?}",
        outcome.notes
    );
    assert!(everything(&clone) == before);
    // Names at the remote are suggested too; a remote that is gone is said.
    let mut unknown = sandbox.table(&["feature/enw"]);
    unknown.repository.clone_from(&clone);
    assert!(refused(&unknown).contains("feature/new"), "{}", refused(&unknown));
    let mut short = sandbox.table(&[&commit[..9]]);
    short.repository.clone_from(&clone);
    assert!(refused(&short).contains("by its full hash"), "{}", refused(&short));
    std::fs::rename(sandbox.repo(), sandbox.path("moved")).unwrap();
    assert!(refused(&unknown).contains("remote origin could not be asked"), "{}", refused(&unknown));
}

#[test]
fn shallow_and_bare_repositories_and_subfolders_will_do() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let url = format!("file://{}", sandbox.repo().display());
    for (name, args) in
        [("shallow", ["--depth=1", "--single-branch"]), ("bare", ["--bare", "--no-hardlinks"])]
    {
        git(sandbox.dir.path(), &["clone", "--quiet", args[0], args[1], &url, name]);
        let before = everything(&sandbox.path(name));
        let mut config = sandbox.table(&["main", "slow-model"]);
        config.repository = sandbox.path(name);
        config.output = sandbox.path(&format!("{name}.json"));
        let outcome = run(&config).unwrap();
        assert!(outcome.entries.iter().all(|entry| entry.success), "{name}");
        assert!(everything(&sandbox.path(name)) == before, "{name}");
    }
    let mut config = sandbox.table(&["HEAD"]);
    config.repository = sandbox.repo().join("configs");
    assert!(run(&config).unwrap().entries[0].success);
}

/// A repository with one file, beside the sandbox's.
fn other_repository(sandbox: &Sandbox, name: &str) -> std::path::PathBuf {
    let folder = sandbox.path(name);
    std::fs::create_dir_all(&folder).unwrap();
    git(&folder, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(folder.join("inside.txt"), format!("of {name}\n")).unwrap();
    git(&folder, &["add", "--all"]);
    git(&folder, &["commit", "--quiet", "-m", name]);
    folder
}

#[test]
fn submodules_are_there_and_the_users_settings_stay() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let (deep, module) = (other_repository(&sandbox, "deep"), other_repository(&sandbox, "module"));
    let add = |to: &Path, url: &Path, path: &str| {
        git(to, &["submodule", "--quiet", "add", &format!("file://{}", url.display()), path]);
    };
    add(&module, &deep, "below/deep");
    git(&module, &["commit", "--quiet", "-m", "with a submodule of its own"]);
    let repo = sandbox.repo();
    git(&repo, &["checkout", "--quiet", "-b", "with-module"]);
    add(&repo, &module, "vendor/module");
    git(&repo, &["submodule", "--quiet", "update", "--init", "--recursive"]);
    sandbox.branch("module", "cat vendor/module/inside.txt vendor/module/below/deep/inside.txt\n");
    git(&repo, &["checkout", "--quiet", "main"]);
    // Where another branch is checked out, clones of submodules are left, and no files of theirs.
    std::fs::remove_dir_all(repo.join("vendor")).unwrap();
    git(sandbox.dir.path(), &["clone", "--quiet", "repo", "fresh"]);
    let fresh = |branches: &[&str]| {
        let mut config = sandbox.table(branches);
        config.repository = sandbox.path("fresh");
        config
    };
    let assert_reads_them = |outcome: wellread_tasks::suite::Outcome| {
        let entry = &outcome.entries[0];
        assert!(entry.success, "{:?}", entry.error);
        let log = std::fs::read_to_string(entry.repeats[0].output_dir.join("log.txt")).unwrap();
        assert_eq!(log, "of module\nof deep\n");
    };
    // A clone without them fetches them. Git takes submodules from folders only where it is told that it may.
    let said = refused(&fresh(&["with-module"]));
    assert!(said.contains("submodules of with-module"), "{said}");
    let allowed = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "protocol.file.allow"),
        ("GIT_CONFIG_VALUE_0", "always"),
    ];
    // SAFETY: tests of this binary run their tasks one after the other (`alone`), and nobody else reads these.
    allowed.iter().for_each(|(name, value)| unsafe { std::env::set_var(name, value) });
    let outcome = run(&fresh(&["with-module", "main"]));
    // SAFETY: as above.
    allowed.iter().for_each(|(name, _)| unsafe { std::env::remove_var(name) });
    assert_reads_them(outcome.unwrap());
    // Those that the user has are not fetched: where they came from is gone.
    for gone in [&deep, &module] {
        std::fs::rename(gone, gone.with_extension("gone")).unwrap();
    }
    let before = everything(&repo);
    assert_reads_them(run(&sandbox.table(&["with-module", "main"])).unwrap());
    assert!(everything(&repo) == before);
    let said = refused(&fresh(&["with-module"]));
    assert!(said.contains("submodules of with-module"), "{said}");
}

#[test]
fn what_a_killed_run_has_left_is_removed_by_the_next() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let config = sandbox.table(&["main"]);
    {
        let repository = Repository::open(&config.repository, &config.cache).unwrap();
        let tree = repository.worktree(&repository.branch("main").unwrap()).unwrap();
        // As a task may leave it: a folder from which nothing can be removed.
        let closed = tree.join("closed");
        std::fs::create_dir_all(closed.join("inner")).unwrap();
        std::fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o500)).unwrap();
        let left = tree.parent().unwrap().join("0123456789ab-1");
        std::fs::create_dir_all(left.join("of a dead run")).unwrap();
        assert_eq!(repository.removed, 0);
    }
    assert_eq!(sandbox.leftovers(), [""; 0]);
    let cache = std::fs::read_dir(sandbox.path("cache/worktrees")).unwrap().next().unwrap().unwrap().path();
    std::fs::create_dir_all(cache.join("4711.git/objects")).unwrap();
    let repository = Repository::open(&config.repository, &config.cache).unwrap();
    assert_eq!(repository.removed, 1);
}

#[test]
fn an_empty_repository_has_no_branches() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let empty = sandbox.path("empty");
    std::fs::create_dir_all(&empty).unwrap();
    git(&empty, &["init", "--quiet"]);
    let mut config = sandbox.table(&["main"]);
    config.repository = empty;
    assert!(refused(&config).contains("the repository has no commits"), "{}", refused(&config));
}
