//! The writer: OME-XML of the schema 2016-06.
//!
//! Values that the schema does not allow are replaced or left out, so that the result is always valid.
//! Examples are a channel id without its prefix, a unit it has no name for, a time that is no `xsd:dateTime`,
//! and a control character.

use super::units::{canonical_time_unit, canonical_unit};
use super::{NAMES, OmeImage, TiffData};
use crate::{Channel, ImageMetadata, PhysicalSize, TimeIncrement};
use std::collections::HashSet;
use std::fmt::Write;

const NAMESPACE: &str = "http://www.openmicroscopy.org/Schemas/OME/2016-06";
/// `Channel/@IlluminationType` of the schema. The writer has the last one in place of others.
pub const ILLUMINATION_TYPES: [&str; 5] = ["Transmitted", "Epifluorescence", "Oblique", "NonLinear", "Other"];

/// The OME-XML that describes these images, for the `ImageDescription` of the file's first page.
///
/// An image without `TiffData` blocks gets one that means all pages. Ids that the schema does not allow are
/// replaced by `Image:0`, `Channel:0:0` …; the names are kept. Reading the result gives the images back.
pub fn write(images: &[OmeImage]) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    xml.push_str("<OME");
    attribute(&mut xml, "xmlns", NAMESPACE);
    attribute(&mut xml, "xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance");
    attribute(&mut xml, "xsi:schemaLocation", &format!("{NAMESPACE} {NAMESPACE}/ome.xsd"));
    if let Some(uuid) = images.iter().find_map(|image| image.file_uuid.as_deref()) {
        attribute(&mut xml, "UUID", uuid);
    }
    attribute(&mut xml, "Creator", concat!("wellread ", env!("CARGO_PKG_VERSION")));
    xml.push('>');
    let image_ids = Ids::of("Image:", images.iter().map(|image| image.metadata.id.as_str()));
    let described = images.iter().flat_map(OmeImage::described_channels);
    let channel_ids =
        Ids::of("Channel:", described.map(|(_, _, channel)| channel.map_or("", |c| c.id.as_str())));
    for (index, image) in images.iter().enumerate() {
        write_image(&mut xml, index, image, &image_ids, &channel_ids);
    }
    write_names(&mut xml, images);
    xml.push_str("</OME>");
    xml
}

/// The names that attributes cannot hold, or that readers would trim.
fn write_names(xml: &mut String, images: &[OmeImage]) {
    let is_kept = |name: &str| !name.is_empty() && name.trim() == name && name.chars().all(is_xml_char);
    let names = images.iter().map(|image| image.metadata.name.as_str()).enumerate();
    let names: Vec<(usize, &str)> = names.filter(|(_, name)| !is_kept(name)).collect();
    if names.is_empty() {
        return;
    }
    // JSON escapes control characters; of what XML has not, these two remain.
    let json = serde_json::to_string(&names).unwrap_or_default();
    let json = json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff");
    xml.push_str("<StructuredAnnotations><CommentAnnotation");
    attribute(xml, "ID", "Annotation:0");
    attribute(xml, "Namespace", NAMES);
    xml.push_str("><Value>");
    escape(xml, &json);
    xml.push_str("</Value></CommentAnnotation></StructuredAnnotations>");
}

fn write_image(xml: &mut String, index: usize, image: &OmeImage, ids: &Ids, channel_ids: &Ids) {
    let metadata = &image.metadata;
    xml.push_str("<Image");
    attribute(xml, "ID", &ids.get(&metadata.id, || format!("Image:{index}")));
    if !metadata.name.is_empty() {
        attribute(xml, "Name", &metadata.name);
    }
    xml.push('>');
    if let Some(time) = metadata.acquired.as_deref().filter(|time| is_date_time(time)) {
        xml.push_str("<AcquisitionDate>");
        xml.push_str(time);
        xml.push_str("</AcquisitionDate>");
    }
    xml.push_str("<Pixels");
    attribute(xml, "ID", &format!("Pixels:{index}"));
    attribute(xml, "DimensionOrder", image.dimension_order.name());
    attribute(xml, "Type", image.dtype.ome_name());
    if let Some(big_endian) = image.big_endian {
        attribute(xml, "BigEndian", if big_endian { "true" } else { "false" });
    }
    let [t, c, z, y, x] = image.shape.0;
    for (name, size) in [("SizeX", x), ("SizeY", y), ("SizeZ", z), ("SizeC", c), ("SizeT", t)] {
        attribute(xml, name, &size.to_string());
    }
    write_physical_sizes(xml, metadata);
    write_time_increment(xml, metadata);
    xml.push('>');
    write_channels(xml, index, image, channel_ids);
    if image.without_pages {
        xml.push_str("<MetadataOnly/>");
    } else if image.planes.is_empty() {
        xml.push_str("<TiffData/>");
    } else {
        for block in &image.planes {
            write_tiff_data(xml, block);
        }
    }
    xml.push_str("</Pixels></Image>");
}

fn write_physical_sizes(xml: &mut String, metadata: &ImageMetadata) {
    let sizes = [
        ("PhysicalSizeX", &metadata.physical_size_x),
        ("PhysicalSizeY", &metadata.physical_size_y),
        ("PhysicalSizeZ", &metadata.physical_size_z),
    ];
    for (name, size) in sizes {
        let Some(PhysicalSize { value, unit }) = size else { continue };
        let Some(unit) = canonical_unit(unit) else { continue };
        if is_positive(*value) {
            attribute(xml, name, &value.to_string());
            attribute(xml, &format!("{name}Unit"), unit);
        }
    }
}

fn write_time_increment(xml: &mut String, metadata: &ImageMetadata) {
    let Some(TimeIncrement { value, unit }) = &metadata.time_increment else { return };
    let Some(unit) = canonical_time_unit(unit).filter(|_| is_positive(*value)) else { return };
    attribute(xml, "TimeIncrement", &value.to_string());
    attribute(xml, "TimeIncrementUnit", unit);
}

impl OmeImage {
    /// One item for each `Channel` element: index of its first sample on the C axis, number of samples, and
    /// the description of that first sample.
    fn described_channels(&self) -> impl Iterator<Item = (usize, usize, Option<&Channel>)> {
        let mut next = 0;
        self.samples_per_pixel.iter().map(move |&samples| {
            let c = next;
            next += samples;
            (c, samples, self.metadata.channels.get(c))
        })
    }
}

fn write_channels(xml: &mut String, index: usize, image: &OmeImage, ids: &Ids) {
    let unknown = Channel::default();
    for (c, samples, channel) in image.described_channels() {
        let channel = channel.unwrap_or(&unknown);
        xml.push_str("<Channel");
        attribute(xml, "ID", &ids.get(&channel.id, || format!("Channel:{index}:{c}")));
        if !channel.name.is_empty() {
            attribute(xml, "Name", &channel.name);
        }
        attribute(xml, "SamplesPerPixel", &samples.to_string());
        if let Some(illumination) = channel.illumination.as_deref().filter(|i| !i.is_empty()) {
            let known = ILLUMINATION_TYPES.into_iter().find(|&known| known == illumination);
            attribute(xml, "IlluminationType", known.unwrap_or("Other"));
        }
        write_wavelength(xml, "ExcitationWavelength", channel.excitation_um);
        write_wavelength(xml, "EmissionWavelength", channel.emission_um);
        if let Some(color) = channel.color_rgba {
            attribute(xml, "Color", &(color as i32).to_string());
        }
        xml.push_str("/>");
    }
}

/// In nanometres, as everybody expects, unless that would lose a digit.
fn write_wavelength(xml: &mut String, name: &str, um: Option<f64>) {
    let Some(um) = um.filter(|&um| is_positive(um)) else { return };
    let nm = um * 1000.0;
    let (value, unit) = if nm.is_finite() && nm / 1000.0 == um { (nm, "nm") } else { (um, "µm") };
    attribute(xml, name, &value.to_string());
    attribute(xml, &format!("{name}Unit"), unit);
}

fn write_tiff_data(xml: &mut String, block: &TiffData) {
    xml.push_str("<TiffData");
    if let Some(ifd) = block.ifd {
        attribute(xml, "IFD", &ifd.to_string());
    }
    for (name, first) in [("FirstZ", block.first_z), ("FirstC", block.first_c), ("FirstT", block.first_t)] {
        if first > 0 {
            attribute(xml, name, &first.to_string());
        }
    }
    if let Some(count) = block.plane_count {
        attribute(xml, "PlaneCount", &count.to_string());
    }
    if block.uuid.is_none() && block.file_name.is_none() {
        xml.push_str("/>");
        return;
    }
    xml.push_str("><UUID");
    if let Some(name) = &block.file_name {
        attribute(xml, "FileName", name);
    }
    xml.push('>');
    escape(xml, block.uuid.as_deref().unwrap_or_default());
    xml.push_str("</UUID></TiffData>");
}

/// Which given ids may be kept.
struct Ids {
    valid: bool,
}

impl Ids {
    /// The ids are kept only if all in the document are valid and different: a mixture could clash with
    /// generated ones.
    fn of<'a>(prefix: &str, ids: impl Iterator<Item = &'a str>) -> Self {
        let mut seen = HashSet::new();
        let mut valid = true;
        for id in ids {
            let rest = id.strip_prefix(prefix).unwrap_or_default();
            valid &= !rest.is_empty()
                && !rest.contains(|c: char| c.is_whitespace() || c.is_control() || !is_xml_char(c))
                && seen.insert(id);
        }
        Self { valid: valid && !seen.is_empty() }
    }

    fn get(&self, id: &str, generated: impl FnOnce() -> String) -> String {
        if self.valid && !id.is_empty() { id.to_owned() } else { generated() }
    }
}

fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// Whether the text is an `xsd:dateTime`: `YYYY-MM-DDThh:mm:ss`, a fraction and a zone at will.
fn is_date_time(text: &str) -> bool {
    let Some((civil, rest)) = text.split_at_checked(19) else { return false };
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits = |bytes: &[u8], shape: &[u8]| {
        bytes.len() == shape.len()
            && bytes.iter().zip(shape).all(|(&b, &s)| if s == b'd' { b.is_ascii_digit() } else { b == s })
    };
    if !fits(civil.as_bytes(), shape) || civil.starts_with("0000") || &civil[17..] > "59" {
        return false;
    }
    if civil.parse::<jiff::civil::DateTime>().is_err() {
        return false;
    }
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
        None => rest,
    };
    match zone {
        "" | "Z" => true,
        _ => {
            let offset = zone.trim_start_matches(['+', '-']);
            zone.len() == 6
                && fits(offset.as_bytes(), b"dd:dd")
                && (&offset[..2] < "14" && &offset[3..] < "60" || offset == "14:00")
        }
    }
}

fn attribute(xml: &mut String, name: &str, value: &str) {
    xml.push(' ');
    xml.push_str(name);
    xml.push_str("=\"");
    escape(xml, value);
    xml.push('"');
}

/// Whether XML 1.0 can hold a character at all. The writer has U+FFFD in place of others.
pub fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn escape(xml: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            // As themselves, readers would turn them into spaces.
            '\t' | '\n' | '\r' => {
                let _ = write!(xml, "&#{};", u32::from(c));
            }
            c if is_xml_char(c) => xml.push(c),
            _ => xml.push(char::REPLACEMENT_CHARACTER),
        }
    }
}
