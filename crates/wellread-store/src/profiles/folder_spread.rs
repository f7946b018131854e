//! Names in tables that may be of images in several folders, as they have too few folders to tell these apart.
//!
//! ```text
//!  rows P1/a, a ──▶ P1/a has its row; a goes to P2/a ─ see ─┐
//!  images P1/a, P2/a ──────────────────────── shared ───────┴▶ a may be of P1/a too
//! ```

use super::name_rows::{ProfileMatch, end};
use super::names::parts;
use std::collections::HashMap;

/// Names with fewer folders than the images that they led to.
#[derive(Default)]
pub(crate) struct FolderSpread {
    /// By such a name and the file of the image: the first image that it led to. Channels of one field are files of other
    /// names, and share their row as they should.
    first: HashMap<(String, String), String>,
}

impl FolderSpread {
    /// Whether every name had all folders of its image.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// This row went to this image.
    pub fn observe(&mut self, at: &ProfileMatch, image: &str) {
        if let (Some(bare), Some(file)) = (&at.bare, parts(image).pop()) {
            self.first.entry((bare.clone(), file.to_owned())).or_insert_with(|| image.to_owned());
        }
    }

    /// This image and one of another folder, where a name led to that one and may be of this one too. It may, also if this image
    /// has a row of its own. `names` are those of this image and of its files.
    pub fn shared<'n>(
        &self,
        image: &str,
        names: impl IntoIterator<Item = Vec<&'n str>>,
    ) -> Option<[String; 2]> {
        if self.is_empty() {
            return None;
        }
        let file = parts(image).pop()?;
        names.into_iter().find_map(|name| {
            (0..name.len()).find_map(|folders| {
                let other = self.first.get(&(end(&name, folders), file.to_owned()))?;
                let mut both = [other.clone(), image.to_owned()];
                both.sort_unstable();
                (folders_in(other) != folders_in(image)).then_some(both)
            })
        })
    }
}

/// The folders in an image's name.
fn folders_in(image: &str) -> Vec<&str> {
    let mut folders = parts(image);
    folders.pop();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(names: &[(Option<&str>, &str)]) -> FolderSpread {
        let mut spread = FolderSpread::default();
        for (bare, image) in names {
            let bare = bare.map(str::to_owned);
            spread.observe(&ProfileMatch { row: 0, bare, is_whole: false, unconfirmed: None }, image);
        }
        spread
    }

    #[test]
    fn a_name_that_may_be_of_several_folders_is_seen() {
        let shared = |spread: &FolderSpread, image: &str| spread.shared(image, [parts(image)]);
        let both = Some(["P1/a".to_owned(), "P2/a".to_owned()]);
        // All folders were compared.
        let whole = seen(&[(None, "P1/a"), (None, "P2/a")]);
        assert!(whole.is_empty() && shared(&whole, "P2/a").is_none());
        let one = seen(&[(Some("a"), "P2/a")]);
        assert_eq!(shared(&one, "P1/a"), both, "the other one need not have the row");
        assert_eq!(shared(&one, "P2/a"), None, "the same name");
        assert_eq!(shared(&one, "P1/b"), None, "another name");
        let in_folder = seen(&[(Some("x/a"), "P1/x/a")]);
        assert_eq!(shared(&in_folder, "P2/y/a"), None, "a folder that the name has is another one");
        let both = Some(["P1/x/a".to_owned(), "P2/x/a".to_owned()]);
        assert_eq!(shared(&in_folder, "P2/x/a"), both);
        let root = Some(["P1/a".to_owned(), "a".to_owned()]);
        assert_eq!(shared(&seen(&[(Some("a"), "P1/a")]), "a"), root, "in no folder");
    }

    #[test]
    fn channels_share_a_row() {
        let one_folder = seen(&[(Some("f1_DAPI"), "images/f1_DAPI")]);
        assert_eq!(one_folder.shared("images/f1_GFP", [parts("images/f1_GFP")]), None);
        let folders = seen(&[(Some("f1_DAPI"), "DAPI/f1_DAPI"), (Some("f1_GFP"), "GFP/f1_GFP")]);
        assert_eq!(folders.shared("GFP/f1_GFP", [parts("GFP/f1_GFP")]), None);
        // A file of the image has the name.
        let site = seen(&[(Some("f1_DAPI"), "P1/f1")]);
        let names = [parts("P2/f1"), parts("P2/f1_DAPI.tif")];
        assert_eq!(site.shared("P2/f1", names), Some(["P1/f1".to_owned(), "P2/f1".to_owned()]));
        assert_eq!(site.shared("P2/f1", [parts("P2/f1"), parts("P2/f1_GFP.tif")]), None);
    }
}
