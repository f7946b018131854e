//! Which configurations are left out first.

use super::*;
use wellread_report::Cell;

fn keys(format: &str, operation: &str, cache: &str) -> (Keys, bool) {
    let cells = [("format", format), ("operation", operation), ("cache", cache)];
    (cells.map(|(name, text)| (name, Cell::from(text))).to_vec(), false)
}

#[test]
fn of_every_format_reading_is_the_last_to_be_left_out_and_cold_files_the_first() {
    let of = |format: &str| {
        [
            keys(format, "write", ""),
            keys(format, "open", "warm"),
            keys(format, "open", "cold"),
            keys(format, "read_all", "warm"),
            keys(format, "read_all", "cold"),
            keys(format, "read_random", "warm"),
            keys(format, "read_files", "direct"),
        ]
    };
    let all: Vec<_> = of("tiff").into_iter().chain(of("parquet")).collect();
    let one = [2, 3, 5, 0, 4, 1, 6];
    assert_eq!(ranks(&all)[..7], one);
    assert_eq!(ranks(&all)[7..], one, "formats are alike");
}

#[test]
fn configurations_without_operations_rank_in_their_order() {
    let key = |format: &str, workers: i64| -> (Keys, bool) {
        (vec![("format", Cell::from(format)), ("workers", Cell::from(workers))], false)
    };
    assert_eq!(ranks(&[key("a", 0), key("a", 2), key("b", 0), key("a", 4), key("b", 2)]), [0, 1, 0, 2, 1]);
}
