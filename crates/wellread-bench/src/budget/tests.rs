//! The parts that are cut first where time is short, and the assumed cost of an image.

use super::*;

fn asked() -> LoopRequest {
    LoopRequest { rounds: 7, steps: 50, batch_size: 16, ahead: 6, cold: true }
}

/// Five sets whose images take so long to be read.
fn sets(image_s: f64) -> Vec<ReadCost> {
    ["tiff", "ome-zarr", "parquet", "lance", "vortex"]
        .map(|format| ReadCost { format, open_s: 0.0, image_s })
        .to_vec()
}

#[test]
fn what_every_step_costs_is_not_multiplied_by_the_size_of_an_image() {
    // A tenth of a second each, and two seconds per image.
    let steps = |shares: &[f64]| shares.iter().map(|share| (*share, 0.1 + 2.0 * share)).collect::<Vec<_>>();
    assert!((per_image(&steps(&[0.001, 0.004])) - 2.1).abs() < 1e-9);
    assert!((per_image(&steps(&[0.5, 1.0, 2.0, 4.0])) - 2.025).abs() < 1e-9);
    assert_eq!(per_image(&[(0.001, 0.1)]), 100.0, "one step alone tells nothing of what is fixed");
    assert_eq!(per_image(&[(0.5, 3.0), (1.0, 2.0)]), 2.0, "noise");
}

#[test]
fn benchmarks_share_what_is_left() {
    let s = Duration::from_secs;
    assert_eq!(share(s(10), s(0), 5, 5), s(2));
    assert_eq!(share(s(10), s(2), 4, 5), s(2));
    // One that ended early leaves its time, one that was late takes it.
    assert_eq!(share(s(10), s(1), 3, 5), s(3));
    assert_eq!(share(s(10), s(30), 1, 5), Duration::from_millis(500));
    assert_eq!(left_of_all(s(10), s(4), s(1), 2, 5), s(6));
    assert_eq!(left_of_all(s(10), s(9), s(3), 2, 5), s(4));
    assert_eq!(left_of_all(s(10), s(9), s(3), 0, 5), s(3));
}

/// Five benchmarks with ten seconds: one ends early, one takes its part, one is very late, and the others have the least.
#[test]
fn the_time_left_is_what_the_benchmarks_have_at_most() {
    let ms = Duration::from_millis;
    // Each has its time, its part, and the time left of all when it began.
    let recorded =
        [(1200, 2000, 10_000), (2800, 2200, 8800), (5700, 2000, 6000), (500, 500, 1000), (500, 500, 500)];
    let (all, mut gone) = (recorded.len(), 0);
    for (i, (took, part, left)) in recorded.into_iter().enumerate() {
        let current = share(ms(10_000), ms(gone), all - i, all);
        assert_eq!(current, ms(part), "benchmark {i}");
        assert_eq!(left_of_all(ms(10_000), ms(gone), current, all - i - 1, all), ms(left), "benchmark {i}");
        gone += took;
    }
}

#[test]
fn a_loop_that_fits_is_not_cut() {
    let plan = LoopPlan::of(&asked(), &[(Mode::Train, 1e-5), (Mode::Inference, 1e-6)], &sets(0.0), 120.0);
    assert_eq!((plan.steps, plan.batch_size, plan.differences), (50, 16, true));
    assert_eq!(plan.modes, [Mode::Train, Mode::Inference]);
    assert_eq!(plan.cut(&asked(), 120.0), None);
    // A run of 50 steps is 1 + 50 + 10 + 16 + 10 batches, warm-up 3; six sets of training, the twin included.
    let images = (3.0 + 7.0 * 87.0) * 16.0;
    assert!((plan.in_full - images * (6.0 * 1e-5 + 5.0 * 1e-6)).abs() < 1e-9, "{}", plan.in_full);
}

#[test]
fn the_longer_an_image_takes_the_more_is_cut_and_what_is_planned_fits() {
    let mut before = (usize::MAX, usize::MAX, true, usize::MAX);
    let mut seen = Vec::new();
    for exponent in 0..28 {
        let train = 1e-5 * 2f64.powi(exponent);
        let probe = [(Mode::Train, train), (Mode::Inference, 0.3 * train)];
        let plan = LoopPlan::of(&asked(), &probe, &sets(0.0), 4.0);
        let left: Vec<_> = probe.iter().filter(|(mode, _)| plan.modes.contains(mode)).copied().collect();
        let way = LoopConfig(1, plan.steps, plan.batch_size, plan.differences);
        assert!(way.seconds(&asked(), &left, &sets(0.0)) <= 4.0);
        assert!(plan.slow.is_empty(), "a slow model is no set's fault");
        let now = (plan.steps, plan.batch_size, plan.differences, plan.modes.len());
        if now.3 == before.3 {
            assert!(now.0 <= before.0 && now.1 <= before.1 && now.2 <= before.2, "{now:?} {before:?}");
        }
        assert!(now.3 <= before.3);
        before = now;
        seen.push(now);
    }
    // All kinds of cuts come, and training, which is dearer, goes first.
    assert!(seen.iter().any(|way| way.0 == 25 && way.2) && seen.iter().any(|way| way.0 == 5 && !way.2));
    assert!(seen.iter().any(|way| way.1 == 4) && seen.iter().any(|way| way.3 == 1));
    assert_eq!(seen.last().unwrap().3, 0);
}

#[test]
fn what_was_cut_and_what_does_not_fit_is_said() {
    let plan = LoopPlan::of(&asked(), &[(Mode::Train, 0.04)], &sets(0.0), 4.0);
    let said = plan.cut(&asked(), 4.0).unwrap();
    for word in [
        "4 s of the time budget",
        "of 50 steps",
        "instead of 16 images",
        "no waiting by difference",
        "39 minutes",
    ] {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    let none = LoopPlan::of(&asked(), &[(Mode::Train, 10.0)], &sets(0.0), 4.0);
    // One step in warm-up and one in a round, each after one that fills the pipeline; five sets and the twin.
    assert_eq!((none.modes.len(), none.skipped), (0, vec![(Mode::Train, 240.0)]));
    assert_eq!(words(3.94), "3.9 s");
    assert_eq!((words(240.0), words(36_000.0)), ("4 minutes".to_owned(), "10 hours".to_owned()));
}

#[test]
fn slow_loading_is_planned_for_as_a_slow_model_is() {
    // Next to nothing is computed: reading alone is too slow for 9 seconds.
    let train = [(Mode::Train, 1e-6)];
    let plan = LoopPlan::of(&asked(), &train, &sets(1.0 / 500.0), 9.0);
    assert!(plan.steps < 50 && plan.slow.is_empty(), "{plan:?}");
    let way = LoopConfig(1, plan.steps, plan.batch_size, plan.differences);
    assert!(way.seconds(&asked(), &train, &sets(1.0 / 500.0)) <= 9.0);
    let said = plan.cut(&asked(), 9.0).unwrap();
    assert!(said.contains("cut to fit") && said.contains("of 50 steps"), "{said}");
    // Nor does opening come for nothing.
    let slow_to_open: Vec<_> = sets(0.0).iter().map(|set| ReadCost { open_s: 2.0, ..*set }).collect();
    let full = LoopPlan::of(&asked(), &train, &slow_to_open, 1e6);
    assert!(full.in_full > 6.0 * 2.0 * 29.0 - 1e-9, "{}", full.in_full);
}

#[test]
fn a_set_that_is_too_slow_alone_is_left_out_and_the_others_keep_what_they_have() {
    let train = [(Mode::Train, 1e-5)];
    let mut all = sets(1e-4);
    all.push(ReadCost { format: "parquet-duckdb", open_s: 0.01, image_s: 1.0 / 47.0 });
    let plan = LoopPlan::of(&asked(), &train, &all, 9.0);
    let names: Vec<_> = plan.slow.iter().map(|(format, _)| *format).collect();
    assert_eq!((names, plan.batch_size, plan.modes.len()), (vec!["parquet-duckdb"], 16, 1));
    assert_eq!((plan.steps, plan.differences), (50, true), "the others fit in full");
    assert!(plan.cut(&asked(), 9.0).unwrap().contains("without parquet-duckdb"));
    assert!(plan.slow[0].1 > 9.0 / 6.0, "more than its part: {:?}", plan.slow);
    // With time enough it stays.
    assert!(LoopPlan::of(&asked(), &train, &all, 1e4).slow.is_empty());
    // One of two sets too, but never most of them.
    let two = [all[0], all[5]];
    assert_eq!(LoopPlan::of(&asked(), &train, &two, 3.0).slow.len(), 1);
    assert!(LoopPlan::of(&asked(), &train, &all[5..], 3.0).slow.is_empty());
}

#[test]
fn a_run_is_cut_when_it_grossly_exceeds_what_was_planned_and_its_part() {
    let plan = LoopPlan::of(&asked(), &[(Mode::Train, 1e-3)], &sets(0.0), 1e6);
    let set = ReadCost { format: "tiff", open_s: 0.1, image_s: 1e-3 };
    // 51 batches of 16 images, 2 ms each.
    assert!((plan.limit(1e-3, &set, 6, 7.0) - 3.0 * (0.1 + 51.0 * 16.0 * 2e-3)).abs() < 1e-9);
    assert_eq!(plan.limit(1e-3, &set, 6, 1400.0), 100.0);
}
