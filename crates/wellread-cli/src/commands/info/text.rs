//! The text of `info`, a line for each thing that is known of a set.

use super::channels::say_others;
use super::describe::{Described, Info};
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
    for shape in &info.shapes {
        let [t, c, z, y, x] = shape.shape_tczyx;
        let images = counted(shape.images, thing);
        line(ui, "shape", &format!("{t} x {c} x {z} x {y} x {x} (TCZYX) {}, {images}", shape.dtype));
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
    line(ui, "layout", &info.layout);
    line(ui, "codec", &info.codecs.in_words(info.images, info.files));
    line(ui, "on disk", &format!("{} in {}", bytes(info.bytes_on_disk), counted(info.files, "file")));
    let bits = info.bits_per_pixel.map(|bits| format!(" ({about}{bits:.2} bits on disk per pixel)"));
    line(ui, "pixels", &format!("{about}{}{}", bytes(info.bytes_of_pixels), bits.unwrap_or_default()));
}
