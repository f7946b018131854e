//! Identity of files beyond their names, for a command that continues an interrupted run.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::Read as _;
use std::path::Path;

/// A path without links, to the byte, also where it is no text: two places do not look alike.
pub fn path(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let bytes = whole.as_os_str().as_encoded_bytes();
    // No path has a NUL: what is escaped is not the text of another one.
    whole.to_str().map_or_else(|| format!("\0{}", bytes.escape_ascii()), str::to_owned)
}

/// A place, and what the file there holds: one that says something else since is another one.
pub fn file(path: &Path) -> (String, Option<u64>) {
    (self::path(path), digest(path))
}

/// The content of a file as one number; `None` for a folder, and for a file that cannot be read.
fn digest(path: &Path) -> Option<u64> {
    let mut file = std::fs::File::open(path).ok()?;
    let (mut hasher, mut buffer) = (DefaultHasher::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hasher.finish()),
            n => hasher.write(&buffer[..n]),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn two_places_do_not_look_alike() {
        let names = [&b"/no/a\xff"[..], b"/no/a\\xff", b"/no/a\xfe", b"/no/a\xef\xbf\xbd", b"/no/a"];
        let of = |name: &[u8]| path(Path::new(OsStr::from_bytes(name)));
        let all: std::collections::BTreeSet<String> = names.map(of).into();
        assert_eq!(all.len(), names.len(), "{all:?}");
        assert_eq!(of(b"/no/a"), "/no/a");
    }
}
