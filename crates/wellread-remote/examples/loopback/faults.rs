//! Faults, drawn by a seed and the number of the request.

use crate::http::{Answer, Request};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The fault of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// This status in place of the answer.
    Status(u16),
    /// The connection ends in the middle of the body.
    Cut,
    /// Half of the body, and headers that agree with it.
    Short,
    /// Half of the body, and then nothing for so many seconds.
    Stall(f64),
    /// A `Content-Range` that is off by one.
    Range,
}

impl Fault {
    /// An answer of a status, as S3 words it.
    pub(crate) fn answer(status: u16) -> Answer {
        let code = if status == 503 { "SlowDown" } else { "InternalError" };
        let body = format!("<Error><Code>{code}</Code><Message>injected</Message></Error>");
        Answer::text(status, "application/xml", body)
    }
}

const KINDS: [&str; 6] = ["500", "503", "cut", "short", "stall", "range"];

/// The faults of a link.
pub(crate) struct Faults {
    share: AtomicU64,
    seed: AtomicU64,
    stall_s: AtomicU64,
    kinds: Mutex<Vec<&'static str>>,
    asked: AtomicU64,
    made: AtomicU64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            share: AtomicU64::new(0),
            seed: AtomicU64::new(0),
            stall_s: AtomicU64::new(30f64.to_bits()),
            kinds: Mutex::new(KINDS.to_vec()),
            asked: AtomicU64::new(0),
            made: AtomicU64::new(0),
        }
    }
}

impl Faults {
    pub(crate) fn set_share(&self, share: f64) {
        self.share.store(share.clamp(0.0, 1.0).to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn set_seed(&self, seed: u64) {
        self.seed.store(seed, Ordering::Relaxed);
    }

    pub(crate) fn set_stall(&self, seconds: f64) {
        self.stall_s.store(seconds.clamp(0.0, 3600.0).to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn set_kinds(&self, names: &str) -> Result<(), String> {
        let known = |name: &str| KINDS.into_iter().find(|kind| *kind == name);
        let kinds =
            names.split(',').map(|name| known(name).ok_or_else(|| format!("there is no fault {name}")));
        let kinds: Vec<_> = kinds.collect::<Result<_, _>>()?;
        *self.kinds.lock().unwrap_or_else(PoisonError::into_inner) = kinds;
        Ok(())
    }

    /// How many were made.
    pub(crate) fn count(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// The fault of the answer to a request for bytes; `None` for a request that changes something.
    pub(crate) fn of(&self, request: &Request) -> Option<Fault> {
        let share = f64::from_bits(self.share.load(Ordering::Relaxed));
        if share <= 0.0 || !matches!(request.method.as_str(), "GET" | "HEAD") {
            return None;
        }
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let drawn = mixed(self.seed.load(Ordering::Relaxed) ^ mixed(number));
        if (drawn >> 11) as f64 / (1u64 << 53) as f64 >= share {
            return None;
        }
        let kind = {
            let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
            *kinds.get(mixed(drawn) as usize % kinds.len().max(1))?
        };
        let has_range = request.method == "GET" && request.header("range").is_some();
        let fault = match kind {
            "500" => Fault::Status(500),
            "cut" if has_range => Fault::Cut,
            "short" if has_range => Fault::Short,
            "stall" if has_range => Fault::Stall(f64::from_bits(self.stall_s.load(Ordering::Relaxed))),
            "range" if has_range => Fault::Range,
            _ => Fault::Status(503),
        };
        self.made.fetch_add(1, Ordering::Relaxed);
        Some(fault)
    }
}

/// Mixes the bits of a number (SplitMix64).
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
