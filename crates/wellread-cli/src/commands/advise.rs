//! `wellread advise PATH`

use super::command_line::joined;
use super::diagnosis::{link_lines, parse_step, percent, with_interval};
use super::result_file::local_folder;
use super::trace::TraceArgs;
use super::{OpenArgs, distinct, opening, outside_of, parse_positive, parse_seconds, parse_size};
use crate::output::{Failure, Outcome, Ui, shown_on};
use crate::text_table::plain_table;
use std::path::PathBuf;
use std::time::Duration;
use wellread_bench::advise::choose::{is_never, no_wait};
use wellread_bench::advise::{
    Advice, CandidateResult, CropAdvice, CropSource, LinkAdvice, SettingResult, Settings, candidates, study,
};
use wellread_bench::data::no_masks;
use wellread_bench::model_loop::utilisation_mark;
use wellread_bench::stages::Figure;
use wellread_store::words::counted;

/// A short study of your own images: what to keep them in and how to load them, and what a model will wait for data.
#[derive(clap::Args)]
#[command(after_help = "\
Takes a sample of the set and writes it in every format, codec and chunk size into a scratch folder. Measures all of \
them in turns, then workers, batch sizes and caches. Predicts how long a step waits for data. With --cells it compares \
crops that the loader cuts out with stored ones. Changes nothing in the set, but drops its files from the page cache, to \
measure cold ones. Removes the scratch folder at the end, also on Ctrl-C.

Examples:
  wellread advise plate.parquet
  wellread advise plate.parquet --step-ms 40 --batch-size 32
  wellread advise plate-tiff --cells cells.csv --cells-size 64x64
  wellread advise s3://bucket/plate.parquet --price-per-1000-requests 0.0004
  wellread advise tiff-folder --formats tiff,ome-zarr --time-budget 40 --json")]
pub struct Args {
    /// A file or folder of images.
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
    /// Take the centre of every image, of this size.
    #[arg(long, value_name = "HxW", value_parser = parse_size)]
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
    // What is wrong with the path is said as everywhere.
    no_masks(&*args.open.open(&args.path, ui)?)?;
    let bar = ui.progress(0, "reading a sample");
    let advice = study(|| args.open.open_images_again(&args.path), &settings, &shown_on(&bar))
        .map_err(|e| Failure::Failed(format!("{e:#}")))?;
    bar.finish_and_clear();
    let commands = commands(&advice, args);
    if ui.json {
        let mut document = serde_json::to_value(&advice).map_err(|e| Failure::Failed(e.to_string()))?;
        document["path"] = args.path.display().to_string().into();
        document["commands"] = commands.into();
        return ui.document(&document);
    }
    print(&advice, args, &commands, ui);
    Ok(())
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
        let target = format!("advised{ending}");
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

fn rate(figure: &Figure) -> String {
    with_interval(figure, |v| format!("{v:.0}"))
}

/// A figure without decimals, or a dash where it was not measured.
fn rounded(figure: Option<Figure>) -> String {
    let measured = figure.map(|figure| figure.value).filter(|value| value.is_finite());
    measured.map_or("–".to_owned(), |value| format!("{value:.0}"))
}

fn two_digits(v: f64) -> String {
    format!("{v:.2}")
}

fn print(advice: &Advice, args: &Args, commands: &[String], ui: Ui) {
    let sample = &advice.sample;
    let [t, c, z, y, x] = sample.shape_tczyx;
    ui.say(format!(
        "{}: {} of {} ({t}x{c}x{z}x{y}x{x} TCZYX, {}) studied in {:.0} s\n",
        args.path.display(),
        sample.rows.len(),
        counted(sample.of, "image"),
        sample.dtype,
        advice.seconds
    ));
    let mut order: Vec<&CandidateResult> = advice.tried.iter().collect();
    order.sort_by(|a, b| b.images_per_s.value.total_cmp(&a.images_per_s.value));
    let rows: Vec<Vec<String>> = order
        .into_iter()
        .map(|tried| {
            let write = tried.candidate.write_s.map(|s| 1e3 * s / tried.candidate.images.max(1) as f64);
            vec![
                tried.name.clone(),
                rate(&tried.images_per_s),
                versus(tried),
                format!("{:.1}", tried.bytes_of_set / 1e6),
                write.map_or("–".to_owned(), |ms| format!("{ms:.2}")),
                percent(tried.share_of_copy),
                rounded(Some(tried.single_us)),
                rounded(tried.cold_images_per_s),
            ]
        })
        .collect();
    let heads = [
        "kept as",
        "images/s in batches",
        "versus the fastest",
        "MB of set",
        "write ms/image",
        "of memory copy",
        "single µs",
        "cold images/s",
    ];
    ui.say(plain_table(&heads, &rows, ui.table_width()).trim_end());
    let settings = |what: &str, unit: &str, tried: &[SettingResult]| {
        if !tried.is_empty() {
            let each = tried.iter().map(|t| {
                // Of a step that waits however long it is.
                if is_never(t.time.value) {
                    return format!("{}: none", t.value);
                }
                let show = |v: f64| if is_never(v) { "none".to_owned() } else { two_digits(v) };
                format!("{}: {} {unit}", t.value, with_interval(&t.time, show))
            });
            ui.say(format!("  {what}: {}", each.collect::<Vec<_>>().join("; ")));
        }
    };
    ui.say("");
    let of_workers = if args.step_ms.is_some() {
        "workers, ms of a step with its wait"
    } else {
        "workers, shortest step without wait when they were compared"
    };
    settings(of_workers, "ms", &advice.workers);
    settings("batch size, time of an image", "µs", &advice.batch_sizes);
    settings("cache, time of an image in later epochs", "µs", &advice.caches);

    if let Some(crops) = &advice.crops {
        print_crops(crops, ui);
    }
    let chosen = &advice.recommendation;
    ui.say("\nRecommended");
    for (what, reasons) in ["format", "workers", "batch size", "cache"].iter().zip(&chosen.reasons) {
        for (number, reason) in reasons.iter().enumerate() {
            ui.say(format!("  {:<11}{reason}", if number == 0 { what } else { "" }));
        }
    }
    ui.say("\nData wait of a step, predicted for that");
    for p in &advice.predictions {
        let checked = p.checked.as_ref().map_or(String::new(), |checked| {
            format!(
                "; a real loop: {} waiting, its whole step, wait included, predicted over measured: {}, {}",
                with_interval(&checked.data_wait_fraction, percent),
                with_interval(&checked.ratio, two_digits),
                agreement(checked.agrees)
            )
        });
        // A mark is reached by what is known well enough to have an interval.
        let mark = p.utilisation.low.map_or(String::new(), |low| format!(" ({})", utilisation_mark(low)));
        ui.say(format!(
            "  step of {:>6} ms: {} waiting, utilisation {}{mark}{checked}",
            p.step_ms,
            with_interval(&p.data_wait_fraction, percent),
            percent(p.utilisation.value),
        ));
    }
    let enough = &advice.no_wait_from_ms;
    if enough.value.is_finite() {
        ui.say(format!("  {}, with everything that is recommended", no_wait(enough)));
    }
    if let Some(first) = &advice.first_epoch_images_per_s {
        ui.say(format!("  first epoch, from cold files: {} images/s at most", rate(first)));
    }
    if let Some(there) = &advice.link {
        print_link(there, ui);
    }
    ui.say("\nDo");
    for command in commands {
        ui.say(format!("  {command}"));
    }
    for note in &advice.notes {
        ui.say(format!("note: {note}"));
    }
}

fn parse_price(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price >= 0.0 => Ok(price),
        _ => Err(format!("{text:?} is no price")),
    }
}

/// Prints the result of each way of bringing crops of cells into batches.
fn print_crops(crops: &CropAdvice, ui: Ui) {
    let rows: Vec<Vec<String>> = crops
        .tried
        .iter()
        .map(|one| {
            vec![
                one.name.clone(),
                rate(&one.cells_per_s),
                one.versus_fastest.as_ref().map_or_else(|| one.verdict.to_string(), times_the_time),
                one.bytes_read_per_used.map_or("–".to_owned(), two_digits),
                format!("{:.1}", one.bytes_on_disk / 1e6),
            ]
        })
        .collect();
    let heads = [
        "crops of cells",
        "cells/s in batches",
        "versus the fastest",
        "bytes read of used",
        "MB more on disk",
    ];
    ui.say(format!("\n{}", plain_table(&heads, &rows, ui.table_width()).trim_end()));
}

/// Prints the result of each way of keeping the set, in the place where the set is.
fn print_link(there: &LinkAdvice, ui: Ui) {
    ui.say("\nOver the link, in random order, predicted");
    for line in link_lines(&there.link) {
        ui.say(format!("  {line}"));
    }
    let rows: Vec<Vec<String>> = there
        .predictions
        .iter()
        .map(|one| {
            vec![
                one.name.clone(),
                format!("{:.0}", one.images_per_s),
                format!("{:.0}", one.requests_per_epoch),
                format!("{:.3}", one.bytes_per_epoch / 1e9),
                one.bound_by.to_owned(),
                one.cost_per_epoch.map_or("–".to_owned(), |cost| format!("{cost:.4}")),
            ]
        })
        .collect();
    let heads = ["kept there as", "images/s", "requests/epoch", "GB/epoch", "bound by", "cost of an epoch"];
    ui.say(plain_table(&heads, &rows, ui.table_width()).trim_end());
}

/// Whether a prediction was right, in words: what is compared is the time of a step, of which the wait may be a small part.
fn agreement(agrees: Option<bool>) -> &'static str {
    match agrees {
        Some(true) => "so the times of a step agree within 20 %",
        Some(false) => {
            "so the times of a step DIFFER by more than 20 %: a noisy machine, or no steady loader"
        }
        None => "and the rounds are too few to say whether that is more than chance",
    }
}

/// A ratio to the time of the fastest, in words.
fn times_the_time(ratio: &Figure) -> String {
    format!("{} times the time", with_interval(ratio, two_digits))
}

/// How one candidate compares, in words.
fn versus(tried: &CandidateResult) -> String {
    use wellread_measure::Verdict;
    if !tried.finalist {
        return "screened only".to_owned();
    }
    let ratio = tried.versus_fastest.filter(|_| tried.verdict != Verdict::TooFewData);
    match (tried.verdict, ratio) {
        (Verdict::Slower | Verdict::Faster, Some(ratio)) => times_the_time(&ratio),
        (verdict, _) => verdict.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_was_not_measured_is_a_dash() {
        let of = |value| rounded(Some(Figure { value, low: None, high: None }));
        assert_eq!([of(12.4), of(f64::NAN), rounded(None)], ["12", "–", "–"]);
    }

    #[test]
    fn what_agrees_is_the_time_of_a_step() {
        assert_eq!(agreement(Some(true)), "so the times of a step agree within 20 %");
        assert!(agreement(Some(false)).starts_with("so the times of a step DIFFER by more than 20 %"));
        assert!(agreement(None).contains("too few"));
    }
}
