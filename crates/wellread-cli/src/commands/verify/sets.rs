//! The two sets that `verify --against` compares, and which of them options of opening are of.
//!
//! ```text
//!  --layout, --pattern, --missing … ─┬─▶ the first set, where it takes them ──▶ and the other one, where that does too
//!  --cells …                         └─▶ else the other one: the first is what was made of it
//! ```

use super::super::cells::CellArgs;
use super::super::{OpenArgs, SiteArgs};
use crate::output::{Failure, Outcome, Ui};
use std::path::Path;
use wellread_store::Store;

/// A set, and the options that it was opened with: the nodes of a cluster open it in the same way.
pub(super) struct Opened {
    pub set: Box<dyn Store>,
    pub options: OpenArgs,
}

/// Opens a set.
///
/// # Errors
/// It cannot be opened as it is asked for.
pub(super) fn opened(options: OpenArgs, path: &Path, ui: Ui) -> Outcome<Opened> {
    Ok(Opened { set: options.open(path, ui)?, options })
}

/// Opens a set and the one that it is compared with.
///
/// # Errors
/// The first one cannot be opened, as it is asked for or by itself; the other one neither.
pub(super) fn open_both(options: &OpenArgs, first: &Path, other: &Path, ui: Ui) -> Outcome<[Opened; 2]> {
    // How pixels are read is asked of the first set alone, which has levels, or several columns.
    let of_other = OpenArgs {
        sites: options.sites.clone(),
        cells: options.cells.clone(),
        skip_null: options.skip_null,
        ..OpenArgs::default()
    };
    let refusal = match open_fitting(options, first, ui) {
        Ok(set) => return Ok([set, open_with_fitting_options(&of_other, other, ui)?]),
        Err(refusal) => refusal,
    };
    if options.sites.options().is_default() && options.cells.cells.is_none() {
        return Err(refusal);
    }
    // Options that the first set cannot take belong to the other one.
    let Ok(set) = opened(without_sites(&without_cells(options)), first, ui) else { return Err(refusal) };
    match open_fitting(&of_other, other, ui) {
        Ok(other) => Ok([set, other]),
        Err(of_other) => Err(combined(refusal, of_other)),
    }
}

/// Opens a set with as many of the options as fit it.
fn open_with_fitting_options(options: &OpenArgs, path: &Path, ui: Ui) -> Outcome<Opened> {
    let images = without_cells(options);
    let bare = without_sites(&images);
    open_fitting(options, path, ui).or_else(|_| opened(images, path, ui)).or_else(|_| opened(bare, path, ui))
}

/// Opens a set, cells of images that are no cells already.
fn open_fitting(options: &OpenArgs, path: &Path, ui: Ui) -> Outcome<Opened> {
    if options.cells.cells.is_some()
        && without_cells(options).open_again(path).is_ok_and(|images| are_cells(&*images))
    {
        let cause = format!("{}: its images are cells", path.display());
        return Err(Failure::Usage(format!(
            "{cause} (hint: --cells is for the images that cells are cut out of)"
        )));
    }
    opened(options.clone(), path, ui)
}

/// Whether images are cells that were cut out before, by the name of the first one.
pub(super) fn are_cells(images: &dyn Store) -> bool {
    let name = if images.is_empty() { None } else { images.name(0).ok() };
    name.is_some_and(|name| name.rsplit('/').next().is_some_and(|last| last.starts_with("cell-")))
}

fn without_cells(options: &OpenArgs) -> OpenArgs {
    OpenArgs { cells: CellArgs::default(), ..options.clone() }
}

fn without_sites(options: &OpenArgs) -> OpenArgs {
    OpenArgs { sites: SiteArgs::default(), ..options.clone() }
}

/// Why neither set takes the options.
fn combined(first: Failure, other: Failure) -> Failure {
    match (first, other) {
        (Failure::Usage(first), Failure::Usage(other) | Failure::Failed(other)) => {
            Failure::Usage(format!("{first}\n{other}"))
        }
        (Failure::Failed(first), Failure::Usage(other) | Failure::Failed(other)) => {
            Failure::Failed(format!("{first}\n{other}"))
        }
        (first, _) => first,
    }
}
