//! File names made from names of images, and names of images from file names.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsStr;

/// A file name, or a path, as text. Bytes that are not UTF-8 become `\xFF`, so that names that differ stay
/// different.
pub(crate) fn text(name: &OsStr) -> Cow<'_, str> {
    if let Some(text) = name.to_str() {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02X}")));
    }
    Cow::Owned(text)
}

/// Chooses a file name for each image of a set: safe on every system and unique within the set.
#[derive(Debug, Default)]
pub(crate) struct FileNames {
    taken: HashSet<String>,
    count: usize,
}

impl FileNames {
    /// Longest name in bytes; leaves room for endings within the 255 bytes that file systems allow.
    const MAX: usize = 200;

    /// Names chosen so far.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The file name (without ending) of the next image, called `name`.
    ///
    /// Characters that file systems do not take become `_`; an empty name becomes `image-ROW`, and a name
    /// that is there already (in any case of letters) gets `-ROW` appended.
    pub fn choose(&mut self, name: &str) -> String {
        let row = self.count;
        self.count += 1;
        let mut safe: String =
            name.chars().map(|c| if c.is_control() || "/\\:*?\"<>|".contains(c) { '_' } else { c }).collect();
        while safe.len() > Self::MAX {
            safe.pop();
        }
        if safe.starts_with('.') {
            safe.replace_range(..1, "_");
        }
        let trimmed = safe.trim_end_matches([' ', '.']);
        let mut safe = if trimmed.is_empty() { format!("image-{row:06}") } else { trimmed.to_owned() };
        while !self.taken.insert(safe.to_lowercase()) {
            safe.push_str(&format!("-{row:06}"));
        }
        safe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(text(OsStr::new("aµ")), "aµ");
        assert_eq!(text(OsStr::from_bytes(b"a\xff\xc2.tif")), "a\\xFF\\xC2.tif");
        assert_ne!(text(OsStr::from_bytes(b"a\xff")), text(OsStr::from_bytes(b"a\xfe")));
    }

    #[test]
    fn names_are_safe_and_unique() {
        let mut names = FileNames::default();
        let chosen: Vec<_> =
            ["a", "A", "../x", "", "b/c", "b/c.", &"µ".repeat(300)].map(|n| names.choose(n)).into();
        assert_eq!(&chosen[..6], ["a", "A-000001", "_._x", "image-000003", "b_c", "b_c-000005"]);
        assert!(chosen[6].len() <= 200);
        assert_eq!(names.len(), 7);
    }
}
