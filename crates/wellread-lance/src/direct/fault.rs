//! Why rows could not be read here: within a batch ([`Fault`]), and for whoever asked for them ([`Stop`]).

use wellread_store::Error;

/// Why rows could not be read here as they were asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// The bytes are not as they should be, in a few words.
    Irregular(&'static str),
    /// A value may not fit the width that it was asked for in.
    TooNarrow,
    /// The bytes may well be right, but are of a kind that is not read here.
    Unknown,
}

/// Why reading ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The bytes are not as they should be, from this number of rows on.
    Irregular(usize, &'static str),
    /// From this number of rows on, they are of a kind that is not read here.
    Unknown(usize),
    /// Whoever takes the batches said so.
    Refused(Error),
}
