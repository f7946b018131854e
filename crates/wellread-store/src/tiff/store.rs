//! The store over a TIFF file or a folder of them.
//!
//! Opening lists the folder, and `scan.rs` finds the rows of its files. The index of a file is kept once read, up to
//! [`CACHE`] bytes for the store.
//!
//! Long because every answer of the store is made of the indices of files, which are kept or read anew here.

use super::codec::Codec;
use super::companion::Companions;
use super::endian::Endian;
use super::image::{PageFormat, Photometric};
use super::index::FileIndex;
use super::listing::{self, NAMING};
use super::ome::Descriptions;
use super::predictor;
use super::read::{Context, Job};
use super::restarts::{FileKey, Restarts};
use super::series::{CONVERT, Kind, Series};
use super::unkept;
use crate::fd_table;
use crate::file_names;
use crate::name_index;
use crate::open_files::OpenFiles;
use crate::place::{self, HEAD, WantedRanges};
use crate::stamp::unless_written;
use crate::store_layout::count_codec;
use crate::stored_type::StoredType;
use crate::words::counted;
use crate::{
    Error, FeatureTable, FormatContext, Hints, LeftOutCounts, OpenOptions, PixelSink, ReadExtent, Request,
    Result, RowFacts, RowHints, RowInfo, Scratch, Store, StoreLayout, default_answers, unknown_facts,
};
use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use wellread_image::ImageMetadata;

/// Bytes of file indices kept in memory by one store.
const CACHE: usize = 256 << 20;

/// Numbers files across stores, so that a thread's open handle is never taken for another file's.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// Bytes of memory for directories that a thread keeps.
const MOST_WINDOW: usize = 1 << 20;

thread_local! {
    /// Memory for directories that are read outside of [`Store::read`].
    static WINDOW: Cell<Vec<u8>> = const { Cell::new(vec![]) };
}

/// A TIFF file or folder, open for reading.
pub(super) struct TiffStore {
    path: PathBuf,
    /// A file behind a network, where `path` is none that tells of it.
    remote: Option<PathBuf>,
    is_folder: bool,
    /// Whether only some files of the folder were looked into, all of which held one image.
    pub(super) sampled: bool,
    pub(super) files: Vec<FileSlot>,
    pub(super) rows: Vec<Row>,
    /// Bytes of indices kept.
    kept: AtomicUsize,
    first_id: u64,
    /// Descriptions of images by OME-XML, each parsed once.
    descriptions: Descriptions,
    /// The descriptions in companions of files that have no OME-XML.
    pub(super) companions: Companions,
    /// Images that were left out, in sentences.
    pub(super) missing_parts: Vec<String>,
    /// How many images were left out, since they lack files.
    pub(super) left_out: usize,
    /// Files that stay open.
    opened: OpenFiles<FileKey>,
    /// Where their LZW strips can be entered.
    restarts: Restarts,
    /// Whether the first directory lies behind the first bytes that a remote place is asked for, in the first file that is longer.
    pub(super) is_at_end: OnceLock<bool>,
}

/// The one who has named the files of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedBy {
    /// The path of the set, which is its one file.
    Path,
    /// A listing of the folder, which knows how long they are.
    Listing,
    /// The caller that opens them.
    Caller,
}

pub(super) struct FileSlot {
    pub(super) path: PathBuf,
    /// Name of its image by the folder's index of names.
    name: Option<Box<str>>,
    pub(super) index: OnceLock<Box<FileIndex>>,
}

#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) file: u32,
    pub(super) series: u32,
}

/// An index that the store keeps, or that was read for this one use.
pub(super) enum IndexRef<'a> {
    Kept(&'a FileIndex),
    Own(Box<FileIndex>),
}

impl Deref for IndexRef<'_> {
    type Target = FileIndex;
    fn deref(&self) -> &FileIndex {
        match self {
            Self::Kept(index) => index,
            Self::Own(index) => index,
        }
    }
}

impl TiffStore {
    /// Opens a file or folder.
    pub(super) fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        let meta = place::metadata(path).map_err(|e| Error::io(path, "cannot open", &e))?;
        let is_folder = meta.is_folder();
        if !is_folder {
            let files = vec![(path.to_owned(), None)];
            return Self::of_files(path, NamedBy::Path, files, Companions::default());
        }
        let listed = listing::files(path, options)?;
        let companions: Vec<PathBuf> = listed.companions.iter().map(|file| path.join(file)).collect();
        let arranged = name_index::arrange(path, listed.files, |file| file)?;
        let files = arranged.into_iter().map(|(file, name)| (path.join(file), name.map(Box::from))).collect();
        Self::of_files(path, NamedBy::Listing, files, Companions::read(&companions)?)
    }

    /// Opens these files, each with the name of its image where that is known. `path` is what they are called together.
    pub(super) fn of_files(
        path: &Path,
        named_by: NamedBy,
        files: Vec<(PathBuf, Option<Box<str>>)>,
        companions: Companions,
    ) -> Result<Self> {
        fd_table::reserve_descriptors();
        let mut paths = files.iter().map(|(file, _)| file);
        let remote = if place::is_remote(path) { None } else { paths.find(|file| place::is_remote(file)) };
        let remote = remote.cloned();
        let first_id = NEXT_ID.fetch_add(files.len() as u64, Ordering::Relaxed);
        let slot = |(path, name)| FileSlot { path, name, index: OnceLock::new() };
        let files = files.into_iter().map(slot).collect();
        let kept = AtomicUsize::new(0);
        let mut store = Self {
            path: path.to_owned(),
            remote,
            is_folder: named_by != NamedBy::Path,
            sampled: false,
            files,
            rows: vec![],
            kept,
            first_id,
            descriptions: Descriptions::default(),
            companions,
            missing_parts: vec![],
            left_out: 0,
            opened: OpenFiles::default(),
            restarts: Restarts::default(),
            is_at_end: OnceLock::new(),
        };
        match named_by {
            NamedBy::Path => store.rows = Self::rows_of_file(0, &*store.index(0)?),
            NamedBy::Listing | NamedBy::Caller => store.find_rows(named_by),
        }
        Ok(store)
    }

    pub(super) fn rows_of_file(file: usize, index: &FileIndex) -> Vec<Row> {
        (0..index.series.len()).map(|series| Row { file: file as u32, series: series as u32 }).collect()
    }

    /// The index of a file.
    pub(super) fn index(&self, file: usize) -> Result<IndexRef<'_>> {
        if let Some(index) = self.files[file].index.get() {
            return Ok(IndexRef::Kept(index));
        }
        // Taken while it is used, and lost if that fails.
        let mut window = WINDOW.take();
        let index = self.index_with(file, &mut FormatContext::default(), &mut window)?;
        if window.capacity() <= MOST_WINDOW {
            WINDOW.set(window);
        }
        Ok(index)
    }

    /// The index of a file, read with the memory and the open handle of a scratch.
    fn index_with(
        &self,
        file: usize,
        context: &mut FormatContext,
        raw: &mut Vec<u8>,
    ) -> Result<IndexRef<'_>> {
        let slot = &self.files[file];
        if let Some(index) = slot.index.get() {
            return Ok(IndexRef::Kept(index));
        }
        let handle = context.get::<Context>().file(&self.opened, self.id(file), &slot.path)?;
        let companion = self.companions.of(&slot.path);
        let index = Box::new(FileIndex::read(&slot.path, handle, raw, &self.descriptions, companion)?);
        if index.len > HEAD {
            self.is_at_end.get_or_init(|| index.header.first >= HEAD);
        }
        let memory = index.memory();
        if self.kept.fetch_add(memory, Ordering::Relaxed) + memory > CACHE {
            self.kept.fetch_sub(memory, Ordering::Relaxed);
            return Ok(IndexRef::Own(index));
        }
        Ok(IndexRef::Kept(slot.index.get_or_init(|| index)))
    }

    fn id(&self, file: usize) -> u64 {
        self.first_id + file as u64
    }

    fn row(&self, row: usize) -> Result<(Row, &Path)> {
        let found = self.rows.get(row).map(|r| (*r, self.files[r.file as usize].path.as_path()));
        found.ok_or_else(|| Error::no_such_row(&self.path, row, self.rows.len()))
    }

    /// The image of a row.
    fn series<'i>(&self, row: Row, path: &Path, index: &'i FileIndex) -> Result<&'i Series> {
        if self.sampled {
            self.agrees(path, index)?;
        }
        index
            .series
            .get(row.series as usize)
            .ok_or_else(|| Error::new(path, "has changed since it was opened"))
    }

    /// The reading of request `i`, whose row lies in the file with this index.
    ///
    /// # Errors
    /// Images that are not read, or a region beyond the image.
    fn job<'a>(
        &'a self,
        i: usize,
        request: &'a Request,
        (place, path): (Row, &'a Path),
        index: &'a FileIndex,
    ) -> Result<Job<'a>> {
        let series = self.series(place, path, index)?;
        let info = info_of(series, path)?;
        if !request.region.fits(info.shape) {
            self.check(request)?;
        }
        let (region, files, restarts) = (&request.region, &self.opened, &self.restarts);
        let id = self.id(place.file as usize);
        Ok(Job { request: i, info, region, index, series, path, id, files, restarts })
    }

    /// Checks that a file is what opening has taken all files for, of which it has looked into some. That is one image, whose planes are no
    /// other row's.
    ///
    /// # Errors
    /// It is not.
    fn agrees(&self, path: &Path, index: &FileIndex) -> Result<()> {
        let said = if index.series.len() > 1 {
            format!("holds {} images, where one was expected", index.series.len())
        } else if let Some(other) =
            index.others().find(|other| *other != path && self.files.iter().any(|file| file.path == *other))
        {
            format!(
                "says that planes of its image lie in {}, which was taken for another image",
                other.display()
            )
        } else {
            return Ok(());
        };
        Err(Error::new(path, said).hint(
            "open this file by itself, or move it and those like it into a folder of their own. In folders of many files only \
             some are looked into when they are opened",
        ))
    }

    /// Calls `f` with the row's image.
    fn with<R>(&self, row: usize, f: impl FnOnce(&FileIndex, &Series, &Path, Row) -> Result<R>) -> Result<R> {
        let (place, path) = self.row(row)?;
        let result = self.index(place.file as usize).and_then(|index| {
            let series = self.series(place, path, &index)?;
            f(&index, series, path, place)
        });
        result.map_err(|e| e.row(row))
    }

    /// Images of this kind, of those whose files were looked into and are kept: no file is read for it.
    fn images_of(&self, photometric: Photometric) -> usize {
        let is_so = |row: &&Row| {
            let index = self.files[row.file as usize].index.get();
            index.is_some_and(|index| {
                let planes = index.series.get(row.series as usize).map(|series| &series.planes);
                let own = planes.and_then(|planes| planes.iter().find(|p| p.source == 0));
                own.is_some_and(|plane| index.pages[plane.page as usize].format.photometric == photometric)
            })
        };
        self.rows.iter().filter(is_so).count()
    }

    /// The codecs of the files that were looked into and are kept, with how many files have each. Also the share of their bytes that holds
    /// pixels of images. No file is read for it.
    fn codecs_and_share(&self) -> (Vec<(String, usize)>, Option<f64>) {
        let mut codecs: Vec<(String, usize)> = vec![];
        let (mut of_pixels, mut all) = (0_u64, 0_u64);
        for index in self.files.iter().filter_map(|file| file.index.get()) {
            let Some(page) = index.own_pages().next() else { continue };
            count_codec(&mut codecs, codec_name(&page.format), 1);
            of_pixels = of_pixels.saturating_add(index.bytes_of_pixels());
            all = all.saturating_add(index.len);
        }
        (codecs, (all > 0).then(|| of_pixels as f64 / all as f64))
    }

    /// A file's name without extension, behind the folders that it is in below the one opened.
    fn stem(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.path).ok().and_then(Path::parent).filter(|_| self.is_folder);
        match below.filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) => format!("{}/{}", file_names::path_text(folder), stem(path)),
            None => stem(path),
        }
    }

    /// Whether a row is the only one of its file.
    fn is_only_row(&self, row: usize, place: Row) -> bool {
        place.series == 0 && self.rows.get(row + 1).is_none_or(|next| next.file != place.file)
    }

    /// Name of an image: see [`Store::name`] below.
    fn name_of(&self, index: &FileIndex, series: &Series, path: &Path, place: Row) -> String {
        let companion = self.companions.of(path).filter(|_| index.kind == Kind::Companion);
        let (path, images) = companion.map_or((path, index.series.len()), |known| (known.first, known.count));
        let (stem, several) = (self.stem(path), images > 1);
        let is_its = |name: &str| !self.is_folder || !several && file_names::is_made_of(&stem, name);
        if let Some(name) = series.name.as_deref().filter(|name| is_its(name)) {
            return name.to_owned();
        }
        let given = series.given_name().map(str::trim).filter(|n| !n.is_empty());
        match (self.is_folder, several, given) {
            // The writer could not use some characters, or the same name twice.
            (true, false, Some(name)) if file_names::is_made_of(&stem, name) => name.to_owned(),
            (true, false, _) | (false, false, None) => stem,
            (false, _, Some(name)) => name.to_owned(),
            (true, true, Some(name)) => format!("{stem}:{name}"),
            (_, true, None) => format!("{stem}:{}", place.series),
        }
    }
}

/// A file's name without `.tif`, `.tiff` and `.ome`.
pub(super) fn stem(path: &Path) -> String {
    let stem = path.file_stem().map(|s| file_names::text(s).into_owned()).unwrap_or_default();
    match stem.len().checked_sub(4) {
        Some(at) if at > 0 && stem.as_bytes()[at..].eq_ignore_ascii_case(b".ome") => stem[..at].to_owned(),
        _ => stem,
    }
}

fn info_of(series: &Series, path: &Path) -> Result<RowInfo> {
    match &series.info {
        Ok(info) => Ok(*info),
        Err(refusal) => Err(refusal.error(path, "", CONVERT)),
    }
}

impl Store for TiffStore {
    default_answers!(scan, check);

    fn format(&self) -> &'static str {
        NAMING.name
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn remote_path(&self) -> Option<&Path> {
        self.remote.as_deref().or_else(|| Some(&*self.path).filter(|path| place::is_remote(path)))
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        self.with(row, |_, series, path, _| info_of(series, path))
    }

    /// In a folder, this is the name by its index of names. Without one, it is the file's name without extension. Files
    /// `*.ome.tif` have the OME name where the writer had to change it to make a file name. In a single file the OME name, if
    /// there is one. A file of a folder that cannot be read is called by its file's name, too. Images of a companion are called
    /// after the first file that it names, whether it is there or not. Where it has several, their own names follow.
    fn name(&self, row: usize) -> Result<String> {
        let (place, path) = self.row(row)?;
        let slot = &self.files[place.file as usize];
        // Told by the rows: whether a file's index is kept must not change names.
        let is_only = self.is_only_row(row, place);
        if let Some(name) = slot.name.as_deref().filter(|_| is_only) {
            return Ok(name.to_owned());
        }
        let is_ome = path.to_string_lossy().to_ascii_lowercase().contains(".ome.tif");
        // Without a look into the file where that is sure to change nothing.
        if !is_ome && self.is_folder && is_only && self.companions.of(path).is_none() {
            return Ok(self.stem(path));
        }
        let known = slot.index.get();
        if known.is_none() {
            self.look_into_rest();
        }
        match self.with(row, |index, series, path, place| Ok(self.name_of(index, series, path, place))) {
            // Sets that are joined by names then lose no other image than this one.
            Err(error) if self.is_folder && place.series == 0 && !error.may_pass() => Ok(self.stem(path)),
            found => found,
        }
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        let name = self.name(row)?;
        self.with(row, |_, series, _, _| {
            let mut metadata = series.metadata.as_deref().cloned().unwrap_or_default();
            if metadata.id.is_empty() {
                metadata.id.clone_from(&name);
            }
            metadata.name = name;
            Ok(metadata)
        })
    }

    fn layout(&self) -> Result<StoreLayout> {
        if self.is_empty() {
            return Ok(StoreLayout::default());
        }
        self.with(0, |index, series, _, _| {
            let (codecs, pixel_share) = self.codecs_and_share();
            let page = series.planes.iter().find(|p| p.source == 0).map_or(0, |p| p.page as usize);
            let format = &*index.pages[page].format;
            let description = match index.kind {
                Kind::Ome | Kind::Companion => "OME-TIFF",
                Kind::ImageJ => "ImageJ TIFF",
                Kind::Shaped => "TIFF (tifffile)",
                Kind::Plain => "TIFF",
            };
            let big = if index.header.big { ", BigTIFF" } else { "" };
            let order = if index.header.endian == Endian::Big { ", big-endian" } else { "" };
            let stored = format.stored().map(StoredType::remark).unwrap_or_default();
            Ok(StoreLayout {
                codec: codec_name(format),
                codecs,
                pixel_share,
                pieces: pieces_name(format),
                variant: format!("{description}{big}{order}{stored}"),
                white_is_zero_images: self.images_of(Photometric::WhiteIsZero),
                palette_images: self.images_of(Photometric::Palette),
                ..StoreLayout::default()
            })
        })
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let mut seen = HashSet::new();
        let own = self.files.iter().map(|f| f.path.clone());
        let others = self.files.iter().filter_map(|f| f.index.get()).flat_map(|i| i.others());
        let all = own.chain(others.filter(|p| place::exists(p)).map(Path::to_owned));
        Ok(all.filter(|p| seen.insert(p.clone())).collect())
    }

    fn files_of(&self, rows: &[usize]) -> Result<Vec<PathBuf>> {
        let mut seen = HashSet::new();
        let mut files = vec![];
        for &row in rows {
            let (place, path) = self.row(row)?;
            if !seen.insert(path.to_owned()) {
                continue;
            }
            files.push(path.to_owned());
            // In a folder of which only some files were looked into, none holds planes of another's image.
            if self.sampled {
                continue;
            }
            let index = self.index(place.file as usize).map_err(|e| e.row(row))?;
            files.extend(
                index
                    .others()
                    .filter(|p| place::exists(p) && seen.insert((*p).to_owned()))
                    .map(Path::to_owned),
            );
        }
        Ok(files)
    }

    fn has_checksums(&self) -> bool {
        let first = self.with(0, |index, series, _, _| {
            let page = series.planes.iter().find(|p| p.source == 0).map_or(0, |p| p.page as usize);
            let page = &index.pages[page];
            // Deflate data end with a checksum, whichever program has written them.
            Ok(page.sums.is_some() || page.format.codec == Codec::Deflate)
        });
        first.unwrap_or(false)
    }

    fn hints(&self) -> Hints<'_> {
        let left_out = LeftOutCounts { images: self.left_out, ..LeftOutCounts::default() };
        let columns = self.companions.have_wells.then_some(self as &dyn FeatureTable);
        Hints { columns, missing_parts: &self.missing_parts, left_out, ..Hints::default() }
    }

    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        Ok(RowHints::new(self, row))
    }

    /// Asks for header and directories of a file that was not looked into. It asks for all of it where its one image is going to be read
    /// whole.
    fn heads(&self, rows: &[usize], extent: ReadExtent, wanted: &mut WantedRanges) {
        for &row in rows {
            let Ok((place, path)) = self.row(row) else { continue };
            if self.files[place.file as usize].index.get().is_some() {
                continue;
            }
            if extent == ReadExtent::Whole && self.is_folder {
                wanted.whole(path);
            } else {
                self.want_directories(path, wanted);
            }
        }
    }

    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        let (mut context, mut raw) = (FormatContext::default(), WINDOW.take());
        for (i, request) in requests.iter().enumerate() {
            let (place, path) = self.row(request.row)?;
            let index = self.index_with(place.file as usize, &mut context, &mut raw)?;
            let job = self.job(i, request, (place, path), &index)?;
            job.ranges(&mut context, &mut raw, wanted)?;
        }
        if raw.capacity() <= MOST_WINDOW {
            WINDOW.set(raw);
        }
        Ok(())
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        for (i, request) in requests.iter().enumerate() {
            let (place, path) = self.row(request.row)?;
            let file = place.file as usize;
            let mut one = || {
                let index = self.index_with(file, &mut scratch.context, &mut scratch.raw)?;
                let done = self.job(i, request, (place, path), &index)?.run(scratch, sink);
                if index.stamp.is_none() {
                    return done;
                }
                let context = scratch.context.get::<Context>();
                let (handle, _) = context.file(&self.opened, self.id(file), path)?;
                unless_written(index.stamp, handle, path, done)
            };
            one().map_err(|e| e.row(request.row))?;
        }
        Ok(())
    }
}

impl RowFacts for TiffStore {
    unknown_facts!(cut, metadata_rows, working_bytes);

    fn position(&self, row: usize) -> u64 {
        if self.is_folder {
            return row as u64;
        }
        let first = self.with(row, |index, series, _, _| {
            let plane = series.planes.first().filter(|p| p.source == 0);
            Ok(plane.map_or(0, |p| index.pages[p.page as usize].segments.first().map_or(0, |s| s.offset)))
        });
        first.unwrap_or(0)
    }

    fn grid(&self, row: usize) -> Option<[usize; 2]> {
        let found = self.with(row, |index, series, _, _| {
            let plane = series.planes.first().filter(|p| p.source == 0);
            Ok(plane.map(|p| index.pages[p.page as usize].pieces()))
        });
        found.ok().flatten()
    }

    fn file(&self, row: usize) -> Option<PathBuf> {
        self.row(row).ok().map(|(_, path)| path.to_owned())
    }

    fn unkept(&self, row: usize) -> Vec<&'static str> {
        self.row(row).map_or_else(|_| vec![], |(_, path)| unkept::of_file(path))
    }
}

fn codec_name(format: &PageFormat) -> String {
    let predictor = match format.predictor {
        predictor::HORIZONTAL if format.codec != Codec::None => "+predictor",
        predictor::FLOAT if format.codec != Codec::None => "+float predictor",
        _ => "",
    };
    format!("{}{predictor}", format.codec.name())
}

fn pieces_name(format: &PageFormat) -> String {
    let [w, h] = format.segment;
    let planar = if format.planar { ", a plane per channel" } else { "" };
    if format.tiled {
        format!("tiles of {w} x {h} pixels{planar}")
    } else if h == format.height {
        format!("whole planes of {w} x {h} pixels{planar}")
    } else {
        format!("strips of {}{planar}", counted(h, "row"))
    }
}

#[cfg(test)]
mod tests;
