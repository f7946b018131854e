//! Track 2: throughput, first batch and scaling over the number of workers, by batch size.

use super::panel::{axis_of_loaders, mark, rows_section};
use super::select::{self, counted, facet, has, loaders, series_by, sorted, thing};
use super::spec::Spec;
use crate::chart::{Layout, Mark, Panel, Scale, Section, Series};
use crate::columns::key_text;
use crate::table::{Cell, Table};

/// The figure's registration.
pub(super) static SPEC: Spec = Spec {
    table: "dataloader",
    heading: "Data loader: batches",
    title: "Data loader: batches delivered with more workers and larger batches",
    how_to_read: "Each line is a format (or each bar, for one number of workers). From left to right more \
                  workers load in parallel. A line that rises gains from more workers; where it is flat, \
                  something else is the limit. The time of a batch is from asking for it to having it. Names \
                  stand at the right, in the order of the lines.",
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
    // One number of workers has nothing to scale with.
    let scales = table.distinct("workers").len() > 1;
    let shown = shown.into_iter().filter(|s| has(table, s.0) && (scales || s.0 != "scaling_efficiency"));
    if !has(table, "loader") {
        let by = if table.distinct("cache").len() > 1 { "cache" } else { "compression" };
        let series = series_by(table, by);
        return shown.map(|(column, title, scale)| section(table, column, title, scale, &series)).collect();
    }
    // Lines of one framework at a time: all of them in a panel could not be told apart.
    let all: Vec<Named> = loaders(table).into_iter().flat_map(|one| by_cache(table, one)).collect();
    let mut sections = vec![side_by_side(table, &all)];
    for (column, title, scale) in shown.filter(|s| s.0 != "scaling_efficiency") {
        for framework in sorted(table, "framework", &["rust"]) {
            let of = |s: &&Named| {
                let this = s.1.contains(&("framework", framework.clone()));
                this && select::rows(table, &s.1).iter().any(|&row| table.f64(column, row).is_some())
            };
            let mut series: Vec<_> = all.iter().filter(of).cloned().collect();
            // The section names the framework.
            let needless = format!(" · {}", framework.text());
            for (one, _) in &mut series {
                one.name = one.name.replacen(&needless, "", 1);
            }
            if !series.is_empty() {
                sections.push(section(
                    table,
                    column,
                    &format!("{title}: {}", framework.text()),
                    scale,
                    &series,
                ));
            }
        }
    }
    sections
}

/// A series and the values that choose its rows.
type Named = (Series, Vec<(&'static str, Cell)>);

/// A loader once per cache, where it was measured with several: a median over all of them is none's.
fn by_cache(table: &Table, (series, which): Named) -> Vec<Named> {
    let mut caches: Vec<Cell> = vec![];
    for cache in select::rows(table, &which).into_iter().map(|row| table.cell("cache", row)) {
        if cache != Cell::Null && !caches.contains(&cache) {
            caches.push(cache);
        }
    }
    if caches.len() < 2 {
        return vec![(series, which)];
    }
    let with = |cache: Cell| {
        let name = format!("{} ({})", series.name, cache.text());
        let which = which.iter().cloned().chain([("cache", cache)]).collect();
        (Series { name, slot: series.slot }, which)
    };
    caches.into_iter().map(with).collect()
}

/// Throughput of every framework and loader, each with the number of workers that serves it best.
fn side_by_side(table: &Table, series: &[Named]) -> Section {
    let sizes = facet(table, "batch_size", &[]);
    let workers = facet(table, "workers", &[]);
    let best = |which: &[(&'static str, Cell)], size: &(&'static str, Cell)| {
        let with = |workers: &(&'static str, Cell)| {
            let which: Vec<_> = which.iter().chain([size, workers]).cloned().collect();
            mark(table, &which, "samples_per_sec")
        };
        let value = |mark: &Mark| if let Mark::Value(estimate) = mark { estimate.value } else { f64::MIN };
        let marks = workers.iter().map(with);
        marks.max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(Mark::Nothing)
    };
    let panels = sizes.iter().map(|size| Panel {
        title: if size.1 == Cell::Null {
            String::new()
        } else {
            format!("batches of {}", counted(&size.1, thing(table)))
        },
        axis: axis_of_loaders(table, "samples_per_sec"),
        marks: series.iter().map(|(_, which)| best(which, size)).collect(),
    });
    let title = "Throughput side by side, each with its best number of workers";
    let panels = with_values(panels.collect());
    let columns = panels.len().min(3);
    let mut section = rows_section(title, series, &[String::new()], panels, columns);
    section.share_axis = true;
    section
}

/// The panels that show a value; all of them where none does.
fn with_values(panels: Vec<Panel>) -> Vec<Panel> {
    let has_value = |panel: &Panel| panel.marks.iter().any(|mark| matches!(mark, Mark::Value(_)));
    if panels.iter().any(has_value) { panels.into_iter().filter(has_value).collect() } else { panels }
}

fn section(table: &Table, column: &str, title: &str, scale: Scale, series: &[Named]) -> Section {
    let sizes = facet(table, "batch_size", &[]);
    let workers = sorted(table, "workers", &[]);
    let xs: Vec<_> = if workers.is_empty() { vec![Cell::Null] } else { workers };
    let panels = sizes.iter().map(|size| Panel {
        title: if size.1 == Cell::Null {
            String::new()
        } else {
            format!("batches of {}", counted(&size.1, thing(table)))
        },
        axis: axis_of_loaders(table, column).scale(scale),
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
    // The names stand beside the lines of the last panel. One without lines, of batches that the set is too small for,
    // would take them away. A note gives the reason.
    let panels = with_values(panels.collect());
    // One point a format is no line.
    if let [only] = &xs[..] {
        let workers = Some(only).filter(|x| **x != Cell::Null).map(|x| format!(", {}", counted(x, "worker")));
        let columns = panels.len().min(3);
        let title = format!("{title}{}", workers.unwrap_or_default());
        let mut section = rows_section(title, series, &[String::new()], panels, columns);
        section.share_axis = true;
        return section;
    }
    Section {
        title: title.to_owned(),
        columns: panels.len().min(3),
        panels,
        share_axis: true,
        layout: Layout::Lines {
            series: series.iter().map(|s| s.0.clone()).collect(),
            xs: xs.iter().map(key_text).collect(),
            x_title: "workers".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::loaders_and_caches;
    use super::*;
    use crate::row;

    #[test]
    fn one_number_of_workers_is_drawn_as_bars_several_as_lines() {
        for workers in [&[2][..], &[0, 2]] {
            let mut table = Table::new("dataloader");
            for &workers in workers {
                for (format, rate) in [("parquet", 10.0), ("tiff", 30.0)] {
                    table.push(row![
                        ("format", format),
                        ("batch_size", 8),
                        ("workers", workers),
                        ("status", "ok"),
                        ("samples_per_sec", rate),
                        ("scaling_efficiency", 0.5)
                    ]);
                }
            }
            let sections = sections(&table);
            if workers.len() == 1 {
                let [section] = &sections[..] else { panic!("{}", sections.len()) };
                assert_eq!(section.title, "Throughput, 2 workers");
                let Layout::Rows { series, .. } = &section.layout else { panic!("bars") };
                assert_eq!(series[0].name, "tiff");
            } else {
                assert_eq!(sections.len(), 2);
                assert!(sections.iter().all(|s| matches!(s.layout, Layout::Lines { .. })));
            }
        }
    }

    /// Those of Python have no cache.
    #[test]
    fn a_loader_beside_others_is_drawn_once_per_cache() {
        let sections = sections(&loaders_and_caches());
        let Layout::Rows { series, .. } = &sections[0].layout else { panic!("bars") };
        let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["tiff · rust (memory)", "tiff · rust (none)", "tiff · pytorch · tifffile"]);
        let values = sections[0].panels[0].marks.iter().filter_map(super::super::panel::value_of);
        assert_eq!(values.collect::<Vec<_>>(), [90.0, 40.0, 30.0]);
    }

    #[test]
    fn crops_are_called_crops() {
        let units = |crops: Option<i64>| {
            let mut table = Table::new("dataloader");
            table.push(row![
                ("format", "tiff"),
                ("batch_size", 8),
                ("crops", crops),
                ("workers", 0),
                ("status", "ok"),
                ("samples_per_sec", 40.0)
            ]);
            let panel = sections(&table).remove(0).panels.remove(0);
            (panel.title, panel.axis.unit.axis_name(40.0))
        };
        assert_eq!(units(None), ("batches of 8 images".to_owned(), "images/s".to_owned()));
        assert_eq!(units(Some(4)), ("batches of 8 crops".to_owned(), "crops/s".to_owned()));
    }
}
