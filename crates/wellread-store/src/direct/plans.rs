//! Plans of reads of columns, worked out once: a loader asks for the same columns again and again.

use crate::table::Columns;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// The plans by the columns asked for; many threads may ask at once.
#[derive(Debug)]
pub struct Plans<T> {
    known: RwLock<HashMap<Box<Columns>, T>>,
    /// How many are kept.
    most: usize,
}

impl<T: Clone> Plans<T> {
    /// None yet, and no more than `most` ever.
    pub fn new(most: usize) -> Self {
        Self { known: RwLock::default(), most }
    }

    /// The plan of some columns, by `make` where it is not known. Two threads may both make it; the first one's is kept.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn get<E>(&self, columns: &Columns, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if let Some(plan) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(columns) {
            return Ok(plan.clone());
        }
        let plan = make()?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < self.most || known.contains_key(columns) {
            return Ok(known.entry(columns.into()).or_insert(plan).clone());
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_made_once_as_far_as_they_are_kept() {
        let plans = Plans::new(2);
        let path = |name: &str| [vec![name.to_owned()]];
        let mut made = 0;
        let mut get = |name: &str| {
            plans.get(&path(name), || {
                made += 1;
                if name.is_empty() { Err("no column") } else { Ok(made) }
            })
        };
        assert_eq!([get("a"), get("b"), get("a"), get("c"), get("c"), get("b")], [1, 2, 1, 3, 4, 2].map(Ok));
        assert_eq!(get(""), Err("no column"));
    }
}
