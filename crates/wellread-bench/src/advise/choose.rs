//! The rules by which figures become a recommendation, and its reasons.
//!
//! * **Format, codec, chunks.** Eligible is what is as fast as the fastest as far as the intervals tell, and, where a step time
//!   is given, what is read within it anyway. Of these, the set as it is stays unless another needs less than [`WORTH`] of
//!   its bytes; else the smallest. A set that does not fit into memory is judged by batches from cold files.
//! * **Workers.** The fewest with which a step is not clearly longer than with the best; without a step time, with which not
//!   clearly fewer batches are read in the background. Of what has no median, as every step waited in half of the rounds or more,
//!   one is taken only where all are so.
//! * **Batch size.** The smallest that is as fast per image; as asked for, where it was.
//! * **Cache.** None, unless another is clearly faster, fits, and there is something to gain at the step time.

use super::candidates::Candidate;
use super::measure::{Figures, Series, Versus};
use super::predict::Speed;
use crate::core::words::{number, percent};
use crate::stages::Figure;
use wellread_loader::Cache;
use wellread_measure::compare::Verdict;
use wellread_measure::samples::median;
use wellread_store::words::counted;

/// A copy must need less than this share of the bytes of a set that is fast enough as it is, to be worth making.
pub const WORTH: f64 = 0.7;
/// Differences in time that are not worth a choice.
const NEGLIGIBLE: f64 = 0.02;
/// Share of waiting below which there is nothing to gain.
const NO_WAIT: f64 = 0.02;
/// Sizes that differ by less are the same.
const SAME_SIZE: f64 = 1.02;

/// One of several, and why.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its index.
    pub index: usize,
    /// Sentences.
    pub reasons: Vec<String>,
}

/// What a choice depends on beside the figures.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Images of the whole set.
    pub images: usize,
    /// Bytes of memory that may hold files or pixels.
    pub memory: Option<u64>,
    /// Seconds for an image in which a batch is read while the model computes, where a step time is given.
    pub enough: Option<f64>,
}

/// `1.9 (1.8 to 2.1) times as fast as`, of a ratio of times.
fn times(versus: &Versus) -> String {
    let Some(ratio) = versus.ratio else { return "of unknown speed beside".to_owned() };
    let ends = ratio.low.zip(ratio.high);
    let ends = ends
        .map_or(String::new(), |(low, high)| format!(" ({} to {})", number(1.0 / high), number(1.0 / low)));
    format!("{}{ends} times as fast as", number(1.0 / ratio.value))
}

/// Chooses among candidates; the first is the set as it is.
pub fn format(candidates: &[&Candidate], figures: &Figures, need: Need) -> Option<Choice> {
    let bytes = |i: usize| candidates[i].bytes_per_image * need.images as f64;
    let mut reasons = Vec::new();
    let cold = judged_cold(candidates, figures, need);
    let series = if cold { &figures.cold } else { &figures.batches };
    if cold {
        reasons.push(format!(
            "the set ({:.1} GB) does not fit into the memory that is free for files, so formats are judged by batches from cold \
             files",
            bytes(0) / 1e9
        ));
    }
    let best = series.best()?;
    let is_enough = |i: usize| {
        let median = series.figure(i, |s| s).value;
        need.enough.is_some_and(|enough| median < enough)
    };
    let is_eligible = |i: usize| series.is_as_good(i, NEGLIGIBLE) || is_enough(i);
    let eligible: Vec<usize> = (0..candidates.len()).filter(|&i| is_eligible(i)).collect();
    let smallest = eligible.iter().copied().min_by(|&a, &b| bytes(a).total_cmp(&bytes(b)))?;
    // Of what is as small, the fastest.
    let small = eligible.iter().copied().filter(|&i| bytes(i) <= SAME_SIZE * bytes(smallest));
    let median = |i: usize| series.figure(i, |s| s).value;
    let small = small.min_by(|&a, &b| median(a).total_cmp(&median(b)))?;
    let stays = eligible.contains(&0) && bytes(small) > WORTH * bytes(0);
    // A copy is work and takes room: where the rounds do not tell that it is better, nothing is copied.
    let measured = !series.values[0].is_empty();
    let too_few = measured && series.versus(small, 0).verdict == Verdict::TooFewData;
    let undecided = !stays && small != 0 && too_few;
    let index = if stays || undecided { 0 } else { small };
    let name = |i: usize| candidates[i].name();
    let rate = |i: usize| {
        let figure = series.figure(i, |s| 1.0 / s);
        let ends = figure.low.zip(figure.high);
        let ends =
            ends.map_or(String::new(), |(low, high)| format!(" ({} to {})", number(low), number(high)));
        format!("{}{ends} images/s", number(figure.value))
    };
    reasons.push(format!("{}: {}", name(index), rate(index)));
    if index != 0 && measured {
        let versus = series.versus(index, 0);
        reasons.push(match versus.verdict {
            Verdict::NoDifference => format!("no difference in speed from the set {}", name(0)),
            _ => format!("{} the set {}", times(&versus), name(0)),
        });
    }
    if undecided {
        reasons.push(format!(
            "it stays: too few rounds to say whether {} ({}) is better; a longer --time-budget tells",
            name(small),
            rate(small)
        ));
        return Some(Choice { index, reasons });
    }
    if index != best {
        let versus = series.versus(index, best);
        reasons.push(match versus.verdict {
            Verdict::NoDifference => format!("no difference in speed from the fastest, {}", name(best)),
            _ if series.is_as_good(index, NEGLIGIBLE) => {
                format!("practically as fast as the fastest, {} ({})", name(best), rate(best))
            }
            _ => format!(
                "the fastest is {} ({}), but a batch of this is read within the step too",
                name(best),
                rate(best)
            ),
        });
    }
    let is_alone = (1..candidates.len()).all(|i| series.values[i].is_empty());
    reasons.push(if index == 0 && small == 0 && is_alone {
        "it stays: nothing else was measured well enough to be compared; a longer --time-budget tells".to_owned()
    } else if index == 0 && small == 0 {
        format!("it stays: nothing that is as fast is smaller ({} MB)", number(bytes(0) / 1e6))
    } else if index == 0 {
        format!(
            "it stays: the smallest that is fast enough, {}, needs {} of its {} MB, and a copy is worth making below {}",
            name(small),
            percent(bytes(small) / bytes(0)),
            number(bytes(0) / 1e6),
            percent(WORTH)
        )
    } else {
        format!(
            "{} MB for the whole set ({}), {} of what it takes now",
            number(bytes(index) / 1e6),
            counted(need.images, "image"),
            percent(bytes(index) / bytes(0))
        )
    });
    if let Some(write_s) = candidates[index].write_s {
        let each = write_s / candidates[index].images.max(1) as f64;
        reasons.push(format!(
            "converting takes about {} s, reading the set not counted",
            number(each * need.images as f64)
        ));
    }
    Some(Choice { index, reasons })
}

/// Whether cold files decide.
fn judged_cold(candidates: &[&Candidate], figures: &Figures, need: Need) -> bool {
    let all = candidates[0].bytes_per_image * need.images as f64;
    let too_large = need.memory.is_some_and(|memory| all > memory as f64 / 2.0);
    too_large && figures.cold.values.iter().all(|values| !values.is_empty())
}

/// Whether a step of so many milliseconds stands for none that does not wait ([`Speed::enough`]).
pub fn is_never(ms: f64) -> bool {
    !ms.is_finite()
}

/// Chooses a number of workers by the step with its wait, or by what is read in the background.
pub fn workers(
    counts: &[usize],
    speeds: &[Vec<Speed>],
    step: Option<f64>,
    seed: u64,
) -> Option<(Choice, Series)> {
    let of = |speed: &Speed| match step {
        Some(step) => step + speed.wait(step),
        None => speed.enough(),
    };
    let series = Series::of(speeds.iter().map(|of_count| of_count.iter().map(of).collect()).collect(), seed);
    // A number of workers with which every step waited in half of the rounds or more has no median, and cannot be judged.
    let nevers = |i: usize| series.values[i].iter().filter(|s| !s.is_finite()).count();
    let has_median = |values: &[f64]| median(values).is_some_and(f64::is_finite);
    let judged = |values: &Vec<f64>| if has_median(values) { values.clone() } else { vec![] };
    let judged = Series::of(series.values.iter().map(judged).collect(), seed);
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&i| counts[i]);
    let judged_best = judged.best();
    let (best, index) = if let Some(best) = judged_best {
        // Fewer workers are no gain where every step waited more often.
        let does = |i: usize| nevers(i) <= nevers(best) && !judged.is_clearly_worse(i, NEGLIGIBLE);
        (best, order.into_iter().find(|&i| does(i))?)
    } else {
        // Where none can be judged, one is taken all the same: that with which it was so least often.
        let share = |i: usize| nevers(i) as f64 / series.values[i].len() as f64;
        let measured = order.into_iter().filter(|&i| !series.values[i].is_empty());
        measured.min_by(|&a, &b| share(a).total_cmp(&share(b))).map(|least| (least, least))?
    };
    let workers = counted(counts[index], "worker");
    // Without a step time, what it comes to is measured at the end, with everything that is recommended.
    let mut reasons = vec![match step {
        Some(_) => {
            let figure = series.figure(index, |s| 1e3 * s);
            format!("{workers}: a step with its wait takes {} ms{}", number(figure.value), ends(&figure))
        }
        None => workers,
    }];
    if index != best {
        reasons.push(format!("more are not clearly faster (best median: {})", counts[best]));
    } else if let Some(fewer) =
        (0..counts.len()).filter(|&i| counts[i] < counts[index]).max_by_key(|&i| counts[i])
    {
        let versus = series.versus(index, fewer);
        if versus.ratio.is_some() {
            reasons.push(format!("{} with {}", times(&versus), counts[fewer]));
        }
    }
    if judged_best.is_none() {
        reasons.push(
            "the choice is open: every number of workers waited in some rounds: measure longer (--time-budget)"
                .to_owned(),
        );
    }
    let unclear = |i: usize| {
        let rounds = counted(series.values[i].len(), "round");
        format!("{} (every step waited in {} of {rounds})", counted(counts[i], "worker"), nevers(i))
    };
    let unclear: Vec<String> = (0..counts.len()).filter(|&i| nevers(i) > 0).map(unclear).collect();
    if !unclear.is_empty() {
        reasons.push(format!("unclear with {}", unclear.join(", ")));
    }
    Some((Choice { index, reasons }, series))
}

/// From which step on nothing waits, of milliseconds.
pub fn no_wait(from_ms: &Figure) -> String {
    if is_never(from_ms.value) {
        return "every step waits, as far as these rounds tell".to_owned();
    }
    format!("no wait for steps from {} ms{}", number(from_ms.value), ends(from_ms))
}

/// ` (LOW to HIGH)`, where there is an interval.
pub fn ends(figure: &Figure) -> String {
    let Some((low, high)) = figure.low.zip(figure.high) else { return String::new() };
    if is_never(high) {
        return format!(" ({} or more)", number(low));
    }
    format!(" ({} to {})", number(low), number(high))
}

/// Chooses a batch size by the time of an image.
pub fn batch_size(sizes: &[usize], series: &Series) -> Option<Choice> {
    let best = series.best()?;
    let index = (0..sizes.len()).filter(|&i| series.is_as_good(i, NEGLIGIBLE)).min_by_key(|&i| sizes[i])?;
    let rate = series.figure(index, |s| 1.0 / s);
    let mut reasons =
        vec![format!("batches of {}: {}{} images/s", sizes[index], number(rate.value), ends(&rate))];
    if index != best {
        reasons.push(format!("larger ones make no difference (best median: {})", sizes[best]));
    }
    Some(Choice { index, reasons })
}

/// Chooses a cache; the first is none. `bytes` is what each needs for the whole set, `wait` the share of waiting without one.
pub fn cache(
    caches: &[Cache],
    series: &Series,
    bytes: &[f64],
    memory: Option<u64>,
    wait: Option<f64>,
) -> Choice {
    let none = |why: String| Choice { index: 0, reasons: vec![why] };
    if let Some(wait) = wait.filter(|wait| *wait < NO_WAIT) {
        return none(format!(
            "no cache: without one {} of a step is waiting, and there is nothing to gain",
            percent(wait)
        ));
    }
    let fits = |i: usize| memory.is_some_and(|memory| bytes[i] < memory as f64 / 2.0);
    let is_faster = |i: usize| {
        let versus = series.versus(i, 0);
        versus.verdict == Verdict::Faster && versus.ratio.is_some_and(|ratio| ratio.value < 1.0 - NEGLIGIBLE)
    };
    let faster: Vec<usize> = (1..caches.len()).filter(|&i| is_faster(i)).collect();
    let fitting = faster.iter().copied().filter(|&i| fits(i));
    let median = |i: usize| series.figure(i, |s| s).value;
    match fitting.min_by(|&a, &b| median(a).total_cmp(&median(b))) {
        Some(index) => Choice {
            index,
            reasons: vec![format!(
                "cache {}: later epochs are {} without one; it needs {} MB of memory for the whole set",
                caches[index],
                times(&series.versus(index, 0)),
                number(bytes[index] / 1e6)
            )],
        },
        None if faster.is_empty() && (1..caches.len()).all(|i| series.versus(i, 0).ratio.is_none()) => none(
            "no cache: too few rounds to say whether one is faster; a longer --time-budget tells".to_owned(),
        ),
        None if faster.is_empty() => none("no cache: none of them is faster beyond doubt".to_owned()),
        None => none(format!(
            "no cache: {} would be faster, but the whole set takes {} GB in it, which is more than half of the memory",
            caches[faster[0]],
            number(bytes[faster[0]] / 1e9)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(format: &'static str, is_there: bool, bytes: f64) -> Candidate {
        Candidate {
            format,
            compression: (!is_there).then_some(wellread_store::Compression::Lz4),
            chunk: None,
            codec: "lz4".to_owned(),
            pieces: String::new(),
            write_s: (!is_there).then_some(1.0),
            images: 100,
            bytes_per_image: bytes,
            path: "x".into(),
        }
    }

    fn series(medians: &[f64]) -> Series {
        let noisy = |m: &f64| (0..10).map(|r| m * (1.0 + 0.01 * ((r * 7) % 5) as f64)).collect();
        Series::of(medians.iter().map(noisy).collect(), 1)
    }

    fn figures(batches: &[f64], cold: &[f64]) -> Figures {
        Figures { batches: series(batches), single: series(batches), cold: series(cold) }
    }

    fn chosen(bytes: &[f64], batches: &[f64], cold: &[f64], need: Need) -> Choice {
        let all: Vec<Candidate> =
            bytes.iter().enumerate().map(|(i, b)| candidate("tiff", i == 0, *b)).collect();
        format(&all.iter().collect::<Vec<_>>(), &figures(batches, cold), need).unwrap()
    }

    const NEED: Need = Need { images: 1000, memory: Some(1 << 30), enough: None };

    #[test]
    fn the_fastest_is_taken_and_of_equals_the_smallest() {
        let choice = chosen(&[100.0, 90.0, 50.0], &[4e-3, 1e-3, 1.5e-3], &[1.0; 3], NEED);
        assert_eq!(choice.index, 1, "{choice:?}");
        assert!(
            choice.reasons.iter().any(|r| r.contains("4.00 (") && r.contains("times as fast")),
            "{choice:?}"
        );
        let choice = chosen(&[100.0, 90.0, 50.0], &[4e-3, 1e-3, 1.005e-3], &[1.0; 3], NEED);
        assert_eq!(choice.index, 2, "{choice:?}");
    }

    #[test]
    fn a_set_that_is_fast_enough_stays() {
        let choice = chosen(&[100.0, 90.0], &[1.001e-3, 1e-3], &[1.0; 2], NEED);
        assert!(choice.index == 0 && choice.reasons.last().unwrap().contains("stays"), "{choice:?}");
        let slow = [4e-3, 1e-3, 3e-3];
        let enough = Need { enough: Some(5e-3), ..NEED };
        assert_eq!(chosen(&[100.0, 90.0, 95.0], &slow, &[1.0; 3], enough).index, 0);
        let choice = chosen(&[100.0, 90.0, 30.0], &slow, &[1.0; 3], enough);
        assert!(
            choice.index == 2 && choice.reasons.iter().any(|r| r.contains("within the step")),
            "{choice:?}"
        );
    }

    #[test]
    fn few_rounds_recommend_no_copy() {
        let all = [candidate("tiff", true, 100.0), candidate("parquet", false, 50.0)];
        let few = |rounds: usize| {
            let of = |seconds: f64| (0..rounds).map(|r| seconds * (1.0 + 0.01 * r as f64)).collect();
            let series = || Series::of(vec![of(4e-3), of(1e-3)], 1);
            let figures = Figures { batches: series(), single: series(), cold: series() };
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

    #[test]
    fn a_set_that_exceeds_memory_is_judged_cold() {
        let large = Need { memory: Some(100_000), ..NEED };
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
        // What there was no time for is not chosen, nor compared with.
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
        assert_eq!(
            choice.reasons,
            ["1 worker", "unclear with 1 worker (every step waited in 2 of 10 rounds)"]
        );
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
        let open = "the choice is open: every number of workers waited in some rounds: measure longer (--time-budget)";
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
        assert_eq!(
            choice.reasons,
            ["4 workers", "unclear with 4 workers (every step waited in 1 of 10 rounds)"]
        );
        // Of four that are, the others do not tell.
        let choice = chosen(speeds(800.0, 0), speeds(3500.0, 4));
        assert_eq!(choice.index, 0);
        assert_eq!(choice.reasons[1], "more are not clearly faster (best median: 4)");
        // Fewer workers that are as fast, but with which it was so and with the others it was not.
        assert_eq!(chosen(speeds(2500.0, 1), speeds(2510.0, 0)).index, 1);
        assert_eq!(chosen(speeds(2500.0, 1), speeds(2510.0, 1)).index, 0);
    }

    #[test]
    fn one_sentence_says_from_which_step_on_nothing_waits() {
        let figure = |value, low, high| Figure { value, low, high };
        assert_eq!(
            no_wait(&figure(12.0, Some(11.0), Some(13.0))),
            "no wait for steps from 12.0 ms (11.0 to 13.0)"
        );
        assert_eq!(
            no_wait(&figure(12.0, Some(11.0), Some(f64::INFINITY))),
            "no wait for steps from 12.0 ms (11.0 or more)"
        );
        for value in [f64::INFINITY, f64::NAN] {
            assert!(no_wait(&figure(value, None, None)).starts_with("every step waits"), "{value}");
        }
        // The reason for a number of workers has no figure of its own.
        let speeds = [vec![Speed { background: 80.0, waiting: 200.0 }; 8]];
        assert_eq!(workers(&[1], &speeds, None, 1).unwrap().0.reasons, ["1 worker"]);
    }

    #[test]
    fn a_cache_needs_a_gain_and_room() {
        let caches = [Cache::None, Cache::MEMORY];
        let fast = series(&[2e-3, 1e-3]);
        assert_eq!(cache(&caches, &fast, &[0.0, 1e6], Some(1 << 30), None).index, 1);
        assert_eq!(cache(&caches, &fast, &[0.0, 1e6], Some(1 << 30), Some(0.01)).index, 0);
        assert!(
            cache(&caches, &fast, &[0.0, 1e9], Some(1 << 30), None).reasons[0].contains("more than half")
        );
        assert_eq!(cache(&caches, &series(&[1e-3, 1.001e-3]), &[0.0, 1e6], Some(1 << 30), None).index, 0);
    }

    #[test]
    fn the_smallest_batch_that_is_as_fast() {
        assert_eq!(batch_size(&[4, 16, 64], &series(&[2e-3, 1e-3, 1.002e-3])).unwrap().index, 1);
    }
}
