//! The text of `info`, a line for each thing that is known of a set.

use super::channels::say_others;
use super::describe::{Described, Info, ShapeCount};
use crate::output::{Ui, bytes};
use wellread_store::words::counted;

/// Prints a description. The first image is called `first`.
pub(super) fn say(described: &Described, first: &str, ui: Ui) {
    let info = &described.info;
    say_images(info, described.thing, ui);
    say_sites(info, ui);
    say_channels(described, first, ui);
    say_beside(described, ui);
    say_bytes(info, ui);
    if let Some(why) = &info.pixels_unsupported {
        line(ui, "note", &format!("the pixels cannot be read: {why}"));
    }
    for note in info.notes.iter().chain(&info.looks) {
        line(ui, "note", note);
    }
}

fn line(ui: Ui, what: &str, value: &str) {
    ui.say(format!("  {what:<16}{value}"));
}

/// Shapes that are listed at most.
const MAX_SHAPES: usize = 8;

/// The smallest and the largest of each size, and the pixel types, of images that differ; `None` where they do not.
fn range_of_shapes(shapes: &[ShapeCount]) -> Option<String> {
    let along = |axis: usize| {
        let sizes = shapes.iter().map(|shape| shape.shape_tczyx[axis]);
        let (least, most) = (sizes.clone().min()?, sizes.max()?);
        Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
    };
    let sizes = (0..5).map(along).collect::<Option<Vec<String>>>()?;
    let mut dtypes: Vec<&str> = shapes.iter().map(|shape| shape.dtype).collect();
    dtypes.sort_unstable();
    dtypes.dedup();
    Some(format!("{} (TCZYX), {}", sizes.join(" x "), dtypes.join(" and ")))
}

/// The format, how many images there are, and their shapes; `thing` is one of them in a word.
fn say_images(info: &Info, thing: &str, ui: Ui) {
    line(ui, "format", &format!("{} ({})", info.format, info.variant));
    line(ui, &format!("{thing}s"), &info.images.to_string());
    if info.is_sampled() {
        let images = counted(info.images, thing);
        let first = info.rows_sampled;
        line(
            ui,
            "sampled",
            &format!("shapes and pixel types are those of the first {first} of {images} (--rows)"),
        );
    }
    if let Some(range) = range_of_shapes(&info.shapes) {
        line(ui, "shape", &format!("{thing}s differ: {range}"));
    }
    for shape in info.shapes.iter().take(MAX_SHAPES) {
        let [t, c, z, y, x] = shape.shape_tczyx;
        let images = counted(shape.images, thing);
        line(ui, "", &format!("{t} x {c} x {z} x {y} x {x} (TCZYX) {}, {images}", shape.dtype));
    }
    if let Some(more) = info.shapes.len().checked_sub(MAX_SHAPES).filter(|&more| more > 0) {
        line(ui, "", &format!("{more} more (--json lists all)"));
    }
    if let Some([t, c, z, y, x]) = info.shape_tczyx {
        line(ui, "shape", &format!("{t} x {c} x {z} x {y} x {x} (TCZYX)"));
        line(ui, "pixel type", &info.dtype);
    }
}

/// The sets, sites, plates and wells, and what is not there.
fn say_sites(info: &Info, ui: Ui) {
    if let [first, .., last] = &info.parts[..] {
        let between = if info.parts.len() > 2 { " … " } else { ", " };
        let names = format!("{}{between}{}", first.name, last.name);
        line(ui, "sets", &format!("{}, one after the other ({names})", counted(info.parts.len(), "set")));
    }
    if let Some(sites) = &info.sites {
        let (images, files) = (counted(info.images, "site"), counted(sites.files_per_site, "file"));
        line(ui, "sites", &format!("{images} of {files} each ({})", sites.layout));
    }
    if info.plates.is_some() || info.wells.is_some() {
        let count = |n: Option<usize>, thing: &str| n.map(|n| counted(n, thing));
        let all = [count(info.plates, "plate"), count(info.wells, "well")];
        line(ui, "plates", &all.into_iter().flatten().collect::<Vec<_>>().join(", "));
    }
    for what in &info.lacks {
        line(ui, "missing", what);
    }
    let Some(sites) = &info.sites else { return };
    for what in &sites.missing {
        line(ui, "missing", what);
    }
    if sites.unmatched > 0 {
        line(ui, "left out", &format!("{} whose names do not fit", counted(sites.unmatched, "file")));
    }
    if let Some(unnamed) = sites.unnamed_in_words() {
        line(ui, "left out", &unnamed);
    }
}

/// The channels of the first image, and the images that have others.
fn say_channels(described: &Described, first: &str, ui: Ui) {
    let channels = &described.info.channels;
    let names: Vec<_> = channels.iter().map(|c| c.name.as_str()).filter(|n| !n.is_empty()).collect();
    let named = (!names.is_empty()).then(|| names.join(", "));
    let mut label = "channels";
    for text in named.into_iter().chain(say_others(&described.others, first, described.thing)) {
        line(ui, std::mem::take(&mut label), &text);
    }
}

/// The size of pixels, and the columns and label images that stand beside the images.
fn say_beside(described: &Described, ui: Ui) {
    let info = &described.info;
    if let Some(sizes) = described.pixel_sizes.in_words(described.thing) {
        line(ui, "pixel size", &sizes);
    }
    if let Some(first) = info.columns.first() {
        let more = if info.columns.len() > 1 { " …" } else { "" };
        let columns = counted(info.columns.len(), "column");
        line(ui, "features", &format!("{columns} beside the images ({first}{more})"));
    }
    if let Some(labels) = &described.labels {
        line(ui, "labels", &format!("beside {}: {labels}", counted(labels.images, "image")));
    }
}

/// How the pixels lie in the files, and the bytes of both.
fn say_bytes(info: &Info, ui: Ui) {
    let about = info.about();
    // A file of its own each: the layout is that of one of them.
    let of = if info.files > 1 && !info.shapes.is_empty() { " (first image; images differ)" } else { "" };
    line(ui, "layout", &format!("{}{of}", info.layout));
    line(ui, "codec", &info.codecs.in_words(info.images, info.files));
    line(ui, "on disk", &format!("{} in {}", bytes(info.bytes_on_disk), counted(info.files, "file")));
    let bits = info.bits_per_pixel.map(|bits| format!(" ({about}{bits:.2} bits on disk per pixel)"));
    line(ui, "pixels", &format!("{about}{}{}", bytes(info.bytes_of_pixels), bits.unwrap_or_default()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_that_differ_have_a_range_along_each_axis() {
        let shape = |c, y, x, dtype| ShapeCount { shape_tczyx: [1, c, 1, y, x], dtype, images: 1 };
        let all = [shape(3, 20, 30, "uint8"), shape(1, 40, 30, "uint16"), shape(1, 30, 30, "uint8")];
        let range = "1 x 1 to 3 x 1 x 20 to 40 x 30 (TCZYX), uint16 and uint8";
        assert_eq!(range_of_shapes(&all).as_deref(), Some(range));
        assert_eq!(range_of_shapes(&[]), None);
    }
}
