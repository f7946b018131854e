//! OME-XML, read and written: what the first page of an OME-TIFF says about all of its pages.
//!
//! ```text
//!  ImageDescription bytes ──decode──▶ text ──read──▶ Vec<OmeImage> ──ifd_of_planes──▶ PlaneMap: (t, c, z) → file, IFD, sample
//!  OmeImage ──write──▶ OME-XML 2016-06
//! ```
//!
//! Specification: OME model 2016-06 (<https://docs.openmicroscopy.org/ome-model/latest/ome-tiff/specification.html>,
//! schema <https://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd>). The reader also takes the older schemas
//! back to 2003, any namespace prefix, and ignores whatever it does not need. Attributes that decide which pixels
//! are read (sizes, order, plane positions) must be right, and give an error that names the attribute
//! otherwise. The type must be there, but may be any word, since the pages have their own. Descriptive metadata that cannot be understood (a wavelength of 0, a colour in words) count as
//! unknown: the pixels can be read without them.
//!
//! ```
//! use wellread_image::{ImageMetadata, PixelType, Shape, ome_xml};
//!
//! let image = ome_xml::OmeImage::new(ImageMetadata::named("field 1"), Shape([2, 3, 4, 8, 9]), PixelType::U16);
//! let xml = ome_xml::write(&[image]);
//! let back = ome_xml::read(&xml)?.remove(0);
//! let pages = back.ifd_of_planes(|_file| Some(24))?;
//! assert_eq!(pages.source(1, 2, 3).map(|page| page.ifd), Some(23));
//! # Ok::<(), ome_xml::OmeXmlError>(())
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | [`OmeImage`], [`TiffData`], [`OmeXmlError`], [`decode`] |
//! | `read.rs` | [`read`]: one pass over the XML events, no tree, no entity expansion |
//! | `attributes.rs` | what the attributes of an element say |
//! | `write.rs` | [`write`] |
//! | `planes.rs` | [`DimensionOrder`], [`PlaneMap`]: from `TiffData` blocks to the IFD of each plane |
//! | `units.rs` | OME's units of length |
//! | `unkept.rs` | [`unkept`]: facts that images have no field for |
//! | `wells.rs` | [`well_samples`]: the plate and the well of each image |

mod attributes;
mod planes;
mod read;
#[cfg(test)]
mod tests;
mod units;
mod unkept;
mod wells;
mod write;

pub use planes::{DimensionOrder, PlaneMap, PlaneSource};
pub use read::read;
pub use units::{canonical_time_unit, canonical_unit, micrometres};
pub use unkept::unkept;
pub use wells::{WellSample, well_samples};
pub use write::{ILLUMINATION_TYPES, is_xml_char, write};

use crate::{ImageMetadata, PixelType, Shape, ShapeError};
use std::borrow::Cow;

/// Namespace of the annotation with names that `Image/@Name` cannot hold: empty ones, with spaces around them, with
/// characters that XML has not. Its value is JSON: a list of an image's index and its name.
const NAMES: &str = "wellread/names";

/// One `Image` element with its first `Pixels`.
#[derive(Clone, Debug, PartialEq)]
pub struct OmeImage {
    /// Name, channels (one entry for each index of the C axis, or none when the file lists none), sizes, time.
    pub metadata: ImageMetadata,
    /// `SizeT`, `SizeC`, `SizeZ`, `SizeY`, `SizeX`; already checked to be a believable image of `dtype`.
    pub shape: Shape,
    /// `Pixels/@Type`; `uint8` for `bit`, and where `other_type` is given.
    pub dtype: PixelType,
    /// `Pixels/@Type` where [`PixelType`] has no such type, such as `complex`. The pages tell which type they have.
    pub other_type: Option<String>,
    /// `Pixels/@DimensionOrder`: the order in which the planes follow each other in the file.
    pub dimension_order: DimensionOrder,
    /// Samples that each `Channel` keeps in one IFD, in the order of the channels; the sum is `SizeC`.
    ///
    /// `[1, 1, 1]`: three channels with a page each. `[3]`: one page holds all three (RGB). Where the XML
    /// does not tell, 1 is assumed: a TIFF reader that finds another number in the page's own tag sets it here.
    pub samples_per_pixel: Vec<usize>,
    /// The `TiffData` blocks as written; empty means "all pages, in order" (see [`OmeImage::ifd_of_planes`]).
    pub planes: Vec<TiffData>,
    /// `Pixels/@BigEndian`. The byte order in the TIFF header is what counts; this is for the record.
    pub big_endian: Option<bool>,
    /// Whether the pixels are declared to be elsewhere (`MetadataOnly`) or inline (`BinData`): no TIFF pages.
    pub without_pages: bool,
    /// `OME/@UUID`: the identity of the file that holds this XML.
    pub file_uuid: Option<String>,
    /// Whether [`read`] found the name kept apart, to the byte: [`write`] does so where `Image/@Name` cannot hold it.
    pub has_exact_name: bool,
}

impl OmeImage {
    /// An image as [`write`] wants it: order XYZCT, one page for each plane, one `TiffData` block for all.
    pub fn new(metadata: ImageMetadata, shape: Shape, dtype: PixelType) -> Self {
        let all = TiffData { ifd: Some(0), plane_count: Some(shape.planes()), ..TiffData::default() };
        Self {
            metadata,
            shape,
            dtype,
            other_type: None,
            dimension_order: DimensionOrder::Xyzct,
            samples_per_pixel: vec![1; shape.c()],
            planes: vec![all],
            big_endian: None,
            without_pages: false,
            file_uuid: None,
            has_exact_name: false,
        }
    }
}

/// One `TiffData` element: a run of planes, in dimension order, that lie in consecutive pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TiffData {
    /// T of the first plane.
    pub first_t: usize,
    /// Channel of the first plane, counting `Channel` elements (an RGB channel counts once).
    pub first_c: usize,
    /// Z of the first plane.
    pub first_z: usize,
    /// Page of the first plane; `None`: the first page of the file.
    pub ifd: Option<usize>,
    /// Number of pages; `None`: 1 if `ifd` is given, else as many as the file has.
    pub plane_count: Option<usize>,
    /// `UUID` of the file that holds the pages, when given.
    pub uuid: Option<String>,
    /// `UUID/@FileName`: that file's path, relative to this one, when given. The schema wants a UUID beside it.
    pub file_name: Option<String>,
}

/// Why a text is no usable OME-XML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OmeXmlError {
    /// Not well-formed XML, or an entity that XML does not define (declared ones are never expanded).
    #[error("OME-XML is broken at byte {position}: {cause}")]
    Syntax {
        /// Offset in the text.
        position: u64,
        /// The XML reader's error.
        cause: String,
    },
    /// The text ends before its root element does.
    #[error("OME-XML ends inside <{inside}>: the image description is cut off")]
    Truncated {
        /// Innermost known element that was still open.
        inside: &'static str,
    },
    /// Some other kind of XML or no XML at all.
    #[error("this is no OME-XML: the root element is {0:?}, not \"OME\"")]
    NotOme(String),
    /// A `BinaryOnly` block: the description is in another file.
    #[error("this file holds only pixels; its OME-XML is in {metadata_file:?}: open that file instead")]
    BinaryOnly {
        /// `BinaryOnly/@MetadataFile`.
        metadata_file: String,
    },
    /// No `Image` with `Pixels` inside.
    #[error("OME-XML describes no image: there is no Image element with Pixels in it")]
    NoImage,
    /// A required attribute is absent.
    #[error("OME-XML, image {image}: the attribute {attribute} is missing")]
    Missing {
        /// Index of the `Image` element.
        image: usize,
        /// Such as `Pixels/@SizeX`.
        attribute: &'static str,
    },
    /// An attribute that decides what is read has an impossible value.
    #[error("OME-XML, image {image}: {attribute} is {value:?}: {cause}")]
    Invalid {
        /// Index of the `Image` element.
        image: usize,
        /// Such as `Pixels/@SizeX`.
        attribute: &'static str,
        /// The value, shortened.
        value: String,
        /// The error in it.
        cause: String,
    },
    /// A `TiffData` block that cannot be followed.
    #[error("OME-XML: {attribute} is {value:?}: {cause}")]
    Plane {
        /// Such as `TiffData/@FirstZ`.
        attribute: &'static str,
        /// The value.
        value: String,
        /// The error in it.
        cause: String,
    },
    /// The sizes together make no image.
    #[error("OME-XML, image {image}: {cause}")]
    Shape {
        /// Index of the `Image` element.
        image: usize,
        /// The error in the shape.
        cause: ShapeError,
    },
}

/// The text of an `ImageDescription` tag: without trailing NULs, as UTF-8 or, where it is not that, Latin-1.
///
/// Old writers put `µ` down as the single byte 0xB5.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes[..end].iter().map(|&b| char::from(b)).collect()),
    }
}
