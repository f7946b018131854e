//! The next step for the user: one sentence at the end of the answer, by the tables.
//!
//! ```text
//!  noise floor ─▶ loop: data wait of the fastest format ─▶ dataloader: what binds it ─▶ conversion ─▶ "Next: …"
//! ```
//!
//! The first of these that calls for something decides. A share is told with its interval; where the runs do not tell what
//! binds ([`Bottleneck::Unclear`]), the sentence says why.

use crate::choices::Mode;
use crate::core::judge::{Judge, TOO_NOISY};
use crate::core::series::{Series, by_median, series, telling_batch_size};
use crate::core::words::{capitalized, percent};
use crate::model_loop::thresholds::SMALL_SHARE;
use crate::model_loop::waiting::{self, Bottleneck, Waiting};
use crate::{conversion, dataloader, model_loop};
use std::collections::BTreeMap;
use wellread_report::{Finding, Severity, Table, Topic};
use wellread_store::without_checksum;

/// Share of conversion, in percent, above which upstream calls it significant.
const MUCH_CONVERSION: f64 = 30.0;

/// Share of a limit from which on it is said to bind.
const NEAR_LIMIT: f64 = 0.5;

/// The sentence, where the tables call for one. `noise` is the noise floor of each benchmark, by its name.
pub(crate) fn finding(tables: &[Table], noise: &BTreeMap<String, f64>, judge: &Judge) -> Option<Finding> {
    let table = |name: &str| tables.iter().find(|table| table.name() == name && table.rows() > 0);
    let (loader, steps) = (table(dataloader::BENCHMARK.name), table(model_loop::BENCHMARK.name));
    let noisy: Vec<&str> = [loader, steps]
        .into_iter()
        .flatten()
        .map(Table::name)
        .filter(|name| noise.get(*name).is_some_and(|floor| *floor > TOO_NOISY))
        .collect();
    if !noisy.is_empty() {
        let again = Finding::new(
            Severity::Caution,
            format!(
                "Next: measure {} again on an idle machine; nothing can be advised from {} figures",
                noisy.join(" and "),
                if noisy.len() == 1 { "its" } else { "their" }
            ),
            "One variant measured twice differed by more than a quarter. A difference that is called one above is larger than that.",
        );
        return Some(again.about(Topic::Next));
    }
    let waiting = steps.and_then(|steps| waiting(steps, judge));
    let told = |wait: &Waiting| {
        format!("with {} a step waits {} of its time for data", wait.format(), wait.share_with_interval())
    };
    let doubt = |wait: &Waiting| match &wait.binds {
        Bottleneck::Unclear { why, .. } => format!("; {why}"),
        _ => String::new(),
    };
    let (severity, text, detail) = match (waiting, loader) {
        (Some(wait), _) if wait.share() < SMALL_SHARE => enough(&wait, &told(&wait), judge),
        (Some(wait), Some(loader)) => {
            let (text, detail) = remedy(loader, wait.format(), judge)?;
            (Severity::Caution, text, format!("{}{}. {detail}", told(&wait), doubt(&wait)))
        }
        (Some(wait), None) => (
            Severity::Caution,
            format!("Next: `wellread bench dataloader` says what binds the loading of {}", wait.format()),
            format!("{}{}.", told(&wait), doubt(&wait)),
        ),
        (None, Some(loader)) => {
            let fastest = dataloader::rates(loader, telling_batch_size(loader)?);
            let (text, detail) = remedy(loader, &fastest.first()?.format, judge)?;
            (Severity::Info, text, detail)
        }
        (None, None) => converting(table(conversion::BENCHMARK.name)?, judge)?,
    };
    Some(Finding::new(severity, text, detail).about(Topic::Next))
}

/// The waiting of a step with the fastest format, in training where that was measured.
fn waiting(steps: &Table, judge: &Judge) -> Option<Waiting> {
    let by_speed = |mode: &Mode| waiting::by_speed(steps, *mode, judge);
    [Mode::Train, Mode::Inference].iter().map(by_speed).find(|all| !all.is_empty())?.into_iter().next()
}

/// The advice where a step waits little, as far as was measured.
fn enough(wait: &Waiting, told: &str, judge: &Judge) -> (Severity, String, String) {
    if let Bottleneck::Unclear { why, .. } = &wait.binds {
        return (
            Severity::Caution,
            format!("Next: measure loop again. {}", capitalized(why)),
            format!("{}. More {} or more steps tell what to do.", capitalized(told), judge.repeats().several),
        );
    }
    (
        Severity::Good,
        format!("Next: look at the model, not at loading: {told}"),
        "Below 30 % of a step loading is no bottleneck; a faster device waits more, and `wellread advise --step-ms` predicts it."
            .to_owned(),
    )
}

/// The advice that would make a format load faster, by the limit of its best number of workers.
fn remedy(loader: &Table, format: &str, judge: &Judge) -> Option<(String, String)> {
    let batch = telling_batch_size(loader)?;
    let best = dataloader::rates(loader, batch).into_iter().find(|series| series.format == format)?;
    if judge.median(&best.values).is_none() {
        let text =
            format!("Next: measure dataloader again. {}", capitalized(&judge.too_few(best.values.len())));
        let detail = format!("More {} tell what binds the loading of {format}.", judge.repeats().several);
        return Some((text, detail));
    }
    let (bound, limit) = dataloader::limit_of(loader, batch, &best)?;
    let share = best.median() / limit;
    let interval = judge.interval(&best.values, |rate| percent(rate / limit));
    let has_gain = more_workers_may_help(loader, batch, &best, judge);
    if share < NEAR_LIMIT {
        let what = if has_gain {
            "add worker threads while their number helps, or larger batches"
        } else {
            "take larger batches"
        };
        return Some((
            format!("Next: {what}: no limit that was measured is near"),
            format!(
                "{format} runs at {}{interval} of {bound} alone, the nearest limit: none of those measured binds it.",
                percent(share)
            ),
        ));
    }
    let packed = (0..loader.rows())
        .find(|&row| loader.str("format", row) == Some(format))
        .and_then(|row| loader.str("codec", row))
        .is_none_or(|codec| without_checksum(codec).0 != "none");
    let what = if bound == "widening and scaling" {
        "deliver smaller batches: crops, or pixels as they are stored, scaled on the device (float32 takes four bytes for each)"
            .to_owned()
    } else {
        format!(
            "{}keep decoded images in memory where they fit (`--loader-cache memory`), or {}. `wellread advise` tries what helps",
            if has_gain { "add worker threads while their number helps, " } else { "" },
            if packed { "store them with a cheaper codec" } else { "try another format" }
        )
    };
    let binds = if share > 1.0 {
        format!("Nothing that was measured binds {format}: it exceeds {bound} alone.")
    } else {
        format!("The limit of {format} is {bound}: it runs at {}{interval} of it.", percent(share))
    };
    Some((format!("Next: {what}"), binds))
}

/// Whether nothing in the table speaks against more workers than `best` has. A larger number that was not faster does, and so does a
/// gain over no workers that is not clear.
fn more_workers_may_help(loader: &Table, batch: f64, best: &Series, judge: &Judge) -> bool {
    let others: Vec<Series> = dataloader::rates(loader, batch)
        .into_iter()
        .filter(|series| series.format == best.format && series.label != best.label)
        .collect();
    let number = |series: &Series| series.label.parse::<f64>().unwrap_or_default();
    let is_largest = others.iter().all(|other| number(other) < number(best));
    let without = others.iter().find(|other| other.label == "0");
    is_largest && without.and_then(|none| judge.compare(best, none)).is_none_or(|gain| gain.is_clear())
}

/// The advice about conversion, where that alone was measured.
fn converting(table: &Table, judge: &Judge) -> Option<(Severity, String, String)> {
    let shares = by_median(series(table, &["path", "framework"], "conversion_overhead_pct", |_| true));
    let worst = shares.first()?;
    let share = format!(
        "{:.1} %{} of an image's time with {} by {}",
        worst.median(),
        judge.interval(&worst.values, |value| format!("{value:.1} %")),
        worst.format,
        worst.label.trim().replacen(' ', " in ", 1)
    );
    if judge.median(&worst.values).is_none() {
        let text =
            format!("Next: measure conversion again. {}", capitalized(&judge.too_few(worst.values.len())));
        return Some((Severity::Caution, text, format!("It takes {share} at most, so far.")));
    }
    Some(if worst.median() > MUCH_CONVERSION {
        (
            Severity::Caution,
            "Next: take the path without a copy".to_owned(),
            format!("Conversion takes {share}."),
        )
    } else {
        let text = "Next: look at reading (`wellread bench dataloader`); conversion is not the bottleneck"
            .to_owned();
        (Severity::Good, text, format!("It takes {share} at most."))
    })
}

#[cfg(test)]
mod tests;
