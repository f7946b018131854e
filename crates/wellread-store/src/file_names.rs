//! File names made from names of images.

use std::collections::HashSet;

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
