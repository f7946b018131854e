//! Track 3: a step's time split into waiting for data and computing, the share of waiting, throughput.

use super::panel::{axis, bars, pair, rows_section};
use super::select::{cross, facet, facet_title, has, series};
use super::spec::Spec;
use crate::chart::{Axis, Mark, Panel, Scale, Section};
use crate::columns::key_text;
use crate::number::Unit;
use crate::table::{Cell, Table};

/// The figure's registration.
pub(super) static SPEC: Spec = Spec {
    table: "loop",
    heading: "Model loop",
    title: "Model loop: time of a step, waiting and computing",
    how_to_read: "Each bar is a training or inference step: coloured while the model waits for data, grey while it \
        computes. Below 30 % waiting, loading is no bottleneck. From 30 to 50 % it is significant. Above 50 % \
        it limits: more workers, larger batches or another format help. The shares hold for this model: a \
        faster model waits more.",
    sections,
};

/// Shares of waiting from which data loading matters, and from which it limits.
pub const WAIT_MARKS: [(f64, &str); 2] = [(0.3, "30 %"), (0.5, "50 %")];

/// Shares of computing that MLPerf Storage asks for.
pub const UTILISATION_MARKS: [(f64, &str); 2] = [(0.7, "70 %"), (0.9, "90 %")];

/// Steps whose times differ by more than this are drawn as shares.
const MAX_RATIO: f64 = 15.0;

fn sections(table: &Table) -> Vec<Section> {
    let series = series(table);
    let panels = cross(&facet(table, "model", &[]), &facet(table, "mode", &["train", "inference"]));
    let columns = panels.len().clamp(1, 3);
    let none = [("format", Cell::Null)];
    let title = |facets: &[(&'static str, Cell)]| facet_title(facets, |_, value| key_text(value));
    let one = [String::new()];

    let asked = || panels.iter().filter(|_| has(table, "step_p50_s") && has(table, "data_wait_fraction"));
    let times = |which: &[(&'static str, Cell)], facets: &[(&'static str, Cell)]| {
        let which: Vec<_> = which.iter().chain(facets).cloned().collect();
        pair(table, &which, ["step_p50_s", "data_wait_fraction"])
    };
    let totals: Vec<f64> = asked()
        .flat_map(|facets| series.iter().filter_map(|(_, which)| times(which, facets).ok()))
        .map(|[step, _]| step)
        .collect();
    let (low, high) =
        (totals.iter().copied().fold(f64::MAX, f64::min), totals.iter().copied().fold(0.0, f64::max));
    // Where a slow format would dwarf all others, shares are what can be seen; the time is in the label.
    let as_shares = high > MAX_RATIO * low;
    let steps = asked().map(|facets| {
        let marks = series.iter().map(|(_, which)| match times(which, facets) {
            Err(missing) => missing,
            Ok([step, share]) => {
                let share = share.clamp(0.0, 1.0);
                let whole = if as_shares { 1.0 } else { step };
                let parts = [("waiting for data", share), ("computing", 1.0 - share)];
                Mark::Stack {
                    parts: parts.map(|(name, share)| (name.to_owned(), share * whole)).to_vec(),
                    label: Some(Unit::Seconds.format(step)),
                }
            }
        });
        let mut axis = axis("step_p50_s");
        "median time of a step, less is better".clone_into(&mut axis.title);
        if as_shares {
            axis = Axis::new("share of the median step, whose time stands beside it", Unit::Fraction);
        }
        Panel { title: title(facets), axis, marks: marks.collect() }
    });
    let steps = rows_section("Where a step’s time goes", &series, &one, steps.collect(), columns);

    let quantity = |column: &'static str, name: &str| {
        let panels = panels.iter().filter(|_| has(table, column));
        let panels = panels.map(|facets| bars(table, title(facets), column, &series, &none, facets));
        rows_section(name, &series, &one, panels.collect(), columns)
    };
    let mut waits = quantity(
        "data_wait_fraction",
        "Share of the time spent waiting: below 30 % loading is no bottleneck, above 50 % it limits",
    );
    waits.share_axis = true;
    for panel in &mut waits.panels {
        panel.axis.references = WAIT_MARKS.iter().map(|(v, l)| (*v, (*l).to_owned())).collect();
        panel.axis.scale = Scale::Linear;
    }
    let mut utilisation = quantity(
        "accelerator_utilisation",
        "Accelerator utilisation, computing over all time: MLPerf Storage asks for 90 % (3D U-Net, ResNet-50) or 70 % (CosmoFlow)",
    );
    utilisation.share_axis = true;
    for panel in &mut utilisation.panels {
        panel.axis.references = UTILISATION_MARKS.iter().map(|(v, l)| (*v, (*l).to_owned())).collect();
        panel.axis.scale = Scale::Linear;
    }
    // Results of earlier versions lack it.
    let utilisation = (!utilisation.panels.is_empty()).then_some(utilisation);
    [steps, waits].into_iter().chain(utilisation).chain([quantity("images_per_sec", "Throughput")]).collect()
}
