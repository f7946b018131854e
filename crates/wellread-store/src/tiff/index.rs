//! From pages to images: all that is kept of a file.
//!
//! The first of these that is there says how pages form images. They are OME-XML ([`super::ome`]), its own or a companion's, an
//! ImageJ description, tifffile's JSON descriptions, or MetaMorph's tag ([`super::describe`]). Without any, pages of the same size and
//! pixel type are the Z axis of one image; of Zeiss's LSM they are Z and T. Pages marked as reduced copies or masks are left out.

use super::axes::{C, T, Z};
use super::describe;
use super::ifd::{FileView, Header};
use super::image::Page;
use super::ome;
use super::pages::{FirstPage, RawPage, read_pages};
use super::series::{Kind, OtherFile, PlaneRef, Series, image_of_samples, number_others};
use crate::Result;
use crate::place::{self, File};
use crate::refusal::Refusal;
use crate::stamp::Stamp;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use wellread_image::ImageMetadata;

/// All that is kept of a file.
#[derive(Debug)]
pub(super) struct FileIndex {
    pub(super) len: u64,
    pub(super) header: Header,
    pub(super) kind: Kind,
    pub(super) pages: Box<[Page]>,
    pub(super) series: Box<[Series]>,
    /// The file's, where it is of this machine and has no checksums of wellread's.
    pub(super) stamp: Option<Stamp>,
}

impl FileIndex {
    /// Reads a file's directories, `len` bytes long. `window` is memory to use, and `known` are descriptions of other
    /// files. `companion` has the images of a companion that describes this one. It counts where the file has none of its
    /// own, or says that it is elsewhere.
    pub(super) fn read(
        path: &Path,
        (file, len): (&File, u64),
        window: &mut Vec<u8>,
        known: &ome::Descriptions,
        companion: Option<ome::Described<'_>>,
    ) -> Result<Self> {
        let stamp = Stamp::when_opened(file);
        let mut view = FileView::new(path, file, len, window);
        let (header, raw, first) = read_pages(&mut view)?;
        let description = first.description.as_deref().unwrap_or("");
        let mut pages: Vec<Page> = raw.iter().map(|r| r.page.clone()).collect();
        let mut found = if ome::is_ome(description) {
            ome::series(&view, description, companion, &pages, known)?
        } else {
            let series = companion.map(|companion| companion.series(&view, &pages)).transpose()?;
            series.map(|series| (Kind::Companion, series))
        };
        if found.is_none() && description.starts_with("ImageJ=") {
            let images = describe::image_j(&view, description, &mut pages)?;
            found = images.map(|s| (Kind::ImageJ, vec![s]));
        }
        if found.is_none() && raw[0].shaped.is_some() {
            found = describe::shaped(&view, &raw, &mut pages)?.map(|s| (Kind::Shaped, s));
        }
        if found.is_none() {
            let stack = describe::meta_morph(&view, first.stacked, &mut pages)?;
            found = stack.map(|s| (Kind::Plain, vec![s]));
        }
        let (kind, mut series) = found.unwrap_or_else(|| (Kind::Plain, plain(&raw, len, first.scanned)));
        if !matches!(kind, Kind::Ome | Kind::Companion) {
            let metadata = metadata(&first, kind, description, &series);
            for one in &mut series {
                one.metadata.clone_from(&metadata);
            }
        }
        let stamp = stamp.filter(|_| pages.iter().any(|page| page.sums.is_none()));
        let mut index = Self { len, header, kind, pages: pages.into(), series: Box::new([]), stamp };
        number_others(&mut series);
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
        // Bits count as stored: a pixel may be delivered in more.
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

    /// The missing part of an image whose files hold less than it declares, if that can be told.
    fn why_too_little(&self, series: &Series) -> Option<String> {
        if let Some(other) = series.others.iter().find(|o| !place::exists(&o.path)) {
            return Some(format!(
                "{} holds planes of the image, but does not exist: copy it there",
                other.path.display()
            ));
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

    /// The pages that hold planes of its images, each once: no smaller copies and masks.
    pub(super) fn own_pages(&self) -> impl Iterator<Item = &Page> {
        let planes = self.series.iter().flat_map(|series| series.planes.iter());
        let own: BTreeSet<u32> = planes.filter(|plane| plane.source == 0).map(|plane| plane.page).collect();
        own.into_iter().filter_map(move |page| self.pages.get(page as usize))
    }

    /// Bytes of the file that hold pixels of its images. Directories and other levels of a pyramid are not among them.
    pub(super) fn bytes_of_pixels(&self) -> u64 {
        let segments = self.own_pages().flat_map(|page| page.segments.iter());
        segments.map(|segment| segment.len).fold(0, u64::saturating_add).min(self.len)
    }

    /// Other files that hold planes of this file's images.
    pub(super) fn others(&self) -> impl Iterator<Item = &Path> {
        self.series.iter().flat_map(|s| s.others.iter()).map(|o| o.path.as_path())
    }
}

/// Metadata of files without OME-XML.
fn metadata(
    first: &FirstPage,
    kind: Kind,
    description: &str,
    series: &[Series],
) -> Option<Arc<ImageMetadata>> {
    let mut metadata = ImageMetadata {
        acquired: first.date_time.as_deref().and_then(describe::iso_time),
        ..ImageMetadata::default()
    };
    if kind == Kind::ImageJ {
        describe::image_j_sizes(description, first.resolution, &mut metadata);
        metadata.time_increment = describe::image_j_interval(description);
        if let [stack] = series {
            metadata.channels = describe::image_j_channels(&first.labels, stack);
        }
    }
    (metadata != ImageMetadata::default()).then(|| Arc::new(metadata))
}

/// Images of a file that describes none: one for each kind of page.
///
/// The pages of each are the axes `scanned`, where these are as many.
fn plain(raw: &[RawPage], len: u64, scanned: Option<[(usize, usize); 2]>) -> Vec<Series> {
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
        let is_all = |[slow, fast]: &[(usize, usize); 2]| slow.1.checked_mul(fast.1) == Some(group.len());
        let [slow, fast] = scanned.filter(is_all).unwrap_or([(T, 1), (Z, group.len())]);
        let mut series = image_of_samples(page, 0, &[slow, fast, (C, page.format.samples)], len);
        for plane in &mut series.planes {
            plane.page = group[plane.page as usize] as u32;
        }
        series
    };
    groups.iter().map(series).collect()
}
