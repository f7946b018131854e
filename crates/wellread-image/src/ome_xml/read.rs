//! The reader: one pass over the XML events.
//!
//! Elements are recognised by their local name *and* their place (`OME/Image/Pixels/Channel`), so foreign
//! XML inside annotations cannot be mistaken for image descriptions. Entities declared in a DOCTYPE are
//! unknown to this reader, hence never expanded; a few HTML names that sloppy writers use are known.

use super::attributes::{Attributes, entity, shorten, syntax};
use super::{NAMES, OmeImage, OmeXmlError};
use crate::{Channel, ImageMetadata};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

/// Reads OME-XML: every `Image` that has `Pixels`, in the order of the file.
///
/// The text may start with a byte order mark and may be followed by anything after `</OME>`.
///
/// # Errors
/// [`OmeXmlError`]; for a wrong or missing attribute it says which one, in which image.
pub fn read(xml: &str) -> Result<Vec<OmeImage>, OmeXmlError> {
    let xml = xml.strip_prefix('\u{feff}').unwrap_or(xml);
    let mut reader = Reader::from_str(xml);
    let mut parser = Parser::default();
    loop {
        let event = reader.read_event().map_err(|e| syntax(reader.error_position(), &e))?;
        let position = reader.buffer_position();
        match event {
            Event::Start(start) => parser.open(&start, position)?,
            Event::Empty(start) => {
                parser.open(&start, position)?;
                parser.close()?;
            }
            Event::End(_) => parser.close()?,
            Event::Text(text) if parser.takes_text() => parser.text.push_str(&text.xml10_content()),
            Event::CData(text) if parser.takes_text() => parser.text.push_str(&text.xml10_content()),
            Event::GeneralRef(reference) if parser.takes_text() => {
                parser.text.push(resolve(&reference, position)?);
            }
            Event::Eof => {
                return Err(match parser.path.last() {
                    Some(element) => OmeXmlError::Truncated { inside: element.name() },
                    None => OmeXmlError::NotOme(String::new()),
                });
            }
            _ => {}
        }
        if parser.finished {
            break;
        }
    }
    if parser.images.is_empty() { Err(OmeXmlError::NoImage) } else { Ok(parser.images) }
}

/// The character that a reference in running text stands for.
fn resolve(reference: &BytesRef<'_>, position: u64) -> Result<char, OmeXmlError> {
    if let Some(c) = reference.resolve_char_ref().map_err(|e| syntax(position, &e))? {
        return Ok(c);
    }
    entity(reference)
        .and_then(|text| text.chars().next())
        .ok_or_else(|| syntax(position, &format_args!("unknown entity &{};", shorten(reference))))
}

/// The elements that matter, each at its one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Ome,
    Image,
    Pixels,
    Channel,
    LogicalChannel,
    TiffData,
    Uuid,
    Time,
    Annotations,
    /// An annotation in [`NAMES`].
    Names,
    NamesValue,
    Other,
}

impl Element {
    fn at(parent: Self, name: &str) -> Self {
        match (parent, name) {
            (Self::Ome, "Image") => Self::Image,
            (Self::Image, "Pixels") => Self::Pixels,
            (Self::Image, "LogicalChannel") => Self::LogicalChannel,
            // The name in 2012-06 and later, in 2009 to 2011, and before.
            (Self::Image, "AcquisitionDate" | "AcquiredDate" | "CreationDate") => Self::Time,
            (Self::Pixels, "Channel") => Self::Channel,
            (Self::Pixels, "TiffData") => Self::TiffData,
            (Self::TiffData, "UUID") => Self::Uuid,
            (Self::Ome, "StructuredAnnotations") => Self::Annotations,
            (Self::Annotations, "CommentAnnotation") => Self::Names,
            (Self::Names, "Value") => Self::NamesValue,
            _ => Self::Other,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ome => "OME",
            Self::Image => "Image",
            Self::Pixels => "Pixels",
            Self::Channel => "Channel",
            Self::LogicalChannel => "LogicalChannel",
            Self::TiffData => "TiffData",
            Self::Uuid => "UUID",
            Self::Time => "AcquisitionDate",
            Self::Annotations => "StructuredAnnotations",
            Self::Names => "CommentAnnotation",
            Self::NamesValue => "Value",
            Self::Other => "…",
        }
    }
}

/// An `Image` whose end has not been seen.
#[derive(Default)]
struct UnfinishedImage {
    metadata: ImageMetadata,
    /// Set by the first `Pixels`; later ones (alternative pixels of old schemas) are left out.
    image: Option<OmeImage>,
    /// `Channel` or `LogicalChannel` elements with the samples they declare.
    channels: Vec<(Channel, Option<usize>)>,
}

#[derive(Default)]
struct Parser {
    path: Vec<Element>,
    /// Number of `Image` elements seen before the present one.
    index: usize,
    unfinished: UnfinishedImage,
    images: Vec<OmeImage>,
    file_uuid: Option<String>,
    text: String,
    finished: bool,
}

impl Parser {
    fn takes_text(&self) -> bool {
        matches!(self.path.last(), Some(Element::Uuid | Element::Time | Element::NamesValue))
    }

    fn open(&mut self, start: &BytesStart<'_>, position: u64) -> Result<(), OmeXmlError> {
        let name = start.local_name().into_inner();
        let Some(&parent) = self.path.last() else {
            if name != "OME" {
                return Err(OmeXmlError::NotOme(shorten(name)));
            }
            self.path.push(Element::Ome);
            self.file_uuid = Attributes::of(start, position, 0)?.text("UUID");
            return Ok(());
        };
        let mut element = Element::at(parent, name);
        if parent == Element::Ome && name == "BinaryOnly" {
            let metadata_file = Attributes::of(start, position, 0)?.text("MetadataFile").unwrap_or_default();
            return Err(OmeXmlError::BinaryOnly { metadata_file });
        }
        if parent == Element::Pixels
            && matches!(name, "MetadataOnly" | "BinData")
            && let Some(image) = &mut self.unfinished.image
        {
            image.without_pages = true;
        }
        if element == Element::Pixels && self.unfinished.image.is_some() {
            element = Element::Other;
        }
        match element {
            // Annotations of others are their affair: nothing in them is an error.
            Element::Names => {
                let attributes = Attributes::of(start, position, self.index);
                if !attributes.is_ok_and(|a| a.get("Namespace") == Some(NAMES)) {
                    element = Element::Other;
                }
            }
            Element::Annotations | Element::Other => {}
            _ => {
                let attributes = Attributes::of(start, position, self.index)?;
                self.enter(element, &attributes)?;
            }
        }
        self.path.push(element);
        Ok(())
    }

    fn enter(&mut self, element: Element, attributes: &Attributes<'_>) -> Result<(), OmeXmlError> {
        let unfinished = &mut self.unfinished;
        match element {
            Element::Image => {
                *unfinished = UnfinishedImage::default();
                unfinished.metadata.id = attributes.text("ID").unwrap_or_default();
                unfinished.metadata.name = attributes.text("Name").unwrap_or_default();
            }
            Element::Pixels => {
                let size = |which| attributes.physical_size(which);
                unfinished.metadata.physical_size_x = size("PhysicalSizeX");
                unfinished.metadata.physical_size_y = size("PhysicalSizeY");
                unfinished.metadata.physical_size_z = size("PhysicalSizeZ");
                unfinished.metadata.time_increment = attributes.time_increment();
                unfinished.image = Some(attributes.pixels(self.file_uuid.clone())?);
            }
            Element::Channel | Element::LogicalChannel => {
                let samples = attributes.number("SamplesPerPixel", "Channel/@SamplesPerPixel")?;
                unfinished.channels.push((attributes.channel(), samples));
            }
            Element::TiffData => {
                let block = attributes.tiff_data()?;
                if let Some(image) = &mut unfinished.image {
                    image.planes.push(block);
                }
            }
            Element::Uuid => {
                self.text.clear();
                if let Some(block) = unfinished.image.as_mut().and_then(|image| image.planes.last_mut()) {
                    block.file_name = attributes.text("FileName");
                }
            }
            Element::Time | Element::NamesValue => self.text.clear(),
            Element::Ome | Element::Annotations | Element::Names | Element::Other => {}
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), OmeXmlError> {
        match self.path.pop() {
            Some(Element::Ome) => self.finished = true,
            Some(Element::Image) => {
                let unfinished = std::mem::take(&mut self.unfinished);
                self.images.extend(unfinished.finish(self.index)?);
                self.index += 1;
            }
            Some(Element::Uuid) => {
                let uuid = self.text.trim().to_owned();
                if let Some(block) = self.unfinished.image.as_mut().and_then(|image| image.planes.last_mut())
                {
                    block.uuid = (!uuid.is_empty()).then_some(uuid);
                }
            }
            Some(Element::Time) => {
                let time = self.text.trim().to_owned();
                self.unfinished.metadata.acquired = (!time.is_empty()).then_some(time);
            }
            Some(Element::NamesValue) => {
                let names: Vec<(usize, String)> = serde_json::from_str(&self.text).unwrap_or_default();
                for (index, name) in names {
                    if let Some(image) = self.images.get_mut(index) {
                        image.metadata.name = name;
                        image.has_exact_name = true;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl UnfinishedImage {
    fn finish(mut self, index: usize) -> Result<Option<OmeImage>, OmeXmlError> {
        let Some(mut image) = self.image else { return Ok(None) };
        let size_c = image.shape.c();
        let mut channels = Vec::new();
        let mut samples_per_pixel = Vec::new();
        let declared = self.channels.len();
        for (channel, samples) in self.channels {
            // A lone channel without a number holds all samples only if the page says so: see OmeImage.
            let samples = samples.unwrap_or(1);
            let left = size_c - channels.len();
            if samples == 0 || samples > left {
                return Err(OmeXmlError::Invalid {
                    image: index,
                    attribute: "Channel/@SamplesPerPixel",
                    value: samples.to_string(),
                    cause: format!("{declared} channels do not fit into SizeC={size_c}"),
                });
            }
            samples_per_pixel.push(samples);
            for sample in 0..samples {
                let mut channel = channel.clone();
                if channel.id.is_empty() {
                    channel.id = format!("Channel:{index}:{}", channels.len());
                } else if sample > 0 {
                    channel.id = format!("{}/{sample}", channel.id);
                }
                channels.push(channel);
            }
        }
        samples_per_pixel.resize(samples_per_pixel.len() + size_c - channels.len(), 1);
        if declared > 0 {
            for c in channels.len()..size_c {
                channels.push(Channel { id: format!("Channel:{index}:{c}"), ..Channel::default() });
            }
        }
        self.metadata.channels = channels;
        image.metadata = self.metadata;
        image.samples_per_pixel = samples_per_pixel;
        Ok(Some(image))
    }
}
