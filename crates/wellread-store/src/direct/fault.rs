//! Why rows could not be read past an engine's library. It is said within a batch ([`Fault`]), and for the caller
//! ([`Stop`]), who then has another reader for them.

use crate::{Error, Result};
use arrow_array::RecordBatch;

/// Why rows could not be read as they were asked for.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// The bytes are not as they should be, in a few words.
    Irregular(&'static str),
    /// A value may not fit the width that it was asked for in, or that its column's bounds promise.
    TooNarrow,
    /// The bytes may well be right, but are of a kind that only the library reads.
    Unknown,
}

/// A column that is not of the type that it was planned for.
pub const OTHER_TYPE: Fault = Fault::Irregular("another type than was planned for");

impl Fault {
    /// Why reading ended after `done` rows.
    pub fn stop(self, done: usize) -> Stop {
        match self {
            Self::Irregular(why) => Stop::Irregular(done, why),
            Self::TooNarrow => Stop::Irregular(done, "values larger than they should be"),
            Self::Unknown => Stop::Unknown(done),
        }
    }
}

/// Why reading ended early.
#[derive(Debug)]
pub enum Stop {
    /// The bytes are not as they should be, from this number of rows on.
    Irregular(usize, &'static str),
    /// From this number of rows on, they are of a kind that only the library reads.
    Unknown(usize),
    /// The consumer of the rows refused them.
    Refused(Error),
}

impl Stop {
    /// The error of the consumer of the rows; `None` where the rest is left to others.
    pub fn refusal(self) -> Option<Error> {
        if let Self::Refused(error) = self { Some(error) } else { None }
    }
}

/// The consumer of batches.
pub type EachBatch<'a> = dyn FnMut(RecordBatch) -> Result<()> + 'a;

/// Ends a read of batches: `by_library` reads those from a number of rows on that `read` has left. If the library finds
/// fault with them too, it says what is wrong, and the error also has what was found here.
///
/// # Errors
/// The errors of `each` and of the library.
pub fn rest_by_library(
    read: Result<(), Stop>,
    each: &mut EachBatch<'_>,
    by_library: impl FnOnce(usize, &mut EachBatch<'_>) -> Result<()>,
) -> Result<()> {
    match read {
        Ok(()) => Ok(()),
        Err(Stop::Refused(error)) => Err(error),
        Err(Stop::Unknown(done)) => by_library(done, each),
        Err(Stop::Irregular(done, why)) => {
            let mut refused = false;
            let mut noting = |batch| each(batch).inspect_err(|_| refused = true);
            let result = by_library(done, &mut noting);
            result.map_err(|error| if refused { error } else { explained(&error, why) })
        }
    }
}

/// The result of a read of rows one by one that ended after `done` with an error, or with none where
/// [`ImageTable::read`](crate::table::ImageTable::read) reads the others.
///
/// # Errors
/// The error.
pub fn handed_on(done: usize, read: Result<(), Option<Error>>) -> Result<usize> {
    match read {
        Ok(()) | Err(None) => Ok(done),
        Err(Some(error)) => Err(error),
    }
}

/// The library's error with what was found here.
fn explained(error: &Error, why: &str) -> Error {
    let explained = Error::new(error.path(), format_args!("{} ({why})", error.cause()));
    error.hint_text().into_iter().fold(explained, Error::hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Schema;
    use std::sync::Arc;

    fn nothing() -> RecordBatch {
        RecordBatch::new_empty(Arc::new(Schema::empty()))
    }

    #[test]
    fn the_library_reads_the_rest_and_says_what_is_wrong() {
        let said = |read: std::result::Result<(), Stop>, own: Option<&str>, refusal: Option<&str>| {
            let mut from = None;
            let result = rest_by_library(
                read,
                &mut |_| refusal.map_or(Ok(()), |why| Err(Error::new("", why))),
                |done, each| {
                    from = Some(done);
                    each(nothing())?;
                    own.map_or(Ok(()), |why| Err(Error::new("a", why).hint("copy it")))
                },
            );
            (from, result.map_err(|error| error.to_string()))
        };
        assert_eq!(said(Ok(()), Some("no"), None), (None, Ok(())));
        assert_eq!(said(Err(Fault::Unknown.stop(3)), None, None), (Some(3), Ok(())));
        let odd = || Err(Fault::Irregular("odd").stop(4));
        assert_eq!(said(odd(), None, None), (Some(4), Ok(())));
        assert_eq!(said(odd(), Some("bad"), None), (Some(4), Err("a: bad (odd) (hint: copy it)".into())));
        assert_eq!(said(odd(), Some("bad"), Some("enough")), (Some(4), Err("enough".into())));
        let narrow = said(Err(Fault::TooNarrow.stop(0)), Some("bad"), None).1.unwrap_err();
        assert!(narrow.contains("values larger than they should be"), "{narrow}");
        assert_eq!(said(Err(Stop::Refused(Error::new("", "no"))), None, None), (None, Err("no".into())));
    }

    #[test]
    fn rows_handed_on_are_counted_up_to_those_that_are_left() {
        assert_eq!(handed_on(3, Ok(())).unwrap(), 3);
        assert_eq!(handed_on(2, Err(Fault::TooNarrow.stop(2).refusal())).unwrap(), 2);
        assert!(handed_on(2, Err(Stop::Refused(Error::new("", "no")).refusal())).is_err());
    }
}
