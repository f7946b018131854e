//! `load_data.csv` of CellProfiler: a row is a site, and columns say which file is which channel.
//!
//! ```text
//!  FileName_OrigDNA, PathName_OrigDNA │ FileName_OrigER, … │ Metadata_Plate, Metadata_Well, Metadata_Site │ FileName_IllumDNA, …
//!     channel DNA                        channel ER            columns beside the images                    columns as well
//! ```
//!
//! The table is recognised by its header. Rows stay in its order. A folder with a `load_data.csv` whose files all lie in the folder is
//! opened by it.

use super::channel_columns::{ADDRESS, ChannelColumns, FILE, FOLDER, channels, file_of};
use super::columns::{self, TextColumn};
use super::group::{Grouped, NO_FILE};
use super::paths;
use super::store;
use super::table_faults;
use super::unnamed;
use crate::delimited::{self, Table};
use crate::file_names::{PICTURES, TIFF, ends};
use crate::format::{Missing, OpenOptions};
use crate::hints::SiteTable;
use crate::surface::option_as;
use crate::text_columns::{self, Kinds};
use crate::{Error, Result, Store, place};
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

/// Bytes in which the header must end to be recognised.
const HEADER: u64 = 1 << 16;

/// The longest table that is read.
const LONGEST: u64 = 256 << 20;

/// The name of the layout.
pub(super) const LAYOUT: &str = "cellprofiler";

/// The name of the table that lies beside its images.
pub(super) const NAME: &str = "load_data.csv";

/// How many files of a table's beginning are not there where they all lie elsewhere.
const FIRST: usize = 64;

const METADATA: &str = "Metadata_";

/// Whether a file begins as such a table does. By its ending first, so that no image is read for it.
pub(super) fn is_one(path: &Path) -> bool {
    let Some(ending) = path.extension() else { return false };
    if !ending.eq_ignore_ascii_case("csv") {
        return false;
    }
    let head = || -> std::io::Result<Vec<u8>> {
        let (file, length) = place::open(path)?;
        let mut bytes = vec![];
        file.peek_after(0, length.min(HEADER), &mut bytes)?;
        Ok(bytes)
    };
    let Ok(bytes) = head() else { return false };
    let header = delimited::names_at_beginning(String::from_utf8_lossy(&bytes).as_bytes());
    !channels(&header).is_empty()
}

/// The path of a file as a table has it.
pub(super) fn as_written(folder: &str, name: &str) -> String {
    let is_end = folder.is_empty() || folder.ends_with(['/', '\\']);
    let own = if folder.contains('\\') { "\\" } else { "/" };
    let between = if is_end { "" } else { own };
    format!("{folder}{between}{name}")
}

/// Opens the images of a table.
///
/// # Errors
/// A table that cannot be read, or has no row. Two rows of the same files, or two channels that are parts of one. Files of a format
/// that folders of images are not of.
pub(super) fn open(path: &Path, options: &OpenOptions) -> Result<Box<dyn Store>> {
    open_of(path, options, None)
}

/// As [`open`]; with the folder that is meant, images in it that the table does not name are looked for.
fn open_of(path: &Path, options: &OpenOptions, folder: Option<&Path>) -> Result<Box<dyn Store>> {
    let table = read(path)?;
    let channels = channels(&table.header);
    if table.len() == 0 {
        return Err(Error::new(path, "the table has a header and no row"));
    }
    let mut folders = paths::Folders::default();
    let mut files: Vec<PathBuf> = vec![];
    let mut number: HashMap<PathBuf, u32> = HashMap::new();
    let mut planes = Vec::with_capacity(table.len() * channels.len());
    let mut absent: Option<table_faults::Absent> = None;
    let mut absent_first = 0;
    for row in 0..table.len() {
        for channel in &channels {
            let (folder, name) = file_of(&table, row, channel);
            if name.is_empty() {
                planes.push(NO_FILE);
                continue;
            }
            let place = paths::resolve(path, folder, name, &options.path_map, &mut folders);
            let next = files.len() as u32;
            // Rows may spell a path in other ways.
            let spelled = place.components().filter(|part| *part != Component::CurDir).collect();
            planes.push(*number.entry(spelled).or_insert_with(|| {
                if !folders.has(&place) {
                    absent.get_or_insert_with(|| table_faults::Absent {
                        row,
                        named: as_written(folder, name),
                        resolved: place.clone(),
                    });
                    absent_first += usize::from(files.is_empty());
                    return NO_FILE;
                }
                files.push(place);
                next
            }));
        }
    }
    let is_elsewhere = files.is_empty() || options.missing == Missing::Error && absent_first >= FIRST;
    if let Some(absent) = absent.filter(|_| is_elsewhere) {
        return Err(table_faults::elsewhere(path, &table, &absent, &options.path_map));
    }
    table_faults::check(path, &table, &channels, &planes)?;
    let unnamed = folder.map_or_else(Vec::new, |folder| {
        let beside = files_beside(path, &table, &channels, options, &mut folders);
        unnamed::below(folder, files.iter().chain(&beside), &folders)
    });
    let names = names(&table, &channels);
    let columns = columns_of(&table, &options.path_map);
    let titles: Vec<String> = channels.into_iter().map(|channel| channel.name).collect();
    let axes = [vec![String::new()], titles.clone(), vec![String::new()]];
    let grouped = Grouped { names, axes, channels: titles, planes, columns, unmatched: vec![], unnamed };
    let inner = store_of(path, files)?;
    store::opened(inner, grouped, LAYOUT.to_owned(), options.missing, path.to_owned(), Box::new(|_| None))
}

/// Opens a folder by the table in it; `None` where there is none, or it speaks of files that lie elsewhere. Where this layout is
/// asked for, the table is what is meant: it is opened wherever its files lie.
///
/// # Errors
/// As [`open`]; but for what options of the table could mend, unless the layout is asked for.
pub(super) fn open_folder(folder: &Path, options: &OpenOptions) -> Result<Option<Box<dyn Store>>> {
    let table = folder.join(NAME);
    if !place::is_file(&table) || !is_one(&table) {
        return Ok(None);
    }
    if options.layout.is_some() {
        return open(&table, options).map(Some);
    }
    let store = match open_of(&table, options, Some(folder)) {
        Ok(store) => store,
        Err(error) if error.is_choice() => return Ok(None),
        Err(error) => {
            return Err(error
                .hint(format_args!("{} reads the folder without the table", option_as("layout", "files"))));
        }
    };
    let whole = |path: &Path| place::absolute(path).unwrap_or_else(|_| path.to_owned());
    let root = whole(folder);
    let is_below = |file: &PathBuf| {
        let file = whole(file);
        let below = file.strip_prefix(&root);
        below.is_ok_and(|below| below.components().all(|part| part != Component::ParentDir))
    };
    let files = store.hints().sites.map(SiteTable::files_of_rows).unwrap_or_default();
    let are_below = files.iter().flatten().all(is_below);
    Ok(are_below.then_some(store))
}

/// The files that other columns than those of the channels name, such as illumination and outlines.
fn files_beside(
    path: &Path,
    table: &Table,
    channels: &[ChannelColumns],
    options: &OpenOptions,
    folders: &mut paths::Folders,
) -> Vec<PathBuf> {
    let is_channel = |column: usize| channels.iter().any(|channel| channel.file == Some(column));
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    let mut files = vec![];
    for (column, name) in table.header.iter().enumerate() {
        let Some(name) = name.strip_prefix(FILE).filter(|_| !is_channel(column)) else { continue };
        let folder = table.column(&format!("{FOLDER}{name}"));
        for row in 0..table.len() {
            let folder = folder.map_or("", |folder| table.value(row, folder));
            let file = table.value(row, column);
            if !file.is_empty() && seen.insert((folder, file)) {
                files.push(paths::resolve(path, folder, file, &options.path_map, folders));
            }
        }
    }
    files
}

/// The table at a path.
///
/// # Errors
/// A file that cannot be read, or is no table.
pub(super) fn read(path: &Path) -> Result<Table> {
    let bytes = delimited::read(path, LONGEST)?;
    Table::parse(path, String::from_utf8_lossy(&bytes).as_bytes())
}

/// The store of the files, a file a row.
fn store_of(path: &Path, files: Vec<PathBuf>) -> Result<Box<dyn Store>> {
    #[cfg(feature = "tiff")]
    if files.iter().all(|file| ends(file, TIFF)) {
        return crate::tiff::open_files(path, files);
    }
    #[cfg(feature = "image-folder")]
    if files.iter().all(|file| ends(file, PICTURES)) {
        return Ok(crate::image_folder::open_files(path, files));
    }
    let other = files.iter().find(|file| !ends(file, TIFF) && !ends(file, PICTURES)).or(files.first());
    let other = other.map_or_else(|| path.to_owned(), Clone::clone);
    Err(Error::new(other, "files of a table must all be TIFF, or all PNG or JPEG").unsupported())
}

/// The names of sites: the part that their files have in common, or plate, well and site where that is not each
/// once.
fn names(table: &Table, channels: &[ChannelColumns]) -> Vec<String> {
    let of_row = |row: usize| {
        let files = channels.iter().filter_map(|channel| channel.file.or(channel.address));
        let files = files.map(|column| table.value(row, column)).filter(|file| !file.is_empty());
        common(files.map(crate::features::stem))
    };
    let by_files: Vec<String> = (0..table.len()).map(of_row).collect();
    let distinct: HashSet<&String> = by_files.iter().collect();
    if channels.len() > 1 && distinct.len() == by_files.len() && !distinct.iter().any(|name| name.is_empty())
    {
        return by_files;
    }
    let keys = ["Plate", "Well", "Site"].map(|key| table.column(&format!("{METADATA}{key}")));
    let by_keys = (0..table.len()).map(|row| {
        let values =
            keys.iter().flatten().map(|&column| table.value(row, column)).filter(|value| !value.is_empty());
        values.collect::<Vec<_>>().join("/")
    });
    let by_keys: Vec<String> = by_keys.collect();
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut taken: HashSet<String> = HashSet::new();
    let once = |(key, file): (String, &String)| {
        let own = if key.is_empty() { file.clone() } else { key };
        let mut name = own.clone();
        // Another site may be called as this one is then.
        while !taken.insert(name.clone()) {
            let n = times.entry(own.clone()).or_insert(1);
            *n += 1;
            name = format!("{own}-{n}");
        }
        name
    };
    by_keys.into_iter().zip(&by_files).map(once).collect()
}

/// The beginning that texts have in common, without half of a number, and without letters and separators at
/// its end.
fn common<'t>(mut texts: impl Iterator<Item = &'t str>) -> String {
    let Some(first) = texts.next() else { return String::new() };
    let mut length = first.len();
    let mut several = false;
    for text in texts {
        several = true;
        length = length.min(first.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count());
    }
    let start = &first[..first.floor_char_boundary(length)];
    if !several || length == first.len() {
        return start.to_owned();
    }
    let is_digit = |c: char| c.is_ascii_digit();
    let whole =
        if first[start.len()..].starts_with(is_digit) { start.trim_end_matches(is_digit) } else { start };
    let name =
        whole.trim_end_matches(|c: char| c.is_alphabetic()).trim_end_matches(['_', '-', '.', ' ', '(']);
    if name.is_empty() { whole.to_owned() } else { name.to_owned() }
}

/// The columns beside the images: metadata, by their names, and files of illumination, whose paths are those of here.
fn columns_of(table: &Table, map: &[(String, String)]) -> Vec<TextColumn> {
    let is_kept = |name: &str| {
        let rest = [FILE, FOLDER, ADDRESS].iter().find_map(|start| name.strip_prefix(start));
        name.starts_with(METADATA) || rest.is_some_and(|rest| rest.starts_with("Illum"))
    };
    let kinds = |column: usize| {
        let mut kinds = Kinds::new(table.has_semicolons);
        for row in 0..table.len() {
            kinds.observe(table.value(row, column));
        }
        kinds
    };
    let mut types: Vec<Kinds> = (0..table.header.len()).map(kinds).collect();
    text_columns::settle(&mut types);
    let column = |(at, name): (usize, &String)| {
        let is_path = !name.starts_with(METADATA);
        let value = |row: usize| {
            let text = table.value(row, at);
            let mapped = if is_path { paths::mapped(text, map) } else { None };
            Some(mapped.unwrap_or_else(|| text.to_owned())).filter(|value| !value.is_empty())
        };
        let column = TextColumn::new(name, (0..table.len()).map(value).collect());
        // Digits of a barcode are no number, and names of files are none.
        let is_text = columns::is_identifier(name) || is_path;
        if is_text { column } else { column.typed(types[at]) }
    };
    let mut found: Vec<TextColumn> = vec![];
    for (at, name) in table.header.iter().enumerate().filter(|(_, name)| is_kept(name)) {
        if found.iter().all(|known| known.name != *name) {
            found.push(column((at, name)));
        }
    }
    columns::numbered(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_told_by_the_header() {
        let of = |header: &[&str]| {
            let header: Vec<String> = header.iter().map(|&name| name.to_owned()).collect();
            channels(&header).into_iter().map(|channel| channel.name).collect::<Vec<_>>()
        };
        assert_eq!(
            of(&[
                "FileName_OrigDNA",
                "PathName_OrigDNA",
                "FileName_OrigER",
                "FileName_IllumDNA",
                "Metadata_Well"
            ]),
            ["DNA", "ER"]
        );
        assert_eq!(of(&["URL_OrigDNA", "FileName_Outlines"]), ["DNA"]);
        assert_eq!(of(&["FileName_DNA", "PathName_DNA", "FileName_IllumDNA"]), ["DNA"]);
        assert!(of(&["Metadata_Well", "Cells_Area"]).is_empty());
    }

    #[test]
    fn files_of_a_site_have_a_name_in_common() {
        let of = |texts: &[&str]| common(texts.iter().copied());
        assert_eq!(of(&["r01c01f01p01-ch2sk1", "r01c01f01p01-ch5sk1"]), "r01c01f01p01");
        assert_eq!(of(&["P_A01_s1_w1", "P_A01_s1_w2"]), "P_A01_s1");
        assert_eq!(of(&["x_Z01C01", "x_Z01C02"]), "x_Z01");
        assert_eq!(of(&["a"]), "a");
        assert_eq!(of(&["DAPI", "GFP"]), "");
    }
}
