//! The findings of the table of the data loader: the fastest format, the best number of workers, the limit.

use super::caching::{self, counted_per_s};
use crate::core::judge::{Comparison, Judge, Ranked, ranked};
use crate::core::series::{Series, by_median, series, telling_batch_size};
use crate::core::words::{capitalized, number, with_codec, workers};
use crate::roofline;
use wellread_report::{Finding, Severity, Table, Topic};
use wellread_store::words::counted;

/// Findings of the table of the data loader.
pub(super) fn all(table: &Table, judge: &Judge) -> Vec<Ranked> {
    let found = [
        fastest_loader(table, judge).map(|finding| finding.about(Topic::Format)),
        best_workers(table, judge),
        what_binds(table, judge),
        caching::finding(table, judge),
    ];
    [10, 30, 31, 32].into_iter().zip(found).filter_map(|(rank, finding)| ranked(rank, finding)).collect()
}

pub(crate) fn rates(table: &Table, batch: f64) -> Vec<Series> {
    // The first of several caches that was asked for: a median over all of them is none's.
    let cache = table.str("cache", 0);
    let all = series(table, &["workers"], "samples_per_sec", |r| {
        table.f64("batch_size", r) == Some(batch) && table.str("cache", r) == cache
    });
    by_median(all)
}

/// Epochs shorter than this are mostly starting and stopping threads.
const SHORT_EPOCH: f64 = 0.05;

fn fastest_loader(table: &Table, judge: &Judge) -> Option<Finding> {
    let batch = telling_batch_size(table)?;
    // Each format with its own best number of workers.
    let mut best: Vec<Series> = Vec::new();
    for s in rates(table, batch) {
        if !best.iter().any(|b| b.format == s.format) {
            best.push(s);
        }
    }
    let first = best.first()?;
    let name = |s: &Series| with_codec(table, &s.format);
    let unit = counted_per_s(table, judge);
    let rate = |s: &Series| format!("{}{} {unit}", number(s.median()), judge.interval(&s.values, number));
    let about = format!("{} in batches of {batch} with {}", rate(first), workers(&first.label));
    let mut detail = best
        .iter()
        .map(|s| format!("{}: {} ({})", name(s), rate(s), workers(&s.label)))
        .collect::<Vec<_>>()
        .join("; ");
    let epochs = series(table, &["workers"], "epoch_s", |r| {
        table.f64("batch_size", r) == Some(batch)
            && table.str("format", r) == Some(first.format.as_str())
            && table.str("cache", r) == table.str("cache", 0)
    });
    let own = epochs.iter().find(|s| s.label == first.label);
    let short = own.map(Series::median).filter(|s| *s < SHORT_EPOCH);
    if let Some(epoch) = short {
        detail += &format!(
            ". An epoch took only {:.1} ms here{}: measure more images for figures that hold in training",
            1e3 * epoch,
            if first.label == "0" { "" } else { ", much of it starting threads" }
        );
    }
    let Some(second) = best.get(1) else {
        return Some(Finding::new(Severity::Info, format!("{} delivers {about}", name(first)), detail));
    };
    let compared = judge.compare(first, second)?;
    Some(if compared.is_clear() {
        let noisy = judge.too_noisy_first();
        let (first, times, second) = (name(first), compared.times(), name(second));
        let text = if noisy.is_empty() {
            format!("{first} is the fastest format here: {about}, {times} {second}")
        } else {
            format!(
                "{noisy}{first} was {times} as fast as {second}, more than this noise explains. It delivered {about}"
            )
        };
        // A finding that asks for more measuring is no good news yet.
        let severity = if short.is_some() || !noisy.is_empty() { Severity::Info } else { Severity::Good };
        Finding::new(severity, text, detail)
    } else {
        Finding::new(
            Severity::Info,
            format!(
                "{}. The first delivers {about}. It is {} the second. {}",
                compared.no_verdict(&name(first), &name(second)),
                compared.times(),
                capitalized(compared.no_verdict_reason().trim_start_matches("; "))
            ),
            detail,
        )
    })
}

fn best_workers(table: &Table, judge: &Judge) -> Option<Finding> {
    let batch = telling_batch_size(table)?;
    let sorted = rates(table, batch);
    let format = sorted.first()?.format.clone();
    let of_format: Vec<&Series> = sorted.iter().filter(|s| s.format == format).collect();
    let best = *of_format.first()?;
    let none = *of_format.iter().find(|s| s.label == "0")?;
    let machine = format!("This machine has {}.", counted(wellread_worker::threads(), "core"));
    if best.label == "0" {
        let second = *of_format.get(1)?;
        let loss = judge.compare(none, second)?;
        if !loss.is_clear() {
            let ratio = format!("{} that with {}", loss.times(), workers(&second.label));
            let ratio = format!("without any its throughput at batches of {batch} is {ratio}");
            return Some(Finding::new(Severity::Info, undecided(&format, &ratio, &loss), machine));
        }
        let noisy = judge.too_noisy_first();
        return Some(Finding::new(
            Severity::Info,
            format!(
                "{noisy}More worker threads do not help {format} here: without any it is {} as fast as with {} at batches of {batch}",
                loss.times(),
                second.label
            ),
            format!(
                "Starting threads and handing batches over costs more here than it saves: images are few, small or cheap to decode. {machine}"
            ),
        ));
    }
    let gain = judge.compare(best, none)?;
    Some(if gain.is_clear() {
        // The next best number of them: that no worker is slower says nothing of it.
        let next = of_format.iter().skip(1).find(|s| s.label != "0");
        let alike = next.filter(|next| !judge.compare(best, next).is_some_and(|lead| lead.is_clear()));
        let text = match alike {
            Some(next) => format!(
                "Worker threads help {format}: {} the throughput without them with {}, which {} cannot be told apart from",
                gain.times(),
                workers(&best.label),
                workers(&next.label)
            ),
            None => format!(
                "{} {} best for {format}: {} the throughput without workers",
                workers(&best.label),
                if best.label == "1" { "is" } else { "are" },
                gain.times()
            ),
        };
        Finding::new(Severity::Good, text, machine)
    } else {
        let ratio = format!(
            "with {} its throughput at batches of {batch} is {} that without any",
            workers(&best.label),
            gain.times()
        );
        Finding::new(Severity::Info, undecided(&format, &ratio, &gain), machine)
    })
}

/// That no verdict on worker threads comes of this ratio, and why: a factor beside "no difference" would contradict it.
fn undecided(format: &str, ratio: &str, compared: &Comparison) -> String {
    format!(
        "Whether worker threads help {format} cannot be told here: {ratio}{}",
        compared.no_verdict_reason()
    )
}

/// The limit that binds a configuration, by its name, and the images per second that it allows.
pub(crate) fn limit_of(table: &Table, batch: f64, of: &Series) -> Option<(&'static str, f64)> {
    let row = (0..table.rows()).find(|&r| {
        table.str("format", r) == Some(of.format.as_str())
            && table.f64("batch_size", r) == Some(batch)
            && table.str("cache", r) == table.str("cache", 0)
            && table.f64("workers", r).map(|w| w.to_string()) == Some(of.label.clone())
    })?;
    roofline::binding(table, row)
}

/// Which limit each format's best run comes next to.
fn what_binds(table: &Table, judge: &Judge) -> Option<Finding> {
    let batch = telling_batch_size(table)?;
    let mut lines: Vec<(String, String)> = Vec::new();
    for s in rates(table, batch) {
        if lines.iter().any(|(format, _)| *format == s.format) {
            continue;
        }
        let Some((bound, limit)) = limit_of(table, batch, &s) else { continue };
        let share = s.median() / limit;
        let name = with_codec(table, &s.format);
        let with = format!("({} {} with {})", number(limit), counted_per_s(table, judge), workers(&s.label));
        let text = if share > 1.0 {
            format!("{name} is bound by none of the limits measured here: it exceeds {bound} alone {with}")
        } else {
            let interval = judge.interval(&s.values, |rate| format!("{:.2}", rate / limit));
            format!("{name} runs at {share:.2}{interval} of {bound} alone {with}")
        };
        lines.push((s.format, text));
    }
    let (_, first) = lines.first()?;
    let others: Vec<_> = lines[1..].iter().map(|(_, text)| text.as_str()).collect();
    Some(Finding::new(Severity::Info, first.clone(), others.join("; ")).about(Topic::Limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{loader_table, two_formats};
    use wellread_report::row;

    #[test]
    fn crops_are_called_crops() {
        let text = |crops: Option<i64>| {
            let table = two_formats(7, &[("epoch_s", 1.0)]);
            let mut counted = Table::new("dataloader");
            for row in 0..table.rows() {
                let mut cells: Vec<_> = table
                    .columns()
                    .iter()
                    .map(|c| (c.name().to_owned(), table.cell(c.name(), row)))
                    .collect();
                cells.extend(crops.map(|crops| ("crops".to_owned(), crops.into())));
                counted.push(cells);
            }
            fastest_loader(&counted, &Judge::new(1, None)).unwrap().text
        };
        assert!(text(None).contains(" images/s in batches"), "{}", text(None));
        let crops = text(Some(4));
        assert!(crops.contains(" crops/s in batches") && !crops.contains("images/s"), "{crops}");
    }

    /// A card that asks for more measuring is no good news: of epochs that are mostly the starting of threads.
    #[test]
    fn a_card_that_says_measure_more_is_not_good() {
        let found = |epoch_s: f64| {
            let table = two_formats(7, &[("epoch_s", epoch_s)]);
            fastest_loader(&table, &Judge::new(1, None)).unwrap()
        };
        let (short, long) = (found(SHORT_EPOCH / 2.0), found(SHORT_EPOCH * 2.0));
        // The verdict is as clear in both.
        for finding in [&short, &long] {
            assert!(finding.text.contains("tiff is the fastest format here"), "{}", finding.text);
        }
        assert!(short.detail.contains("An epoch took only 25.0 ms here"), "{}", short.detail);
        assert!(short.detail.contains("measure more images"), "{}", short.detail);
        assert!(matches!(short.severity, Severity::Info), "it says measure more");
        assert!(!long.detail.contains("measure more"), "{}", long.detail);
        assert!(matches!(long.severity, Severity::Good), "{}", long.text);
    }

    #[test]
    fn an_epoch_is_that_of_the_cache_and_the_workers_that_are_told() {
        let detail = |epoch_s: f64| {
            let of = |cache: &str, workers: i64, rate: f64, epoch_s: f64| {
                let key = row![("format", "tiff"), ("batch_size", 4), ("workers", workers), ("cache", cache)];
                ([key, row![("epoch_s", epoch_s)]].concat(), vec![rate; 7])
            };
            let short = SHORT_EPOCH / 5.0;
            let others = [of("none", 2, 100.0, short), of("memory", 0, 900.0, short)];
            let table = loader_table([of("none", 0, 200.0, epoch_s)].into_iter().chain(others));
            fastest_loader(&table, &Judge::new(1, None)).unwrap().detail
        };
        let long = detail(SHORT_EPOCH * 1.6);
        assert!(!long.contains("An epoch took only"), "{long}");
        let short = detail(SHORT_EPOCH / 2.0);
        assert!(short.contains("An epoch took only 25.0 ms here"), "{short}");
    }
}
