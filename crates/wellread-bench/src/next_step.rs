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
use crate::core::series::{by_median, series, telling_batch_size};
use crate::core::words::percent;
use crate::model_loop::thresholds::LITTLE;
use crate::model_loop::waiting::{self, Bottleneck, Waiting};
use crate::{conversion, dataloader, model_loop};
use std::collections::BTreeMap;
use wellread_report::{Finding, Severity, Table, Topic};

/// Share of conversion, in percent, above which upstream calls it significant.
const MUCH_CONVERSION: f64 = 30.0;

/// Share of a limit from which on it is said to bind.
const NEAR: f64 = 0.5;

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
        Bottleneck::Unclear(why) => format!("; {why}"),
        _ => String::new(),
    };
    let (severity, text, detail) = match (waiting, loader) {
        (Some(wait), _) if wait.share() < LITTLE => enough(&wait, &told(&wait)),
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
fn enough(wait: &Waiting, told: &str) -> (Severity, String, String) {
    if let Bottleneck::Unclear(why) = &wait.binds {
        return (
            Severity::Caution,
            format!("Next: measure loop again: {told}; {why}"),
            "More rounds or more steps tell what to do.".to_owned(),
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
        let text = format!("Next: measure dataloader again; {}", judge.too_few(best.values.len()));
        return Some((text, format!("More rounds tell what binds the loading of {format}.")));
    }
    let (bound, limit) = dataloader::limit_of(loader, batch, &best)?;
    let share = best.median() / limit;
    let interval = judge.interval(&best.values, |rate| percent(rate / limit));
    if share < NEAR {
        return Some((
            "Next: add worker threads while their number helps, or larger batches: no limit that was measured is near".to_owned(),
            format!(
                "{format} runs at {}{interval} of {bound} alone, the nearest limit: none of those measured binds it.",
                percent(share)
            ),
        ));
    }
    let packed = (0..loader.rows())
        .find(|&row| loader.str("format", row) == Some(format))
        .is_none_or(|row| loader.str("codec", row) != Some("none"));
    let what = match bound {
        "widening and scaling" => {
            "deliver smaller batches: crops, or pixels as they are stored, scaled on the device (float32 takes four bytes for each)"
        }
        _ if !packed => {
            "add worker threads while their number helps, keep decoded images in memory where they fit (`--loader-cache memory`), \
             or try another format: `wellread advise` tries what helps"
        }
        _ => {
            "add worker threads while their number helps, keep decoded images in memory where they fit (`--loader-cache memory`), \
             or store them with a cheaper codec: `wellread advise` tries what helps"
        }
    };
    let binds = if share > 1.0 {
        format!("Nothing that was measured binds {format}: it exceeds {bound} alone.")
    } else {
        format!("The limit of {format} is {bound}: it runs at {}{interval} of it.", percent(share))
    };
    Some((format!("Next: {what}"), binds))
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
        let text = format!("Next: measure conversion again; {}", judge.too_few(worst.values.len()));
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
mod tests {
    use super::*;
    use wellread_report::{Cell, row};

    fn steps(wait: f64) -> Table {
        let mut table = Table::new("loop");
        for (format, more) in [("tiff", 0.0), ("parquet", 0.2)] {
            for run in 0..6 {
                let share = wait + more + 0.001 * f64::from(run);
                table.push(row![
                    ("format", format),
                    ("model", "cnn"),
                    ("mode", "train"),
                    ("run", run),
                    ("data_wait_fraction", share)
                ]);
            }
        }
        table
    }

    const KERNEL: &str = "widening and scaling";

    fn loader(bound: &str) -> Table {
        loader_at(bound, 0.75)
    }

    fn loader_at(bound: &str, share: f64) -> Table {
        let mut table = Table::new("dataloader");
        for (workers, rate) in [(0, 100.0), (2, 180.0)] {
            for run in 0..6 {
                table.push(row![
                    ("format", "tiff"),
                    ("batch_size", 16),
                    ("workers", workers),
                    ("run", run),
                    ("num_samples", 100),
                    ("samples_per_sec", rate),
                    ("bound_by", bound),
                    ("limit_kernel_per_s", if bound == KERNEL { rate / share } else { 1e6 }),
                    ("limit_read_per_s", if bound == KERNEL { 1e6 } else { rate / share }),
                    ("share_of_limit", share)
                ]);
            }
        }
        table
    }

    /// The first rounds of a table, so many of each configuration.
    fn first_rounds(table: &Table, rounds: i64) -> Table {
        let mut out = Table::new(table.name());
        for row in (0..table.rows()).filter(|&row| table.f64("run", row) < Some(rounds as f64)) {
            out.push(table.columns().iter().map(|c| (c.name().to_owned(), table.cell(c.name(), row))));
        }
        out
    }

    fn next(tables: &[Table]) -> Finding {
        finding(tables, &BTreeMap::new(), &Judge::new(1, None)).unwrap()
    }

    #[test]
    fn little_waiting_sends_to_the_model_and_much_to_what_binds() {
        let little = next(&[steps(0.04), loader("reading and decoding")]);
        assert!(
            little.text.starts_with("Next: look at the model") && little.text.contains("tiff"),
            "{}",
            little.text
        );
        assert!(little.text.contains("4.2 %") && !little.text.contains("reaches beyond"), "{}", little.text);
        assert_eq!(little.severity, Severity::Good);
        let near = next(&[steps(0.297), loader("reading and decoding")]);
        assert_eq!(near.severity, Severity::Caution);
        assert!(near.text.contains("reaches beyond 30 %"), "{}", near.text);
        let much = next(&[steps(0.6), loader(KERNEL)]);
        assert!(much.text.contains("pixels as they are stored, scaled on the device"), "{}", much.text);
        assert!(
            much.detail.contains("60.") && much.detail.contains("widening and scaling: it runs at 75.0 %"),
            "{}",
            much.detail
        );
        let beyond = next(&[steps(0.6), loader_at(KERNEL, 2.0)]).detail;
        assert!(
            beyond.contains("Nothing that was measured binds tiff: it exceeds widening and scaling alone"),
            "{beyond}"
        );
        assert!(next(&[steps(0.6)]).text.contains("wellread bench dataloader"));
        let text = next(&[loader("reading and decoding")]).text;
        assert!(text.contains("cheaper codec") && text.contains("--loader-cache memory"), "{text}");
    }

    #[test]
    fn what_is_far_from_its_limit_is_not_bound_by_it() {
        let far = next(&[loader_at("reading and decoding", 0.3)]);
        assert!(far.text.contains("no limit that was measured is near"), "{}", far.text);
        assert!(
            far.detail.contains("tiff runs at 30.0 %") && !far.detail.contains("The limit of"),
            "{}",
            far.detail
        );
    }

    #[test]
    fn what_is_not_compressed_is_advised_no_cheaper_codec() {
        let of = |codec: &str| {
            let from = loader("reading and decoding");
            let mut table = Table::new("dataloader");
            for row in 0..from.rows() {
                let mut cells: Vec<(String, Cell)> =
                    from.columns().iter().map(|c| (c.name().to_owned(), from.cell(c.name(), row))).collect();
                cells.push(("codec".to_owned(), codec.into()));
                table.push(cells);
            }
            next(&[table]).text
        };
        assert!(of("zstd").contains("cheaper codec"));
        let plain = of("none");
        assert!(!plain.contains("codec") && plain.contains("another format"), "{plain}");
    }

    #[test]
    fn few_rounds_say_nothing_of_what_binds() {
        for rounds in [1, 5] {
            let few = next(&[first_rounds(&loader(KERNEL), rounds)]);
            assert!(
                few.text.starts_with("Next: measure dataloader again") && few.text.contains("too few"),
                "{}",
                few.text
            );
            assert!(!few.detail.contains(KERNEL), "{}", few.detail);
        }
    }

    #[test]
    fn conversion_is_that_of_the_dearest_path_in_whatever_language() {
        let mut table = Table::new("conversion");
        for (framework, path, share) in [("rust", "copy", 6.0), ("pytorch", "torch.tensor", 44.0)] {
            for run in 0..6 {
                table.push(row![
                    ("format", "tiff"),
                    ("framework", framework),
                    ("loader", "wellread"),
                    ("path", path),
                    ("run", run),
                    ("conversion_overhead_pct", share)
                ]);
            }
        }
        let found = crate::findings::all(&[table], &BTreeMap::new(), 1, "");
        let next = found.iter().find(|finding| finding.text.starts_with("Next: ")).unwrap();
        assert!(next.text.contains("without a copy"), "{}", next.text);
        assert!(
            next.detail.contains("44.0 %") && next.detail.contains("by torch.tensor in pytorch"),
            "{}",
            next.detail
        );
    }

    #[test]
    fn noise_and_conversion() {
        let noisy = BTreeMap::from([("loop".to_owned(), 0.8)]);
        assert!(finding(&[steps(0.1)], &noisy, &Judge::new(1, None)).unwrap().text.contains("idle machine"));
        let conversion = |share: f64| {
            let mut table = Table::new("conversion");
            for run in 0..6 {
                table.push(row![
                    ("format", "tiff"),
                    ("path", "copy"),
                    ("run", run),
                    ("conversion_overhead_pct", share)
                ]);
            }
            next(&[table]).text
        };
        assert!(conversion(4.0).contains("not the bottleneck"));
        assert!(conversion(40.0).contains("without a copy"));
        assert!(finding(&[], &BTreeMap::new(), &Judge::new(1, None)).is_none());
    }
}
