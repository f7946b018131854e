//! The text of `wellread advise`: a table of what was tried, the recommendation with its reasons, and what a step waits.

use crate::commands::diagnosis::{link_lines, percent, with_interval};
use crate::output::Ui;
use crate::text_table::plain_table;
use std::path::Path;
use wellread_bench::advise::predict::{Checked, is_never, no_wait};
use wellread_bench::advise::{
    Advice, CandidateResult, CropAdvice, LinkAdvice, LinkPrediction, SettingResult, SpeedVerdict,
};
use wellread_bench::model_loop::utilisation_mark;
use wellread_bench::stages::Figure;
use wellread_report::number::Unit;
use wellread_store::words::{counted, plural};

fn rate(figure: &Figure) -> String {
    with_interval(figure, |v| format!("{v:.0}"))
}

/// A figure as text, or a dash where it was not measured.
fn measured(figure: Option<Figure>, text: impl Fn(f64) -> String) -> String {
    let measured = figure.map(|figure| figure.value).filter(|value| value.is_finite());
    measured.map_or("–".to_owned(), text)
}

/// A time with its interval, of a unit of so many seconds; `none` of a step that waits however long it is.
fn time(figure: &Figure, unit: f64) -> String {
    let show = |v: f64| if is_never(v) { "none".to_owned() } else { Unit::Seconds.format(unit * v) };
    if is_never(figure.value) { show(figure.value) } else { with_interval(figure, show) }
}

/// The line on the values of a setting that were tried, their times of a unit of so many seconds; `None` where none was.
fn setting(what: &str, unit: f64, tried: &[SettingResult]) -> Option<String> {
    let each: Vec<String> = tried.iter().map(|t| format!("{}: {}", t.value, time(&t.time, unit))).collect();
    (!each.is_empty()).then(|| format!("  {what}: {}", each.join("; ")))
}

fn two_digits(v: f64) -> String {
    format!("{v:.2}")
}

/// Prints the advice, with the commands to type.
pub(super) fn print(advice: &Advice, path: &Path, has_step: bool, commands: &[String], ui: Ui) {
    let sample = &advice.sample;
    let [t, c, z, y, x] = sample.shape_tczyx;
    ui.say(format!(
        "{}: {} of {} ({t}x{c}x{z}x{y}x{x} TCZYX, {}) studied in {:.0} s\n",
        path.display(),
        sample.rows.len(),
        counted(sample.of, sample.thing),
        sample.dtype,
        advice.seconds
    ));
    let mut order: Vec<&CandidateResult> = advice.tried.iter().collect();
    order.sort_by(|a, b| b.images_per_s.value.total_cmp(&a.images_per_s.value));
    let rows: Vec<Vec<String>> = order
        .into_iter()
        .map(|tried| {
            let write = tried.candidate.write_s.map(|s| s / tried.candidate.images.max(1) as f64);
            vec![
                tried.name.clone(),
                rate(&tried.images_per_s),
                versus(tried),
                format!("{:.1}", tried.bytes_of_set / 1e6),
                write.map_or("–".to_owned(), |s| Unit::Seconds.format(s)),
                percent(tried.share_of_copy),
                measured(Some(tried.single_us), |us| Unit::Seconds.format(1e-6 * us)),
                measured(tried.cold_images_per_s, |v| format!("{v:.0}")),
            ]
        })
        .collect();
    let (thing, things) = (sample.thing, plural(sample.thing));
    let heads = [
        "kept as",
        &format!("{things}/s in batches"),
        "versus the fastest",
        "MB of set",
        &format!("write one {thing}"),
        "of memory copy",
        &format!("read one {thing}"),
        &format!("cold {things}/s"),
    ];
    ui.say(plain_table(&heads, &rows, ui.table_width()).trim_end());
    if let Some(own) = advice.tried.iter().find(|one| one.over_link) {
        ui.say_wrapped(read_from(own));
    }
    let of_workers = if has_step {
        "workers, a step with its wait"
    } else {
        "workers, shortest step without wait when they were compared"
    };
    let settings = [
        setting(of_workers, 1e-3, &advice.workers),
        setting(&format!("batch size, time of one {thing}"), 1e-6, &advice.batch_sizes),
        setting(&format!("cache, time of one {thing} in later epochs"), 1e-6, &advice.caches),
    ];
    for (at, line) in settings.into_iter().flatten().enumerate() {
        ui.say_wrapped(format!("{}{line}", if at == 0 { "\n" } else { "" }));
    }
    if let Some(crops) = &advice.crops {
        print_crops(crops, ui);
    }
    let chosen = &advice.recommendation;
    ui.say("\nRecommended");
    for (what, reasons) in ["format", "workers", "batch size", "cache"].iter().zip(&chosen.reasons) {
        for (number, reason) in reasons.iter().enumerate() {
            ui.say(format!("  {:<11}{reason}", if number == 0 { what } else { "" }));
        }
    }
    ui.say("\nData wait of a step, predicted for that");
    for p in &advice.predictions {
        let checked = p.checked.as_ref().map_or(String::new(), |checked| {
            format!(
                "; a real loop: {} waiting, its whole step, wait included, predicted over measured: {}, {}",
                with_interval(&checked.data_wait_fraction, percent),
                with_interval(&checked.ratio, two_digits),
                agreement(checked.agrees)
            )
        });
        // A mark is reached by what is known well enough to have an interval.
        let mark = p.utilisation.low.map_or(String::new(), |low| format!(" ({})", utilisation_mark(low)));
        ui.say(format!(
            "  step of {:>6} ms: {} waiting, utilisation {}{mark}{checked}",
            p.step_ms,
            with_interval(&p.data_wait_fraction, percent),
            percent(p.utilisation.value),
        ));
    }
    let enough = &advice.no_wait_from_ms;
    if enough.value.is_finite() {
        let doubt = doubt(advice.predictions.iter().filter_map(|p| p.checked.as_ref()));
        ui.say(format!(
            "  {}, with everything that is recommended{doubt}",
            no_wait(enough, &advice.predictions)
        ));
    }
    if let Some(first) = &advice.first_epoch_images_per_s {
        ui.say(format!("  first epoch, from cold files: {} {things}/s at most", rate(first)));
    }
    if let Some(there) = &advice.link {
        print_link(there, ui);
    }
    ui.say("\nDo");
    for command in commands {
        ui.say(format!("  {command}"));
    }
    for note in &advice.notes {
        ui.say_wrapped(format!("note: {note}"));
    }
}

/// Prints the result of each way of bringing crops of cells into batches.
fn print_crops(crops: &CropAdvice, ui: Ui) {
    let rows: Vec<Vec<String>> = crops
        .tried
        .iter()
        .map(|one| {
            vec![
                one.name.clone(),
                rate(&one.cells_per_s),
                beside_fastest(one.verdict, one.versus_fastest.as_ref()),
                one.bytes_read_per_used.map_or("–".to_owned(), two_digits),
                format!("{:.1}", one.bytes_on_disk / 1e6),
            ]
        })
        .collect();
    let heads = [
        "crops of cells",
        "cells/s in batches",
        "versus the fastest",
        "bytes read of used",
        "MB more on disk",
    ];
    ui.say(format!("\n{}", plain_table(&heads, &rows, ui.table_width()).trim_end()));
}

/// Prints the result of each way of keeping the set, in the place where the set is.
fn print_link(there: &LinkAdvice, ui: Ui) {
    ui.say("\nOver the link, in random order, predicted");
    for line in link_lines(&there.link) {
        ui.say(format!("  {line}"));
    }
    if there.predictions.iter().any(|one| one.at_most) {
        ui.say("  at most: nothing tells how fast this machine decodes that");
    }
    let rows: Vec<Vec<String>> = there
        .predictions
        .iter()
        .map(|one| {
            vec![
                one.name.clone(),
                over_link_rate(one),
                format!("{:.0}", one.requests_per_epoch),
                format!("{:.3}", one.bytes_per_epoch / 1e9),
                one.bound_by.to_owned(),
                one.cost_per_epoch.map_or("–".to_owned(), |cost| format!("{cost:.4}")),
            ]
        })
        .collect();
    let heads = ["kept there as", "images/s", "requests/epoch", "GB/epoch", "bound by", "cost of an epoch"];
    ui.say(plain_table(&heads, &rows, ui.table_width()).trim_end());
}

/// Images per second over the link.
fn over_link_rate(one: &LinkPrediction) -> String {
    format!("{}{:.0}", if one.at_most { "at most " } else { "" }, one.images_per_s)
}

/// The line on the storage that the rows of a table are of, where the set as it is was read over the link.
fn read_from(own: &CandidateResult) -> String {
    format!(
        "  \"{}\" was read over the link; all other rows are copies on this machine's disk, which tell nothing of the link. The format is \
         chosen by the table \"Over the link\" below",
        own.name
    )
}

/// Whether a prediction was right, in words: what is compared is the time of a step, of which the wait may be a small part.
fn agreement(agrees: Option<bool>) -> &'static str {
    match agrees {
        Some(true) => "so the times of a step agree within 20 %",
        Some(false) => {
            "so the times of a step DIFFER by more than 20 %: a noisy machine, or no steady loader"
        }
        None => "and the rounds are too few to say whether that is more than chance",
    }
}

/// Doubt about the shortest step without wait, where the equation that it follows from failed in a real loop.
fn doubt<'c>(mut checked: impl Iterator<Item = &'c Checked>) -> &'static str {
    let has_failed = checked.any(|checked| checked.agrees != Some(true));
    if has_failed {
        "; the real loop did not confirm this: study the set again before you rely on it"
    } else {
        ""
    }
}

/// A ratio to the time of the fastest, in words.
fn times_the_time(ratio: &Figure) -> String {
    format!("{} times the time", with_interval(ratio, two_digits))
}

/// How one candidate compares, in words.
fn versus(tried: &CandidateResult) -> String {
    if tried.over_link {
        return "over the link".to_owned();
    }
    if !tried.finalist {
        return "screened only".to_owned();
    }
    beside_fastest(tried.verdict, tried.versus_fastest.as_ref())
}

/// The verdict on a ratio to the time of the fastest. Without one, the ratio stands beside that.
fn beside_fastest(verdict: SpeedVerdict, ratio: Option<&Figure>) -> String {
    match (verdict, ratio) {
        (SpeedVerdict::Slower | SpeedVerdict::Faster, Some(ratio)) => times_the_time(ratio),
        (SpeedVerdict::NoVerdict, Some(ratio)) => format!("{verdict}: {}", times_the_time(ratio)),
        (verdict, _) => verdict.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_was_not_measured_is_a_dash() {
        let text = |value: f64| format!("{value:.0}");
        let of = |value| measured(Some(Figure { value, low: None, high: None }), text);
        assert_eq!([of(12.4), of(f64::NAN), measured(None, text)], ["12", "–", "–"]);
    }

    #[test]
    fn times_have_three_digits_and_the_unit_that_suits_them() {
        let figure = |value, low, high| Figure { value, low, high };
        let tried = |value: &str, time| SettingResult { value: value.to_owned(), time };
        let caches = [
            tried("none", figure(14_877.94, Some(14_500.0), Some(15_000.0))),
            tried("memory", figure(8.131, None, None)),
        ];
        assert_eq!(
            setting("cache", 1e-6, &caches).map(|line| line.replace('\u{a0}', " ")).as_deref(),
            Some("  cache: none: 14.9 ms (14.5 ms–15.0 ms); memory: 8.13 µs")
        );
        let steps = [
            tried("0", figure(f64::INFINITY, Some(1.0), Some(f64::INFINITY))),
            tried("1", figure(0.78, Some(0.5), Some(f64::INFINITY))),
        ];
        assert_eq!(
            setting("workers", 1e-3, &steps).map(|line| line.replace('\u{a0}', " ")).as_deref(),
            Some("  workers: 0: none; 1: 780 µs (500 µs–none)")
        );
        assert_eq!(setting("cache", 1e-6, &[]), None);
    }

    #[test]
    fn what_has_no_verdict_has_its_ratio() {
        let ratio = Figure { value: 2.5, low: Some(1.78), high: Some(3.85) };
        let said = |verdict| beside_fastest(verdict, Some(&ratio)).replace('\u{a0}', " ");
        assert_eq!(said(SpeedVerdict::NoVerdict), "no verdict: 2.50 (1.78–3.85) times the time");
        assert_eq!(said(SpeedVerdict::Slower), "2.50 (1.78–3.85) times the time");
        assert_eq!(said(SpeedVerdict::NoDifference), "no difference");
        assert_eq!(said(SpeedVerdict::TooFewData), "too few data");
    }

    #[test]
    fn an_upper_bound_says_so() {
        let of = |at_most| LinkPrediction {
            name: "tiff".to_owned(),
            requests_per_epoch: 1.0,
            bytes_per_epoch: 1.0,
            images_per_s: 1499.6,
            at_most,
            bound_by: "latency",
            cost_per_epoch: None,
        };
        assert_eq!([true, false].map(|at_most| over_link_rate(&of(at_most))), ["at most 1500", "1500"]);
    }

    #[test]
    fn what_agrees_is_the_time_of_a_step() {
        assert_eq!(agreement(Some(true)), "so the times of a step agree within 20 %");
        assert!(agreement(Some(false)).starts_with("so the times of a step DIFFER by more than 20 %"));
        assert!(agreement(None).contains("too few"));
    }

    /// A step of 40 ms waited for a third of its time, and "no wait for steps from 30 ms" stood below that.
    #[test]
    fn what_a_real_loop_contradicts_is_no_answer() {
        let figure = |value| Figure { value, low: None, high: None };
        let of = |agrees| Checked {
            data_wait_fraction: figure(0.361),
            whole_step_ms: figure(62.6),
            ratio: figure(0.64),
            agrees,
        };
        for agrees in [None, Some(false)] {
            assert!(doubt([of(Some(true)), of(agrees)].iter()).contains("did not confirm"), "{agrees:?}");
        }
        assert_eq!((doubt([of(Some(true))].iter()), doubt([].iter())), ("", ""));
    }
}
