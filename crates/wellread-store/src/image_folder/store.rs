//! Reading: one file, one decode, one block per request.

use super::decode::{HEADER_BYTES, Header, header};
use super::layout::{self, NAMING};
use super::splits::{self, Labels};
use crate::ahead::Fetching;
use crate::file_rows::{FileRows, ImageLocation};
use crate::place::{self, PrefetchGuard, WantedRanges};
use crate::refusal::Refusal;
use crate::{
    Block, Error, FeatureTable, Hints, OpenOptions, PixelSink, ReadExtent, Request, Result, RowFacts,
    RowHints, RowInfo, Scratch, Store, StoreLayout, default_answers, default_columns, try_alloc,
    unknown_facts,
};
use arrow_array::RecordBatch;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use wellread_image::ImageMetadata;
use wellread_trace::{Kind, span};

/// Pictures, open for reading.
#[derive(Debug)]
pub(super) struct ImageFolder {
    /// Rows, with their headers once read.
    rows: FileRows<Header>,
    /// Names of classes, where the set has them.
    labels: Option<Labels>,
}

impl ImageFolder {
    /// Opens a file, folder or class folders: a directory listing.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        let rows = FileRows::new(path, layout::rows(path, options)?);
        let mut opened = Self { rows, labels: None };
        let held = ask_for_labels(path);
        if !held.is_empty() {
            // The header that a reader looks at first comes in the same round trip. One that cannot be read says so then.
            let _ = opened.header(0);
        }
        opened.labels = splits::labels(path)?;
        Ok(opened)
    }

    /// These files; `path` is what they are called together, the folder that they lie in or another one.
    pub fn of_files(path: &Path, files: Vec<PathBuf>) -> Self {
        let location = |file: PathBuf| {
            if let Ok(below) = file.strip_prefix(path) {
                let (name, below) = (layout::name_of(below), below.to_owned());
                // Addresses in several buckets have no folder in common.
                let is_below = place::is_remote(path) == place::is_remote(&file);
                return ImageLocation { name, below: if is_below { below } else { file } };
            }
            // A relative path would be looked for below `path`.
            let name = layout::name_of(&file);
            ImageLocation { name, below: place::absolute(&file).unwrap_or(file) }
        };
        Self { rows: FileRows::new(path, files.into_iter().map(location).collect()), labels: None }
    }

    fn header(&self, row: usize) -> Result<&Header> {
        self.rows.get(row, |path| {
            let cannot = |e: std::io::Error| Error::io(path, "cannot read", &e);
            let (file, length) = place::open(path).map_err(cannot)?;
            let (mut bytes, head) = (vec![], length.min(HEADER_BYTES));
            file.peek_after(0, head, &mut bytes).map_err(cannot)?;
            let mut parsed = header(&bytes, length);
            if parsed.is_err() && length > head {
                // A colour profile or a thumbnail can push the header's end further back.
                file.peek_after(head, length - head, &mut bytes).map_err(cannot)?;
                parsed = header(&bytes, length);
            }
            parsed.map_err(|cause| unreadable(path, row, &cause))
        })
    }

    fn read_row(
        &self,
        request: usize,
        row: usize,
        scratch: &mut Scratch,
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        let header = self.header(row)?;
        let path = self.rows.path_of(self.rows.row(row)?);
        let cannot = |e: std::io::Error| Error::io(&path, "cannot read", &e).row(row);
        let (file, length) = place::open(&path).map_err(cannot)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        try_alloc::grow(&mut scratch.raw, length).map_err(|cause| Error::new(&path, cause).row(row))?;
        let raw = &mut scratch.raw[..length];
        file.read_exact_at(raw, 0).map_err(cannot)?;
        drop(file);
        let size = header.bytes();
        let decompress = span(Kind::Decompress).with(length as u64, size as u64);
        header.decode(raw, &mut scratch.decoded).map_err(|e| unreadable(&path, row, &e))?;
        drop(decompress);
        let mut data = &scratch.decoded[..size];
        if header.info.shape.c() > 1 {
            try_alloc::grow(&mut scratch.pixels, size).map_err(|cause| Error::new(&path, cause).row(row))?;
            header.to_planes(data, &mut scratch.pixels[..size]);
            data = &scratch.pixels[..size];
        }
        let RowInfo { shape, dtype } = header.info;
        sink.put(request, &Block { region: shape.full(), data, dtype })
    }
}

/// Asks for the names of classes of a folder, where that is a round trip.
fn ask_for_labels(folder: &Path) -> Vec<PrefetchGuard> {
    if !place::is_remote(folder) || !place::is_folder(folder) {
        return vec![];
    }
    let Some(mut fetching) = Fetching::of(folder, None) else { return vec![] };
    let (own, around) = splits::label_files(folder);
    fetching.first_bytes([Some(own), around].iter().flatten().map(PathBuf::as_path))
}

fn unreadable(path: &Path, row: usize, refusal: &Refusal) -> Error {
    let convert = "convert the picture to RGB or grey, for example with Pillow";
    refusal.error(path, "the picture cannot be decoded: ", convert).row(row)
}

fn is_called_png(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png"))
}

impl Store for ImageFolder {
    default_answers!(ranges, scan, check);

    fn format(&self) -> &'static str {
        NAMING.name
    }

    fn path(&self) -> &Path {
        self.rows.root()
    }

    fn remote_path(&self) -> Option<&Path> {
        self.rows.remote_path()
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        Ok(self.header(row)?.info)
    }

    fn name(&self, row: usize) -> Result<String> {
        Ok(self.rows.row(row)?.location.name.clone())
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        let channels = self.header(row)?.channels();
        Ok(ImageMetadata { channels, ..ImageMetadata::named(self.name(row)?) })
    }

    fn layout(&self) -> Result<StoreLayout> {
        let is_png = is_called_png(&self.rows.path_of(self.rows.row(0)?));
        let codec = if is_png { "png (deflate)" } else { "jpeg" };
        let classes = self.rows.iter().filter_map(|r| splits::class_of(&r.location.name));
        let classes: BTreeSet<_> = classes.collect();
        let splits = self.rows.iter().filter_map(|row| splits::split_of_row(&row.location));
        let splits: BTreeSet<_> = splits.collect();
        let variant = match classes.len() {
            0 => "files".to_owned(),
            n if splits.is_empty() => format!("{n} class folders"),
            n => format!("{n} classes in splits {}", splits.into_iter().collect::<Vec<_>>().join(", ")),
        };
        let pieces = format!("whole picture, {}", self.header(0)?.describe());
        Ok(StoreLayout { codec: codec.to_owned(), pieces, variant, ..StoreLayout::default() })
    }

    /// A PNG has checksums, a JPEG has none. A file that was not looked into yet is taken for what it is called.
    fn has_checksums(&self) -> bool {
        self.rows.iter().all(|row| match row.loaded.get() {
            Some(header) => header.is_png,
            None => is_called_png(&self.rows.path_of(row)),
        })
    }

    fn hints(&self) -> Hints<'_> {
        Hints { columns: Some(self), ..Hints::default() }
    }

    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        Ok(RowHints::new(self, row))
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.rows.iter().map(|row| self.rows.path_of(row)).collect())
    }

    fn files_of(&self, rows: &[usize]) -> Result<Vec<PathBuf>> {
        let rows: BTreeSet<usize> = rows.iter().copied().collect();
        rows.into_iter().map(|row| Ok(self.rows.path_of(self.rows.row(row)?))).collect()
    }

    /// Each image is read whole, whatever is wanted of it.
    fn heads(&self, rows: &[usize], _: ReadExtent, wanted: &mut WantedRanges) {
        for row in rows.iter().filter_map(|&row| self.rows.row(row).ok()) {
            wanted.whole(&self.rows.path_of(row));
        }
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        for (i, request) in requests.iter().enumerate() {
            self.check(request)?;
            self.read_row(i, request.row, scratch, sink).map_err(|e| e.row(request.row))?;
        }
        Ok(())
    }
}

impl FeatureTable for ImageFolder {
    default_columns!(columns_left_out, columns_renamed, columns_in_utc, has_row_numbers);

    fn feature_names(&self) -> Vec<String> {
        splits::column_names(&self.rows.iter().map(|row| &row.location), self.labels.as_ref())
    }

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        splits::columns(self.path(), names, &self.rows.iter().map(|row| &row.location), self.labels.as_ref())
    }
}

impl RowFacts for ImageFolder {
    unknown_facts!(position, grid, cut, metadata_rows, unkept, working_bytes);

    fn file(&self, row: usize) -> Option<PathBuf> {
        self.rows.row(row).ok().map(|row| self.rows.path_of(row))
    }
}
