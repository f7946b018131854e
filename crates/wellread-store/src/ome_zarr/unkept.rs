//! Facts of an image in OME-Zarr for which [`wellread_image::ImageMetadata`] has no field. They are its place in space
//! and time (translations), and a name of the multiscale image that is not the image's. Others are how viewers show the
//! channels, and attributes of other programs.

use super::metadata_file::value_of;
use crate::place;
use serde_json::{Value, json};
use std::path::Path;

/// The facts of the image in `folder`, whose name is `name`. An image that cannot be looked at has none.
pub(super) fn of_image(folder: &Path, name: &str) -> Vec<&'static str> {
    attributes(folder).map_or_else(Vec::new, |attributes| unkept(&attributes, name))
}

/// The attributes of the group in a folder.
fn attributes(folder: &Path) -> Option<Value> {
    let version3 = folder.join("zarr.json");
    let is_version3 = place::exists(&version3);
    let file = if is_version3 { version3 } else { folder.join(".zattrs") };
    let parsed = value_of(&file)?;
    Some(if is_version3 { parsed["attributes"].clone() } else { parsed })
}

/// The attributes of images that OME-Zarr describes, and wellread's own.
const KNOWN: [&str; 11] = [
    "ome",
    "wellread",
    "version",
    "multiscales",
    "omero",
    "plate",
    "well",
    "labels",
    "image-label",
    "series",
    "bioformats2raw.layout",
];

/// `attributes` are those of a group: below `ome` since version 0.5.
fn unkept(attributes: &Value, name: &str) -> Vec<&'static str> {
    let ome = attributes.get("ome").unwrap_or(attributes);
    let multiscale = &ome["multiscales"][0];
    let channels = || ome["omero"]["channels"].as_array().into_iter().flatten();
    // wellread itself writes the whole range.
    let has_range = channels().any(|channel| {
        let window = &channel["window"];
        let differs = |shown: &str, of: &str| {
            let ends = window[shown].as_f64().zip(window[of].as_f64());
            ends.is_some_and(|(shown, of)| shown.to_bits() != of.to_bits())
        };
        differs("start", "min") || differs("end", "max")
    });
    let is_hidden = channels().any(|channel| channel["active"] == false);
    // As OMERO writes them where nobody has chosen any.
    let is_linear = |channel: &Value| {
        let has = |key: &str, usual: &Value| channel.get(key).is_none_or(|value| value == usual);
        has("inverted", &json!(false))
            && has("family", &json!("linear"))
            && channel.get("coefficient").is_none_or(|value| value.as_f64() == Some(1.0))
    };
    let is_rendered = ome["omero"]["rdefs"].as_object().is_some_and(|all| !all.is_empty())
        || channels().any(|channel| !is_linear(channel));
    let others =
        attributes.as_object().is_some_and(|all| all.keys().any(|key| !KNOWN.contains(&key.as_str())));
    let of = |value: &Value| value["coordinateTransformations"].as_array().cloned().unwrap_or_default();
    // The full resolution's alone: the other levels' follow from their scale.
    let transformations = [of(multiscale), of(&multiscale["datasets"][0])].concat();
    let is_moved = transformations.iter().any(|one| {
        let by = one["translation"].as_array().into_iter().flatten();
        one["type"] == "translation" && by.filter_map(Value::as_f64).any(|by| by != 0.0)
    });
    let other_name = multiscale["name"].as_str().is_some_and(|other| !other.is_empty() && other != name);
    let all = [
        ("translations", is_moved),
        ("names of multiscales", other_name),
        ("display ranges", has_range),
        ("visibility of channels", is_hidden),
        ("rendering settings", is_rendered),
        ("attributes of other programs", others),
    ];
    all.into_iter().filter(|(_, is_there)| *is_there).map(|(what, _)| what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translations_and_names_of_others_are_found() {
        let moved = |by: [f64; 2]| json!([{"type": "scale", "scale": [1, 2]}, {"type": "translation", "translation": by}]);
        let of = |multiscale: Value, name: &str| {
            let attributes = json!({"multiscales": [multiscale], "wellread": {"name": name}});
            assert_eq!(unkept(&json!({"ome": attributes}), name), unkept(&attributes, name));
            unkept(&attributes, name)
        };
        let none = json!({"name": "a", "datasets": [{"coordinateTransformations": moved([0.0, 0.0])}]});
        assert_eq!(of(none.clone(), "a"), Vec::<&str>::new());
        assert_eq!(of(none, "b"), ["names of multiscales"]);
        let level = json!({"datasets": [{"coordinateTransformations": moved([0.0, 5.5])}]});
        assert_eq!(of(level, "a"), ["translations"]);
        let all = json!({"datasets": [], "coordinateTransformations": moved([-1.0, 0.0])});
        assert_eq!(of(all, "a"), ["translations"]);
        assert_eq!(unkept(&Value::Null, "a"), Vec::<&str>::new());
    }

    #[test]
    fn settings_of_viewers_and_attributes_of_others_are_found() {
        let of = |channel: Value| unkept(&json!({"ome": {"omero": {"channels": [channel]}}}), "a");
        let window = |start: f64, end: f64| json!({"min": 0, "max": 255.0, "start": start, "end": end});
        let whole = json!({"label": "A", "active": true, "window": window(0.0, 255.0)});
        assert_eq!(of(whole), Vec::<&str>::new());
        assert_eq!(of(json!({"window": window(0.0, 99.0)})), ["display ranges"]);
        assert_eq!(of(json!({"window": window(5.0, 255.0)})), ["display ranges"]);
        assert_eq!(of(json!({"window": {"start": 1}})), Vec::<&str>::new());
        assert_eq!(of(json!({"active": false})), ["visibility of channels"]);
        let usual = json!({"inverted": false, "family": "linear", "coefficient": 1});
        assert_eq!(of(usual), Vec::<&str>::new());
        for other in [json!({"inverted": true}), json!({"family": "log"}), json!({"coefficient": 0.5})] {
            assert_eq!(of(other), ["rendering settings"]);
        }
        let shown = |rdefs: Value| unkept(&json!({"ome": {"omero": {"channels": [], "rdefs": rdefs}}}), "a");
        assert_eq!(shown(json!({"defaultZ": 3, "model": "color"})), ["rendering settings"]);
        assert_eq!(shown(json!({})), Vec::<&str>::new());
        let mine = ["attributes of other programs"];
        assert_eq!(unkept(&json!({"ome": {}, "mine": {"k": 1}}), "a"), mine);
        assert_eq!(unkept(&json!({"multiscales": [], "omero": {}, "mine": 1}), "a"), mine);
    }
}
