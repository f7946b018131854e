//! Runs that do what they should: phases named, results kept, gone on with.

use crate::support::{Sandbox, alone, run};
use serde_json::Value;
use wellread_measure::Verdict;
use wellread_tasks::comparison::Comparison;
use wellread_tasks::suite::{self, Event};
use wellread_tasks::{report, results, text};

fn of<'c>(compared: &'c [Comparison], branch: &str) -> &'c Comparison {
    compared.iter().find(|one| one.candidate == branch).expect("the branch is compared")
}

/// Tries of a comparison of real waits on a machine that does other things too.
const TRIES: usize = 8;

#[test]
fn the_slow_phase_of_each_branch_is_named() {
    let _alone = alone();
    let mut tries = 0;
    let (sandbox, config, outcome, compared) = loop {
        let sandbox = Sandbox::new();
        let mut config = sandbox.table(&["main", "slow-loading", "slow-model", "broken"]);
        config.repeats = 3;
        config.skip_failed = true;
        let outcome = run(&config).unwrap();
        assert_eq!(outcome.stopped, None);
        let compared = report::comparisons(&config, &outcome);
        let slower = |branch: &str, phase: &str| {
            of(&compared, branch).phase(phase).unwrap().verdict == Verdict::Slower
        };
        let said = |branch: &str, what: &str| of(&compared, branch).sentence.starts_with(what);
        let named = [
            slower("slow-loading", "batch_loading"),
            !slower("slow-loading", "batch_step"),
            slower("slow-model", "batch_step"),
            !slower("slow-model", "batch_loading"),
            said("slow-loading", "Data loading of slow-loading takes "),
            said("slow-model", "The model's step of slow-model takes "),
        ];
        if named.iter().all(|so| *so) {
            break (sandbox, config, outcome, compared);
        }
        tries += 1;
        assert!(tries < TRIES, "{named:?}");
    };
    assert!(of(&compared, "broken").sentence.contains("did not run to its end"));

    // The file is upstream's list.
    let list: Value = serde_json::from_slice(&std::fs::read(&config.output).unwrap()).unwrap();
    let (main, broken) = (&list[0], &list[3]);
    assert_eq!(
        (&main["success"], &main["error"], &main["branch"]),
        (&true.into(), &Value::Null, &"main".into())
    );
    assert_eq!(main["git_info"]["commit_hash"].as_str().unwrap().len(), 40);
    assert_eq!(
        (&main["task_config"]["batch_size"], &main["task_config"]["adapter"]),
        (&2.into(), &"command".into())
    );
    assert!(main["metrics"]["total_training"]["elapsed_seconds"].as_f64().unwrap() > 0.28);
    assert_eq!(main["metrics"]["final_metrics"]["val_dice"], 0.9);
    assert_eq!(main["metrics"]["dataset_info"]["num_batches"], 8);
    assert_eq!(main["repeats"].as_array().unwrap().len(), 3);
    assert_eq!(main["statistics"]["batch_loading"]["steady"]["n"], 21);
    assert!(main["environment"]["machine"]["cpu"].is_object());
    let error = broken["error"].as_str().unwrap();
    assert!(error.starts_with("exit code 3; ") && error.contains("no such layer"), "{error}");
    assert_eq!(broken["repeats"].as_array().unwrap().len(), 1);

    let page = report::write(&config, &outcome, &compared, vec![], "a machine".into()).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    for said in [
        "Data loading of slow-loading",
        "batch loading",
        "once per run",
        "exit code 3",
        "unet of broken failed",
        // The comparison and the summary are tables of the page too.
        "Compared with the baseline",
        "<td data-v=\"slow-loading\">slow-loading</td><td data-v=\"main\">main</td>\
         <td data-v=\"batch_loading\">batch_loading</td><td data-v=\"slower\">slower</td>",
        "ratio to the baseline",
        "broken did not run to its end",
        "<h2 id=\"bench-tasks_summary-h\">Summary</h2>",
    ] {
        assert!(page.contains(said), "{said}");
    }
    // Only Linux tells it.
    assert_eq!(page.contains("used by others during runs"), !cfg!(feature = "portable"));
    let first = &outcome.entries[0].repeats[0];
    assert!(
        first.hardware.busy_by_others.is_none_or(|share| share <= 1.0) && first.hardware_after.is_some(),
        "{first:?}"
    );
    // `wellread report` finds all of them again.
    let again = wellread_report::ReportInput::from_dir(config.report_folder()).unwrap();
    let names: Vec<&str> = again.tables.iter().map(wellread_report::Table::name).collect();
    assert_eq!(names, ["tasks_summary", "tasks_compared", "tasks"]);
    let shown = format!("{}{}", text::summary(&outcome), text::compared(&compared));
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    assert!(
        shown.contains("slow-loading compared with main") && shown.contains("failed: exit code 3"),
        "{shown}"
    );
    assert_eq!(sandbox.leftovers(), [""; 0]);
}

#[test]
fn one_run_of_each_gives_ratios_and_no_verdict() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let config = sandbox.table(&["main", "slow-model"]);
    let outcome = run(&config).unwrap();
    let compared = report::comparisons(&config, &outcome);
    assert_eq!(compared.len(), 1);
    let why =
        "within these runs only: one run of the baseline and one run of this, and a verdict needs 3 of each";
    let document = serde_json::to_value(&compared).unwrap();
    let phases = document[0]["phases"].as_array().unwrap();
    assert!(!phases.is_empty());
    for phase in phases {
        assert_eq!((&phase["verdict"], &phase["reason"]), (&"too_few_data".into(), &why.into()), "{phase}");
        assert!(phase["ratio"]["estimate"].as_f64() > Some(0.0), "{phase}");
        assert_eq!((&phase["ratio"]["low"], &phase["p_value"]), (&Value::Null, &Value::Null), "{phase}");
    }
    let shown = text::compared(&compared).split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "Within these runs only: ",
        " – 1/1 no verdict",
        "A verdict needs 3 runs of each: --repeats 3 or more.",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let page = report::write(&config, &outcome, &compared, vec![], "a machine".into()).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    for said in ["Within these runs only: ", "<td data-v=\"no verdict\">no verdict</td>"] {
        assert!(page.contains(said), "{said}");
    }
    let table = std::fs::read_to_string(config.report_folder().join("tasks_compared.csv")).unwrap();
    assert_eq!(table.matches(why).count(), phases.len(), "{table}");
}

#[test]
fn another_baseline_turns_the_comparison_round() {
    let _alone = alone();
    let mut tries = 0;
    let (_sandbox, mut config) = loop {
        let sandbox = Sandbox::new();
        let mut config = sandbox.table(&["main", "slow-model"]);
        config.repeats = 3;
        config.baseline = Some("slow-model".into());
        let outcome = run(&config).unwrap();
        let compared = report::comparisons(&config, &outcome);
        assert_eq!((compared.len(), compared[0].candidate.as_str()), (1, "main"));
        let verdict = compared[0].phase("batch_step").unwrap().verdict;
        if verdict == Verdict::Faster && compared[0].sentence.contains("times as fast") {
            break (sandbox, config);
        }
        tries += 1;
        assert!(tries < TRIES, "{}", compared[0].sentence);
    };
    config.baseline = Some("mian".into());
    assert!(crate::support::refused(&config).contains("main, slow-model"));
}

#[test]
fn tasks_of_an_experiment_are_interleaved() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let mut config = sandbox.config("branch,experiment\nmain,true\nslow-model,true\nslow-loading,true\n");
    config.repeats = 3;
    let told = std::cell::RefCell::new(Vec::new());
    suite::run(&config, &|event| {
        if let Event::Begin { what, .. } = event {
            told.borrow_mut().push((*what).to_owned());
        }
    })
    .unwrap();
    let told = told.into_inner();
    assert_eq!(told.len(), 9);
    for (round, tasks) in told.chunks(3).enumerate() {
        let mut tasks = tasks.to_vec();
        tasks.sort();
        let expected = ["main", "slow-loading", "slow-model"];
        assert_eq!(tasks, expected.map(|branch| format!("true · {branch}, run {}", round + 1)), "{told:?}");
    }
}

#[test]
fn the_memory_of_a_gpu_is_shown_where_a_task_reports_it() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let config = sandbox.table(&["main", "slow-model"]);
    let without = run(&config).unwrap();
    assert!(!text::summary(&without).contains("GPU"), "{}", text::summary(&without));
    let line = r#"{"phase":"own","elapsed_seconds":1,"peak_gpu_memory_mb":812}"#;
    sandbox.branch("on a GPU", &format!("echo '{line}' >> \"$WELLREAD_PHASES\"\n"));
    let with = run(&config).unwrap();
    let shown = text::summary(&with);
    assert!(shown.contains("GPU") && shown.contains("812 MB"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    let page = report::write(&config, &with, &[], vec![], String::new()).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("peak GPU memory") && page.contains("data-v=\"812\""), "no GPU in the page");
}

#[test]
fn a_baseline_that_an_experiment_lacks_is_said() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let mut config =
        sandbox.config("branch,experiment\nmain,true\nslow-model,true\nmain,unet\nslow-loading,unet\n");
    config.baseline = Some("slow-model".into());
    config.dry_run = true;
    let notes = run(&config).unwrap().notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("unet has no row of that branch") && notes[0].ends_with("main"), "{notes:?}");
}

#[test]
fn an_interrupted_run_is_gone_on_with() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    // An experiment each, so that they run in this order.
    let config = sandbox.config(
        "branch,experiment\nmain,unet\nbroken,sh configs/experiment/unet.sh\n\
         slow-model,sh ./configs/experiment/unet.sh\n",
    );
    // It stops at the failure and keeps what it has.
    let first = run(&config).unwrap();
    assert!(first.stopped.is_some());
    let kept = results::read(&config.output).unwrap().unwrap();
    let good: Vec<_> = kept.iter().filter(|entry| entry.success).collect();
    assert_eq!((good.len(), kept.len()), (1, 2), "main was kept, and slow-model was not reached");
    let resumed =
        wellread_tasks::config::Config { resume: true, skip_failed: true, repeats: 2, ..config.clone() };
    let second = run(&resumed).unwrap();
    assert_eq!(second.resumed, good.len());
    for entry in &good {
        let now = second.entries.iter().find(|e| e.branch == entry.branch).unwrap();
        assert_eq!(now.repeats[0].said, entry.repeats[0].said, "the earlier run is kept as it was");
        assert_eq!(now.repeats.len(), 2);
    }
    assert!(second.entries[1].error.is_some());
    // Nothing is left to do; other settings are other tasks, and so is another commit.
    let third = run(&resumed).unwrap();
    let begun = |entry: &results::Entry| -> Vec<String> {
        entry.repeats.iter().map(|repeat| repeat.timestamp.clone()).collect()
    };
    assert_eq!((third.resumed, begun(&third.entries[0])), (4, begun(&second.entries[0])));
    sandbox.branch("main again", &crate::support::training(10, 10));
    let fourth = run(&wellread_tasks::config::Config { repeats: 1, ..resumed.clone() }).unwrap();
    assert_eq!(fourth.entries[0].repeats.len(), 1);
    assert_ne!(fourth.entries[0].git_info, third.entries[0].git_info);
    // The runs of the commit before are moved, which is said, and a file has one commit of a task.
    let aside = config.output.with_extension("earlier.json");
    let moved = results::read(&aside).unwrap().unwrap();
    assert_eq!(moved.len(), 1);
    assert_eq!(
        (&moved[0].git_info, begun(&moved[0])),
        (&third.entries[0].git_info, begun(&third.entries[0]))
    );
    let moved = format!("1 result of another commit or an unlike node: moved to {}", aside.display());
    assert!(fourth.notes.contains(&moved), "{:?}", fourth.notes);
    let kept = results::read(&config.output).unwrap().unwrap();
    assert_eq!(kept.iter().filter(|entry| entry.branch == "main").count(), 1);
    let other = run(&wellread_tasks::config::Config { seed: 8, ..resumed }).unwrap();
    assert_eq!(other.resumed, 0);
    // Results that the table no longer asks for are not lost.
    let kept = results::read(&config.output).unwrap().unwrap();
    assert_eq!(kept.iter().filter(|entry| entry.branch == "slow-model" && entry.success).count(), 2);
}

/// Rows are numbered, and so are their folders. A row that comes before others has a folder of its own nevertheless.
#[test]
fn a_row_before_those_that_are_kept_does_not_take_their_folders() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let own = "${WELLREAD_TASK%/*}";
    let table = |rows: &[u32]| {
        let row = |size: &u32| format!("main,\"grep -o batch_size.* $WELLREAD_TASK > {own}/seen\",{size}\n");
        let rows: String = rows.iter().map(row).collect();
        sandbox.config(&format!("branch,experiment,batch_size\n{rows}"))
    };
    let seen = |entry: &results::Entry| {
        std::fs::read_to_string(entry.repeats[0].output_dir.join("seen")).unwrap_or_default()
    };
    let first = run(&table(&[8])).unwrap();
    assert!(seen(&first.entries[0]).contains('8'), "{:?}", first.entries[0].error);
    let second = run(&wellread_tasks::config::Config { resume: true, ..table(&[4, 8]) }).unwrap();
    assert_eq!(second.resumed, 1);
    assert!(seen(&second.entries[0]).contains('4'), "{:?}", second.entries[0].error);
    assert!(seen(&second.entries[1]).contains('8'), "the kept run has its files");
}

/// A branch may have experiments of several adapters.
#[test]
fn a_script_beside_settings_of_other_adapters_is_run() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    sandbox.commit(
        "configs/experiment/im2im/segmentation.toml",
        "kind = \"im2im/segmentation\"\n",
        "settings",
    );
    let outcome = run(&sandbox.table(&["main"])).unwrap();
    assert!(outcome.entries[0].success, "{:?}", outcome.entries[0].error);
}

/// Results and files are still there if a table is run again and ended at once.
#[test]
fn an_earlier_call_is_kept_until_a_run_has_ended() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let output = sandbox.config("branch,experiment\nmain,true\n").output;
    let own = "${WELLREAD_TASK%/*}";
    let config = sandbox.config(&format!(
        "branch,experiment\nmain,cp {} {own}/seen.json; ls {own}/.. > {own}/beside.txt\n",
        output.display()
    ));
    let seen = || {
        let folder = run(&config).unwrap().entries[0].repeats[0].output_dir.clone();
        let results = results::read(&folder.join("seen.json")).unwrap().unwrap();
        (results.len(), std::fs::read_to_string(folder.join("beside.txt")).unwrap(), folder)
    };
    let (results, beside, _) = seen();
    assert_eq!((results, beside.as_str()), (0, "run-1\n"));
    let (results, beside, folder) = seen();
    assert_eq!((results, beside.as_str()), (1, "run-1\nrun-1.earlier\n"), "while it runs");
    assert!(!folder.with_extension("earlier").exists(), "it has ended");
    // A call that is cut off leaves both; one that goes on with the results has the run that they are of.
    let earlier = folder.with_extension("earlier");
    std::fs::rename(&folder, &earlier).unwrap();
    std::fs::create_dir(&folder).unwrap();
    let resumed = run(&wellread_tasks::config::Config { resume: true, ..config.clone() }).unwrap();
    assert_eq!(resumed.resumed, 1);
    assert!(folder.join("seen.json").exists() && !earlier.exists());
}

#[test]
fn a_silent_program_is_timed_from_outside() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let config = sandbox
        .config("branch,experiment\nmain,sleep 0.2; cat data.txt\nmain~0,\"exec sh -c 'sleep 0.1'\"\n");
    let outcome = run(&config).unwrap();
    let entry = &outcome.entries[0];
    assert!(entry.success, "{:?}", entry.error);
    assert!(entry.metrics["total_training"]["elapsed_seconds"].as_f64().unwrap() >= 0.2);
    assert_eq!(entry.metrics["total_training"]["measured_by"], "wall time of the process");
    let log = std::fs::read_to_string(entry.repeats[0].output_dir.join("log.txt")).unwrap();
    assert_eq!(log, "data\n");
    let page = report::write(&config, &outcome, &[], vec![], String::new()).unwrap();
    assert!(std::fs::read_to_string(page).unwrap().contains("reports no phases"));
}

#[test]
fn a_task_is_told_everything_it_needs() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("model.ckpt"), "weights").unwrap();
    let mut config = sandbox.config(
        "branch,experiment,checkpoint_path,data_path,trainer,batch_size,overrides\n\
         main,\"cp \"\"$WELLREAD_TASK\"\" seen.json; cp seen.json \"\"$(dirname \"\"$WELLREAD_TASK\"\")\"\"\",model.ckpt,data.txt,cpu,4,a=1,b=2\n",
    );
    config.mode = wellread_tasks::task::Mode::Inference;
    let outcome = run(&config).unwrap();
    assert!(outcome.entries[0].success, "{:?}", outcome.entries[0].error);
    let seen = std::fs::read(outcome.entries[0].repeats[0].output_dir.join("seen.json")).unwrap();
    let task: Value = serde_json::from_slice(&seen).unwrap();
    assert_eq!(task["mode"], "inference");
    assert_eq!(task["checkpoint_path"], sandbox.path("model.ckpt").to_str().unwrap());
    let worktree = task["worktree"].as_str().unwrap();
    assert_eq!(task["data_path"], format!("{worktree}/data.txt"));
    assert_eq!(
        (&task["overrides"][1], &task["seed"], &task["repeat"]),
        (&"b=2".into(), &7.into(), &0.into())
    );
    assert_eq!(task["commit"], outcome.entries[0].git_info.commit_hash.clone().unwrap());
    assert!(!std::path::Path::new(worktree).exists(), "it is removed afterwards");
}

#[test]
fn a_dry_run_checks_and_writes_nothing() {
    let _alone = alone();
    let sandbox = Sandbox::new();
    let mut config = sandbox.table(&["main", "slow-model"]);
    config.dry_run = true;
    let outcome = run(&config).unwrap();
    assert!(outcome.entries.is_empty());
    let plan = text::plan(&outcome.planned, 3);
    assert!(
        plan.contains("2 tasks, 3 runs") && plan.contains("slow-model") && plan.contains("command"),
        "{plan}"
    );
    assert!(!sandbox.path("results").exists());
    assert_eq!(sandbox.leftovers(), [""; 0]);
}
