//! What a place is asked for on behalf of Lance: in a thread that may wait, and with errors that go through Lance and are found again.

use object_store::Error as StoreError;
use object_store::path::Path as Key;
use std::error::Error;
use std::fmt;
use std::io;

/// An error of a place, as it goes through Lance.
#[derive(Debug)]
struct PlaceError(io::Error);

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for PlaceError {}

/// What a place said, where an error comes from one.
pub(crate) fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut source = Some(error);
    while let Some(cause) = source {
        if let Some(PlaceError(error)) = cause.downcast_ref() {
            return Some(error);
        }
        source = cause.source();
    }
    None
}

/// An error of a place about a key.
pub(crate) fn failed(key: &Key, error: io::Error) -> StoreError {
    let (kind, source) = (error.kind(), Box::new(PlaceError(error)));
    match kind {
        io::ErrorKind::NotFound => StoreError::NotFound { path: key.to_string(), source },
        io::ErrorKind::AlreadyExists => StoreError::AlreadyExists { path: key.to_string(), source },
        _ => StoreError::Generic { store: "place", source },
    }
}

/// Does what may wait for the network, in a thread that may.
pub(crate) async fn waiting<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(io::Error::other(e)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lance_core::Error as LanceError;

    #[test]
    fn what_a_place_says_is_found_in_errors_of_lance() {
        let said = || failed(&Key::from("a"), io::Error::other("the server is busy"));
        let error = LanceError::from(said());
        assert_eq!(cause(&error).unwrap().to_string(), "the server is busy");
        let error = LanceError::from(io::Error::other(said()));
        assert_eq!(cause(&error).unwrap().to_string(), "the server is busy");
        assert!(cause(&LanceError::from(io::Error::other("no"))).is_none());
    }
}
