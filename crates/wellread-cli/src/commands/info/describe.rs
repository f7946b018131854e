//! The description of a set: what its first rows, its files and its columns say.

use super::super::unreadable::with_ways_out;
use super::channels::{OtherChannels, Others};
use super::doubled;
use super::pieces::{Codecs, Pieces, bytes_in_chunks, bytes_of_pieces, larger_than_pixels};
use super::pixel_sizes::{PixelSizes, Size};
use crate::output::Outcome;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use wellread_image::{Channel, ImageMetadata, PixelType, Region};
use wellread_store::labels::{self, Labels};
use wellread_store::sites::layout_names;
use wellread_store::{
    Error, Renamed, Scratch, SetPart, SiteSummary, SiteTable, Store, StoreLayout, each_row, features,
    read_region,
};

/// The description of a set, as the document has it.
#[derive(serde::Serialize)]
pub(super) struct Info {
    #[serde(serialize_with = "wellread_measure::path_text::serialize")]
    pub path: PathBuf,
    pub format: &'static str,
    pub variant: String,
    pub images: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape_tczyx: Option<[usize; 5]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<ShapeCount>,
    pub dtype: String,
    pub channels: Vec<Channel>,
    /// Images, of those looked at, that have these channels in another order, and that have others.
    pub channels_reordered: usize,
    pub channels_unlike: usize,
    /// The first of each of these images, and what its channels are called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels_elsewhere: Vec<OtherChannels>,
    pub physical_size_um: Option<Size>,
    /// The smallest and the largest, where images have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical_size_um_range: Option<[Size; 2]>,
    pub layout: String,
    #[serde(flatten)]
    pub codecs: Codecs,
    pub files: usize,
    pub bytes_on_disk: u64,
    pub bytes_of_pixels: u64,
    /// None of parts of larger images: the files hold more than these pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_pixel: Option<f64>,
    /// Why the pixels of the first image cannot be read, where they are of a kind that is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pixels_unsupported: Option<String>,
    pub rows_sampled: usize,
    /// Names of the columns beside the images.
    pub columns: Vec<String>,
    /// The layout whose names the files have, where images are made by one and not by a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout_preset: Option<String>,
    /// How images are made of several files each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sites: Option<SiteSummary>,
    /// Fields and wells of a plate that are not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// The sets that it is put together from, with their rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<SetPart>,
    /// Plates and wells, by the columns of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plates: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wells: Option<usize>,
    /// Names of label images that lie beside the images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Settings of the files about the images' look, which the pixels do not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<String>,
    /// Columns that are here under another name than in the files: that name, and the one here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns_renamed: Vec<[String; 2]>,
    /// Sentences of the text about columns and bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Info {
    /// Whether there are rows that were not looked at.
    pub fn is_sampled(&self) -> bool {
        self.rows_sampled < self.images
    }

    /// The word before figures. Those reckoned from some rows are not shown as if all had been looked at.
    pub fn about(&self) -> &'static str {
        if self.is_sampled() { "about " } else { "" }
    }

    /// The notes, where the pixels have these bytes.
    fn with_notes(mut self, pieces: Option<Pieces>) -> Self {
        if self.pixels_unsupported.is_none() {
            let larger = pieces
                .and_then(|pieces| larger_than_pixels((self.format, &self.codecs), pieces, self.about()));
            let note = larger.or_else(|| note_of_wide_pixels(&self));
            self.notes.extend(note);
        }
        let say =
            |[from, to]: &[String; 2]| format!("several columns are called {from}: one of them is {to} here");
        self.notes.extend(self.columns_renamed.iter().map(say));
        self
    }
}

/// Images of one shape and pixel type.
#[derive(serde::Serialize)]
pub(super) struct ShapeCount {
    pub shape_tczyx: [usize; 5],
    pub dtype: &'static str,
    pub images: usize,
}

/// Files with Parquet's plain pixels of few bits hold at least this share of the bytes that these would take.
const PLAIN_PARQUET: f64 = 0.95;

/// A line for Parquet that keeps pixels of 8 or 16 bits in its smallest number, which has 32.
fn note_of_wide_pixels(info: &Info) -> Option<String> {
    let bits = match info.dtype.as_str() {
        "uint8" | "int8" => 8,
        "uint16" | "int16" => 16,
        _ => return None,
    };
    let in_parquet = matches!(info.format, "parquet" | "ome-arrow-dataset") && info.codecs.first() == "none";
    let is_wide = info.bits_per_pixel.is_some_and(|bits| bits >= 32.0 * PLAIN_PARQUET);
    (in_parquet && is_wide).then(|| {
        format!(
            "Parquet keeps {bits}-bit pixels in 32 bits; compression takes that back (wellread convert --compression \
             zstd)"
        )
    })
}

/// Why pixels of the first image cannot be read, where they are of a kind that is not. Damage is for `verify`.
fn unsupported(store: &dyn Store) -> Option<String> {
    if store.is_empty() {
        return None;
    }
    let pixel = Region { start: [0; 5], size: [1; 5] };
    let read = read_region(store, 0, &pixel, &mut Scratch::default(), &mut Vec::new());
    let error = read.err().filter(Error::is_unsupported)?;
    let hint = error.hint_text().map_or(String::new(), |hint| format!(" (hint: {hint})"));
    Some(format!("{}{hint}", error.cause()))
}

/// The description of a set, and what its text says beside.
pub(super) struct Described {
    pub info: Info,
    pub labels: Option<Labels>,
    pub others: Others,
    pub pixel_sizes: PixelSizes,
    /// A row in a word: an image, or a cell.
    pub thing: &'static str,
}

/// How many different values the columns have together, of those of them that are there; `None` where the last is not. Rows
/// without a value in the last are of none.
fn count_distinct(store: &dyn Store, columns: &[&str]) -> Outcome<Option<usize>> {
    let there = store.hints().feature_names();
    let found: Vec<String> = columns
        .iter()
        .filter(|name| there.iter().any(|known| known == *name))
        .map(|&name| name.to_owned())
        .collect();
    if found.last().map(String::as_str) != columns.last().copied() {
        return Ok(None);
    }
    let mut rows: HashSet<Vec<Option<String>>> = features::row_values(store, &found)?.into_iter().collect();
    rows.retain(|values| values.last().is_some_and(Option::is_some));
    Ok(Some(rows.len()))
}

/// The rows of a set that were looked at.
struct SampledRows {
    rows: usize,
    /// Images of each shape and pixel type among them.
    counts: BTreeMap<([usize; 5], PixelType), usize>,
    /// Pixels and their bytes of all rows, reckoned from these.
    pixels: u128,
    bytes_of_pixels: u128,
    others: Others,
    pixel_sizes: PixelSizes,
}

impl SampledRows {
    /// The shape and the pixel type of all of them, if there is one.
    fn single(&self) -> Option<([usize; 5], PixelType)> {
        (self.counts.len() == 1).then(|| self.counts.keys().next().copied()).flatten()
    }

    /// How many are of each shape and pixel type, where these differ.
    fn shapes(&self) -> Vec<ShapeCount> {
        if self.single().is_some() {
            return vec![];
        }
        let count = |(&(shape_tczyx, dtype), &images): (&([usize; 5], PixelType), &usize)| ShapeCount {
            shape_tczyx,
            dtype: dtype.name(),
            images,
        };
        self.counts.iter().map(count).collect()
    }

    /// The names of their pixel types.
    fn dtypes(&self) -> String {
        let mut dtypes: Vec<_> = self.counts.keys().map(|(_, dtype)| dtype.name()).collect();
        dtypes.sort_unstable();
        dtypes.dedup();
        dtypes.join(", ")
    }
}

/// Looks at the first rows of a set, whose first image has the metadata `own`.
fn look_at(store: &dyn Store, rows: usize, own: &ImageMetadata) -> Outcome<SampledRows> {
    let mut counts: BTreeMap<([usize; 5], PixelType), usize> = BTreeMap::new();
    let (mut pixels, mut bytes_of_pixels) = (0u128, 0u128);
    let (mut others, mut pixel_sizes) = (Others::beside(&own.channels), PixelSizes::of(own));
    for (row, info) in each_row::looked_into(store, rows, |row| row).enumerate() {
        let info = info.map_err(|error| with_ways_out(error, store.path(), ""))?;
        if let Some(metadata) = others.look_at(store, row) {
            pixel_sizes.look_at(&metadata);
        }
        *counts.entry((info.shape.0, info.dtype)).or_default() += 1;
        pixels += info.shape.pixels() as u128;
        bytes_of_pixels += (info.shape.pixels() * info.dtype.size()) as u128;
    }
    if rows > 0 && rows < store.len() {
        pixels = pixels * store.len() as u128 / rows as u128;
        bytes_of_pixels = bytes_of_pixels * store.len() as u128 / rows as u128;
    }
    Ok(SampledRows { rows, counts, pixels, bytes_of_pixels, others, pixel_sizes })
}

/// Bytes of the pieces of whole images in these files, with and without their codec.
fn pieces(
    store: &dyn Store,
    files: &[PathBuf],
    layout: &StoreLayout,
    looked: &SampledRows,
) -> Outcome<Pieces> {
    let in_chunks = looked
        .counts
        .iter()
        .map(|((shape, dtype), n)| bytes_in_chunks(*shape, dtype.size(), layout) * *n as u128)
        .sum::<u128>();
    let plain = if looked.rows == 0 { 0 } else { in_chunks * store.len() as u128 / looked.rows as u128 };
    let stored = (bytes_of_pieces(files)? as f64 * layout.pixel_share.unwrap_or(1.0)) as u64;
    Ok(Pieces { plain: plain as u64, stored })
}

/// The name of the layout that makes these sites; `None` where a pattern does.
fn preset(sites: &SiteSummary) -> Option<String> {
    layout_names().contains(&sites.layout.as_str()).then(|| sites.layout.clone())
}

/// Describes a set by its first rows, of which there are at least one and at most `max_rows`.
///
/// # Errors
/// A row that cannot be read, files that cannot be looked at.
pub(super) fn describe(store: &dyn Store, max_rows: usize) -> Outcome<Described> {
    let rows = store.len().min(max_rows.max(1));
    let metadata = if store.is_empty() {
        ImageMetadata::default()
    } else {
        store.row_info(0).map_err(|error| with_ways_out(error, store.path(), ""))?;
        store.metadata(0)?
    };
    let looked = look_at(store, rows, &metadata)?;
    let files = store.files()?;
    let bytes_on_disk = store.bytes_on_disk()?;
    let layout = store.layout()?;
    // The files hold whole images and the table: nothing to compare crops with.
    let are_whole = !store.hints().are_crops;
    let pieces = are_whole.then(|| pieces(store, &files, &layout, &looked)).transpose()?;
    let labels = labels::beside(store);
    let (looks, codecs) = (layout.lost_display_settings(), Codecs::of(&layout));
    let renamed = store.hints().columns_renamed().into_iter();
    let (pixels, others) = (looked.pixels, &looked.others);
    let sites = store.hints().sites.map(SiteTable::summary);
    let info = Info {
        path: store.path().to_owned(),
        format: store.format(),
        variant: layout.variant,
        images: store.len(),
        shape_tczyx: looked.single().map(|(shape, _)| shape),
        shapes: looked.shapes(),
        dtype: looked.dtypes(),
        channels: metadata.channels.clone(),
        channels_reordered: others.moved,
        channels_unlike: others.unlike,
        channels_elsewhere: others.first.iter().flatten().cloned().collect(),
        physical_size_um: looked.pixel_sizes.first(),
        physical_size_um_range: looked.pixel_sizes.range(),
        layout: layout.pieces,
        codecs,
        files: files.len(),
        bytes_on_disk,
        bytes_of_pixels: looked.bytes_of_pixels as u64,
        bits_per_pixel: are_whole
            .then(|| if pixels == 0 { 0.0 } else { bytes_on_disk as f64 * 8.0 / pixels as f64 }),
        pixels_unsupported: unsupported(store),
        rows_sampled: rows,
        columns: store.hints().feature_names(),
        layout_preset: sites.as_ref().and_then(preset),
        sites,
        lacks: store.hints().missing_parts.to_vec(),
        parts: store.hints().set_parts(),
        plates: count_distinct(store, &[features::PLATE])?,
        wells: count_distinct(store, &[features::PLATE, features::WELL])?,
        labels: labels.as_ref().map_or_else(Vec::new, |labels| labels.names.clone()),
        looks,
        columns_renamed: renamed.map(|Renamed { from, to }| [from, to]).collect(),
        notes: doubled::in_words(store)?.into_iter().collect(),
    };
    let SampledRows { others, pixel_sizes, .. } = looked;
    Ok(Described { info: info.with_notes(pieces), labels, others, pixel_sizes, thing: store.hints().thing() })
}
