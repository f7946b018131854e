//! Documents as the main writers make them, the rules for plane positions, hostile input, round trips.
//!
//! Long because reading and writing are checked against each other, with the same documents.

use super::*;
use crate::{Channel, PhysicalSize, TimeIncrement};
use proptest::prelude::*;
use std::fmt::Write;

/// As Bio-Formats writes it: big-endian, one block per plane, each naming its own file.
const BIO_FORMATS: &str = r#"<?xml version="1.0" encoding="UTF-8"?><!-- Warning: <OME> in a comment -->
<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:c8a261cc-6798-4e58-885a-dcee460619f9">
<Instrument ID="Instrument:0"/><Image ID="Image:0" Name="series &lt;1&gt;"><AcquisitionDate>2026-11-21T05:38:56</AcquisitionDate>
<Pixels BigEndian="true" DimensionOrder="XYZCT" ID="Pixels:0" SizeC="2" SizeT="1" SizeX="439" SizeY="167" SizeZ="2" Type="int8"
 PhysicalSizeX="0.65" PhysicalSizeZ="200" PhysicalSizeZUnit="nm">
<Channel Color="-16776961" ID="Channel:0:0" Name="DAPI" EmissionWavelength="461.0" EmissionWavelengthUnit="nm" SamplesPerPixel="1"><LightPath/></Channel>
<Channel ID="Channel:0:1" SamplesPerPixel="1" IlluminationType="Epifluorescence"/>
<TiffData FirstC="0" FirstT="0" FirstZ="0" IFD="0" PlaneCount="1"><UUID FileName="a.ome.tiff">urn:uuid:c8a261cc-6798-4e58-885a-dcee460619f9</UUID></TiffData>
<TiffData FirstC="0" FirstT="0" FirstZ="1" IFD="1" PlaneCount="1"><UUID FileName="a.ome.tiff">urn:uuid:c8a261cc-6798-4e58-885a-dcee460619f9</UUID></TiffData>
<TiffData FirstC="1" FirstT="0" FirstZ="0" IFD="0" PlaneCount="1"><UUID FileName="b.ome.tiff">urn:uuid:00000000-6798-4e58-885a-dcee460619f9</UUID></TiffData>
<TiffData FirstC="1" FirstT="0" FirstZ="1" IFD="1" PlaneCount="1"><UUID FileName="b.ome.tiff">urn:uuid:00000000-6798-4e58-885a-dcee460619f9</UUID></TiffData>
</Pixels></Image><StructuredAnnotations><XMLAnnotation><Value><OME><Image><Pixels/></Image></OME></Value></XMLAnnotation></StructuredAnnotations></OME>"#;

/// `Pixels` with these attributes and this content.
fn document(attributes: &str, content: &str) -> String {
    format!(r#"<OME><Image ID="Image:0"><Pixels {attributes}>{content}</Pixels></Image></OME>"#)
}

/// T=2, C=3, Z=4 of 8 x 9 in the given order.
fn stack(order: &str, content: &str) -> OmeImage {
    let attributes = format!(
        r#"DimensionOrder="{order}" Type="uint16" SizeT="2" SizeC="3" SizeZ="4" SizeY="8" SizeX="9""#
    );
    read(&document(&attributes, content)).unwrap().remove(0)
}

fn no_pages(_: Option<&str>) -> Option<usize> {
    None
}

fn ifd(map: &PlaneMap, t: usize, c: usize, z: usize) -> Option<usize> {
    map.source(t, c, z).map(|source| source.ifd)
}

#[test]
fn bio_formats_is_read() {
    let images = read(BIO_FORMATS).unwrap();
    assert_eq!(images.len(), 1, "what annotations hold is no image");
    let image = &images[0];
    assert_eq!(image.shape, Shape([1, 2, 2, 167, 439]));
    assert_eq!((image.dtype, image.big_endian), (PixelType::I8, Some(true)));
    let metadata = &image.metadata;
    assert_eq!((metadata.id.as_str(), metadata.name.as_str()), ("Image:0", "series <1>"));
    assert_eq!(metadata.acquired.as_deref(), Some("2026-11-21T05:38:56"));
    assert_eq!(metadata.physical_size_x, Some(PhysicalSize { value: 0.65, unit: "µm".into() }));
    assert_eq!(metadata.physical_size_z, Some(PhysicalSize { value: 200.0, unit: "nm".into() }));
    assert_eq!(metadata.physical_size_y, None);
    let dapi = &metadata.channels[0];
    assert_eq!(
        (dapi.name.as_str(), dapi.emission_um, dapi.color_rgba),
        ("DAPI", Some(0.461), Some(0xff00_00ff))
    );
    assert_eq!(metadata.channels[1].illumination.as_deref(), Some("Epifluorescence"));

    let map = image.ifd_of_planes(no_pages).unwrap();
    assert_eq!(map.source(0, 0, 1), Some(PlaneSource { file: None, ifd: 1, sample: 0 }));
    assert_eq!(map.source(0, 1, 1), Some(PlaneSource { file: Some("b.ome.tiff"), ifd: 1, sample: 0 }));
    assert_eq!((map.files(), map.first_missing()), (&["b.ome.tiff".to_owned()][..], None));
    assert_eq!((map.source(1, 0, 0), map.source(0, 2, 0), map.source(0, 0, 2)), (None, None, None));
}

#[test]
fn prefixes_marks_doctypes_and_old_schemas_are_read() {
    let xml = "\u{feff}<?xml version='1.0'?><!DOCTYPE OME><ome:OME xmlns:ome='x'><ome:Image ID='Image:7' Name='&#x41;&amp;&micro;'>\
        <ome:CreationDate>2007-01-02T03:04:05</ome:CreationDate>\
        <ome:LogicalChannel ID='LogicalChannel:0' Name='GFP' EmWave='519' ExWave='488'/>\
        <ome:Pixels DimensionOrder='XYCZT' PixelType='Uint8' BigEndian='0' SizeX='5' SizeY='4' SizeZ='1' SizeC='1' SizeT='3'>\
        <ome:TiffData NumPlanes='3'/></ome:Pixels><ome:Pixels/></ome:Image></ome:OME>\0 trailing < garbage";
    let image = read(xml).unwrap().remove(0);
    assert_eq!(image.metadata.name, "A&µ");
    assert_eq!(image.metadata.acquired.as_deref(), Some("2007-01-02T03:04:05"));
    let gfp = &image.metadata.channels[0];
    assert_eq!((gfp.emission_um, gfp.excitation_um), (Some(0.519), Some(0.488)));
    assert_eq!((image.dtype, image.big_endian), (PixelType::U8, Some(false)));
    assert_eq!(image.planes[0].plane_count, Some(3));
}

#[test]
fn orders_agree_with_their_names() {
    let shape = Shape([2, 3, 4, 8, 9]);
    for order in DimensionOrder::ALL {
        assert_eq!(order.name().parse(), Ok(order));
        // Count planes the way the name reads: the last letter is the outermost loop.
        let size = |axis: u8| match axis {
            b'T' => 2,
            b'C' => 3,
            _ => 4,
        };
        let axes: [u8; 3] = order.name().as_bytes()[2..].try_into().unwrap();
        let mut index = 0;
        for slow in 0..size(axes[2]) {
            for middle in 0..size(axes[1]) {
                for fast in 0..size(axes[0]) {
                    let of = |axis| [fast, middle, slow][axes.iter().position(|&a| a == axis).unwrap()];
                    let (t, c, z) = (of(b'T'), of(b'C'), of(b'Z'));
                    assert_eq!(order.plane_index(t, c, z, shape), index, "{order}");
                    assert_eq!(order.plane_position(index, shape), (t, c, z), "{order}");
                    index += 1;
                }
            }
        }
    }
}

#[test]
fn plane_rules_of_the_specification() {
    // No block, or one without attributes: all pages in dimension order, as far as there are pages.
    for content in ["", "<TiffData/>", r#"<TiffData PlaneCount="0"/>"#] {
        let map = stack("XYCZT", content).ifd_of_planes(no_pages).unwrap();
        assert_eq!(ifd(&map, 1, 2, 3), Some(23));
        assert_eq!(ifd(&map, 0, 1, 2), Some(7));
        let short = stack("XYCZT", content).ifd_of_planes(|_| Some(10)).unwrap();
        assert_eq!((ifd(&short, 0, 0, 3), ifd(&short, 0, 1, 3)), (Some(9), None));
        assert_eq!(short.first_missing(), Some((0, 1, 3)));
    }
    // IFD without PlaneCount: one page.
    let map = stack("XYZCT", r#"<TiffData IFD="3"/>"#).ifd_of_planes(|_| Some(99)).unwrap();
    assert_eq!((ifd(&map, 0, 0, 0), ifd(&map, 0, 0, 1)), (Some(3), None));
    // PlaneCount without IFD starts at page 0, a later block overrides an earlier one, and surplus pages are cut
    // off.
    let content = r#"<TiffData PlaneCount="12"/><TiffData FirstT="1" IFD="20" PlaneCount="99"/><TiffData FirstZ="2" IFD="40" PlaneCount="3"/>"#;
    let map = stack("XYZCT", content).ifd_of_planes(no_pages).unwrap();
    let pages: Vec<_> =
        (0..24).map(|i| (i / 12, i / 4 % 3, i % 4)).map(|(t, c, z)| ifd(&map, t, c, z).unwrap()).collect();
    assert_eq!(pages[..12], [0, 1, 40, 41, 42, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(pages[12..], [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]);
    assert_eq!(map.first_missing(), None);
    // A file per channel, without counts: each ends where the next begins.
    let content: String = (0..3).fold(String::new(), |mut xml, c| {
        let _ =
            write!(xml, r#"<TiffData FirstC="{c}"><UUID FileName="c{c}.tif">urn:uuid:{c}</UUID></TiffData>"#);
        xml
    });
    let map = stack("XYZTC", &content).ifd_of_planes(no_pages).unwrap();
    assert_eq!(map.source(1, 1, 3), Some(PlaneSource { file: Some("c1.tif"), ifd: 7, sample: 0 }));
    assert_eq!(map.source(0, 2, 0), Some(PlaneSource { file: Some("c2.tif"), ifd: 0, sample: 0 }));
    // Counted from 1.
    let content = r#"<TiffData FirstT="1" FirstC="1" FirstZ="1" IFD="0" PlaneCount="12"/><TiffData FirstT="2" FirstC="1" FirstZ="4" IFD="12"/>"#;
    let map = stack("XYZCT", content).ifd_of_planes(no_pages).unwrap();
    assert_eq!((ifd(&map, 0, 0, 1), ifd(&map, 1, 0, 3), ifd(&map, 1, 1, 0)), (Some(1), Some(12), None));
    // Outside, and in a nameless other file.
    let error = stack("XYZCT", r#"<TiffData FirstZ="9" IFD="0"/>"#).ifd_of_planes(no_pages).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"OME-XML: TiffData/@FirstZ is "9": the image has only 4 along this axis"#
    );
    let mut image = stack("XYZCT", "<TiffData><UUID>urn:uuid:1</UUID></TiffData>");
    assert_eq!(image.ifd_of_planes(no_pages).unwrap().source(0, 0, 0).unwrap().file, None);
    image.file_uuid = Some("urn:uuid:2".into());
    assert!(image.ifd_of_planes(no_pages).unwrap_err().to_string().contains("TiffData/UUID/@FileName"));
}

#[test]
fn samples_share_a_page() {
    let attributes =
        r#"DimensionOrder="XYCZT" Type="uint8" SizeT="2" SizeC="4" SizeZ="1" SizeY="8" SizeX="9""#;
    let content = r#"<Channel ID="Channel:0:0" SamplesPerPixel="3"/><Channel ID="Channel:0:1"/>"#;
    let image = read(&document(attributes, content)).unwrap().remove(0);
    assert_eq!(image.samples_per_pixel, [3, 1]);
    assert_eq!(image.metadata.channels.len(), 4);
    let map = image.ifd_of_planes(|_| Some(4)).unwrap();
    assert_eq!(map.source(1, 2, 0), Some(PlaneSource { file: None, ifd: 2, sample: 2 }));
    assert_eq!(map.source(1, 3, 0), Some(PlaneSource { file: None, ifd: 3, sample: 0 }));
    assert_eq!(map.first_missing(), None);
}

#[test]
fn pages_may_be_elsewhere() {
    let attributes =
        r#"DimensionOrder="XYCZT" Type="uint8" SizeT="1" SizeC="1" SizeZ="1" SizeY="8" SizeX="9""#;
    let image = read(&document(attributes, "<MetadataOnly/>")).unwrap().remove(0);
    assert_eq!(image.ifd_of_planes(no_pages).unwrap().first_missing(), Some((0, 0, 0)));
    let error =
        read("<OME><BinaryOnly MetadataFile='x.companion.ome' UUID='urn:uuid:1'/></OME>").unwrap_err();
    assert!(error.to_string().contains("x.companion.ome"));
}

#[test]
fn errors_name_the_attribute() {
    let full = r#"DimensionOrder="XYZCT" Type="uint8" SizeT="1" SizeC="1" SizeZ="1" SizeY="8" SizeX="9""#;
    for name in ["DimensionOrder", "Type", "SizeT", "SizeC", "SizeZ", "SizeY", "SizeX"] {
        let without = document(&full.replace(&format!("{name}="), "Other="), "");
        let without = without.replacen("Other=", &format!("x{name}="), 1);
        assert_eq!(
            read(&without).unwrap_err().to_string(),
            format!("OME-XML, image 0: the attribute Pixels/@{name} is missing")
        );
        if name == "Type" {
            continue;
        }
        let wrong = full.replace(&format!("{name}=\""), &format!("{name}=\"-?"));
        let error = read(&document(&wrong, "")).unwrap_err();
        assert!(error.to_string().contains(&format!("Pixels/@{name} is \"-?")), "{error}");
    }
    let absurd = [
        ("SizeX=\"9\"", "SizeX=\"99999999999999\"", "more than wellread accepts"),
        ("SizeX=\"9\"", "SizeX=\"99999999999999999999999\"", "Pixels/@SizeX"),
        ("SizeX=\"9\"", "SizeX=\"0\"", "axis X is empty"),
        ("SizeC=\"1\"", "SizeC=\"9999999\"", "Pixels/@SizeC"),
    ];
    for (from, to, expected) in absurd {
        let error = read(&document(&full.replace(from, to), "")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let content = r#"<Channel SamplesPerPixel="2"/>"#;
    assert!(read(&document(full, content)).unwrap_err().to_string().contains("Channel/@SamplesPerPixel"));
    let content = r#"<TiffData IFD="-1"/>"#;
    assert!(read(&document(full, content)).unwrap_err().to_string().contains("TiffData/@IFD"));
}

#[test]
fn types_may_be_any_word() {
    let of = |word: &str| {
        let attributes = format!(
            r#"DimensionOrder="XYZCT" Type="{word}" SizeT="1" SizeC="1" SizeZ="1" SizeY="8" SizeX="9""#
        );
        let image = read(&document(&attributes, "")).unwrap().remove(0);
        (image.dtype, image.other_type)
    };
    assert_eq!(of("int16"), (PixelType::I16, None));
    assert_eq!(of(" Bit "), (PixelType::U8, None));
    assert_eq!(of("double-complex"), (PixelType::U8, Some("double-complex".into())));
    assert_eq!(of(""), (PixelType::U8, Some(String::new())));
}

#[test]
fn other_texts_are_refused() {
    assert_eq!(read("ImageJ=1.53t\nimages=3"), Err(OmeXmlError::NotOme(String::new())));
    assert_eq!(read("<html/>"), Err(OmeXmlError::NotOme("html".into())));
    assert_eq!(read("<OME><Image/></OME>"), Err(OmeXmlError::NoImage));
    assert!(matches!(read("<OME><Image><Pix"), Err(OmeXmlError::Syntax { .. })));
    assert!(matches!(read("<OME></Image></OME>"), Err(OmeXmlError::Syntax { .. })));
    assert_eq!(read("<OME><Image>"), Err(OmeXmlError::Truncated { inside: "Image" }));
}

#[test]
fn entity_bombs_do_not_expand() {
    let mut bomb = String::from("<!DOCTYPE lolz [<!ENTITY l0 \"lol\">");
    for level in 1..30 {
        let inner = format!("&l{};", level - 1).repeat(10);
        let _ = write!(bomb, "<!ENTITY l{level} \"{inner}\">");
    }
    bomb.push_str("]>");
    let attribute = format!("{bomb}<OME><Image Name='&l29;'/></OME>");
    let error = read(&attribute).unwrap_err().to_string();
    assert!(error.contains("l29"), "{error}");
    let text = format!("{bomb}<OME><Image><AcquisitionDate>&l29;</AcquisitionDate></Image></OME>");
    assert!(read(&text).unwrap_err().to_string().contains("unknown entity &l29;"));
}

#[test]
fn every_truncation_is_an_error() {
    let end = BIO_FORMATS.rfind("</OME>").unwrap() + "</OME>".len();
    for cut in (0..end).filter(|&cut| BIO_FORMATS.is_char_boundary(cut)) {
        assert!(read(&BIO_FORMATS[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn ids_are_unique_in_the_document() {
    let mut image = OmeImage::new(ImageMetadata::named("a"), Shape([1, 2, 1, 3, 4]), PixelType::U8);
    image.metadata.id = "Image:7".into();
    image.metadata.channels =
        (0..2).map(|c| Channel { id: format!("Channel:9:{c}"), ..Channel::default() }).collect();
    let alone = read(&write(std::slice::from_ref(&image))).unwrap();
    assert_eq!(
        (alone[0].metadata.id.as_str(), alone[0].metadata.channels[1].id.as_str()),
        ("Image:7", "Channel:9:1")
    );
    let both = read(&write(&[image.clone(), image])).unwrap();
    let ids: std::collections::BTreeSet<String> = (both.iter())
        .flat_map(|i| i.metadata.channels.iter().map(|c| &c.id).chain([&i.metadata.id]))
        .cloned()
        .collect();
    assert_eq!(ids.len(), 6);
}

#[test]
fn tags_hold_bytes() {
    assert_eq!(decode(b"<OME/>\0\0"), "<OME/>");
    assert_eq!(decode(b"\xb5m\0"), "µm");
    assert_eq!(decode("µm".as_bytes()), "µm");
    assert_eq!(decode(b"\0"), "");
}

#[test]
fn what_the_schema_forbids_is_not_written() {
    let mut metadata = ImageMetadata::named("a\u{1}<b>\"\n&");
    metadata.acquired = Some("yesterday".into());
    metadata.physical_size_x = Some(PhysicalSize { value: f64::NAN, unit: "µm".into() });
    metadata.physical_size_y = Some(PhysicalSize { value: 2.0, unit: "micrometer".into() });
    metadata.channels = vec![
        Channel {
            id: "ch-0".into(),
            illumination: Some("lamp".into()),
            emission_um: Some(-1.0),
            ..Channel::default()
        },
        Channel { id: "ch-0".into(), ..Channel::default() },
    ];
    let xml = write(&[OmeImage::new(metadata, Shape([1, 2, 1, 3, 4]), PixelType::F32)]);
    let back = read(&xml).unwrap().remove(0).metadata;
    // The attribute has what XML can hold; the name itself is kept apart.
    assert!(xml.contains("Name=\"a\u{fffd}&lt;b&gt;&quot;&#10;&amp;\"") && !xml.contains('\u{1}'), "{xml}");
    assert_eq!((back.id.as_str(), back.name.as_str()), ("Image:0", "a\u{1}<b>\"\n&"));
    assert_eq!((back.acquired, back.physical_size_x), (None, None));
    assert_eq!(back.physical_size_y, Some(PhysicalSize { value: 2.0, unit: "µm".into() }));
    assert_eq!((back.channels[0].id.as_str(), back.channels[1].id.as_str()), ("Channel:0:0", "Channel:0:1"));
    assert_eq!(
        (back.channels[0].illumination.as_deref(), back.channels[0].emission_um),
        (Some("Other"), None)
    );
    for (time, valid) in [
        ("2026-11-21T05:38:56.401079", true),
        ("2026-11-21T05:38:56+02:00", true),
        ("2026-11-21T05:38:56Z", true),
        ("2026-13-21T05:38:56", false),
        ("2026-11-21 05:38:56", false),
        ("2026-11-21T05:38:56.", false),
        ("2026-11-21T05:38:56+0200", false),
        ("2026-11-21T05:38:56µZ", false),
    ] {
        let image = OmeImage::new(
            ImageMetadata { acquired: Some(time.into()), ..ImageMetadata::named("x") },
            Shape::plane(1, 1),
            PixelType::U8,
        );
        let back = read(&write(&[image])).unwrap().remove(0).metadata.acquired;
        assert_eq!(back.as_deref(), valid.then_some(time));
    }
}

prop_compose! {
    fn a_size()(value in prop::option::of(1e-9..1e9f64), unit in prop::sample::select(vec!["µm", "nm", "Å", "pixel"]))
        -> Option<PhysicalSize> { value.map(|value| PhysicalSize { value, unit: unit.into() }) }
}

prop_compose! {
    fn an_increment()(value in prop::option::of(1e-9..1e9f64), unit in prop::sample::select(vec!["s", "ms", "min"]))
        -> Option<TimeIncrement> { value.map(|value| TimeIncrement { value, unit: unit.into() }) }
}

prop_compose! {
    fn a_channel()(
        name in "\\PC{0,12}", emission_um in prop::option::of(0.001..2.0f64),
        excitation_um in prop::option::of((300u32..900).prop_map(|nm| f64::from(nm) / 1000.0)),
        illumination in prop::option::of(prop::sample::select(vec!["Epifluorescence", "Transmitted", "Other"])),
        color_rgba in any::<Option<u32>>(),
    ) -> Channel {
        let illumination = illumination.map(str::to_owned);
        Channel { id: String::new(), name, emission_um, excitation_um, illumination, color_rgba }
    }
}

prop_compose! {
    fn an_image()(
        [t, z, y, x] in prop::array::uniform4(1usize..7),
        channels in prop::collection::vec(a_channel(), 1..5),
        dtype in prop::sample::select(PixelType::ALL.to_vec()),
        dimension_order in prop::sample::select(DimensionOrder::ALL.to_vec()),
        name in "\\PC{0,20}", sizes in prop::array::uniform3(a_size()), time_increment in an_increment(),
        acquired in prop::option::of(Just("2026-11-21T05:38:56.401079".to_owned())),
        big_endian in any::<Option<bool>>(), per_plane in any::<bool>(),
        file_name in prop::option::of("[a-z&é ]{1,9}"), file_uuid in prop::option::of(Just("urn:uuid:1".to_owned())),
    ) -> OmeImage {
        let mut channels = channels;
        for (c, channel) in channels.iter_mut().enumerate() { channel.id = format!("Channel:0:x{c}"); }
        let shape = Shape([t, channels.len(), z, y, x]);
        let [physical_size_x, physical_size_y, physical_size_z] = sizes;
        let metadata = ImageMetadata {
            id: "Image:0".into(), name, channels, physical_size_x, physical_size_y, physical_size_z, acquired,
            time_increment,
        };
        let mut image = OmeImage { dimension_order, big_endian, file_uuid, ..OmeImage::new(metadata, shape, dtype) };
        if per_plane { image = image.with_block_per_plane(3); }
        if file_name.is_some() {
            for block in &mut image.planes {
                block.file_name.clone_from(&file_name);
                block.uuid = Some("urn:uuid:2".into());
            }
        }
        image
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(image in an_image()) {
        let mut back = read(&write(std::slice::from_ref(&image))).unwrap();
        let name = &image.metadata.name;
        prop_assert_eq!(back[0].has_exact_name, name.is_empty() || name.trim() != name);
        back[0].has_exact_name = false;
        prop_assert_eq!(back.as_slice(), std::slice::from_ref(&image));
        let map = image.ifd_of_planes(no_pages).unwrap();
        prop_assert_eq!(map.first_missing(), None);
        for index in 0..image.shape.planes() {
            let (t, c, z) = image.dimension_order.plane_position(index, image.shape);
            let first = image.planes[0].ifd.unwrap();
            prop_assert_eq!(ifd(&map, t, c, z), Some(first + index));
        }
    }

    /// Any name at all comes back: characters that an attribute cannot hold are kept apart.
    #[test]
    fn names_are_kept_to_the_byte(names in prop::collection::vec(
        prop::collection::vec(prop::sample::select(vec!['\0', '\n', ' ', '\u{fffe}', '\u{ffff}', '"', '<', 'µ', '\u{1f52c}', 'a']), 0..6),
        1..5,
    )) {
        let names: Vec<String> = names.into_iter().map(|name| name.into_iter().collect()).collect();
        let image = |name: &String| OmeImage::new(ImageMetadata::named(name), Shape::plane(1, 1), PixelType::U8);
        let back = read(&write(&names.iter().map(image).collect::<Vec<_>>())).unwrap();
        prop_assert_eq!(back.into_iter().map(|image| image.metadata.name).collect::<Vec<_>>(), names);
    }

    /// Runs that overlap in any way resolve as a plain array filled block by block would.
    #[test]
    fn last_block_wins(first in 1usize..25, blocks in prop::collection::vec((0usize..24, 1usize..30, 0usize..100), 0..12)) {
        let mut image = stack("XYZCT", "");
        // Whether positions count from 1 is guessed from all blocks together: one at 0 keeps that out.
        let blocks: Vec<_> = [(0, first, 7)].into_iter().chain(blocks).collect();
        let mut expected = [None; 24];
        image.planes = blocks.iter().map(|&(start, count, ifd)| {
            for (i, slot) in expected[start..].iter_mut().take(count).enumerate() { *slot = Some(ifd + i); }
            let (first_t, first_c, first_z) = image.dimension_order.plane_position(start, image.shape);
            TiffData { first_t, first_c, first_z, ifd: Some(ifd), plane_count: Some(count), ..TiffData::default() }
        }).collect();
        let map = image.ifd_of_planes(no_pages).unwrap();
        for (index, &page) in expected.iter().enumerate() {
            let (t, c, z) = image.dimension_order.plane_position(index, image.shape);
            prop_assert_eq!(ifd(&map, t, c, z), page);
        }
        prop_assert_eq!(
            map.first_missing(),
            expected.iter().position(Option::is_none).map(|i| image.dimension_order.plane_position(i, image.shape))
        );
    }

    /// Damaged documents give an error or a believable image: never a panic, a hang, or a giant allocation.
    #[test]
    fn damage_is_survived(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..9, "[-<>/&;\"'=0-9a-zA-Z!\\[ \u{0}µ]{0,8}"), 1..6)
    ) {
        let mut text: Vec<char> = BIO_FORMATS.chars().collect();
        for (at, removed, inserted) in edits {
            if text.is_empty() { break; }
            let at = at.index(text.len());
            let end = (at + removed).min(text.len());
            text.splice(at..end, inserted.chars());
        }
        let text: String = text.into_iter().collect();
        if let Ok(images) = read(&text) {
            for image in images {
                prop_assert!(image.shape.checked_bytes(image.dtype).is_ok());
                prop_assert_eq!(image.samples_per_pixel.iter().sum::<usize>(), image.shape.c());
                if let Ok(map) = image.ifd_of_planes(|_| Some(4)) {
                    let [t, c, z, ..] = image.shape.0;
                    let _ = (map.source(t - 1, c - 1, z - 1), map.first_missing());
                    prop_assert_eq!(map.source(t, 0, 0), None);
                }
            }
        }
    }

    #[test]
    fn any_text_is_survived(text in "\\PC*") {
        prop_assert!(read(&text).is_err());
    }
}
