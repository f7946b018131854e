//! The result of a study: the candidates, the recommendation with its reasons, and the waiting of a model.

use super::candidates::Candidate;
use super::predict::Prediction;
use super::verdict::SpeedVerdict;
use crate::link::LinkSpeed;
use crate::sample::Sample;
use crate::stages::Figure;
use serde::{Serialize, Serializer};
use wellread_loader::Cache;

/// One candidate with its figures.
#[derive(Clone, Debug, Serialize)]
pub struct CandidateResult {
    /// The candidate.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// Its name in sentences.
    pub name: String,
    /// Bytes of the whole set, extrapolated from the sample.
    pub bytes_of_set: f64,
    /// Images per second in batches, files in memory.
    pub images_per_s: Figure,
    /// The same as a share of memory copy.
    pub share_of_copy: f64,
    /// Microseconds of a single image at random.
    pub single_us: Figure,
    /// Images per second from cold files, where they can be dropped from memory.
    pub cold_images_per_s: Option<Figure>,
    /// Time in batches over that of the fastest, where it was measured with it.
    pub versus_fastest: Option<Figure>,
    /// Whether that is a difference; `too few data` of those that were only screened.
    pub verdict: SpeedVerdict,
    /// Whether it was measured further after screening.
    pub finalist: bool,
    /// Whether it was read over a link, as a set behind a network is. All others are copies on this machine's disk, and their figures
    /// do not compare with it.
    pub over_link: bool,
}

/// One setting of the loader with its figure.
#[derive(Clone, Debug, Serialize)]
pub struct SettingResult {
    /// The value.
    pub value: String,
    /// Milliseconds: a step with its wait, or where no step time is given the shortest step without wait (workers).
    /// Microseconds of an image (batch sizes, caches). Infinite where every step waits.
    pub time: Figure,
}

/// The recommendation.
#[derive(Clone, Debug, Serialize)]
pub struct Recommendation {
    /// Format name.
    pub format: &'static str,
    /// For `convert --compression`; `None` where the set stays as it is.
    pub compression: Option<wellread_store::Compression>,
    /// For `convert --chunk`.
    pub chunk: Option<[usize; 5]>,
    /// Whether the set stays as it is.
    pub as_it_is: bool,
    /// Threads that read ahead.
    pub workers: usize,
    /// Images of a batch: as asked for, where it was.
    pub batch_size: usize,
    /// The cache for images.
    #[serde(serialize_with = "as_text")]
    pub cache: Cache,
    /// Why, in sentences: format, workers, batch size, cache.
    pub reasons: [Vec<String>; 4],
}

fn as_text<S: Serializer>(value: &Cache, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// One way of keeping the set, there.
#[derive(Clone, Debug, Serialize)]
pub struct LinkPrediction {
    /// Its name in sentences.
    pub name: String,
    /// Requests of an epoch of the whole set.
    pub requests_per_epoch: f64,
    /// Bytes of an epoch of the whole set.
    pub bytes_per_epoch: f64,
    /// Images per second, in random order.
    pub images_per_s: f64,
    /// Whether that is an upper bound: how fast this machine decodes it is not known.
    pub at_most: bool,
    /// The limit: `latency`, `bandwidth`, `decoding`.
    pub bound_by: &'static str,
    /// The cost of the requests of an epoch, where a price was given.
    pub cost_per_epoch: Option<f64>,
}

/// The link, and every way of keeping the set, the fastest first. Those with upper bounds alone come last.
#[derive(Clone, Debug, Serialize)]
pub struct LinkAdvice {
    /// As it was found.
    pub link: LinkSpeed,
    /// By images per second.
    pub predictions: Vec<LinkPrediction>,
}

/// Where a loader has the crops of cells from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CropSource {
    /// Cut out on the fly, in fully random order.
    Random,
    /// Cut out on the fly, in block order, of images that a cache keeps.
    Block,
    /// Stored beforehand, in fully random order.
    Stored,
}

/// One way of bringing crops into batches.
#[derive(Clone, Debug, Serialize)]
pub struct CropResult {
    /// Where they are from.
    pub source: CropSource,
    /// Its name in sentences.
    pub name: String,
    /// Cells per second, files in memory.
    pub cells_per_s: Figure,
    /// Bytes read of files for each byte of a crop; `None` where none were counted.
    pub bytes_read_per_used: Option<f64>,
    /// Bytes on disk that this takes beside the images, extrapolated to all cells.
    pub bytes_on_disk: f64,
    /// Time over that of the fastest.
    pub versus_fastest: Option<Figure>,
    /// Whether that is a difference.
    pub verdict: SpeedVerdict,
}

/// The ways of bringing crops into batches, and the one to take.
#[derive(Clone, Debug, Serialize)]
pub struct CropAdvice {
    /// Those that were measured.
    pub tried: Vec<CropResult>,
    /// The one to take.
    pub recommended: CropSource,
    /// Why, in a sentence.
    pub reason: String,
    /// Images whose cells block order mixes at a time.
    pub block: usize,
    /// The cache of images in block order.
    #[serde(serialize_with = "as_text")]
    pub cache: Cache,
}

/// Everything the study found.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// The images.
    pub sample: Sample,
    /// Every way that was tried, the set as it is first.
    pub tried: Vec<CandidateResult>,
    /// Numbers of workers that were tried.
    pub workers: Vec<SettingResult>,
    /// Batch sizes that were tried; none where one was asked for.
    pub batch_sizes: Vec<SettingResult>,
    /// Caches that were tried.
    pub caches: Vec<SettingResult>,
    /// The recommendation.
    pub recommendation: Recommendation,
    /// The predicted waiting of a model.
    pub predictions: Vec<Prediction>,
    /// Shortest step that does not wait, milliseconds.
    pub no_wait_from_ms: Figure,
    /// Images per second of the first epoch at most, when files come from the disk.
    pub first_epoch_images_per_s: Option<Figure>,
    /// For cells: crops that are stored, or cut out on the fly. `None` of images, and without time for it.
    pub crops: Option<CropAdvice>,
    /// For a set behind a network: the link, and the figures of each way of keeping the set there.
    pub link: Option<LinkAdvice>,
    /// Notes on parts that were left out or failed.
    pub notes: Vec<String>,
    /// How long the study took.
    pub seconds: f64,
}
