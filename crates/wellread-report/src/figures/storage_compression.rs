//! The compression sweep: size against speed, then both by codec.

use super::panel::{axis, mark};
use super::select::{facet, formats, has, rows, sorted};
use super::spec::Spec;
use crate::chart::{Layout, Panel, Scale, Section, Series};
use crate::columns::key_text;
use crate::table::{Cell, Table};

/// The figure's registration.
pub(super) static SPEC: Spec = Spec {
    table: "storage_compression",
    heading: "Storage: compression",
    title: "Compression: size and speed by codec",
    how_to_read: "In the upper panels each line is a format and each of its points a codec. Further left is \
                  smaller on disk, further up is faster, so the best corner is the upper left one. The name in \
                  brackets says where the format puts its codec: in each chunk's payload, around the container's \
                  column, or around a file. Below are the same figures by codec, and under them the codecs that \
                  a format lacks.",
    sections,
};

/// Codecs in the order of the lines; others follow as they come.
const CODECS: [&str; 6] = ["none", "lz4", "blosc-lz4", "zstd:1", "zstd:3", "zstd:6"];
const OPERATIONS: [(&str, &str); 3] =
    [("read_random", "read in random order"), ("read_all", "read all, in order"), ("write", "write")];

fn sections(table: &Table) -> Vec<Section> {
    let formats = formats(table);
    let codecs = facet(table, "compression", &CODECS);
    let rates = if has(table, "images_per_s") { "images_per_s" } else { "seconds" };
    let asked = sorted(table, "operation", &[]);
    let operations: Vec<_> =
        OPERATIONS.iter().filter(|o| asked.iter().any(|a| a.text() == o.0)).copied().collect();
    let marks = |column: &str, operation: Option<&str>| {
        let operation = ("operation", operation.map_or(Cell::Null, Cell::from));
        let of = |(format, codec): (&Cell, &(&'static str, Cell))| {
            mark(table, &[("format", format.clone()), codec.clone(), operation.clone()], column)
        };
        formats.iter().flat_map(|(_, f)| codecs.iter().map(move |c| (f, c))).map(of).collect::<Vec<_>>()
    };
    let panel = |title: &str, column: &str, operation: Option<&str>| Panel {
        title: title.to_owned(),
        axis: axis(column),
        marks: marks(column, operation),
    };
    let points: Vec<String> = codecs.iter().map(|c| key_text(&c.1)).collect();
    let xs = formats.iter().flat_map(|(_, f)| codecs.iter().map(move |c| (f, c))).map(|(format, codec)| {
        let which = [("format", format.clone()), codec.clone()];
        table.estimate("bits_per_pixel", &rows(table, &which)).map(|e| e.value)
    });
    let place = |format: &Cell| {
        let of = rows(table, &[("format", format.clone())]);
        of.into_iter().find_map(|r| table.str("compressed_by", r)).map(str::to_owned)
    };
    let named = formats.iter().map(|(series, format)| match place(format) {
        Some(place) => Series { name: format!("{} ({place})", series.name), slot: series.slot },
        None => series.clone(),
    });
    let trade = operations.iter().filter(|o| o.0 != "read_all" && has(table, "bits_per_pixel"));
    let trade = Section {
        title: "Size against speed: a point per codec".to_owned(),
        panels: trade.map(|(name, title)| panel(title, rates, Some(*name))).collect(),
        layout: Layout::Scatter {
            series: named.collect(),
            points: points.clone(),
            xs: xs.collect(),
            x_axis: axis("bits_per_pixel").scale(Scale::Linear),
            front: false,
        },
        columns: 2,
        share_axis: false,
    };
    let mut each: Vec<Panel> = Vec::new();
    if has(table, "bits_per_pixel") {
        each.push(panel("size", "bits_per_pixel", None));
    }
    each.extend(operations.iter().map(|(name, title)| panel(title, rates, Some(*name))));
    let by_codec = Section {
        title: "By codec".to_owned(),
        panels: each,
        columns: 2,
        share_axis: false,
        layout: Layout::Lines {
            series: formats.iter().map(|f| f.0.clone()).collect(),
            xs: points,
            x_title: "codec".to_owned(),
        },
    };
    vec![trade, by_codec]
}
