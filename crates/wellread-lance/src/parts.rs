//! Parts of a dataset that is written so that it can be gone on with.
//!
//! Each part is a fragment, whose data file is complete and which no version of the dataset has yet. The journal has a
//! line for each: Lance's description of its fragments, as JSON. When all images are written, one version is made of
//! all parts, as Lance's distributed writers do. So an interrupted run loses the part that it was writing, and the
//! finished dataset has one version, as any other.

use crate::dataset::DATA;
use lance_table::format::Fragment;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use wellread_store::journal::Journal;
use wellread_store::{Error, Result, place};

/// Bytes of images that make a part at least. Later parts have an eighth of what is written. A large dataset has some
/// dozens, and no interruption loses more than a ninth of the work.
pub(crate) const PART_BYTES: usize = 64 << 20;

/// The parts that are complete.
pub(crate) struct Parts {
    journal: Journal,
    fragments: Vec<Fragment>,
}

impl Parts {
    /// Those that earlier runs have left in the dataset in `folder`. Their other files are removed: the part that
    /// was being written, and a version that never got to its place.
    ///
    /// # Errors
    /// Files that cannot be listed or removed.
    pub fn open(target: &Path, folder: &Path, mut journal: Journal) -> Result<Self> {
        let parts = journal.lines().iter().map_while(|line| part(folder, line)).collect::<Vec<_>>();
        journal.keep(parts.len())?;
        let fragments = parts.concat();
        let known: HashSet<OsString> =
            fragments.iter().flat_map(|f| &f.files).map(|file| file.path.clone().into()).collect();
        let cannot = |e: std::io::Error| Error::io(target, "cannot remove what an interrupted run left", &e);
        for name in names(folder).map_err(cannot)? {
            let path = folder.join(&name);
            if name == DATA {
                for file in names(&path).map_err(cannot)? {
                    if !known.contains(&file) {
                        place::of(&path).remove_file(&path.join(file)).map_err(cannot)?;
                    }
                }
            } else if place::is_folder(&path) {
                place::of(&path).remove_folder(&path).map_err(cannot)?;
            }
        }
        Ok(Self { journal, fragments })
    }

    /// Fragments of all parts, in order.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// Rows of all parts.
    pub fn rows(&self) -> usize {
        self.fragments.iter().filter_map(|f| f.physical_rows).sum()
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> usize {
        let sizes = self.fragments.iter().flat_map(|f| &f.files).filter_map(|f| f.file_size_bytes.get());
        sizes.map(|size| size.get() as usize).sum()
    }

    /// Notes the fragments of a part that is complete.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn add(&mut self, fragments: Vec<Fragment>) -> Result<()> {
        self.journal.note(&serde_json::json!(fragments).to_string())?;
        self.fragments.extend(fragments);
        Ok(())
    }
}

/// The fragments of a line; `None` unless their files are there and as long as they were.
fn part(folder: &Path, line: &str) -> Option<Vec<Fragment>> {
    let fragments: Vec<Fragment> = serde_json::from_str(line).ok()?;
    let is_whole = |fragment: &Fragment| {
        fragment.physical_rows.is_some()
            && fragment.files.iter().all(|file| {
                let there = place::metadata(&folder.join(DATA).join(&file.path));
                let size = file.file_size_bytes.get().map(std::num::NonZero::get);
                there.is_ok_and(|there| there.is_regular() && Some(there.length) == size)
            })
    };
    fragments.iter().all(is_whole).then_some(fragments)
}

/// Names in a folder; none where it is missing.
fn names(folder: &Path) -> std::io::Result<Vec<OsString>> {
    match place::list(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.name())).collect(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(vec![]),
        Err(e) => Err(e),
    }
}
