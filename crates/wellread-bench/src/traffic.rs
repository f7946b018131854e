//! Read amplification beside each result: bytes read of files for each byte of pixels used, and a remark where no bytes
//! were counted. For a set behind a network, it has requests, bytes received, and seconds waited for them.

use crate::core::series::in_python;
use wellread_loader::{Cache, LoaderStats, Traffic};
use wellread_report::Table;
use wellread_store::place::LinkUse;

/// The column.
const COLUMN: &str = "bytes_read_per_used";

/// The amplification of some traffic as a value of a row; none where nothing was counted.
pub(crate) fn amplification(traffic: Traffic) -> Option<(&'static str, f64)> {
    traffic.amplification().map(|times| (COLUMN, times))
}

/// The same of what came to a loader's traffic between two looks at it. It is 0 where all was there from before, which is
/// known of those whose bytes were counted before.
pub(crate) fn amplification_since(before: Traffic, after: Traffic) -> Option<(&'static str, f64)> {
    let traffic = Traffic { read: after.read - before.read, used: after.used - before.used };
    let nothing = traffic.read == 0 && traffic.used > 0 && before.read > 0;
    if nothing { Some((COLUMN, 0.0)) } else { amplification(traffic) }
}

/// The traffic over a link as values of a row, where there is one: requests, bytes received, seconds that threads
/// waited, and the read amplification. This one takes the place of that of the bytes that the format asked for.
pub(crate) fn over_link(link: Option<LinkUse>, used: u64) -> Vec<(&'static str, f64)> {
    let Some(LinkUse { requests, bytes, waited_s }) = link else { return vec![] };
    let mut values = vec![(LINK[0], requests as f64), (LINK[1], bytes as f64), (LINK[2], waited_s)];
    if used > 0 {
        values.push((COLUMN, bytes as f64 / used as f64));
    }
    values
}

/// Values of a row with some of them in the place of those of the same name.
pub(crate) fn put(values: &mut Vec<(&'static str, f64)>, newer: Vec<(&'static str, f64)>) {
    values.retain(|(name, _)| newer.iter().all(|(other, _)| other != name));
    values.extend(newer);
}

/// The growth of a loader's sums between two looks at them.
pub(crate) fn since(before: LoaderStats, after: LoaderStats) -> Vec<(&'static str, f64)> {
    let mut values = Vec::from_iter(amplification_since(before.traffic, after.traffic));
    let link = after.link.map(|link| link.since(before.link.unwrap_or_default()));
    put(&mut values, over_link(link, after.traffic.used - before.traffic.used));
    values
}

/// Makes what went over a link in so many epochs that of one.
pub(crate) fn per_epoch(values: &mut [(&'static str, f64)], epochs: f64) {
    values.iter_mut().filter(|(name, _)| LINK.contains(name)).for_each(|(_, value)| *value /= epochs);
}

/// The columns of what went over a link, in the order of [`LinkUse`].
const LINK: [&str; 3] = ["requests", "link_bytes", "link_wait_s"];

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
                "{}: {format}: no bytes read of files were counted, so {COLUMN} is empty. Pages were kept from before, or \
                 the engine read them in threads of its own",
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

    #[test]
    fn bytes_over_a_link_take_the_place_of_those_of_files() {
        let stats = |requests, bytes, read, used| LoaderStats {
            traffic: Traffic { read, used },
            link: Some(LinkUse { requests, bytes, waited_s: 0.5 }),
        };
        let values = since(stats(2, 100, 10, 10), stats(6, 500, 30, 110));
        let expected =
            [("requests", 4.0), ("link_bytes", 400.0), ("link_wait_s", 0.0), ("bytes_read_per_used", 4.0)];
        assert_eq!(values, expected);
        let mut both = values.clone();
        per_epoch(&mut both, 2.0);
        assert_eq!(both[..2], [("requests", 2.0), ("link_bytes", 200.0)]);
        assert_eq!(both[3], values[3]);
        let local = LoaderStats { traffic: Traffic { read: 30, used: 20 }, link: None };
        assert_eq!(since(LoaderStats::default(), local), [("bytes_read_per_used", 1.5)]);
    }
}
