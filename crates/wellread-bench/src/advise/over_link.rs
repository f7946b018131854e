//! The figures of each way of keeping a set behind a network. They are images per second, requests and bytes of an epoch, and
//! the cost of the requests.
//!
//! ```text
//!  the link: latency, bandwidth, requests at once ─┐
//!  an epoch of the sample, its ranges recorded ────┼─▶ the longest of: requests · latency / at once, bytes / bandwidth, decoding
//!  images per second of the files on this machine ─┘
//! ```
//!
//! The set as it is was read over the link, so a copy of the same format and codec tells how fast it is decoded. Without one, and for ways that were
//! not measured, the figure is an upper bound.

use super::advice::{CandidateResult, LinkAdvice, LinkPrediction};
use super::candidates::Candidate;
use super::context::Study;
use super::counted;
use crate::link::{self, LinkSpeed};
use anyhow::{Result, bail};
use std::collections::HashSet;
use wellread_loader::{Dataset, Loader};
use wellread_store::OpenOptions;
use wellread_store::place::{self, Recording};
use wellread_store::subset::Subset;

/// The requests, bytes and seconds of an image.
#[derive(Clone, Copy, Debug)]
struct ImageRequests {
    requests: f64,
    bytes: f64,
    /// Images per second that this machine reads and decodes of its own files, where that is known.
    local: Option<f64>,
}

/// Predicts all candidates of a set behind a network; `None` of a set on this machine.
pub(super) fn predict(
    study: &Study<'_>,
    all: &[Candidate],
    tried: &[CandidateResult],
    notes: &mut Vec<String>,
) -> Result<Option<LinkAdvice>> {
    let Some(link) = link::measure(&*(study.own)()?)? else { return Ok(None) };
    let mut predictions = vec![];
    for candidate in all {
        let name = candidate.name();
        let measured = tried.iter().find(|one| one.name == name && !one.over_link);
        // Cells that are cut out of images are decoded in another way than stored ones.
        let is_cut_out = candidate.is_own_set() && study.settings.cells.is_some();
        let like = || like(candidate, tried, study.settings.crop.is_some()).filter(|_| !is_cut_out);
        let local = measured.or_else(like).map(|one| one.images_per_s.value);
        match asked(study, candidate) {
            Ok(asked) => {
                let (requests, bytes) = asked.of_all(study.sample.of as u64);
                let each = ImageRequests { requests, bytes, local };
                predictions.push(of(name, each, &link, study.sample.of, study.settings.price_per_1000));
            }
            Err(why) => notes.push(format!("{name}: its time over the link is not known: {why:#}")),
        }
    }
    predictions
        .sort_by(|a, b| a.at_most.cmp(&b.at_most).then_with(|| b.images_per_s.total_cmp(&a.images_per_s)));
    let bounds = predictions.iter().filter(|one| one.at_most).map(|one| one.name.clone());
    let bounds: Vec<String> = bounds.collect();
    if !bounds.is_empty() {
        notes.push(format!(
            "images/s over the link are upper bounds for {}: how fast this machine decodes such images was not measured",
            bounds.join(", ")
        ));
    }
    Ok(Some(LinkAdvice { link, predictions }))
}

/// A measured copy of the same format and codec on this machine's disk: of the same pieces, where there is one. If `needs_pieces`, as
/// parts of images are read, those of other pieces do not tell.
fn like<'t>(
    candidate: &Candidate,
    tried: &'t [CandidateResult],
    needs_pieces: bool,
) -> Option<&'t CandidateResult> {
    let is_like = |one: &&CandidateResult| {
        !one.over_link && (one.candidate.format, &one.candidate.codec) == (candidate.format, &candidate.codec)
    };
    let has_its_pieces = |one: &CandidateResult| one.candidate.pieces == candidate.pieces;
    let alike = tried.iter().filter(is_like).filter(|one| !needs_pieces || has_its_pieces(one));
    alike.min_by_key(|one| !has_its_pieces(one))
}

fn of(
    name: String,
    each: ImageRequests,
    link: &LinkSpeed,
    images: usize,
    price: Option<f64>,
) -> LinkPrediction {
    let seconds = [
        ("latency", each.requests * link.latency_s / link.in_flight.max(1) as f64),
        ("bandwidth", each.bytes / link.bytes_per_s),
        ("decoding", each.local.map_or(0.0, |rate| 1.0 / rate)),
    ];
    let longest = seconds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (bound_by, seconds) = longest.unwrap_or(("decoding", f64::NAN));
    let requests_per_epoch = each.requests * images as f64;
    LinkPrediction {
        name,
        requests_per_epoch,
        bytes_per_epoch: each.bytes * images as f64,
        images_per_s: 1.0 / seconds,
        at_most: each.local.is_none(),
        bound_by,
        cost_per_epoch: price.map(|price| requests_per_epoch / 1000.0 * price),
    }
}

/// The requests of an epoch of a sample.
#[derive(Clone, Copy, Debug)]
struct Asked {
    images: u64,
    requests: u64,
    bytes: u64,
    files: u64,
}

impl Asked {
    /// Requests and bytes of an image in an epoch of the whole set, which has `images`. Several rows of a file, in short ranges,
    /// come with the whole file if half of a loader's room holds it ([`is_read_whole`](place::is_read_whole)).
    fn of_all(self, images: u64) -> (f64, f64) {
        let each = |sum: u64| sum as f64 / self.images.max(1) as f64;
        let all = (each(self.bytes) * images as f64).ceil();
        let is_short = self.bytes < place::MAX_GAP * self.requests;
        if is_short && self.files * 2 <= self.images && all <= (counted::MAX_BYTES_AHEAD / 2) as f64 {
            let requests = (all / place::STRIDE as f64).ceil().max(self.files as f64);
            return (requests / images.max(1) as f64, each(self.bytes));
        }
        (each(self.requests), each(self.bytes))
    }
}

/// Requests and bytes of an epoch of the sample in random order. The set as it is is read without the
/// kept beginnings and ends of its files.
fn asked(study: &Study<'_>, candidate: &Candidate) -> Result<Asked> {
    let rows = study.rows(candidate);
    let images = rows.len() as u64;
    counted::forget();
    let recording = Recording::start();
    let store = if candidate.is_own_set() {
        (study.own)()?
    } else {
        let options = OpenOptions { format: Some(candidate.format.to_owned()), ..OpenOptions::default() };
        wellread_store::open(&counted::address(&candidate.path)?, &options)?
    };
    let dataset = Dataset::from_store(Box::new(Subset::of(store, rows)));
    let loader = Loader::builder(&dataset)
        .batch_size(study.sample.batch_size)
        .shuffle(study.settings.seed)
        .transform(study.how.transform.clone())
        .build()?;
    for batch in &loader {
        batch?;
    }
    let ranges = recording.take();
    if ranges.is_empty() {
        bail!("an earlier read left all of the sample in memory");
    }
    let bytes: u64 = ranges.iter().map(|one| one.range.end - one.range.start).sum();
    let files = ranges.iter().map(|one| &one.path).collect::<HashSet<_>>().len() as u64;
    Ok(Asked { images, requests: ranges.len() as u64, bytes, files })
}

#[cfg(test)]
mod tests {
    use super::super::verdict::SpeedVerdict;
    use super::*;
    use crate::stages::Figure;
    use wellread_store::Compression;

    #[test]
    fn a_small_table_comes_whole() {
        let table = Asked { images: 100, requests: 90, bytes: 450_000, files: 1 };
        // 9 requests of up to 1 MiB for 2,000 images of 4,500 bytes.
        assert_eq!(table.of_all(2000), (9.0 / 2000.0, 4500.0));
        assert_eq!(table.of_all(1_000_000), (0.9, 4500.0), "it is larger than half of a loader's room");
        let files = Asked { files: 100, ..table };
        assert_eq!(files.of_all(2000), (0.9, 4500.0));
        let long = Asked { bytes: 90 * place::MAX_GAP, ..table };
        assert_eq!(long.of_all(20).0, 0.9);
    }

    #[test]
    fn the_longest_of_latency_bandwidth_and_decoding_binds() {
        let link = LinkSpeed::sample();
        let predicted = |requests, bytes, local: f64| {
            let local = Some(local).filter(|rate| rate.is_finite());
            of("tiff".into(), ImageRequests { requests, bytes, local }, &link, 2000, Some(0.0004))
        };
        let one = predicted(1.0, 1e4, 1e6);
        assert_eq!((one.bound_by, one.images_per_s.round(), one.at_most), ("latency", 2500.0, false));
        assert_eq!((one.requests_per_epoch, one.bytes_per_epoch), (2000.0, 2e7));
        assert!((one.cost_per_epoch.unwrap() - 0.0008).abs() < 1e-12);
        assert_eq!(predicted(1.0, 1e6, 1e6).bound_by, "bandwidth");
        assert_eq!(predicted(1.0, 1e4, 100.0).bound_by, "decoding");
        let bound = predicted(0.1, 1e4, f64::INFINITY);
        assert_eq!((bound.bound_by, bound.at_most), ("bandwidth", true));
    }

    /// Decoding never bound the set as it is: its time over the link was an upper bound, ranked among the others.
    #[test]
    fn a_copy_of_the_same_format_and_codec_tells_how_fast_a_set_is_decoded() {
        let result = |candidate: Candidate, rate: f64| {
            let figure = |value| Figure { value, low: None, high: None };
            CandidateResult {
                name: candidate.name(),
                bytes_of_set: 1e4,
                images_per_s: figure(rate),
                share_of_copy: 0.1,
                single_us: figure(1.0),
                cold_images_per_s: None,
                versus_fastest: None,
                verdict: SpeedVerdict::TooFewData,
                finalist: true,
                over_link: candidate.is_own_set(),
                candidate,
            }
        };
        let lz4 = Some(Compression::Lz4);
        let in_pieces =
            |format, pieces: &str| Candidate { pieces: pieces.into(), ..Candidate::sample(format, lz4) };
        let own = Candidate { pieces: "tiles".into(), ..Candidate::sample("tiff", None) };
        let tried = [
            result(own.clone(), 10.0),
            result(in_pieces("parquet", "tiles"), 20.0),
            result(in_pieces("tiff", "strips"), 30.0),
            result(in_pieces("tiff", "tiles"), 40.0),
        ];
        let rate = |tried, needs_pieces| like(&own, tried, needs_pieces).map(|one| one.images_per_s.value);
        assert_eq!((rate(&tried[..], false), rate(&tried[..], true)), (Some(40.0), Some(40.0)));
        assert_eq!((rate(&tried[..3], false), rate(&tried[..3], true)), (Some(30.0), None));
        assert_eq!(rate(&tried[..2], false), None);
        let other = Candidate { codec: "zstd".into(), ..own.clone() };
        assert!(like(&other, &tried, false).is_none());
    }
}
