//! The chart that the answer of a report begins with.
//!
//! ```text
//!  bench ─▶ formats at their best, by codec           (decision)
//!  infer ─▶ images per second by framework and model  (a section of the figure of inference)
//!  tasks ─▶ the phases of a step by branch             (those of the figure of tasks)
//! ```

use super::spec::Answer;
use super::{decision, draw, inference, tasks};
use crate::chart::{Figure, Mark};
use crate::input::ReportInput;

static ANSWERS: [&Answer; 2] = [&inference::ANSWER, &tasks::ANSWER];

/// The chart and how it is read; `None` where nothing that decides was measured.
pub(crate) fn chart(input: &ReportInput) -> Option<(Figure, &'static str)> {
    let formats = decision::figure(input).map(|figure| (figure, decision::HOW_TO_READ));
    formats.or_else(|| ANSWERS.iter().find_map(|answer| Some((drawn(answer, input)?, answer.how_to_read))))
}

fn drawn(answer: &Answer, input: &ReportInput) -> Option<Figure> {
    let table = input.tables.iter().find(|table| table.name() == answer.table)?;
    let figure = draw::of_sections(table, answer.title, (answer.sections)(table), input)?;
    let mut marks = figure.sections.iter().flat_map(|section| &section.panels).flat_map(|panel| &panel.marks);
    let is_measured = marks.any(|mark| matches!(mark, Mark::Value(_)));
    is_measured.then(|| Figure { name: decision::NAME.to_owned(), ..figure })
}

#[cfg(test)]
mod tests {
    use super::super::panel::value_of;
    use super::*;
    use crate::row;
    use crate::table::Table;

    fn inference(rates: &[(&str, i64, Option<f64>)]) -> ReportInput {
        let mut table = Table::new("inference");
        for (framework, size, rate) in rates {
            let mut row = row![("framework", *framework), ("model", "resnet50"), ("batch_size", *size)];
            row.extend(match rate {
                Some(rate) => row![("run", 0), ("throughput_ips", *rate), ("latency_p50_s", 1.0 / rate)],
                None => row![("status", "unavailable"), ("reason", "no torch")],
            });
            table.push(row);
        }
        ReportInput { tables: vec![table], ..ReportInput::default() }
    }

    /// The values of a chart's marks, panel by panel.
    fn values(figure: &Figure) -> Vec<f64> {
        let panels = figure.sections.iter().flat_map(|section| &section.panels);
        panels.flat_map(|panel| &panel.marks).filter_map(value_of).collect()
    }

    #[test]
    fn answers_of_inference_begin_with_the_throughput_of_each_framework() {
        let input =
            inference(&[("candle", 1, Some(20.0)), ("candle", 8, Some(50.0)), ("pytorch", 1, Some(40.0))]);
        let (figure, how) = chart(&input).unwrap();
        assert_eq!((figure.name.as_str(), figure.sections.len()), ("decision", 1));
        let series: Vec<&str> = figure.series().iter().map(|one| one.name.as_str()).collect();
        assert_eq!(series, ["pytorch", "candle"]);
        assert_eq!(values(&figure), [40.0, 20.0, 50.0]);
        assert!(how.contains("framework"), "{how}");
        assert!(figure.png(1.0).is_ok());
        // Nothing decides where nothing was measured.
        assert!(chart(&inference(&[("pytorch", 1, None)])).is_none());
        assert!(chart(&ReportInput::default()).is_none());
    }

    #[test]
    fn answers_of_tasks_begin_with_the_phases_of_a_step() {
        let of_experiments = |all: &[(&str, &str)]| {
            let mut table = Table::new("tasks");
            for (branch, seconds) in [("main", 0.25), ("slow", 0.5)] {
                for (experiment, phase) in all {
                    table.push(row![
                        ("experiment", *experiment),
                        ("branch", branch),
                        ("phase", *phase),
                        ("run", 0),
                        ("seconds", seconds)
                    ]);
                }
            }
            ReportInput { tables: vec![table], ..ReportInput::default() }
        };
        let phases = |names: &[&'static str]| {
            of_experiments(&names.iter().map(|name| ("e", *name)).collect::<Vec<_>>())
        };
        let panels = |input: &ReportInput| -> Vec<String> {
            let (figure, _) = chart(input).unwrap();
            figure
                .sections
                .iter()
                .flat_map(|section| &section.panels)
                .map(|panel| panel.title.clone())
                .collect()
        };
        let input = phases(&["total_training", "batch_step", "epoch"]);
        assert_eq!(panels(&input), ["batch step"]);
        assert_eq!(values(&chart(&input).unwrap().0), [0.25, 0.5]);
        // A command of one's own reports no steps.
        assert_eq!(panels(&phases(&["total_training"])), ["total training"]);
        // Beside one that does, it is not left out.
        let both = of_experiments(&[("e", "batch_step"), ("e", "total_training"), ("f", "total_training")]);
        assert_eq!(panels(&both), ["batch step", "total training"]);
        assert_eq!(values(&chart(&both).unwrap().0), [0.25, 0.5, 0.25, 0.5]);
    }
}
