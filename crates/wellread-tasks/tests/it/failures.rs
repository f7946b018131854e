//! What goes wrong: said before anything runs where it can be known, recorded where not.

use crate::support::{Sandbox, alone, refused, run};
use std::path::Path;
use std::time::Duration;
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
        ("main,unett,cpu,,", "there is no program \"unett\"; the branch has the scripts unet"),
        ("main,./no/such.sh,cpu,,", "no program \"./no/such.sh\""),
        ("main,unet,cpu,gone.ckpt,", "checkpoint_path: there is no gone.ckpt (looked for beside the table"),
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
    let all = sandbox.table(&["nowhere", "elsewhere"]);
    let said = refused(&wellread_tasks::config::Config { skip_failed: true, ..all });
    assert!(said.contains("no task of the table can run"), "{said}");
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
    assert!(run(&config).unwrap().entries[0].success);
}
