//! Chunk layouts of volumes: the cost of reading a volume, a plane or a box by the cut of the volume.
//!
//! | layout | a chunk is, along Z, Y, X |
//! |---|---|
//! | `z-plane` | a plane |
//! | `block` | 16 x 128 x 128 pixels |
//! | `volume` | the volume of a time point and channel |
//!
//! Each run opens a set and reads regions that the round draws (the same for every format and layout) through
//! [`Store::read`](wellread_store::Store::read). `open_s` is the part of `seconds` that opening took. Every pixel
//! is compared with the image in memory, outside the clock.
//!
//! `used_bytes` is what was asked for, `chunk_bytes` are the bytes of the chunks that hold some of it, and
//! `read_amplification` is their ratio. Both follow from the chunk grid, not from what a format really fetched. A
//! table that reads whole rows reads more, and then its time says so.

use super::sets::{OutOfTime, lacking, prepare};
use crate::choices::{ChunkLayout, Extent};
use crate::core::judge::{Judge, Ranked, ranked};
use crate::core::series::{Series, by_median, series};
use crate::core::variants::{self, Keys, Measurement, Results, Settings, Unavailable, Variant};
use crate::core::words::number;
use crate::core::{Benchmark, Session};
use crate::data::FormatSet;
use crate::storage::{self, InMemory};
use anyhow::{Result, bail};
use std::rc::Rc;
use wellread_image::{Region, Shape, clip_runs};
use wellread_loader::order::Permutation;
use wellread_measure::clock::Stopwatch;
use wellread_measure::rng::Rng;
use wellread_report::{Cell, Finding, Severity, Table};
use wellread_store::checksum::ImageChecksum;
use wellread_store::words::counted;
use wellread_store::{Scratch, WriteOptions, read_region};

/// The sweep's registration.
pub static BENCHMARK: Benchmark = Benchmark {
    name: "storage_layout",
    about: "chunk layouts of volumes: reading a volume, a plane, a box; reading includes opening",
    run,
    transforms: |_| vec![],
    headline: &["seconds", "reads_per_s", "read_amplification", "bits_per_pixel"],
    findings,
};

/// Largest block along Z, Y, X.
const BLOCK: [usize; 3] = [16, 128, 128];
/// Largest box of [`Extent::SubVolume`] along Z, Y, X.
const BOX: [usize; 3] = [16, 64, 64];

/// Whether an image is a volume.
pub(super) fn has_depth(image: &ImageChecksum) -> bool {
    Shape(image.shape_tczyx).z() > 1
}

/// The chunk of a layout in an image of a shape.
fn chunk(layout: ChunkLayout, shape: Shape) -> Shape {
    let [_, _, z, y, x] = shape.0;
    Shape(match layout {
        ChunkLayout::ZPlane => [1, 1, 1, y, x],
        ChunkLayout::Block => [1, 1, z.min(BLOCK[0]), y.min(BLOCK[1]), x.min(BLOCK[2])],
        ChunkLayout::Volume => [1, 1, z, y, x],
    })
}

/// A region of an extent, anywhere in an image of a shape.
fn draw(extent: Extent, shape: Shape, rng: &mut Rng) -> Region {
    let [_, _, z, y, x] = shape.0;
    let size = match extent {
        Extent::Volume => [1, 1, z, y, x],
        Extent::Plane => [1, 1, 1, y, x],
        Extent::SubVolume => [1, 1, z.min(BOX[0]), y.min(BOX[1]), x.min(BOX[2])],
    };
    Region { start: std::array::from_fn(|a| rng.below(shape.0[a] - size[a] + 1)), size }
}

/// Pixels of the chunks that a region touches, without what chunks at the edge have beyond the image.
fn touched(region: &Region, chunk: Shape, shape: Shape) -> usize {
    (0..5)
        .map(|a| {
            let (side, end) = (chunk.0[a], region.start[a] + region.size[a]);
            (end.div_ceil(side) * side).min(shape.0[a]) - region.start[a] / side * side
        })
        .product()
}

/// One read: the image's place in memory, which is its row, and the region.
struct Read {
    row: usize,
    region: Region,
}

/// The reads of a round: `count` of them, over the volumes in random order and from the start again.
fn reads(images: &[InMemory], extent: Extent, count: usize, seed: u64, round: u64) -> Vec<Read> {
    let volumes: Vec<usize> = (0..images.len()).filter(|&row| images[row].info.shape.z() > 1).collect();
    let order = Permutation::new(volumes.len(), seed, round);
    let mut rng = Rng::seed(seed ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let read = |i: usize| {
        let row = volumes[order.at(i % volumes.len())];
        Read { row, region: draw(extent, images[row].info.shape, &mut rng) }
    };
    if volumes.is_empty() { vec![] } else { (0..count).map(read).collect() }
}

/// Why there is nothing to read, where none of the images in memory is a volume.
fn no_volume(images: &[InMemory]) -> Option<String> {
    let has_volume = images.iter().any(|image| image.info.shape.z() > 1);
    (!has_volume).then(|| {
        format!(
            "none of the first {} is a volume, and no more are kept in memory to be compared with",
            counted(images.len(), "image")
        )
    })
}

/// The images in all formats with one layout.
struct Setting {
    layout: ChunkLayout,
    sets: Vec<FormatSet>,
}

fn run(session: &Session<'_>) -> Result<Results> {
    let images = Rc::new(storage::load_images(session)?);
    for (row, image) in images.iter().enumerate() {
        if !session.expected.agrees_native(row, &image.pixels, true) {
            bail!("row {row}: the pixels read to be compared with differ from those that were written");
        }
    }
    let flat = no_volume(&images);
    // One chunk size for a whole set: writers cut it to each image.
    let shapes = session.prepared.expected.iter().map(|image| image.shape_tczyx);
    let largest = shapes.fold([1; 5], |all, shape| std::array::from_fn(|a| all[a].max(shape[a])));
    let mut settings = Vec::new();
    for &layout in ChunkLayout::ALL {
        let options =
            WriteOptions { chunk: Some(chunk(layout, Shape(largest)).0), ..session.write_options.clone() };
        settings.push(Setting { layout, sets: prepare(session, &format!("layout-{layout}"), &options)? });
    }
    let (mut variants, mut unavailable) = (Vec::new(), Vec::new());
    for at in 0..session.prepared.sets.len() {
        for Setting { layout, sets } in &settings {
            let set = &sets[at];
            let keys = |operation: Cell| -> Keys {
                vec![
                    ("format", Cell::from(set.format)),
                    ("layout", Cell::from(*layout)),
                    ("operation", operation),
                    ("codec", set.codec.as_deref().map_or(Cell::Null, Cell::from)),
                ]
            };
            if let Some(reason) = set.error.as_ref().or(flat.as_ref()) {
                // One row for all extents.
                unavailable.push(Unavailable { keys: keys(Cell::Null), reason: reason.clone() });
                continue;
            }
            for &extent in Extent::ALL {
                let keys = keys(extent.into());
                let images = images.clone();
                variants.push(Variant {
                    peer: false,
                    keys,
                    job: Box::new(move |turn| {
                        measure(session, set, *layout, extent, &images, turn.round as u64)
                    }),
                });
            }
        }
    }
    let settings = Settings {
        name: BENCHMARK.name,
        intervals: &["seconds", "reads_per_s"],
        noise_figure: "seconds",
        item_prefix: "item_",
    };
    let mut results = variants::run(session, &settings, variants, unavailable)?;
    results.notes.extend(storage::memory_note(session, "layout sweep", &images));
    Ok(results)
}

fn measure(
    session: &Session<'_>,
    set: &FormatSet,
    layout: ChunkLayout,
    extent: Extent,
    images: &[InMemory],
    round: u64,
) -> Result<Measurement> {
    let reads = reads(images, extent, session.config.random_images, session.config.seed, round);
    let mut pixels: Vec<Vec<u8>> = vec![Vec::new(); reads.len()];
    let mut scratch = Scratch::default();
    let clock = Stopwatch::start();
    let store = session.open(set)?;
    store.row_info(0)?;
    let open_s = clock.elapsed();
    for (read, pixels) in reads.iter().zip(&mut pixels) {
        read_region(&*store, read.row, &read.region, &mut scratch, pixels)?;
    }
    let seconds = clock.elapsed();
    let (mut used, mut chunks, mut verified) = (0, 0, !reads.is_empty());
    for (Read { row, region }, pixels) in reads.iter().zip(&pixels) {
        let InMemory { info, pixels: whole, .. } = &images[*row];
        let size = info.dtype.size();
        used += region.pixels() * size;
        chunks += touched(region, chunk(layout, info.shape), info.shape) * size;
        verified &= same_pixels(whole, info.shape, region, pixels, size);
    }
    let mut values = vec![
        ("seconds", seconds),
        ("open_s", open_s),
        ("reads_per_s", reads.len() as f64 / seconds),
        ("used_bytes", used as f64),
        ("chunk_bytes", chunks as f64),
        ("read_amplification", chunks as f64 / used.max(1) as f64),
    ];
    values.extend(storage::size(session, set));
    Ok(Measurement { values, verified, ..Measurement::default() })
}

/// Whether `pixels` are those of `region` in the image that `whole` is.
fn same_pixels(whole: &[u8], shape: Shape, region: &Region, pixels: &[u8], size: usize) -> bool {
    if pixels.len() != region.pixels() * size || whole.len() != shape.pixels() * size {
        return false;
    }
    let mut same = true;
    clip_runs(&shape.full(), region, |from, to, n| {
        same &= whole[from * size..(from + n) * size] == pixels[to * size..(to + n) * size];
    });
    same
}

fn findings(table: &Table, judge: &Judge) -> Vec<Ranked> {
    let mut found: Vec<_> = Extent::ALL
        .iter()
        .zip(65..)
        .filter_map(|(extent, rank)| ranked(rank, best_layout(table, judge, *extent)))
        .collect();
    found.extend(ranked(68, lacking(table, "layout", "Layouts")));
    found.extend(ranked(68, OutOfTime::of(table, "layout").finding("Layouts")));
    found
}

/// In the fastest of the formats that have several layouts: its two fastest compared.
fn best_layout(table: &Table, judge: &Judge, extent: Extent) -> Option<Finding> {
    let is = |r: usize| table.cell("operation", r) == Cell::from(extent);
    let sorted = by_median(series(table, &["layout"], "reads_per_s", is));
    let (first, second) = sorted
        .iter()
        .find_map(|s| Some((s, sorted.iter().find(|o| o.format == s.format && o.label != s.label)?)))?;
    let compared = judge.compare(first, second)?;
    let what = match extent {
        Extent::Volume => "whole volumes",
        Extent::Plane => "single planes",
        Extent::SubVolume => "boxes of a volume",
    };
    let (best, next) = (format!("{} chunks", first.label), format!("{} chunks", second.label));
    let place =
        format!("{}, whose median rate is the highest of formats with a choice of chunks", first.format);
    let text = if compared.is_clear() {
        format!(
            "For {what}, {best} are read {} as fast as {next} in {place}: {} reads/s",
            compared.times(),
            number(first.median())
        )
    } else {
        let no_verdict = compared.no_verdict(&best, &next);
        format!("For {what} in {place}: {no_verdict}; {}{}", compared.times(), compared.no_verdict_reason())
    };
    let amplified = |s: &Series| {
        let of = series(table, &["layout"], "read_amplification", is);
        of.iter().find(|a| a.format == s.format && a.label == s.label).map_or(f64::NAN, Series::median)
    };
    let mut formats: Vec<&str> = Vec::new();
    for s in &sorted {
        if !formats.contains(&s.format.as_str()) {
            formats.push(&s.format);
        }
    }
    let each = |format: &&str| {
        let layouts = sorted.iter().filter(|s| s.format == **format);
        let rates: Vec<_> = layouts.map(|s| format!("{} {}", s.label, number(s.median()))).collect();
        format!("{format}: {} reads/s", rates.join(", "))
    };
    let grid: Vec<_> = sorted
        .iter()
        .filter(|s| s.format == first.format)
        .map(|s| format!("{} {}", s.label, number(amplified(s))))
        .collect();
    let detail = format!(
        "{}. Bytes of chunks touched per byte asked for, by the chunk grid: {}.",
        formats.iter().map(each).collect::<Vec<_>>().join("; "),
        grid.join(", ")
    );
    Some(Finding::new(Severity::Info, text, detail))
}

#[cfg(test)]
mod tests;
