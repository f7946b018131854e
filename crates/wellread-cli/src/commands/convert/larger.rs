//! A target that is larger than its source, and the option that makes it smaller.

use crate::commands::left_out;
use crate::output::{Ui, bytes};
use std::path::Path;
use wellread_store::{Compression, Format, OpenOptions, Store, Tune, WriteOptions, place};

/// How many times as large a target is at least that is told of, and by how many bytes: names and columns take some, too.
const LEAST_RATIO: f64 = 1.2;
const LEAST_BYTES: u64 = 1 << 20;

/// Images of a set at most whose files are looked at for that.
const MOST_IMAGES: usize = 100_000;

/// Says so where the target on this machine is larger than the source. Where no hints are wanted, no file is looked at.
pub(super) fn say(source: &dyn Store, target: &Path, format: &Format, options: &WriteOptions, ui: Ui) {
    let is_local = source.remote_path().is_none() && !place::is_remote(target);
    if ui.quiet || !is_local || source.len() > MOST_IMAGES {
        return;
    }
    let how = OpenOptions { format: Some(format.name.to_owned()), ..OpenOptions::default() };
    let after = wellread_store::open(target, &how).and_then(|written| written.bytes_on_disk());
    // The target is complete, whatever its size.
    let (Ok(before), Ok(after)) = (left_out::bytes_on_disk(source, true), after) else { return };
    if let Some(said) = larger([before, after], smaller(format, options)) {
        ui.hint(format!("note: {} {said}", target.display()));
    }
}

/// How much larger a target of `after` bytes is than a source of `before`, in words, with the option that makes it smaller.
fn larger([before, after]: [u64; 2], smaller: Option<&str>) -> Option<String> {
    let ratio = after as f64 / before as f64;
    (before > 0 && ratio >= LEAST_RATIO && after - before >= LEAST_BYTES).then(|| {
        let how = smaller.map_or_else(String::new, |option| {
            format!(" ({option} makes it smaller, and takes longer to write)")
        });
        format!("takes {}, {ratio:.1} times the {} of the source{how}", bytes(after), bytes(before))
    })
}

/// The option by which a set in this format becomes smaller than with `options`.
fn smaller(format: &Format, options: &WriteOptions) -> Option<&'static str> {
    let is_bare = options.compression == Compression::None;
    let is_default = options.compression == Compression::Default;
    let for_size = WriteOptions { tune: Tune::Size, compression: Compression::Default, ..options.clone() };
    if (format.uses_tune)(&for_size) {
        if is_default {
            return (options.tune != Tune::Size).then_some("--tune size");
        }
        // Tables are laid out for size, too. A codec that was asked for may be the smallest of other files.
        return (is_bare || !format.holds_bare_pixels).then_some("--tune size without --compression");
    }
    (is_bare && format.holds_bare_pixels).then_some("--compression zstd")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_store::registry;

    #[test]
    fn a_target_that_is_much_larger_is_told_with_what_makes_it_smaller() {
        let said = larger([10 << 20, 16 << 20], Some("--tune size")).unwrap();
        let words = "takes 16.0 MiB, 1.6 times the 10.0 MiB of the source (--tune size makes it smaller, and takes longer to write)";
        assert_eq!(said, words);
        assert!(larger([10 << 20, 16 << 20], None).unwrap().ends_with("of the source"));
        for sizes in [[10 << 20, 11 << 20], [1 << 10, 10 << 10], [0, 10 << 20], [16 << 20, 10 << 20]] {
            assert_eq!(larger(sizes, None), None, "{sizes:?}");
        }
    }

    #[test]
    fn the_option_that_makes_a_set_smaller_is_one_that_was_not_given() {
        let of = |name, tune, compression| {
            let format = registry::format_named(name).unwrap();
            smaller(format, &WriteOptions { tune, compression, ..WriteOptions::default() })
        };
        let zstd = Compression::Zstd(3);
        assert_eq!(of("parquet", Tune::Random, Compression::Default), Some("--tune size"));
        assert_eq!(of("parquet", Tune::Random, zstd), Some("--tune size without --compression"));
        assert_eq!(of("parquet", Tune::Size, Compression::Default), None);
        assert_eq!(of("tiff", Tune::Random, Compression::Default), Some("--tune size"));
        assert_eq!(of("tiff", Tune::Random, Compression::None), Some("--tune size without --compression"));
        assert_eq!(of("tiff", Tune::Random, zstd), None);
    }
}
