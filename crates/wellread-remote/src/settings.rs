//! The choices of a program for its link before it opens the first address.

use std::sync::OnceLock;

/// Choices for all places behind a network; the environment gives those that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Requests at once.
    pub in_flight: Option<usize>,
    /// Bytes that are fetched ahead and not read yet, of each reader, at most.
    pub link_bytes: Option<u64>,
    /// Whether requests are not signed, whatever credentials there are.
    pub anonymous: bool,
}

static CHOSEN: OnceLock<Settings> = OnceLock::new();

/// Chooses, once, before any address is opened; whether it counts.
pub fn set(settings: Settings) -> bool {
    CHOSEN.set(settings).is_ok()
}

/// The choices.
pub(crate) fn get() -> Settings {
    CHOSEN.get().copied().unwrap_or_default()
}
