//! The channels and pixels in Harmony's `Index.xml`.
//!
//! ```text
//!  Index.xml ─▶ <Entry ChannelID="1"> … </Entry> ─▶ ChannelName, wavelengths, ImageResolutionX/Y    Harmony 6 and later
//!            ─▶ <Image> … </Image> ─▶ ChannelID, and the same                                        before
//! ```
//!
//! The file has an entry for each image, 90 MB for a plate of 384 wells, and the first entries name every channel. No
//! more than the first of [`MAX_BYTES`] and [`MOST_IMAGES`] entries are read. Since Harmony 6, lists of all images of wells come before
//! them: where no channel is found, more is read. Text that cannot be parsed counts as unknown: the
//! pixels can be read without it.

use super::layout::Details;
use crate::place;
use std::path::{Path, PathBuf};
use wellread_image::{Channel, PhysicalSize, ome_xml};

/// Most of the file that is read: first, and where that has no channel.
const MAX_BYTES: [u64; 2] = [4 << 20, 32 << 20];

/// Images that are looked at: time points and planes of one field may come before its next channel.
const MOST_IMAGES: usize = 2000;

/// The details of the `Index.xml` in a folder, or in the folder above. `None` where there is none that can be
/// read.
pub(super) fn details(folder: &Path) -> Option<Details> {
    let (file, length) = candidate_paths(folder).find_map(|path| place::open(&path).ok())?;
    let mut bytes = vec![];
    for most in MAX_BYTES {
        bytes.clear();
        file.peek_after(0, length.min(most), &mut bytes).ok()?;
        let found = parse(&String::from_utf8_lossy(&bytes));
        if found != Details::default() {
            return Some(found);
        }
        if length <= most {
            break;
        }
    }
    None
}

/// Where the index of the images in a folder may lie, in the order in which it is looked for.
pub(super) fn candidate_paths(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let names = ["Index.xml", "Index.idx.xml", "index.xml", "ImageIndex.ColumbusIDX.xml"];
    let beside = [Some(folder), folder.parent()];
    beside.into_iter().flatten().flat_map(move |folder| names.map(|name| folder.join(name)))
}

/// The details of the text; a text that ends early gives those before its end.
fn parse(xml: &str) -> Details {
    let mut found = Details::default();
    for (id, entry) in entries(xml).take(MOST_IMAGES) {
        note(&mut found, id.to_owned(), entry);
    }
    let mut rest = xml;
    for _ in 0..MOST_IMAGES {
        let Some((image, behind)) = element(rest, "Image") else { break };
        rest = behind;
        if let Some(id) = text(image, "ChannelID") {
            note(&mut found, id, image);
        }
    }
    found
}

/// The entries that say what a channel is called, each with its number. Other entries of channels are of illumination.
fn entries(xml: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = xml;
    let all = std::iter::from_fn(move || {
        let (attributes, inside) = opened(rest, "Entry")?;
        let end = inside.find("</Entry>")?;
        rest = &inside[end..];
        Some((attributes, &inside[..end]))
    });
    all.filter_map(|(attributes, entry)| {
        let (_, value) = attributes.split_once("ChannelID=")?;
        let id = value.split(['"', '\'']).nth(1)?;
        text(entry, "ChannelName").map(|_| (id, entry))
    })
}

/// Notes what a text says of channel `id` and of pixels, where that is not known yet.
fn note(found: &mut Details, id: String, xml: &str) {
    for (size, tag) in found.sizes.iter_mut().zip(["ImageResolutionX", "ImageResolutionY"]) {
        if size.is_none() {
            *size = micrometres(xml, tag).map(|value| PhysicalSize { value, unit: "µm".to_owned() });
        }
    }
    if found.channels.iter().any(|(known, _)| *known == id) {
        return;
    }
    let channel = Channel {
        id: format!("ch{id}"),
        name: text(xml, "ChannelName").unwrap_or_default(),
        emission_um: micrometres(xml, "MainEmissionWavelength"),
        excitation_um: micrometres(xml, "MainExcitationWavelength"),
        ..Channel::default()
    };
    found.channels.push((id, channel));
}

/// The content of the first element of that name, and the text behind it. Elements of that name do not lie in each
/// other.
fn element<'x>(xml: &'x str, name: &str) -> Option<(&'x str, &'x str)> {
    let (_, inside) = opened(xml, name)?;
    let end = inside.find(&format!("</{name}>"))?;
    Some((&inside[..end], &inside[end..]))
}

/// The attributes of the first element of that name that is not empty, and all that stands behind its opening tag. Wells list their
/// images as empty elements.
fn opened<'x>(xml: &'x str, name: &str) -> Option<(&'x str, &'x str)> {
    let tag = format!("<{name}");
    let mut from = 0;
    loop {
        let at = from + xml[from..].find(&tag)? + tag.len();
        let rest = &xml[at..];
        // Not the beginning of a longer name.
        if rest.starts_with(|c: char| c == '>' || c.is_whitespace()) {
            let end = rest.find('>')?;
            if !rest[..end].ends_with('/') {
                return Some((&rest[..end], &rest[end + 1..]));
            }
        }
        from = at;
    }
}

/// The text of the first element of that name.
fn text(xml: &str, name: &str) -> Option<String> {
    let (inside, _) = element(xml, name)?;
    let plain = inside.trim();
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#181;", "µ"), ("&amp;", "&")];
    (!plain.is_empty())
        .then(|| entities.iter().fold(plain.to_owned(), |text, (from, to)| text.replace(from, to)))
}

/// A length in micrometres, by its unit.
fn micrometres(xml: &str, name: &str) -> Option<f64> {
    let (attributes, _) = opened(xml, name)?;
    let unit = attributes.split(['"', '\'']).nth(1)?;
    let length = ome_xml::micrometres(text(xml, name)?.parse().ok()?, unit)?;
    // 1.18E-06 m is 1.18 µm, not 1.1799999999999999.
    let rounded = (length * 1e9).round() / 1e9;
    (rounded.is_finite() && rounded > 0.0).then_some(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = r#"<?xml version="1.0"?><EvaluationInputData xmlns="x"><Plates><Plate><Name>P</Name></Plate></Plates>
<Images Version="1"><Image id="1"><id>1</id><URL>r01c01f01p01-ch2sk1fk1fl1.tiff</URL><ChannelID>2</ChannelID>
<ChannelName>Alexa &amp; 488</ChannelName><ImageResolutionX Unit="m">5.9839E-07</ImageResolutionX>
<ImageResolutionY Unit="m">5.9839E-07</ImageResolutionY><MainExcitationWavelength Unit="nm">488</MainExcitationWavelength>
<MainEmissionWavelength Unit="nm">522</MainEmissionWavelength></Image><Image id="2"><ChannelID>5</ChannelID>
<ChannelName>HOECHST 33342</ChannelName></Image><Image id="3"><ChannelID>2</ChannelID><ChannelName>again"#;

    #[test]
    fn channels_and_sizes_are_found() {
        let found = parse(XML);
        let names: Vec<_> = found.channels.iter().map(|(id, c)| (id.as_str(), c.name.as_str())).collect();
        assert_eq!(names, [("2", "Alexa & 488"), ("5", "HOECHST 33342")]);
        assert_eq!(found.channels[0].1.emission_um, Some(0.522));
        assert_eq!(found.channels[0].1.excitation_um, Some(0.488));
        assert_eq!(found.channels[1].1.emission_um, None);
        let sizes = found.sizes.map(|size| size.map(|size| (size.value, size.unit)));
        assert_eq!(sizes, [Some((0.59839, "µm".to_owned())), Some((0.59839, "µm".to_owned())), None]);
    }

    /// Harmony 6 and 7: images have the number of their channel, and maps before them what it is called.
    #[test]
    fn channels_are_found_in_maps() {
        let found = parse(
            r#"<Wells><Well><Image id="0101K1F1P1R2" /><Image id="0101K1F1P1R1"/></Well></Wells>
            <Maps><Map><Entry ChannelID="1"><FlatfieldProfile>{ChannelName: none}</FlatfieldProfile></Entry></Map>
            <Map><Entry ChannelID="1"><ChannelName>HOECHST 33342</ChannelName>
            <ImageResolutionX Unit="m">5.9839E-07</ImageResolutionX>
            <MainEmissionWavelength Unit="nm">456</MainEmissionWavelength></Entry>
            <Entry ChannelID="2"><ChannelName>Cy5</ChannelName></Entry></Map></Maps>
            <Images><Image Version="1"><ChannelID>2</ChannelID></Image>
            <Image Version="1"><ChannelID>1</ChannelID></Image></Images>"#,
        );
        let names: Vec<_> = found.channels.iter().map(|(id, c)| (id.as_str(), c.name.as_str())).collect();
        assert_eq!(names, [("1", "HOECHST 33342"), ("2", "Cy5")]);
        assert_eq!((found.channels[0].1.emission_um, found.channels[1].1.emission_um), (Some(0.456), None));
        assert_eq!(found.sizes[0].as_ref().map(|size| size.value), Some(0.59839));
    }

    #[test]
    fn maps_behind_long_lists_of_images_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let list = r#"<Image id="0101K1F1P1R1" />"#.repeat(160_000);
        assert!(list.len() as u64 > MAX_BYTES[0]);
        let map = r#"<Map><Entry ChannelID="1"><ChannelName>Cy5</ChannelName></Entry></Map>"#;
        let index = dir.path().join("Index.xml");
        std::fs::write(&index, format!("<Wells><Well>{list}</Well></Wells>{map}")).unwrap();
        let found = details(dir.path()).unwrap();
        assert_eq!(found.channels[0].1.name, "Cy5");
        std::fs::write(&index, list).unwrap();
        assert!(details(dir.path()).is_none());
    }

    #[test]
    fn a_text_cut_anywhere_is_no_trouble() {
        for end in (0..XML.len()).filter(|&end| XML.is_char_boundary(end)) {
            assert!(parse(&XML[..end]).channels.len() <= 2);
        }
        assert_eq!(parse("<Image><ChannelID></ChannelID></Image><Imag"), Details::default());
    }
}
