//! The parts that all sweeps share: the images written with a setting in every format, and the settings that
//! formats lack.

use crate::core::Session;
use crate::core::measurement::is_late;
use crate::data::{FormatSet, find_codecs, prepare_in_thread};
use anyhow::{Result, bail};
use wellread_report::{Cell, Finding, Severity, Table};
use wellread_store::{WriteOptions, registry};

/// The session's images in all its formats, written with `options` and kept in a folder of this name.
///
/// # Errors
/// The source cannot be read again, or gives other images now. A format that cannot be written so says why in
/// [`FormatSet::error`].
pub(super) fn prepare(session: &Session<'_>, name: &str, options: &WriteOptions) -> Result<Vec<FormatSet>> {
    let folder = session.prepared.folder.join("sweep").join(name);
    let sets = &session.prepared.sets;
    let formats: Vec<_> = sets.iter().filter_map(|set| registry::format_named(set.format).ok()).collect();
    let source = &session.config.source;
    let mut prepared = prepare_in_thread(&folder, source, &formats, options, session.watch.progress)?;
    let written = prepared.sets.iter().any(|set| set.error.is_none());
    if written && prepared.expected != session.prepared.expected {
        bail!("{}: the images differ from those prepared before; was the source changed?", folder.display());
    }
    for set in &mut prepared.sets {
        // The folder is this benchmark's own and says nothing; without it equal reasons are told once.
        let own = format!("{}: ", set.path.display());
        set.error = set.error.take().map(|e| e.strip_prefix(&own).unwrap_or(&e).to_owned());
    }
    find_codecs(&mut prepared.sets);
    // Formats that this build lacks come last in the session's sets too.
    prepared.sets.extend(sets[formats.len()..].iter().cloned());
    Ok(prepared.sets)
}

/// The finding on settings of a sweep that formats do not have, which are in `column`.
pub(super) fn lacking(table: &Table, column: &str, what: &str) -> Option<Finding> {
    let mut formats: Vec<(String, Vec<String>, String)> = Vec::new();
    let missing = registry::missing_formats();
    let is_lacking = |r: &usize| table.str("status", *r) == Some("unavailable") && !is_late(table, *r);
    for r in (0..table.rows()).filter(is_lacking) {
        let text = |column: &str| table.str(column, r).unwrap_or_default().to_owned();
        let (format, setting) = (text("format"), text(column));
        // A format that cannot be used here lacks everything; that is said once for all benchmarks.
        if missing.iter().any(|(name, _)| *name == format) {
            continue;
        }
        match formats.iter_mut().find(|f| f.0 == format) {
            Some((_, settings, _)) if settings.contains(&setting) => {}
            Some((_, settings, _)) => settings.push(setting),
            None => formats.push((format, vec![setting], text("reason"))),
        }
    }
    if formats.is_empty() {
        return None;
    }
    let names: Vec<_> = formats.iter().map(|f| format!("{} in {}", f.1.join(", "), f.0)).collect();
    let reasons: Vec<_> = formats.iter().map(|f| format!("{}: {}", f.0, f.2)).collect();
    let text = format!("{what} of the sweep that are not available: {}", names.join("; "));
    Some(Finding::new(Severity::Info, text, reasons.join("; ")))
}

/// Formats, each with settings of a sweep.
type ByFormat = Vec<(String, Vec<String>)>;

/// The settings that there was no time for.
#[derive(Debug, PartialEq)]
pub(super) struct OutOfTime {
    /// Those without a run.
    not_measured: ByFormat,
    /// Those with runs of some operations only.
    in_part: ByFormat,
}

impl OutOfTime {
    /// Those of a table, whose settings are in `column`.
    pub(super) fn of(table: &Table, column: &str) -> Self {
        let at = |r: usize| {
            let text = |column: &str| table.str(column, r).unwrap_or_default();
            (text("format"), text(column))
        };
        let mut found = Self { not_measured: vec![], in_part: vec![] };
        for late in (0..table.rows()).filter(|&r| is_late(table, r)) {
            let (format, setting) = at(late);
            let has_run =
                (0..table.rows()).any(|r| at(r) == (format, setting) && table.cell("run", r) != Cell::Null);
            let settings = if has_run { &mut found.in_part } else { &mut found.not_measured };
            match settings.iter_mut().find(|(known, _)| known == format) {
                Some((_, all)) if all.iter().any(|known| known == setting) => {}
                Some((_, all)) => all.push(setting.to_owned()),
                None => settings.push((format.to_owned(), vec![setting.to_owned()])),
            }
        }
        found
    }

    /// Those without a run, in words; `None` where every setting has one.
    pub(super) fn not_measured(&self) -> Option<String> {
        in_words(&self.not_measured)
    }

    /// The finding on them, where there are some.
    pub(super) fn finding(&self, what: &str) -> Option<Finding> {
        let (text, detail) = match (self.not_measured(), in_words(&self.in_part)) {
            (None, None) => return None,
            (Some(none), some) => (
                format!("{what} of the sweep that were not measured for want of time: {none}"),
                some.map_or(String::new(), |some| format!("Some operations were measured of {some}")),
            ),
            (None, Some(some)) => (
                format!("{what} of the sweep that were measured in part, for want of time: {some}"),
                String::new(),
            ),
        };
        Some(Finding::new(Severity::Info, text, detail))
    }
}

/// Settings by format; `None` where there are none.
fn in_words(settings: &[(String, Vec<String>)]) -> Option<String> {
    let each: Vec<_> =
        settings.iter().map(|(format, all)| format!("{} in {format}", all.join(", "))).collect();
    (!each.is_empty()).then(|| each.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::measurement::LEFT_OUT;
    use wellread_report::row;

    /// Runs of `none` in Parquet, and `lz4`, which TIFF does not have. In a short run, writing of `none` and all of `zstd:6` were left out.
    fn table(is_short: bool) -> Table {
        let mut table = Table::new("storage_compression");
        for run in 0..2 {
            table.push(row![
                ("format", "parquet"),
                ("compression", "none"),
                ("operation", "read_all"),
                ("run", run),
                ("status", "ok")
            ]);
        }
        let late = format!("{LEFT_OUT}: storage_compression had 1 s");
        for (format, codec, operation) in [
            ("parquet", "none", "write"),
            ("parquet", "zstd:6", "write"),
            ("parquet", "zstd:6", "read_all"),
            ("tiff", "zstd:6", "read_all"),
        ] {
            if is_short {
                table.push(row![
                    ("format", format),
                    ("compression", codec),
                    ("operation", operation),
                    ("status", "unavailable"),
                    ("reason", late.as_str())
                ]);
            }
        }
        table.push(row![
            ("format", "tiff"),
            ("compression", "lz4"),
            ("status", "unavailable"),
            ("reason", "TIFF has no lz4")
        ]);
        table
    }

    #[test]
    fn settings_that_there_was_no_time_for_are_none_that_formats_lack() {
        let short = table(true);
        let lacking = lacking(&short, "compression", "Codecs").unwrap();
        assert_eq!(lacking.text, "Codecs of the sweep that are not available: lz4 in tiff");
        assert_eq!(lacking.detail, "tiff: TIFF has no lz4");
        let late = OutOfTime::of(&short, "compression");
        assert_eq!(late.not_measured().as_deref(), Some("zstd:6 in parquet; zstd:6 in tiff"));
        let finding = late.finding("Codecs").unwrap();
        assert_eq!(
            finding.text,
            "Codecs of the sweep that were not measured for want of time: zstd:6 in parquet; zstd:6 in tiff"
        );
        assert_eq!(finding.detail, "Some operations were measured of none in parquet");
    }

    #[test]
    fn settings_that_were_measured_in_part_are_told_apart() {
        let late = OutOfTime {
            not_measured: vec![],
            in_part: vec![("parquet".to_owned(), vec!["none".to_owned(), "lz4".to_owned()])],
        };
        let finding = late.finding("Codecs").unwrap();
        let text = "Codecs of the sweep that were measured in part, for want of time: none, lz4 in parquet";
        assert_eq!((finding.text.as_str(), finding.detail.as_str()), (text, ""));
        let enough = OutOfTime::of(&table(false), "compression");
        assert_eq!(enough, OutOfTime { not_measured: vec![], in_part: vec![] });
        assert!(enough.finding("Codecs").is_none());
    }
}
