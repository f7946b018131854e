//! Columns beside the images: those of the source, and of a table of profiles joined to them.

use crate::output::{Failure, Outcome, Ui};
use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;
use wellread_store::features::{self, FeatureColumns};
use wellread_store::surface::option;
use wellread_store::words::{counted, counted_with, first_few};
use wellread_store::{Error, Format, LeftOut, Renamed, Store, profiles, registry};

/// The columns that are written beside the images.
pub(super) struct Features {
    /// Feature columns, a row per image.
    pub columns: Option<FeatureColumns>,
    /// The result of --join.
    pub joined: Option<profiles::Joined>,
    /// Columns that are of no kind that is taken along, or that the target has no place for.
    pub left_out: Vec<LeftOut>,
    /// Columns that go along under another name than they have.
    pub renamed: Vec<Renamed>,
    /// Notes about them.
    pub notes: Vec<Note>,
}

/// A line to print once the target can be written.
pub(super) enum Note {
    Say(String),
    /// A loss or change.
    Warn(String),
}

impl Note {
    /// Prints it.
    pub fn print(self, ui: Ui) {
        match self {
            Self::Say(text) => ui.say(text),
            Self::Warn(text) => ui.warn(text),
        }
    }
}

/// Treatment of images without a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum JoinUnmatched {
    /// Their columns are empty, which is told.
    #[default]
    Null,
    /// They are an error.
    Error,
}

pub(super) fn parse_join_unmatched(text: &str) -> Result<JoinUnmatched, String> {
    match text {
        "null" => Ok(JoinUnmatched::Null),
        "error" => Ok(JoinUnmatched::Error),
        _ => Err(format!("{text:?} is none of null and error")),
    }
}

/// The profiles that are to be joined: --join, --on, --columns, --join-unmatched.
pub(super) struct Joining<'a> {
    /// The table.
    pub profiles: &'a Path,
    /// Its columns of image names, separated by commas.
    pub on: &'a str,
    /// The columns to take, if some are named.
    pub columns: &'a [String],
    /// Treatment of images that it has no row for.
    pub unmatched: JoinUnmatched,
}

impl Joining<'_> {
    /// As text, for another process.
    pub fn document(&self) -> Outcome<serde_json::Value> {
        let profiles = self.profiles.to_str().ok_or_else(|| {
            let profiles = self.profiles.display();
            let cause = "a path for a cluster must be UTF-8 text (hint: rename it)";
            Failure::Failed(format!("{profiles}: {cause}"))
        })?;
        Ok(serde_json::json!({ "profiles": profiles, "on": self.on, "columns": self.columns }))
    }
}

/// Feature columns of the source and of the profiles joined to them, as far as a target of a format keeps them. Those of `without` are
/// left out: they are values of `--without-column`.
pub(super) fn features_of(
    source: &dyn Store,
    without: &[String],
    joining: Option<&Joining<'_>>,
    format: &Format,
) -> Outcome<Features> {
    let is_kept = format.keeps_columns();
    let without = &columns_of(source, without, joining)?;
    let mut own = own_columns(source, without)?;
    let mut joined = None;
    let mut notes = vec![];
    let mut unsupported = vec![];
    let mut left_out = source.hints().columns_left_out();
    left_out.retain(|column| !without.contains(&column.name));
    let mut renamed = source.hints().columns_renamed();
    renamed.retain(|column| !without.contains(&column.to));
    if let Some(&Joining { profiles, on, columns, unmatched }) = joining {
        if !is_kept {
            return Err(Failure::Usage(cannot_join(format)));
        }
        let joined_now = profiles::join_without(source, profiles, (on, columns), without);
        let (batch, found) = joined_now.map_err(with_hint_to_omit)?;
        let alone = found.images_alone.count;
        if alone > 0 && unmatched == JoinUnmatched::Error {
            let (of, names) = (counted(found.images, "image"), found.images_alone.named());
            let cause = format!("has no row for {alone} of {of}: {names}");
            let hint = "--join-unmatched null leaves its columns empty there";
            return Err(Error::new(profiles, cause).hint(hint).choice().into());
        }
        let (both, others) = features::beside(profiles, own.as_ref(), &batch)?;
        own = Some(both);
        renamed.extend(found.renamed.iter().cloned().chain(others));
        notes.extend(notes_of_join(&found, profiles, source));
        left_out.extend(found.left_out.iter().cloned());
        joined = Some(found);
    } else if let Some(columns) = own.as_ref().filter(|_| !is_kept) {
        let names = columns.schema().fields().iter().map(|field| field.name().clone()).collect();
        unsupported = unsupported_columns(source.format(), names, format);
        notes.extend(unsupported_note(&unsupported, format).map(|told| Note::Warn(format!("note: {told}"))));
        own = None;
    }
    // They are known now that columns are read. Here they have the names of the source.
    let mut mixed = source.hints().columns_in_utc();
    mixed.retain(|name| own.as_ref().is_some_and(|own| own.column_by_name(name).is_some()));
    if let Some(columns) = own.take() {
        let named = features::renamed(&columns, &format.own_columns);
        let (columns, others) = named.map_err(|e| Error::new(source.path(), e))?;
        own = Some(columns);
        for name in &mut mixed {
            if let Some(other) = others.iter().find(|other| other.from == *name) {
                name.clone_from(&other.to);
            }
        }
        renamed.extend(others);
    } else {
        renamed.clear();
    }
    if !renamed.is_empty() {
        let names = renamed.iter().map(|column| format!("{} is now {}", shown(&column.from), column.to));
        notes.push(Note::Warn(format!(
            "note: columns are renamed where another one has their name, or {} has such a column itself or can have none: {}",
            format.name,
            names.collect::<Vec<_>>().join(", ")
        )));
    }
    if !mixed.is_empty() {
        let columns = mixed.join(", ");
        notes.push(Note::Warn(format!(
            "note: parts have different zones, and the times become UTC: {columns}"
        )));
    }
    notes.extend(own.iter().flat_map(|columns| notes_of_types(columns, format)));
    if !left_out.is_empty() {
        let words = features::left_out_in_words(&left_out);
        notes.push(Note::Warn(format!("note: columns are left out: {words}")));
    }
    // The command was told to.
    left_out.extend(without.iter().map(|name| LeftOut { name: name.clone(), why: "as was asked for" }));
    // The note above has told of them.
    left_out.extend(unsupported.into_iter().map(|name| LeftOut { name, why: "no place in the target" }));
    Ok(Features { columns: own, joined, left_out, renamed, notes })
}

/// The notes of a join: how many images have a profile, and which rows and images have found none.
fn notes_of_join(found: &profiles::Joined, profiles: &Path, source: &dyn Store) -> Vec<Note> {
    let mut notes = vec![Note::Say(format!(
        "{} of {} a profile; {} put beside them",
        found.matched,
        counted_with(found.images, "image", ["has", "have"]),
        counted_with(found.columns, "column", ["is", "are"])
    ))];
    let alone = found.images_alone.count;
    if alone > 0 {
        let images = counted_with(alone, "image", ["has", "have"]);
        let names = found.images_alone.named();
        notes.push(Note::Warn(format!(
            "warning: {images} no row in {}, and nulls in its columns: {names} (--join-unmatched error refuses that)",
            profiles.display()
        )));
    }
    if found.profiles_alone.count > 0 {
        let rows = counted_with(found.profiles_alone.count, "row", ["is", "are"]);
        let (names, table) = (found.profiles_alone.named(), profiles.display());
        notes.push(Note::Warn(format!("warning: {table}: {rows} of no image of this set: {names}")));
    }
    if let Some(name) = &found.other_folder {
        notes.push(Note::Warn(format!(
            "note: profiles name folders that {} does not lie in, such as {name}: the rest of the names \
             matched. If these are other images of the same names, the columns are wrong",
            source.path().display()
        )));
    }
    notes
}

/// The notes on columns of types that a format has no place for, and keeps in another way.
fn notes_of_types(columns: &FeatureColumns, format: &Format) -> Vec<Note> {
    let mut found: Vec<(Vec<String>, &str)> = vec![];
    if !format.keeps_durations {
        let numbers = features::durations(columns).map(|(name, unit)| {
            let unit = format!("{unit:?}s").to_lowercase();
            format!("{name} ({unit})")
        });
        found.push((numbers.collect(), "has no durations; they are kept as whole numbers"));
    }
    if !format.keeps_zoned_nanoseconds {
        let cut = features::zoned_nanoseconds(columns);
        found.push((cut, "has times with a zone in microseconds; their nanoseconds are cut off"));
    }
    if !format.keeps_zones {
        let zones = features::zones(columns).map(|(name, zone)| format!("{name} ({zone})"));
        found.push((zones.collect(), "keeps no zones; the times are the same moments in UTC"));
    }
    let told = found.into_iter().filter(|(columns, _)| !columns.is_empty());
    told.map(|(columns, what)| Note::Warn(format!("note: {} {what}: {}", format.name, columns.join(", "))))
        .collect()
}

/// A column's name in a note: one of nothing, or of spaces alone, is in quotes.
fn shown(name: &str) -> Cow<'_, str> {
    if name.trim().is_empty() { Cow::Owned(format!("{name:?}")) } else { Cow::Borrowed(name) }
}

/// Most columns of a joined table that a message lists.
const MAX_LISTED: usize = 12;

/// The columns that values of `--without-column` name, of the source and of the profiles.
fn columns_of(source: &dyn Store, values: &[String], joining: Option<&Joining<'_>>) -> Outcome<Vec<String>> {
    if values.is_empty() {
        return Ok(vec![]);
    }
    let beside = source.hints().feature_names();
    let others = source.hints().columns_left_out().into_iter().map(|column| column.name);
    let joined = joining.map_or_else(|| Ok(vec![]), |joining| profiles::column_names(joining.profiles))?;
    let there: Vec<String> = beside.iter().cloned().chain(others).chain(joined.iter().cloned()).collect();
    let named = names_of(values, &there);
    if let Some(name) = named.iter().find(|name| !there.contains(name)) {
        let mut known = if beside.is_empty() { "none".to_owned() } else { beside.join(", ") };
        if let Some(joining) = joining {
            let some = first_few(&joined, MAX_LISTED);
            let _ = write!(known, "; columns of {}: {some}", joining.profiles.display());
        }
        let error = Error::new(source.path(), format_args!("has no column {name:?}")).choice();
        return Err(error.hint(format_args!("columns beside its images: {known}")).into());
    }
    Ok(named)
}

/// The names in values of an option: a value is one name where that is one of `there`, else it has names between commas. `\0` stands
/// for a NUL byte where a name has one.
fn names_of(values: &[String], there: &[String]) -> Vec<String> {
    let known = |text: &str| {
        let exact = there.iter().find(|name| *name == text);
        exact.or_else(|| there.iter().find(|name| features::without_nul(name) == text))
    };
    let mut names: Vec<String> = vec![];
    for value in values {
        let parts: Vec<&str> =
            if known(value).is_some() { vec![value.as_str()] } else { value.split(',').collect() };
        for part in parts {
            let name = known(part).map_or_else(|| part.trim(), String::as_str);
            if names.iter().all(|other| other != name) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// The columns beside the source's images, but those of `without`, which are not read.
fn own_columns(source: &dyn Store, without: &[String]) -> Outcome<Option<FeatureColumns>> {
    let mut names = source.hints().feature_names();
    names.retain(|name| !without.contains(name));
    source.hints().features(&names).map_err(|error| Failure::from(with_hint_to_omit(error)))
}

/// The error of columns that cannot be read, with the option that leaves out the one that it names.
fn with_hint_to_omit(error: Error) -> Error {
    let option = option("without_column").to_string();
    let is_told = error.hint_text().is_some_and(|hint| hint.contains(&option));
    if is_told || error.column_name().is_none() {
        return error;
    }
    error.or_hint(format_args!("convert without the column: {option} COLUMN"))
}

/// Why no profiles can be joined into a target that keeps no columns, with the formats that do.
fn cannot_join(format: &Format) -> String {
    let can = registry::formats().iter().filter(|f| f.keeps_columns()).map(|f| f.name);
    let can = can.collect::<Vec<_>>().join(", ");
    format!("--join needs a format with columns beside the images: {can} ({} has none)", format.name)
}

/// Those of these columns of a source, which is of a format of this name, that a target has no place for. Where both are of one
/// format, names of images may tell some again, as the classes of an image folder.
pub(in crate::commands) fn unsupported_columns(
    source: &str,
    mut names: Vec<String>,
    format: &Format,
) -> Vec<String> {
    if format.keeps_columns() {
        return vec![];
    }
    if source == format.name {
        let all = names.clone();
        names.retain(|name| !(format.names_tell)(name, &all));
    }
    names
}

/// Says that a format leaves these columns out; `None` where there are none.
pub(in crate::commands) fn unsupported_note(names: &[String], format: &Format) -> Option<String> {
    names.first().map(|first| {
        let columns = counted(names.len(), "column");
        format!(
            "{} has no place for columns beside the images and leaves out {columns} ({first} …)",
            format.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::known_format;
    use super::*;

    #[test]
    fn values_are_whole_names_or_names_between_commas() {
        let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let there = texts(&["a", "b", "c,d", " e", "", "n\0m", r"t\0", "t\0"]);
        for (values, expected) in [
            (&["a"][..], &["a"][..]),
            (&["a,b"], &["a", "b"]),
            (&["c,d"], &["c,d"]),
            (&["a, b", "c,d", "a"], &["a", "b", "c,d"]),
            // Two columns of which neither is there, so that the error names the first.
            (&["c,x"], &["c", "x"]),
            (&["a, e"], &["a", " e"]),
            (&[""], &[""]),
            (&[r"n\0m,a"], &["n\0m", "a"]),
            (&[r"t\0"], &[r"t\0"]),
        ] {
            assert_eq!(names_of(&texts(values), &there), texts(expected), "{values:?}");
        }
    }

    #[test]
    fn only_errors_of_a_column_have_a_way_on() {
        let way = |error: Error| with_hint_to_omit(error).hint_text().map(str::to_owned);
        let of_text = Error::new("a.parquet", "the column \"x\" is not there");
        assert_eq!(way(of_text), None, "the words tell nothing");
        let told = way(Error::new("a.parquet", "bad values").column("x")).unwrap();
        assert!(told.starts_with("convert without the column: ") && told.ends_with(" COLUMN"), "{told}");
        let hint = format!("leave it out ({})", option("without_column"));
        assert_eq!(way(Error::new("a.parquet", "bad").column("x").hint(&hint)), Some(hint), "it is told");
    }

    #[test]
    fn formats_that_keep_columns_are_named() {
        let why = cannot_join(known_format("tiff").unwrap());
        assert!(why.contains("ome-zarr") && why.contains("parquet"), "{why}");
        assert!(why.ends_with("(tiff has none)"), "{why}");
    }
}
