//! The order of a report: the answer comes first, and what few readers need is folded.

use crate::sample;
use wellread_report::{ReportInput, html};

/// The body of a page: style and script name the same classes.
fn body(input: &ReportInput) -> String {
    let page = html::page(input);
    let (_, body) = page.split_once("<body>").unwrap();
    body.split_once("<script>").unwrap().0.to_owned()
}

#[test]
fn a_report_begins_with_title_one_line_chart_and_what_to_do() {
    let body = body(&sample::input());
    let order = [
        "<h1>",
        "<p class=\"lead\">",
        "id=\"plot-decision\"",
        "<figure class=\"chart\"",
        "class=\"tools\"",
        "<ul class=\"findings\">",
        "Next: ",
        "<details class=\"how\">",
        "<nav aria-label=\"Sections\">",
        "<section id=\"measured\"",
    ];
    let places: Vec<usize> = order.iter().map(|part| body.find(part).expect(part)).collect();
    assert!(places.is_sorted(), "{:?}", order.iter().zip(&places).collect::<Vec<_>>());
    // The words on the chart are folded. Those on other figures are not.
    let (answer, rest) = body.split_once("<nav ").unwrap();
    assert_eq!(answer.matches("How to read this").count(), 1);
    assert!(answer.contains("<summary>How to read this</summary>"));
    assert!(rest.contains("<p class=\"how\"><strong>How to read this.</strong>"));
}

#[test]
fn the_head_has_one_line_and_the_rest_of_the_description_is_folded() {
    let of = |description: &str| {
        body(&ReportInput { description: description.to_owned(), ..ReportInput::default() })
    };
    let page = of("Measured on 384 images, seed 42. Every figure is a median. Fewer give no interval.");
    assert!(page.contains("<p class=\"lead\">Measured on 384 images, seed 42.</p>"));
    let (before, after) = page.split_once("Every figure is a median. Fewer give no interval.").unwrap();
    let (measured, folded) = before.rsplit_once("<details class=\"more\">").unwrap();
    assert!(measured.contains("<section id=\"measured\"") && !folded.contains("</details>"));
    assert!(after.contains("</details>"));
    // One sentence alone, and none.
    let page = of("Nothing was measured on 4 images.");
    assert!(page.contains("<p class=\"lead\">Nothing was measured on 4 images.</p>"));
    assert!(!page.contains("class=\"about\""));
    let page = of("");
    assert!(!page.contains("class=\"lead\"") && !page.contains("class=\"about\""));
}

#[test]
fn pictures_are_seen_and_settings_are_folded() {
    let body = body(&sample::input());
    let (_, measured) = body.split_once("<section id=\"measured\"").unwrap();
    let (seen, folded) = measured.split_once("<details class=\"more\">").unwrap();
    assert!(seen.contains("<ul class=\"pictures\">") && !seen.contains("<table"));
    let (folded, _) = folded.split_once("</details>").unwrap();
    assert_eq!(folded.matches("<table class=\"facts\">").count(), 2);
}
