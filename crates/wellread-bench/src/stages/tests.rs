//! Which stage is named, and when none is.

use super::*;
use crate::test_store::linked;
use std::path::Path;
use wellread_store::{OpenOptions, Store};

const NAMES: [(&str, &str, &str); 4] = [
    ("cold", "storage", "a"),
    ("warm", "decoding", "b"),
    ("cached", "copying", "c"),
    ("synthetic", "model", "d"),
];

/// Rounds that drift together, with a little noise of each.
fn times(seconds: [f64; 4], rounds: usize, noise: f64) -> Vec<Vec<f64>> {
    let of = |i: usize, base: f64| {
        (0..rounds)
            .map(|r| base * (1.0 + 0.05 * r as f64) * (1.0 + noise * ((r * 7 + i * 3) % 5) as f64))
            .collect()
    };
    seconds.iter().enumerate().map(|(i, &base)| of(i, base)).collect()
}

fn found(seconds: [f64; 4], rounds: usize, noise: f64) -> (Vec<Stage>, Option<&'static str>) {
    let estimator = IntervalEstimator::seeded(1);
    let stages = stages(&NAMES, &times(seconds, rounds, noise), true, &estimator);
    let binds = binding(&stages, &estimator);
    (stages, binds)
}

#[test]
fn the_largest_difference_binds() {
    for (seconds, expected) in [
        ([10.0, 4.0, 2.0, 1.0], "storage"),
        ([10.0, 9.0, 2.0, 1.0], "decoding"),
        ([10.0, 9.0, 8.0, 1.0], "copying"),
        ([10.0, 9.5, 9.0, 8.5], "model"),
    ] {
        let (stages, binds) = found(seconds, 10, 0.001);
        assert_eq!(binds, Some(expected));
        let sum: f64 = stages.iter().map(|s| s.share.value).sum();
        assert!((sum - 1.0).abs() < 0.02, "{sum}");
        let said = verdict(&stages, binds, true, Some("model"), 10);
        assert!(said.to_lowercase().contains(&format!("{expected} binds")) && said.contains('%'), "{said}");
        assert!(!said.contains("not firm"), "{said}");
    }
}

#[test]
fn no_stage_is_said_to_take_more_than_all_of_the_time() {
    // Cold files were read faster than warm ones.
    let (stages, binds) = found([10.0, 14.0, 2.0, 1.0], 10, 0.001);
    assert!(stages[1].share.value > 1.1, "{:?}", stages[1].share);
    let said = verdict(&stages, binds, true, Some("decoding"), 10);
    assert!(said.contains(": 100.0 %, 100.0 % to 100.0 % of the time of an image"), "{said}");
    assert!(
        said.contains(" This is not firm: shares sum to 1") && said.ends_with("Measure again."),
        "{said}"
    );
}

#[test]
fn images_that_a_table_here_names_elsewhere_are_fetched() {
    let dir = tempfile::tempdir().unwrap();
    let [table, images] = linked(dir.path(), 8);
    let settings = Settings {
        batch_size: Some(4),
        rounds: 2,
        time_budget: Duration::from_secs(1),
        ..Settings::default()
    };
    let of = |path: &Path| {
        let open = || -> Result<Box<dyn Store>> { Ok(wellread_store::open(path, &OpenOptions::default())?) };
        diagnose(open, &settings, &|_, _| ()).unwrap()
    };
    let names = |found: &Diagnosis| found.stages.iter().map(|stage| stage.name).collect::<Vec<_>>();
    let remote = of(&table);
    assert_eq!((names(&remote), remote.notes.len()), (vec!["fetching", "copying"], 0));
    assert!(names(&of(&images)).contains(&"decoding"));
}

#[test]
fn a_step_too_long_for_the_time_is_refused_with_the_time_that_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let [_, images] = linked(dir.path(), 8);
    let open = || -> Result<Box<dyn Store>> { Ok(wellread_store::open(&images, &OpenOptions::default())?) };
    let study = |step_s: f64, budget_s: u64| {
        let settings = Settings {
            batch_size: Some(4),
            rounds: 1,
            consumer: Consumer::StandIn(step_s),
            time_budget: Duration::from_secs(budget_s),
            ..Settings::default()
        };
        diagnose(open, &settings, &|_, _| ())
    };
    // Eight steps of a round and its warm-up.
    let refused = study(0.5, 3).unwrap_err().to_string();
    // As long as it took, which is longer on a busy machine.
    assert!(refused.starts_with("a step of 4 images takes "), "{refused}");
    assert!(refused.contains("--time-budget is 3") && refused.contains("for 6 rounds"), "{refused}");
    assert_eq!(study(0.01, 60).unwrap().batch_size, 4);
}

#[test]
fn a_slow_model_gets_small_batches() {
    let store = crate::test_store::TestStore::squares(64, 64).unwrap();
    let open = || -> Result<Box<dyn Store>> { Ok(Box::new(crate::test_store::TestStore::squares(64, 64)?)) };
    // Training takes some time on any machine, and never minutes.
    let batch = |budget: Duration| {
        let consumer = Consumer::Model("small-cnn".to_owned());
        let settings = Settings { consumer, time_budget: budget, ..Settings::default() };
        let step = std::cell::RefCell::new(consumer::Step::new(&settings.consumer, 1));
        fit::batch_size(&open, &store, &settings, &mut |batch| step.borrow_mut().run(batch)).unwrap()
    };
    assert_eq!(batch(Duration::from_micros(1)), 1);
    assert_eq!(batch(Duration::from_hours(24)), 16);
}

#[test]
fn what_a_model_does_once_is_no_part_of_its_steps() {
    let store = crate::test_store::TestStore::squares(64, 64).unwrap();
    let open = || -> Result<Box<dyn Store>> { Ok(Box::new(crate::test_store::TestStore::squares(64, 64)?)) };
    let consumer = Consumer::Model("small-cnn".to_owned());
    let settings = Settings { consumer, time_budget: Duration::from_secs(8), ..Settings::default() };
    let sample = Sample::draw(&store, settings.limits, 4, 1, None).unwrap();
    let how = plain_loader(4, 1, 1, None).unwrap();
    // Eight such steps do not fit, and only the first is one.
    let mut once = Some(Duration::from_millis(1100));
    let mut step = |_: &Batch| -> Result<()> {
        std::thread::sleep(once.take().unwrap_or_default());
        Ok(())
    };
    assert!(fit::fitted(&open, sample, how, &settings, &mut step).is_ok());
}

#[test]
fn nothing_is_to_be_done_only_where_loading_hides() {
    let (stages, binds) = found([10.0, 7.2, 6.2, 6.0], 10, 0.001);
    assert_eq!(binds, Some("model"));
    let of = |utilisation| worth_a_remedy(&stages, binds, utilisation);
    // A step that takes most of the time, and an accelerator that waits for the rest of it.
    assert_eq!(of(Some(0.565)), Some("storage"));
    assert!(!remedy("storage").contains("nothing") && remedy("model").starts_with("nothing about the data"));
    assert_eq!((of(Some(0.7)), of(Some(0.95)), of(None)), (Some("model"), Some("model"), Some("model")));
    let (stages, binds) = found([10.0, 9.0, 2.0, 1.0], 10, 0.001);
    assert_eq!(worth_a_remedy(&stages, binds, Some(0.1)), Some("decoding"));
    assert_eq!(worth_a_remedy(&stages, None, Some(0.1)), None);
}

#[test]
fn what_cannot_be_told_is_not_told() {
    let (stages, binds) = found([10.0, 6.0, 2.0, 1.5], 10, 0.03);
    assert_eq!(binds, None, "4 against 4");
    assert!(verdict(&stages, binds, true, None, 10).starts_with("Too few data to tell"));
    let (stages, binds) = found([10.0, 4.0, 2.0, 1.0], 4, 0.001);
    assert_eq!((binds, stages[0].share.low), (None, None));
    assert!(verdict(&stages, binds, true, None, 4).contains("4 rounds"));
}

#[test]
fn without_a_model_the_loop_itself_is_no_stage() {
    let estimator = IntervalEstimator::seeded(1);
    let stages = stages(&NAMES, &times([10.0, 4.0, 2.0, 0.0], 8, 0.001), false, &estimator);
    assert_eq!(stages.iter().map(|s| s.name).collect::<Vec<_>>(), ["storage", "decoding", "copying"]);
}

#[test]
fn behind_a_network_the_verdict_is_of_the_link_too() {
    let names = [("warm", FETCHING.0, FETCHING.1), ("cached", "copying", "c"), ("synthetic", "model", "d")];
    let estimator = IntervalEstimator::seeded(1);
    let stages = stages(&names, &times([10.0, 4.0, 2.0, 1.0], 10, 0.001)[..3], false, &estimator);
    let said = verdict(&stages, binding(&stages, &estimator), false, None, 10);
    assert!(
        said.starts_with("Fetching binds over the link:") && said.contains("waiting for the link"),
        "{said}"
    );
    assert!(remedy("fetching").contains("disk:"));
}
