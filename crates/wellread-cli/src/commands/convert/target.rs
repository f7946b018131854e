//! The target of `convert`: its format and its place, which must not be one that is read.

use super::super::write_options::WriteArgs;
use super::super::{future_path, known_format};
use super::layouts::LayoutArg;
use crate::output::{Failure, Outcome};
use std::path::{Path, PathBuf};
use wellread_store::{Format, OpenOptions, Store, concat, place, registry};

/// The format to write: as it is named, by a layout, or by the ending of the target's name.
pub(super) fn target_format(
    target: &Path,
    format: Option<&str>,
    layout: Option<LayoutArg>,
) -> Outcome<&'static Format> {
    let by_layout = match (format, layout) {
        (Some(_), Some(_)) => {
            let why = "--format and the layout of the target (--layout nested, --layout dataset) are two names of one thing";
            return Err(Failure::Usage(format!("{why}; give one of them")));
        }
        (Some(name), None) => return known_format(name),
        (None, None) => return guess_format(target),
        (None, Some(LayoutArg::Nested)) => known_format("parquet")?,
        (None, Some(LayoutArg::Dataset)) => known_format("ome-arrow-dataset")?,
    };
    match format_by_ending(target) {
        Some(ending) if ending != by_layout.name => Err(Failure::Usage(format!(
            "the layout of the target is that of {}, but {} ends as the name of {ending}. Name a target that ends in {}, or leave the layout out",
            by_layout.name,
            target.display(),
            by_layout.endings.join(" or ")
        ))),
        _ => Ok(by_layout),
    }
}

/// Refuses options of writing that a format would pass over in silence.
pub(super) fn refuse_ignored(write: &WriteArgs, format: &Format) -> Outcome {
    let wrong = |why: &str| Err(Failure::Usage(why.to_owned()));
    match format.name {
        "tiff" if write.shard.is_some() => wrong("TIFF files have no shards; leave --shard out"),
        "image-folder" if write.shard.is_some() => wrong("PNG files have no shards; leave --shard out"),
        "image-folder" if write.chunk.is_some() => wrong("PNG files have no chunks; leave --chunk out"),
        "ome-arrow-dataset" if write.chunk.is_some() && write.variant.is_some() => {
            wrong("--variant and --chunk both say how a dataset cuts images; give one of them")
        }
        _ => Ok(()),
    }
}

/// Name of the format that the ending of a target's name tells of, also where this build does not have it.
fn format_by_ending(target: &Path) -> Option<&'static str> {
    let name = target.file_name()?.to_string_lossy();
    let format = registry::formats().iter().find(|f| f.has_ending(&name)).map(|f| f.name);
    format.or_else(|| registry::absent_format_of(&name).map(|absent| absent.name))
}

fn guess_format(target: &Path) -> Outcome<&'static Format> {
    if let Some(name) = format_by_ending(target) {
        return known_format(name);
    }
    let names: Vec<_> = registry::formats().iter().map(|f| f.name).collect();
    Err(Failure::Usage(format!(
        "cannot tell the format from the name {:?}; pass --format with one of {}",
        target.display().to_string(),
        names.join(", ")
    )))
}

/// A path without links, where something is; an address as it is.
fn whole(path: &Path) -> std::io::Result<PathBuf> {
    if place::is_remote(path) { Ok(path.to_owned()) } else { path.canonicalize() }
}

/// Refuses to write into the source, or over a folder that holds it.
pub(super) fn check_paths(source: &Path, target: &Path) -> Outcome {
    let (Ok(source), Some(place)) = (whole(source), future_path(target)) else { return Ok(()) };
    let problem = if place == source {
        "source and target are the same place"
    } else if place.starts_with(&source) && place::is_folder(&source) {
        "the target lies inside the source, which would then hold both"
    } else if source.starts_with(&place) {
        "the source lies inside the target"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(format!("{problem}; choose a target elsewhere")))
}

/// The files of label images that a pattern names.
fn files_of(pattern: &Path) -> Vec<PathBuf> {
    let labels = concat::open(pattern, &OpenOptions::default());
    labels.and_then(|labels| labels.files()).unwrap_or_default()
}

/// Refuses to replace files that are read. These are `others`, such as a table of profiles, of cells or their label
/// images, and files of the source in other folders. Links in its folder and OME-TIFF images of several files have such
/// files.
pub(super) fn check_files(source: &dyn Store, others: &[&Path], target: &Path) -> Outcome {
    let Ok(place) = whole(target) else { return Ok(()) };
    // A set that cannot tell has no such files.
    let files = source.files().unwrap_or_default();
    let patterns = others.iter().filter(|path| whole(path).is_err());
    let named: Vec<PathBuf> = patterns.flat_map(|pattern| files_of(pattern)).collect();
    let mut read = others.iter().copied().chain(files.iter().chain(&named).map(PathBuf::as_path));
    // A path that is read may be a folder, such as one of label images, and the target a file in it.
    let is_replaced = |file: PathBuf| file.starts_with(&place) || place.starts_with(&file);
    match read.find(|file| whole(file).is_ok_and(is_replaced)) {
        None => Ok(()),
        Some(file) => Err(Failure::Usage(format!(
            "{} is read and would be replaced with the target; choose a target elsewhere",
            file.display()
        ))),
    }
}

/// The note on a part that a run with --resume has left, where this one begins anew.
pub(super) fn note_on_part(part: &Path) -> String {
    let folder = part.display();
    if place::exists(part) {
        return format!("note: {folder} stays: another process may be writing it; remove it when none does");
    }
    format!(
        "note: {folder}, which an interrupted run with --resume had left, was removed: this run begins anew"
    )
}
