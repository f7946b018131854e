//! Paths in JSON: every path can be written there, also one that is not UTF-8.
//!
//! ```text
//! Path ─▶ text ─▶ JSON, tables          what is no UTF-8 becomes U+FFFD, as `Path::display` shows it
//! ```
//!
//! serde refuses paths that are not UTF-8, and `json!` panics then. Code that serialises a path does it by this module.
//! The text is for people and for records: a file of such a name cannot be opened by it.

use serde::Serializer;
use std::borrow::Cow;
use std::path::Path;

/// The path as text; bytes that are no UTF-8 become U+FFFD.
///
/// ```
/// use std::path::Path;
/// use wellread_measure::path_text::text;
///
/// assert_eq!(text(Path::new("plates/a.tif")), "plates/a.tif");
/// ```
pub fn text(path: &Path) -> Cow<'_, str> {
    path.to_string_lossy()
}

/// For `#[serde(serialize_with = "wellread_measure::path_text::serialize")]`.
///
/// # Errors
/// Those of the serialiser.
pub fn serialize<P: AsRef<Path>, S: Serializer>(path: &P, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(path.as_ref()))
}

/// As [`serialize`], for a path that need not be there.
///
/// # Errors
/// Those of the serialiser.
#[allow(clippy::ref_option, reason = "serde hands the field over so")]
pub fn serialize_option<P: AsRef<Path>, S: Serializer>(
    path: &Option<P>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&*text(path.as_ref())),
        None => serializer.serialize_none(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    #[derive(serde::Serialize)]
    struct Both {
        #[serde(serialize_with = "super::serialize")]
        one: PathBuf,
        #[serde(serialize_with = "super::serialize_option")]
        other: Option<PathBuf>,
        #[serde(serialize_with = "super::serialize_option")]
        none: Option<PathBuf>,
    }

    #[test]
    fn a_path_that_is_no_utf8_is_written() {
        let path = PathBuf::from(OsStr::from_bytes(b"q\xff.tif"));
        assert!(serde_json::to_value(&path).is_err());
        let both = Both { one: path.clone(), other: Some(path), none: None };
        let text = serde_json::to_string(&both).unwrap();
        assert_eq!(text, "{\"one\":\"q\u{fffd}.tif\",\"other\":\"q\u{fffd}.tif\",\"none\":null}");
    }
}
