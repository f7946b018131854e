//! Headers and indexes as writers make them, damaged ones, and headers with a checksum put in.

use super::*;
use proptest::prelude::*;

/// A v1 header as pyarrow writes it: sizes, values, encodings, statistics with bounds.
const V1: &[u8] = &[
    0x15, 0x00, 0x15, 0xd0, 0x0f, 0x15, 0x80, 0x08, 0x2c, 0x15, 0x90, 0x4e, 0x15, 0x10, 0x15, 0x06, 0x15,
    0x06, 0x1c, 0x36, 0x00, 0x28, 0x02, b'a', b'b', 0x18, 0x01, b'c', 0x00, 0x00, 0x00, 0xff,
];

#[test]
fn a_data_page_is_parsed() {
    let header = PageHeader::parse(V1).unwrap();
    let expected = PageHeader {
        kind: PageKind::V1 { levels: [Encoding::Rle, Encoding::Rle] },
        uncompressed: 1000,
        compressed: 512,
        values: 5000,
        encoding: Encoding::Dictionary,
        crc: None,
        length: V1.len() - 1,
    };
    assert_eq!(header, expected);
}

#[test]
fn size_and_checksum_are_put_in() {
    let without = PageHeader::parse(V1).unwrap();
    for compressed in [0, 1, 63, 64, 8191, 8192, i32::MAX] {
        for crc in [0, 1, 63, 64, 0x7fff_ffff, 0x8000_0000, 0xdead_beef, u32::MAX] {
            let bytes = of_bytes(V1, compressed, Some(crc)).unwrap();
            let with = PageHeader::parse(&bytes).unwrap();
            let length = without.length + bytes.len() - V1.len();
            let compressed = compressed as usize;
            assert_eq!(with, PageHeader { compressed, crc: Some(crc), length, ..without });
            assert_eq!(of_bytes(&bytes, 1, Some(crc)), None, "it has one");
        }
        let bytes = of_bytes(V1, compressed, None).unwrap();
        let length = without.length + bytes.len() - V1.len();
        let compressed = compressed as usize;
        assert_eq!(PageHeader::parse(&bytes), Ok(PageHeader { compressed, length, ..without }));
    }
    assert_eq!(of_bytes(V1, without.compressed as i32, None).as_deref(), Some(V1));
    for n in 0..9 {
        assert_eq!(of_bytes(&V1[..n], 7, Some(7)), None, "{n} bytes");
    }
}

#[test]
fn every_prefix_asks_for_more() {
    for n in 0..V1.len() - 1 {
        assert_eq!(PageHeader::parse(&V1[..n]), Err(HeaderError::Short), "{n} bytes");
    }
}

#[test]
fn negative_sizes_are_refused() {
    assert!(matches!(
        PageHeader::parse(&[0x15, 0x00, 0x15, 0x01, 0x00]),
        Err(HeaderError::Corrupt(m)) if m.contains("negative")
    ));
}

/// Two pages, at 4 and 104, of 100 and 60 bytes, that begin with rows 0 and 3; then a field that is not read.
const INDEX: &[u8] = &[
    0x19, 0x2c, 0x16, 0x08, 0x15, 0xc8, 0x01, 0x16, 0x00, 0x00, 0x16, 0xd0, 0x01, 0x15, 0x78, 0x16, 0x06,
    0x00, 0x19, 0x26, 0x02, 0x04, 0x00,
];

#[test]
fn an_offset_index_is_parsed() {
    let page = |offset, size, first_row| PageLocation { offset, size, first_row };
    assert_eq!(page_locations(INDEX), Ok(vec![page(4, 100, 0), page(104, 60, 3)]));
    for n in 0..INDEX.len() {
        assert_eq!(page_locations(&INDEX[..n]), Err(HeaderError::Short), "{n} bytes");
    }
    // A negative offset.
    let negative = [&INDEX[..3], &[0x07], &INDEX[4..]].concat();
    assert!(matches!(page_locations(&negative), Err(HeaderError::Corrupt(_))));
}

proptest! {
    /// For any bytes, parsing ends and makes no more than they can hold.
    #[test]
    fn any_offset_index_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(pages) = page_locations(&bytes) {
            prop_assert!(pages.len() <= bytes.len());
        }
    }

    #[test]
    fn any_flip_in_an_offset_index_is_survived(at in 0..INDEX.len(), bit in 0u32..8) {
        let mut bytes = INDEX.to_vec();
        bytes[at] ^= 1u8 << bit;
        if let Ok(pages) = page_locations(&bytes) {
            prop_assert!(pages.len() <= bytes.len());
        }
    }

    /// For any bytes, parsing ends within the slice.
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(header) = PageHeader::parse(&bytes) {
            prop_assert!(header.length <= bytes.len());
        }
    }

    #[test]
    fn any_flip_is_survived(at in 0..V1.len(), bit in 0u32..8) {
        let mut bytes = V1.to_vec();
        bytes[at] ^= 1u8 << bit;
        if let Ok(header) = PageHeader::parse(&bytes) {
            prop_assert!(header.length <= bytes.len());
        }
    }
}
