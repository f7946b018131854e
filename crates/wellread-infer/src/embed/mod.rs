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
//! | `ready` | a set and a model that is open |
//! | `work` | images to parts |
//! | `making` | which parts are left, and the table of them in its place |
//! | `run` | all of it in order |
//! | `node`, `gather` | the same on a cluster: what a node does ([`PartWorker`]), and who puts parts together ([`Gatherer`]) |
//! | `outcome` | what is told meanwhile, and what came of it |

mod extractor;
mod features;
mod fingerprint;
mod gather;
mod join;
mod making;
mod model;
mod node;
mod options;
mod outcome;
mod parts;
mod ready;
mod run;
mod since;
mod table;
mod work;

pub use features::Pool;
pub use gather::{Gatherer, RemainingWork};
pub use node::PartWorker;
pub use options::{EmbedOptions, ModelName};
pub use outcome::{Event, Summary};
pub use ready::Described;
pub use run::run;
pub use table::FeatureLayout;
