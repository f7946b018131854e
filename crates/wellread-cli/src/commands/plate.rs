//! `wellread generate PLATE --plate WELLS`: a plate in the files of a microscope.

use super::parse_positive;
use super::synthetic::{SyntheticArgs, check_disk};
use super::write_options::WriteArgs;
use crate::output::{Failure, Outcome, Ui};
use std::path::Path;
use wellread_bench::data::{PlateLayout, PlateSize, PlateSpec, generate_plate};
use wellread_measure::path_text::text;
use wellread_store::words::counted;

/// Fields of a well where none are given: those of JUMP.
const FIELDS: usize = 9;

/// A plate instead of a set of images.
#[derive(clap::Args)]
pub struct PlateArgs {
    /// Write a plate of this many wells (6, 24, 96, 384, 1536 or ROWSxCOLUMNS) in the files of a microscope. Half of
    /// the wells have a compound that changes their cells.
    #[arg(
        help_heading = "Plates",
        long,
        value_name = "WELLS",
        conflicts_with_all = ["images", "depth", "time", "kind", "formats", "tune"]
    )]
    pub plate: Option<PlateSize>,
    /// Fields of view of each well; by default 9.
    #[arg(help_heading = "Plates", long, requires = "plate", value_parser = parse_positive)]
    fields: Option<usize>,
    /// Layout of the files: harmony (with Index.xml, default), imagexpress, load-data or cellprofiler (load_data.csv),
    /// hcs-zarr (OME-Zarr).
    #[arg(help_heading = "Plates", long, requires = "plate", value_name = "LAYOUT")]
    layout: Option<PlateLayout>,
    /// Write the table of the nuclei as Parquet and CSV: plate, well, site, position, area, compound and dose.
    #[arg(help_heading = "Plates", long, requires = "plate")]
    cells_table: bool,
}

impl PlateArgs {
    /// Refuses what is of a plate where none is asked for: the parser does not say so beside options that a plate has not.
    pub fn refuse_without_plate(&self) -> Outcome {
        let given = [
            ("--fields", self.fields.is_some()),
            ("--layout", self.layout.is_some()),
            ("--cells-table", self.cells_table),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => {
                Err(Failure::Usage(format!("{option} belongs to a plate; add --plate WELLS")))
            }
            None => Ok(()),
        }
    }
}

/// Writes the plate.
pub fn run(
    out: &Path,
    args: &PlateArgs,
    size: PlateSize,
    synthetic: &SyntheticArgs,
    write: &WriteArgs,
    masks: bool,
    ui: Ui,
) -> Outcome {
    if write.overwrite {
        let why = "--overwrite replaces sets of images, and a plate is written into a new folder";
        let what =
            format!("remove {} yourself, or choose another folder, and leave --overwrite out", out.display());
        return Err(Failure::Usage(format!("{why}; {what}")));
    }
    let layout = args.layout.unwrap_or_default();
    if write.shard.is_some() && layout != PlateLayout::HcsZarr {
        let why = "--shard belongs to OME-Zarr, and the files of this plate are TIFF";
        return Err(Failure::Usage(format!("{why}; choose --layout hcs-zarr, or leave it out")));
    }
    let fields = args.fields.unwrap_or(FIELDS);
    let images = synthetic.spec_of_plate(size.wells().saturating_mul(fields))?;
    let spec = PlateSpec {
        name: PlateSpec::name_of(out),
        size,
        fields,
        channels: images.shape.c(),
        pixels: [images.shape.y(), images.shape.x()],
        dtype: images.dtype,
        seed: images.seed,
        layout,
        table: args.cells_table,
        masks,
    };
    check_disk(&images, 1, out)?;
    let bar = ui.progress(spec.sites() as u64, "generating");
    let set = generate_plate(out, &spec, &write.options(), &|| bar.inc(1))?;
    bar.finish_and_clear();
    ui.document(&serde_json::json!({
        "out": text(out),
        "plate": spec.name,
        "layout": spec.layout,
        "wells": size.wells(),
        "sites": spec.sites(),
        "written": {
            "images": text(&set.images),
            "cells": set.cells.iter().map(|table| text(table)).collect::<Vec<_>>(),
            "nuclei": set.nuclei,
            "masks": set.masks.as_deref().map(text),
        },
    }))?;
    if !ui.json {
        let (wells, sites) = (counted(size.wells(), "well"), counted(spec.sites(), "site"));
        ui.say(format!("images   {} ({wells}, {sites})", set.images.display()));
        for table in &set.cells {
            ui.say(format!("cells    {} ({})", table.display(), counted(set.nuclei, "cell")));
        }
        if let Some(masks) = &set.masks {
            ui.say(format!("masks    {}", masks.display()));
        }
    }
    Ok(())
}
