use super::sentence::changed;
use super::*;
use crate::phases::{Phase, PhaseReport, Samples};
use crate::results::{GitInfo, TaskConfig};
use crate::task::{Mode, Trainer};
use serde_json::{Map, Value};
use wellread_measure::rng::Rng;

/// Times of a branch: its factor on loading and on the model's step.
fn entry(branch: &str, runs: usize, loading: f64, step: f64, seed: u64) -> Entry {
    let config = TaskConfig {
        mode: Mode::Train,
        branch: branch.into(),
        experiment: "e".into(),
        trainer: Trainer::Cpu,
        max_epochs: None,
        batch_size: None,
        checkpoint_path: None,
        data_path: None,
        overrides: vec![],
        adapter: "command".into(),
        seed: 0,
    };
    let mut entry = Entry::new(config, GitInfo::default(), Value::Null);
    let mut rng = Rng::seed(seed);
    for repeat in 0..runs {
        // Processes differ by 0.25 %, batches within one by 0.75 %.
        let level = (0.0025 * rng.normal()).exp();
        let mut batches = |factor: f64| {
            let mut seconds = vec![10.0; 2];
            seconds.extend((0..30).map(|_| 0.01 * factor * level * (0.0075 * rng.normal()).exp()));
            Samples { seconds, warm_up: 2 }
        };
        let samples =
            vec![("batch_step".to_owned(), batches(step)), ("batch_loading".to_owned(), batches(loading))];
        let elapsed_seconds = (loading + step) * level;
        let total =
            Phase { elapsed_seconds, memory_delta_mb: None, peak_memory_mb: None, peak_gpu_memory_mb: None };
        let said = PhaseReport {
            samples,
            phases: vec![("total_training".to_owned(), total)],
            ..PhaseReport::default()
        };
        entry.repeats.push(Repeat {
            repeat,
            timestamp: String::new(),
            success: true,
            error: None,
            end: None,
            wall_seconds: Some(elapsed_seconds * 1.1),
            metrics: Map::new(),
            said,
            output_dir: "out".into(),
            hardware: crate::hardware::State::default(),
            hardware_after: None,
        });
    }
    entry
}

fn of(baseline: (&str, &Entry), candidate: (&str, &Entry), seed: u64) -> Comparison {
    all(&[(baseline, candidate)], seed).remove(0)
}

#[test]
fn the_phase_that_changed_is_named_whatever_the_number_of_runs() {
    for runs in [3, 5, 6, 10] {
        let main = entry("main", runs, 1.0, 1.0, 1);
        let of = |candidate: &Entry| self::of(("main", &main), (&candidate.branch, candidate), 0);
        let slow = of(&entry("slow", runs, 2.1, 1.0, 2));
        assert_eq!(slow.phase("batch_loading").unwrap().verdict, Verdict::Slower, "{runs}: {slow:?}");
        assert_eq!(slow.phase("batch_step").unwrap().verdict, Verdict::NoDifference, "{runs}: {slow:?}");
        let ratio = slow.phase("batch_loading").unwrap().ratio;
        assert!(ratio.low.unwrap() > 1.7 && ratio.high.unwrap() < 2.6, "{runs}: {ratio:?}");
        assert!(
            slow.sentence.starts_with("Data loading of slow takes 2.1 times as long ["),
            "{}",
            slow.sentence
        );
        assert!(
            slow.sentence.contains("]; the model's step is unchanged; the whole training run "),
            "{}",
            slow.sentence
        );
        let fast = of(&entry("fast", runs, 1.0, 0.5, 33));
        assert!(
            fast.sentence.starts_with("The model's step of fast is 2.0 times as fast ["),
            "{}",
            fast.sentence
        );
        let step = fast.phase("batch_step").unwrap();
        assert!(step.verdict == Verdict::Faster && (step.ratio.estimate - 0.5).abs() < 0.03, "{step:?}");
        assert!(fast.sentence.contains("data loading is unchanged"), "{}", fast.sentence);
        assert!(slow.detail.starts_with(&format!("{runs} runs of each, in random order")), "{}", slow.detail);
        assert_eq!(slow.detail.contains("Welch's t"), runs < 6, "{}", slow.detail);
        // Else a reader divides the times, and finds another ratio.
        assert_eq!(slow.detail.contains("Ratios are those of geometric means"), runs < 6, "{}", slow.detail);
        assert!(slow.phases.iter().all(|phase| phase.reason.is_none()), "{slow:?}");
    }
}

/// A run that failed is made again last, and stands behind the others.
#[test]
fn rounds_are_pairs_in_whatever_order_their_runs_were_made() {
    let (mut main, slow) = (entry("main", 6, 1.0, 1.0, 1), entry("slow", 6, 2.1, 1.0, 2));
    let as_made = of(("main", &main), ("slow", &slow), 0);
    main.repeats.rotate_left(2);
    assert_eq!(of(("main", &main), ("slow", &slow), 0), as_made);
}

/// As `wellread compare` has it: with fewer than three processes on either side there is a ratio, and no verdict.
#[test]
fn one_or_two_runs_hold_within_themselves_and_give_no_verdict() {
    for (of_main, of_slow, said) in [
        (1, 1, "one run of the baseline and one run of this"),
        (2, 2, "2 runs of the baseline and 2 runs of this"),
        (1, 6, "one run of the baseline and 6 runs of this"),
        (6, 2, "6 runs of the baseline and 2 runs of this"),
    ] {
        let (main, slow) = (entry("main", of_main, 1.0, 1.0, 1), entry("slow", of_slow, 2.1, 1.0, 2));
        let compared = of(("main", &main), ("slow", &slow), 0);
        assert_eq!(compared.phases.len(), 4, "{compared:?}");
        for phase in &compared.phases {
            let Ratio { low, high, .. } = phase.ratio;
            assert_eq!((phase.verdict, low, high, phase.p_value), (Verdict::TooFewData, None, None, None));
            assert_eq!((phase.verdict_word().as_str(), phase.is_alike()), ("no verdict", false));
            let why = format!("within these runs only: {said}, and a verdict needs 3 of each");
            assert_eq!(phase.reason.as_deref(), Some(why.as_str()));
        }
        let ratio = |name: &str| compared.phase(name).unwrap().ratio.estimate;
        assert!((ratio("batch_loading") - 2.1).abs() < 0.05, "{compared:?}");
        let sentence = format!(
            "Within these runs only: data loading of slow takes {:.2} times as long; the model's step takes {:.2} times as \
             long; the whole training run takes {:.2} times as long (compared with main).",
            ratio("batch_loading"),
            ratio("batch_step"),
            ratio("total_training")
        );
        assert_eq!(compared.sentence, sentence);
        let fewest = if of_main.min(of_slow) == 1 {
            "One run of each: no verdict"
        } else {
            "2 runs of each: no verdict"
        };
        assert!(compared.detail.starts_with(fewest), "{}", compared.detail);
        assert!(compared.detail.ends_with("A verdict needs 3 runs of each: --repeats 3 or more."));
    }
}

/// A phase that few runs report has no verdict, and those beside it do.
#[test]
fn a_phase_of_few_runs_is_said_to_hold_within_them() {
    let (main, mut slow) = (entry("main", 4, 1.0, 1.0, 1), entry("slow", 4, 2.1, 1.0, 2));
    for repeat in &mut slow.repeats[2..] {
        repeat.said.samples.retain(|(name, _)| name != "batch_step");
    }
    let compared = of(("main", &main), ("slow", &slow), 0);
    assert_eq!(compared.phase("batch_loading").unwrap().verdict, Verdict::Slower);
    let step = compared.phase("batch_step").unwrap();
    assert_eq!((step.runs, step.verdict), ([4, 2], Verdict::TooFewData));
    let said =
        format!("; the model's step takes {:.2} times as long within these runs only; ", step.ratio.estimate);
    assert!(
        compared.sentence.starts_with("Data loading of slow takes 2.1 times as long ["),
        "{}",
        compared.sentence
    );
    assert!(compared.sentence.contains(&said), "{}", compared.sentence);
}

/// The interval and the probability are those of `wellread compare` of as many processes.
#[test]
fn runs_are_judged_as_processes_are() {
    let estimator = IntervalEstimator::seeded(0);
    let (main, slow) = (entry("main", 4, 1.0, 1.0, 1), entry("slow", 7, 1.01, 1.0, 2));
    let medians = |entry: &Entry| -> Vec<Vec<f64>> {
        values(entry, "batch_loading", true).into_iter().map(|(_, value)| vec![value]).collect()
    };
    let expected = nested::ratio(&medians(&slow), &medians(&main), &estimator).unwrap();
    let found = phase("batch_loading", true, &main, &slow, &estimator).unwrap();
    assert_eq!((found.ratio, found.p_value), (Ratio::from(expected.ratio), Some(expected.p_value)));
    assert_eq!(found.runs, [4, 7]);
}

#[test]
fn what_changed_once_is_told_where_it_is_noticed() {
    let with = |branch: &str, first_batch: f64, transfer: f64, seed: u64| {
        let mut entry = entry(branch, 4, 1.0, 1.0, seed);
        for (run, repeat) in entry.repeats.iter_mut().enumerate() {
            let chance = 1.0 + 0.002 * run as f64;
            for (name, seconds) in [("first_batch_loading", first_batch), ("first_batch_to_device", transfer)]
            {
                let phase = Phase {
                    elapsed_seconds: seconds * chance,
                    memory_delta_mb: None,
                    peak_memory_mb: None,
                    peak_gpu_memory_mb: None,
                };
                repeat.said.phases.push((name.to_owned(), phase));
            }
        }
        entry
    };
    // The whole run takes 2 s.
    let (main, late) = (with("main", 0.1, 0.0001, 1), with("late", 1.1, 0.005, 2));
    let said = of(("main", &main), ("late", &late), 0).sentence;
    assert!(said.starts_with("Loading the first batch of late takes 11.0 times as long ["), "{said}");
    assert!(said.contains("; data loading is unchanged"), "{said}");
    assert!(!said.contains("transfer of the first batch"), "{said}");
}

#[test]
fn single_phases_need_several_runs() {
    for (runs, verdict) in
        [(1, Verdict::TooFewData), (2, Verdict::TooFewData), (3, Verdict::Slower), (8, Verdict::Slower)]
    {
        let (main, slow) = (entry("main", runs, 1.0, 1.0, 1), entry("slow", runs, 3.0, 1.0, 2));
        let compared = of(("main", &main), ("slow", &slow), 0);
        assert_eq!(compared.phase("total_training").unwrap().verdict, verdict, "{runs}");
        assert!((compared.phase("process").unwrap().ratio.estimate - 2.0).abs() < 0.1);
    }
}

#[test]
fn equal_branches_are_rarely_told_apart() {
    let mut alarms = 0;
    for seed in 0..100 {
        for runs in [3, 5, 6] {
            let (a, b) = (entry("a", runs, 1.0, 1.0, 1000 + seed), entry("b", runs, 1.0, 1.0, 5000 + seed));
            let compared = of(("a", &a), ("b", &b), seed);
            alarms += usize::from(compared.phases.iter().any(|p| p.repeated && changed(p)));
        }
    }
    // At most 5 % of 300 comparisons are wrong, and chance leaves 24 in 99 of 100 cases.
    assert!(alarms <= 24, "{alarms}");
}

#[test]
fn a_table_of_many_branches_raises_few_false_alarms() {
    // Ten branches that are all the same, two repeated phases each and one single: without correction every second table
    // would name one.
    let mut tables = 0;
    for seed in 0..40 {
        let main = entry("main", 6, 1.0, 1.0, 10_000 + seed);
        let others: Vec<Entry> =
            (0..10).map(|at| entry("x", 6, 1.0, 1.0, 20_000 + 100 * seed + at)).collect();
        let pairs: Vec<_> = others.iter().map(|other| (("main", &main), ("x", other))).collect();
        let compared = all(&pairs, seed);
        tables += usize::from(compared.iter().flat_map(|one| &one.phases).any(changed));
    }
    assert!(tables <= 6, "{tables} of 40");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let main = entry("main", 3, 1.0, 1.0, 1);
    let none = entry("broken", 0, 1.0, 1.0, 1);
    let said = of(("main", &main), ("broken", &none), 0);
    assert!(said.sentence.contains("broken did not run to its end"), "{}", said.sentence);
    let said = of(("broken", &none), ("main", &main), 0);
    assert!(said.sentence.contains("the baseline broken did not run"), "{}", said.sentence);
    let mut other = entry("other", 3, 1.0, 1.0, 2);
    other.task_config.batch_size = Some(16);
    let said = of(("main", &main), ("other", &other), 0);
    assert_eq!(said.differs, ["batch_size default → 16"]);
    assert!(said.detail.contains("more than the branch"), "{}", said.detail);
    for repeat in &mut other.repeats {
        repeat.said = PhaseReport::default();
    }
    let silent = of(("main", &main), ("other", &other), 0);
    assert!(silent.sentence.starts_with("The whole process of other is unchanged"), "{}", silent.sentence);
}

#[test]
fn what_could_be_anything_is_not_called_unchanged() {
    let phase = |low: f64, high: f64, verdict| PhaseComparison {
        phase: "batch_loading".into(),
        repeated: true,
        baseline_seconds: 1.0,
        seconds: 1.0,
        ratio: Ratio { estimate: 1.0, low: Some(low), high: Some(high) },
        runs: [3, 3],
        p_value: None,
        verdict,
        reason: None,
    };
    // The same within 5 %, as in `wellread compare`, also where 1 lies outside and the correction took the verdict back.
    for (low, high) in [(0.953, 1.049), (1.01, 1.04)] {
        let same = phase(low, high, Verdict::NoDifference);
        assert_eq!((same.is_alike(), same.verdict_word().as_str()), (true, "same"), "{low}");
    }
    // Too low an end, too high a one, from half to twice, and all above one but not significant.
    for (low, high) in [(0.95, 1.0), (1.0, 1.051), (0.5, 2.0), (8.6, 30.0)] {
        let unclear = phase(low, high, Verdict::NoDifference);
        assert_eq!((unclear.is_alike(), unclear.verdict_word().as_str()), (false, "unclear"), "{low}");
    }
    assert_eq!(phase(1.1, 1.2, Verdict::Slower).verdict_word(), "slower");
    assert!(!phase(1.01, 1.02, Verdict::Slower).is_alike());
    let mut unknown = phase(1.0, 1.0, Verdict::NoDifference);
    unknown.ratio.low = None;
    assert!(!unknown.is_alike());
}
