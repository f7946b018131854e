//! Tables in a folder, at any depth: those of one format.
//!
//! ```text
//!  screen/                        screen/
//!    BR1.parquet                    plate=BR1/part-0.parquet
//!    BR2.parquet                    plate=BR2/part-0.parquet
//! ```
//!
//! Names that begin with `.` or `_` are none of a set's, as for Spark and Arrow. Links to folders are not followed. The list of a set
//! that was written in parts names them. A part that is gone is missed, and a file beside them is no part.

use crate::entries::{self, Entry};
use crate::format::{Format, absent_format_of, formats, mixed_folder};
use crate::part_list::{self, PartList};
use crate::probe::{DEPTH, Probe};
use crate::{Error, Result, place};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Names that are looked at to find tables, at most.
const LOOKED_AT: usize = 1 << 17;

/// Tables that are one set.
#[derive(Default)]
pub(super) struct Tables {
    pub paths: Vec<PathBuf>,
    /// How many images those have that a list names.
    pub written: HashMap<PathBuf, usize>,
}

impl Tables {
    /// Parts of which no list says how many images they have.
    pub(super) fn of(paths: Vec<PathBuf>) -> Self {
        Self { paths, written: HashMap::new() }
    }
}

/// The tables below `folder`, sorted by name, folder by folder: of this format, or of the one that they all are of. `None` where there is
/// none.
///
/// # Errors
/// A folder that cannot be listed, tables of two formats, more names than may be looked at.
pub(super) fn below(folder: &Path, format: Option<&'static Format>) -> Result<Option<Tables>> {
    let mut search = Search { root: folder, wanted: format, format, looked_at: 0, found: Tables::default() };
    search.folder(folder, DEPTH)?;
    Ok(Some(search.found).filter(|found| !found.paths.is_empty()))
}

/// Whether a format is one of tables, which have names of their own for their files.
pub(super) fn has_tables(format: &Format) -> bool {
    format.keeps_features && !format.endings.is_empty()
}

/// Whether a file begins as one of the format and does not end as it begins, as Parquet does. It is taken for a table,
/// so that opening it reports the damage and no image of it is lost silently.
fn is_cut_off(path: &Path, format: &Format) -> Result<bool> {
    let probe = Probe::new(path)?;
    Ok((format.recognise)(&probe) && probe.tail.get(4..) != probe.head.get(..4))
}

struct Search<'f> {
    root: &'f Path,
    wanted: Option<&'static Format>,
    /// That of the first table.
    format: Option<&'static Format>,
    looked_at: usize,
    found: Tables,
}

impl Search<'_> {
    fn folder(&mut self, folder: &Path, levels: usize) -> Result<()> {
        let entries = entries::list(folder)?;
        if entries.iter().any(|entry| entry.name == part_list::FILE)
            && let Some(list) = PartList::read(folder)?
        {
            return self.take_listed(folder, &list);
        }
        for Entry { name, path, is_folder, .. } in entries {
            self.looked_at += 1;
            if self.looked_at > LOOKED_AT {
                return Err(Error::new(
                    self.root,
                    format_args!("more than {LOOKED_AT} names lie in the folder"),
                )
                .hint("give a pattern, such as FOLDER/*.parquet"));
            }
            if name.starts_with(['.', '_']) {
                continue;
            }
            if let Some(format) = self.format_of(&path, &name, is_folder)? {
                self.take(path, format)?;
            } else if is_folder && levels > 0 {
                self.folder(&path, levels - 1)?;
            } else if let Some(absent) = absent_format_of(&name).filter(|_| self.wanted.is_none())
                && let (Some(first), Some(format)) = (self.found.paths.first(), self.format)
            {
                return Err(self.mixed(first, format, &path, absent.name));
            }
        }
        Ok(())
    }

    /// The format of the table that an entry is, where it is one.
    fn format_of(&self, path: &Path, name: &str, is_folder: bool) -> Result<Option<&'static Format>> {
        let wanted = self.wanted.map(|wanted| wanted.name);
        let all = formats().iter().copied();
        let mut found =
            all.filter(|format| has_tables(format) && wanted.is_none_or(|name| name == format.name));
        let Some(format) = found.find(|format| format.has_ending(name)) else { return Ok(None) };
        let is_one = if is_folder || place::is_folder(path) {
            // Spark calls the folder of a table's files as a table.
            (format.recognise)(&Probe::new(path)?)
        } else {
            (format.holds_images)(path) || is_cut_off(path, format)?
        };
        Ok(is_one.then_some(format))
    }

    fn take(&mut self, path: PathBuf, format: &'static Format) -> Result<()> {
        let own = *self.format.get_or_insert(format);
        if own.name != format.name
            && let Some(first) = self.found.paths.first()
        {
            return Err(self.mixed(first, own, &path, format.name));
        }
        self.found.paths.push(path);
        Ok(())
    }

    /// Takes the parts of a set, unless tables of another format are looked for.
    fn take_listed(&mut self, folder: &Path, list: &PartList) -> Result<()> {
        for (part, images) in list.parts(folder) {
            let name = part.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let mut tables = formats().iter().copied().filter(|format| has_tables(format));
            let Some(format) = tables.find(|format| format.has_ending(&name)) else {
                return Err(Error::new(&part, "is a part of a set, of no format that this build reads"));
            };
            if self.wanted.is_some_and(|wanted| wanted.name != format.name) {
                continue;
            }
            self.take(part.clone(), format)?;
            self.found.written.insert(part, images);
        }
        Ok(())
    }

    fn mixed(&self, first: &Path, own: &Format, other: &Path, foreign: &str) -> Error {
        let below = |path: &Path| path.strip_prefix(self.root).unwrap_or(path).to_owned();
        mixed_folder(self.root, (&below(first), own.name), (&below(other), foreign))
    }
}
