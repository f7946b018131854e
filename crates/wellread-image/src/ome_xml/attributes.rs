//! The attributes of an element, and their values: sizes, types, channels, blocks of planes.

use super::units::{canonical_time_unit, canonical_unit, micrometres};
use super::{DimensionOrder, OmeImage, OmeXmlError, TiffData};
use crate::{Channel, ImageMetadata, PhysicalSize, PixelType, Shape, TimeIncrement};
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::BytesStart;
use std::str::FromStr;

/// Most channels that a header may declare; more is taken as corruption.
const MAX_CHANNELS: usize = 1 << 14;

/// The attributes of one element, by local name.
pub(super) struct Attributes<'a> {
    image: usize,
    values: Vec<(&'a str, String)>,
}

impl<'a> Attributes<'a> {
    pub(super) fn of(start: &'a BytesStart<'_>, position: u64, image: usize) -> Result<Self, OmeXmlError> {
        let mut values = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|e| syntax(position, &e))?;
            let value = attribute
                .normalized_value_with(XmlVersion::Explicit1_0, 1, entity)
                .map_err(|e| syntax(position, &e))?;
            values.push((attribute.key.local_name().into_inner(), value.into_owned()));
        }
        Ok(Self { image, values })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).filter(|value| !value.is_empty()).map(str::to_owned)
    }

    /// A positive, finite number; anything else counts as unknown.
    fn positive(&self, name: &str) -> Option<f64> {
        self.get(name)?.trim().parse().ok().filter(|v: &f64| v.is_finite() && *v > 0.0)
    }

    /// `attribute` is the name in error messages.
    fn parse<T: FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
        attribute: &'static str,
    ) -> Result<Option<T>, OmeXmlError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.trim().parse().map(Some).map_err(|e: T::Err| OmeXmlError::Invalid {
            image: self.image,
            attribute,
            value: shorten(value),
            cause: e.to_string(),
        })
    }

    pub(super) fn number(&self, name: &str, attribute: &'static str) -> Result<Option<usize>, OmeXmlError> {
        self.parse(name, attribute)
    }

    fn require<T>(&self, value: Option<T>, attribute: &'static str) -> Result<T, OmeXmlError> {
        value.ok_or(OmeXmlError::Missing { image: self.image, attribute })
    }

    pub(super) fn pixels(&self, file_uuid: Option<String>) -> Result<OmeImage, OmeXmlError> {
        let size = |name, attribute| self.require(self.number(name, attribute)?, attribute);
        let shape = Shape([
            size("SizeT", "Pixels/@SizeT")?,
            size("SizeC", "Pixels/@SizeC")?,
            size("SizeZ", "Pixels/@SizeZ")?,
            size("SizeY", "Pixels/@SizeY")?,
            size("SizeX", "Pixels/@SizeX")?,
        ]);
        // `PixelType` until 2009.
        let word = self.require(self.get("Type").or_else(|| self.get("PixelType")), "Pixels/@Type")?.trim();
        let (dtype, other_type) = match word.parse::<PixelType>() {
            Ok(dtype) => (dtype, None),
            // Masks of one bit are delivered as bytes.
            Err(_) if word.eq_ignore_ascii_case("bit") => (PixelType::U8, None),
            Err(_) => (PixelType::U8, Some(shorten(word))),
        };
        let order: Option<DimensionOrder> = self.parse("DimensionOrder", "Pixels/@DimensionOrder")?;
        let dimension_order = self.require(order, "Pixels/@DimensionOrder")?;
        shape.checked_bytes(dtype).map_err(|cause| OmeXmlError::Shape { image: self.image, cause })?;
        if shape.c() > MAX_CHANNELS {
            return Err(OmeXmlError::Invalid {
                image: self.image,
                attribute: "Pixels/@SizeC",
                value: shape.c().to_string(),
                cause: format!("more than {MAX_CHANNELS} channels; the header is probably corrupt"),
            });
        }
        Ok(OmeImage {
            metadata: ImageMetadata::default(),
            shape,
            dtype,
            other_type,
            dimension_order,
            samples_per_pixel: Vec::new(),
            planes: Vec::new(),
            has_exact_name: false,
            big_endian: match self.get("BigEndian").map(str::trim) {
                Some("true" | "1") => Some(true),
                Some("false" | "0") => Some(false),
                _ => None,
            },
            without_pages: false,
            file_uuid,
        })
    }

    pub(super) fn physical_size(&self, name: &str) -> Option<PhysicalSize> {
        let value = self.positive(name)?;
        let unit = match self.get(&format!("{name}Unit")) {
            Some(unit) => canonical_unit(unit).map_or_else(|| unit.trim().to_owned(), str::to_owned),
            None => "µm".to_owned(),
        };
        Some(PhysicalSize { value, unit })
    }

    pub(super) fn time_increment(&self) -> Option<TimeIncrement> {
        let value = self.positive("TimeIncrement")?;
        let unit = self.get("TimeIncrementUnit").unwrap_or("s");
        let unit = canonical_time_unit(unit).map_or_else(|| unit.trim().to_owned(), str::to_owned);
        Some(TimeIncrement { value, unit })
    }

    pub(super) fn channel(&self) -> Channel {
        // The short names are those of the schemas before 2009.
        let wavelength = |name: &str, short: &str| {
            let value = self.positive(name).or_else(|| self.positive(short))?;
            micrometres(value, self.get(&format!("{name}Unit")).unwrap_or("nm"))
        };
        Channel {
            id: self.text("ID").unwrap_or_default(),
            name: self.text("Name").unwrap_or_default(),
            emission_um: wavelength("EmissionWavelength", "EmWave"),
            excitation_um: wavelength("ExcitationWavelength", "ExWave"),
            illumination: self.text("IlluminationType"),
            color_rgba: self.color(),
        }
    }

    /// OME keeps 0xRRGGBBAA in a signed integer; some writers forget the sign.
    fn color(&self) -> Option<u32> {
        let value: i64 = self.get("Color")?.trim().parse().ok()?;
        i32::try_from(value).map(|v| v as u32).or_else(|_| u32::try_from(value)).ok()
    }

    pub(super) fn tiff_data(&self) -> Result<TiffData, OmeXmlError> {
        // `NumPlanes` is the name of `PlaneCount` in old schemas.
        let plane_count = match self.number("PlaneCount", "TiffData/@PlaneCount")? {
            None => self.number("NumPlanes", "TiffData/@NumPlanes")?,
            found => found,
        };
        Ok(TiffData {
            first_t: self.number("FirstT", "TiffData/@FirstT")?.unwrap_or(0),
            first_c: self.number("FirstC", "TiffData/@FirstC")?.unwrap_or(0),
            first_z: self.number("FirstZ", "TiffData/@FirstZ")?.unwrap_or(0),
            ifd: self.number("IFD", "TiffData/@IFD")?,
            plane_count,
            uuid: None,
            file_name: None,
        })
    }
}

pub(super) fn syntax(position: u64, cause: &dyn std::fmt::Display) -> OmeXmlError {
    OmeXmlError::Syntax { position, cause: cause.to_string() }
}

/// XML's five entities and the HTML ones that units are written with.
pub(super) fn entity(name: &str) -> Option<&'static str> {
    match name {
        "micro" | "mu" => Some("µ"),
        "Aring" | "angst" => Some("Å"),
        "nbsp" => Some("\u{a0}"),
        "deg" => Some("°"),
        _ => resolve_predefined_entity(name),
    }
}

pub(super) fn shorten(value: &str) -> String {
    const LONGEST: usize = 60;
    match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}
