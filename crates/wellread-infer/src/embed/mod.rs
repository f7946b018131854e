//! Features of every image of a set by a model, as a table of profiles: `wellread embed`.
//!
//! ```text
//!  set ─▶ Loader (rows in order) ─▶ Extractor (a process with the model) ─▶ Features (pooled, checked)
//!                                                                              │ rows x features
//!   PATH/.wellread-resume-NAME/part-000000.parquet … and a journal of those ◀──┘
//!       │ that are whole: an interrupted run goes on behind them
//!       └─ joined with the set's columns ─▶ NAME, by one rename
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `options` | [`EmbedOptions`]: what is asked for |
//! | `model` | which model it is, whether images fit it, its process |
//! | `extractor` | batches to outputs |
//! | `features` | outputs to features of each image |
//! | `parts` | parts of the table, written and read |
//! | `table` | how the table is laid out |
//! | `join` | parts and columns of the set to the table |
//! | `fingerprint` | what a table is made of, in a line |
//! | `since` | whether images were written anew since |
//! | `run` | all of it in order |

mod extractor;
mod features;
mod fingerprint;
mod join;
mod model;
mod options;
mod parts;
mod run;
mod since;
mod table;

pub use features::Pool;
pub use options::{EmbedOptions, ModelName};
pub use run::{Event, Summary, run};
pub use table::FeatureLayout;
