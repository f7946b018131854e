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
        // Processes differ by 1 %, batches within one by 3 %.
        let level = (0.01 * rng.normal()).exp();
        let mut batches = |factor: f64| {
            let mut seconds = vec![10.0; 2];
            seconds.extend((0..30).map(|_| 0.01 * factor * level * (0.03 * rng.normal()).exp()));
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
    for runs in [1, 2, 3, 5, 6, 10] {
        let main = entry("main", runs, 1.0, 1.0, 1);
        let of = |candidate: &Entry| self::of(("main", &main), (&candidate.branch, candidate), 0);
        let slow = of(&entry("slow", runs, 2.1, 1.0, 2));
        assert_eq!(slow.phase("batch_loading").unwrap().verdict, Verdict::Slower, "{runs}: {slow:?}");
        assert_eq!(slow.phase("batch_step").unwrap().verdict, Verdict::NoDifference, "{runs}: {slow:?}");
        let ratio = slow.phase("batch_loading").unwrap().ratio;
        assert!(ratio.low.unwrap() > 1.7 && ratio.high.unwrap() < 2.6, "{runs}: {ratio:?}");
        assert!(slow.sentence.starts_with("Data loading of slow is 2.1 times slower ["), "{}", slow.sentence);
        assert!(
            slow.sentence.contains("]; the model's step is unchanged; the whole training run "),
            "{}",
            slow.sentence
        );
        let fast = of(&entry("fast", runs, 1.0, 0.5, 33));
        assert!(fast.sentence.starts_with("The model's step of fast is "), "{}", fast.sentence);
        let step = fast.phase("batch_step").unwrap();
        assert!(step.verdict == Verdict::Faster && (step.ratio.estimate - 0.5).abs() < 0.03, "{step:?}");
        assert!(fast.sentence.contains("data loading is unchanged"), "{}", fast.sentence);
        assert_eq!(slow.detail.contains("One run of each"), runs == 1, "{}", slow.detail);
        assert_eq!(slow.detail.contains("may differ by more"), runs == 1, "{}", slow.detail);
    }
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
    assert!(said.starts_with("Loading the first batch of late is 11.0 times slower ["), "{said}");
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
        for runs in [1, 3, 6] {
            let (a, b) = (entry("a", runs, 1.0, 1.0, 1000 + seed), entry("b", runs, 1.0, 1.0, 5000 + seed));
            let compared = of(("a", &a), ("b", &b), seed);
            alarms += usize::from(compared.phases.iter().any(|p| p.repeated && changed(p)));
        }
    }
    // Two phases each: 10 % of 300 comparisons may be wrong by chance at most.
    assert!(alarms <= 30, "{alarms}");
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
    };
    assert!(phase(0.95, 1.05, Verdict::NoDifference).is_alike());
    // From half to twice, then all above one, but not significant, then a verdict, then no interval.
    assert!(!phase(0.5, 2.0, Verdict::NoDifference).is_alike());
    assert!(!phase(8.6, 30.0, Verdict::NoDifference).is_alike());
    assert!(!phase(1.1, 1.2, Verdict::Slower).is_alike());
    let mut unknown = phase(1.0, 1.0, Verdict::NoDifference);
    unknown.ratio.low = None;
    assert!(!unknown.is_alike());
}

/// The limit of a single run. Where processes differ by 2 %, about 5 of 100 pairs of equal ones get a verdict. Where they
/// differ by 5 %, about 40 do.
#[test]
fn one_run_of_each_may_take_chance_for_a_difference() {
    let estimator = IntervalEstimator { resamples: 200, ..IntervalEstimator::default() };
    let alarms = |effect: f64| {
        let mut rng = Rng::seed(26);
        let mut process = || -> Vec<f64> {
            let level = (effect * rng.normal()).exp();
            (0..20).map(|_| level * (0.01 * rng.normal()).exp()).collect()
        };
        (0..400)
            .filter(|_| {
                let (_, verdict) = single(&process(), &process(), &estimator).unwrap();
                matches!(verdict, Verdict::Faster | Verdict::Slower)
            })
            .count()
    };
    let (two, five) = (alarms(0.02), alarms(0.05));
    assert!((4..=40).contains(&two) && (120..=220).contains(&five), "{two} and {five} of 400");
}
