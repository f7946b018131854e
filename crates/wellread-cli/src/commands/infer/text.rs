//! Lines that are printed while frameworks are measured, as upstream does.

use crate::commands::distinct;
use crate::output::{Ui, shown_on};
use indicatif::ProgressBar;
use std::cell::RefCell;
use std::collections::HashSet;
use wellread_infer::Event;
use wellread_infer::config::Config;
use wellread_infer::protocol::Opened;
use wellread_infer::results::{Row, Status};
use wellread_infer::suite::label;
use wellread_store::surface::{option, option_as};
use wellread_store::words::counted;

/// A line across, as upstream prints it.
pub(super) const RULE_LINE: &str = "============================================================";

/// The conditions that all frameworks shared.
pub(super) fn shared_conditions(config: &Config) -> String {
    let processors = wellread_measure::process::first_processors(config.threads);
    let kept = processors.map_or("on all processors", |_| "kept to as many processors");
    format!(
        "Every framework: {}, {kept}, seed {}, measured in turns in random order, device idle at every clock read",
        counted(config.threads, "thread"),
        config.seed
    )
}

/// The frameworks that are asked for by their own names and of which nothing was measured, with the reasons.
pub(super) fn lacking(asked: &[String], rows: &[&Row]) -> Option<String> {
    let is_own = |name: &&String| Config::parse_framework(name).is_ok_and(|all| all == [name.as_str()]);
    let why = |name: &String| {
        let mut own = rows.iter().filter(|row| row.framework == *name).peekable();
        let reason = own.peek()?.reason.clone().unwrap_or_default();
        own.all(|row| row.status == Status::Failed).then(|| format!("{name}: {reason}"))
    };
    // One that is named twice lacks once.
    let named: Vec<String> = distinct(asked).iter().filter(is_own).filter_map(why).collect();
    (!named.is_empty()).then(|| {
        let (all, skip) = (option_as("framework", "all"), option("skip_failed"));
        format!("nothing was measured of {} (hint: {skip} and {all} take what there is)", named.join("; "))
    })
}

/// Frameworks that could not be opened, with the model: that was told, and is not told of every batch size again.
pub(super) type Missing = RefCell<HashSet<(String, String)>>;

/// Prints as upstream does, around the progress bar.
pub(super) fn print_event(event: &Event<'_>, missing: &Missing, bar: &ProgressBar, ui: Ui) {
    match event {
        Event::Progress { what, done, of } => shown_on(bar)(what, *done, *of),
        Event::Opened { name, model, opened } => bar.suspend(|| match opened {
            Ok(opened) => {
                ui.say(format!("{RULE_LINE}\n{name} Benchmark: {model}\n{RULE_LINE}"));
                ui.say(opened_text(opened));
            }
            Err(reason) => {
                missing.borrow_mut().insert((name.clone(), (*model).to_owned()));
                ui.say(missing_text(name, model, reason));
            }
        }),
        Event::Row { name, row } => {
            let told =
                row.status == Status::Failed && missing.borrow().contains(&(name.clone(), row.model.clone()));
            if !told {
                bar.suspend(|| ui.say(row_text(name, row)));
            }
        }
    }
}

/// The message about a missing framework: one line, however long its error is.
fn missing_text(name: &str, model: &str, reason: &str) -> String {
    let reason: Vec<&str> = reason.split_whitespace().collect();
    format!("{name} Benchmark: {model}: not available: {}", reason.join(" "))
}

/// Says of each configuration of a cluster that failed which host lacks it, and why; that of several batch sizes once.
pub(super) fn failed_on_nodes<'r>(rows: impl Iterator<Item = &'r Row>) -> Vec<String> {
    let mut lines = Vec::new();
    for row in rows.filter(|row| row.status == Status::Failed) {
        let name = label(&row.framework, &row.variant);
        let place = row.node.as_ref().map_or_else(String::new, |host| format!(" on {host}"));
        let reason = row.reason.as_deref().unwrap_or_default();
        let line = missing_text(&name, &format!("{}{place}", row.model), reason);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn opened_text(opened: &Opened) -> String {
    let device = opened.device_name.as_deref().unwrap_or(&opened.device);
    let kind = opened.device_type.to_uppercase();
    let mut text =
        format!("Device: {device}\n  Type: {kind}\n  Available: True\n  Backend: {}\n", opened.backend);
    for note in &opened.notes {
        text.push_str(&format!("  Note: {note}\n"));
    }
    text
}

fn row_text(name: &str, row: &Row) -> String {
    let mut text = format!("Benchmarking batch size: {} ({name}, {})\n", row.batch_size, row.model);
    let mut line = |label: &str, value: String| text.push_str(&format!("  {label}: {value}\n"));
    if let (Some(p50), Some(ips)) = (row.latency_p50_ms, row.throughput_ips) {
        line("Latency (p50)", format!("{p50:.3}ms"));
        line("Throughput", format!("{ips:.2} images/sec (median of rounds)"));
    }
    if let Some(memory) = row.memory_mb {
        line("Memory", format!("{memory:.2} MB"));
    }
    if let Some(compile) = row.compilation_time_ms {
        line("Compilation", format!("{compile:.1}ms"));
    }
    if let (Some(ips), Some(wait)) = (row.end_to_end_ips, row.data_wait_fraction) {
        let wait = 100.0 * wait;
        line("End to end", format!("{ips:.2} images/sec ({wait:.0} % of the time waiting for images)"));
    }
    if let Some(outliers) = row.outliers.filter(|&outliers| outliers > 0) {
        line("Outliers", format!("{outliers} of {}, counted, not dropped", row.latency_samples));
    }
    if row.steady == Some(false) {
        line("Note", "latency was not steady after the warm-up".to_owned());
    }
    if let Some(note) = &row.note {
        line("Note", note.clone());
    }
    match (row.max_difference, &row.reference) {
        (Some(0.0), Some(_)) => line("Outputs", "the same as the reference's".to_owned()),
        (Some(difference), Some(reference)) => {
            line("Outputs", format!("differ from those of {reference} by {difference:.1e} of the largest"));
        }
        _ => (),
    }
    match row.status {
        Status::Ok => (),
        Status::Invalid => line("Invalid", row.reason.clone().unwrap_or_default()),
        Status::Failed => line("Failed", row.reason.clone().unwrap_or_default()),
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_printed_as_upstream_does() {
        let row = Row {
            model: "resnet50".into(),
            batch_size: 4,
            latency_p50_ms: Some(12.1744),
            throughput_ips: Some(328.16),
            memory_mb: Some(105.67),
            status: Status::Ok,
            ..Row::default()
        };
        let text = row_text("PyTorch", &row);
        assert!(text.starts_with("Benchmarking batch size: 4"), "{text}");
        for line in [
            "\n  Latency (p50): 12.174ms",
            "\n  Throughput: 328.16 images/sec (median of rounds)",
            "\n  Memory: 105.67 MB",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let failed = Row { reason: Some("torch cannot be imported".into()), ..Row::default() };
        assert!(row_text("PyTorch", &failed).ends_with("Failed: torch cannot be imported"));
    }

    #[test]
    fn a_host_that_lacks_a_variant_is_named_once() {
        let failed = |variant: &str, batch_size, node: Option<&str>| Row {
            framework: "pytorch".into(),
            variant: variant.into(),
            model: "resnet50".into(),
            batch_size,
            node: node.map(str::to_owned),
            reason: Some("no compiler\nhere".into()),
            ..Row::default()
        };
        let rows = [
            Row { status: Status::Ok, ..failed("eager", 1, Some("n1")) },
            failed("compile", 1, Some("n1")),
            failed("compile", 8, Some("n1")),
            failed("eager", 1, None),
        ];
        let expected = [
            "PyTorch (compile) Benchmark: resnet50 on n1: not available: no compiler here",
            "PyTorch Benchmark: resnet50: not available: no compiler here",
        ];
        assert_eq!(failed_on_nodes(rows.iter()), expected);
    }

    #[test]
    fn a_missing_framework_takes_one_line() {
        let text = missing_text("PyTorch", "resnet50", "No module named 'torch'\n  pip install torch");
        assert_eq!(
            text,
            "PyTorch Benchmark: resnet50: not available: No module named 'torch' pip install torch"
        );
    }
}
