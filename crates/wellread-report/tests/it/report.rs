//! The report: whole, the same from a results folder, and safe whatever the names in it.

use crate::sample;
use wellread_report::{
    Finding, ReportInput, Samples, Severity, Table, Thumbnail, Topic, html, row, write_report,
};

#[test]
fn the_report_has_every_section_and_needs_nothing_else() {
    let page = html::page(&sample::input());
    for part in [
        "<h1>How fast are these images read?</h1>",
        "id=\"answer\"",
        "Parquet is fastest here: 47,600 images/s",
        "id=\"measured\"",
        "AMD EPYC 9R14, 2 cores, AVX-512",
        "Pixel checksum",
        "<img src=\"data:image/png;base64,",
        "alt=\"Thumbnail of row 0, channel 0\"",
        "id=\"bench-storage\"",
        "id=\"bench-storage_compression\"",
        "id=\"bench-storage_layout\"",
        "id=\"bench-dataset\"",
        "id=\"bench-dataloader\"",
        "id=\"bench-loop\"",
        "id=\"bench-conversion\"",
        "How to read this.",
        "<caption>Dataset: single images: medians over the runs",
        "this build has no Vortex engine",
        "not verified</span>",
        "Warning: Another process used 30 % of a core during run 3.",
        "differed by 2.1",
        "wellread bench all --input data",
        "href=\"dataset.parquet\"",
        "lang=\"en\"",
        "<main>",
        "<nav aria-label=\"Sections\">",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(part), "{part:?} is missing");
    }
    // The chart that decides, seven benchmarks, and of two of them the distribution and the course of the single times.
    let drawn: String =
        page.split("<template").map(|p| p.split_once("</template>").map_or(p, |p| p.1)).collect();
    assert_eq!(drawn.matches("<figure class=\"chart\"").count(), 12);
    assert_eq!(drawn.matches("role=\"img\"").count(), 12);
    assert!(
        drawn.contains("id=\"plot-dataset_distribution\"")
            && drawn.contains("id=\"plot-dataloader_timeline\"")
    );
    // It begins with the one chart that decides, and the sentences follow.
    let (before, after) = drawn.split_once("id=\"plot-decision\"").unwrap();
    assert!(!before.contains("<figure class=\"chart\"") && !before.contains("class=\"findings\""));
    let (chart, _) = after.split_once("class=\"findings\"").unwrap();
    assert_eq!(chart.matches("<figure class=\"chart\"").count(), 1);
    // Single times are folded away.
    for folded in ["dataset_distribution", "dataloader_timeline"] {
        let (before, _) = drawn.split_once(&format!("id=\"plot-{folded}\"")).unwrap();
        let (_, opened) = before.rsplit_once("<details class=\"more\">").unwrap();
        assert!(!opened.contains("</details>"), "{folded}");
    }
    // Nothing is loaded: the only addresses are names of files beside it, anchors and the SVG namespace.
    let rest = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http:", "https:", "//cdn", "@import", "url(", "<link", "<iframe"] {
        assert!(!rest.contains(outside), "{outside} leads outside");
    }
}

#[test]
fn every_series_can_be_switched_and_every_scale_chosen() {
    let page = html::page(&sample::input());
    let start = page.find("id=\"plot-storage\"").unwrap();
    let plot = &page[start..start + page[start..].find("<p class=\"how\">").unwrap()];
    for format in ["parquet", "tiff", "vortex"] {
        assert!(plot.contains(&format!("<input type=\"checkbox\" value=\"{format}\" checked>")), "{format}");
        assert!(plot.contains(&format!("<g class=\"mark\" data-s=\"{format}\"><title>")), "{format}");
    }
    // The one that is drawn is no template; the others are what is drawn when the scale is asked for.
    let scales = plot.matches("type=\"radio\"").count();
    assert!(scales >= 2 && plot.matches("<template data-scale=").count() == scales - 1, "{scales}");
    let log = plot.split("data-scale=\"logarithmic\"").nth(1).unwrap();
    assert!(log.contains("log scale") && log.contains("fig-storage-logarithmic"));
}

/// Every id once, every reference to an id answered, every tag closed in order.
fn check_structure(page: &str) {
    let mut ids = std::collections::HashSet::new();
    for id in page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.insert(id), "id {id:?} is used twice");
    }
    for reference in ["href=\"#", "aria-labelledby=\"", "aria-describedby=\"", "data-for=\""] {
        for list in page.split(reference).skip(1).filter_map(|rest| rest.split('"').next()) {
            for id in list.split(' ') {
                assert!(ids.contains(id), "{reference}{id} leads nowhere");
            }
        }
    }
    // Outside of style and script the page is XML but for void elements.
    let strip = |page: &str, tag: &str| {
        let start = page.find(&format!("<{tag}>")).expect("one of each");
        let end = page.find(&format!("</{tag}>")).expect("closed");
        format!("{}{}", &page[..start], &page[end + tag.len() + 3..])
    };
    let page = strip(&strip(page, "style"), "script");
    let mut reader = quick_xml::Reader::from_str(&page);
    reader.config_mut().check_end_names = false;
    let mut open: Vec<String> = vec![];
    loop {
        use quick_xml::events::Event;
        match reader.read_event().expect("markup that parses") {
            Event::Eof => break,
            Event::Start(e) => {
                let name = e.name().as_ref().to_owned();
                if !["meta", "img", "input", "br"].contains(&name.as_str()) {
                    open.push(name);
                }
            }
            Event::End(e) => assert_eq!(open.pop().unwrap(), e.name().as_ref()),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?} not closed");
}

#[test]
fn markup_is_sound() {
    check_structure(&html::page(&sample::input()));
    check_structure(&html::page(&ReportInput::default()));
}

#[test]
fn what_binds_and_what_to_do_are_seen_and_the_rest_is_folded() {
    let finding = |severity: Severity, text: &str| Finding::new(severity, text, "");
    let findings = vec![
        finding(Severity::Bad, "pixels differ"),
        finding(Severity::Info, "tiff is fastest"),
        finding(Severity::Good, "the model binds").about(Topic::Limit),
        finding(Severity::Bad, "loading binds in inference").about(Topic::Limit),
        finding(Severity::Good, "look at the model").about(Topic::Next),
        finding(Severity::Caution, "not measured: lance"),
    ];
    let mut input = ReportInput { findings, ..ReportInput::default() };
    let page = html::page(&input);
    check_structure(&page);
    let (seen, folded) = page.split_once("<summary>3 more findings</summary>").unwrap();
    for text in ["pixels differ", "the model binds", "look at the model"] {
        assert!(seen.contains(text) && !folded.contains(text), "{text}");
    }
    for text in ["tiff is fastest", "loading binds in inference", "not measured: lance"] {
        assert!(folded.contains(text) && !seen.contains(text), "{text}");
    }
    // The title asks for the fastest format.
    input.findings[1].topic = Topic::Format;
    let page = html::page(&input);
    let (seen, folded) = page.split_once("<summary>2 more findings</summary>").unwrap();
    assert!(seen.contains("tiff is fastest") && !folded.contains("tiff is fastest"));
    assert!(seen.contains("the model binds") && folded.contains("not measured: lance"));
    // Where a loop with the model was measured, what binds comes first, and the chart shows the fastest format.
    input.findings.swap(1, 2);
    let page = html::page(&input);
    let (seen, folded) = page.split_once("<summary>3 more findings</summary>").unwrap();
    assert!(seen.contains("the model binds") && folded.contains("tiff is fastest"));
    // Results of earlier versions do not say what a finding answers.
    for finding in &mut input.findings {
        finding.topic = Topic::Other;
    }
    assert!(!html::page(&input).contains("more findings"));
}

#[test]
fn results_that_can_be_repeated_from_their_summary_say_how() {
    let page = |details: serde_json::Value| {
        let details = details.as_object().cloned().unwrap_or_default();
        html::page(&ReportInput { details, ..ReportInput::default() })
    };
    let rerun = "<code>wellread rerun summary.json</code>";
    let told = page(serde_json::json!({"configuration": {"command": "wellread bench all"}}));
    assert!(told.contains(rerun));
    check_structure(&told);
    for unknown in [
        serde_json::json!({"configuration": {"command": ""}}),
        serde_json::json!({"configuration": "all"}),
        serde_json::json!({}),
    ] {
        assert!(!page(unknown).contains(rerun));
    }
}

#[test]
fn the_report_from_a_folder_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let input = sample::input();
    input.save(dir.path()).unwrap();
    let path = write_report(dir.path(), &input).unwrap();
    let first = std::fs::read_to_string(&path).unwrap();
    let again = ReportInput::from_dir(dir.path()).unwrap();
    assert_eq!(again.samples, input.samples);
    write_report(dir.path(), &again).unwrap();
    assert!(first == std::fs::read_to_string(&path).unwrap(), "the report made again differs");
}

#[test]
fn hostile_names_stay_text() {
    const EVIL: &str =
        "\"><script>alert(1)</script><img src=x onerror='alert(2)'>&lt;\u{0}\u{1b}</style></svg>]]>";
    let mut input = ReportInput {
        title: EVIL.into(),
        description: EVIL.into(),
        generated: EVIL.into(),
        findings: vec![Finding::new(Severity::Bad, EVIL, EVIL)],
        configuration: vec![(EVIL, EVIL).into()],
        environment: vec![(EVIL, EVIL).into()],
        machine: EVIL.into(),
        images: EVIL.into(),
        noise_floor: Some(f64::NAN),
        warnings: vec![EVIL.into()],
        thumbnails: vec![
            Thumbnail { caption: EVIL.into(), data_uri: "javascript:alert(1)".into() },
            Thumbnail {
                caption: EVIL.into(),
                data_uri: "data:image/png;base64,AA\" onload=\"alert(1)".into(),
            },
            Thumbnail::from_png(EVIL, b"png"),
        ],
        commands: vec![EVIL.into()],
        ..ReportInput::default()
    };
    for name in [
        "storage",
        "storage_compression",
        "storage_layout",
        "dataset",
        "dataloader",
        "loop",
        "conversion",
        EVIL,
    ] {
        let mut table = Table::new(name);
        table.push(row![
            ("format", EVIL),
            ("operation", EVIL),
            ("access", EVIL),
            ("transform", EVIL),
            ("model", EVIL),
            (EVIL, EVIL),
            ("seconds", 1.0),
            ("p50_s", 0.1),
            ("samples_per_sec", 3.0),
            ("images_per_sec", 3.0),
            (format!("{EVIL}_s"), 3.0),
            ("numpy_p50_s", 1.0),
            ("conversion_p50_s", 1.0),
            ("verified", false)
        ]);
        table.push(row![("format", "x"), ("status", "unavailable"), ("reason", EVIL)]);
        input.tables.push(table);
        let mut samples = Samples::new(name);
        samples.push(row![("format", EVIL), ("access", EVIL), ("run", 0)], vec![0.1, 0.2, 0.1]);
        samples.push(row![("format", "x"), ("access", "y"), ("run", 0)], vec![0.1, 0.2, 0.1]);
        input.samples.push(samples);
    }
    let page = html::page(&input);
    assert!(!page.contains("<script>alert") && !page.contains("<img src=x") && !page.contains("javascript:"));
    assert!(!page.contains("onload=\"") && !page.contains('\u{0}') && !page.contains('\u{1b}'));
    assert_eq!(page.matches("<script>").count(), 1);
    assert_eq!(page.matches("<img ").count(), 1);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    // The table's hostile name leads to no file.
    assert!(!page.contains(".parquet\">&quot;"));
}

#[test]
fn a_table_of_comparisons_says_its_own_runs_and_its_reasons_once() {
    let mut table = Table::new("tasks_compared");
    table.push(row![
        ("experiment", "e"),
        ("branch", "slow"),
        ("baseline", "main"),
        ("phase", "batch_step"),
        ("verdict", "slower"),
        ("ratio", 2.0),
        ("ratio_ci_low", 1.5),
        ("ratio_ci_high", 2.5),
        ("runs", 7)
    ]);
    table.push(row![
        ("experiment", "e"),
        ("branch", "broken"),
        ("baseline", "main"),
        ("status", "unavailable"),
        ("reason", "it did not run")
    ]);
    let page = html::page(&ReportInput { tables: vec![table], ..ReportInput::default() });
    assert!(page.contains("<td class=\"n\" data-v=\"7\">7</td>"), "seven runs, though it is one row");
    assert!(page.contains("<td data-v=\"slower\">slower</td>") && page.contains("title=\"95 % interval\""));
    assert!(page.contains("<p class=\"how\">A ratio below 1 is faster"), "words without a figure");
    assert!(!page.contains("id=\"plot-tasks_compared\""));
    assert_eq!(page.matches("it did not run").count(), 1, "not among the notes too");
}

/// A light build lacks three engines in each configuration of each benchmark, for one reason.
#[test]
fn what_is_missing_is_one_note_for_each_reason() {
    let mut input = ReportInput::default();
    for (name, key) in [("storage", "operation"), ("dataset", "access")] {
        let mut table = Table::new(name);
        for value in ["first", "second", "third"] {
            for format in ["duckdb", "lance", "vortex"] {
                table.push(row![
                    ("format", format),
                    (key, value),
                    ("status", "unavailable"),
                    ("reason", format!("left out of this build; build with --features {format}"))
                ]);
            }
            table.push(row![
                ("format", "tiff"),
                (key, value),
                ("run", 0),
                ("status", "ok"),
                ("seconds", 1.0)
            ]);
        }
        input.tables.push(table);
    }
    input.tables[0].push(row![
        ("format", "tiff"),
        ("operation", "write"),
        ("status", "unavailable"),
        ("reason", "the disk is full")
    ]);
    let page = html::page(&input);
    let (_, notes) = page.split_once("<ul class=\"notes\">").unwrap();
    let said: Vec<&str> = notes
        .lines()
        .take_while(|line| *line != "</ul>")
        .filter(|line| line.contains("this build") || line.contains("disk"))
        .collect();
    assert_eq!(
        said,
        [
            "<li>Storage, Dataset: single images: duckdb; lance; vortex: left out of this build</li>",
            "<li>Storage: tiff, write: the disk is full</li>"
        ]
    );
}

/// Each benchmark has a noise floor of its own: the largest of all says nothing of the others.
#[test]
fn notes_give_each_benchmark_its_noise_floor_and_name_the_noisy_ones() {
    let input = wellread_report::ReportInput {
        noise_floor: Some(1.48),
        noise_floors: [("storage".to_owned(), 1.48), ("loop".to_owned(), 0.021)].into(),
        ..sample::input()
    };
    let page = html::page(&input);
    let (notes, most) = (page.find("Noise floor of each benchmark").unwrap(), "148");
    let rest = &page[notes..];
    assert!(rest.contains(most) && rest.contains("2.1"), "both are given");
    assert!(page.contains("Too noisy for conclusions: storage. Repeat"), "as the terminal says");
    assert!(!page.contains("differed by 148"), "no one figure for all");
}
