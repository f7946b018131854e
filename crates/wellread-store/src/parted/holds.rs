//! Whether a part that an earlier run has left is what this run would write.

use super::{as_written, is_by_image};
use crate::format::{Format, format_named};
use crate::surface::option;
use crate::verify::{Expected, expected_of, verify};
use crate::{Error, ImageView, Result, RowInfo, Store, WriteOptions, features, place, registry};
use std::path::Path;
use wellread_image::{ImageMetadata, PhysicalSize, Shape};

/// Whether the part at `path` holds the images of `source`, pixels and all, and the columns beside them. A run that goes on need not write
/// it again. `options` are those of the parts.
///
/// # Errors
/// The first image that the part holds with other names of channels or sizes of pixels.
pub fn holds(source: &dyn Store, path: &Path, format: &str, options: &WriteOptions) -> Result<bool> {
    let format = format_named(format)?;
    if !place::exists(path) {
        return Ok(false);
    }
    let Ok(part) = registry::open(path, &as_written(format)) else { return Ok(false) };
    if part.len() != source.len() || format.keeps_features && !holds_columns(source, &*part, format) {
        return Ok(false);
    }
    let Ok(expected) = expected_of(source, options.jobs, &|| ()) else { return Ok(false) };
    if !verify(&*part, Some(Expected::new(&expected)), options.jobs, &|| ()).passed() {
        return Ok(false);
    }
    is_described_alike(source, &*part, format, options)
}

/// Names of channels, and sizes of pixels along X, Y and Z.
type Described = (Vec<String>, [Option<PhysicalSize>; 3]);

fn described(of: &ImageMetadata) -> Described {
    let names = of.channels.iter().map(|channel| channel.name.clone()).collect();
    let sizes = [&of.physical_size_x, &of.physical_size_y, &of.physical_size_z];
    (names, sizes.map(Option::clone))
}

fn in_words((names, sizes): &Described) -> String {
    let size = |size: Option<&PhysicalSize>| match size {
        Some(PhysicalSize { value, unit }) => format!("{value} {unit}"),
        None => "unknown".to_owned(),
    };
    format!(
        "the channels {names:?} and pixels of {}",
        sizes.each_ref().map(|axis| size(axis.as_ref())).join(" x ")
    )
}

/// Whether a part has the names of channels and the sizes of pixels that its format keeps of those of `source`. It has not where nobody
/// can tell what the format keeps.
///
/// # Errors
/// The first image that has others.
fn is_described_alike(
    source: &dyn Store,
    part: &dyn Store,
    format: &Format,
    options: &WriteOptions,
) -> Result<bool> {
    // The images that are not described as in the source, each with the place of its kind: most formats change a few things.
    let mut kinds: Vec<(ImageMetadata, RowInfo)> = Vec::new();
    let mut rows: Vec<(usize, usize, Described)> = Vec::new();
    for row in 0..source.len() {
        let (wanted, found) = (source.metadata(row)?, described(&part.metadata(row)?));
        if described(&wanted) == found {
            continue;
        }
        let RowInfo { shape: Shape([t, c, z, ..]), dtype } = source.row_info(row)?;
        let info = RowInfo { shape: Shape([t, c, z, 1, 1]), dtype };
        let known = kinds.iter().position(|(of, like)| *like == info && described(of) == described(&wanted));
        let kind = known.unwrap_or(kinds.len());
        if known.is_none() {
            kinds.push((wanted, info));
        }
        rows.push((row, kind, found));
    }
    if rows.is_empty() {
        return Ok(true);
    }
    let Some(kept) = as_kept(&kinds, format, options) else { return Ok(false) };
    let Some((row, kind, found)) = rows.into_iter().find(|(_, kind, found)| kept[*kind] != *found) else {
        return Ok(true);
    };
    let (has, wanted) = (in_words(&found), in_words(&kept[kind]));
    let cause = format_args!("was written with {has}, and the source has {wanted}");
    let hint = format!("leave {} out, so that all parts are written anew", option("resume"));
    Err(Error::new(part.path(), cause).row(row).hint(hint))
}

/// The descriptions of images as a format keeps them: it writes such images and reads them back.
fn as_kept(
    images: &[(ImageMetadata, RowInfo)],
    format: &Format,
    options: &WriteOptions,
) -> Option<Vec<Described>> {
    let dir = tempfile::tempdir().ok()?;
    let ending = if is_by_image(format) { "" } else { format.set_ending };
    let path = dir.path().join(format!("kept{ending}"));
    let options = WriteOptions {
        features: None,
        chunk: None,
        shard: None,
        resume: None,
        overwrite: true,
        jobs: 1,
        ..options.clone()
    };
    let mut writer = registry::create(&path, format.name, &options).ok()?;
    for (number, (metadata, RowInfo { shape, dtype })) in images.iter().enumerate() {
        let name = format!("{number:09}");
        let metadata = ImageMetadata { id: name.clone(), name, ..metadata.clone() };
        let pixels = vec![0u8; shape.pixels() * dtype.size()];
        let image = ImageView { metadata: &metadata, shape: *shape, dtype: *dtype, pixels: &pixels };
        writer.write(&image).ok()?;
    }
    writer.finish().ok()?;
    let kept = registry::open(&path, &as_written(format)).ok()?;
    (0..images.len()).map(|row| Some(described(&kept.metadata(row).ok()?))).collect()
}

/// Whether a part has the columns of `source`, as its format calls them, no others, and their values.
fn holds_columns(source: &dyn Store, part: &dyn Store, format: &Format) -> bool {
    let (Ok(wanted), Ok(found)) = (features::all(source), features::all(part)) else { return false };
    let wanted = wanted.map(|columns| features::renamed(&columns, &format.own_columns)).transpose();
    let Ok(wanted) = wanted.map(|named| named.map(|(columns, _)| columns)) else { return false };
    match (wanted, found) {
        (Some(wanted), Some(found)) => {
            let mut names = wanted.schema_ref().fields().iter().map(|field| field.name());
            wanted.num_columns() == found.num_columns()
                && names.all(|name| found.column_by_name(name).is_some())
                && features::differing(&wanted, &found).is_empty()
        }
        (one, other) => one.or(other).is_none_or(|columns| columns.num_columns() == 0),
    }
}
