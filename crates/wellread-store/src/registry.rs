//! Recognising, opening and creating sets of images, and the list of this crate's formats.
//!
//! ```text
//!  path ──Probe──▶ each format's `recognise` ──▶ Format ──open──▶ Box<dyn Store>
//!                                                name ─▶ Format ──create──▶ Box<dyn StoreWriter>
//! ```
//!
//! Recognition is by content, not by extension: a [`Probe`] holds the first bytes of a file or the names in a
//! folder. Each format says whether it knows it. Formats of crates that depend on this one (engines that are
//! large to compile) join by [`register_format!`](crate::register_format) where they are linked. They are said
//! to be missing ([`Absent`]) where they are not.

pub use crate::format::{
    Absent, Format, OpenOptions, Registration, absent_format_of, absent_formats, format_by_ending,
    format_named, formats,
};
pub use crate::probe::Probe;

use crate::format::BuiltIn;
use crate::probe::SQLITE;
use crate::surface::for_cells;
use crate::words::first_and_more;
use crate::{Error, Result, Store, StoreWriter, WriteOptions, features, place, sites, text_columns};
use std::collections::BTreeMap;
use std::path::Path;

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

inventory::submit! { BuiltIn(BUILT_IN) }

/// The engine behind each format that can be used here, with its version.
pub fn engines() -> BTreeMap<&'static str, String> {
    formats().iter().filter_map(|format| Some((format.name, (format.engine)().ok()?))).collect()
}

/// The formats of this build that can be used here: all but those whose library is not there.
pub fn usable_formats() -> Vec<&'static Format> {
    formats().iter().copied().filter(|format| (format.engine)().is_ok()).collect()
}

/// Formats that the project knows and that cannot be used here, by name, each with the way to get it. These are formats
/// that this build does not have, and formats whose library is missing.
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

/// Refuses addresses such as `s3://bucket/plate.parquet` of places that nobody has registered, and where `writing`, of those that
/// are read alone.
fn refuse_address(path: &Path, writing: bool) -> Result<()> {
    if let Some((cause, hint)) = place::refused(path) {
        return Err(Error::new(path, cause).hint(hint).choice());
    }
    if let Some(address) = with_both_slashes(path) {
        let cause = "an address has two slashes behind its scheme, of which libraries of paths such as pathlib keep one";
        let error = Error::new(&address, cause);
        let address = place::shown(Path::new(&address));
        return Err(error.hint(format_args!("give it as text: {}", address.display())).choice());
    }
    let is_usable = || place::is_remote(path) && (!writing || place::of(path).is_writable());
    match place::scheme(path) {
        Some("file") if !is_usable() => {
            let local = path.to_str().and_then(local_path).unwrap_or_else(|| "PATH".to_owned());
            let cause = "an address with file:// is no path of this machine's files";
            Err(Error::new(path, cause).hint(format_args!("give the path itself: {local}")).choice())
        }
        Some(scheme) if !is_usable() && meant_scheme(scheme).is_some() => {
            let meant = meant_scheme(scheme).unwrap_or_default();
            let rest = path.to_str().and_then(|text| text.get(scheme.len()..)).unwrap_or("://…");
            let error = Error::new(path, format_args!("{scheme}:// is no scheme that wellread knows"));
            Err(error.hint(format_args!("write {meant}{rest}")).choice())
        }
        Some(scheme) if !is_usable() => {
            let verb = if writing { "write" } else { "read" };
            let error = Error::new(path, format_args!("this build cannot {verb} {scheme}:// addresses"));
            let local = "copy the data to a local folder and give that path";
            Err(match place::how_to_get(scheme) {
                Some(how) => error.hint(format_args!("{how}, or {local}")),
                None => error.hint(local),
            })
        }
        _ => Ok(()),
    }
}

/// The scheme that is meant by another spelling: `S3`, Hadoop's `s3a` and `s3n`, and those of other readers. `None` of a known one.
fn meant_scheme(scheme: &str) -> Option<String> {
    let lower = scheme.to_ascii_lowercase();
    let meant = match lower.as_str() {
        "s3a" | "s3n" => "s3",
        "gcs" => "gs",
        "azure" => "az",
        other => other,
    };
    (meant != scheme && is_known(meant)).then(|| meant.to_owned())
}

/// Whether a scheme is one of a place, of this build or of another.
fn is_known(scheme: &str) -> bool {
    place::is_remote(Path::new(&format!("{scheme}://a"))) || place::how_to_get(scheme).is_some()
}

/// The address that `s3:/bucket/a` was before it was made a path; `None` of other paths, and where there is a folder `s3:`.
pub(crate) fn with_both_slashes(path: &Path) -> Option<String> {
    let (scheme, rest) = path.to_str()?.split_once(":/")?;
    let is_one = !rest.starts_with('/') && !scheme.contains('/') && is_known(scheme);
    (is_one && !place::exists(Path::new(&format!("{scheme}:")))).then(|| format!("{scheme}://{rest}"))
}

/// The path of an address `file:///data/my%20plate` or `file://localhost/data`.
fn local_path(address: &str) -> Option<String> {
    let rest = address.strip_prefix("file://")?;
    let bytes =
        rest.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(rest).as_bytes();
    let coded = |at: usize| {
        let digits = bytes.get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = if byte == b'%' { coded(at) } else { None };
        plain.push(code.unwrap_or(byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(plain).ok()
}

/// Whether a name is that of a table of files of CellProfiler, which names images that may lie elsewhere: `load_data.csv`,
/// `load_data_with_illum.csv`.
fn is_table_of_files(name: &str) -> bool {
    let is_csv = Path::new(name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    is_csv && name.starts_with("load_data")
}

/// Files of a folder that are looked into where their names tell no format: each takes a request in a bucket.
const FILES_LOOKED_INTO: usize = 4;

/// Advice where files of a folder are images by their content alone: a folder's files go by their names.
fn by_content(probe: &Probe) -> Option<String> {
    probe.entries.iter().take(FILES_LOOKED_INTO).find_map(|entry| {
        let file = Probe::new(&probe.path.join(entry)).ok().filter(|file| !file.is_dir)?;
        let format = formats().iter().find(|format| (format.recognise)(&file))?;
        let all = Path::new(entry).extension().map_or_else(String::new, |ending| {
            format!(", or all such files by a pattern: '{}/*.{}'", probe.path.display(), ending.display())
        });
        Some(format!("{entry} is {} by its content: give that file{all}", format.name))
    })
}

/// The format of a path. A folder is asked of the formats first whose ending it has: others would list folders that are no folders of
/// images.
fn format_of(probe: &Probe) -> Option<&'static Format> {
    let name = probe.path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let is_called_so = |format: &Format| probe.is_dir && format.is_folder && format.has_ending(&name);
    let (first, others): (Vec<_>, Vec<_>) = formats().iter().copied().partition(|f| is_called_so(f));
    first.into_iter().chain(others).find(|f| (f.recognise)(probe))
}

/// Looks at a path, and into the folders that a set of its format has, all at once, where each look is a round trip. The format is told
/// by the ending, unless the options name another.
pub(crate) fn look_ahead(path: &Path, options: &OpenOptions) {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let is_meant = |format: &Format| options.format.as_deref().is_none_or(|named| named == format.name);
    let mut all = formats().iter().filter(|f| !f.inner_folders.is_empty() && name.ends_with(f.set_ending));
    if let Some(format) = all.find(|f| is_meant(f)) {
        place::look_ahead(path, format.inner_folders);
    }
}

/// The format that `path` is in, by its content.
///
/// # Errors
/// Missing or unreadable path, or content no format knows (the message says what was seen).
pub fn recognise(path: &Path) -> Result<&'static Format> {
    refuse_address(path, false)?;
    let probe = Probe::new(path)?;
    if let Some(format) = format_of(&probe) {
        return Ok(format);
    }
    let known: Vec<_> = formats().iter().map(|f| f.name).collect();
    let error = if probe.is_dir && probe.entries.is_empty() {
        Error::new(path, "the folder is empty: there is no image in it")
    } else if probe.is_dir {
        let some = first_and_more(&probe.entries, 4, [", ", " and"]);
        Error::new(path, format_args!("no image format recognised; the folder holds {some}"))
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
    if let Some(table) = probe.entries.iter().find(|entry| is_table_of_files(entry)) {
        let hint = format!("where the images of its {table} lie elsewhere, give that file itself");
        return Err(error.hint(hint));
    }
    if let Some(hint) = by_content(&probe) {
        return Err(error.hint(hint));
    }
    if !probe.is_dir && (text_columns::is_text(path) || probe.head.starts_with(SQLITE)) {
        return Err(error.hint(format_args!("open the images. {}", for_cells())));
    }
    Err(error.hint(format_args!("this build reads {}", known.join(", "))))
}

/// Opens one set of images for reading, recognising its format unless `options.format` names it. [`crate::open`]
/// opens several as one, and is the function for users.
pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Box<dyn Store>> {
    open_known(path.as_ref(), options, None)
}

/// The same of a path whose format was recognised just now, where it was.
pub(crate) fn open_known(
    path: &Path,
    options: &OpenOptions,
    recognised: Option<&'static Format>,
) -> Result<Box<dyn Store>> {
    if path.as_os_str().is_empty() {
        return Err(Error::new(path, "the path is empty").hint("give a file or folder").choice());
    }
    refuse_address(path, false)?;
    if let Some(store) = sites::open_table(path, options)? {
        return Ok(store);
    }
    let format = match (&options.format, recognised) {
        (Some(name), _) => format_named(name)?,
        (None, Some(format)) => format,
        (None, None) => recognise(path)?,
    };
    format.check(path, options)?;
    sites::assemble((format.open)(path, options)?, options)
}

/// Creates a set of images for writing.
pub fn create(path: impl AsRef<Path>, format: &str, options: &WriteOptions) -> Result<Box<dyn StoreWriter>> {
    refuse_address(path.as_ref(), true)?;
    // Others may write there, too.
    place::look_anew(path.as_ref());
    let format = format_named(format)?;
    if let Some(why) = format.cannot_resume.filter(|_| options.resume.is_some()) {
        return Err(Error::new(path, format_args!("{} cannot be resumed: {why}", format.name))
            .hint("leave WriteOptions::resume out"));
    }
    let Some(columns) = &options.features else { return format.writer(path.as_ref(), options) };
    let wrong = |e| Error::new(&path, e);
    let (mut columns, _) = features::renamed(columns, &format.own_columns).map_err(wrong)?;
    if !format.keeps_durations && features::has_durations(&columns) {
        columns = features::without_durations(&columns).map_err(wrong)?;
    }
    if !format.keeps_seconds {
        columns = features::without_seconds(&columns).map_err(wrong)?;
    }
    format.writer(path.as_ref(), &WriteOptions { features: Some(columns), ..options.clone() })
}
