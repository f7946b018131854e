//! Pages of differences of all widths, whole and in parts, and damaged ones.

use super::super::values::{Coding, decode, decode_on};
use super::*;
use proptest::prelude::*;

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// A page as the specification says, the differences of 32-bit values as such.
fn encode(values: &[i64], narrow: bool, block: usize, miniblocks: usize) -> Vec<u8> {
    let mut out = vec![];
    let first = values.first().copied().unwrap_or(0);
    for number in [block as u64, miniblocks as u64, values.len() as u64, zigzag(first)] {
        put_varint(&mut out, number);
    }
    let wrap = |d: i64| if narrow { i64::from(d as i32) } else { d };
    let differences: Vec<i64> = values.windows(2).map(|w| wrap(w[1].wrapping_sub(w[0]))).collect();
    for block_values in differences.chunks(block) {
        let smallest = *block_values.iter().min().unwrap();
        put_varint(&mut out, zigzag(smallest));
        let above = |d: &i64| {
            let above = d.wrapping_sub(smallest) as u64;
            if narrow { u64::from(above as u32) } else { above }
        };
        let size = block / miniblocks;
        let mut bodies = vec![];
        for i in 0..miniblocks {
            let values: Vec<u64> = block_values.iter().skip(i * size).take(size).map(above).collect();
            let width = 64 - values.iter().max().unwrap_or(&0).leading_zeros();
            out.push(width as u8);
            if !values.is_empty() {
                let mut bits = vec![0u8; size * width as usize / 8];
                for (i, v) in values.iter().enumerate() {
                    for b in (0..width as usize).filter(|b| v >> b & 1 == 1) {
                        let at = i * width as usize + b;
                        bits[at / 8] |= 1 << (at % 8);
                    }
                }
                bodies.extend(bits);
            }
        }
        out.extend(bodies);
    }
    out
}

proptest! {
    /// Any part of a page, in any order of parts: the same as the plain values.
    #[test]
    fn any_part_is_as_plain_values(
        values in prop_oneof![
            prop::collection::vec(0i64..256, 0..900),
            prop::collection::vec(0i64..65_536, 0..900),
            prop::collection::vec(any::<i32>().prop_map(i64::from), 0..500),
            prop::collection::vec(any::<i64>(), 0..500),
        ],
        (block, miniblocks) in prop::sample::select(vec![(128, 4), (128, 1), (256, 4), (2048, 8), (4096, 1)]),
        cut in any::<(prop::sample::Index, prop::sample::Index)>(),
        leaf in prop::sample::select(vec![LeafType::I32, LeafType::U32, LeafType::I64, LeafType::U64]),
        dtype in prop::sample::select(PixelType::ALL.to_vec()),
    ) {
        let narrow = leaf.size() == 4;
        let values: Vec<i64> = if narrow { values.iter().map(|&v| i64::from(v as i32)).collect() } else { values };
        let page = encode(&values, narrow, block, miniblocks).into_boxed_slice();
        let plain: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()[..leaf.size()].to_vec()).collect();
        let n = values.len();
        prop_assert!(is_usual(&page) && is_complete(&page, n) && !is_complete(&page, n + 1));
        let (a, b) = (cut.0.index(n + 1), cut.1.index(n + 1));
        let range = a.min(b)..a.max(b);
        let mut walk = PageCursor::default();
        for range in [range.clone(), range.end..n, 0..range.start, range.clone(), 0..n] {
            let mut out = vec![0; range.len() * dtype.size()];
            let found = decode_on(&page, Coding::Delta, leaf, n, range.clone(), dtype, &mut out, &mut walk);
            let mut expected = vec![0; range.len() * dtype.size()];
            let plain = decode(&plain, Coding::Plain, leaf, n, range, dtype, &mut expected);
            prop_assert_eq!(&found, &plain);
            if found.is_ok() {
                prop_assert_eq!(out, expected);
            }
        }
    }

    /// A page cut off anywhere gives an error, or the values of the whole one.
    #[test]
    fn pages_cut_off_are_errors(values in prop::collection::vec(0i64..70_000, 2..600), cut in any::<prop::sample::Index>()) {
        let page = encode(&values, true, 128, 4);
        let cut = cut.index(page.len());
        let mut out = vec![0; values.len() * 4];
        let found = decode(&page[..cut], Coding::Delta, LeafType::I32, values.len(), 0..values.len(), PixelType::I32, &mut out);
        prop_assert_eq!(found.is_ok(), is_complete(&page[..cut], values.len()));
        if found.is_ok() {
            let expected: Vec<u8> = values.iter().flat_map(|&v| (v as i32).to_le_bytes()).collect();
            prop_assert_eq!(out, expected);
        }
    }
}

#[test]
fn what_the_specification_does_not_allow_is_refused() {
    let page = |numbers: [u64; 4]| {
        let mut out = vec![];
        for n in numbers {
            put_varint(&mut out, n);
        }
        out.extend([0; 200]);
        let mut pixels = [0; 20];
        decode(&out, Coding::Delta, LeafType::I64, 20, 0..20, PixelType::U8, &mut pixels)
    };
    assert_eq!(page([128, 4, 20, 0]), Ok(()));
    let blocks = |size: u64| {
        let mut out = vec![];
        for n in [size, 1, 20, 0] {
            put_varint(&mut out, n);
        }
        is_usual(&out)
    };
    assert!(blocks(2048) && !blocks(1 << 20));
    for wrong in [
        [0, 4, 20, 0],
        [128, 0, 20, 0],
        [128, 3, 20, 0],
        [100, 1, 20, 0],
        [128, 128, 20, 0],
        [1 << 40, 1, 20, 0],
    ] {
        assert!(matches!(page(wrong), Err(BadValue::Corrupt(_))), "{wrong:?}");
    }
    assert_eq!(page([128, 4, 19, 0]), Err(BadValue::Corrupt("a page holds fewer values than it declares")));
}
