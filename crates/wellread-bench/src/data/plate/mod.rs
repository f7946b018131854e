//! A generated plate: wells x fields x channels of cells, in the files of a microscope, with the table of its nuclei.
//!
//! ```text
//!  PlateSpec ─ (well, field) ─▶ synthetic::treated ─▶ images/   the files of a layout, what lies beside them
//!                                     │ masks       ─▶ masks/    label images of the nuclei
//!                                     └ nuclei      ─▶ cells.parquet, cells.csv
//! ```
//!
//! The facts of every cell are true. Positions are those of the nuclei that were drawn, and cells look different where
//! their well was given a compound. A plate depends on its [`PlateSpec`] alone.
//!
//! | module | what it holds |
//! |---|---|
//! | `spec` | what a plate is |
//! | `wells` | sizes of plates, names of wells, which well gets what |
//! | `layout` | the layouts, and what their files are called |
//! | `files` | a site's files written; what lies beside the images |
//! | `hcs` | the groups of an OME-Zarr plate |
//! | `nuclei` | nuclei found in a label image |

mod files;
mod hcs;
mod layout;
mod nuclei;
mod spec;
mod wells;

pub use layout::PlateLayout;
pub use spec::PlateSpec;
pub use wells::PlateSize;

use super::write::in_order;
use anyhow::Result;
use files::Files;
use nuclei::Nucleus;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use wellread_image::synthetic;
use wellread_report::{Table, row};
use wellread_store::staged::{Existing, Staged};
use wellread_store::{Error, WriteOptions};
use wells::Site;

/// Name of the table of nuclei, without its ending.
const TABLE: &str = "cells";
/// A plate that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlateSet {
    /// The path that opens the images: a folder, a table of files or an OME-Zarr plate.
    pub images: PathBuf,
    /// The table of nuclei as Parquet and as CSV.
    pub cells: Vec<PathBuf>,
    /// How many nuclei there are.
    pub nuclei: usize,
    /// The folder of label images.
    pub masks: Option<PathBuf>,
}

/// Writes a plate into the new folder `out`, whole or not at all; `done` is called after each site.
///
/// # Errors
/// A file or folder is at `out`. There are more fields or channels than the layout has names for. `out`
/// cannot be written.
pub fn generate_plate(
    out: &Path,
    spec: &PlateSpec,
    options: &WriteOptions,
    done: &(dyn Fn() + Sync),
) -> Result<PlateSet> {
    spec.check()?;
    if out.symlink_metadata().is_ok() {
        let error = Error::new(out, "already exists, and a plate is written into a new folder");
        return Err(error.hint("choose another folder, or remove this one").into());
    }
    let staged = Staged::new(out, Existing::Kept)?;
    let folder = staged.create_dir()?.to_owned();
    let files = Files::begin(spec, &folder, out, options)?;
    let image = spec.image();
    let mut table = Table::new(TABLE);
    let mut nuclei = 0;
    let make = |index: usize| -> Result<Vec<Nucleus>> {
        let site = spec.site(index);
        let made = synthetic::treated(&image, index as u64, site.well.treatment().effect)?;
        files.write(index, site, &made)?;
        Ok(nuclei::find(made.mask.as_deref().unwrap_or_default(), spec.pixels[1]))
    };
    in_order(spec.sites(), options.jobs.max(1), make, |index, found| {
        let found = found?;
        nuclei += found.len();
        if spec.table {
            for nucleus in &found {
                table.push(record(spec, spec.site(index), nucleus));
            }
        }
        done();
        Ok(ControlFlow::Continue(()))
    })?;
    files.finish()?;
    let mut cells = vec![];
    if spec.table {
        let names = [format!("{TABLE}.parquet"), format!("{TABLE}.csv")];
        table.write_parquet(folder.join(&names[0]))?;
        table.write_csv(folder.join(&names[1]))?;
        cells.extend(names.map(|name| out.join(name)));
    }
    let set = PlateSet {
        images: out.join(files.opened()),
        cells,
        nuclei,
        masks: spec.masks.then(|| out.join(files::MASKS)),
    };
    staged.commit()?;
    Ok(set)
}

/// A nucleus as a row of the table, in CellProfiler's names.
fn record(spec: &PlateSpec, site: Site, nucleus: &Nucleus) -> wellread_report::Row {
    let treatment = site.well.treatment();
    row![
        ("Metadata_Plate", &spec.name),
        ("Metadata_Well", site.well.name()),
        ("Metadata_Site", spec.layout.site_number(site.field)),
        ("ObjectNumber", nucleus.label),
        ("Nuclei_Location_Center_X", nucleus.x),
        ("Nuclei_Location_Center_Y", nucleus.y),
        ("Nuclei_AreaShape_Area", nucleus.area),
        ("Metadata_Compound", treatment.compound),
        ("Metadata_Dose", treatment.dose),
        ("Metadata_Treated", i64::from(treatment.effect > 0.0)),
    ]
}

#[cfg(test)]
mod tests;
