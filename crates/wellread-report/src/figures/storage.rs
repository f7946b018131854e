//! Storage: reading with warm and cold page cache, then writing and size.

use super::panel::{bars, rows_section};
use super::select::{facet, has, series, sorted};
use super::spec::Spec;
use crate::chart::{Panel, Scale, Section};
use crate::columns::key_text;
use crate::table::{Cell, Table};

/// The figure's registration.
pub(super) static SPEC: Spec = Spec {
    table: "storage",
    heading: "Storage",
    title: "Storage: speed of writing and reading, and size, by format",
    how_to_read: "Each row is a format. Reading and writing: the further right, the more images per second. Full marks \
        are read from the page cache (warm), pale ones from the disk (cold). Opening and size: the further \
        left, the better. Reading the files' bytes is what reading images costs at least. On a logarithmic axis every labelled step is a multiple, so a small distance can be \
        a large difference.",
    sections,
};

const READS: [(&str, &str); 4] = [
    ("read_all", "read all, in order"),
    ("read_random", "read in random order"),
    ("open", "open"),
    (FILES, "images whose bytes are read"),
];
/// The operation that decodes nothing.
const FILES: &str = "read_files";

fn sections(table: &Table) -> Vec<Section> {
    let series = series(table);
    let mut cache = facet(table, "cache", &["warm", "cold", "direct"]);
    let files = Cell::from(FILES);
    let of_files = cache.clone();
    // Images are never read past the page cache.
    cache.retain(|(_, state)| state.text() != "direct");
    let cache_names: Vec<_> = cache.iter().map(|c| named(&c.1)).collect();
    let operations = sorted(table, "operation", &["write", "read_all", "read_random", "open"]);
    let asked = |name: &str| operations.iter().find(|o| o.text() == name);
    let title = |operation: &Cell| {
        let known = READS.iter().find(|r| operation.text() == r.0).map(|r| r.1.to_owned());
        known.unwrap_or_else(|| key_text(operation))
    };
    let panel = |operation: &Cell, variants: &[(&'static str, Cell)]| -> Panel {
        // Opening has no throughput: the time counts.
        let opening = operation.text() == "open" || !has(table, "images_per_s");
        let column = if opening { "seconds" } else { "images_per_s" };
        bars(table, title(operation), column, &series, variants, &[("operation", operation.clone())])
    };
    let images = |o: &&Cell| !["write", FILES].contains(&o.text().as_str());
    let reads = operations.iter().filter(images).map(|o| panel(o, &cache)).collect();
    let one = [("cache", Cell::Null)];
    let mut others: Vec<_> = asked("write").map(|o| panel(o, &one)).into_iter().collect();
    for (column, title) in [("bits_per_pixel", "size per pixel"), ("bytes_on_disk", "size on disk")] {
        if has(table, column) {
            let mut panel = bars(table, title.into(), column, &series, &one, &[]);
            panel.axis.scale = Scale::Linear;
            others.push(panel);
        }
    }
    let mut sections = vec![
        rows_section("Reading", &series, &cache_names, reads, 3),
        rows_section("Writing and size", &series, &[String::new()], others, 3),
    ];
    if operations.contains(&files) {
        let names: Vec<_> = of_files.iter().map(|c| named(&c.1)).collect();
        let bytes = vec![panel(&files, &of_files)];
        sections.push(rows_section("Reading the files' bytes, nothing decoded", &series, &names, bytes, 1));
    }
    sections
}

/// A page cache state in words; empty when the table has none.
fn named(cache: &Cell) -> String {
    match cache.text().as_str() {
        "" => String::new(),
        "direct" => "past the page cache".to_owned(),
        state => format!("{state} page cache"),
    }
}
