//! Which groups below a path are the rows: one image, a folder of images, a plate, a well, or the numbered
//! series that bioformats2raw writes.

use super::consolidated::Consolidated;
use super::fields;
use super::first_look;
use super::group::{Group, inside};
use super::series::FOLDER;
use crate::file_names;
use crate::file_rows::ImageLocation;
use crate::folders::{self, Sort, Visited, ZARR_METADATA, is_zarr, sort_quickly};
use crate::format::{Missing, Naming, foreign_format, formats, mixed_folder};
use crate::name_index;
use crate::place;
use crate::probe::Probe;
use crate::surface::option_as;
use crate::{Error, OpenOptions, Result};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// How many numbers without a group are named.
const MAX_NAMED: usize = 3;
/// Subfolders that are looked into to tell whether a folder holds images.
const LOOKED_INTO: usize = 16;

/// The format's name and endings.
pub(super) const NAMING: Naming = Naming { name: "ome-zarr", endings: &[".zarr"] };

/// Whether a probe is a Zarr group or array, or a folder that holds some.
pub(super) fn recognise(probe: &Probe) -> bool {
    let is_metadata = |name: &String| ZARR_METADATA.contains(&name.as_str());
    probe.is_dir
        && (probe.entries.iter().any(is_metadata)
            || holds_groups(probe)
            || probe.levels > 1 && !holds_files(probe) && folders::has_image(&probe.path, probe.levels, sort))
}

/// Whether a folder holds groups: ordinary folders are told apart by a look into the first few subfolders.
fn holds_groups(probe: &Probe) -> bool {
    let may_be = |name: &&String| ends_in_zarr(name) || !name.contains('.');
    let some: Vec<&String> = probe.entries.iter().filter(may_be).take(LOOKED_INTO).collect();
    // The first entry with such a name is enough.
    if !some.iter().any(|name| ends_in_zarr(name)) {
        place::list_ahead(&some.iter().map(|name| probe.path.join(name)).collect::<Vec<_>>());
    }
    let is_listed = place::of(&probe.path).tells_names();
    some.into_iter().any(|name| {
        let path = probe.path.join(name);
        // A name that is no text cannot be looked up from a probe: it is taken at its word. So is one of a folder where a look into it
        // is a round trip, as all of them are when the images are listed.
        let is_text = !name.contains(char::REPLACEMENT_CHARACTER);
        let is_taken = !is_text || is_listed && place::is_folder(&path);
        ends_in_zarr(name) && is_taken || is_zarr(&path)
    })
}

/// Whether images of other formats lie in a folder. Then deeper folders make no set of OME-Zarr of it, and large
/// folders are not listed for it.
fn holds_files(probe: &Probe) -> bool {
    let is_other = |name: &String| formats().iter().any(|f| f.name != NAMING.name && f.has_ending(name));
    probe.entries.iter().any(is_other)
}

fn ends_in_zarr(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == "zarr")
}

/// The rows of a path.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Their locations, each with a name.
    pub locations: Vec<ImageLocation>,
    /// Those whose folders are not there, though metadata name them.
    pub absent: BTreeSet<usize>,
    /// The parts that a plate or a series lacks, in sentences.
    pub missing_parts: Vec<String>,
    /// How many rows were left out, since their folders are not there.
    pub left_out: usize,
}

impl From<Vec<ImageLocation>> for Rows {
    fn from(locations: Vec<ImageLocation>) -> Self {
        Self { locations, ..Self::default() }
    }
}

/// Lists the rows of `path`.
///
/// # Errors
/// No image there, unreadable metadata of a plate or series, or files of other image formats beside the images.
pub(super) fn rows(path: &Path, options: &OpenOptions) -> Result<Rows> {
    rows_known(path, options, &Consolidated::default())
}

/// As [`rows`], with what is known of the groups there.
///
/// # Errors
/// As [`rows`].
pub(super) fn rows_known(path: &Path, options: &OpenOptions, known: &Consolidated) -> Result<Rows> {
    if !is_zarr(path) {
        return folder(path, options, known).map(Rows::from);
    }
    let group = known.load(path)?;
    if group.ome.multiscales.is_some() {
        let name = group.own_name().map_or_else(|| image_name(path), str::to_owned);
        return Ok(vec![ImageLocation { name, below: PathBuf::new() }].into());
    }
    let is_series = group.ome.plate.is_none() && group.ome.well.is_none();
    let (mut wells_gone, mut gaps) = (vec![], vec![]);
    let listed = if group.ome.plate.is_some() {
        plate(path, &group, options.missing, known, &mut wells_gone)?
    } else if group.ome.well.is_some() {
        well(path, &group, "")?
    } else if group.ome.bioformats2raw.is_some() {
        let (listed, lacking) = series_and_gaps(path, known)?;
        gaps = lacking;
        listed
    } else {
        return folder(path, options, known).map(Rows::from).map_err(|_| {
            Error::new(&group.file, "has no OME metadata (multiscales, plate or bioformats2raw.layout)")
                .hint("this is a Zarr group but no OME-Zarr; give the path of an OME-Zarr image")
        });
    };
    let looks = !is_series || options.missing == Missing::Zero;
    let absent = if looks { absent(path, &listed) } else { BTreeSet::new() };
    let missing_parts =
        if is_series { gaps } else { fields::missing_parts(&listed, &absent, &wells_gone, options.missing) };
    let rows = if options.missing == Missing::Skip {
        let there = listed.into_iter().enumerate().filter(|(row, _)| !absent.contains(row));
        Rows {
            locations: there.map(|(_, location)| location).collect(),
            left_out: absent.len(),
            absent: BTreeSet::new(),
            missing_parts,
        }
    } else {
        Rows { locations: listed, absent, missing_parts, left_out: 0 }
    };
    if rows.locations.is_empty() { Err(Error::new(path, "lists no images")) } else { Ok(rows) }
}

/// The rows whose folders are not there, though metadata name them. Each folder that they lie in is listed once.
fn absent(path: &Path, rows: &[ImageLocation]) -> BTreeSet<usize> {
    // `None` where nobody can tell: then the images are taken to be there, and reading one gives its error.
    let listed = |folder: &Path| -> Option<HashSet<OsString>> {
        match place::list(folder) {
            Ok(entries) => entries.map(|entry| Ok(entry?.name())).collect::<io::Result<_>>().ok(),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Some(HashSet::new())
            }
            Err(_) => None,
        }
    };
    let mut parents: Vec<&Path> = rows.iter().filter_map(|row| row.below.parent()).collect();
    parents.dedup();
    place::list_ahead(&parents.into_iter().map(|folder| path.join(folder)).collect::<Vec<_>>());
    let mut folders: HashMap<&Path, Option<HashSet<OsString>>> = HashMap::new();
    let mut absent = BTreeSet::new();
    for (at, row) in rows.iter().enumerate() {
        // The opened image itself is there.
        let (Some(folder), Some(name)) = (row.below.parent(), row.below.file_name()) else { continue };
        let names = folders.entry(folder).or_insert_with(|| listed(&path.join(folder)));
        if names.as_ref().is_some_and(|names| !names.contains(name)) {
            absent.insert(at);
        }
    }
    absent
}

/// The plates that a folder holds, by name; `None` where it is a group itself, or images lie in it.
pub(crate) fn plates_in(folder: &Path) -> Option<Vec<PathBuf>> {
    if is_zarr(folder) {
        return None;
    }
    let mut plates = vec![];
    for entry in place::list(folder).ok()? {
        let path = folder.join(entry.ok()?.name());
        if foreign_format(&path, &NAMING).is_some() {
            return None;
        }
        if path.extension().is_some_and(|ending| ending == "zarr") {
            // The first image ends it: large folders of images are not looked through. Opening it reads the same metadata next.
            let _held = first_look::fetch_image(&path, 0);
            Group::load(&path).ok()?.ome.plate.as_ref()?;
            plates.push(path);
        }
    }
    plates.sort();
    (!plates.is_empty()).then_some(plates)
}

/// The images of a plate, named ROW/COLUMN/FIELD. Wells that are not there and are left out are put into `gone`.
fn plate(
    path: &Path,
    group: &Group,
    missing: Missing,
    known: &Consolidated,
    gone: &mut Vec<String>,
) -> Result<Vec<ImageLocation>> {
    let mut rows = vec![];
    let wells = || group.ome.plate.iter().flat_map(|plate| &plate.wells);
    for entry in wells() {
        inside(&group.file, &entry.path)?;
    }
    let folders = wells().map(|entry| path.join(&entry.path)).filter(|folder| !known.has(folder));
    let _held = first_look::ask_for_groups(path, group.zarr, folders);
    for entry in wells() {
        let folder = path.join(&entry.path);
        match known.load(&folder) {
            Ok(group) => rows.extend(well(path, &group, &entry.path)?),
            Err(_) if missing == Missing::Skip && !is_zarr(&folder) => gone.push(entry.path.clone()),
            Err(error) if !is_zarr(&folder) => {
                let skip = option_as("missing", "skip");
                return Err(Error::new(error.path(), error.cause())
                    .skippable()
                    .hint(format_args!("{skip} leaves wells out that are not there")));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(rows)
}

fn well(path: &Path, group: &Group, below: &str) -> Result<Vec<ImageLocation>> {
    let Some(well) = &group.ome.well else {
        return Err(Error::new(&group.file, "has no well metadata, though the plate lists it as a well"));
    };
    debug_assert!(group.file.starts_with(path));
    well.images
        .iter()
        .map(|image| {
            inside(&group.file, &image.path)?;
            let name = if below.is_empty() { image.path.clone() } else { format!("{below}/{}", image.path) };
            Ok(ImageLocation { below: PathBuf::from(&name), name })
        })
        .collect()
}

/// The series of a bioformats2raw group: as `OME` lists them, or numbered folders `0`, `1`, …; called so, or as an index of names says.
///
/// Specification: <https://ngff.openmicroscopy.org/0.5/#bf2raw>.
pub(super) fn series(path: &Path) -> Result<Vec<ImageLocation>> {
    series_and_gaps(path, &Consolidated::default()).map(|(listed, _)| listed)
}

/// As [`series`], and which numbers have no group, in sentences: the specification has them follow each other, so that one was lost.
fn series_and_gaps(path: &Path, known: &Consolidated) -> Result<(Vec<ImageLocation>, Vec<String>)> {
    let ome = path.join(FOLDER);
    let is_asked = place::is_remote(path) && !known.has(&ome);
    let zarr = if is_asked && place::is_file(&path.join("zarr.json")) { 3 } else { 2 };
    let _held = first_look::ask_for_groups(path, zarr, is_asked.then(|| ome.clone()).into_iter());
    let listed = match known.load(&ome) {
        Ok(group) => {
            for name in group.ome.series.iter().flatten() {
                inside(&group.file, name)?;
            }
            group.ome.series
        }
        // The group OME is optional.
        Err(_) if !is_zarr(&ome) => None,
        Err(e) => return Err(e),
    };
    let (names, gaps) = if let Some(names) = listed { (names, vec![]) } else { numbered(path)? };
    let groups = names.into_iter().map(PathBuf::from).collect();
    let arranged = name_index::arrange(&ome, groups, PathBuf::as_path)?;
    let named = |(below, name): (PathBuf, Option<String>)| ImageLocation {
        name: name.unwrap_or_else(|| file_names::path_text(&below)),
        below,
    };
    Ok((arranged.into_iter().map(named).collect(), gaps))
}

/// The groups of a series that are called by numbers. They are those that follow each other from 0 on, and behind a gap those that are
/// images. And what the gaps lack, in a sentence.
fn numbered(path: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let cannot = |e: std::io::Error| Error::io(path, "cannot list the folder", &e);
    let mut found: BTreeSet<usize> = BTreeSet::new();
    for entry in place::list(path).map_err(cannot)? {
        let name = entry.map_err(cannot)?.name();
        let number = name.to_str().and_then(|name| Some((name, name.parse::<usize>().ok()?)));
        // 07 and +7 are other names than 7.
        found.extend(number.filter(|(name, number)| number.to_string() == *name).map(|(_, number)| number));
    }
    let (mut names, mut gone) = (vec![], vec![]);
    place::list_ahead(&found.iter().map(|number| path.join(number.to_string())).collect::<Vec<_>>());
    let mut next = 0;
    for number in found {
        let folder = path.join(number.to_string());
        let is_next = number == next;
        let is_one = is_zarr(&folder)
            && (is_next || Group::load(&folder).is_ok_and(|group| group.ome.multiscales.is_some()));
        if is_one {
            gone.extend((next..number).take(MAX_NAMED + 1 - gone.len().min(MAX_NAMED + 1)));
            names.push(number.to_string());
            next = number + 1;
        }
    }
    let more = if gone.len() > MAX_NAMED { " …" } else { "" };
    let some: Vec<String> = gone.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let lack = format!("groups of the series, whose numbers follow each other: {}{more}", some.join(", "));
    Ok((names, if gone.is_empty() { vec![] } else { vec![lack] }))
}

/// The role of an entry of a folder. A name that ends in .zarr counts without a look, so that opening a large set only
/// lists it.
fn sort(path: &Path, name: &str, is_dir: bool) -> Sort {
    let is_image = ends_in_zarr(name) || is_dir && !name.contains('.') && is_zarr(path);
    if is_image { Sort::Image } else { sort_quickly(path, name, is_dir, &NAMING) }
}

/// The images of a folder and of all folders below it, by its index of names or else by file name.
fn folder(path: &Path, options: &OpenOptions, known: &Consolidated) -> Result<Vec<ImageLocation>> {
    // Other folders of a Zarr group are its own, such as those of chunks.
    let is_group = is_zarr(path);
    if is_group {
        list_groups(path, known);
    }
    let sort = |entry: &Path, name: &str, is_dir: bool| {
        let is_known = is_dir && !name.contains('.') && known.has(entry);
        if is_known { Sort::Image } else { sort(entry, name, is_dir) }
    };
    let found = folders::images(path, |entry, name, is_dir| match sort(entry, name, is_dir) {
        Sort::Below if is_group => Sort::Skip,
        Sort::Skip => foreign_format(entry, &NAMING).map_or(Sort::Skip, Sort::Other),
        sort => sort,
    })?;
    let (mut groups, foreign) = (found.images, found.other);
    groups.sort();
    // Links may lead to a group that is listed, or to this folder. An entry that cannot be looked at gives its error
    // where it is read.
    let has_links = groups.last().is_some_and(|group| group.is_symlink);
    if has_links {
        let mut visited = Visited::default();
        let mut is_first = |place: &Path| visited.is_first(place).unwrap_or(true);
        is_first(path);
        groups.retain(|group| is_first(&path.join(&group.path)));
    }
    let mut groups: Vec<PathBuf> = groups.into_iter().map(|group| group.path).collect();
    if has_links {
        groups.sort();
    }
    let Some(first) = groups.first() else {
        return Err(Error::new(path, "there is no OME-Zarr image in this folder")
            .hint("give the path of an OME-Zarr image (x.zarr), or of a folder of them"));
    };
    if let Some((other, format)) = foreign.filter(|_| options.format.is_none()) {
        return Err(mixed_folder(path, (first, NAMING.name), (&other, format)));
    }
    let arranged = name_index::arrange(path, groups, PathBuf::as_path)?;
    Ok(arranged
        .into_iter()
        .map(|(group, name)| ImageLocation { name: name.unwrap_or_else(|| name_below(&group)), below: group })
        .collect())
}

/// Lists the groups in a group ahead that are not told by their names, and of which nothing is known.
fn list_groups(path: &Path, known: &Consolidated) {
    if !place::of(path).tells_names() {
        return;
    }
    let entries = place::list(path).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| Some(entry.name()).filter(|name| !text_has_dot(name)));
    let groups = names.map(|name| path.join(name)).filter(|group| !known.has(group));
    place::list_ahead(&groups.collect::<Vec<_>>());
}

fn text_has_dot(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'.')
}

/// A group's name by its path below the opened folder.
fn name_below(group: &Path) -> String {
    match group.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => format!("{}/{}", file_names::path_text(folder), image_name(group)),
        None => image_name(group),
    }
}

/// A group's folder name without `.zarr` or `.ome.zarr`.
pub(super) fn image_name(path: &Path) -> String {
    let absolute = if path.file_name().is_some() { Ok(path.to_owned()) } else { place::canonical(path) };
    let name = absolute.ok().and_then(|p| p.file_name().map(|n| file_names::text(n).into_owned()));
    let name = name.unwrap_or_default();
    let stem = name.strip_suffix(".zarr").unwrap_or(&name);
    stem.strip_suffix(".ome").unwrap_or(stem).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_endings() {
        for (path, name) in [("a/b.zarr", "b"), ("a/b.ome.zarr", "b"), ("b", "b"), ("b.c.zarr", "b.c")] {
            assert_eq!(image_name(Path::new(path)), name);
        }
    }
}
