//! Uploads in parts that this process has begun and neither completed nor thrown away. A store keeps their parts, and charges for them,
//! until somebody does.
//!
//! An [`Upload`](crate::writer::Upload) throws its parts away when it is dropped. A process that ends on a signal drops nothing, so it
//! calls [`shutdown::begin`](wellread_store::place::shutdown::begin) and [`abandon`]. One that is killed leaves them to the bucket's rule for
//! incomplete uploads. So does one whose request to begin an upload got no answer: nobody knows the upload's name, and it has no parts.

use crate::link::Link;
use futures_util::future::join_all;
use object_store::multipart::MultipartStore;
use object_store::path::Path as Key;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread_store::place::shutdown::InProgress;

/// The values needed to remove an upload.
#[derive(Clone)]
pub(crate) struct UnfinishedUpload {
    pub(crate) store: Arc<dyn MultipartStore>,
    pub(crate) key: Key,
    pub(crate) id: String,
}

impl fmt::Debug for UnfinishedUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnfinishedUpload").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Objects that are being completed or moved.
pub(crate) static COMPLETING: InProgress = InProgress::new();

static BEGUN: Mutex<Vec<UnfinishedUpload>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<UnfinishedUpload>> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes an upload.
pub(crate) fn note(begun: UnfinishedUpload) {
    all().push(begun);
}

/// Forgets an upload that is complete or thrown away.
pub(crate) fn forget(id: &str) {
    all().retain(|begun| begun.id != id);
}

/// Throws all uploads away.
pub(crate) fn abandon(link: &'static Link) {
    let begun = std::mem::take(&mut *all());
    let aborts = begun.into_iter().map(|one| async move {
        // An upload that cannot be removed now is left to the bucket's rule.
        let _ = one.store.abort_multipart(&one.key, &one.id).await;
    });
    let aborts = join_all(aborts);
    let _ = link.wait(async move {
        let _ = tokio::time::timeout(link.limits.abort, aborts).await;
        Ok(())
    });
}

/// Whether there is any.
pub(crate) fn is_any() -> bool {
    !all().is_empty()
}
