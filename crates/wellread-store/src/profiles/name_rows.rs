//! Rows of a table by the names of images in it: which row an image's name and folders lead to.

use super::names::parts;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The rows of profiles by the names in them.
#[derive(Default)]
pub(crate) struct Profiles {
    /// By the whole name: a row, and another one with the same.
    whole: HashMap<String, [Option<usize>; 2]>,
    /// By the end of the name, with as many folders as an image has, where it has more than that. There are rows, each with the folders
    /// before that end.
    ends: HashMap<String, Vec<(usize, String)>>,
    /// The last of those folders.
    known: HashSet<String>,
    /// How many folders images have.
    depths: BTreeSet<usize>,
}

/// The row of an image's profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProfileMatch {
    /// The row in the table.
    pub(crate) row: usize,
    /// The profile's name, where it has fewer folders than the image's.
    pub(super) bare: Option<String>,
    /// Whether the profile's name has all of the image's name.
    pub(super) is_whole: bool,
    /// Folders of the profile's name of which nothing says that they are the image's.
    pub(super) unconfirmed: Option<String>,
}

impl Profiles {
    /// For images of these names.
    pub(crate) fn of_images<'n>(names: impl Iterator<Item = Vec<&'n str>>) -> Self {
        Self { depths: names.map(|name| name.len() - 1).collect(), ..Self::default() }
    }

    /// The row of the profile that names one of these; two where they are named by two.
    pub(crate) fn of_any<'n>(
        &self,
        base: &[&str],
        names: impl Iterator<Item = &'n String>,
    ) -> Result<Option<ProfileMatch>, [usize; 2]> {
        let mut first: Option<ProfileMatch> = None;
        for name in names {
            let Some(at) = self.of(base, &parts(name))? else { continue };
            match &mut first {
                Some(first) if first.row != at.row => return Err([first.row, at.row]),
                Some(first) => {
                    first.is_whole |= at.is_whole;
                    // One name that has all folders is enough.
                    first.bare = first.bare.take().filter(|_| at.bare.is_some());
                }
                None => first = Some(at),
            }
        }
        Ok(first)
    }

    pub(crate) fn push(&mut self, name: &[&str], row: usize) {
        match self.whole.entry(name.join("/")).or_default() {
            [Some(first), second] if *first != row => *second = second.or(Some(row)),
            [first, _] => *first = Some(row),
        }
        for &depth in self.depths.range(..name.len() - 1) {
            let before = &name[..name.len() - 1 - depth];
            self.ends.entry(end(name, depth)).or_default().push((row, before.join("/")));
            self.known.extend(before.last().map(|folder| (*folder).to_owned()));
        }
    }

    /// The profile of an image of this name in a set in the folders `base`; both rows where there are two.
    pub(crate) fn of(
        &self,
        base: &[&str],
        name: &[&str],
    ) -> std::result::Result<Option<ProfileMatch>, [usize; 2]> {
        let full = [base, name].concat();
        let own = name.len() - 1;
        let exact = |name: &[&str], folders: usize| match self.whole.get(&end(name, folders))? {
            [Some(first), Some(second)] => Some(Err([*first, *second])),
            [first, _] => first.map(|row| {
                let is_whole = folders >= own;
                let bare = (!is_whole).then(|| end(name, folders));
                Ok(ProfileMatch { row, bare, is_whole, unconfirmed: None })
            }),
        };
        (own..full.len())
            .rev()
            .find_map(|folders| exact(&full, folders))
            .or_else(|| self.longer(base, name))
            .or_else(|| (0..own).rev().find_map(|folders| exact(name, folders)))
            .transpose()
    }

    /// Among profiles whose names have more folders than the image's, it takes the one that has most in common with the
    /// set's. A set in a folder that other profiles name has none of these.
    fn longer(&self, base: &[&str], name: &[&str]) -> Option<std::result::Result<ProfileMatch, [usize; 2]>> {
        let candidates = self.ends.get(&name.join("/"))?;
        let in_common = |folders: &str| {
            folders.rsplit('/').zip(base.iter().rev()).take_while(|(one, other)| one == *other).count()
        };
        let most = candidates.iter().map(|(_, folders)| in_common(folders)).max()?;
        if most == 0 && base.last().is_some_and(|folder| self.known.contains(*folder)) {
            return None;
        }
        let mut best = candidates.iter().filter(|(_, folders)| in_common(folders) == most);
        let (row, folders) = best.next()?;
        let unconfirmed = (most == 0 && !base.is_empty()).then(|| folders.clone());
        match best.find(|(other, _)| other != row) {
            Some((other, _)) => Some(Err([*row, *other])),
            None => Some(Ok(ProfileMatch { row: *row, bare: None, is_whole: false, unconfirmed })),
        }
    }
}

/// The last part of a name with this many of the folders before it.
pub(super) fn end(name: &[&str], folders: usize) -> String {
    name[name.len() - 1 - folders..].join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        base: &[&str],
        images: &[&str],
        names: &[&str],
    ) -> Vec<std::result::Result<Option<usize>, [usize; 2]>> {
        let mut rows = Profiles::of_images(images.iter().map(|name| parts(name)));
        names.iter().enumerate().for_each(|(row, name)| rows.push(&parts(name), row));
        images.iter().map(|name| rows.of(base, &parts(name)).map(|at| at.map(|at| at.row))).collect()
    }

    #[test]
    fn folders_that_both_names_have_must_be_the_same() {
        let images = ["P1/a", "P2/a", "P2/only2"];
        let found = |images: &[&str], names: &[&str]| found(&[], images, names);
        assert_eq!(found(&images, &["P1/a.tiff", "P1/only2.tiff"]), [Ok(Some(0)), Ok(None), Ok(None)]);
        assert_eq!(found(&images, &["P1/a.tiff", "P2/a.tiff"]), [Ok(Some(0)), Ok(Some(1)), Ok(None)]);
        assert_eq!(found(&images, &["a.tiff", "P2/a.tiff"]), [Ok(Some(0)), Ok(Some(1)), Ok(None)]);
        assert_eq!(found(&images, &["C:\\data\\P1\\a.TIF"]), [Ok(Some(0)), Ok(None), Ok(None)]);
        assert_eq!(found(&images, &["/x/P1/a.tif", "/y/P1/a.tif"])[0], Err([0, 1]));
        assert_eq!(found(&["a"], &["P1/a.tif", "P2/a.tif"]), [Err([0, 1])]);
        assert_eq!(found(&["./a.tif", "b"], &["a", "other/./b.png"]), [Ok(Some(0)), Ok(Some(1))]);
    }

    #[test]
    fn the_folders_of_the_set_tell_plates_apart() {
        let both = ["P1/a.tif", "P2/a.tif"];
        assert_eq!(found(&["data", "P2"], &["a"], &both), [Ok(Some(1))]);
        assert_eq!(found(&["data", "P1"], &["a"], &["/far/P1/a.tif", "/far/P2/a.tif"]), [Ok(Some(0))]);
        assert_eq!(found(&["data", "P3"], &["a"], &both), [Err([0, 1])]);
        // P2 is a plate that the profiles know, and none of them is of this image.
        assert_eq!(found(&["data", "P2"], &["a"], &["P1/a.tif", "P2/b.tif"]), [Ok(None)]);
        let place = |base: &[&str], name: &str| {
            let mut rows = Profiles::of_images(std::iter::once(vec!["a"]));
            rows.push(&parts(name), 0);
            rows.of(base, &["a"]).unwrap().unwrap().unconfirmed
        };
        assert_eq!(place(&["data", "P2"], "x/P1/a.tif"), Some("x/P1".to_owned()));
        assert_eq!(place(&["data", "P1"], "x/P1/a.tif"), None);
        assert_eq!(place(&["data", "P1"], "a.tif"), None);
        assert_eq!(place(&[], "P1/a.tif"), None, "a table lies in no folder of images");
    }
}
