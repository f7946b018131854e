//! Runs: values that follow one another, joined so that they are read together.

use std::ops::Range;

/// Values that follow one another in a part of a column. A batch has runs of several parts. Random rows of a large
/// table are in all of them, and the cost of a batch would be paid for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run<P> {
    /// Which part: a row group, a piece that is held.
    pub part: P,
    /// As the part counts them.
    pub values: Range<usize>,
}

/// Appends values, as more of the last run where they go on where it ends.
#[inline]
pub fn append<P: PartialEq>(runs: &mut Vec<Run<P>>, part: P, values: Range<usize>) {
    match runs.last_mut() {
        _ if values.is_empty() => {}
        Some(last) if last.part == part && last.values.end == values.start => last.values.end = values.end,
        _ => runs.push(Run { part, values }),
    }
}

/// Ranges in ascending order, joined where one begins at the end of the one before.
pub fn joined(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut runs = vec![];
    ranges.for_each(|values| append(&mut runs, (), values));
    runs.into_iter().map(|run| run.values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_one_run() {
        let ranges = [0..2, 2..2, 2..5, 7..9, 9..10, 3..4];
        assert_eq!(joined(ranges.into_iter()), [0..5, 7..10, 3..4]);
        let mut runs = vec![];
        for (part, values) in [(0, 4..5), (0, 5..6), (1, 6..7), (1, 7..9), (0, 9..10)] {
            append(&mut runs, part, values);
        }
        let run = |part, values| Run { part, values };
        assert_eq!(runs, [run(0, 4..6), run(1, 6..9), run(0, 9..10)]);
    }
}
