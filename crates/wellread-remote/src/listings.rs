//! The names in folders that were listed not long ago: others are not asked for, and the folders are not listed again.
//!
//! ```text
//!  list ─▶ keep: folder, names ─▶ list ─────────▶ the names, without a request
//!                               ├ metadata ─────▶ a folder, without a request
//!                               └ metadata, open ─▶ lacks? ─ yes ─▶ not found, without a request
//!  the head of an object, asked for ahead ─▶ none there ─▶ note_absent ─▶ open: not found, without a second request
//!  changing, look_anew ─▶ dropped, of the whole bucket
//! ```
//!
//! Opening a set looks at its folder several times: each format looks whether it knows it, and for some names that are
//! seldom there. Changes by another process are hidden for a minute at most, as a replaced version is. They are not
//! hidden from a process that opens or creates a set. Changes by this process are never hidden: a listing that was asked for before a
//! change or while it was made is not kept.

use crate::heads::{FRESH, MAX_KNOWN};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Addresses without an object that are kept of a bucket, at most.
const MAX_ABSENT: usize = 1 << 14;

/// When something was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    at: Instant,
    changes: u64,
}

/// The entries of a name in a folder: an object, a folder, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) is_object: bool,
    pub(crate) is_folder: bool,
}

/// Names in a folder, and their entries. In order, so that the first look is always at the same one.
pub(crate) type Names = BTreeMap<String, Named>;

#[derive(Debug)]
struct Listed {
    /// `None` of a folder with more names than are kept.
    names: Option<Arc<Names>>,
    /// Whether no object is called as the folder.
    is_alone: bool,
    at: Instant,
}

impl Listed {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < FRESH
    }

    /// The folder itself, and the names that are kept of it.
    fn entries(&self) -> usize {
        1 + self.names.as_ref().map_or(0, |names| names.len())
    }
}

#[derive(Debug, Default)]
struct BucketListings {
    /// How often it was changed by this process, or is to be looked at anew.
    changes: u64,
    folders: HashMap<String, Listed>,
    /// Their entries together. A listing of all below a plate has 100,000 folders, too many to add up for each of them.
    entries: usize,
    /// Addresses at which there was no object, with when they were asked for.
    absent: HashMap<String, Instant>,
}

impl BucketListings {
    /// Keeps a listing of a folder in place of the one before.
    fn insert(&mut self, folder: String, listed: Listed) {
        self.entries += listed.entries();
        self.entries -= self.folders.insert(folder, listed).map_or(0, |before| before.entries());
    }

    /// Drops all listings.
    fn clear(&mut self) {
        self.folders.clear();
        self.entries = 0;
    }

    /// The recent listing of a folder.
    fn fresh(&self, folder: &str) -> Option<&Listed> {
        self.folders.get(folder).filter(|listed| listed.is_fresh())
    }

    /// The entries of an address in the listing of the folder around it; `None` where there is none that would tell.
    fn named(&self, address: &str) -> Option<Named> {
        let (folder, name) = address.rsplit_once('/').filter(|(_, name)| !name.is_empty())?;
        let names = self.fresh(folder)?.names.as_ref()?;
        Some(names.get(name).copied().unwrap_or_default())
    }
}

/// Names in folders, by bucket.
#[derive(Debug, Default)]
pub(crate) struct Listings(Mutex<HashMap<String, BucketListings>>);

/// A bucket is being changed.
#[derive(Debug)]
pub(crate) struct ChangeGuard<'l> {
    listings: &'l Listings,
    bucket: String,
}

impl Drop for ChangeGuard<'_> {
    fn drop(&mut self) {
        self.listings.look_anew(&self.bucket);
    }
}

impl Listings {
    fn buckets(&self) -> MutexGuard<'_, HashMap<String, BucketListings>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called before a listing is asked for that is to be kept.
    pub(crate) fn ask(&self, bucket: &str) -> Asked {
        Asked { changes: self.buckets().get(bucket).map_or(0, |of| of.changes), at: Instant::now() }
    }

    /// Keeps the names in a folder, in which something lies, unless the bucket was changed since they were asked for. `is_alone` where
    /// it is known that no object is called as the folder.
    pub(crate) fn keep(&self, bucket: &str, folder: &str, names: Arc<Names>, is_alone: bool, asked: Asked) {
        let mut buckets = self.buckets();
        let kept: usize = buckets.values().map(|of| of.entries).sum();
        let is_small = names.len() < MAX_KNOWN;
        if is_small && kept + names.len() >= MAX_KNOWN {
            buckets.values_mut().for_each(BucketListings::clear);
        }
        let of = buckets.entry(bucket.to_owned()).or_default();
        if of.changes == asked.changes {
            let folder = folder.trim_end_matches('/');
            let is_alone = is_alone || of.fresh(folder).is_some_and(|before| before.is_alone);
            let names = is_small.then_some(names);
            of.insert(folder.to_owned(), Listed { names, is_alone, at: asked.at });
        }
    }

    /// The names in a folder that was listed.
    pub(crate) fn names(&self, bucket: &str, folder: &str) -> Option<Arc<Names>> {
        let buckets = self.buckets();
        buckets.get(bucket)?.fresh(folder.trim_end_matches('/'))?.names.clone()
    }

    /// Whether a listing says that a folder is there, and no object of its name.
    pub(crate) fn is_folder(&self, bucket: &str, address: &str) -> bool {
        let buckets = self.buckets();
        let Some(of) = buckets.get(bucket) else { return false };
        let address = address.trim_end_matches('/');
        of.fresh(address).is_some_and(|listed| listed.is_alone)
            || of.named(address).is_some_and(|named| named.is_folder && !named.is_object)
    }

    /// Whether a listing says that no folder has this address.
    pub(crate) fn is_no_folder(&self, bucket: &str, address: &str) -> bool {
        let buckets = self.buckets();
        let named = buckets.get(bucket).and_then(|of| of.named(address.trim_end_matches('/')));
        named.is_some_and(|named| !named.is_folder)
    }

    /// Whether listings say that nothing has this address. Its name is not in the folder around it, or that folder is not in the one
    /// around it, and so on.
    pub(crate) fn lacks(&self, bucket: &str, address: &str) -> bool {
        let buckets = self.buckets();
        let Some(of) = buckets.get(bucket) else { return false };
        let mut rest = address;
        while rest.len() > bucket.len() {
            let is_itself = rest.len() == address.len();
            let is_there = |named: Named| named.is_folder || is_itself && named.is_object;
            if of.named(rest).is_some_and(|named| !is_there(named)) {
                return true;
            }
            let Some((folder, _)) = rest.rsplit_once('/') else { break };
            rest = folder;
        }
        false
    }

    /// Whether it was said not long ago that no object has this address. A folder may have it.
    pub(crate) fn is_absent(&self, bucket: &str, address: &str) -> bool {
        let buckets = self.buckets();
        let asked = buckets.get(bucket).and_then(|of| of.absent.get(address));
        asked.is_some_and(|at| at.elapsed() < FRESH)
    }

    /// Notes that no object has an address, unless the bucket was changed since that was asked.
    pub(crate) fn note_absent(&self, bucket: &str, address: &str, asked: Asked) {
        let mut buckets = self.buckets();
        let of = buckets.entry(bucket.to_owned()).or_default();
        if of.changes != asked.changes {
            return;
        }
        if of.absent.len() >= MAX_ABSENT {
            of.absent.clear();
        }
        of.absent.insert(address.to_owned(), asked.at);
    }

    /// Drops what is kept of a bucket, and what is on its way.
    pub(crate) fn look_anew(&self, bucket: &str) {
        let mut buckets = self.buckets();
        let of = buckets.entry(bucket.to_owned()).or_default();
        of.changes += 1;
        of.clear();
        of.absent.clear();
    }

    /// Drops the entries kept of a bucket now, and again when the returned value is dropped: meanwhile it is changed.
    pub(crate) fn changing(&self, bucket: String) -> ChangeGuard<'_> {
        self.look_anew(&bucket);
        ChangeGuard { listings: self, bucket }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: Named = Named { is_object: true, is_folder: false };
    const FOLDER: Named = Named { is_object: false, is_folder: true };

    fn names() -> Arc<Names> {
        let both = Named { is_object: true, is_folder: true };
        Arc::new(
            [("a", OBJECT), ("b", FOLDER), ("both", both)].map(|(name, is)| (name.to_owned(), is)).into(),
        )
    }

    fn keep(listings: &Listings, folder: &str, is_alone: bool) {
        listings.keep("s3://b", folder, names(), is_alone, listings.ask("s3://b"));
    }

    #[test]
    fn what_a_listing_does_not_name_is_lacking() {
        let listings = Listings::default();
        assert!(!listings.lacks("s3://b", "s3://b/k/c"));
        keep(&listings, "s3://b/k", true);
        let lacks = |address: &str| listings.lacks("s3://b", address);
        assert!(lacks("s3://b/k/c") && !lacks("s3://b/c"));
        // Nothing lies in a folder that is not there, nor in an object.
        assert!(lacks("s3://b/k/c/d/e") && lacks("s3://b/k/a/d"));
        assert!(!lacks("s3://b/k/a") && !lacks("s3://b/k/b") && !lacks("s3://b/k/b/d"));
        assert!(!lacks("s3://b/k/both/d") && !lacks("s3://b/") && !lacks("s3://b/j/c") && !lacks("s3://b/k"));
        keep(&listings, "s3://b/", true);
        assert!(lacks("s3://b/c") && lacks("s3://b/j/c") && !lacks("s3://b/b"));
    }

    #[test]
    fn folders_are_told_by_their_listing_and_by_that_around_them() {
        let listings = Listings::default();
        let is_folder = |address: &str| listings.is_folder("s3://b", address);
        keep(&listings, "s3://b/k", false);
        assert!(!is_folder("s3://b/k"), "an object may be called so");
        assert!(is_folder("s3://b/k/b") && !is_folder("s3://b/k/a") && !is_folder("s3://b/k/both"));
        assert!(
            listings.is_no_folder("s3://b", "s3://b/k/a") && listings.is_no_folder("s3://b", "s3://b/k/c")
        );
        assert!(
            !listings.is_no_folder("s3://b", "s3://b/k/both")
                && !listings.is_no_folder("s3://b", "s3://b/j/a")
        );
        keep(&listings, "s3://b/k/", true);
        keep(&listings, "s3://b/k", false);
        assert!(is_folder("s3://b/k") && is_folder("s3://b/k/"), "once known, it stays known");
        assert_eq!(listings.names("s3://b", "s3://b/k/").unwrap(), names());
        assert!(listings.names("s3://b", "s3://b/k/b").is_none());
    }

    #[test]
    fn what_was_listed_before_a_change_or_in_it_is_not_kept() {
        let listings = Listings::default();
        let lacks = || listings.lacks("s3://b", "s3://b/k/c");
        let keep = |asked| listings.keep("s3://b", "s3://b/k", names(), true, asked);
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
    fn what_was_absent_is_known_until_the_bucket_changes() {
        let listings = Listings::default();
        let is_absent = || listings.is_absent("s3://b", "s3://b/k/c");
        let before = listings.ask("s3://b");
        listings.note_absent("s3://b", "s3://b/k/c", before);
        assert!(is_absent() && !listings.is_absent("s3://b", "s3://b/k/d"));
        assert!(!listings.is_absent("s3://other", "s3://b/k/c"));
        assert!(!listings.lacks("s3://b", "s3://b/k/c"), "a folder may be called so");
        drop(listings.changing("s3://b".into()));
        assert!(!is_absent());
        listings.note_absent("s3://b", "s3://b/k/c", before);
        assert!(!is_absent(), "it was asked for before the change");
        let asked = listings.ask("s3://b");
        for i in 0..MAX_ABSENT {
            listings.note_absent("s3://b", &i.to_string(), asked);
        }
        assert_eq!(listings.buckets()["s3://b"].absent.len(), MAX_ABSENT);
        listings.note_absent("s3://b", "s3://b/k/c", asked);
        assert!(is_absent() && listings.buckets()["s3://b"].absent.len() == 1);
    }

    #[test]
    fn entries_are_counted_as_they_come_and_go() {
        let listings = Listings::default();
        let entries = || listings.buckets()["s3://b"].entries;
        keep(&listings, "s3://b/k", true);
        keep(&listings, "s3://b/l", true);
        keep(&listings, "s3://b/k/", true);
        assert_eq!(entries(), 2 * (1 + names().len()));
        let large: Names = (0..MAX_KNOWN).map(|i| (i.to_string(), OBJECT)).collect();
        listings.keep("s3://b", "s3://b/k", Arc::new(large), true, listings.ask("s3://b"));
        assert_eq!(entries(), 2 + names().len(), "names that are not kept do not count");
        listings.look_anew("s3://b");
        assert_eq!(entries(), 0);
    }

    #[test]
    fn names_stay_within_their_number() {
        let listings = Listings::default();
        let asked = listings.ask("s3://b");
        keep(&listings, "s3://b/k", true);
        let large: Names = (0..MAX_KNOWN).map(|i| (i.to_string(), OBJECT)).collect();
        listings.keep("s3://b", "s3://b/large", Arc::new(large), true, asked);
        assert!(
            !listings.lacks("s3://b", "s3://b/large/c") && listings.names("s3://b", "s3://b/large").is_none()
        );
        assert!(listings.is_folder("s3://b", "s3://b/large"), "that it is there is known");
        assert!(listings.lacks("s3://b", "s3://b/k/c"));
        let half: Names = (0..MAX_KNOWN - 1).map(|i| (i.to_string(), OBJECT)).collect();
        listings.keep("s3://b", "s3://b/half", Arc::new(half), true, asked);
        assert!(!listings.lacks("s3://b", "s3://b/k/c") && listings.lacks("s3://b", "s3://b/half/c"));
    }
}
