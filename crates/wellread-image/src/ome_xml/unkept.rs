//! Facts in OME-XML that [`super::read`] passes over: no metadata of an image has a field for them.

use super::NAMES;
use super::attributes::Attributes;
use crate::PixelType;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// Bits of a pixel that the camera filled, where these are fewer than its type has: 12 of 16.
const SIGNIFICANT_BITS: &str = "significant bits";

/// Facts, each with an element and one of its attributes, or no attribute where the element says it. Those of one fact follow each
/// other.
const FACTS: [(&str, &str, &str); 25] = [
    (SIGNIFICANT_BITS, "Pixels", "SignificantBits"),
    ("stage positions", "Plane", "PositionX"),
    ("stage positions", "Plane", "PositionY"),
    ("stage positions", "Plane", "PositionZ"),
    ("stage positions", "StageLabel", ""),
    ("exposure times", "Plane", "ExposureTime"),
    ("times of planes", "Plane", "DeltaT"),
    ("acquisition modes", "Channel", "AcquisitionMode"),
    ("contrast methods", "Channel", "ContrastMethod"),
    ("fluorophores", "Channel", "Fluor"),
    ("neutral density filters", "Channel", "NDFilter"),
    ("pinhole sizes", "Channel", "PinholeSize"),
    ("Pockels cell settings", "Channel", "PockelCellSetting"),
    ("light source settings", "LightSourceSettings", ""),
    ("detector settings", "DetectorSettings", ""),
    ("filters", "FilterSetRef", ""),
    // Bio-Formats writes a light path without filters for each channel.
    ("filters", "ExcitationFilterRef", ""),
    ("filters", "DichroicRef", ""),
    ("filters", "EmissionFilterRef", ""),
    ("objective settings", "ObjectiveSettings", ""),
    ("imaging environments", "ImagingEnvironment", ""),
    ("experimenters", "Experimenter", ""),
    ("experiments", "Experiment", ""),
    ("regions of interest", "ROI", ""),
    ("instruments", "Instrument", ""),
];

/// Which of them were found.
type Found = [bool; FACTS.len()];

/// The facts in a description for which images have no field, such as `stage positions`. A text that is no OME-XML has none.
pub fn unkept(xml: &str) -> Vec<&'static str> {
    let mut reader = Reader::from_str(xml.strip_prefix('\u{feff}').unwrap_or(xml));
    reader.config_mut().expand_empty_elements = true;
    let mut found: Found = [false; FACTS.len()];
    let (mut has_annotations, mut has_description) = (false, false);
    // Whether each open element is an image, and whether the last one is the description of an image.
    let (mut are_images, mut is_description) = (vec![], false);
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(start) => {
                look_at(&start, &mut found);
                has_annotations |= is_annotation_of_others(&start);
                let name = start.local_name().into_inner();
                is_description = name == "Description" && are_images.last() == Some(&true);
                are_images.push(name == "Image");
            }
            Event::End(_) => {
                are_images.pop();
                is_description = false;
            }
            Event::Text(text) if is_description => has_description |= !text.trim().is_empty(),
            Event::CData(text) if is_description => has_description |= !text.trim().is_empty(),
            Event::GeneralRef(_) if is_description => has_description = true,
            Event::Eof => break,
            _ => {}
        }
    }
    let found = FACTS.into_iter().zip(found).filter(|(_, found)| *found).map(|((fact, _, _), _)| fact);
    let others = [("annotations", has_annotations), ("descriptions", has_description)];
    let others = others.into_iter().filter(|(_, found)| *found).map(|(fact, _)| fact);
    let mut facts: Vec<_> = found.chain(others).collect();
    facts.dedup();
    facts
}

/// Notes the facts that an element has.
fn look_at(start: &BytesStart<'_>, found: &mut Found) {
    let name = start.local_name().into_inner();
    let is_open = |at: &usize| FACTS[*at].1 == name && !found[*at];
    let open: Vec<usize> = (0..FACTS.len()).filter(is_open).collect();
    if open.is_empty() {
        return;
    }
    let attributes = Attributes::of(start, 0, 0);
    for at in open {
        let (fact, _, attribute) = FACTS[at];
        let value = attributes.as_ref().ok().and_then(|all| all.get(attribute));
        found[at] = if fact == SIGNIFICANT_BITS {
            attributes.as_ref().is_ok_and(|all| value.is_some_and(|bits| are_fewer(bits, all)))
        } else {
            attribute.is_empty() || value.is_some_and(|value| !value.is_empty())
        };
    }
}

/// Whether these are fewer bits than the type of the pixels has. Bio-Formats writes the number for each image.
fn are_fewer(bits: &str, pixels: &Attributes<'_>) -> bool {
    let dtype: Option<PixelType> = pixels.get("Type").and_then(|word| word.trim().parse().ok());
    let bits: Option<usize> = bits.trim().parse().ok();
    dtype.zip(bits).is_some_and(|(dtype, bits)| bits < 8 * dtype.size())
}

/// Whether an element is an annotation that wellread has not written.
fn is_annotation_of_others(start: &BytesStart<'_>) -> bool {
    start.local_name().into_inner().ends_with("Annotation")
        && !Attributes::of(start, 0, 0).is_ok_and(|all| all.get("Namespace") == Some(NAMES))
}

#[cfg(test)]
mod tests {
    use super::super::{OmeImage, write};
    use super::*;
    use crate::{ImageMetadata, Shape};

    #[test]
    fn facts_without_a_field_are_named() {
        let of = |inner: &str| unkept(&format!("<?xml version=\"1.0\"?><OME>{inner}</OME>"));
        let plane = |attributes: &str| {
            of(&format!("<Image ID=\"Image:0\"><Pixels><Plane TheZ=\"0\" {attributes}/></Pixels></Image>"))
        };
        assert_eq!(plane("PositionX=\"1.5\" PositionY=\"0\""), ["stage positions"]);
        assert_eq!(plane("ExposureTime=\"0.1\" DeltaT=\"3\""), ["exposure times", "times of planes"]);
        assert!(plane("TheC=\"0\"").is_empty());
        let channel =
            |attributes: &str| of(&format!("<Channel ID=\"Channel:0:0\" Name=\"A\" {attributes}/>"));
        assert_eq!(
            channel("AcquisitionMode=\"WideField\" Fluor=\"GFP\""),
            ["acquisition modes", "fluorophores"]
        );
        assert_eq!(channel("ContrastMethod=\"Fluorescence\""), ["contrast methods"]);
        assert_eq!(
            channel("NDFilter=\"0.5\" PinholeSize=\"80\" PockelCellSetting=\"3\""),
            ["neutral density filters", "pinhole sizes", "Pockels cell settings"]
        );
        assert!(channel("IlluminationType=\"Other\" Fluor=\"\"").is_empty());
        assert_eq!(of("<ome:ROI ID=\"ROI:0\"/><Instrument/>"), ["regions of interest", "instruments"]);
        let pixels = |attributes: &str| of(&format!("<Image><Pixels {attributes}/></Image>"));
        assert_eq!(pixels("Type=\"uint16\" SignificantBits=\"12\""), ["significant bits"]);
        for whole in [
            "Type=\"uint16\" SignificantBits=\"16\"",
            "Type=\"float\" SignificantBits=\"32\"",
            "Type=\"uint16\"",
        ] {
            assert!(pixels(whole).is_empty(), "{whole}");
        }
        let map = "<StructuredAnnotations><MapAnnotation ID=\"A:0\"/></StructuredAnnotations>";
        assert_eq!(of(map), ["annotations"]);
        assert!(of("<!-- <ROI/> --><Image><AnnotationRef ID=\"A:0\"/></Image>").is_empty());
        assert!(unkept("ImageJ=1.53").is_empty() && unkept("<OME><ROI").is_empty());
    }

    #[test]
    fn descriptions_of_images_and_settings_are_named() {
        let of = |inner: &str| unkept(&format!("<OME><Image ID=\"Image:0\">{inner}</Image></OME>"));
        for text in ["<Description>24 h</Description>", "<Description><![CDATA[&]]></Description>"] {
            assert_eq!(of(text), ["descriptions"], "{text}");
        }
        assert_eq!(of("<Description>&amp;</Description>"), ["descriptions"]);
        for none in
            ["<Description/>", "<Description> \n </Description>", "<A><Description>b</Description></A>"]
        {
            assert!(of(none).is_empty(), "{none}");
        }
        // Another element's description is not the image's.
        assert!(unkept("<OME><Image/><Plate><Description>p</Description></Plate></OME>").is_empty());
        let settings = "<ObjectiveSettings ID=\"Objective:0\"/><ImagingEnvironment/>";
        assert_eq!(of(settings), ["objective settings", "imaging environments"]);
        let of_channel = "<Channel><LightSourceSettings/><DetectorSettings/></Channel>";
        assert_eq!(of(of_channel), ["light source settings", "detector settings"]);
        assert!(of("<Channel><LightPath/></Channel>").is_empty());
        let filters = "<LightPath><DichroicRef ID=\"D:0\"/><EmissionFilterRef ID=\"F:0\"/></LightPath>";
        assert_eq!(of(filters), ["filters"]);
        assert_eq!(unkept("<OME><Experiment/><Experimenter/></OME>"), ["experimenters", "experiments"]);
    }

    #[test]
    fn what_is_written_here_is_kept() {
        // Its name is an annotation.
        let metadata = ImageMetadata { name: " spaces ".to_owned(), ..ImageMetadata::named("Image:0") };
        let xml = write(&[OmeImage::new(metadata, Shape([2, 1, 1, 4, 4]), PixelType::U8)]);
        assert!(xml.contains("CommentAnnotation"), "{xml}");
        assert!(unkept(&xml).is_empty(), "{xml}");
    }
}
