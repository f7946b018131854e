//! OME metadata of a Zarr group: `zarr.json` (0.5) or `.zattrs` (0.4 and older), and what it says about an image.
//!
//! Only what reading needs is parsed strictly; display settings (`omero`) are taken as far as they make sense,
//! because writers differ in them.

use super::metadata_file::{malformed, parse, read_if_exists};
use super::units::symbol;
use crate::{Error, Result, place, words};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Component, Path, PathBuf};
use wellread_image::{Channel, ImageMetadata, PhysicalSize, TimeIncrement};

/// The OME part of a group's attributes; which fields are present says what the group is.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Ome {
    version: Option<Value>,
    pub multiscales: Option<Vec<Multiscale>>,
    omero: Option<Value>,
    pub plate: Option<Plate>,
    pub well: Option<Well>,
    #[serde(rename = "bioformats2raw.layout")]
    pub bioformats2raw: Option<Value>,
    pub series: Option<Vec<String>>,
    pub wellread: Option<Value>,
}

/// One multiscale image: axes and one dataset (array) per level.
#[derive(Debug, Deserialize)]
pub(super) struct Multiscale {
    axes: Option<Vec<Axis>>,
    pub datasets: Vec<Dataset>,
    #[serde(rename = "coordinateTransformations")]
    transformations: Option<Vec<Transformation>>,
    version: Option<Value>,
}

/// An axis: an object since 0.4, a bare name in 0.3.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Axis {
    Named(String),
    Full {
        name: String,
        #[serde(rename = "type")]
        kind: Option<String>,
        unit: Option<String>,
    },
}

#[derive(Debug, Deserialize)]
pub(super) struct Dataset {
    pub path: String,
    #[serde(rename = "coordinateTransformations")]
    transformations: Option<Vec<Transformation>>,
}

#[derive(Debug, Deserialize)]
struct Transformation {
    #[serde(rename = "type")]
    kind: String,
    scale: Option<Vec<Value>>,
}

/// An HCS plate: where its wells are.
#[derive(Debug, Deserialize)]
pub(super) struct Plate {
    pub wells: Vec<PathEntry>,
    pub name: Option<Value>,
    pub acquisitions: Option<Value>,
}

/// A well of a plate: its fields of view.
#[derive(Debug, Deserialize)]
pub(super) struct Well {
    pub images: Vec<PathEntry>,
}

/// A relative path to a subgroup; of a field of view, also the run of the microscope that it is of.
#[derive(Debug, Deserialize)]
pub(super) struct PathEntry {
    pub path: String,
    pub acquisition: Option<Value>,
}

/// A group's metadata with the file it came from.
#[derive(Debug)]
pub(super) struct Group {
    /// The metadata file, for messages.
    pub file: PathBuf,
    /// Zarr version: 2 or 3.
    pub zarr: u8,
    pub ome: Ome,
}

#[derive(Deserialize)]
struct V3Group {
    zarr_format: Option<Value>,
    node_type: Option<String>,
    #[serde(default)]
    attributes: V3Attributes,
}

/// `.zgroup`, which says no more than this.
#[derive(Deserialize)]
struct V2Group {
    zarr_format: Option<Value>,
}

#[derive(Default, Deserialize)]
struct V3Attributes {
    ome: Option<Ome>,
    wellread: Option<Value>,
}

/// The facts that one level of an image needs from its group: its array, and its dimensions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Path of the array below the group.
    pub dataset: String,
    /// TCZYX axis of each array dimension; `None` when the metadata names no axes (before 0.3: always five).
    pub axes: Option<Vec<usize>>,
    /// Whether its writer says that no chunk is left out: one that is missing was lost.
    pub complete: bool,
}

/// The metadata files of a group, as they are.
#[derive(Debug)]
pub(super) enum GroupText {
    /// `zarr.json`.
    V3(Vec<u8>),
    /// `.zgroup` and `.zattrs`, where they are there.
    V2 { group: Option<Vec<u8>>, attributes: Option<Vec<u8>> },
}

impl GroupText {
    /// Reads the metadata files of the group in folder `dir`.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn read(dir: &Path) -> Result<Self> {
        if let Some(bytes) = read_if_exists(&dir.join("zarr.json"))? {
            return Ok(Self::V3(bytes));
        }
        let group = read_if_exists(&dir.join(".zgroup"))?;
        Ok(Self::V2 { group, attributes: read_if_exists(&dir.join(".zattrs"))? })
    }

    /// Zarr version: 2 or 3.
    pub const fn zarr(&self) -> u8 {
        match self {
            Self::V3(_) => 3,
            Self::V2 { .. } => 2,
        }
    }

    /// Parses them. `dir` is where they were read.
    ///
    /// # Errors
    /// No metadata file, malformed JSON, or a Zarr array instead of a group.
    pub fn parse(&self, dir: &Path) -> Result<Group> {
        let (group, attributes) = match self {
            Self::V3(bytes) => {
                let file = dir.join("zarr.json");
                let parsed: V3Group = parse(&file, bytes)?;
                check_format(parsed.zarr_format.as_ref(), 3).map_err(|cause| malformed(&file, cause))?;
                if parsed.node_type.as_deref() == Some("array") {
                    return Err(bare_array(dir));
                }
                let mut ome = parsed.attributes.ome.unwrap_or_default();
                ome.wellread = parsed.attributes.wellread;
                return Ok(Group { file, zarr: 3, ome });
            }
            Self::V2 { group, attributes } => (group, attributes),
        };
        let file = dir.join(".zgroup");
        if let Some(bytes) = group {
            let parsed: V2Group = parse(&file, bytes)?;
            check_format(parsed.zarr_format.as_ref(), 2).map_err(|cause| malformed(&file, cause))?;
        }
        if let Some(bytes) = attributes {
            let file = dir.join(".zattrs");
            return Ok(Group { zarr: 2, ome: parse(&file, bytes)?, file });
        }
        if place::exists(&dir.join(".zarray")) {
            return Err(bare_array(dir));
        }
        if group.is_some() {
            return Ok(Group { file, zarr: 2, ome: Ome::default() });
        }
        let error = if place::is_folder(dir) {
            Error::new(dir, "holds no Zarr metadata (neither zarr.json nor .zattrs)")
        } else {
            Error::new(dir, "there is no such folder")
        };
        Err(error.hint("the image is incomplete or is no OME-Zarr; copy or write it again"))
    }
}

impl Group {
    /// Reads the metadata of the group in folder `dir`.
    ///
    /// # Errors
    /// No metadata file, unreadable or malformed JSON, or a Zarr array instead of a group.
    pub fn load(dir: &Path) -> Result<Self> {
        GroupText::read(dir)?.parse(dir)
    }

    /// Array and axes of resolution level `level`.
    ///
    /// # Errors
    /// No multiscales, no such level (the message says how many there are), axes that are not images', or a
    /// dataset path that leaves the group.
    pub fn level(&self, level: usize) -> Result<Level> {
        let image = self.multiscale()?;
        let dataset = image.datasets.get(level).ok_or_else(|| {
            let n = image.datasets.len();
            let cause = format_args!("level {level} was asked for, but {}", words::there_are(n, "level"));
            let error = Error::new(&self.file, cause);
            if n > 0 { error.choice() } else { error }.hint(match n {
                0 => "the multiscales metadata lists no datasets; write the image again".to_owned(),
                1 => "use level 0, full resolution".to_owned(),
                n => format!("use a level from 0 (full resolution) to {}", n - 1),
            })
        })?;
        inside(&self.file, &dataset.path)?;
        let complete = self.ome.wellread.as_ref().is_some_and(|kept| kept["complete"] == true);
        Ok(Level { dataset: dataset.path.clone(), axes: self.axes(image)?, complete })
    }

    fn multiscale(&self) -> Result<&Multiscale> {
        self.ome.multiscales.as_ref().and_then(|m| m.first()).ok_or_else(|| {
            let what = if self.ome.plate.is_some() {
                "is a plate, not an image"
            } else if self.ome.well.is_some() {
                "is a well, not an image"
            } else if self.ome.bioformats2raw.is_some() {
                "is a bioformats2raw series, not an image"
            } else {
                "has no multiscales metadata, so it is no OME-Zarr image"
            };
            Error::new(&self.file, what).hint("give the path of that group itself, or of an OME-Zarr image")
        })
    }

    fn axes(&self, image: &Multiscale) -> Result<Option<Vec<usize>>> {
        let Some(axes) = &image.axes else { return Ok(None) };
        let mut found = Vec::with_capacity(axes.len());
        for axis in axes {
            let (name, kind) = match axis {
                Axis::Named(name) => (name, None),
                Axis::Full { name, kind, .. } => (name, kind.as_deref()),
            };
            let index = match (name.to_ascii_lowercase().as_str(), kind) {
                ("t", _) | (_, Some("time")) => 0,
                ("c", _) | (_, Some("channel")) => 1,
                ("z", _) => 2,
                ("y", _) => 3,
                ("x", _) => 4,
                _ => {
                    return Err(Error::new(
                        &self.file,
                        format_args!("axis {name:?} is none of t, c, z, y, x"),
                    ));
                }
            };
            if found.contains(&index) {
                return Err(Error::new(&self.file, format_args!("axis {name:?} is there twice")));
            }
            found.push(index);
        }
        if found.contains(&3) && found.contains(&4) {
            Ok(Some(found))
        } else {
            Err(Error::new(&self.file, "the axes lack y or x, so this is no image"))
        }
    }

    /// OME-Zarr version as declared, or by the Zarr version where it is not.
    pub fn version(&self) -> String {
        let declared = self.ome.version.as_ref().or_else(|| {
            self.ome.multiscales.as_ref().and_then(|m| m.first()).and_then(|m| m.version.as_ref())
        });
        match declared.and_then(Value::as_str) {
            Some(version) => version.to_owned(),
            None => if self.zarr == 3 { "0.5" } else { "0.4" }.to_owned(),
        }
    }

    /// The image's name where wellread wrote it. Other writers mostly put something else there.
    pub fn own_name(&self) -> Option<&str> {
        self.ome.wellread.as_ref()?.get("name")?.as_str()
    }

    /// Channels, physical sizes at `level`, and the metadata that wellread's own writer kept beside them.
    pub fn metadata(&self, name: &str, level: usize) -> Result<ImageMetadata> {
        let image = self.multiscale()?;
        let mut metadata = ImageMetadata::named(name);
        metadata.channels = self.channels();
        if let Some(kept) = &self.ome.wellread
            && let Some(kept) = kept.get("image")
            && let Ok(kept) = ImageMetadata::deserialize(kept)
        {
            metadata.id = kept.id;
            metadata.acquired = kept.acquired;
            metadata.channels = kept.channels;
        }
        let axes = self.axes(image)?.unwrap_or_else(|| (0..5).collect());
        let transformations =
            image.datasets.get(level).and_then(|d| d.transformations.as_deref()).unwrap_or_default();
        for (dimension, axis) in axes.iter().enumerate() {
            let Some(Axis::Full { unit, .. }) = image.axes.as_ref().and_then(|a| a.get(dimension)) else {
                continue;
            };
            let value: f64 = transformations
                .iter()
                .chain(image.transformations.iter().flatten())
                .filter(|t| t.kind == "scale")
                .filter_map(|t| Some(t.scale.as_ref()?.get(dimension)?.as_f64().unwrap_or(f64::NAN)))
                .product();
            let unit = unit.as_deref().map_or("", symbol).to_owned();
            // Every axis has a scale: 1 without a unit says nothing.
            if !(value.is_finite() && value > 0.0) || unit.is_empty() && value == 1.0 {
                continue;
            }
            let size = Some(PhysicalSize { value, unit: unit.clone() });
            match axis {
                0 => metadata.time_increment = Some(TimeIncrement { value, unit }),
                2 => metadata.physical_size_z = size,
                3 => metadata.physical_size_y = size,
                4 => metadata.physical_size_x = size,
                _ => {}
            }
        }
        Ok(metadata)
    }

    fn channels(&self) -> Vec<Channel> {
        let listed = self.ome.omero.as_ref().and_then(|o| o.get("channels")).and_then(Value::as_array);
        let Some(listed) = listed else { return vec![] };
        let text = |c: &Value, key: &str| c.get(key).and_then(Value::as_str).map(str::to_owned);
        listed
            .iter()
            .enumerate()
            .map(|(i, c)| Channel {
                id: format!("Channel:0:{i}"),
                name: text(c, "label").unwrap_or_default(),
                color_rgba: text(c, "color").and_then(|color| parse_color(&color)),
                ..Channel::default()
            })
            .collect()
    }
}

/// `RRGGBB` (opaque) or `RRGGBBAA`, with or without `#`.
fn parse_color(text: &str) -> Option<u32> {
    let text = text.trim_start_matches('#');
    let value = u32::from_str_radix(text, 16).ok()?;
    match text.len() {
        6 => Some(value << 8 | 0xff),
        8 => Some(value),
        _ => None,
    }
}

/// Refuses a relative path that could lead out of its group.
pub(super) fn inside(file: &Path, path: &str) -> Result<()> {
    let fine = !path.is_empty()
        && Path::new(path).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if fine { Ok(()) } else { Err(Error::new(file, format_args!("the path {path:?} leaves its group"))) }
}

/// Whether metadata are of the version of Zarr that their file's name stands for.
pub(super) fn check_format(found: Option<&Value>, expected: u64) -> Result<(), String> {
    match found {
        Some(found) if found.as_u64() == Some(expected) => Ok(()),
        Some(found) => Err(format!("zarr_format is {found}, where only {expected} can be")),
        None => Err("zarr_format is missing".to_owned()),
    }
}

fn bare_array(dir: &Path) -> Error {
    Error::new(dir, "is a bare Zarr array, not an OME-Zarr image")
        .hint("give the group above it, whose metadata has multiscales")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_paths() {
        assert_eq!(parse_color("FF8000"), Some(0xff80_00ff));
        assert_eq!(parse_color("#ff800010"), Some(0xff80_0010));
        assert_eq!(parse_color("red"), None);
        let file = Path::new("x");
        assert!(inside(file, "s0").is_ok() && inside(file, "A/1/0").is_ok());
        assert!(inside(file, "../s0").is_err() && inside(file, "/etc").is_err() && inside(file, "").is_err());
    }
}
