//! The formats of a set: those that are asked for, and the copy of a set in each.

use anyhow::{Result, bail};
use serde::Serialize;
use std::path::{Path, PathBuf};
use wellread_store::{Format, OpenOptions, registry};

/// One format's copy of a set, or why there is none.
#[derive(Clone, Debug, Serialize)]
pub struct FormatSet {
    /// Format name.
    pub format: &'static str,
    /// Where it is.
    #[serde(serialize_with = "wellread_measure::path_text::serialize")]
    pub path: PathBuf,
    /// Why it could not be written.
    pub error: Option<String>,
    /// Compression of its pixels, once it was opened.
    pub codec: Option<String>,
}

/// Resolves `all` or a list of format names.
///
/// # Errors
/// An unknown name; the message lists the known ones.
pub fn parse_formats(names: &[String]) -> Result<Vec<&'static Format>> {
    let mut formats: Vec<&'static Format> = Vec::new();
    // Names beside `all` are looked up, too: one may be mistyped.
    for name in names.iter().filter(|n| !n.is_empty() && *n != "all") {
        let format = registry::format_named(name)?;
        if !formats.iter().any(|f| f.name == format.name) {
            formats.push(format);
        }
    }
    if names.iter().any(|n| n == "all") {
        return Ok(registry::usable_formats());
    }
    if formats.is_empty() {
        bail!("no format named; pass all or a list such as parquet,tiff");
    }
    Ok(formats)
}

/// A set, with the reason why it is none, for each format that the project knows and cannot be used here.
pub(crate) fn absent_sets(folder: &Path) -> Vec<FormatSet> {
    let set = |(format, how_to_get): (&'static str, String)| FormatSet {
        format,
        path: folder.join(format),
        error: Some(how_to_get),
        codec: None,
    };
    registry::missing_formats().into_iter().map(set).collect()
}

/// File or folder name of a format's copy inside a prepared folder.
pub fn set_name(format: &Format) -> String {
    if format.set_ending.is_empty() { format.name.to_owned() } else { format!("images{}", format.set_ending) }
}

/// Notes the codec of every set that does not know it.
pub(crate) fn find_codecs(sets: &mut [FormatSet]) {
    for set in sets.iter_mut().filter(|s| s.error.is_none() && s.codec.is_none()) {
        let options = OpenOptions { format: Some(set.format.to_owned()), ..OpenOptions::default() };
        let layout = wellread_store::open(&set.path, &options).and_then(|store| store.layout());
        set.codec = layout.ok().map(|l| l.codec);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `all,no-such` was taken for `all`.
    #[test]
    fn an_unknown_name_beside_all_is_refused() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            parse_formats(&names).map(|formats| formats.len()).map_err(|e| format!("{e:#}"))
        };
        let all = registry::usable_formats().len();
        assert_eq!(of(&["all"]), Ok(all));
        assert_eq!(of(&["tiff", "all"]), Ok(all));
        for names in [["all", "no-such"], ["no-such", "all"], ["tiff", "no-such"]] {
            let refused = of(&names).unwrap_err();
            assert!(refused.contains("no-such"), "{refused}");
        }
    }
}
