//! Track 1: the latency of one image by access, transform and cache, then throughput, opening and memory.

use super::panel::{axis, bars, rows_section};
use super::select::{cross, facet, facet_title, has, reason, rows, series};
use super::spec::Spec;
use crate::chart::{Mark, Panel, Section, Spread};
use crate::columns::key_text;
use crate::table::{Cell, Estimate, Table};

/// The figure's registration.
pub(super) static SPEC: Spec = Spec {
    table: "dataset",
    heading: "Dataset: single images",
    title: "Dataset: time of one image",
    how_to_read: "Each row is a format. The dot is the time that half of the images take at most (p50). The \
                  ticks are those that 95 and 99 of 100 images take at most. The small dot is the slowest, and \
                  the line begins at the fastest. A long line to the right means that some images take much \
                  longer. With a memory cache all formats are the same: it keeps images as they are delivered. \
                  If panels of times name several kinds of access or transforms, a bar is the median over all of \
                  them and has no whisker.",
    sections,
};

fn sections(table: &Table) -> Vec<Section> {
    let series = series(table);
    let access = facet(table, "access", &["sequential", "random", "grouped", "block"]);
    let transform = facet(table, "transform", &["none", "normalize", "augment"]);
    let cache = facet(table, "cache", &["none", "memory"]);
    let cache_names: Vec<_> = cache.iter().map(|c| cache_name(&c.1)).collect();

    let mut latency = vec![];
    if has(table, "p50_s") {
        for [t, a] in cross(&transform, &access) {
            let marks = series.iter().flat_map(|(_, which)| {
                let (a, t) = (a.clone(), t.clone());
                cache.iter().map(move |c| {
                    let which: Vec<_> = which.iter().chain([&a, &t, c]).cloned().collect();
                    spread(table, &which)
                })
            });
            let title = facet_title(&[a.clone(), t.clone()], panel_name);
            latency.push(Panel { title, axis: axis("p50_s"), marks: marks.collect() });
            let axis = &mut latency.last_mut().expect("just pushed").axis;
            "time of one image, less is better".clone_into(&mut axis.title);
        }
    }
    let mut latency =
        rows_section("Latency of one image", &series, &cache_names, latency, access.len().min(3));
    latency.share_axis = true;

    let plain = transform[0].clone();
    let rates = access.iter().filter(|_| has(table, "samples_per_sec")).map(|a| {
        let facets = [a.clone(), plain.clone()];
        bars(table, facet_title(&facets, panel_name), "samples_per_sec", &series, &cache, &facets)
    });
    let rates = rows_section("Throughput", &series, &cache_names, rates.collect(), access.len().min(3));

    // Memory that the process held before is no format's cost, where that is known.
    let memory = if has(table, "peak_growth_mb") { "peak_growth_mb" } else { "peak_rss_mb" };
    let costs = [("open_s", "to open"), (memory, "memory")].into_iter().filter(|c| has(table, c.0));
    let several: Vec<&str> = [("kinds of access", access.len()), ("transforms", transform.len())]
        .into_iter()
        .filter_map(|(name, n)| (n > 1).then_some(name))
        .collect();
    let costs = costs.map(|(column, title)| {
        let mut panel = bars(table, title.into(), column, &series, &cache, &[]);
        if !several.is_empty() {
            panel.title += &format!(", median over all {}", several.join(" and "));
            panel.marks = panel.marks.into_iter().map(without_whisker).collect();
        }
        panel
    });
    let costs = rows_section("Opening and memory", &series, &cache_names, costs.collect(), 2);
    vec![latency, rates, costs]
}

/// The mark of several configurations together: the range of their values is no range of runs.
fn without_whisker(mark: Mark) -> Mark {
    match mark {
        Mark::Value(Estimate { value, n, .. }) => Mark::Value(Estimate { n, ..Estimate::exact(value) }),
        other => other,
    }
}

/// The distribution of the latency: each quantile the median of the runs' quantiles.
fn spread(table: &Table, which: &[(&'static str, Cell)]) -> Mark {
    let rows = rows(table, which);
    let q = |column: &str| table.estimate(column, &rows).map(|e| e.value);
    match q("p50_s") {
        None => reason(table, which).map_or(Mark::Nothing, Mark::Unavailable),
        p50 => Mark::Spread(Spread {
            min: q("min_s"),
            p25: q("p25_s"),
            p50,
            p75: q("p75_s"),
            p95: q("p95_s"),
            p99: q("p99_s"),
            max: q("max_s"),
        }),
    }
}

fn panel_name(column: &str, value: &Cell) -> String {
    match (column, value.text().as_str()) {
        ("transform", "none") => "no transform".to_owned(),
        ("access", access) => format!("{} access", access.replace('_', " ")),
        _ => key_text(value),
    }
}

fn cache_name(cache: &Cell) -> String {
    match cache.text().as_str() {
        "" => String::new(),
        "none" => "no cache".to_owned(),
        kind => format!("{} cache", kind.replace('_', " ")),
    }
}
