//! `wellread bench WHAT…`

mod arguments;
mod unused;

pub use arguments::Args;

use super::program::Program;
use super::{left_out, note_leftovers, note_unmatched_names, recipe};
use crate::output::{Failure, Outcome, TimeLeft, Ui, figures_on, shown_on};
use crate::text_table::{UNAVAILABLE, text_table};
use std::collections::HashSet;
use wellread_bench::data::Source;
use wellread_bench::{Config, RunObserver, suite};
use wellread_measure::compare::MAX_DETECTABLE;
use wellread_measure::to_stderr;
use wellread_report::{ReportInput, Severity, Table, summary};
use wellread_store::surface::{option, option_as};

/// Processes of a comparison at most.
const MAX_PROCESSES: usize = 1_000;

pub fn run(args: &Args, program: &Program, ui: Ui) -> Outcome {
    if let Some(path) = &args.recipe {
        return recipe::run(path, &args.out, program, ui);
    }
    if args.processes > MAX_PROCESSES {
        return Err(Failure::Usage(format!(
            "--processes {} are too many: {MAX_PROCESSES} at most",
            args.processes
        )));
    }
    if args.precision == Some(0.0) {
        return Err(Failure::Usage("--precision 0 is never reached; write a share such as 2%".to_owned()));
    }
    let config = args.config()?;
    // The parser lets this pass where an option of generated images is there, too.
    if config.in_place && matches!(config.source, Source::Synthetic(_)) {
        return Err(Failure::Usage(
            "--in-place needs --input: there is nothing to measure in place".to_owned(),
        ));
    }
    for note in unused::notes(&config) {
        ui.hint(format!("note: {note}"));
    }
    if let Source::Path { path, sites, .. } = &config.source {
        let options = sites.open_options();
        // A path that cannot be opened is an error below.
        if let Ok(store) = wellread_store::open(path, &options) {
            note_unmatched_names(&*store, &options, ui);
            left_out::say(&left_out::notes(&*store), path, ui);
        }
    }
    // Said while it can still be stopped: the first benchmark that ends removes what is there.
    if config.out.join(summary::FILE_NAME).is_file() {
        ui.hint(format!(
            "note: the results of an earlier run in {} will be replaced ({} keeps both)",
            config.out.display(),
            option_as("out", "ANOTHER")
        ));
    }
    let bar = ui.progress(0, "preparing images");
    let left = TimeLeft::default();
    left.show_on(&bar);
    let watch = RunObserver {
        progress: &shown_on(&bar),
        left: &|time| left.set(time),
        phase: &|line| ui.phase(line),
        current: &figures_on(&bar, &left),
    };
    let outcome = if args.processes > 1 {
        // A child whose pixels differ is one that failed.
        super::processes::run(&config, args.processes, &program.start, watch)
            .map(|(report, failures)| suite::Outcome { report, verified: true, failures })
    } else {
        suite::run(&config, watch)
    };
    let outcome = outcome?;
    bar.finish_and_clear();
    if ui.json {
        ui.document(&outcome.report.to_summary())?;
    } else {
        print_outcome(&outcome, &config, ui);
    }
    if !outcome.failures.is_empty() {
        for failure in &outcome.failures {
            to_stderr(format!("error: {failure}"));
        }
        return Err(Failure::Reported);
    }
    if let Some(why) = nothing_measured(&outcome.report) {
        return Err(Failure::Failed(why));
    }
    if !outcome.verified {
        return Err(Failure::Failed("pixels differ from the expected ones; see the report".to_owned()));
    }
    missing_frameworks(&outcome.report).map_or(Ok(()), |why| Err(Failure::Failed(why)))
}

/// Which of the frameworks that were asked for are missing, and why, if some are.
fn missing_frameworks(report: &ReportInput) -> Option<String> {
    let frameworks = report.details.get("frameworks")?.as_object()?;
    let missing: Vec<String> = frameworks
        .iter()
        .filter_map(|(name, about)| Some(format!("{name}: {}", about.get("unavailable")?.as_str()?)))
        .collect();
    (!missing.is_empty()).then(|| {
        format!(
            "nothing was measured of {} (hint: without it in {} the others are measured alone)",
            missing.join("; "),
            option("framework")
        )
    })
}

/// Why nothing was measured, if nothing was.
fn nothing_measured(report: &ReportInput) -> Option<String> {
    let rows = || report.tables.iter().flat_map(|table| (0..table.rows()).map(move |row| (table, row)));
    if rows().any(|(table, row)| table.str("status", row) == Some("ok")) {
        return None;
    }
    let reason =
        rows().find_map(|(table, row)| table.str("reason", row)).unwrap_or("there is nothing to measure");
    Some(format!("nothing was measured: {reason}"))
}

/// The description names an interval, or runs, of each figure: tables in a terminal have no room for them.
fn of_tables(report: &ReportInput) -> &'static str {
    let is_later = |table: &Table, row| {
        ["run", "process"].iter().any(|name| table.f64(name, row).is_some_and(|number| number > 0.0))
    };
    if report.tables.iter().any(|table| (0..table.rows()).any(|row| is_later(table, row))) {
        " The tables here show medians alone; the report shows what is beside them."
    } else {
        ""
    }
}

/// From which slow-down on one is found, and of which benchmarks none is; empty where nothing is known of it.
fn detected(report: &ReportInput) -> String {
    let (found, none): (Vec<_>, Vec<_>) =
        report.detectable.iter().partition(|(_, least)| **least <= MAX_DETECTABLE);
    let found: Vec<String> =
        found.iter().map(|(name, least)| format!("{name} {:.1} %", 100.0 * **least)).collect();
    let none: Vec<&str> = none.iter().map(|(name, _)| name.as_str()).collect();
    let mut sentences = Vec::new();
    if !found.is_empty() {
        let all = found.join(", ");
        sentences.push(format!("Within one process a slow-down is found in nine of ten cases from: {all}."));
    }
    if !none.is_empty() {
        sentences.push(format!("Rounds differ too much for a slow-down to be found of {}.", none.join(", ")));
    }
    sentences.join(" ")
}

fn print_outcome(outcome: &suite::Outcome, config: &Config, ui: Ui) {
    let report = &outcome.report;
    ui.say_wrapped(format!("{}{}\n", report.description, of_tables(report)));
    let mut missing = HashSet::new();
    for table in &report.tables {
        let headline = suite::benchmark(table.name()).map_or(&[][..], |b| b.headline);
        // A cache that was not asked for has nothing to show.
        let has = |name: &&str| table.column(name).is_some_and(|column| !column.is_empty());
        let headline: Vec<&str> = headline.iter().copied().filter(has).collect();
        let about = suite::benchmark(table.name()).map_or("", |b| b.about);
        // An engine that this build lacks is missing in every table, and told at the first.
        let text = text_table(table, about, &headline, ui.table_width());
        ui.say(without_known(&text, &mut missing) + "\n");
    }
    for finding in &report.findings {
        let mark = match finding.severity {
            Severity::Good => "+",
            Severity::Info => "·",
            Severity::Caution => "!",
            Severity::Bad => "!!",
        };
        ui.say_wrapped(format!("{mark} {}.", finding.text));
        if !finding.detail.is_empty() {
            ui.say_wrapped(format!("    {}", finding.detail));
        }
    }
    for warning in &report.warnings {
        ui.hint(format!("note: {warning}"));
    }
    if !report.noise_floors.is_empty() {
        let floors: Vec<_> = report
            .noise_floors
            .iter()
            .map(|(name, floor)| format!("{name} {:.1} %", 100.0 * floor))
            .collect();
        ui.say_wrapped(format!(
            "Noise floor (one variant measured twice; smaller differences mean nothing): {}.",
            floors.join(", ")
        ));
        let detected = detected(report);
        if !detected.is_empty() {
            ui.say_wrapped(detected);
            ui.hint(format!(
                "note: the next process may differ by more; to compare results, measure several with {}",
                option_as("processes", "5")
            ));
        }
        if let Some(noisy) = report.too_noisy() {
            ui.say_wrapped(format!("! {noisy}"));
        }
    }
    note_leftovers(&config.out, ui);
    note_leftovers(&config.data_folder(), ui);
    ui.say(format!("Report: {}", config.out.join("report.html").display()));
}

/// The text of a table without what is missing and was told before; each of that may take several lines.
fn without_known(text: &str, told: &mut HashSet<String>) -> String {
    let mut blocks: Vec<String> = Vec::new();
    for line in text.lines() {
        match blocks.last_mut().filter(|_| !line.starts_with(UNAVAILABLE)) {
            Some(block) => {
                block.push('\n');
                block.push_str(line);
            }
            None => blocks.push(line.to_owned()),
        }
    }
    blocks.retain(|block| !block.starts_with(UNAVAILABLE) || told.insert(block.clone()));
    blocks.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    #[test]
    fn tables_are_said_to_have_medians_alone_where_there_are_several_runs() {
        let mut table = Table::new("storage");
        table.push(row![("format", "tiff"), ("run", 0)]);
        let mut report = ReportInput { tables: vec![table], ..ReportInput::default() };
        assert_eq!(of_tables(&report), "");
        report.tables[0].push(row![("format", "tiff"), ("run", 1)]);
        assert!(of_tables(&report).contains("medians alone"));
        report.tables[0] = Table::new("storage");
        report.tables[0].push(row![("format", "tiff"), ("process", 1)]);
        assert!(of_tables(&report).contains("medians alone"));
    }

    #[test]
    fn a_slow_down_that_nobody_asks_for_is_not_said_to_be_found() {
        let said = |detectable: &[(&str, f64)]| {
            let detectable = detectable.iter().map(|(name, least)| ((*name).to_owned(), *least)).collect();
            detected(&ReportInput { detectable, ..ReportInput::default() })
        };
        assert_eq!(said(&[]), "");
        assert_eq!(
            said(&[("loop", 55_010.554), ("storage", 0.034)]),
            "Within one process a slow-down is found in nine of ten cases from: storage 3.4 %. Rounds differ too much for a \
             slow-down to be found of loop."
        );
        let none = said(&[("dataset", 10.5), ("loop", 1e6)]);
        assert_eq!(none, "Rounds differ too much for a slow-down to be found of dataset, loop.");
    }

    #[test]
    fn a_framework_that_is_missing_is_an_error_and_the_others_are_not() {
        let said = |frameworks: serde_json::Value| {
            let mut report = ReportInput::default();
            report.details.insert("frameworks".to_owned(), frameworks);
            missing_frameworks(&report)
        };
        let there = serde_json::json!({ "backend": "torch 2.9 (cpu, 2 threads)" });
        assert_eq!(said(serde_json::json!({})), None);
        assert_eq!(said(serde_json::json!({ "pytorch": there })), None);
        let missing = serde_json::json!({ "unavailable": "jax cannot be imported; pip install jax" });
        let text = said(serde_json::json!({ "jax": missing, "pytorch": there })).unwrap();
        assert!(
            text.starts_with("nothing was measured of jax: jax cannot be imported; pip install jax (hint: ")
        );
        assert!(text.contains("framework") && !text.contains("pytorch"), "{text}");
        assert_eq!(missing_frameworks(&ReportInput::default()), None);
    }

    /// A reason goes on in a second line: it is told with its first, or not at all.
    #[test]
    fn what_is_missing_is_told_once_and_whole() {
        let mut told = HashSet::new();
        let lance = "  unavailable: lance; vortex: this build has\n  no such engine";
        let first = format!("storage\n  format  time\n{lance}\n  unavailable: tiff: no time");
        assert_eq!(without_known(&first, &mut told), first);
        assert_eq!(without_known(&format!("loop\n{lance}\n"), &mut told), "loop");
        let other = "loop\n  unavailable: lance; vortex: this build has\n  no time";
        assert_eq!(without_known(other, &mut told), other);
    }
}
