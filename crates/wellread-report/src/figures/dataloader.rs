//! Track 2: throughput, first batch and scaling over the number of workers, by batch size.

use super::{Cell, Spec, axis, counted, facet, has, mark, series_by, sorted};
use crate::chart::{Layout, Panel, Scale, Section};
use crate::columns::key_text;
use crate::table::Table;

/// The figure's registration.
pub(super) static SPEC: Spec = Spec {
    table: "dataloader",
    heading: "Data loader: batches",
    title: "Data loader: batches delivered with more workers and larger batches",
    how_to_read: "Each line is a format; from left to right more workers load in parallel. A line that rises gains from \
        more workers; where it is flat, something else is the limit. The time of a batch is from asking for it \
        to having it. Names stand at the right, in the order of the lines.",
    sections,
};

fn sections(table: &Table) -> Vec<Section> {
    let shown = [
        ("samples_per_sec", "Throughput", Scale::Auto),
        ("first_batch_s", "Time until the first batch is there", Scale::Auto),
        (
            "scaling_efficiency",
            "Scaling efficiency: the share of an ideal speed-up that more workers give",
            Scale::Linear,
        ),
    ];
    shown
        .into_iter()
        .filter(|s| has(table, s.0))
        .map(|(column, title, scale)| section(table, column, title, scale))
        .collect()
}

fn section(table: &Table, column: &str, title: &str, scale: Scale) -> Section {
    let by = if table.distinct("cache").len() > 1 { "cache" } else { "compression" };
    let series = series_by(table, by);
    let sizes = facet(table, "batch_size", &[]);
    let workers = sorted(table, "workers", &[]);
    let xs: Vec<_> = if workers.is_empty() { vec![Cell::Null] } else { workers };
    let panels = sizes.iter().map(|size| Panel {
        title: if size.1 == Cell::Null {
            String::new()
        } else {
            format!("batches of {}", counted(&size.1, "image"))
        },
        axis: axis(column).scale(scale),
        marks: series
            .iter()
            .flat_map(|(_, which)| {
                xs.iter().map(move |x| {
                    let which: Vec<_> =
                        which.iter().cloned().chain([size.clone(), ("workers", x.clone())]).collect();
                    mark(table, &which, column)
                })
            })
            .collect(),
    });
    Section {
        title: title.to_owned(),
        panels: panels.collect(),
        columns: sizes.len().min(3),
        share_axis: true,
        layout: Layout::Lines {
            series: series.iter().map(|s| s.0.clone()).collect(),
            xs: xs.iter().map(key_text).collect(),
            x_title: "workers".to_owned(),
        },
    }
}
