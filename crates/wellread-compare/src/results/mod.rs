//! Results of any command, read from what it wrote.
//!
//! | given | read as |
//! |---|---|
//! | folder with `*.parquet` | `bench --out`, or the report folder of `infer`: tables and `summary.json` |
//! | folder with `benchmark_results_*.csv` | `infer --output-dir`, if there is one run in it |
//! | folder with other `*.csv` | each a table |
//! | `*.parquet`, `*.csv` | one table; of `infer`, the JSON file beside it, which holds all samples |
//! | `*.json` | `summary.json`, `infer`'s samples, `tasks`' results |
//!
//! | module | what it holds |
//! |---|---|
//! | `files` | which of these a path is |
//! | `kinds` | the kind of a table by its columns, where its file has a name of its own |
//! | `json`, `latency` | what JSON says; `infer`'s own table in the terms of all others |
//! | `types` | the facts of one side, from any source |
//! | `usage` | the error of words that do not go with the results |

mod files;
mod json;
mod kinds;
mod latency;
mod types;
mod usage;

pub(crate) use json::TASKS;
pub(crate) use kinds::{file_names, is_known};
pub use types::{PROCESS, Results};
pub use usage::UsageError;
