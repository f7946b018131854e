//! Profiles that go to images of different folders, though their names have no folder that tells these apart.

use super::names::parts;
use std::collections::HashMap;

/// Profiles that went to images of different folders.
#[derive(Default)]
pub(super) struct Spread {
    /// By rows of profiles and files of images: the first image that each went to.
    first: HashMap<(usize, String), String>,
    /// Two images of different folders that one went to.
    pub shared: Option<[String; 2]>,
}

impl Spread {
    /// The profile of row `row` goes to this image, of whose folders it names so many.
    pub fn see(&mut self, row: usize, folders: usize, image: &str) {
        let mut name = parts(image);
        // Channels of one field are files of other names, and share their profile as they should.
        let Some(file) = name.pop().filter(|_| self.shared.is_none()) else { return };
        if name.len() == folders {
            return;
        }
        let key = (row, file.to_owned());
        match self.first.get(&key) {
            Some(other) if folders_in(other) != folders_in(image) => {
                self.shared = Some([other.clone(), image.to_owned()]);
            }
            Some(_) => (),
            None => drop(self.first.insert(key, image.to_owned())),
        }
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

    #[test]
    fn a_profile_that_goes_to_several_folders_is_seen() {
        let mut spread = Spread::default();
        spread.see(0, 1, "P1/a");
        spread.see(0, 1, "P2/a");
        assert_eq!(spread.shared, None, "their folders were compared");
        spread.see(1, 0, "P1/a");
        spread.see(1, 0, "P1/a");
        assert_eq!(spread.shared, None, "the same name");
        spread.see(2, 0, "images/f1_DAPI");
        spread.see(2, 0, "images/f1_GFP");
        assert_eq!(spread.shared, None, "channels in one folder");
        spread.see(3, 0, "DAPI/f1_DAPI");
        spread.see(3, 0, "GFP/f1_GFP");
        assert_eq!(spread.shared, None, "channels in a folder each");
        spread.see(1, 0, "P2/a");
        assert_eq!(spread.shared, Some(["P1/a".to_owned(), "P2/a".to_owned()]));
    }
}
