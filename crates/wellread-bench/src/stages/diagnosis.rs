//! The diagnosis of a set: the loop from each source, the time that each stage adds, and the stage that binds.

use super::figure::Figure;
use crate::sample::Sample;
use serde::{Serialize, Serializer};
use wellread_measure::limits::CopyLimits;

/// One way of running the loop.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// `cold`, `warm`, `cached`, `synthetic`.
    pub name: &'static str,
    /// Microseconds of an image.
    pub us_per_image: Figure,
    /// Images per second at the median; none of a run that does nothing.
    pub images_per_s: Option<f64>,
    /// Bytes of batches per second as a share of memory copy by as many threads.
    pub share_of_copy: Option<f64>,
    /// One value per round, microseconds.
    pub rounds_us: Vec<f64>,
}

/// The time that one stage adds.
#[derive(Clone, Debug, Serialize)]
pub struct Stage {
    /// `storage`, `decoding`, `copying`, `model`; of sets behind a network `fetching`, which is the link and decoding.
    pub name: &'static str,
    /// A description.
    pub about: &'static str,
    /// Microseconds that it adds to an image. Below zero where noise is larger than what it adds.
    pub us_per_image: Figure,
    /// The same as a share of the slowest run's time.
    pub share: Figure,
    /// One share per round.
    #[serde(skip)]
    pub(super) shares: Vec<f64>,
}

/// The findings.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// The images.
    pub sample: Sample,
    /// Images of a batch.
    pub batch_size: usize,
    /// Threads that read ahead.
    pub workers: usize,
    /// The model, in words.
    pub model: String,
    /// Rounds that were measured.
    pub rounds: usize,
    /// The loop from each source, slowest first.
    pub runs: Vec<Run>,
    /// The time that each stage adds, in the order in which pixels go through them.
    pub stages: Vec<Stage>,
    /// Name of the stage that binds; `None` where the data do not tell.
    pub binds: Option<&'static str>,
    /// Name of the stage that binds once files are in the page cache.
    pub binds_warm: Option<&'static str>,
    /// Time of computing over all time, from files in the page cache and from cold ones: accelerator utilisation. Only with
    /// a model.
    pub utilisation: Vec<(&'static str, Figure)>,
    /// The answer in a sentence.
    pub verdict: String,
    /// Notes on problems.
    pub notes: Vec<String>,
    /// Memory copy, the limit that shares are of.
    #[serde(serialize_with = "bandwidths")]
    pub memory_copy: CopyLimits,
}

fn bandwidths<S: Serializer>(limits: &CopyLimits, serializer: S) -> Result<S::Ok, S::Error> {
    let rate = |b: wellread_measure::limits::Bandwidth| b.bytes_per_second;
    serializer.collect_map([
        ("one_thread_bytes_per_s", rate(limits.one_thread)),
        ("all_threads_bytes_per_s", rate(limits.all_threads)),
    ])
}
