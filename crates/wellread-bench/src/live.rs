//! The figures of a running benchmark so far, in one line for a terminal.
//!
//! ```text
//!  variants::run, after each turn ─▶ LiveFigures::add(format, the other keys, figure) ─▶ line ─▶ RunObserver::current
//! ```
//!
//! The figures are medians over the runs so far: they change until the benchmark ends, and stand in no result.

use std::time::Duration;
use wellread_measure::samples::median_in_place;
use wellread_report::columns::{Better, Quantity, quantity};
use wellread_store::words::counted;

/// The progress of a run.
#[derive(Clone, Copy)]
pub struct RunObserver<'a> {
    /// Called with what is being done, steps done, steps in all.
    pub progress: &'a dyn Fn(&str, usize, usize),
    /// Called before it with the time left of all that is measured, at most, where that is known.
    pub left: &'a dyn Fn(Option<Duration>),
    /// Called with a line when a phase has ended: images prepared, a benchmark measured and on disk.
    pub phase: &'a dyn Fn(&str),
    /// Called with a line of current figures.
    pub current: &'a dyn Fn(&str),
}

/// The figures of a benchmark so far.
pub(crate) struct LiveFigures {
    quantity: Quantity,
    figures: Vec<Figure>,
}

struct Figure {
    format: String,
    /// The other keys of its configuration: formats are compared where those are the same.
    kind: String,
    values: Vec<f64>,
}

impl Figure {
    fn median(&self) -> f64 {
        median_in_place(&mut self.values.clone()).unwrap_or(f64::NAN)
    }
}

impl LiveFigures {
    /// For figures of this column.
    pub fn new(column: &str) -> Self {
        Self { quantity: quantity(column), figures: Vec::new() }
    }

    /// Adds what a run measured, and tells the configuration's figure so far and the best of its kind.
    pub fn add(&mut self, format: &str, kind: &str, value: f64) -> String {
        let known = self.figures.iter().position(|f| f.format == format && f.kind == kind);
        let at = known.unwrap_or_else(|| {
            self.figures.push(Figure {
                format: format.to_owned(),
                kind: kind.to_owned(),
                values: Vec::new(),
            });
            self.figures.len() - 1
        });
        self.figures[at].values.push(value);
        let this = &self.figures[at];
        let shown = |figure: &Figure| self.quantity.unit.format(figure.median());
        let runs = counted(this.values.len(), "run");
        let mut line = format!("{} {}: {} ({runs})", this.format, this.kind, shown(this));
        if let Some(best) = self.best(kind) {
            let is_this = best.format == this.format;
            line += &if is_this {
                "; best so far".to_owned()
            } else {
                format!("; best so far: {} {}", best.format, shown(best))
            };
        }
        line
    }

    /// The best of a kind of which there are several.
    fn best(&self, kind: &str) -> Option<&Figure> {
        let alike = || self.figures.iter().filter(|f| f.kind == kind);
        let by_median = |a: &&Figure, b: &&Figure| a.median().total_cmp(&b.median());
        match self.quantity.better {
            _ if alike().count() < 2 => None,
            Better::Lower => alike().min_by(by_median),
            Better::Higher => alike().max_by(by_median),
            Better::Neither => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LiveFigures;

    #[test]
    fn medians_so_far_and_the_best_of_a_kind() {
        let mut live = LiveFigures::new("seconds");
        assert_eq!(live.add("tiff", "open warm", 0.002), "tiff open warm: 2.00\u{a0}ms (1 run)");
        // Another kind is not compared with.
        assert_eq!(live.add("tiff", "write", 0.5), "tiff write: 500\u{a0}ms (1 run)");
        let slower = live.add("lance", "open warm", 0.004);
        assert_eq!(slower, "lance open warm: 4.00\u{a0}ms (1 run); best so far: tiff 2.00\u{a0}ms");
        live.add("tiff", "open warm", 0.003);
        let again = live.add("tiff", "open warm", 0.9);
        assert_eq!(again, "tiff open warm: 3.00\u{a0}ms (3 runs); best so far");
        let mut rates = LiveFigures::new("images_per_s");
        rates.add("tiff", "", 10.0);
        assert!(rates.add("lance", "", 5.0).ends_with("best so far: tiff 10.0/s"));
    }
}
