//! Plates in OME-XML: which well has which image.
//!
//! ```text
//!  OME / Plate / Well / WellSample / ImageRef ──well_samples──▶ Image/@ID → plate, well, which sample of the well
//! ```
//!
//! They stand beside the pixels, which can be read without them. So nothing in them is an error: what cannot be understood is unknown.

use super::attributes::Attributes;
use quick_xml::events::Event;
use quick_xml::reader::Reader;
use std::collections::HashMap;
use std::sync::Arc;

/// Where on a plate an image was taken. Each part may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WellSample {
    /// `Plate/@Name`, or else `Plate/@ID`.
    pub plate: Option<Arc<str>>,
    /// `Well/@Row` and `Well/@Column`, both from 0.
    pub well: Option<(u32, u32)>,
    /// Which sample of its well it is, from 1, in the order of the text. `WellSample/@Index` would not tell: the schema has it differ between all
    /// samples of a plate, and some writers count anew in each well.
    pub site: Option<u32>,
}

/// The elements on the way to the reference of an image, each at its one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Ome,
    Plate,
    Well,
    Sample,
    ImageRef,
    Other,
}

impl Element {
    fn at(parent: Option<Self>, name: &str) -> Self {
        match (parent, name) {
            (None, "OME") => Self::Ome,
            (Some(Self::Ome), "Plate") => Self::Plate,
            (Some(Self::Plate), "Well") => Self::Well,
            (Some(Self::Well), "WellSample") => Self::Sample,
            (Some(Self::Sample), "ImageRef") => Self::ImageRef,
            _ => Self::Other,
        }
    }
}

/// The images that wells name, each by its `Image/@ID`. Nothing is known of the place of one that two wells name. A text without plates
/// has none.
pub fn well_samples(xml: &str) -> HashMap<String, WellSample> {
    let mut found = HashMap::new();
    if !xml.contains("WellSample") {
        return found;
    }
    let mut reader = Reader::from_str(xml.strip_prefix('\u{feff}').unwrap_or(xml));
    reader.config_mut().expand_empty_elements = true;
    let mut path: Vec<Element> = vec![];
    let mut at = WellSample::default();
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(start) => {
                let element = Element::at(path.last().copied(), start.local_name().into_inner());
                path.push(element);
                if !matches!(element, Element::Ome | Element::Other) {
                    let attributes = Attributes::of(&start, 0, 0).ok();
                    enter(element, |name| attributes.as_ref()?.text(name), &mut at, &mut found);
                }
            }
            Event::End(_) => {
                path.pop();
                if path.is_empty() {
                    break;
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    found
}

/// Takes the attributes of an element, which `text` gives, into the place that the next images are at.
fn enter(
    element: Element,
    text: impl Fn(&str) -> Option<String>,
    at: &mut WellSample,
    found: &mut HashMap<String, WellSample>,
) {
    let number = |name: &str| text(name)?.trim().parse::<u32>().ok();
    match element {
        Element::Plate => {
            let plate = text("Name").or_else(|| text("ID")).map(Arc::from);
            *at = WellSample { plate, ..WellSample::default() };
        }
        Element::Well => {
            at.well = number("Row").zip(number("Column"));
            at.site = None;
        }
        Element::Sample => at.site = at.well.map(|_| at.site.map_or(1, |before| before + 1)),
        Element::ImageRef => {
            if let Some(id) = text("ID") {
                let known = found.entry(id).or_insert_with(|| at.clone());
                if (&known.plate, known.well) != (&at.plate, at.well) {
                    *known = WellSample::default();
                }
            }
        }
        Element::Ome | Element::Other => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OME-XML with this in it, before an image.
    fn document(plates: &str) -> String {
        format!(
            "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\">{plates}<Image ID=\"Image:0\"/></OME>"
        )
    }

    fn sample(plate: &str, well: (u32, u32), site: u32) -> WellSample {
        WellSample { plate: Some(plate.into()), well: Some(well), site: Some(site) }
    }

    #[test]
    fn wells_of_images_are_read() {
        let found = well_samples(&document(
            r#"<Plate ID="Plate:0" Name="BR1"><Well ID="Well:0:0" Row="0" Column="0">
            <WellSample ID="WellSample:0:0:0" Index="0"><ImageRef ID="Image:0"/></WellSample>
            <WellSample ID="WellSample:0:0:1" Index="1"><ImageRef ID="Image:1"></ImageRef></WellSample></Well>
            <Well ID="Well:0:1" Row="15" Column="23"><WellSample Index="2"><ImageRef ID="Image:2"/></WellSample></Well>
            <PlateAcquisition ID="PlateAcquisition:0"><WellSampleRef ID="WellSample:0:0:0"/></PlateAcquisition></Plate>
            <p:Plate xmlns:p="x" ID="Plate:1"><p:Well Row="1" Column="2"><p:WellSample Index="0"><p:ImageRef ID="Image:3"/></p:WellSample></p:Well></p:Plate>"#,
        ));
        assert_eq!(found.len(), 4);
        assert_eq!(found["Image:0"], sample("BR1", (0, 0), 1));
        assert_eq!(found["Image:1"], sample("BR1", (0, 0), 2));
        assert_eq!(found["Image:2"], sample("BR1", (15, 23), 1));
        assert_eq!(found["Image:3"], sample("Plate:1", (1, 2), 1));
    }

    #[test]
    fn what_cannot_be_understood_is_unknown() {
        let found = well_samples(&document(
            r#"<Plate><Well Row="0" Column="-1"><WellSample Index="x"><ImageRef ID="a"/></WellSample></Well>
            <Well Column="99999999999"><WellSample><ImageRef ID="b"/><ImageRef/></WellSample><WellSample Index="7"/></Well></Plate>
            <Plate Name="P"><Well Row="1" Column="1"><WellSample Index="1"><ImageRef ID="c"/></WellSample>
            <WellSample Index="1"><ImageRef ID="c"/></WellSample></Well>
            <Well Row="2" Column="2"><WellSample Index="2"><ImageRef ID="d"/></WellSample></Well>
            <Well Row="2" Column="3"><WellSample Index="3"><ImageRef ID="d"/></WellSample></Well>
            <Well Row="3" Row="4"><WellSample Index="4"><ImageRef ID="e"/></WellSample></Well></Plate>
            <StructuredAnnotations><XMLAnnotation><Value><Plate><Well><WellSample><ImageRef ID="f"/></WellSample></Well></Plate></Value></XMLAnnotation></StructuredAnnotations>"#,
        ));
        let unknown = WellSample::default();
        assert_eq!((&found["a"], &found["b"]), (&unknown, &unknown));
        // Twice in one well is its first sample there; of two wells nobody knows which.
        assert_eq!((&found["c"], &found["d"]), (&sample("P", (1, 1), 1), &unknown));
        // A broken element does not have the values of the one before.
        assert_eq!(found["e"], WellSample { plate: Some("P".into()), ..WellSample::default() });
        assert_eq!(found.len(), 5);
        for none in
            ["", "WellSample", "<OME><WellSample", "<WellSample/></a>", "<Plate><WellSample/></Plate>"]
        {
            assert!(well_samples(none).is_empty(), "{none}");
        }
        let wells = r#"<Well Row="1"><WellSample><ImageRef ID="a"/></WellSample></Well>"#.repeat(5000);
        assert_eq!(well_samples(&document(&format!("<Plate>{wells}</Plate>"))).len(), 1);
        assert!(well_samples(&format!("<OME>{}WellSample", "<Plate>".repeat(5000))).is_empty());
    }
}
