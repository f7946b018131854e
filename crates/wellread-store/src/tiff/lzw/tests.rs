//! Round trips, damage, and starts in the middle.

mod packed_codes;

use super::*;
use packed_codes::Codes;
use proptest::prelude::*;

fn round_trip(data: &[u8]) {
    let packed = encode(data).unwrap();
    let mut out = vec![0; data.len()];
    assert!(!Decoder::default().decode(&packed, &mut out).unwrap());
    assert_eq!(out, data);
    assert!(data.len() as u64 <= packed.len() as u64 * MAX_RATIO);
    // A prefix can be had without decoding the rest.
    let mut part = vec![0; data.len() / 3];
    Decoder::default().decode(&packed, &mut part).unwrap();
    assert_eq!(part, data[..data.len() / 3]);
}

#[test]
fn more_than_fits_is_noticed() {
    for data in [vec![0; 100_000], (0..100_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect()] {
        let packed = encode(&data).unwrap();
        for n in [1, 7, 100, 5000, 50_000, data.len() - 40] {
            assert!(Decoder::default().decode(&packed, &mut vec![0; n]).unwrap(), "{n}");
        }
    }
}

#[test]
fn flat_and_periodic_data() {
    round_trip(&[]);
    round_trip(&[7]);
    round_trip(&vec![0; 12_000_000]);
    round_trip(&(0..300_000u32).map(|i| (i % 13) as u8).collect::<Vec<_>>());
    round_trip(&(0..300_000u32).map(|i| (i / 977) as u8).collect::<Vec<_>>());
}

#[test]
fn short_and_wrong_data_are_errors() {
    let data: Vec<u8> = (0..5000u32).map(|i| ((i * i) >> 5) as u8).collect();
    let packed = encode(&data).unwrap();
    let mut out = vec![0; data.len()];
    for cut in 0..packed.len() - 2 {
        assert!(Decoder::default().decode(&packed[..cut], &mut out).is_err(), "cut at {cut}");
    }
    let mut long = vec![0; data.len() + 1];
    assert!(Decoder::default().decode(&packed, &mut long).unwrap_err().contains("end after"));
    // Code 300 right after the clear code.
    assert!(Decoder::default().decode(&[0x80, 0x4B, 0x00], &mut out).unwrap_err().contains("code 300"));
    assert!(Decoder::default().decode(&[0x00, 0x01, 0x80], &mut out).unwrap_err().contains("old-style"));
}

/// Clear codes of a strip, and decoding from each of them, with input that ends at the next.
#[test]
fn a_strip_is_entered_behind_clear_codes() {
    let data: Vec<u8> = (0..800_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761).rotate_left(9).wrapping_mul(40_503) >> 27) as u8)
        .collect();
    let packed = encode(&data).unwrap();
    let (mut out, mut places) = (vec![0; data.len()], vec![]);
    let mut decoder = Decoder::default();
    decoder.decode_from(&packed, 0, &mut out, &mut |bit, pos| places.push((bit, pos))).unwrap();
    assert!(places.len() > 5, "{}", places.len());
    assert!(places.is_sorted());
    for pair in places.windows(2) {
        let [(bit, pos), (next_bit, next_pos)] = [pair[0], pair[1]];
        assert!(is_cleared(&packed, bit) && !is_cleared(&packed, bit + 1));
        let first = (bit - 9) / 8;
        let piece = &packed[first..next_bit.div_ceil(8)];
        out.fill(0);
        decoder.decode_from(piece, bit - 8 * first, &mut out[..next_pos - pos], &mut |_, _| ()).unwrap();
        assert_eq!(out[..next_pos - pos], data[pos..next_pos]);
    }
    assert!(!is_cleared(&packed, 8) && is_cleared(&packed, 9) && !is_cleared(&[], 9));
}

#[test]
fn codes_are_packed_from_the_most_significant_bit_on() {
    let mut codes = Codes::default();
    codes.push(CLEAR, 9);
    codes.push(0b1_0000_0001, 9);
    codes.push(0, 16);
    assert_eq!(codes.packed, [0b1000_0000, 0b0100_0000, 0b0100_0000, 0]);
}

/// The output of an encoder that goes on with a full table, never to clear it.
fn encode_without_clearing(data: &[u8]) -> Vec<u8> {
    let mut stored = Codes::default();
    let (mut width, mut next, mut codes) = (9u32, FIRST_FREE, 0usize);
    let mut emit = |code: usize| {
        stored.push(code, width);
        codes += 1;
        // The clear code and the one behind it define nothing.
        if codes > 2 && next < TABLE {
            next += 1;
            if next + 1 >= 1 << width && width < MAX_WIDTH {
                width += 1;
            }
        }
    };
    let mut strings = std::collections::HashMap::new();
    emit(CLEAR);
    let mut string: Option<usize> = None;
    for &byte in data {
        string = Some(match string {
            None => usize::from(byte),
            Some(prefix) => {
                if let Some(&longer) = strings.get(&(prefix, byte)) {
                    longer
                } else {
                    emit(prefix);
                    if FIRST_FREE + strings.len() < TABLE {
                        strings.insert((prefix, byte), FIRST_FREE + strings.len());
                    }
                    usize::from(byte)
                }
            }
        });
    }
    if let Some(code) = string {
        emit(code);
    }
    emit(END);
    emit(0);
    stored.packed
}

#[test]
fn a_full_table_is_used_on() {
    let noise = |i: u32| (i.wrapping_mul(2_654_435_761).rotate_left(9).wrapping_mul(40_503) >> 27) as u8;
    let mixed = |i: u32| if (i / 5000).is_multiple_of(2) { noise(i) } else { (i % 100) as u8 };
    for data in [
        (0..600_000).map(noise).collect::<Vec<_>>(),
        (0..600_000).map(mixed).collect(),
        [vec![3; 9_000_000], (0..300_000).map(mixed).collect()].concat(),
    ] {
        let packed = encode_without_clearing(&data);
        let mut decoder = Decoder::default();
        for n in [data.len(), data.len() / 2, data.len()] {
            let mut out = vec![0; n];
            assert_eq!(decoder.decode(&packed, &mut out), Ok(n < data.len()), "{n}");
            assert!(out == data[..n], "{n}");
        }
    }
}

#[test]
fn strings_of_all_lengths_reach_to_the_end_of_the_output() {
    // Runs that grow: each length of a string ends at, before and behind the end of some output.
    let data: Vec<u8> = (0..100u8).flat_map(|n| std::iter::repeat_n(n % 3, usize::from(n))).collect();
    let packed = encode(&data).unwrap();
    let mut decoder = Decoder::default();
    for n in 0..data.len() {
        let mut out = vec![0; n];
        decoder.decode(&packed, &mut out).unwrap();
        assert_eq!(out, data[..n]);
    }
}

/// Followed by their lengths, codes come by the places that decoding comes by.
#[test]
fn places_are_found_without_decoding() {
    let noise = |i: u32| (i.wrapping_mul(2_654_435_761).rotate_left(9).wrapping_mul(40_503) >> 27) as u8;
    let data: Vec<u8> =
        (0..900_000).map(|i| if i / 100_000 % 3 == 1 { (i / 977) as u8 } else { noise(i) }).collect();
    let packed = encode(&data).unwrap();
    let (mut out, mut places) = (vec![0; data.len()], vec![(0, 0)]);
    let mut decoder = Decoder::default();
    decoder.decode_from(&packed, 0, &mut out, &mut |bit, pos| places.push((bit, pos))).unwrap();
    for wanted in [0, 1, 5000, 99_999, 250_000, 399_999, 650_001, data.len() - 1, data.len()] {
        let mut seen = vec![(0, 0)];
        let found = decoder.skim(&packed, 0, wanted, &mut |bit, pos| seen.push((bit, pos)));
        let before = places.iter().take_while(|(_, pos)| *pos <= wanted);
        assert!(seen.iter().eq(before), "{wanted}");
        assert_eq!(Some(&found), seen.last());
        // And decoding goes on from there.
        let (bit, pos) = found;
        let rest = &mut out[..data.len() - pos];
        decoder.decode_from(&packed, bit, rest, &mut |_, _| ()).unwrap();
        assert!(*rest == data[pos..]);
    }
    // From a place on, and of what ends too soon or never clears its table.
    let (bit, pos) = places[3];
    let (next, of) = decoder.skim(&packed, bit, data.len() / 2 - pos, &mut |_, _| ());
    assert!(places.contains(&(next, pos + of)) && of > 0);
    let cut = decoder.skim(&packed[..packed.len() / 2], 0, data.len(), &mut |_, _| ());
    assert!(places.contains(&cut) && cut.0 <= packed.len() * 4);
    assert_eq!(decoder.skim(&encode_without_clearing(&data), 0, data.len(), &mut |_, _| ()), (0, 0));
    assert_eq!(decoder.skim(&[], 0, 9, &mut |_, _| ()), (0, 0));
}

proptest! {
    #[test]
    fn round_trips(data in prop::collection::vec(0u8..9, 0..20_000), noise in prop::collection::vec(any::<u8>(), 0..20_000)) {
        round_trip(&data);
        round_trip(&noise);
    }

    /// The decoder and weezl agree on arbitrary bytes as far as both go; a reused table does no harm.
    #[test]
    fn garbage_does_not_panic(data in prop::collection::vec(any::<u8>(), 0..3000)) {
        let mut out = vec![0; 50_000];
        let mut decoder = Decoder::default();
        let first = decoder.decode(&data, &mut out);
        let (bit, pos) = decoder.skim(&data, 0, 50_000, &mut |_, _| ());
        prop_assert!(bit <= data.len() * 8 && pos <= 50_000);
        let mut again = vec![0; 50_000];
        prop_assert_eq!(first, decoder.decode(&data, &mut again));
        prop_assert_eq!(out, again);
    }

    /// Codes that few encoders write: any that are defined, clear codes anywhere.
    #[test]
    fn any_codes_are_what_weezl_reads(picks in prop::collection::vec(any::<u16>(), 1..6000), clears in any::<bool>()) {
        let mut stored = Codes::default();
        let (mut next, mut width, mut codes) = (FIRST_FREE, 9, 0usize);
        stored.push(CLEAR, 9);
        for pick in picks {
            let pick = usize::from(pick);
            if clears && pick % 1000 == 999 || next >= TABLE - 2 {
                stored.push(CLEAR, width);
                (next, width, codes) = (FIRST_FREE, 9, 0);
                continue;
            }
            // Behind a clear code a byte; else a byte, or any of the strings, the one that is being defined among them.
            let code = if codes == 0 || pick % 3 == 0 { pick % 256 } else { FIRST_FREE + pick % (next - FIRST_FREE + 1) };
            stored.push(code, width);
            codes += 1;
            if codes > 1 {
                next += 1;
                if next + 1 >= 1 << width && width < MAX_WIDTH {
                    width += 1;
                }
            }
        }
        stored.push(END, width);
        stored.push(0, 16);
        let packed = stored.packed;
        let mut theirs = weezl::decode::Decoder::with_tiff_size_switch(weezl::BitOrder::Msb, 8);
        let wanted = theirs.decode(&packed).unwrap();
        let mut out = vec![0; wanted.len()];
        prop_assert_eq!(Decoder::default().decode(&packed, &mut out), Ok(false));
        prop_assert!(out == wanted);
    }
}
