//! Track 4: what does it cost to make a tensor of an image in memory?
//!
//! Each image has three clocks. `numpy_*` runs from asking for a row to its floats in a new host array. `conversion_*`
//! runs from the host array to a tensor of the model's backend. `torch_*` (named as upstream's column) is both. Two paths:
//! `copy` hands the backend a slice, which it copies; `zero_copy` gives it the array itself. The tensor's content is
//! compared with the array's outside the clocks. Every array and every copy takes new memory, inside the clocks, as in
//! the rows of Python; its return is outside. A variant that would take more than its share of the time budget takes
//! fewer images.
//!
//! This program's own rows have the framework `candle`, which is the name of its backend; its tensors are plain
//! vectors. The table also has rows of NumPy and torch (framework `pytorch`) where a Python with torch is found. It has
//! rows of every other framework that `--framework` names. A note names the source of the rows.

mod columns;
pub(crate) mod python;

pub use columns::advice;

use crate::choices::{Access, Preset, TensorPath};
use crate::core::access::rows_of;
use crate::core::judge::{Judge, Ranked, ranked};
use crate::core::measurement::{fewest, full_turn_s};
use crate::core::series::{Series, by_median, series};
use crate::core::variants::{self, Keys, Measurement, Results, Settings, Unavailable, Variant};
use crate::core::{Benchmark, Session};
use crate::data::FormatSet;
use crate::roofline::with_share_of_copy;
use anyhow::Result;
use columns::measurement;
use wellread_image::Shape;
use wellread_loader::{Dataset, ItemContext};
use wellread_measure::clock::Stopwatch;
use wellread_measure::interleave::Turn;
use wellread_measure::samples::Samples;
use wellread_model::{TensorHandle, tensor_from_slice_copy, tensor_from_vec};
use wellread_report::{Cell, Finding, Severity, Table};
use wellread_trace::{Kind, span};

/// The benchmark's registration.
pub static BENCHMARK: Benchmark = Benchmark {
    name: "conversion",
    about: "host array to tensor, by copy and without",
    run,
    transforms: |_| vec![Preset::None],
    headline: &["numpy_p50_s", "conversion_p50_s", "torch_p50_s", "conversion_overhead_pct", "copied_bytes"],
    findings,
};

fn run(session: &Session<'_>) -> Result<Results> {
    let (mut variants, mut unavailable) = (Vec::new(), Vec::new());
    let in_python = session.frameworks.of(BENCHMARK.name).next().is_some();
    for set in session.own_sets() {
        for &path in TensorPath::ALL {
            let mut keys: Keys = vec![
                ("format", Cell::from(set.format)),
                ("framework", Cell::from("candle")),
                ("path", Cell::from(path)),
            ];
            if in_python {
                keys.insert(2, ("loader", Cell::from("wellread")));
            }
            match &set.error {
                Some(reason) => unavailable.push(Unavailable { keys, reason: reason.clone() }),
                None => variants.push(Variant {
                    peer: false,
                    keys,
                    job: Box::new(move |turn| convert(session, set, path, turn, session.turn_seconds())),
                }),
            }
        }
    }
    python::add_variants(session, (&mut variants, &mut unavailable));
    let settings = Settings {
        name: BENCHMARK.name,
        intervals: &["numpy_p50_s", "conversion_p50_s", "conversion_overhead_pct"],
        noise_figure: "torch_p50_s",
        item_prefix: "torch_",
    };
    let mut results = variants::run(session, &settings, variants, unavailable)?;
    results.table = with_share_of_copy(session, &results.table, "torch_samples_per_sec", 1);
    results.notes.extend(session.frameworks.about_conversion().map(str::to_owned));
    Ok(results)
}

fn convert(
    session: &Session<'_>,
    set: &FormatSet,
    path: TensorPath,
    turn: Turn,
    share: f64,
) -> Result<Measurement> {
    let (round, full) = (turn.round as u64, turn.warmup);
    let recipe = session.transform(Preset::None)?;
    let n = session.prepared.expected.len();
    let rows = rows_of(Access::Random, n, session.config, round);
    let opening = Stopwatch::start();
    let dataset = Dataset::from_store(session.open(set)?);
    let open_s = opening.elapsed();
    let mut context = ItemContext::new();
    let (mut array_s, mut conversion_s) = (Samples::new(), Samples::new());
    let (mut copied, mut verified) = (0usize, true);
    let whole = Stopwatch::start();
    for &row in &rows {
        if array_s.len() >= fewest(full) && whole.elapsed() > share {
            break;
        }
        let Converted { tensor, array, have_array_s, have_tensor_s } =
            tensor_of(path, |array| Ok(dataset.sample_into(row, &recipe, array, &mut context)?))?;
        array_s.push(have_array_s);
        conversion_s.push(have_tensor_s - have_array_s);
        copied += tensor.copied_bytes();
        let _verify = span(Kind::Verify).with(1, 0);
        verified &= session.expected.agrees(Preset::None, row, tensor.values(), full);
        drop((tensor, array));
    }
    let copied = copied as f64 / array_s.len().max(1) as f64;
    let full_turn_s = full_turn_s(full, [open_s, whole.elapsed()], array_s.len(), n);
    Ok(Measurement { verified, full_turn_s, ..measurement(&array_s, &conversion_s, copied) })
}

/// An image as a tensor, and when it was there.
struct Converted {
    tensor: TensorHandle,
    /// The array that the tensor is a copy of.
    array: Option<Vec<f32>>,
    /// From asking for the image to its array.
    have_array_s: f64,
    /// From asking for the image to its tensor.
    have_tensor_s: f64,
}

/// Makes a tensor of the image that `read` puts into a new array. The memory of both is taken inside the clock.
fn tensor_of(path: TensorPath, read: impl FnOnce(&mut Vec<f32>) -> Result<Shape>) -> Result<Converted> {
    let clock = Stopwatch::start();
    let mut array = Vec::new();
    let shape = read(&mut array)?;
    let have_array_s = clock.elapsed();
    let dims = [1, shape.t() * shape.c() * shape.z(), shape.y(), shape.x()];
    let converting = span(Kind::Convert).with(size_of_val(array.as_slice()) as u64, 0);
    let (tensor, array) = match path {
        TensorPath::Copy => (tensor_from_slice_copy(&array, dims)?, Some(array)),
        TensorPath::ZeroCopy => (tensor_from_vec(array, dims)?, None),
    };
    drop(converting);
    let have_tensor_s = clock.elapsed();
    Ok(Converted { tensor, array, have_array_s, have_tensor_s })
}

fn findings(table: &Table, judge: &Judge) -> Vec<Ranked> {
    ranked(40, tensor_path(table, judge)).into_iter().collect()
}

fn tensor_path(table: &Table, judge: &Judge) -> Option<Finding> {
    let is = |r: usize, path: TensorPath| table.cell("path", r) == path.into();
    let overhead =
        |path: TensorPath| by_median(series(table, &["path"], "conversion_overhead_pct", |r| is(r, path)));
    let (copy, free) = (overhead(TensorPath::Copy), overhead(TensorPath::ZeroCopy));
    let (worst, without) = (copy.first()?, free.first()?);
    let time = |path: TensorPath| {
        series(table, &["path"], "torch_p50_s", |r| {
            is(r, path) && table.str("format", r) == Some(worst.format.as_str())
        })
        .pop()
    };
    let ratio = judge.compare(&time(TensorPath::Copy)?, &time(TensorPath::ZeroCopy)?)?;
    let few = judge.median(&worst.values).is_none().then(|| judge.too_few(worst.values.len()));
    let severity = if few.is_some() {
        Severity::Caution
    } else if worst.median() < 10.0 {
        Severity::Good
    } else if worst.median() <= 30.0 {
        Severity::Info
    } else {
        Severity::Caution
    };
    let share = |s: &Series| {
        let percent = |v: f64| format!("{v:.1} %");
        format!("{}{}", percent(s.median()), judge.interval(&s.values, percent))
    };
    Some(Finding::new(
        severity,
        format!(
            "{}aking a tensor by copy in Rust takes up to {} of an image's time ({}), without a copy {}. In all the copying path takes {} as long{}",
            if severity == Severity::Good { "Conversion is not the bottleneck: m" } else { "M" },
            share(worst),
            worst.format,
            share(without),
            ratio.times(),
            ratio.no_verdict_reason()
        ),
        few.map_or_else(
            || format!("Conversion by copy is {}.", advice(worst.median())),
            |why| format!("No verdict: {why}."),
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::{Converted, advice, tensor_of};
    use crate::choices::TensorPath;
    use std::collections::BTreeSet;
    use std::time::Duration;
    use wellread_image::Shape;

    #[test]
    fn each_image_takes_new_memory_inside_the_clock() {
        for &path in TensorPath::ALL {
            let copies = path == TensorPath::Copy;
            let mut kept: Vec<Converted> = Vec::new();
            for image in 0..6 {
                let converted = tensor_of(path, |array| {
                    assert_eq!(array.capacity(), 0, "memory was taken before the clock started");
                    std::thread::sleep(Duration::from_millis(5));
                    array.extend((0..6).map(|i| (10 * image + i) as f32));
                    Ok(Shape([1, 1, 1, 2, 3]))
                });
                let converted = converted.unwrap();
                let expected: Vec<f32> = (0..6).map(|i| (10 * image + i) as f32).collect();
                assert_eq!(converted.tensor.values(), expected);
                assert_eq!(converted.tensor.copied_bytes(), if copies { 24 } else { 0 });
                assert!(converted.have_array_s > 0.004 && converted.have_tensor_s >= converted.have_array_s);
                kept.push(converted);
            }
            let tensors = kept.iter().map(|c| c.tensor.values().as_ptr());
            let arrays = kept.iter().filter_map(|c| c.array.as_ref().map(Vec::as_ptr));
            let places: BTreeSet<*const f32> = tensors.chain(arrays).collect();
            assert_eq!(places.len(), if copies { 12 } else { 6 }, "{path:?}");
        }
    }

    #[test]
    fn advice_has_upstreams_thresholds() {
        assert!(advice(9.9).contains("negligible"));
        assert!(advice(10.0).contains("acceptable"));
        assert!(advice(30.0).contains("acceptable"));
        assert!(advice(30.1).contains("significant"));
    }
}
