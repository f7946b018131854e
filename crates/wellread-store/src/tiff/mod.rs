//! TIFF and OME-TIFF: single files, multi-page files and folders of them.
//!
//! Specifications: [TIFF 6.0](https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf),
//! [BigTIFF](https://www.awaresystems.be/imaging/tiff/bigtiff.html),
//! [OME-TIFF](https://docs.openmicroscopy.org/ome-model/latest/ome-tiff/specification.html).
//! Compatible implementations: tifffile, libtiff, Bio-Formats, ImageJ.
//!
//! ```text
//!  path ──listing──▶ files ──(first use)──▶ ifd ─▶ image ─▶ series ──▶ FileIndex, kept
//!                      │                   tags   pages    TCZYX planes    │
//!                      └── regular ─▶ codec ─▶ predictor ─▶ read ◀──────────┘
//!                                    lzw …                  │
//!                                                           ▼ Block … Block
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `listing` | which files a folder holds, and that it holds nothing else |
//! | `ifd` | header, directories, tag values |
//! | `image` | one page: pixel layout, strips and tiles |
//! | `series` | pages → 5D images: OME-XML (`ome`), ImageJ and tifffile descriptions (`describe`), plain |
//! | `codec`, `lzw`, `predictor`, `samples` | bytes → samples |
//! | `read` | planes of a region → blocks |
//! | `store` | the [`Store`](crate::Store) |
//! | `writer`, `encode` | the [`StoreWriter`](crate::StoreWriter) |
//! | `sums` | checksums of strips, tiles and directories |
//!
//! # Example
//!
//! ```no_run
//! let store = wellread_store::open("plate1/", &Default::default())?;
//! let (info, pixels) = wellread_store::read_image(&*store, 0)?;
//! println!("{} {} {} bytes", info.shape, info.dtype, pixels.len());
//! # Ok::<(), wellread_store::Error>(())
//! ```

mod codec;
mod describe;
mod encode;
mod ifd;
mod image;
mod listing;
mod lzw;
mod ome;
mod predictor;
mod read;
mod samples;
mod series;
mod store;
mod sums;
mod writer;

pub(crate) use lzw::{Decoder as LzwDecoder, encode as lzw_encode};

use crate::{Compression, Format, Tune};

/// TIFF and OME-TIFF.
pub static FORMAT: Format = Format {
    name: "tiff",
    about: "TIFF and OME-TIFF: files and folders; none, LZW, Deflate, PackBits, Zstd; BigTIFF",
    endings: &[".tif", ".tiff"],
    set_ending: "",
    holds_images: |_| true,
    parts: &[],
    keeps_features: false,
    keeps_durations: false,
    holds_bare_pixels: true,
    has_checksums: true,
    has_tables: false,
    has_columns: false,
    has_levels: false,
    heeds_tune: |options| options.tune == Tune::Size && options.compression == Compression::Default,
    cannot_resume: None,
    engine: || Ok(format!("wellread {}; TIFF 6.0, BigTIFF, OME-TIFF 2016-06", env!("CARGO_PKG_VERSION"))),
    recognise: listing::recognise,
    open: |path, options| Ok(Box::new(store::TiffStore::open(path, options)?)),
    create: |path, options| Ok(Box::new(writer::TiffWriter::create(path, options)?)),
};

/// Byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Endian {
    /// `II`
    Little,
    /// `MM`
    Big,
}

impl Endian {
    fn u16(self, bytes: &[u8]) -> u16 {
        let bytes = [bytes[0], bytes[1]];
        if self == Self::Little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    }

    fn u32(self, bytes: &[u8]) -> u32 {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if self == Self::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    }

    fn u64(self, bytes: &[u8]) -> u64 {
        let bytes = bytes[..8].try_into().expect("8 bytes");
        if self == Self::Little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) }
    }
}
