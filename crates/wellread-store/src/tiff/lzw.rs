//! LZW as TIFF uses it (compression 5): most significant bit first, 9 to 12 bit codes, early change.
//!
//! Specification: TIFF 6.0, section 13. A decoder of our own, because most of the time spent on LZW images
//! is spent here and a general one is several times slower on camera noise.
//!
//! ```text
//!  compressed strip ──64-bit bit buffer──▶ code ──table[code]──▶ string ──▶ decoded strip
//!                                            │                      ▲
//!                        up to 7 bytes: inside the entry      longer: copied from where the
//!                        itself, written by one 8-byte store   decoded strip already has it
//! ```
//!
//! A table entry is one `u64`, so the whole table (32 KiB) stays in the first-level cache. A new string is
//! always "the previous string and the byte after it", which lie side by side in the output: a long string
//! is therefore only a place in the output and a length.

const CLEAR: usize = 256;
const END: usize = 257;
const FIRST_FREE: usize = 258;
const MAX_WIDTH: u32 = 12;
const TABLE: usize = 1 << MAX_WIDTH;
/// Longest string kept inside its table entry.
const INLINE: u64 = 7;
/// Bits of a long entry's place in the output; its length takes the 12 bits above.
const PLACE_BITS: u32 = 40;
/// The largest output that a long entry can point into: 1 TiB.
const MAX_OUTPUT: usize = 1 << PLACE_BITS;

/// The longest output that `input` bytes can stand for: each code adds one string, a byte longer than the
/// longest before it, and a table has 3,837 of them.
pub(super) const MAX_RATIO: u64 = 2600;

/// A reusable decoder: its table is kept from strip to strip.
pub(crate) struct Decoder {
    /// Low 56 bits: the string (first byte lowest), top byte: its length 1..=7; or, with a top nibble of
    /// [`LONG`], place and length. Zero for codes that stand for no string.
    table: Box<[u64; TABLE]>,
}

/// Codes taken from one refill of the bit buffer: four of 12 bits fit into the 57 bits it then has.
const BURST: usize = 4;

/// Marks a long entry: `LONG << 60 | length << 40 | place`. Lengths stay below 2^12, as each table epoch
/// adds at most 3,838 strings, each at most one byte longer than the longest before.
const LONG: u64 = 0xF;

/// Reads codes, most significant bit first.
struct Bits<'a> {
    input: &'a [u8],
    at: usize,
    /// Unread bits, at the top.
    buffer: u64,
    count: u32,
}

impl Bits<'_> {
    /// Makes at least 12 bits available, zeros behind the end of the input.
    #[inline]
    fn refill(&mut self) {
        if let Some(bytes) = self.input.get(self.at..self.at + 8) {
            let word = u64::from_be_bytes(bytes.try_into().expect("8 bytes"));
            self.buffer |= word >> self.count;
            let taken = (63 - self.count) >> 3;
            self.at += taken as usize;
            self.count += taken * 8;
        } else {
            while self.count <= 56 && self.at < self.input.len() {
                self.buffer |= u64::from(self.input[self.at]) << (56 - self.count);
                self.at += 1;
                self.count += 8;
            }
        }
    }
}

impl Bits<'_> {
    /// Whether codes that stand for bytes follow, the next of them `width` bits wide. What is shorter than a
    /// code and two bytes is taken for filling by a writer that leaves the end code out.
    fn hold_more(mut self, mut width: u32) -> bool {
        loop {
            self.refill();
            if self.count < width {
                return false;
            }
            match (self.buffer >> (64 - width)) as usize {
                END => return false,
                CLEAR => {
                    self.buffer <<= width;
                    self.count -= width;
                    width = 9;
                }
                _ => return self.count as usize + 8 * (self.input.len() - self.at) >= width as usize + 16,
            }
        }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        let mut table: Box<[u64; TABLE]> =
            vec![0; TABLE].into_boxed_slice().try_into().expect("as long as the table");
        for (byte, entry) in table.iter_mut().take(CLEAR).enumerate() {
            *entry = 1 << 56 | byte as u64;
        }
        Self { table }
    }
}

impl Decoder {
    /// Decodes `input` until `out` is full, and says whether there is more than fits.
    ///
    /// # Errors
    /// A code outside the table, or an end before `out` is full.
    pub(crate) fn decode(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool, String> {
        if out.len() > MAX_OUTPUT {
            return Err(format!("an LZW strip of {} bytes is not supported", out.len()));
        }
        if input.len() >= 2 && input[0] == 0 && input[1] & 1 == 1 {
            return Err("old-style LZW (least significant bit first) is not supported".into());
        }
        let mut bits = Bits { input, at: 0, buffer: 0, count: 0 };
        let mut pos = 0usize;
        // The previous string: its entry and where it starts in the output.
        let mut previous = 0u64;
        let mut previous_pos = 0usize;
        let mut next = FIRST_FREE;
        let mut width = 9u32;
        let mut fresh = true;
        // Whether the last string goes on behind the end of the output.
        let mut is_cut = false;
        while pos < out.len() {
            // Most codes stand for short strings: several at a time, while nothing else can happen.
            let limit = if width == MAX_WIDTH { TABLE } else { (1 << width) - 1 };
            while !fresh && next + BURST < limit && pos + BURST * 8 <= out.len() && bits.at + 8 <= input.len()
            {
                bits.refill();
                let mut ordinary = true;
                for _ in 0..BURST {
                    let code = (bits.buffer >> (64 - width)) as usize & (TABLE - 1);
                    let entry = self.table[code];
                    let length = entry >> 56;
                    if code >= next || length.wrapping_sub(1) >= INLINE {
                        ordinary = false;
                        break;
                    }
                    bits.buffer <<= width;
                    bits.count -= width;
                    out[pos..pos + 8].copy_from_slice(&entry.to_le_bytes());
                    self.add(next, previous, previous_pos, entry as u8);
                    next += 1;
                    previous = entry;
                    previous_pos = pos;
                    pos += length as usize;
                }
                if !ordinary {
                    break;
                }
            }
            if bits.count < MAX_WIDTH {
                bits.refill();
                if bits.count < width {
                    return Err(format!("LZW data end after {pos} of {} bytes", out.len()));
                }
            }
            let code = (bits.buffer >> (64 - width)) as usize & (TABLE - 1);
            bits.buffer <<= width;
            bits.count -= width;

            if fresh {
                // The first code after a clear code is a plain byte; it adds no string.
                if code == CLEAR {
                    continue;
                }
                if code > 255 {
                    return Err(Self::stray(code, pos, out.len()));
                }
                out[pos] = code as u8;
                previous = self.table[code];
                previous_pos = pos;
                pos += 1;
                fresh = false;
                continue;
            }
            if code >= next {
                // Only the string that is being defined by this very code: the previous one and its own
                // first byte again.
                if code != next || next >= TABLE {
                    return Err(Self::stray(code, pos, out.len()));
                }
                let first = out[previous_pos];
                self.add(next, previous, previous_pos, first);
            }
            let entry = self.table[code];
            let start = pos;
            let length = entry >> 56;
            let first;
            if length.wrapping_sub(1) < INLINE {
                first = entry as u8;
                if let Some(target) = out.get_mut(pos..pos + 8) {
                    target.copy_from_slice(&entry.to_le_bytes());
                    pos += length as usize;
                } else {
                    let n = (length as usize).min(out.len() - pos);
                    is_cut = n < length as usize;
                    out[pos..pos + n].copy_from_slice(&entry.to_le_bytes()[..n]);
                    pos += n;
                }
            } else if entry >> 60 == LONG {
                let place = (entry & (MAX_OUTPUT as u64 - 1)) as usize;
                let length = (entry >> PLACE_BITS) as usize & (TABLE - 1);
                first = out[place];
                is_cut = length > out.len() - pos;
                pos = copy_string(out, place, length, pos);
            } else if code == CLEAR {
                next = FIRST_FREE;
                width = 9;
                fresh = true;
                continue;
            } else {
                return Err(Self::stray(code, pos, out.len()));
            }
            if next < TABLE {
                self.add(next, previous, previous_pos, first);
                next += 1;
                // Early change: the width grows one code before the table needs it.
                if next + 1 >= 1 << width && width < MAX_WIDTH {
                    width += 1;
                }
            }
            previous = entry;
            previous_pos = start;
        }
        Ok(is_cut || bits.hold_more(width))
    }

    /// Defines string `next`: the previous string and `first`.
    #[inline]
    fn add(&mut self, next: usize, previous: u64, previous_pos: usize, first: u8) {
        let length = previous >> 56;
        self.table[next & (TABLE - 1)] = if length < INLINE {
            // The old length leaves the top byte and the new one enters it by one addition.
            (previous | u64::from(first) << (8 * length)) + (1 << 56)
        } else {
            let length = if length == INLINE { INLINE } else { previous >> PLACE_BITS & (TABLE as u64 - 1) };
            LONG << 60 | (length + 1) << PLACE_BITS | previous_pos as u64
        };
    }

    #[cold]
    fn stray(code: usize, pos: usize, wanted: usize) -> String {
        match code {
            END => format!("LZW data end after {pos} of {wanted} bytes"),
            _ => format!("LZW code {code} after {pos} of {wanted} bytes is not in the table: corrupt data"),
        }
    }
}

/// Copies a string of at least 8 bytes from its earlier place in the output to `pos`; returns the new end.
#[inline]
fn copy_string(out: &mut [u8], place: usize, length: usize, pos: usize) -> usize {
    let end = pos + length;
    if place + length <= pos && end + 8 <= out.len() {
        // Not overlapping, and with room to write whole words past the end.
        let (from, to) = out.split_at_mut(pos);
        let mut done = 0;
        while done < length {
            let word: [u8; 8] = match from.get(place + done..place + done + 8) {
                Some(word) => word.try_into().expect("8 bytes"),
                None => break,
            };
            to[done..done + 8].copy_from_slice(&word);
            done += 8;
        }
        if done < length {
            to[done..length].copy_from_slice(&from[place + done..place + length]);
        }
        return end;
    }
    // Near the end of the output, or a string that reaches into itself by its last byte.
    let end = end.min(out.len());
    for i in 0..end - pos {
        out[pos + i] = out[place + i];
    }
    end
}

/// Compresses one strip.
pub(crate) fn encode(input: &[u8]) -> Result<Vec<u8>, String> {
    weezl::encode::Encoder::with_tiff_size_switch(weezl::BitOrder::Msb, 8)
        .encode(input)
        .map_err(|e| format!("LZW: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let mut again = vec![0; 50_000];
            prop_assert_eq!(first, decoder.decode(&data, &mut again));
            prop_assert_eq!(out, again);
        }
    }
}
