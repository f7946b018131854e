//! One file per subcommand: its arguments, a `run`. This module has [`OpenArgs`], places and small parsers. Shared parts are below.
//! `command_line` has the command as a line of words, `program` this program as a command sees it. `identity` tells files from others.
//! `trace`, `sites`, `cells`, `on`, `nodes`, `synthetic`, `plate` and `convert` have flags.

pub mod advise;
pub mod bench;
pub mod cells;
pub mod checksum;
pub mod command_line;
pub mod compare;
pub mod convert;
pub mod diagnosis;
pub mod doctor;
pub mod embed;
pub mod generate;
mod identity;
pub mod infer;
pub mod info;
mod left_out;
pub mod link;
pub mod nodes;
pub mod on;
pub mod opening;
pub mod plate;
pub mod processes;
pub mod program;
pub mod recipe;
mod recorded_paths;
pub mod report;
mod result_file;
mod sites;
mod size;
pub mod stats;
pub mod synthetic;
pub mod task_native;
pub mod tasks;
pub mod trace;
mod unreadable;
pub mod verify;
pub mod view;
mod without_checksums;
pub mod write_options;

pub use sites::SiteArgs;
pub use size::{parse_crop, parse_size};

use crate::output::{Failure, Outcome, Ui, bytes};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use wellread_store::sites::misspelt_fields;
use wellread_store::staged::{self, Leftover, LeftoverKind};
use wellread_store::words::first_and_more;
use wellread_store::{OpenOptions, Store, place};

/// Options of every command that opens a set of images.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct OpenArgs {
    /// Read as this format; by default the content decides.
    #[arg(help_heading = "Opening a set", long, value_name = "FORMAT")]
    pub read_as: Option<String>,
    /// Multiscale level of OME-Zarr images; 0 is full resolution.
    #[arg(help_heading = "Opening a set", long, default_value_t = 0)]
    pub level: usize,
    /// Image column of a table that has several.
    #[arg(help_heading = "Opening a set", long)]
    pub column: Option<String>,
    /// Table of a database that has several, or split of an image folder, such as train or val.
    #[arg(help_heading = "Opening a set", long, visible_alias = "split")]
    pub table: Option<String>,
    /// Leave out rows of a table that hold no image; by default such a row is an error.
    #[arg(help_heading = "Opening a set", long)]
    pub skip_null: bool,
    #[command(flatten)]
    pub sites: SiteArgs,
    #[command(flatten)]
    pub cells: cells::CellArgs,
}

impl OpenArgs {
    fn options(&self) -> OpenOptions {
        OpenOptions {
            format: self.read_as.clone(),
            level: self.level,
            column: self.column.clone(),
            table: self.table.clone(),
            ..self.sites.options().open_options()
        }
    }

    /// Opens once more what [`Self::open`] has opened, without repeating its remarks.
    pub fn open_again(&self, path: &Path) -> anyhow::Result<Box<dyn Store>> {
        Ok(self.cells.of(self.open_images_again(path)?, None)?)
    }

    /// The same of the images, also where cells of them are asked for.
    pub fn open_images_again(&self, path: &Path) -> anyhow::Result<Box<dyn Store>> {
        let store = wellread_store::open(path, &self.options())?;
        if !self.skip_null {
            return Ok(store);
        }
        Ok(Box::new(wellread_store::subset::Subset::without_nulls(store)?))
    }

    /// Opens `path`, and says what the set lacks.
    pub fn open(&self, path: &Path, ui: Ui) -> Outcome<Box<dyn Store>> {
        self.open_with_notes(path, false, left_out::notes, ui)
    }

    /// Opens `path`, for who says what the set lacks as part of its answer: the rest of it, where parts are gone. An answer about cells
    /// has no sites.
    pub fn open_to_describe(&self, path: &Path, ui: Ui) -> Outcome<Box<dyn Store>> {
        let are_cells = self.cells.cells.is_some();
        self.open_with_notes(
            path,
            true,
            |images| if are_cells { left_out::notes_of_sites(images) } else { vec![] },
            ui,
        )
    }

    /// Opens `path`, and says by `notes` of the images what they lack.
    fn open_with_notes(
        &self,
        path: &Path,
        describes: bool,
        notes: impl Fn(&dyn Store) -> Vec<String>,
        ui: Ui,
    ) -> Outcome<Box<dyn Store>> {
        if let Some(name) = &self.read_as {
            known_format(name)?;
        }
        let options = self.options();
        let opened = wellread_store::open(path, &options);
        let mut images = if describes { left_out::or_rest(opened, path, &options, ui)? } else { opened? };
        note_unmatched_names(&*images, &options, ui);
        let notes = notes(&*images);
        if self.skip_null {
            let subset = wellread_store::subset::Subset::without_nulls(images)?;
            left_out::note_nulls(subset.left_out(), ui);
            images = Box::new(subset);
        }
        let store = self.cells.of(images, Some(ui))?;
        left_out::say(&notes, path, ui);
        Ok(store)
    }
}

/// Notes four things that are likely mistakes. Most names of files are a layout's, and others are not: images are single files then. A
/// folder's table does not name all images, or names files elsewhere. A pattern's field is nearly called like a known one.
pub fn note_unmatched_names(store: &dyn Store, options: &OpenOptions, ui: Ui) {
    let path = store.path().display();
    for (field, meant) in options.pattern.as_deref().map_or_else(Vec::new, misspelt_fields) {
        ui.hint(format!(
            "note: the pattern has a field {{{field}}}, which is a column of its own; did you mean {{{meant}}}?"
        ));
    }
    if let Some(unnamed) = store.hints().sites.and_then(|sites| sites.summary().unnamed_in_words()) {
        ui.hint(format!("note: {path}: {unnamed} (--layout files reads each file as an image)"));
    }
    if let Some(unused) = wellread_store::sites::unused_table(store, options) {
        ui.hint(format!("note: {path}: {unused}"));
    }
    let Some(unmatched) = wellread_store::sites::unmatched_names(store, options) else { return };
    let single = "--layout files if single files are meant";
    let advice = if unmatched.is_clash() {
        "--pattern with a field that tells them apart".to_owned()
    } else {
        format!("--layout {} --unmatched skip leaves others out", unmatched.layout)
    };
    ui.hint(format!("note: {path}: {unmatched} ({advice}; {single})"));
}

/// Values as one default of an option that takes a list, shown in the help text as it is typed.
pub fn listed(values: &[impl ToString]) -> &'static str {
    let texts: Vec<_> = values.iter().map(ToString::to_string).collect();
    // Once per option and process: the parser keeps its defaults as long as the program runs.
    texts.join(",").leak()
}

/// Checks a format name given on the command line.
pub fn known_format(name: &str) -> Outcome<&'static wellread_store::Format> {
    wellread_store::registry::format_named(name).map_err(|e| Failure::Usage(e.to_string()))
}

/// Where something will be once it is written, without links: it need not exist yet, and the nearest folder above it that does
/// tells.
fn future_path(target: &Path) -> Option<PathBuf> {
    if place::is_remote(target) {
        return Some(target.to_owned());
    }
    let target = std::path::absolute(target).unwrap_or_else(|_| target.to_owned());
    let there = target.ancestors().find(|p| p.exists())?;
    Some(there.canonicalize().ok()?.join(target.strip_prefix(there).unwrap_or(Path::new(""))))
}

/// Most leftovers that are named.
const MAX_NAMED_LEFTOVERS: usize = 5;

/// Says what killed runs have left directly in a folder, and what can be done with it.
pub fn note_leftovers(folder: &Path, ui: Ui) {
    note(&staged::leftovers(folder), ui);
}

/// As [`note_leftovers`], for a place of the whole machine: half-written files of the loader's cache.
pub fn note_machine_leftovers(ui: Ui) {
    note(&wellread_loader::cache::leftovers(None), ui);
}

fn note(left: &[Leftover], ui: Ui) {
    if let Some(all) = leftovers_in_words(left) {
        ui.hint(format!("note: runs that were ended have left {all}"));
    }
}

/// The folders and files that are left, and the way to remove them; `None` where nothing is left.
fn leftovers_in_words(left: &[Leftover]) -> Option<String> {
    let named = |kind: &LeftoverKind| -> Option<String> {
        let of_kind: Vec<&Leftover> = left.iter().filter(|one| one.kind == *kind).collect();
        let named: Vec<_> =
            of_kind.iter().map(|one| format!("{} ({})", one.path.display(), bytes(one.bytes))).collect();
        let more = of_kind.iter().skip(MAX_NAMED_LEFTOVERS);
        let folders = more.filter_map(|one| Some(one.path.parent()?.display().to_string()));
        let folders = distinct(&folders.collect::<Vec<_>>()).join(", ");
        let place = if folders.is_empty() { String::new() } else { format!(" in {folders}") };
        let named = first_and_more(&named, MAX_NAMED_LEFTOVERS, [", ", " and"]);
        (!of_kind.is_empty()).then(|| named + &place)
    };
    let aside = left.iter().filter_map(|one| match &one.kind {
        LeftoverKind::MovedAside(target) => {
            let path = one.path.display();
            Some(format!("{path}: the earlier {}, move it back", target.display()))
        }
        _ => None,
    });
    let partial = named(&LeftoverKind::Partial).map(|all| {
        format!(
            "{all}: not written to for an hour, remove each (rm -r) that no other machine or container uses"
        )
    });
    let unseen = named(&LeftoverKind::Unseen).map(|all| {
        format!(
            "{all}: begun on another machine, in another container or before this machine was started anew; remove it once no \
             process there writes it"
        )
    });
    let begun = named(&LeftoverKind::Resumable)
        .map(|all| format!("{all}: the same command with --resume continues from it; else remove it"));
    let all: Vec<String> = aside.chain(partial).chain(unseen).chain(begun).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// As [`note_leftovers`], for the folder that a target lies in, and with what a process elsewhere may be writing of the same target.
pub fn note_leftovers_beside(target: &Path, ui: Ui) {
    if let Some(place) = future_path(target) {
        note(&staged::leftovers_beside(&place), ui);
    }
}

/// Whether both exist and are the same file or folder.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Refuses to write `target`, the value of `option`, into the folder of images `source`, which would then hold it as well.
pub fn outside_of(source: &Path, option: &str, target: &Path) -> Outcome {
    let (Ok(place), Some(written)) = (source.canonicalize(), future_path(target)) else { return Ok(()) };
    if !place.is_dir() || !written.starts_with(&place) {
        return Ok(());
    }
    let name = target.file_name().filter(|_| written != place).unwrap_or(OsStr::new("results"));
    let beside = match source.file_name() {
        Some(_) => source.with_file_name(name),
        // A path that ends in dots.
        None if source == Path::new(".") => Path::new("..").join(name),
        None => source.join("..").join(name),
    };
    Err(Failure::Usage(format!(
        "{option} {}: lies inside the images, {}, which would then hold both; choose a place outside: {option} {}",
        target.display(),
        source.display(),
        beside.display()
    )))
}

/// Most threads that an option takes.
pub const MAX_THREADS: usize = 1024;

/// Number of threads for whole-set operations: the machine's cores.
pub fn default_jobs() -> usize {
    wellread_worker::threads().min(MAX_THREADS)
}

/// Parses a number of things of which there must be one at least.
pub fn parse_positive(text: &str) -> Result<usize, String> {
    text.trim()
        .parse()
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| format!("{text:?} is no whole number of at least one"))
}

/// Parses a number of threads that do all of the work, of which there must be one at least.
pub fn parse_jobs(text: &str) -> Result<usize, String> {
    match parse_threads(text) {
        Ok(0) => Err(format!(
            "without a thread nothing is done; give 1 to {MAX_THREADS}, or leave the option out for one per processor"
        )),
        Ok(threads) => Ok(threads),
        Err(_) => Err(format!("{text:?} is no number of threads from 1 to {MAX_THREADS}")),
    }
}

/// Parses a number of threads beside the one that takes batches, which does their work where there are none.
pub fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.trim().parse().ok().filter(|&n: &usize| n <= MAX_THREADS);
    threads.ok_or_else(|| format!("{text:?} is no number of threads from 0 to {MAX_THREADS}"))
}

/// Parses a time in seconds.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    // As long as anybody's patience, and far from what a duration cannot hold.
    const MAX_SECONDS: f64 = 1e7;
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds.min(MAX_SECONDS)),
        _ => Err(format!("{text:?} is no positive number of seconds")),
    }
}

/// Parses a share from 0 to 1, such as `5%` or `0.05`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = match trimmed.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(trimmed),
    };
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
        format!("{text:?} is no share; write a percentage such as 5%, or a number from 0 to 1 such as 0.05")
    })
}

/// Parses five positive numbers `T,C,Z,Y,X`.
pub fn parse_tczyx(text: &str) -> Result<[usize; 5], String> {
    let numbers: Option<Vec<usize>> =
        text.split(',').map(|s| s.trim().parse().ok().filter(|&n| n > 0)).collect();
    numbers
        .and_then(|n| n.try_into().ok())
        .ok_or_else(|| format!("{text:?} is not five positive numbers T,C,Z,Y,X, such as 1,1,1,256,256"))
}

/// The given values, each once, in order: a value given twice would be measured twice under one name.
pub fn distinct<T: Clone + PartialEq>(given: &[T]) -> Vec<T> {
    let mut out: Vec<T> = Vec::with_capacity(given.len());
    for value in given {
        if !out.contains(value) {
            out.push(value.clone());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_that_are_not_named_are_found_by_their_folder() {
        let left = |n: u64| Leftover {
            path: Path::new("tmp").join(format!("worker-{n}")),
            bytes: 512,
            kind: LeftoverKind::Partial,
        };
        let said = |n: u64| leftovers_in_words(&(0..n).map(left).collect::<Vec<_>>());
        assert_eq!(said(0), None);
        let one = Path::new("tmp").join("worker-0").display().to_string();
        assert_eq!(
            said(1).unwrap(),
            format!(
                "{one} (512 B): not written to for an hour, remove each (rm -r) that no other machine or container uses"
            )
        );
        let many = said(8).unwrap();
        assert!(many.starts_with(&one) && many.contains("worker-4 (512 B) and 3 more in tmp: not"), "{many}");
    }

    #[test]
    fn parsers_accept_what_they_document() {
        assert_eq!(
            (parse_share("5%"), parse_share(" 0.05 "), parse_share("0")),
            (Ok(0.05), Ok(0.05), Ok(0.0))
        );
        assert!(["5", "-1%", "nan", "x%", "", "%", "inf"].iter().all(|text| parse_share(text).is_err()));
        assert_eq!([parse_jobs("1"), parse_jobs(" 1024 "), parse_threads("0")], [Ok(1), Ok(1024), Ok(0)]);
        assert!(parse_jobs("0").unwrap_err().contains("leave the option out for one per processor"));
        assert!(["1025", "-1", "two", ""].iter().all(|text| parse_jobs(text).is_err()));
        assert_eq!(parse_tczyx("1,2,3,4,5"), Ok([1, 2, 3, 4, 5]));
        assert!(parse_tczyx("1,2,3").is_err() && parse_tczyx("1,1,1,0,1").is_err());
    }
}
