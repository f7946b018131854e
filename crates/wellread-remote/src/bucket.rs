//! A bucket as this process talks to it: the store, and who it says to be.

use object_store::ObjectStore;
use object_store::multipart::MultipartStore;
use std::fmt;
use std::sync::Arc;

/// A bucket, a container, or a server.
pub(crate) struct Bucket {
    /// Requests for objects, each made once: who asks repeats them.
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Uploads in parts, where there are any.
    pub(crate) parts: Option<Arc<dyn MultipartStore>>,
    /// Where the credentials are from, in words: `the environment`, `profile lab of ~/.aws/credentials`. Never what they are.
    pub(crate) who: String,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the store, whose builder may show more than it should.
        f.debug_struct("Bucket").field("who", &self.who).finish_non_exhaustive()
    }
}
