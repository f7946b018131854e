//! `report.html`: one file that needs nothing else, for reading, printing and screen readers.
//!
//! Every text that comes from outside is escaped where it is written (`escape`). A content security policy in
//! the page forbids it to load or send anything. The page is whole without its script, which sorts, filters,
//! copies, and switches the theme. It also reads out the values of figures, hides their series and changes their scale.

mod plots;
mod tables;

use crate::chart::color;
use crate::chart::svg::escape;
use crate::input::{Fact, Finding, ReportInput, Severity, Thumbnail, Topic};
use crate::table::{Table, samples};
use crate::words::counted;
use crate::{Result, columns, figures, folder, staged};
use std::path::{Path, PathBuf};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const CHARTS: &str = include_str!("charts.js");

/// Name of the report in a results folder.
pub const FILE_NAME: &str = "report.html";

/// Writes `report.html` into a results folder, whole or not at all; returns its path.
///
/// # Errors
/// The file cannot be written.
pub fn write_report(dir: impl AsRef<Path>, input: &ReportInput) -> Result<PathBuf> {
    let path = dir.as_ref().join(FILE_NAME);
    staged::write(&path, page(input).as_bytes())?;
    Ok(path)
}

/// The report as HTML.
pub fn page(input: &ReportInput) -> String {
    let title = if input.title.is_empty() { "wellread report" } else { &input.title };
    let mut nav = vec![
        ("answer".to_owned(), "Answer".to_owned()),
        ("measured".into(), "Images, machine and settings".into()),
    ];
    let (lead, rest) = first_sentence(&input.description);
    let mut sections = measured(input, rest);
    for table in &input.tables {
        let name = figures::heading(table.name());
        sections += &benchmark(table, input, &name);
        nav.push((section_id(table), name));
    }
    sections += &notes(input);
    sections += &commands_and_files(input);
    nav.extend([("notes".into(), "Notes".into()), ("again".into(), "Run it again".into())]);
    let nav: Vec<_> = nav
        .iter()
        .map(|(id, name)| format!("<li><a href=\"#{}\">{}</a></li>\n", escape(id), escape(name)))
        .collect();
    let nav = nav.concat();
    let dark = format!(
        "@media screen and (prefers-color-scheme: dark){{\n{}}}\n@media screen{{\n{}}}\n",
        color::dark_css(":root:not([data-theme=light])"),
        color::dark_css(":root[data-theme=dark]")
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{dark}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#answer\">Skip to the answer</a>\n\
         <header>\n<div class=\"top\"><p class=\"kicker\">wellread report{generated}</p>\n\
         <button type=\"button\" id=\"theme\" hidden>Dark</button></div>\n\
         <h1>{title}</h1>\n{lead}</header>\n\
         <main>\n{answer}<nav aria-label=\"Sections\"><ul>\n{nav}</ul></nav>\n{sections}</main>\n\
         <footer><p>Made by wellread {version}. Everything in this file was computed from the result files beside \
         it; <code>wellread report DIR</code> makes it again.</p></footer>\n<script>\n{SCRIPT}{CHARTS}</script>\n</body>\n</html>\n",
        title = escape(title),
        generated = if input.generated.is_empty() {
            String::new()
        } else {
            format!(" · {}", escape(&input.generated))
        },
        lead = paragraph("lead", lead),
        answer = answer(input),
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// A paragraph of a class; nothing when there is no text.
fn paragraph(class: &str, text: &str) -> String {
    if text.trim().is_empty() {
        String::new()
    } else {
        format!("<p class=\"{class}\">{}</p>\n", escape(text))
    }
}

/// The first sentence of a text, and the rest.
fn first_sentence(text: &str) -> (&str, &str) {
    text.find(". ").map_or((text, ""), |end| text.split_at(end + 1))
}

/// The findings that are seen at once, and those that are folded. Problems are seen. So are the first on the fastest format, on
/// the limit and on the next step. The first of all stands for the format and the limit where none is on either. A limit that comes
/// first answers more than the fastest format, which the chart shows. Where none says any of these, all are seen.
fn seen_and_folded(all: &[Finding]) -> (Vec<&Finding>, Vec<&Finding>) {
    if all.iter().all(|finding| finding.topic == Topic::Other) {
        return (all.iter().collect(), vec![]);
    }
    let first = |topic: Topic| all.iter().position(|finding| finding.topic == topic);
    let answers = [Topic::Format, Topic::Limit].map(first);
    let told = match answers {
        [None, None] => [first(Topic::Other), first(Topic::Next), None],
        [Some(format), Some(limit)] if limit < format => [Some(limit), first(Topic::Next), None],
        [format, limit] => [format, limit, first(Topic::Next)],
    };
    let is_seen = |at: usize| {
        let is_problem = all[at].severity == Severity::Bad && all[at].topic == Topic::Other;
        is_problem || told.contains(&Some(at))
    };
    let (seen, folded): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(|&at| is_seen(at));
    let of = |places: Vec<usize>| places.into_iter().map(|at| &all[at]).collect();
    (of(seen), of(folded))
}

/// A list of findings, their details folded.
fn list(findings: &[&Finding]) -> String {
    let items = findings.iter().map(|f| {
        let (class, sign, word) = match f.severity {
            Severity::Good => ("good", "✓", "Good"),
            Severity::Info => ("info", "i", "Note"),
            Severity::Caution => ("caution", "!", "Caution"),
            Severity::Bad => ("bad", "✗", "Problem"),
        };
        // Advice has a word of its own.
        let advice = f.text.strip_prefix("Next: ");
        let (word, text) = advice.map_or((word, f.text.as_str()), |text| ("Next", text));
        let detail = match paragraph("detail", &f.detail) {
            text if text.is_empty() => text,
            text => format!("<details><summary>Details</summary>\n{text}</details>"),
        };
        format!(
            "<li class=\"{class}\"><span class=\"sign\" aria-hidden=\"true\">{sign}</span><div>\
             <p><span class=\"word\">{word}: </span>{}</p>{detail}</div></li>\n",
            escape(text),
        )
    });
    format!("<ul class=\"findings\">\n{}</ul>\n", items.collect::<String>())
}

/// The chart that decides, then what [`seen_and_folded`] shows. Folded below are the words on the chart and the other findings.
fn answer(input: &ReportInput) -> String {
    let (seen, folded) = seen_and_folded(&input.findings);
    let mut body = if seen.is_empty() {
        "<p>The run compared nothing, so there is no answer; the figures below have the results.</p>\n"
            .to_owned()
    } else {
        list(&seen)
    };
    let chart = figures::answer::chart(input);
    body += &chart.as_ref().map_or(String::new(), |(_, how)| plots::folded(how));
    if !folded.is_empty() {
        body += &format!(
            "<details class=\"more\"><summary>{}</summary>\n{}</details>\n",
            counted(folded.len(), "more finding"),
            list(&folded)
        );
    }
    let chart = chart.map_or(String::new(), |(figure, _)| plots::plot(&figure));
    section("answer", "The answer", &(chart + &body))
}

/// Pictures, and, folded, the words on the figures, configuration and environment. Pictures are seen: a benchmark of the wrong
/// images is easy to make.
fn measured(input: &ReportInput, about: &str) -> String {
    let mut body = String::new();
    let pictures: String = input.thumbnails.iter().filter_map(picture).collect();
    if !pictures.is_empty() {
        body += &format!("<ul class=\"pictures\">\n{pictures}</ul>\n");
    }
    body += "<details class=\"more\"><summary>Settings, machine and how the figures were made</summary>\n";
    body += &paragraph("about", about);
    body += "<div class=\"pair\">\n";
    body += &facts("Measured", &input.configuration);
    body += &facts("Measured on", &input.environment);
    body += "</div>\n</details>\n";
    section("measured", "Images, machine and settings", &body)
}

fn facts(caption: &str, facts: &[Fact]) -> String {
    let rows = facts.iter().map(|f| {
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(&f.name), escape(&f.value))
    });
    let rows: String = rows.collect();
    let rows = if rows.is_empty() { "<tr><td>not recorded</td></tr>\n".to_owned() } else { rows };
    format!("<table class=\"facts\"><caption>{caption}</caption><tbody>\n{rows}</tbody></table>\n")
}

/// A picture; nothing when it is not a PNG given as data.
fn picture(thumbnail: &Thumbnail) -> Option<String> {
    let data = thumbnail.data_uri.strip_prefix("data:image/png;base64,")?;
    let plain = data.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
    (plain && !data.is_empty()).then(|| {
        let caption = escape(&thumbnail.caption);
        format!("<li><figure><img src=\"data:image/png;base64,{data}\" alt=\"Thumbnail of {caption}\"><figcaption>{caption}</figcaption></figure></li>\n")
    })
}

/// A benchmark's figure and table.
fn benchmark(table: &Table, input: &ReportInput, name: &str) -> String {
    let mut body = String::new();
    let how = figures::how_to_read(table.name());
    match figures::figure(table, input) {
        Some(figure) => body += &plots::html(&figure, how),
        None if columns::is_derived(table.name()) => body += &paragraph("how", how),
        None => {}
    }
    body += &tables::html(table, &section_id(table), name);
    for (figure, how) in figures::samples::of(input, table) {
        body += &format!(
            "<details class=\"more\"><summary>{}</summary>\n{}</details>\n",
            escape(&figure.title),
            plots::html(&figure, how)
        );
    }
    section(&section_id(table), name, &body)
}

/// The causes of less certain figures.
fn notes(input: &ReportInput) -> String {
    let mut items: Vec<String> = vec![];
    let unfinished = input.details.get("unfinished").and_then(serde_json::Value::as_array);
    if let Some(unfinished) = unfinished.filter(|all| !all.is_empty()) {
        let names: Vec<_> = unfinished.iter().filter_map(|name| name.as_str()).collect();
        items.push(format!(
            "This run was interrupted: {} did not finish and {} not in this report.",
            names.join(", "),
            if names.len() == 1 { "is" } else { "are" }
        ));
    }
    let floors: Vec<String> = input
        .noise_floors
        .iter()
        .filter(|(_, floor)| floor.is_finite())
        .map(|(table, floor)| format!("{} {}", figures::heading(table), figures::noise_text(*floor)))
        .collect();
    match input.noise_floor.filter(|n| n.is_finite()) {
        // That of another benchmark says nothing of one.
        _ if !floors.is_empty() => items.push(format!(
            "Noise floor of each benchmark: the same thing measured twice (A/A) differed by this share. Smaller differences mean \
             nothing: {}.",
            floors.join(", ")
        )),
        Some(noise) => items.push(format!(
            "Noise floor: the same thing measured twice (A/A) differed by {}. Smaller differences mean nothing.",
            figures::noise_text(noise)
        )),
        None => items.push("No noise floor was measured: differences of a few percent may be chance.".into()),
    }
    items.extend(input.too_noisy());
    if !input.detectable.is_empty() {
        let each = input
            .detectable
            .iter()
            .map(|(table, least)| format!("{} {}", figures::heading(table), figures::noise_text(*least)));
        let each = each.collect::<Vec<_>>().join(", ");
        items.push(format!(
            "Within one process a slow-down is found in nine of ten cases from this size on, as far as A/A shows: \
             {each}. The next process may differ by more."
        ));
    }
    items.extend(input.warnings.iter().map(|w| format!("Warning: {w}")));
    // The problems of a derived table stand with the table it is from. A reason that several tables give is one line.
    let mut missing: Vec<((String, String), Vec<String>)> = vec![];
    for table in input.tables.iter().filter(|table| !columns::is_derived(table.name())) {
        let keys = columns::keys(table);
        let heading = figures::heading(table.name());
        let all = columns::configurations(table, &keys, &[]);
        for told in figures::missing(&keys, &all) {
            match missing.iter_mut().find(|(known, _)| *known == told) {
                Some((_, headings)) => headings.push(heading.clone()),
                None => missing.push((told, vec![heading.clone()])),
            }
        }
        let unverified = all.iter().filter(|c| c.unverified).map(|c| {
            let name = figures::labelled_name(&keys, &c.group.key);
            format!("{heading}: {name}: pixels not verified; do not use its figures")
        });
        items.extend(unverified);
    }
    let told = |((who, why), headings): &((String, String), Vec<String>)| {
        format!("{}: {who}: {why}", headings.join(", "))
    };
    items.extend(missing.iter().map(told));
    let items: Vec<_> = items.iter().map(|i| format!("<li>{}</li>\n", escape(i))).collect();
    section("notes", "Notes", &format!("<ul class=\"notes\">\n{}</ul>\n", items.concat()))
}

/// A command that can be copied.
fn command(line: &str) -> String {
    format!(
        "<div class=\"command\"><pre tabindex=\"0\"><code>{}</code></pre><button type=\"button\" class=\"copy\" hidden>Copy</button></div>\n",
        escape(line)
    )
}

/// Commands and files.
fn commands_and_files(input: &ReportInput) -> String {
    let mut body: String = input.commands.iter().map(|line| command(line)).collect();
    if input.commands.is_empty() {
        body += "<p>No commands were recorded with these results.</p>\n";
    }
    let recorded = input.details.get("configuration").and_then(|all| all["command"].as_str());
    if recorded.is_some_and(|line| !line.is_empty()) {
        body += "<p>Or repeat the recorded run in the folder of this report; this also reports which versions \
                 and hardware differ:</p>\n";
        body += &command("wellread rerun summary.json");
    }
    body += "<h3>Files beside this report</h3>\n<ul class=\"files\">\n";
    body += "<li><a href=\"summary.json\">summary.json</a>: aggregates, configuration, environment</li>\n";
    for table in input.tables.iter().filter(|t| folder::is_plain_name(t.name())) {
        let name = table.name();
        let file = |ending: &str| format!("<a href=\"{name}.{ending}\">{name}.{ending}</a>");
        let mut files = vec![file("parquet"), file("csv")];
        if figures::figure(table, input).is_some() {
            files.extend([file("svg"), file("png")]);
        }
        body += &format!("<li>{}: {}</li>\n", files.join(", "), counted(table.rows(), "row"));
        let of_samples = figures::samples::of(input, table);
        if !of_samples.is_empty() {
            let path = format!("{}/{name}.parquet", samples::FOLDER);
            let mut files = vec![format!("<a href=\"{path}\">{path}</a>")];
            for (figure, _) in of_samples {
                files.extend(["svg", "png"].map(|e| format!("<a href=\"{0}.{e}\">{0}.{e}</a>", figure.name)));
            }
            body += &format!("<li>{}: every single measurement</li>\n", files.join(", "));
        }
    }
    body += "</ul>\n";
    section("again", "Run it again", &body)
}

fn section(id: &str, name: &str, body: &str) -> String {
    let id = escape(id);
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{}</h2>\n{body}</section>\n",
        escape(name)
    )
}

fn section_id(table: &Table) -> String {
    format!("bench-{}", table.name())
}
