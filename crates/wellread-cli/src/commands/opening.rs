//! How a set is opened, in the words of the command line and of Python. A cluster opens it by these words, and messages say
//! what to type.
//!
//! ```text
//!  OpenArgs ─▶ options, cells: what Python's Dataset and Dataset.cells take ─┬─▶ JSON, for a cluster
//!                                                                            ├─▶ python(): wellread.Dataset("plate", …).cells(…)
//!                                                                            └─▶ words(): --pattern … --cells …
//! ```

use super::OpenArgs;
use serde_json::{Map, Value, json};
use wellread_store::cells::CellOptions;
use wellread_store::{Missing, Unmatched};

/// Options of opening as Python's Dataset takes them.
pub fn options(open: &OpenArgs) -> Map<String, Value> {
    let mut options = Map::new();
    let sites = &open.sites;
    let texts = [
        ("format", &open.read_as),
        ("table", &open.table),
        ("column", &open.column),
        ("layout", &sites.layout),
        ("pattern", &sites.pattern),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            options.insert(name.to_owned(), value.clone().into());
        }
    }
    if open.level > 0 {
        options.insert("level".to_owned(), open.level.into());
    }
    if sites.missing != Missing::default() {
        options.insert("missing".to_owned(), json!(sites.missing));
    }
    if sites.unmatched != Unmatched::default() {
        options.insert("unmatched".to_owned(), json!(sites.unmatched));
    }
    if !sites.path_map.is_empty() {
        let pairs = sites.path_map.iter().map(|(from, to)| (from.clone(), to.clone().into()));
        options.insert("path_map".to_owned(), Value::Object(pairs.collect()));
    }
    if open.skip_null {
        options.insert("skip_null".to_owned(), true.into());
    }
    options
}

/// How cells are cut out of the images, as Python's Dataset.cells takes it; null where images are whole.
pub fn cells(open: &OpenArgs) -> Value {
    let Some((table, options)) = open.cells.chosen() else { return Value::Null };
    let mut said = json!(options);
    said["table"] = table.to_string_lossy().into();
    said
}

/// The choices of [`cells`] beside the table, without those that are the default.
fn chosen(open: &OpenArgs) -> Map<String, Value> {
    let (Value::Object(mut said), defaults) = (cells(open), json!(CellOptions::default())) else {
        return Map::new();
    };
    said.retain(|name, value| name != "table" && *value != defaults[name.as_str()]);
    said
}

/// The set at `path` in Python. `more` are further arguments, each after a comma.
pub fn python(path: &str, open: &OpenArgs, more: &str) -> String {
    let arguments = |of: &Map<String, Value>| -> String {
        of.iter().flat_map(|(name, value)| [", ".to_owned(), format!("{name}="), literal(value)]).collect()
    };
    let set = format!("wellread.Dataset({}{}{more})", literal(&path.into()), arguments(&options(open)));
    match &cells(open)["table"] {
        Value::Null => set,
        table => format!("{set}.cells({}{})", literal(table), arguments(&chosen(open))),
    }
}

/// A value as Python writes it. Lists are of numbers or texts: tuples.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(truth) => if *truth { "True" } else { "False" }.to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("({}{})", items.join(", "), if items.len() == 1 { "," } else { "" })
        }
        Value::Object(pairs) => {
            let pairs: Vec<String> =
                pairs.iter().map(|(name, value)| format!("{}: {}", json!(name), literal(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// The options as they are typed.
pub fn words(open: &OpenArgs) -> Vec<String> {
    let mut words = vec![];
    for (name, value) in options(open) {
        match (name.as_str(), value) {
            ("path_map", Value::Object(pairs)) => {
                for (from, to) in pairs {
                    words.extend(["--path-map".to_owned(), format!("{from}={}", word(&to))]);
                }
            }
            ("format", value) => words.extend(["--read-as".to_owned(), word(&value)]),
            (name, value) => push(&mut words, &format!("--{name}"), &value),
        }
    }
    if let Some(table) = cells(open)["table"].as_str() {
        words.extend(["--cells".to_owned(), table.to_owned()]);
    }
    for (name, value) in chosen(open) {
        match &value {
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(word).collect();
                let between = if name == "size" { "x" } else { "," };
                words.extend([format!("--cells-{name}"), items.join(between)]);
            }
            value => push(&mut words, &format!("--cells-{name}"), value),
        }
    }
    words
}

/// Adds a flag, or an option with its value.
fn push(words: &mut Vec<String>, name: &str, value: &Value) {
    words.push(name.replace('_', "-"));
    if *value != Value::Bool(true) {
        words.push(word(value));
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        open: OpenArgs,
    }

    fn typed(words: &[&str]) -> OpenArgs {
        Typed::parse_from(std::iter::once("wellread").chain(words.iter().copied())).open
    }

    #[test]
    fn options_of_opening_are_those_of_python() {
        let open = OpenArgs { read_as: Some("tiff".to_owned()), skip_null: true, ..OpenArgs::default() };
        assert_eq!(Value::Object(options(&open)), json!({ "format": "tiff", "skip_null": true }));
    }

    #[test]
    fn cells_are_those_of_python() {
        assert_eq!(cells(&OpenArgs::default()), Value::Null);
        let mut open = OpenArgs::default();
        open.cells.cells = Some("cells.csv".into());
        let wanted = json!({
            "table": "cells.csv", "x": null, "y": null, "size": [96, 96], "by": [], "edge": "shift", "unit": "pixel",
            "unmatched": "error", "mask": "none", "masks": null, "label_masks": false, "label": null,
        });
        assert_eq!(cells(&open), wanted);
    }

    #[test]
    fn a_set_is_written_as_it_was_opened() {
        let plain = typed(&[]);
        assert_eq!(python("a b", &plain, ""), r#"wellread.Dataset("a b")"#);
        assert_eq!(words(&plain), Vec::<String>::new());
        let all = [
            "--read-as",
            "tiff",
            "--table",
            "t",
            "--column",
            "c",
            "--pattern",
            "{well}_{channel}",
            "--level",
            "2",
            "--missing",
            "skip",
            "--unmatched",
            "skip",
            "--path-map",
            "/a=/b",
            "--skip-null",
            "--cells",
            "n.csv",
            "--cells-x",
            "X",
            "--cells-size",
            "64x32",
            "--cells-by",
            "Plate,Well",
            "--cells-edge",
            "pad",
            "--cells-masks",
            "m",
            "--cells-label-masks",
        ];
        let open = typed(&all);
        let expected = r#"wellread.Dataset("p", format="tiff", table="t", column="c", pattern="{well}_{channel}", level=2, missing="skip", unmatched="skip", path_map={"/a": "/b"}, skip_null=True, cache="ram").cells("n.csv", x="X", size=(64, 32), by=("Plate", "Well"), edge="pad", masks="m", label_masks=True)"#;
        assert_eq!(python("p", &open, r#", cache="ram""#), expected);
        let again = words(&open);
        let again: Vec<&str> = again.iter().map(String::as_str).collect();
        let again = typed(&again);
        assert_eq!((options(&again), cells(&again)), (options(&open), cells(&open)));
    }
}
