//! The groups of an OME-Zarr plate: plate, rows and wells, around images that the OME-Zarr writer writes.
//!
//! Specifications: <https://ngff.openmicroscopy.org/0.4/#plate-md>, <https://ngff.openmicroscopy.org/0.5/#plate-md>.

use super::spec::PlateSpec;
use serde_json::{Map, Value, json};
use std::path::Path;
use wellread_store::place;

/// Makes the folders of all wells below `root`, with the metadata of the plate and of each. `version` is 0.4 or 0.5.
///
/// # Errors
/// As the system says.
pub(super) fn write_groups(root: &Path, spec: &PlateSpec, version: &str) -> std::io::Result<()> {
    let names = |count: usize, name: &dyn Fn(usize) -> String| -> Vec<Value> {
        (0..count).map(|n| json!({"name": name(n)})).collect()
    };
    let columns = spec.size.columns();
    let wells = spec.size.all().map(|well| {
        json!({
            "path": format!("{}/{}", well.letters(), well.column + 1),
            "rowIndex": well.row,
            "columnIndex": well.column,
        })
    });
    let plate = json!({
        "name": spec.name,
        "rows": names(spec.size.rows(), &|row| spec.size.well(row * columns).letters()),
        "columns": names(columns, &|column| (column + 1).to_string()),
        "wells": wells.collect::<Vec<_>>(),
        "field_count": spec.fields,
    });
    group(root, version, Some(("plate", plate)))?;
    let images: Vec<Value> =
        (0..spec.fields).map(|field| json!({"path": spec.layout.site_number(field).to_string()})).collect();
    for well in spec.size.all() {
        let row = root.join(well.letters());
        if well.column == 0 {
            group(&row, version, None)?;
        }
        let metadata = json!({"images": images});
        group(&row.join((well.column + 1).to_string()), version, Some(("well", metadata)))?;
    }
    Ok(())
}

/// Makes a group, with what OME-Zarr says of it.
fn group(folder: &Path, version: &str, metadata: Option<(&str, Value)>) -> std::io::Result<()> {
    place::create_folder(folder)?;
    let mut ome = Map::new();
    if version == "0.4" {
        std::fs::write(folder.join(".zgroup"), json!({"zarr_format": 2}).to_string())?;
        if let Some((kind, mut metadata)) = metadata {
            metadata["version"] = json!(version);
            ome.insert(kind.to_owned(), metadata);
        }
        return std::fs::write(folder.join(".zattrs"), Value::Object(ome).to_string());
    }
    let mut attributes = Map::new();
    if let Some((kind, metadata)) = metadata {
        ome.insert("version".to_owned(), json!(version));
        ome.insert(kind.to_owned(), metadata);
        attributes.insert("ome".to_owned(), Value::Object(ome));
    }
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
    std::fs::write(folder.join("zarr.json"), group.to_string())
}
