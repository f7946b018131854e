//! Why names make no sites, and what the fields of their pattern are taken as.

use super::layout::{Role, near};
use super::pattern::Pattern;
use crate::Error;
use std::path::Path;

/// Why names make no sites.
pub(super) struct Fault {
    pub cause: String,
    pub hint: String,
    /// Whether the names of the pattern's fields may be the reason.
    pub is_of_fields: bool,
}

impl Fault {
    /// As an error about the set at `path`.
    pub fn at(self, path: &Path) -> Error {
        Error::new(path, self.cause).hint(self.hint).choice()
    }

    /// As the fault of a pattern, whose fields may be taken as something else than their names say, or be misspelt.
    pub fn of_pattern(mut self, pattern: &str) -> Self {
        let words =
            if self.is_of_fields { [taken_as(pattern, |_| true), misspelt(pattern)] } else { [None, None] };
        for words in words.into_iter().flatten() {
            self.hint = format!("{words}; {}", self.hint);
        }
        self
    }
}

/// The fields of a pattern that are an axis or the site by another name than its own. `None` where there are none, or the pattern cannot
/// be read. `counts` tells the roles that matter.
fn taken_as(pattern: &str, counts: impl Fn(Role) -> bool) -> Option<String> {
    let pattern = Pattern::parse(pattern).ok()?;
    let mut taken: Vec<String> = vec![];
    for field in pattern.fields() {
        let role = Role::of(field);
        let (own, what) = match role {
            Role::Axis(0) => ("time", "the time"),
            Role::Axis(1) => ("channel", "the channel"),
            Role::Axis(_) => ("z", "z"),
            Role::Site => ("site", "the site"),
            _ => continue,
        };
        if field != own && counts(role) {
            taken.push(format!("{{{field}}} is taken as {what}"));
        }
    }
    (!taken.is_empty()).then(|| format!("{}: give a field another name for a column", taken.join(", ")))
}

/// As [`Fault::of_pattern`] says it, of the axes alone. `layout` is the name of a layout, which has no fields, or a pattern in quotes.
pub(super) fn axes_taken(layout: &str) -> Option<String> {
    taken_as(layout.trim_matches('"'), Role::is_axis)
}

/// The question about the fields that are nearly called like known ones.
fn misspelt(pattern: &str) -> Option<String> {
    let pattern = Pattern::parse(pattern).ok()?;
    let mut meant = pattern.fields().filter_map(|field| Some((field, near(field)?)));
    meant.next().map(|(field, known)| format!("did you mean {{{known}}} by {{{field}}}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_other_names_are_told() {
        let all = |pattern: &str| taken_as(pattern, |_| true);
        assert_eq!(
            all("{well}_{c}_{field}_{channel}").as_deref(),
            Some(
                "{c} is taken as the channel, {field} is taken as the site: give a field another name for a column"
            )
        );
        assert_eq!(all("{well}_{site}_{channel}_{z}_{time}_{dose}"), None);
        let axes =
            Some("{plane} is taken as z, {t} is taken as the time: give a field another name for a column");
        assert_eq!(axes_taken("\"{fov}_{plane}_{t:d}\"").as_deref(), axes);
        assert_eq!(axes_taken("harmony"), None);
        assert_eq!(misspelt("{well}_{chanel}").as_deref(), Some("did you mean {channel} by {chanel}?"));
        assert_eq!(misspelt("{well}_{dose}"), None);
    }
}
