//! Patterns of paths: `*` and `?` within a name, `[abc]`, `[a-z]` and `[!a]` for one character, `**` for any folders.
//!
//! ```text
//!  plates/*/images.parquet ──split──▶ plates │ * │ images.parquet ──listed, name by name──▶ paths, sorted
//! ```
//!
//! As in a shell, `*` leaves hidden names out.

use crate::entries;
use crate::place::{self, Kind};
use crate::probe::DEPTH;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Names that are looked at for a pattern, at most: a pattern that looks through a whole disk is a mistake.
const LOOKED_AT: usize = 1 << 20;

/// Whether a path has what only a pattern has.
pub(crate) fn is_pattern(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// The folder that all paths of a pattern lie in, and the rest of the pattern. By text: the `//` of an address stays.
fn split(pattern: &str) -> (&str, &str) {
    let first = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    let Some(slash) = pattern[..first].rfind('/') else { return ("", pattern) };
    let is_first = slash == 0 || pattern[..slash].ends_with(":/");
    (&pattern[..if is_first { slash + 1 } else { slash }], &pattern[slash + 1..])
}

/// The folder that all paths of a pattern lie in.
pub(super) fn root(pattern: &Path) -> PathBuf {
    PathBuf::from(split(&pattern.to_string_lossy()).0)
}

/// Something that a pattern fits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Match {
    pub path: PathBuf,
    /// Whether it is a regular file, as its folder's listing says: a look at each costs much on a disk far away.
    pub is_file: bool,
}

/// All that there is of a pattern, sorted by name, folder by folder.
///
/// # Errors
/// A folder that cannot be listed; more names than may be looked at.
pub(super) fn paths(pattern: &Path) -> Result<Vec<Match>> {
    let text = pattern.to_string_lossy();
    let (root, rest) = split(&text);
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let mut search = Search { pattern, looked_at: 0, found: vec![] };
    search.below(Path::new(root), &parts, DEPTH)?;
    // Two ways of `**` may lead to the same path.
    search.found.sort();
    search.found.dedup_by(|a, b| a.path == b.path);
    Ok(search.found)
}

/// A search, and its results.
struct Search<'p> {
    pattern: &'p Path,
    looked_at: usize,
    found: Vec<Match>,
}

impl Search<'_> {
    /// Paths below `folder` that fit `parts`, where `**` stands for so many folders at most.
    fn below(&mut self, folder: &Path, parts: &[&str], levels: usize) -> Result<()> {
        let Some((&first, rest)) = parts.split_first() else {
            if let Ok(found) = place::metadata(folder) {
                self.push(folder.to_owned(), found.kind);
            }
            return Ok(());
        };
        if !is_pattern(Path::new(first)) {
            return self.below(&folder.join(first), rest, levels);
        }
        let is_any = first == "**";
        if is_any && !rest.is_empty() {
            self.below(folder, rest, levels)?;
        }
        let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if !place::is_folder(listed) {
            return Ok(());
        }
        for entry in entries::list(listed)? {
            self.looked_at += 1;
            if self.looked_at > LOOKED_AT {
                return Err(Error::new(
                    self.pattern,
                    format_args!("more than {LOOKED_AT} names were looked at"),
                )
                .hint("name more of the folders")
                .choice());
            }
            let path = folder.join(&entry.name);
            if is_any {
                // Links to folders are not followed: they may lead back to one above.
                if entry.is_folder && levels > 0 && !entry.name.starts_with('.') {
                    self.below(&path, parts, levels - 1)?;
                }
                if rest.is_empty() && !entry.is_folder && !entry.name.starts_with('.') {
                    self.push(path, entry.kind);
                }
            } else if fits(first, &entry.name) {
                // Only where a link leads has to be looked at.
                let kind = match entry.kind {
                    Kind::Symlink => place::metadata(&path).map(|found| found.kind),
                    kind => Ok(kind),
                };
                match kind {
                    Ok(kind) if rest.is_empty() => self.push(path, kind),
                    Ok(Kind::Folder) => self.below(&path, rest, levels)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, path: PathBuf, kind: Kind) {
        self.found.push(Match { path, is_file: kind == Kind::File });
    }
}

/// Whether a name fits a pattern of one.
fn fits(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Where the last `*` was, and the name there: it may stand for one character more.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, n));
            p += 1;
        } else if let Some(next) = one(&pattern, p, name[n]) {
            (p, n) = (next, n + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, n) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// Where the pattern goes on behind what fits one character at `p`, where that fits.
fn one(pattern: &[char], p: usize, c: char) -> Option<usize> {
    match *pattern.get(p)? {
        '?' => Some(p + 1),
        '[' => match class(pattern, p, c) {
            Some((end, is_in)) => is_in.then_some(end),
            // Not closed: a character as any other.
            None => (c == '[').then_some(p + 1),
        },
        other => (other == c).then_some(p + 1),
    }
}

/// The end of the characters in brackets that begin at `p`, and whether `c` is one of them; `None` where they have no end.
fn class(pattern: &[char], p: usize, c: char) -> Option<(usize, bool)> {
    let is_not = matches!(pattern.get(p + 1), Some('!' | '^'));
    let first = p + 1 + usize::from(is_not);
    // A bracket that comes first is one of the characters.
    let end = (first + 1..pattern.len()).find(|&i| pattern[i] == ']')?;
    let (mut i, mut is_in) = (first, false);
    while i < end {
        if i + 2 < end && pattern[i + 1] == '-' {
            is_in |= (pattern[i]..=pattern[i + 2]).contains(&c);
            i += 3;
        } else {
            is_in |= pattern[i] == c;
            i += 1;
        }
    }
    Some((end + 1, is_in != is_not))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name) in [
            ("*", "a"),
            ("*.parquet", "BR1.parquet"),
            ("a*b*c", "a__b_b_c"),
            ("?[0-9]", "A7"),
            ("[!a]x", "bx"),
            ("[]a]", "]"),
            ("[a", "[a"),
            ("**", "ab"),
            (".*", ".a"),
            ("*", ""),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*", ".a"), ("a*b", "abc"), ("?", ""), ("[0-9]", "a"), ("[!a]", "a"), ("a", "A")]
        {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
        // Linear, however many stars there are.
        assert!(!fits(&"*a".repeat(200), &"a".repeat(150)));
    }

    #[test]
    fn paths_are_found_sorted_and_once() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["b/2.x", "b/1.x", "a/1.x", "a/c/1.x", "a/1.y", ".h/1.x", "a/.h.x"] {
            let file = dir.path().join(file);
            place::create_folder(file.parent().unwrap()).unwrap();
            place::write(&file, b"").unwrap();
        }
        let found = |pattern: &str| {
            let found = paths(&dir.path().join(pattern)).unwrap();
            assert!(found.iter().all(|one| one.is_file == place::is_file(&one.path)), "{found:?}");
            let below = |one: &Match| one.path.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned();
            found.iter().map(below).collect::<Vec<_>>()
        };
        assert_eq!(found("*/*.x"), ["a/1.x", "b/1.x", "b/2.x"]);
        assert_eq!(found("**/1.x"), ["a/1.x", "a/c/1.x", "b/1.x"]);
        assert_eq!(found("a/**/1.x"), ["a/1.x", "a/c/1.x"]);
        assert_eq!(found("*/1.x"), ["a/1.x", "b/1.x"]);
        assert_eq!(found("a/**"), ["a/1.x", "a/1.y", "a/c/1.x"]);
        assert_eq!(found("[ab]"), ["a", "b"]);
        assert_eq!(found("*/*/*/1.x"), Vec::<String>::new());
        #[cfg(unix)]
        {
            let link = |to: &str, name: &str| {
                std::os::unix::fs::symlink(dir.path().join(to), dir.path().join(name)).unwrap();
            };
            link("a", "l");
            link("a/1.x", "b/l.x");
            link("none", "b/n.x");
            assert_eq!(found("l/*.y"), ["l/1.y"]);
            assert_eq!(found("?/*.x"), ["a/1.x", "b/1.x", "b/2.x", "b/l.x", "l/1.x"], "links lead somewhere");
        }
        assert!(is_pattern(Path::new("a/?")) && !is_pattern(Path::new("a/b")));
        assert_eq!(root(Path::new("a/b/*/c")), Path::new("a/b"));
        assert_eq!(root(Path::new("*.x")), Path::new(""));
        assert_eq!(split("/*.x"), ("/", "*.x"));
        assert_eq!(split("mem://a/*.x"), ("mem://a", "*.x"));
        assert_eq!(split("mem://*/x"), ("mem://", "*/x"));
    }
}
