//! Lance's errors, as errors of a path.

use crate::dataset::OUTSIDE;
use lance_core::Error as LanceError;
use std::borrow::Cow;
use std::path::Path;
use wellread_store::direct::PlaceError;
use wellread_store::{Error, FILE_TOO_LARGE_HINT};

/// The action of the writer.
pub(crate) const CANNOT_WRITE: &str = "cannot write";

/// An error of Lance while doing `what` with the table at `path`.
pub(crate) fn from_lance(path: &Path, what: &str, error: &LanceError) -> Error {
    if let Some(error) = PlaceError::find(error) {
        return Error::io(path, what, error);
    }
    let text = without_location(&without_task(&error.to_string()));
    let hint = match error {
        LanceError::VersionConflict { .. } | LanceError::NotSupported { .. } => {
            "it is probably from a newer Lance than this build has; write it again with an older one"
        }
        LanceError::DatasetNotFound { .. } | LanceError::NotFound { .. } => {
            "a part of the dataset is missing; copy or write the whole folder again"
        }
        LanceError::DiskCapExceeded { .. } => "free some space or write elsewhere",
        _ if text.contains("No space left") => "free some space or write elsewhere",
        _ if text.contains("File too large") => FILE_TOO_LARGE_HINT,
        _ if text.contains("Permission denied") => "check the permissions of the folder and what is in it",
        _ if text.contains("ewer version")
            || text.contains("nknown Lance storage version")
            || text.contains("upgrade") =>
        {
            "it is from a newer Lance than this build has; write it again with an older one"
        }
        _ if text.contains(OUTSIDE) => "copy the dataset and those files to local folders",
        _ if what == CANNOT_WRITE => "check the folder that is written to and its disk",
        _ => "the dataset is probably corrupt or incomplete; copy or write it again",
    };
    Error::new(path, format_args!("{what}: {text}")).hint(hint)
}

/// The text without the task of Lance's runtime that panicked over a file (`Wrapped error: task 30 panicked with
/// message "…"`): its message is an error like any other.
fn without_task(text: &str) -> Cow<'_, str> {
    const PANICKED: &str = " panicked with message \"";
    let parts = || {
        let (before, after) = text.split_once(PANICKED)?;
        let (before, number) = before.rsplit_once("task ")?;
        let (message, after) = after.rsplit_once('"')?;
        let before = before.strip_suffix("Wrapped error: ").unwrap_or(before);
        number.bytes().all(|b| b.is_ascii_digit()).then(|| format!("{before}{message}{after}"))
    };
    parts().map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The text without the places in Lance's source that its errors end with (`, …/file.rs:12:34`). These say nothing
/// to a reader and name paths of the machine that compiled it.
fn without_location(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(end) = rest.find(".rs:") {
        // The place starts behind the last separator before the file's name.
        let start = rest[..end].rfind(", ").or_else(|| rest[..end].rfind(": "));
        let after = &rest[end + ".rs:".len()..];
        let digits = after.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(after.len());
        let (head, place) = rest.split_at(start.unwrap_or(end));
        out.push_str(head);
        if place.contains(char::is_whitespace) && start.is_none() {
            out.push_str(place);
            return out;
        }
        rest = &after[digits..];
    }
    out.push_str(rest);
    out.trim_end_matches([',', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_said_is_told_without_the_task() {
        for (from, to) in [
            (
                "Wrapped error: task 30 panicked with message \"a \"short\" buffer\", /r/a.rs:1:2",
                "a \"short\" buffer, /r/a.rs:1:2",
            ),
            ("IO: task 4 panicked with message \"x\"", "IO: x"),
            ("a task panicked", "a task panicked"),
            ("no task x panicked with message \"y\"", "no task x panicked with message \"y\""),
        ] {
            assert_eq!(without_task(from), to);
        }
    }

    #[test]
    fn places_in_source_are_left_out() {
        for (from, to) in [
            ("LanceError(IO): no file, /r/lance-io-1/src/a.rs:12:34", "LanceError(IO): no file"),
            ("Not found: a/b.lance, src/x.rs:1:2", "Not found: a/b.lance"),
            (
                "Wrapped error: LanceError(IO): broken, /r/b.rs:9:7, /r/src/c.rs:134:25",
                "Wrapped error: LanceError(IO): broken",
            ),
            ("nothing to see", "nothing to see"),
        ] {
            assert_eq!(without_location(from), to);
        }
    }
}
