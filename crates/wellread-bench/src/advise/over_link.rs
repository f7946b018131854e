//! The figures of each way of keeping a set behind a network. They are images per second, requests and bytes of an epoch, and
//! the cost of the requests.
//!
//! ```text
//!  the link: latency, bandwidth, requests at once ─┐
//!  an epoch of the sample, its ranges recorded ────┼─▶ the longest of: requests · latency / at once, bytes / bandwidth, decoding
//!  images per second of the files on this machine ─┘
//! ```

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
    /// Images per second that this machine reads and decodes of its own files.
    local: f64,
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
        let rate = tried.iter().find(|one| one.name == name).map(|one| one.images_per_s.value);
        // The set as it is was read over the link: its speed of decoding alone is not known.
        let local = rate.filter(|_| !candidate.is_own_set()).unwrap_or(f64::INFINITY);
        match asked(study, candidate) {
            Ok(asked) => {
                let (requests, bytes) = asked.of_all(study.sample.of as u64);
                let each = ImageRequests { requests, bytes, local };
                predictions.push(of(name, each, &link, study.sample.of, study.settings.price_per_1000));
            }
            Err(why) => notes.push(format!("{name}: its time over the link is not known: {why:#}")),
        }
    }
    predictions.sort_by(|a, b| b.images_per_s.total_cmp(&a.images_per_s));
    Ok(Some(LinkAdvice { link, predictions }))
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
        ("decoding", 1.0 / each.local),
    ];
    let longest = seconds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (bound_by, seconds) = longest.unwrap_or(("decoding", f64::NAN));
    let requests_per_epoch = each.requests * images as f64;
    LinkPrediction {
        name,
        requests_per_epoch,
        bytes_per_epoch: each.bytes * images as f64,
        images_per_s: 1.0 / seconds,
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
    use super::*;

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
        let link = LinkSpeed {
            endpoint: "http://127.0.0.1".into(),
            region: None,
            credentials: "none".into(),
            in_flight: 50,
            latency_s: 0.02,
            bytes_per_s: 1e8,
            at_once: 32,
        };
        let predicted = |requests, bytes, local| {
            of("tiff".into(), ImageRequests { requests, bytes, local }, &link, 2000, Some(0.0004))
        };
        let one = predicted(1.0, 1e4, 1e6);
        assert_eq!((one.bound_by, one.images_per_s.round()), ("latency", 2500.0));
        assert_eq!((one.requests_per_epoch, one.bytes_per_epoch), (2000.0, 2e7));
        assert!((one.cost_per_epoch.unwrap() - 0.0008).abs() < 1e-12);
        assert_eq!(predicted(1.0, 1e6, 1e6).bound_by, "bandwidth");
        assert_eq!(predicted(1.0, 1e4, 100.0).bound_by, "decoding");
        assert_eq!(predicted(0.1, 1e4, f64::INFINITY).bound_by, "bandwidth");
    }
}
