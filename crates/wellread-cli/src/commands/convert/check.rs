//! Whether what `convert` wrote, now or in an earlier run, reads back as the source, and what becomes of it where it does not.
//!
//! ```text
//!  written ──read back──▶ same ──▶ to its place
//!                    ├──▶ damaged in what an interrupted run has left ──▶ removed from there on, written again
//!                    └──▶ anything else ──▶ an error; nothing is left
//! ```

use crate::output::{Failure, Outcome, Ui};
use std::path::Path;
use wellread_store::convert::Converted;
use wellread_store::features::FeatureColumns;
use wellread_store::read_back::{self, Digests};
use wellread_store::words::counted_with;
use wellread_store::{Error, Format, OpenOptions, Store};

/// A result of the check.
pub(super) enum Checked {
    /// It is as the source; the facts that it has no place for, and the seconds that looking took.
    Same(Box<Converted>, Vec<&'static str>, f64),
    /// An image that an interrupted run has left was damaged since: it is removed, and all after it. The text tells
    /// of that.
    Truncated(String),
}

/// The two sides of the comparison.
pub(super) struct Check<'a> {
    pub source: &'a dyn Store,
    /// Where the output will be.
    pub target: &'a Path,
    pub format: &'a Format,
    /// The columns that were written beside the images.
    pub columns: Option<&'a FeatureColumns>,
    /// So many images, from the first on.
    pub rows: usize,
    /// So many an interrupted run has left.
    pub resumed: usize,
    pub jobs: usize,
}

impl Check<'_> {
    /// Reads back what was written and compares it with the source. Output that differs is removed before anybody finds it at the
    /// target. An interrupted run has left images, and those before a damaged one are kept. `failed` makes the error of a source that
    /// cannot be read.
    pub(super) fn run(
        &self,
        converted: Converted,
        failed: &dyn Fn(Error) -> Failure,
        ui: Ui,
    ) -> Outcome<Checked> {
        let Self { source, target, format, columns, rows, resumed, jobs } = *self;
        let start = std::time::Instant::now();
        let bar = ui.progress(rows as u64, "reading back");
        let checked = converted.check(source, format.name, columns, rows, jobs, &|| bar.inc(1));
        bar.finish_and_clear();
        let error = match checked {
            Ok(left_out) => {
                let left_out = say_left_out(format, Ok(left_out), ui);
                return Ok(Checked::Same(Box::new(converted), left_out, start.elapsed().as_secs_f64()));
            }
            Err(error) => error,
        };
        if is_of_source(&error, source, converted.output.path()) {
            // A source that cannot be read says nothing of what was written: that may be gone on with.
            drop(converted);
            return Err(failed(error));
        }
        let said = in_words(&error, converted.output.path());
        if let Some(row) = error.row_index().filter(|row| *row < resumed) {
            return self.of_interrupted_run(converted, row, &said);
        }
        let what = format!("the written set does not read back as the source: {said}");
        converted.output.discard();
        let advice = error.hint_text().map_or(String::new(), |hint| format!("{hint}; "));
        let advice = format!(
            "{advice}nothing was left behind; convert again, and report this if it happens again (--no-verify leaves the \
         check out)"
        );
        Err(Failure::Failed(Error::new(target, what).hint(advice).to_string()))
    }

    /// The fault of image `row`, which an interrupted run has left, and the remedy. The part before it is kept.
    fn of_interrupted_run(&self, converted: Converted, row: usize, said: &str) -> Outcome<Checked> {
        let Self { target, format, .. } = *self;
        let open = OpenOptions { format: Some(format.name.to_owned()), ..OpenOptions::default() };
        let read = |store: Box<dyn Store>| wellread_store::read_image(&*store, row);
        let can_be_read = wellread_store::open(converted.output.path(), &open).and_then(read).is_ok();
        let failure = |what: &str, advice: &str| {
            let what = format!("the part that an interrupted run left {what}: {said}");
            Err(Failure::Failed(Error::new(target, what).hint(advice).to_string()))
        };
        if can_be_read {
            converted.output.discard();
            let advice =
                "the source has changed since; nothing was left behind: the same command converts all images";
            return failure("differs from the source", advice);
        }
        // An image that cannot be read at all is no other image: it was damaged since.
        if converted.output.keep_before(row) {
            // Its journal is locked until this is dropped.
            drop(converted);
            let before = counted_with(row, "image", ["before it is", "before it are"]);
            return Ok(Checked::Truncated(format!(
                "note: the part that an interrupted run left is damaged: {said}; {before} kept, and the others \
                 are written again"
            )));
        }
        converted.output.discard();
        let advice = format!(
            "{} keeps several images in a file, so that nothing was left behind: the same command converts all images",
            format.name
        );
        failure("is damaged", &advice)
    }
}

/// The comparison of a finished set with its source, which found no difference.
pub(super) struct Compared {
    /// Facts of images that the set has no place for.
    pub left_out: Vec<&'static str>,
    /// The time of the comparison.
    pub seconds: f64,
}

/// Reads all images of `target`, which an earlier run has completed at `path`, and compares them with those of the source. The inner
/// error is the first difference, in words.
///
/// # Errors
/// An image of the source that cannot be read.
pub(super) fn compare_finished(
    source: &dyn Store,
    target: &dyn Store,
    path: &Path,
    jobs: usize,
    ui: Ui,
) -> Outcome<Result<Compared, String>> {
    let start = std::time::Instant::now();
    let bar = ui.progress(source.len() as u64, "comparing with the source");
    let checked = read_back::check(source, &Digests::default(), target, source.len(), jobs, &|| bar.inc(1));
    bar.finish_and_clear();
    match checked {
        Ok(left_out) => Ok(Ok(Compared { left_out, seconds: start.elapsed().as_secs_f64() })),
        Err(error) if is_of_source(&error, source, path) => Err(error.into()),
        Err(error) => Ok(Err(in_words(&error, path))),
    }
}

/// In what the set at `written` differs from its source: the file, the row, and how.
fn in_words(error: &Error, written: &Path) -> String {
    let at = error.row_index().map_or(String::new(), |row| format!("row {row}: "));
    format!("{}{at}{}", error.file_below(written), error.cause())
}

/// Whether an error of comparing `source` with what was written at `written` is one of the source. The common folder of several sets
/// is the empty path where they lie in the working folder: every path starts with it.
pub(super) fn is_of_source(error: &Error, source: &dyn Store, written: &Path) -> bool {
    error.path().starts_with(source.path()) && !error.path().starts_with(written)
}

/// Says which facts of images a format has no place for, and returns them. Nothing is said where the target could not be looked at.
pub(super) fn say_left_out(
    format: &Format,
    left_out: Result<Vec<&'static str>, Error>,
    ui: Ui,
) -> Vec<&'static str> {
    let left_out = left_out.unwrap_or_default();
    if !left_out.is_empty() {
        ui.warn(format!("note: {} has no place for {}; they are left out", format.name, left_out.join(", ")));
    }
    left_out
}
