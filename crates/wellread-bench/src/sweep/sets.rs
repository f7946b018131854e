//! The parts that all sweeps share: the images written with a setting in every format, and the settings that
//! formats lack.

use crate::core::Session;
use crate::data::{FormatSet, find_codecs, prepare_in_thread};
use anyhow::{Result, bail};
use wellread_report::{Finding, Severity, Table};
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
    for r in (0..table.rows()).filter(|&r| table.str("status", r) == Some("unavailable")) {
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
