//! A set that several processes write at once, on one machine or many: each writes parts, and one of them makes a set of these.
//!
//! ```text
//!  one process      PartedSet::begin ─▶ .wellread-resume-NAME/parts/
//!  each process     write_part(some rows) ─▶ parts/part-00003…     whole or not at all, read back
//!  one process      PartedSet::commit ─▶ set/NAME ─▶ NAME
//!                     tables: a folder of them and the list of the parts, or one table that has their files
//!                     images in files of their own: each file moved to where one writer would have put it
//! ```
//!
//! Nobody finds a part before the set is at its place. Two tasks may write a part: one that was taken for dead, and its
//! successor. Both write the same images, and the commit names the parts that count. A run goes on with the parts of an
//! earlier one where that is asked for. A part that is there and holds its images is not written again.

use crate::concat::open_listed;
mod holds;

use crate::convert::{ConvertOptions, convert};
use crate::finished::Output as _;
use crate::format::{Format, JoinParts, OpenOptions, format_named};
use crate::journal::PARTS;
use crate::part_list::{self, ListedPart, PartList};
use crate::staged::{Existing, Staged};
use crate::{Error, Result, Store, WriteOptions, entries, features, place, registry};
use std::path::{Path, PathBuf};
use wellread_image::ImageMetadata;

pub use holds::holds;

/// Name of the list of its parts in the folder of a set that was written in parts of a table. Without it each table there is a set, and
/// those that are there are all.
pub const LIST: &str = part_list::FILE;

/// The folder in which the set is put together, under the name of its target, which may be any.
const SET: &str = "set";
/// The folder in which one table is made of all parts.
const JOINED: &str = "joined";
/// The key of a set that no later run goes on with.
const NOT_RESUMED: &str = "parts of a run that is not gone on with";

/// A set being written in parts. Dropped, it stays as it is where a later run goes on with it; else it goes.
pub struct PartedSet {
    staged: Staged,
    format: &'static Format,
    /// Name of the target.
    name: String,
    is_resumed: bool,
}

/// Whether each image of a format has a file or folder of its own.
fn is_by_image(format: &Format) -> bool {
    !format.keeps_features
}

/// The options by which a part is opened.
fn as_written(format: &Format) -> OpenOptions {
    OpenOptions { format: Some(format.name.to_owned()), ..OpenOptions::default() }
}

impl PartedSet {
    /// Begins to write a set of a format to `target`. With `resume`, which says in one line what it is made of, what an earlier run has
    /// left is kept; else it goes.
    ///
    /// # Errors
    /// A target that is there and may not be replaced, or at which one file of all images must be. Parts of something
    /// else at the place. Another process that writes it.
    pub fn begin(target: &Path, format: &str, existing: Existing, resume: Option<&str>) -> Result<Self> {
        let format = format_named(format)?;
        place::look_anew(target);
        let name = target.file_name().ok_or_else(|| Error::new(target, "is no file name to write to"))?;
        let name = name.to_string_lossy().into_owned();
        if is_by_image(format) && format.has_ending(&name) {
            let cause =
                format_args!("is the name of one {} image, which no two processes can write", format.name);
            let hint = "name a folder, without an ending, and the format";
            return Err(Error::new(target, cause).hint(hint).choice());
        }
        if resume.is_none() {
            // Left parts are removed.
            drop(Staged::new(target, existing)?);
        }
        let mut staged = Staged::resumable(target, existing, resume.unwrap_or(NOT_RESUMED))?;
        staged.remove = resume.is_none();
        let set = Self { staged, format, name, is_resumed: resume.is_some() };
        let folder = set.staged.path().join(PARTS);
        place::create_folder(&folder)
            .map_err(|e| Error::io(target, "cannot make the folder of parts", &e))?;
        set.take_back()?;
        Ok(set)
    }

    /// Moves the tables that an interrupted [`Self::commit`] has put into the set back to the parts, and their files as well.
    fn take_back(&self) -> Result<()> {
        if is_by_image(self.format) {
            return Ok(());
        }
        let set = self.set();
        if place::is_folder(&set) {
            for entry in self.tables_in(&set)? {
                self.rename(&entry.path, &self.part(&entry.name))?;
            }
        }
        let joined = self.joined();
        if let Some(JoinParts { undo, .. }) = self.format.join_parts
            && place::is_folder(&joined)
        {
            let parts = self.tables_in(&self.staged.path().join(PARTS))?;
            let parts: Vec<PathBuf> = parts.into_iter().map(|entry| entry.path).collect();
            undo(&parts, &joined)?;
        }
        Ok(())
    }

    /// The tables in a folder.
    fn tables_in(&self, folder: &Path) -> Result<Vec<entries::Entry>> {
        let mut found = entries::list(folder)?;
        found.retain(|entry| self.format.has_ending(&entry.name));
        Ok(found)
    }

    /// Where one table is made of all parts.
    fn joined(&self) -> PathBuf {
        self.staged.path().join(JOINED).join(&self.name)
    }

    /// Where the set is put together.
    fn set(&self) -> PathBuf {
        self.staged.path().join(SET).join(&self.name)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        place::rename(from, to).map_err(|e| Error::io(self.staged.target(), "cannot move a part", &e))
    }

    /// Where a part of this name is written.
    pub fn part(&self, name: &str) -> PathBuf {
        self.staged.path().join(PARTS).join(name)
    }

    /// The ending of names of parts.
    pub fn ending(&self) -> &'static str {
        if is_by_image(self.format) { "" } else { self.format.set_ending }
    }

    /// Whether the parts become one table in [`Self::commit`]: where the format's library takes no folder of tables.
    pub fn joins(&self) -> bool {
        self.format.join_parts.is_some()
    }

    /// Whether columns of all images stand beside files of images: they are given to [`Self::commit`], and not to the parts.
    pub fn keeps_columns(&self) -> bool {
        self.format.features_beside
    }

    /// The name of a part by its number.
    pub fn part_name(&self, number: usize) -> String {
        format!("part-{number:05}{}", self.ending())
    }

    /// Makes a set of the parts of these names, whose images follow one another in this order, and moves it to its
    /// place. Other parts are removed. `options` are those of the parts; `options.features` are columns of all images,
    /// for a format that keeps them beside files of images. Where the format [joins](Self::joins) parts, one table
    /// has their files; its rows are written again where parts have unlike columns. Returns the number of images.
    ///
    /// # Errors
    /// A part that is not there or cannot be read; a file that cannot be moved. Where no later run goes on with it,
    /// nothing is left then.
    pub fn commit(self, parts: &[String], options: &WriteOptions) -> Result<usize> {
        match self.put_together(parts, options) {
            Ok((images, place)) => self.staged.commit_file(&place).map(|()| images),
            Err(error) => {
                if !self.is_resumed {
                    self.discard();
                }
                Err(error)
            }
        }
    }

    /// Removes all that was written.
    pub fn discard(self) {
        self.staged.remove();
    }

    /// Puts the set together; the number of its images, and where it is in the folder of the set being written.
    fn put_together(&self, parts: &[String], options: &WriteOptions) -> Result<(usize, String)> {
        if parts.is_empty() {
            return Err(Error::new(self.staged.target(), "there is no image to write"));
        }
        if is_by_image(self.format) {
            return Ok((self.take_images(parts, options)?, format!("{SET}/{}", self.name)));
        }
        let one_table = format!("{JOINED}/{}", self.name);
        if let Some(how) = self.format.join_parts
            && let Some(images) = self.move_together(how, parts)?
        {
            return Ok((images, one_table));
        }
        let list = self.take_tables(parts)?;
        let images = list.parts(&self.set()).iter().map(|(_, images)| images).sum();
        if self.joins() {
            self.join(&list, options)?;
            return Ok((images, one_table));
        }
        list.write(&self.set(), self.staged.target())?;
        Ok((images, format!("{SET}/{}", self.name)))
    }

    /// Moves the tables of the parts into the set.
    fn take_tables(&self, parts: &[String]) -> Result<PartList> {
        let (set, target) = (self.set(), self.staged.target());
        place::create_folder(&set).map_err(|e| Error::io(target, "cannot make the folder", &e))?;
        let mut listed = Vec::with_capacity(parts.len());
        for (number, part) in parts.iter().enumerate() {
            let from = self.part(part);
            let images = registry::open(&from, &as_written(self.format))?.len();
            let name = self.part_name(number);
            self.rename(&from, &set.join(&name))?;
            listed.push(ListedPart { part: name, images });
        }
        Ok(PartList::new(listed))
    }

    /// Makes one table that has the files of the parts. The number of its images; `None` where the parts have unlike columns.
    fn move_together(&self, how: JoinParts, parts: &[String]) -> Result<Option<usize>> {
        let paths: Vec<PathBuf> = parts.iter().map(|part| self.part(part)).collect();
        let count =
            |path: &Path| -> Result<usize> { Ok(registry::open(path, &as_written(self.format))?.len()) };
        let images = paths.iter().map(|path| count(path)).sum::<Result<usize>>()?;
        self.make_room()?;
        if !(how.join)(&paths, &self.joined())? {
            return Ok(None);
        }
        let found = count(&self.joined())?;
        if found != images {
            let cause = format_args!("has {found} images, and its parts have {images}");
            return Err(Error::new(self.staged.target(), cause));
        }
        Ok(Some(images))
    }

    /// Makes the folder in which one table is made of all parts.
    fn make_room(&self) -> Result<()> {
        place::create_folder(&self.staged.path().join(JOINED))
            .map_err(|e| Error::io(self.staged.target(), "cannot make the folder", &e))
    }

    /// Writes one table of those of the parts, whose columns are unlike.
    fn join(&self, list: &PartList, options: &WriteOptions) -> Result<()> {
        self.make_room()?;
        let source = open_listed(&self.set(), list, &as_written(self.format))?;
        let features = features::all(&*source)?;
        let options = WriteOptions { features, overwrite: true, resume: None, ..options.clone() };
        let columns = options.features.as_ref();
        let writer = registry::create(self.joined(), self.format.name, &options)?;
        let written = convert(&*source, writer, ConvertOptions::default(), &mut |_| ())?;
        written.check(&*source, self.format.name, columns, source.len(), options.jobs, &|| ())?;
        written.commit()
    }

    /// Moves the images of the parts to where one writer would have put them.
    fn take_images(&self, parts: &[String], options: &WriteOptions) -> Result<usize> {
        let files = parts.iter().map(|part| files_of(&self.part(part), self.format));
        let files = files.collect::<Result<Vec<_>>>()?.concat();
        let images = files.len();
        let options = WriteOptions { overwrite: true, resume: None, jobs: 1, images, ..options.clone() };
        let mut writer = registry::create(self.set(), self.format.name, &options)?;
        for (name, file) in files {
            writer.adopt(&ImageMetadata::named(name), &file)?;
        }
        writer.complete_output()?.commit()?;
        Ok(images)
    }
}

/// The name of each image of a part, and its file or folder.
fn files_of(part: &Path, format: &Format) -> Result<Vec<(String, PathBuf)>> {
    let store = registry::open(part, &as_written(format))?;
    let of_row = |row: usize| {
        let file = store.row_hints(row)?.file();
        let file = file.ok_or_else(|| Error::new(part, "the image has no file of its own").row(row))?;
        Ok((store.name(row)?, file))
    };
    (0..store.len()).map(of_row).collect()
}

/// Writes all images of `source` as the part at `path`, with the columns beside them where the format is one of tables. With `is_checked`
/// it is read back and compared. A part that is there is replaced. `done` is called with the bytes of each image.
///
/// # Errors
/// The first row that cannot be read or written, or that does not read back as it was; nothing is left then.
pub fn write_part(
    source: &dyn Store,
    path: &Path,
    format: &str,
    options: &WriteOptions,
    how: ConvertOptions,
    is_checked: bool,
    done: &mut dyn FnMut(u64),
) -> Result<()> {
    let known = format_named(format)?;
    let features = if known.keeps_features { features::all(source)? } else { None };
    let memory = Some(how.of_writer());
    let options = WriteOptions { features, memory, overwrite: true, resume: None, ..options.clone() };
    let writer = registry::create(path, format, &options)?;
    let written = convert(source, writer, how, done)?;
    if is_checked {
        written.check(source, format, options.features.as_ref(), source.len(), options.jobs, &|| ())?;
    }
    written.commit()
}
