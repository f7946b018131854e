//! From pages to five-dimensional images.
//!
//! A file's pages form one or more [`Series`], each a row of the store. What says how is, in this order:
//! OME-XML ([`super::ome`]), an ImageJ description, tifffile's JSON descriptions ([`super::describe`]), or
//! nothing: then pages of the same size and pixel type are the Z axis of one image, and pages marked as
//! reduced copies or masks are left out.

use super::Endian;
use super::describe;
use super::ifd::{FileView, Header, Ifd, TRUNCATED, read_chain, tag};
use super::image::Page;
use super::ome;
use crate::refusal::Refusal;
use crate::{Error, Result, RowInfo};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use wellread_image::{ImageMetadata, Shape};

/// Where one plane of an image lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaneRef {
    /// 0: the file itself; n: `Series::others[n - 1]`; [`Self::MISSING`]: nowhere.
    pub(super) source: u32,
    pub(super) page: u32,
    /// Which sample of the page's pixels.
    pub(super) sample: u32,
}

impl PlaneRef {
    /// The source of planes that no page holds.
    pub(super) const MISSING: u32 = u32::MAX;

    /// Sample `k` of all samples of all pages of the file itself, from page `first` on.
    fn sample(first: usize, k: usize, samples: usize) -> Self {
        Self { source: 0, page: (first + k / samples) as u32, sample: (k % samples) as u32 }
    }
}

/// What to do about files that are fine, but beyond what is supported.
pub(super) const CONVERT: &str = "convert the file with the program that wrote it, or with tifffile";

/// One image.
#[derive(Debug)]
pub(super) struct Series {
    /// Shape and pixel type, or why they cannot be had.
    pub(super) info: Result<RowInfo, Refusal>,
    /// Samples per pixel of every page.
    pub(super) samples: usize,
    /// What is known beside them; files that are described alike share it.
    pub(super) metadata: Option<Arc<ImageMetadata>>,
    /// The name that the file gives, where it is not that of `metadata`.
    pub(super) given: Option<Box<str>>,
    /// The name that the writer was given, to the byte, where the file has it.
    pub(super) name: Option<Box<str>>,
    /// Planes in the order T, C, Z.
    pub(super) planes: Box<[PlaneRef]>,
    /// Other files that hold planes of this image.
    pub(super) others: Box<[OtherFile]>,
}

/// A file of a multi-file OME-TIFF, whose pages are read when first needed.
#[derive(Debug)]
pub(super) struct OtherFile {
    pub(super) path: PathBuf,
    /// Its length and its pages.
    pub(super) pages: OnceLock<(u64, Box<[Page]>)>,
}

/// How a file describes its images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ome,
    ImageJ,
    Shaped,
    Plain,
}

/// All that is kept of a file.
#[derive(Debug)]
pub(super) struct FileIndex {
    pub(super) len: u64,
    pub(super) header: Header,
    pub(super) kind: Kind,
    pub(super) pages: Box<[Page]>,
    pub(super) series: Box<[Series]>,
}

/// A page while its file is being read.
pub(super) struct RawPage {
    pub(super) page: Page,
    /// Whether it is a reduced copy or a mask of another page.
    pub(super) secondary: bool,
    /// tifffile's JSON, where there is one.
    pub(super) shaped: Option<String>,
}

impl Series {
    /// An image that cannot be read, and why.
    pub(super) fn refused(refusal: Refusal) -> Self {
        Self {
            info: Err(refusal),
            samples: 1,
            metadata: None,
            given: None,
            name: None,
            planes: Box::new([]),
            others: Box::new([]),
        }
    }

    /// The name that the file gives.
    pub(super) fn given_name(&self) -> Option<&str> {
        self.given.as_deref().or_else(|| self.metadata.as_deref().map(|metadata| metadata.name.as_str()))
    }
}

impl FileIndex {
    /// Reads a file's directories, `len` bytes long. `window` is memory to use; `known` are descriptions of other files.
    pub(super) fn read(
        path: &Path,
        (file, len): (&File, u64),
        window: &mut Vec<u8>,
        known: &ome::Descriptions,
    ) -> Result<Self> {
        let mut view = FileView::new(path, file, len, window);
        let (header, raw, first) = read_pages(&mut view)?;
        let description = first.description.as_deref().unwrap_or("");
        let mut pages: Vec<Page> = raw.iter().map(|r| r.page.clone()).collect();
        let mut found = None;
        if ome::is_ome(description)
            && let Some(series) = ome::series(&view, description, &pages, known)?
        {
            found = Some((Kind::Ome, series));
        }
        if found.is_none() && description.starts_with("ImageJ=") {
            let images = describe::image_j(&view, description, &mut pages)?;
            found = images.map(|s| (Kind::ImageJ, vec![s]));
        }
        if found.is_none() && raw[0].shaped.is_some() {
            found = describe::shaped(&view, &raw, &mut pages)?.map(|s| (Kind::Shaped, s));
        }
        let (kind, mut series) = found.unwrap_or_else(|| (Kind::Plain, plain(&raw, len)));
        if kind != Kind::Ome {
            let metadata = first.metadata(kind, description);
            for one in &mut series {
                one.metadata.clone_from(&metadata);
            }
        }
        let mut index = Self { len, header, kind, pages: pages.into(), series: Box::new([]) };
        for one in &mut series {
            index.check(one);
        }
        index.series = series.into();
        Ok(index)
    }

    /// Rejects an image that declares more pixels than its files can hold.
    fn check(&self, series: &mut Series) {
        let Ok(info) = series.info else { return };
        let bytes = match info.shape.checked_bytes(info.dtype) {
            Ok(bytes) => bytes as u64,
            Err(e) => {
                series.info = Err(Refusal::damaged(e.to_string()));
                return;
            }
        };
        let own = series.planes.iter().find(|p| p.source == 0);
        let format = &self.pages[own.map_or(0, |p| p.page as usize)].format;
        if let Some(refusal) = &format.refusal {
            series.info = Err(refusal.clone());
            return;
        }
        // What counts is bits as stored: a pixel may be delivered in more.
        let stored = bytes / info.dtype.size() as u64 * u64::from(format.bits) / 8;
        let mut at_most = 0u64;
        let mut last = u32::MAX;
        for plane in &series.planes {
            if plane.source == 0 && plane.page != last {
                at_most = at_most.saturating_add(self.pages[plane.page as usize].at_most(self.len));
                last = plane.page;
            }
        }
        let others: u64 = series.others.iter().map(OtherFile::len).fold(0, u64::saturating_add);
        at_most = at_most.saturating_add(format.codec.at_most(others));
        if series.planes.iter().any(|p| p.source == PlaneRef::MISSING) {
            // An acquisition that was stopped early: believed if a moderate part of it is there.
            at_most = at_most.saturating_mul(8).saturating_add(64 << 20);
        }
        if stored > at_most {
            series.info = Err(Refusal::damaged(self.why_too_little(series).unwrap_or_else(|| {
                format!(
                    "{} of {} are declared, {stored} bytes, but the {} stored bytes cannot hold them",
                    info.shape, info.dtype, self.len
                )
            })));
        }
    }

    /// What is missing of an image whose files hold less than it declares, if that can be told.
    fn why_too_little(&self, series: &Series) -> Option<String> {
        if let Some(other) = series.others.iter().find(|o| !o.path.exists()) {
            return Some(format!("{} holds planes of the image, but does not exist", other.path.display()));
        }
        let own = series.planes.iter().filter(|p| p.source == 0);
        let segments = own.flat_map(|p| self.pages[p.page as usize].segments.iter());
        let end = segments.map(|s| s.offset.saturating_add(s.len)).max()?;
        (end > self.len).then(|| {
            format!(
                "the pixels reach to offset {end}, beyond the end of the file ({} bytes): it is truncated",
                self.len
            )
        })
    }

    /// Rough size in memory.
    pub(super) fn memory(&self) -> usize {
        let pages: usize = self.pages.iter().map(|p| 56 + p.segments.len() * 20).sum();
        let planes: usize =
            self.series.iter().map(|s| 300 + s.planes.len() * 12 + s.others.len() * 200).sum();
        400 + pages + planes
    }

    /// Other files that hold planes of this file's images.
    pub(super) fn others(&self) -> impl Iterator<Item = &Path> {
        self.series.iter().flat_map(|s| s.others.iter()).map(|o| o.path.as_path())
    }
}

impl OtherFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, pages: OnceLock::new() }
    }

    /// Length of the file, 0 if it cannot be had.
    pub(super) fn len(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |m| m.len())
    }

    /// The pages of the file.
    pub(super) fn pages(&self, file: &File, window: &mut Vec<u8>) -> Result<&(u64, Box<[Page]>)> {
        if let Some(known) = self.pages.get() {
            return Ok(known);
        }
        let len = file.metadata().map_err(|e| Error::io(&self.path, "cannot read", &e))?.len();
        let mut view = FileView::new(&self.path, file, len, window);
        let (_, raw, _) = read_pages(&mut view)?;
        let pages = raw.into_iter().map(|r| r.page).collect();
        Ok(self.pages.get_or_init(|| (len, pages)))
    }
}

/// What the first page says about the whole file.
#[derive(Default)]
struct FirstPage {
    description: Option<String>,
    date_time: Option<String>,
    /// Pixels per unit along X and Y.
    resolution: [Option<f64>; 2],
}

impl FirstPage {
    fn read(view: &mut FileView<'_>, endian: Endian, ifd: &Ifd) -> Result<Self> {
        Ok(Self {
            description: ifd.text(view, tag::IMAGE_DESCRIPTION)?,
            date_time: ifd.text(view, tag::DATE_TIME)?,
            resolution: [
                ifd.rational(view, endian, tag::X_RESOLUTION)?,
                ifd.rational(view, endian, tag::Y_RESOLUTION)?,
            ],
        })
    }

    /// Metadata of files without OME-XML.
    fn metadata(&self, kind: Kind, description: &str) -> Option<Arc<ImageMetadata>> {
        let mut metadata = ImageMetadata {
            acquired: self.date_time.as_deref().and_then(describe::iso_time),
            ..ImageMetadata::default()
        };
        if kind == Kind::ImageJ {
            describe::image_j_sizes(description, self.resolution, &mut metadata);
        }
        (metadata != ImageMetadata::default()).then(|| Arc::new(metadata))
    }
}

/// Reads every directory of the main chain.
fn read_pages(view: &mut FileView<'_>) -> Result<(Header, Vec<RawPage>, FirstPage)> {
    let header = Header::read(view)?;
    let mut pages: Vec<RawPage> = Vec::new();
    let mut first = FirstPage::default();
    read_chain(view, header, |view, ifd| {
        let mut page = Page::read(view, header, ifd)?;
        if let Some(previous) = pages.last()
            && previous.page.format == page.format
        {
            page.format = Arc::clone(&previous.page.format);
        }
        let new_type = ifd.number(view, header.endian, tag::NEW_SUBFILE_TYPE)?.unwrap_or(0);
        let old_type = ifd.number(view, header.endian, tag::SUBFILE_TYPE)?.unwrap_or(1);
        if pages.is_empty() {
            first = FirstPage::read(view, header.endian, ifd)?;
        }
        let shaped = if ifd.text_starts_with(view, tag::IMAGE_DESCRIPTION, b"{\"shape\":")? {
            ifd.text(view, tag::IMAGE_DESCRIPTION)?
        } else {
            None
        };
        pages.push(RawPage { page, secondary: new_type & 5 != 0 || old_type == 2, shaped });
        Ok(())
    })?;
    if pages.is_empty() {
        return Err(view.error("there is no page in it").hint(TRUNCATED));
    }
    Ok((header, pages, first))
}

/// Index of T, C and Z in lists of axes.
pub(super) const T: usize = 0;
pub(super) const C: usize = 1;
pub(super) const Z: usize = 2;

/// Whether files of `len` bytes can list so many planes: a plane costs more than a byte.
pub(super) fn believable(shape: Shape, len: u64) -> bool {
    let [t, c, z, ..] = shape.0;
    let planes = t.checked_mul(c).and_then(|n| n.checked_mul(z));
    planes.is_some_and(|n| n as u64 <= len)
}

/// An image of this file's samples, which follow each other from page `first` on as `axes` tell, slowest axis
/// first. An axis may occur several times: the later one then counts faster.
pub(super) fn image_of_samples(page: &Page, first: usize, axes: &[(usize, usize)], file_len: u64) -> Series {
    let format = &*page.format;
    let mut tcz = [1usize; 3];
    for &(axis, size) in axes {
        tcz[axis] = tcz[axis].saturating_mul(size);
    }
    let shape = Shape([tcz[T], tcz[C], tcz[Z], format.height, format.width]);
    let mut planes = Vec::new();
    if !believable(shape, file_len) {
        return Series::refused(Refusal::damaged(format!(
            "{shape} pixels are declared, more planes than the file can hold"
        )));
    }
    for t in 0..tcz[T] {
        for c in 0..tcz[C] {
            for z in 0..tcz[Z] {
                let mut at = [t, c, z];
                let (mut linear, mut stride) = (0, 1);
                for &(axis, size) in axes.iter().rev() {
                    linear += at[axis] % size * stride;
                    at[axis] /= size;
                    stride *= size;
                }
                planes.push(PlaneRef::sample(first, linear, format.samples));
            }
        }
    }
    Series {
        info: format.dtype().map(|dtype| RowInfo { shape, dtype }).map_err(Refusal::unsupported),
        samples: format.samples,
        metadata: None,
        given: None,
        name: None,
        planes: planes.into(),
        others: Box::new([]),
    }
}

/// Images of a file that describes none: one for each kind of page.
fn plain(raw: &[RawPage], len: u64) -> Vec<Series> {
    let all = raw.iter().all(|r| r.secondary);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (i, r) in raw.iter().enumerate().filter(|(_, r)| all || !r.secondary) {
        match groups.iter_mut().find(|g| raw[g[0]].page.alike(&r.page)) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    let series = |group: &Vec<usize>| {
        let page = &raw[group[0]].page;
        let mut series = image_of_samples(page, 0, &[(Z, group.len()), (C, page.format.samples)], len);
        for plane in &mut series.planes {
            plane.page = group[plane.page as usize] as u32;
        }
        series
    };
    groups.iter().map(series).collect()
}
