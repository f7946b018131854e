//! Orders, twins, failures, budgets, what is left out.

use super::*;
use crate::intervals::IntervalEstimator;
use crate::rng::Rng;
use crate::steady::ChangePoints;
use std::cell::{Cell, RefCell};
use std::time::Duration;

#[expect(clippy::unnecessary_wraps, reason = "the shape of a variant's closure")]
fn ok(value: f64) -> std::result::Result<f64, String> {
    Ok(value)
}

#[test]
fn every_round_runs_every_variant_once_in_changing_order() {
    let count = Cell::new(0);
    let plan = || {
        Plan::new(5)
            .rounds(20)
            .warmup(2)
            .add("a", || ok(1.0))
            .add("b", || {
                count.set(count.get() + 1);
                ok(2.0)
            })
            .add("c", || ok(3.0))
            .twin("b")
    };
    let outcome = plan().run(|_| ()).unwrap();
    assert_eq!(count.get(), 44);
    assert_eq!((outcome.order.len(), outcome.warmup_rounds, outcome.measured_rounds()), (22, 2, 20));
    for round in &outcome.order {
        let mut sorted = round.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3]);
    }
    assert!(outcome.order.windows(2).any(|pair| pair[0] != pair[1]));
    assert_eq!(outcome.order, plan().run(|_| ()).unwrap().order);
    assert_eq!(outcome.visible().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    let b = outcome.variant("b").unwrap();
    assert_eq!((b.warmup.len(), b.runs.len(), b.runs[0].round), (2, 20, 2));
    assert_eq!(b.values(|v| *v), [2.0; 20]);
    assert_eq!(outcome.variants[3].twin_of.as_deref(), Some("b"));
    for (index, variant) in outcome.variants.iter().enumerate() {
        for run in &variant.runs {
            assert_eq!(outcome.order[run.round][run.position], index);
        }
    }
}

#[test]
fn a_failure_is_a_result_and_the_others_go_on() {
    let mut calls = 0;
    let outcome = Plan::new(1)
        .rounds(4)
        .warmup(0)
        .add("good", || ok(1.0))
        .add("breaks", move || {
            calls += 1;
            if calls == 3 { Err("row 7 is damaged".to_string()) } else { Ok(1.0) }
        })
        .add("panics", || -> std::result::Result<f64, String> { panic!("index {}", 9) })
        .twin("panics")
        .run(|_| ())
        .unwrap();
    assert_eq!(outcome.variant("good").unwrap().runs.len(), 4);
    let breaks = outcome.variant("breaks").unwrap();
    assert_eq!(breaks.runs.len(), 2);
    assert_eq!(breaks.failure, Some(Failure { round: 2, message: "row 7 is damaged".into() }));
    let panics = outcome.variant("panics").unwrap();
    assert_eq!(panics.failure.as_ref().unwrap().message, "panicked: index 9");
    assert!(outcome.variants[3].failure.is_some());
    assert_eq!(outcome.noise_floor(|v| *v, &IntervalEstimator::default()), None);
    assert_eq!(outcome.stopped, Stopped::RoundsDone);
    let (a, b) = outcome.paired(outcome.variant("good").unwrap(), breaks, |v| *v);
    assert_eq!((a.len(), b.len()), (2, 2));

    let all = Plan::<f64>::new(1).add("x", || Err("no")).run(|_| ()).unwrap();
    assert_eq!(all.stopped, Stopped::AllFailed);
}

#[test]
fn the_budget_ends_the_plan_but_not_before_the_fewest_rounds() {
    let slow = || {
        std::thread::sleep(Duration::from_millis(5));
        ok(1.0)
    };
    let plan = |budget| {
        Plan::new(0).rounds(10_000).min_rounds(3).time_budget(Duration::from_millis(budget)).add("slow", slow)
    };
    let none = plan(0).run(|_| ()).unwrap();
    assert_eq!((none.stopped, none.measured_rounds()), (Stopped::TimeBudget, 3));
    assert_eq!(none.warmup_rounds, 1);
    let some = plan(100).run(|_| ()).unwrap();
    assert_eq!(some.stopped, Stopped::TimeBudget);
    assert!((3..20).contains(&some.measured_rounds()), "{}", some.measured_rounds());
}

#[test]
fn progress_is_told_and_may_stop() {
    let mut events = Vec::new();
    let outcome = Plan::new(0)
        .rounds(50)
        .add("a", || ok(1.0))
        .add("b", || Err::<f64, _>("broken"))
        .run(|progress| {
            assert!(progress.turns_done <= progress.turns && progress.turns <= 102);
            assert_eq!(progress.turn.warmup, progress.turn.round == 0);
            events.push(format!("{} {:?}", progress.variant, progress.event));
            if progress.turn.round == 2 { Flow::Stop } else { Flow::Continue }
        })
        .unwrap();
    assert_eq!(outcome.stopped, Stopped::Asked);
    assert_eq!(outcome.variant("a").unwrap().runs.len(), 1);
    assert!(events.contains(&"b Failed(\"broken\")".to_string()), "{events:?}");
}

#[test]
fn plans_without_sense_are_refused() {
    let text = |plan: Plan<'_, f64>| plan.run(|_| ()).unwrap_err().to_string();
    assert!(text(Plan::new(0)).contains("no variant"));
    assert!(text(Plan::new(0).rounds(0).add("a", || ok(1.0))).contains("round"));
    assert!(text(Plan::new(0).add("a", || ok(1.0)).add("a", || ok(1.0))).contains("two variants"));
    assert!(text(Plan::new(0).add("a", || ok(1.0)).twin("z")).contains("there are a"));
    assert!(text(Plan::new(0).add("a", || ok(1.0)).twin("a").twin("a")).contains("two A/A"));
}

#[test]
fn a_real_difference_and_a_twin() {
    let rng = RefCell::new(Rng::seed(3));
    let noisy = |value: f64| ok(value * (0.01 * rng.borrow_mut().normal()).exp());
    let outcome = Plan::new(2)
        .rounds(15)
        .add("base", || noisy(1.0))
        .add("half", || noisy(0.5))
        .add("same", || noisy(1.0))
        .twin("base")
        .run(|_| ())
        .unwrap();
    let estimator = IntervalEstimator::seeded(1);
    let floor = outcome.noise_floor(|v| *v, &estimator).unwrap();
    assert!(floor.fraction() < 0.05 && floor.n == 15, "{floor:?}");
    let verdict = |name| outcome.compare(name, "base", |v| *v, &estimator).unwrap().verdict.to_string();
    assert_eq!((verdict("half"), verdict("same")), ("faster".into(), "no difference".into()));
    assert!(outcome.compare("base", "nobody", |v| *v, &estimator).is_none());
    let text = serde_json::to_string(&outcome).unwrap();
    assert_eq!(serde_json::from_str::<Outcome<f64>>(&text).unwrap().order, outcome.order);
}

#[test]
fn a_plan_ends_when_enough_is_known() {
    let outcome = Plan::new(1)
        .rounds(50)
        .warmup(2)
        .min_rounds(3)
        .add("a", || ok(1.0))
        .add("b", || ok(2.0))
        .stop_when(|variants| variants.iter().all(|variant| variant.runs.len() >= 5))
        .run(|_| ())
        .unwrap();
    assert_eq!((outcome.stopped, outcome.measured_rounds()), (Stopped::Enough, 5));
    let never = Plan::new(1).rounds(4).add("a", || ok(1.0)).stop_when(|_| false).run(|_| ()).unwrap();
    assert_eq!((never.stopped, never.measured_rounds()), (Stopped::RoundsDone, 4));
    let least = Plan::new(1).min_rounds(6).add("a", || ok(1.0)).stop_when(|_| true).run(|_| ()).unwrap();
    assert_eq!(least.measured_rounds(), 6);
}

#[test]
fn rounds_that_were_warm_up_after_all_are_taken_out() {
    let plan = |slow_until: usize| {
        let cost = move |turn: Turn| {
            let jitter = 1.0 + 0.01 * (turn.round * 7 % 5) as f64;
            Ok::<_, String>(jitter * if turn.round < slow_until { 2.0 } else { 1.0 })
        };
        Plan::new(3)
            .rounds(12)
            .warmup(1)
            .add_with_turn("a", cost)
            .add_with_turn("b", move |turn| cost(turn).map(|seconds| 3.0 * seconds))
            .twin("a")
            .run(|_| ())
            .unwrap()
    };
    let settings = ChangePoints { level: 0.05, ..ChangePoints::seeded(1) };
    let mut outcome = plan(5);
    // Round 0 is the warm-up that was asked for.
    assert_eq!(outcome.warmup_left(|seconds| *seconds, &settings), 4);
    outcome.lengthen_warmup(4);
    assert_eq!((outcome.measured_rounds(), outcome.warmup_rounds), (8, 5));
    for variant in &outcome.variants {
        assert_eq!((variant.warmup.len(), variant.runs.len()), (5, 8));
        assert!(variant.runs.iter().all(|run| run.round >= 5 && run.value < 4.0));
    }
    // Steady from the first, steady too late, and ending slower.
    for (slow_until, figure) in [(1, 1.0), (10, 1.0), (5, -1.0)] {
        let cost = move |seconds: &f64| seconds.powf(figure);
        assert_eq!(plan(slow_until).warmup_left(cost, &settings), 0, "{slow_until} {figure}");
    }
    let least = outcome.smallest_detectable(|seconds| *seconds, &IntervalEstimator::seeded(1)).unwrap();
    assert!((0.0..0.1).contains(&least), "{least}");
}

#[test]
fn a_twin_of_each_repeats_all_and_a_noisy_one_decides_nothing() {
    // The first variant's second turn of a round takes twice as long; that of the others as long as the first.
    let run = |plan: Plan<'_, f64>| plan.rounds(16).warmup(1).run(|_| ()).unwrap();
    let plan = || {
        let noisy = |turn: Turn| Ok::<_, String>(if turn.twin { 2.0 } else { 1.0 });
        let steady = |turn: Turn| Ok::<_, String>(3.0 + 0.001 * (turn.round % 3) as f64);
        let plan = Plan::new(5).add_with_turn("noisy", noisy);
        ["b", "c", "d", "e", "f", "g", "h"]
            .into_iter()
            .fold(plan, |plan, name| plan.add_with_turn(name, steady))
    };
    let estimator = IntervalEstimator::seeded(1);
    let floor =
        |outcome: &Outcome<f64>| outcome.noise_floor(|seconds| *seconds, &estimator).unwrap().fraction();
    assert!((floor(&run(plan().twin("noisy"))) - 1.0).abs() < 1e-9);
    let outcome = run(plan().twin_of_each());
    let twin = &outcome.variants[8];
    assert_eq!(
        (twin.name.as_str(), twin.runs.len(), outcome.visible().count()),
        ("each in turn (A/A)", 16, 8)
    );
    let repeated: Vec<usize> = twin.runs.iter().map(|run| run.of).collect();
    assert_eq!(repeated, [[1, 2, 3, 4, 5, 6, 7, 0]; 2].concat());
    assert!(floor(&outcome) < 0.01, "{}", floor(&outcome));
    // One that fails is repeated no more, and takes nothing from the others.
    let fails = |turn: Turn| if turn.round > 2 { Err("late".to_owned()) } else { Ok(1.0) };
    let outcome = run(plan().add_with_turn("fails", fails).twin_of_each());
    assert!(outcome.variants[8].failure.is_some() && outcome.variants[9].failure.is_none());
    assert_eq!(outcome.variants[9].runs.len(), 16);
    assert!(outcome.variants[9].runs.iter().filter(|run| run.round > 3).all(|run| run.of < 8));
    // All of them failed: nothing is left to repeat.
    let all = Plan::new(0).add("a", || Err::<f64, _>("no".to_owned())).twin_of_each().run(|_| ()).unwrap();
    assert_eq!(all.stopped, Stopped::AllFailed);
}

/// A clock that jobs move on, so that nothing depends on how fast this machine is.
fn on_a_clock<'a>(seconds: &'a Cell<f64>, costs: &'a [(&'a str, f64)], budget: f64) -> Plan<'a, f64> {
    let plan = Plan::new(1).time_budget(Duration::from_secs_f64(budget)).fit();
    let plan = plan.clock(|| Duration::from_secs_f64(seconds.get()));
    costs.iter().enumerate().fold(plan, |plan, (rank, &(name, cost))| {
        plan.add(name, move || {
            seconds.set(seconds.get() + cost);
            ok(cost)
        })
        .ranked(rank)
    })
}

#[test]
fn a_budget_that_binds_cuts_rounds_and_leaves_out_what_does_not_fit() {
    let run = |costs: &[(&str, f64)], budget: f64| {
        let seconds = Cell::new(0.0);
        let plan = on_a_clock(&seconds, costs, budget).rounds(7).twin(costs[0].0);
        let outcome = plan.run(|_| ()).unwrap();
        let left: Vec<String> =
            outcome.variants.iter().filter(|v| v.left_out).map(|v| v.name.clone()).collect();
        assert!(outcome.variants.iter().all(|v| v.left_out == v.runs.is_empty()));
        (outcome.measured_rounds(), left, seconds.get())
    };
    let three = [("a", 1.0), ("b", 1.0), ("c", 2.0)];
    // A round with the twin takes 5 seconds.
    assert_eq!(run(&three, 1e6), (7, vec![], 40.0));
    assert_eq!(run(&three, 26.0), (4, vec![], 25.0));
    assert_eq!(run(&three, 10.0), (1, vec![], 10.0));
    // The twin goes first, then what ranks last.
    assert_eq!(run(&three, 9.0), (1, vec!["a (A/A)".to_owned()], 9.0));
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(run(&three, 6.0), (1, names(&["c", "a (A/A)"]), 6.0));
    assert_eq!(run(&three, 5.0), (1, names(&["b", "c", "a (A/A)"]), 5.0));
    // One is measured whatever the budget.
    let (rounds, left, took) = run(&three, 0.5);
    assert_eq!((rounds, left.len(), took), (1, 3, 2.0));
}

#[test]
fn what_a_slow_warm_up_leaves_out_comes_after_all_before_further_rounds() {
    // Warm-up checks every pixel and takes four times as long as a turn that counts.
    let run = |budget: f64| {
        let seconds = Cell::new(0.0);
        let mut plan = Plan::new(1).rounds(7).time_budget(Duration::from_secs_f64(budget)).fit();
        plan = plan.clock(|| Duration::from_secs_f64(seconds.get()));
        for name in ["a", "b", "c", "d"] {
            let seconds = &seconds;
            plan = plan.add_with_turn(name, move |turn: Turn| {
                seconds.set(seconds.get() + if turn.warmup { 4.0 } else { 1.0 });
                ok(1.0)
            });
        }
        let outcome = plan.run(|_| ()).unwrap();
        let runs: Vec<usize> = outcome.variants.iter().map(|v| v.runs.len()).collect();
        assert!(outcome.variants.iter().all(|v| v.left_out == v.runs.is_empty()));
        assert!(outcome.variants.iter().flat_map(|v| &v.runs).all(|run| run.round >= 1));
        (runs, seconds.get())
    };
    // Warm-up ends with c after the half and says that a and b fit; c and d follow in the first measured round.
    assert_eq!(run(23.0), (vec![1, 1, 1, 1], 20.0));
    // The remaining time then goes to a second one.
    assert_eq!(run(24.0), (vec![2, 2, 2, 2], 24.0));
    // No time for d, whatever that leaves.
    let (runs, took) = run(15.0);
    assert!(runs[..2].iter().all(|n| *n >= 1) && runs[3] == 0 && took <= 15.0, "{runs:?} {took}");
}

#[test]
fn one_slow_variant_does_not_take_the_time_of_all_others() {
    // Warm-up of the slow one is one image of eight, and says what a turn that counts takes.
    let run = |slow: f64, budget: f64| {
        let seconds = Cell::new(0.0);
        let mut plan = Plan::new(1).rounds(3).time_budget(Duration::from_secs_f64(budget)).fit();
        plan = plan.clock(|| Duration::from_secs_f64(seconds.get())).turn_cost(|turn: &f64| Some(*turn));
        for (name, cost) in [("slow", slow), ("a", 0.01), ("b", 0.01), ("c", 0.01)] {
            let seconds = &seconds;
            plan = plan.add_with_turn(name, move |turn: Turn| {
                seconds.set(seconds.get() + if turn.warmup { cost / 8.0 } else { cost });
                ok(cost)
            });
        }
        let outcome = plan.run(|_| ()).unwrap();
        let runs: Vec<usize> = outcome.variants.iter().map(|v| v.runs.len()).collect();
        (runs, seconds.get())
    };
    let (runs, took) = run(2.4, 2.0);
    assert_eq!(runs, [0, 3, 3, 3]);
    assert!(took <= 2.0, "{took}");
    // With time for one turn of it, it has that one.
    assert_eq!(run(2.4, 3.0).0, [1, 1, 1, 1]);
    // Where none has time, the fastest of them is measured.
    let (runs, took) = run(2.4, 0.001);
    assert_eq!(runs, [1, 0, 0, 0], "the others were never warmed up");
    assert!(took < 2.8, "{took}");
}

/// The variant that others are compared with is measured although it alone takes too long. It takes the turn of none of them.
#[test]
fn a_required_variant_is_never_left_out() {
    let run = |budget: f64| {
        let seconds = Cell::new(0.0);
        let mut plan = Plan::new(1).rounds(3).time_budget(Duration::from_secs_f64(budget)).fit();
        plan = plan.clock(|| Duration::from_secs_f64(seconds.get())).turn_cost(|turn: &f64| Some(*turn));
        for (name, cost) in [("own", 4.0), ("a", 1.0), ("b", 1.0)] {
            let seconds = &seconds;
            plan = plan.add_with_turn(name, move |turn: Turn| {
                seconds.set(seconds.get() + if turn.warmup { cost / 4.0 } else { cost });
                ok(cost)
            });
            plan = if name == "own" { plan.required() } else { plan };
        }
        let outcome = plan.twin("own").run(|_| ()).unwrap();
        assert!(outcome.variants.iter().all(|v| v.left_out == v.runs.is_empty()));
        (outcome.variants.iter().map(|v| v.runs.len()).collect::<Vec<_>>(), seconds.get())
    };
    // After warm-up, of 2.5 seconds with the twin, as many are left.
    assert_eq!(run(5.0), (vec![1, 1, 1, 0], 8.5));
    // Nothing else was warmed up within the half.
    assert_eq!(run(1.0), (vec![1, 0, 0, 0], 5.0));
}

/// Whichever of both is measured faster in warm-up, what it costs is chance.
#[test]
fn a_twin_never_takes_the_time_of_the_only_variant() {
    let run = |budget: f64| {
        let seconds = Cell::new(0.0);
        let plan = Plan::new(1).rounds(3).time_budget(Duration::from_secs_f64(budget)).fit();
        let plan = plan.clock(|| Duration::from_secs_f64(seconds.get())).turn_cost(|turn: &f64| Some(*turn));
        let plan = plan.add_with_turn("slow", |turn: Turn| {
            let cost = if turn.twin { 1.9 } else { 2.4 };
            seconds.set(seconds.get() + if turn.warmup { 0.1 } else { cost });
            ok(cost)
        });
        let outcome = plan.twin_of_each().run(|_| ()).unwrap();
        outcome.variants.iter().map(|v| v.runs.len()).collect::<Vec<_>>()
    };
    assert_eq!(run(1.0), [1, 0], "neither has time, and the twin is the cheaper one");
    assert_eq!(run(2.2), [1, 0], "the twin alone has time");
}

#[test]
fn the_time_left_is_that_of_the_rounds_that_fit() {
    let seconds = Cell::new(0.0);
    let costs = [("a", 1.0), ("b", 1.0)];
    let told = RefCell::new(Vec::new());
    let plan = on_a_clock(&seconds, &costs, 7.0).rounds(1000);
    plan.run(|p| {
        if p.event != Event::Started {
            told.borrow_mut().push((p.turns_done, p.turns, p.remaining.unwrap().as_secs_f64().round()));
        }
    })
    .unwrap();
    // Warm-up and two rounds of two seconds.
    let expected: Vec<(usize, usize, f64)> = (1..=6).map(|done| (done, 6, (6 - done) as f64)).collect();
    assert_eq!(*told.borrow(), expected);
}
