//! Tables for a terminal, at most 100 columns wide.

use crate::comparison::{Comparison, PhaseComparison};
use crate::plan::Planned;
use crate::results::first_sentence;
use crate::suite::Outcome;
use crate::summary::Figures;
use wellread_report::number::Unit;
use wellread_report::words::counted;

/// Widest line.
const WIDTH: usize = 100;
/// Widest name of a branch or experiment.
const NAME: usize = 30;

/// The tasks, before anything runs.
pub fn plan(planned: &[Planned], repeats: usize) -> String {
    let mut lines =
        vec![["branch", "commit", "experiment", "adapter", "trainer", "python"].map(str::to_owned).to_vec()];
    for task in planned {
        let ready = task.ready.as_ref().ok();
        let commit = ready.and_then(|r| r.branch.commit.get(..9)).unwrap_or("–").to_owned();
        let python = ready.and_then(|ready| ready.python.clone()).unwrap_or_else(|| "–".to_owned());
        let name = |text: &str| short(text, NAME);
        lines.push(vec![
            name(&task.label),
            commit,
            name(&task.row.experiment),
            task.config.adapter.clone(),
            task.config.trainer.to_string(),
            python,
        ]);
    }
    let (tasks, runs) = (counted(planned.len(), "task"), counted(repeats, "run"));
    let mut text = format!("Plan: {tasks}, {runs} of each\n{}", table(&lines, 6));
    for task in planned {
        if let Err(why) = &task.ready {
            text += &wrap(&format!("{} cannot run: {why}", task.label), "  ");
        }
    }
    text
}

/// A row per task: how it ended and its main figures.
pub fn summary(outcome: &Outcome) -> String {
    let figures: Vec<Figures> = outcome.entries.iter().map(Figures::of).collect();
    let on_gpu = figures.iter().any(|of| of.gpu_memory_mb.is_some());
    let mut heads =
        vec!["experiment", "branch", "runs", "total", "first epoch", "load/batch", "step/batch", "memory"];
    if on_gpu {
        heads.push("GPU");
    }
    let mut lines = vec![heads.into_iter().map(str::to_owned).collect::<Vec<String>>()];
    // One more column has to fit.
    let most = if on_gpu { 13 } else { 18 };
    let seconds = |value: Option<f64>| value.map_or("–".to_owned(), |s| Unit::Seconds.format(s));
    let memory = |value: Option<f64>| value.map_or("–".to_owned(), |mb| format!("{mb:.0} MB"));
    for ((task, entry), of) in outcome.planned.iter().zip(&outcome.entries).zip(&figures) {
        let mut line = vec![short(&entry.experiment, most), short(&task.label, most)];
        if of.good == 0 {
            let why = entry.error.as_deref().unwrap_or("not run");
            line.push(format!("failed: {}", short(first_sentence(why), 60)));
        } else {
            let failed = of.failed;
            line.push(if failed > 0 {
                format!("{} (+{failed} failed)", of.good)
            } else {
                of.good.to_string()
            });
            line.extend([of.total, of.first_epoch, of.loading, of.step].map(seconds));
            line.push(memory(of.memory_mb));
            if on_gpu {
                line.push(memory(of.gpu_memory_mb));
            }
        }
        lines.push(line);
    }
    format!("Summary (medians; per batch in the steady state)\n{}", table(&lines, 2))
}

/// A table per comparison: phases, ratio with interval, verdict; then the sentence.
pub fn compared(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    for one in comparisons {
        text += &format!("{} compared with {} ({})\n", one.candidate, one.baseline, one.experiment);
        let mut lines = vec![
            ["phase", "baseline", "this", "ratio", "95 % interval", "runs", "verdict"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for phase in &one.phases {
            let interval = match (phase.ratio.low, phase.ratio.high) {
                (Some(low), Some(high)) => format!("{low:.3}–{high:.3}"),
                _ => "–".to_owned(),
            };
            lines.push(vec![
                format!("{}{}", short(&phase.phase, 26), per(phase)),
                Unit::Seconds.format(phase.baseline_seconds),
                Unit::Seconds.format(phase.seconds),
                format!("{:.3}", phase.ratio.estimate),
                interval,
                format!("{}/{}", phase.runs[0], phase.runs[1]),
                phase.verdict_word(),
            ]);
        }
        if !one.phases.is_empty() {
            text += &table(&lines, 1);
        }
        text += &wrap(&one.sentence, "  ");
        if !one.detail.is_empty() {
            text += &wrap(&one.detail, "  ");
        }
        text.push('\n');
    }
    text
}

/// The unit of a phase's time, where it is not of the whole run. A program's own phases that repeat may do so with
/// anything.
fn per(phase: &PhaseComparison) -> &'static str {
    match phase.phase.as_str() {
        _ if !phase.repeated => "",
        "validation" => " (per epoch)",
        name if name.starts_with("batch_") => " (per batch)",
        _ => " (each)",
    }
}

/// Lines as a table, the first so many columns to the left and the others to the right. A line that ends early ends in
/// free text.
fn table(lines: &[Vec<String>], left: usize) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let whole = |line: &&Vec<String>| line.len() == columns || at + 1 < line.len();
        lines
            .iter()
            .filter(whole)
            .filter_map(|line| line.get(at))
            .map(|text| text.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let mut written = String::from(" ");
        for (at, text) in line.iter().enumerate() {
            let pad = " ".repeat(widths[at].saturating_sub(text.chars().count()));
            written += if at < 2 { " " } else { "  " };
            let free = at + 1 == line.len() && line.len() < columns;
            if at < left || free {
                written += &format!("{text}{pad}");
            } else {
                written += &format!("{pad}{text}");
            }
        }
        out += &short(written.trim_end(), WIDTH);
        out.push('\n');
    }
    out
}

/// A text of at most so many characters.
fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(most - 1).collect();
    cut.push('…');
    cut
}

/// Words in lines of at most [`WIDTH`] characters.
fn wrap(text: &str, indent: &str) -> String {
    let mut out = String::new();
    for paragraph in text.lines() {
        let mut line = indent.to_owned();
        for word in paragraph.split_whitespace() {
            if line.chars().count() + word.chars().count() + 1 > WIDTH && line.trim() != "" {
                out += line.trim_end();
                out.push('\n');
                indent.clone_into(&mut line);
            }
            line += word;
            line.push(' ');
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Ratio;
    use wellread_measure::Verdict;

    #[test]
    fn a_phase_says_what_its_time_is_of() {
        let phase = |name: &str, repeated: bool| PhaseComparison {
            phase: name.to_owned(),
            repeated,
            baseline_seconds: 1.0,
            seconds: 1.0,
            ratio: Ratio { estimate: 1.0, low: None, high: None },
            runs: [3, 3],
            p_value: None,
            verdict: Verdict::NoDifference,
            reason: None,
        };
        assert_eq!(per(&phase("batch_step", true)), " (per batch)");
        assert_eq!(per(&phase("validation", true)), " (per epoch)");
        assert_eq!(per(&phase("epoch", true)), " (each)");
        assert_eq!(per(&phase("own", true)), " (each)");
        assert_eq!((per(&phase("total_training", false)), per(&phase("validation", false))), ("", ""));
    }

    #[test]
    fn tables_fit_and_line_up() {
        let line = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        let text = table(
            &[line(&["a", "bb", "time"]), line(&["long", "b", "1 s"]), line(&["x", "failed: because"])],
            2,
        );
        assert_eq!(text, "  a    bb  time\n  long b    1 s\n  x    failed: because\n");
        let wide = table(&[line(&[&"x".repeat(300)])], 1);
        assert_eq!(wide.trim_end().chars().count(), WIDTH);
        let wrapped = wrap(&"word ".repeat(60), "  ");
        assert!(
            wrapped.lines().count() == 4 && wrapped.lines().all(|l| l.chars().count() <= WIDTH),
            "{wrapped}"
        );
        assert_eq!(short("äöü", 2), "ä…");
    }
}
