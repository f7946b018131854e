//! Figures of good, odd and absurd data: well-formed SVG, PNGs with something on them, no text that touches
//! another or leaves the page.

use crate::sample;
use crate::tables::any_table;
use proptest::prelude::*;
use resvg::{tiny_skia, usvg};
use wellread_report::chart::{Axis, Figure, Layout, Mark, Panel, Sample, Scale, Section, Spread};
use wellread_report::number::Unit;
use wellread_report::{Cell, Estimate, IntervalKind, Row, Table, figures, row};

/// The SVG as resvg sees it, with the fonts of this crate.
fn tree(svg: &str) -> usvg::Tree {
    let mut options = usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_font_data(include_bytes!("../../fonts/DejaVuSans-subset.ttf").to_vec());
    fonts.load_font_data(include_bytes!("../../fonts/DejaVuSans-Bold-subset.ttf").to_vec());
    usvg::Tree::from_str(svg, &options).expect("an SVG that resvg reads")
}

/// All texts with the places of their glyphs.
fn texts(group: &usvg::Group, found: &mut Vec<(String, tiny_skia::Rect)>) {
    for node in group.children() {
        match node {
            usvg::Node::Group(g) => texts(g, found),
            usvg::Node::Text(t) => {
                let text: String = t.chunks().iter().map(usvg::TextChunk::text).collect();
                if !text.trim().is_empty() {
                    found.push((text, t.flattened().abs_bounding_box()));
                }
            }
            _ => {}
        }
    }
}

/// Fails unless the figure is well-formed and its texts are apart and on the page. This holds on every scale that a
/// reader of the report may choose.
fn check(figure: &Figure) {
    check_svg(&figure.svg());
    for scale in [Scale::Linear, Scale::Log] {
        check_svg(&figure.with_scale(scale).svg());
    }
}

fn check_svg(svg: &str) {
    let mut reader = quick_xml::Reader::from_str(svg);
    loop {
        match reader.read_event().expect("well-formed XML") {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(e) | quick_xml::events::Event::Empty(e) => {
                for attribute in e.attributes() {
                    let attribute = attribute.expect("attributes that are well-formed and not repeated");
                    let name: &str = attribute.key.as_ref();
                    let value: &str = &attribute.value;
                    if ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "points"]
                        .contains(&name)
                    {
                        for number in value.split([' ', ',']) {
                            assert!(number.parse::<f64>().is_ok_and(f64::is_finite), "{name}={value:?}");
                        }
                    }
                }
            }
            _ => {}
        }
    }
    let tree = tree(svg);
    let mut found = vec![];
    texts(tree.root(), &mut found);
    assert!(found.len() > 1, "there is no text on it");
    let (width, height) = (tree.size().width(), tree.size().height());
    for (i, (text, place)) in found.iter().enumerate() {
        assert!(
            place.left() >= 0.0 && place.top() >= 0.0 && place.right() <= width && place.bottom() <= height,
            "{text:?} at {place:?} leaves the page of {width} × {height}"
        );
        for (other, at) in &found[..i] {
            let apart = place.left() >= at.right() - 0.5
                || at.left() >= place.right() - 0.5
                || place.top() >= at.bottom() - 0.5
                || at.top() >= place.bottom() - 0.5;
            assert!(apart, "{text:?} at {place:?} touches {other:?} at {at:?}");
        }
    }
}

#[test]
#[should_panic(expected = "touches")]
fn the_check_sees_texts_that_touch() {
    check_svg(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"99\" height=\"99\" font-family=\"DejaVu Sans\">\
         <text x=\"9\" y=\"20\">one</text><text x=\"20\" y=\"25\">two</text></svg>",
    );
}

#[test]
#[should_panic(expected = "leaves the page")]
fn the_check_sees_texts_that_are_cut() {
    check_svg(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"99\" height=\"99\" font-family=\"DejaVu Sans\">\
         <text x=\"9\" y=\"50\">one</text><text x=\"80\" y=\"20\">two</text></svg>",
    );
}

#[test]
fn every_benchmark_has_a_figure_whose_texts_are_apart() {
    let input = sample::input();
    for table in &input.tables {
        let figure = figures::figure(table, &input).expect("a figure for each benchmark");
        check(&figure);
        let svg = figure.svg();
        assert!(
            svg.contains("unavailable: this build has no Vortex engine"),
            "{} hides what is missing",
            table.name()
        );
        for format in ["parquet", "tiff", "ome-zarr"] {
            assert!(svg.contains(&format!(">{format}<")), "{format} is not named in {}", table.name());
        }
        assert!(svg.contains("Noise floor (A/A): differences below 2.1"), "{}", table.name());
    }
    assert_eq!(figures::figure(&Table::new("storage"), &input), None);
    assert_eq!(figures::figure(&Table::new("unheard of"), &input), None);
}

#[test]
fn a_table_without_a_figure_of_its_own_is_drawn_from_its_quantities() {
    let mut table = Table::new("infer");
    for (format, batch, seconds) in [("tiff", 1, 0.1), ("tiff", 8, 0.4), ("parquet", 1, 0.2)] {
        table.push(row![
            ("format", format),
            ("batch_size", batch),
            ("latency_p50_s", seconds),
            ("latency_p50_s_ci_low", seconds * 0.9),
            ("latency_p50_s_ci_high", seconds * 1.1),
            ("without_interval_s", 3.0)
        ]);
    }
    table.push(row![("format", "vortex"), ("status", "unavailable"), ("reason", "no engine")]);
    let figure = figures::figure(&table, &sample::input()).expect("a figure");
    check(&figure);
    let [Section { panels, layout: Layout::Rows { series, .. }, .. }] = &figure.sections[..] else {
        panic!("{figure:?}")
    };
    assert_eq!(
        series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
        ["tiff, 1", "tiff, 8", "parquet, 1", "vortex"]
    );
    assert_eq!(figure.sections[0].title, "By format, batch size");
    assert_eq!(panels.len(), 1, "quantities with intervals are shown");
    assert!(matches!(panels[0].marks[2], Mark::Value(e) if e.value == 0.2));
    assert!(matches!(&panels[0].marks[3], Mark::Unavailable(why) if why.contains("no engine")));
    // A table larger than a figure can be is cut, and says so.
    let mut long = Table::new("long");
    for i in 0..60 {
        long.push(row![("format", format!("f{i}")), ("time_s", f64::from(i))]);
    }
    let figure = figures::figure(&long, &sample::input()).expect("a figure");
    assert!(figure.sections[0].title.contains("40 of 60"));
    check(&figure);
}

#[test]
fn pngs_decode_and_show_something() {
    let dir = tempfile::tempdir().unwrap();
    let input = sample::input();
    let paths = wellread_report::write_figures(dir.path(), &input).unwrap();
    assert_eq!(paths.len(), 2 * (input.tables.len() + 2 * input.samples.len()));
    for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "png")) {
        let picture = tiny_skia::Pixmap::decode_png(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(picture.width(), 2080);
        let white = picture.pixels().iter().filter(|p| p.red() == 255 && p.green() == 255).count();
        let share = white as f64 / picture.pixels().len() as f64;
        assert!((0.5..0.99).contains(&share), "{}: {share} of it is white", path.display());
        // The colour of the first format is on it.
        assert!(picture.pixels().iter().any(|p| (p.red(), p.green(), p.blue()) == (0x0b, 0x50, 0xaf)));
    }
}

/// Tables with a figure of their own.
const NAMES: [&str; 7] =
    ["storage", "storage_compression", "storage_layout", "dataset", "dataloader", "loop", "conversion"];

/// Columns of each benchmark that figures are drawn from.
fn columns(name: &str) -> &'static [&'static str] {
    match name {
        "storage" => &["seconds", "images_per_s", "bits_per_pixel", "bytes_on_disk"],
        "storage_compression" => &["images_per_s", "bits_per_pixel", "seconds"],
        "storage_layout" => &["reads_per_s", "read_amplification", "bits_per_pixel"],
        "dataset" => &[
            "p50_s",
            "p95_s",
            "p99_s",
            "min_s",
            "max_s",
            "p25_s",
            "p75_s",
            "samples_per_sec",
            "open_s",
            "peak_rss_mb",
        ],
        "dataloader" => &["samples_per_sec", "first_batch_s", "scaling_efficiency"],
        "loop" => &["step_p50_s", "data_wait_fraction", "accelerator_utilisation", "images_per_sec"],
        _ => &["numpy_p50_s", "conversion_p50_s", "torch_p50_s", "conversion_overhead_pct", "copied_bytes"],
    }
}

fn odd_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 1e-9..1e6f64,
        1 => any::<f64>(),
        1 => prop::sample::select(vec![0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e-12, 1e12]),
    ]
}

/// As printed, or as a reader chooses it.
fn any_scale() -> impl Strategy<Value = Option<Scale>> {
    prop::sample::select(vec![None, Some(Scale::Linear), Some(Scale::Log)])
}

/// A benchmark's table with odd formats and numbers, missing combinations and reasons.
fn odd_table() -> impl Strategy<Value = Table> {
    let name = prop::sample::select(NAMES.to_vec());
    let format = prop::sample::select(vec![
        "parquet",
        "tiff",
        "ome-zarr",
        "vortex",
        "",
        "a format with quite a long name, twice as long as fits",
        "einunglaublichlangernameohneleerzeichendernirgendspasst",
        "数字 & <b>\"x\"</b>",
        "x",
        "lance",
    ]);
    let row = (format, 0..4usize, 0..3usize, 0..2usize, prop::collection::vec(odd_number(), 10), 0..9u8);
    (name, prop::collection::vec(row, 1..40)).prop_map(|(name, rows)| {
        let mut table = Table::new(name);
        for (format, a, b, c, values, state) in rows {
            let mut row: Row = row![
                ("format", format),
                ("operation", ["write", "read_all", "read_random", "open"][a]),
                ("compression", ["none", "lz4", "zstd:3", "a codec with a long name"][a]),
                ("compressed_by", ["chunk", "container"][c]),
                ("layout", ["z-plane", "block", "volume"][b]),
                ("access", ["sequential", "random", "grouped", "some other"][a]),
                ("transform", ["none", "normalize", "augment"][b]),
                ("cache", ["warm", "cold"][c]),
                ("batch_size", [1, 4, 16, 1_000_000][a]),
                ("workers", [0, 2, 64][b]),
                ("model", ["cnn", "a model with a name that goes on and on and on"][c]),
                ("mode", ["train", "inference"][c]),
                ("path", ["copy", "zero_copy"][c]),
            ];
            if state == 0 {
                row.extend(row![
                    ("status", "unavailable"),
                    ("reason", "because it is so, and a reason can be long ".repeat(c * 4))
                ]);
            } else {
                for (column, value) in columns(name).iter().zip(values) {
                    row.push(((*column).to_owned(), Cell::F64(value)));
                    row.push((format!("{column}_ci_low"), Cell::F64(value * 0.3)));
                    row.push((format!("{column}_ci_high"), Cell::F64(value * 5.0)));
                }
            }
            table.push(row);
        }
        table
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn odd_data_never_spoil_a_figure(table in odd_table(), scale in any_scale()) {
        if let Some(figure) = figures::figure(&table, &sample::about()) {
            check_svg(&scale.map_or_else(|| figure.svg(), |scale| figure.with_scale(scale).svg()));
        }
    }

    #[test]
    fn tables_of_other_columns_are_no_reason_to_panic(table in any_table()) {
        for name in NAMES {
            let mut named = Table::new(name);
            for r in 0..table.rows() {
                named.push(table.columns().iter().map(|c| (c.name().to_owned(), table.cell(c.name(), r))));
            }
            if let Some(figure) = figures::figure(&named, &sample::about()) {
                check_svg(&figure.svg());
            }
        }
    }
}

fn value(value: f64, low: f64, high: f64) -> Mark {
    Mark::Value(Estimate { value, low, high, interval: IntervalKind::Confidence, n: 5 })
}

#[test]
fn one_to_ten_series_of_every_kind_fit() {
    for count in 1..=10usize {
        let names = |i: usize| format!("format number {i} with a name");
        let rows = |mark: &dyn Fn(usize) -> Mark, variants: &[&str]| Section {
            title: "rows".into(),
            layout: Layout::Rows {
                series: (0..count).map(|i| names(i).into()).collect(),
                variants: variants.iter().map(|v| (*v).to_owned()).collect(),
            },
            panels: (0..4)
                .map(|p| Panel {
                    title: format!("panel {p}"),
                    axis: Axis::new("time", Unit::Seconds)
                        .scale([Scale::Auto, Scale::Linear, Scale::Log, Scale::Auto][p]),
                    marks: (0..count * variants.len()).map(mark).collect(),
                })
                .collect(),
            columns: 3,
            share_axis: false,
        };
        let figure = Figure {
            name: "kinds".into(),
            title: "A title that is long enough to need more than one line when it is set in bold at the size of titles, which it is".into(),
            sections: vec![
                rows(&|i| value(10f64.powi(i as i32 - 4), 1e-5, 1e3), &["warm", "cold"]),
                rows(&|i| value(-(i as f64), -20.0, 3.0), &[""]),
                rows(&|i| Mark::Stack { parts: vec![("wait".into(), i as f64), ("work".into(), 3.0)], label: None }, &[""]),
                rows(
                    &|i| {
                        let p50 = 10f64.powi(i as i32 % 7 - 5);
                        let q = |k: f64| Some(p50 * k);
                        Mark::Spread(Spread { min: q(0.5), p25: q(0.8), p50: q(1.0), p75: q(1.3), p95: q(3.0), p99: q(9.0), max: q(80.0) })
                    },
                    &["a", "b", "c", "d"],
                ),
                rows(
                    &|i| Mark::Sample(Sample::new((0..300).map(|k| 10f64.powi(i as i32 % 7 - 5) * f64::from(1 + k % 40)))),
                    &["a", "b"],
                ),
                Section {
                    title: "lines".into(),
                    layout: Layout::Lines {
                        series: (0..count).map(|i| names(i).into()).collect(),
                        xs: ["0", "2", "4", "8"].map(str::to_owned).to_vec(),
                        x_title: "workers".into(),
                    },
                    panels: (0..2)
                        .map(|p| Panel {
                            title: format!("panel {p}"),
                            axis: Axis::new("rate", Unit::PerSecond("images")),
                            marks: (0..count * 4).map(|i| if i % 5 == 3 { Mark::Nothing } else { value(1e3 + i as f64, 1e3, 2e3) }).collect(),
                        })
                        .collect(),
                    columns: 2,
                    share_axis: false,
                },
                Section {
                    title: "scatter".into(),
                    layout: Layout::Scatter {
                        series: (0..count).map(|i| names(i).into()).collect(),
                        points: ["none", "lz4", "zstd:1", "zstd:3"].map(str::to_owned).to_vec(),
                        xs: (0..count * 4).map(|i| (i % 7 != 5).then_some(16.0 - (i % 4) as f64 * 2.0)).collect(),
                        x_axis: Axis::new("size, less is better", Unit::Plain("bits/pixel")),
                        front: count % 2 == 0,
                    },
                    panels: (0..3)
                        .map(|p| Panel {
                            title: format!("panel {p}"),
                            axis: Axis::new("rate", Unit::PerSecond("images")),
                            marks: (0..count * 4).map(|i| match i % 5 {
                                3 => Mark::Nothing,
                                4 => Mark::Spread(Spread::of_sorted(&[1e3, 1e3 + 30.0 * i as f64, 2e3])),
                                _ => value(1e3 + 40.0 * i as f64, 1e3, 2e3),
                            }).collect(),
                        })
                        .collect(),
                    columns: 2,
                    share_axis: false,
                },
            ],
            notes: vec!["n = 5".into()],
            ..Figure::default()
        };
        check(&figure);
    }
}
