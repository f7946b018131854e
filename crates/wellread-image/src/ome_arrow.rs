//! Names and types of the OME-Arrow struct: one image as one value of a table column.
//!
//! The [specification](https://github.com/WayScience/ome-arrow) is the struct that the `ome-arrow` Python
//! library publishes (`OME_ARROW_STRUCT`, version [`VERSION`]). [`STRUCT`] is that struct as plain data, so
//! that every engine builds its own schema from it, for any Arrow release. Readers look fields up by the
//! names in [`field`].
//!
//! Files differ from the published struct, and readers have to take all of these:
//!
//! | met in the wild | why |
//! |---|---|
//! | every integer 64-bit, pixels included; floats 64-bit | the type was inferred from Python objects |
//! | `image_type` or `masks` of type null | every value was missing when the type was inferred |
//! | no `masks`, no `chunk_grid`, no `image_type` | dropped, or written before they were introduced |
//! | `planes` alone, `chunks` alone, or both with the same pixels | `chunks` came later; both are still written |
//! | lists of 64-bit offsets, elements called `item`, `element` or `array` | the library that wrote them |
//! | 8-bit images declared `uint16` | `ome-arrow` clamps every array to `uint16` before it notes the type |
//! | pixels of another type than `pixels_meta.type` | the published list is `uint16` whatever the image |
//!
//! [`Variant`] names what was found. [`PixelType`] of an image is what `pixels_meta.type` says.

use crate::PixelType;
use std::fmt;

/// The value of the field `type` of every OME-Arrow struct, and of the file-level key [`FILE_TYPE_KEY`].
pub const TYPE: &str = "ome.arrow";
/// The published version that [`STRUCT`] follows: the value of the field `version`.
pub const VERSION: &str = "0.1.0";
/// File-level metadata key whose value is [`TYPE`].
pub const FILE_TYPE_KEY: &str = "ome.arrow.type";
/// File-level metadata key whose value is the version.
pub const FILE_VERSION_KEY: &str = "ome.arrow.version";
/// File-level metadata key by which wellread marks files whose `pixels_meta.type` can be trusted (see
/// [`declared_type_is_clamped`]); its value is wellread's version.
pub const FILE_WRITER_KEY: &str = "wellread.version";
/// Name of the image column, as upstream's benchmarks write it. Readers take any name.
pub const COLUMN: &str = "ome_image";
/// Name of the column with the image's index that stands beside it.
pub const ROW_ID: &str = "row_id";
/// Chunk size along Z, Y, X that `ome-arrow` writes: larger planes are cut into tiles of 512 x 512.
pub const DEFAULT_CHUNK: [usize; 3] = [1, 512, 512];
/// Order of the pixels inside a chunk, the only one that is defined.
pub const CHUNK_ORDER: &str = "ZYX";
/// Order of the axes that `chunk_grid.order` names.
pub const GRID_ORDER: &str = "TCZYX";
/// The value that `ome-arrow` writes for an illumination that nobody stated.
pub const UNKNOWN_ILLUMINATION: &str = "Unknown";

/// Field names of the struct.
pub mod field {
    /// Always [`super::TYPE`].
    pub const TYPE: &str = "type";
    /// Version of the specification.
    pub const VERSION: &str = "version";
    /// Identifier of the image.
    pub const ID: &str = "id";
    /// Name of the image.
    pub const NAME: &str = "name";
    /// Kind of image, such as `image` or `label`; open-ended.
    pub const IMAGE_TYPE: &str = "image_type";
    /// Acquisition time, without a zone, in UTC.
    pub const ACQUISITION: &str = "acquisition_datetime";
    /// Struct of sizes, pixel type, physical sizes and channels.
    pub const PIXELS_META: &str = "pixels_meta";
    /// Struct with the chunk size.
    pub const CHUNK_GRID: &str = "chunk_grid";
    /// List of boxes of pixels.
    pub const CHUNKS: &str = "chunks";
    /// List of whole YX planes.
    pub const PLANES: &str = "planes";
    /// Reserved.
    pub const MASKS: &str = "masks";
    /// `pixels_meta.dimension_order`.
    pub const DIMENSION_ORDER: &str = "dimension_order";
    /// `pixels_meta.size_t`, `size_c`, `size_z`, `size_y`, `size_x`: in TCZYX order.
    pub const SIZES: [&str; 5] = ["size_t", "size_c", "size_z", "size_y", "size_x"];
    /// `pixels_meta.physical_size_x` and so on: in XYZ order.
    pub const PHYSICAL_SIZES: [&str; 3] = ["physical_size_x", "physical_size_y", "physical_size_z"];
    /// Units of [`PHYSICAL_SIZES`], in the same order.
    pub const PHYSICAL_UNITS: [&str; 3] =
        ["physical_size_x_unit", "physical_size_y_unit", "physical_size_z_unit"];
    /// `pixels_meta.channels`.
    pub const CHANNELS: &str = "channels";
    /// Emission wavelength in micrometres, of a channel.
    pub const EMISSION: &str = "emission_um";
    /// Excitation wavelength in micrometres, of a channel.
    pub const EXCITATION: &str = "excitation_um";
    /// Illumination, of a channel.
    pub const ILLUMINATION: &str = "illumination";
    /// Display colour as `0xRRGGBBAA`, of a channel.
    pub const COLOR: &str = "color_rgba";
    /// First index of a chunk or plane along T, C, Z, Y, X; planes have the first three only.
    pub const ORIGIN: [&str; 5] = ["t", "c", "z", "y", "x"];
    /// Length of a chunk along Z, Y, X.
    pub const CHUNK_SHAPE: [&str; 3] = ["shape_z", "shape_y", "shape_x"];
    /// The pixels of a chunk or plane: a list of numbers in C order.
    pub const PIXELS: &str = "pixels";
    /// The pixels of a chunk in `ome-arrow`'s byte variant: packed bytes instead of a list of numbers.
    pub const PIXEL_BYTES: &str = "pixel_bytes";
    /// `chunk_grid.order`: order of the axes of the grid.
    pub const GRID_ORDER: &str = "order";
    /// `chunk_grid.chunk_order`: order of the pixels inside a chunk.
    pub const CHUNK_ORDER: &str = "chunk_order";
    /// `chunk_grid.chunk_t` and so on: in TCZYX order.
    pub const GRID_SIZES: [&str; 5] = ["chunk_t", "chunk_c", "chunk_z", "chunk_y", "chunk_x"];
}

/// Type of a field of the struct, in Arrow's terms. Every field may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Text.
    Utf8,
    /// Signed 16-bit integer.
    Int16,
    /// Signed 32-bit integer.
    Int32,
    /// Unsigned 32-bit integer.
    UInt32,
    /// Single precision.
    Float32,
    /// Microseconds since 1970, without a zone.
    TimestampMicros,
    /// Always null.
    Null,
    /// List of pixel values: [`PUBLISHED_PIXELS`] as published, another type by [`list_type`].
    Pixels,
    /// Nested struct.
    Struct(&'static [Field]),
    /// List of structs.
    List(&'static [Field]),
}

/// One field of the struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: FieldType,
}

const fn f(name: &'static str, kind: FieldType) -> Field {
    Field { name, kind }
}

/// The published struct, fields in their order.
pub static STRUCT: &[Field] = &[
    f(field::TYPE, FieldType::Utf8),
    f(field::VERSION, FieldType::Utf8),
    f(field::ID, FieldType::Utf8),
    f(field::NAME, FieldType::Utf8),
    f(field::IMAGE_TYPE, FieldType::Utf8),
    f(field::ACQUISITION, FieldType::TimestampMicros),
    f(field::PIXELS_META, FieldType::Struct(PIXELS_META)),
    f(field::CHUNK_GRID, FieldType::Struct(CHUNK_GRID)),
    f(field::CHUNKS, FieldType::List(CHUNK)),
    f(field::PLANES, FieldType::List(PLANE)),
    f(field::MASKS, FieldType::Null),
];

/// Fields of `pixels_meta`.
pub static PIXELS_META: &[Field] = &[
    f(field::DIMENSION_ORDER, FieldType::Utf8),
    f(field::TYPE, FieldType::Utf8),
    f("size_x", FieldType::Int32),
    f("size_y", FieldType::Int32),
    f("size_z", FieldType::Int32),
    f("size_c", FieldType::Int16),
    f("size_t", FieldType::Int32),
    f("physical_size_x", FieldType::Float32),
    f("physical_size_y", FieldType::Float32),
    f("physical_size_z", FieldType::Float32),
    f("physical_size_x_unit", FieldType::Utf8),
    f("physical_size_y_unit", FieldType::Utf8),
    f("physical_size_z_unit", FieldType::Utf8),
    f(field::CHANNELS, FieldType::List(CHANNEL)),
];

/// Fields of one channel.
pub static CHANNEL: &[Field] = &[
    f(field::ID, FieldType::Utf8),
    f(field::NAME, FieldType::Utf8),
    f(field::EMISSION, FieldType::Float32),
    f(field::EXCITATION, FieldType::Float32),
    f(field::ILLUMINATION, FieldType::Utf8),
    f(field::COLOR, FieldType::UInt32),
];

/// Fields of `chunk_grid`.
pub static CHUNK_GRID: &[Field] = &[
    f(field::GRID_ORDER, FieldType::Utf8),
    f("chunk_t", FieldType::Int32),
    f("chunk_c", FieldType::Int16),
    f("chunk_z", FieldType::Int32),
    f("chunk_y", FieldType::Int32),
    f("chunk_x", FieldType::Int32),
    f(field::CHUNK_ORDER, FieldType::Utf8),
];

/// Fields of one chunk: a box of one time point and one channel.
pub static CHUNK: &[Field] = &[
    f("t", FieldType::Int32),
    f("c", FieldType::Int16),
    f("z", FieldType::Int32),
    f("y", FieldType::Int32),
    f("x", FieldType::Int32),
    f("shape_z", FieldType::Int32),
    f("shape_y", FieldType::Int32),
    f("shape_x", FieldType::Int32),
    f(field::PIXELS, FieldType::Pixels),
];

/// Fields of one plane: the whole YX extent at one t, c, z.
pub static PLANE: &[Field] = &[
    f("z", FieldType::Int32),
    f("t", FieldType::Int32),
    f("c", FieldType::Int16),
    f(field::PIXELS, FieldType::Pixels),
];

/// Element type of pixel lists as published.
pub const PUBLISHED_PIXELS: PixelType = PixelType::U16;

/// Element type of the pixel lists for images of `dtype`. It is the published `uint16` for 8- and 16-bit
/// unsigned images, so that `ome-arrow` reads them. It is the image's own type for those that `uint16` cannot hold.
pub const fn list_type(dtype: PixelType) -> PixelType {
    match dtype {
        PixelType::U8 | PixelType::U16 => PUBLISHED_PIXELS,
        other => other,
    }
}

/// Whether lists of element type `list` hold every value of an image of `dtype` exactly.
pub const fn list_holds(list: PixelType, dtype: PixelType) -> bool {
    use PixelType::{F32, F64, I8, I16, I32, U8, U16, U32};
    match list {
        U8 => matches!(dtype, U8),
        I8 => matches!(dtype, I8),
        U16 => matches!(dtype, U8 | U16),
        I16 => matches!(dtype, U8 | I8 | I16),
        U32 => matches!(dtype, U8 | U16 | U32),
        I32 => matches!(dtype, U8 | I8 | U16 | I16 | I32),
        F32 => matches!(dtype, U8 | I8 | U16 | I16 | F32),
        F64 => true,
    }
}

/// The smallest element type of lists that hold every value of images of all these types; `None` of no types.
pub fn common_list(types: &[PixelType]) -> Option<PixelType> {
    let holds_all = |list: &PixelType| types.iter().all(|&dtype| list_holds(*list, dtype));
    // From the smallest on; the last one holds all.
    PixelType::ALL.into_iter().find(holds_all).filter(|_| !types.is_empty())
}

/// Whether a declared type may be `ome-arrow`'s clamping rather than the image's own. The library turns every
/// array into `uint16` first, so `uint16` in a file where no pixel of any image exceeds 255 was 8-bit.
///
/// `trusted` is whether the file carries [`FILE_WRITER_KEY`]; `largest` is the largest pixel of the whole
/// file, where its statistics tell. The question is asked once per file, never per image. All images of a set
/// keep one type, and a dark image is never scaled differently from its neighbour.
pub fn declared_type_is_clamped(declared: PixelType, trusted: bool, largest: Option<f64>) -> bool {
    declared == PixelType::U16 && !trusted && largest.is_some_and(|v| v <= 255.0)
}

/// Which of the lists of pixels a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// `chunks` alone.
    Chunks,
    /// `planes` alone.
    Planes,
    /// Both, with the same pixels: `chunks` is read.
    Both,
}

/// The kind of an OME-Arrow column; displayed as `typed chunks`, `inferred 64-bit chunks+planes` …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Whether pixels are 64-bit integers or double precision although no image is: the type was inferred.
    pub inferred: bool,
    /// Which lists there are.
    pub pieces: Pieces,
}

impl fmt::Display for Variant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pieces = match self.pieces {
            Pieces::Chunks => "chunks",
            Pieces::Planes => "planes",
            Pieces::Both => "chunks+planes",
        };
        write!(out, "{} {pieces}", if self.inferred { "inferred 64-bit" } else { "typed" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looked_up_names_are_in_the_struct() {
        let has = |fields: &[Field], name: &str| fields.iter().any(|f| f.name == name);
        for name in field::SIZES.iter().chain(&field::PHYSICAL_SIZES).chain(&field::PHYSICAL_UNITS) {
            assert!(has(PIXELS_META, name), "{name}");
        }
        for name in field::ORIGIN.iter().chain(&field::CHUNK_SHAPE).chain([&field::PIXELS]) {
            assert!(has(CHUNK, name), "{name}");
        }
        for name in &field::ORIGIN[..3] {
            assert!(has(PLANE, name), "{name}");
        }
        for name in field::GRID_SIZES {
            assert!(has(CHUNK_GRID, name), "{name}");
        }
    }

    #[test]
    fn every_type_fits_its_list() {
        for dtype in PixelType::ALL {
            assert!(list_holds(list_type(dtype), dtype));
            assert!(list_holds(PixelType::F64, dtype));
        }
        assert!(!list_holds(PixelType::U16, PixelType::I8));
        assert!(!list_holds(PixelType::F32, PixelType::I32));
    }

    #[test]
    fn clamped_types_are_told_per_file() {
        assert!(declared_type_is_clamped(PixelType::U16, false, Some(255.0)));
        assert!(!declared_type_is_clamped(PixelType::U16, true, Some(255.0)));
        assert!(!declared_type_is_clamped(PixelType::U16, false, Some(256.0)));
        assert!(!declared_type_is_clamped(PixelType::U16, false, None));
        assert!(!declared_type_is_clamped(PixelType::I16, false, Some(3.0)));
    }

    #[test]
    fn variants_have_names() {
        let v = Variant { inferred: true, pieces: Pieces::Both };
        assert_eq!(v.to_string(), "inferred 64-bit chunks+planes");
    }
}
