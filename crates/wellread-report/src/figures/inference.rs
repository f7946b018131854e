//! Inference: latency, throughput and memory by batch size, and latency against throughput.

use super::panel::{axis, mark};
use super::select::{has, rows, sorted};
use super::spec::{Answer, Spec};
use crate::chart::{Axis, Layout, Mark, Panel, Scale, Section, Series, color};
use crate::columns::key_text;
use crate::table::{Cell, Table};

/// The figure's registration.
pub(super) static SPEC: Spec = Spec {
    table: "inference",
    heading: "Inference",
    title: "Inference: the same models, weights and images in every framework",
    how_to_read: "A line is a framework. Above are the time of a pass and the images per second, by the images \
                  of a pass: larger batches take longer and give more. Below are both at once. Each point is a \
                  batch size, and the best corner is the upper left one, many images per second at a short wait. \
                  The dashed line is the Pareto front. A point below it takes longer and gives less than one on \
                  it, and is never the better choice. Memory is that of the device if the framework tells it, \
                  else that of the framework's whole process, libraries included.",
    sections,
};

/// The chart of the answer.
pub(super) static ANSWER: Answer = Answer {
    table: "inference",
    title: "Images per second by framework",
    how_to_read: "A line is a framework, a panel is a model; higher is faster. More images of a pass give more images per \
                  second, as long as the device is not busy all the time. Frameworks whose whiskers overlap may be alike.",
    sections: |table| {
        let mut all = sections(table);
        all.retain(|section| section.title == THROUGHPUT);
        all
    },
};

/// Title of the section that the answer shows, too.
const THROUGHPUT: &str = "Images per second";

/// Frameworks in the order of the lines, in colours that are told apart; others follow in those of their names.
const FRAMEWORKS: [(&str, &str); 4] =
    [("pytorch", "parquet"), ("jax", "tiff"), ("onnxruntime", "duckdb"), ("candle", "lance")];

/// The frameworks of a table, each with the value that chooses its rows.
pub(super) fn series(table: &Table) -> Vec<(Series, Cell)> {
    let named = sorted(table, "framework", &FRAMEWORKS.map(|f| f.0));
    let slot = |name: &str| {
        let like = FRAMEWORKS.iter().find(|f| f.0 == name).map_or(name, |f| f.1);
        color::slot(like)
    };
    named.into_iter().map(|f| (Series { slot: slot(&f.text()), name: f.text() }, f)).collect()
}

fn sections(table: &Table) -> Vec<Section> {
    let frameworks = series(table);
    let models = sorted(table, "model", &["resnet50", "vit_b_16"]);
    let sizes = sorted(table, "batch_size", &[]);
    let xs: Vec<String> = sizes.iter().map(key_text).collect();
    let slots = |model: &Cell| -> Vec<[(&'static str, Cell); 3]> {
        let of = |(framework, size): (&Cell, &Cell)| {
            [("model", model.clone()), ("framework", framework.clone()), ("batch_size", size.clone())]
        };
        frameworks.iter().flat_map(|(_, f)| sizes.iter().map(move |s| (f, s))).map(of).collect()
    };
    let marks = |model: &Cell, column: &str| -> Vec<Mark> {
        slots(model).iter().map(|which| mark(table, which, column)).collect()
    };
    let lines = |title: &str, column: &str| {
        let panel =
            |model: &Cell| Panel { title: model.text(), axis: axis(column), marks: marks(model, column) };
        Section {
            title: title.to_owned(),
            panels: models.iter().filter(|_| has(table, column)).map(panel).collect(),
            layout: Layout::Lines {
                series: frameworks.iter().map(|f| f.0.clone()).collect(),
                xs: xs.clone(),
                x_title: "images per pass".to_owned(),
            },
            columns: 2,
            share_axis: false,
        }
    };
    // The second quantity is shared by the panels of a section, so each model has one of its own.
    let front = |model: &Cell| {
        let latency = |which: &[(&'static str, Cell); 3]| {
            table.estimate("latency_p50_s", &rows(table, which)).map(|estimate| estimate.value)
        };
        let x_axis = Axis { title: "time of a pass, less is better".to_owned(), ..axis("latency_p50_s") };
        Section {
            title: format!("{}: throughput against latency, a point per batch size", model.text()),
            panels: vec![Panel {
                title: String::new(),
                axis: axis("throughput_ips"),
                marks: marks(model, "throughput_ips"),
            }],
            layout: Layout::Scatter {
                series: frameworks.iter().map(|f| f.0.clone()).collect(),
                points: xs.clone(),
                xs: slots(model).iter().map(latency).collect(),
                x_axis: x_axis.scale(Scale::Auto),
                front: true,
            },
            columns: 1,
            share_axis: false,
        }
    };
    let mut sections =
        vec![lines("Time of a pass, median", "latency_p50_s"), lines(THROUGHPUT, "throughput_ips")];
    if sizes.len() > 1 && has(table, "latency_p50_s") {
        sections.extend(models.iter().map(front));
    }
    sections.push(lines("Peak memory", "memory_mb"));
    sections.push(lines("Stored images to outputs, through the loader", "end_to_end_ips"));
    sections
}
