//! One error type: which file, which row, what is wrong, what to do.

use crate::place;
use crate::words::there_are;
use std::fmt;
use std::path::{Path, PathBuf};

/// Result of everything that touches storage.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The advice where the system says that a file became too large.
pub const FILE_TOO_LARGE_HINT: &str = "raise the limit on the size of files (ulimit -f) or write elsewhere";

/// A failure: its place, its cause and one thing to do.
///
/// Printed as `FILE: row N: cause (hint: …)`; parts that are unknown are left out.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    row: Option<usize>,
    column: Option<String>,
    cause: String,
    hint: Option<String>,
    missing: bool,
    passing: bool,
    unreadable: bool,
    choice: bool,
    unsupported: bool,
    of_shared_file: bool,
    skippable: bool,
}

impl Error {
    /// An error about `path`, with its cause in words. Passwords and signatures of an address are not kept.
    pub fn new(path: impl AsRef<Path>, cause: impl fmt::Display) -> Self {
        Self(Box::new(Inner {
            path: place::shown(path.as_ref()).into_owned(),
            row: None,
            column: None,
            cause: cause.to_string(),
            hint: None,
            missing: false,
            passing: false,
            unreadable: false,
            choice: false,
            unsupported: false,
            of_shared_file: false,
            skippable: false,
        }))
    }

    /// An input/output error at `path` while doing `what` ("cannot open", "cannot write" …). It has a hint
    /// for the usual causes: missing file, no permission, full disk, too many open files.
    pub fn io(path: impl AsRef<Path>, what: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let hint = match error.kind() {
            K::NotFound => Some("check the path"),
            // A server's refusal has its own advice.
            K::PermissionDenied if error.get_ref().is_none() => {
                Some("check the permissions of the file and of its folder")
            }
            K::StorageFull | K::QuotaExceeded => Some("free some space or write elsewhere"),
            K::FileTooLarge => Some(FILE_TOO_LARGE_HINT),
            K::UnexpectedEof => Some("the file is probably truncated; copy or write it again"),
            _ if is_of_too_many_files(error) => {
                Some("raise the limit on open files (ulimit -n), or put the set into fewer files")
            }
            _ => None,
        };
        let mut e = Self::new(path, format_args!("{what}: {error}"));
        e.0.missing = error.kind() == K::NotFound;
        e.0.passing = !matches!(
            error.kind(),
            K::NotFound
                | K::PermissionDenied
                | K::UnexpectedEof
                | K::InvalidData
                | K::InvalidInput
                | K::IsADirectory
                | K::NotADirectory
        ) && !is_of_links_in_a_circle(error);
        match hint {
            Some(hint) => e.hint(hint),
            None => e,
        }
    }

    /// A row was asked for that the set at `path` of `len` images does not have.
    pub fn no_such_row(path: impl AsRef<Path>, row: usize, len: usize) -> Self {
        let error = Self::new(path, format_args!("row {row} was asked for, but {}", there_are(len, "image")));
        if len == 0 { error } else { error.hint(format_args!("rows go from 0 to {}", len - 1)) }
    }

    /// The cause of the error for a row that holds no image.
    pub(crate) const NULL_IMAGE: &str = "the image is null";

    /// Whether a row has no image at all, as tables allow.
    pub fn is_null_image(&self) -> bool {
        self.0.cause == Self::NULL_IMAGE
    }

    /// Names the row (image index) at fault.
    pub fn row(mut self, row: usize) -> Self {
        self.0.row.get_or_insert(row);
        self
    }

    /// Names another row than was named: where a set is made of the rows of another one.
    pub(crate) fn of_row(mut self, row: usize) -> Self {
        self.0.row = Some(row);
        self
    }

    /// The same, where a row is named and `row_of` knows the other one.
    pub(crate) fn of_outer_row(self, row_of: impl FnOnce(usize) -> Option<usize>) -> Self {
        match self.row_index().and_then(row_of) {
            Some(row) => self.of_row(row),
            None => self,
        }
    }

    /// Names the column beside the images at fault: the others can be read without it.
    pub fn column(mut self, name: &str) -> Self {
        self.0.column.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Says that a file could not be read, where an error may also be a wrong choice.
    pub fn unreadable(mut self) -> Self {
        self.0.unreadable = true;
        self
    }

    /// Whether a file could not be read, as far as that was said.
    pub fn is_unreadable(&self) -> bool {
        self.0.unreadable
    }

    /// States that nothing is wrong with the file: the request cannot be met.
    pub fn choice(mut self) -> Self {
        self.0.choice = true;
        self
    }

    /// Whether something was asked for that is not to be had, as far as that was said.
    pub fn is_choice(&self) -> bool {
        self.0.choice
    }

    /// States that the file may be fine, but is of a kind that is not read.
    pub fn unsupported(mut self) -> Self {
        self.0.unsupported = true;
        self
    }

    /// Whether what is read may be fine and is of a kind that is not read, as far as that was said.
    pub fn is_unsupported(&self) -> bool {
        self.0.unsupported
    }

    /// States that it is no fault of the image that it names: a file failed that others need as well.
    pub fn of_shared_file(mut self) -> Self {
        self.0.of_shared_file = true;
        self
    }

    /// Whether it is no fault of the image that it names, as far as that was said: leaving that image out is no answer.
    pub fn is_of_shared_file(&self) -> bool {
        self.0.of_shared_file
    }

    /// States that the set lacks parts, and that [`crate::Missing::Skip`] opens the rest.
    pub(crate) fn skippable(mut self) -> Self {
        self.0.skippable = true;
        self
    }

    /// Whether a set lacks parts and [`crate::Missing::Skip`] opens the rest, as far as that was said.
    pub fn is_skippable(&self) -> bool {
        self.0.skippable
    }

    /// Says one thing more about what has happened.
    pub(crate) fn also(mut self, fact: impl fmt::Display) -> Self {
        self.0.cause = format!("{}; {fact}", self.0.cause);
        self
    }

    /// Says what to do.
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.0.hint.get_or_insert_with(|| hint.to_string());
        self
    }

    /// Says one thing more to do.
    pub fn or_hint(mut self, hint: impl fmt::Display) -> Self {
        self.0.hint = Some(match self.0.hint.take() {
            Some(first) => format!("{first}; or {hint}"),
            None => hint.to_string(),
        });
        self
    }

    /// The file or folder at fault.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The file at fault as the beginning of a message about the set at `set`, `FILE: `; nothing where it is the set itself.
    pub fn file_below(&self, set: &Path) -> String {
        match self.path().strip_prefix(set) {
            Ok(file) if !file.as_os_str().is_empty() => format!("{}: ", file.display()),
            _ => String::new(),
        }
    }

    /// The row at fault, if one is.
    pub fn row_index(&self) -> Option<usize> {
        self.0.row
    }

    /// The column beside the images at fault, if one is and that was said.
    pub fn column_name(&self) -> Option<&str> {
        self.0.column.as_deref()
    }

    /// The cause alone, in words.
    pub fn cause(&self) -> &str {
        &self.0.cause
    }

    /// The hint alone, if there is one.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Whether the file or folder does not exist.
    pub fn is_missing(&self) -> bool {
        self.0.missing
    }

    /// Whether another attempt may succeed. The system or a server failed, and did not say that the file is missing, refused or
    /// too short.
    pub fn may_pass(&self) -> bool {
        self.0.passing
    }

    /// Whether a link or a server failed, and not this file: all that lies there fails alike.
    pub fn is_of_link(&self) -> bool {
        self.may_pass() && place::is_remote(self.path())
    }

    /// States that the file or folder does not exist.
    pub(crate) fn missing(mut self) -> Self {
        self.0.missing = true;
        self
    }

    /// States that another attempt may succeed, as the process found that handed the error on in words.
    pub(crate) fn passing(mut self) -> Self {
        self.0.passing = true;
        self
    }
}

/// Whether links lead to each other.
fn is_of_links_in_a_circle(error: &std::io::Error) -> bool {
    cfg!(unix) && error.raw_os_error() == Some(libc::ELOOP)
}

/// Whether a file could not be opened since as many are open as may be.
fn is_of_too_many_files(error: &std::io::Error) -> bool {
    // Windows has error numbers of its own.
    cfg!(unix) && matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.path.as_os_str().is_empty() {
            write!(f, "{}: ", self.0.path.display())?;
        }
        if let Some(row) = self.0.row {
            write!(f, "row {row}: ")?;
        }
        f.write_str(&self.0.cause)?;
        if let Some(hint) = &self.0.hint {
            write!(f, " (hint: {hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_are_told_by_their_limit() {
        let error = std::io::Error::from_raw_os_error(libc::EMFILE);
        let said = Error::io("a.parquet", "cannot open", &error).to_string();
        assert!(said.contains("ulimit -n"), "{said}");
        let error = std::io::Error::from_raw_os_error(libc::EACCES);
        assert!(Error::io("a", "cannot open", &error).to_string().contains("check the permissions"));
        let refused = std::io::Error::new(std::io::ErrorKind::PermissionDenied, "the server answered 403");
        assert_eq!(Error::io("s3://b/a", "cannot open", &refused).hint_text(), None);
        let error = std::io::Error::from_raw_os_error(libc::EIO);
        assert_eq!(Error::io("a.parquet", "cannot open", &error).hint_text(), None);
        let said = Error::new("a", "cannot move it").hint("try again").also("b is kept").to_string();
        assert_eq!(said, "a: cannot move it; b is kept (hint: try again)");
    }

    #[test]
    fn failures_of_the_system_may_pass_and_those_of_a_file_stay() {
        let may_pass = |code| {
            let error = std::io::Error::from_raw_os_error(code);
            Error::io("a.tif", "cannot open", &error).may_pass()
        };
        assert_eq!([libc::EMFILE, libc::EIO, libc::ETIMEDOUT].map(may_pass), [true; 3]);
        assert_eq!([libc::ENOENT, libc::EACCES, libc::EISDIR, libc::ELOOP].map(may_pass), [false; 4]);
        assert!(!Error::new("a.tif", "the file is empty").may_pass());
    }
}
