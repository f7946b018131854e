//! How good predictions are, and the table of the loss curve.

use anyhow::{Context as _, Result};
use std::fmt::Write as _;
use std::path::Path;

/// Names and values; the first decides which checkpoint is best.
pub type Scores = Vec<(&'static str, f64)>;

/// Pixels that two masks have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// Pixels that are in both.
    pub both: u64,
    /// Pixels of the first.
    pub ours: u64,
    /// Pixels of the second.
    pub theirs: u64,
}

impl Overlap {
    /// Counts the pixels of two masks.
    pub fn of(ours: impl Iterator<Item = bool>, theirs: impl Iterator<Item = bool>) -> Self {
        let mut found = Self::default();
        for (a, b) in ours.zip(theirs) {
            found.both += u64::from(a && b);
            found.ours += u64::from(a);
            found.theirs += u64::from(b);
        }
        found
    }
}

/// How two images agree, pixel by pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// Pearson's correlation; 0 where one of them is of one value.
    pub pearson: f64,
    /// Mean squared difference.
    pub mse: f64,
}

impl Correlation {
    /// Compares two images of equally many pixels.
    pub fn of(a: &[f32], b: &[f32]) -> Self {
        let n = a.len().max(1) as f64;
        let mean = |v: &[f32]| v.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let (mean_a, mean_b) = (mean(a), mean(b));
        let [mut aa, mut bb, mut ab, mut difference] = [0.0; 4];
        for (&a, &b) in a.iter().zip(b) {
            let (a, b) = (f64::from(a), f64::from(b));
            aa += (a - mean_a).powi(2);
            bb += (b - mean_b).powi(2);
            ab += (a - mean_a) * (b - mean_b);
            difference += (a - b).powi(2);
        }
        let pearson = if aa * bb > 0.0 { ab / (aa * bb).sqrt() } else { 0.0 };
        Self { pearson, mse: difference / n }
    }
}

/// The mean of each score over several images.
pub fn mean(scores: &[Scores]) -> Scores {
    let Some(first) = scores.first() else { return vec![] };
    let of = |i: usize| scores.iter().map(|s| s[i].1).sum::<f64>() / scores.len() as f64;
    first.iter().enumerate().map(|(i, (name, _))| (*name, of(i))).collect()
}

/// One epoch of the loss curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// Counted from 1.
    pub epoch: u64,
    /// Steps done until its end.
    pub step: u64,
    /// Mean loss of its batches.
    pub train_loss: f64,
    /// Loss of the validation images, if there are any.
    pub val_loss: Option<f64>,
    /// Their scores.
    pub scores: Scores,
}

/// The loss curve as a table: columns `epoch,step,train_loss,val_loss,val_dice` and any scores of the experiment.
/// `earlier` are rows of an earlier run that this one goes on from.
///
/// # Errors
/// A file that cannot be written.
pub fn write_table(path: &Path, earlier: &[String], epochs: &[Epoch]) -> Result<()> {
    let mut names = vec!["dice"];
    for (name, _) in epochs.iter().flat_map(|e| &e.scores) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let mut text = "epoch,step,train_loss,val_loss".to_owned();
    for name in &names {
        write!(text, ",val_{name}")?;
    }
    text.push('\n');
    for line in earlier {
        text.push_str(line);
        text.push('\n');
    }
    for e in epochs {
        let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
        write!(text, "{},{},{},{}", e.epoch, e.step, e.train_loss, number(e.val_loss))?;
        for name in &names {
            write!(text, ",{}", number(e.scores.iter().find(|(n, _)| n == name).map(|s| s.1)))?;
        }
        text.push('\n');
    }
    wellread_store::staged::write(path, text).context("the loss curve")
}

/// Rows of an earlier run's table up to `epoch`, if there is one.
pub fn earlier_rows(path: &Path, epoch: u64) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let early =
        |line: &&str| line.split(',').next().and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n <= epoch);
    text.lines().skip(1).filter(early).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_the_definitions() {
        let ours = [true, true, false, false, true];
        let theirs = [true, false, false, true, true];
        let scores = Overlap::of(ours.into_iter(), theirs.into_iter()).scores();
        assert_eq!(scores, [("dice", 2.0 * 2.0 / 6.0), ("iou", 2.0 / 4.0)]);
        let empty = Overlap::default().scores();
        assert_eq!(empty, [("dice", 1.0), ("iou", 1.0)]);
        let found = Correlation::of(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]);
        assert!((found.pearson - 1.0).abs() < 1e-12 && (found.mse - 14.0 / 3.0).abs() < 1e-12);
        assert_eq!(Correlation::of(&[1.0, 1.0], &[0.0, 3.0]).pearson, 0.0);
        assert_eq!(mean(&[vec![("dice", 0.5)], vec![("dice", 1.0)]]), [("dice", 0.75)]);
    }

    #[test]
    fn the_table_goes_on_where_an_earlier_one_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.csv");
        let epoch = |epoch| Epoch {
            epoch,
            step: epoch * 4,
            train_loss: 0.5,
            val_loss: (epoch > 1).then_some(0.25),
            scores: if epoch > 1 { vec![("dice", 0.75), ("iou", 0.5)] } else { vec![] },
        };
        write_table(&path, &[], &[epoch(1), epoch(2), epoch(3)]).unwrap();
        let earlier = earlier_rows(&path, 2);
        write_table(&path, &earlier, &[epoch(3)]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "epoch,step,train_loss,val_loss,val_dice,val_iou");
        assert_eq!(lines[1..], ["1,4,0.5,,,", "2,8,0.5,0.25,0.75,0.5", "3,12,0.5,0.25,0.75,0.5"]);
    }
}
