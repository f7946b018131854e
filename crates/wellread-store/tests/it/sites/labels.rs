//! Label images of sites of several files, which are called as one of the files is.

use super::{names, options, write};
use std::sync::Arc;
use wellread_store::cells::pair;
use wellread_store::subset::Subset;
use wellread_store::{Store, open};

/// Folders of images are called alike in both plates. One plate is taken, and the label image of its first site was not made.
#[test]
fn label_images_of_another_plate_are_of_no_site() {
    let dir = tempfile::tempdir().unwrap();
    let (mut files, mut labels) = (vec![], vec![]);
    for plate in ["A", "B"] {
        for site in [1, 2] {
            for channel in [1, 2] {
                files.push(format!("{plate}/Images/r01c01f0{site}p01-ch{channel}sk1fk1fl1.tiff"));
            }
            labels.push(format!("{plate}/Images/r01c01f0{site}p01-ch1sk1fk1fl1_cp_masks.tif"));
        }
    }
    let written = |folder: &str, files: &[String]| {
        let folder = dir.path().join(folder);
        write(&folder, &files.iter().map(String::as_str).collect::<Vec<_>>());
        open(&folder, &options()).unwrap()
    };
    let images: Arc<dyn Store> = Arc::from(written("images", &files));
    assert_eq!(names(&*images)[0], "A/Images/r01c01f01");
    let plate = Subset::of(Arc::clone(&images), vec![0, 1]);
    for (file, wanted) in [("all", labels.clone()), ("few", labels[1..].to_vec())] {
        let set = written(file, &wanted);
        let place = |name: &str| names(&*set).iter().position(|label| label.starts_with(name));
        let sites = ["A/Images/r01c01f01", "A/Images/r01c01f02"].map(place);
        assert_eq!(pair(&plate, &*set, &[]).unwrap(), sites, "{file}");
        assert_eq!(sites[0].is_some(), file == "all");
        let both = pair(&*images, &*set, &[]).unwrap();
        assert_eq!(both.iter().filter(|label| label.is_some()).count(), wanted.len());
    }
}
