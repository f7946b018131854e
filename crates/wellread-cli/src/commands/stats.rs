//! `wellread stats PATH`

use super::on::{self, Answer, On, OnArgs};
use super::result_file::local_path;
use super::trace::TraceArgs;
use super::{OpenArgs, default_jobs, left_out, listed, outside_of, parse_jobs, unreadable};
use crate::output::{Failure, Outcome, Ui};
use std::path::{Path, PathBuf};
use wellread_infer::source::Unreadable;
use wellread_loader::stats::{ChannelStats, Group, GroupStats, PERCENTILES, Stats, seem_shares};
use wellread_store::features::{key_in_words, key_of};
use wellread_store::mixed_channels::MixedChannels;
use wellread_store::words::counted;
use wellread_store::{LeftOutCounts, Missing, Store, masks, mixed_channels};

/// Computes each channel's mean, standard deviation, extremes, percentiles and histogram over all images, in one pass.
#[derive(clap::Args)]
#[command(after_help = "\
Statistics are of the stored values. They are exact for 8- and 16-bit types; a percentile of a wider type is off by at \
most 0.1 % of its value. NaN and infinite values are counted apart, and are part of nothing else.

Examples:
  wellread stats plate.parquet --out stats.json
  wellread stats 'plates/*.parquet' --by Metadata_Plate --out plate-stats.json
  wellread stats screen.parquet --out stats.json --on ray --resume
  wellread stats screen-tiff --out stats.json --on-error skip

A loader normalises with the file: Normalize::from_stats(\"stats.json\") in Rust, normalize=\"stats.json\" in Python. \
With --by it takes the numbers of each image's group. It also scales with the percentiles: \
Scale::from_stats(\"stats.json\", 1.0, 99.0).")]
pub struct Args {
    /// A file or folder of images, a folder of tables, a pattern such as 'plates/*.parquet', or an address such as s3://bucket/plate.
    path: PathBuf,
    #[command(flatten)]
    open: OpenArgs,
    /// Compute statistics for each group of images with equal values in these columns, such as Metadata_Plate.
    #[arg(long, value_name = "COLUMN[,COLUMN…]", value_delimiter = ',')]
    by: Vec<String>,
    /// Percentiles to compute.
    #[arg(long, value_delimiter = ',', default_value = listed(&PERCENTILES), value_parser = parse_percentile)]
    percentiles: Vec<f64>,
    /// JSON file for all results, histograms included.
    #[arg(long, visible_alias = "output", value_name = "FILE", value_parser = local_path())]
    out: Option<PathBuf>,
    /// Threads, one at least; by default one for each processor.
    #[arg(long, default_value_t = default_jobs(), value_parser = parse_jobs)]
    jobs: usize,
    /// Images that cannot be read: raise fails at the first, skip leaves them out and lists them. Each image is read twice
    /// with skip.
    #[arg(long, default_value = "raise", value_parser = ["raise", "skip"])]
    on_error: String,
    #[command(flatten)]
    on: OnArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
}

fn parse_percentile(text: &str) -> Result<f64, String> {
    let percent = text.trim().parse().ok().filter(|p| (0.0..=100.0).contains(p));
    percent.ok_or_else(|| format!("{text:?} is no percentile from 0 to 100"))
}

/// Whether `out` may be written: it is not there, or is an earlier file of statistics.
fn check_out(out: &Path) -> Outcome {
    let Ok(there) = std::fs::symlink_metadata(out) else { return Ok(()) };
    if there.is_file() && Stats::is_file(out) {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "{}: already exists and is no file of statistics (hint: choose another --out)",
        out.display()
    )))
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let mut store = args.open.open(&args.path, ui)?;
    masks::none_beside_images(&*store)
        .map_err(|error| error.hint("statistics need images of one kind: give the folder of one kind"))?;
    if let Some(note) = seem_shares(&args.percentiles) {
        ui.warn(format!("note: {note}"));
    }
    if let Some(out) = &args.out {
        outside_of(&args.path, "--out", out)?;
        check_out(out)?;
    }
    let zeros = zeros_in_words(&*store, args.open.sites.missing);
    if let Some(on) = args.on.cluster() {
        return run_on(args, &on, &*store, ui).inspect(|()| say_zeros(zeros.as_deref(), ui));
    }
    let mut skipped = None;
    if args.on_error == "skip" {
        let (images, others) = unreadable::without(store, (&args.open, &args.path), args.jobs, None, ui)?;
        store = images;
        skipped = Some(others);
    }
    let bar = ui.progress(store.len() as u64, "reading");
    let done = || bar.inc(1);
    if args.by.is_empty() {
        let found = Stats::of(&*store, &args.percentiles, args.jobs, &done);
        bar.finish_and_clear();
        let stats = found?;
        say_zeros(zeros.as_deref(), ui);
        say_mixed(&*store, [&stats], ui);
        write(args.out.as_deref(), &stats)?;
        if ui.json {
            return document(&text(&stats)?, skipped.as_deref(), &*store, ui);
        }
        say(&stats, store.hints().thing(), ui);
    } else {
        let found = GroupStats::of(&*store, &args.by, &args.percentiles, args.jobs, &done);
        bar.finish_and_clear();
        let groups = found?;
        say_zeros(zeros.as_deref(), ui);
        say_mixed(&*store, groups.groups.iter().map(|group| &group.stats), ui);
        write(args.out.as_deref(), &groups)?;
        if ui.json {
            return document(&text(&groups)?, skipped.as_deref(), &*store, ui);
        }
        say_groups(&groups, store.hints().thing(), ui);
    }
    if let Some(out) = &args.out {
        ui.say(format!("written to {}", out.display()));
    }
    Ok(())
}

/// In a sentence, how many images count with zeros for files that are not there. `None` where all are there, or where such images are
/// an error or left out.
fn zeros_in_words(store: &dyn Store, missing: Missing) -> Option<String> {
    if missing != Missing::Zero {
        // An image without one of its files is then no row, or one that cannot be read (--on-error skip).
        return None;
    }
    let zeros = store.hints().sites?.summary().incomplete;
    let [lack, their] = if zeros == 1 { ["lacks", "its"] } else { ["lack", "their"] };
    let of = counted(store.len(), "image");
    (zeros > 0).then(|| {
        format!(
            "{zeros} of {of} {lack} files, and zeros for {their} channels are part of the means and deviations (--missing skip leaves them out)"
        )
    })
}

/// Says what [`zeros_in_words`] found.
fn say_zeros(sentence: Option<&str>, ui: Ui) {
    if let Some(sentence) = sentence {
        ui.warn(sentence);
    }
}

/// Says how channels were counted where images have them in another order than the first, or others, with two such images.
fn say_mixed<'s>(store: &dyn Store, all: impl IntoIterator<Item = &'s Stats>, ui: Ui) {
    let (mut reordered, mut other_names) = (0, 0);
    for stats in all {
        reordered += stats.reordered;
        other_names += stats.other_names;
    }
    if reordered == 0 && other_names == 0 {
        return;
    }
    let two = mixed_channels::find(store, None, None, usize::MAX);
    let two = two.map_or_else(String::new, |MixedChannels { two: [(one, own), (other, there)] }| {
        format!(" ({own:?} in {one}, and {there:?} in {other})")
    });
    if reordered > 0 {
        let images = counted(reordered as usize, store.hints().thing());
        ui.warn(format!("{images} had the channels in another order: channels were taken by name{two}"));
    }
    if other_names > 0 {
        ui.warn(format!(
            "the channels of {} are not called as those of the first: channels were taken by number, and a channel may mix stains{two}",
            counted(other_names as usize, store.hints().thing())
        ));
    }
}

/// Has the nodes of a cluster compute them. The answer is text, which is written and printed as it is.
fn run_on(args: &Args, on: &On, store: &dyn Store, ui: Ui) -> Outcome {
    let mut more = serde_json::Map::new();
    let by = if args.by.is_empty() { None } else { Some(args.by.clone()) };
    more.insert("by".to_owned(), by.into());
    more.insert("percentiles".to_owned(), args.percentiles.clone().into());
    more.insert("on_error".to_owned(), args.on_error.clone().into());
    let Answer { result, cluster } = on.ask("stats", (&args.open, &args.path), more, "reading", ui)?;
    let skipped = unreadable::listed(store, on::failed_rows(&result["skipped"], &args.path)?);
    left_out::warn(&skipped, ui);
    let text = result["text"].as_str().unwrap_or_default();
    let damaged = |e: serde_json::Error| Failure::Failed(format!("--on ray: the answer is damaged: {e}"));
    if let Some(out) = &args.out {
        wellread_store::staged::write(out, format!("{text}\n"))?;
    }
    document(text, Some(skipped.as_slice()).filter(|_| args.on_error == "skip"), store, ui)?;
    if args.by.is_empty() {
        let stats: Stats = serde_json::from_str(text).map_err(damaged)?;
        say_mixed(store, [&stats], ui);
        if !ui.json {
            say(&stats, store.hints().thing(), ui);
        }
    } else {
        let groups: GroupStats = serde_json::from_str(text).map_err(damaged)?;
        say_mixed(store, groups.groups.iter().map(|group| &group.stats), ui);
        if !ui.json {
            say_groups(&groups, store.hints().thing(), ui);
        }
    }
    if !ui.json
        && let Some(out) = &args.out
    {
        ui.say(format!("written to {}", out.display()));
    }
    on::say(&cluster, ui);
    Ok(())
}

/// Statistics of each group, for people.
fn say_groups(groups: &GroupStats, thing: &str, ui: Ui) {
    for Group { key, stats } in &groups.groups {
        ui.say(format!("{}: {}", groups.by.join(", "), key_in_words(&key_of(key))));
        say(stats, thing, ui);
    }
}

/// Writes statistics where that is asked for.
fn write(out: Option<&Path>, stats: &impl serde::Serialize) -> Outcome {
    let Some(out) = out else { return Ok(()) };
    Ok(wellread_store::staged::write(out, text(stats)? + "\n")?)
}

/// Values as the text of a document.
fn text(of: &(impl serde::Serialize + ?Sized)) -> Outcome<String> {
    serde_json::to_string_pretty(of)
        .map_err(|e| Failure::Failed(format!("cannot write the statistics as JSON: {e}")))
}

/// Prints statistics, which are text already: to read them again could round them. The document also has `skipped`, the images that could
/// not be read, where these may be left out. It has the counts of what opening the set left out, if there was anything.
fn document(stats: &str, skipped: Option<&[Unreadable]>, store: &dyn Store, ui: Ui) -> Outcome {
    let counts = store.hints().left_out;
    let mut beside = serde_json::json!({});
    if counts != LeftOutCounts::default() {
        beside = left_out::with_counts(beside, counts);
    }
    if let Some(skipped) = skipped {
        beside["skipped"] = serde_json::json!(skipped);
    }
    let beside = text(&beside)?;
    // Without fields the text is `{}`.
    let whole = match (stats.strip_suffix("\n}"), beside.strip_prefix("{\n")) {
        (Some(fields), Some(more)) => format!("{fields},\n{more}"),
        _ => stats.to_owned(),
    };
    ui.document_text(&whole);
    Ok(())
}

/// Statistics of some images, for people; `thing` is one of them in a word.
fn say(stats: &Stats, thing: &str, ui: Ui) {
    ui.say(format!("{} of {}", counted(stats.images as usize, thing), stats.dtype));
    stats.channels.iter().for_each(|channel| ui.say(describe(channel)));
    if stats.percentile_error > 0.0 {
        ui.hint(format!(
            "percentiles are off by at most {:.1} % of their value",
            stats.percentile_error * 100.0
        ));
    }
}

/// One channel in a few lines.
fn describe(channel: &ChannelStats) -> String {
    let name = channel.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let mut text = format!("channel {}{name}: {}", channel.channel, counted(channel.count as usize, "value"));
    for (count, what) in [(channel.nan, "NaN"), (channel.infinite, "infinite")] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    if let (Some(mean), Some(std), Some(min), Some(max)) =
        (channel.mean, channel.std, channel.min, channel.max)
    {
        text += &format!(
            "\n  mean {}  std {}  min {}  max {}",
            number(mean),
            number(std),
            number(min),
            number(max)
        );
        let each = channel.percentiles.iter().map(|p| format!("p{} {}", p.percent, number(p.value)));
        text += &format!("\n  {}", each.collect::<Vec<_>>().join("  "));
    }
    text
}

/// Six significant digits; very small and very large numbers with an exponent.
fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    if !(1e-4..1e15).contains(&value.abs()) {
        let text = format!("{value:.5e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    let digits = (5 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn small_and_large_numbers_are_told_apart_from_zero() {
        let said =
            [0.0, 7.0, 0.25, 123.456_789, 0.001_234_567, 1e-40, -2.5e-50, 3e38, 1.234_567_8e300].map(number);
        assert_eq!(
            said,
            ["0", "7", "0.25", "123.457", "0.00123457", "1e-40", "-2.5e-50", "3e38", "1.23457e300"]
        );
    }
}
