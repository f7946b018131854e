//! `convert --on ray`: parts that the nodes of a cluster write, and what is said of them.

use super::super::on::{self, Answer, On};
use super::super::without_checksums;
use super::super::{OpenArgs, parse_positive};
use super::check::say_left_out;
use crate::output::{Failure, Outcome, Ui, bytes};
use serde_json::{Map, Value, json};
use std::path::Path;
use wellread_measure::path_text::text;
use wellread_store::read_back::{self, Digests};
use wellread_store::surface::option;
use wellread_store::words::counted;
use wellread_store::{Format, OpenOptions, Store};

/// Options of a conversion on a cluster, and of the profiles that are joined.
#[derive(clap::Args)]
pub(super) struct ClusterArgs {
    /// With --join: the column of the profiles that has the images' names or file names, or columns that both have, such as
    /// Metadata_Well. Commas separate several, such as a file name per channel. Without --join, or given a second time: ray, or
    /// ray:ADDRESS such as ray:10.0.0.1:6379, converts on the nodes of a Ray cluster. All nodes must see source and target. A table
    /// becomes a folder of parts. Needs a Python with the package wellread and Ray (pip install '.[ray]' in a clone).
    #[arg(long, value_name = "COLUMN[,COLUMN…]|ray[:ADDRESS]")]
    pub on: Vec<String>,
    /// With --on ray: images of a part, which a task writes and reads back. By default a part has a 64th of all images, and
    /// 256 MiB of pixels at most. Larger parts make fewer files of a table, and tasks that take more memory.
    #[arg(long, value_name = "IMAGES", value_parser = parse_positive)]
    pub rows_per_part: Option<usize>,
}

impl ClusterArgs {
    /// Refuses the size of parts without a cluster: one machine writes one set.
    pub(super) fn refuse_parts(&self, on: Option<&On>) -> Outcome {
        if on.is_some() || self.rows_per_part.is_none() {
            return Ok(());
        }
        let why = "is the size of parts that nodes of a cluster write (hint: add --on ray, or leave it out)";
        Err(Failure::Usage(format!("--rows-per-part {why}")))
    }
}

/// The values of `--on`, told apart.
pub(super) struct OnValues<'a> {
    /// A cluster.
    pub on: Option<On>,
    /// Columns of the profiles that are joined.
    pub keys: Option<&'a str>,
}

/// Tells the values of `--on` apart: one names columns where profiles are joined, else a cluster. Two name both.
pub(super) fn parse_on_values(values: &[String], is_joining: bool) -> Outcome<OnValues<'_>> {
    let wrong = |why: &str| Failure::Usage(format!("--on: {why}"));
    let cluster = |text: &String| {
        on::parse_on(text)
            .map_err(|why| wrong(&format!("{why}; columns are those of a table that --join names")))
    };
    match (values, is_joining) {
        ([], _) => Ok(OnValues { on: None, keys: None }),
        ([one], false) => Ok(OnValues { on: Some(cluster(one)?), keys: None }),
        ([one], true) if one.starts_with("ray:") => {
            Err(wrong("the columns of the profiles are missing (hint: --join FILE --on COLUMN --on ray)"))
        }
        ([one], true) => Ok(OnValues { on: None, keys: Some(one) }),
        // A column may be called as a cluster is: the last one is the cluster then.
        ([one, other], true) => match (on::parse_on(other), on::parse_on(one)) {
            (Ok(on), _) => Ok(OnValues { on: Some(on), keys: Some(one) }),
            (Err(_), Ok(on)) => Ok(OnValues { on: Some(on), keys: Some(other) }),
            (Err(_), Err(_)) => {
                Err(wrong("give ray or ray:ADDRESS as one of two values; commas separate several columns"))
            }
        },
        _ => Err(wrong("names one cluster, and with --join the columns of the profiles")),
    }
}

/// Refuses to leave columns out on a cluster, whose nodes convert all of them.
pub(super) fn refuse_without(on: Option<&On>, columns: &[String]) -> Outcome {
    if on.is_none() || columns.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "nodes of a cluster convert all columns, also those of {} (hint: convert on this machine, or drop the columns in the table)",
        option("without_column")
    )))
}

/// A document with the fields of another one.
pub(super) fn with_fields(mut document: Value, others: &Value) -> Value {
    if let (Some(fields), Some(others)) = (document.as_object_mut(), others.as_object()) {
        fields.extend(others.clone());
    }
    document
}

/// Has the nodes of a cluster convert the images of a set, but for the rows `skipped`. `write` are the choices of the writer, `how` those
/// of the conversion, `join` the profiles that are joined. `beside` is said of what is beside the images. `images` are those that are
/// converted.
pub(super) fn run(
    on: &On,
    (open, source, images): (&OpenArgs, &Path, &dyn Store),
    (target, format): (&Path, &Format),
    [write, how, join, skipped]: [Value; 4],
    beside: &Value,
    ui: Ui,
) -> Outcome {
    let Some(place) = target.to_str() else {
        let cause = "a path for a cluster must be UTF-8 text (hint: choose another name)";
        return Err(Failure::Failed(format!("{}: {cause}", target.display())));
    };
    let has_wanted_sums = write["checksums"] == true;
    let mut more = Map::new();
    let fields = [
        ("target", json!(place)),
        ("format", json!(format.name)),
        ("write", write),
        ("how", how),
        ("join", join),
        ("skipped", skipped),
    ];
    more.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    let Answer { mut result, cluster } = on.ask("convert", (open, source), more, "converting", ui)?;
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
    }
    let options = OpenOptions { format: Some(format.name.to_owned()), ..OpenOptions::default() };
    let written = wellread_store::open(target, &options);
    let sums = written.as_ref().ok().map(|written| written.has_checksums());
    // Nodes of a cluster note no image but the first.
    let left_out = written.and_then(|written| read_back::left_out(images, &Digests::default(), &*written));
    result["facts_left_out"] = say_left_out(format, left_out, ui).into();
    result["has_checksums"] = without_checksums::say_of_new(target, sums, has_wanted_sums, ui).into();
    on::say(&cluster, ui);
    ui.document(&with_fields(result, beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_clusters_are_told_apart() {
        let named = |values: &[&str], is_joining| {
            let values: Vec<String> = values.iter().map(|text| (*text).to_owned()).collect();
            let found = parse_on_values(&values, is_joining);
            found.map(|OnValues { on, keys }| (on.is_some(), keys.map(str::to_owned))).map_err(|failure| {
                match failure {
                    Failure::Usage(why) => why,
                    _ => "another failure".to_owned(),
                }
            })
        };
        let columns = |text: &str| Some(text.to_owned());
        assert_eq!(named(&[], false), Ok((false, None)));
        assert_eq!(named(&["FileName"], true), Ok((false, columns("FileName"))));
        assert_eq!(named(&["ray"], true), Ok((false, columns("ray"))));
        assert_eq!(named(&["ray"], false), Ok((true, None)));
        assert_eq!(named(&["FileName", "ray"], true), Ok((true, columns("FileName"))));
        assert_eq!(named(&["ray:auto", "a,b"], true), Ok((true, columns("a,b"))));
        assert_eq!(named(&["ray", "ray"], true), Ok((true, columns("ray"))));
        let refused = |values: &[&str], is_joining| named(values, is_joining).unwrap_err();
        let why = refused(&["FileName"], false);
        assert!(why.contains("neither ray nor ray:ADDRESS") && why.contains("--join"), "{why}");
        assert!(refused(&["ray:auto"], true).contains("--on COLUMN --on ray"));
        assert!(refused(&["a", "b"], true).contains("give ray or ray:ADDRESS as one"));
        assert!(refused(&["ray", "ray"], false).contains("names one cluster"));
    }

    #[test]
    fn the_size_of_parts_needs_a_cluster() {
        let parts = |rows_per_part| ClusterArgs { on: vec![], rows_per_part };
        let cluster = on::parse_on("ray").ok();
        assert!(
            parts(None).refuse_parts(None).is_ok() && parts(Some(5)).refuse_parts(cluster.as_ref()).is_ok()
        );
        let refused = parts(Some(5)).refuse_parts(None);
        assert!(
            matches!(refused, Err(Failure::Usage(why)) if why.contains("--rows-per-part is the size of parts"))
        );
    }

    #[test]
    fn fields_of_both_documents_are_said() {
        let both = with_fields(json!({ "images": 3 }), &json!({ "feature_columns": 2 }));
        assert_eq!(both, json!({ "images": 3, "feature_columns": 2 }));
    }
}
