//! The facts of one image in the tables, and of its chunks.

use crate::RowInfo;
use serde_json::Value;
use std::sync::Arc;
use wellread_image::ome_arrow::UNKNOWN_ILLUMINATION;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, Region, Shape};

/// One image.
#[derive(Debug)]
pub(super) struct Image {
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// Shape and type, or why they cannot be told.
    pub info: Result<RowInfo, String>,
    pub channels: Arc<str>,
    pub layout: Arc<str>,
    pub physical: [Option<f64>; 3],
    pub acquired: Option<Arc<str>>,
    /// Its chunks in the list of all.
    pub chunks: std::ops::Range<usize>,
}

/// Where one chunk is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub image: u32,
    pub id: i64,
    pub group: u32,
    pub start: [u32; 5],
    pub size: [u32; 5],
}

impl Chunk {
    /// Its box of pixels in the image.
    pub fn region(&self) -> Region {
        Region { start: self.start.map(|n| n as usize), size: self.size.map(|n| n as usize) }
    }
}

/// Whether chunks lie inside the image, differ in place, and have as many pixels as it together.
pub(super) fn check_tiling(shape: Shape, chunks: &[Chunk]) -> Result<(), String> {
    let mut pixels = 0usize;
    let mut starts: Vec<[u32; 5]> = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let region = chunk.region();
        if !region.fits(shape) || region.size.contains(&0) {
            return Err(format!(
                "chunk {} ({:?} at {:?}, TCZYX) does not lie in the image of {shape}",
                chunk.id, region.size, region.start
            ));
        }
        pixels = pixels.saturating_add(region.pixels());
        starts.push(chunk.start);
    }
    starts.sort_unstable();
    if starts.windows(2).any(|w| w[0] == w[1]) {
        return Err("two chunks lie at the same place".to_owned());
    }
    if pixels != shape.pixels() {
        return Err(format!(
            "its {} chunks hold {pixels} pixels, the image of {shape} has {}",
            chunks.len(),
            shape.pixels()
        ));
    }
    Ok(())
}

impl Image {
    /// The metadata beside the pixels.
    pub fn metadata(&self) -> ImageMetadata {
        let size = |a: usize| self.physical[a].map(|value| PhysicalSize { value, unit: "µm".to_owned() });
        ImageMetadata {
            id: self.id.to_string(),
            name: self.name.to_string(),
            channels: channels_of(&self.channels),
            physical_size_x: size(0),
            physical_size_y: size(1),
            physical_size_z: size(2),
            time_increment: None,
            acquired: self.acquired.as_deref().map(str::to_owned),
        }
    }
}

/// Channels from their JSON; values that cannot be parsed are left out. As in the OME-Arrow struct, a wavelength of
/// zero and an illumination "Unknown" are what nobody stated.
fn channels_of(json: &str) -> Vec<Channel> {
    let Ok(Value::Array(list)) = serde_json::from_str(json) else { return vec![] };
    let text = |v: &Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    let wavelength = |v: &Value, key: &str| v[key].as_f64().filter(|um| um.is_finite() && *um > 0.0);
    list.iter()
        .map(|v| Channel {
            id: text(v, "id"),
            name: text(v, "name"),
            emission_um: wavelength(v, "emission_um"),
            excitation_um: wavelength(v, "excitation_um"),
            illumination: Some(text(v, "illumination"))
                .filter(|t| !t.is_empty() && t != UNKNOWN_ILLUMINATION),
            color_rgba: v["color_rgba"].as_i64().map(|c| c as u32),
        })
        .collect()
}
