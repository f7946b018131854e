//! The reasons of a choice by size and by work: what a copy takes, and why the set stays as it is.

use super::candidates::Candidate;
use crate::core::words::{number, percent};
use wellread_store::words::counted;

/// A copy must need less than this share of the bytes of a set that is fast enough as it is, to be worth making.
pub const MAX_COPY_SIZE_SHARE: f64 = 0.7;

/// The reason by size of a choice: what the chosen copy takes. Where the set as it is stays, the first, it is why the smallest that is fast
/// enough is not worth a copy.
pub(super) fn size_reason<'c>(
    of: impl Fn(usize) -> &'c Candidate,
    (index, small): (usize, usize),
    (images, thing): (usize, &str),
) -> String {
    let bytes = |i: usize| of(i).bytes_per_image * images as f64;
    match index {
        0 if small == 0 => {
            format!("it stays: nothing that is as fast is smaller ({} MB)", number(bytes(0) / 1e6))
        }
        0 => format!(
            "it stays: the smallest that is fast enough, {}, needs {} of its {} MB, and a copy is worth making below {}",
            of(small).name(),
            percent(bytes(small) / bytes(0)),
            number(bytes(0) / 1e6),
            percent(MAX_COPY_SIZE_SHARE)
        ),
        _ => format!(
            "{} MB for the whole set ({}), {} of what it takes now",
            number(bytes(index) / 1e6),
            counted(images, thing),
            percent(bytes(index) / bytes(0))
        ),
    }
}

/// The reason by work: how long converting all images takes, without what is named.
pub(super) fn time_to_convert(candidate: &Candidate, images: usize, without: &str) -> Option<String> {
    let each = candidate.write_s? / candidate.images.max(1) as f64;
    Some(format!("converting takes about {} s, {without} not counted", number(each * images as f64)))
}
