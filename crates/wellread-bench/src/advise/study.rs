//! The study itself: its sections one after the other, each with what was chosen before.
//!
//! ```text
//!  Settings ─▶ draw: Sample ─▶ candidates ─▶ Screening ─▶ choose::format ─▶ loading::loader ─▶ predicted ─▶ Studied: Advice, copies
//!                      of a set behind a network: over_link ─▶ choose_link::format ─▶┘
//! ```

use super::advice::{Advice, CandidateResult, CropSource, Recommendation};
use super::allowance::{Allowance, Batches, batches_of_loop};
use super::candidates::{self, Candidate};
use super::choose::{self, Choice, ChoiceContext};
use super::choose_link;
use super::context::{NO_TIME, ROUNDS, RUNS_OF_PREDICTING, Study, section};
use super::crops;
use super::loading;
use super::over_link;
use super::predict::{self, Prediction};
use super::screening::{Screening, seconds_of_run};
use super::settings::Settings;
use super::verdict::{PairedComparison, SpeedVerdict};
use crate::core::words::{number, percent};
use crate::data::SourceCells;
use crate::feed::{LoaderSettings, Open};
use crate::roofline::share_of_copy;
use crate::sample::{Limits, Sample};
use crate::stages::{Figure, plain_loader};
use anyhow::{Context as _, Result};
use std::time::Duration;
use wellread_image::Shape;
use wellread_loader::Cache;
use wellread_measure::clock::Stopwatch;
use wellread_measure::environment::Environment;
use wellread_measure::limits::{LimitSettings, measure_copy};
use wellread_store::Store;
use wellread_store::staged::{Existing, Staged};
use wellread_store::words::counted;

/// Share of the time budget; those of candidates are in [`super::screening`], those of the loader in [`super::loading`].
const PREDICTING_SHARE: f64 = 0.12;
/// Shares of waiting, measured twice in one study, that differ by more say that the machine changed.
const UNSTEADY: f64 = 0.1;
/// Step times (milliseconds) that are predicted where none is given.
const STEPS_MS: [f64; 5] = [5.0, 20.0, 50.0, 100.0, 200.0];

/// The result of a study, and the copies that it has written.
#[derive(Debug)]
pub struct Studied {
    /// The result.
    pub advice: Advice,
    /// The folder of the copies. They go when this is dropped, which may take longer than all the rest where they are many files.
    pub copies: Staged,
}

/// Studies the set that `open` opens: its images, or the cells of them that the settings name.
///
/// # Errors
/// A set that cannot be opened, read or batched; a scratch folder that cannot be written.
pub fn study(
    open: impl Fn() -> Result<Box<dyn Store>>,
    settings: &Settings,
    progress: &dyn Fn(&str, usize, usize),
) -> Result<Studied> {
    let clock = Stopwatch::start();
    let images: &Open<'_> = &open;
    let of_images = || -> Result<Box<dyn Store>> { Ok(SourceCells::of(settings.cells.as_ref(), images()?)?) };
    let own: &Open<'_> = &of_images;
    let store = own()?;
    let is_over_link = crate::link::of(&*store).is_some();
    // A core is left to what feeds the device.
    let workers = wellread_worker::threads().saturating_sub(1).clamp(1, 8);
    let mut notes = Vec::new();
    let (sample, batches, is_cut) = draw(&*store, settings, workers, &mut notes)?;
    let there = candidates::as_it_is(&*store)?;
    let loaded = candidates::load(store, &sample)?;
    let how = plain_loader(sample.batch_size, workers, settings.seed, settings.crop)?;
    std::fs::create_dir_all(&settings.scratch)
        .with_context(|| format!("cannot make the folder {}", settings.scratch.display()))?;
    // Never moved into place: it goes when this is dropped, when the program is interrupted, or with the next study.
    let copies = Staged::new(&settings.scratch.join("wellread-advise"), Existing::Replaced)?;
    let shape = Shape(sample.shape_tczyx);
    let folder = copies.create_dir()?;
    let report = |n, of| progress("writing candidates", n, of);
    let written =
        section("writing candidates", 7, || candidates::write(&loaded, settings, folder, shape, &report))?;
    drop(loaded);
    notes.extend(written.notes);
    let all: Vec<Candidate> = std::iter::once(there).chain(written.candidates).collect();
    let study = Study { own, images, settings, sample, how, progress, clock, batches, is_cut };
    let environment = Environment::capture::<&str>(&[]);
    let memory = environment.free_memory().or(environment.memory.total);

    let screening = Screening::of(&study, &all, written.untried, &mut notes)?;
    let (figures, chosen) = (screening.figures(), screening.chosen(&all));
    let enough = settings.step.map(|step| {
        let workers = study.how.workers as f64;
        step / study.batches.meant as f64 * workers / (workers + 1.0)
    });
    let screened = screening.screened_only(settings.time_budget.as_secs_f64());
    let need = ChoiceContext { images: study.sample.of, thing: study.sample.thing, memory, enough, screened };
    // Choices are among all from here on.
    let of_all = |choice: Choice| {
        let index = all.iter().position(|one| std::ptr::eq(one, chosen[choice.index]));
        Choice { index: index.unwrap_or(0), ..choice }
    };
    let tried = tried(&study, &all, &screening, is_over_link);
    // Copies on the disk of this machine do not compare with a set behind a network.
    let (link, mut format) = match over_link::predict(&study, &all, &tried, &mut notes) {
        Ok(Some(link)) => {
            let format = choose_link::format(&all, &link, need);
            (Some(link), format)
        }
        Err(why) if is_over_link => {
            notes.push(format!("the link could not be measured: {why:#}"));
            let stays = format!("{}: it stays: copies were not compared over the link", all[0].name());
            (None, Choice { index: 0, reasons: vec![stays] })
        }
        _ => {
            let choice = choose::format(&chosen, figures, need);
            (None, of_all(choice.context("no candidate could be measured")?))
        }
    };
    let compared = crops::compare(&study, &chosen, figures, (enough, is_over_link), &mut notes);
    let crops = compared.unwrap_or_else(|why| {
        notes.push(format!("ways of cutting cells out could not be compared: {why:#}"));
        None
    });
    let crops = crops.filter(|(advice, _)| {
        let copy = &all[format.index];
        let beaten = link.as_ref().is_some_and(|link| choose_link::beats_crops(link, copy, advice));
        if beaten {
            notes.push(format!(
                "over the link, stored crops are predicted to be faster than this: {}",
                advice.reason
            ));
        }
        !beaten
    });
    // This is the whole answer for cells: the rules of formats know one order only.
    let crops = crops.map(|(advice, choice)| {
        format = of_all(choice);
        advice
    });
    let best = &all[format.index];
    notes.extend(kept_pages(best, own, &study.sample));
    if is_over_link && !best.is_own_set() {
        notes.push(
            "workers, batch sizes, caches and the wait of a step were measured with the copy on this machine's disk, without the link"
                .to_owned(),
        );
    }

    // The loader: one thing after the other, with what was chosen before.
    let measured = screening.figures_of(format.index);
    let (timed, at) = measured.unwrap_or((figures, 0));
    let run = seconds_of_run(&study, timed, at);
    let (mut loader, mut how) = loading::loader(&study, best, memory, run)?;
    notes.append(&mut loader.notes);
    how.cache = loader.cache.clone();
    let (predictions, no_wait_from_ms) = predicted(&study, best, &how, run, &mut notes)?;
    // Said here, of the figure that is shown again below: that of the numbers of workers was of less of what is recommended.
    if settings.step.is_none()
        && let Some(first) = loader.workers.reasons.first_mut()
    {
        *first = format!("{first}: {}", predict::no_wait(&no_wait_from_ms, &predictions));
    }
    // The same figure twice, minutes apart.
    if let (Some(before), [at_the_end]) = (loader.wait, predictions.as_slice())
        && how.cache == Cache::None
        && (at_the_end.data_wait_fraction.value - before).abs() > UNSTEADY
    {
        notes.push(format!(
            "a step waited {} of its time when workers were tried, and {} at the end. The machine was busy with something else: \
             study the set again before you rely on this",
            percent(before),
            percent(at_the_end.data_wait_fraction.value)
        ));
    }
    let first_epoch = measured.filter(|(figures, at)| !figures.cold.values[*at].is_empty());
    let first_epoch_images_per_s = first_epoch.map(|(figures, at)| figures.cold.figure(at, |s| 1.0 / s));
    if let Some(crops) = crops.as_ref().filter(|crops| crops.recommended == CropSource::Block) {
        loader.cache_reasons = vec![format!("{}: the images of two blocks", crops.cache)];
        loader.cache = crops.cache.clone();
        notes.push(
            "workers, batch sizes and the wait of a step were measured in random order: block order waits less"
                .to_owned(),
        );
    }
    let recommendation = Recommendation {
        format: best.format,
        compression: best.compression,
        chunk: best.chunk,
        as_it_is: best.is_own_set(),
        workers: how.workers,
        batch_size: loader.batch_size,
        cache: loader.cache,
        reasons: [format.reasons, loader.workers.reasons, loader.batch_reasons, loader.cache_reasons],
    };
    let advice = Advice {
        tried,
        workers: loader.workers_tried,
        batch_sizes: loader.batches_tried,
        caches: loader.caches_tried,
        recommendation,
        predictions,
        no_wait_from_ms,
        first_epoch_images_per_s,
        crops,
        link,
        notes,
        sample: study.sample.clone(),
        seconds: clock.elapsed(),
    };
    Ok(Studied { advice, copies })
}

/// Draws the sample: no more images, and no larger batches, than there is time for. With it go the batches, and whether what is
/// recommended has smaller ones than usual.
fn draw(
    store: &dyn Store,
    settings: &Settings,
    workers: usize,
    notes: &mut Vec<String>,
) -> Result<(Sample, Batches, bool)> {
    let allowance = Allowance::probe(store, wellread_worker::threads(), settings.time_budget.as_secs_f64());
    let rows = store.len().max(1);
    // A size that is asked for stays, however few images there are; the usual one is no larger than the set.
    let wanted = match settings.batch_size {
        Some(asked) => asked,
        None => crate::sample::batch_size(store, settings.crop)?.min(rows),
    };
    // A step time is one of a batch: of the usual size, where none is asked for.
    let is_given = settings.batch_size.is_some() || settings.step.is_some();
    let batches = allowance.batches(wanted, is_given, workers).of_set(rows);
    notes.extend(allowance.note(batches, wanted, is_given, (rows, store.hints().thing())));
    let limits =
        Limits { images: allowance.images(settings.limits.images, batches.measured), ..settings.limits };
    let sample = Sample::draw(store, limits, batches.measured, settings.seed, settings.crop)?;
    if limits.images < settings.limits.images.min(sample.of) {
        notes.push(format!(
            "the sample is of {} at most, to keep to the time (--time-budget)",
            counted(limits.images, sample.thing)
        ));
    }
    Ok((sample, batches, batches.meant < wanted))
}

/// Predicts the wait of a step with all that was chosen, of which a steady run takes `run` seconds. A real loop checks it where a
/// step time is given and there is time. The shortest step that does not wait goes with it.
fn predicted(
    study: &Study<'_>,
    best: &Candidate,
    how: &LoaderSettings,
    run: f64,
    notes: &mut Vec<String>,
) -> Result<(Vec<Prediction>, Figure)> {
    let step = study.settings.step;
    let steps: Vec<f64> = match step {
        Some(step) => vec![step],
        None => STEPS_MS.iter().map(|ms| ms / 1e3).collect(),
    };
    let mut pace = study.pace(PREDICTING_SHARE, ROUNDS.1);
    let parts = study.batches.parts();
    // A loop waits for steps that it does not count, too.
    let of_step = |step: f64| batches_of_loop(step / parts, how.workers) * step / parts;
    let loops: f64 = step.map_or(0.0, of_step);
    let round = RUNS_OF_PREDICTING * run * how.batch_size as f64 / study.sample.batch_size as f64;
    let checks = step.is_some() && round + loops <= study.left();
    if step.is_some() && !checks {
        notes.push(format!("a real loop to check the prediction against: {NO_TIME}"));
    }
    // One round to warm up, and one that counts.
    if 2.0 * (round + if checks { loops } else { 0.0 }) > study.left() {
        pace.budget = Duration::ZERO;
    }
    let feed = study.feed(best, how.clone());
    section("predicting", 1, || {
        predict::predict(
            &feed,
            how.workers,
            parts,
            &steps,
            checks,
            (pace.rounds, pace.budget, pace.seed),
            &|n, of| (study.progress)("predicting", n, of),
        )
    })
}

/// The note that what is recommended may keep all decoded pixels of the set in memory: later epochs decode nothing. Here each batch
/// is decoded, as of a larger set.
fn kept_pages(recommended: &Candidate, own: &Open<'_>, sample: &Sample) -> Option<String> {
    let bytes = sample.image_bytes * sample.of as f64;
    // Images are larger than the cells that are cut out of them.
    let opened = recommended.open(own).ok().filter(|store| !store.hints().are_crops);
    let kept = opened.map_or(0, |store| store.hints().page_cache_bytes());
    (kept as f64 >= bytes && kept > 0).then(|| {
        format!(
            "{}, which is recommended, can keep the whole set decoded in memory ({} MB): epochs after the first then wait less than \
             predicted. All figures here decode each image, as those of a larger set do",
            recommended.format,
            number(bytes / 1e6)
        )
    })
}

/// The result of each candidate that was measured: that of more rounds where there are some.
/// Where the set as it is was read over a link, the others are compared with the fastest of themselves.
fn tried(
    study: &Study<'_>,
    all: &[Candidate],
    screening: &Screening,
    is_over_link: bool,
) -> Vec<CandidateResult> {
    let figures = screening.figures();
    let copy = measure_copy(&LimitSettings::default());
    let delivered = study.sample.delivered_bytes(study.settings.crop);
    let best = if is_over_link {
        let time = |at: usize| figures.batches.figure(at, |s| s).value;
        let copies = (1..figures.batches.values.len()).filter(|&at| !figures.batches.values[at].is_empty());
        copies.min_by(|&a, &b| time(a).total_cmp(&time(b)))
    } else {
        figures.batches.best()
    };
    let tried = all.iter().enumerate().filter_map(|(i, candidate)| {
        let (from, at) = screening.figures_of(i)?;
        let index = screening.index_in_rerun(i);
        let over_link = is_over_link && candidate.is_own_set();
        let images_per_s = from.batches.figure(at, |s| 1.0 / s);
        let compared = index.zip(best).filter(|_| !over_link);
        let versus = compared.map(|(at, best)| figures.batches.versus(at, best));
        Some(CandidateResult {
            name: candidate.name(),
            bytes_of_set: candidate.bytes_per_image * study.sample.of as f64,
            images_per_s,
            share_of_copy: share_of_copy(images_per_s.value, delivered, study.how.workers + 1, &copy),
            single_us: from.single.figure(at, |s| 1e6 * s),
            cold_images_per_s: Some(from.cold.figure(at, |s| 1.0 / s))
                .filter(|figure| figure.value.is_finite()),
            versus_fastest: versus.and_then(|v| v.ratio),
            verdict: versus.as_ref().map_or(SpeedVerdict::TooFewData, PairedComparison::told),
            finalist: index.is_some(),
            over_link,
            candidate: candidate.clone(),
        })
    });
    tried.collect()
}

#[cfg(test)]
mod tests;
