use super::*;

/// Rows `[[a b] [c]] [[d]] [[e f g]]`, in chunks of four values.
#[test]
fn rows_are_cut_out_of_chunks() {
    let chunks: [&[Run]; 2] = [&[(2, 1), (0, 1), (1, 1), (2, 1)], &[(2, 1), (0, 2)]];
    let read = |skip, rows| {
        let mut starts = Starts::default();
        starts.reset(2);
        let mut wanted = Wanted { skip, rows, seen: 0 };
        let mut taken = 0;
        let mut ranges = vec![];
        for runs in chunks {
            let range = wanted.take(runs, 2, taken, &mut starts).unwrap();
            taken += range.len();
            ranges.push(range);
        }
        assert_eq!(wanted.seen, rows);
        (ranges, starts.0)
    };
    assert_eq!(read(0, 3), (vec![0..4, 0..3], vec![vec![0, 2, 3, 4], vec![0, 2, 3]]));
    assert_eq!(read(1, 1), (vec![3..4, 0..0], vec![vec![0], vec![0]]));
    assert_eq!(read(1, 2), (vec![3..4, 0..3], vec![vec![0, 1], vec![0, 1]]));
    assert_eq!(read(0, 1), (vec![0..3, 0..0], vec![vec![0, 2], vec![0]]));
}

/// Rows `[[a b] [c]] null null [[d]]`.
#[test]
fn null_rows_have_levels_and_no_values() {
    let mut runs = vec![(2, 1), (0, 1), (1, 1), (2, 3)];
    assert_eq!(mark_absent(&mut runs, &[(0, 3), (2, 2), (0, 1)], 2, &mut vec![]).unwrap(), 4);
    assert_eq!(runs, [(2, 1), (0, 1), (1, 1), (2 | ABSENT, 2), (2, 1)]);
    let read = |skip, rows| {
        let mut starts = Starts::default();
        starts.reset(2);
        let mut wanted = Wanted { skip, rows, seen: 0 };
        let range = wanted.take(&runs, 2, 0, &mut starts).unwrap();
        assert_eq!(wanted.seen, rows);
        (range, starts.0)
    };
    assert_eq!(read(0, 4), (0..4, vec![vec![0, 2, 3], vec![0, 2, 2, 2]]));
    assert_eq!(read(1, 1), (3..3, vec![vec![], vec![0]]));
    assert_eq!(read(2, 2), (3..4, vec![vec![0], vec![0, 0]]));
    assert_eq!(read(0, 2), (0..3, vec![vec![0, 2], vec![0, 2]]));
    for wrong in [&[(0, 5)][..], &[(0, 7)], &[(1, 6)], &[]] {
        assert!(mark_absent(&mut vec![(2, 6)], wrong, 2, &mut vec![]).is_err());
    }
    let inside = [(2, 1), (1 | ABSENT, 1)];
    let mut wanted = Wanted { skip: 0, rows: 1, seen: 0 };
    let mut starts = Starts::default();
    starts.reset(2);
    assert!(wanted.take(&inside, 2, 0, &mut starts).is_err());
}

#[test]
fn runs_are_joined_and_counted() {
    let mut data = 4u64.to_le_bytes().to_vec();
    data.extend([2, 0, 0, 0, 1, 255]);
    let mut out = vec![(9, 1)];
    LevelCodec::Runs(1).decode(&data, Some(256), &mut out).unwrap();
    assert_eq!(out, [(9, 1), (2, 1), (0, 255)]);
    assert!(LevelCodec::Runs(1).decode(&data, Some(255), &mut out).is_err());
    assert!(LevelCodec::Runs(2).decode(&data, Some(256), &mut out).is_err());
    assert!(LevelCodec::Runs(1).decode(&data[..5], Some(256), &mut out).is_err());
    assert!(LevelCodec::Runs(1).decode(&[255; 20], Some(256), &mut out).is_err());
}

/// Against the engine, which has the levels one by one.
#[test]
fn levels_that_are_packed_or_not_are_runs() {
    use lance_encoding::compression::BlockCompressor;
    use lance_encoding::data::{BlockInfo, FixedWidthDataBlock};
    use lance_encoding::encodings::physical::bitpacking::OutOfLineBitpacking;
    for count in [1, 3, 900, 1024, 1025, 2000, 4096] {
        let levels: Vec<u16> = (0..count).map(|i| u16::from(i % 7 < 2) + u16::from(i % 21 == 0)).collect();
        let mut runs = vec![];
        for &level in &levels {
            add(&mut runs, 0, level, 1).unwrap();
        }
        let data = DataBlock::FixedWidth(FixedWidthDataBlock {
            data: LanceBuffer::reinterpret_vec(levels.clone()),
            bits_per_value: 16,
            num_values: count,
            block_info: BlockInfo::new(),
        });
        let (packed, encoding) = OutOfLineBitpacking::new(2, 16).compress(data).unwrap();
        let codec = LevelCodec::new(&encoding).unwrap();
        assert!(matches!(codec, LevelCodec::Packed(2)));
        let packed: Vec<u16> =
            packed.unwrap().as_chunks::<2>().0.iter().map(|w| u16::from_le_bytes(*w)).collect();
        let mut once = vec![0u16; 129];
        once[0] = 2;
        let first: Vec<u16> = levels.iter().copied().chain(std::iter::repeat(0)).take(PACK).collect();
        // SAFETY: lengths as the packing asks for.
        unsafe { u16::unchecked_pack(2, &first, &mut once[1..]) };
        let mut codecs = vec![(codec, &packed), (LevelCodec::Flat, &levels)];
        if count <= PACK as u64 {
            codecs.push((LevelCodec::PackedOnce, &once));
        }
        for (codec, words) in codecs {
            let decode = |words: &[u16], out: &mut Vec<Run>| {
                codec.decode(bytemuck::cast_slice(words), Some(count as usize), out)
            };
            let mut out = vec![];
            decode(words, &mut out).unwrap();
            assert_eq!(out, runs, "{count}, {codec:?}");
            assert!(decode(&words[..words.len() - 1], &mut vec![]).is_err());
            assert!(decode(&[words.as_slice(), &[0]].concat(), &mut vec![]).is_err());
        }
    }
}

/// Nulls of whole rows have a level; those of anything within a row are of another kind of page.
#[test]
fn rows_that_are_null_have_a_definition_level() {
    use RepDefLayer::{RepdefAllValidItem, RepdefAllValidList, RepdefNullableItem, RepdefNullableList};
    let of = |layers: &[RepDefLayer], depth| {
        null_level(&layers.iter().map(|&layer| layer as i32).collect::<Vec<_>>(), depth)
    };
    assert_eq!(of(&[RepdefAllValidItem], 0), Some(0));
    assert_eq!(of(&[RepdefAllValidItem, RepdefAllValidList, RepdefAllValidItem], 1), Some(0));
    assert_eq!(of(&[RepdefAllValidItem, RepdefAllValidList, RepdefNullableItem], 1), Some(1));
    assert_eq!(of(&[RepdefAllValidItem, RepdefNullableList, RepdefNullableItem], 1), Some(2));
    assert_eq!(of(&[RepdefNullableItem, RepdefAllValidList, RepdefAllValidItem], 1), None);
    // Levels of another depth, and a layer that is not known.
    assert_eq!(of(&[RepdefAllValidItem, RepdefAllValidList], 2), None);
    assert_eq!(null_level(&[99], 0), None);
}
