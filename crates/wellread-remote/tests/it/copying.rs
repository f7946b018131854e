//! Objects that the tests' server copies after it has answered, as Azure may.

use crate::request::Request;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Looks at the object, by `bucket/key`, that find it not copied yet.
static LEFT: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Mutex::default);

fn left() -> MutexGuard<'static, HashMap<String, usize>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a copy to `bucket/key` be done after so many looks at it.
pub(crate) fn copy_later(path: &str, looks: usize) {
    left().insert(path.to_owned(), looks);
}

/// Lets a copy in a bucket of this name take longer than a silent server is waited for.
pub(crate) fn take_time(path: &str) {
    if path.starts_with("slow-copies/") {
        std::thread::sleep(Duration::from_secs(6));
    }
}

/// Whether the answer to a request says that its object is not copied yet.
pub(crate) fn is_copying(request: &Request) -> bool {
    let mut all = left();
    let Some(left) = all.get_mut(&request.path).filter(|left| **left > 0) else { return false };
    if request.method == "HEAD" {
        *left -= 1;
    }
    true
}
