//! The objects of a bucket after each change of a process that replaces a set. A reader finds them where it was killed then.

use crate::server;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Objects, by `bucket/key`.
pub(crate) type Objects = BTreeMap<String, Vec<u8>>;

fn objects(prefix: &str) -> Objects {
    let keys = server::keys(prefix);
    keys.into_iter().filter_map(|key| server::get(&key).map(|bytes| (key, bytes))).collect()
}

/// The objects whose names begin with `prefix` before `replace`, and after each of its changes to them. It writes each once.
pub(crate) fn states(prefix: &str, replace: impl FnOnce()) -> Vec<Objects> {
    let before = server::changes(prefix).len();
    let mut now = objects(prefix);
    replace();
    let after = objects(prefix);
    let mut states = vec![now.clone()];
    for change in server::changes(prefix).split_off(before) {
        match change.split_once(' ').unwrap() {
            ("DELETE", key) => drop(now.remove(key)),
            // A note has gone since.
            (_, key) => drop(now.insert(key.to_owned(), after.get(key).cloned().unwrap_or_default())),
        }
        states.push(now.clone());
    }
    assert!(states.last() == Some(&after), "the changes are all that was done");
    states
}

/// Puts objects elsewhere, where nobody has looked yet; the address of the set `name` there.
pub(crate) fn publish(state: &Objects, from: &str, to: &str, name: &str) -> PathBuf {
    for (key, bytes) in state {
        server::put(&key.replacen(from, to, 1), bytes);
    }
    PathBuf::from(format!("s3://{to}{name}"))
}
