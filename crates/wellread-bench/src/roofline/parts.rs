//! Parts of reading alone: the codec, and the disk.

use super::passes::rate;
use anyhow::Result;
use std::hint::black_box;
use std::path::PathBuf;
use wellread_measure::clock::Stopwatch;
use wellread_measure::page_cache;
use wellread_store::bare_codec::BareCodec;
use wellread_store::{Store, each_row};

/// Bytes of pixels that are compressed for the limit of the codec.
const CODEC_BYTES: usize = 32 << 20;

/// Images per second of a codec alone, one thread: whole images, one after the other.
pub(super) fn bare(mut codec: BareCodec, store: &dyn Store) -> Result<Option<f64>> {
    let (mut packed, mut longest, mut bytes, mut last) = (vec![], 0, 0, 0);
    for info in each_row::infos(store, store.len()) {
        let info = info?;
        bytes += info.shape.pixels() * info.dtype.size();
        last += 1;
        if bytes >= CODEC_BYTES {
            break;
        }
    }
    store.scan(0..last, &mut |_, _, pixels| {
        longest = longest.max(pixels.len());
        if let Ok(data) = codec.compress(pixels) {
            packed.push((data, pixels.len()));
        }
        Ok(())
    })?;
    if packed.is_empty() {
        return Ok(None);
    }
    let mut buffer = vec![0; longest];
    let count = packed.len();
    rate(count, || {
        let clock = Stopwatch::start();
        for (data, length) in &packed {
            black_box(codec.decompress(data, &mut buffer[..*length])?);
        }
        Ok(clock.elapsed())
    })
    .map(Some)
}

/// Images per second that the disk delivers, the set's files being read one after the other. `None` with a remark
/// where they cannot be read past the page cache.
pub(super) fn disk(files: &[PathBuf], images: usize, format: &str, notes: &mut Vec<String>) -> Option<f64> {
    let clock = Stopwatch::start();
    match page_cache::read_direct(files) {
        Ok(_) => Some(images as f64 / clock.elapsed()),
        Err(why) => {
            notes.push(format!("{format}: the disk's limit is unknown ({why})"));
            None
        }
    }
}
