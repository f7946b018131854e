//! Which layout the names of a folder are of.
//!
//! ```text
//!  names ─▶ layouts that the first name, or most of a few, fit ─▶ group ─┬─ all fit: sites of several files, or of one each
//!                                                                       ├─ most fit: sites with `--unmatched skip`, else
//!                                                                       │            files, and UnmatchedNames says so
//!                                                                       ├─ two are the same plane: files, and UnmatchedNames says so
//!                                                                       └─ else: files
//! ```
//!
//! One file that is none of a plate's must not silently make single images of the plate's files.

use super::fault::Fault;
use super::files::{FileText, FilesOfRows};
use super::group::{self, Grouped, LISTED, NO_FILE};
use super::layout::Layout;
use super::layouts::LAYOUTS;
use super::names::Matcher;
use super::pattern::Memory;
use crate::features::{SITE, WELL};
use crate::format::{OpenOptions, Unmatched};
use crate::words::first_few;
use crate::{Result, Store, place};
use std::fmt;

/// Names that are looked at, from all over a set, before all are.
const SAMPLED: usize = 8;

/// The shortest identifier behind a name.
const IDENTIFIER: usize = 8;

/// Names of which most are of one layout and some are not, or all are and make no sites. Each file is then an image of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedNames {
    /// The name of the part that has them, where the set is put together from several.
    pub part: Option<String>,
    /// The layout's name.
    pub layout: &'static str,
    /// How many names are of the layout, of how many.
    pub fit: usize,
    /// How many names there are.
    pub of: usize,
    /// The first few that are not; where all are, why they make no sites.
    pub others: String,
}

impl UnmatchedNames {
    /// Whether all names are of the layout, and make no sites.
    #[must_use]
    pub fn is_clash(&self) -> bool {
        self.fit == self.of
    }
}

impl fmt::Display for UnmatchedNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, layout, fit, of, others } = self;
        if let Some(part) = part {
            write!(f, "{part}: ")?;
        }
        if self.is_clash() {
            return write!(
                f,
                "all names are {layout}'s, but {others}, so that each file is an image of its own"
            );
        }
        let are = if of - fit == 1 { "is" } else { "are" };
        write!(
            f,
            "{fit} of {of} names are {layout}'s; {others} {are} not, so that each file is an image of its own"
        )
    }
}

/// The names of a store of single files that are nearly those of a layout. `None` where they are not, and where `options` say what
/// files are. A set that is put together tells its first part with such names. Only names are looked at.
pub fn unmatched_names(store: &dyn Store, options: &OpenOptions) -> Option<UnmatchedNames> {
    let is_said = options.layout.is_some() || options.pattern.is_some() || options.format.is_some();
    if is_said {
        return None;
    }
    for part in store.hints().set_parts() {
        let [rows] = part.rows.as_slice() else { continue };
        let found = FilesOfRows::of_part(store, rows.clone()).and_then(|rows| unmatched_of(&rows));
        if let Some(names) = found {
            return Some(UnmatchedNames { part: Some(part.name), ..names });
        }
    }
    if store.hints().sites.is_some() || !place::is_folder(store.path()) {
        return None;
    }
    unmatched_of(&FilesOfRows::of_store(store))
}

/// Files of a folder that are nearly a layout's.
fn unmatched_of(rows: &FilesOfRows<'_>) -> Option<UnmatchedNames> {
    let (files, found, faults) = candidates(rows)?;
    let Some(near) = near(&found) else { return layout_without_sites(&files, faults) };
    let (matcher, grouped) = &found[near];
    let fit = fitting(grouped);
    let layout = matcher.preset?.name;
    Some(UnmatchedNames {
        part: None,
        layout,
        fit,
        of: fit + grouped.unmatched.len(),
        others: first_few(&grouped.unmatched, LISTED),
    })
}

/// The layout that all names are of though they make no sites, such as those of an image in two files.
fn layout_without_sites(files: &[FileText], faults: FailedLayouts) -> Option<UnmatchedNames> {
    let mut memory = Memory::default();
    let mut fits = |matcher: &Matcher| {
        files.iter().all(|file| matcher.passes_over(file) || matcher.named(file, &mut memory).is_some())
    };
    let (matcher, fault) = faults.into_iter().find(|(matcher, _)| fits(matcher))?;
    let (layout, of) = (matcher.preset?.name, files.len());
    Some(UnmatchedNames { part: None, layout, fit: of, of, others: fault.cause })
}

/// The layout that all names of a set are of, or most where the others are left out, and its sites.
pub(super) fn recognise(store: &dyn Store, unmatched: Unmatched) -> Option<(Matcher, Grouped)> {
    let (files, mut found, _) = candidates(&FilesOfRows::of_store(store))?;
    let several =
        |(_, grouped): &(Matcher, Grouped)| grouped.unmatched.is_empty() && grouped.files_per_site() > 1;
    let chosen = found
        .iter()
        .position(several)
        .or_else(|| single(&files, &found))
        .or_else(|| if unmatched == Unmatched::Skip { near(&found) } else { None })?;
    Some(found.swap_remove(chosen))
}

/// Layouts that fit, each with the files as it groups them.
type Fitting = Vec<(Matcher, Grouped)>;

/// Layouts that fit, each with why the files make no sites.
type FailedLayouts = Vec<(Matcher, Fault)>;

/// The files of a set, and the layouts that some of them are of, each with its sites or why there are none.
fn candidates(rows: &FilesOfRows<'_>) -> Option<(Vec<FileText>, Fitting, FailedLayouts)> {
    if rows.len() < 2 || !rows.are_files() {
        return None;
    }
    // Most sets are told by a few names: of a million plain files no other is looked at.
    let sample: Vec<FileText> = rows.every(rows.len().div_ceil(SAMPLED)).flatten().collect();
    let mut memory = Memory::default();
    let fits = |matcher: &Matcher| {
        let first = rows.files().flatten().find(|file| !matcher.passes_over(file));
        if first.is_some_and(|file| matcher.named(&file, &mut memory).is_some()) {
            return true;
        }
        let own: Vec<&FileText> = sample.iter().filter(|&file| !matcher.passes_over(file)).collect();
        let fitting = own.iter().filter(|&&file| matcher.named(file, &mut memory).is_some()).count();
        2 * fitting > own.len()
    };
    let matchers: Vec<Matcher> = LAYOUTS.iter().copied().map(Matcher::of_layout).filter(fits).collect();
    if matchers.is_empty() {
        return None;
    }
    let files = rows.files().collect::<Result<Vec<_>>>().ok()?;
    let (mut found, mut faults) = (vec![], vec![]);
    for matcher in matchers {
        match group::group(&files, &matcher) {
            Ok(grouped) => found.push((matcher, grouped)),
            Err(fault) => faults.push((matcher, fault)),
        }
    }
    Some((files, found, faults))
}

/// How many files make sites.
fn fitting(grouped: &Grouped) -> usize {
    grouped.planes.iter().filter(|&&file| file != NO_FILE).count()
}

/// The layout that most names are of, and not all.
fn near(found: &[(Matcher, Grouped)]) -> Option<usize> {
    found.iter().position(|(_, grouped)| {
        let others = grouped.unmatched.len();
        others > 0 && fitting(grouped) > others && grouped.files_per_site() > 1
    })
}

/// The one layout that all names are of where each site is one file: of a plate with one channel.
fn single(files: &[FileText], found: &[(Matcher, Grouped)]) -> Option<usize> {
    let mut strict = (0..found.len()).filter(|&at| is_single(files, &found[at].0, &found[at].1));
    let first = strict.next()?;
    strict.next().is_none().then_some(first)
}

/// Whether all names say well, site and channel, nothing is behind them, and each is a site of its own.
fn is_single(files: &[FileText], matcher: &Matcher, grouped: &Grouped) -> bool {
    let says = |name: &str| {
        let column = grouped.columns.iter().find(|column| column.name == name);
        column.is_some_and(|column| column.values.iter().all(Option::is_some))
    };
    let is_one = grouped.unmatched.is_empty() && grouped.names.len() > 1 && grouped.planes_of_site() == 1;
    let Some(layout) = matcher.preset.filter(|_| is_one && says(WELL) && says(SITE)) else { return false };
    let mut memory = Memory::default();
    let is_strict = |file: &FileText| {
        let named = matcher.named(file, &mut memory);
        named.is_some_and(|named| !named.channel.is_empty() && ends(layout, file, &named.channel))
    };
    files.iter().filter(|&file| !matcher.passes_over(file)).all(is_strict)
}

/// Whether a name ends with its channel or an identifier behind it, where the layout's patterns leave open what is there.
fn ends(layout: &Layout, file: &FileText, channel: &str) -> bool {
    if !layout.patterns.iter().any(|pattern| pattern.ends_with('*')) {
        return true;
    }
    let name = file.below().rsplit('/').next().unwrap_or_default();
    let rest = crate::features::stem(name).rsplit_once(channel).map_or("", |(_, rest)| rest);
    let is_identifier = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    rest.is_empty() || rest.len() >= IDENTIFIER && rest.bytes().all(is_identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strays_are_told_in_a_sentence() {
        let one =
            UnmatchedNames { part: None, layout: "harmony", fit: 4, of: 5, others: "overlay.tif".to_owned() };
        assert_eq!(
            one.to_string(),
            "4 of 5 names are harmony's; overlay.tif is not, so that each file is an image of its own"
        );
        let two = UnmatchedNames { of: 6, others: "a.tif, b.tif".to_owned(), ..one };
        assert!(two.to_string().contains("; a.tif, b.tif are not, so"), "{two}");
        let all =
            UnmatchedNames { fit: 6, others: "a and b are the same plane by their names".to_owned(), ..two };
        assert!(all.is_clash());
        assert_eq!(
            all.to_string(),
            "all names are harmony's, but a and b are the same plane by their names, so that each file is an image of its own"
        );
    }
}
