//! LZW as TIFF uses it (compression 5): most significant bit first, 9 to 12 bit codes, early change.
//!
//! Specification: TIFF 6.0, section 13. A decoder of our own, because most of the time spent on LZW images
//! is spent here and a general one is several times slower on camera noise.
//!
//! ```text
//!  compressed strip ──8 bytes, 4 codes──▶ code ──table[code]──▶ string ──▶ decoded strip
//!                                           │                      ▲
//!                       up to 7 bytes: inside the entry      longer: copied from where the
//!                       itself, written by one 8-byte store   decoded strip already has it
//! ```
//!
//! Camera noise is nearly all codes of one to three bytes, so what a code costs decides: [`Decoder::burst`] takes four
//! from one load, with their width known when it is compiled and bounds checked once for all four.
//! After a clear code the decoder knows nothing of what was before: it can start there ([`super::restarts`]).
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
    /// [`LONG`], place and length. [`NOT_INLINE`] for the two codes that stand for no string; what lies behind the
    /// newest string is of no meaning.
    table: Box<[u64; TABLE]>,
}

/// Codes taken from one load of eight bytes: four of 12 bits fit into the 57 that are left of it at any bit.
const BURST: usize = 4;

/// Marks a long entry: `LONG << 60 | length << 40 | place`. Lengths stay below 2^12, as each table epoch
/// adds at most 3,838 strings, each at most one byte longer than the longest before.
const LONG: u64 = 0xF;

/// Entries of strings kept inside are below this, all others are not.
const NOT_INLINE: u64 = (INLINE + 1) << 56;

/// The 57 bits and more of `input` from bit number `bit` on, at the top; zeros behind its end.
#[inline]
fn bits_at(input: &[u8], bit: usize) -> u64 {
    let at = bit >> 3;
    let mut bytes = [0; 8];
    if let Some(there) = input.get(at..at + 8) {
        bytes.copy_from_slice(there);
    } else {
        let rest = input.get(at..).unwrap_or_default();
        bytes[..rest.len()].copy_from_slice(rest);
    }
    u64::from_be_bytes(bytes) << (bit & 7)
}

/// Whether codes that stand for bytes follow at `bit`, the next of them `width` bits wide. What is shorter than a
/// code and two bytes is taken for filling by a writer that leaves the end code out.
fn holds_more(input: &[u8], mut bit: usize, mut width: u32) -> bool {
    loop {
        let left = (input.len() * 8).saturating_sub(bit);
        if left < width as usize {
            return false;
        }
        match (bits_at(input, bit) >> (64 - width)) as usize {
            END => return false,
            CLEAR => {
                bit += width as usize;
                width = 9;
            }
            _ => return left >= width as usize + 16,
        }
    }
}

/// Whether a clear code ends right before bit number `bit`: of any width its last nine bits are these.
pub(super) fn is_cleared(input: &[u8], bit: usize) -> bool {
    bit.checked_sub(9).is_some_and(|from| bits_at(input, from) >> (64 - 9) == CLEAR as u64)
}

/// How far a decoder is.
struct Progress {
    /// Bits of the input that are read.
    bit: usize,
    /// Bytes of the output that are written.
    pos: usize,
    /// The code of the next new string.
    next: usize,
    /// The previous string: its entry and where it starts in the output.
    previous: u64,
    previous_pos: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        let mut table: Box<[u64; TABLE]> =
            vec![0; TABLE].into_boxed_slice().try_into().expect("as long as the table");
        for (byte, entry) in table.iter_mut().take(CLEAR).enumerate() {
            *entry = 1 << 56 | byte as u64;
        }
        table[CLEAR] = NOT_INLINE;
        table[END] = NOT_INLINE;
        Self { table }
    }
}

impl Decoder {
    /// Decodes `input` until `out` is full, and says whether there is more than fits.
    ///
    /// # Errors
    /// A code outside the table, or an end before `out` is full.
    pub(crate) fn decode(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool, String> {
        self.decode_from(input, 0, out, &mut |_, _| ())
    }

    /// As [`Decoder::decode`], from bit number `bit` of the input on: its first, or one that follows a clear code. Calls
    /// `cleared` behind each clear code with the number of the bit and of the byte of `out` that follow.
    ///
    /// # Errors
    /// As those of [`Decoder::decode`]; places count from the start of `out`.
    pub(super) fn decode_from(
        &mut self,
        input: &[u8],
        bit: usize,
        out: &mut [u8],
        cleared: &mut dyn FnMut(usize, usize),
    ) -> Result<bool, String> {
        if out.len() > MAX_OUTPUT {
            return Err(format!("an LZW strip of {} bytes is not supported", out.len()));
        }
        if bit == 0 && input.len() >= 2 && input[0] == 0 && input[1] & 1 == 1 {
            return Err("old-style LZW (least significant bit first) is not supported".into());
        }
        let end = input.len() * 8;
        let mut at = Progress { bit, pos: 0, next: FIRST_FREE, previous: 0, previous_pos: 0 };
        let mut width = 9u32;
        let mut fresh = true;
        // Whether the last string goes on behind the end of the output.
        let mut is_cut = false;
        while at.pos < out.len() {
            // After a long string there is mostly another one.
            if !fresh && at.previous < NOT_INLINE {
                match width {
                    9 => self.burst::<9>(input, out, &mut at),
                    10 => self.burst::<10>(input, out, &mut at),
                    11 => self.burst::<11>(input, out, &mut at),
                    _ => self.burst::<12>(input, out, &mut at),
                }
            }
            // One code of any kind.
            if at.bit + width as usize > end {
                return Err(format!("LZW data end after {} of {} bytes", at.pos, out.len()));
            }
            let code = (bits_at(input, at.bit) >> (64 - width)) as usize & (TABLE - 1);
            at.bit += width as usize;
            if fresh {
                // The first code after a clear code is a plain byte; it adds no string.
                if code == CLEAR {
                    continue;
                }
                if code > 255 {
                    return Err(Self::stray(code, at.pos, out.len()));
                }
                out[at.pos] = code as u8;
                at.previous = self.table[code];
                at.previous_pos = at.pos;
                at.pos += 1;
                fresh = false;
                continue;
            }
            if code >= at.next {
                // Only the string that is being defined by this very code: the previous one and its own
                // first byte again.
                if code != at.next || at.next >= TABLE {
                    return Err(Self::stray(code, at.pos, out.len()));
                }
                let first = out[at.previous_pos];
                self.add(at.next, at.previous, at.previous_pos, first);
            }
            let entry = self.table[code];
            let start = at.pos;
            let first;
            if entry < NOT_INLINE {
                let length = (entry >> 56) as usize;
                first = entry as u8;
                if let Some(target) = out.get_mut(start..start + 8) {
                    target.copy_from_slice(&entry.to_le_bytes());
                    at.pos += length;
                } else {
                    let n = length.min(out.len() - start);
                    is_cut = n < length;
                    out[start..start + n].copy_from_slice(&entry.to_le_bytes()[..n]);
                    at.pos += n;
                }
            } else if entry >> 60 == LONG {
                let (place, length) = long(entry);
                first = out[place];
                is_cut = length > out.len() - start;
                at.pos = copy_string(out, place, length, start);
            } else if code == CLEAR {
                cleared(at.bit, at.pos);
                at.next = FIRST_FREE;
                width = 9;
                fresh = true;
                continue;
            } else {
                return Err(Self::stray(code, at.pos, out.len()));
            }
            if at.next < TABLE {
                self.add(at.next, at.previous, at.previous_pos, first);
                at.next += 1;
                // Early change: the width grows one code before the table needs it.
                if at.next + 1 >= 1 << width && width < MAX_WIDTH {
                    width += 1;
                }
            }
            at.previous = entry;
            at.previous_pos = start;
        }
        Ok(is_cut || holds_more(input, at.bit, width))
    }

    /// Decodes codes of `W` bits while all are defined and stand for short strings, as most do, the width does not
    /// change, and neither end is near.
    #[inline(never)]
    fn burst<const W: usize>(&mut self, input: &[u8], out: &mut [u8], at: &mut Progress) {
        const { assert!(W <= MAX_WIDTH as usize && BURST * W <= 57) };
        let limit = if W == MAX_WIDTH as usize { TABLE } else { (1 << W) - 1 };
        let Some(last_load) = input.len().checked_sub(8) else { return };
        let Some(last_store) = out.len().checked_sub(8 * BURST) else { return };
        let table = &mut *self.table;
        let Progress { mut bit, mut pos, mut next, mut previous, mut previous_pos } = *at;
        'codes: while next + BURST < limit && pos <= last_store && bit >> 3 <= last_load {
            let from = bit >> 3;
            // SAFETY: `from + 8 <= input.len()`, as `from <= last_load`.
            let bytes = unsafe { input.as_ptr().add(from).cast::<[u8; 8]>().read() };
            let bits = u64::from_be_bytes(bytes) << (bit & 7);
            for i in 0..BURST {
                let code = (bits >> (64 - W * (i + 1))) as usize & ((1 << W) - 1);
                // SAFETY: a code of `W` bits, at most 12, is below `TABLE`.
                let entry = unsafe { *table.get_unchecked(code) };
                if code >= next || entry >= NOT_INLINE {
                    bit += W * i;
                    break 'codes;
                }
                // SAFETY: `pos` was at most `last_store` before this burst, and each of its up to three earlier strings
                // moved it by at most 7 (the top byte of an entry below `NOT_INLINE`): these 8 bytes end within `out`.
                unsafe { out.as_mut_ptr().add(pos).cast::<[u8; 8]>().write(entry.to_le_bytes()) };
                let made = extended(previous, previous_pos, entry as u8);
                // SAFETY: `next + BURST < limit <= TABLE` before this burst, which adds at most `BURST`.
                unsafe { *table.get_unchecked_mut(next) = made };
                next += 1;
                previous = entry;
                previous_pos = pos;
                pos += (entry >> 56) as usize;
            }
            bit += W * BURST;
        }
        *at = Progress { bit, pos, next, previous, previous_pos };
    }

    /// Defines string `next`: the previous string and `first`.
    #[inline]
    fn add(&mut self, next: usize, previous: u64, previous_pos: usize, first: u8) {
        self.table[next & (TABLE - 1)] = extended(previous, previous_pos, first);
    }

    #[cold]
    fn stray(code: usize, pos: usize, wanted: usize) -> String {
        match code {
            END => format!("LZW data end after {pos} of {wanted} bytes"),
            _ => format!("LZW code {code} after {pos} of {wanted} bytes is not in the table: corrupt data"),
        }
    }
}

/// The entry of the string `previous`, which is at `previous_pos` of the output, with the byte `first` after it.
#[inline]
fn extended(previous: u64, previous_pos: usize, first: u8) -> u64 {
    if previous < INLINE << 56 {
        // The byte goes to place `length`; that is in the top byte, and so 8 times it lies 3 bits lower. The bits of
        // the seventh byte that come along are none: strings of six bytes and fewer have zeros there.
        (previous | u64::from(first) << (previous >> 53)) + (1 << 56)
    } else {
        let is_inline = previous < NOT_INLINE;
        let length = if is_inline { INLINE } else { previous >> PLACE_BITS & (TABLE as u64 - 1) };
        LONG << 60 | (length + 1) << PLACE_BITS | previous_pos as u64
    }
}

/// Place and length of a long entry.
#[inline]
fn long(entry: u64) -> (usize, usize) {
    ((entry & (MAX_OUTPUT as u64 - 1)) as usize, (entry >> PLACE_BITS) as usize & (TABLE - 1))
}

/// Copies a string from its earlier place in the output to `pos`, and up to 15 bytes behind it that are anything. `false`
/// where there is no room for them, or where the string reaches into itself: then nothing is done.
#[inline]
fn copy_long(out: &mut [u8], place: usize, length: usize, pos: usize) -> bool {
    const STEP: usize = 16;
    if place + length > pos || pos + length + STEP > out.len() {
        return false;
    }
    let mut done = 0;
    while done < length {
        // SAFETY: `done < length`, and so both ranges end before `pos + length + STEP`, which is inside `out`. Bytes of the
        // string itself lie before `pos`, and so none was written over.
        unsafe {
            let from = out.as_ptr().add(place + done).cast::<[u8; STEP]>().read();
            out.as_mut_ptr().add(pos + done).cast::<[u8; STEP]>().write(from);
        }
        done += STEP;
    }
    true
}

/// Copies a string of at least 8 bytes from its earlier place in the output to `pos`; returns the new end.
#[inline]
fn copy_string(out: &mut [u8], place: usize, length: usize, pos: usize) -> usize {
    if copy_long(out, place, length, pos) {
        return pos + length;
    }
    // Near the end of the output, or a string that reaches into itself by its last byte.
    let end = (pos + length).min(out.len());
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
mod tests;
