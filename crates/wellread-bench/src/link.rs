//! The measured link to a set: latency of a request, and bytes per second at the best number of requests at once.
//!
//! ```text
//!  single bytes, one request at a time ─▶ latency (median)
//!  pieces of the largest files, 8, 16, 32 … at a time ─▶ bytes per second of the fastest pass
//! ```

use anyhow::{Context as _, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellread_measure::samples::median;
use wellread_store::Store;
use wellread_store::place::{self, FileRange, Link};

/// Requests at once that are tried, as long as more of them gain.
const AT_ONCE: [usize; 6] = [8, 16, 32, 64, 128, 256];
/// The gain of more requests at once that makes it try still more.
const WORTHWHILE_GAIN: f64 = 1.05;
/// Passes of the best number of requests at once, beside the one that found it.
const CONFIRMING_PASSES: usize = 2;
/// Requests that tell the latency, after one that makes the connection.
const LATENCY_REQUESTS: u64 = 9;
/// Files that are looked at.
const FILES: usize = 16;
/// Bytes of a piece; of a pass at least and at most, and seconds that it should take.
const PIECE: u64 = 1 << 20;
const PASS: (u64, u64) = (1 << 20, 128 << 20);
const PASS_S: f64 = 0.4;

/// A link, as it was found.
#[derive(Clone, Debug, Serialize)]
pub struct LinkSpeed {
    /// Where requests go.
    pub endpoint: String,
    /// The region, where there are any and it is known.
    pub region: Option<String>,
    /// Where the credentials are from, in words.
    pub credentials: String,
    /// Requests that a process makes at once at most.
    pub in_flight: usize,
    /// Median seconds of a request for a byte.
    pub latency_s: f64,
    /// Bytes per second at best.
    pub bytes_per_s: f64,
    /// Requests at once that gave it.
    pub at_once: usize,
}

#[cfg(test)]
impl LinkSpeed {
    /// One of 20 ms and 100 MB/s, for tests.
    pub(crate) fn sample() -> Self {
        Self {
            endpoint: "http://127.0.0.1".into(),
            region: None,
            credentials: "none".into(),
            in_flight: 50,
            latency_s: 0.02,
            bytes_per_s: 1e8,
            at_once: 32,
        }
    }
}

/// The link to what does not lie on this machine of a set, and an address at its other end. It is `None` where all lies here, and of places
/// without a link. The path of a set does not tell: a table here may name images in a bucket.
pub(crate) fn of(store: &dyn Store) -> Option<(&'static dyn Link, &Path)> {
    let remote = store.remote_path()?;
    Some((place::link(remote)?, remote))
}

/// The link to a set; `None` of sets on this machine.
///
/// # Errors
/// A set without files that hold anything; requests that fail.
pub fn measure(store: &dyn Store) -> Result<Option<LinkSpeed>> {
    let Some((link, remote)) = of(store) else { return Ok(None) };
    let about = link.about(remote)?;
    let mut files: Vec<(PathBuf, u64)> = vec![];
    for file in files_over(store, remote)?.into_iter().take(FILES) {
        let length = place::metadata(&file)?.length;
        files.push((file, length));
    }
    files.retain(|(_, length)| *length > 0);
    files.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
    let (largest, length) = files.first().context("the set has no file that holds anything")?;
    let byte = |n: u64| {
        let start = n * (length / (LATENCY_REQUESTS + 1)).max(1) % length;
        link.fetch(&[FileRange { path: largest.clone(), range: start..start + 1 }], 1)
    };
    byte(0)?;
    let times: Vec<f64> = (0..LATENCY_REQUESTS)
        .map(|n| byte(n).map(|time| time.as_secs_f64()))
        .collect::<std::io::Result<_>>()?;
    let latency_s = median(&times).unwrap_or(f64::NAN);
    let first = pass(link, &pieces(&files, PASS.0 * 4), AT_ONCE[1])?;
    let rate = PASS.0 as f64 * 4.0 / first.as_secs_f64().max(1e-6);
    let ranges = pieces(&files, ((rate * PASS_S) as u64).clamp(PASS.0, PASS.1));
    let bytes: u64 = ranges.iter().map(|one| one.range.end - one.range.start).sum();
    let (best, at_once) = fastest(|at_once| pass(link, &ranges, at_once))?;
    Ok(Some(LinkSpeed {
        endpoint: about.endpoint,
        region: about.region,
        credentials: about.credentials,
        in_flight: about.in_flight,
        latency_s,
        bytes_per_s: bytes as f64 / best.as_secs_f64().max(1e-9),
        at_once,
    }))
}

/// Files of a set in the place of `remote`: those of the first rows. To list those of all takes a while where each image has some.
/// Where the first ones lie elsewhere, those of all rows.
fn files_over(store: &dyn Store, remote: &Path) -> Result<Vec<PathBuf>> {
    let is_over_link = |file: &PathBuf| place::scheme(file) == place::scheme(remote);
    let rows: Vec<usize> = (0..store.len().min(FILES)).collect();
    let mut files = store.files_of(&rows)?;
    files.retain(is_over_link);
    if files.is_empty() {
        files = store.files()?;
        files.retain(is_over_link);
    }
    Ok(files)
}

/// One pass over some ranges.
pub(crate) fn pass(link: &dyn Link, ranges: &[FileRange], at_once: usize) -> Result<Duration> {
    Ok(link.fetch(ranges, at_once)?)
}

/// Pieces of files, turn by turn, until they have so many bytes: at least one. Small files come again.
fn pieces(files: &[(PathBuf, u64)], bytes: u64) -> Vec<FileRange> {
    let (mut found, mut sum) = (vec![], 0);
    for round in 0.. {
        for (path, length) in files {
            let start = if *length <= PIECE { 0 } else { round * PIECE % (length - PIECE) };
            let range = start..(start + PIECE).min(*length);
            sum += range.end - range.start;
            found.push(FileRange { path: path.clone(), range });
            if sum >= bytes || found.len() >= 1 << 14 {
                return found;
            }
        }
        if files.is_empty() {
            break;
        }
    }
    found
}

/// The shortest time at the best number of requests at once, which a short search finds, and that number.
pub(crate) fn fastest(mut pass: impl FnMut(usize) -> Result<Duration>) -> Result<(Duration, usize)> {
    let (mut best, mut of_best) = (Duration::MAX, AT_ONCE[0]);
    for at_once in AT_ONCE {
        let time = pass(at_once)?;
        let gains = best == Duration::MAX || best.as_secs_f64() > time.as_secs_f64() * WORTHWHILE_GAIN;
        if time < best {
            (best, of_best) = (time, at_once);
        }
        if !gains {
            break;
        }
    }
    for _ in 0..CONFIRMING_PASSES {
        best = best.min(pass(of_best)?);
    }
    Ok((best, of_best))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_store::{ENDPOINT, LATENCY, linked};
    use wellread_store::{OpenOptions, open, open_all};

    #[test]
    fn a_table_here_of_images_in_a_bucket_has_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let [table, images] = linked(dir.path(), FILES + 4);
        let options = OpenOptions::default();
        let store = open(&table, &options).unwrap();
        assert!(place::link(store.path()).is_none());
        let of_table = measure(&*store).unwrap().unwrap();
        assert_eq!((of_table.endpoint.as_str(), of_table.latency_s), (ENDPOINT, LATENCY.as_secs_f64()));
        // The first rows are images here, which the link does not lead to.
        let mixed = measure(&*open_all(&[&images, &table], &options).unwrap()).unwrap().unwrap();
        assert_eq!(mixed.endpoint, ENDPOINT);
        assert!(measure(&*open(&images, &options).unwrap()).unwrap().is_none());
    }

    #[test]
    fn more_requests_are_tried_while_they_gain() {
        let mut tried = vec![];
        // 32 at once are what the link takes.
        let best = fastest(|at_once| {
            tried.push(at_once);
            Ok(Duration::from_millis(3200 / at_once.min(32) as u64))
        });
        assert_eq!(best.unwrap(), (Duration::from_millis(100), 32));
        assert_eq!(tried, [8, 16, 32, 64, 32, 32]);
        assert!(fastest(|_| anyhow::bail!("no")).is_err());
    }

    #[test]
    fn pieces_lie_within_their_files() {
        let files: [(PathBuf, u64); 2] = [("a".into(), 3 * PIECE + 5), ("b".into(), 10)];
        let found = pieces(&files, 5 * PIECE);
        assert!(found.iter().map(|one| one.range.end - one.range.start).sum::<u64>() >= 5 * PIECE);
        let length = |path: &PathBuf| files.iter().find(|(name, _)| name == path).map_or(0, |(_, l)| *l);
        let is_within =
            |one: &FileRange| one.range.start < one.range.end && one.range.end <= length(&one.path);
        assert!(found.iter().all(is_within));
        assert_eq!(pieces(&files[1..], 25).len(), 3);
        assert!(pieces(&[], 25).is_empty());
    }
}
