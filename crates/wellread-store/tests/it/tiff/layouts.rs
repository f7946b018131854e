//! Files as other programs write them, made tag by tag.
//!
//! Long because each layout of another program is a file that is made tag by tag.

use super::builder::{Page, tiff};
use super::{check_regions, failure, folder, only_image, open, open_bytes};
use std::slice::from_ref;
use wellread_image::{PixelType, Shape};
use wellread_store::tiff::FORMAT;
use wellread_store::{Compression, ImageView, OpenOptions, WriteOptions, create, read_image};

#[test]
fn colours_become_channels() {
    let dir = folder();
    // Two pixels side by side, one row below: RGB.
    let chunky = Page::grey(2, 2, 8, &[&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]])
        .with(258, &[8, 8, 8])
        .with(277, &[3])
        .with(262, &[2]);
    let expected = vec![1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12];
    let shape = Shape([1, 3, 1, 2, 2]);
    assert_eq!(
        only_image(dir.path(), &tiff(true, from_ref(&chunky))),
        (shape, PixelType::U8, expected.clone())
    );
    let mut planar = chunky.clone().with(284, &[2]);
    planar.segments = expected.chunks(4).map(<[u8]>::to_vec).collect();
    assert_eq!(only_image(dir.path(), &tiff(false, &[planar.clone()])), (shape, PixelType::U8, expected));
    // A stack of them.
    let store = open_bytes(dir.path(), &tiff(true, &[chunky.clone(), chunky])).unwrap();
    assert_eq!(store.row_info(0).unwrap().shape, Shape([1, 3, 2, 2, 2]));
    check_regions(&*store);
    let store = open_bytes(dir.path(), &tiff(true, &[planar.clone(), planar])).unwrap();
    assert_eq!(store.row_info(0).unwrap().shape, Shape([1, 3, 2, 2, 2]));
    check_regions(&*store);
}

#[test]
fn horizontal_predictor_of_colours() {
    let dir = folder();
    let page = Page::grey(2, 1, 16, &[&[0, 1, 0, 2, 0, 3, 0, 1, 0, 1, 255, 255]])
        .with(258, &[16, 16, 16])
        .with(277, &[3])
        .with(317, &[2]);
    let (_, dtype, pixels) = only_image(dir.path(), &tiff(false, &[page]));
    assert_eq!(dtype, PixelType::U16);
    assert_eq!(pixels, [1, 0, 2, 0, 2, 0, 3, 0, 3, 0, 2, 0]);
}

#[test]
fn floating_point_predictor() {
    let dir = folder();
    for little in [true, false] {
        // 1.0 and 2.0: byte planes 3f 40 | 80 00 | 00 00 | 00 00, differenced.
        let page =
            Page::grey(2, 1, 32, &[&[0x3f, 0x01, 0x40, 0x80, 0, 0, 0, 0]]).with(317, &[3]).with(339, &[3]);
        let (_, dtype, pixels) = only_image(dir.path(), &tiff(little, &[page]));
        assert_eq!(dtype, PixelType::F32);
        assert_eq!(pixels, [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat());
    }
}

#[test]
fn packed_bits() {
    let dir = folder();
    let mask =
        Page::grey(10, 2, 1, &[&[0b1010_0000, 0b0100_0000], &[0b0000_0001, 0b1000_0000]]).with(278, &[1]);
    let expected = vec![1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0];
    let image = (Shape::plane(2, 10), PixelType::U8, expected);
    assert_eq!(only_image(dir.path(), &tiff(true, from_ref(&mask))), image);
    // The same with the bits of each byte in reverse.
    let mut reversed = mask.with(266, &[2]);
    reversed.segments.iter_mut().flatten().for_each(|b| *b = b.reverse_bits());
    assert_eq!(only_image(dir.path(), &tiff(true, &[reversed])), image);
    let twelve = Page::grey(3, 1, 12, &[&[0xAB, 0xCD, 0xEF, 0x12, 0x30]]);
    let pixels = [0xABCu16, 0xDEF, 0x123].map(u16::to_le_bytes).concat();
    assert_eq!(only_image(dir.path(), &tiff(true, &[twelve])), (Shape::plane(1, 3), PixelType::U16, pixels));
}

/// OME-XML of one image of 10 x 2 pixels, of this type.
fn ome_of_type(word: &str, tiff_data: &str) -> String {
    format!(
        r#"<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels ID="Pixels:0"
        DimensionOrder="XYZCT" Type="{word}" SizeX="10" SizeY="2" SizeZ="1" SizeC="1" SizeT="1">{tiff_data}</Pixels></Image></OME>"#
    )
}

#[test]
fn pages_tell_the_pixel_type_of_ome_tiff() {
    let dir = folder();
    let mask =
        Page::grey(10, 2, 1, &[&[0b1010_0000, 0b0100_0000], &[0b0000_0001, 0b1000_0000]]).with(278, &[1]);
    let plain = only_image(dir.path(), &tiff(true, from_ref(&mask)));
    assert_eq!(plain.1, PixelType::U8);
    for word in ["bit", "complex", "bool", "uint16"] {
        let page = mask.clone().describe(&ome_of_type(word, "<TiffData/>"));
        assert_eq!(only_image(dir.path(), &tiff(true, &[page])), plain, "{word}");
    }
    // Pixels that are complex indeed: the cause is that of the page.
    let complex =
        Page::grey(10, 2, 64, &[&[0; 160]]).with(339, &[6]).describe(&ome_of_type("complex", "<TiffData/>"));
    let error = failure(dir.path(), &tiff(true, &[complex]));
    assert!(error.contains("complex numbers of 64 bits"), "{error}");
}

#[test]
fn the_xml_tells_the_pixel_type_of_pages_in_another_file() {
    let dir = folder();
    let mask = Page::grey(10, 2, 1, &[&[0b1010_0000, 0b0100_0000, 0b0000_0001, 0b1000_0000]]);
    std::fs::write(dir.path().join("other.tif"), tiff(true, from_ref(&mask))).unwrap();
    let data = r#"<TiffData IFD="0"><UUID FileName="other.tif">urn:uuid:1</UUID></TiffData>"#;
    let file = |word: &str| tiff(true, &[mask.clone().describe(&ome_of_type(word, data))]);
    let (_, dtype, pixels) = only_image(dir.path(), &file("bit"));
    assert_eq!(
        (dtype, pixels),
        (PixelType::U8, vec![1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0])
    );
    let error = failure(dir.path(), &file("double-complex"));
    assert!(error.contains(r#"Pixels/@Type: unknown pixel type "double-complex""#), "{error}");
}

#[test]
fn lengths_may_be_missing() {
    let dir = folder();
    let mut page = Page::grey(4, 2, 8, &[&[1, 2, 3, 4], &[5, 6, 7, 8]]).with(278, &[1]);
    page.no_counts = true;
    assert_eq!(only_image(dir.path(), &tiff(true, &[page.clone()])).2, [1, 2, 3, 4, 5, 6, 7, 8]);
    // PackBits: a run of four, then four bytes as they are.
    page.segments = vec![vec![0xFD, 9], vec![3, 5, 6, 7, 8]];
    assert_eq!(only_image(dir.path(), &tiff(true, &[page.with(259, &[32773])])).2, [9, 9, 9, 9, 5, 6, 7, 8]);
}

#[test]
fn tiles_that_were_never_written_are_zero() {
    let dir = folder();
    let full: Vec<u8> = (0..=255).collect();
    let mut page = Page::grey(20, 16, 8, &[&full, &[]]).with(322, &[16]).with(323, &[16]);
    page.tiled = true;
    let (shape, _, pixels) = only_image(dir.path(), &tiff(true, &[page]));
    assert_eq!(shape, Shape::plane(16, 20));
    let expected: Vec<u8> = full.chunks(16).flat_map(|row| [row, &[0; 4]].concat()).collect();
    assert_eq!(pixels, expected);
}

/// As tifffile: the number of the `GDAL_NODATA` tag, where the pixel type holds it.
#[test]
fn strips_that_were_never_written_are_of_no_data() {
    let dir = folder();
    let page = |nodata: &str| {
        let mut page = Page::grey(2, 2, 16, &[&[1, 0, 2, 0], &[]]).with(278, &[1]);
        page.tags.push((42113, 2, nodata.bytes().chain([0]).map(u64::from).collect()));
        page
    };
    for (nodata, expected) in [("258", [2u8, 1]), ("65535", [255, 255]), ("-1", [0, 0]), ("no", [0, 0])] {
        let (_, dtype, pixels) = only_image(dir.path(), &tiff(true, &[page(nodata)]));
        assert_eq!(dtype, PixelType::U16);
        assert_eq!(pixels, [&[1u8, 0, 2, 0][..], &expected, &expected].concat(), "{nodata}");
    }
    // In big-endian files too: the value is of the pixel, not of its bytes.
    let (_, _, pixels) = only_image(dir.path(), &tiff(false, &[page("258")]));
    assert_eq!(pixels, [0, 1, 0, 2, 2, 1, 2, 1]);
}

#[test]
fn pages_of_one_kind_are_a_stack_and_copies_are_left_out() {
    let dir = folder();
    let page = |value: u8| Page::grey(2, 2, 8, &[&[value; 4]]);
    let other = Page::grey(3, 1, 8, &[&[7; 3]]);
    let thumbnail = Page::grey(1, 1, 8, &[&[9]]).with(254, &[1]);
    let store = open_bytes(dir.path(), &tiff(true, &[page(1), thumbnail, other, page(2)])).unwrap();
    assert_eq!(store.len(), 2);
    let (info, pixels) = read_image(&*store, 0).unwrap();
    assert_eq!((info.shape, pixels), (Shape([1, 1, 2, 2, 2]), vec![1, 1, 1, 1, 2, 2, 2, 2]));
    assert_eq!(store.row_info(1).unwrap().shape, Shape::plane(1, 3));
    assert_eq!(store.name(1).unwrap(), "file:1");
}

#[test]
fn smaller_copies_are_no_bytes_of_the_pixels() {
    let dir = folder();
    let page = Page::grey(10, 10, 8, &[&[1; 100]]);
    let level = Page::grey(5, 5, 8, &[&[2; 25]]).with(254, &[1]);
    let bytes = tiff(true, &[page, level]);
    let layout = open_bytes(dir.path(), &bytes).unwrap().layout().unwrap();
    assert_eq!(layout.pixel_share, Some(100.0 / bytes.len() as f64));
    assert_eq!(layout.codecs, [("none".to_owned(), 1)]);
}

#[test]
fn image_j_hyperstacks() {
    let dir = folder();
    let pages: Vec<Page> = (0..12u8).map(|i| Page::grey(1, 1, 8, &[&[i]])).collect();
    let describe = |pages: &[Page], text: &str| {
        let mut pages = pages.to_vec();
        pages[0] = pages[0].clone().describe(text);
        tiff(false, &pages)
    };
    let text = "ImageJ=1.53t\nimages=12\nchannels=2\nslices=3\nframes=2\nhyperstack=true\n";
    let (shape, _, pixels) = only_image(dir.path(), &describe(&pages, text));
    assert_eq!(shape, Shape([2, 2, 3, 1, 1]));
    // Stored T, Z, C; delivered T, C, Z.
    assert_eq!(pixels, [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]);
    let (shape, ..) = only_image(dir.path(), &describe(&pages, "ImageJ=1.53t\nimages=12\n"));
    assert_eq!(shape, Shape([1, 1, 12, 1, 1]));
    let uncounted = "ImageJ=1.53t\nchannels=2\nslices=3\nframes=2\n";
    assert_eq!(only_image(dir.path(), &describe(&pages, uncounted)).0, Shape([2, 2, 3, 1, 1]));
    // A description that does not fit is not believed.
    let (shape, ..) = only_image(dir.path(), &describe(&pages, "ImageJ=1.53t\nimages=40\nslices=40\n"));
    assert_eq!(shape, Shape([1, 1, 12, 1, 1]));
    let step = |text: &str| {
        let store = open_bytes(dir.path(), &describe(&pages, text)).unwrap();
        store.metadata(0).unwrap().time_increment.map(|step| (step.value, step.unit))
    };
    assert_eq!(step(text), None);
    assert_eq!(step(&format!("{text}finterval=2.5\n")), Some((2.5, "s".to_owned())));
    // Beyond 4 GB only the first page has a directory; the others follow it.
    let mut one = Page::grey(2, 1, 8, &[&[1, 2, 3, 4, 5, 6]]).describe("ImageJ=1.53t\nimages=3\nslices=3\n");
    one = one.with(279, &[2]);
    let (shape, _, pixels) = only_image(dir.path(), &tiff(true, &[one]));
    assert_eq!((shape, pixels), (Shape([1, 1, 3, 1, 2]), vec![1, 2, 3, 4, 5, 6]));
}

#[test]
fn numbers_may_be_of_signed_types() {
    let dir = folder();
    // SBYTE and SSHORT lie in the first bytes of four, SLONG in all.
    let page = Page::grey(2, 2, 8, &[&[1, 2, 3, 4]]);
    let bytes = tiff(true, &[page]);
    let expected = only_image(dir.path(), &bytes);
    let at = |tag: u16| {
        let directory = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
        let mut entries = (0..).map(|i| directory + 2 + 12 * i);
        entries.find(|&at| bytes[at..at + 2] == tag.to_le_bytes()).unwrap() + 2
    };
    for (tag, kind) in [(256, 9), (257, 8), (258, 8), (258, 6), (273, 9), (279, 9)] {
        let mut changed = bytes.clone();
        changed[at(tag)] = kind;
        assert_eq!(only_image(dir.path(), &changed), expected, "tag {tag} of type {kind}");
    }
}

#[test]
fn time_series_of_lsm() {
    let dir = folder();
    let read = |z: u64, t: u64, scan: u64| {
        let mut pages = numbered(0..6);
        let mut info = vec![0; 512];
        (info[16], info[24], info[88]) = (z, t, scan);
        pages[0].tags.push((34412, 1, info));
        // A thumbnail behind each page.
        let thumbnail = Page::grey(1, 1, 8, &[&[99]]).with(254, &[1]);
        let pages: Vec<Page> = pages.into_iter().flat_map(|page| [page, thumbnail.clone()]).collect();
        let (Shape([t, c, z, ..]), _, pixels) = only_image(dir.path(), &tiff(true, &pages));
        assert_eq!(c, 1);
        ([t, z], pixels)
    };
    let in_order: Vec<u8> = (0..6).collect();
    assert_eq!(read(3, 2, 6), ([2, 3], in_order.clone()));
    assert_eq!(read(1, 6, 3), ([6, 1], in_order.clone()));
    // Time points of a plane follow each other.
    assert_eq!(read(3, 2, 5), ([2, 3], vec![0, 2, 4, 1, 3, 5]));
    // As of a scan that was stopped early.
    assert_eq!(read(3, 4, 6), ([1, 6], in_order));
}

#[test]
fn stacks_of_meta_morph() {
    let dir = folder();
    let stack = |width: u64, bytes: &[u8], planes: usize| {
        let mut page = Page::grey(width, 1, 8, &[bytes]).with(279, &[width]);
        page.tags.push((33629, 5, vec![0; planes]));
        page
    };
    let bytes = [1, 2, 3, 4, 5, 6];
    let (shape, _, pixels) = only_image(dir.path(), &tiff(true, &[stack(2, &bytes, 3)]));
    assert_eq!((shape, pixels), (Shape([1, 1, 3, 1, 2]), vec![1, 2, 3, 4, 5, 6]));
    let (shape, _, pixels) = only_image(dir.path(), &tiff(false, &[stack(2, &bytes, 1)]));
    assert_eq!((shape, pixels), (Shape::plane(1, 2), vec![1, 2]));
    let error = failure(dir.path(), &tiff(true, &[stack(400, &[0; 400], 3)]));
    assert!(error.contains("3 planes of 400 bytes") && error.contains("truncated"), "{error}");
}

#[test]
fn tifffile_shapes() {
    let dir = folder();
    let pages: Vec<Page> = (0..6u8).map(|i| Page::grey(1, 1, 8, &[&[i]])).collect();
    let shape_of = |text: &str| {
        let mut pages = pages.clone();
        pages[0] = pages[0].clone().describe(text);
        only_image(dir.path(), &tiff(true, &pages)).0.0
    };
    assert_eq!(shape_of(r#"{"shape": [6, 1, 1]}"#), [1, 1, 6, 1, 1]);
    assert_eq!(shape_of(r#"{"shape": [2, 3, 1, 1]}"#), [1, 2, 3, 1, 1]);
    assert_eq!(shape_of(r#"{"shape": [3, 2, 1, 1, 1]}"#), [3, 2, 1, 1, 1]);
    assert_eq!(shape_of(r#"{"shape": [1, 2, 1, 3, 1, 1]}"#), [2, 1, 3, 1, 1]);
    assert_eq!(shape_of(r#"{"shape": [2, 3, 1, 1], "axes": "TCYX"}"#), [2, 3, 1, 1, 1]);
    assert_eq!(shape_of(r#"{"shape": [5, 5, 1, 1]}"#), [1, 1, 6, 1, 1]);
    // An axis of length 1 behind those of the page, as Keras has one of channels.
    let trailing = |shape: &str| {
        let mut pages: Vec<Page> = (0..6u8).map(|i| Page::grey(3, 2, 8, &[&[i; 6]])).collect();
        pages[0] = pages[0].clone().describe(shape);
        only_image(dir.path(), &tiff(true, &pages)).0.0
    };
    assert_eq!(trailing(r#"{"shape": [6, 2, 3, 1], "axes": "ZYXC"}"#), [1, 1, 6, 2, 3]);
    assert_eq!(trailing(r#"{"shape": [2, 3, 2, 3, 1], "axes": "TZYXC"}"#), [2, 1, 3, 2, 3]);
    assert_eq!(trailing(r#"{"shape": [2, 3, 2, 3, 1, 1]}"#), [1, 2, 3, 2, 3]);
    // Two images in one file.
    let mut two = pages.clone();
    two[0] = two[0].clone().describe(r#"{"shape": [2, 1, 1]}"#);
    two[2] = two[2].clone().describe(r#"{"shape": [4, 1, 1], "axes": "CYX"}"#);
    let store = open_bytes(dir.path(), &tiff(true, &two)).unwrap();
    assert_eq!(store.len(), 2);
    let (info, pixels) = read_image(&*store, 1).unwrap();
    assert_eq!((info.shape.0, pixels), ([1, 4, 1, 1, 1], vec![2, 3, 4, 5]));
    // One directory for all planes.
    let one = Page::grey(2, 1, 8, &[&[1, 2, 3, 4, 5, 6]]).with(279, &[2]);
    let one = one.describe(r#"{"shape": [3, 1, 2], "truncated": true}"#);
    assert_eq!(only_image(dir.path(), &tiff(true, &[one])).2, [1, 2, 3, 4, 5, 6]);
    // The same of colours, pixel by pixel and plane by plane.
    let all: Vec<u8> = (1..=12).collect();
    let colours = |strips: &[&[u8]], counts: &[u64], planar: u64, shape: &str| {
        let page = Page::grey(2, 1, 8, strips).with(258, &[8; 3]).with(277, &[3]).with(284, &[planar]);
        let page = page.with(279, counts).describe(shape);
        let (shape, _, pixels) = only_image(dir.path(), &tiff(true, &[page]));
        assert_eq!(shape, Shape([1, 3, 2, 1, 2]));
        pixels
    };
    let by_pixel = r#"{"shape": [2, 1, 2, 3], "axes": "ZYXS", "truncated": true}"#;
    assert_eq!(colours(&[&all], &[6], 1, by_pixel), [1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12]);
    let by_plane = r#"{"shape": [2, 3, 1, 2], "axes": "ZSYX", "truncated": true}"#;
    let strips = [&all[..2], &all[2..4], &all[4..]];
    assert_eq!(colours(&strips, &[2; 3], 2, by_plane), [1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12]);
}

/// OME-XML of one image of 1 x 1 pixels; `data` are its `TiffData` elements.
fn ome(sizes: [usize; 3], order: &str, uuid: &str, data: &str) -> String {
    let [t, c, z] = sizes;
    let uuid = if uuid.is_empty() { String::new() } else { format!(" UUID=\"urn:uuid:{uuid}\"") };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><OME \
         xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"{uuid}><Image ID=\"Image:0\" Name=\"name\">\
         <Pixels ID=\"Pixels:0\" DimensionOrder=\"{order}\" Type=\"uint8\" SizeX=\"1\" SizeY=\"1\" \
         SizeZ=\"{z}\" SizeC=\"{c}\" SizeT=\"{t}\">{data}</Pixels></Image></OME>"
    )
}

fn numbered(range: std::ops::Range<u8>) -> Vec<Page> {
    range.map(|i| Page::grey(1, 1, 8, &[&[i]])).collect()
}

#[test]
fn ome_dimension_orders() {
    let dir = folder();
    let read = |order: &str, data: &str| {
        let mut pages = numbered(0..24);
        pages[0] = pages[0].clone().describe(&ome([2, 3, 4], order, "", data));
        let (shape, _, pixels) = only_image(dir.path(), &tiff(true, &pages));
        assert_eq!(shape, Shape([2, 3, 4, 1, 1]));
        pixels
    };
    for order in ["XYZCT", "XYZTC", "XYCZT", "XYCTZ", "XYTZC", "XYTCZ"] {
        let stride = |axis: char| {
            let sizes = |a: u8| match a {
                b'T' => 2,
                b'C' => 3,
                _ => 4,
            };
            let before = order.bytes().skip(2).take_while(|&a| a != axis as u8);
            before.map(sizes).product::<u8>()
        };
        let mut expected = vec![];
        for t in 0..2 {
            for c in 0..3 {
                for z in 0..4 {
                    expected.push(t * stride('T') + c * stride('C') + z * stride('Z'));
                }
            }
        }
        assert_eq!(read(order, "<TiffData/>"), expected, "{order}");
        assert_eq!(read(order, "<TiffData IFD=\"0\" PlaneCount=\"24\"/>"), expected, "{order}");
    }
    let backwards: String = (0..24)
        .map(|i| {
            let (t, c, z) = (i / 12, i / 4 % 3, i % 4);
            format!("<TiffData IFD=\"{}\" FirstT=\"{t}\" FirstC=\"{c}\" FirstZ=\"{z}\"/>", 23 - i)
        })
        .collect::<Vec<_>>()
        .concat();
    assert_eq!(read("XYZCT", &backwards), (0..24).rev().collect::<Vec<u8>>());
}

#[test]
fn ome_over_several_files() {
    let dir = folder();
    let block = |c: usize, ifd: usize, uuid: &str, name: &str| {
        format!(
            "<TiffData IFD=\"{ifd}\" FirstC=\"{c}\" PlaneCount=\"1\"><UUID FileName=\"{name}\">urn:uuid:{uuid}</UUID></TiffData>"
        )
    };
    let data =
        block(0, 0, "a", "one.ome.tif") + &block(1, 0, "b", "two.ome.tif") + &block(2, 1, "b", "two.ome.tif");
    let write = |name: &str, uuid: &str, pages: std::ops::Range<u8>| {
        let mut pages = numbered(pages);
        pages[0] = pages[0].clone().describe(&ome([1, 3, 1], "XYZCT", uuid, &data));
        std::fs::write(dir.path().join(name), tiff(true, &pages)).unwrap();
    };
    write("one.ome.tif", "a", 10..11);
    write("two.ome.tif", "b", 20..22);
    std::fs::write(dir.path().join("zzz.tif"), tiff(true, &numbered(30..31))).unwrap();
    let store = open(dir.path()).unwrap();
    assert_eq!(store.len(), 2, "files that belong to another's image are no rows");
    let (info, pixels) = read_image(&*store, 0).unwrap();
    assert_eq!((info.shape.0, pixels), ([1, 3, 1, 1, 1], vec![10, 20, 21]));
    assert_eq!(store.name(0).unwrap(), "one");
    assert_eq!(read_image(&*store, 1).unwrap().1, [30]);
    assert_eq!(store.files().unwrap().len(), 3);
    // A row is read from its own file and the others that hold planes of it, each named once.
    let of = |rows: &[usize]| {
        let files = open(dir.path()).unwrap().files_of(rows).unwrap();
        let names = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(of(&[0]), ["one.ome.tif", "two.ome.tif"]);
    assert_eq!(of(&[1, 0, 1]), ["zzz.tif", "one.ome.tif", "two.ome.tif"]);
    assert!(store.files_of(&[2]).is_err());
    // As many rows as files, though not one for each.
    let two_sizes = [Page::grey(1, 1, 8, &[&[1]]), Page::grey(2, 1, 8, &[&[2, 3]])];
    std::fs::write(dir.path().join("zzz.tif"), tiff(true, &two_sizes)).unwrap();
    let store = open(dir.path()).unwrap();
    let names: Vec<String> = (0..store.len()).map(|row| store.name(row).unwrap()).collect();
    assert_eq!(names, ["one", "zzz:0", "zzz:1"]);
    assert_eq!(read_image(&*store, 2).unwrap().1, [2, 3]);
    // Either file alone leads to the whole image.
    for name in ["one.ome.tif", "two.ome.tif"] {
        let store = open(dir.path().join(name)).unwrap();
        assert_eq!(read_image(&*store, 0).unwrap().1, [10, 20, 21], "{name}");
        assert_eq!(store.files().unwrap().len(), 2);
    }
    std::fs::remove_file(dir.path().join("two.ome.tif")).unwrap();
    let error = open(dir.path()).and_then(|s| read_image(&*s, 0)).unwrap_err().to_string();
    assert!(error.contains("two.ome.tif"), "{error}");
}

#[test]
fn renamed_ome_files_and_companions() {
    let dir = folder();
    let data = "<TiffData IFD=\"0\" PlaneCount=\"2\"><UUID FileName=\"old name.ome.tif\">urn:uuid:x</UUID></TiffData>";
    let mut pages = numbered(0..2);
    pages[0] = pages[0].clone().describe(&ome([1, 1, 2], "XYZCT", "", data));
    assert_eq!(only_image(dir.path(), &tiff(true, &pages)).2, [0, 1]);
    // The description in a file of its own.
    let data = data.replace("old name.ome.tif", "file.tif");
    std::fs::write(dir.path().join("set.companion.ome"), ome([1, 1, 2], "XYZCT", "y", &data)).unwrap();
    let pointer = "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" UUID=\"urn:uuid:x\">\
                   <BinaryOnly MetadataFile=\"set.companion.ome\" UUID=\"urn:uuid:y\"/></OME>";
    pages[0] = pages[0].clone().describe(pointer);
    assert_eq!(only_image(dir.path(), &tiff(true, &pages)).2, [0, 1]);
    std::fs::remove_file(dir.path().join("set.companion.ome")).unwrap();
    assert!(failure(dir.path(), &tiff(true, &pages)).contains("set.companion.ome"));
}

#[test]
fn ome_that_contradicts_the_pages() {
    let dir = folder();
    let with = |xml: &str, pages: u8| {
        let mut pages = numbered(0..pages);
        pages[0] = pages[0].clone().describe(xml);
        tiff(true, &pages)
    };
    let error =
        failure(dir.path(), &with(&ome([1, 1, 5], "XYZCT", "", "<TiffData IFD=\"0\" PlaneCount=\"5\"/>"), 3));
    assert!(error.contains("page 3") && error.contains("3 pages"), "{error}");
    // Stopped early: the planes that are there can be read.
    let store = open_bytes(
        dir.path(),
        &with(&ome([1, 1, 3], "XYZCT", "", "<TiffData IFD=\"0\" PlaneCount=\"2\"/>"), 3),
    );
    let error = read_image(&*store.unwrap(), 0).unwrap_err().to_string();
    assert!(error.contains("z=2") && error.contains("stopped early"), "{error}");
    let xml = ome([1, 1, 1], "XYZCT", "", "<TiffData/>").replace("SizeX=\"1\"", "SizeX=\"9\"");
    let error = failure(dir.path(), &with(&xml, 9));
    assert!(error.contains("1 x 1") && error.contains("9 x 1"), "{error}");
    // The pixel type is that of the pages, whatever the description calls it.
    let xml = ome([1, 1, 1], "XYZCT", "", "<TiffData/>").replace("uint8", "uint9");
    let store = open_bytes(dir.path(), &with(&xml, 1)).unwrap();
    assert_eq!(read_image(&*store, 0).unwrap().1, [0]);
}

#[test]
fn unsupported_content_is_named() {
    let dir = folder();
    let page = Page::grey(2, 2, 8, &[&[0; 4]]);
    let says = |page: Page, what: &str| {
        let error = failure(dir.path(), &tiff(true, &[page]));
        assert!(error.contains(what) && error.contains("file.tif") && error.contains("row 0"), "{error}");
    };
    says(page.clone().with(259, &[7]), "JPEG (7)");
    says(page.clone().with(259, &[34712]), "JPEG 2000");
    says(page.clone().with(339, &[5]), "complex");
    says(Page::grey(1, 1, 24, &[&[0; 3]]), "unsigned integers of 24 bits");
    says(Page::grey(2, 1, 24, &[&[0; 6]]).with(339, &[3]), "floating-point numbers of 24 bits");
    says(page.clone().with(277, &[3]).with(258, &[5, 6, 5]), "differ in type");
    says(page.clone().with(317, &[3]), "predictor 3 does not go with its pixels, which have 8 bits");
    says(page.clone().with(317, &[9]), "predictor 9 is unknown");
    says(page.with(317, &[0]), "predictor 0 is unknown");
    let colours = Page::grey(2, 2, 8, &[&[0; 6]]).with(262, &[6]).with(277, &[3]).with(258, &[8, 8, 8]);
    says(colours.clone(), "YCbCr");
    // The codec before the colours, which it brings along.
    says(colours.with(259, &[7]), "JPEG (7)");
}

#[test]
fn folders() {
    let dir = folder();
    let file = |name: &str, value: u8| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, tiff(true, &numbered(value..value + 1))).unwrap();
    };
    let error = open(dir.path()).err().unwrap().to_string();
    assert!(error.contains("no TIFF file"), "{error}");
    assert!(
        wellread_store::open(dir.path(), &OpenOptions::default())
            .err()
            .unwrap()
            .to_string()
            .contains("empty")
    );
    file("sub/c.TIF", 3);
    let store = wellread_store::open(dir.path(), &OpenOptions::default()).unwrap();
    assert_eq!((store.len(), store.name(0).unwrap()), (1, "sub/c".to_owned()));
    file("b.tiff", 2);
    file("a.ome.tif", 1);
    file(".hidden.tif", 9);
    std::fs::write(dir.path().join("notes.txt"), "x").unwrap();
    std::fs::write(dir.path().join("profiles.parquet"), b"PAR1 no images in here PAR1").unwrap();
    let store = open(dir.path()).unwrap();
    let rows: Vec<_> =
        (0..store.len()).map(|row| (store.name(row).unwrap(), read_image(&*store, row).unwrap().1)).collect();
    let expected = [("a", 1), ("b", 2), ("sub/c", 3)].map(|(n, v)| (n.to_owned(), vec![v]));
    assert_eq!(rows, expected);
    for other in ["d.png", "d.zarr/zarr.json"] {
        let path = dir.path().join(other);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        let error = (FORMAT.open)(dir.path(), &OpenOptions::default()).err().unwrap().to_string();
        assert!(
            error.contains("mixes") && error.contains("a.ome.tif") && error.contains(&other[..4]),
            "{error}"
        );
        std::fs::remove_file(path).unwrap();
    }
    std::fs::remove_dir(dir.path().join("d.zarr")).unwrap();
    // A file that cannot be read is a row that says so; the others can be read.
    std::fs::write(dir.path().join("aa.tif"), "II*\0 and no more").unwrap();
    let store = open(dir.path()).unwrap();
    assert_eq!(store.len(), 4);
    let error = store.row_info(1).unwrap_err().to_string();
    assert!(error.contains("aa.tif") && error.contains("row 1"), "{error}");
    assert_eq!(read_image(&*store, 2).unwrap().1, [2]);
}

#[test]
fn large_folders_are_sampled() {
    let dir = folder();
    let bytes = tiff(true, &numbered(5..6));
    for i in 0..300 {
        std::fs::write(dir.path().join(format!("{i:03}.tif")), &bytes).unwrap();
    }
    let several = tiff(true, &[Page::grey(1, 1, 8, &[&[1]]), Page::grey(2, 1, 8, &[&[1, 2]])]);
    // Not among those looked into: an error, not half of its images.
    std::fs::write(dir.path().join("001.tif"), &several).unwrap();
    let store = open(dir.path()).unwrap();
    assert_eq!(store.len(), 300);
    assert_eq!(read_image(&*store, 299).unwrap().1, [5]);
    let error = read_image(&*store, 1).unwrap_err().to_string();
    assert!(error.contains("holds 2 images") && error.contains("001.tif"), "{error}");
    // Among them: all files are looked into.
    std::fs::write(dir.path().join("000.tif"), &several).unwrap();
    let store = open(dir.path()).unwrap();
    assert_eq!(store.len(), 302);
    assert_eq!(read_image(&*store, 3).unwrap().1, [1, 2]);
}

#[test]
#[cfg(unix)]
fn unreadable_files_are_named() {
    use std::os::unix::fs::PermissionsExt;
    let dir = folder();
    let path = dir.path().join("secret.tif");
    std::fs::write(&path, tiff(true, &numbered(0..1))).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        println!("skipped: this user may read everything");
        return;
    }
    let error = open(dir.path()).and_then(|s| read_image(&*s, 0)).unwrap_err().to_string();
    assert!(error.contains("secret.tif") && error.contains("permissions"), "{error}");
}

#[test]
fn large_planes_come_in_parts() {
    // Planes of more than one read, of rows wide enough to be read in part.
    let dir = folder();
    let path = dir.path().join("wide.tif");
    let shape = Shape([1, 1, 2, 40, 9000]);
    let pixels: Vec<u8> = (0..shape.pixels() * 2).map(|i| ((i * 31) >> 7) as u8).collect();
    let metadata = wellread_image::ImageMetadata::named("wide");
    for compression in [Compression::None, Compression::Lzw] {
        let options = WriteOptions { compression, overwrite: true, ..WriteOptions::default() };
        let mut writer = create(&path, "tiff", &options).unwrap();
        let view = ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels };
        writer.write(&view).unwrap();
        writer.finish().unwrap();
        let store = open(&path).unwrap();
        assert!(read_image(&*store, 0).unwrap().1 == pixels);
        check_regions(&*store);
    }
}
