//! Values by the text that they were parsed from: files that say the same share one value.
//!
//! Images of a set mostly describe themselves alike. Their files are read all the same, since any may differ from the others.
//! Each distinct text is parsed once, and kept once.
//!
//! ```text
//!  text ──known?──yes──▶ the value
//!            └────no───▶ parsed by the caller ──fine?──yes──▶ kept, if there is room
//!                                                └─no──▶ the caller's error, which names the caller's file
//! ```

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

/// Distinct texts whose values are kept at most; others have values of their own.
const MAX_TEXTS: usize = 1024;
/// Bytes of the longest text that is kept.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Values that are shared, by text.
#[derive(Debug)]
pub(crate) struct TextCache<T>(RwLock<HashMap<Box<[u8]>, Arc<T>, Xxh3DefaultBuilder>>);

impl<T> Default for TextCache<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T> TextCache<T> {
    /// The value of `text`, if it is known.
    pub fn known(&self, text: &[u8]) -> Option<Arc<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(text).map(Arc::clone)
    }

    /// Keeps `value` for `text`, if there is room; the one that all share, where another thread was first.
    pub fn keep(&self, text: &[u8], value: Arc<T>) -> Arc<T> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_TEXTS || text.len() > MAX_TEXT_BYTES {
            return value;
        }
        Arc::clone(known.entry(text.into()).or_insert(value))
    }

    /// The value of `text`, made by `make` where it is not known.
    ///
    /// # Errors
    /// The error of `make`: failures are not kept.
    #[cfg(any(feature = "ome-zarr", test))]
    pub fn get<E>(&self, text: &[u8], make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        match self.known(text) {
            Some(value) => Ok(value),
            None => Ok(self.keep(text, Arc::new(make()?))),
        }
    }

    /// How many texts are known.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.read().unwrap().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_parsed_once_and_failures_are_not_kept() {
        let known = TextCache::default();
        let parse = |text: &str| known.get(text.as_bytes(), || text.parse::<u32>());
        let seven = parse("7").unwrap();
        assert_eq!((*seven, known.len()), (7, 1));
        let again = known.get(b"7", || -> Result<u32, ()> { panic!("it is known") }).unwrap();
        assert!(Arc::ptr_eq(&seven, &again));
        assert!(parse("x").is_err() && parse("x").is_err());
        assert_eq!((known.len(), known.known(b"8")), (1, None));
        assert_eq!(*known.keep(b"7", Arc::new(8)), 7);
    }

    #[test]
    fn it_is_bounded() {
        let known = TextCache::default();
        for i in 0..2 * MAX_TEXTS {
            assert_eq!(*known.get::<()>(&i.to_le_bytes(), || Ok(i)).unwrap(), i);
        }
        assert_eq!(known.len(), MAX_TEXTS);
        let known = TextCache::default();
        known.get::<()>(&vec![1; MAX_TEXT_BYTES + 1], || Ok(1)).unwrap();
        assert_eq!(known.len(), 0);
    }
}
