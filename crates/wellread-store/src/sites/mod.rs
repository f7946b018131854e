//! Sites: images whose planes lie in several files, put together by the names of the files.
//!
//! ```text
//!  folder ──format──▶ store, a file a row ──names──▶ layout: r{row}c{col}f{site}p{z}-ch{channel}sk{time}…
//!                                                       │ group
//!                                                       ▼
//!                                  SitesStore: a site a row, columns Metadata_Plate, Metadata_Well, Metadata_Site
//! ```
//!
//! A layout is recognised where the names of all images of a folder fit it (where most do, [`strays`] tells). `--layout` and `--pattern`
//! ask for one, and `--layout files` for single files. Tables of files (`load_data.csv` of CellProfiler) say which file is which plane
//! themselves. Only names are looked at: a plate of 34,560 files opens as fast as they are listed.
//!
//! | module | what it holds |
//! |---|---|
//! | `options` | [`SiteOptions`]: what was said of files, to be kept and written down |
//! | `layout`, `layouts` | what a layout is; the list of them |
//! | `harmony`, `imagexpress`, `cellvoyager`, `cv1000`, `columbus`, `incell`, `cellomics` | a layout each |
//! | `index_xml` | `Index.xml` of Harmony |
//! | `recognise` | the layout that names are of, and [`UnmatchedNames`], which are of none |
//! | `files`, `pattern`, `names` | paths of files; patterns of names; names taken apart |
//! | `natural` | `A2` before `A10`; wells |
//! | `group`, `columns`, `missing` | files put together to sites; columns beside them; what is not there |
//! | `fault` | why names make no sites, and what the fields of their pattern are taken as |
//! | `store`, `plane_sink`, `channels` | the store whose rows are sites |
//! | `load_data`, `channel_columns`, `paths`, `table_faults` | tables of files, the columns of their channels, where the files of another machine lie here, and what may be wrong |
//! | `unnamed`, `unused` | images of a folder that the table in it does not name; a table that names files elsewhere |
//! | `companion` | `*.companion.ome` |

mod cellomics;
mod cellvoyager;
mod channel_columns;
mod channels;
mod columbus;
mod columns;
#[cfg(feature = "tiff")]
mod companion;
mod cv1000;
mod fault;
mod files;
mod group;
mod harmony;
mod imagexpress;
mod incell;
mod index_xml;
mod layout;
mod layouts;
mod load_data;
mod missing;
mod names;
mod natural;
mod options;
mod paths;
mod pattern;
mod plane_sink;
mod recognise;
mod store;
mod table_faults;
mod unnamed;
mod unused;

pub use layout::Layout;
pub(crate) use natural::row_number;
pub use options::SiteOptions;
pub use recognise::{UnmatchedNames, unmatched_names};
pub use unused::unused_table;

use crate::format::{Missing, OpenOptions, Unmatched};
use crate::suggested::question;
use crate::surface::{option, option_as};
use crate::words::{counted, first_few};
use crate::{Error, Result, Store, place};
use fault::Fault;
use files::{FileText, FilesOfRows};
use group::{Grouped, LISTED};
use layouts::LAYOUTS;
use names::Matcher;
use pattern::{Pattern, turned_wells};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Fields of a pattern that are columns of their own, and nearly called like one that says well, site, channel and the like. Each comes
/// with that one. None of a pattern that cannot be read.
pub fn misspelt_fields(pattern: &str) -> Vec<(String, &'static str)> {
    let Ok(pattern) = Pattern::parse(pattern) else { return vec![] };
    pattern.fields().filter_map(|field| Some((field.to_owned(), layout::near(field)?))).collect()
}

/// The name that asks for an image a file.
pub const FILES: &str = "files";

/// The name of the layout of a table of files.
const CELLPROFILER: &str = load_data::LAYOUT;

/// The name of the layout of an OME-TIFF whose description lies beside it.
const COMPANION: &str = "ome-companion";

/// Names of the layouts that may be asked for of a folder. Those that names of files tell come in the order in which they are
/// tried. Behind them are those of a table of files, and of an OME-TIFF whose description lies beside it.
pub fn layout_names() -> Vec<&'static str> {
    LAYOUTS.iter().map(|layout| layout.name).chain([CELLPROFILER, COMPANION]).collect()
}

/// The layout that a file's name tells, which is that of `*.companion.ome`. `None` for any other path.
pub fn layout_by_name(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    name.ends_with(".companion.ome").then_some(COMPANION)
}

/// Opens a table of files, or a description of files, by its content, where `path` is one. A folder opens by the `load_data.csv` in
/// it, where all of its files lie there or that layout is asked for. It opens by its companion where that is asked for. `None` for
/// anything else.
///
/// # Errors
/// A table that cannot be understood, options that do not fit it.
pub(crate) fn open_table(path: &Path, options: &OpenOptions) -> Result<Option<Box<dyn Store>>> {
    if options.format.is_some() {
        return Ok(None);
    }
    if place::is_folder(path) {
        let is_free = options.layout.as_deref().is_none_or(|name| name == CELLPROFILER);
        let may_have_one = is_free && options.pattern.is_none();
        #[cfg(feature = "tiff")]
        if options.layout.as_deref() == Some(COMPANION) && options.pattern.is_none() {
            return companion::in_folder(path)
                .map(|file| companion::open(&file, options.missing))
                .transpose();
        }
        return if may_have_one { load_data::open_folder(path, options) } else { Ok(None) };
    }
    if !place::is_file(path) {
        return Ok(None);
    }
    if load_data::is_one(path) {
        refuse_names(path, options, "a table of files")?;
        return load_data::open(path, options).map(Some);
    }
    #[cfg(feature = "tiff")]
    if companion::is_one(path) {
        refuse_names(path, options, "the description of an OME-TIFF")?;
        return companion::open(path, options.missing).map(Some);
    }
    Ok(None)
}

/// Files that say how images make sites and what their channels are called, where there are such. They are the set's path itself,
/// the table in it, and the index of each folder of images. `path` is that of the set, and `files` are its images.
pub fn tables_beside(path: &Path, files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let own = [path.to_owned(), path.join(load_data::NAME)].into_iter().filter(|path| place::is_file(path));
    let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    let index = |folder| index_xml::candidate_paths(folder).find(|path| place::is_file(path));
    own.chain(folders.into_iter().filter_map(index)).collect()
}

/// Refuses layouts and patterns where names of files say nothing.
fn refuse_names(path: &Path, options: &OpenOptions, what: &str) -> Result<()> {
    let own = [CELLPROFILER, COMPANION, FILES];
    match (&options.layout, &options.pattern) {
        (_, Some(_)) => Err(Error::new(path, format_args!("is {what}, which a pattern does not speak of"))
            .hint(format_args!("leave {} out, or give the folder of the images", option("pattern")))
            .choice()),
        (Some(layout), _) if !own.contains(&layout.as_str()) => {
            Err(Error::new(path, format_args!("is {what}, which has no layout {layout}"))
                .hint(format_args!("leave {} out, or give the folder of the images", option("layout")))
                .choice())
        }
        _ => Ok(()),
    }
}

/// Makes sites of the images of a folder, where a layout or a pattern is asked for or its names are those of one.
///
/// # Errors
/// A layout that there is not, a pattern that cannot be read, names that do not fit what was asked for.
pub(crate) fn assemble(inner: Box<dyn Store>, options: &OpenOptions) -> Result<Box<dyn Store>> {
    let path = inner.path().to_owned();
    let asked = match (&options.layout, &options.pattern) {
        (None, None) => None,
        (Some(name), None) if name == FILES => return Ok(inner),
        (Some(name), None) => Some((Matcher::of_layout(named(name)?), name.clone())),
        (None, Some(pattern)) => {
            let matcher = Matcher::of_pattern(pattern).map_err(|why| {
                Error::new(&path, format_args!("the pattern {pattern:?} cannot be used: {why}")).choice()
            })?;
            Some((matcher, format!("{pattern:?}")))
        }
        (Some(name), Some(_)) => {
            return Err(Error::new(
                &path,
                format_args!("both a pattern and the layout {name} were asked for"),
            )
            .hint(format_args!("give {} or {}", option("pattern"), option("layout")))
            .choice());
        }
    };
    let Some((matcher, layout)) = asked else {
        // A user who names a format means its files.
        if options.format.is_some() || !place::is_folder(&path) {
            return Ok(inner);
        }
        return match recognise::recognise(&*inner, options.unmatched) {
            Some((matcher, grouped)) => {
                let layout = matcher.preset.map_or("", |layout| layout.name).to_owned();
                sites(inner, matcher, grouped, layout, options.missing)
            }
            None => Ok(inner),
        };
    };
    if !place::is_folder(&path) {
        return Err(Error::new(&path, format_args!("is one file: {layout} is for folders of files"))
            .hint("give the folder")
            .choice());
    }
    let files = FilesOfRows::of_store(&*inner).files().collect::<Result<Vec<_>>>()?;
    let (matcher, grouped) =
        grouped(&files, matcher, options.pattern.as_deref()).map_err(|fault| fault.at(&path))?;
    if options.unmatched == Unmatched::Error && !grouped.unmatched.is_empty() {
        let n = grouped.unmatched.len();
        let fit = if n == 1 { "does" } else { "do" };
        let cause = format!(
            "{} of {} {fit} not fit {layout}: {}",
            counted(n, "file"),
            files.len(),
            first_few(&grouped.unmatched, LISTED)
        );
        return Err(Error::new(&path, cause)
            .hint(format_args!("{} leaves them out", option_as("unmatched", "skip")))
            .choice());
    }
    sites(inner, matcher, grouped, layout, options.missing)
}

/// The files by their names. Where a pattern makes no sites of them, wells may have their row behind their column in all names.
fn grouped(files: &[FileText], matcher: Matcher, pattern: Option<&str>) -> Result<(Matcher, Grouped), Fault> {
    let fault = match group::group(files, &matcher) {
        Ok(grouped) => return Ok((matcher, grouped)),
        Err(fault) => fault,
    };
    let turned = pattern.and_then(turned_wells).and_then(|turned| Matcher::of_pattern(&turned).ok());
    match turned.map(|turned| (group::group(files, &turned), turned)) {
        Some((Ok(grouped), turned)) if grouped.unmatched.is_empty() => Ok((turned, grouped)),
        _ => Err(match pattern {
            Some(pattern) => fault.of_pattern(pattern),
            None => fault,
        }),
    }
}

/// The layout of that name.
fn named(name: &str) -> Result<&'static Layout> {
    LAYOUTS.iter().copied().find(|layout| layout.name == name).ok_or_else(|| {
        let own = match name {
            CELLPROFILER => "needs a folder with a load_data.csv that names files; give the path of it",
            COMPANION => "needs a folder with one .companion.ome; give the path of the file that ends in .companion.ome, or a pattern of such folders",
            _ => "",
        };
        let names: Vec<&str> = layout_names().into_iter().chain([FILES]).collect();
        let known = names.join(", ");
        let error = match own {
            "" if name.contains('{') => {
                let pattern = option("pattern");
                Error::new(name, format_args!("is a pattern of names and no layout: {pattern} takes it"))
            }
            "" => {
                let error = Error::new(name, format_args!("is no layout of folders; there are {known}"));
                match question(name, &names).trim_end() {
                    "" => error,
                    nearest => error.hint(nearest),
                }
            }
            own => Error::new(name, own),
        };
        error.choice()
    })
}

/// The store of sites.
fn sites(
    inner: Box<dyn Store>,
    matcher: Matcher,
    grouped: Grouped,
    layout: String,
    missing: Missing,
) -> Result<Box<dyn Store>> {
    let path = inner.path().to_owned();
    let details = Box::new(move |folder: &Path| matcher.details(folder));
    store::opened(inner, grouped, layout, missing, path, details)
}
