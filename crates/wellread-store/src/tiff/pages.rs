//! The pages of a file: every directory of its main chain, read once, and the facts of the whole file in the first.

use super::axes::{T, Z};
use super::endian::Endian;
use super::ifd::{FileView, Header, Ifd, TRUNCATED, read_chain, tag};
use super::image::Page;
use super::slice_labels;
use crate::Result;
use std::sync::Arc;

/// A page while its file is being read.
pub(super) struct RawPage {
    pub(super) page: Page,
    /// Whether it is a reduced copy or a mask of another page.
    pub(super) secondary: bool,
    /// tifffile's JSON, where there is one.
    pub(super) shaped: Option<String>,
}

/// The facts of the whole file in its first page.
#[derive(Default)]
pub(super) struct FirstPage {
    pub(super) description: Option<String>,
    pub(super) date_time: Option<String>,
    /// Pixels per unit along X and Y.
    pub(super) resolution: [Option<f64>; 2],
    /// Planes of a stack of MetaMorph, 0 of any other file.
    pub(super) stacked: usize,
    /// Axes of the pages of an LSM file of Zeiss, slowest first.
    pub(super) scanned: Option<[(usize, usize); 2]>,
    /// Labels of the planes of a stack of ImageJ that has channels.
    pub(super) labels: Vec<String>,
}

impl FirstPage {
    fn read(view: &mut FileView<'_>, endian: Endian, ifd: &Ifd) -> Result<Self> {
        // A tag of another type is another program's.
        let zeiss = ifd.numbers(view, endian, tag::CZ_LSMINFO, 90).ok().flatten();
        let description = ifd.text(view, tag::IMAGE_DESCRIPTION)?;
        // ImageJ counts channels where there are several.
        let has_channels = |text: &str| text.starts_with("ImageJ=") && text.contains("\nchannels=");
        let is_labelled = description.as_deref().is_some_and(has_channels);
        Ok(Self {
            labels: if is_labelled { slice_labels::read(view, endian, ifd) } else { vec![] },
            description,
            date_time: ifd.text(view, tag::DATE_TIME)?,
            resolution: [
                ifd.rational(view, endian, tag::X_RESOLUTION)?,
                ifd.rational(view, endian, tag::Y_RESOLUTION)?,
            ],
            stacked: usize::try_from(ifd.count(tag::UIC2)).unwrap_or(usize::MAX),
            scanned: zeiss.and_then(|bytes| scanned(&bytes)),
        })
    }
}

/// The axes of pages by the first bytes of `CZ_LSMINFO`, little-endian: Z at 16, T at 24, the kind of scan at 88.
fn scanned(bytes: &[u64]) -> Option<[(usize, usize); 2]> {
    let number = |at: usize, length: usize| {
        let part = bytes.get(at..at + length)?;
        usize::try_from(part.iter().rev().fold(0u64, |number, byte| number << 8 | byte)).ok()
    };
    let (z, t) = ((Z, number(16, 4)?), (T, number(24, 4)?));
    // Time series, and those along a line: time points of a plane follow each other.
    let is_turned = matches!(number(88, 2)?, 3 | 5 | 7 | 9);
    Some(if is_turned { [z, t] } else { [t, z] })
}

/// Reads every directory of the main chain.
pub(super) fn read_pages(view: &mut FileView<'_>) -> Result<(Header, Vec<RawPage>, FirstPage)> {
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
