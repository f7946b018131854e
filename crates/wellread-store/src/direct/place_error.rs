//! The error of a place, kept through the errors of a library that reads from it.

use std::error::Error;
use std::fmt;
use std::io;

/// An error of a place, as it goes through a library.
#[derive(Debug)]
pub struct PlaceError(pub io::Error);

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for PlaceError {}

impl PlaceError {
    /// The same as an error of input and output, for libraries that take no other.
    pub fn io(error: io::Error) -> io::Error {
        io::Error::new(error.kind(), Self(error))
    }

    /// The error of a place, where an error of a library comes from one.
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
        let mut source = Some(error);
        while let Some(cause) = source {
            if let Some(Self(error)) = cause.downcast_ref() {
                return Some(error);
            }
            // It would hand on the source of what it holds, not that itself.
            let held = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            source = held.map(|held| held as &(dyn Error + 'static)).or_else(|| cause.source());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_place_says_is_found_in_what_holds_it() {
        let said = || io::Error::new(io::ErrorKind::TimedOut, "the server is busy");
        let found =
            |error: &(dyn Error + 'static)| PlaceError::find(error).map(|e| (e.kind(), e.to_string()));
        let busy = Some((io::ErrorKind::TimedOut, "the server is busy".to_owned()));
        assert_eq!(found(&PlaceError(said())), busy);
        assert_eq!(found(&PlaceError::io(said())), busy);
        assert_eq!(found(&io::Error::other(PlaceError::io(said()))), busy);
        assert_eq!(found(&said()), None);
    }
}
