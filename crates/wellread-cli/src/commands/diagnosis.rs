//! `wellread doctor --data PATH`: which stage binds.

use super::trace::TraceArgs;
use super::{
    OpenArgs, SiteArgs, note_leftovers, note_leftovers_beside, note_machine_leftovers, parse_crop,
    parse_positive, parse_seconds, parse_threads,
};
use crate::output::{Failure, Outcome, Ui, shown_on};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellread_bench::data::no_masks;
use wellread_bench::link::{self, LinkSpeed};
use wellread_bench::stages::{Consumer, Diagnosis, Figure, Settings, diagnose, remedy};
use wellread_store::words::counted;

/// Options of `--data`: the set, and what consumes its batches.
#[derive(clap::Args)]
#[group(id = "diagnosis")]
pub struct Args {
    /// Find what limits the loading of this set: storage, decoding, copying or the model. Runs that differ in one thing
    /// show it. Drops the set's files from the page cache; changes nothing on the disk.
    #[arg(help_heading = "A set of your own", long, visible_alias = "input", value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Milliseconds that your model takes for a batch. A stand-in takes that long and leaves the processor to the
    /// loader.
    #[arg(help_heading = "A set of your own", long, value_name = "MS", requires = "data", conflicts_with = "model", value_parser = parse_step)]
    step_ms: Option<f64>,
    /// Train this model of wellread's on the processor instead: small-cnn.
    #[arg(help_heading = "A set of your own", long, requires = "data", value_parser = parse_model)]
    model: Option<String>,
    /// Images of a batch; by default 16, fewer if images are large or a step of the model takes long.
    #[arg(help_heading = "A set of your own", long, requires = "data", value_parser = parse_positive)]
    batch_size: Option<usize>,
    /// Threads that read ahead. With 0 each batch is read when it is asked for.
    #[arg(help_heading = "A set of your own", long, requires = "data", default_value_t = Settings::default().workers, value_parser = parse_threads)]
    workers: usize,
    /// Take the centre of every image, of this size, such as 64x96, or 64 for a square.
    #[arg(help_heading = "A set of your own", long, value_name = "HxW", requires = "data", value_parser = parse_crop)]
    crop: Option<(usize, usize)>,
    /// Most images of the sample.
    #[arg(help_heading = "A set of your own", long, requires = "data", default_value_t = Settings::default().limits.images, value_parser = parse_positive)]
    images: usize,
    /// Measured rounds; a verdict needs 6 at least.
    #[arg(help_heading = "A set of your own", long, requires = "data", default_value_t = Settings::default().rounds, value_parser = parse_positive)]
    rounds: usize,
    /// Seconds after which no further round begins.
    #[arg(help_heading = "A set of your own", long, requires = "data", default_value_t = Settings::default().time_budget.as_secs_f64(), value_parser = parse_seconds)]
    time_budget: f64,
    /// Seed of the sample and of every random order.
    #[arg(help_heading = "A set of your own", long, requires = "data", default_value_t = Settings::default().seed)]
    seed: u64,
    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
}

impl Args {
    /// Refuses choices of a set where none is given.
    pub fn check_unused(&self) -> Outcome {
        let OpenArgs { read_as, level, column, table, skip_null, sites, cells } = &self.open;
        let opened = read_as.is_some() || *level > 0 || column.is_some() || table.is_some() || *skip_null;
        let opened = opened || *sites != SiteArgs::default() || cells.cells.is_some();
        if opened || self.trace.is_asked() {
            return Err(Failure::Usage(
                "--read-as, --level, --column, --table, --skip-null, --layout, --pattern, --missing, --unmatched, --path-map, \
                 --cells and --trace belong to a set; add --data PATH"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}

/// Milliseconds of a step from which on each turn is told.
const LONG_STEP_MS: f64 = 1e3;

/// Milliseconds of a step: an hour at most, since a run has several and none ends before its last.
pub(super) fn parse_step(text: &str) -> Result<f64, String> {
    const MAX_STEP_MS: f64 = 3.6e6;
    match text.parse::<f64>() {
        Ok(ms) if ms > MAX_STEP_MS => Err(format!("{text} ms are more than an hour for one step")),
        Ok(ms) if ms > 0.0 => Ok(ms),
        _ => Err(format!("{text:?} is no positive number of milliseconds")),
    }
}

fn parse_model(name: &str) -> Result<String, String> {
    let known: Vec<&str> = wellread_model::models().iter().map(|m| m.name).collect();
    if known.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(format!(
        "unknown model {name:?}; there are {} (a model of your own: its step time, --step-ms)",
        known.join(", ")
    ))
}

pub fn run(args: &Args, data: &Path, ui: Ui) -> Outcome {
    let consumer = match (args.step_ms, &args.model) {
        (Some(ms), _) => Consumer::StandIn(ms / 1e3),
        (None, Some(model)) => Consumer::Model(model.clone()),
        (None, None) => Consumer::Nothing,
    };
    let defaults = Settings::default();
    let settings = Settings {
        batch_size: args.batch_size,
        workers: args.workers,
        consumer,
        crop: args.crop,
        limits: wellread_bench::sample::Limits { images: args.images, ..defaults.limits },
        rounds: args.rounds,
        time_budget: Duration::from_secs_f64(args.time_budget),
        seed: args.seed,
    };
    // An error of the path reads as everywhere.
    let images = args.open.open(data, ui)?;
    no_masks(&*images)?;
    let format = images.format();
    drop(images);
    note_leftovers(data, ui);
    note_leftovers_beside(data, ui);
    note_machine_leftovers(ui);
    let bar = ui.progress(0, "measuring");
    // With long steps a turn takes so long that a user wants to know where it is.
    let is_slow = args.step_ms.is_some_and(|ms| ms >= LONG_STEP_MS);
    ui.phase(&if is_slow {
        "measuring: a turn takes several steps at least".to_owned()
    } else {
        format!("measuring: no further round begins after {} s (--time-budget)", args.time_budget)
    });
    let progress = |done: usize, of: usize| {
        shown_on(&bar)("measuring", done, of);
        if is_slow {
            ui.phase(&format!("measuring: {done} of {}", counted(of, "turn")));
        }
    };
    let found = diagnose(|| args.open.open_again(data), &settings, &progress)?;
    bar.finish_and_clear();
    let link = args.open.open_again(data).and_then(|store| link::measure(&*store));
    let link = link.unwrap_or_else(|why| {
        ui.say_wrapped(format!("note: the link could not be measured: {why:#}"));
        None
    });
    if ui.json {
        let mut document = serde_json::to_value(&found).map_err(|e| Failure::Failed(e.to_string()))?;
        document["path"] = data.display().to_string().into();
        document["format"] = format.into();
        if let Some(link) = &link {
            document["link"] = serde_json::to_value(link).map_err(|e| Failure::Failed(e.to_string()))?;
        }
        return ui.document(&document);
    }
    print(&found, data, format, ui);
    for (number, line) in link.iter().flat_map(link_lines).enumerate() {
        ui.say(format!("{}{line}", if number == 0 { "\n  link       " } else { "             " }));
    }
    Ok(())
}

/// A link in words.
pub(super) fn link_lines(link: &LinkSpeed) -> Vec<String> {
    let region = link.region.as_ref().map_or(String::new(), |region| format!(", region {region}"));
    vec![
        format!("{}{region}; credentials: {}", link.endpoint, link.credentials),
        format!(
            "{:.1} ms a request, {:.1} MB/s with {} at once (at most {} are made: WELLREAD_IN_FLIGHT)",
            1e3 * link.latency_s,
            link.bytes_per_s / 1e6,
            link.at_once,
            link.in_flight
        ),
    ]
}

fn print(found: &Diagnosis, data: &Path, format: &str, ui: Ui) {
    let sample = &found.sample;
    ui.say(format!(
        "{} ({format}): {} of {}, batches of {}, {}, {}; model: {}\n",
        data.display(),
        sample.rows.len(),
        counted(sample.of, sample.thing),
        found.batch_size,
        counted(found.workers, "worker"),
        counted(found.rounds, "round"),
        found.model
    ));
    ui.say(format!(
        "  {:<10} {:>12}  {:<23} {:>10}  {:>14}",
        "images from", "µs/image", "95 %", "images/s", "of memory copy"
    ));
    for run in &found.runs {
        ui.say(format!(
            "  {:<11} {:>12}  {:<23} {:>10}  {:>14}",
            run.name,
            micro(run.us_per_image.value),
            interval(&run.us_per_image, micro),
            run.images_per_s.map_or("–".to_owned(), |v| format!("{v:.0}")),
            // Few images stay in the processor's caches, which are faster than memory.
            run.share_of_copy.map_or("–".to_owned(), |v| if v > 1.0 {
                "> 100 %".to_owned()
            } else {
                percent(v)
            }),
        ));
    }
    ui.say(format!(
        "\n  {:<11} {:>12}  {:<23} {:>10}  {:<16} what it is",
        "stage", "µs/image", "95 %", "share", "95 %"
    ));
    for stage in &found.stages {
        ui.say(stage_line(stage.name, stage.about, &stage.us_per_image, &stage.share));
    }
    let shares = found.stages.iter().map(|stage| (stage.name, stage.us_per_image.value, stage.share.value));
    if let Some(why) = beyond_all(&shares.collect::<Vec<_>>()) {
        ui.say_wrapped(format!("  {why}"));
    }
    for (place, utilisation) in &found.utilisation {
        ui.say(format!(
            "\n  accelerator utilisation, {place} files: {}; {} of MLPerf Storage's marks",
            with_interval(utilisation, percent),
            wellread_bench::model_loop::utilisation_mark(utilisation.value)
        ));
    }
    ui.say(format!("\n{}", found.verdict));
    if let Some(stage) = found.worth_a_remedy() {
        let why = if found.binds == Some(stage) {
            String::new()
        } else {
            format!("Loading does not hide behind it, and most of that is {stage}. ")
        };
        ui.say(format!("{why}What helps: {}.", remedy(stage)));
    }
    for note in &found.notes {
        ui.say(format!("note: {note}"));
    }
}

/// Why shares sum to more than all of the time, where they do: of each stage its name, its cost and its share.
fn beyond_all(stages: &[(&str, f64, f64)]) -> Option<String> {
    let sum: f64 = stages.iter().filter(|(_, cost, _)| *cost > 0.0).map(|(.., share)| of_all(*share)).sum();
    // Rounding alone needs no words.
    (sum > 1.002).then(|| {
        let below = stages.iter().filter(|(_, cost, _)| *cost <= 0.0);
        let names: Vec<&str> = below.map(|(name, ..)| *name).collect();
        let why = if names.is_empty() {
            "each is a median of its own over the rounds".to_owned()
        } else {
            format!("{} was measured below zero, and the others hold what it lacks", names.join(", "))
        };
        format!("Shares sum to {}: {why}.", percent(sum))
    })
}

/// A share as it is shown: noise makes one larger than all of the time, or smaller than nothing.
fn of_all(share: f64) -> f64 {
    share.clamp(0.0, 1.0)
}

/// A stage as a line of its table. No stage costs less than nothing: where noise makes it so, no cost is given, and an interval
/// ends at 0.
fn stage_line(name: &str, about: &str, cost: &Figure, share: &Figure) -> String {
    let known = cost.value > 0.0;
    let or_none = |text: String| if known { text } else { "–".to_owned() };
    let unclear = !known || cost.low.is_some_and(|low| low <= 0.0);
    format!(
        "  {name:<11} {:>12}  {:<23} {:>10}  {:<16} {about}{}",
        or_none(micro(cost.value)),
        interval(cost, |end| micro(end.max(0.0))),
        or_none(percent(of_all(share.value))),
        interval(share, |end| percent(of_all(end))),
        if unclear { " (not told apart from no time at all)" } else { "" }
    )
}

/// Microseconds.
fn micro(v: f64) -> String {
    format!("{v:.1}")
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// `VALUE (LOW–HIGH)`, or the value alone.
pub(super) fn with_interval(figure: &Figure, text: impl Fn(f64) -> String) -> String {
    match interval(figure, &text) {
        ends if ends.is_empty() => text(figure.value),
        ends => format!("{} ({ends})", text(figure.value)),
    }
}

/// `LOW–HIGH`; empty where there is no interval.
pub(super) fn interval(figure: &Figure, text: impl Fn(f64) -> String) -> String {
    figure.low.zip(figure.high).map_or(String::new(), |(low, high)| format!("{}–{}", text(low), text(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_noise_puts_below_zero_has_no_cost() {
        let figure = |value, ends: Option<(f64, f64)>| Figure {
            value,
            low: ends.map(|(low, _)| low),
            high: ends.map(|(_, high)| high),
        };
        let line = stage_line("decoding", "decoding files", &figure(-71121.3, None), &figure(-0.084, None));
        assert!(!line.contains('-') && line.contains("not told apart from no time at all"), "{line}");
        let line = stage_line("storage", "reading", &figure(12.5, None), &figure(0.25, None));
        assert!(line.contains(" 12.5 ") && line.contains(" 25.0 %") && line.ends_with("reading"), "{line}");
        let share = figure(0.1, Some((-0.02, 0.125)));
        let ends = stage_line("copying", "c", &figure(1.5, Some((-0.5, 2.0))), &share);
        assert!(ends.contains(" 1.5 ") && ends.ends_with("at all)"), "{ends}");
        assert!(ends.contains(" 0.0–2.0 ") && ends.contains(" 0.0 %–12.5 % "), "{ends}");
        let below = figure(-71121.3, Some((-90000.0, -5.0)));
        let none = stage_line("decoding", "d", &below, &figure(-0.1, Some((-0.2, 0.1))));
        assert!(none.contains(" 0.0–0.0 ") && none.contains(" 0.0 %–10.0 % "), "{none}");
    }

    #[test]
    fn shares_that_sum_to_more_than_all_say_why() {
        let line = stage_line(
            "decoding",
            "d",
            &Figure { value: 14.0, low: None, high: None },
            &Figure { value: 1.2, low: Some(1.1), high: Some(1.3) },
        );
        assert!(line.contains(" 100.0 %  100.0 %–100.0 % ") && !line.contains("120"), "{line}");
        let said = beyond_all(&[("storage", -4.0, -0.4), ("decoding", 12.0, 1.2), ("copying", 1.0, 0.1)]);
        let why =
            "Shares sum to 110.0 %: storage was measured below zero, and the others hold what it lacks.";
        assert_eq!(said.as_deref(), Some(why));
        let said = beyond_all(&[("storage", 6.0, 0.613), ("decoding", 4.0, 0.4)]);
        let why = "Shares sum to 101.3 %: each is a median of its own over the rounds.";
        assert_eq!(said.as_deref(), Some(why));
        assert_eq!(beyond_all(&[("storage", 6.0, 0.6), ("decoding", 4.0, 0.401)]), None);
    }

    #[test]
    fn a_step_takes_an_hour_at_most() {
        assert_eq!(parse_step("40"), Ok(40.0));
        assert_eq!(parse_step("3600000"), Ok(3.6e6));
        assert!(parse_step("1e9").is_err_and(|why| why.contains("more than an hour")));
        assert!(parse_step("inf").is_err_and(|why| why.contains("more than an hour")));
        for wrong in ["0", "-1", "NaN", "x"] {
            assert!(parse_step(wrong).is_err_and(|why| why.contains("no positive number")), "{wrong}");
        }
    }
}
