//! Roles of a pattern's fields in errors of names that make no sites or lack planes, and misspelt names of layouts.

use super::{failure, layout, pattern, write};
use wellread_store::{open, read_image};

#[test]
fn errors_of_patterns_say_what_a_field_is_taken_as() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["A01_1_DAPI.tif", "A01_2_DAPI.tif"]);
    let error = failure(dir.path(), &pattern("{well}_{c}_{channel}"));
    assert!(error.contains("are the same plane by their names"), "{error}");
    assert!(error.contains("{c} is taken as the channel: give a field another name for a column"), "{error}");
    let error = failure(dir.path(), &pattern("{wel}_*_{channel}"));
    assert!(
        error.contains("are the same plane") && error.contains("did you mean {well} by {wel}?"),
        "{error}"
    );
    let error = failure(dir.path(), &pattern("{well}_*_{channel}"));
    assert!(error.contains("are the same plane") && !error.contains("is taken as"), "{error}");
}

#[test]
fn errors_of_missing_planes_say_which_field_is_an_axis() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["A01_1_DAPI.tif", "A01_2_DAPI.tif", "A02_1_DAPI.tif"]);
    let lacking =
        |fields: &str| read_image(&*open(dir.path(), &pattern(fields)).unwrap(), 1).unwrap_err().to_string();
    for (field, axis) in [("plane", "z"), ("t", "the time")] {
        let error = lacking(&format!("{{well}}_{{{field}}}_{{channel}}"));
        let said = format!("{{{field}}} is taken as {axis}: give a field another name for a column");
        assert!(error.contains("A02") && error.contains(&said), "{error}");
    }
    let error = lacking("{well}_{z}_{channel}");
    assert!(error.contains("A02") && !error.contains("is taken as"), "{error}");
}

#[test]
fn a_layout_that_is_misspelt_names_the_nearest() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["a.tif"]);
    for (given, meant) in
        [("harmny", "harmony"), ("ImageXpress", "imagexpress"), ("cellvoyger", "cellvoyager")]
    {
        let error = failure(dir.path(), &layout(given));
        assert!(error.contains(&format!("(hint: is it \"{meant}\"?)")), "{error}");
    }
    assert!(!failure(dir.path(), &layout("zeiss")).contains("hint"));
}
