//! Files by name, put together to sites.
//!
//! ```text
//!  a Named for each file ─▶ sites: the same fields and folder ─▶ Grouped: which file holds plane (t, c, z) of which site
//! ```
//!
//! A site is a row. Its planes are those of the whole set: a plane of some site is missing where another has none.

use super::columns::{self, TextColumn};
use super::fault::Fault;
use super::files::FileText;
use super::layout::Role;
use super::names::{Matcher, Named};
use super::natural;
use super::pattern::Memory;
use crate::features::{PLATE, SITE, WELL};
use crate::surface::{option, option_as};
use crate::threads;
use crate::words::{counted, first_few};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// For a plane that no file holds.
pub(super) const NO_FILE: u32 = u32::MAX;

/// Planes that a site may have for each file of the set, beyond those that every set may have. Names with other
/// fields would make a table that is all but empty.
const PLANES_PER_FILE: usize = 64;
const PLANES: usize = 1 << 16;

/// Files whose names are worth a thread.
const FILES_PER_THREAD: usize = 512;

/// The field that tells measurements of a plate apart, and their column.
const MEASUREMENT: &str = "Metadata_Measurement";

/// How many names a message lists.
pub(super) const LISTED: usize = 3;

/// The files of a set as sites.
#[derive(Debug, Default)]
pub(super) struct Grouped {
    /// The name of each site.
    pub names: Vec<String>,
    /// Values of the axes T, C and Z, in order; one (empty) value where names say nothing of an axis.
    pub axes: [Vec<String>; 3],
    /// The names of channels, as many as there are values of C; empty where names do not have them.
    pub channels: Vec<String>,
    /// The row of the file of each plane, site by site, in the order T, C, Z; [`NO_FILE`] where there is none.
    pub planes: Vec<u32>,
    /// Columns beside the sites.
    pub columns: Vec<TextColumn>,
    /// Files that no pattern fits.
    pub unmatched: Vec<String>,
    /// Images of the folder that a table of files does not name.
    pub unnamed: Vec<String>,
}

impl Grouped {
    /// Planes of a site.
    pub fn planes_of_site(&self) -> usize {
        self.axes.iter().map(Vec::len).product()
    }

    /// Files of the site with most of them.
    pub fn files_per_site(&self) -> usize {
        let all = self.planes.chunks(self.planes_of_site().max(1));
        all.map(|planes| planes.iter().filter(|&&file| file != NO_FILE).count()).max().unwrap_or(0)
    }
}

/// Puts files together by their names.
///
/// # Errors
/// No file fits. Two files are the same plane. Fields tell far more planes apart than there are files.
pub(super) fn group(files: &[FileText], matcher: &Matcher) -> Result<Grouped, Fault> {
    let runs = threads::in_runs(files.len(), FILES_PER_THREAD, |run| {
        let mut memory = Memory::default();
        let wanted = run.filter(|&row| !matcher.passes_over(&files[row]));
        wanted.map(|row| (row, matcher.named(&files[row], &mut memory))).collect::<Vec<_>>()
    });
    let mut found: Vec<(u32, Named)> = Vec::with_capacity(files.len());
    let mut unmatched = vec![];
    for (row, named) in runs.into_iter().flatten() {
        match named {
            Some(named) => found.push((row as u32, named)),
            None => unmatched.push(files[row].below().to_owned()),
        }
    }
    if found.is_empty() {
        return Err(Fault {
            cause: format!(
                "none of {} fits: {}",
                counted(files.len(), "file"),
                first_few(&unmatched, LISTED)
            ),
            hint: format!(
                "a field is {{name}}, * stands for anything, and a pattern fits the whole name: {}",
                option_as("pattern", "r{row}c{col}f{site}p{z}-ch{channel}sk{time}*.tiff")
            ),
            is_of_fields: false,
        });
    }
    let (axes, channels) = axes_of(&found);
    let each: usize = axes.iter().map(Vec::len).product();
    let order = Order::of(matcher, &found);
    let (sites, site_of) = sites_of(&found, &order);
    let whole = each.checked_mul(sites.len());
    if whole.is_none_or(|whole| whole > PLANES.saturating_add(files.len().saturating_mul(PLANES_PER_FILE))) {
        let [t, c, z] = axes.map(|values| values.len());
        return Err(Fault {
            cause: format!(
                "the names of {} give {} of {t} x {c} x {z} planes (TCZ) each, nearly all of which are missing",
                counted(files.len(), "file"),
                counted(sites.len(), "site")
            ),
            hint: "the fields channel, time and z are the axes of an image: give other fields other names"
                .to_owned(),
            is_of_fields: true,
        });
    }
    let mut planes = vec![NO_FILE; each * sites.len()];
    for ((row, named), &site) in found.iter().zip(&site_of) {
        let at = |axis: usize| {
            axes[axis].binary_search_by(|value| natural::compare(value, &named.axes[axis])).unwrap_or(0)
        };
        let place = site * each + (at(0) * axes[1].len() + at(1)) * axes[2].len() + at(2);
        if planes[place] != NO_FILE {
            let first = files[planes[place] as usize].below();
            let second = files[*row as usize].below();
            return Err(Fault {
                cause: format!("{first} and {second} are the same plane by their names"),
                hint: format!(
                    "name the field that tells them apart in the pattern ({}), or read single files: {}",
                    option("pattern"),
                    option_as("layout", "files")
                ),
                is_of_fields: true,
            });
        }
        planes[place] = *row;
    }
    let first: Vec<&Named> = sites.iter().map(|&file| &found[file].1).collect();
    let names = names_of(matcher, &first);
    let columns = columns_of(matcher, &first);
    Ok(Grouped { names, axes, channels, planes, columns, unmatched, unnamed: vec![] })
}

/// Values of each axis, in order, and the names of channels.
fn axes_of(found: &[(u32, Named)]) -> ([Vec<String>; 3], Vec<String>) {
    let axes: [Vec<String>; 3] = std::array::from_fn(|axis| {
        let distinct: HashSet<&str> = found.iter().map(|(_, named)| named.axes[axis].as_str()).collect();
        let mut values: Vec<String> = distinct.into_iter().map(str::to_owned).collect();
        values.sort_by(|a, b| natural::compare(a, b));
        values
    });
    let called: HashMap<&str, &str> =
        found.iter().map(|(_, named)| (named.axes[1].as_str(), named.channel.as_str())).collect();
    let channels: Vec<String> = axes[1]
        .iter()
        .map(|value| called.get(value.as_str()).copied().unwrap_or_default().to_owned())
        .collect();
    let known = channels.iter().any(|name| !name.is_empty());
    (axes, if known { channels } else { vec![] })
}

/// Which fields sites are sorted by: their places in the matcher's, the most important first.
struct Order {
    plate: Option<usize>,
    well: Option<usize>,
    row: Option<usize>,
    column: Option<usize>,
    site: Option<usize>,
    others: Vec<usize>,
}

impl Order {
    fn of(matcher: &Matcher, found: &[(u32, Named)]) -> Self {
        let place = |role| matcher.fields.iter().position(|field| Role::of(field) == role);
        let varies = |&field: &usize| {
            let first = found.first().map(|(_, named)| &named.fields[field]);
            found.iter().any(|(_, named)| Some(&named.fields[field]) != first)
        };
        let is_other = |&field: &usize| Role::of(&matcher.fields[field]) == Role::Other;
        Self {
            plate: place(Role::Plate),
            well: place(Role::Well),
            row: place(Role::Row),
            column: place(Role::Column),
            site: place(Role::Site),
            others: (0..matcher.fields.len()).filter(is_other).filter(varies).collect(),
        }
    }

    fn compare(&self, a: &Named, b: &Named) -> Ordering {
        let by = |field: Option<usize>| {
            field.map_or(Ordering::Equal, |field| natural::compare(&a.fields[field], &b.fields[field]))
        };
        // Anything but a well comes after all wells: compared by names with some, it could be before and after
        // one.
        let place_of = |named: &Named| {
            let well = self.well.and_then(|field| natural::well(&named.fields[field]));
            (well.is_none(), well)
        };
        let wells = || place_of(a).cmp(&place_of(b));
        by(self.plate)
            .then_with(wells)
            .then_with(|| by(self.well))
            .then_with(|| by(self.row))
            .then_with(|| by(self.column))
            .then_with(|| by(self.site))
            .then_with(|| {
                self.others
                    .iter()
                    .map(|&field| by(Some(field)))
                    .find(|o| o.is_ne())
                    .unwrap_or(Ordering::Equal)
            })
            .then_with(|| natural::compare(&a.folder, &b.folder))
    }
}

/// The first file of each site, in the order of sites, and the site of each file.
fn sites_of(found: &[(u32, Named)], order: &Order) -> (Vec<usize>, Vec<usize>) {
    let mut by_key: HashMap<(&str, Vec<&str>), usize> = HashMap::new();
    let mut first: Vec<usize> = vec![];
    let mut of_file: Vec<usize> = Vec::with_capacity(found.len());
    for (file, (_, named)) in found.iter().enumerate() {
        // The files of a site mostly follow each other.
        let before = file.checked_sub(1).map(|before| &found[before].1);
        if before.is_some_and(|before| before.fields == named.fields && before.folder == named.folder) {
            of_file.extend(of_file.last().copied());
            continue;
        }
        let key = (named.folder.as_str(), named.fields.iter().map(String::as_str).collect());
        let site = *by_key.entry(key).or_insert_with(|| {
            first.push(file);
            first.len() - 1
        });
        of_file.push(site);
    }
    let mut sorted: Vec<usize> = (0..first.len()).collect();
    sorted.sort_by(|&a, &b| order.compare(&found[first[a]].1, &found[first[b]].1));
    let mut place = vec![0; first.len()];
    for (at, &site) in sorted.iter().enumerate() {
        place[site] = at;
    }
    (
        sorted.into_iter().map(|site| first[site]).collect(),
        of_file.into_iter().map(|site| place[site]).collect(),
    )
}

/// The names of sites: each name once.
fn names_of(matcher: &Matcher, sites: &[&Named]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::with_capacity(sites.len());
    let mut count: HashMap<&str, usize> = HashMap::new();
    for named in sites {
        *count.entry(named.name.as_str()).or_default() += 1;
    }
    let call = |named: &&Named| {
        let mut name = named.name.clone();
        // Fields that are in no name, where they tell sites apart.
        if name.is_empty() || count.get(name.as_str()).is_some_and(|&n| n > 1) {
            for (field, value) in matcher.fields.iter().zip(&named.fields) {
                if Role::of(field) == Role::Other && !value.is_empty() || name.is_empty() {
                    let between = if name.is_empty() { "" } else { "_" };
                    name = format!("{name}{between}{field}{value}");
                }
            }
        }
        name
    };
    let mut names: Vec<String> = sites.iter().map(call).collect();
    for (at, name) in names.iter_mut().enumerate() {
        if name.is_empty() {
            "site".clone_into(name);
        }
        while !taken.insert(name.clone()) {
            *name = format!("{name}-{at}");
        }
    }
    names
}

/// The columns that names tell of.
fn columns_of(matcher: &Matcher, sites: &[&Named]) -> Vec<TextColumn> {
    let place = |role| matcher.fields.iter().position(|field| Role::of(field) == role);
    let values = |field: usize| -> Vec<Option<String>> {
        let value = |named: &&Named| Some(named.fields[field].clone()).filter(|value| !value.is_empty());
        sites.iter().map(value).collect()
    };
    let mut columns: Vec<TextColumn> = vec![];
    let mut add = |name: &str, values: Vec<Option<String>>| {
        let is_new = columns.iter().all(|column| column.name != name);
        if is_new && values.iter().any(Option::is_some) {
            columns.push(TextColumn::new(name, values));
        }
    };
    let plates = place(Role::Plate).map(values).filter(|values| values.iter().any(Option::is_some));
    let folders =
        || sites.iter().map(|named| Some(named.folder.clone()).filter(|folder| !folder.is_empty())).collect();
    let plates = plates.unwrap_or_else(folders).into_iter();
    add(PLATE, plates.map(|plate| plate.map(columns::plate_of)).collect());
    let (row, column) = (place(Role::Row), place(Role::Column));
    let wells: Option<Vec<Option<String>>> = match (place(Role::Well), row.zip(column)) {
        (Some(well), _) => Some(values(well)),
        (None, Some((row, column))) => {
            let well =
                |named: &&Named| natural::well_name(&named.fields[row], &named.fields[column]).map(Some);
            sites.iter().map(well).collect()
        }
        (None, None) => None,
    };
    let has_wells = wells.is_some();
    if let Some(wells) = wells {
        add(WELL, wells);
    }
    if let Some(site) = place(Role::Site) {
        add(SITE, values(site));
    }
    for (field, name) in matcher.fields.iter().enumerate() {
        let is_own = match Role::of(name) {
            // Each plate has one: it tells something where a plate has two.
            Role::Other if name == MEASUREMENT => tells_apart(sites, place(Role::Plate), field),
            Role::Other => {
                let all = values(field);
                matcher.preset.is_none() || all.iter().any(|value| *value != all[0])
            }
            Role::Row | Role::Column => !has_wells,
            _ => false,
        };
        if is_own {
            add(name, values(field));
        }
    }
    columns::numbered(columns)
}

/// Whether a plate has several values of a field.
fn tells_apart(sites: &[&Named], plate: Option<usize>, field: usize) -> bool {
    let mut first: HashMap<&str, &str> = HashMap::new();
    sites.iter().any(|named| {
        let plate = plate.map_or("", |plate| named.fields[plate].as_str());
        let value = named.fields[field].as_str();
        *first.entry(plate).or_insert(value) != value
    })
}

#[cfg(test)]
mod tests {
    use super::super::layouts::LAYOUTS;
    use super::*;

    /// As many as several threads share, in any order.
    #[test]
    fn each_plane_is_that_of_its_name() {
        let name = |site: usize, channel: usize| {
            let (column, field) = (site / 100 + 1, site % 100 + 1);
            format!("r01c{column:02}f{field:03}p01-ch{channel}sk1fk1fl1.tiff")
        };
        let names = (0..3000).map(|i| i * 7 % 3000).map(|i| name(i / 5, i % 5 + 1));
        let mut names: Vec<String> = names.collect();
        names.insert(1234, "notes.tiff".to_owned());
        let files: Vec<FileText> = names.iter().map(|name| FileText::at("/data", name)).collect();
        let harmony = LAYOUTS.iter().find(|layout| layout.name == "harmony").unwrap();
        let Ok(grouped) = group(&files, &Matcher::of_layout(harmony)) else { panic!("makes no sites") };
        assert_eq!((grouped.names.len(), grouped.planes.len()), (600, 3000));
        assert_eq!(grouped.unmatched, ["notes.tiff"]);
        for (place, &row) in grouped.planes.iter().enumerate() {
            assert_eq!(names[row as usize], name(place / 5, place % 5 + 1));
        }
    }

    #[test]
    fn wells_come_before_what_is_none() {
        let named = |well: &str| Named {
            axes: <[String; 3]>::default(),
            channel: String::new(),
            fields: vec![well.to_owned()],
            folder: String::new(),
            name: String::new(),
        };
        let order = Order { plate: None, well: Some(0), row: None, column: None, site: None, others: vec![] };
        // By names AA1, AB, B1; by wells B1, AA1.
        let mut wells = ["Z!", "AA1", "AB", "B1", "a2"].map(named);
        wells.sort_by(|a, b| order.compare(a, b));
        assert_eq!(wells.map(|named| named.fields[0].clone()), ["a2", "B1", "AA1", "AB", "Z!"]);
    }
}
