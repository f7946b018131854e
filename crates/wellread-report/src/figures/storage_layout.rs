//! The layout sweep: reading volumes, planes and boxes by how volumes are cut into chunks.

use super::panel::{self, bars, mark, rows_section};
use super::select::{facet, has, series, sorted};
use super::spec::Spec;
use crate::chart::{Mark, Panel, Scale, Section, Series};
use crate::columns::key_text;
use crate::table::{Cell, Table};

/// The figure's registration.
pub(super) static SPEC: Spec = Spec {
    table: "storage_layout",
    heading: "Storage: chunk layouts of volumes",
    title: "Chunk layouts: speed of reading parts of a volume",
    how_to_read: "Each row is a format, each mark in it a way to cut volumes into chunks. The ways are a chunk per plane \
                  (z-plane), boxes of 16 × 128 × 128 pixels (block), or one chunk (volume). The further right, \
                  the more volumes, planes or boxes of 16 × 64 × 64 pixels are read per second. Below: bytes of \
                  the chunks that a read touches, per byte that was asked for. They follow from the chunk grid \
                  alone; a format that reads whole rows reads more.",
    sections,
};

const LAYOUTS: [&str; 3] = ["z-plane", "block", "volume"];
const OPERATIONS: [(&str, &str); 3] =
    [("read_volume", "whole volume"), ("read_plane", "one plane"), ("read_sub_volume", "one box of it")];

fn sections(table: &Table) -> Vec<Section> {
    let series = series(table);
    let layouts = facet(table, "layout", &LAYOUTS);
    let names: Vec<_> = layouts.iter().map(|l| layout_name(&l.1)).collect();
    let order: Vec<_> = OPERATIONS.iter().map(|o| o.0).collect();
    let operations = sorted(table, "operation", &order);
    let title = |operation: &Cell| {
        let known = OPERATIONS.iter().find(|o| operation.text() == o.0).map(|o| o.1.to_owned());
        known.unwrap_or_else(|| key_text(operation))
    };
    let column = if has(table, "reads_per_s") { "reads_per_s" } else { "seconds" };
    let speed = operations
        .iter()
        .map(|o| bars(table, title(o), column, &series, &layouts, &[("operation", o.clone())]))
        .collect();
    // The grid is the same in every format.
    let grids: Vec<_> = layouts.iter().map(|l| (Series::from(layout_name(&l.1)), vec![l.clone()])).collect();
    let amplified = operations.iter().filter(|_| has(table, "read_amplification")).map(|operation| {
        let marks = grids.iter().map(|(_, layout)| {
            let which: Vec<_> = layout.iter().cloned().chain([("operation", operation.clone())]).collect();
            // No format's reason speaks for the grid.
            match mark(table, &which, "read_amplification") {
                Mark::Unavailable(_) => Mark::Nothing,
                known => known,
            }
        });
        let mut axis = panel::axis("read_amplification");
        "touched per byte asked for, less is better".clone_into(&mut axis.title);
        Panel { title: title(operation), axis, marks: marks.collect() }
    });
    let mut size = Vec::new();
    if has(table, "bits_per_pixel") {
        let mut panel = bars(table, "size per pixel".into(), "bits_per_pixel", &series, &layouts, &[]);
        panel.axis.scale = Scale::Linear;
        size.push(panel);
    }
    vec![
        rows_section("Reading", &series, &names, speed, 3),
        rows_section(
            "Bytes of the chunks touched, by the chunk grid",
            &grids,
            &[String::new()],
            amplified.collect(),
            3,
        ),
        rows_section("Size on disk", &series, &names, size, 1),
    ]
}

/// A layout in words; empty when the table has none.
fn layout_name(layout: &Cell) -> String {
    if *layout == Cell::Null { String::new() } else { format!("{} chunks", layout.text()) }
}
