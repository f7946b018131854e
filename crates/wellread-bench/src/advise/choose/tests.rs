//! The choice for given figures.

use super::*;
use crate::advise::predict::is_never;

fn candidate(format: &'static str, is_there: bool, bytes: f64) -> Candidate {
    let compression = (!is_there).then_some(wellread_store::Compression::Lz4);
    let write_s = (!is_there).then_some(1.0);
    Candidate { write_s, bytes_per_image: bytes, ..Candidate::sample(format, compression) }
}

fn series(medians: &[f64]) -> Series {
    let noisy = |m: &f64| (0..10).map(|r| m * (1.0 + 0.01 * ((r * 7) % 5) as f64)).collect();
    Series::of(medians.iter().map(noisy).collect(), 1)
}

fn figures(batches: &[f64], cold: &[f64]) -> Figures {
    Figures { batches: series(batches), single: series(batches), cold: series(cold), turns: vec![] }
}

fn chosen(bytes: &[f64], batches: &[f64], cold: &[f64], need: ChoiceContext) -> Choice {
    let all: Vec<Candidate> = bytes.iter().enumerate().map(|(i, b)| candidate("tiff", i == 0, *b)).collect();
    format(&all.iter().collect::<Vec<_>>(), &figures(batches, cold), need).unwrap()
}

const NEED: ChoiceContext =
    ChoiceContext { images: 1000, thing: "image", memory: Some(1 << 30), enough: None, screened: None };

#[test]
fn the_fastest_is_taken_and_of_equals_the_smallest() {
    let choice = chosen(&[100.0, 90.0, 50.0], &[4e-3, 1e-3, 1.5e-3], &[1.0; 3], NEED);
    assert_eq!(choice.index, 1, "{choice:?}");
    assert!(choice.reasons.iter().any(|r| r.contains("4.00 (") && r.contains("times as fast")), "{choice:?}");
    let choice = chosen(&[100.0, 90.0, 50.0], &[4e-3, 1e-3, 1.005e-3], &[1.0; 3], NEED);
    assert_eq!(choice.index, 2, "{choice:?}");
}

/// The choice among sets of these bytes and seconds in ten rounds; the first is the set as it is.
fn of_rounds(bytes: &[f64], seconds: &[Vec<f64>]) -> Choice {
    let names = ["tiff", "parquet", "lance"];
    let all: Vec<Candidate> =
        bytes.iter().enumerate().map(|(i, bytes)| candidate(names[i], i == 0, *bytes)).collect();
    let series = || Series::of(seconds.to_vec(), 1);
    let figures = Figures { batches: series(), single: series(), cold: series(), turns: vec![] };
    format(&all.iter().collect::<Vec<_>>(), &figures, NEED).unwrap()
}

/// Seconds of ten rounds, by turns.
fn by_turns(one: f64, other: f64) -> Vec<f64> {
    (0..10).map(|round| if round % 2 == 0 { one } else { other }).collect()
}

/// A smaller set of 1.20 (0.90 to 1.50) times the time, without a verdict, was chosen in place of the fastest.
#[test]
fn a_smaller_set_is_chosen_where_it_is_shown_to_be_as_fast() {
    let (own, fastest) = (by_turns(4e-3, 4e-3), by_turns(1e-3, 1e-3));
    let beside =
        |smaller: Vec<f64>| of_rounds(&[100.0, 50.0, 40.0], &[own.clone(), fastest.clone(), smaller]);
    let choice = beside(by_turns(0.9e-3, 1.5e-3));
    assert_eq!(choice.index, 1, "{choice:?}");
    let said = choice.reasons.join("; ");
    assert!(
        said.contains("noise hides whether lance (lz4), which needs 0.0400 MB, is as fast: it is "),
        "{said}"
    );
    assert!(said.contains(" times as fast as this; a longer --time-budget tells"), "{said}");
    assert!(!said.contains("no difference"), "{said}");
    // Within 5 % in all of the interval.
    let choice = beside(by_turns(0.99e-3, 1.04e-3));
    assert_eq!(choice.index, 2, "{choice:?}");
    assert!(!choice.reasons.join("; ").contains("noise hides"), "{choice:?}");
    // Slower beyond 5 %: noise hides nothing.
    let choice = beside(by_turns(1.06e-3, 1.07e-3));
    assert!(choice.index == 1 && !choice.reasons.join("; ").contains("noise hides"), "{choice:?}");
}

/// Noise is no reason for a copy, and a copy of half of the bytes has one.
#[test]
fn a_set_stays_where_noise_hides_whether_a_copy_is_faster() {
    let seconds = [by_turns(0.9e-3, 1.5e-3), by_turns(1e-3, 1e-3)];
    let choice = of_rounds(&[100.0, 90.0], &seconds);
    assert_eq!(choice.index, 0, "{choice:?}");
    let said = choice.reasons.join("; ");
    assert!(
        said.contains("noise hides its difference in speed: ") && said.contains(" the fastest, parquet"),
        "{said}"
    );
    let choice = of_rounds(&[100.0, 50.0], &seconds);
    assert_eq!(choice.index, 1, "{choice:?}");
    let said = choice.reasons.join("; ");
    assert!(
        said.contains("noise hides its difference in speed: ") && said.contains(" the set as it is"),
        "{said}"
    );
}

#[test]
fn a_set_that_is_fast_enough_stays() {
    let choice = chosen(&[100.0, 90.0], &[1.001e-3, 1e-3], &[1.0; 2], NEED);
    assert!(choice.index == 0 && choice.reasons.last().unwrap().contains("stays"), "{choice:?}");
    let slow = [4e-3, 1e-3, 3e-3];
    let enough = ChoiceContext { enough: Some(5e-3), ..NEED };
    assert_eq!(chosen(&[100.0, 90.0, 95.0], &slow, &[1.0; 3], enough).index, 0);
    let choice = chosen(&[100.0, 90.0, 30.0], &slow, &[1.0; 3], enough);
    assert!(choice.index == 2 && choice.reasons.iter().any(|r| r.contains("within the step")), "{choice:?}");
}

#[test]
fn few_rounds_recommend_no_copy() {
    let all = [candidate("tiff", true, 100.0), candidate("parquet", false, 50.0)];
    let few = |rounds: usize| {
        let of = |seconds: f64| (0..rounds).map(|r| seconds * (1.0 + 0.01 * r as f64)).collect();
        let series = || Series::of(vec![of(4e-3), of(1e-3)], 1);
        let figures = Figures { batches: series(), single: series(), cold: series(), turns: vec![] };
        format(&[&all[0], &all[1]], &figures, NEED).unwrap()
    };
    assert_eq!(few(10).index, 1);
    for rounds in 1..6 {
        let choice = few(rounds);
        assert_eq!(choice.index, 0, "{rounds}: {choice:?}");
        let last = choice.reasons.last().unwrap();
        assert!(last.contains("too few rounds") && last.contains("parquet"), "{choice:?}");
    }
}

/// "Not tried within the time: as it is", and the advice was to convert.
#[test]
fn a_set_without_figures_stays() {
    let all = [candidate("tiff", true, 100.0), candidate("parquet", false, 50.0)];
    let of = || Series::of(vec![vec![], vec![1e-3; 10]], 1);
    let figures = Figures { batches: of(), single: of(), cold: of(), turns: vec![] };
    let choice = format(&[&all[0], &all[1]], &figures, NEED).unwrap();
    assert_eq!(choice.index, 0);
    assert_eq!(choice.reasons[0], "as it is (tiff, lz4): it could not be measured beside the others");
    let last = choice.reasons.last().unwrap();
    assert!(
        last.starts_with("it stays: there is no figure of it to say whether parquet (lz4) ("),
        "{choice:?}"
    );
}

#[test]
fn a_set_beside_candidates_that_were_only_screened_says_so() {
    let all = [candidate("tiff", true, 100.0), candidate("parquet", false, 50.0)];
    let reason = |screened| {
        let series = || Series::of(vec![vec![0.1; 10], vec![]], 1);
        let figures = Figures { batches: series(), single: series(), cold: series(), turns: vec![] };
        let need = ChoiceContext { screened, ..NEED };
        format(&[&all[0], &all[1]], &figures, need).unwrap().reasons.pop().unwrap()
    };
    let seen = |[fastest, beside, own]: [f64; 3], budget| {
        let beside = Some(beside).filter(|beside| beside.is_finite());
        Some(ScreenedOnly { count: 7, fastest, beside, own, budget })
    };
    let of = |times: f64, budget| seen([0.001, 0.001 * times, 0.001 * times], budget);
    assert_eq!(
        reason(of(12.0, Some(332.5))),
        "it stays: 7 others had a short look alone (screened only), and the best seemed 12.0 times as fast (1,000 \
         images/s, and the set as it is 83.3 in the same rounds); --time-budget 340 measures more"
    );
    // The table had 2,019 images/s of the set as it is, and 749 of the only other. This said that the other seemed 3.56 times as fast.
    let said = reason(seen([1.0 / 749.0, 1.0 / 210.0, 1.0 / 2019.0], None));
    assert!(
        said.contains(
            "and rounds differ on whether the best is faster. It had 749 images/s; the set as it is had 210 in the same \
             rounds and 2,020 in others; a longer"
        ),
        "{said}"
    );
    let said = reason(seen([0.001, f64::NAN, 0.004], None));
    assert!(
        said.contains("seemed 4.00 times as fast (1,000 images/s, and the set as it is 250 in other rounds)"),
        "{said}"
    );
    assert!(reason(seen([0.001, f64::NAN, 0.0005], None)).contains("and none seemed faster; a longer"));
    assert!(reason(of(0.5, None)).ends_with("and none seemed faster; a longer --time-budget measures more"));
    assert!(reason(None).contains("nothing else was measured well enough"));
}

#[test]
fn a_set_that_exceeds_memory_is_judged_cold() {
    let large = ChoiceContext { memory: Some(100_000), ..NEED };
    assert_eq!(chosen(&[100.0, 90.0], &[1e-3, 2e-3], &[9e-3, 3e-3], large).index, 1);
    assert_eq!(chosen(&[100.0, 90.0], &[1e-3, 2e-3], &[9e-3, 3e-3], NEED).index, 0);
}

#[test]
fn the_fewest_workers_that_do() {
    let speed = |background: f64| vec![Speed { background, waiting: 200.0 }; 8];
    let speeds = [speed(0.0), speed(100.0), speed(180.0), speed(180.5)];
    let counts = [0, 1, 2, 4];
    assert_eq!(counts[workers(&counts, &speeds, None, 1).unwrap().0.index], 2);
    // 20 ms: one worker reads a batch meanwhile. 0.1 s without any: 5 ms on top are 5 %.
    assert_eq!(counts[workers(&counts, &speeds, Some(0.020), 1).unwrap().0.index], 1);
    assert_eq!(counts[workers(&counts, &speeds, Some(1.0), 1).unwrap().0.index], 0);
}

#[test]
fn of_few_rounds_more_workers_need_to_be_clearly_faster() {
    let speed = |background: f64| Speed { background, waiting: 400.0 };
    let counts = [1, 2];
    let chosen = |one: &[f64], two: &[f64]| {
        let of = |rounds: &[f64]| rounds.iter().map(|b| speed(*b)).collect::<Vec<_>>();
        counts[workers(&counts, &[of(one), of(two)], None, 1).unwrap().0.index]
    };
    // The best median is that of two, and in one of three rounds one was faster.
    assert_eq!(chosen(&[100.0, 98.0, 95.0], &[105.0, 96.0, 104.0]), 1);
    assert_eq!(chosen(&[100.0, 98.0, 95.0], &[185.0, 176.0, 184.0]), 2);
    // A single round tells large differences only.
    assert_eq!((chosen(&[100.0], &[108.0]), chosen(&[100.0], &[150.0])), (1, 2));
    // An alternative that was not measured for want of time is not chosen, nor compared with.
    assert_eq!((chosen(&[], &[100.0]), chosen(&[100.0], &[])), (2, 1));
}

#[test]
fn never_takes_no_part_in_figures_and_choices() {
    let speed = |background: f64| Speed { background, waiting: 4000.0 };
    // Steps of 0.4 ms do not wait, or every step does, by turns.
    let one: Vec<Speed> = (0..10).map(|r| speed(if r % 2 == 0 { 2500.0 } else { 0.0 })).collect();
    let four = vec![speed(3500.0); 10];
    let (choice, series) = workers(&[1, 4], &[one.clone(), four], None, 1).unwrap();
    assert_eq!(choice.index, 1);
    let unclear = "unclear with 1 worker (every step waited in 5 of 10 rounds)";
    assert_eq!(choice.reasons, ["4 workers", unclear]);
    let figure = series.figure(0, |s| 1e3 * s);
    assert!(is_never(figure.value) && figure.high.is_some_and(is_never), "{figure:?}");
    assert!(figure.low.is_some_and(|low| (low - 0.4).abs() < 1e-9), "{figure:?}");
    let versus = series.versus(1, 0);
    assert!(versus.ratio.is_none() && versus.verdict == Verdict::TooFewData, "{versus:?}");
    // Two rounds of ten reach an end of the interval only.
    let mostly: Vec<Speed> = (0..10).map(|r| speed(if r % 5 == 3 { 0.0 } else { 2500.0 })).collect();
    let (choice, series) = workers(&[1], std::slice::from_ref(&mostly), None, 1).unwrap();
    let figure = series.figure(0, |s| 1e3 * s);
    assert!((figure.value - 0.4).abs() < 1e-9 && figure.high.is_some_and(is_never), "{figure:?}");
    assert_eq!(choice.reasons, ["1 worker", "unclear with 1 worker (every step waited in 2 of 10 rounds)"]);
    // Where all are so, one is taken, and it is said.
    let (choice, _) = workers(&[1, 4], &[one.clone(), one], None, 1).unwrap();
    let said = choice.reasons.last().unwrap();
    assert!(said.starts_with(unclear) && said.contains("4 workers"), "{choice:?}");
    let never = vec![speed(0.0); 10];
    assert_eq!(workers(&[1, 4], &[never, mostly], None, 1).unwrap().0.index, 1);
    // The one with which it was so least often.
    let often = |nevers: usize| -> Vec<Speed> {
        (0..10).map(|r| speed(if r < nevers { 0.0 } else { 2500.0 })).collect()
    };
    let open =
        "the choice is open: every number of workers waited in some rounds: measure longer (--time-budget)";
    for (nevers, index) in [([7, 5], 1), ([5, 7], 0), ([6, 6], 0)] {
        let (choice, _) = workers(&[1, 4], &nevers.map(often), None, 1).unwrap();
        assert_eq!((choice.index, choice.reasons[1].as_str()), (index, open), "{choice:?}");
    }
    // Half of nothing is no smaller than a number.
    assert_eq!(Series::of(vec![vec![1.0, f64::INFINITY], vec![9.0, 9.0]], 1).best(), Some(1));
}

#[test]
fn one_round_of_never_is_outweighed_by_nine_that_are_faster() {
    let speeds = |background: f64, nevers: usize| -> Vec<Speed> {
        let speed = |background| Speed { background, waiting: 4000.0 };
        (0..10).map(|r| speed(if r < nevers { 0.0 } else { background })).collect()
    };
    let chosen = |one: Vec<Speed>, four: Vec<Speed>| workers(&[1, 4], &[one, four], None, 1).unwrap().0;
    let choice = chosen(speeds(800.0, 0), speeds(3500.0, 1));
    assert_eq!(choice.index, 1);
    assert_eq!(choice.reasons, ["4 workers", "unclear with 4 workers (every step waited in 1 of 10 rounds)"]);
    // The others do not decide among four that are.
    let choice = chosen(speeds(800.0, 0), speeds(3500.0, 4));
    assert_eq!(choice.index, 0);
    assert_eq!(choice.reasons[1], "more are not clearly faster (best median: 4)");
    // Fewer workers that are as fast, but with which it was so and with the others it was not.
    assert_eq!(chosen(speeds(2500.0, 1), speeds(2510.0, 0)).index, 1);
    assert_eq!(chosen(speeds(2500.0, 1), speeds(2510.0, 1)).index, 0);
}

#[test]
fn the_reason_for_a_number_of_workers_has_no_figure_of_its_own() {
    let speeds = [vec![Speed { background: 80.0, waiting: 200.0 }; 8]];
    assert_eq!(workers(&[1], &speeds, None, 1).unwrap().0.reasons, ["1 worker"]);
}

#[test]
fn a_cache_needs_a_gain_and_room() {
    let caches = [Cache::None, Cache::MEMORY];
    let fast = series(&[2e-3, 1e-3]);
    assert_eq!(cache(&caches, &fast, &[0.0, 1e6], Some(1 << 30), None).index, 1);
    assert_eq!(cache(&caches, &fast, &[0.0, 1e6], Some(1 << 30), Some(0.01)).index, 0);
    assert!(cache(&caches, &fast, &[0.0, 1e9], Some(1 << 30), None).reasons[0].contains("more than half"));
    assert_eq!(cache(&caches, &series(&[1e-3, 1.001e-3]), &[0.0, 1e6], Some(1 << 30), None).index, 0);
}

#[test]
fn the_smallest_batch_that_is_as_fast() {
    let choice = batch_size(&[4, 16, 64], &series(&[2e-3, 1e-3, 1.002e-3]), "cell").unwrap();
    assert!(choice.index == 1 && choice.reasons[0].ends_with(" cells/s"), "{choice:?}");
}
