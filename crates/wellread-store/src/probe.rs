//! The facts of a path before it is opened: a look at its first bytes or at the names in it.
//!
//! ```text
//!  path ──Probe::new──▶ Probe ──Format::recognise──▶ which format it is
//! ```

use crate::{Error, Result, place};
use std::path::{Path, PathBuf};

/// How many levels below a folder images are looked for.
pub(crate) const DEPTH: usize = 16;
/// First bytes of a SQLite database.
pub(crate) const SQLITE: &[u8] = b"SQLite format 3\0";
/// Bytes of a file's beginning and end that are looked at.
const HEAD: u64 = 64;
const TAIL: u64 = 8;

/// The facts of a path that its first bytes or its directory listing give.
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
    /// How many levels below a folder may be looked into.
    #[cfg_attr(not(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder")), allow(dead_code))]
    pub(crate) levels: usize,
}

impl Probe {
    /// Looks at `path`.
    ///
    /// # Errors
    /// Missing path, no permission, or something that is neither file nor folder.
    pub fn new(path: &Path) -> Result<Self> {
        let meta = place::metadata(path).map_err(|e| Error::io(path, "cannot open", &e))?;
        let mut probe = Self {
            path: path.to_owned(),
            head: vec![],
            tail: vec![],
            is_dir: meta.is_folder(),
            entries: vec![],
            levels: DEPTH,
        };
        if meta.is_folder() {
            let listing = place::list(path).map_err(|e| Error::io(path, "cannot list the folder", &e))?;
            for entry in listing.take(4096) {
                let entry = entry.map_err(|e| Error::io(path, "cannot list the folder", &e))?;
                let name = entry.name().to_string_lossy().into_owned();
                if !name.starts_with('.') || name.starts_with(".z") {
                    probe.entries.push(name);
                }
            }
            probe.entries.sort();
        } else if meta.is_regular() {
            let cannot = |e: std::io::Error| Error::io(path, "cannot read", &e);
            let (file, length) = place::open(path).map_err(|e| Error::io(path, "cannot open", &e))?;
            file.fetch_ends().map_err(cannot)?;
            file.peek_after(0, length.min(HEAD), &mut probe.head).map_err(cannot)?;
            if let Some(start) = length.checked_sub(TAIL) {
                file.peek_after(start, TAIL, &mut probe.tail).map_err(cannot)?;
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
