//! Where images come from: a synthetic set, or a set that is there, opened and looked at.

use anyhow::{Result, bail};
use serde::Serialize;
use std::path::{Path, PathBuf};
use wellread_image::synthetic::{self, Kind};
use wellread_image::{PixelType, Shape};
use wellread_store::cells::{CellOptions, CellsStore};
use wellread_store::convert::one_pixel_type;
use wellread_store::sites::SiteOptions;
use wellread_store::{Store, masks};

/// A synthetic set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SetSpec {
    /// Number of images.
    pub images: usize,
    /// Size of each along T, C, Z, Y, X.
    pub shape: Shape,
    /// Pixel type.
    pub dtype: PixelType,
    /// Cells or noise.
    pub kind: Kind,
    /// Seed of the images.
    pub seed: u64,
}

impl Default for SetSpec {
    /// Upstream's size and number of images.
    fn default() -> Self {
        Self {
            images: 1000,
            shape: Shape::plane(100, 100),
            dtype: PixelType::U16,
            kind: Kind::Cells,
            seed: 42,
        }
    }
}

impl SetSpec {
    /// One image of the set.
    pub(super) fn image(&self) -> synthetic::Spec {
        synthetic::Spec { kind: self.kind, shape: self.shape, dtype: self.dtype, seed: self.seed }
    }
}

/// Where a benchmark's images come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "there is one in a run")]
pub enum Source {
    /// Generated.
    Synthetic(SetSpec),
    /// An existing set in any format; `planes` makes every plane a row.
    Path {
        /// File or folder.
        #[serde(serialize_with = "wellread_measure::path_text::serialize")]
        path: PathBuf,
        /// Whether to take every plane as an image of its own; `None` does so when shapes differ.
        planes: Option<bool>,
        /// The cells to take instead of the images.
        #[serde(skip_serializing_if = "Option::is_none")]
        cells: Option<SourceCells>,
        /// How its files make images.
        #[serde(skip_serializing_if = "SiteOptions::is_default")]
        sites: SiteOptions,
    },
}

impl Source {
    /// The cells that are taken instead of the images.
    pub fn cells(&self) -> Option<&SourceCells> {
        match self {
            Self::Path { cells, .. } => cells.as_ref(),
            Self::Synthetic(_) => None,
        }
    }

    /// How the files of the set make images.
    pub fn sites(&self) -> Option<&SiteOptions> {
        match self {
            Self::Path { sites, .. } => Some(sites),
            Self::Synthetic(_) => None,
        }
    }
}

/// Cells that are cut out of a set's images.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceCells {
    /// The table of cells, or label images.
    pub table: PathBuf,
    /// How they are cut out.
    pub options: CellOptions,
}

impl SourceCells {
    /// These images, or the cells in them where some are asked for.
    pub(crate) fn of(cells: Option<&Self>, images: Box<dyn Store>) -> wellread_store::Result<Box<dyn Store>> {
        let Some(Self { table, options }) = cells else { return Ok(images) };
        Ok(Box::new(CellsStore::open(images, table, options)?))
    }
}

/// The advice about images and masks in one folder.
const TWO_SETS: &str = "images and masks are two sets: give the folder of one of them";
/// The advice about images of two pixel types in one set, which masks beside images are, too.
const TWO_TYPES: &str = "all images have one pixel type here: give those of one type alone, such as the folder of the images without \
                         their masks";

/// Checks that no files of a folder of images are masks of others.
///
/// # Errors
/// As [`masks::none_in_folder`].
pub fn no_masks(store: &dyn Store) -> wellread_store::Result<()> {
    masks::none_in_folder(store).map_err(|error| error.hint(TWO_SETS))
}

/// Opens a set that was looked at before ([`open_checked`]), or its cells, as planes where that said so: nothing but opening.
pub fn open_source(
    path: &Path,
    planes: bool,
    cells: Option<&SourceCells>,
    sites: Option<&SiteOptions>,
) -> Result<Box<dyn Store>> {
    let options = sites.map(SiteOptions::open_options).unwrap_or_default();
    let store = wellread_store::open(path, &options)?;
    let store = SourceCells::of(cells, store)?;
    Ok(if planes { Box::new(wellread_store::planes::PlaneStore::new(store)?) } else { store })
}

/// Opens the source set, or its cells, as planes when asked for or when shapes differ. It has the number of images
/// where planes are the rows. It looks at all of its rows for files that belong to no single set of images.
///
/// # Errors
/// No image in it; images and masks.
pub(crate) fn open_checked(
    path: &Path,
    planes: Option<bool>,
    cells: Option<&SourceCells>,
    sites: &SiteOptions,
) -> Result<(Box<dyn Store>, Option<usize>)> {
    let store = wellread_store::open(path, &sites.open_options())?;
    if store.is_empty() {
        bail!("{}: there is no image in it", path.display());
    }
    store.hints().complete(0..store.len())?;
    let store = SourceCells::of(cells, store)?;
    one_pixel_type(&*store).map_err(|error| error.hint(TWO_TYPES))?;
    no_masks(&*store)?;
    let mixed = || -> Result<bool> {
        let first = store.row_info(0)?;
        for row in 1..store.len() {
            if store.row_info(row)?.shape != first.shape {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let as_planes = match planes {
        Some(planes) => planes,
        None => mixed()?,
    };
    if as_planes {
        let planes = wellread_store::planes::PlaneStore::new(store)?;
        let images = planes.images();
        return Ok((Box::new(planes), Some(images)));
    }
    Ok((store, None))
}
