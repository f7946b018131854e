//! Feature columns: plain values that stand beside images, such as well, compound or a morphology profile.
//!
//! ```text
//!  Store::features ─┐
//!                   ├─ beside ─▶ WriteOptions::features ─▶ columns of the table that is written
//!  PROFILES ─ join ─┘
//! ```
//!
//! They are read whole, a row per image in the images' order, and carried through conversion. [`join`] looks each
//! image's name up in a table of profiles, as CellProfiler's image tables have file names.

mod durations;

pub(crate) use durations::with_durations;
pub use durations::{durations, has_durations, without_durations};

use crate::ome_arrow::{is_plain, other_columns, plain_columns, text};
use crate::parquet::read_plain_columns;
use crate::words::counted;
use crate::{Error, Result, Store};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array, downcast_primitive_array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use wellread_image::ome_arrow::{COLUMN, ROW_ID};

/// Feature columns: a row per image.
pub type FeatureColumns = RecordBatch;

/// How many images a join found profiles for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Images with a profile.
    pub matched: usize,
    /// All images.
    pub images: usize,
    /// Feature columns that were added.
    pub columns: usize,
    /// Names of the profiles' columns that were not: see [`Store::columns_left_out`].
    pub left_out: Vec<String>,
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
/// some, only those are, in that order.
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
    let (table, mut left_out) = read_plain_columns(profiles)?;
    let images: Vec<String> = (0..source.len()).map(|row| source.name(row)).collect::<Result<_>>()?;
    let namesakes = Namesakes::of(source, &images)?;
    let none = || Profiles::of_images(images.iter().map(|name| parts(name)));
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
        let at = if let Some([full, other]) = namesakes.images.get(&image) {
            let at = whole.of(&base, &full_parts(full));
            if at == Ok(None)
                && let Ok(Some(Place { row, .. })) | Err([row, _]) = loose.of(&base, &parts(name))
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
        table
    } else {
        let all_left_out = std::mem::take(&mut left_out);
        chosen(profiles, &table, &all_left_out, columns)?
    };
    let joined = Joined {
        matched,
        images: found.len(),
        columns: table.num_columns(),
        left_out,
        shared: spread.shared,
        elsewhere,
    };
    let rows = taken(&table, found).map_err(|e| Error::new(profiles, e))?;
    Ok((rows, joined))
}

/// Images of a set that only the endings of their names tell apart, such as `a.tif` and `a.tiff`.
#[derive(Default)]
struct Namesakes {
    /// By their rows: the whole name, and that of another one.
    images: HashMap<usize, [String; 2]>,
    /// The last parts of their whole names.
    files: HashSet<String>,
}

impl Namesakes {
    fn of(source: &dyn Store, images: &[String]) -> Result<Self> {
        let mut alike: HashMap<String, Vec<usize>> = HashMap::new();
        for (row, name) in images.iter().enumerate() {
            alike.entry(parts(name).join("/")).or_default().push(row);
        }
        let mut found = Self::default();
        for rows in alike.into_values().filter(|rows| rows.len() > 1) {
            let names: Vec<String> =
                rows.iter().map(|&row| full_name(source, row, &images[row])).collect::<Result<_>>()?;
            // Images of the very same name are told apart by nothing: they share a profile.
            let first = &names[0];
            let Some(other) = names.iter().find(|name| *name != first) else { continue };
            for (row, name) in rows.iter().zip(&names) {
                found.files.extend(full_parts(name).last().map(|file| (*file).to_owned()));
                let another = if name == first { other } else { first };
                found.images.insert(*row, [name.clone(), another.clone()]);
            }
        }
        Ok(found)
    }
}

/// The name of an image with the ending of its file, where it has a file of that name.
fn full_name(source: &dyn Store, row: usize, name: &str) -> Result<String> {
    let mut parts = full_parts(name);
    let last = parts.pop().unwrap_or(name);
    if stem(last) != last || is_table(source) {
        return Ok(name.to_owned());
    }
    // The first of several lies in a folder of that name (OME-Zarr).
    let files = source.files_of(&[row])?;
    let above = files.iter().take(1).flat_map(|file| file.ancestors());
    let file =
        above.filter_map(|path| path.file_name()?.to_str()).find(|file| *file != last && stem(file) == last);
    parts.push(file.unwrap_or(last));
    Ok(parts.join("/"))
}

/// Whether a set is a table, whose images have no files of their own.
fn is_table(source: &dyn Store) -> bool {
    crate::registry::formats().iter().any(|f| f.name == source.format() && f.keeps_features)
}

/// The folders that a folder of images lies in, itself last; of a table none.
fn folders_of(source: &dyn Store) -> Vec<String> {
    let path = std::path::absolute(source.path()).unwrap_or_default();
    if is_table(source) || !path.is_dir() {
        return vec![];
    }
    path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
}

/// The rows of profiles by the names in them.
#[derive(Default)]
struct Profiles {
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
struct Place {
    row: usize,
    /// How many folders of the image's name the profile's name has.
    folders: usize,
    /// Folders of the profile's name of which nothing says that they are the image's.
    unconfirmed: Option<String>,
}

impl Profiles {
    /// For images of these names.
    fn of_images<'n>(names: impl Iterator<Item = Vec<&'n str>>) -> Self {
        Self { depths: names.map(|name| name.len() - 1).collect(), ..Self::default() }
    }

    fn push(&mut self, name: &[&str], row: usize) {
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
    fn of(&self, base: &[&str], name: &[&str]) -> std::result::Result<Option<Place>, [usize; 2]> {
        let full = [base, name].concat();
        let own = name.len() - 1;
        let exact = |name: &[&str], folders: usize| match self.whole.get(&end(name, folders))? {
            [Some(first), Some(second)] => Some(Err([*first, *second])),
            [first, _] => first.map(|row| Ok(Place { row, folders: folders.min(own), unconfirmed: None })),
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
    fn longer(&self, base: &[&str], name: &[&str]) -> Option<std::result::Result<Place, [usize; 2]>> {
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
            None => Some(Ok(Place { row: *row, folders: name.len() - 1, unconfirmed })),
        }
    }
}

/// The last part of a name with this many of the folders before it.
fn end(name: &[&str], folders: usize) -> String {
    name[name.len() - 1 - folders..].join("/")
}

/// Folders, and what is in them.
fn full_parts(name: &str) -> Vec<&str> {
    let is_folder = |part: &&str| !part.is_empty() && *part != ".";
    let mut parts: Vec<&str> = name.split(['/', '\\']).collect();
    let last = parts.pop().unwrap_or(name);
    parts.retain(is_folder);
    parts.push(last);
    parts
}

/// As [`full_parts`], without the ending of a file.
fn parts(name: &str) -> Vec<&str> {
    let mut parts = full_parts(name);
    let last = parts.pop().unwrap_or(name);
    parts.push(stem(last));
    parts
}

/// Profiles that went to images of different folders.
#[derive(Default)]
struct Spread {
    first: HashMap<usize, String>,
    shared: Option<[String; 2]>,
}

impl Spread {
    /// The profile of row `row` goes to this image, of whose folders it names so many.
    fn see(&mut self, row: usize, folders: usize, image: &str) {
        if self.shared.is_some() || parts(image).len() - 1 == folders {
            return;
        }
        match self.first.get(&row) {
            Some(other) if other != image => self.shared = Some([other.clone(), image.to_owned()]),
            Some(_) => (),
            None => drop(self.first.insert(row, image.to_owned())),
        }
    }
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
const SUGGESTED: usize = 3;
/// Letters of a word that tells which column was meant, at least.
const WORD: usize = 4;
/// Most names that a message lists.
const LISTED: usize = 12;

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
        text.split('_').filter(|word| word.len() >= WORD).map(str::to_owned).collect()
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
    let near: Vec<String> = near.iter().take(SUGGESTED).map(|(.., other)| format!("{other:?}")).collect();
    let some = names[..names.len().min(LISTED)].join(", ");
    let more = if names.len() > LISTED { " …" } else { "" };
    let there = format!("it has {}: {some}{more}", counted(names.len(), "column"));
    let hint = if near.is_empty() { there } else { format!("is it {}? {there}", near.join(" or ")) };
    Error::new(profiles, format_args!("has no column {name:?}{purpose}")).choice().hint(hint)
}

/// The batch with its plain columns that are kept as a dictionary (pandas' and polars' categories) as values: what follows
/// knows those only. `None` where it has no such column.
///
/// # Errors
/// Keys that are not in their dictionary.
pub fn without_dictionaries(batch: &RecordBatch) -> Result<Option<RecordBatch>, ArrowError> {
    let is_category = |t: &DataType| matches!(t, DataType::Dictionary(_, values) if is_plain(values));
    if !batch.schema_ref().fields().iter().any(|field| is_category(field.data_type())) {
        return Ok(None);
    }
    let (mut fields, mut columns) = (vec![], vec![]);
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let column = if is_category(field.data_type()) {
            let dictionary = column.as_any_dictionary();
            arrow_select::take::take(dictionary.values(), dictionary.keys(), None)?
        } else {
            column.clone()
        };
        fields.push(field.as_ref().clone().with_data_type(column.data_type().clone()).with_nullable(true));
        columns.push(column);
    }
    let schema = Schema::new_with_metadata(fields, batch.schema().metadata().clone());
    RecordBatch::try_new(Arc::new(schema), columns).map(Some)
}

/// The columns of both batches, of which each is a row per image. Where a name is in both, the second batch's column
/// is left out if it is `key`-like (the same values), and renamed otherwise, as is one with a name that every written
/// table has itself.
///
/// # Errors
/// Batches of different lengths.
pub fn beside(path: &Path, first: Option<&RecordBatch>, second: &RecordBatch) -> Result<RecordBatch> {
    let (mut fields, mut columns) = match first {
        Some(first) => (first.schema().fields().to_vec(), first.columns().to_vec()),
        None => (vec![], vec![]),
    };
    for (field, column) in second.schema().fields().iter().zip(second.columns()) {
        let renamed = || Arc::new(field.as_ref().clone().with_name(format!("{}_y", field.name())));
        match fields.iter().position(|f| f.name() == field.name()) {
            Some(i) if columns[i].to_data() == column.to_data() => continue,
            Some(_) => fields.push(renamed()),
            // Names of columns that a written table has itself.
            None if [ROW_ID, COLUMN].contains(&field.name().as_str()) => fields.push(renamed()),
            None => fields.push(Arc::clone(field)),
        }
        columns.push(Arc::clone(column));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .map_err(|e| Error::new(path, format_args!("cannot put feature columns side by side: {e}")))
}

/// All feature columns of a store; `None` where it has none.
///
/// # Errors
/// Columns that cannot be read.
pub fn all(store: &dyn Store) -> Result<Option<FeatureColumns>> {
    store.features(&store.feature_names())
}

/// Feature columns of `inner` for a view of it at rows `rows`; `None` stands for a row of nulls.
pub(crate) fn of_rows(
    inner: &dyn Store,
    names: &[String],
    rows: impl IntoIterator<Item = Option<u64>>,
) -> Result<Option<FeatureColumns>> {
    let Some(columns) = inner.features(names)? else { return Ok(None) };
    taken(&columns, rows).map(Some).map_err(|e| Error::new(inner.path(), e))
}

/// Chosen rows of feature columns; `None` gives nulls.
fn taken(
    batch: &RecordBatch,
    rows: impl IntoIterator<Item = Option<u64>>,
) -> std::result::Result<RecordBatch, ArrowError> {
    let rows: UInt64Array = rows.into_iter().collect();
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        columns.push(arrow_select::take::take(column, &rows, None)?);
        fields.push(field.as_ref().clone().with_nullable(true));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// One batch of several with the same columns: those of `names`, in a form that every engine takes.
pub(crate) fn gathered(path: &Path, batches: &[RecordBatch], names: &[String]) -> Result<RecordBatch> {
    let whole = || -> std::result::Result<RecordBatch, ArrowError> {
        let mut fields = vec![];
        let mut columns = vec![];
        for name in names {
            let parts: Vec<&dyn Array> =
                batches.iter().filter_map(|b| b.column_by_name(name)).map(AsRef::as_ref).collect();
            let column = plain_text(arrow_select::concat::concat(&parts)?);
            fields.push(Field::new(name, column.data_type().clone(), true));
            columns.push(column);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    };
    whole().map_err(|e| Error::new(path, format_args!("cannot read the feature columns: {e}")))
}

/// Text of any kind as plain strings; other columns as they are.
fn plain_text(column: ArrayRef) -> ArrayRef {
    if matches!(column.data_type(), DataType::LargeUtf8 | DataType::Utf8View) {
        let strings = (0..column.len()).map(|i| text(&column, i));
        return Arc::new(strings.collect::<arrow_array::StringArray>());
    }
    column
}

/// The columns of `schema` that are features: see [`plain_columns`]; names that a written table has itself are left out.
pub(crate) fn names(schema: &Schema, image: &str) -> Vec<String> {
    let own = [ROW_ID, COLUMN, image];
    plain_columns(schema).filter(|n| !own.contains(n)).map(str::to_owned).collect()
}

/// The columns of `schema` that are neither features nor the image nor the row number: other columns of images too, also where
/// one has the name of a written table's own.
pub(crate) fn left_out(schema: &Schema, image: &str) -> Vec<String> {
    let own = [ROW_ID, image];
    other_columns(schema).filter(|n| !own.contains(n)).map(str::to_owned).collect()
}

/// A name without folders and without the ending of a file.
pub(crate) fn stem(name: &str) -> &str {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let lower = name.to_ascii_lowercase();
    for ending in [".ome.tiff", ".ome.tif", ".ome.zarr", ".tiff", ".tif", ".png", ".jpeg", ".jpg", ".zarr"] {
        if lower.ends_with(ending) && lower.len() > ending.len() {
            return &name[..name.len() - ending.len()];
        }
    }
    name
}

/// One text per row for the values of `columns` in it: equal where all of them are equal. Nulls are equal to each
/// other and to nothing else.
///
/// # Errors
/// A set without such columns.
pub fn keys(source: &dyn Store, columns: &[String]) -> Result<Vec<String>> {
    if columns.is_empty() {
        return Err(Error::new(source.path(), "no column was given to group by").hint("give at least one"));
    }
    let there = source.feature_names();
    if let Some(name) = columns.iter().find(|name| !there.contains(name)) {
        let error = Error::new(source.path(), format_args!("has no column {name:?} to group by"));
        return Err(match there.as_slice() {
            [] => error.hint("it has no columns beside the images: `wellread convert --join` adds them"),
            names => error.hint(format_args!(
                "it has {} beside the images: {}{}",
                counted(names.len(), "column"),
                names[..names.len().min(12)].join(", "),
                if names.len() > 12 { " …" } else { "" }
            )),
        });
    }
    let table = source.features(columns)?;
    let columns = table.as_ref().map_or(&[][..], RecordBatch::columns);
    let rows = table.as_ref().map_or(0, RecordBatch::num_rows);
    if rows != source.len() {
        let images = source.len();
        return Err(Error::new(source.path(), format_args!("columns of {rows} rows beside {images} images")));
    }
    let key = |row| {
        let values = columns.iter().map(|column| key_at(column, row).unwrap_or_else(|| NULL.to_owned()));
        // Separated by what no name has, so that "a", "bc" differs from "ab", "c".
        values.collect::<Vec<_>>().join("\u{1f}")
    };
    Ok((0..source.len()).map(key).collect())
}

/// What stands for a null in [`keys`].
const NULL: &str = "\0";

/// A plain value as text; `None` where there is none.
fn key_at(column: &ArrayRef, row: usize) -> Option<String> {
    if column.is_null(row) {
        return None;
    }
    let array: &dyn Array = column;
    downcast_primitive_array!(
        array => Some(format!("{:?}", array.value(row))),
        DataType::Boolean => Some(array.as_boolean().value(row).to_string()),
        _ => text(array, row).map(str::to_owned)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, StringArray};

    #[test]
    fn names_are_compared_without_folder_and_ending() {
        assert_eq!(stem("plate/A01.ome.tiff"), "A01");
        assert_eq!(stem("C:\\x\\A01.TIF"), "A01");
        assert_eq!(stem("A.01"), "A.01");
        assert_eq!(stem(".tif"), ".tif");
    }

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

    #[test]
    fn a_profile_that_goes_to_several_folders_is_seen() {
        let mut spread = Spread::default();
        spread.see(0, 1, "P1/a");
        spread.see(0, 1, "P2/a");
        assert_eq!(spread.shared, None, "their folders were compared");
        spread.see(1, 0, "P1/a");
        spread.see(1, 0, "P1/a");
        assert_eq!(spread.shared, None, "the same name");
        spread.see(1, 0, "P2/a");
        assert_eq!(spread.shared, Some(["P1/a".to_owned(), "P2/a".to_owned()]));
    }

    #[test]
    fn batches_stand_side_by_side() {
        let batch = |columns: Vec<(&str, ArrayRef)>| RecordBatch::try_from_iter(columns).unwrap();
        let ints = |v: [i64; 2]| Arc::new(Int64Array::from(v.to_vec())) as ArrayRef;
        let text = Arc::new(StringArray::from(vec!["x", "y"])) as ArrayRef;
        let first = batch(vec![("a", ints([1, 2])), ("b", ints([3, 4]))]);
        let second = batch(vec![("a", ints([1, 2])), ("b", ints([5, 6])), ("c", text)]);
        let both = beside(Path::new("f"), Some(&first), &second).unwrap();
        let schema = both.schema();
        let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(names, ["a", "b", "b_y", "c"]);
        let key = |column: ArrayRef, row| key_at(&column, row);
        assert_eq!(key(Arc::new(arrow_array::Float32Array::from(vec![0.5])), 0).as_deref(), Some("0.5"));
        assert_eq!(key(Arc::new(arrow_array::BooleanArray::from(vec![true])), 0).as_deref(), Some("true"));
        assert_eq!(key(Arc::new(StringArray::from(vec![None, Some("a")])), 0), None);
        let some = taken(&second, [Some(1), None]).unwrap();
        assert!(some.column(2).is_null(1));
        assert_eq!(key_at(some.column(1), 0).as_deref(), Some("6"));
    }
}
