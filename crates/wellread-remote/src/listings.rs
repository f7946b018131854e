//! Which names are in folders that were listed not long ago: what is not among them is not asked for.
//!
//! ```text
//!  list ─▶ keep: folder, names ─▶ metadata, open ─▶ lacks? ─ yes ─▶ not found, without a request
//!  changing, look_anew ─▶ dropped, of the whole bucket
//! ```
//!
//! A format looks for some names that are seldom there in every folder. What another process writes is hidden for a minute at most, as a
//! replaced version is, and not from who opens or creates a set. What this process writes is never hidden: a listing that was asked for
//! before a change or while it was made is not kept.

use crate::heads::{FRESH, KNOWN};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// When a listing was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    at: Instant,
    changes: u64,
}

#[derive(Debug, Default)]
struct OfBucket {
    /// How often it was changed by this process, or is to be looked at anew.
    changes: u64,
    /// Names by folder.
    folders: HashMap<String, (HashSet<String>, Instant)>,
}

/// Names in folders, by bucket.
#[derive(Debug, Default)]
pub(crate) struct Listings(Mutex<HashMap<String, OfBucket>>);

/// A bucket is being changed.
#[derive(Debug)]
pub(crate) struct Changing<'l> {
    listings: &'l Listings,
    bucket: String,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.listings.look_anew(&self.bucket);
    }
}

impl Listings {
    fn buckets(&self) -> MutexGuard<'_, HashMap<String, OfBucket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called before a listing is asked for that is to be kept.
    pub(crate) fn ask(&self, bucket: &str) -> Asked {
        Asked { changes: self.buckets().get(bucket).map_or(0, |of| of.changes), at: Instant::now() }
    }

    /// Keeps the names in a folder, unless the bucket was changed since they were asked for.
    pub(crate) fn keep(&self, bucket: &str, folder: &str, names: HashSet<String>, asked: Asked) {
        let mut buckets = self.buckets();
        let kept = |of: &OfBucket| of.folders.values().map(|(names, _)| names.len() + 1).sum::<usize>();
        if buckets.values().map(kept).sum::<usize>() + names.len() >= KNOWN {
            for of in buckets.values_mut() {
                of.folders.clear();
            }
        }
        let of = buckets.entry(bucket.to_owned()).or_default();
        if of.changes == asked.changes && names.len() < KNOWN {
            of.folders.insert(folder.trim_end_matches('/').to_owned(), (names, asked.at));
        }
    }

    /// Whether a listing of the folder around an address says that nothing has its name.
    pub(crate) fn lacks(&self, bucket: &str, address: &str) -> bool {
        let Some((folder, name)) = address.rsplit_once('/').filter(|(_, name)| !name.is_empty()) else {
            return false;
        };
        let buckets = self.buckets();
        let listed = buckets.get(bucket).and_then(|of| of.folders.get(folder));
        listed.is_some_and(|(names, at)| at.elapsed() < FRESH && !names.contains(name))
    }

    /// Drops what is kept of a bucket, and what is on its way.
    pub(crate) fn look_anew(&self, bucket: &str) {
        let mut buckets = self.buckets();
        let of = buckets.entry(bucket.to_owned()).or_default();
        of.changes += 1;
        of.folders.clear();
    }

    /// Drops what is kept of a bucket now, and again when what is returned goes: meanwhile it is changed.
    pub(crate) fn changing(&self, bucket: String) -> Changing<'_> {
        self.look_anew(&bucket);
        Changing { listings: self, bucket }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> HashSet<String> {
        ["a".to_owned(), "b".to_owned()].into()
    }

    #[test]
    fn what_a_listing_does_not_name_is_lacking() {
        let listings = Listings::default();
        assert!(!listings.lacks("s3://b", "s3://b/k/c"));
        listings.keep("s3://b", "s3://b/k", names(), listings.ask("s3://b"));
        listings.keep("s3://b", "s3://b/", names(), listings.ask("s3://b"));
        let lacks = |address: &str| listings.lacks("s3://b", address);
        assert!(lacks("s3://b/k/c") && lacks("s3://b/c"));
        assert!(!lacks("s3://b/k/a") && !lacks("s3://b/b") && !lacks("s3://b/") && !lacks("s3://b/j/c"));
    }

    #[test]
    fn what_was_listed_before_a_change_or_in_it_is_not_kept() {
        let listings = Listings::default();
        let lacks = || listings.lacks("s3://b", "s3://b/k/c");
        let keep = |asked| listings.keep("s3://b", "s3://b/k", names(), asked);
        let before = listings.ask("s3://b");
        let changing = listings.changing("s3://b".into());
        keep(before);
        assert!(!lacks());
        let meanwhile = listings.ask("s3://b");
        keep(meanwhile);
        drop(changing);
        assert!(!lacks());
        keep(meanwhile);
        assert!(!lacks());
        drop(listings.changing("s3://other".into()));
        keep(listings.ask("s3://b"));
        assert!(lacks());
    }

    #[test]
    fn names_stay_within_their_number() {
        let listings = Listings::default();
        let asked = listings.ask("s3://b");
        listings.keep("s3://b", "s3://b/k", names(), asked);
        listings.keep("s3://b", "s3://b/large", (0..KNOWN).map(|i| i.to_string()).collect(), asked);
        assert!(!listings.lacks("s3://b", "s3://b/k/c") && !listings.lacks("s3://b", "s3://b/large/c"));
    }
}
