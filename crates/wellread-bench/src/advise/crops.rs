//! Crops of cells: cut out on the fly, in random order or in block order with a cache of images, or stored.
//!
//! ```text
//!  cells of the sample ─▶ random order: a batch decodes the pieces of its own cells ───┐
//!  all cells of some images ─▶ block order: a cache keeps the images of two blocks ────┼─▶ cells/s, bytes read per byte used
//!  the sample as it was written ─▶ random order of stored crops ───────────────────────┘        └─▶ the way to take, and why
//! ```
//!
//! A sample of cells at random has about one of each image, as a batch of a large set does. Block order needs all cells of an image.

use super::advice::{CropAdvice, CropResult, CropSource};
use super::candidates::Candidate;
use super::choose::Choice;
use super::context::{NO_TIME, ROUNDS, Study, section};
use super::measure::{self, Figures, Series};
use crate::core::words::number;
use crate::feed::LoaderSettings;
use anyhow::Result;
use std::collections::BTreeMap;
use wellread_loader::order::Permutation;
use wellread_loader::{Cache, Dataset, Grouping, Loader, Order, Traffic};
use wellread_measure::clock::Stopwatch;
use wellread_store::cells::Cells;
use wellread_store::{Store, registry};

/// Images whose cells block order mixes at a time.
const BLOCK: usize = 8;
/// Blocks whose images the cache keeps: batches that are read ahead may be of the next one.
const KEPT_BLOCKS: usize = 2;
/// Cells of whole images at most, as a multiple of the sample's.
const MAX_CELLS: usize = 8;
/// Gain in speed that is worth neither another order nor a copy.
pub(super) const NEGLIGIBLE: f64 = 0.1;
/// Share of the time budget.
const CROPS_SHARE: f64 = 0.1;
/// Epochs of the sample that comparing the ways takes at least.
const RUNS_OF_CROPS: f64 = 8.0;

/// One way of bringing crops into batches.
struct CropMethod<'a> {
    source: CropSource,
    name: String,
    bytes_on_disk: f64,
    open: Box<dyn Fn() -> Result<Dataset> + 'a>,
    rows: Vec<usize>,
    order: Order,
}

/// One epoch of a way.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Seconds of a cell.
    cell_s: f64,
    traffic: Traffic,
}

impl CropMethod<'_> {
    /// An epoch of a set that is opened anew: caches are empty at its beginning.
    fn epoch(&self, how: &LoaderSettings, number: u64) -> Result<Epoch> {
        let dataset = (self.open)()?;
        let loader = Loader::builder(&dataset)
            .rows(self.rows.clone())
            .batch_size(how.batch_size)
            .order(self.order.clone())
            .seed(how.seed)
            .workers(how.workers)
            .transform(how.transform.clone())
            .build()?;
        let clock = Stopwatch::start();
        let mut cells = 0;
        for batch in loader.iter_at(number, 0) {
            cells += batch?.len();
        }
        Ok(Epoch { cell_s: clock.elapsed() / cells.max(1) as f64, traffic: loader.traffic() })
    }
}

/// All cells of some images.
#[derive(Debug)]
struct WholeImages {
    rows: Vec<usize>,
    /// A cache for the images of [`KEPT_BLOCKS`] blocks.
    cache: Cache,
}

impl WholeImages {
    /// Draws images at random: a block of them, and as many as have `least` cells, but no more than a multiple of that.
    fn draw(images: &dyn Store, cells: &Cells, least: usize, seed: u64) -> Result<Self> {
        let mut of_image: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for cell in 0..cells.len() {
            if let Some(image) = cells.image_of(cell) {
                of_image.entry(image).or_default().push(cell);
            }
        }
        let groups: Vec<(usize, Vec<usize>)> = of_image.into_iter().collect();
        let order = Permutation::new(groups.len(), seed, 0);
        let (mut rows, mut largest) = (Vec::new(), 0);
        for place in 0..groups.len() {
            if (rows.len() >= least && place >= BLOCK) || rows.len() >= MAX_CELLS * least {
                break;
            }
            let (image, cells) = &groups[order.at(place)];
            let info = images.row_info(*image)?;
            largest = largest.max(info.shape.pixels() * info.dtype.size());
            rows.extend(cells);
        }
        rows.sort_unstable();
        let limit = (KEPT_BLOCKS * BLOCK * largest).div_ceil(1 << 20).max(1) << 20;
        Ok(Self { rows, cache: Cache::Lru { limit } })
    }
}

/// Compares the ways of bringing the crops of cells into batches, where the study is of cells. The first of `candidates` is the set
/// as it is. `enough` are seconds of a cell that a step leaves. It also returns the candidate to keep, with the reason. Stored crops
/// on this machine's disk take no part where the images are read over a link.
pub(super) fn compare(
    study: &Study<'_>,
    candidates: &[&Candidate],
    figures: &Figures,
    (enough, is_over_link): (Option<f64>, bool),
    notes: &mut Vec<String>,
) -> Result<Option<(CropAdvice, Choice)>> {
    let Some(of) = &study.settings.cells else { return Ok(None) };
    let (sample, seed) = (&study.sample, study.settings.seed);
    let epoch = figures.batches.figure(0, |s| s).value * sample.rows.len() as f64;
    let no_time = format!("cells in block order, beside random order and stored crops: {NO_TIME}");
    if !study.has_time_for(RUNS_OF_CROPS, epoch) {
        notes.push(no_time);
        return Ok(None);
    }
    let images = (study.images)()?;
    let cells = Cells::find(&*images, &of.table, &of.options)?;
    let WholeImages { rows, cache } = WholeImages::draw(&*images, &cells, sample.rows.len(), seed)?;
    drop(images);
    let cache_of_images = &cache;
    let mut ways = vec![
        CropMethod {
            source: CropSource::Random,
            name: "cut out, random order".to_owned(),
            bytes_on_disk: 0.0,
            open: Box::new(|| -> Result<Dataset> { Ok(Dataset::from_store((study.own)()?)) }),
            rows: sample.rows.clone(),
            order: Order::Random,
        },
        CropMethod {
            source: CropSource::Block,
            name: format!("cut out, blocks of {BLOCK} images, {cache}"),
            bytes_on_disk: 0.0,
            open: Box::new(move || -> Result<Dataset> {
                let images = Dataset::from_store((study.images)()?).with_cache(cache_of_images)?;
                Ok(images.cells(&of.table, &of.options)?)
            }),
            rows,
            order: Order::Mixed { by: Grouping::Position, window: BLOCK },
        },
    ];
    let stored = fastest_stored(candidates, figures).filter(|_| !is_over_link);
    if let Some(candidate) = stored.map(|at| candidates[at]) {
        ways.push(CropMethod {
            source: CropSource::Stored,
            name: format!("stored as {}", candidate.name()),
            bytes_on_disk: candidate.bytes_per_image * sample.of as f64,
            open: Box::new(move || -> Result<Dataset> {
                Ok(Dataset::from_store(candidate.open(study.own)?))
            }),
            rows: study.rows(candidate),
            order: Order::Random,
        });
    }
    let ranks: Vec<usize> = (0..ways.len()).collect();
    let report = |n, of| (study.progress)("trying ways of cutting cells out", n, of);
    let epochs = section("trying ways of cutting cells out", 5, || {
        let run = |way: &CropMethod<'_>, round| way.epoch(&study.how, round);
        measure::by(&ways, &ranks, run, study.pace(CROPS_SHARE, ROUNDS.1), &report)
    })?;
    let times: Vec<Vec<f64>> =
        epochs.iter().map(|epochs| epochs.iter().map(|epoch| epoch.cell_s).collect()).collect();
    let series = Series::of(times, seed);
    let tried = results(&ways, &epochs, &series);
    let Some((index, is_enough)) = choose(&series, enough).filter(|_| tried.len() > 1) else {
        notes.push(no_time);
        return Ok(None);
    };
    let recommended = ways[index].source;
    let reason = reason(&tried, recommended, is_enough, &cache);
    let kept = stored.filter(|_| recommended == CropSource::Stored).unwrap_or(0);
    drop(ways);
    let choice = Choice { index: kept, reasons: vec![reason.clone()] };
    Ok(Some((CropAdvice { tried, recommended, reason, block: BLOCK, cache }, choice)))
}

/// The fastest of the copies, among those that keep columns beside the images if there are any.
fn fastest_stored(candidates: &[&Candidate], figures: &Figures) -> Option<usize> {
    let keeps_columns =
        |i: usize| registry::format_named(candidates[i].format).is_ok_and(|format| format.keeps_features);
    let time = |i: usize| figures.batches.figure(i, |s| s).value;
    let measured = (1..candidates.len()).filter(|&i| !figures.batches.values[i].is_empty());
    measured
        .min_by(|&a, &b| keeps_columns(b).cmp(&keeps_columns(a)).then_with(|| time(a).total_cmp(&time(b))))
}

/// Those of the ways that were measured, with their figures.
fn results(ways: &[CropMethod<'_>], epochs: &[Vec<Epoch>], series: &Series) -> Vec<CropResult> {
    let best = series.best().unwrap_or(0);
    let measured = ways.iter().zip(epochs).enumerate().filter(|(_, (_, epochs))| !epochs.is_empty());
    let result = |(i, (way, epochs)): (usize, (&CropMethod<'_>, &Vec<Epoch>))| {
        let versus = series.versus(i, best);
        let traffic = Traffic {
            read: epochs.iter().map(|epoch| epoch.traffic.read).sum(),
            used: epochs.iter().map(|epoch| epoch.traffic.used).sum(),
        };
        CropResult {
            source: way.source,
            name: way.name.clone(),
            cells_per_s: series.figure(i, |s| 1.0 / s),
            bytes_read_per_used: traffic.amplification(),
            bytes_on_disk: way.bytes_on_disk,
            versus_fastest: versus.ratio,
            verdict: versus.told(),
        }
    };
    measured.map(result).collect()
}

/// The first way that is fast enough for a step, or not clearly slower than the fastest by more than [`NEGLIGIBLE`]. It also tells
/// whether the step is why. Earlier ways are the simpler ones: no other order, no copy.
fn choose(series: &Series, enough: Option<f64>) -> Option<(usize, bool)> {
    let measured = (0..series.values.len()).filter(|&i| !series.values[i].is_empty());
    let mut judged = measured.map(|i| {
        let is_enough = enough.is_some_and(|enough| series.figure(i, |s| s).value < enough);
        (i, is_enough, !series.is_clearly_worse(i, NEGLIGIBLE))
    });
    let good = judged.find(|(_, is_enough, is_fast)| *is_enough || *is_fast);
    good.map(|(i, is_enough, is_fast)| (i, is_enough && !is_fast))
}

/// The sentence that says what to do, and why.
fn reason(tried: &[CropResult], recommended: CropSource, is_enough: bool, cache: &Cache) -> String {
    let rate =
        |source: CropSource| tried.iter().find(|way| way.source == source).map(|way| way.cells_per_s.value);
    let own = rate(recommended).unwrap_or(f64::NAN);
    let beside = match recommended {
        _ if is_enough => "this is within the step",
        CropSource::Random => "no other way is clearly faster by more than a tenth",
        CropSource::Block if rate(CropSource::Stored).is_some() => {
            "stored crops are not clearly faster by more than a tenth"
        }
        CropSource::Block | CropSource::Stored => "",
    };
    let beside = if beside.is_empty() { String::new() } else { format!("; {beside}") };
    let cells = format!("{} cells/s", number(own));
    let random = rate(CropSource::Random).unwrap_or(f64::NAN);
    match recommended {
        CropSource::Random => format!("cut the crops out on the fly in random order: {cells}{beside}"),
        CropSource::Block => format!(
            "cut the crops out on the fly in block order, with the cache {cache}: {cells}, {} times as many as in random order\
             {beside}",
            number(own / random)
        ),
        CropSource::Stored => {
            let stored = tried.iter().find(|way| way.source == recommended);
            let (name, bytes) = stored.map_or(("", 0.0), |way| (way.name.as_str(), way.bytes_on_disk));
            let on_the_fly = rate(CropSource::Block).unwrap_or(f64::NAN).max(random);
            format!(
                "keep the crops {name}: {cells}, {} times as many as on the fly, for {} MB more on disk{beside}",
                number(own / on_the_fly),
                number(bytes / 1e6)
            )
        }
    }
}

#[cfg(test)]
mod tests;
