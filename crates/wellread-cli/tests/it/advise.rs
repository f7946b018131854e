//! `doctor --data` and `advise`, on sets in every format of the build.

#[cfg(unix)]
use crate::support::interrupt;
use crate::support::{arg, files_below, formats, generate, json, leftovers, wellread};
use serde_json::Value;

/// Where each format's copy of a generated set is.
fn sets(generated: &Value) -> Vec<(String, String)> {
    let sets = generated["written"].as_array().expect("a list of sets");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    sets.iter()
        .filter(|set| set["error"].is_null())
        .map(|set| (text(&set["format"]), text(&set["path"])))
        .collect()
}

#[test]
fn doctor_takes_every_format_apart_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("sets");
    let sets = sets(&generate(&out, 24, &["--formats", "all"]));
    assert_eq!(sets.len(), formats().len());
    let before = files_below(&out);
    for (format, path) in &sets {
        let found = json(&[
            "doctor",
            "--data",
            path,
            "--read-as",
            format,
            "--rounds",
            "2",
            "--batch-size",
            "8",
            "--time-budget",
            "2",
        ]);
        assert_eq!(found["sample"]["of"], 24, "{format}");
        let names = |list: &str| -> Vec<&str> {
            found[list].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
        };
        let cold = names("runs").first() == Some(&"cold");
        // On a filesystem in memory nothing can be cold, and that is said.
        let note = found["notes"].to_string();
        assert!(cold || note.contains("storage was not measured"), "{format}: {note}");
        assert_eq!(names("runs")[usize::from(cold)..], ["warm", "cached", "synthetic"], "{format}");
        assert_eq!(
            names("stages")[usize::from(cold)..],
            ["decoding", "copying"],
            "{format}: no model, no such stage"
        );
        // Two rounds are none for a verdict.
        assert_eq!(found["binds"], Value::Null);
        assert!(found["verdict"].as_str().unwrap().starts_with("Too few data"), "{found}");
        let stages = found["stages"].as_array().unwrap();
        assert!(stages.iter().all(|stage| stage["share"]["low"].is_null()), "{found}");
    }
    assert_eq!(files_below(&out), before, "the sets were changed");
}

#[test]
fn a_step_that_is_far_longer_than_loading_binds() {
    let dir = tempfile::tempdir().unwrap();
    let sets = sets(&generate(&dir.path().join("sets"), 16, &["--formats", "tiff"]));
    let args = [
        "doctor",
        "--data",
        &sets[0].1,
        "--step-ms",
        "60",
        "--batch-size",
        "8",
        "--rounds",
        "6",
        "--workers",
        "2",
    ];
    let mut found = Value::Null;
    for _ in 0..TRIES {
        found = json(&args);
        if found["binds"] == "model" && found["utilisation"][0][1]["value"].as_f64().unwrap() > 0.5 {
            break;
        }
    }
    assert_eq!(found["binds"], "model", "{found}");
    assert!(found["verdict"].as_str().unwrap().starts_with("The model binds"), "{found}");
    assert!(found["utilisation"][0][1]["value"].as_f64().unwrap() > 0.5, "{found}");
    let plain = wellread(&[&args[..], &["--time-budget", "3"]].concat());
    assert!(plain.stdout.contains("of memory copy") && plain.stdout.contains("decoding"), "{}", plain.stdout);
    // Half a minute passes before the answer.
    assert!(
        plain.stderr.contains("measuring: no further round begins after 3 s (--time-budget)"),
        "{}",
        plain.stderr
    );
}

#[test]
fn a_model_of_wellreads_own_is_a_stage() {
    let dir = tempfile::tempdir().unwrap();
    let sets = sets(&generate(&dir.path().join("sets"), 16, &["--formats", "tiff"]));
    let found =
        json(&["doctor", "--data", &sets[0].1, "--model", "small-cnn", "--batch-size", "8", "--rounds", "1"]);
    let stages = found["stages"].as_array().unwrap();
    assert_eq!(stages.last().unwrap()["name"], "model", "{found}");
    assert!(stages.last().unwrap()["us_per_image"]["value"].as_f64().unwrap() > 0.0);
    assert!(found["model"].as_str().unwrap().contains("training"), "{found}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.parquet");
    let text = dir.path().join("notes.txt");
    std::fs::write(&text, "no images").unwrap();
    for path in [&missing, &text] {
        for args in [&["doctor", "--data", arg(path)][..], &["advise", arg(path)]] {
            let done = wellread(args);
            assert_eq!(done.code, 1, "{args:?}: {}", done.stderr);
            assert!(done.stderr.contains(arg(path)), "{args:?}: {}", done.stderr);
        }
    }
    for (args, said) in [
        (&["doctor", "--step-ms", "5"][..], "--data"),
        (&["doctor", "--level", "1"], "--data"),
        (&["doctor", "--data", "x", "--step-ms", "-1"], "positive"),
        (&["doctor", "--data", "x", "--step-ms", "1", "--model", "small-cnn"], "cannot be used with"),
        (&["doctor", "--data", "x", "--model", "large"], "small-cnn"),
        (&["advise"], "<PATH>"),
        (&["advise", "x", "--step-ms", "0"], "no positive number of milliseconds"),
        (&["advise", "x", "--step-ms=-3"], "no positive number of milliseconds"),
        (&["advise", "x", "--formats", "gif"], "gif"),
    ] {
        let done = wellread(args);
        assert_eq!(done.code, 2, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{args:?}: {}", done.stderr);
    }
}

/// Tries of a check against the clock on a machine that does other things too.
const TRIES: usize = 6;

#[test]
fn advice_is_whole_and_its_prediction_holds_in_a_real_loop() {
    let dir = tempfile::tempdir().unwrap();
    let (out, scratch) = (dir.path().join("sets"), dir.path().join("scratch"));
    let generated =
        json(&["generate", arg(&out), "--images", "48", "--size", "160x160", "--formats", "tiff"]);
    let sets = sets(&generated);
    let before = files_below(&out);
    let codecs = |found: &Value, format: &str| {
        let tried = found["tried"].as_array().unwrap();
        tried.iter().filter(|t| t["format"] == format && !t["write_s"].is_null()).count()
    };
    let mut last = Value::Null;
    for seed in 0..TRIES {
        // More time each try: how long writing takes is the disk's affair.
        let budget = (12 * (seed + 1)).to_string();
        // Shorter than reading a batch takes, so that there is waiting to predict.
        let seed = seed.to_string();
        last = json(&[
            "advise",
            &sets[0].1,
            "--formats",
            "tiff,parquet",
            "--step-ms",
            "0.5",
            "--batch-size",
            "8",
            "--scratch",
            arg(&scratch),
            "--time-budget",
            &budget,
            "--seed",
            &seed,
        ]);
        if last["predictions"][0]["checked"]["agrees"] == true && codecs(&last, "tiff") >= 2 {
            break;
        }
    }
    let prediction = &last["predictions"][0];
    assert_eq!(prediction["checked"]["agrees"], true, "{prediction:#}");
    let share = |of: &Value| of["value"].as_f64().unwrap();
    let utilisation = share(&prediction["utilisation"]);
    assert!((utilisation + share(&prediction["data_wait_fraction"]) - 1.0).abs() < 1e-6, "{prediction}");

    let tried = last["tried"].as_array().unwrap();
    assert!(tried[0]["compression"].is_null(), "the set as it is comes first");
    assert!(codecs(&last, "tiff") >= 2, "{tried:?}");
    assert!(
        tried.iter().all(|t| share(&t["images_per_s"]) > 0.0 && t["bytes_of_set"].as_f64().unwrap() > 0.0)
    );
    let chosen = &last["recommendation"];
    assert_eq!(chosen["batch_size"], 8, "as asked for");
    let reasons = chosen["reasons"].as_array().unwrap();
    assert!(reasons.iter().all(|of| !of.as_array().unwrap().is_empty()), "{chosen}");
    let commands = last["commands"].as_array().unwrap();
    let converts = commands[0].as_str().unwrap().starts_with("wellread convert");
    assert_eq!(converts, chosen["as_it_is"] == false, "{commands:?}");

    assert_eq!(files_below(&out), before, "the set was changed");
    assert!(leftovers(&scratch).is_empty() && std::fs::read_dir(&scratch).unwrap().next().is_none());
}

#[test]
fn advice_without_a_step_time_predicts_several() {
    let dir = tempfile::tempdir().unwrap();
    let sets = sets(&generate(&dir.path().join("sets"), 32, &["--formats", "tiff"]));
    let scratch = dir.path().join("scratch");
    let args = ["advise", &sets[0].1, "--formats", "tiff", "--scratch", arg(&scratch), "--time-budget", "4"];
    let found = json(&args);
    let predictions = found["predictions"].as_array().unwrap();
    assert!(predictions.len() > 2 && predictions.iter().all(|p| p["checked"].is_null()), "{found}");
    // The longer the step, the less it waits.
    let waits: Vec<f64> =
        predictions.iter().map(|p| p["data_wait_fraction"]["value"].as_f64().unwrap()).collect();
    assert!(waits.windows(2).all(|w| w[0] >= w[1]), "{waits:?}");
    let plain = wellread(&args);
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    // A minute passes before the answer: without a terminal, each part is a line.
    let said: Vec<&str> = plain.stderr.lines().collect();
    assert!(said.starts_with(&["reading a sample", "writing candidates"]), "{}", plain.stderr);
    assert_eq!(said.iter().filter(|line| **line == "writing candidates").count(), 1, "{}", plain.stderr);
    // Wherever it says from which step on nothing waits, it is one figure.
    let from = |line: &str| line.split_once("no wait for steps from ").map(|(_, from)| from.to_owned());
    let mut from: Vec<String> = plain.stdout.lines().filter_map(from).collect();
    for text in &mut from {
        *text = text.replace(", with everything that is recommended", "");
    }
    let never = ["every step waits, as far as these rounds tell", "waits are 0.0 % for steps from "];
    let is_never = never.iter().any(|said| plain.stdout.contains(said));
    assert!(if is_never { from.is_empty() } else { from.len() == 2 && from[0] == from[1] }, "{from:?}");
    for said in ["Recommended", "as it is (tiff", "Data wait of a step", "wellread bench loop"] {
        assert!(plain.stdout.contains(said), "{said}: {}", plain.stdout);
    }
}

/// A budget that no section fits into: the parts that can be left out are, and the notes name them. Nothing
/// here depends on a clock.
#[test]
fn advice_within_no_time_says_what_was_cut() {
    let dir = tempfile::tempdir().unwrap();
    let sets = sets(&generate(&dir.path().join("sets"), 32, &["--formats", "tiff"]));
    let scratch = dir.path().join("scratch");
    let args = ["advise", &sets[0].1, "--formats", "tiff", "--scratch", arg(&scratch), "--time-budget"];
    let found = json(&[&args[..], &["1e-6"]].concat());
    let priced = wellread(&[&args[..], &["1e-6", "--price-per-1000-requests", "0.4"]].concat()).stderr;
    assert!(priced.contains("--price-per-1000-requests changes nothing"), "{priced}");
    let notes = found["notes"].to_string();
    for said in [
        "batches of 1 instead of 16 were measured",
        "the sample is of 1 image at most",
        "more rounds of the fastest formats, and cold files: not tried within the time (--time-budget)",
        "tiff (none), tiff (zstd, level 3)",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    // Codecs that TIFF does not have cannot be tried.
    assert!(!notes.contains("lz4"), "{notes}");
    // A note does not repeat a reason.
    let reasons = found["recommendation"]["reasons"].to_string();
    for said in ["other numbers of workers were not tried within", "caches were not tried within"] {
        assert!(reasons.contains(said), "{said}: {reasons}");
    }
    assert!(!notes.contains("workers") && !notes.contains("caches"), "{notes}");
    assert_eq!(found["sample"]["batch_size"], 1, "{found}");
    assert_eq!(found["recommendation"]["as_it_is"], true, "{found}");
    // Nothing stands between the table and the recommendation but one empty line.
    let plain = wellread(&[&args[..], &["1e-6"]].concat());
    assert!(plain.stdout.contains("\n\nRecommended\n"), "{}{}", plain.stdout, plain.stderr);
    assert!(!plain.stdout.contains("\n\n\n"), "{}", plain.stdout);
    // Given choices stay, and as few images are read.
    let given = json(&[&args[..], &["1e-6", "--batch-size", "16", "--step-ms", "5"]].concat());
    let notes = given["notes"].to_string();
    for said in [
        "batches of 1 instead of 16 were measured",
        "times of a step are for batches of 16, in proportion",
        "the sample is of 1 image at most",
        "a real loop to check the prediction against: not tried within the time",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    assert_eq!(given["sample"]["batch_size"], 1, "{given}");
    assert_eq!(given["recommendation"]["batch_size"], 16, "{given}");
    assert_eq!(given["predictions"].as_array().unwrap().len(), 1, "{given}");
    // A batch size stays in the commands where the set has fewer images.
    let larger = json(&[&args[..], &["1e-6", "--batch-size", "48", "--step-ms", "5"]].concat());
    assert_eq!(larger["recommendation"]["batch_size"], 48, "{larger}");
    assert_eq!(
        larger["recommendation"]["reasons"][2],
        serde_json::json!(["batches of 48: as asked for"]),
        "{larger}"
    );
    let notes = larger["notes"].to_string();
    assert!(notes.contains("batches of 1 instead of 48 were measured"), "{notes}");
    assert!(notes.contains("times of a step are for batches of 48, in proportion"), "{notes}");
    let commands = larger["commands"].to_string();
    assert!(commands.contains("batch_size=48") && commands.contains("--batch-size 48"), "{commands}");
    assert_eq!(given["predictions"][0]["checked"], Value::Null, "{given}");
    assert!(!found["predictions"].as_array().unwrap().is_empty(), "{found}");
    for tried in ["workers", "batch_sizes", "caches"] {
        assert_eq!(found[tried], serde_json::json!([]), "{tried}");
    }
    // A set of which each way of writing has a name of its own.
    let ways = found["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
    let left = ways.filter_map(|note| note.strip_prefix("not tried within the time (--time-budget): "));
    for left in left {
        let mut names: Vec<&str> = left.split(", ").collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{left}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_study_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let sets = sets(&generate(&dir.path().join("sets"), 64, &["--formats", "tiff"]));
    let scratch = dir.path().join("scratch");
    // Once it writes there.
    interrupt(&["advise", sets[0].1.as_str(), "--scratch", arg(&scratch)], &scratch, "INT");
}
