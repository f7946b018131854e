//! Why rows could not be read here: within a batch ([`Fault`]), and for whoever asked for them ([`Stop`]).

use wellread_store::Error;

/// Why rows could not be read here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// The bytes are not as they should be, in a few words.
    Irregular(&'static str),
    /// A value does not fit the width that its column's bounds promise.
    TooNarrow,
}

use Fault::Irregular;

/// Rows, or values of theirs, that the file has no place for.
pub(super) const OUTSIDE: Fault = Irregular("rows outside of the table");

impl Fault {
    /// Why reading ended after `done` rows.
    pub fn stop(self, done: usize) -> Stop {
        match self {
            Irregular(why) => Stop::Irregular(done, why),
            Self::TooNarrow => Stop::Irregular(done, "values larger than they should be"),
        }
    }
}

/// Why reading ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The bytes are not as they should be, from this number of rows on.
    Irregular(usize, &'static str),
    /// Whoever takes the batches said so.
    Refused(Error),
}
