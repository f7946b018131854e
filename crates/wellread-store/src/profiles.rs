//! Joining a table of profiles, as CellProfiler writes them, to the images that they are of.
//!
//! ```text
//!  names of images ─┐
//!                   ├─ join ─▶ feature columns, a row per image ─▶ features::beside ─▶ WriteOptions::features
//!  PROFILES.parquet ┘
//! ```
//!
//! [`join`] looks each image's name up in the table, whose image columns have file names.

mod index;
mod names;
mod spread;

use crate::features::{key_at, taken};
use crate::parquet::{PlainColumns, read_plain_columns};
use crate::words::counted;
use crate::{Error, Renamed, Result, Store, place};
use arrow_array::{Array, RecordBatch};
use index::{is_pandas_index, without_pandas_index};
use names::{Namesakes, full_name, full_parts, is_table};
pub(crate) use names::{files_of_sites, parts};
use spread::Spread;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

/// How many images a join found profiles for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Images with a profile.
    pub matched: usize,
    /// All images.
    pub images: usize,
    /// Feature columns that were added.
    pub columns: usize,
    /// Names of the profiles' columns that were not: see [`crate::Hints::columns_left_out`].
    pub left_out: Vec<String>,
    /// Of the added columns, those whose name is not that of the table, where several have one name there.
    pub renamed: Vec<Renamed>,
    /// Two images of different folders to which one profile went since it names no folder that tells them apart.
    pub shared: Option<[String; 2]>,
    /// The name in a profile of an image of the set, whose folders are not those that the set lies in.
    pub elsewhere: Option<String>,
}

/// Feature columns of `profiles`, a Parquet table, for the images of `source`: the profile of an image is the row
/// where one of the columns `keys` (several, separated by commas) has the image's name, with or without its ending
/// and folders. Folders that both names have must be the same, from the last one on: `P1/a.tif` is the profile of
/// `P1/a` and of `a`, not of `P2/a`. Of several that fit, the one with the most folders in common is taken, those that a folder of
/// images lies in counted too. Images without a profile get nulls.
///
/// Whole names go first: where a folder holds `a.tif` and `a.tiff`, each has the profile of its file name, and a profile of `a`
/// is an error.
///
/// Text, whole numbers and the like are taken; columns of nulls alone, nested and binary ones are not. Where `columns` names
/// some, only those are, in that order; else all but the index of pandas.
///
/// # Errors
/// No such table or column; two profiles for one image; one that could be of either of two images that only their endings tell
/// apart; no image with a profile.
pub fn join(
    source: &dyn Store,
    profiles: &Path,
    keys: &str,
    columns: &[String],
) -> Result<(RecordBatch, Joined)> {
    let PlainColumns { columns: table, mut left_out, mut renamed } = read_plain_columns(profiles)?;
    let images: Vec<String> = (0..source.len()).map(|row| source.name(row)).collect::<Result<_>>()?;
    let namesakes = Namesakes::of(source, &images)?;
    // Of an image of several files, the profile may name any of them.
    let sites = files_of_sites(source);
    let all_names = || images.iter().chain(sites.iter().flatten().flatten());
    let none = || Profiles::of_images(all_names().map(|name| parts(name)));
    // By names without endings, by whole names, and by those that are the whole name of no namesake.
    let (mut rows, mut whole, mut loose) = (none(), none(), none());
    for key in keys.split(',').map(str::trim) {
        let Some(column) = table.column_by_name(key) else {
            return Err(no_column(profiles, &table, &left_out, key, " to join on"));
        };
        for row in 0..column.len() {
            if let Some(value) = key_at(column, row) {
                rows.push(&parts(&value), row);
                let full = full_parts(&value);
                whole.push(&full, row);
                let of_no_namesake = full.last().is_none_or(|file| !namesakes.files.contains(*file));
                if of_no_namesake && !namesakes.images.is_empty() {
                    loose.push(&parts(&value), row);
                }
            }
        }
    }
    let base = folders_of(source);
    let base: Vec<&str> = base.iter().map(String::as_str).collect();
    let mut found = Vec::with_capacity(images.len());
    let mut spread = Spread::default();
    let mut elsewhere = None;
    for (image, name) in images.iter().enumerate() {
        let at = if let Some(files) = sites.as_ref().and_then(|sites| sites.get(image)) {
            rows.of_any(&base, std::iter::once(name).chain(files))
        } else if let Some([full, other]) = namesakes.images.get(&image) {
            let at = whole.of(&base, &full_parts(full));
            if at == Ok(None)
                && let Ok(Some(ProfileMatch { row, .. })) | Err([row, _]) = loose.of(&base, &parts(name))
            {
                let cause = format_args!("row {row} fits two images, {full} and {other}");
                return Err(Error::new(profiles, cause)
                    .hint("give the whole name of each image, with its ending, in the column"));
            }
            at
        } else {
            match rows.of(&base, &parts(name)) {
                Err(two) => match whole.of(&base, &full_parts(&full_name(source, image, name)?)) {
                    Ok(Some(at)) if at.unconfirmed.is_none() => Ok(Some(at)),
                    _ => Err(two),
                },
                found => found,
            }
        };
        let at = at.map_err(|[first, second]| {
            let cause = format_args!("rows {first} and {second} both have the profile of the image {name:?}");
            Error::new(profiles, cause).hint(
                "one row per image: aggregate rows of the same image; images of several plates are told apart by folders, in the \
                 images' names (convert the folder above) and in the column",
            )
        })?;
        if let Some(at) = &at {
            spread.see(at.row, at.folders, name);
            elsewhere =
                elsewhere.or_else(|| at.unconfirmed.as_ref().map(|folders| format!("{folders}/{name}")));
        }
        found.push(at.map(|at| at.row as u64));
    }
    let matched = found.iter().flatten().count();
    if matched == 0 {
        let names = images[..images.len().min(3)].join(", ");
        let some = rows.some.join(", ");
        return Err(Error::new(profiles, format_args!("no image has a profile by {keys}")).hint(
            format_args!("images are called {names} …, profiles {some} …; folders that both have must agree"),
        ));
    }
    let table = if columns.is_empty() {
        left_out.retain(|name| !is_pandas_index(name));
        without_pandas_index(profiles, table)?
    } else {
        let all_left_out = std::mem::take(&mut left_out);
        chosen(profiles, &table, &all_left_out, columns)?
    };
    renamed.retain(|column| table.column_by_name(&column.to).is_some());
    let joined = Joined {
        matched,
        images: found.len(),
        columns: table.num_columns(),
        left_out,
        renamed,
        shared: spread.shared,
        elsewhere,
    };
    let rows = taken(&table, found).map_err(|e| Error::new(profiles, e))?;
    Ok((rows, joined))
}

/// The folders that a folder of images lies in, itself last; of a table none.
pub(crate) fn folders_of(source: &dyn Store) -> Vec<String> {
    let path = place::absolute(source.path()).unwrap_or_default();
    if is_table(source) || !place::is_folder(&path) {
        return vec![];
    }
    path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
}

/// The rows of profiles by the names in them.
#[derive(Default)]
pub(crate) struct Profiles {
    /// By the whole name: a row, and another one with the same.
    whole: HashMap<String, [Option<usize>; 2]>,
    /// By the end of the name, with as many folders as an image has, where it has more than that: rows, each with the folders
    /// before that end.
    ends: HashMap<String, Vec<(usize, String)>>,
    /// The last of those folders.
    known: HashSet<String>,
    /// How many folders images have.
    depths: BTreeSet<usize>,
    /// A few of the names, for messages.
    some: Vec<String>,
}

/// The row of an image's profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProfileMatch {
    /// The row in the table.
    pub(crate) row: usize,
    /// How many folders of the image's name the profile's name has.
    folders: usize,
    /// Folders of the profile's name of which nothing says that they are the image's.
    unconfirmed: Option<String>,
}

impl Profiles {
    /// For images of these names.
    pub(crate) fn of_images<'n>(names: impl Iterator<Item = Vec<&'n str>>) -> Self {
        Self { depths: names.map(|name| name.len() - 1).collect(), ..Self::default() }
    }

    /// The row of the profile that names one of these; two where they are named by two.
    pub(crate) fn of_any<'n>(
        &self,
        base: &[&str],
        names: impl Iterator<Item = &'n String>,
    ) -> Result<Option<ProfileMatch>, [usize; 2]> {
        let mut first: Option<ProfileMatch> = None;
        for name in names {
            let Some(at) = self.of(base, &parts(name))? else { continue };
            match &first {
                Some(first) if first.row != at.row => return Err([first.row, at.row]),
                Some(_) => {}
                None => first = Some(at),
            }
        }
        Ok(first)
    }

    pub(crate) fn push(&mut self, name: &[&str], row: usize) {
        if self.some.len() < 3 {
            self.some.push(name.join("/"));
        }
        match self.whole.entry(name.join("/")).or_default() {
            [Some(first), second] if *first != row => *second = second.or(Some(row)),
            [first, _] => *first = Some(row),
        }
        for &depth in self.depths.range(..name.len() - 1) {
            let before = &name[..name.len() - 1 - depth];
            self.ends.entry(end(name, depth)).or_default().push((row, before.join("/")));
            self.known.extend(before.last().map(|folder| (*folder).to_owned()));
        }
    }

    /// The profile of an image of this name in a set in the folders `base`; both rows where there are two.
    pub(crate) fn of(
        &self,
        base: &[&str],
        name: &[&str],
    ) -> std::result::Result<Option<ProfileMatch>, [usize; 2]> {
        let full = [base, name].concat();
        let own = name.len() - 1;
        let exact = |name: &[&str], folders: usize| match self.whole.get(&end(name, folders))? {
            [Some(first), Some(second)] => Some(Err([*first, *second])),
            [first, _] => {
                first.map(|row| Ok(ProfileMatch { row, folders: folders.min(own), unconfirmed: None }))
            }
        };
        (own..full.len())
            .rev()
            .find_map(|folders| exact(&full, folders))
            .or_else(|| self.longer(base, name))
            .or_else(|| (0..own).rev().find_map(|folders| exact(name, folders)))
            .transpose()
    }

    /// Of profiles whose names have more folders than the image's, the one that has most in common with the set's. A set in a
    /// folder that other profiles name has none of these.
    fn longer(&self, base: &[&str], name: &[&str]) -> Option<std::result::Result<ProfileMatch, [usize; 2]>> {
        let candidates = self.ends.get(&name.join("/"))?;
        let in_common = |folders: &str| {
            folders.rsplit('/').zip(base.iter().rev()).take_while(|(one, other)| one == *other).count()
        };
        let most = candidates.iter().map(|(_, folders)| in_common(folders)).max()?;
        if most == 0 && base.last().is_some_and(|folder| self.known.contains(*folder)) {
            return None;
        }
        let mut best = candidates.iter().filter(|(_, folders)| in_common(folders) == most);
        let (row, folders) = best.next()?;
        let unconfirmed = (most == 0 && !base.is_empty()).then(|| folders.clone());
        match best.find(|(other, _)| other != row) {
            Some((other, _)) => Some(Err([*row, *other])),
            None => Some(Ok(ProfileMatch { row: *row, folders: name.len() - 1, unconfirmed })),
        }
    }
}

/// The last part of a name with this many of the folders before it.
fn end(name: &[&str], folders: usize) -> String {
    name[name.len() - 1 - folders..].join("/")
}

/// The columns of these names, in their order, each once.
fn chosen(
    profiles: &Path,
    table: &RecordBatch,
    left_out: &[String],
    columns: &[String],
) -> Result<RecordBatch> {
    let schema = table.schema();
    let mut places: Vec<usize> = vec![];
    for name in columns.iter().map(|name| name.trim()) {
        let place = schema.index_of(name).map_err(|_| no_column(profiles, table, left_out, name, ""))?;
        if !places.contains(&place) {
            places.push(place);
        }
    }
    table.project(&places).map_err(|e| Error::new(profiles, e))
}

/// Most names that are suggested in place of one that is not there.
const MAX_SUGGESTED: usize = 3;
/// Letters of a word that tells which column was meant, at least.
const MIN_WORD_LETTERS: usize = 4;
/// Most names that a message lists.
const MAX_LISTED: usize = 12;

/// The error of a column that the profiles have not, which names those it may have been meant for.
fn no_column(profiles: &Path, table: &RecordBatch, left_out: &[String], name: &str, purpose: &str) -> Error {
    if left_out.iter().any(|other| other == name) {
        let cause = format_args!("column {name:?} holds nothing but nulls, or nested or binary values");
        return Error::new(profiles, cause).hint("such columns cannot stand beside images: leave it out");
    }
    let schema = table.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let wanted = name.to_lowercase();
    let is_part = |part: &str, of: &str| part.len() > 2 && of.contains(part);
    // `FileName_DNA` and `Image_FileName_DAPI` have a word in common.
    let words = |text: &str| -> BTreeSet<String> {
        text.split('_').filter(|word| word.len() >= MIN_WORD_LETTERS).map(str::to_owned).collect()
    };
    let of_wanted = words(&wanted);
    let mut near: Vec<(u8, usize, &str)> = names
        .iter()
        .filter_map(|other| {
            let lower = other.to_lowercase();
            let distance = strsim::osa_distance(&wanted, &lower);
            let rank = if is_part(&wanted, &lower) || is_part(&lower, &wanted) {
                0
            } else if distance <= wanted.chars().count() / 3 {
                1
            } else if !words(&lower).is_disjoint(&of_wanted) {
                2
            } else {
                return None;
            };
            Some((rank, distance, *other))
        })
        .collect();
    near.sort_unstable();
    let near: Vec<String> = near.iter().take(MAX_SUGGESTED).map(|(.., other)| format!("{other:?}")).collect();
    let some = names[..names.len().min(MAX_LISTED)].join(", ");
    let more = if names.len() > MAX_LISTED { " …" } else { "" };
    let there = format!("it has {}: {some}{more}", counted(names.len(), "column"));
    let hint = if near.is_empty() { there } else { format!("is it {}? {there}", near.join(" or ")) };
    Error::new(profiles, format_args!("has no column {name:?}{purpose}")).choice().hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        base: &[&str],
        images: &[&str],
        names: &[&str],
    ) -> Vec<std::result::Result<Option<usize>, [usize; 2]>> {
        let mut rows = Profiles::of_images(images.iter().map(|name| parts(name)));
        names.iter().enumerate().for_each(|(row, name)| rows.push(&parts(name), row));
        images.iter().map(|name| rows.of(base, &parts(name)).map(|at| at.map(|at| at.row))).collect()
    }

    #[test]
    fn folders_that_both_names_have_must_be_the_same() {
        let images = ["P1/a", "P2/a", "P2/only2"];
        let found = |images: &[&str], names: &[&str]| found(&[], images, names);
        assert_eq!(found(&images, &["P1/a.tiff", "P1/only2.tiff"]), [Ok(Some(0)), Ok(None), Ok(None)]);
        assert_eq!(found(&images, &["P1/a.tiff", "P2/a.tiff"]), [Ok(Some(0)), Ok(Some(1)), Ok(None)]);
        assert_eq!(found(&images, &["a.tiff", "P2/a.tiff"]), [Ok(Some(0)), Ok(Some(1)), Ok(None)]);
        assert_eq!(found(&images, &["C:\\data\\P1\\a.TIF"]), [Ok(Some(0)), Ok(None), Ok(None)]);
        assert_eq!(found(&images, &["/x/P1/a.tif", "/y/P1/a.tif"])[0], Err([0, 1]));
        assert_eq!(found(&["a"], &["P1/a.tif", "P2/a.tif"]), [Err([0, 1])]);
        assert_eq!(found(&["./a.tif", "b"], &["a", "other/./b.png"]), [Ok(Some(0)), Ok(Some(1))]);
    }

    #[test]
    fn the_folders_of_the_set_tell_plates_apart() {
        let both = ["P1/a.tif", "P2/a.tif"];
        assert_eq!(found(&["data", "P2"], &["a"], &both), [Ok(Some(1))]);
        assert_eq!(found(&["data", "P1"], &["a"], &["/far/P1/a.tif", "/far/P2/a.tif"]), [Ok(Some(0))]);
        assert_eq!(found(&["data", "P3"], &["a"], &both), [Err([0, 1])]);
        // P2 is a plate that the profiles know, and none of them is of this image.
        assert_eq!(found(&["data", "P2"], &["a"], &["P1/a.tif", "P2/b.tif"]), [Ok(None)]);
        let place = |base: &[&str], name: &str| {
            let mut rows = Profiles::of_images(std::iter::once(vec!["a"]));
            rows.push(&parts(name), 0);
            rows.of(base, &["a"]).unwrap().unwrap().unconfirmed
        };
        assert_eq!(place(&["data", "P2"], "x/P1/a.tif"), Some("x/P1".to_owned()));
        assert_eq!(place(&["data", "P1"], "x/P1/a.tif"), None);
        assert_eq!(place(&["data", "P1"], "a.tif"), None);
        assert_eq!(place(&[], "P1/a.tif"), None, "a table lies in no folder of images");
    }
}
