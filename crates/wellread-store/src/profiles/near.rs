//! Why no image has a profile: two names, one of each side, that are nearly the same, and what they differ in.
//!
//! ```text
//!   images: P1/a_01   profiles: P1/A_01.tif ─▶ "P1/a_01 and P1/A_01.tif differ in capital letters"
//! ```

use super::names::full_parts;
use crate::features::stem;

/// Names of images that are compared at most.
const MAX_IMAGES: usize = 40;
/// Values of the table that are compared at most.
const MAX_VALUES: usize = 2000;
/// Letters of an ending of a file at most.
const MAX_ENDING: usize = 5;
/// Letters that two names have in common at least, where one is a part of the other.
const MIN_COMMON: usize = 3;

/// A name as it is compared: without folders, as it is and with less and less of it.
struct ComparedName {
    name: String,
    /// Without the ending of an image.
    stem: String,
    /// In small letters.
    lower: String,
    /// `lower` without its ending, whatever that is.
    bare: String,
    /// Letters and digits of `bare` alone.
    letters: String,
}

impl ComparedName {
    fn of(name: String) -> Self {
        let stem = stem(full_parts(&name).last().copied().unwrap_or_default()).to_owned();
        let lower = stem.to_lowercase();
        let is_ending = |ending: &str| {
            (1..=MAX_ENDING).contains(&ending.len())
                && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
                && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
        };
        let bare = match lower.rsplit_once('.') {
            Some((before, ending)) if !before.is_empty() && is_ending(ending) => before.to_owned(),
            _ => lower.clone(),
        };
        let letters = bare.chars().filter(|letter| letter.is_alphanumeric()).collect();
        Self { name, stem, lower, bare, letters }
    }

    /// How far this is from another name, and in what; the less the nearer, `None` where the two have nothing in common.
    fn difference(&self, other: &Self) -> Option<(usize, &'static str)> {
        let is_part = |part: &str, of: &str| part.chars().count() >= MIN_COMMON && of.contains(part);
        if self.stem.is_empty() || other.stem.is_empty() {
            None
        } else if self.stem == other.stem {
            Some((0, "in their folders"))
        } else if self.lower == other.lower {
            Some((1, "in capital letters"))
        } else if self.bare == other.bare {
            Some((2, "in their endings"))
        } else if self.letters == other.letters && !self.letters.is_empty() {
            Some((3, "in what stands between letters and digits"))
        } else if is_part(&self.bare, &other.bare) || is_part(&other.bare, &self.bare) {
            Some((4, "in words before or after"))
        } else {
            let distance = strsim::osa_distance(&self.bare, &other.bare);
            let most = self.bare.chars().count().min(other.bare.chars().count()) / 4;
            (distance <= most).then_some((4 + distance, "in a few letters"))
        }
    }
}

/// Which of these names of images, and of these values of a table, are nearest, and what they differ in. `None` where no two are near.
pub(super) fn nearest(
    images: impl Iterator<Item = String>,
    values: impl Iterator<Item = String>,
) -> Option<String> {
    let images: Vec<ComparedName> = images.take(MAX_IMAGES).map(ComparedName::of).collect();
    let mut best: Option<(usize, String)> = None;
    for value in values.take(MAX_VALUES).map(ComparedName::of) {
        for image in &images {
            let Some((far, what)) = image.difference(&value) else { continue };
            if best.as_ref().is_none_or(|(nearest, _)| far < *nearest) {
                best = Some((far, format!("{} and {} differ {what}", image.name, value.name)));
            }
        }
    }
    best.map(|(_, sentence)| sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(images: &[&str], values: &[&str]) -> Option<String> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        nearest(owned(images).into_iter(), owned(values).into_iter())
    }

    #[test]
    fn two_near_names_say_what_they_differ_in() {
        for (image, value, what) in [
            ("P1/a_01", "P2/a_01.tif", "in their folders"),
            ("a_01", "A_01.tif", "in capital letters"),
            ("a_01", "A_01.czi", "in their endings"),
            ("a_01", "a-01.tif", "in what stands between letters and digits"),
            ("plate1_A01_s1", "A01_s1", "in words before or after"),
            ("experiment_01", "experiment_02", "in a few letters"),
        ] {
            let said = between(&["zzz", image], &["qqqqqq", value]).unwrap();
            assert_eq!(said, format!("{image} and {value} differ {what}"));
        }
        assert_eq!(between(&["B02"], &["C01", ""]), None);
        // The nearest of all, whichever comes first.
        let said = between(&["experiment_01"], &["experiment_02", "Experiment_01"]).unwrap();
        assert!(said.ends_with("in capital letters"), "{said}");
    }
}
