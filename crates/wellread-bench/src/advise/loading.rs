//! How to load what is kept as was chosen: workers, then a batch size, then a cache, each measured with what was chosen before.

use super::advice::SettingResult;
use super::candidates::Candidate;
use super::choose::{self, Choice};
use super::context::{NO_TIME, ROUNDS, Study, section};
use super::measure::{self, Series};
use super::predict::Speed;
use crate::feed::LoaderSettings;
use anyhow::{Context as _, Result};
use wellread_loader::Cache;
use wellread_measure::samples::median;
use wellread_store::words::counted;

/// Shares of the time budget.
const WORKERS_SHARE: f64 = 0.08;
const BATCH_SIZE_SHARE: f64 = 0.05;
const CACHES_SHARE: f64 = 0.05;
/// Steady runs of a loader that a section consists of at least: two numbers of workers, one batch size, caches.
const RUNS_OF_WORKERS: f64 = 12.0;
const RUNS_OF_A_SIZE: f64 = 6.0;
const RUNS_OF_CACHES: f64 = 12.0;

/// The choices for loading, and those that were tried.
pub(super) struct LoaderChoice {
    pub workers: Choice,
    pub workers_tried: Vec<SettingResult>,
    /// Images of a batch, as is recommended.
    pub batch_size: usize,
    pub batch_reasons: Vec<String>,
    pub batches_tried: Vec<SettingResult>,
    /// Share of a step that waits with these workers and no cache, where a step time is given.
    pub wait: Option<f64>,
    pub cache: Cache,
    pub cache_reasons: Vec<String>,
    pub caches_tried: Vec<SettingResult>,
    /// The values that were not measured for want of time; where that is all of them, the reason says so.
    pub notes: Vec<String>,
}

/// Chooses how to load `best`, of which a steady run takes `run` seconds. With it goes how it is measured from then on, without a
/// cache.
pub(super) fn loader(
    study: &Study<'_>,
    best: &Candidate,
    memory: Option<u64>,
    run: f64,
) -> Result<(LoaderChoice, LoaderSettings)> {
    let (mut how, mut notes) = (study.how.clone(), Vec::new());
    let (workers, workers_tried, waits) = workers(study, best, &mut how, run, &mut notes)?;
    let (batch_size, batch_reasons, batches_tried) = batch_size(study, best, &mut how, run, &mut notes)?;
    let wait = median(&waits);
    let (cache, cache_reasons, caches_tried) = cache(study, best, &how, run, (memory, wait), &mut notes)?;
    let found = LoaderChoice {
        workers,
        workers_tried,
        batch_size,
        batch_reasons,
        batches_tried,
        wait,
        cache,
        cache_reasons,
        caches_tried,
        notes,
    };
    Ok((found, how))
}

/// Chooses a number of workers. It also returns those that were tried and, where a step time is given, the share of a
/// step that waits, one for each round.
fn workers(
    study: &Study<'_>,
    best: &Candidate,
    how: &mut LoaderSettings,
    run: f64,
    notes: &mut Vec<String>,
) -> Result<(Choice, Vec<SettingResult>, Vec<f64>)> {
    let step = study.settings.step;
    if !study.has_time_for(RUNS_OF_WORKERS, run) {
        let reasons =
            vec![counted(how.workers, "worker"), format!("other numbers of workers were {NO_TIME}")];
        return Ok((Choice { index: 0, reasons }, vec![], vec![]));
    }
    let cores = wellread_worker::threads();
    let mut counts: Vec<usize> = [0, 1, 2, 4, 8, 16].into_iter().filter(|&n| n <= 2 * cores).collect();
    if step.is_none() {
        // Without workers no step is long enough.
        counts.retain(|&n| n > 0);
    }
    let usual = how.clone();
    let with_workers = |n: usize| study.feed(best, LoaderSettings { workers: n, ..usual.clone() });
    let report = |n, of| (study.progress)("trying workers", n, of);
    let pace = study.pace(WORKERS_SHARE, ROUNDS.1);
    let measured = section("trying workers", 4, || {
        measure::workers(with_workers, &counts, usual.workers, pace, &report)
    })?;
    // A step is one of a batch that is meant, of which a part may be measured.
    let parts = study.batches.parts();
    let speeds: Vec<Vec<Speed>> =
        measured.iter().map(|speeds| speeds.iter().map(|speed| speed.joined(parts)).collect()).collect();
    let late = counts.iter().zip(&speeds).filter(|(_, speeds)| speeds.is_empty());
    let late: Vec<String> = late.map(|(n, _)| counted(*n, "worker")).collect();
    if !late.is_empty() {
        notes.push(format!("{}: {NO_TIME}", late.join(", ")));
    }
    let (workers, series) = choose::workers(&counts, &speeds, step, study.settings.seed)
        .context("no number of workers could be measured")?;
    let waits: Vec<f64> = step
        .map_or(vec![], |step| speeds[workers.index].iter().map(|speed| speed.wait_share(step)).collect());
    how.workers = counts[workers.index];
    Ok((workers, named(&strings(&counts), &series, 1e3), waits))
}

/// Chooses a batch size, unless one is given. It also returns the reasons, and those that were tried.
fn batch_size(
    study: &Study<'_>,
    best: &Candidate,
    how: &mut LoaderSettings,
    run: f64,
    notes: &mut Vec<String>,
) -> Result<(usize, Vec<String>, Vec<SettingResult>)> {
    let Study { settings, sample, batches, .. } = study;
    // A step time is one of a batch: it belongs to its size.
    let asked = settings.batch_size.is_some() || settings.step.is_some();
    let mut sizes: Vec<usize> = [4, 16, 64].into_iter().filter(|&n| 2 * n <= sample.rows.len()).collect();
    let is_large_enough = sizes.len() > 1;
    sizes.retain(|&n| study.has_time_for(RUNS_OF_A_SIZE * n as f64 / sample.batch_size as f64, run));
    if asked || sizes.len() < 2 {
        let why = match (settings.batch_size, asked) {
            (Some(_), _) => "as asked for",
            (None, true) => {
                "the size that the step time is taken for; give --batch-size if it is for another"
            }
            (None, false) if study.is_cut => {
                "larger ones were not measured, to keep to the time (--time-budget)"
            }
            (None, false) if is_large_enough => "there was no time to compare others (--time-budget)",
            (None, false) => "the set is too small to compare others",
        };
        return Ok((batches.meant, vec![format!("batches of {}: {why}", batches.meant)], vec![]));
    }
    let usual = how.clone();
    let with_size = |n: usize| study.feed(best, LoaderSettings { batch_size: n, ..usual.clone() });
    let report = |n, of| (study.progress)("trying batch sizes", n, of);
    let pace = study.pace(BATCH_SIZE_SHARE, ROUNDS.1);
    let series = section("trying batch sizes", 3, || {
        measure::batch_sizes(with_size, &sizes, usual.workers, pace, &report)
    })?;
    let late = sizes.iter().zip(&series.values).filter(|(_, values)| values.is_empty());
    let late: Vec<String> = late.map(|(n, _)| n.to_string()).collect();
    if !late.is_empty() {
        notes.push(format!("batches of {}: {NO_TIME}", late.join(", ")));
    }
    let choice =
        choose::batch_size(&sizes, &series, study.sample.thing).context("no batch size could be measured")?;
    how.batch_size = sizes[choice.index];
    Ok((how.batch_size, choice.reasons, named(&strings(&sizes), &series, 1e6)))
}

/// Chooses a cache, by how much memory there is and how much of a step waits. It also returns the reasons, and those
/// that were tried.
fn cache(
    study: &Study<'_>,
    best: &Candidate,
    how: &LoaderSettings,
    run: f64,
    (memory, wait): (Option<u64>, Option<f64>),
    notes: &mut Vec<String>,
) -> Result<(Cache, Vec<String>, Vec<SettingResult>)> {
    let sample = &study.sample;
    if study.settings.cells.is_some() && best.is_own_set() {
        // Here a cache would keep crops; one of a set of cells keeps the images, which is measured as block order.
        let why = "no cache: in random order it would have to keep all images";
        return Ok((Cache::None, vec![why.to_owned()], vec![]));
    }
    if !study.has_time_for(RUNS_OF_CACHES * how.batch_size as f64 / sample.batch_size as f64, run) {
        return Ok((Cache::None, vec![format!("no cache: caches were {NO_TIME}")], vec![]));
    }
    let caches = [Cache::None, Cache::MEMORY, Cache::Compressed { limit: usize::MAX }];
    let with_cache = |cache: &Cache| study.feed(best, LoaderSettings { cache: cache.clone(), ..how.clone() });
    let report = |n, of| (study.progress)("trying caches", n, of);
    let pace = study.pace(CACHES_SHARE, ROUNDS.1);
    let (series, kept) =
        section("trying caches", 2, || measure::caches(with_cache, &caches, how.batch_size, pace, &report))?;
    let bytes: Vec<f64> = kept.iter().map(|each| each * sample.of as f64).collect();
    let names: Vec<String> = caches.iter().map(ToString::to_string).collect();
    let late = names.iter().zip(&series.values).filter(|(_, values)| values.is_empty());
    let late: Vec<&str> = late.map(|(name, _)| name.as_str()).collect();
    if !late.is_empty() {
        notes.push(format!("cache {}: {NO_TIME}", late.join(", ")));
    }
    let choice = choose::cache(&caches, &series, &bytes, memory, wait);
    Ok((caches[choice.index].clone(), choice.reasons, named(&names, &series, 1e6)))
}

/// Those of the values that were measured, with their times in a unit of which a second has `scale`.
fn named(values: &[String], series: &Series, scale: f64) -> Vec<SettingResult> {
    let tried = values.iter().enumerate().filter(|(i, _)| !series.values[*i].is_empty());
    tried
        .map(|(i, value)| SettingResult { value: value.clone(), time: series.figure(i, |s| scale * s) })
        .collect()
}

fn strings(values: &[usize]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}
