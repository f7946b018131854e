//! The sentences that a report shows at once are short, whatever was measured.

use super::*;
use crate::core::words::words_of_longest_sentence;
use wellread_report::{Topic, row};

/// Loaders of two formats with codecs, the first of which is so many times as fast, with limits beside them.
fn loaders(runs: usize, factor: f64, limit: f64) -> Table {
    let of = |format: &str, codec: &str, workers: i64, rate: f64| {
        let what = row![
            ("format", format),
            ("codec", codec),
            ("batch_size", 16),
            ("workers", workers),
            ("epoch_s", 1.0),
            ("bound_by", "reading and decoding"),
            ("limit_kernel_per_s", 1e6),
            ("limit_read_per_s", limit)
        ];
        (what, (0..runs).map(|run| rate * (1.0 + 0.01 * run as f64)).collect::<Vec<_>>())
    };
    loader_table([
        of("ome-arrow-dataset", "zstd", 0, 1000.0),
        of("ome-arrow-dataset", "zstd", 2, 1000.0 * factor),
        of("parquet-duckdb", "lzw+predictor", 0, 1000.0),
        of("parquet-duckdb", "lzw+predictor", 2, 1001.0),
    ])
}

/// A model loop of 12 steps, each of which waits this share of its time.
fn steps(runs: usize, share: f64, ahead: i64) -> Table {
    let what = row![("format", "ome-arrow-dataset"), ("model", "linear-probe"), ("images_per_sec", 1000.0)];
    loop_table(&what, runs, share, ahead)
}

#[test]
fn what_a_report_shows_at_once_is_short() {
    let mut topics = Vec::new();
    for runs in [1, 7] {
        for (factor, limit) in [(1.0, 5000.0), (2.0, 2500.0), (2.0, 1500.0)] {
            let loaders = loaders(runs, factor, limit);
            let mut sets = vec![vec![loaders.clone()]];
            for (share, ahead) in [(0.01, 4), (0.2998, 4), (0.7, 4), (0.01, 12)] {
                sets.push(vec![loaders.clone(), steps(runs, share, ahead)]);
            }
            for floor in [0.01, 0.5] {
                let noise = BTreeMap::from(["dataloader", "loop"].map(|name| (name.to_owned(), floor)));
                for repeats in [Repeats::rounds(1), Repeats::processes(7)] {
                    let found = sets.iter().flat_map(|tables| all(tables, &noise, 1, repeats));
                    for finding in found.filter(|finding| finding.topic != Topic::Other) {
                        let words = words_of_longest_sentence(&finding.text);
                        assert!(words <= 25, "{words} words: {}", finding.text);
                        if !topics.contains(&finding.topic) {
                            topics.push(finding.topic);
                        }
                    }
                }
            }
        }
    }
    assert_eq!(topics.len(), 3, "{topics:?}");
}
