//! The least rate of a body. A server that sends a byte now and then never stalls, and would hold a request for ever.

use std::time::Duration;

/// Bytes a second that a body brings at least. 128 requests at once have them over a link of 1 Mbit/s.
const MIN_BYTES_PER_SECOND: u64 = 1 << 10;

/// How fast a body comes, looked at once in each time in which a silent one is given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    window: Duration,
    /// The beginning of the window, and the bytes that were there then.
    start: (Duration, u64),
}

impl Pace {
    /// A body's, which begins now.
    pub(crate) fn new(window: Duration) -> Self {
        Self { window, start: (Duration::ZERO, 0) }
    }

    /// Whether `got` bytes at a time since the beginning are enough.
    pub(crate) fn is_kept(&mut self, at: Duration, got: u64) -> bool {
        let passed = at.saturating_sub(self.start.0);
        if passed < self.window {
            return true;
        }
        let came = got.saturating_sub(self.start.1);
        self.start = (at, got);
        came as f64 >= MIN_BYTES_PER_SECOND as f64 * passed.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second at which a body is given up that brings so many bytes each second.
    fn given_up(rates: impl Fn(u64) -> u64) -> Option<u64> {
        let (mut pace, mut got) = (Pace::new(Duration::from_secs(30)), 0);
        (1..=600).find(|&second| {
            got += rates(second);
            !pace.is_kept(Duration::from_secs(second), got)
        })
    }

    #[test]
    fn a_body_that_drips_is_given_up_and_a_slow_one_is_not() {
        assert_eq!(given_up(|_| 1), Some(30));
        assert_eq!(given_up(|_| MIN_BYTES_PER_SECOND - 1), Some(30));
        assert_eq!(given_up(|_| MIN_BYTES_PER_SECOND), None);
        // It begins well, and drips from the second minute on.
        assert_eq!(given_up(|second| if second <= 60 { 100 * MIN_BYTES_PER_SECOND } else { 1 }), Some(90));
        // It pauses for less than the window.
        assert_eq!(given_up(|second| if second % 30 == 29 { 30 * MIN_BYTES_PER_SECOND } else { 0 }), None);
    }
}
