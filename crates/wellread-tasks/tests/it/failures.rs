//! Failures: told before anything runs where they can be known, recorded where not.

use crate::support::{Sandbox, alone, git, refused, run};
use std::path::Path;
use std::time::Duration;
use wellread_tasks::config::Config;
use wellread_tasks::results::Entry;
use wellread_tasks::task::Mode;

#[test]
fn what_can_be_known_is_said_before_anything_runs() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let header = "branch,experiment,trainer,checkpoint_path,data_path\n";
    let cases = [
        ("mian,unet,cpu,,", "line 2: there is no branch, tag or commit \"mian\"; the nearest are main"),
        ("slow-lodaing,unet,cpu,,", "the nearest are slow-loading"),
        ("-x,unet,cpu,,", "\"-x\" is no name"),
        ("main,unett,cpu,,", "there is no program \"unett\"; configs/experiment has unet.sh"),
        ("main,./no/such.sh,cpu,,", "no program \"./no/such.sh\""),
        ("main,unet,cpu,gone.ckpt,", "checkpoint_path: there is no gone.ckpt; looked for at "),
        ("main,unet,cpu,,/no/such/data", "data_path: there is no /no/such/data"),
    ];
    for (row, expected) in cases {
        let mut config = sandbox.config(&format!("{header}{row}\nmain,unet,cpu,,\n"));
        config.mode = Mode::Inference;
        let said = refused(&config);
        assert!(said.contains(expected) && said.contains("tasks.csv, line 2"), "{row}\n{said}");
        assert!(said.contains("--skip-failed"), "{said}");
        assert!(!sandbox.path("results").exists(), "nothing has run, and nothing is left of having tried");
    }
    let mut native = sandbox.config(&format!("{header}main,unet,cpu,,\n"));
    native.adapter = "native".into();
    assert!(refused(&native).contains("has no experiment \"unet\": it has none"), "{}", refused(&native));
    if !Path::new("/dev/nvidia0").exists() {
        let gpu = sandbox.config(&format!("{header}main,unet,gpu,,\n"));
        assert!(refused(&gpu).contains("no NVIDIA GPU"), "{}", refused(&gpu));
    }
    assert_eq!(sandbox.leftovers(), [""; 0]);
}

#[test]
fn rows_that_cannot_run_are_recorded_and_the_others_run() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let mut config = sandbox.table(&["nowhere", "main"]);
    config.skip_failed = true;
    let outcome = run(&config).unwrap();
    assert!(outcome.entries[0].error.as_deref().unwrap().contains("no branch"), "{:?}", outcome.entries[0]);
    assert_eq!(outcome.entries[0].git_info.commit_hash, None);
    assert!(outcome.entries[1].success);
}

/// With `--skip-failed` there are results whatever fails: each task with its error.
#[test]
fn what_keeps_every_task_from_running_is_in_the_results() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    // A submodule that is nowhere: the worktree cannot be made.
    git(&sandbox.repo(), &["checkout", "--quiet", "-b", "incomplete", "main"]);
    let commit = git(&sandbox.repo(), &["rev-parse", "HEAD"]);
    let link = format!("160000,{},sub", commit.trim());
    git(&sandbox.repo(), &["update-index", "--add", "--cacheinfo", &link]);
    let modules = "[submodule \"sub\"]\n\tpath = sub\n\turl = /no/such/repository\n";
    std::fs::write(sandbox.repo().join(".gitmodules"), modules).unwrap();
    git(&sandbox.repo(), &["add", ".gitmodules"]);
    git(&sandbox.repo(), &["commit", "--quiet", "--message", "a submodule"]);
    git(&sandbox.repo(), &["checkout", "--quiet", "--force", "main"]);
    let plain = sandbox.path("plain");
    std::fs::create_dir_all(&plain).unwrap();
    type Change<'a> = &'a dyn Fn(&mut Config);
    let cases: [(&str, Change<'_>, &str); 6] = [
        ("main,unet,,width", &|_| (), "overrides: \"width\" is not key=value"),
        ("nowhere,unet,", &|_| (), "there is no branch, tag or commit \"nowhere\""),
        ("incomplete,unet,", &|_| (), "cannot get the submodules of incomplete"),
        ("main,unet,", &|c| c.repository.clone_from(&plain), "not in a git repository"),
        ("main,unet,gone.ckpt", &|_| (), "checkpoint_path: there is no gone.ckpt"),
        (
            "main,net:Net,w",
            &|c| (c.adapter, c.python) = ("lightning".into(), Some("/no/python".into())),
            "/no/python",
        ),
    ];
    std::fs::write(sandbox.path("w"), "").unwrap();
    for (row, change, expected) in cases {
        let mut config = sandbox.config(&format!("branch,experiment,checkpoint_path\n{row}\n{row}\n"));
        config.skip_failed = true;
        change(&mut config);
        let outcome = run(&config).unwrap_or_else(|error| panic!("{row}: {error:#}"));
        let written: Vec<Entry> =
            serde_json::from_slice(&std::fs::read(&config.output).unwrap()).expect("results");
        assert_eq!((outcome.entries.len(), written.len()), (2, 2), "{row}");
        for entry in &written {
            let error = entry.error.as_deref().unwrap_or_default();
            assert!(error.contains(expected) && !entry.success, "{row}: {error}");
        }
        // Without it nothing runs, and nothing is written.
        config.skip_failed = false;
        std::fs::remove_file(&config.output).unwrap();
        assert!(refused(&config).contains(expected), "{row}");
        assert!(!config.output.exists(), "{row}");
    }
}

#[test]
fn paths_are_found_in_the_folder_of_the_repository_and_every_place_is_told() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let say = "cat \"$WELLREAD_TASK\"";
    sandbox.branch("main", &format!("{say}\ngrep -q 'repo/models/best.ckpt' \"$WELLREAD_TASK\"\n"));
    // Not committed: the worktree does not have it.
    std::fs::create_dir_all(sandbox.repo().join("models")).unwrap();
    std::fs::write(sandbox.repo().join("models/best.ckpt"), "").unwrap();
    let header = "branch,experiment,trainer,checkpoint_path\n";
    let found = run(&sandbox.config(&format!("{header}main,unet,cpu,models/best.ckpt\n"))).unwrap();
    assert!(found.entries[0].success, "{:?}", found.entries[0].error);
    let said = refused(&sandbox.config(&format!("{header}main,unet,cpu,models/other.ckpt\n")));
    let working = std::env::current_dir().unwrap().join("models/other.ckpt");
    for place in [
        format!("{} (beside the table)", sandbox.path("models/other.ckpt").display()),
        "models/other.ckpt in the branch main".to_owned(),
        format!("{} (the working folder)", working.display()),
        format!("{} (--repo)", sandbox.repo().join("models/other.ckpt").display()),
    ] {
        assert!(said.contains(&place), "{place}\n{said}");
    }
}

/// A checkpoint and data in the working folder, and in that of `--repo`: the task is given the absolute path of each.
#[test]
fn checkpoint_and_data_are_found_in_the_working_folder_and_in_repo() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    // Cargo runs tests in the folder of their crate, which has these.
    let working = std::env::current_dir().unwrap();
    let here = [working.join("src/search_path.rs"), working.join("tests/it")];
    let beside = [sandbox.repo().join("weights/best.ckpt"), sandbox.repo().join("images")];
    assert!(here[0].is_file() && here[1].is_dir());
    for (experiment, [checkpoint, data]) in [("here", &here), ("beside", &beside)] {
        // It ends well only where it is given both.
        let script = format!(
            "cat \"$WELLREAD_TASK\"\ngrep -qF '\"{}\"' \"$WELLREAD_TASK\" && grep -qF '\"{}\"' \"$WELLREAD_TASK\"\n",
            checkpoint.display(),
            data.display()
        );
        sandbox.commit(&format!("configs/experiment/{experiment}.sh"), &script, experiment);
    }
    let header = "branch,experiment,trainer,checkpoint_path,data_path\n";
    let config = sandbox.config(&format!(
        "{header}main,here,cpu,src/search_path.rs,tests/it\nmain,beside,cpu,weights/best.ckpt,images\n"
    ));
    // Without those of the repository the second row is refused before the first is run.
    assert!(refused(&config).contains("checkpoint_path: there is no weights/best.ckpt"));
    // Not committed: the worktree does not have them.
    std::fs::create_dir_all(sandbox.repo().join("weights")).unwrap();
    std::fs::write(&beside[0], "").unwrap();
    assert!(refused(&config).contains("data_path: there is no images"));
    std::fs::create_dir_all(&beside[1]).unwrap();
    let outcome = run(&config).unwrap();
    assert_eq!(outcome.entries.len(), 2);
    for entry in &outcome.entries {
        assert!(entry.success, "{}: {:?}", entry.experiment, entry.error);
    }
    // Data that are nowhere: every place is named.
    let said = refused(&sandbox.config(&format!("{header}main,here,cpu,src/search_path.rs,no/images\n")));
    for place in [
        format!("data_path: there is no no/images; looked for at {}", sandbox.path("no/images").display()),
        format!("{} (the working folder)", working.join("no/images").display()),
        format!("{} (--repo)", sandbox.repo().join("no/images").display()),
    ] {
        assert!(said.contains(&place), "{place}\n{said}");
    }
}

#[test]
fn an_experiment_is_found_under_upstreams_spelling() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    sandbox.commit(
        "configs/experiment/im2im/labelfree.sh",
        "grep -q '\"im2im/labelfree\"' $WELLREAD_TASK\n",
        "labelfree",
    );
    let config = sandbox.config("branch,experiment\nmain,im2im/label_free\n");
    let outcome = run(&config).unwrap();
    let entry = &outcome.entries[0];
    assert!(entry.success, "{:?}", entry.error);
    assert_eq!(entry.experiment, "im2im/label_free", "as in the table");
    assert!(
        outcome.notes.iter().any(|note| note == "im2im/label_free is im2im/labelfree in main"),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn places_that_are_none_are_refused() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let config = sandbox.table(&["main"]);
    let with = |change: &dyn Fn(&mut wellread_tasks::config::Config)| {
        let mut config = config.clone();
        change(&mut config);
        refused(&config)
    };
    let plain = sandbox.path("plain");
    std::fs::create_dir_all(&plain).unwrap();
    std::fs::write(plain.join("file"), "x").unwrap();
    let said = with(&|c| c.repository = plain.clone());
    assert!(said.contains("not in a git repository; --repo"), "{said}");
    let said = with(&|c| c.repository = plain.join("gone"));
    assert!(said.contains("there is no folder"), "{said}");
    let said = with(&|c| c.output = plain.join("file/out.json"));
    assert!(said.contains("--output"), "{said}");
    let said = with(&|c| c.output.clone_from(&plain));
    assert!(said.contains("is a folder"), "{said}");
    let said = with(&|c| c.output = plain.join("file"));
    assert!(said.contains("holds no results"), "{said}");
    assert_eq!(std::fs::read_to_string(plain.join("file")).unwrap(), "x");
    // A folder that is there and in which nobody can make a file; a dry run looks too.
    for dry_run in [false, true] {
        let said = with(&|c| {
            c.report = Some("/proc/self/fdinfo".into());
            c.dry_run = dry_run;
        });
        assert!(said.contains("cannot write in the folder /proc/self/fdinfo"), "{said}");
        assert!(said.contains("--report") && !sandbox.path("results").exists(), "{said}");
    }
    let said = with(&|c| c.table = plain.join("none.csv"));
    assert!(said.contains("cannot read the table"), "{said}");
    let said = with(&|c| c.adapter = "magic".into());
    assert!(said.contains("there are auto, ") && said.contains("command"), "{said}");
}

#[test]
fn a_time_limit_a_signal_and_memory_are_that_tasks_error() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let mut config = sandbox.config(
        "branch,experiment\n\
         main,echo still here; sleep 600\n\
         main,kill -SEGV $$\n\
         main,\"echo '{\"\"error\"\":\"\"no images in /data; check data_path\"\"}' >> $WELLREAD_PHASES; exit 1\"\n\
         main,true\n",
    );
    config.skip_failed = true;
    // Far more than the others take, on a busy machine too.
    config.timeout = Some(Duration::from_secs(5));
    let outcome = run(&config).unwrap();
    let error = |at: usize| outcome.entries[at].error.clone().unwrap_or_default();
    assert!(error(0).starts_with("took longer than 5 s") && error(0).contains("still here"), "{}", error(0));
    assert!(error(1).starts_with("ended by SIGSEGV"), "{}", error(1));
    assert!(error(2).starts_with("no images in /data; check data_path (exit code 1)"), "{}", error(2));
    assert!(outcome.entries[3].success, "{}", error(3));
    assert_eq!(sandbox.leftovers(), [""; 0]);
}

#[test]
fn two_runs_do_not_measure_each_other() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let config = sandbox.table(&["main"]);
    let held = wellread_tasks::repository::Repository::open(&config.repository, &config.cache).unwrap();
    let said = refused(&config);
    assert!(said.contains("another `wellread tasks` is measuring"), "{said}");
    drop(held);
    // Other machines write the results as long as the outcome of their plan is there.
    let planning = Config { dry_run: true, on_other_machines: true, ..config.clone() };
    let planned = run(&planning).unwrap();
    let owner = format!("(process {})", std::process::id());
    for config in [&config, &planning] {
        let said = refused(config);
        assert!(said.contains("another `wellread tasks` writes to") && said.contains("out.json"), "{said}");
        assert!(said.contains(&owner), "{said}");
    }
    drop(planned);
    assert!(run(&config).unwrap().entries[0].success);
}
