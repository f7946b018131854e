//! Reading every pixel, and comparing with expected checksums or with another set.
//!
//! For two sets that differ, [`Verification`] tells differences of pixels, of names and of order apart. Each row
//! that differs is a [`Problem`] of one [`Kind`], and [`Verification::summary`] has a sentence for each kind with
//! the number and the first place. Columns beside the images are read and compared with nothing ([`verify_columns`]).

mod columns;
mod pairs;
mod pixels;

pub use columns::verify_columns;
pub use pixels::PixelDifference;

use crate::checksum::{self, ImageChecksum};
use crate::hints::thing;
use crate::words::counted;
use crate::{Error, Result, Store, file_names, place};
use pairs::{CheckedRow, Pair};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// How many differing images are read again, to find the first pixel that differs.
const LOCATED: usize = 100;

/// The problem of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It cannot be read.
    Unreadable,
    /// It is expected but not in the set.
    Missing,
    /// It is in the set but not expected.
    Additional,
    /// Its size is another.
    Shape,
    /// Its pixel type is another.
    Dtype,
    /// Its pixels differ.
    Pixels,
    /// It has the expected pixels and another name.
    Name,
    /// It is expected in another row.
    Order,
    /// It is a column beside the images that cannot be read.
    Column,
}

impl Kind {
    /// All, the worst first.
    const ALL: [Self; 9] = [
        Self::Unreadable,
        Self::Column,
        Self::Missing,
        Self::Additional,
        Self::Shape,
        Self::Dtype,
        Self::Pixels,
        Self::Name,
        Self::Order,
    ];

    /// The words for images of this kind.
    fn words(self) -> &'static str {
        match self {
            Self::Unreadable | Self::Column => "cannot be read",
            Self::Missing => "expected but not in the set",
            Self::Additional => "in the set but not expected",
            Self::Shape => "of another shape",
            Self::Dtype => "of another pixel type",
            Self::Pixels => "with other pixels",
            Self::Name => "with the same pixels under another name",
            Self::Order => "in another row",
        }
    }
}

/// One thing that is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Image index in the set under test; `None` when an expected image is missing from it.
    pub row: Option<usize>,
    /// Image name, when known.
    pub name: Option<String>,
    /// Its kind.
    pub kind: Kind,
    /// Image index in the expected set, when there is such an image.
    pub expected_row: Option<usize>,
    /// Where pixels first differ, for the first images of which both sets can be read.
    pub first_difference: Option<PixelDifference>,
    /// The problem, in words.
    pub problem: String,
}

/// The images to compare with.
#[derive(Clone, Copy)]
pub struct Expected<'a> {
    /// The expected images.
    pub images: &'a [ImageChecksum],
    /// The set that they are of, if it is at hand: pixels that differ are looked up in it.
    pub store: Option<&'a dyn Store>,
    /// Images may stand in any order.
    pub any_order: bool,
    /// Images may have any names.
    pub any_names: bool,
}

impl<'a> Expected<'a> {
    /// These images, in this order, with these names.
    pub fn new(images: &'a [ImageChecksum]) -> Self {
        Self { images, store: None, any_order: false, any_names: false }
    }
}

/// Outcome of a verification.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verification {
    /// Number of images read.
    pub images: usize,
    /// Number of images that were expected, where some were.
    pub expected: Option<usize>,
    /// Number of columns beside the images that were read ([`verify_columns`]).
    pub columns: usize,
    /// Bytes of pixels read.
    pub bytes_of_pixels: u64,
    /// The problems; empty when there are none.
    pub problems: Vec<Problem>,
    /// Whether what was read are cells, cut out of images.
    #[serde(skip)]
    pub are_crops: bool,
}

impl Verification {
    /// Whether everything was read and, if asked for, agreed.
    pub fn passed(&self) -> bool {
        self.problems.is_empty()
    }

    /// How many images were read, or cells.
    pub fn images_in_words(&self) -> String {
        counted(self.images, thing(self.are_crops))
    }

    /// How many problems there are of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.problems.iter().filter(|p| p.kind == kind).count()
    }

    /// The kinds of problems that there are, each with how many.
    pub fn counts(&self) -> impl Iterator<Item = (Kind, usize)> {
        Kind::ALL.into_iter().map(|kind| (kind, self.count(kind))).filter(|&(_, n)| n > 0)
    }

    /// A sentence for each kind of problem: how many there are, and the first.
    pub fn summary(&self) -> Vec<String> {
        let only = self.counts().count() == 1;
        self.counts()
            .map(|(kind, n)| {
                let first = self.problems.iter().find(|p| p.kind == kind);
                let at = first.map_or(String::new(), |p| match (p.row, p.expected_row) {
                    (Some(row), _) => format!("first row {row}"),
                    (None, Some(row)) => format!("first expected row {row}"),
                    (None, None) => "first".to_owned(),
                });
                let name =
                    first.and_then(|p| p.name.as_deref()).map_or(String::new(), |n| format!(", {n:?}"));
                let same = match kind {
                    Kind::Order if only => "the same images in another order: ",
                    Kind::Name if only => "the same images with other names: ",
                    _ => "",
                };
                // A missing image is among the expected images, not among those that were read.
                let of = match (kind, self.expected) {
                    (Kind::Missing, Some(expected)) => counted(expected, thing(self.are_crops)),
                    (Kind::Column, _) => counted(self.columns, "column"),
                    (Kind::Missing, None) => format!("the {}s", thing(self.are_crops)),
                    _ => self.images_in_words(),
                };
                format!("{same}{n} of {of} {} ({at}{name})", kind.words())
            })
            .collect()
    }
}

/// Reads every pixel of `store` with `jobs` threads and compares with `expected` when given.
///
/// Images are the same when their pixels are. They are paired by row, name and pixels at once. So an image that
/// was moved, one that was renamed and one whose pixels changed are told apart.
pub fn verify(
    store: &dyn Store,
    expected: Option<Expected<'_>>,
    jobs: usize,
    done: &(dyn Fn() + Sync),
) -> Verification {
    verify_sums(store, checksum::all(store, jobs, done), expected)
}

/// As [`verify`], of a set whose rows were read before: with what [`checksum::all`] found, or [`checksum::of_rows`] of one range after
/// the other.
pub fn verify_sums(
    store: &dyn Store,
    sums: Vec<Result<ImageChecksum>>,
    expected: Option<Expected<'_>>,
) -> Verification {
    let mut outcome = Verification {
        images: store.len(),
        expected: expected.map(|expected| expected.images.len()),
        are_crops: store.hints().are_crops,
        ..Verification::default()
    };
    let read = sums.len();
    let mut found = Vec::with_capacity(store.len());
    for (row, result) in sums.into_iter().enumerate() {
        match result {
            Ok(sum) => {
                outcome.bytes_of_pixels += sum.bytes();
                found.push(CheckedRow { name: Some(sum.name.clone()), sum: Some(sum) });
            }
            Err(e) => {
                let name = store.name(row).ok();
                found.push(CheckedRow { name: name.clone(), sum: None });
                outcome.problems.push(Problem {
                    row: Some(row),
                    name,
                    kind: Kind::Unreadable,
                    expected_row: None,
                    first_difference: None,
                    problem: unreadable(store.path(), &e),
                });
            }
        }
    }
    // Their reader may have had another set before them, or may have begun before it changed.
    for row in read.min(store.len())..read.max(store.len()) {
        let name = store.name(row).ok();
        if row >= read {
            found.push(CheckedRow { name: name.clone(), sum: None });
        }
        let had = counted(read, store.hints().thing());
        outcome.problems.push(Problem {
            row: Some(row),
            name,
            kind: Kind::Unreadable,
            expected_row: None,
            first_difference: None,
            problem: format!("the set had {had} where it was read, and has {} here", store.len()),
        });
    }
    if let Some(expected) = expected {
        outcome.problems.extend(compare(&found, expected));
        if let Some(other) = expected.store {
            locate(store, other, &mut outcome.problems);
        }
    }
    // By row; of images that are missing, by the row that they should have.
    outcome.problems.sort_by_key(|p| (p.row.or(p.expected_row), p.kind));
    outcome
}

/// The error of an image of the set at `set`; with the file, where that is one of several.
fn unreadable(set: &Path, error: &Error) -> String {
    let file = error.file_below(set);
    let hint = error.hint_text().map_or(String::new(), |hint| format!(" (hint: {hint})"));
    format!("{file}{}{hint}", error.cause())
}

/// Whether images stand in the order of their file names because nothing else gives one. This is a folder with a file
/// or folder per image and no index of names, as other tools write them.
pub fn is_listed_by_file_name(store: &dyn Store) -> bool {
    matches!(store.format(), "tiff" | "ome-zarr" | "image-folder")
        && place::is_folder(store.path())
        && !place::exists(&store.path().join(file_names::INDEX))
}

/// Digests of another set, to verify against.
///
/// # Errors
/// The first row of `other` that cannot be read.
pub fn expected_of(other: &dyn Store, jobs: usize, done: &(dyn Fn() + Sync)) -> Result<Vec<ImageChecksum>> {
    checksum::all(other, jobs, done).into_iter().collect()
}

/// Looks for the first differing pixel of the first images whose pixels differ.
fn locate(store: &dyn Store, other: &dyn Store, problems: &mut [Problem]) {
    for problem in problems.iter_mut().filter(|p| p.kind == Kind::Pixels).take(LOCATED) {
        let (Some(row), Some(expected)) = (problem.row, problem.expected_row) else { continue };
        if let Ok(Some(difference)) = pixels::first_difference(store, row, other, expected) {
            problem.problem = format!("pixels differ: {difference}");
            problem.first_difference = Some(difference);
        }
    }
}

/// The differences between the images of a set and the expected ones.
fn compare(found: &[CheckedRow], expected: Expected<'_>) -> Vec<Problem> {
    let Expected { images, any_order, any_names, .. } = expected;
    let pairs = pairs::pair(found, images, any_names);
    let places = pairs::moved(&pairs, found.len(), images.len());
    let mut problems = vec![];
    let mut paired = vec![false; images.len()];
    for (row, pair) in pairs.iter().enumerate() {
        let CheckedRow { name, sum } = &found[row];
        let mut add = |kind, expected_row, problem| {
            problems.push(Problem {
                row: Some(row),
                name: name.clone(),
                kind,
                expected_row,
                first_difference: None,
                problem,
            });
        };
        let Some(Pair { expected: at }) = *pair else {
            if sum.is_some() {
                add(Kind::Additional, None, "is in the set but not expected".to_owned());
            }
            continue;
        };
        paired[at] = true;
        let e = &images[at];
        if let Some(f) = sum {
            if f.shape_tczyx != e.shape_tczyx {
                let text = format!("has shape {:?} (TCZYX), expected {:?}", f.shape_tczyx, e.shape_tczyx);
                add(Kind::Shape, Some(at), text);
            } else if f.dtype != e.dtype {
                add(Kind::Dtype, Some(at), format!("has pixel type {}, expected {}", f.dtype, e.dtype));
            } else if f.sha256 != e.sha256 {
                let text = format!("pixels differ: sha256 {}, expected {}", f.sha256, e.sha256);
                add(Kind::Pixels, Some(at), text);
            }
        }
        if !any_names && name.as_ref().is_some_and(|name| *name != e.name) {
            let by_folder = name.as_ref().is_some_and(|name| same_but_for_folders(name, &e.name));
            let hint =
                if by_folder { ": names differ by a folder; give the folder that was meant" } else { "" };
            add(Kind::Name, Some(at), format!("is called so, but {:?} is expected{hint}", e.name));
        }
        if !any_order && places[row] {
            let text = if at == row {
                "does not follow the image that it is expected to follow".to_owned()
            } else {
                format!("is in row {row}, but expected in row {at}")
            };
            add(Kind::Order, Some(at), text);
        }
    }
    for (at, e) in images.iter().enumerate().filter(|(at, _)| !paired[*at]) {
        problems.push(Problem {
            row: None,
            name: Some(e.name.clone()),
            kind: Kind::Missing,
            expected_row: Some(at),
            first_difference: None,
            problem: "is expected but not in the set".to_owned(),
        });
    }
    problems
}

/// Whether one name is the other below some folder.
fn same_but_for_folders(a: &str, b: &str) -> bool {
    let ends = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'));
    ends(a, b) || ends(b, a)
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

#[cfg(test)]
mod tests;
