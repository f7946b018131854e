//! `wellread advise PATH`

mod text;

use super::command_line::joined;
use super::convert::{unsupported_columns, unsupported_note};
use super::diagnosis::parse_step;
use super::result_file::local_folder;
use super::trace::TraceArgs;
use super::{OpenArgs, distinct, opening, outside_of, parse_crop, parse_positive, parse_seconds};
use crate::output::{Failure, Outcome, Ui, shown_on};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellread_bench::advise::{
    Advice, CropSource, LinkAdvice, Recommendation, Settings, Studied, candidates, study,
};
use wellread_bench::data::no_masks;
use wellread_store::place;

/// A short study of your own images: what to keep them in and how to load them, and what a model will wait for data.
#[derive(clap::Args)]
#[command(after_help = "\
Takes a sample of the set and writes it in every format, codec and chunk size into a scratch folder. Measures all of \
them in turns, then workers, batch sizes and caches. Predicts how long a step waits for data. With --cells it compares \
crops that the loader cuts out with stored ones. Changes nothing in the set, but drops its files from the page cache, to \
measure cold ones. Removes the scratch folder after the answer, also on Ctrl-C.

Examples:
  wellread advise plate.parquet
  wellread advise plate.parquet --step-ms 40 --batch-size 32
  wellread advise plate-tiff --cells cells.csv --cells-size 64x64
  wellread advise s3://bucket/plate.parquet --price-per-1000-requests 0.0004
  wellread advise tiff-folder --formats tiff,ome-zarr --time-budget 40 --json")]
pub struct Args {
    /// A file or folder of images, or an address such as s3://bucket/plate.
    path: PathBuf,
    /// Milliseconds that your model takes for a batch. The prediction is for that model, and is checked against a real
    /// loop.
    #[arg(long, value_name = "MS", value_parser = parse_step)]
    step_ms: Option<f64>,
    /// Images of a batch; by default 16 (fewer if images are large), or the recommended number.
    #[arg(long, value_parser = parse_positive)]
    batch_size: Option<usize>,
    /// Formats to try: all, or a comma-separated list. The set as it is always takes part.
    #[arg(long, value_delimiter = ',', default_value = "all")]
    formats: Vec<String>,
    /// Take the centre of every image, of this size, such as 64x96, or 64 for a square.
    #[arg(long, value_name = "HxW", value_parser = parse_crop)]
    crop: Option<(usize, usize)>,
    /// Most images of the sample.
    #[arg(long, default_value_t = Settings::default().limits.images, value_parser = parse_positive)]
    images: usize,
    /// Seconds that the study takes, about.
    #[arg(long, default_value_t = Settings::default().time_budget.as_secs_f64(), value_parser = parse_seconds)]
    time_budget: f64,
    /// Folder for the copies, on the disk that the set will be on. By default the system's folder for temporary files.
    #[arg(long, value_name = "FOLDER", value_parser = local_folder())]
    scratch: Option<PathBuf>,
    /// Seed of the sample and of every random order.
    #[arg(long, default_value_t = Settings::default().seed)]
    seed: u64,
    /// Price of 1,000 requests, in any currency; adds the cost of an epoch of a set in a bucket. S3 asks $0.0004 for
    /// reading.
    #[arg(long, value_name = "PRICE", value_parser = parse_price)]
    price_per_1000_requests: Option<f64>,
    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let defaults = Settings::default();
    candidates::formats(&args.formats).map_err(|e| Failure::Usage(format!("--formats: {e}")))?;
    if let Some(scratch) = &args.scratch {
        outside_of(&args.path, "--scratch", scratch)?;
    }
    let settings = Settings {
        step: args.step_ms.map(|ms| ms / 1e3),
        batch_size: args.batch_size,
        formats: distinct(&args.formats),
        cells: args.open.cells.source(),
        crop: args.crop,
        limits: wellread_bench::sample::Limits { images: args.images, ..defaults.limits },
        time_budget: Duration::from_secs_f64(args.time_budget),
        scratch: args.scratch.clone().unwrap_or(defaults.scratch),
        seed: args.seed,
        price_per_1000: args.price_per_1000_requests,
    };
    // An error of the path reads as everywhere.
    let images = args.open.open(&args.path, ui)?;
    no_masks(&*images)?;
    let is_here = images.remote_path().is_none();
    let (own_format, columns) = (images.format(), images.hints().feature_names());
    drop(images);
    let bar = ui.progress(0, "reading a sample");
    // A study takes a minute: without a bar, a line says what it does now.
    let now = RefCell::new(String::new());
    ui.phase("reading a sample");
    let progress = |what: &str, done: usize, of: usize| {
        shown_on(&bar)(what, done, of);
        if now.replace(what.to_owned()) != what {
            ui.phase(what);
        }
    };
    let Studied { mut advice, copies } =
        study(|| args.open.open_images_again(&args.path), &settings, &progress)?;
    bar.finish_and_clear();
    advice.notes.extend(left_behind(&advice.recommendation, own_format, columns));
    let elsewhere = copy_elsewhere(&advice, &args.path);
    advice.notes.extend(elsewhere);
    let told = tell(&advice, args, is_here, ui);
    // Nobody waits for that.
    let bar = ui.progress(0, "removing the copies");
    ui.phase("removing the copies");
    drop(copies);
    bar.finish_and_clear();
    told
}

/// Prints the answer.
fn tell(advice: &Advice, args: &Args, is_here: bool, ui: Ui) -> Outcome {
    if let Some(note) = idle_price(args.price_per_1000_requests, is_here) {
        ui.hint(note);
    }
    let commands = commands(advice, args);
    if ui.json {
        let mut document = serde_json::to_value(advice).map_err(|e| Failure::Failed(e.to_string()))?;
        document["path"] = args.path.display().to_string().into();
        document["commands"] = commands.into();
        return ui.document(&document);
    }
    text::print(advice, &args.path, args.step_ms.is_some(), &commands, ui);
    Ok(())
}

/// The note on a price that changes nothing, for a set on this machine. Others lack advice on the link where it could not be measured.
fn idle_price(price: Option<f64>, is_here: bool) -> Option<&'static str> {
    let note = "note: --price-per-1000-requests changes nothing: this set takes no requests over a network";
    (price.is_some() && is_here).then_some(note)
}

/// The note on columns beside the images, or of the cells, that what is recommended has no place for.
fn left_behind(chosen: &Recommendation, own_format: &str, columns: Vec<String>) -> Option<String> {
    let format = wellread_store::registry::format_named(chosen.format).ok().filter(|_| !chosen.as_it_is)?;
    unsupported_note(&unsupported_columns(own_format, columns, format), format)
}

/// Where the copy goes that is recommended; whether that is beside the set. A set in a bucket has it there where requests are signed. Nobody
/// may write to a public bucket or to a web server.
fn copy_target(source: &str, link: Option<&LinkAdvice>, ending: &str) -> (String, bool) {
    let name = format!("advised{ending}");
    let is_signed = link.is_some_and(|there| !there.link.credentials.starts_with("none"));
    let scheme = place::scheme(Path::new(source)).filter(|scheme| !matches!(*scheme, "http" | "https"));
    let folder = source.trim_end_matches('/').rsplit_once('/').map(|(folder, _)| folder);
    // A whole bucket has nothing beside it.
    match folder.filter(|folder| is_signed && scheme.is_some() && !folder.ends_with('/')) {
        Some(folder) => (format!("{folder}/{name}"), true),
        None => (name, false),
    }
}

/// The note on a copy on this machine that is recommended for its speed over the link.
fn copy_elsewhere(advice: &Advice, path: &Path) -> Option<String> {
    let chosen = &advice.recommendation;
    let is_there = copy_target(&path.to_string_lossy(), advice.link.as_ref(), "").1;
    (advice.link.is_some() && !chosen.as_it_is && !is_there).then(|| {
        format!(
            "{} is recommended by its predicted speed over the link. The first command writes the copy to this machine: put it into a \
             bucket that you may write to",
            chosen.format
        )
    })
}

/// The commands to type.
fn commands(advice: &Advice, args: &Args) -> Vec<String> {
    let chosen = &advice.recommendation;
    let source = args.path.to_string_lossy().into_owned();
    let (workers, batch_size) = (chosen.workers.to_string(), chosen.batch_size.to_string());
    let mut commands = Vec::new();
    let (set, open) = if chosen.as_it_is {
        (source, args.open.clone())
    } else {
        let ending = wellread_store::registry::format_named(chosen.format).map_or("", |f| f.set_ending);
        let target = copy_target(&source, advice.link.as_ref(), ending).0;
        let mut words = vec!["convert".to_owned(), source, target.clone()];
        words.extend(opening::words(&args.open));
        words.extend(["--format".to_owned(), chosen.format.to_owned()]);
        if let Some(codec) = chosen.compression {
            words.extend(["--compression".to_owned(), codec.to_string()]);
        }
        if let Some(chunk) = chosen.chunk {
            words.extend(["--chunk".to_owned(), chunk.map(|n| n.to_string()).join(",")]);
        }
        commands.push(joined(words));
        (target, OpenArgs::default())
    };
    let cache = match &chosen.cache {
        wellread_loader::Cache::None => String::new(),
        cache => format!(", cache=\"{cache}\""),
    };
    let crop = args.crop.map_or(String::new(), |(height, width)| format!(", crop=({height}, {width})"));
    let in_blocks = advice.crops.as_ref().filter(|crops| crops.recommended == CropSource::Block);
    let order = in_blocks
        .map_or_else(|| "shuffle=True".to_owned(), |crops| format!("order=\"block\", block={}", crops.block));
    commands.push(format!(
        "wellread.DataLoader({}, batch_size={batch_size}, {order}, num_workers={workers}{crop}, as_=\"torch\")",
        opening::python(&set, &open, &cache)
    ));
    // The loop of bench has rows in random order.
    if opened_by_bench(&open) && in_blocks.is_none() {
        let mut words = ["bench", "loop", "--input", &set, "--in-place"].map(str::to_owned).to_vec();
        words.extend(opening::words(&open));
        words.extend(["--batch-size", &batch_size, "--loop-workers", &workers].map(str::to_owned));
        if let Some((height, width)) = args.crop {
            words.extend(["--crop".to_owned(), format!("{height}x{width}")]);
        }
        commands.push(joined(words));
    }
    commands
}

/// Whether `bench` has all options that a set was opened with.
fn opened_by_bench(open: &OpenArgs) -> bool {
    let OpenArgs { read_as, level, column, table, skip_null, sites: _, cells: _ } = open;
    read_as.is_none() && *level == 0 && column.is_none() && table.is_none() && !skip_null
}

fn parse_price(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price >= 0.0 => Ok(price),
        _ => Err(format!("{text:?} is no price")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_bench::link::LinkSpeed;

    #[test]
    fn columns_that_a_recommended_format_has_no_place_for_are_told() {
        let told = |format, as_it_is| {
            let chosen = Recommendation {
                format,
                compression: None,
                chunk: None,
                as_it_is,
                workers: 1,
                batch_size: 4,
                cache: wellread_loader::Cache::None,
                reasons: [vec![], vec![], vec![], vec![]],
            };
            left_behind(&chosen, "parquet", vec!["Metadata_Well".to_owned(), "Area".to_owned()])
        };
        let note =
            "tiff has no place for columns beside the images and leaves out 2 columns (Metadata_Well …)";
        assert_eq!(told("tiff", false).as_deref(), Some(note));
        assert_eq!((told("tiff", true), told("parquet", false)), (None, None));
    }

    /// The copy was `advised.parquet` in the current folder, though figures were those of a bucket.
    #[test]
    fn a_copy_of_a_set_in_a_bucket_goes_beside_it_where_requests_are_signed() {
        let link = |credentials: &str| LinkAdvice {
            link: LinkSpeed {
                endpoint: "http://127.0.0.1".into(),
                region: None,
                credentials: credentials.to_owned(),
                in_flight: 50,
                latency_s: 0.02,
                bytes_per_s: 1e8,
                at_once: 32,
            },
            predictions: vec![],
        };
        let signed = link("the environment (AWS_ACCESS_KEY_ID)");
        let target = |source: &str, link: Option<&LinkAdvice>| copy_target(source, link, ".parquet").0;
        for source in ["s3://bucket/plates/one.lance", "s3://bucket/plates/one/"] {
            assert_eq!(target(source, Some(&signed)), "s3://bucket/plates/advised.parquet");
            assert_eq!(target(source, Some(&link("none were found (anonymous)"))), "advised.parquet");
        }
        for source in ["s3://bucket", "https://host/plates/one", "plates/load_data.csv"] {
            assert_eq!(target(source, Some(&signed)), "advised.parquet", "{source}");
        }
        assert_eq!(target("plates/one", None), "advised.parquet");
    }

    #[test]
    fn a_price_is_idle_for_a_set_on_this_machine_alone() {
        assert!(idle_price(Some(0.4), true).is_some_and(|note| note.contains("changes nothing")));
        // A link that could not be measured has a note of its own.
        assert_eq!((idle_price(Some(0.4), false), idle_price(None, true)), (None, None));
    }
}
