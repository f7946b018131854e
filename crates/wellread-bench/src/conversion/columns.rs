//! Columns of the table of conversion, from both clocks of each image.

use crate::core::variants::Measurement;
use wellread_measure::samples::Samples;

/// Upstream's advice for the share of conversion in the total, in percent.
pub fn advice(overhead_pct: f64) -> &'static str {
    if overhead_pct < 10.0 {
        "negligible: look at reading instead"
    } else if overhead_pct <= 30.0 {
        "measurable but acceptable"
    } else {
        "significant: use the path without copy"
    }
}

/// Both clocks of each image, in the columns of the table; `copied` is in bytes per image.
pub(super) fn measurement(array_s: &Samples, conversion_s: &Samples, copied: f64) -> Measurement {
    let both = array_s.values().iter().zip(conversion_s.values());
    let total_s: Samples = both.map(|(array, conversion)| array + conversion).collect();
    let mut values = vec![("copied_bytes", copied)];
    for (names, samples) in [
        (["numpy_mean_s", "numpy_p50_s", "numpy_p95_s", "numpy_p99_s"], array_s),
        (["conversion_mean_s", "conversion_p50_s", "conversion_p95_s", "conversion_p99_s"], conversion_s),
    ] {
        if let Some(s) = samples.summary() {
            let enough = |percentile: Option<f64>| percentile.unwrap_or(f64::NAN);
            values.extend(names.into_iter().zip([s.mean, s.p50, enough(s.p95), enough(s.p99)]));
        }
    }
    let overhead = 100.0 * conversion_s.total() / total_s.total();
    values.push(("conversion_overhead_pct", overhead));
    values.push(("numpy_samples_per_sec", array_s.len() as f64 / array_s.total()));
    values.push(("torch_samples_per_sec", total_s.len() as f64 / total_s.total()));
    let items = total_s.values().to_vec();
    Measurement {
        values,
        texts: vec![("advice", advice(overhead).to_owned())],
        items,
        ..Measurement::default()
    }
}
