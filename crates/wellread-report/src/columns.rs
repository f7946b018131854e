//! The meaning of the columns of the result tables: those that name a configuration, those that are measured,
//! and their units. Columns that are not listed are understood by their endings (`_s`, `_per_s`, `_bytes` …).
//! So a new benchmark's table is shown with units without a change here.

use crate::number::{self, Unit};
use crate::table::{Cell, Estimate, Group, IntervalKind, Table, Values};
use serde_json::{Map, Value, json};

/// Columns that tell configurations apart, in the order they are shown.
const KEYS: &[&str] = &[
    "experiment",
    "branch",
    "baseline",
    "phase",
    "verdict",
    "format",
    "framework",
    "loader",
    "model",
    "mode",
    "operation",
    "path",
    "access",
    "transform",
    "cache",
    "compressed_by",
    "compression",
    "layout",
    "batch_size",
    "crops",
    "workers",
    "threads",
    "prefetch",
    "device",
    "dtype",
    "input_shape",
    "backend",
    "epoch",
];

/// Columns that are neither configuration nor quantity.
const NOTES: &[&str] = &[
    "run",
    "process",
    "runs",
    "repeat",
    "seed",
    "timestamp",
    "verified",
    "status",
    "reason",
    "codec",
    "advice",
    "utilisation_mark",
    "cut",
    "bound_by",
    "note",
    "copied",
    "checksum",
    "git_commit",
    "device_type",
    "num_samples",
    "steps",
    "batches_ahead",
    "node",
    "node_cpu",
    "node_cores",
    "node_memory_mb",
    "node_gpus",
];

/// How the reason begins of a configuration that was not measured because there was no time for it.
pub const LEFT_OUT: &str = "left out for want of time";

/// Tables that are computed from others of the same folder, for people to read.
const DERIVED: [&str; 2] = ["tasks_summary", "tasks_compared"];

/// Whether a table is computed from others of the same folder: it says nothing that they do not.
pub fn is_derived(table: &str) -> bool {
    DERIVED.contains(&table)
}

/// Whether more of a quantity is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Times, sizes, waiting.
    Lower,
    /// Rates, efficiency.
    Higher,
    /// Neither: a loss, a count.
    Neither,
}

/// A measured quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// Column name.
    pub column: String,
    /// How it is called in figures and tables: "p50 latency".
    pub label: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
}

/// Names that their endings do not explain: column, label, unit, better.
#[rustfmt::skip]
const NAMED_QUANTITIES: &[(&str, &str, Unit, Better)] = &[
    ("seconds", "time", Unit::Seconds, Better::Lower),
    ("images_per_s", "throughput", Unit::PerSecond("images"), Better::Higher),
    ("images_per_sec", "throughput", Unit::PerSecond("images"), Better::Higher),
    ("samples_per_sec", "throughput", Unit::PerSecond("images"), Better::Higher),
    ("throughput_ips", "throughput of a round", Unit::PerSecond("images"), Better::Higher),
    ("numpy_p50_s", "pixels to array, p50", Unit::Seconds, Better::Lower),
    ("conversion_p50_s", "array to tensor, p50", Unit::Seconds, Better::Lower),
    ("torch_p50_s", "both, p50", Unit::Seconds, Better::Lower),
    ("bits_per_pixel", "size", Unit::Plain("bits/pixel"), Better::Lower),
    ("bytes_on_disk", "size on disk", Unit::Bytes, Better::Lower),
    ("copied_bytes", "bytes copied per image", Unit::Bytes, Better::Lower),
    ("compression_ratio", "compression ratio", Unit::Plain("×"), Better::Higher),
    ("reads_per_s", "throughput", Unit::PerSecond("reads"), Better::Higher),
    ("readers", "threads that read", Unit::Plain(""), Better::Neither),
    ("used_bytes", "bytes asked for", Unit::Bytes, Better::Neither),
    ("chunk_bytes", "bytes of chunks touched, by the chunk grid", Unit::Bytes, Better::Lower),
    ("read_amplification", "read amplification of the chunk grid", Unit::Plain("×"), Better::Lower),
    ("open_s", "time to open", Unit::Seconds, Better::Lower),
    ("first_step_s", "first step of the model, compiling included", Unit::Seconds, Better::Lower),
    ("first_batch_s", "time to first batch", Unit::Seconds, Better::Lower),
    ("first_epoch_images_per_s", "first epoch, opening included", Unit::PerSecond("images"), Better::Higher),
    ("epoch_s", "time of an epoch", Unit::Seconds, Better::Lower),
    ("bytes_read_per_used", "read amplification", Unit::Plain("×"), Better::Lower),
    ("requests", "requests over the link", Unit::Plain(""), Better::Lower),
    ("link_bytes", "bytes received over the link", Unit::Bytes, Better::Lower),
    ("link_wait_s", "waiting for the link, all threads", Unit::Seconds, Better::Lower),
    ("share_of_limit", "share of what binds", Unit::Fraction, Better::Neither),
    ("limit_kernel_per_s", "limit: widening and scaling", Unit::PerSecond("images"), Better::Neither),
    ("limit_read_per_s", "limit: reading and decoding alone", Unit::PerSecond("images"), Better::Neither),
    ("limit_link_per_s", "limit: link", Unit::PerSecond("images"), Better::Neither),
    ("limit_codec_per_s", "limit: bare codec", Unit::PerSecond("images"), Better::Neither),
    ("limit_disk_per_s", "limit: disk", Unit::PerSecond("images"), Better::Neither),
    ("cache_bytes", "bytes in the cache", Unit::Bytes, Better::Neither),
    ("cache_images", "images in the cache", Unit::Plain(""), Better::Neither),
    ("cache_hits", "requests served by the cache in an epoch", Unit::Plain(""), Better::Neither),
    ("cache_misses", "images read past the cache in an epoch", Unit::Plain(""), Better::Neither),
    ("scaling_efficiency", "scaling efficiency", Unit::Fraction, Better::Higher),
    ("data_wait_fraction", "share of a step waiting for data", Unit::Fraction, Better::Lower),
    ("accelerator_utilisation", "accelerator utilisation", Unit::Fraction, Better::Higher),
    ("wait_by_difference_fraction", "share of a step waiting, by difference", Unit::Fraction, Better::Lower),
    ("wait_by_difference_cached_fraction", "the same, images in memory", Unit::Fraction, Better::Lower),
    ("wait_by_difference_cold_fraction", "the same, cold files", Unit::Fraction, Better::Lower),
    ("synthetic_step_s", "step with full batches", Unit::Seconds, Better::Lower),
    ("cached_step_s", "step with images in memory", Unit::Seconds, Better::Lower),
    ("cold_step_s", "step with cold files", Unit::Seconds, Better::Lower),
    ("share_of_copy", "share of memory copy", Unit::Fraction, Better::Higher),
    ("share_of_device_copy", "share of host-to-device copy", Unit::Fraction, Better::Higher),
    ("conversion_overhead_pct", "conversion, share of total", Unit::Percent, Better::Lower),
    ("peak_rss_mb", "peak memory of the process", Unit::Plain("MB"), Better::Lower),
    ("peak_growth_mb", "peak memory added", Unit::Plain("MB"), Better::Lower),
    ("latency_p50_s", "time of a pass, median", Unit::Seconds, Better::Lower),
    ("compilation_s", "time to compile", Unit::Seconds, Better::Lower),
    ("end_to_end_ips", "throughput, loading included", Unit::PerSecond("images"), Better::Higher),
    ("max_difference", "largest difference of outputs", Unit::Plain(""), Better::Lower),
    ("train_loss", "training loss", Unit::Plain(""), Better::Lower),
    ("val_loss", "validation loss", Unit::Plain(""), Better::Lower),
    ("val_dice", "validation Dice", Unit::Plain(""), Better::Higher),
    ("val_pearson", "validation correlation", Unit::Plain(""), Better::Higher),
    ("baseline_seconds", "time of the baseline", Unit::Seconds, Better::Neither),
    ("ratio", "ratio to the baseline", Unit::Plain("×"), Better::Lower),
    ("p_value", "p, corrected", Unit::Plain(""), Better::Neither),
    ("baseline_runs", "runs of the baseline", Unit::Plain(""), Better::Neither),
    ("peak_memory_mb", "peak memory", Unit::Plain("MB"), Better::Lower),
    ("peak_gpu_memory_mb", "peak GPU memory", Unit::Plain("MB"), Better::Lower),
    ("memory_mb", "memory", Unit::Plain("MB"), Better::Lower),
    ("mixing", "blocks per 16 images, relative to a shuffle", Unit::Fraction, Better::Higher),
    ("rank_correlation", "correlation of position and row", Unit::Plain(""), Better::Neither),
    ("jump", "way to the next image, share of the set", Unit::Fraction, Better::Lower),
    ("loss", "loss", Unit::Plain(""), Better::Neither),
];

/// How a column of measurements is called and in which unit.
pub fn quantity(column: &str) -> Quantity {
    if let Some(&(_, label, unit, better)) = NAMED_QUANTITIES.iter().find(|k| k.0 == column) {
        return Quantity { column: column.into(), label: label.into(), unit, better };
    }
    #[rustfmt::skip]
    let endings: [(&str, Unit, Better); 10] = [
        ("images_per_sec", Unit::PerSecond("images"), Better::Higher),
        ("samples_per_sec", Unit::PerSecond("images"), Better::Higher),
        ("_per_sec", Unit::PerSecond(""), Better::Higher),
        ("_per_s", Unit::PerSecond(""), Better::Higher),
        ("_s", Unit::Seconds, Better::Lower),
        ("_ms", Unit::Plain("ms"), Better::Lower),
        ("_bytes", Unit::Bytes, Better::Lower),
        ("_mb", Unit::Plain("MB"), Better::Lower),
        ("_fraction", Unit::Fraction, Better::Neither),
        ("_pct", Unit::Percent, Better::Neither),
    ];
    let (stem, unit, better) = endings
        .iter()
        .find_map(|&(end, unit, better)| Some((column.strip_suffix(end)?, unit, better)))
        .unwrap_or((column, Unit::Plain(""), Better::Neither));
    let words = stem.trim_matches('_').replace('_', " ");
    let label = match unit {
        Unit::PerSecond(_) if words.is_empty() => "throughput".to_owned(),
        Unit::PerSecond(_) => format!("{words} throughput"),
        _ => words,
    };
    Quantity { column: column.into(), label, unit, better }
}

/// The columns that tell the configurations of a table apart and have values: the known ones in their order,
/// then any other text column.
pub fn keys(table: &Table) -> Vec<&str> {
    let used = |name: &str| table.column(name).is_some_and(|c| !c.is_empty());
    let mut keys: Vec<&str> = KEYS.iter().copied().filter(|k| used(k)).collect();
    for column in table.columns() {
        let name = column.name();
        let text = matches!(column.values(), Values::Str(_) | Values::Bool(_));
        if text && used(name) && !KEYS.contains(&name) && !NOTES.contains(&name) {
            keys.push(name);
        }
    }
    keys
}

/// The measured columns of a table that have values, in their order.
pub fn quantities(table: &Table) -> Vec<Quantity> {
    let measured = table.columns().iter().filter(|c| {
        let name = c.name();
        matches!(c.values(), Values::F64(_) | Values::I64(_))
            && !c.is_empty()
            && !KEYS.contains(&name)
            && !NOTES.contains(&name)
            && !name.ends_with("_ci_low")
            && !name.ends_with("_ci_high")
    });
    measured.map(|c| quantity(c.name())).collect()
}

/// One configuration of a table with its estimates.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Values of the key columns, and the rows.
    pub group: Group,
    /// One per quantity; `None` where nothing was measured.
    pub estimates: Vec<Option<Estimate>>,
    /// Why it could not be measured.
    pub unavailable: Option<String>,
    /// Whether a run delivered pixels that were not the expected ones.
    pub unverified: bool,
}

/// Every configuration of a table with its estimates of `quantities`.
pub fn configurations(table: &Table, keys: &[&str], quantities: &[Quantity]) -> Vec<Configuration> {
    let configurations = table.groups(keys).into_iter().map(|group| Configuration {
        estimates: quantities.iter().map(|q| table.estimate(&q.column, &group.rows)).collect(),
        unavailable: group.rows.iter().find_map(|&r| table.unavailable(r)),
        unverified: group.rows.iter().any(|&r| table.cell("verified", r) == Cell::Bool(false)),
        group,
    });
    configurations.collect()
}

/// All configurations of a table as JSON: keys, and per quantity `{value, low, high, interval, n}`.
pub fn aggregates(table: &Table) -> Value {
    let keys = keys(table);
    let quantities = quantities(table);
    let records = configurations(table, &keys, &quantities).into_iter().map(|c| {
        let mut record: Map<_, _> =
            keys.iter().zip(&c.group.key).map(|(k, v)| ((*k).to_owned(), v.json())).collect();
        for (quantity, estimate) in quantities.iter().zip(&c.estimates) {
            let Some(e) = estimate else { continue };
            let interval = match e.interval {
                IntervalKind::None => "none",
                IntervalKind::Range => "range",
                IntervalKind::Confidence => "ci95",
            };
            let value =
                json!({"value": e.value, "low": e.low, "high": e.high, "interval": interval, "n": e.n});
            record.insert(quantity.column.clone(), value);
        }
        if let Some(reason) = c.unavailable {
            record.insert("unavailable".to_owned(), reason.into());
        }
        if c.unverified {
            record.insert("verified".to_owned(), false.into());
        }
        Value::Object(record)
    });
    records.collect()
}

/// A key's value as people read it; names keep their spelling, because it is what the command line takes.
pub fn key_text(cell: &Cell) -> String {
    match cell {
        Cell::I64(v) => number::count(*v),
        Cell::F64(v) => number::significant(*v),
        Cell::Null => "–".to_owned(),
        other => other.text(),
    }
}

/// A key's value in the name of a configuration. The name of its column is before one that tells nothing by itself:
/// `workers 2`, `cache none`.
pub fn labelled(column: &str, value: &str, is_number: bool) -> String {
    let tells = !is_number && !matches!(value, "none" | "true" | "false");
    if tells { value.to_owned() } else { format!("{} {value}", column.replace('_', " ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;

    #[test]
    fn endings_explain_new_columns() {
        assert_eq!(quantity("decode_p50_s").unit, Unit::Seconds);
        assert_eq!(quantity("decode_p50_s").label, "decode p50");
        assert_eq!(quantity("torch_samples_per_sec").unit, Unit::PerSecond("images"));
        assert_eq!(quantity("torch_samples_per_sec").label, "torch throughput");
        assert_eq!(quantity("weird").unit, Unit::Plain(""));
    }

    /// A row that was not measured has none, and is the same configuration all the same.
    #[test]
    fn threads_that_read_are_measured_and_tell_no_configurations_apart() {
        let mut t = Table::new("dataloader");
        t.push(row![("format", "tiff"), ("workers", 1), ("readers", 2.0), ("samples_per_sec", 9.0)]);
        t.push(row![("format", "tiff"), ("workers", 1), ("status", "unavailable"), ("reason", "no time")]);
        assert_eq!(keys(&t), ["format", "workers"]);
        assert_eq!(t.groups(&keys(&t)).len(), 1);
        assert_eq!(quantity("readers").better, Better::Neither);
    }

    #[test]
    fn keys_and_quantities_are_told_apart() {
        let mut t = Table::new("x");
        t.push(row![
            ("run", 0),
            ("batch_size", 4),
            ("format", "tiff"),
            ("p50_s", 0.1),
            ("p50_s_ci_low", 0.05),
            ("p50_s_ci_high", 0.2),
            ("colour", "red"),
            ("verified", false),
            ("workers", None::<i64>)
        ]);
        t.push(row![
            ("batch_size", 4),
            ("format", "vortex"),
            ("status", "unavailable"),
            ("reason", "no"),
            ("colour", "red")
        ]);
        assert_eq!(keys(&t), ["format", "batch_size", "colour"]);
        assert_eq!(quantities(&t).len(), 1);
        let a = aggregates(&t);
        assert_eq!(a[0]["p50_s"]["low"], 0.05);
        assert_eq!(a[0]["verified"], false);
        assert_eq!(a[1]["unavailable"], "unavailable: no");
    }
}
