//! Counts things that were left out, or found nothing on the other side, and names the first few.

use crate::words::counted;
use serde::Serialize;

/// Most things that are named.
const MAX_NAMED: usize = 3;

/// How many of a kind there are, and the first few.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CountedNames {
    /// How many.
    pub count: usize,
    /// The first ones, in words.
    pub first: Vec<String>,
}

impl CountedNames {
    /// One more.
    pub(crate) fn push(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < MAX_NAMED {
            self.first.push(name());
        }
    }

    /// How many things there are of which this holds, and the first ones; `None` where there is none.
    pub(crate) fn sentence(&self, thing: &str, what: &str) -> Option<String> {
        (self.count > 0).then(|| format!("{} {what}: {}", counted(self.count, thing), self.named()))
    }

    /// The first ones as a list: `a, b, c …`.
    pub fn named(&self) -> String {
        format!("{}{}", self.first.join(", "), if self.count > self.first.len() { " …" } else { "" })
    }
}
