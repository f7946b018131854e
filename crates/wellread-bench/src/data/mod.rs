//! The image sets that benchmarks read: generated or converted into every format, kept until stale.
//!
//! ```text
//!  Source ──prepare──▶ folder/images.parquet, tiff/ …   one set per format
//!     generated or read once, written     expected.json   checksum of every image
//!     by one writer per format            set.json        what was made from what
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `source` | synthetic sets, and sets that are there |
//! | `formats` | the copy of a set in each format |
//! | `record` | `set.json` and `expected.json` |
//! | `plate` | a plate in the files of a microscope; `wellread generate --plate` |
//! | [`write`] | one writer per format side by side; `wellread generate` |
//! | [`prepare`](mod@prepare) | keeping a folder of sets up to date for a benchmark |

mod formats;
mod plate;
pub mod prepare;
mod record;
mod source;
pub mod write;

pub use formats::{FormatSet, parse_formats, set_name};
pub(crate) use formats::{absent_sets, find_codecs};
pub use plate::{PlateLayout, PlateSet, PlateSize, PlateSpec, generate_plate};
pub(crate) use prepare::prepare_in_thread;
pub use prepare::{Prepared, prepare};
pub use record::EXPECTED;
pub(crate) use source::open_checked;
pub use source::{SetSpec, Source, SourceCells, no_masks, open_source};
pub use write::generate;
