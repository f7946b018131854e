//! Requests to a place on behalf of Lance: in a thread that may wait, and with errors that go through Lance and are
//! found again.

use object_store::Error as StoreError;
use object_store::path::Path as Key;
use std::io;
use wellread_store::direct::PlaceError;

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
        assert_eq!(PlaceError::find(&error).unwrap().to_string(), "the server is busy");
        let error = LanceError::from(io::Error::other(said()));
        assert_eq!(PlaceError::find(&error).unwrap().to_string(), "the server is busy");
        assert!(PlaceError::find(&LanceError::from(io::Error::other("no"))).is_none());
    }
}
