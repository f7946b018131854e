//! Result tables, figures and the HTML report.
//!
//! ```text
//!  benchmark ──row!──▶ Table ┐
//!  findings, environment ────┴▶ ReportInput ──save──▶ WHAT.parquet, WHAT.csv, summary.json
//!                                  │   ▲─────from_dir──────────┘
//!                                  ├──write_figures──▶ WHAT.svg, WHAT.png
//!                                  └──write_report───▶ report.html (one file, figures inline, no network)
//! ```
//!
//! Figures and report are drawn from what is on disk and nothing else, so `wellread report DIR` gives the same
//! as the benchmark did.
//!
//! | module | what it holds |
//! |---|---|
//! | [`table`] | [`Table`]: columns with nulls; Parquet, CSV, JSON; estimates over runs |
//! | [`columns`] | what the columns mean: keys, quantities, units |
//! | [`number`] | numbers and units as text |
//! | [`summary`] | `summary.json` |
//! | [`input`] | [`ReportInput`] and its parts |
//! | `folder`, [`staged`] | how it lies in a results folder; files that appear whole or not at all |
//! | [`chart`] | figures as data; SVG and PNG |
//! | [`figures`] | the figure of each benchmark |
//! | [`html`] | the report |
//! | [`words`], [`error`] | numbers and lists of things in sentences; the one error type |

pub mod chart;
pub mod columns;
pub mod error;
pub mod figures;
mod folder;
pub mod html;
pub mod input;
pub mod number;
pub mod staged;
pub mod summary;
pub mod table;

pub use error::{Error, Result};
pub use figures::write_figures;
pub use html::write_report;
pub use input::{Fact, Finding, ReportInput, Severity, TOO_NOISY, Thumbnail, Topic};
pub use table::{Cell, Column, Estimate, IntervalKind, Row, SAMPLES_FOLDER, Samples, Table, Values};
pub use wellread_image::words;
