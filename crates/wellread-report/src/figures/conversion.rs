//! Track 4: pixels to host array, host array to tensor, by copy and without.

use super::panel::{axis, bars, mark, rows_section};
use super::select::{cross, facet, facet_title, has, series};
use super::spec::Spec;
use crate::chart::{Panel, Scale, Section, Series, color};
use crate::columns::key_text;
use crate::table::{Cell, Table};

/// The figure's registration.
pub(super) static SPEC: Spec = Spec {
    table: "conversion",
    heading: "Conversion: array to tensor",
    title: "Conversion: time from host array to tensor",
    how_to_read: "Times from stored pixels to an array in memory (full), from that array to a tensor (pale), and \
                  of both together (hollow). Below 10 % of the total, conversion does not matter: look at \
                  reading. Above 30 % it is worth work; without copy it nearly vanishes.",
    sections,
};

/// Shares of conversion from which it is measurable, and from which it is worth work (percent).
pub const OVERHEAD_MARKS: [(f64, &str); 2] = [(10.0, "10 %"), (30.0, "30 %")];

/// The parts of the way, and the whole.
const PARTS: [(&str, &str); 3] = [
    ("numpy_p50_s", "pixels to host array"),
    ("conversion_p50_s", "host array to tensor"),
    ("torch_p50_s", "pixels to tensor, total"),
];

/// Several frameworks: a row per framework and path, a panel per format.
fn frameworks(table: &Table) -> Vec<Section> {
    let mut rows = table.groups(&["framework", "path"]);
    // A framework that is missing altogether has one row, without a path.
    let has_paths = |framework: &Cell| rows.iter().any(|g| g.key[0] == *framework && g.key[1] != Cell::Null);
    let whole: Vec<bool> = rows.iter().map(|g| g.key[1] != Cell::Null || !has_paths(&g.key[0])).collect();
    let mut whole = whole.into_iter();
    rows.retain(|_| whole.next().unwrap_or(true));
    let order = table.distinct("framework");
    rows.sort_by_key(|group| order.iter().position(|framework| *framework == group.key[0]));
    let rows: Vec<_> = rows
        .into_iter()
        .map(|group| {
            let parts =
                group.key.iter().map(|key| key.text().replace('_', " ")).filter(|part| !part.is_empty());
            let name = parts.collect::<Vec<_>>().join(" · ");
            let slot = color::slot(&group.key[0].text());
            let which = ["framework", "path"].into_iter().zip(group.key).collect::<Vec<_>>();
            (Series { name, slot }, which)
        })
        .collect();
    let formats = facet(table, "format", &color::known_formats().collect::<Vec<_>>());
    let one = [("format", Cell::Null)];
    let shown = [
        ("conversion_p50_s", "Host array to tensor, reading not included", Scale::Auto),
        ("torch_p50_s", "Pixels to tensor, reading included", Scale::Auto),
        ("conversion_overhead_pct", "Conversion as share of both", Scale::Linear),
        ("copied_bytes", "Bytes copied per image, by the addresses of array and tensor", Scale::Linear),
    ];
    let shown = shown.into_iter().filter(|s| has(table, s.0));
    let section = |(column, title, scale): (&'static str, &str, Scale)| {
        let panels = formats.iter().map(|format| {
            let title = facet_title(std::slice::from_ref(format), |_, value| key_text(value));
            let mut panel = bars(table, title, column, &rows, &one, std::slice::from_ref(format));
            panel.axis.scale = scale;
            panel
        });
        let mut section =
            rows_section(title, &rows, &[String::new()], panels.collect(), formats.len().min(3));
        section.share_axis = true;
        section
    };
    shown.map(section).collect()
}

fn sections(table: &Table) -> Vec<Section> {
    if table.distinct("framework").len() > 1 {
        return frameworks(table);
    }
    let series = series(table);
    let facets = cross(&facet(table, "framework", &[]), &facet(table, "path", &["copy", "zero_copy"]));
    let columns = facets.len().clamp(1, 3);
    let none = [("format", Cell::Null)];
    let one = [String::new()];
    let title = |facets: &[(&'static str, Cell)]| {
        facet_title(facets, |column, value| match (column, value.text().as_str()) {
            ("path", "copy") => "by copy".to_owned(),
            ("path", "zero_copy") => "without copy".to_owned(),
            _ => key_text(value),
        })
    };

    // Three dots in a row instead of a stack: the parts differ by orders of magnitude.
    let parts: Vec<_> = PARTS.into_iter().filter(|p| has(table, p.0)).collect();
    let names: Vec<_> = parts.iter().map(|p| p.1.to_owned()).collect();
    let times = facets.iter().filter(|_| !parts.is_empty()).map(|facets| {
        let mut marks = vec![];
        for (_, which) in &series {
            let which: Vec<_> = which.iter().chain(facets).cloned().collect();
            marks.extend(parts.iter().map(|(column, _)| mark(table, &which, column)));
        }
        let mut axis = axis("numpy_p50_s");
        "median time of one image, less is better".clone_into(&mut axis.title);
        Panel { title: title(facets), axis, marks }
    });
    let mut times =
        rows_section("Time from stored pixels to a tensor", &series, &names, times.collect(), columns);
    times.share_axis = true;

    let quantity = |column: &'static str, name: &str| {
        let panels = facets.iter().filter(|_| has(table, column));
        let panels = panels.map(|facets| {
            let mut panel = bars(table, title(facets), column, &series, &none, facets);
            panel.axis.scale = Scale::Linear;
            panel
        });
        let mut section = rows_section(name, &series, &one, panels.collect(), columns);
        section.share_axis = true;
        section
    };
    let mut shares = quantity(
        "conversion_overhead_pct",
        "Conversion as share of the total: below 10 % it does not matter, above 30 % it is worth work",
    );
    for panel in &mut shares.panels {
        panel.axis.references = OVERHEAD_MARKS.iter().map(|(v, l)| (*v, (*l).to_owned())).collect();
    }
    vec![times, shares, quantity("copied_bytes", "Bytes copied per image")]
}
