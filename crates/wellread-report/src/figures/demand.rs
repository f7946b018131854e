//! The rate of the model by itself: the line across the figure that a report begins with.
//!
//! ```text
//!  loop: batch size / a step from full buffers, else images/s / share of computing ─▶ median of all runs ─▶ images/s
//! ```

use crate::table::Table;
use wellread_measure::samples::median;

/// The images per second that a model takes when it waits for nothing.
pub(super) struct Demand {
    /// Images per second.
    pub(super) images_per_s: f64,
    /// The model.
    pub(super) model: String,
    /// `train` or `inference`.
    pub(super) mode: String,
}

/// The demand of the model of a table of the model loop, in training where that was measured. Rows of frameworks in Python are
/// left out: their loaders are not those of the figure.
pub(super) fn of(table: &Table) -> Option<Demand> {
    let is_own = |row: &usize| table.str("framework", *row).is_none_or(|framework| framework == "rust");
    let known: Vec<(usize, f64)> =
        (0..table.rows()).filter(is_own).filter_map(|row| Some((row, rate(table, row)?))).collect();
    let text = |column: &str, row: usize| table.str(column, row).unwrap_or_default();
    let mode = ["train", "inference"]
        .into_iter()
        .find(|mode| known.iter().any(|(row, _)| text("mode", *row) == *mode))?;
    let of_mode = || known.iter().filter(|(row, _)| text("mode", *row) == mode);
    let model = text("model", of_mode().next()?.0);
    let rates: Vec<f64> =
        of_mode().filter(|(row, _)| text("model", *row) == model).map(|(_, rate)| *rate).collect();
    Some(Demand { images_per_s: median(&rates)?, model: model.to_owned(), mode: mode.to_owned() })
}

/// Images per second of a run without its waiting: of steps that were fed from full buffers, where there were any.
fn rate(table: &Table, row: usize) -> Option<f64> {
    let of = |column: &str| table.f64(column, row).filter(|value| *value > 0.0 && value.is_finite());
    let fed = || Some(of("batch_size")? / of("synthetic_step_s")?);
    let computing = || Some(of("images_per_sec")? / of("accelerator_utilisation")?);
    fed().or_else(computing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;

    #[test]
    fn a_model_takes_what_it_computes_without_waiting() {
        let mut table = Table::new("loop");
        for (mode, rate, computing) in
            [("inference", 900.0, 0.9), ("train", 100.0, 0.5), ("train", 150.0, 0.5)]
        {
            table.push(row![
                ("format", "tiff"),
                ("model", "small-cnn"),
                ("mode", mode),
                ("batch_size", 8),
                ("images_per_sec", rate),
                ("accelerator_utilisation", computing)
            ]);
        }
        let demand = of(&table).unwrap();
        assert_eq!((demand.images_per_s, demand.mode.as_str()), (250.0, "train"));
        assert_eq!(demand.model, "small-cnn");
        // A step from full buffers tells it better than the difference.
        table.push(row![
            ("mode", "train"),
            ("model", "small-cnn"),
            ("batch_size", 8),
            ("synthetic_step_s", 0.016)
        ]);
        assert_eq!(of(&table).unwrap().images_per_s, 300.0);
    }

    #[test]
    fn nothing_is_told_of_frameworks_in_python_or_of_what_failed() {
        let mut table = Table::new("loop");
        table.push(row![
            ("framework", "pytorch"),
            ("model", "small-cnn"),
            ("mode", "train"),
            ("images_per_sec", 10.0),
            ("accelerator_utilisation", 0.5)
        ]);
        table.push(row![
            ("framework", "rust"),
            ("model", "small-cnn"),
            ("mode", "train"),
            ("status", "failed")
        ]);
        assert!(of(&table).is_none() && of(&Table::new("loop")).is_none());
    }
}
