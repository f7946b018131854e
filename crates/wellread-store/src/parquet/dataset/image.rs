//! The facts of one image in the tables, and of its chunks.

use crate::RowInfo;
use crate::ome_arrow::are_tiles;
use crate::words::counted_with;
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

/// Whether chunks cover the image exactly: they lie inside, and there is no gap and no overlap.
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
            "its {} {pixels} pixels, the image of {shape} has {}",
            counted_with(chunks.len(), "chunk", ["holds", "hold"]),
            shape.pixels()
        ));
    }
    if is_grid(shape, chunks) || are_tiles(chunks.iter().map(Chunk::region), shape) {
        return Ok(());
    }
    Err("its chunks overlap and leave gaps: they must cover the image".to_owned())
}

/// Whether chunks, which lie inside the image, are cells of one grid, as those of most images.
fn is_grid(shape: Shape, chunks: &[Chunk]) -> bool {
    let cell: [usize; 5] =
        std::array::from_fn(|a| chunks.iter().map(|chunk| chunk.size[a] as usize).max().unwrap_or(1));
    chunks.iter().map(Chunk::region).all(|Region { start, size }| {
        (0..5).all(|a| start[a] % cell[a] == 0 && size[a] == cell[a].min(shape.0[a] - start[a]))
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks of an image of one row per channel: channel, first pixel, channels and pixels.
    fn chunks(of: &[[u32; 4]]) -> Vec<Chunk> {
        let chunk = |(id, &[c, x, channels, width]): (usize, &[u32; 4])| Chunk {
            image: 0,
            id: id as i64,
            group: 0,
            start: [0, c, 0, 0, x],
            size: [1, channels, 1, 1, width],
        };
        of.iter().enumerate().map(chunk).collect()
    }

    #[test]
    fn chunks_cover_the_image() {
        let check = |of: &[[u32; 4]]| check_tiling(Shape([1, 2, 1, 1, 4]), &chunks(of));
        for covering in [
            &[[0, 0, 2, 4]][..],
            &[[1, 0, 1, 3], [0, 0, 1, 3], [0, 3, 1, 1], [1, 3, 1, 1]],
            // No grid.
            &[[0, 0, 1, 1], [0, 1, 1, 3], [1, 0, 1, 4]],
            &[[0, 0, 2, 1], [0, 1, 1, 3], [1, 1, 1, 3]],
        ] {
            assert_eq!(check(covering), Ok(()), "{covering:?}");
        }
        // They start at different places and have as many pixels as the image.
        for overlapping in [&[[0, 0, 2, 3], [0, 2, 2, 1]][..], &[[0, 0, 1, 4], [0, 1, 1, 3], [1, 0, 1, 1]]] {
            let why = check(overlapping).unwrap_err();
            assert!(why.contains("overlap and leave gaps"), "{overlapping:?}: {why}");
        }
        assert!(check(&[[0, 0, 2, 3]]).unwrap_err().contains("its 1 chunk holds 6 pixels"));
        assert!(check(&[[0, 0, 2, 5]]).unwrap_err().contains("does not lie in the image"));
        assert!(check(&[[0, 0, 2, 2], [0, 0, 2, 2]]).unwrap_err().contains("at the same place"));
    }
}
