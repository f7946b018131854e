//! Facts in OME-XML that [`super::read`] passes over: no metadata of an image has a field for them.

use super::NAMES;
use super::attributes::Attributes;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// The facts, in words.
const FACTS: [&str; 9] = [
    "stage positions",
    "exposure times",
    "times of planes",
    "acquisition modes",
    "contrast methods",
    "fluorophores",
    "regions of interest",
    "instruments",
    "annotations",
];

/// Which of them were found.
type Found = [bool; FACTS.len()];

/// The facts in a description for which images have no field, such as `stage positions`. A text that is no OME-XML has none.
pub fn unkept(xml: &str) -> Vec<&'static str> {
    let mut reader = Reader::from_str(xml.strip_prefix('\u{feff}').unwrap_or(xml));
    let mut found: Found = [false; FACTS.len()];
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(start) | Event::Empty(start) => look_at(&start, &mut found),
            Event::Eof => break,
            _ => {}
        }
        if found.iter().all(|found| *found) {
            break;
        }
    }
    FACTS.into_iter().zip(found).filter(|(_, found)| *found).map(|(fact, _)| fact).collect()
}

/// Notes the facts that an element has.
fn look_at(
    start: &BytesStart<'_>,
    [positions, exposures, times, modes, contrasts, fluorophores, regions, instruments, annotations]: &mut Found,
) {
    let name = start.local_name().into_inner();
    match name {
        "Plane" => {
            let Ok(attributes) = Attributes::of(start, 0, 0) else { return };
            let has = |name: &str| attributes.get(name).is_some();
            *positions |= ["PositionX", "PositionY", "PositionZ"].into_iter().any(has);
            *exposures |= has("ExposureTime");
            *times |= has("DeltaT");
        }
        "Channel" => {
            let Ok(attributes) = Attributes::of(start, 0, 0) else { return };
            let has = |name: &str| attributes.text(name).is_some();
            *modes |= has("AcquisitionMode");
            *contrasts |= has("ContrastMethod");
            *fluorophores |= has("Fluor");
        }
        "StageLabel" => *positions = true,
        "ROI" => *regions = true,
        "Instrument" => *instruments = true,
        _ if name.ends_with("Annotation") => {
            let is_own = Attributes::of(start, 0, 0).is_ok_and(|a| a.get("Namespace") == Some(NAMES));
            *annotations |= !is_own;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OmeImage, write};
    use super::*;
    use crate::{ImageMetadata, PixelType, Shape};

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
        assert!(channel("IlluminationType=\"Other\" Fluor=\"\"").is_empty());
        assert_eq!(of("<ome:ROI ID=\"ROI:0\"/><Instrument/>"), ["regions of interest", "instruments"]);
        let map = "<StructuredAnnotations><MapAnnotation ID=\"A:0\"/></StructuredAnnotations>";
        assert_eq!(of(map), ["annotations"]);
        assert!(of("<!-- <ROI/> --><Image><AnnotationRef ID=\"A:0\"/></Image>").is_empty());
        assert!(unkept("ImageJ=1.53").is_empty() && unkept("<OME><ROI").is_empty());
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
