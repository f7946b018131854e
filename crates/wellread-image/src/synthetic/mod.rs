//! Generated images: fluorescence-like cells with ground-truth masks, and uniform noise.
//!
//! ```text
//!  (seed, row) ──scene──▶ cells: outlines, nuclei, nucleoli, drift      once per image; changed by a compound (`treated`)
//!              ──render─▶ geometry of one (t, z): owner, depth in cell    once per (t, z), gives the masks
//!                       ▶ light of one channel: structures and texture    once per plane
//!              ──camera─▶ haze, PSF, illumination, shot and read noise, offset ▶ 16-bit counts ▶ dtype
//! ```
//!
//! An image depends on its [`Spec`] and its row, on nothing else: not on threads, order or platform. So no
//! function of the platform's mathematics library is called here, only `+ - * /` and `sqrt`, which IEEE 754
//! defines to the last bit. Every image has its own ChaCha8 stream.
//!
//! ```
//! use wellread_image::{PixelType, Shape, synthetic::{Kind, Spec, image}};
//!
//! let spec = Spec { kind: Kind::Cells, shape: Shape::plane(64, 64), dtype: PixelType::U16, seed: 0 };
//! let cells = image(&spec, 12)?;
//! assert_eq!(cells.metadata.name, "cells-000012");
//! assert!(cells.mask.is_some_and(|labels| labels.iter().any(|&label| label > 0)));
//! # Ok::<(), wellread_image::ShapeError>(())
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | [`Spec`], [`image`], [`treated`], conversion of camera counts to the pixel type |
//! | `random.rs` | random numbers and smooth noise |
//! | `outline.rs` | closed curves around a centre: nuclei and cell borders |
//! | `scene.rs` | where cells are and what they are like |
//! | `render.rs` | light of each channel before the microscope |
//! | `camera.rs` | what microscope and camera make of it |

mod camera;
mod outline;
mod random;
mod render;
mod scene;
#[cfg(test)]
mod tests;

use crate::{Channel, ImageMetadata, PhysicalSize, PixelType, Shape, ShapeError};
use random::Random;
use render::Stain;
use scene::Scene;
use serde::{Deserialize, Serialize};

/// The content to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Fluorescence microscopy of cultured cells: nuclei, cytoplasm, optics, noise; with masks.
    Cells,
    /// Uniform noise over the whole range of the pixel type (`[0, 1)` for floats). It does not compress.
    Noise,
}

impl Kind {
    /// The name on the command line and in image names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cells => "cells",
            Self::Noise => "noise",
        }
    }
}

/// A set of images that differ only by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The content.
    pub kind: Kind,
    /// TCZYX size of every image.
    pub shape: Shape,
    /// Pixel type of every image.
    pub dtype: PixelType,
    /// Sets with different seeds have nothing in common.
    pub seed: u64,
}

/// One generated image.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticImage {
    /// Pixels in TCZYX order, C-contiguous, little-endian.
    pub pixels: Vec<u8>,
    /// Name (`cells-000012`), channels, physical sizes.
    pub metadata: ImageMetadata,
    /// Nuclei, for `Cells`: one Y x X plane for each T and Z, in TZYX order; 0 is background. A nucleus has the
    /// same label, which is that of its cell, wherever and whenever it is seen; labels need not be consecutive.
    pub mask: Option<Vec<u16>>,
    /// Whole cells, nucleus included: as `mask`.
    pub cell_mask: Option<Vec<u16>>,
}

/// Micrometres per pixel along X and Y: JUMP's 20x images have 0.6.
const PIXEL_UM: f64 = 0.6;

/// Generates the image of one row.
///
/// # Errors
/// [`ShapeError`] for an empty or absurdly large shape.
pub fn image(spec: &Spec, row: u64) -> Result<SyntheticImage, ShapeError> {
    treated(spec, row, 0.0)
}

/// The image of one row, whose cells a compound has changed: nuclei shrink and condense, actin and the Golgi apparatus brighten,
/// mitochondria fade. `effect` is from 0, which is [`image`], to 1; noise has no cells and stays as it is.
///
/// # Errors
/// As [`image`].
pub fn treated(spec: &Spec, row: u64, effect: f32) -> Result<SyntheticImage, ShapeError> {
    let bytes = spec.shape.checked_bytes(spec.dtype)?;
    let mut metadata = ImageMetadata::named(format!("{}-{row:06}", spec.kind.name()));
    let size = |value| Some(PhysicalSize { value, unit: "µm".to_owned() });
    metadata.physical_size_x = size(PIXEL_UM);
    metadata.physical_size_y = size(PIXEL_UM);
    Ok(match spec.kind {
        Kind::Noise => {
            metadata.channels = (0..spec.shape.c())
                .map(|c| Channel {
                    id: format!("Channel:0:{c}"),
                    name: format!("Noise {c}"),
                    ..Channel::default()
                })
                .collect();
            SyntheticImage { pixels: noise(spec, row, bytes), metadata, mask: None, cell_mask: None }
        }
        Kind::Cells => {
            metadata.channels = (0..spec.shape.c()).map(channel).collect();
            if spec.shape.z() > 1 {
                metadata.physical_size_z = size(scene::z_step_um(spec.shape.z()));
            }
            let (pixels, mask, cell_mask) = cells(spec, row, bytes, effect);
            SyntheticImage { pixels, metadata, mask: Some(mask), cell_mask: Some(cell_mask) }
        }
    })
}

/// Cell Painting's five stains, over and over.
fn channel(c: usize) -> Channel {
    let stain = Stain::of(c);
    let (excitation, emission, color) = match stain {
        Stain::Dna => (0.375, 0.461, 0x0000_FFFF),
        Stain::Er => (0.488, 0.525, 0x00FF_00FF),
        Stain::Rna => (0.531, 0.593, 0xFFFF_00FF),
        Stain::Agp => (0.561, 0.617, 0xFF80_00FF),
        Stain::Mito => (0.640, 0.692, 0xFF00_00FF),
    };
    let round = c / Stain::ALL.len();
    Channel {
        id: format!("Channel:0:{c}"),
        name: if round == 0 { stain.name().to_owned() } else { format!("{} {}", stain.name(), round + 1) },
        emission_um: Some(emission),
        excitation_um: Some(excitation),
        illumination: Some("Epifluorescence".to_owned()),
        color_rgba: Some(color),
    }
}

fn noise(spec: &Spec, row: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(spec.seed, row, 0);
    let mut pixels = vec![0; bytes];
    // Bits without pattern are uniform integers of any width and sign.
    random.fill(&mut pixels);
    match spec.dtype {
        PixelType::F32 => {
            for pixel in pixels.as_chunks_mut::<4>().0 {
                let value = (u32::from_le_bytes(*pixel) >> 8) as f32 / (1u32 << 24) as f32;
                *pixel = value.to_le_bytes();
            }
        }
        PixelType::F64 => {
            for pixel in pixels.as_chunks_mut::<8>().0 {
                let value = (u64::from_le_bytes(*pixel) >> 11) as f64 / (1u64 << 53) as f64;
                *pixel = value.to_le_bytes();
            }
        }
        _ => {}
    }
    pixels
}

/// Pixels, nuclei and cells.
fn cells(spec: &Spec, row: u64, bytes: usize, effect: f32) -> (Vec<u8>, Vec<u16>, Vec<u16>) {
    let [t, c, z, y, x] = spec.shape.0;
    let plane = y * x;
    let plane_bytes = plane * spec.dtype.size();
    let mut random = Random::new(spec.seed, row, 0);
    let mut scene = Scene::new(&mut random, y, x, z);
    if effect > 0.0 {
        scene.apply_treatment(effect.min(1.0));
    }
    let microscope = camera::Microscope::new(&mut random, &scene);
    let mut pixels = vec![0; bytes];
    let mut mask = Vec::with_capacity(t * z * plane);
    let mut cell_mask = Vec::with_capacity(t * z * plane);
    let mut geometry = render::Geometry::new(&scene);
    let mut light = vec![0.0; plane];
    for at_t in 0..t {
        for at_z in 0..z {
            geometry.draw(&scene, at_t, at_z);
            geometry.label(&mut mask, &mut cell_mask);
            for at_c in 0..c {
                geometry.shade(&scene, at_c, &mut light);
                let index = (at_t * c + at_c) * z + at_z;
                // Each plane has its own stream of camera noise.
                let mut noise = Random::new(spec.seed, row, 1 + index as u64);
                let counts = microscope.take(&mut light, at_c, at_t, geometry.defocus(), &mut noise);
                let start = index * plane_bytes;
                digitise(counts, spec.dtype, &mut pixels[start..start + plane_bytes]);
            }
        }
    }
    (pixels, mask, cell_mask)
}

/// Counts that saturate an 8-bit image.
const EIGHT_BIT_WELL: u16 = (1 << 14) - 1;

/// 16-bit counts in another type: scaled to its range from 0 on, `[0, 1]` for floats.
///
/// Cells fill a small part of a 16-bit camera's range, which in 8 bits would be nearly black. So 8-bit images
/// are exposed as an 8-bit camera would be: four times longer, the few brightest pixels saturated.
fn digitise(counts: impl Iterator<Item = u16>, dtype: PixelType, pixels: &mut [u8]) {
    fn put<const N: usize>(
        counts: impl Iterator<Item = u16>,
        pixels: &mut [u8],
        value: impl Fn(u16) -> [u8; N],
    ) {
        for (pixel, count) in pixels.as_chunks_mut::<N>().0.iter_mut().zip(counts) {
            *pixel = value(count);
        }
    }
    match dtype {
        PixelType::U8 => put(counts, pixels, |n| [(n.min(EIGHT_BIT_WELL) >> 6) as u8]),
        PixelType::I8 => put(counts, pixels, |n| [(n.min(EIGHT_BIT_WELL) >> 7) as u8]),
        PixelType::U16 => put(counts, pixels, u16::to_le_bytes),
        PixelType::I16 => put(counts, pixels, |n| (n >> 1).to_le_bytes()),
        // Times 65,537: the largest count becomes the largest value.
        PixelType::U32 => put(counts, pixels, |n| (u32::from(n) << 16 | u32::from(n)).to_le_bytes()),
        PixelType::I32 => put(counts, pixels, |n| (u32::from(n) << 15 | u32::from(n) >> 1).to_le_bytes()),
        PixelType::F32 => put(counts, pixels, |n| (f32::from(n) / f32::from(u16::MAX)).to_le_bytes()),
        PixelType::F64 => put(counts, pixels, |n| (f64::from(n) / f64::from(u16::MAX)).to_le_bytes()),
    }
}
