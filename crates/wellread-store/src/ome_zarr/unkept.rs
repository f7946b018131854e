//! Facts of an image in OME-Zarr for which [`wellread_image::ImageMetadata`] has no field. They are its place in space
//! and time (translations), and a name of the multiscale image that is not the image's.

use super::layout::{self, NAMING};
use super::metadata_file::read_if_exists;
use crate::{OpenOptions, place};
use serde_json::Value;
use std::path::Path;

/// The facts of the first image at `root`, whose name is `name`. An image that cannot be looked at has none.
pub(crate) fn of_first(root: &Path, name: &str) -> Vec<&'static str> {
    let options = OpenOptions { format: Some(NAMING.name.to_owned()), ..OpenOptions::default() };
    let rows = layout::rows(root, &options).unwrap_or_default().places;
    let multiscale = rows.first().and_then(|row| multiscale(&root.join(&row.below)));
    multiscale.map_or_else(Vec::new, |multiscale| unkept(&multiscale, name))
}

/// The first multiscale image of the group in a folder.
fn multiscale(folder: &Path) -> Option<Value> {
    let version3 = folder.join("zarr.json");
    let (file, pointer) = if place::exists(&version3) {
        (version3, "/attributes/ome/multiscales/0")
    } else {
        (folder.join(".zattrs"), "/multiscales/0")
    };
    let parsed: Value = serde_json::from_slice(&read_if_exists(&file).ok()??).ok()?;
    parsed.pointer(pointer).cloned()
}

fn unkept(multiscale: &Value, name: &str) -> Vec<&'static str> {
    let of = |value: &Value| value["coordinateTransformations"].as_array().cloned().unwrap_or_default();
    // The full resolution's alone: the other levels' follow from their scale.
    let transformations = [of(multiscale), of(&multiscale["datasets"][0])].concat();
    let is_moved = transformations.iter().any(|one| {
        let by = one["translation"].as_array().into_iter().flatten();
        one["type"] == "translation" && by.filter_map(Value::as_f64).any(|by| by != 0.0)
    });
    let other_name = multiscale["name"].as_str().is_some_and(|other| !other.is_empty() && other != name);
    let all = [("translations", is_moved), ("names of multiscales", other_name)];
    all.into_iter().filter(|(_, is_there)| *is_there).map(|(what, _)| what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn translations_and_names_of_others_are_found() {
        let moved = |by: [f64; 2]| json!([{"type": "scale", "scale": [1, 2]}, {"type": "translation", "translation": by}]);
        let none = json!({"name": "a", "datasets": [{"coordinateTransformations": moved([0.0, 0.0])}]});
        assert_eq!(unkept(&none, "a"), Vec::<&str>::new());
        assert_eq!(unkept(&none, "b"), ["names of multiscales"]);
        let level = json!({"datasets": [{"coordinateTransformations": moved([0.0, 5.5])}]});
        assert_eq!(unkept(&level, "a"), ["translations"]);
        let all = json!({"datasets": [], "coordinateTransformations": moved([-1.0, 0.0])});
        assert_eq!(unkept(&all, "a"), ["translations"]);
        assert_eq!(unkept(&Value::Null, "a"), Vec::<&str>::new());
    }
}
