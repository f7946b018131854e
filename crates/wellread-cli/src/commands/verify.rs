//! `wellread verify PATH [--against EXPECTED.json|OTHER_PATH]`

mod sets;

use super::on::{self, OnArgs};
use super::without_checksums::UNSEEN;
use super::{OpenArgs, default_jobs, is_same_file, left_out, parse_jobs};
use crate::output::{Failure, Outcome, Ui, bytes};
use sets::Opened;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use wellread_measure::path_text::text;
use wellread_measure::to_stderr;
use wellread_store::Error;
use wellread_store::checksum::{all, has_unique_names};
use wellread_store::verify::{
    Expected, Kind, Verification, expected_of, is_listed_by_file_name, verify_columns, verify_sums,
};
use wellread_store::words::counted;

/// Reads every pixel; exit code 1 when something is corrupt or differs.
#[derive(clap::Args)]
#[command(after_help = "\
Reads every pixel, and the columns beside the images; exit code 1 when something cannot be read or differs. Files without checksums may be damaged and \
still be readable: JPEG, Lance, Vortex, parquet-duckdb, files of other programs or of --no-checksums. Compare these \
with expected checksums or with their source (--against). Images must then agree in order, name, shape, pixel type and \
pixels; columns are read, and not compared. The result tells three cases apart: images in another row, under another name, with \
other pixels. Options of opening, such as --pattern and --cells, hold for both sets if both take them. Otherwise they \
hold for the other set, from which the first was made.

Examples:
  wellread verify plate.parquet
  wellread verify plate.zarr --against plate.parquet
  wellread verify plate.parquet --against expected.json
  wellread verify cells.parquet --against images --cells cells.csv \\
      --cells-size 64x64
  wellread verify renamed-files --against plate.parquet --ignore names,order
  wellread verify screen.parquet --against screen-tiff --on ray --resume")]
pub struct Args {
    /// A file or folder of images, a folder of tables, a pattern such as 'plates/*.parquet', or an address such as s3://bucket/plate.
    path: PathBuf,
    /// Expected checksums (JSON) or another set of the same images in any format.
    #[arg(long, value_name = "EXPECTED.json|PATH")]
    against: Option<PathBuf>,
    /// Differences to accept: the order of the images, their names, or both.
    #[arg(
        long,
        value_name = "order,names",
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true,
        requires = "against"
    )]
    ignore: Vec<Ignored>,
    /// Most problems to print.
    #[arg(long, default_value_t = 10)]
    show: usize,
    #[command(flatten)]
    open: OpenArgs,
    /// Threads, one at least; by default one for each processor.
    #[arg(long, default_value_t = default_jobs(), value_parser = parse_jobs)]
    jobs: usize,
    #[command(flatten)]
    on: OnArgs,
}

/// The values of [`Args::ignore`].
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Ignored {
    /// Images may be in other rows.
    Order,
    /// Images may have other names.
    Names,
}

/// Refuses a set beside itself, opened in one way: it agrees, whatever it is.
fn refuse_same(args: &Args) -> Outcome {
    let open = &args.open;
    // These are of the first set alone: it is read in another way, or other images of it are.
    let is_one_way =
        open.read_as.is_none() && open.table.is_none() && open.column.is_none() && open.level == 0;
    match &args.against {
        Some(other) if is_one_way && (*other == args.path || is_same_file(other, &args.path)) => {
            Err(Failure::Usage(format!(
                "{} is on both sides, and a set does not differ from itself; name another set of the images, or leave --against out",
                other.display()
            )))
        }
        _ => Ok(()),
    }
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    refuse_same(args)?;
    let with_hint = |failure| with_level_hint(args, failure);
    let (first, other) = match args.against.as_deref().filter(|path| !is_list(path)) {
        None => (sets::opened(args.open.clone(), &args.path, ui)?, None),
        Some(list) if is_printed_list(list) => {
            let cause = "is what `wellread checksum` prints for people, and no list to compare with";
            let hint =
                "compare with what `wellread checksum --json` prints, in a file whose name ends in .json";
            return Err(Error::new(list, cause).hint(hint).choice().into());
        }
        Some(other) => {
            let [first, other] = sets::open_both(&args.open, &args.path, other, ui).map_err(with_hint)?;
            (first, Some(other))
        }
    };
    let store = &first.set;
    let listed = match (&args.against, &other) {
        (Some(path), None) => Some(wellread_store::checksum::read_expected(path)?),
        _ => None,
    };
    // Both sets are one job of the cluster, the other one first.
    let mut on_cluster = if let Some(on) = args.on.cluster() {
        let of_other =
            args.against.as_deref().zip(other.as_ref()).map(|(path, other)| (&other.options, path));
        let sets: Vec<_> = of_other.into_iter().chain([(&first.options, args.path.as_path())]).collect();
        let found = on.sums(&sets, "skip", "reading", ui)?;
        on::say(&found.cluster, ui);
        Some(found.sets.into_iter())
    } else {
        None
    };
    let expected = match &other {
        None => listed,
        Some(Opened { set, .. }) => Some(if let Some(sums) = &mut on_cluster {
            sums.next().unwrap_or_default().into_iter().collect::<Result<Vec<_>, _>>()?
        } else {
            let bar = ui.progress(set.len() as u64, "reading the other set");
            let sums = expected_of(&**set, args.jobs, &|| bar.inc(1))?;
            bar.finish_and_clear();
            sums
        }),
    };
    // A list of checksums tells what is in a folder of other tools, not how its files are sorted.
    let by_file_name = is_listed_by_file_name(&**store);
    let expected = expected.as_deref().map(|images| Expected {
        store: other.as_ref().map(|other| &*other.set),
        any_order: args.ignore.contains(&Ignored::Order)
            || other.is_none() && by_file_name && has_unique_names(images),
        any_names: args.ignore.contains(&Ignored::Names),
        ..Expected::new(images)
    });
    let sums = if let Some(sums) = &mut on_cluster {
        sums.next().unwrap_or_default()
    } else {
        let bar = ui.progress(store.len() as u64, "reading");
        let sums = all(&**store, args.jobs, &|| bar.inc(1));
        bar.finish_and_clear();
        sums
    };
    let mut outcome = verify_sums(&**store, sums, expected);
    verify_columns(&**store, &mut outcome);
    // Crops that are stored are images of their set.
    outcome.are_crops |= sets::are_cells(&**store);
    let differences: BTreeMap<Kind, usize> = outcome.counts().collect();
    let document = serde_json::json!({
        "path": text(&args.path), "passed": outcome.passed(), "images": outcome.images, "expected": outcome.expected,
        "columns": outcome.columns,
        "bytes_of_pixels": outcome.bytes_of_pixels, "problems": outcome.problems,
        "differences": differences, "summary": outcome.summary(), "has_checksums": store.has_checksums(),
    });
    ui.document(&left_out::with_counts(document, store.hints().left_out))?;
    if outcome.passed() {
        if !ui.json {
            say_passed(args, &outcome, store.has_checksums(), ui);
        }
        return Ok(());
    }
    print_problems(args, &outcome);
    if by_file_name && outcome.count(Kind::Order) > 0 {
        to_stderr(
            "hint: images of this folder stand in the order of their file names; --ignore order compares the rest",
        );
    }
    Err(Failure::Reported)
}

/// Says what was read without a problem, and what that leaves unseen.
fn say_passed(args: &Args, outcome: &Verification, has_checksums: bool, ui: Ui) {
    let columns = match outcome.columns {
        0 => String::new(),
        count => format!(" and {}", counted(count, "column")),
    };
    let agreed = if args.against.is_some() { ", and all agree" } else { "" };
    let unseen = if args.against.is_none() && !has_checksums {
        format!(". The set {UNSEEN}: --against compares with the source or expected checksums")
    } else {
        String::new()
    };
    ui.say(format!(
        "{} ({}){columns} read without error{agreed}{unseen}",
        outcome.images_in_words(),
        bytes(outcome.bytes_of_pixels)
    ));
}

/// Prints the first problems, and how many there are of each kind.
fn print_problems(args: &Args, outcome: &Verification) {
    for problem in outcome.problems.iter().take(args.show) {
        let row = problem.row.map_or(String::new(), |r| format!("row {r}: "));
        let expected = problem.expected_row.filter(|_| problem.row.is_none());
        let row = expected.map_or(row, |r| format!("expected row {r}: "));
        // The file of a row may be called as its image, and is part of the problem then.
        let name = problem.name.as_deref().filter(|n| !problem.problem.starts_with(&format!("{n}: ")));
        let name = name.map_or(String::new(), |n| format!("{}: ", n.escape_debug()));
        to_stderr(format!("error: {}: {row}{name}{}", args.path.display(), problem.problem));
    }
    if outcome.problems.len() > args.show {
        to_stderr(format!("… and {} more (raise --show)", outcome.problems.len() - args.show));
    }
    let others = outcome.expected.filter(|expected| *expected != outcome.images);
    to_stderr(format!(
        "{} in {}{}",
        counted(outcome.problems.len(), "problem"),
        outcome.images_in_words(),
        others.map_or(String::new(), |expected| format!(" ({expected} expected)"))
    ));
    outcome.summary().iter().for_each(to_stderr);
}

/// Whether what is compared with is a list of checksums.
fn is_list(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) && path.is_file()
}

/// Digits of a SHA-256.
const DIGITS: usize = 64;

/// Whether a file begins as the text of `checksum` does: with a digest and blanks.
fn is_printed_list(path: &Path) -> bool {
    let mut head = [0u8; DIGITS + 2];
    if !path.is_file() {
        return false;
    }
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    let (digest, blanks) = head.split_at(DIGITS);
    read.is_ok() && digest.iter().all(u8::is_ascii_hexdigit) && blanks == b"  "
}

/// Why the first set cannot be opened; where it has no levels, the other one may.
fn with_level_hint(args: &Args, failure: Failure) -> Failure {
    match (failure, &args.against) {
        (Failure::Usage(text), Some(other))
            if args.open.level > 0 && text.contains("multiscale levels") && !is_list(other) =>
        {
            let cause = text.split(" (hint: ").next().unwrap_or(&text);
            Failure::Usage(format!(
                "{cause} (hint: --level is of the first set; put the set with levels first)"
            ))
        }
        (failure, _) => failure,
    }
}
