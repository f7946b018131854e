//! The known facts of objects: their lengths and versions, as listings and answers gave them, and first and last bytes
//! of some.
//!
//! Opening a listed file takes no request, and headers of files are read in one. Nothing here is believed blindly:
//! every request names the version, and the server refuses it where the object was replaced. Opening a set asks for its
//! versions anew. An answer that was asked for before this process changed the object is not kept.

use bytes::Bytes;
use object_store::ObjectMeta;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a listing tells lengths.
pub(crate) const FRESH: Duration = Duration::from_mins(1);
/// Objects that are known at most.
pub(crate) const MAX_KNOWN: usize = 1 << 18;
/// Objects of which it is kept that they were forgotten, at most.
const MAX_FORGOTTEN: usize = 1 << 14;
/// Bytes of windows that are kept.
const WINDOWS: usize = 64 << 20;

/// The identity of an object, which one that replaces it does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// As the server names it.
    e_tag: Option<String>,
    /// Second of the last change.
    modified: i64,
    /// Its bytes, where they are known: a second alone may be that of two objects.
    length: Option<u64>,
}

impl Version {
    /// The version in what a server says of an object.
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        let version = Self::new(meta.e_tag.clone(), meta.last_modified.timestamp());
        Self { length: Some(meta.size), ..version }
    }

    /// A version by its tag and second.
    pub(crate) fn new(e_tag: Option<String>, modified: i64) -> Self {
        Self { e_tag, modified, length: None }
    }

    /// The tag that a request may ask the server to compare. A weak tag never matches.
    pub(crate) fn if_match(&self) -> Option<String> {
        let tag = self.e_tag.as_deref().filter(|tag| !tag.starts_with("W/"))?;
        // Listings of Azure leave the quotes out.
        Some(if tag.starts_with('"') { tag.to_owned() } else { format!("\"{tag}\"") })
    }

    /// Whether both are of one object.
    pub(crate) fn is(&self, other: &Self) -> bool {
        if let (Some(one), Some(other)) = (&self.e_tag, &other.e_tag) {
            return bare(one) == bare(other);
        }
        let lengths = self.length.zip(other.length);
        self.modified == other.modified && lengths.is_none_or(|(one, other)| one == other)
    }

    /// The version as text, to keep things by.
    fn text(&self) -> String {
        let untagged = || format!("{} {}", self.modified, self.length.unwrap_or_default());
        self.e_tag.as_deref().map_or_else(untagged, |tag| bare(tag).to_owned())
    }
}

fn bare(tag: &str) -> &str {
    tag.trim_start_matches("W/").trim_matches('"')
}

/// The known facts of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its bytes.
    pub(crate) length: u64,
    /// Which one it is.
    pub(crate) version: Version,
}

/// When something was asked about an object: after so many changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked(u64);

/// The key of a window's bytes: address, version, offset.
type WindowOf = (String, String, u64);

#[derive(Debug, Default)]
struct Windows {
    kept: HashMap<WindowOf, Bytes>,
    order: VecDeque<WindowOf>,
    bytes: usize,
}

/// Facts by address, and what was changed since they were asked for.
#[derive(Debug, Default)]
struct Known {
    /// With when it was said; `None` where it has to be asked for again.
    heads: HashMap<String, (Head, Option<Instant>)>,
    /// How often an object was forgotten.
    changes: u64,
    /// The objects that were forgotten, each with which change that was.
    forgotten: HashMap<String, u64>,
    /// Changes of which it is no longer kept whose they were.
    unnamed: u64,
}

impl Known {
    /// Whether an answer was asked for before the object was changed, as far as that is kept.
    fn is_late(&self, address: &str, Asked(changes): Asked) -> bool {
        changes < self.unnamed || self.forgotten.get(address).is_some_and(|&change| change > changes)
    }
}

/// The known facts of all objects, by address.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    known: Mutex<Known>,
    windows: Mutex<Windows>,
}

impl Heads {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called before a request whose answer is to be noted.
    pub(crate) fn ask(&self) -> Asked {
        Asked(self.known().changes)
    }

    /// Notes what was said of an object, unless it was forgotten since that was asked for: it may be of the one before.
    pub(crate) fn learn(&self, address: String, head: Head, asked: Asked) {
        let mut known = self.known();
        if known.is_late(&address, asked) {
            return;
        }
        if known.heads.len() >= MAX_KNOWN {
            known.heads.clear();
        }
        known.heads.insert(address, (head, Some(Instant::now())));
    }

    /// The recent answer about an object.
    pub(crate) fn get(&self, address: &str) -> Option<Head> {
        let known = self.known();
        let (head, since) = known.heads.get(address)?;
        since.is_some_and(|since| since.elapsed() < FRESH).then(|| head.clone())
    }

    /// Lets versions be asked for again: of what is at an address, below it, and beside it under its name with an ending more.
    pub(crate) fn look_anew(&self, address: &str) {
        let address = address.trim_end_matches('/');
        let is_of = |name: &str| {
            name.strip_prefix(address).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
        };
        let mut known = self.known();
        for (_, (_, since)) in known.heads.iter_mut().filter(|(name, _)| is_of(name)) {
            *since = None;
        }
    }

    /// The length that an object had when something was said of it last, however long ago.
    pub(crate) fn last_length(&self, address: &str) -> Option<u64> {
        self.known().heads.get(address).map(|(head, _)| head.length)
    }

    /// Forgets an object that was written, moved or found replaced.
    pub(crate) fn forget(&self, address: &str) {
        let mut known = self.known();
        known.heads.remove(address);
        if known.forgotten.len() >= MAX_FORGOTTEN {
            known.forgotten.clear();
            known.unnamed = known.changes;
        }
        known.changes += 1;
        let change = known.changes;
        known.forgotten.insert(address.to_owned(), change);
    }

    /// Bytes of an object from `offset` on that were kept.
    pub(crate) fn window(&self, address: &str, version: &Version, offset: u64) -> Option<Bytes> {
        self.windows().kept.get(&(address.to_owned(), version.text(), offset)).cloned()
    }

    /// Keeps bytes of an object; those kept longest go.
    pub(crate) fn keep_window(&self, address: &str, version: &Version, offset: u64, bytes: Bytes) {
        let mut windows = self.windows();
        let of = (address.to_owned(), version.text(), offset);
        windows.bytes += bytes.len();
        if let Some(before) = windows.kept.insert(of.clone(), bytes) {
            windows.bytes -= before.len();
        } else {
            windows.order.push_back(of);
        }
        while windows.bytes > WINDOWS {
            let Some(oldest) = windows.order.pop_front() else { break };
            let gone = windows.kept.remove(&oldest).map_or(0, |bytes| bytes.len());
            windows.bytes -= gone;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(tag: &str) -> Version {
        Version::new(Some(tag.into()), 1)
    }

    #[test]
    fn versions_are_told_by_tags_whatever_their_quotes() {
        assert!(version("\"a\"").is(&version("a")) && version("W/\"a\"").is(&version("\"a\"")));
        assert!(!version("a").is(&version("b")));
        assert!(Version::new(None, 1).is(&version("a")) && !Version::new(None, 2).is(&version("a")));
        let sized = |length| Version { length: Some(length), ..Version::new(None, 1) };
        assert!(sized(3).is(&sized(3)) && !sized(3).is(&sized(4)) && sized(3).is(&Version::new(None, 1)));
        assert_ne!(sized(3).text(), sized(4).text());
        assert_eq!(version("a").if_match().as_deref(), Some("\"a\""));
        assert_eq!(version("\"a\"").if_match().as_deref(), Some("\"a\""));
        assert_eq!(version("W/\"a\"").if_match(), None);
    }

    #[test]
    fn what_is_forgotten_is_not_known() {
        let heads = Heads::default();
        let head = Head { length: 3, version: version("a") };
        heads.learn("s3://b/k".into(), head.clone(), heads.ask());
        assert_eq!(heads.get("s3://b/k"), Some(head));
        heads.forget("s3://b/k");
        assert_eq!(heads.get("s3://b/k"), None);
    }

    #[test]
    fn what_was_asked_for_before_an_object_was_written_is_not_noted() {
        let heads = Heads::default();
        let head = |tag: &str| Head { length: 3, version: version(tag) };
        let learn = |name: &str, tag: &str, asked| heads.learn(name.into(), head(tag), asked);
        let before = heads.ask();
        heads.forget("s3://b/k");
        let after = heads.ask();
        learn("s3://b/k", "old", before);
        learn("s3://b/j", "a", before);
        assert_eq!((heads.get("s3://b/k"), heads.get("s3://b/j")), (None, Some(head("a"))));
        learn("s3://b/k", "new", after);
        learn("s3://b/k", "old", before);
        assert_eq!(heads.get("s3://b/k"), Some(head("new")));
        // After more changes than are kept, an answer to an earlier question may be of any of the objects.
        for i in 0..MAX_FORGOTTEN {
            heads.forget(&i.to_string());
        }
        learn("s3://b/l", "a", before);
        learn("s3://b/k", "newer", heads.ask());
        assert_eq!((heads.get("s3://b/l"), heads.get("s3://b/k")), (None, Some(head("newer"))));
        assert_eq!(heads.known().forgotten.len(), 1);
    }

    #[test]
    fn what_is_looked_at_anew_is_of_one_set() {
        let heads = Heads::default();
        let all = ["s3://b/k", "s3://b/k/a", "s3://b/k.json", "s3://b/kk", "s3://b/j"];
        let known = |heads: &Heads| all.map(|name| heads.get(name).is_some());
        for name in all {
            heads.learn(name.into(), Head { length: 3, version: version("a") }, heads.ask());
        }
        heads.look_anew("s3://b/k/");
        assert_eq!(known(&heads), [false, false, false, true, true]);
        assert_eq!(heads.last_length("s3://b/k/a"), Some(3));
        heads.look_anew("s3://b/");
        assert_eq!(known(&heads), [false; 5]);
    }

    #[test]
    fn windows_stay_within_their_bytes() {
        let heads = Heads::default();
        let large = Bytes::from(vec![0; WINDOWS / 2]);
        for key in ["a", "b", "c"] {
            heads.keep_window(key, &version("1"), 0, large.clone());
        }
        assert!(heads.window("a", &version("1"), 0).is_none());
        assert!(
            heads.window("c", &version("1"), 0).is_some() && heads.window("c", &version("2"), 0).is_none()
        );
        heads.keep_window("c", &version("1"), 0, large);
        assert_eq!(heads.windows().bytes, WINDOWS);
    }
}
