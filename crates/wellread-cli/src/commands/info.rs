//! `wellread info PATH`

mod channels;
mod pieces;

use super::OpenArgs;
use crate::output::{Outcome, Ui, bytes};
use channels::Others;
use pieces::{Codecs, Pieces, bytes_in_chunks, bytes_of_pieces, larger_than_pixels};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use wellread_image::{Region, ome_xml};
use wellread_store::labels::{self, Labels};
use wellread_store::store::RowsAhead;
use wellread_store::words::counted;
use wellread_store::{
    Error, Renamed, Scratch, SetPart, SiteSummary, SiteTable, Store, features, read_region,
};

/// Rows that are looked at unless a number is given. There is one number for a set on this machine, and one for a set behind
/// a network. Looking at a row may take requests there.
const ROWS: usize = 100_000;
const REMOTE_ROWS: usize = 1000;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wellread info plate.parquet
  wellread info plate.zarr --level 1 --json
  wellread info plate/Images --layout harmony
  wellread info images --pattern '{well}_*_{site}_{channel}_001.tif'")]
pub struct Args {
    /// A file or folder of images, a folder of tables, or a pattern such as 'plates/*.parquet'.
    path: PathBuf,
    /// Most rows to look at for shapes; a larger set is marked as sampled [default: 100000, or 1000 in a bucket].
    #[arg(long)]
    rows: Option<usize>,
    #[command(flatten)]
    open: OpenArgs,
}

#[derive(serde::Serialize)]
struct Info {
    #[serde(serialize_with = "wellread_measure::path_text::serialize")]
    path: PathBuf,
    format: &'static str,
    variant: String,
    images: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape_tczyx: Option<[usize; 5]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shapes: Vec<ShapeCount>,
    dtype: String,
    channels: Vec<wellread_image::Channel>,
    /// Images, of those looked at, that have these channels in another order, and that have others.
    channels_reordered: usize,
    channels_unlike: usize,
    /// The first of each of these images, and what its channels are called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels_elsewhere: Vec<channels::OtherChannels>,
    physical_size_um: Option<[Option<f64>; 3]>,
    layout: String,
    #[serde(flatten)]
    codecs: Codecs,
    files: usize,
    bytes_on_disk: u64,
    bytes_of_pixels: u64,
    /// None of parts of larger images: the files hold more than these pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    bits_per_pixel: Option<f64>,
    /// Why the pixels of the first image cannot be read, where they are of a kind that is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pixels_unsupported: Option<String>,
    rows_sampled: usize,
    feature_columns: Vec<String>,
    /// How images are made of several files each.
    #[serde(skip_serializing_if = "Option::is_none")]
    sites: Option<SiteSummary>,
    /// Fields and wells of a plate that are not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lacks: Vec<String>,
    /// The sets that it is put together from, with their rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<SetPart>,
    /// Plates and wells, by the columns of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    plates: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wells: Option<usize>,
    /// Names of label images that lie beside the images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    /// Settings of the files about the images' look, which the pixels do not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    looks: Vec<String>,
    /// Columns that are here under another name than in the files: that name, and the one here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    columns_renamed: Vec<[String; 2]>,
    /// Sentences of the text about columns and bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl Info {
    /// Whether there are rows that were not looked at.
    fn is_sampled(&self) -> bool {
        self.rows_sampled < self.images
    }

    /// The word before figures. Those reckoned from some rows are not shown as if all had been looked at.
    fn about(&self) -> &'static str {
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

#[derive(serde::Serialize)]
struct ShapeCount {
    shape_tczyx: [usize; 5],
    dtype: &'static str,
    images: usize,
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let store = args.open.open_to_describe(&args.path, ui)?;
    let Described { info, labels, others } = describe(
        &*store,
        args.rows.unwrap_or(if store.remote_path().is_some() { REMOTE_ROWS } else { ROWS }),
    )?;
    if ui.json {
        return ui.document(&info);
    }
    ui.say(format!("{}", args.path.display()));
    let line = |what: &str, value: String| ui.say(format!("  {what:<16}{value}"));
    line("format", format!("{} ({})", info.format, info.variant));
    line("images", info.images.to_string());
    let about = info.about();
    if info.is_sampled() {
        let images = counted(info.images, "image");
        let first = info.rows_sampled;
        line(
            "sampled",
            format!("shapes and pixel types are those of the first {first} of {images} (--rows)"),
        );
    }
    for shape in &info.shapes {
        let [t, c, z, y, x] = shape.shape_tczyx;
        line(
            "shape",
            format!(
                "{t} x {c} x {z} x {y} x {x} (TCZYX) {}, {}",
                shape.dtype,
                counted(shape.images, "image")
            ),
        );
    }
    if let Some([t, c, z, y, x]) = info.shape_tczyx {
        line("shape", format!("{t} x {c} x {z} x {y} x {x} (TCZYX)"));
        line("pixel type", info.dtype.clone());
    }
    if let [first, .., last] = &info.parts[..] {
        let between = if info.parts.len() > 2 { " … " } else { ", " };
        let names = format!("{}{between}{}", first.name, last.name);
        line("sets", format!("{}, one after the other ({names})", counted(info.parts.len(), "set")));
    }
    if let Some(sites) = &info.sites {
        line(
            "sites",
            format!(
                "{} of {} each ({})",
                counted(info.images, "site"),
                counted(sites.files_per_site, "file"),
                sites.layout
            ),
        );
    }
    if info.plates.is_some() || info.wells.is_some() {
        let count = |n: Option<usize>, thing: &str| n.map(|n| counted(n, thing));
        let all = [count(info.plates, "plate"), count(info.wells, "well")];
        line("plates", all.into_iter().flatten().collect::<Vec<_>>().join(", "));
    }
    info.lacks.iter().for_each(|what| line("missing", what.clone()));
    if let Some(sites) = &info.sites {
        sites.missing.iter().for_each(|what| line("missing", what.clone()));
        if sites.unmatched > 0 {
            line("left out", format!("{} whose names do not fit", counted(sites.unmatched, "file")));
        }
        if let Some(unnamed) = sites.unnamed_in_words() {
            line("left out", unnamed);
        }
    }
    let names: Vec<_> = info.channels.iter().map(|c| c.name.as_str()).filter(|n| !n.is_empty()).collect();
    let mut label = "channels";
    let mut say_channels = |text: String| line(std::mem::take(&mut label), text);
    if !names.is_empty() {
        say_channels(names.join(", "));
    }
    let first = store.name(0).unwrap_or_default();
    channels::say_others(&others, &first).into_iter().for_each(&mut say_channels);
    if let Some([z, y, x]) = info.physical_size_um {
        let show = |v: Option<f64>| v.map_or("?".to_owned(), |v| format!("{v:.4}"));
        line("pixel size", format!("{} x {} x {} µm (ZYX)", show(z), show(y), show(x)));
    }
    if let Some(first) = info.feature_columns.first() {
        let more = if info.feature_columns.len() > 1 { " …" } else { "" };
        let columns = counted(info.feature_columns.len(), "column");
        line("features", format!("{columns} beside the images ({first}{more})"));
    }
    if let Some(labels) = &labels {
        line("labels", format!("beside {}: {labels}", counted(labels.images, "image")));
    }
    line("layout", info.layout.clone());
    line("codec", info.codecs.in_words(info.images, info.files));
    line("on disk", format!("{} in {}", bytes(info.bytes_on_disk), counted(info.files, "file")));
    let bits = info.bits_per_pixel.map(|bits| format!(" ({about}{bits:.2} bits on disk per pixel)"));
    line("pixels", format!("{about}{}{}", bytes(info.bytes_of_pixels), bits.unwrap_or_default()));
    if let Some(why) = &info.pixels_unsupported {
        line("note", format!("the pixels cannot be read: {why}"));
    }
    info.notes.iter().chain(&info.looks).for_each(|what| line("note", what.clone()));
    Ok(())
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
struct Described {
    info: Info,
    labels: Option<Labels>,
    others: Others,
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

fn describe(store: &dyn Store, max_rows: usize) -> Outcome<Described> {
    let mut counts: BTreeMap<([usize; 5], wellread_image::PixelType), usize> = BTreeMap::new();
    let rows = store.len().min(max_rows.max(1));
    let (mut pixels, mut bytes_of_pixels) = (0u128, 0u128);
    let metadata = if store.is_empty() {
        wellread_image::ImageMetadata::default()
    } else {
        store.row_info(0)?;
        store.metadata(0)?
    };
    let mut others = Others::beside(&metadata.channels);
    let mut ahead = RowsAhead::of_first_heads(store, rows);
    for row in 0..rows {
        ahead.before(row);
        let info = store.row_info(row)?;
        store.hints().look_into(row)?;
        others.look_at(store, row);
        *counts.entry((info.shape.0, info.dtype)).or_default() += 1;
        pixels += info.shape.pixels() as u128;
        bytes_of_pixels += (info.shape.pixels() * info.dtype.size()) as u128;
    }
    if rows > 0 && rows < store.len() {
        pixels = pixels * store.len() as u128 / rows as u128;
        bytes_of_pixels = bytes_of_pixels * store.len() as u128 / rows as u128;
    }
    let files = store.files()?;
    let bytes_on_disk = store.bytes_on_disk()?;
    let layout = store.layout()?;
    // The files hold whole images and the table: nothing to compare crops with.
    let are_whole = !store.hints().are_cut;
    let in_chunks = counts
        .iter()
        .map(|((shape, dtype), n)| bytes_in_chunks(*shape, dtype.size(), &layout) * *n as u128)
        .sum::<u128>();
    let plain = if rows == 0 { 0 } else { in_chunks * store.len() as u128 / rows as u128 };
    // None of parts of larger images.
    let pieces = are_whole
        .then(|| {
            let of_pixels = |stored: u64| (stored as f64 * layout.pixel_share.unwrap_or(1.0)) as u64;
            bytes_of_pieces(&files).map(|stored| Pieces { plain: plain as u64, stored: of_pixels(stored) })
        })
        .transpose()?;
    let labels = labels::beside(store);
    let sizes = [&metadata.physical_size_z, &metadata.physical_size_y, &metadata.physical_size_x];
    let physical = sizes.map(|size| size.as_ref().and_then(|s| ome_xml::micrometres(s.value, &s.unit)));
    let single = (counts.len() == 1).then(|| counts.keys().next().copied()).flatten();
    let mut dtypes: Vec<_> = counts.keys().map(|(_, d)| d.name()).collect();
    dtypes.sort_unstable();
    dtypes.dedup();
    let (looks, codecs) = (layout.lost_display_settings(), Codecs::of(&layout));
    let renamed = store.hints().columns_renamed().into_iter();
    let info = Info {
        path: store.path().to_owned(),
        format: store.format(),
        variant: layout.variant,
        images: store.len(),
        shape_tczyx: single.map(|(s, _)| s),
        shapes: if single.is_some() {
            vec![]
        } else {
            counts
                .iter()
                .map(|((shape, dtype), n)| ShapeCount {
                    shape_tczyx: *shape,
                    dtype: dtype.name(),
                    images: *n,
                })
                .collect()
        },
        dtype: dtypes.join(", "),
        channels: metadata.channels.clone(),
        channels_reordered: others.moved,
        channels_unlike: others.unlike,
        channels_elsewhere: others.first.iter().flatten().cloned().collect(),
        physical_size_um: physical.iter().any(Option::is_some).then_some(physical),
        layout: layout.pieces,
        codecs,
        files: files.len(),
        bytes_on_disk,
        bytes_of_pixels: bytes_of_pixels as u64,
        bits_per_pixel: are_whole
            .then(|| if pixels == 0 { 0.0 } else { bytes_on_disk as f64 * 8.0 / pixels as f64 }),
        pixels_unsupported: unsupported(store),
        rows_sampled: rows,
        feature_columns: store.hints().feature_names(),
        sites: store.hints().sites.map(SiteTable::summary),
        lacks: store.hints().lacks.to_vec(),
        parts: store.hints().set_parts(),
        plates: count_distinct(store, &[features::PLATE])?,
        wells: count_distinct(store, &[features::PLATE, features::WELL])?,
        labels: labels.as_ref().map_or_else(Vec::new, |labels| labels.names.clone()),
        looks,
        columns_renamed: renamed.map(|Renamed { from, to }| [from, to]).collect(),
        notes: vec![],
    };
    Ok(Described { info: info.with_notes(pieces), labels, others })
}
