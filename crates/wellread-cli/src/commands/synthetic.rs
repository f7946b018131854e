//! The options of synthetic images, which `generate` and `bench` share, with the same defaults.

use super::{default_jobs, parse_positive, parse_size};
use crate::output::{Failure, Outcome, bytes as human_bytes};
use std::path::Path;
use std::str::FromStr;
use wellread_bench::data::SetSpec;
use wellread_image::synthetic::Kind;
use wellread_image::{PixelType, Shape};
use wellread_measure::environment::{Environment, Storage};
use wellread_store::words::counted;

/// Height and width of the fields of a plate.
const PLATE_SIZE: Size = Size { height: 256, width: 256 };
/// Channels of a plate: Cell Painting's stains.
const PLATE_CHANNELS: usize = 5;

/// Options that say how images are made: all but the seed, which other random choices have too.
pub const GENERATED: [&str; 7] = ["images", "size", "channels", "depth", "time", "dtype", "kind"];

/// Synthetic images.
#[derive(clap::Args)]
pub struct SyntheticArgs {
    /// Number of generated images.
    #[arg(long, default_value_t = SetSpec::default().images, value_parser = parse_positive)]
    images: usize,
    /// Height and width of an image; by default 100x100, of a plate 256x256.
    #[arg(long, value_name = "HxW")]
    size: Option<Size>,
    /// Channels of an image; by default 1, of a plate 5.
    #[arg(long, value_parser = parse_positive)]
    channels: Option<usize>,
    /// Planes of an image along Z.
    #[arg(long, default_value_t = SetSpec::default().shape.z(), value_parser = parse_positive)]
    depth: usize,
    /// Time points of an image.
    #[arg(long, default_value_t = SetSpec::default().shape.t(), value_parser = parse_positive)]
    time: usize,
    /// Pixel type: uint8, int8, uint16, int16, uint32, int32, float32, float64.
    #[arg(long, default_value_t = SetSpec::default().dtype)]
    dtype: PixelType,
    /// Content of the images: cells looks and compresses like fluorescence microscopy, noise is uniform.
    #[arg(long, value_enum, default_value_t = KindArg::from(SetSpec::default().kind))]
    kind: KindArg,
    /// Seed of the images, and of every other random choice.
    #[arg(long, default_value_t = SetSpec::default().seed)]
    pub seed: u64,
}

impl SyntheticArgs {
    /// The set that is asked for.
    pub fn spec(&self) -> Outcome<SetSpec> {
        let one = SetSpec::default().shape;
        self.checked(self.images, Size::of(one), one.c())
    }

    /// The sites of a plate, as a set.
    pub fn spec_of_plate(&self, sites: usize) -> Outcome<SetSpec> {
        self.checked(sites, PLATE_SIZE, PLATE_CHANNELS)
    }

    /// As is asked for, or else of this size and so many channels.
    fn checked(&self, images: usize, size: Size, channels: usize) -> Outcome<SetSpec> {
        let Size { height, width } = self.size.unwrap_or(size);
        let shape = Shape([self.time, self.channels.unwrap_or(channels), self.depth, height, width]);
        let bytes = shape.checked_bytes(self.dtype).map_err(|_| {
            Failure::Usage(format!(
                "images of {shape} (TCZYX) of {} are too large: more than wellread accepts for one image (1 TiB); choose \
                 smaller ones",
                self.dtype
            ))
        })?;
        // An image being made is floats, and several threads make one each; what is written waits beside them.
        let needed = (shape.pixels() as f64 * 16.0 + bytes as f64) * images.min(default_jobs()) as f64;
        let memory = Environment::capture::<&Path>(&[]).free_memory();
        if let Some(available) = memory.filter(|&available| needed > available as f64) {
            return Err(Failure::Usage(format!(
                "making images of {shape} (TCZYX) takes about {} of memory, {} are available; choose smaller images",
                human_bytes(needed as u64),
                human_bytes(available)
            )));
        }
        Ok(SetSpec { images, shape, dtype: self.dtype, kind: self.kind.into(), seed: self.seed })
    }
}

/// Refuses `sets` copies of a set that cannot fit on the disk of `out`, however well they compress.
pub fn check_disk(spec: &SetSpec, sets: usize, out: &Path) -> Outcome {
    let pixels = spec.images as f64 * spec.shape.pixels() as f64 * spec.dtype.size() as f64;
    // Cell images compress to a half or third; four leaves doubtful cases to the disk itself.
    let least = pixels * sets as f64 / 4.0;
    let folder = out.ancestors().find(|p| p.is_dir()).unwrap_or(Path::new("."));
    let free = Storage::of(folder).and_then(|s| s.free_bytes);
    match free.filter(|&free| least > free as f64) {
        Some(free) => Err(Failure::Failed(format!(
            "{}: {}, written {}, need {} at least, {} are free (hint: fewer or smaller images, or fewer formats)",
            out.display(),
            counted(spec.images, "image"),
            counted(sets, "time"),
            human_bytes(least as u64),
            human_bytes(free)
        ))),
        None => Ok(()),
    }
}

/// Height and width as `HxW`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    height: usize,
    width: usize,
}

impl Size {
    fn of(shape: Shape) -> Self {
        Self { height: shape.y(), width: shape.x() }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_size(text).map(|(height, width)| Self { height, width })
    }
}

/// [`Kind`] on the command line.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum KindArg {
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

impl From<Kind> for KindArg {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Cells => Self::Cells,
            Kind::Noise => Self::Noise,
        }
    }
}
