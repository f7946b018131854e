//! Whether the target of `convert --resume` is complete, and what this command would write.
//!
//! ```text
//!  target ──images by name, shape, type──▶ others: what differs (what is there is kept, by an error)
//!             └──all──▶ columns and their values, codec, chunks, variant ──▶ no difference: the pixels ──▶ Finding
//! ```
//!
//! No set records which command has written it. So what is compared is what can be seen, and of options those that are given.

use super::check::{Compared, compare_finished};
use crate::output::{Failure, Outcome, Ui};
use std::collections::HashMap;
use std::path::Path;
use wellread_store::each_row;
use wellread_store::words::{counted, counted_with, first_few};
use wellread_store::{
    Compression, Error, Format, OpenOptions, RowHints, RowInfo, Store, StoreLayout, Tune, WriteOptions,
    features, place, staged,
};

/// Parts of a codec's name that pack nothing.
const UNPACKED: [&str; 4] = ["none", "uncompressed", "crc32c", "constant"];

/// Names of images that a sentence lists.
const MAX_LISTED: usize = 3;

/// A target that can be read, and of which no part is waiting.
enum Finding {
    /// It has other images than the source: in what they differ.
    Others(String),
    /// It has those of the source.
    Same(SameImages),
}

/// A target that has the images of the source.
struct SameImages {
    /// The bytes of all pixels.
    bytes: u64,
    /// Whether its files have checksums of their own.
    has_checksums: bool,
    /// In what else it is not what would be written, in words.
    differences: Vec<String>,
    /// Options that were given and of which a set shows nothing.
    undetectable: Vec<String>,
    /// The comparison of all pixels, where there was one.
    compared: Option<Compared>,
}

/// Says that an earlier run has completed the target at `path`, and nothing is left to do. Returns the bytes of all pixels, their
/// comparison where `with_pixels` asks for it, and whether files have checksums. `None` where something is left, or nothing is
/// there. A table of cells may be another one since, of the same names: only pixels tell.
///
/// # Errors
/// As [`compare`]; a target with other images than the source, or that differs from what would be written.
pub(super) fn of_earlier_run(
    source: &dyn Store,
    path: &Path,
    format: &Format,
    options: &WriteOptions,
    with_pixels: bool,
    ui: Ui,
) -> Outcome<Option<(u64, Option<Compared>, bool)>> {
    let refused = |cause: String| {
        let cause = format!("{cause}; nothing was written");
        let hint = "--overwrite writes it anew, or choose another name";
        Failure::from(Error::new(path, cause).hint(hint))
    };
    let SameImages { bytes, has_checksums, differences, undetectable, compared } =
        match compare(source, path, format, options, with_pixels, ui)? {
            None => return Ok(None),
            Some(Finding::Same(same)) => same,
            Some(Finding::Others(how)) => {
                return Err(refused(format!("already exists, with other images than the source: {how}")));
            }
        };
    if !differences.is_empty() {
        let how = differences.join("; ");
        return Err(refused(format!("is complete, but differs from the result of this command: {how}")));
    }
    let pixels = if with_pixels {
        "their pixels are the same"
    } else {
        "pixels are compared by `wellread verify --against`"
    };
    ui.say(format!(
        "{} is complete: it has the {} of the source by name, shape and type, and nothing is left to do ({pixels})",
        path.display(),
        counted(source.len(), source.hints().thing())
    ));
    if !undetectable.is_empty() {
        let undetectable = undetectable.join(", ");
        ui.say(format!("  a finished set does not show {undetectable}: --overwrite writes it anew"));
    }
    Ok(Some((bytes, compared, has_checksums)))
}

/// Looks at the target at `path`: `None` where a part of it is waiting to be gone on with, or where it is no set. The images of the
/// source are told by name, shape and type, in their order. `with_pixels` compares pixels, too, where nothing else differs.
///
/// # Errors
/// Columns of the target, or pixels of the source, that cannot be read.
fn compare(
    source: &dyn Store,
    path: &Path,
    format: &Format,
    options: &WriteOptions,
    with_pixels: bool,
    ui: Ui,
) -> Outcome<Option<Finding>> {
    // A folder of images opens unseen, so one that is not there would have images.
    if staged::part(path).is_some() || place::metadata(path).is_err() {
        return Ok(None);
    }
    let open = OpenOptions { format: Some(format.name.to_owned()), ..OpenOptions::default() };
    let Ok(target) = wellread_store::open(path, &open) else { return Ok(None) };
    let target = &*target;
    if let Some(difference) = other_images(source, target) {
        return Ok(Some(Finding::Others(difference)));
    }
    let bytes = bytes_of_pixels(source, source.len())?;
    let mut differences = columns(target, format.keeps_columns(), options)?;
    differences.extend(layout(target, format, options));
    let mut compared = None;
    if with_pixels && differences.is_empty() {
        match compare_finished(source, target, path, options.jobs, ui)? {
            Ok(same) => compared = Some(same),
            Err(difference) => differences.push(difference),
        }
    }
    let undetectable = undetectable(target, format, options);
    let has_checksums = target.has_checksums();
    Ok(Some(Finding::Same(SameImages { bytes, has_checksums, differences, undetectable, compared })))
}

/// In what the images of the target are not those of the source: how many, which names, their order, shape and type.
fn other_images(source: &dyn Store, target: &dyn Store) -> Option<String> {
    let [ours, theirs] = [source, target].map(|store| {
        let name = |row| store.name(row).unwrap_or_else(|_| format!("row {row}"));
        (0..store.len()).map(name).collect::<Vec<String>>()
    });
    let mut differences = vec![];
    if ours.len() != theirs.len() {
        differences.push(format!("it has {}, and the source {}", counted(theirs.len(), "image"), ours.len()));
    }
    for (names, others, [which, not]) in
        [(&ours, &theirs, ["of the source", "in it"]), (&theirs, &ours, ["in it", "of the source"])]
    {
        let surplus_names = surplus(names, others);
        if !surplus_names.is_empty() {
            let listed = first_few(&surplus_names, MAX_LISTED);
            let images = counted(surplus_names.len(), "image");
            let are = if surplus_names.len() == 1 { "is" } else { "are" };
            differences.push(format!("{images} {which} {are} not {not}: {listed}"));
        }
    }
    if differences.is_empty() {
        let row = (0..ours.len()).find(|&row| ours[row] != theirs[row]);
        differences.extend(row.map(|row| {
            format!(
                "its images are in another order: row {row} is {}, and {} in the source",
                theirs[row], ours[row]
            )
        }));
    }
    if differences.is_empty() {
        let other = |row: usize| other_info(source, target, row);
        let mut others = (0..ours.len()).filter_map(|row| Some((row, other(row)?)));
        let (row, how) = others.next()?;
        let of = counted_with(1 + others.count(), "image", ["is", "are"]);
        differences.push(format!("{of} of another shape or pixel type: {} {how}", ours[row]));
    }
    Some(differences.join("; "))
}

/// Names that there are more of here than among the others.
fn surplus<'a>(names: &'a [String], others: &[String]) -> Vec<&'a str> {
    let mut counts: HashMap<&str, usize> = HashMap::with_capacity(others.len());
    for name in others {
        *counts.entry(name).or_default() += 1;
    }
    let is_surplus = |name: &&str| match counts.get_mut(*name).filter(|count| **count > 0) {
        Some(count) => {
            *count -= 1;
            false
        }
        None => true,
    };
    names.iter().map(String::as_str).filter(is_surplus).collect()
}

/// Shape and type of an image in the target and in the source, if they differ or cannot be read.
fn other_info(source: &dyn Store, target: &dyn Store, row: usize) -> Option<String> {
    let of = |store: &dyn Store| store.row_info(row).map_err(|error| error.cause().to_owned());
    let words = |info: Result<RowInfo, String>| match info {
        Ok(RowInfo { shape, dtype }) => format!("{shape} {dtype}"),
        Err(cause) => format!("unreadable ({cause})"),
    };
    let (ours, theirs) = (of(source), of(target));
    let differs = ours.is_err() || ours != theirs;
    differs.then(|| format!("is {} in it, and {} in the source (TCZYX)", words(theirs), words(ours)))
}

/// Bytes of the pixels of so many images, from the first on.
pub(super) fn bytes_of_pixels(source: &dyn Store, images: usize) -> Result<u64, Error> {
    each_row::infos(source, images).map(|info| info.map(size)).sum()
}

/// Bytes of the pixels of an image.
fn size(info: RowInfo) -> u64 {
    (info.shape.pixels() * info.dtype.size()) as u64
}

/// Differences in the columns beside the images. Columns that only the target has count if the format keeps columns.
fn columns(target: &dyn Store, are_kept: bool, options: &WriteOptions) -> Result<Vec<String>, Error> {
    let has = target.hints().feature_names();
    let Some(wanted) = &options.features else {
        let others = has.iter().filter(|_| are_kept);
        return Ok(others
            .map(|name| format!("it has a column {name:?} that the command does not write"))
            .collect());
    };
    let names: Vec<String> = wanted.schema().fields().iter().map(|field| field.name().clone()).collect();
    let (there, absent): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(|name| has.contains(name));
    let mut differences: Vec<String> =
        absent.iter().map(|name| format!("it has no column {name:?}")).collect();
    let others = has.iter().filter(|name| are_kept && !names.contains(name));
    differences
        .extend(others.map(|name| format!("it has a column {name:?} that the command does not write")));
    if let Some(found) = target.hints().features(&there)? {
        let other = features::differing(wanted, &found);
        differences.extend(other.iter().map(|name| format!("its column {name:?} has other values")));
    }
    Ok(differences)
}

/// Differences between the layout of the pixels and the one that was asked for.
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

/// Options that were given and cannot be seen in a set.
fn undetectable(target: &dyn Store, format: &Format, options: &WriteOptions) -> Vec<String> {
    let mut undetectable = vec![];
    if options.tune != Tune::default() && (format.uses_tune)(options) {
        undetectable.push("--tune".to_owned());
    }
    if matches!(options.compression, Compression::Zstd(_) | Compression::Deflate(_)) {
        undetectable.push(format!("the level of --compression {}", options.compression));
    }
    let has_pieces = || {
        target.layout().is_ok_and(|layout| layout.chunk.is_some())
            || target.row_hints(0).is_ok_and(|hints| hints.grid().is_some())
    };
    if options.chunk.is_some() && !has_pieces() {
        undetectable.push("--chunk".to_owned());
    }
    undetectable
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

/// The pieces of a set and those that were asked for, where they are others; what reaches beyond the image is none. A
/// table does not show its pieces.
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
    use wellread_image::{PixelType, Shape};
    use wellread_loader::MemoryStore;

    /// Images of one pixel row, by name and width.
    fn set(images: &[(&str, usize)]) -> MemoryStore {
        let mut set = MemoryStore::new("set");
        for &(name, width) in images {
            set.push(name.to_owned(), Shape::plane(1, width), PixelType::U8, vec![0; width]).unwrap();
        }
        set
    }

    #[test]
    fn other_images_are_told_by_number_name_order_and_shape() {
        let other =
            |source: &[(&str, usize)], target: &[(&str, usize)]| other_images(&set(source), &set(target));
        let three = [("a", 2), ("b", 2), ("c", 2)];
        assert_eq!(other(&three, &three), None);
        assert_eq!(
            other(&three, &three[..1]).as_deref(),
            Some("it has 1 image, and the source 3; 2 images of the source are not in it: b, c")
        );
        assert_eq!(
            other(&[("a", 2), ("b", 2)], &[("a", 2), ("x", 2)]).as_deref(),
            Some("1 image of the source is not in it: b; 1 image in it is not of the source: x")
        );
        // Twice in one of them.
        assert_eq!(
            other(&[("a", 2), ("a", 2)], &[("a", 2)]).as_deref(),
            Some("it has 1 image, and the source 2; 1 image of the source is not in it: a")
        );
        let many: Vec<(&str, usize)> = ["a", "b", "c", "d", "e"].map(|name| (name, 2)).into();
        assert!(other(&many, &[]).unwrap().ends_with("5 images of the source are not in it: a, b, c …"));
        assert_eq!(
            other(&three, &[("a", 2), ("c", 2), ("b", 2)]).as_deref(),
            Some("its images are in another order: row 1 is c, and b in the source")
        );
        assert_eq!(
            other(&three, &[("a", 2), ("b", 3), ("c", 3)]).as_deref(),
            Some(
                "2 images are of another shape or pixel type: b is 1x1x1x1x3 uint8 in it, and 1x1x1x1x2 uint8 in the source (TCZYX)"
            )
        );
    }

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
