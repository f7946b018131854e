//! One five-dimensional image of a file: which page holds which plane.
//!
//! ```text
//!  samples of pages, as axes tell ──image_of_samples──▶ Series: shape, type, a PlaneRef for each of T, C, Z
//! ```
//!
//! A file's pages form one or more [`Series`], each a row of the store. Which they are is told by [`super::index`].

use super::axes::{C, T, Z};
use super::ifd::FileView;
use super::image::Page;
use super::pages::read_pages;
use crate::place::{self, File};
use crate::refusal::Refusal;
use crate::{Error, Result, RowInfo};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use wellread_image::{ImageMetadata, Shape};

/// How a file describes its images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ome,
    /// By OME-XML in a companion.
    Companion,
    ImageJ,
    Shaped,
    Plain,
}

/// Where one plane of an image lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaneRef {
    /// 0: the file itself. n: `Series::others[n - 1]`. [`Self::MISSING`]: nowhere.
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

/// The advice about files that are fine, but beyond what is supported.
pub(super) const CONVERT: &str = "convert the file with the program that wrote it, or with tifffile";

/// One image.
#[derive(Debug)]
pub(super) struct Series {
    /// Shape and pixel type, or why they cannot be had.
    pub(super) info: Result<RowInfo, Refusal>,
    /// Samples per pixel of every page.
    pub(super) samples: usize,
    /// The metadata beside them; files that are described alike share it.
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
    /// Its number among the other files of all images of one file, from 1 on: see [`number_others`].
    pub(super) number: u32,
    /// Its length and its pages.
    pub(super) pages: OnceLock<(u64, Box<[Page]>)>,
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

impl OtherFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, number: 0, pages: OnceLock::new() }
    }

    /// Length of the file, 0 if it cannot be had.
    pub(super) fn len(&self) -> u64 {
        place::metadata(&self.path).map_or(0, |meta| meta.length)
    }

    /// The pages of the file.
    pub(super) fn pages(&self, file: &File, window: &mut Vec<u8>) -> Result<&(u64, Box<[Page]>)> {
        if let Some(known) = self.pages.get() {
            return Ok(known);
        }
        let len = file.length().map_err(|e| Error::io(&self.path, "cannot read", &e))?;
        let mut view = FileView::new(&self.path, file, len, window);
        let (_, raw, _) = read_pages(&mut view)?;
        let pages = raw.into_iter().map(|r| r.page).collect();
        Ok(self.pages.get_or_init(|| (len, pages)))
    }
}

/// Numbers the other files of all images of one file: equal paths have one number, and different ones two.
pub(super) fn number_others(series: &mut [Series]) {
    let mut numbers: HashMap<PathBuf, u32> = HashMap::new();
    for other in series.iter_mut().flat_map(|one| one.others.iter_mut()) {
        let next = numbers.len() as u32 + 1;
        other.number = *numbers.entry(other.path.clone()).or_insert(next);
    }
}

/// Whether files of `len` bytes can list so many planes: a plane costs more than a byte.
pub(super) fn can_list(shape: Shape, len: u64) -> bool {
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
    if !can_list(shape, file_len) {
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
