//! Plates, wells and the series of bioformats2raw.

use super::{open_at, write_small};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use serde_json::{Value, json};
use std::path::Path;
use wellread_store::{Missing, OpenOptions, WriteOptions, open, read_image};

/// Without a field and without a well of a plate; both come back.
fn what_is_not_there(plate: &Path) {
    let with = |missing: Missing| open(plate, &OpenOptions { missing, ..OpenOptions::default() });
    let whole = with(Missing::Error).unwrap();
    let info = whole.row_info(1).unwrap();
    let away = plate.with_file_name("away");
    std::fs::rename(plate.join("A/1/1"), &away).unwrap();
    let names = |missing| {
        let store = with(missing).unwrap();
        (0..store.len()).map(|row| store.name(row).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names(Missing::Error), ["A/1/0", "A/1/1", "B/2/0"]);
    assert_eq!(names(Missing::Skip), ["A/1/0", "B/2/0"]);
    let lacks = |missing| with(missing).unwrap().hints().missing_parts.to_vec();
    let fewer = "1 well of 2 has fewer fields than others: B/2 has 1 of 2";
    assert_eq!(whole.hints().missing_parts, [fewer]);
    for (missing, what) in
        [(Missing::Error, "missing skip|zero"), (Missing::Skip, "left out"), (Missing::Zero, "read as 0")]
    {
        assert_eq!(lacks(missing), [format!("1 field of 3 is not there: A/1/1 ({what})"), fewer.to_owned()]);
    }
    // It is looked at, and not read.
    let lacking = with(Missing::Error).unwrap();
    assert_eq!(lacking.row_info(1).unwrap(), info);
    assert!(lacking.files().unwrap().iter().all(|file| !file.starts_with(plate.join("A/1/1"))));
    let error = read_image(&*lacking, 1).unwrap_err();
    assert_eq!((error.path(), error.row_index()), (plate.join("A/1/1").as_path(), Some(1)));
    assert!(error.to_string().contains("missing skip leaves such fields out, missing zero"), "{error}");
    let zero = with(Missing::Zero).unwrap();
    let (found, pixels) = read_image(&*zero, 1).unwrap();
    assert_eq!((zero.len(), found), (3, info));
    assert!(!pixels.is_empty() && pixels.iter().all(|&byte| byte == 0));
    assert_eq!(zero.metadata(1).unwrap().name, "A/1/1");
    assert!(read_image(&*zero, 0).unwrap().1.iter().any(|&byte| byte != 0));
    std::fs::rename(&away, plate.join("A/1/1")).unwrap();
    std::fs::rename(plate.join("B/2"), &away).unwrap();
    assert_eq!(names(Missing::Skip), ["A/1/0", "A/1/1"]);
    assert_eq!(lacks(Missing::Skip), ["1 well is not there: B/2 (left out)"]);
    let error = with(Missing::Error).err().unwrap();
    assert!(error.hint_text().unwrap().contains("missing skip leaves") && error.is_skippable(), "{error}");
    std::fs::rename(&away, plate.join("B/2")).unwrap();
}

#[test]
fn plates_wells_and_series() {
    let dir = tempfile::tempdir().unwrap();
    let plate = dir.path().join("plate.zarr");
    let group = |path: &Path, attributes: Value| {
        std::fs::create_dir_all(path).unwrap();
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": attributes}});
        std::fs::write(path.join("zarr.json"), group.to_string()).unwrap();
    };
    for field in ["A/1/0", "A/1/1", "B/2/0"] {
        std::fs::create_dir_all(plate.join(field).parent().unwrap()).unwrap();
        write_small(&dir.path().join("x.zarr"), &WriteOptions::default());
        std::fs::rename(dir.path().join("x.zarr"), plate.join(field)).unwrap();
    }
    let acquisitions = json!([{"id": 0}, {"id": 7}]);
    let wells = json!([{"path": "A/1"}, {"path": "B/2"}]);
    group(&plate, json!({"plate": {"name": "BR1", "acquisitions": acquisitions, "wells": wells}}));
    group(
        &plate.join("A/1"),
        json!({"well": {"images": [{"path": "0", "acquisition": 0}, {"path": "1", "acquisition": 7}]}}),
    );
    group(&plate.join("B/2"), json!({"well": {"images": [{"path": "0"}]}}));
    let names = |path: &Path| -> Vec<String> {
        let store = open_at(path);
        (0..store.len())
            .map(|row| {
                read_image(&*store, row).unwrap();
                store.name(row).unwrap()
            })
            .collect()
    };
    assert_eq!(names(&plate), ["A/1/0", "A/1/1", "B/2/0"]);
    // A folder that holds one plate is that plate.
    assert_eq!(names(dir.path()), ["A/1/0", "A/1/1", "B/2/0"]);
    assert_eq!(open_at(dir.path()).hints().feature_names()[1], "Metadata_Well");
    let store = open_at(&plate);
    let columns = ["Metadata_Plate", "Metadata_Well", "Metadata_Site", "Metadata_Acquisition"];
    assert_eq!(store.hints().feature_names(), columns);
    let table = wellread_store::features::all(&*store).unwrap().unwrap();
    let text = |name: &str| -> Vec<Option<String>> {
        let column = table.column_by_name(name).unwrap().as_string::<i32>();
        column.iter().map(|value| value.map(str::to_owned)).collect()
    };
    let number = |name: &str| -> Vec<Option<i64>> {
        table.column_by_name(name).unwrap().as_primitive::<Int64Type>().iter().collect()
    };
    assert_eq!(
        text("Metadata_Plate"),
        [Some("BR1".to_owned()), Some("BR1".to_owned()), Some("BR1".to_owned())]
    );
    assert_eq!(
        text("Metadata_Well"),
        [Some("A01".to_owned()), Some("A01".to_owned()), Some("B02".to_owned())]
    );
    assert_eq!(number("Metadata_Site"), [Some(0), Some(1), Some(0)]);
    assert_eq!(number("Metadata_Acquisition"), [Some(0), Some(7), None]);
    assert!(open_at(&plate.join("A/1")).hints().feature_names().is_empty());
    assert_eq!(names(&plate.join("A/1")), ["0", "1"]);
    what_is_not_there(&plate);
    // By itself, an image of ours keeps the name that it was written with.
    assert_eq!(names(&plate.join("A/1/1")), ["small"]);
    // The same two fields as bioformats2raw lays out series, without and with the list in OME.
    let series = plate.join("A/1");
    group(&series, json!({"bioformats2raw.layout": 3}));
    assert_eq!(names(&series), ["0", "1"]);
    group(&series.join("OME"), json!({"series": ["1"]}));
    assert_eq!(names(&series), ["1"]);
    group(&series.join("OME"), json!({"series": ["../../B/2/0"]}));
    assert!(open(&series, &OpenOptions::default()).err().unwrap().to_string().contains("leaves its group"));
}

/// The numbers of a series follow each other: behind a gap an image is read, and the gap is named.
#[test]
fn a_series_with_a_gap_is_read_whole_and_lacks_a_group() {
    let dir = tempfile::tempdir().unwrap();
    let series = dir.path().join("b.zarr");
    let group = |path: &Path, attributes: Value| {
        std::fs::create_dir_all(path).unwrap();
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": attributes}});
        std::fs::write(path.join("zarr.json"), group.to_string()).unwrap();
    };
    group(&series, json!({"bioformats2raw.layout": 3}));
    for name in ["0", "1", "3"] {
        write_small(&dir.path().join("x.zarr"), &WriteOptions::default());
        std::fs::rename(dir.path().join("x.zarr"), series.join(name)).unwrap();
    }
    // A folder with a number for a name that is none, and one that is no image.
    group(&series.join("7"), json!({"other": 1}));
    std::fs::create_dir(series.join("07")).unwrap();
    let store = open_at(&series);
    let names: Vec<String> = (0..store.len()).map(|row| store.name(row).unwrap()).collect();
    assert_eq!(names, ["0", "1", "3"]);
    assert_eq!(read_image(&*store, 2).unwrap(), read_image(&*store, 0).unwrap());
    assert_eq!(store.hints().missing_parts, ["groups of the series, whose numbers follow each other: 2"]);
}
