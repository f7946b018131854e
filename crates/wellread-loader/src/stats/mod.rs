//! Statistics of a set, channel by channel, in one parallel pass: what `wellread stats` prints and loaders normalise by.
//!
//! ```text
//!   rows, in groups ──threads──▶ counts of values (all of a thread's rows)  ──added──▶ percentiles, histogram
//!                            └──▶ sums of each group (32-bit and wider types) ──in order──▶ mean, deviation
//! ```
//!
//! Parts of a set may be counted by themselves, on several machines, and added ([`PartialStats`]): the groups are the same then.
//!
//! For 8- and 16-bit types every value is counted, so all is exact. Values of wider types are counted in bins whose
//! width is 2^-9 of the value: percentiles are off by at most 0.1 % of the value. Mean, deviation, minimum and maximum
//! are those of all values in `f64`. They include values beyond the range of `f32` or whose squares are beyond that of
//! `f64`. The result is the same whatever the number of threads.

mod bins;
mod channel_order;
mod collect;
mod document;
mod groups;
mod moments;
mod partial;
mod steps;

pub use channel_order::{ChannelOrder, RowNames};
pub use collect::group_of;
pub use document::{ChannelStats, Histogram, Percentile, Stats};
pub use groups::{Group, GroupRows, GroupStats, grouped};
pub use partial::PartialStats;

use crate::percentiles::percent;

/// Percentiles that are computed unless others are asked for.
pub const PERCENTILES: [f64; 9] = [0.1, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9];

/// A sentence on percentiles that all lie within the lowest percent, as shares from 0 to 1 would.
#[must_use]
pub fn seem_shares(percents: &[f64]) -> Option<String> {
    let are = percents.iter().all(|p| *p <= 1.0) && percents.iter().any(|p| *p > 0.0 && *p < 1.0);
    are.then(|| {
        let listed = |told: fn(f64) -> f64| {
            percents.iter().map(|p| told(*p).to_string()).collect::<Vec<_>>().join(", ")
        };
        format!(
            "percentiles are from 0 to 100, and {} lie within the lowest percent: for shares, give {}",
            listed(std::convert::identity),
            listed(percent)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_that_are_shares_are_told() {
        let said = seem_shares(&[0.01, 0.5, 0.99]).unwrap();
        assert!(
            said.ends_with("and 0.01, 0.5, 0.99 lie within the lowest percent: for shares, give 1, 50, 99"),
            "{said}"
        );
        for meant in [&PERCENTILES[..], &[1.0], &[0.0, 100.0], &[0.01, 99.9], &[0.0, 1.0], &[]] {
            assert_eq!(seem_shares(meant), None, "{meant:?}");
        }
    }
}
