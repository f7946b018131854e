//! OME-XML of files that are alike is parsed once, and names of images are found in it.

use super::super::companion::{Companion, Companions};
use super::super::index::FileIndex;
use super::*;

fn name(xml: &str) -> Option<&str> {
    range_of_name(xml).map(|range| &xml[range])
}

#[test]
fn the_name_of_a_lone_image_is_found() {
    assert_eq!(
        name(r#"<?xml?><OME><Image ID="Image:0" Name="a-1 µ"><Pixels/></Image></OME>"#),
        Some("a-1 µ")
    );
    for xml in [
        r#"<OME><Image ID="Image:0"><Pixels Name="a"/></Image></OME>"#,
        r#"<OME><Image Name="a"/><Image Name="b"/></OME>"#,
        r#"<OME><!-- <Image Name="a"/> --></OME>"#,
        r#"<OME><Image Name="a &amp; b"/></OME>"#,
        r#"<OME><Image Name=" a"/></OME>"#,
        r#"<OME><Image Name=""/></OME>"#,
        r#"<OME><Image ID=' Name="' Name="a"/></OME>"#,
        "<OME><Image Name=\"a\nb\"/></OME>",
        r#"<OME><Image Name="a>b"/></OME>"#,
        r#"<OME><Image Name="a"#,
        "",
    ] {
        assert_eq!(name(xml), None, "{xml}");
    }
}

/// A one-page TIFF of 2 x 2 pixels with a description.
fn tiff(description: &str) -> Vec<u8> {
    let text = [description.as_bytes(), b"\0"].concat();
    let tags: [(u16, u16, u32, u32); 8] = [
        (256, 3, 1, 2),
        (257, 3, 1, 2),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (270, 2, text.len() as u32, 12),
        (273, 4, 1, 8),
        (278, 3, 1, 2),
        (279, 4, 1, 4),
    ];
    let directory = (12 + text.len() as u32).next_multiple_of(2);
    let mut bytes = [&b"II*\0"[..], &directory.to_le_bytes(), &[1, 2, 3, 4], &text].concat();
    bytes.resize(directory as usize, 0);
    bytes.extend((tags.len() as u16).to_le_bytes());
    for (tag, kind, count, value) in tags {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes
}

fn xml(name: &str, x: usize, tiff_data: &str) -> String {
    format!(
        r#"<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0" Name="{name}"><Pixels
        ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" SizeX="{x}" SizeY="2" SizeZ="1" SizeC="1" SizeT="1">
        <Channel ID="Channel:0:0" Name="DNA"/>{tiff_data}</Pixels></Image></OME>"#
    )
}

#[test]
fn descriptions_that_differ_in_a_name_are_parsed_once() {
    let dir = tempfile::tempdir().unwrap();
    let known = Descriptions::default();
    let index = |file: &str, xml: &str| {
        let path = dir.path().join(file);
        std::fs::write(&path, tiff(xml)).unwrap();
        let (opened, len) = place::open(&path).unwrap();
        FileIndex::read(&path, (&opened, len), &mut vec![], &known, None)
    };
    let mut shared = vec![];
    for i in 0..1000 {
        let name = format!("cell {i}");
        let index = index(&format!("{i}.tif"), &xml(&name, 2, r#"<TiffData IFD="0"/>"#)).unwrap();
        let [series] = &*index.series else { panic!() };
        assert_eq!(series.given_name(), Some(name.as_str()));
        assert_eq!(series.info.as_ref().unwrap().shape, Shape::plane(2, 2));
        shared.push(Arc::clone(series.metadata.as_ref().unwrap()));
    }
    assert_eq!(known.len(), 1);
    assert!(shared.iter().all(|metadata| Arc::ptr_eq(metadata, &shared[0])));
    assert_eq!(shared[0].channels[0].name, "DNA");
    // A file that is described otherwise is as it says itself, and is parsed again.
    let other = index("a.tif", &xml("cell 1", 3, r#"<TiffData IFD="0"/>"#)).unwrap();
    let Err(refusal) = &other.series[0].info else { panic!() };
    assert!(format!("{refusal:?}").contains("declares 3 x 2"), "{refusal:?}");
    assert_eq!(known.len(), 2);
    let other = index("b.tif", &xml("cell 1", 2, r#"<TiffData IFD="7"/>"#)).unwrap();
    assert!(other.series[0].info.is_err());
    // Names of files are for each file to be looked up.
    for file in ["c.tif", "d.tif"] {
        let block = format!(r#"<TiffData IFD="0"><UUID FileName="{file}">urn:uuid:1</UUID></TiffData>"#);
        let index = index(file, &xml("cell 1", 2, &block)).unwrap();
        assert_eq!((index.others().count(), index.series[0].planes[0].source), (0, 0));
    }
    assert_eq!(known.len(), 3);
    for file in ["e.tif", "f.tif"] {
        let broken = xml("cell 1", 2, "").replace("SizeX=\"2\"", "SizeX=\"two\"");
        let error = index(file, &broken).unwrap_err().to_string();
        assert!(error.contains(file) && error.contains("SizeX"), "{error}");
    }
}

/// A companion is parsed once, whatever the number of files that it describes, and its images' metadata are kept once.
#[test]
fn a_companion_is_parsed_once_for_all_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let pointer = r#"<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><BinaryOnly
        MetadataFile="set.companion.ome" UUID="urn:uuid:set"/></OME>"#;
    // The second and third file say whose they are, the others do not.
    let files = [("a.tif", ""), ("b.tif", pointer), ("c.tif", pointer), ("d.tif", "")];
    let image = |(i, (file, _)): (usize, &(&str, &str))| {
        let block = format!(r#"<TiffData IFD="0"><UUID FileName="{file}">urn:uuid:{file}</UUID></TiffData>"#);
        let whole = xml(&format!("field {i}"), 2, &block);
        let (start, end) = (whole.find("<Image").unwrap(), whole.find("</OME>").unwrap());
        whole[start..end].to_owned()
    };
    let images = files.iter().enumerate().map(image).collect::<Vec<_>>().concat();
    let path = dir.path().join("set.companion.ome");
    let set = r#"<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:set">"#;
    std::fs::write(&path, format!("{set}{images}</OME>")).unwrap();
    for (file, description) in files {
        std::fs::write(dir.path().join(file), tiff(description)).unwrap();
    }
    let companions = Companions::new([Companion::read(&path).unwrap()]);
    let metadata = |file: &str| -> Vec<Arc<ImageMetadata>> {
        let path = dir.path().join(file);
        let (opened, len) = place::open(&path).unwrap();
        let known = Descriptions::default();
        let index =
            FileIndex::read(&path, (&opened, len), &mut vec![], &known, companions.of(&path)).unwrap();
        index.series.iter().map(|series| Arc::clone(series.metadata.as_ref().unwrap())).collect()
    };
    let first = metadata("a.tif");
    let names: Vec<&str> = first.iter().map(|image| image.name.as_str()).collect();
    assert_eq!(names, ["field 0", "field 1", "field 2", "field 3"]);
    for file in ["b.tif", "c.tif", "d.tif"] {
        let others = metadata(file);
        assert_eq!(others.len(), 4, "{file}");
        assert!(first.iter().zip(&others).all(|(a, b)| Arc::ptr_eq(a, b)), "{file}");
    }
}
