//! Which formats there are, how each is recognised, and opening and creating through them.
//!
//! Recognition is by content, not by extension: a [`Probe`] holds the first bytes of a file or the names in a
//! folder, and each format says whether it knows it. Formats of crates that depend on this one (engines that are
//! large to compile) join by [`register_format!`](crate::register_format) where they are linked, and are said to
//! be missing ([`Absent`]) where they are not.

use crate::{Error, Result, Store, StoreWriter, WriteOptions, features};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What can be told about a path by a look at its first bytes or its directory listing.
#[derive(Debug)]
pub struct Probe {
    /// The path looked at.
    pub path: PathBuf,
    /// Up to 64 first bytes of a file; empty for a folder.
    pub head: Vec<u8>,
    /// Last 8 bytes of a file; empty for a folder or a shorter file.
    pub tail: Vec<u8>,
    /// Whether it is a folder.
    pub is_dir: bool,
    /// Names directly inside a folder, sorted, up to 4,096 of them, without dot files except `.z*`.
    pub entries: Vec<String>,
}

impl Probe {
    /// Looks at `path`.
    ///
    /// # Errors
    /// Missing path, no permission, or something that is neither file nor folder.
    pub fn new(path: &Path) -> Result<Self> {
        let meta = std::fs::metadata(path).map_err(|e| Error::io(path, "cannot open", &e))?;
        let mut probe = Self {
            path: path.to_owned(),
            head: vec![],
            tail: vec![],
            is_dir: meta.is_dir(),
            entries: vec![],
        };
        if meta.is_dir() {
            let listing =
                std::fs::read_dir(path).map_err(|e| Error::io(path, "cannot list the folder", &e))?;
            for entry in listing.take(4096) {
                let entry = entry.map_err(|e| Error::io(path, "cannot list the folder", &e))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if !name.starts_with('.') || name.starts_with(".z") {
                    probe.entries.push(name);
                }
            }
            probe.entries.sort();
        } else if meta.is_file() {
            use std::io::{Seek, SeekFrom};
            let mut file = std::fs::File::open(path).map_err(|e| Error::io(path, "cannot open", &e))?;
            (&mut file)
                .take(64)
                .read_to_end(&mut probe.head)
                .map_err(|e| Error::io(path, "cannot read", &e))?;
            if meta.len() >= 8 {
                file.seek(SeekFrom::End(-8)).map_err(|e| Error::io(path, "cannot read", &e))?;
                file.read_to_end(&mut probe.tail).map_err(|e| Error::io(path, "cannot read", &e))?;
            }
        } else {
            return Err(Error::new(path, "is neither a file nor a folder"));
        }
        Ok(probe)
    }

    /// Entries of a folder whose name ends with one of `endings` (lower case, such as `.tif`).
    pub fn entries_ending<'a>(&'a self, endings: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.entries.iter().map(String::as_str).filter(move |name| {
            let lower = name.to_ascii_lowercase();
            endings.iter().any(|e| lower.ends_with(e))
        })
    }
}

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
    /// What is appended to the name of a generated set, such as `.parquet`; empty for a bare folder.
    pub set_ending: &'static str,
    /// Whether a path with one of the endings holds images, where that is not so of all (tables). For telling
    /// that a folder mixes formats.
    pub holds_images: fn(&Path) -> bool,
    /// Names of files in a folder of this format that have none of the endings: with other files beside, a folder is not
    /// replaced.
    pub parts: &'static [&'static str],
    /// Whether columns of plain values can stand beside the images: [`WriteOptions::features`].
    pub keeps_features: bool,
    /// Whether such columns can be durations; [`create`] makes whole numbers of them where they cannot.
    pub keeps_durations: bool,
    /// Whether pixels lie in the files as they are where no codec was chosen: not in a table, which holds more than them, nor
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
    /// Whether [`WriteOptions::tune`] makes a difference to what is written with such options.
    pub heeds_tune: fn(&WriteOptions) -> bool,
    /// Why an interrupted writer cannot be gone on with ([`WriteOptions::resume`]); `None` where it can.
    pub cannot_resume: Option<&'static str>,
    /// Version of the library or engine behind it, and of the file format. An error where the library is loaded when it is
    /// needed, and is not there: it says how to get it.
    pub engine: fn() -> Result<String>,
    /// Whether a probe looks like this format.
    pub recognise: fn(&Probe) -> bool,
    /// Opens for reading.
    pub open: fn(&Path, &OpenOptions) -> Result<Box<dyn Store>>,
    /// Creates for writing.
    pub create: fn(&Path, &WriteOptions) -> Result<Box<dyn StoreWriter>>,
}

impl Format {
    /// # Errors
    /// Options for what this format does not have.
    fn check(&self, path: &Path, options: &OpenOptions) -> Result<()> {
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
    /// What to do to have it.
    pub how_to_get: &'static str,
}

/// A [`Format`] of another crate, collected when the program is linked.
pub struct Registration(pub &'static Format);

inventory::collect!(Registration);
inventory::collect!(Absent);

/// Adds a format of another crate to every program that it is linked into.
///
/// ```
/// use wellread_store::Format;
/// static FORMAT: Format = Format { name: "mine", ..wellread_store::tiff::FORMAT };
/// wellread_store::register_format!(FORMAT);
/// assert!(wellread_store::formats().iter().any(|f| f.name == "mine"));
/// ```
#[macro_export]
macro_rules! register_format {
    ($format:path) => {
        $crate::registry::inventory::submit! { $crate::registry::Registration(&$format) }
    };
}

/// Names a format that this build does not have.
///
/// ```
/// wellread_store::absent_format!("mine", [".mine"], "mine");
/// assert!(wellread_store::registry::absent_formats().iter().any(|a| a.name == "mine"));
/// ```
#[macro_export]
macro_rules! absent_format {
    ($name:literal, [$($ending:literal),*], $feature:literal) => {
        $crate::registry::inventory::submit! {
            $crate::registry::Absent {
                name: $name,
                endings: &[$($ending),*],
                how_to_get: concat!("left out of this build; build with --features ", $feature),
            }
        }
    };
}

#[cfg(not(feature = "parquet"))]
absent_format!("parquet", [".parquet"], "parquet");
#[cfg(not(feature = "parquet"))]
absent_format!("parquet-default", [], "parquet");
#[cfg(not(feature = "parquet"))]
absent_format!("ome-arrow-dataset", [".ome-arrow-dataset"], "parquet");
#[cfg(not(feature = "ome-zarr"))]
absent_format!("ome-zarr", [".zarr"], "ome-zarr");
#[cfg(not(feature = "tiff"))]
absent_format!("tiff", [".tif", ".tiff"], "tiff");
#[cfg(not(feature = "image-folder"))]
absent_format!("image-folder", [".png", ".jpg", ".jpeg"], "image-folder");

#[doc(hidden)]
pub use inventory;

/// Formats of this crate, in order of recognition. One line per format.
static BUILT_IN: &[&Format] = &[
    #[cfg(feature = "parquet")]
    &crate::parquet::FORMAT,
    #[cfg(feature = "parquet")]
    &crate::parquet::DEFAULT_FORMAT,
    #[cfg(feature = "parquet")]
    &crate::parquet::dataset::FORMAT,
    #[cfg(feature = "ome-zarr")]
    &crate::ome_zarr::FORMAT,
    #[cfg(feature = "tiff")]
    &crate::tiff::FORMAT,
    #[cfg(feature = "image-folder")]
    &crate::image_folder::FORMAT,
];

/// All formats of this build: those of this crate, then those of others by name.
pub fn formats() -> &'static [&'static Format] {
    static ALL: OnceLock<Vec<&'static Format>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut others: Vec<_> = inventory::iter::<Registration>().map(|r| r.0).collect();
        others.sort_unstable_by_key(|f| f.name);
        BUILT_IN.iter().copied().chain(others).collect()
    })
}

/// The engine behind each format that can be used here, with its version.
pub fn engines() -> BTreeMap<&'static str, String> {
    formats().iter().filter_map(|format| Some((format.name, (format.engine)().ok()?))).collect()
}

/// The formats of this build that can be used here: all but those whose library is not there.
pub fn usable_formats() -> Vec<&'static Format> {
    formats().iter().copied().filter(|format| (format.engine)().is_ok()).collect()
}

/// Formats that the project knows and that cannot be used here, by name, each with how to get it: those that this build does not
/// have, and those whose library is not there.
pub fn missing_formats() -> Vec<(&'static str, String)> {
    let absent = absent_formats().into_iter().map(|absent| (absent.name, absent.how_to_get.to_owned()));
    let without_library = formats().iter().filter_map(|format| {
        let error = (format.engine)().err()?;
        Some((
            format.name,
            error.hint_text().map_or_else(|| error.to_string(), |hint| format!("{}; {hint}", error.cause())),
        ))
    });
    let mut missing: Vec<_> = absent.chain(without_library).collect();
    missing.sort_unstable();
    missing
}

/// Formats that the project knows and this build does not have, by name.
pub fn absent_formats() -> Vec<Absent> {
    let mut absent: Vec<_> = inventory::iter::<Absent>().copied().collect();
    absent.sort_unstable_by_key(|a| a.name);
    absent
}

/// Whether a file or folder of this name in a folder makes it look like a set of some format.
pub(crate) fn is_name_of_a_format(name: &str) -> bool {
    let is_known = |f: &&Format| f.has_ending(name) || f.parts.contains(&name);
    formats().iter().any(is_known) || absent_format_of(name).is_some()
}

/// The format that a name's ending tells of, where the project knows it and this build does not have it.
pub fn absent_format_of(name: &str) -> Option<Absent> {
    absent_formats().into_iter().find(|absent| has_ending(name, absent.endings))
}

/// The format, other than `own`, whose images `path` holds by its ending; also one that this build does not have.
pub(crate) fn foreign_format(path: &Path, own: &Format) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy();
    if own.has_ending(&name) {
        return None;
    }
    let format = formats().iter().find(|f| f.has_ending(&name) && (f.holds_images)(path)).map(|f| f.name);
    format.or_else(|| absent_format_of(&name).map(|absent| absent.name))
}

/// The error of a folder that holds images of two formats, of which one alone would be read.
pub(crate) fn mixed_folder(folder: &Path, own: (&Path, &Format), other: (&Path, &str)) -> Error {
    let ((own, format), (other, foreign)) = (own, other);
    Error::new(
        folder,
        format_args!(
            "the folder mixes image formats: {} is {}, {} is {foreign}",
            own.display(),
            format.name,
            other.display()
        ),
    )
    .hint(format_args!(
        "give the folder of one of them, keep one format in a folder, or read all {0} images below it, and only these, with \
         --read-as {0}",
        format.name
    ))
}

/// The format of that name.
///
/// # Errors
/// No such format in this build; the message lists those there are.
pub fn format_named(name: &str) -> Result<&'static Format> {
    if let Some(format) = formats().iter().find(|f| f.name == name) {
        return Ok(format);
    }
    if let Some(absent) = absent_formats().into_iter().find(|a| a.name == name) {
        return Err(Error::new(name, "this format is not in this build").hint(absent.how_to_get));
    }
    let known: Vec<_> = formats().iter().map(|f| f.name).collect();
    Err(Error::new(name, format_args!("is no storage format of this build; there are: {}", known.join(", "))))
}

/// Refuses addresses such as `s3://bucket/plate.parquet`: sets are files and folders.
fn refuse_address(path: &Path, verb: &str) -> Result<()> {
    match path.to_str().and_then(|p| p.split_once("://")) {
        Some((scheme, _))
            if !scheme.is_empty()
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) =>
        {
            Err(Error::new(path, format_args!("this build cannot {verb} {scheme}:// addresses yet"))
                .hint("copy the data to a local folder and give that path"))
        }
        _ => Ok(()),
    }
}

/// The format that `path` is in, by its content.
///
/// # Errors
/// Missing or unreadable path, or content no format knows (the message says what was seen).
pub fn recognise(path: &Path) -> Result<&'static Format> {
    refuse_address(path, "read")?;
    let probe = Probe::new(path)?;
    if let Some(format) = formats().iter().find(|f| (f.recognise)(&probe)) {
        return Ok(format);
    }
    let known: Vec<_> = formats().iter().map(|f| f.name).collect();
    let error = if probe.is_dir && probe.entries.is_empty() {
        Error::new(path, "the folder is empty: there is no image in it")
    } else if probe.is_dir {
        let some: Vec<_> = probe.entries.iter().take(4).map(String::as_str).collect();
        Error::new(
            path,
            format_args!(
                "no image format recognised; the folder holds {} entries ({} …)",
                probe.entries.len(),
                some.join(", ")
            ),
        )
    } else if probe.head.is_empty() {
        Error::new(path, "the file is empty")
    } else {
        Error::new(
            path,
            format_args!(
                "no image format recognised; the file starts with {:02x?}",
                &probe.head[..probe.head.len().min(8)]
            ),
        )
    };
    let name = path.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
    if let Some(absent) = absent_format_of(&name) {
        return Err(error.hint(format_args!("by its name it is {}; {}", absent.name, absent.how_to_get)));
    }
    Err(error.hint(format_args!("this build reads {}", known.join(", "))))
}

/// Opens a set of images for reading, recognising its format unless `options.format` names it.
pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Box<dyn Store>> {
    let path = path.as_ref();
    if path.as_os_str().is_empty() {
        return Err(Error::new(path, "the path is empty").hint("give a file or folder").choice());
    }
    refuse_address(path, "read")?;
    let format = match &options.format {
        Some(name) => format_named(name)?,
        None => recognise(path)?,
    };
    format.check(path, options)?;
    (format.open)(path, options)
}

/// Creates a set of images for writing.
pub fn create(path: impl AsRef<Path>, format: &str, options: &WriteOptions) -> Result<Box<dyn StoreWriter>> {
    refuse_address(path.as_ref(), "write")?;
    let format = format_named(format)?;
    match format.cannot_resume.filter(|_| options.resume.is_some()) {
        Some(why) => Err(Error::new(path, format_args!("{} cannot be resumed: {why}", format.name))
            .hint("leave WriteOptions::resume out")),
        None => match &options.features {
            Some(columns) if !format.keeps_durations && features::has_durations(columns) => {
                let columns = features::without_durations(columns).map_err(|e| Error::new(&path, e))?;
                let options = WriteOptions { features: Some(columns), ..options.clone() };
                (format.create)(path.as_ref(), &options)
            }
            _ => (format.create)(path.as_ref(), options),
        },
    }
}
