//! Whether the target of `convert --resume` is complete, and what this command would write.
//!
//! ```text
//!  target ──images by name, shape, type──▶ others: none of it (what is there is kept, by an error)
//!             └──all──▶ columns and their values, codec, chunks, variant; of cells the pixels ──▶ Finding
//! ```
//!
//! No set records which command has written it. So what is compared is what can be seen, and of options those that are given.

use crate::output::Outcome;
use std::path::Path;
use wellread_store::read_back::{self, Digests};
use wellread_store::{
    Compression, Error, Format, OpenOptions, RowHints, RowInfo, Store, StoreLayout, Tune, WriteOptions,
    features, staged,
};

/// Parts of a codec's name that pack nothing.
const UNPACKED: [&str; 4] = ["none", "uncompressed", "crc32c", "constant"];

/// A target that has the images of the source.
pub(super) struct Finding {
    /// The bytes of all pixels.
    pub bytes: u64,
    /// In what else it is not what would be written, in words.
    pub differences: Vec<String>,
    /// Options that were given and of which a set shows nothing.
    pub untold: Vec<String>,
}

/// Looks at the target at `path`: `None` where a part of it is waiting to be gone on with, or where it has not the images of the
/// source, in their order, by name, shape and type. `is_of_cells` compares pixels.
///
/// # Errors
/// Columns of the target, or pixels of the source, that cannot be read.
pub(super) fn of(
    source: &dyn Store,
    path: &Path,
    format: &Format,
    options: &WriteOptions,
    is_of_cells: bool,
) -> Outcome<Option<Finding>> {
    if staged::part(path).is_some() {
        return Ok(None);
    }
    let open = OpenOptions { format: Some(format.name.to_owned()), ..OpenOptions::default() };
    let Ok(target) = wellread_store::open(path, &open) else { return Ok(None) };
    let target = &*target;
    if target.len() != source.len() {
        return Ok(None);
    }
    let image =
        |store: &dyn Store, row| store.row_info(row).and_then(|info| Ok((store.name(row)?, info))).ok();
    let same = |row| {
        let (name, info) = image(source, row)?;
        (image(target, row)? == (name, info)).then(|| size(info))
    };
    let Some(bytes) = (0..source.len()).map(same).sum::<Option<u64>>() else { return Ok(None) };
    let mut differences = columns(target, format.keeps_features_in(path, target.len()), options)?;
    differences.extend(layout(target, format, options));
    // A table of cells may be another one since, of the same names: what was cut out tells.
    if is_of_cells {
        let checked =
            read_back::check(source, &Digests::default(), target, source.len(), options.jobs, &|| {});
        match checked {
            Ok(_) => {}
            Err(error) if error.path().starts_with(source.path()) => return Err(error.into()),
            Err(error) => {
                let row = error.row_index().map_or(String::new(), |row| format!("row {row} "));
                differences.push(format!("{row}{}", error.cause()));
            }
        }
    }
    Ok(Some(Finding { bytes, differences, untold: untold(target, format, options) }))
}

/// Bytes of the pixels of an image.
pub(super) fn size(info: RowInfo) -> u64 {
    (info.shape.pixels() * info.dtype.size()) as u64
}

/// What is otherwise of the columns beside the images; those that only the target has count where columns would be kept.
fn columns(target: &dyn Store, are_kept: bool, options: &WriteOptions) -> Result<Vec<String>, Error> {
    let has = target.hints().feature_names();
    let Some(wanted) = &options.features else {
        let others = has.iter().filter(|_| are_kept);
        return Ok(others.map(|name| format!("it has a column {name:?}, which is none now")).collect());
    };
    let names: Vec<String> = wanted.schema().fields().iter().map(|field| field.name().clone()).collect();
    let (there, absent): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(|name| has.contains(name));
    let mut differences: Vec<String> =
        absent.iter().map(|name| format!("it has no column {name:?}")).collect();
    let others = has.iter().filter(|name| are_kept && !names.contains(name));
    differences.extend(others.map(|name| format!("it has a column {name:?}, which is none now")));
    if let Some(found) = target.hints().features(&there)? {
        let other = features::differing(wanted, &found);
        differences.extend(other.iter().map(|name| format!("its column {name:?} has other values")));
    }
    Ok(differences)
}

/// What is otherwise of how pixels lie, of what was asked for.
fn layout(target: &dyn Store, format: &Format, options: &WriteOptions) -> Vec<String> {
    let Ok(layout) = target.layout() else { return vec![] };
    let mut differences = vec![];
    if has_other_codec(options.compression, &layout.codec, format) {
        differences.push(format!("its compression is {}, not {}", layout.codec, options.compression));
    }
    if let Some(asked) = options.chunk
        && let (Ok(info), Ok(hints)) = (target.row_info(0), target.row_hints(0))
        && let Some((has, asked)) = other_chunk(asked, &layout, hints, info)
    {
        differences.push(format!("its pieces are of {has} pixels, not {asked}"));
    }
    if options.shard.is_some() && format.name == "ome-zarr" && !layout.pieces.starts_with("shard") {
        differences.push(format!("it has no shards, but {}", layout.pieces));
    }
    if let Some(asked) = options.variant.as_deref().filter(|asked| has_other_variant(asked, &layout, format))
    {
        differences.push(format!("its variant is {}, not {asked}", layout.variant));
    }
    differences
}

/// What was asked for and cannot be seen in a set.
fn untold(target: &dyn Store, format: &Format, options: &WriteOptions) -> Vec<String> {
    let mut untold = vec![];
    if options.tune != Tune::default() && (format.uses_tune)(options) {
        untold.push("--tune".to_owned());
    }
    if matches!(options.compression, Compression::Zstd(_) | Compression::Deflate(_)) {
        untold.push(format!("the level of --compression {}", options.compression));
    }
    let has_pieces = || {
        target.layout().is_ok_and(|layout| layout.chunk.is_some())
            || target.row_hints(0).is_ok_and(|hints| hints.grid().is_some())
    };
    if options.chunk.is_some() && !has_pieces() {
        untold.push("--chunk".to_owned());
    }
    untold
}

/// Whether a codec's name is of another compression than one that was asked for.
fn has_other_codec(asked: Compression, has: &str, format: &Format) -> bool {
    let is_none_of = |names: &[&str]| !names.iter().any(|name| has.contains(name));
    match asked {
        Compression::Default => false,
        // PNG has no pixels without it.
        Compression::None if format.name == "image-folder" => false,
        Compression::None => !has.split(['+', ',']).all(|part| UNPACKED.contains(&part.trim())),
        Compression::Lz4 => is_none_of(&["lz4"]),
        Compression::Zstd(_) => is_none_of(&["zstd"]),
        Compression::Deflate(_) => is_none_of(&["deflate", "gzip", "zlib"]),
        Compression::Lzw => is_none_of(&["lzw"]),
        Compression::PackBits => is_none_of(&["packbits"]),
        Compression::Snappy => is_none_of(&["snappy"]),
    }
}

/// The pieces of a set and those that were asked for, where they are others; what reaches beyond the image is none. Of tables nobody can
/// tell.
fn other_chunk(
    asked: [usize; 5],
    layout: &StoreLayout,
    hints: RowHints<'_>,
    info: RowInfo,
) -> Option<(String, String)> {
    let clipped = |sizes: [usize; 5]| -> [usize; 5] {
        // 0 is all of an axis.
        std::array::from_fn(|axis| match sizes[axis] {
            0 => info.shape.0[axis],
            size => size.min(info.shape.0[axis]),
        })
    };
    let asked = clipped(asked);
    let has = match (layout.chunk, hints.grid()) {
        (Some(chunk), _) => clipped(chunk),
        // Rows that can be read alone, whatever they are stored in.
        (None, Some([1, width])) if width >= info.shape.x() => return None,
        (None, Some([height, width])) => clipped([asked[0], asked[1], asked[2], height, width]),
        (None, None) => return None,
    };
    let words = |sizes: [usize; 5]| sizes.map(|size| size.to_string()).join("x");
    (has != asked).then(|| (words(has), words(asked)))
}

/// Whether a set is of another variant than one that was asked for, as far as its description tells.
fn has_other_variant(asked: &str, layout: &StoreLayout, format: &Format) -> bool {
    match format.name {
        "ome-zarr" => !layout.variant.starts_with(asked),
        "tiff" => layout.variant.contains("OME-TIFF") != (asked == "ome"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::known_format;
    use super::*;

    #[test]
    fn codecs_that_are_not_those_asked_for_are_told() {
        let other = |asked: &str, has: &str, format: &str| {
            let format = known_format(format).unwrap();
            has_other_codec(asked.parse().unwrap(), has, format)
        };
        for (asked, has) in
            [("default", "zstd"), ("none", "none"), ("none", "crc32c"), ("zstd:3", "zstd+predictor")]
        {
            assert!(!other(asked, has, "tiff"), "{asked} {has}");
        }
        assert!(!other("none", "png (deflate)", "image-folder"));
        for (asked, has) in
            [("none", "bit-packed"), ("none", "bit-packed, zstd"), ("zstd:3", "none"), ("lzw", "deflate")]
        {
            assert!(other(asked, has, "tiff"), "{asked} {has}");
        }
    }
}
