//! Options for making images of files, where a command or a benchmark keeps them.

use crate::format::{Missing, OpenOptions, Unmatched};
use serde::{Deserialize, Serialize};

/// How the files of a set make images: those of [`OpenOptions`] that speak of files. As JSON, what is not asked for is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SiteOptions {
    /// A layout's name, or [`super::FILES`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// A pattern of file names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The treatment of images that lack files.
    #[serde(skip_serializing_if = "is_default")]
    pub missing: Missing,
    /// The treatment of files that do not fit.
    #[serde(skip_serializing_if = "is_default")]
    pub unmatched: Unmatched,
    /// Beginnings of paths in a table of files, each with what it is here. A relative one begins at the folder of the table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path_map: Vec<(String, String)>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl SiteOptions {
    /// Whether nothing is asked for: sets are opened by what they are.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// As options of opening.
    pub fn open_options(&self) -> OpenOptions {
        let Self { layout, pattern, missing, unmatched, path_map } = self.clone();
        OpenOptions { layout, pattern, missing, unmatched, path_map, ..OpenOptions::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_kept_and_nothing_else() {
        let nothing = SiteOptions::default();
        assert!(nothing.is_default());
        assert_eq!(serde_json::to_value(&nothing).unwrap(), serde_json::json!({}));
        let some = SiteOptions { missing: Missing::Zero, pattern: Some("{well}_{c}".into()), ..nothing };
        let text = serde_json::to_value(&some).unwrap();
        assert_eq!(text, serde_json::json!({ "pattern": "{well}_{c}", "missing": "zero" }));
        assert_eq!(serde_json::from_value::<SiteOptions>(text).unwrap(), some);
        let options = some.open_options();
        assert_eq!((options.missing, options.pattern.as_deref()), (Missing::Zero, Some("{well}_{c}")));
    }
}
