//! `convert --on ray`: parts that the nodes of a cluster write, and what is said of them.

use super::super::on::{self, Found, On};
use super::{Args, bytes, layouts};
use crate::output::{Failure, Outcome, Ui};
use serde_json::{Map, Value, json};
use wellread_measure::path_text::text;
use wellread_store::Format;
use wellread_store::words::counted;

/// The cluster that `--on` names where no profiles are joined, whose columns it names else.
pub(super) fn of(args: &Args) -> Outcome<Option<On>> {
    let named = args.on.as_deref().filter(|_| args.join.is_none());
    let on = named.map(on::parse_on).transpose();
    on.map_err(|why| Failure::Usage(format!("--on: {why}; columns are those of a table that --join names")))
}

/// Has the nodes of a cluster convert all images.
pub(super) fn run(args: &Args, on: &On, format: &Format, ui: Ui) -> Outcome {
    let Some(target) = args.target.to_str() else {
        let cause = "is no text, which a path must be that goes to a cluster (hint: choose another name)";
        return Err(Failure::Failed(format!("{}: {cause}", args.target.display())));
    };
    let mut more = Map::new();
    more.insert("target".to_owned(), target.into());
    more.insert("format".to_owned(), format.name.into());
    more.insert("write".to_owned(), args.write.document());
    more.insert(
        "how".to_owned(),
        json!({
            "overwrite": args.write.overwrite, "resume": args.resume, "verify": !args.no_verify, "mixed": args.mixed,
            "memory": args.memory,
        }),
    );
    let open = layouts::of_source(&args.open);
    let Found { mut result, cluster } = on.ask("convert", (&open, &args.source), more, "converting", ui)?;
    result["source"] = text(&args.source).into();
    result["target"] = text(&args.target).into();
    if !ui.json {
        let count = |name: &str| result[name].as_u64().unwrap_or_default();
        let images = count("images") as usize;
        let resumed = match count("images_resumed") as usize {
            0 => String::new(),
            n => format!(", {} of which an interrupted run had left", counted(n, "image")),
        };
        ui.say(format!(
            "{} ({} of pixels written{resumed}) from {} to {} in {} in {:.2} s: {}",
            counted(images, "image"),
            bytes(count("bytes_of_pixels_written")),
            result["source_format"].as_str().unwrap_or_default(),
            format.name,
            counted(count("parts") as usize, "part"),
            cluster["seconds"].as_f64().unwrap_or_default(),
            args.target.display()
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
