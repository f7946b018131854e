//! The definition of a storage format, and the list of all formats.
//!
//! ```text
//!  registry: FORMAT, FORMAT, …  ┐
//!  other crates: FORMAT         ├─ collected by the linker ─▶ formats() ─▶ readers and writers that look for others' files
//!  absent_format!               ┘
//! ```
//!
//! A [`Format`] is a value of functions: how to know files of it, open and create them. Formats use this module, and it
//! knows none of them. A format that lists a folder asks here what the other files in it are ([`foreign_format`]), and
//! [`crate::staged`] what may be replaced. Opening by name or content is [`crate::registry`]'s.

use crate::probe::Probe;
use crate::surface::option_as;
use crate::write::owned;
use crate::{Error, Result, Store, StoreWriter, WriteOptions, suggested};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;

/// Options of opening.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Format name when content alone should not decide.
    pub format: Option<String>,
    /// Multiscale level (OME-Zarr), 0 is full resolution.
    pub level: usize,
    /// Table name (databases).
    pub table: Option<String>,
    /// Name of the image column (tables); `None` finds it.
    pub column: Option<String>,
    /// The layout that makes images of the files of a folder ([`crate::sites`]), by its name. `files` makes an image of
    /// each file. `None` recognises a layout by the names, unless a format is named.
    pub layout: Option<String>,
    /// A pattern of file names, instead of a layout.
    pub pattern: Option<String>,
    /// The treatment of images that lack some of their files.
    pub missing: Missing,
    /// The treatment of files whose names the requested layout or pattern does not fit.
    pub unmatched: Unmatched,
    /// Beginnings of paths in a table of files, each with what it is here. A relative one begins at the folder of the table.
    pub path_map: Vec<(String, String)>,
}

/// The treatment of an image that lacks some of its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// It is a row, and reading it is an error that names what is missing.
    #[default]
    Error,
    /// It is no row.
    Skip,
    /// Pixels of what is missing are 0.
    Zero,
}

/// The treatment of a file whose name does not fit, or of a cell that cannot be cut out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unmatched {
    /// An error that names it, or counts them and names the first few.
    #[default]
    Error,
    /// It is left out.
    Skip,
}

impl FromStr for Missing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "error" => Ok(Self::Error),
            "skip" => Ok(Self::Skip),
            "zero" => Ok(Self::Zero),
            _ => Err(format!("{text:?} is none of error, skip and zero")),
        }
    }
}

impl FromStr for Unmatched {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "error" => Ok(Self::Error),
            "skip" => Ok(Self::Skip),
            _ => Err(format!("{text:?} is neither error nor skip")),
        }
    }
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Skip => "skip",
        })
    }
}

/// How parts of a table become one table, whose rows are not written again.
#[derive(Clone, Copy)]
pub struct JoinParts {
    /// Makes a table of the parts, in their order, at a path where none is. Their files move there. It is `false`, and nothing
    /// has moved, where the parts have unlike columns.
    pub join: fn(parts: &[PathBuf], target: &Path) -> Result<bool>,
    /// Moves back to the parts what an interrupted `join` has moved to the path, and removes the rest there.
    pub undo: fn(parts: &[PathBuf], target: &Path) -> Result<()>,
}

/// One storage format: its name, how to know it, open it and create it.
pub struct Format {
    /// Name as in `--formats`, such as `parquet`.
    pub name: &'static str,
    /// One line for help texts.
    pub about: &'static str,
    /// Endings, in lower case, of names of files and folders in this format, such as `.tif`; empty for a second
    /// reader of another's files.
    pub endings: &'static [&'static str],
    /// The suffix of the name of a generated set, such as `.parquet`; empty for a bare folder.
    pub set_ending: &'static str,
    /// Whether what has one of the endings is a folder, in most cases.
    pub is_folder: bool,
    /// Whether a path with one of the endings holds images, where that is not so of all (tables). For telling
    /// that a folder mixes formats.
    pub holds_images: fn(&Path) -> bool,
    /// Names of files in a folder of this format that have none of the endings.
    pub parts: &'static [&'static str],
    /// Names of folders in a folder of this format that its reader looks into first. Where each look is a round trip, they are listed
    /// together with it if its name ends in [`Self::set_ending`].
    pub inner_folders: &'static [&'static str],
    /// An entry in a folder of this format, at any depth, that is no part of a set as the format writes it. It is given
    /// by its path in the folder. A folder with such an entry is not replaced. Asked only of folders that `recognise` knows.
    pub foreign_entry: fn(&Path) -> Result<Option<String>>,
    /// Whether columns of plain values can stand beside the images: [`WriteOptions::features`].
    pub keeps_features: bool,
    /// Whether such columns are kept in a file beside the images, of a format that is no table.
    pub features_beside: bool,
    /// How the parts of a table that several processes write become one table ([`crate::parted`]). They do where the format's own
    /// library takes no folder of tables for a set.
    pub join_parts: Option<JoinParts>,
    /// Whether no column beside the images can have this name: the format's tables have one themselves, or can have none.
    /// [`create`](crate::create) renames one that has it ([`crate::features::renamed`]).
    pub own_columns: fn(&str) -> bool,
    /// Whether names of images tell a column, by its name and those of all columns. Then a set of this format keeps it in another one of this
    /// format, though it has no place for columns.
    pub names_tell: fn(&str, &[String]) -> bool,
    /// Whether such columns can be durations; [`create`](crate::create) makes whole numbers of them where they cannot.
    pub keeps_durations: bool,
    /// Whether times in seconds and dates in milliseconds are kept as such. [`create`](crate::create) makes times in milliseconds and
    /// dates in days of them where they are not: Parquet has these alone.
    pub keeps_seconds: bool,
    /// Whether times with a zone are kept to the nanosecond; else they are cut to microseconds.
    pub keeps_zoned_nanoseconds: bool,
    /// Whether times keep the zone that their column has; else they are read back as the same moments in UTC.
    pub keeps_zones: bool,
    /// Whether pixels lie in the files as they are where no codec was chosen. They do not in a table, which holds more than them, nor
    /// in PNG, which is never without a codec.
    pub holds_bare_pixels: bool,
    /// Whether files have a place for checksums of their own: where they have none, damage that can still be read is not seen. Whether
    /// a set has them says [`Store::has_checksums`].
    pub has_checksums: bool,
    /// Whether a path can hold several tables, of which one is opened ([`OpenOptions::table`]).
    pub has_tables: bool,
    /// Whether a table can have several columns of images, of which one is opened ([`OpenOptions::column`]).
    pub has_columns: bool,
    /// Whether images can be there in several resolutions, of which one is opened ([`OpenOptions::level`]).
    pub has_levels: bool,
    /// Whether files say how their numbers are to look, which pixels do not have ([`crate::StoreLayout::lost_display_settings`]).
    /// Other formats are not asked: to find how pixels are kept may take the reading of many pages.
    pub has_display_settings: bool,
    /// Whether [`WriteOptions::tune`] makes a difference to what is written with such options.
    pub uses_tune: fn(&WriteOptions) -> bool,
    /// Why an interrupted writer cannot be gone on with ([`WriteOptions::resume`]); `None` where it can.
    pub cannot_resume: Option<&'static str>,
    /// Version of the library or engine behind it, and of the file format. An error where the library is loaded when it is
    /// needed, and is not there: it says how to get it.
    pub engine: fn() -> Result<String>,
    /// Whether a probe looks like this format.
    pub recognise: fn(&Probe) -> bool,
    /// Opens for reading.
    pub open: fn(&Path, &OpenOptions) -> Result<Box<dyn Store>>,
    /// Creates for writing; [`Format::writer`] is for users.
    pub create: fn(&Path, &WriteOptions) -> Result<Box<dyn StoreWriter>>,
}

impl Format {
    /// Creates a set for writing, in this process: a forked one neither goes on with it nor removes it.
    ///
    /// # Errors
    /// A target that exists and may not be replaced, or options that the format cannot follow.
    pub fn writer(&self, path: &Path, options: &WriteOptions) -> Result<Box<dyn StoreWriter>> {
        Ok(owned(path, (self.create)(path, options)?))
    }

    /// Whether columns of plain values are kept with the images, in their table or in a file beside them.
    pub fn keeps_columns(&self) -> bool {
        self.keeps_features || self.features_beside
    }

    /// # Errors
    /// Options for what this format does not have.
    pub(crate) fn check(&self, path: &Path, options: &OpenOptions) -> Result<()> {
        let (lacks, option) = match options {
            OpenOptions { table: Some(_), .. } if !self.has_tables => ("tables to choose from", "table"),
            OpenOptions { column: Some(_), .. } if !self.has_columns => {
                ("columns of images to choose from", "column")
            }
            OpenOptions { level: 1.., .. } if !self.has_levels => ("multiscale levels", "level"),
            _ => return Ok(()),
        };
        let having = |f: &&&Self| match option {
            "table" => f.has_tables,
            "column" => f.has_columns,
            _ => f.has_levels,
        };
        let others: Vec<_> = formats().iter().filter(having).map(|f| f.name).collect();
        let hint = match &others[..] {
            [] => format!("leave {option} out"),
            others => format!("leave {option} out; it is for {}", others.join(", ")),
        };
        let cause = format_args!("is {}, which has no {lacks}", self.name);
        Err(Error::new(path, cause).hint(hint).choice())
    }

    /// Whether a name has one of the format's endings, in capital or small letters.
    pub fn has_ending(&self, name: &str) -> bool {
        has_ending(name, self.endings)
    }
}

/// The name of a format and the endings of its files: all that it needs of itself to list a folder.
#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naming {
    /// [`Format::name`].
    pub name: &'static str,
    /// [`Format::endings`].
    pub endings: &'static [&'static str],
}

#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
impl Naming {
    /// Whether a name has one of the format's endings, in capital or small letters.
    pub fn has_ending(&self, name: &str) -> bool {
        has_ending(name, self.endings)
    }
}

/// Whether something of this name is a folder, in most cases: it has no ending, or that of a format whose sets are folders.
pub fn is_called_as_folder(name: &str) -> bool {
    !name.contains('.') || formats().iter().any(|format| format.is_folder && format.has_ending(name))
}

fn has_ending(name: &str, endings: &[&str]) -> bool {
    let name = name.as_bytes();
    endings
        .iter()
        .any(|e| name.len() >= e.len() && name[name.len() - e.len()..].eq_ignore_ascii_case(e.as_bytes()))
}

/// A format that the project knows and this build does not have.
#[derive(Clone, Copy, Debug)]
pub struct Absent {
    /// Name as in `--formats`.
    pub name: &'static str,
    /// Endings, in lower case, of names of files and folders in this format.
    pub endings: &'static [&'static str],
    /// The way to get it.
    pub how_to_get: &'static str,
}

/// A [`Format`] of another crate, collected when the program is linked.
pub struct Registration(pub &'static Format);

/// The formats of this crate in order of recognition, collected in the same way. So the list of formats is known here,
/// below all formats, and written down in [`crate::registry`], above them.
pub(crate) struct BuiltIn(pub &'static [&'static Format]);

inventory::collect!(Registration);
inventory::collect!(BuiltIn);
inventory::collect!(Absent);

/// All formats of this build: those of this crate, then those of others by name.
pub fn formats() -> &'static [&'static Format] {
    static ALL: OnceLock<Vec<&'static Format>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut others: Vec<_> = inventory::iter::<Registration>().map(|r| r.0).collect();
        others.sort_unstable_by_key(|f| f.name);
        let own = inventory::iter::<BuiltIn>().flat_map(|built_in| built_in.0.iter().copied());
        own.chain(others).collect()
    })
}

/// Formats that the project knows and this build does not have, by name.
pub fn absent_formats() -> Vec<Absent> {
    let mut absent: Vec<_> = inventory::iter::<Absent>().copied().collect();
    absent.sort_unstable_by_key(|a| a.name);
    absent
}

/// Whether a file or folder of this name in a folder makes it look like a set of some format.
#[cfg(feature = "image-folder")]
pub(crate) fn is_name_of_a_format(name: &str) -> bool {
    let is_known = |f: &&Format| f.has_ending(name) || f.parts.contains(&name);
    formats().iter().any(is_known) || absent_format_of(name).is_some()
}

/// The format that a name's ending tells of, where the project knows it and this build does not have it.
pub fn absent_format_of(name: &str) -> Option<Absent> {
    absent_formats().into_iter().find(|absent| has_ending(name, absent.endings))
}

/// The format of this build whose images `path` holds by its ending.
pub fn format_by_ending(path: &Path) -> Option<&'static Format> {
    let name = path.file_name()?.to_string_lossy();
    formats().iter().copied().find(|format| format.has_ending(&name) && (format.holds_images)(path))
}

/// The format, other than `own`, whose images `path` holds by its ending; also one that this build does not have.
#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
pub(crate) fn foreign_format(path: &Path, own: &Naming) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy();
    if own.has_ending(&name) {
        return None;
    }
    let format = format_by_ending(path).map(|format| format.name);
    format.or_else(|| absent_format_of(&name).map(|absent| absent.name))
}

/// The error of a folder that holds images of two formats, of which one alone would be read.
pub(crate) fn mixed_folder(folder: &Path, own: (&Path, &str), other: (&Path, &str)) -> Error {
    let ((own, format), (other, foreign)) = (own, other);
    Error::new(
        folder,
        format_args!(
            "the folder mixes image formats: {} is {format}, {} is {foreign}",
            own.display(),
            other.display()
        ),
    )
    .hint(format_args!(
        "give the folder of one of them, keep one format in a folder, or read all {format} images below it, and only these: {}",
        option_as("read_as", format)
    ))
}

/// The error of several images for a target whose ending is that of one, in a format that writes them into a folder, too.
#[cfg(any(feature = "ome-zarr", feature = "image-folder"))]
pub(crate) fn holds_one(target: &Path, ending: &str, format: &str) -> Error {
    let stem = target.file_stem().unwrap_or_default().to_string_lossy();
    let option = option_as("format", format);
    Error::new(target, format_args!("a target ending in {ending} holds one image"))
        .hint(format_args!("to write several images, give a folder such as {stem}, and {option}"))
}

/// The format of that name.
///
/// # Errors
/// No such format in this build; the hint names the one whose files end so, or the nearest, and lists those there are.
pub fn format_named(name: &str) -> Result<&'static Format> {
    if let Some(format) = formats().iter().find(|f| f.name == name) {
        return Ok(format);
    }
    if let Some(absent) = absent_formats().into_iter().find(|a| a.name == name) {
        return Err(Error::new(name, "this format is not in this build").hint(absent.how_to_get));
    }
    let known: Vec<_> = formats().iter().map(|f| f.name).collect();
    // Others call the formats by the endings of their files: `png`.
    let ending = format!(".{name}");
    let meant = match formats().iter().find(|f| f.has_ending(&ending)) {
        Some(format) => format!("is it {:?}? ", format.name),
        None => suggested::question(name, &known),
    };
    let hint = format!("{meant}there are: {}", known.join(", "));
    Err(Error::new(name, "is no storage format of this build").choice().hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_that_is_called_by_the_ending_of_its_files_is_suggested() {
        let hint = |name: &str| format_named(name).err().unwrap().to_string();
        for (name, meant) in
            [("png", "image-folder"), ("JPEG", "image-folder"), ("tif", "tiff"), ("zarr", "ome-zarr")]
        {
            assert!(hint(name).contains(&format!("(hint: is it \"{meant}\"? there are: ")), "{}", hint(name));
        }
        assert!(hint("jpeg2000").contains("(hint: there are: "), "{}", hint("jpeg2000"));
    }
}
