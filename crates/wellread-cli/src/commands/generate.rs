//! `wellread generate OUT`

use super::convert::WriteArgs;
use super::parse_size;
use crate::output::{Failure, Outcome, Ui};
use std::path::PathBuf;
use wellread_bench::data::{self, SetSpec};
use wellread_image::synthetic::Kind;
use wellread_image::{PixelType, Shape};

/// Writes OUT/images.parquet, OUT/tiff, OUT/ome-zarr … and OUT/expected.json with the checksum of every image.
#[derive(clap::Args)]
#[command(after_help = "\
Writes OUT/images.parquet, OUT/tiff, OUT/ome-zarr … and OUT/expected.json with the checksum of every image.

Examples:
  wellread generate demo --images 64 --size 256x256
  wellread generate noise --images 1000 --size 100x100 --dtype uint8 --kind noise --formats parquet,tiff")]
pub struct Args {
    /// Folder to write.
    out: PathBuf,
    /// Number of images.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    images: u64,
    /// Height and width.
    #[arg(long, value_name = "HxW", default_value = "256x256", value_parser = parse_size)]
    size: (usize, usize),
    /// Channels.
    #[arg(long, default_value_t = 1)]
    channels: usize,
    /// Planes along Z.
    #[arg(long, default_value_t = 1)]
    depth: usize,
    /// Time points.
    #[arg(long, default_value_t = 1)]
    time: usize,
    /// Pixel type: uint8, int8, uint16, int16, uint32, int32, float32, float64.
    #[arg(long, default_value = "uint16")]
    dtype: PixelType,
    /// cells: looks and compresses like fluorescence microscopy; noise: uniform.
    #[arg(long, value_enum, default_value_t = KindArg::Cells)]
    kind: KindArg,
    /// Formats to write: all, or a comma-separated list.
    #[arg(long, value_delimiter = ',', default_value = "all")]
    formats: Vec<String>,
    /// Write ground-truth label masks beside the images (cells only).
    #[arg(long)]
    masks: bool,
    /// Seed of the images.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    #[command(flatten)]
    write: WriteArgs,
}

/// [`Kind`] on the command line.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindArg {
    /// Fluorescence-like cells.
    Cells,
    /// Uniform noise.
    Noise,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Cells => Self::Cells,
            KindArg::Noise => Self::Noise,
        }
    }
}

pub fn run(args: &Args, ui: Ui) -> Outcome {
    let formats = data::parse_formats(&args.formats).map_err(|e| Failure::Usage(e.to_string()))?;
    if args.masks && args.kind == KindArg::Noise {
        return Err(Failure::Usage("--masks needs --kind cells: noise has no objects".to_owned()));
    }
    let shape = Shape([args.time, args.channels, args.depth, args.size.0, args.size.1]);
    shape.checked_bytes(args.dtype).map_err(|e| Failure::Usage(e.to_string()))?;
    let spec = SetSpec {
        images: args.images as usize,
        shape,
        dtype: args.dtype,
        kind: args.kind.into(),
        seed: args.seed,
    };
    let bar = ui.progress(spec.images as u64, "generating");
    let written =
        data::generate(&args.out, &spec, &formats, &args.write.options(), args.masks, &|| bar.inc(1))
            .map_err(|e| Failure::Failed(format!("{e:#}")))?;
    bar.finish_and_clear();
    ui.document(&serde_json::json!({ "out": args.out, "images": spec.images, "written": written }))?;
    if !ui.json {
        for set in &written {
            match &set.error {
                None => ui.say(format!("{:<14}{}", set.format, set.path.display())),
                Some(e) => ui.say(format!("{:<14}not written: {e}", set.format)),
            }
        }
    }
    if written.iter().all(|set| set.error.is_some()) {
        return Err(Failure::Failed("no format could hold these images".to_owned()));
    }
    Ok(())
}
