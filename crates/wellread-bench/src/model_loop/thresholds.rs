//! Shares of waiting and of computing that upstream and MLPerf Storage call small or large, and the words for them.

/// Share of a step below which loading is no bottleneck, as upstream has it.
pub(crate) const SMALL_SHARE: f64 = 0.3;

/// Share of a step above which it is one.
pub(super) const LARGE_SHARE: f64 = 0.5;

/// Shares of computing that MLPerf Storage asks for, and the words for a run that reaches them.
pub const UTILISATION_MARKS: [(f64, &str); 2] = [(0.9, "reaches 90 %"), (0.7, "reaches 70 %")];

/// Which of MLPerf Storage's marks a share of computing reaches.
pub fn utilisation_mark(utilisation: f64) -> &'static str {
    UTILISATION_MARKS.iter().find(|(mark, _)| utilisation >= *mark).map_or("below 70 %", |(_, said)| said)
}

/// Upstream's advice for a share of waiting.
pub fn advice(data_wait_fraction: f64) -> &'static str {
    if data_wait_fraction < 0.30 {
        "loading is no bottleneck"
    } else if data_wait_fraction <= 0.50 {
        "loading is significant but acceptable"
    } else {
        "loading is the bottleneck: add workers, a larger batch, or a faster format"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_has_upstreams_thresholds() {
        assert!(advice(0.29).contains("no bottleneck"));
        assert!(advice(0.30).contains("acceptable"));
        assert!(advice(0.50).contains("acceptable"));
        assert!(advice(0.51).contains("is the bottleneck"));
    }

    #[test]
    fn marks_are_those_of_mlperf_storage() {
        assert_eq!(utilisation_mark(0.95), "reaches 90 %");
        assert_eq!((utilisation_mark(0.9), utilisation_mark(0.8999)), ("reaches 90 %", "reaches 70 %"));
        assert_eq!((utilisation_mark(0.7), utilisation_mark(0.69)), ("reaches 70 %", "below 70 %"));
    }
}
