//! A short study of a user's own set. It finds the format to keep it in, the choices for loading it, the waiting of a
//! model for data.
//!
//! ```text
//!  sample of the set ─▶ candidates: written in every format, codec, chunk size (scratch folder, removed)
//!                            │ screened: few rounds of all
//!                            ▼ measured: many rounds of the best, the smallest and the set as it is
//!                  choose: format ─▶ workers ─▶ batch size ─▶ cache       each measured with what was chosen before
//!                            │ of cells: cut out at random, in block order, or stored
//!                            ▼
//!                  predict: data wait at a step time, checked in the same rounds against a real loop
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`study`](mod@study) | the sections, one after the other |
//! | `settings` | what to study and how long |
//! | `advice` | what a study gives |
//! | `context` | a study under way, as its sections need it |
//! | [`allowance`] | what there is time for |
//! | [`candidates`] | writing the sample |
//! | [`measure`] | interleaved rounds |
//! | `verdict` | one alternative beside another, and the word for it |
//! | [`choose`] | the rules, and their reasons |
//! | `copy_reasons` | the reasons by size and work that both rules share |
//! | `choose_link` | those of a set behind a network |
//! | `screening` | all candidates measured briefly, the promising ones at length |
//! | `crops` | of cells: crops that are stored, or cut out on the fly in two orders |
//! | `loading` | sections of the loader: workers, batch sizes, caches |
//! | [`predict`] | the equation of waiting, and its check |
//! | `over_link`, `counted` | of a set behind a network: requests, bytes and images per second of each way of keeping it there |

mod advice;
pub mod allowance;
pub mod candidates;
pub mod choose;
mod choose_link;
mod context;
mod copy_reasons;
mod counted;
mod crops;
mod loading;
pub mod measure;
mod over_link;
pub mod predict;
mod screening;
mod settings;
pub mod study;
mod verdict;

pub use advice::{
    Advice, CandidateResult, CropAdvice, CropResult, CropSource, LinkAdvice, LinkPrediction, Recommendation,
    SettingResult,
};
pub use settings::Settings;
pub use study::{Studied, study};
pub use verdict::{PairedComparison, SpeedVerdict};
