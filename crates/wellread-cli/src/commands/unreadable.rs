//! `convert|stats --on-error skip`: images that cannot be read are found before anything is written or counted.
//!
//! ```text
//!  source ── every image read once, by threads or a cluster ─▶ rows that can be read ─▶ Subset ─▶ convert, stats
//!                                                         └─▶ the others: named, in the result
//! ```
//!
//! The set's rows must be known before it is written: columns, names and parts of a cluster are by row.

use crate::commands::OpenArgs;
use crate::commands::left_out;
use crate::commands::on::On;
use crate::output::{Outcome, Ui};
use std::path::Path;
use wellread_infer::source::{Unreadable, reason};
use wellread_store::checksum::all;
use wellread_store::subset::Subset;
use wellread_store::{Error, Store};

/// The images of `source` that can be read, and the others.
///
/// # Errors
/// There is none that can be read. A link or a server failed. The cluster's error.
pub(super) fn without(
    source: Box<dyn Store>,
    (open, path): (&OpenArgs, &Path),
    jobs: usize,
    on: Option<&On>,
    ui: Ui,
) -> Outcome<(Box<dyn Store>, Vec<Unreadable>)> {
    let what = "looking for images that cannot be read";
    let read = if let Some(on) = on {
        on.sums(&[(open, path)], "skip", what, ui)?.sets.pop().unwrap_or_default()
    } else {
        let bar = ui.progress(source.len() as u64, what);
        let read = all(&*source, jobs, &|| bar.inc(1));
        bar.finish_and_clear();
        read
    };
    let (mut rows, mut unreadable) = (vec![], vec![]);
    for (row, image) in read.into_iter().enumerate() {
        match image {
            Ok(_) => rows.push(row),
            // The image may be as good as any other.
            Err(error) if error.is_of_link() => return Err(error.into()),
            Err(error) => unreadable.push((row, error)),
        }
    }
    if rows.is_empty() && !unreadable.is_empty() {
        return Err(unreadable.swap_remove(0).1.into());
    }
    let others = listed(&*source, unreadable);
    if others.is_empty() {
        return Ok((source, others));
    }
    left_out::warn(&others, ui);
    Ok((Box::new(Subset::of(source, rows)), others))
}

/// The error of an image that cannot be read, with the ways to go on without it. These are `way`, and the command that lists all such
/// images of the set at `path`. Other errors stay as they are.
pub(super) fn with_ways_out(error: Error, path: &Path, way: &str) -> Error {
    // A kind of file that is not read has advice of its own, and a link or a shared file fails for every image.
    let is_of_image = error.row_index().is_some()
        && error.column_name().is_none()
        && !error.is_unsupported()
        && !error.is_choice()
        && !error.is_null_image()
        && !error.is_of_shared_file()
        && !error.may_pass();
    if !is_of_image {
        return error;
    }
    let way = if way.is_empty() { String::new() } else { format!("{way}; ") };
    error.or_hint(format_args!("{way}`wellread verify {}` lists all of them", path.display()))
}

/// Rows of a set that cannot be read, as a result lists them.
pub(super) fn listed(source: &dyn Store, rows: Vec<(usize, Error)>) -> Vec<Unreadable> {
    rows.into_iter().map(|(row, error)| described(source, row, &error)).collect()
}

/// An image with the reason why it cannot be read.
fn described(source: &dyn Store, row: usize, error: &Error) -> Unreadable {
    let name = source.name(row).unwrap_or_else(|_| format!("row {row}"));
    Unreadable { row, name, reason: reason(source.path(), error) }
}
