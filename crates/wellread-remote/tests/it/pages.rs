//! Listings of the tests' server, in pages.

use crate::request::{Answer, Request};
use crate::server;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Keys on a page of a listing: few, so that listings have pages.
const PAGE: usize = 5;
const TIME: &str = "2026-10-21T07:28:00.000Z";

#[derive(Debug, Default)]
struct State {
    /// Folders that may not be listed.
    unlisted: HashSet<String>,
    /// Buckets whose listings fail.
    broken: HashSet<String>,
    /// Buckets whose listings have pages as long as those of clouds.
    long_pages: HashSet<String>,
    /// Requests for pages of buckets of which every other one fails, the first too.
    failing: HashMap<String, usize>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets nobody list a folder, by `bucket/key`.
pub(crate) fn refuse_to_list(folder: &str) {
    state().unlisted.insert(folder.to_owned());
}

/// Lets all listings of a bucket fail, with an error after which nobody asks again.
pub(crate) fn fail_to_list(bucket: &str) {
    state().broken.insert(bucket.to_owned());
}

/// Lets listings of a bucket have pages as long as those of clouds.
pub(crate) fn lengthen_pages(bucket: &str) {
    state().long_pages.insert(bucket.to_owned());
}

/// Lets every other request for a page of a bucket's listings fail, the first too.
pub(crate) fn fail_every_other(bucket: &str) {
    state().failing.insert(bucket.to_owned(), 0);
}

/// A page of a listing.
pub(crate) fn list(request: &Request) -> Answer {
    let bucket = request.path.trim_end_matches('/');
    let of = |name: &str| request.query.get(name).map_or("", String::as_str);
    let (prefix, delimiter, after) = (of("prefix"), of("delimiter"), of("continuation-token"));
    let mut state = state();
    if state.unlisted.contains(format!("{bucket}/{prefix}").trim_end_matches('/')) {
        return Answer::error(403, "AccessDenied");
    }
    if state.broken.contains(bucket) {
        return Answer::error(501, "NotImplemented");
    }
    if let Some(asked) = state.failing.get_mut(bucket) {
        *asked += 1;
        if *asked % 2 == 1 {
            return Answer::error(503, "SlowDown");
        }
    }
    let most = if state.long_pages.contains(bucket) { 1000 } else { PAGE };
    drop(state);
    let mut found = BTreeMap::new();
    for (key, bytes, version) in server::objects(bucket) {
        let Some(inside) = key.strip_prefix(prefix) else { continue };
        match inside.find('/').filter(|_| delimiter == "/") {
            Some(at) => found.insert(key[..=prefix.len() + at].to_owned(), None),
            None => found.insert(key, Some((bytes, version))),
        };
    }
    let mut text = String::from("<?xml version=\"1.0\"?><ListBucketResult>");
    let mut page = found.into_iter().filter(|(key, _)| after.is_empty() || key.as_str() > after);
    let mut last = String::new();
    for (key, object) in page.by_ref().take(most) {
        let escaped = key.replace('&', "&amp;").replace('<', "&lt;");
        text += &match object {
            None => format!("<CommonPrefixes><Prefix>{escaped}</Prefix></CommonPrefixes>"),
            Some((size, version)) => format!(
                "<Contents><Key>{escaped}</Key><Size>{size}</Size><LastModified>{TIME}</LastModified>\
                 <ETag>&quot;{version}&quot;</ETag></Contents>"
            ),
        };
        last = escaped;
    }
    if page.next().is_some() {
        text += &format!("<NextContinuationToken>{last}</NextContinuationToken>");
    }
    Answer::new(200, text + "</ListBucketResult>").with("content-type", "application/xml")
}
