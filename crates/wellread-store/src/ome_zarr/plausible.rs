//! Declared sizes against what the files can hold.
//!
//! A few bytes of JSON can declare a terabyte of pixels or a billion chunks. All of them may be legally
//! missing and stand for the fill value. Before anybody allocates or loops over that much, the chunk files are counted.

use super::array::ArrayPlan;
use super::chunk::MAX_RATIO;
use crate::place::{self, Kind};
use crate::{Error, Result};
use std::path::Path;
use wellread_image::Shape;

/// Images up to this size, in bytes, need no proof.
const UNCHECKED_BYTES: u64 = 1 << 30;
/// Images of up to this many chunks need no proof.
const UNCHECKED_CHUNKS: u64 = 1 << 16;
/// A sparse image may declare this many times what its chunk files hold.
const MAX_SPARSE_RATIO: u64 = 256;

/// Checks that the array in folder `dir` has chunk files enough for what `plan` declares.
///
/// # Errors
/// A huge image of which nearly nothing is there.
pub(super) fn check(dir: &Path, plan: &ArrayPlan) -> Result<()> {
    let pixel = plan.stored.size() as u64;
    let declared = plan.info.shape.pixels() as u64 * pixel;
    let chunks = plan.grid.iter().fold(1u64, |n, &g| n.saturating_mul(g as u64));
    if declared <= UNCHECKED_BYTES && chunks <= UNCHECKED_CHUNKS {
        return Ok(());
    }
    let chunk_bytes = Shape(plan.chunk).pixels() as u64 * pixel;
    let (mut held, mut files) = (0u64, 0u64);
    let enough = |held: u64, files: u64| {
        (declared <= UNCHECKED_BYTES || held.saturating_mul(MAX_SPARSE_RATIO) >= declared)
            && (chunks <= UNCHECKED_CHUNKS || files.saturating_mul(MAX_SPARSE_RATIO) >= chunks)
    };
    visit_files(dir, &mut |path, length| {
        let is_chunk = path
            .file_name()
            .and_then(|n| n.to_str())
            .is_some_and(|n| n.ends_with(|c: char| c.is_ascii_digit()) && !n.starts_with('.'));
        if is_chunk {
            held = held.saturating_add(chunk_bytes.min(length.saturating_mul(MAX_RATIO as u64)));
            files += 1;
        }
        !enough(held, files)
    })?;
    if enough(held, files) {
        return Ok(());
    }
    Err(Error::new(
        dir,
        format_args!(
            "the metadata declares an image of {} {} in {chunks} chunks, but only {files} chunk files are there",
            plan.info.shape, plan.info.dtype
        ),
    )
    .hint("the metadata is corrupt or most of the image is missing; copy or write it again"))
}

/// Calls `visit(path, length)` for every file below `dir` until it returns false.
pub(super) fn visit_files(dir: &Path, visit: &mut dyn FnMut(&Path, u64) -> bool) -> Result<()> {
    // Chunk folders nest at most five deep, shards and groups a little more; symbolic links are not followed.
    let mut folders = vec![(dir.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let cannot = |e: &std::io::Error| Error::io(&folder, "cannot list the folder", e);
        for entry in place::list(&folder).map_err(|e| cannot(&e))? {
            let entry = entry.map_err(|e| cannot(&e))?;
            let kind = entry.kind().map_err(|e| cannot(&e))?;
            let path = folder.join(entry.name());
            if kind == Kind::Folder {
                if depth < 16 {
                    folders.push((path, depth + 1));
                }
            } else {
                let meta = place::metadata(&path).map_err(|e| Error::io(&path, "cannot read", &e))?;
                let length = meta.length;
                if !visit(&path, length) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}
