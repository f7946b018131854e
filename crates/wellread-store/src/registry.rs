//! Which formats there are, how each is recognised, and opening and creating through them.
//!
//! Recognition is by content, not by extension: a [`Probe`] holds the first bytes of a file or the names in a
//! folder, and each format says whether it knows it. Formats of crates that depend on this one (Lance,
//! Vortex, DuckDB) join with [`register`].

use crate::{Error, Result, Store, StoreWriter, WriteOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

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
    /// File or folder name ending for generated sets, such as `.parquet`; empty for a bare folder.
    pub extension: &'static str,
    /// Version of the library or engine behind it, and of the file format.
    pub engine: fn() -> String,
    /// Whether a probe looks like this format.
    pub recognise: fn(&Probe) -> bool,
    /// Opens for reading.
    pub open: fn(&Path, &OpenOptions) -> Result<Box<dyn Store>>,
    /// Creates for writing.
    pub create: fn(&Path, &WriteOptions) -> Result<Box<dyn StoreWriter>>,
}

/// Formats of this crate, in order of recognition. One line per format.
static BUILT_IN: &[&Format] =
    &[&crate::parquet::FORMAT, &crate::ome_zarr::FORMAT, &crate::tiff::FORMAT, &crate::image_folder::FORMAT];

static REGISTERED: RwLock<Vec<&'static Format>> = RwLock::new(Vec::new());

/// Adds a format of another crate; a second one of the same name is ignored.
pub fn register(format: &'static Format) {
    let mut registered = REGISTERED.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !registered.iter().any(|f| f.name == format.name) {
        registered.push(format);
    }
}

/// All formats of this build.
pub fn formats() -> Vec<&'static Format> {
    let registered = REGISTERED.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    BUILT_IN.iter().copied().chain(registered.iter().copied()).collect()
}

/// The format of that name.
///
/// # Errors
/// No such format in this build; the message lists those there are.
pub fn format_named(name: &str) -> Result<&'static Format> {
    formats().into_iter().find(|f| f.name == name).ok_or_else(|| {
        let known: Vec<_> = formats().iter().map(|f| f.name).collect();
        Error::new(name, format_args!("is no storage format of this build; there are: {}", known.join(", ")))
    })
}

/// The format that `path` is in, by its content.
///
/// # Errors
/// Missing or unreadable path, or content no format knows (the message says what was seen).
pub fn recognise(path: &Path) -> Result<&'static Format> {
    if let Some(scheme) = path.to_str().and_then(|p| p.split_once("://")).map(|(s, _)| s) {
        return Err(Error::new(path, format_args!("{scheme}:// addresses cannot be read by this build"))
            .hint("copy the data to a local folder, or mount it, and give that path"));
    }
    let probe = Probe::new(path)?;
    if let Some(format) = formats().into_iter().find(|f| (f.recognise)(&probe)) {
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
    Err(error.hint(format_args!("this build reads {}", known.join(", "))))
}

/// Opens a set of images for reading, recognising its format unless `options.format` names it.
pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Box<dyn Store>> {
    let path = path.as_ref();
    let format = match &options.format {
        Some(name) => format_named(name)?,
        None => recognise(path)?,
    };
    (format.open)(path, options)
}

/// Creates a set of images for writing.
pub fn create(path: impl AsRef<Path>, format: &str, options: &WriteOptions) -> Result<Box<dyn StoreWriter>> {
    (format_named(format)?.create)(path.as_ref(), options)
}
