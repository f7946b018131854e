//! The rules by which figures become a recommendation, and its reasons.
//!
//! * **Format, codec, chunks.** Eligible is the fastest, and what its interval shows to be as fast. Where a step
//!   time is given, what is read within it anyway is eligible, too. The set as it is stays, where it is one of these or noise hides
//!   whether it is. It goes where another of these needs less than [`MAX_COPY_SIZE_SHARE`] of its bytes. Then the smallest is
//!   chosen. A set that does not fit into memory is judged by batches from cold files.
//! * **Workers.** The fewest with which a step is not clearly longer than with the best. Without a step time,
//!   those with which not clearly fewer batches are read in the background. An alternative without a median, as every step waited
//!   in half of the rounds or more, is taken only where all are so.
//! * **Batch size.** The smallest that is as fast per image as far as the intervals tell; as asked for, where it was.
//! * **Cache.** None, unless another is clearly faster, fits, and there is something to gain at the step time.

use super::candidates::Candidate;
pub use super::copy_reasons::MAX_COPY_SIZE_SHARE;
use super::copy_reasons::{size_reason, time_to_convert};
use super::measure::{Figures, Series};
use super::predict::{Speed, ends};
use super::verdict::{PairedComparison, SpeedVerdict};
use crate::core::words::{number, percent};
use wellread_loader::Cache;
use wellread_measure::compare::Verdict;
use wellread_measure::samples::median;
use wellread_store::words::{counted, plural};

/// Differences in time that are not worth a choice.
const NEGLIGIBLE: f64 = 0.02;
/// Share of waiting below which there is nothing to gain.
const NO_WAIT: f64 = 0.02;
/// Sizes that differ by less are the same.
pub(super) const SAME_SIZE: f64 = 1.02;

/// One of several, and why.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its index.
    pub index: usize,
    /// Sentences.
    pub reasons: Vec<String>,
}

/// The inputs of a choice beside the figures.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceContext {
    /// Images of the whole set.
    pub images: usize,
    /// One of them in a word.
    pub thing: &'static str,
    /// Bytes of memory that may hold files or pixels.
    pub memory: Option<u64>,
    /// Seconds for an image in which a batch is read while the model computes, where a step time is given.
    pub enough: Option<f64>,
    /// Candidates that the figures say nothing of, since there was time for a short look alone.
    pub screened: Option<ScreenedOnly>,
}

/// Candidates that were screened, and not measured further. Times are seconds of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScreenedOnly {
    /// How many.
    pub count: usize,
    /// The time of the fastest of them.
    pub fastest: f64,
    /// That of the set as it is in the same rounds, where it had a turn in them.
    pub beside: Option<f64>,
    /// That of the set as it is in the table, which may be of later rounds.
    pub own: f64,
    /// Seconds of a study that measures them, where that is longer than this one.
    pub budget: Option<f64>,
}

impl ScreenedOnly {
    /// The result of a short look, in words. Rounds at another time may differ on it, as the clock of a machine changes. Both are told
    /// then.
    fn seemed(self, thing: &str) -> String {
        let rate = |seconds: f64| number(1.0 / seconds);
        let best = format!("{} {}/s", rate(self.fastest), plural(thing));
        let times = |own: f64| format!("the best seemed {} times as fast", number(own / self.fastest));
        let is_faster = |own: f64| self.fastest < own;
        match self.beside {
            Some(beside) if is_faster(beside) != is_faster(self.own) => format!(
                "rounds differ on whether the best is faster. It had {best}; the set as it is had {} in the same rounds and {} in others",
                rate(beside),
                rate(self.own)
            ),
            Some(beside) if is_faster(beside) => {
                format!(
                    "{} ({best}, and the set as it is {} in the same rounds)",
                    times(beside),
                    rate(beside)
                )
            }
            None if is_faster(self.own) => {
                format!(
                    "{} ({best}, and the set as it is {} in other rounds)",
                    times(self.own),
                    rate(self.own)
                )
            }
            _ => "none seemed faster".to_owned(),
        }
    }

    /// The answer of a short look at each `thing`, and the study that tells more.
    fn reason(self, thing: &str) -> String {
        let (others, seemed) = (counted(self.count, "other"), self.seemed(thing));
        let budget = self.budget.map_or_else(
            || "a longer --time-budget".to_owned(),
            // Two digits: it is an estimate.
            |seconds| {
                let unit = 10f64.powf(seconds.log10().floor() - 1.0).max(1.0);
                format!("--time-budget {:.0}", (seconds / unit).ceil() * unit)
            },
        );
        format!(
            "it stays: {others} had a short look alone (screened only), and {seemed}; {budget} measures more"
        )
    }
}

/// `1.9 (1.8 to 2.1) times as fast as`, of a ratio of times.
fn times(versus: &PairedComparison) -> String {
    let Some(ratio) = versus.ratio else { return "of unknown speed beside".to_owned() };
    let ends = ratio.low.zip(ratio.high);
    let ends = ends
        .map_or(String::new(), |(low, high)| format!(" ({} to {})", number(1.0 / high), number(1.0 / low)));
    format!("{}{ends} times as fast as", number(1.0 / ratio.value))
}

/// Chooses among candidates; the first is the set as it is.
pub fn format(candidates: &[&Candidate], figures: &Figures, need: ChoiceContext) -> Option<Choice> {
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
    let is_eligible = |i: usize| series.is_as_fast(i) || is_enough(i);
    let eligible: Vec<usize> = (0..candidates.len()).filter(|&i| is_eligible(i)).collect();
    let smallest = eligible.iter().copied().min_by(|&a, &b| bytes(a).total_cmp(&bytes(b)))?;
    // The fastest of those that are as small.
    let small = eligible.iter().copied().filter(|&i| bytes(i) <= SAME_SIZE * bytes(smallest));
    let median = |i: usize| series.figure(i, |s| s).value;
    let small = small.min_by(|&a, &b| median(a).total_cmp(&median(b)))?;
    // Where noise hides whether anything is faster than the set as it is, a copy needs another reason.
    let may_stay = eligible.contains(&0) || series.versus(0, best).verdict == Verdict::NoDifference;
    let stays = may_stay && bytes(small) > MAX_COPY_SIZE_SHARE * bytes(0);
    // A copy is work and takes room: where the rounds do not tell that it is better, nothing is copied. A set without figures, which
    // failed in some round, says nothing of that either.
    let measured = !series.values[0].is_empty();
    let undecided = !stays && small != 0 && series.versus(small, 0).verdict == Verdict::TooFewData;
    let index = if stays || undecided { 0 } else { small };
    let name = |i: usize| candidates[i].name();
    let rate = |i: usize| {
        let figure = series.figure(i, |s| 1.0 / s);
        let ends = figure.low.zip(figure.high);
        let ends =
            ends.map_or(String::new(), |(low, high)| format!(" ({} to {})", number(low), number(high)));
        format!("{}{ends} {}/s", number(figure.value), plural(need.thing))
    };
    reasons.push(if measured {
        format!("{}: {}", name(index), rate(index))
    } else {
        format!("{}: it could not be measured beside the others", name(0))
    });
    if index != 0 {
        let versus = series.versus(index, 0);
        reasons.push(match versus.told() {
            SpeedVerdict::NoDifference => format!("no difference in speed from the set {}", name(0)),
            SpeedVerdict::NoVerdict => {
                format!("noise hides its difference in speed: {} the set {}", times(&versus), name(0))
            }
            _ => format!("{} the set {}", times(&versus), name(0)),
        });
    }
    if undecided {
        let why = if measured { "too few rounds" } else { "there is no figure of it" };
        reasons.push(format!(
            "it stays: {why} to say whether {} ({}) is better; a longer --time-budget tells",
            name(small),
            rate(small)
        ));
        return Some(Choice { index, reasons });
    }
    if index != best {
        let versus = series.versus(index, best);
        reasons.push(match versus.told() {
            SpeedVerdict::NoDifference => format!("no difference in speed from the fastest, {}", name(best)),
            SpeedVerdict::NoVerdict => {
                format!("noise hides its difference in speed: {} the fastest, {}", times(&versus), name(best))
            }
            _ if series.is_as_fast(index) => {
                format!("practically as fast as the fastest, {} ({})", name(best), rate(best))
            }
            _ => format!(
                "the fastest is {} ({}), but a batch of this is read within the step too",
                name(best),
                rate(best)
            ),
        });
    }
    let is_hidden = |i: usize| {
        let is_smaller = !eligible.contains(&i) && SAME_SIZE * bytes(i) < bytes(index);
        is_smaller && series.versus(i, index).told() == SpeedVerdict::NoVerdict
    };
    let hidden = (0..candidates.len()).filter(|&i| is_hidden(i));
    if let Some(smaller) = hidden.min_by(|&a, &b| bytes(a).total_cmp(&bytes(b))) {
        reasons.push(format!(
            "noise hides whether {}, which needs {} MB, is as fast: it is {} this; a longer --time-budget tells",
            name(smaller),
            number(bytes(smaller) / 1e6),
            times(&series.versus(smaller, index))
        ));
    }
    let is_alone = (1..candidates.len()).all(|i| series.values[i].is_empty());
    reasons.push(if index == 0 && small == 0 && is_alone {
        need.screened.map_or_else(
            || {
                "it stays: nothing else was measured well enough to be compared; a longer --time-budget tells"
                    .to_owned()
            },
            |screened| screened.reason(need.thing),
        )
    } else {
        size_reason(|i| candidates[i], (index, small), (need.images, need.thing))
    });
    reasons.extend(time_to_convert(candidates[index], need.images, "reading the set"));
    Some(Choice { index, reasons })
}

/// Whether cold files decide.
fn judged_cold(candidates: &[&Candidate], figures: &Figures, need: ChoiceContext) -> bool {
    let all = candidates[0].bytes_per_image * need.images as f64;
    let too_large = need.memory.is_some_and(|memory| all > memory as f64 / 2.0);
    too_large && figures.cold.values.iter().all(|values| !values.is_empty())
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

/// Chooses a batch size by the time of an image, which is a `thing`.
pub fn batch_size(sizes: &[usize], series: &Series, thing: &str) -> Option<Choice> {
    let best = series.best()?;
    let index =
        (0..sizes.len()).filter(|&i| series.may_be_as_good(i, NEGLIGIBLE)).min_by_key(|&i| sizes[i])?;
    let rate = series.figure(index, |s| 1.0 / s);
    let mut reasons = vec![format!(
        "batches of {}: {}{} {}/s",
        sizes[index],
        number(rate.value),
        ends(&rate),
        plural(thing)
    )];
    if index != best {
        reasons.push(format!("larger ones are not clearly faster (best median: {})", sizes[best]));
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
mod tests;
