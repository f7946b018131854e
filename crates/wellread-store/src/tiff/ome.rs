//! OME-TIFF: which page, of which file, holds which plane, by the OME-XML in the first page.
//!
//! The XML is understood by [`wellread_image::ome_xml`]; here it is matched with the pages that are really
//! there. The page decides size and pixel type, as in tifffile; where the XML contradicts it, that is an
//! error. Planes may lie in other files of the same folder (`TiffData/UUID/@FileName`), and the XML itself in
//! a companion file (`BinaryOnly/@MetadataFile`). Files that were renamed still name themselves by their old
//! name, which is recognised when no such file exists and no other is named.

use super::ifd::FileView;
use super::image::Page;
use super::listing;
use super::series::{Kind, OtherFile, PlaneRef, Series, can_list};
use crate::refusal::Refusal;
use crate::text_cache::TextCache;
use crate::words::counted;
use crate::{Error, Result, RowInfo, place};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use wellread_image::ome_xml::{self, OmeImage, OmeXmlError, PlaneMap};
use wellread_image::pixel::UnknownPixelType;
use wellread_image::{ImageMetadata, PixelType, Shape};

/// The longest companion file that is read.
const MAX_COMPANION: u64 = 256 << 20;

/// Whether an image description is OME-XML.
pub(super) fn is_ome(description: &str) -> bool {
    let text = description.trim_start_matches('\u{feff}').trim();
    text.starts_with('<')
        && (text.ends_with("OME>") || text.contains("openmicroscopy.org") || text.contains("<OME"))
}

/// An image that files describe alike: by one companion, or each by itself and but for its name.
#[derive(Debug)]
pub(super) struct SharedDescription {
    image: OmeImage,
    metadata: Arc<ImageMetadata>,
}

impl SharedDescription {
    pub(super) fn new(mut image: OmeImage) -> Self {
        let metadata = Arc::new(std::mem::take(&mut image.metadata));
        Self { image, metadata }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Its identifier in the OME-XML; empty where it has none.
    pub(super) fn id(&self) -> &str {
        &self.metadata.id
    }

    /// Names an image that has no name by its number.
    pub(super) fn call(&mut self, number: usize) {
        Arc::make_mut(&mut self.metadata).name = number.to_string();
    }

    /// The files of its planes, as the OME-XML names them.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.image.planes.iter().filter_map(|block| block.file_name.as_deref())
    }

    /// The image as one of a file, by OME-XML in the file `base`.
    fn of_file(&self, view: &FileView<'_>, base: &Path, pages: &[Page]) -> Result<Series> {
        one(view, base, Cow::Borrowed(&self.image), Arc::clone(&self.metadata), pages)
    }
}

/// Descriptions by their text without the image's name.
pub(super) type Descriptions = TextCache<SharedDescription>;

/// The images of a companion, and the file that it is in: names of files are relative to that. Images that were left out are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Described<'a> {
    pub(super) images: &'a [SharedDescription],
    pub(super) path: &'a Path,
    /// The first file that it names, and how many images it has, whichever of them are there.
    pub(super) first: &'a Path,
    pub(super) count: usize,
}

impl Described<'_> {
    /// The images as those of a file.
    pub(super) fn series(self, view: &FileView<'_>, pages: &[Page]) -> Result<Vec<Series>> {
        self.images.iter().map(|image| image.of_file(view, self.path, pages)).collect()
    }
}

/// The images of an OME-TIFF by its own description, and whether that is in the companion; `None` when it is some other XML.
/// `companion` is one which names the file.
///
/// Descriptions that differ in the name of their one image are parsed once.
pub(super) fn series(
    view: &FileView<'_>,
    description: &str,
    companion: Option<Described<'_>>,
    pages: &[Page],
    known: &Descriptions,
) -> Result<Option<(Kind, Vec<Series>)>> {
    let base = view.path();
    let name = range_of_name(description);
    let key = name.clone().map(|name| [&description[..name.start], "\0", &description[name.end..]].concat());
    if let (Some(name), Some(key)) = (&name, &key)
        && let Some(alike) = known.known(key.as_bytes())
    {
        let mut series = alike.of_file(view, base, pages)?;
        series.given = Some(description[name.clone()].into());
        return Ok(Some((Kind::Ome, vec![series])));
    }
    let fault = |e: &OmeXmlError| view.error(e).hint("write the file again, or repair its image description");
    let mut base = Cow::Borrowed(base);
    let mut images = match ome_xml::read(description) {
        Ok(images) => images,
        Err(OmeXmlError::NotOme(_)) => return Ok(None),
        Err(OmeXmlError::BinaryOnly { metadata_file }) if !ends_in_tiff(&metadata_file) => {
            let path = beside(view.path(), &metadata_file);
            // One that was moved, or lies in another folder, is known where it was opened.
            let opened = companion.filter(|opened| opened.path == path || !place::exists(&path));
            if let Some(opened) = opened {
                return Ok(Some((Kind::Companion, opened.series(view, pages)?)));
            }
            let images = ome_xml::read(&read_companion(&path)?).map_err(|e| Error::new(&path, e))?;
            base = Cow::Owned(path);
            images
        }
        Err(e) => return Err(fault(&e)),
    };
    if let (Some(name), Some(key), [image]) = (name, key, &images[..])
        && image.metadata.name == description[name]
        && is_of_its_file(image)
    {
        let alike = SharedDescription::new(images.remove(0));
        let series = alike.of_file(view, &base, pages)?;
        known.keep(key.as_bytes(), Arc::new(alike));
        return Ok(Some((Kind::Ome, vec![series])));
    }
    let own = |mut image: OmeImage| {
        let metadata = Arc::new(std::mem::take(&mut image.metadata));
        one(view, &base, Cow::Owned(image), metadata, pages)
    };
    let series = images.into_iter().map(own).collect::<Result<Vec<_>>>()?;
    Ok(Some((Kind::Ome, series)))
}

/// Where the name of an image stands in a description, if there is one image, and a name that is as it stands there.
///
/// Another such name may then replace the text between the quotes, without a change of anything else.
fn range_of_name(xml: &str) -> Option<Range<usize>> {
    let mut image = None;
    let (mut at, bytes) = (0, xml.as_bytes());
    while let Some(found) = bytes[at..].iter().position(|&byte| byte == b'<') {
        at += found + 1;
        // Comments, and sections of text, may hold what looks like an element.
        if bytes.get(at) == Some(&b'!') || bytes[at..].starts_with(b"Image ") && image.replace(at).is_some() {
            return None;
        }
    }
    let (start, quote) = (image?, " Name=\"");
    let tag = xml[start..].split('>').next()?;
    let name = tag.find(quote)? + quote.len();
    let length = tag[name..].find('"')?;
    let text = &tag[name..name + length];
    let is_plain = !text.is_empty()
        && text.trim() == text
        && !text.contains(|c: char| c.is_control() || matches!(c, '&' | '<' | '\u{fffe}' | '\u{ffff}'));
    (is_plain && !tag[..name].contains('\'')).then(|| start + name..start + name + length)
}

/// Whether nothing but its name tells an image's description from those of other files.
fn is_of_its_file(image: &OmeImage) -> bool {
    let names_none = image.planes.iter().all(|block| block.file_name.is_none() && block.uuid.is_none());
    names_none && image.file_uuid.is_none() && !image.has_exact_name && !image.without_pages
}

fn ends_in_tiff(name: &str) -> bool {
    listing::is_tiff_name(name)
}

/// The OME-XML in a file of its own.
///
/// # Errors
/// A file that cannot be read, or is too long.
pub(super) fn read_companion(path: &Path) -> Result<String> {
    let fault = |e: &std::io::Error| Error::io(path, "cannot read the OME-XML of a multi-file OME-TIFF", e);
    let (file, len) = place::open(path).map_err(|e| fault(&e))?;
    if len > MAX_COMPANION {
        return Err(Error::new(path, format_args!("is too long for OME-XML ({len} bytes)")));
    }
    let mut bytes = vec![];
    file.peek_after(0, len, &mut bytes).map_err(|e| fault(&e))?;
    Ok(ome_xml::decode(&bytes).into_owned())
}

/// The place of a file that an OME-TIFF names: below the same folder, whatever path the XML gives.
pub(crate) fn beside(path: &Path, name: &str) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let relative = Path::new(name);
    if relative.components().all(|c| matches!(c, Component::Normal(_))) {
        let whole = folder.join(relative);
        if place::exists(&whole) {
            return whole;
        }
    }
    folder.join(last_part(name))
}

/// The last part of a path as OME-XML has it.
pub(super) fn last_part(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

/// Whether OME-XML in the file `base` means `file` by this name, as [`beside`] finds it. `file` is there. Others are looked for only where
/// that decides.
fn is_called(base: &Path, name: &str, file: &Path) -> bool {
    let last = last_part(name);
    if file.file_name().is_none_or(|own| own.to_string_lossy() != last) {
        return false;
    }
    let folder = base.parent().unwrap_or(Path::new(""));
    let is_in_folder = last == name && file.parent() == Some(folder);
    is_in_folder || folder.join(name) == file || beside(base, name) == file
}

/// An image of a file, by OME-XML in the file `base`. `metadata` are its own.
fn one(
    view: &FileView<'_>,
    base: &Path,
    mut image: Cow<'_, OmeImage>,
    metadata: Arc<ImageMetadata>,
    pages: &[Page],
) -> Result<Series> {
    let fault = |e: OmeXmlError| view.error(e).hint("write the file again, or repair its image description");
    if image.without_pages {
        return Ok(Series::refused(Refusal::unsupported(
            "the OME-XML describes an image whose pixels are not in TIFF pages",
        )));
    }
    let is_own = |name: &str| is_called(base, name, view.path());
    let beside_exists = |name: &str| place::exists(&beside(base, name));
    let pages_of = |name: Option<&str>| name.is_none_or(is_own).then_some(pages.len());
    let mut map = image.ifd_of_planes(pages_of).map_err(fault)?;
    let renamed = image.file_uuid.is_none()
        && image.planes.iter().all(|block| block.file_name.is_some())
        && map.files().len() == 1
        && !beside_exists(&map.files()[0]);
    // How many channels share a page, and the pixel type, are the page's to tell. For an image that begins in
    // another file, the XML counts until that file is read.
    let first = map.source(0, 0, 0);
    let ifd = first.map_or(0, |s| s.ifd);
    let other = first.and_then(|s| s.file).filter(|&name| !renamed && !is_own(name));
    // Where that file is missing, a page of this one tells, if there is such a page.
    let page = if other.is_some_and(beside_exists) { None } else { pages.get(ifd) };
    if page.is_none() && other.is_none() {
        return Ok(Series::refused(Refusal::damaged(no_such_page(ifd, pages))));
    }
    let c = image.shape.c();
    let samples = page.map_or(image.samples_per_pixel[0], |p| p.format.samples);
    if image.samples_per_pixel.iter().any(|&s| s != samples) {
        if !c.is_multiple_of(samples) {
            return Ok(Series::refused(Refusal::damaged(format!(
                "pages have {samples} samples per pixel, but the OME-XML declares {}",
                counted(c, "channel")
            ))));
        }
        image.to_mut().samples_per_pixel = vec![samples; c / samples];
        map = image.ifd_of_planes(pages_of).map_err(fault)?;
    }
    let is_own = |name: &str| renamed || is_own(name);
    let mut sources: HashMap<&str, u32> = HashMap::new();
    let mut others = Vec::new();
    for name in map.files() {
        if !is_own(name) {
            others.push(OtherFile::new(beside(base, name)));
        }
        sources.insert(name, if is_own(name) { 0 } else { others.len() as u32 });
    }
    let len = others.iter().map(OtherFile::len).fold(view.len(), u64::saturating_add);
    if !can_list(image.shape, len) {
        return Ok(Series::refused(Refusal::damaged(format!(
            "{} pixels are declared, more planes than the files can hold",
            image.shape
        ))));
    }
    match planes(&map, image.shape, &sources, pages) {
        Ok(planes) => {
            let dtype = page.map_or_else(|| declared(&image), |page| check(&image, page));
            let info = dtype.map(|dtype| RowInfo { shape: image.shape, dtype });
            Ok(Series {
                info,
                samples,
                name: image.has_exact_name.then(|| metadata.name.as_str().into()),
                given: None,
                metadata: Some(metadata),
                planes,
                others: others.into(),
            })
        }
        Err(cause) => Ok(Series::refused(Refusal::damaged(cause))),
    }
}

fn no_such_page(ifd: usize, pages: &[Page]) -> String {
    format!("the OME-XML tells of page {ifd}, but the file has only {}", counted(pages.len(), "page"))
}

/// The table of planes; `sources` numbers the files of the map, 0 being the file itself.
fn planes(
    map: &PlaneMap,
    shape: Shape,
    sources: &HashMap<&str, u32>,
    pages: &[Page],
) -> Result<Box<[PlaneRef]>, String> {
    let [t, c, z, ..] = shape.0;
    let mut table = Vec::with_capacity(t * c * z);
    let mut last: (Option<&str>, u32) = (None, 0);
    for index in 0..t * c * z {
        let Some(plane) = map.source(index / z / c, index / z % c, index % z) else {
            table.push(PlaneRef { source: PlaneRef::MISSING, page: 0, sample: 0 });
            continue;
        };
        if plane.file != last.0 {
            last = (plane.file, plane.file.map_or(0, |name| sources[name]));
        }
        if last.1 == 0 && plane.ifd >= pages.len() {
            return Err(no_such_page(plane.ifd, pages));
        }
        let page = u32::try_from(plane.ifd)
            .map_err(|_| format!("the OME-XML tells of page {}, which cannot be", plane.ifd))?;
        table.push(PlaneRef { source: last.1, page, sample: plane.sample as u32 });
    }
    Ok(table.into())
}

/// The pixel type that the XML tells.
fn declared(image: &OmeImage) -> Result<PixelType, Refusal> {
    let unknown = image.other_type.clone().map(UnknownPixelType);
    unknown.map_or(Ok(image.dtype), |e| Err(Refusal::unsupported(format_args!("Pixels/@Type: {e}"))))
}

/// Whether XML and page agree on the size; gives the page's pixel type.
fn check(image: &OmeImage, page: &Page) -> Result<PixelType, Refusal> {
    let format = &*page.format;
    if (format.width, format.height) != (image.shape.x(), image.shape.y()) {
        return Err(Refusal::damaged(format!(
            "pages are of {} x {} pixels, but the OME-XML declares {} x {}",
            format.width,
            format.height,
            image.shape.x(),
            image.shape.y()
        )));
    }
    format.dtype().map_err(Refusal::unsupported)
}

#[cfg(test)]
mod tests;
