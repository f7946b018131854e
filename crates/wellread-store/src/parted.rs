//! A set that several processes write at once, on one machine or many: each writes parts, and one of them makes a set of these.
//!
//! ```text
//!  one process      PartedSet::begin ─▶ .wellread-resume-NAME/parts/
//!  each process     write_part(some rows) ─▶ parts/part-00003…     whole or not at all, read back
//!  one process      PartedSet::commit ─▶ set/NAME ─▶ NAME
//!                     tables: a folder of them and the list of the parts, or one table (a pass over all)
//!                     images in files of their own: each file moved to where one writer would have put it
//! ```
//!
//! Nobody finds a part before the set is at its place. Two tasks may write a part: one that was taken for dead, and its
//! successor. Both write the same images, and the commit names the parts that count. A run goes on with the parts of an
//! earlier one where that is asked for. A part that is there and holds its images is not written again.

use crate::concat::open_listed;
use crate::convert::{ConvertOptions, convert};
use crate::finished::Output as _;
use crate::format::{Format, OpenOptions, format_named};
use crate::part_list::{self, ListedPart, PartList};
use crate::staged::Staged;
use crate::surface::option;
use crate::verify::{Expected, expected_of, verify};
use crate::{Error, ImageView, Result, RowInfo, Store, WriteOptions, entries, features, place, registry};
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PhysicalSize, Shape};

/// Name of the list of its parts in the folder of a set that was written in parts of a table. Without it each table there is a set, and
/// those that are there are all.
pub const LIST: &str = part_list::FILE;

/// The folder of parts in that of the set being written.
const PARTS: &str = "parts";
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
    pub fn begin(target: &Path, format: &str, overwrite: bool, resume: Option<&str>) -> Result<Self> {
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
            drop(Staged::new(target, overwrite)?);
        }
        let mut staged = Staged::resumable(target, overwrite, resume.unwrap_or(NOT_RESUMED))?;
        staged.remove = resume.is_none();
        let set = Self { staged, format, name, is_resumed: resume.is_some() };
        let folder = set.staged.path().join(PARTS);
        place::create_folder(&folder)
            .map_err(|e| Error::io(target, "cannot make the folder of parts", &e))?;
        set.take_back()?;
        Ok(set)
    }

    /// Moves the tables that an interrupted [`Self::commit`] has put into the set back to the parts.
    fn take_back(&self) -> Result<()> {
        let set = self.set();
        if is_by_image(self.format) || !place::is_folder(&set) {
            return Ok(());
        }
        let of_part = |entry: &entries::Entry| self.format.has_ending(&entry.name);
        for entry in entries::list(&set)?.into_iter().filter(of_part) {
            self.rename(&entry.path, &self.part(&entry.name))?;
        }
        Ok(())
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
        self.format.joins_parts
    }

    /// Whether columns of all images stand beside files of images: they are given to [`Self::commit`], and not to the parts.
    pub fn keeps_columns(&self) -> bool {
        is_by_image(self.format) && self.format.keeps_features_in(self.staged.target(), 2)
    }

    /// The name of a part by its number.
    pub fn part_name(&self, number: usize) -> String {
        format!("part-{number:05}{}", self.ending())
    }

    /// Makes a set of the parts of these names, whose images follow one another in this order, and moves it to its
    /// place. Other parts are removed. `options` are those of the parts; `options.features` are columns of all images,
    /// for a format that keeps them beside files of images. Where the format [joins](Self::joins) parts, they become one
    /// table. Returns the number of images.
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
        let list = self.take_tables(parts)?;
        let images = list.parts(&self.set()).iter().map(|(_, images)| images).sum();
        if self.joins() {
            self.join(&list, options)?;
            return Ok((images, format!("{JOINED}/{}", self.name)));
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

    /// Writes one table of those of the parts.
    fn join(&self, list: &PartList, options: &WriteOptions) -> Result<()> {
        let folder = self.staged.path().join(JOINED);
        let target = self.staged.target();
        place::create_folder(&folder).map_err(|e| Error::io(target, "cannot make the folder", &e))?;
        let source = open_listed(&self.set(), list, &as_written(self.format))?;
        let features = features::all(&*source)?;
        let options = WriteOptions { features, overwrite: true, resume: None, ..options.clone() };
        let columns = options.features.as_ref();
        let writer = registry::create(folder.join(&self.name), self.format.name, &options)?;
        let written = convert(&*source, writer, ConvertOptions::default(), &mut |_| ())?;
        written.check(&*source, self.format.name, columns, source.len(), options.jobs, &|| ())?;
        written.commit()
    }

    /// Moves the images of the parts to where one writer would have put them.
    fn take_images(&self, parts: &[String], options: &WriteOptions) -> Result<usize> {
        let options = WriteOptions { overwrite: true, resume: None, jobs: 1, ..options.clone() };
        let mut writer = registry::create(self.set(), self.format.name, &options)?;
        let mut images = 0;
        for part in parts {
            for (name, file) in files_of(&self.part(part), self.format)? {
                writer.adopt(&ImageMetadata::named(name), &file)?;
                images += 1;
            }
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
    let options = WriteOptions { features, overwrite: true, resume: None, ..options.clone() };
    let writer = registry::create(path, format, &options)?;
    let written = convert(source, writer, how, done)?;
    if is_checked {
        written.check(source, format, options.features.as_ref(), source.len(), options.jobs, &|| ())?;
    }
    written.commit()
}

/// Whether the part at `path` holds the images of `source`, pixels and all, and the columns beside them. A run that goes on need not write
/// it again. `options` are those of the parts.
///
/// # Errors
/// The first image that the part holds with other names of channels or sizes of pixels.
pub fn holds(source: &dyn Store, path: &Path, format: &str, options: &WriteOptions) -> Result<bool> {
    let format = format_named(format)?;
    if !place::exists(path) {
        return Ok(false);
    }
    let Ok(part) = registry::open(path, &as_written(format)) else { return Ok(false) };
    if part.len() != source.len() || format.keeps_features && !holds_columns(source, &*part, format) {
        return Ok(false);
    }
    let Ok(expected) = expected_of(source, options.jobs, &|| ()) else { return Ok(false) };
    if !verify(&*part, Some(Expected::new(&expected)), options.jobs, &|| ()).passed() {
        return Ok(false);
    }
    is_described_alike(source, &*part, format, options)
}

/// Names of channels, and sizes of pixels along X, Y and Z.
type Described = (Vec<String>, [Option<PhysicalSize>; 3]);

fn described(of: &ImageMetadata) -> Described {
    let names = of.channels.iter().map(|channel| channel.name.clone()).collect();
    let sizes = [&of.physical_size_x, &of.physical_size_y, &of.physical_size_z];
    (names, sizes.map(Option::clone))
}

fn in_words((names, sizes): &Described) -> String {
    let size = |size: Option<&PhysicalSize>| match size {
        Some(PhysicalSize { value, unit }) => format!("{value} {unit}"),
        None => "unknown".to_owned(),
    };
    format!(
        "the channels {names:?} and pixels of {}",
        sizes.each_ref().map(|axis| size(axis.as_ref())).join(" x ")
    )
}

/// Whether a part has the names of channels and the sizes of pixels that its format keeps of those of `source`. It has not where nobody
/// can tell what the format keeps.
///
/// # Errors
/// The first image that has others.
fn is_described_alike(
    source: &dyn Store,
    part: &dyn Store,
    format: &Format,
    options: &WriteOptions,
) -> Result<bool> {
    // The images that are not described as in the source, each with the place of its kind: most formats change a few things.
    let mut kinds: Vec<(ImageMetadata, RowInfo)> = Vec::new();
    let mut rows: Vec<(usize, usize, Described)> = Vec::new();
    for row in 0..source.len() {
        let (wanted, found) = (source.metadata(row)?, described(&part.metadata(row)?));
        if described(&wanted) == found {
            continue;
        }
        let RowInfo { shape: Shape([t, c, z, ..]), dtype } = source.row_info(row)?;
        let info = RowInfo { shape: Shape([t, c, z, 1, 1]), dtype };
        let known = kinds.iter().position(|(of, like)| *like == info && described(of) == described(&wanted));
        let kind = known.unwrap_or(kinds.len());
        if known.is_none() {
            kinds.push((wanted, info));
        }
        rows.push((row, kind, found));
    }
    if rows.is_empty() {
        return Ok(true);
    }
    let Some(kept) = as_kept(&kinds, format, options) else { return Ok(false) };
    let Some((row, kind, found)) = rows.into_iter().find(|(_, kind, found)| kept[*kind] != *found) else {
        return Ok(true);
    };
    let (has, wanted) = (in_words(&found), in_words(&kept[kind]));
    let cause = format_args!("was written with {has}, and the source has {wanted}");
    let hint = format!("leave {} out, so that all parts are written anew", option("resume"));
    Err(Error::new(part.path(), cause).row(row).hint(hint))
}

/// The descriptions of images as a format keeps them: it writes such images and reads them back.
fn as_kept(
    images: &[(ImageMetadata, RowInfo)],
    format: &Format,
    options: &WriteOptions,
) -> Option<Vec<Described>> {
    let dir = tempfile::tempdir().ok()?;
    let ending = if is_by_image(format) { "" } else { format.set_ending };
    let path = dir.path().join(format!("kept{ending}"));
    let options = WriteOptions {
        features: None,
        chunk: None,
        shard: None,
        resume: None,
        overwrite: true,
        jobs: 1,
        ..options.clone()
    };
    let mut writer = registry::create(&path, format.name, &options).ok()?;
    for (number, (metadata, RowInfo { shape, dtype })) in images.iter().enumerate() {
        let name = format!("{number:09}");
        let metadata = ImageMetadata { id: name.clone(), name, ..metadata.clone() };
        let pixels = vec![0u8; shape.pixels() * dtype.size()];
        let image = ImageView { metadata: &metadata, shape: *shape, dtype: *dtype, pixels: &pixels };
        writer.write(&image).ok()?;
    }
    writer.finish().ok()?;
    let kept = registry::open(&path, &as_written(format)).ok()?;
    (0..images.len()).map(|row| Some(described(&kept.metadata(row).ok()?))).collect()
}

/// Whether a part has the columns of `source`, as its format calls them, no others, and their values.
fn holds_columns(source: &dyn Store, part: &dyn Store, format: &Format) -> bool {
    let (Ok(wanted), Ok(found)) = (features::all(source), features::all(part)) else { return false };
    let wanted = wanted.map(|columns| features::renamed(&columns, &format.own_columns)).transpose();
    let Ok(wanted) = wanted.map(|named| named.map(|(columns, _)| columns)) else { return false };
    match (wanted, found) {
        (Some(wanted), Some(found)) => {
            let mut names = wanted.schema_ref().fields().iter().map(|field| field.name());
            wanted.num_columns() == found.num_columns()
                && names.all(|name| found.column_by_name(name).is_some())
                && features::differing(&wanted, &found).is_empty()
        }
        (one, other) => one.or(other).is_none_or(|columns| columns.num_columns() == 0),
    }
}
