//! A bucket as this process talks to it: the store, and who it says to be.

use crate::address::Address;
use object_store::ObjectStore;
use object_store::multipart::MultipartStore;
use std::fmt;
use std::io;
use std::sync::Arc;

/// A bucket, a container, or a server.
pub(crate) struct Bucket {
    /// Requests for objects, each made once: who asks repeats them.
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Uploads in parts, where there are any.
    pub(crate) parts: Option<Arc<dyn MultipartStore>>,
    /// Where the credentials are from, in words: `the environment`, `profile lab of ~/.aws/credentials`. Never what they are.
    pub(crate) who: String,
    /// Which server it is of, where its name alone does not tell; empty for the cloud's own.
    pub(crate) at: String,
}

impl Bucket {
    /// A bucket of a cloud, which takes uploads in parts.
    ///
    /// # Errors
    /// What its builder refused.
    pub(crate) fn of<S: ObjectStore + MultipartStore>(
        built: object_store::Result<S>,
        address: &Address,
        who: String,
    ) -> io::Result<Self> {
        let store = Arc::new(built.map_err(|e| cannot(&address.bucket_name(), &e))?);
        Ok(Self { store: store.clone(), parts: Some(store), who, at: String::new() })
    }

    /// The same bucket, of a server other than the cloud's own, or of an account.
    pub(crate) fn at(self, at: String) -> Self {
        Self { at, ..self }
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the store, whose builder may show more than it should.
        f.debug_struct("Bucket").field("who", &self.who).finish_non_exhaustive()
    }
}

/// An error of making a store. What it says may not be what is secret: builders name the key of a setting, not its value.
pub(crate) fn cannot(bucket: &str, error: &object_store::Error) -> io::Error {
    let cause = crate::failure::innermost(error);
    io::Error::new(io::ErrorKind::InvalidInput, format!("cannot connect to {bucket}: {cause}"))
}
