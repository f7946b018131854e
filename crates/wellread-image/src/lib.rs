//! Images, and nothing else: no file is opened here.
//!
//! Every image of wellread is a dense five-dimensional array in the order **T C Z Y X** (time, channel,
//! depth, row, column). It is C-contiguous and little-endian, with one [`PixelType`]. A plain grey picture is
//! `1 x 1 x 1 x Y x X`. Beside the pixels there is [`ImageMetadata`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`shape`] | [`Shape`], [`Region`] (a box inside an image), clipping of one box against another |
//! | [`pixel`] | [`PixelType`] and its conversions |
//! | [`metadata`] | [`ImageMetadata`], [`Channel`], [`PhysicalSize`] |
//! | [`ome_xml`] | OME-XML, read and written |
//! | [`ome_arrow`] | names and types of the OME-Arrow struct, and the variants met in the wild |
//! | [`synthetic`] | generated images: fluorescence-like cells with masks, and uniform noise |
//! | [`words`] | numbers and lists of things in sentences |

pub mod metadata;
pub mod ome_arrow;
pub mod ome_xml;
pub mod pixel;
pub mod shape;
pub mod synthetic;
pub mod words;

pub use metadata::{Channel, ImageMetadata, PhysicalSize, TimeIncrement};
pub use pixel::PixelType;
pub use shape::{Region, Shape, ShapeError, clip_runs};
