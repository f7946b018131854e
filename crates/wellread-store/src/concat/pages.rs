//! Decoded pages that the parts of a set keep.

use super::store::Concat;
use crate::PageCache;

impl PageCache for Concat {
    fn max_bytes(&self) -> usize {
        self.parts().iter().map(|part| part.store.hints().page_cache_bytes()).fold(0, usize::saturating_add)
    }

    /// Not more, however few that are for each part: it is said where memory is bounded.
    fn keep_at_most(&self, bytes: usize) {
        self.keep_at_most_each(bytes / self.keeping.max(1));
    }

    fn forget_all(&self) {
        for part in self.parts() {
            part.store.hints().forget_pages();
        }
    }
}
