//! The versions of an engine's files that reading past its library was tested with: newer ones the library reads.

use std::io::Write as _;
use std::path::Path;
use std::sync::Once;

/// The newest version that was tested, and whether it was said that a file is newer.
#[derive(Debug)]
pub struct TestedVersion {
    description: &'static str,
    newest: &'static str,
    noted: Once,
}

impl TestedVersion {
    /// `description` leads from a file to its version, as in "was written by Lance". `newest` is as many numbers of a version as
    /// matter, such as `14.0` for all releases 14.0.x.
    pub const fn new(description: &'static str, newest: &'static str) -> Self {
        Self { description, newest, noted: Once::new() }
    }

    /// Whether files that declare `version` may be read past the library. If not, that is said on standard error, once in a
    /// process. A version that has no number is none that could be newer.
    pub fn covers(&self, path: &Path, version: &str) -> bool {
        if !self.is_newer(version) {
            return true;
        }
        // Where nobody reads it, there is nobody left to tell.
        self.noted.call_once(|| {
            let _ = writeln!(std::io::stderr(), "{}", self.note(path, version));
        });
        false
    }

    fn is_newer(&self, version: &str) -> bool {
        let numbers = numbers(version).zip(numbers(self.newest));
        numbers
            .map(|(own, tested)| own.cmp(&tested))
            .find(|order| order.is_ne())
            .is_some_and(std::cmp::Ordering::is_gt)
    }

    fn note(&self, path: &Path, version: &str) -> String {
        let Self { description, newest, .. } = self;
        // A file may say anything.
        let version: String = version.chars().take(32).collect();
        let version = version.escape_debug();
        format!(
            "note: {} {description} {version}, newer than {newest}, with which reading past the library was tested: it is read \
             through the library",
            path.display()
        )
    }
}

/// The numbers of a version such as `v2.1.0-dev7`: those between dots, up to the first that is none.
fn numbers(version: &str) -> impl Iterator<Item = u64> {
    let parts = version.trim_start_matches('v').split('.');
    parts.map_while(|part| part.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_versions_are_told_by_the_numbers_that_matter() {
        let tested = TestedVersion::new("was written by Lance", "14.0");
        for covered in ["14.0.2", "14.0", "14", "13.9.9", "14.0.0-beta.1", "v2.0.0", "custom-build", ""] {
            assert!(tested.covers(Path::new("a.lance"), covered), "{covered}");
        }
        assert!(!tested.noted.is_completed());
        for newer in ["14.1.0", "15.0.0", "v100", "15.0.0-beta.1"] {
            assert!(tested.is_newer(newer), "{newer}");
        }
        assert!(!tested.covers(Path::new("a.lance"), "15.0") && tested.noted.is_completed());
        assert_eq!(
            tested.note(Path::new("a.lance"), "15.0"),
            "note: a.lance was written by Lance 15.0, newer than 14.0, with which reading past the library was tested: it is \
             read through the library"
        );
    }
}
