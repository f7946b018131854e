//! Track 2: throughput, first batch and scaling over the number of workers, by batch size.

use super::{Cell, axis, counted, facet, has, mark, series, sorted};
use crate::chart::{Block, Layout, Panel, Scale};
use crate::columns::key_text;
use crate::table::Table;

pub(super) fn blocks(table: &Table) -> Vec<Block> {
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
        .map(|(column, title, scale)| block(table, column, title, scale))
        .collect()
}

fn block(table: &Table, column: &str, title: &str, scale: Scale) -> Block {
    let series = series(table);
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
    Block {
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
