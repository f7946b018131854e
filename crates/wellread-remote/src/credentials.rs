//! Credentials as a store asks for them. A failure of their source is told from one of the object that they are for.

use crate::failure::Fault;
use async_trait::async_trait;
use object_store::CredentialProvider;
use std::fmt;
use std::sync::Arc;

/// A source of credentials, as stores have it.
type Source<C> = Arc<dyn CredentialProvider<Credential = C>>;

/// A source whose failures say that they are its own.
struct ExplainedSource<C>(Source<C>);

impl<C> fmt::Debug for ExplainedSource<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the source, which may hold secrets.
        f.write_str("ExplainedSource")
    }
}

#[async_trait]
impl<C: Send + Sync + 'static> CredentialProvider for ExplainedSource<C> {
    type Credential = C;

    async fn get_credential(&self) -> object_store::Result<Arc<C>> {
        let had = self.0.get_credential().await;
        had.map_err(|e| object_store::Error::Generic {
            store: "credentials",
            source: Box::new(Fault::NoCredentials(Box::new(Fault::of(&e)))),
        })
    }
}

/// The source, with failures that say so: a 404 of a metadata server is none of the object.
pub(crate) fn explained<C: Send + Sync + 'static>(source: &Source<C>) -> Source<C> {
    Arc::new(ExplainedSource(Arc::clone(source)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::client::{HttpError, HttpErrorKind};
    use std::io;

    /// Fails with a status.
    #[derive(Debug)]
    struct Failing(u16);

    #[async_trait]
    impl CredentialProvider for Failing {
        type Credential = ();

        async fn get_credential(&self) -> object_store::Result<Arc<()>> {
            let fault = Fault::status(self.0, String::new(), String::new());
            let source = Box::new(HttpError::new(HttpErrorKind::Unknown, fault));
            Err(object_store::Error::Generic { store: "S3", source })
        }
    }

    #[test]
    fn a_failure_of_the_source_is_none_of_the_object() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (status, passes) in [(403, false), (404, false), (503, true)] {
            let source: Source<()> = Arc::new(Failing(status));
            let error = runtime.block_on(explained(&source).get_credential()).unwrap_err();
            let fault = Fault::of(&error);
            assert_eq!((fault.passes(), fault.kind()), (passes, io::ErrorKind::Other), "{status}");
            let text = fault.to_string();
            assert_eq!(text, format!("no credentials could be had: the server answered {status}"));
            assert!(fault.advice().unwrap().contains("source of the credentials"), "{status}");
        }
    }
}
