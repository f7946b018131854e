//! Read amplification beside each result: bytes read of files for each byte of pixels used, and a remark where no bytes
//! were counted.

use crate::core::series::in_python;
use wellread_loader::{Cache, Traffic};
use wellread_report::Table;

/// The column.
const COLUMN: &str = "bytes_read_per_used";

/// The amplification of some traffic as a value of a row; none where nothing was counted.
pub(crate) fn amplification(traffic: Traffic) -> Option<(&'static str, f64)> {
    traffic.amplification().map(|times| (COLUMN, times))
}

/// The same of what came to a loader's traffic between two looks at it: 0 where all was there from before, which is known of
/// those whose bytes were counted before.
pub(crate) fn amplification_since(before: Traffic, after: Traffic) -> Option<(&'static str, f64)> {
    let traffic = Traffic { read: after.read - before.read, used: after.used - before.used };
    let nothing = traffic.read == 0 && traffic.used > 0 && before.read > 0;
    if nothing { Some((COLUMN, 0.0)) } else { amplification(traffic) }
}

/// Formats that were measured without a cache and of which no bytes were counted in any row.
pub(crate) fn uncounted(table: &Table) -> Vec<String> {
    let mut formats: Vec<(&str, bool)> = Vec::new();
    for row in 0..table.rows() {
        let kept = table.str("cache", row).is_some_and(|cache| cache != Cache::None.name());
        let Some(format) = table.str("format", row) else { continue };
        if kept || in_python(table, row) || table.str("status", row) != Some("ok") {
            continue;
        }
        let counted = table.f64(COLUMN, row).is_some();
        match formats.iter_mut().find(|(known, _)| *known == format) {
            Some((_, any)) => *any |= counted,
            None => formats.push((format, counted)),
        }
    }
    let without = formats.into_iter().filter(|(_, counted)| !counted);
    without
        .map(|(format, _)| {
            format!(
                "{}: {format}: no bytes read of files were counted (pages kept from before, or read by the engine in \
                 threads of its own), so {COLUMN} is empty",
                table.name()
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::{Cell, row};

    #[test]
    fn formats_without_a_count_are_named_once() {
        let mut table = Table::new("dataset");
        for (format, cache, times) in [
            ("tiff", "none", Some(1.5)),
            ("tiff", "memory", None),
            ("duckdb", "none", None),
            ("duckdb", "none", None),
        ] {
            table.push(row![
                ("format", format),
                ("cache", cache),
                ("status", "ok"),
                ("bytes_read_per_used", times.map_or(Cell::Null, Cell::from))
            ]);
        }
        let notes = uncounted(&table);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("dataset: duckdb: no bytes"), "{notes:?}");
        assert_eq!(amplification(Traffic { read: 30, used: 20 }), Some(("bytes_read_per_used", 1.5)));
        assert_eq!(amplification(Traffic { read: 0, used: 20 }), None);
        let [before, after] = [0, 20].map(|more| Traffic { read: 30, used: 20 + more });
        assert_eq!(amplification_since(before, after), Some(("bytes_read_per_used", 0.0)));
        let engine = [0, 20].map(|used| Traffic { read: 0, used });
        assert_eq!(amplification_since(engine[0], engine[1]), None);
    }
}
