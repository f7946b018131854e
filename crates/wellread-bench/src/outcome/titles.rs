//! The title of a report: the question of the run, and the reason where there is no answer.
//!
//! ```text
//!  loader or dataset: rounds, noise ─▶ too short or too noisy to say
//!  model loop: waiting ─▶ limit ─▶ too short or too noisy to say what binds
//! ```

use crate::benchmarks::BENCHMARKS;
use crate::core::Benchmark;
use crate::core::measurement::formats_without_time;
use crate::findings::{Judge, Repeats, own_rows};
use crate::model_loop::waiting::{self, Bottleneck};
use crate::{dataloader, dataset, model_loop};
use std::collections::{BTreeMap, HashSet};
use wellread_measure::compare::MIN_SAMPLES;
use wellread_report::{TOO_NOISY, Table};

/// The question of a run of several formats.
const QUESTION: &str = "Which format feeds the model fastest?";

/// The question of a run with these tables: of several formats that were measured, which one.
fn question(tables: &[Table]) -> String {
    let measured = |table: &Table| -> Vec<String> {
        let rows = (0..table.rows()).filter(|&row| table.str("status", row) == Some("ok"));
        rows.filter_map(|row| table.str("format", row).map(str::to_owned)).collect()
    };
    let formats: HashSet<String> = tables.iter().flat_map(measured).collect();
    match formats.iter().next() {
        Some(only) if formats.len() == 1 => match &formats_without_time(tables)[..] {
            [] => format!("How fast does {only} feed the model?"),
            late => format!("{QUESTION} There was time for {only} alone, not for {}.", late.join(", ")),
        },
        _ => QUESTION.to_owned(),
    }
}

/// The question of a run, or the reason why there is no answer. There is none where the benchmark of the report's first
/// chart was measured too few times, or lies too far from itself. Where that benchmark answers and the model loop does not, the
/// title says so. `repeats` are what `rounds` counts, and `seed` is that of the findings.
pub fn title(
    tables: &[Table],
    rounds: &[(&str, usize)],
    noise: &BTreeMap<String, f64>,
    seed: u64,
    repeats: Repeats,
) -> String {
    let no_limit = || no_limit(tables, noise, seed, repeats).map(str::to_owned);
    let question = question(tables);
    match no_answer(BENCHMARKS, rounds, noise, repeats).or_else(no_limit) {
        Some(doubt) => format!("{question} {doubt}"),
        None => question,
    }
}

/// Why there is no answer, where these are all benchmarks. Those of the loader and of the dataset go before the rest, which keep
/// their order.
fn no_answer(
    all: &[&Benchmark],
    rounds: &[(&str, usize)],
    noise: &BTreeMap<String, f64>,
    repeats: Repeats,
) -> Option<String> {
    let loading = [&dataloader::BENCHMARK, &dataset::BENCHMARK];
    let measured = |name: &str| rounds.iter().find(|(known, rounds)| *known == name && *rounds > 0);
    let &(name, rounds) = loading.iter().chain(all).find_map(|benchmark| measured(benchmark.name))?;
    if rounds < MIN_SAMPLES {
        return Some(format!("Too short to say: {}", repeats.too_few(rounds)));
    }
    noise.get(name).filter(|floor| **floor > TOO_NOISY).map(|_| "Too noisy to say".to_owned())
}

/// Why the answer names no limit, where the model loop was measured and does not tell.
fn no_limit(
    tables: &[Table],
    noise: &BTreeMap<String, f64>,
    seed: u64,
    repeats: Repeats,
) -> Option<&'static str> {
    let steps = tables.iter().find(|table| table.name() == model_loop::BENCHMARK.name)?;
    let judge = Judge::new(seed, noise.get(steps.name()).copied()).over(repeats);
    match waiting::limit(&own_rows(steps), &judge)? {
        Bottleneck::Unclear { is_noise: true, .. } => Some("Too noisy to say what binds"),
        Bottleneck::Unclear { is_noise: false, .. } => Some("Too short to say what binds"),
        Bottleneck::Model | Bottleneck::Both | Bottleneck::Loading => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{loop_table, two_formats};
    use crate::storage;
    use wellread_report::row;

    #[test]
    fn a_title_says_that_a_run_was_too_short_or_too_noisy_to_conclude() {
        let noise = |floor: f64| BTreeMap::from([("dataloader".to_owned(), floor)]);
        let title = |rounds: &[(&str, usize)], noise: &BTreeMap<String, f64>| {
            title(&[], rounds, noise, 1, Repeats::rounds(7))
        };
        let short = title(&[("storage", 7), ("dataloader", 3)], &noise(0.5));
        assert_eq!(short, format!("{QUESTION} Too short to say: 3 rounds are too few for a verdict"));
        // In the words of the findings beside it.
        let one = title(&[("dataloader", 1)], &noise(0.1));
        assert_eq!(one, format!("{QUESTION} Too short to say: one round is too few for a verdict"));
        assert_eq!(title(&[("dataloader", 7)], &noise(0.5)), format!("{QUESTION} Too noisy to say"));
        assert_eq!(title(&[("storage", 2), ("dataloader", 7)], &noise(0.1)), QUESTION);
        // The noise of another benchmark does not matter for this one.
        assert_eq!(title(&[("storage", 7), ("dataloader", 0)], &noise(0.5)), QUESTION);
        assert_eq!(title(&[], &BTreeMap::new()), QUESTION);
    }

    #[test]
    fn a_title_asks_which_format_where_several_were_measured() {
        let of = |rows: &[(&str, &str)]| {
            let mut table = Table::new("dataset");
            for (format, status) in rows {
                table.push(row![("format", *format), ("status", *status)]);
            }
            title(&[table], &[("dataset", 7)], &BTreeMap::new(), 1, Repeats::rounds(7))
        };
        let alone = "How fast does tiff feed the model?";
        assert_eq!(of(&[("tiff", "ok"), ("tiff", "ok")]), alone);
        assert_eq!(of(&[("parquet", "unavailable"), ("tiff", "ok")]), alone);
        assert_eq!(of(&[("parquet", "ok"), ("tiff", "ok")]), QUESTION);
        assert_eq!(of(&[("tiff", "failed")]), QUESTION);
    }

    #[test]
    fn a_title_judges_a_benchmark_that_is_new_in_the_list() {
        let storage = &storage::BENCHMARK;
        let new = Benchmark {
            name: "new",
            about: storage.about,
            run: storage.run,
            transforms: storage.transforms,
            headline: storage.headline,
            findings: storage.findings,
        };
        let doubt = |rounds: &[(&str, usize)], noise: f64| {
            let noise = BTreeMap::from([("new".to_owned(), noise)]);
            no_answer(&[storage, &new], rounds, &noise, Repeats::processes(3))
        };
        let few = "Too short to say: 3 processes are too few for a verdict";
        assert_eq!(doubt(&[("new", 3)], 0.0).as_deref(), Some(few));
        assert_eq!(doubt(&[("new", 7)], 0.5).as_deref(), Some("Too noisy to say"));
        // The benchmarks before it in the list come first.
        assert_eq!(doubt(&[("new", 3), ("storage", 7)], 0.5), None);
    }

    /// So many runs of a model loop of 12 steps, each of which waits this share of its time.
    fn steps(runs: usize, share: f64, ahead: i64) -> Table {
        let what = row![("format", "tiff"), ("model", "cnn"), ("images_per_sec", 100.0)];
        loop_table(&what, runs, share, ahead)
    }

    #[test]
    fn a_title_says_that_nothing_tells_what_binds() {
        let doubt = |steps: Table, noise: f64, loaded: usize| {
            let noise = BTreeMap::from([("dataloader".to_owned(), 0.1), ("loop".to_owned(), noise)]);
            let rounds = [("dataloader", loaded), ("loop", steps.rows())];
            let title = title(&[two_formats(7, &[]), steps], &rounds, &noise, 1, Repeats::rounds(7));
            let doubt = title.strip_prefix(QUESTION).map(|doubt| doubt.trim_start().to_owned());
            assert!(!title.contains('\n'), "{title}");
            doubt.unwrap()
        };
        assert_eq!(doubt(steps(7, 0.9, 4), 0.5, 7), "Too noisy to say what binds");
        // The interval holds a threshold.
        assert_eq!(doubt(steps(7, 0.2998, 4), 0.1, 7), "Too noisy to say what binds");
        // Too few rounds, or steps whose batches were read ahead.
        assert_eq!(doubt(steps(2, 0.9, 4), 0.1, 7), "Too short to say what binds");
        assert_eq!(doubt(steps(7, 0.01, 12), 0.1, 7), "Too short to say what binds");
        for share in [0.01, 0.4, 0.9] {
            assert_eq!(doubt(steps(7, share, 4), 0.1, 7), "");
        }
        // One reason is enough.
        assert_eq!(doubt(steps(7, 0.9, 4), 0.5, 3), "Too short to say: 3 rounds are too few for a verdict");
    }
}
