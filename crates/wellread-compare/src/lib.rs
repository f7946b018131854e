//! Comparing two results: which configurations became faster or slower, beyond chance and noise.
//!
//! ```text
//!  files, folders ──results──▶ Results A, B ─┐
//!  git revisions ──revisions─▶ Results A, B ─┤   tables, noise floors, what they were measured on and with
//!                                            ├─provenance─▶ what differs besides the figures
//!                                            ├─series─────▶ configurations: keys, samples or an interval
//!                                            └─judge──────▶ Comparison: ratio, interval, verdict per row
//!                       text, markdown, JSON ◀──────┘  └──history──▶ FILE.jsonl ─▶ changes over many runs, figure
//! ```
//!
//! The rule for a row has these parts. [`judge`] applies it; [`wellread_measure::compare`] compares with the floor. `ratio` is
//! what B takes over what A takes (of rates, their inverse), with its 95 % interval, over processes
//! ([`wellread_measure::nested`]). **Slower** (or faster): the interval lies beyond 1, and the row's test, corrected for all rows
//! of its table, leaves at most 5 %. Where rounds are pairs or those of one process, the interval also lies beyond the noise
//! floor. **Same**: the whole interval is within the threshold. Else **unclear**. A regression is a slower row whose interval
//! reaches the threshold.
//!
//! Rounds of one process say nothing of the next process. With fewer than three processes a side there is a ratio
//! "within these runs only" and no verdict. This holds unless [`Options::same_conditions`] says that the runs stand for more. Two
//! revisions are measured in turns, a process each, and compared in pairs.
//!
//! Imports go one way, from above to below:
//!
//! | layer | module | what it holds |
//! |---|---|---|
//! | results as text | [`text`] | for a terminal and as Markdown |
//! | | [`history`], [`figure`] | one record per run, changes over many; these as a figure |
//! | sides | [`revisions`] | two commits built and measured in turns |
//! | | [`sides`] | several results as one side, their processes counted |
//! | | [`rounds`] | runs measured in turns: noise floors by row |
//! | the rule | [`judge`] | [`compare`], [`Options`] |
//! | | [`verdict`] | [`Comparison`], [`Row`], [`RowVerdict`] |
//! | | [`coverage`] | [`Difference`]: rows, rounds and steps that one side alone has |
//! | | `alike` | two files of one table each under one name, where their columns fit |
//! | results | [`provenance`] | [`Difference`]: data, machine, versions, configuration, seed |
//! | | [`series`] | one configuration's samples of one quantity |
//! | | [`results`] | [`Results`] from Parquet, CSV and JSON as the suite, `infer` and `tasks` write them |

mod alike;
pub mod coverage;
pub mod figure;
pub mod history;
pub mod judge;
pub mod provenance;
pub mod results;
pub mod revisions;
pub mod rounds;
pub mod series;
pub mod sides;
pub mod text;
pub mod verdict;

pub use judge::{Options, compare};
pub use provenance::Difference;
pub use results::{Results, UsageError};
pub use rounds::{append, condensed};
pub use verdict::{Comparison, Row, RowVerdict};
