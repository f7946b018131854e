//! Reading every pixel, and comparing with expected checksums or with another set.

use crate::checksum::{self, ImageChecksum};
use crate::{Result, Store};
use serde::Serialize;
use std::collections::HashMap;

/// One thing that is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Image index in the set under test; `None` when an expected image is missing from it.
    pub row: Option<usize>,
    /// Image name, when known.
    pub name: Option<String>,
    /// What is wrong, in words.
    pub problem: String,
}

/// Outcome of a verification.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verification {
    /// Number of images read.
    pub images: usize,
    /// Bytes of pixels read.
    pub bytes_of_pixels: u64,
    /// What is wrong; empty when all is well.
    pub problems: Vec<Problem>,
}

impl Verification {
    /// Whether everything was read and, if asked for, agreed.
    pub fn passed(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Reads every pixel of `store` with `jobs` threads and compares with `expected` when given.
///
/// Rows are paired by position when the names agree position by position, else by name: folders list files in
/// the order of their names, tables in the order they were written.
pub fn verify(
    store: &dyn Store,
    expected: Option<&[ImageChecksum]>,
    jobs: usize,
    done: &(dyn Fn() + Sync),
) -> Verification {
    let mut outcome = Verification { images: store.len(), ..Verification::default() };
    let mut found = Vec::with_capacity(store.len());
    for (row, result) in checksum::all(store, jobs, done).into_iter().enumerate() {
        match result {
            Ok(sum) => {
                outcome.bytes_of_pixels += sum.bytes();
                found.push(sum);
            }
            Err(e) => outcome.problems.push(Problem {
                row: Some(row),
                name: store.name(row).ok(),
                problem: match e.hint_text() {
                    Some(hint) => format!("{} (hint: {hint})", e.cause()),
                    None => e.cause().to_owned(),
                },
            }),
        }
    }
    if let Some(expected) = expected {
        compare(&found, expected, &mut outcome);
    }
    outcome
}

/// Digests of another set, to verify against.
///
/// # Errors
/// The first row of `other` that cannot be read.
pub fn expected_of(other: &dyn Store, jobs: usize, done: &(dyn Fn() + Sync)) -> Result<Vec<ImageChecksum>> {
    checksum::all(other, jobs, done).into_iter().collect()
}

fn compare(found: &[ImageChecksum], expected: &[ImageChecksum], outcome: &mut Verification) {
    let failed_rows: std::collections::HashSet<_> = outcome.problems.iter().filter_map(|p| p.row).collect();
    let by_row: HashMap<usize, &ImageChecksum> = found.iter().map(|f| (f.row, f)).collect();
    let by_position =
        expected.iter().enumerate().all(|(i, e)| by_row.get(&i).is_none_or(|f| f.name == e.name));
    let by_name: HashMap<&str, &ImageChecksum> = found.iter().map(|f| (f.name.as_str(), f)).collect();
    let unique_names = by_name.len() == found.len();
    let mut paired = std::collections::HashSet::new();
    for (position, e) in expected.iter().enumerate() {
        let pair = if by_position || !unique_names {
            by_row.get(&position).copied()
        } else {
            by_name.get(e.name.as_str()).copied()
        };
        let Some(f) = pair else {
            if !failed_rows.contains(&position) || !by_position {
                let similar = found.iter().find(|f| same_but_for_folders(&f.name, &e.name));
                let similar = similar.map_or(String::new(), |f| {
                    format!(
                        " (the set has {}: names differ by a folder; give the folder that was meant)",
                        f.name
                    )
                });
                outcome.problems.push(Problem {
                    row: None,
                    name: Some(e.name.clone()),
                    problem: format!("is expected but not in the set{similar}"),
                });
            }
            continue;
        };
        paired.insert(f.row);
        let problem = if f.shape_tczyx != e.shape_tczyx {
            format!("has shape {:?} (TCZYX), expected {:?}", f.shape_tczyx, e.shape_tczyx)
        } else if f.dtype != e.dtype {
            format!("has pixel type {}, expected {}", f.dtype, e.dtype)
        } else if f.sha256 != e.sha256 {
            format!("pixels differ: sha256 {}, expected {}", f.sha256, e.sha256)
        } else {
            continue;
        };
        outcome.problems.push(Problem { row: Some(f.row), name: Some(f.name.clone()), problem });
    }
    outcome.problems.extend(found.iter().filter(|f| !paired.contains(&f.row)).map(|f| Problem {
        row: Some(f.row),
        name: Some(f.name.clone()),
        problem: "is in the set but not expected".to_owned(),
    }));
}

/// Whether one name is the other below some folder.
fn same_but_for_folders(a: &str, b: &str) -> bool {
    let ends = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'));
    ends(a, b) || ends(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(row: usize, name: &str, sha: &str) -> ImageChecksum {
        ImageChecksum {
            row,
            name: name.into(),
            shape_tczyx: [1, 1, 1, 2, 2],
            dtype: "uint8".into(),
            sha256: sha.into(),
        }
    }

    fn problems(found: &[ImageChecksum], expected: &[ImageChecksum]) -> Vec<Problem> {
        let mut outcome = Verification::default();
        compare(found, expected, &mut outcome);
        outcome.problems
    }

    #[test]
    fn order_may_differ_but_pixels_may_not() {
        let found = [sum(0, "a", "1"), sum(1, "b", "2")];
        assert_eq!(problems(&found, &[sum(0, "b", "2"), sum(1, "a", "1")]), []);
        let wrong = problems(&found, &[sum(0, "a", "1"), sum(1, "b", "3")]);
        assert_eq!(wrong.len(), 1);
        assert_eq!(wrong[0].row, Some(1));
    }

    #[test]
    fn missing_and_additional_images_are_problems() {
        let found = [sum(0, "a", "1")];
        assert_eq!(problems(&found, &[sum(0, "a", "1"), sum(1, "b", "2")]).len(), 1);
        assert_eq!(problems(&found, &[]).len(), 1);
        let both = problems(&[sum(0, "images/a", "1")], &[sum(0, "a", "1"), sum(1, "b", "2")]);
        assert_eq!(both.len(), 3, "two are missing, one is not expected: {both:?}");
        assert!(both[0].problem.contains("images/a"));
    }
}
