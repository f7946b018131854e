//! Frameworks that are named, and what was measured of them.

use super::*;

#[test]
fn a_framework_that_is_named_has_to_be_measured() {
    let row = |framework: &str, status: Status| Row {
        framework: framework.to_owned(),
        status,
        reason: (status == Status::Failed)
            .then(|| if framework == "jax" { "no jax today" } else { "not here" }.to_owned()),
        ..Row::default()
    };
    let rows = [
        row("candle", Status::Ok),
        row("pytorch", Status::Failed),
        row("pytorch", Status::Ok),
        row("jax", Status::Failed),
        row("jax", Status::Failed),
        row("onnxruntime", Status::Failed),
    ];
    let said = |asked: &[&str]| {
        let asked: Vec<String> = asked.iter().map(|&name| name.to_owned()).collect();
        lacking(&asked, &rows.iter().collect::<Vec<_>>())
    };
    let why = said(&["candle", "pytorch", "jax"]).unwrap();
    assert!(why.starts_with("nothing was measured of jax: no jax today (hint: "), "{why}");
    // Each that is missing is named, not the first alone.
    let both = said(&["onnxruntime", "jax"]).unwrap();
    assert!(
        both.starts_with("nothing was measured of onnxruntime: not here; jax: no jax today (hint: "),
        "{both}"
    );
    // A batch that does not fit is a row, and the groups take what there is.
    assert_eq!(said(&["candle", "pytorch"]), None);
    assert_eq!([said(&["both"]), said(&["all"])], [None, None]);
    assert_eq!(said(&["all", "jax"]).as_ref(), Some(&why));
    assert_eq!(said(&["jax", "jax"]), Some(why));
}
