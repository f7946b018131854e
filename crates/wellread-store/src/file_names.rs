//! File names: made from names of images, and what their endings tell.

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

/// Endings, in lower case, of files and folders that hold images in some format.
const IMAGE_ENDINGS: [&str; 10] =
    [".tif", ".tiff", ".png", ".jpg", ".jpeg", ".zarr", ".parquet", ".vortex", ".duckdb", ".lance"];

/// Whether `name` has the ending of an image format, and none of `own`. For telling that a folder mixes formats.
pub(crate) fn is_image_of_other_format(name: &str, own: &[&str]) -> bool {
    let lower = name.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|e| lower.ends_with(e));
    ends(&IMAGE_ENDINGS) && !ends(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_tell_formats() {
        assert!(is_image_of_other_format("A.TIF", &[".png"]));
        assert!(!is_image_of_other_format("a.PNG", &[".png"]));
        assert!(!is_image_of_other_format("README.txt", &[".png"]));
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
