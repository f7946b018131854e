//! The choices of a program for its link to places behind a network.
//!
//! ```
//! // Before the first address is opened.
//! wellread::Link { in_flight: Some(32), ..wellread::Link::default() }.set();
//! ```

use crate::engines;

/// Choices for all sets in buckets and on web servers; the environment gives those that are left out
/// (`docs/howto/buckets.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Requests at once (128).
    pub in_flight: Option<usize>,
    /// Bytes that a loader fetches ahead and has not read yet, at most (256 MiB); less where its memory is bounded.
    pub link_bytes: Option<u64>,
    /// Whether requests are not signed, whatever credentials there are.
    pub anonymous: bool,
}

impl Link {
    /// Chooses, once in a process and before any address is opened; whether it counts. A build without such places has no link.
    pub fn set(self) -> bool {
        engines::set_link(self.in_flight, self.link_bytes, self.anonymous)
    }
}
