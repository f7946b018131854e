//! The metadata of an image beside its pixels.

use serde::{Deserialize, Serialize};

/// One channel: what was stained and how it was seen. Empty or absent fields are unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    /// Identifier, unique in the image, such as `ch-0` or `Channel:0:0`.
    pub id: String,
    /// Name people use, such as `DAPI`.
    pub name: String,
    /// Emission wavelength in micrometres.
    pub emission_um: Option<f64>,
    /// Excitation wavelength in micrometres.
    pub excitation_um: Option<f64>,
    /// How the light got there, such as `Epifluorescence`.
    pub illumination: Option<String>,
    /// Display colour as `0xRRGGBBAA`.
    pub color_rgba: Option<u32>,
}

/// Physical size of one pixel along an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhysicalSize {
    /// Length in `unit`.
    pub value: f64,
    /// Unit as OME writes it, such as `µm`; empty where nobody says which.
    pub unit: String,
}

/// Time from one time point to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeIncrement {
    /// Time in `unit`.
    pub value: f64,
    /// Unit as OME writes it, such as `s`; empty where nobody says which.
    pub unit: String,
}

/// The metadata of one image beside shape, dtype and pixels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImageMetadata {
    /// Identifier; often equal to the name.
    pub id: String,
    /// Name: of the image in a table, of the file (without its extension) in a folder.
    pub name: String,
    /// Channels in the order of the C axis; may be empty when unknown.
    pub channels: Vec<Channel>,
    /// Size of a pixel along X.
    pub physical_size_x: Option<PhysicalSize>,
    /// Size of a pixel along Y.
    pub physical_size_y: Option<PhysicalSize>,
    /// Size of a pixel along Z.
    pub physical_size_z: Option<PhysicalSize>,
    /// Time between time points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_increment: Option<TimeIncrement>,
    /// Acquisition time, ISO 8601 (`2026-11-21T05:38:56.401079`, with zone if known).
    pub acquired: Option<String>,
}

impl ImageMetadata {
    /// Metadata with nothing but a name, which is also the id.
    pub fn named(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { id: name.clone(), name, ..Self::default() }
    }
}
