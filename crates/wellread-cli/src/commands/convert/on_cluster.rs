//! `convert --on ray`: parts that the nodes of a cluster write, and what is said of them.

use super::super::OpenArgs;
use super::super::on::{self, Found, On};
use crate::output::{Failure, Outcome, Ui, bytes};
use serde_json::{Map, Value, json};
use std::path::Path;
use wellread_measure::path_text::text;
use wellread_store::Format;
use wellread_store::words::counted;

/// The cluster that `--on` names where no profiles are joined, whose columns it names else.
pub(super) fn of(on: Option<&str>, is_joining: bool) -> Outcome<Option<On>> {
    let on = on.filter(|_| !is_joining).map(on::parse_on).transpose();
    on.map_err(|why| Failure::Usage(format!("--on: {why}; columns are those of a table that --join names")))
}

/// Has the nodes of a cluster convert all images of a set. `write` are the choices of the writer, `how` those of the conversion.
pub(super) fn run(
    on: &On,
    (open, source): (&OpenArgs, &Path),
    (target, format): (&Path, &Format),
    [write, how]: [Value; 2],
    ui: Ui,
) -> Outcome {
    let Some(place) = target.to_str() else {
        let cause = "is no text, which a path must be that goes to a cluster (hint: choose another name)";
        return Err(Failure::Failed(format!("{}: {cause}", target.display())));
    };
    let mut more = Map::new();
    let fields = [("target", json!(place)), ("format", json!(format.name)), ("write", write), ("how", how)];
    more.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    let Found { mut result, cluster } = on.ask("convert", (open, source), more, "converting", ui)?;
    result["source"] = text(source).into();
    result["target"] = text(target).into();
    if !ui.json {
        let count = |name: &str| result[name].as_u64().unwrap_or_default();
        let resumed = match count("images_resumed") as usize {
            0 => String::new(),
            n => format!(", {} of which an interrupted run had left", counted(n, "image")),
        };
        ui.say(format!(
            "{} ({} of pixels written{resumed}) from {} to {} in {} in {:.2} s: {}",
            counted(count("images") as usize, "image"),
            bytes(count("bytes_of_pixels_written")),
            result["source_format"].as_str().unwrap_or_default(),
            format.name,
            counted(count("parts") as usize, "part"),
            cluster["seconds"].as_f64().unwrap_or_default(),
            target.display()
        ));
        if result["joined_in_one_pass"] == Value::Bool(true) {
            ui.hint(format!(
                "note: one {} set was made of the parts in one pass on this machine",
                format.name
            ));
        }
    }
    on::say(&cluster, ui);
    ui.document(&result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_clusters_are_told_apart() {
        let named = |on, is_joining| of(on, is_joining).ok().map(|on| on.is_some());
        assert_eq!(named(None, false), Some(false));
        assert_eq!(named(Some("FileName"), true), Some(false));
        assert_eq!(named(Some("ray"), false), Some(true));
        let Err(Failure::Usage(why)) = of(Some("FileName"), false) else { panic!("no cluster is called so") };
        assert!(why.contains("neither ray nor ray:ADDRESS") && why.contains("--join"), "{why}");
    }
}
