//! Facts in a file's OME-XML for which [`wellread_image::ImageMetadata`] has no field.

use super::ifd::{FileView, Header, read_chain, tag};
use super::ome::is_ome;
use crate::place;
use std::path::Path;
use wellread_image::ome_xml;

/// The facts of the file at `path`, such as `stage positions`. A file that cannot be looked at has none.
pub(super) fn of_file(path: &Path) -> Vec<&'static str> {
    description(path).filter(|text| is_ome(text)).map_or_else(Vec::new, |text| ome_xml::unkept(&text))
}

/// The description in the first directory of a file.
fn description(path: &Path) -> Option<String> {
    let (file, length) = place::open(path).ok()?;
    let mut window = vec![];
    let mut view = FileView::new(path, &file, length, &mut window);
    let header = Header::read(&mut view).ok()?;
    let mut found = None;
    // It ends with the first directory, by an error.
    let _ = read_chain(&mut view, header, |view, ifd| {
        found = ifd.text(view, tag::IMAGE_DESCRIPTION)?;
        Err(view.error("one directory is enough"))
    });
    found
}

#[cfg(test)]
mod tests {
    use super::super::codec::Packing;
    use super::super::encode::{Encoder, Layout};
    use super::super::endian::Endian;
    use super::*;
    use crate::{Compression, OpenOptions, unkept};
    use wellread_image::ome_xml::OmeImage;
    use wellread_image::{ImageMetadata, PixelType, Shape};

    #[test]
    fn the_description_of_the_first_page_is_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let written = |name: &str, more: &str| {
            let path = dir.path().join(name);
            let packing = Packing::new(&path, Compression::None, false).unwrap();
            let (endian, big) = (Endian::Little, false);
            let layout =
                Layout { packing, tile: None, strip_rows: None, endian, big, checksums: false, jobs: 1 };
            let mut encoder = Encoder::create(&path, &path, layout).unwrap();
            encoder.page(&[1, 2, 3, 4], [2, 2], PixelType::U8).unwrap();
            let image = OmeImage::new(ImageMetadata::named("a"), Shape::plane(2, 2), PixelType::U8);
            let xml = ome_xml::write(&[image]).replace("</Pixels>", &format!("{more}</Pixels>"));
            encoder.describe(0, xml);
            encoder.finish().unwrap();
            path
        };
        let moved = written("moved.tif", "<Plane TheZ=\"0\" TheT=\"0\" TheC=\"0\" PositionX=\"1\"/>");
        assert_eq!(of_file(&moved), ["stage positions"]);
        let store = crate::open(&moved, &OpenOptions::default()).unwrap();
        assert_eq!(unkept::of_first_images(&*store), ["stage positions"]);
        assert!(of_file(&written("own.tif", "")).is_empty());
        assert!(of_file(&dir.path().join("none.tif")).is_empty());
    }
}
