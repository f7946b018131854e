//! LZW as TIFF uses it (compression 5): most significant bit first, 9 to 12 bit codes, early change.
//!
//! Specification: TIFF 6.0, section 13. A decoder of our own, because most of the time spent on LZW images
//! is spent here. A general one is several times slower on camera noise.
//!
//! ```text
//!  compressed strip ──8 bytes, 4 to 6 codes──▶ code ──table[code]──▶ offset, length
//!                                                                        │ 16 bytes copied, whatever the length
//!  window  | all 256 bytes | what the codes since the last clear code stand for … |
//!                                                                        │ at a clear code
//!                                                                        ▼ decoded strip
//! ```
//!
//! A new string is always "the previous string and the byte after it", which lie side by side in the decoded bytes. So
//! a string is an offset and a length, and a table entry one `u32`. Single bytes lie in the window as well, before all
//! else, so that they are strings like any other. Table and window, 16 KiB and mostly as much, stay in the first-level
//! cache.
//!
//! Camera noise is nearly all codes of one to three bytes, so the cost of a code decides. [`Decoder::burst`] takes
//! several from one load, with their width known when it is compiled and bounds checked once for all bursts before an
//! end. After a clear code the decoder knows nothing of what was before: it can start there ([`super::restarts`]).

mod skim;

use crate::try_alloc;

const CLEAR: usize = 256;
const END: usize = 257;
const FIRST_FREE: usize = 258;
const MAX_WIDTH: u32 = 12;
const TABLE: usize = 1 << MAX_WIDTH;
/// Bits of a table entry that are its string's offset in the window; the length is above.
const OFFSET_BITS: u32 = 23;
const OFFSET_MASK: u32 = (1 << OFFSET_BITS) - 1;
/// A length of one, in an entry.
const ONE: u32 = 1 << OFFSET_BITS;
/// Strings of this length and longer have it in a list of its own.
const LONG: u32 = u32::MAX >> OFFSET_BITS;
/// Bytes that are copied at once: strings that are no longer than this are copied without a look at their length.
const STEP: usize = 16;
/// Where the window begins, behind the bytes that codes below 256 stand for.
const START: usize = 256;
/// Bytes of a window at first. It grows where strings are long.
const WINDOW: usize = START + (64 << 10);

// Until the table is full, each code stands for a string that is at most a byte longer than the longest before it. From
// then on the window is emptied now and then.
const _: () = {
    let codes = TABLE - FIRST_FREE + 1;
    assert!(START + codes * (codes + 1) / 2 + WINDOW + TABLE < 1 << OFFSET_BITS);
};

/// The longest output that `input` bytes can stand for. Each code adds one string, a byte longer than the
/// longest before it, and a table has 3,837 of them.
pub(super) const MAX_RATIO: u64 = 2600;

/// A reusable decoder: its memory is kept from strip to strip.
pub(crate) struct Decoder {
    /// The string of each code: its offset in the window, and its length or [`LONG`] above. Entries behind the newest
    /// string have no meaning, nor have the two codes that stand for no string: they are [`LONG`].
    table: Box<[u32; TABLE]>,
    /// The lengths of strings that are [`LONG`]; of all strings while codes are followed without being decoded ([`skim`]). Those of
    /// single bytes are 1, those of the two codes that stand for no string 0.
    lengths: Box<[u16; TABLE]>,
    /// All bytes, one after another; then what was decoded since the last clear code.
    window: Vec<u8>,
}

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

/// Whether codes that stand for bytes follow at `bit`, the next of them `width` bits wide. Anything shorter than
/// a code and two bytes counts as filling by a writer that leaves the end code out.
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
    written: usize,
    /// The first byte of the window that is not among these, and the first that is free.
    from: usize,
    pos: usize,
    /// The code of the next new string.
    next: usize,
    /// Offset and length of that: the previous string and the byte that comes after it.
    made: (usize, usize),
}

impl Progress {
    /// Bytes that were decoded.
    fn decoded(&self) -> usize {
        self.written + self.pos - self.from
    }
}

impl Default for Decoder {
    fn default() -> Self {
        let mut table: Box<[u32; TABLE]> =
            vec![u32::MAX; TABLE].into_boxed_slice().try_into().expect("as long as the table");
        let mut lengths: Box<[u16; TABLE]> =
            vec![0; TABLE].into_boxed_slice().try_into().expect("as long as the table");
        lengths[..CLEAR].fill(1);
        let mut window = vec![0; WINDOW];
        for (byte, (entry, single)) in (0..=u8::MAX).zip(table.iter_mut().zip(&mut window)) {
            *entry = ONE | u32::from(byte);
            *single = byte;
        }
        Self { table, lengths, window }
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
        if bit == 0 && input.len() >= 2 && input[0] == 0 && input[1] & 1 == 1 {
            return Err("old-style LZW (least significant bit first) is not supported".into());
        }
        let end = input.len() * 8;
        let mut at =
            Progress { bit, written: 0, from: START, pos: START, next: FIRST_FREE, made: (START, 0) };
        let mut width = 9u32;
        let mut fresh = true;
        // Where the window ends that a full table refers to.
        let mut full = START;
        while at.decoded() < out.len() {
            if !fresh {
                let left = out.len() - at.decoded();
                match width {
                    9 => self.burst::<9, 6>(input, left, &mut at),
                    10 => self.burst::<10, 5>(input, left, &mut at),
                    11 => self.burst::<11, 5>(input, left, &mut at),
                    _ => self.burst::<12, 4>(input, left, &mut at),
                }
            }
            // One code of any kind.
            if at.bit + width as usize > end {
                return Err(format!("LZW data end after {} of {} bytes", at.decoded(), out.len()));
            }
            let code = (bits_at(input, at.bit) >> (64 - width)) as usize & (TABLE - 1);
            at.bit += width as usize;
            if code == CLEAR {
                self.write(&mut at, out);
                if !fresh {
                    cleared(at.bit, at.written);
                }
                (at.from, at.pos, at.next) = (START, START, FIRST_FREE);
                width = 9;
                fresh = true;
                continue;
            }
            // The first code after a clear code is a plain byte; it adds no string. Any other may be the string that is being
            // defined by this very code: the previous one and its own first byte again.
            let is_known = code < at.next || code == at.next && at.next < TABLE;
            if code == END || !is_known || fresh && code > 255 {
                return Err(Self::code_error(code, at.decoded(), out.len()));
            }
            if !fresh && at.next < TABLE {
                let (offset, length) = at.made;
                self.define(at.next, offset, length);
            }
            let (offset, length) = self.string(code);
            let needed = at.pos + length + STEP;
            if self.window.len() < needed {
                try_alloc::grow(&mut self.window, needed + WINDOW)?;
            }
            copy_string(&mut self.window, offset, length, at.pos);
            at.made = (at.pos, length + 1);
            at.pos += length;
            if fresh {
                fresh = false;
            } else if at.next < TABLE {
                at.next += 1;
                // Early change: the width grows one code before the table needs it.
                if at.next + 1 >= 1 << width && width < MAX_WIDTH {
                    width += 1;
                }
                full = at.pos;
            } else if at.pos > full + WINDOW && at.decoded() < out.len() {
                // Nothing refers to what comes behind a full table.
                self.write(&mut at, out);
                (at.from, at.pos) = (full, full);
            }
        }
        let is_cut = at.decoded() > out.len();
        self.write(&mut at, out);
        Ok(is_cut || holds_more(input, at.bit, width))
    }

    /// Decodes codes of `W` bits, `N` from one load, while all are defined and stand for short strings, as most do. The
    /// width must not change, and no end may be near. This is neither of the input, nor of the `left` bytes of the output,
    /// which are some.
    #[inline(never)]
    fn burst<const W: usize, const N: usize>(&mut self, input: &[u8], left: usize, at: &mut Progress) {
        const { assert!(W <= MAX_WIDTH as usize && N * W <= 57) };
        let limit = if W == MAX_WIDTH as usize { TABLE } else { (1 << W) - 1 };
        let Progress { mut bit, mut pos, mut next, made: (offset, length), .. } = *at;
        if length > STEP + 1 || next >= limit {
            return;
        }
        let table = &mut *self.table;
        let window = &mut self.window[..];
        let groups = ((limit - 1 - next) / N)
            .min((left - 1).min(window.len().saturating_sub(pos)) / (STEP * N))
            .min((input.len() * 8).saturating_sub(bit + 64) / (W * N));
        let mut made = (length as u32) << OFFSET_BITS | offset as u32;
        'groups: for _ in 0..groups {
            // SAFETY: before this there were fewer than `groups` loads, each `W * N` bits on. By the last of the bounds
            // of `groups`, 64 bits and more are left at `bit`. So 8 bytes are left from the one that it is in.
            let bytes = unsafe { input.as_ptr().add(bit >> 3).cast::<[u8; 8]>().read() };
            let bits = u64::from_be_bytes(bytes) << (bit & 7);
            for i in 0..N {
                let code = (bits >> (64 - W * (i + 1))) as usize & ((1 << W) - 1);
                // SAFETY: a code of `W` bits, at most 12, is below `TABLE`.
                let entry = unsafe { *table.get_unchecked(code) };
                let length = (entry >> OFFSET_BITS) as usize;
                if code >= next || length > STEP {
                    bit += W * i;
                    break 'groups;
                }
                // SAFETY: by the second of the bounds of `groups`, `STEP` bytes are left at `pos` for this code and each that
                // follows. Each moves `pos` by at most that. A string that is defined lies before `pos`.
                unsafe {
                    let string =
                        window.as_ptr().add((entry & OFFSET_MASK) as usize).cast::<[u8; STEP]>().read();
                    window.as_mut_ptr().add(pos).cast::<[u8; STEP]>().write(string);
                }
                // SAFETY: by the first of the bounds of `groups`, `next` stays below `limit`, which is at most `TABLE`.
                unsafe { *table.get_unchecked_mut(next) = made };
                made = (entry & !OFFSET_MASK) + (ONE | pos as u32);
                next += 1;
                pos += length;
            }
            bit += W * N;
        }
        let made = ((made & OFFSET_MASK) as usize, (made >> OFFSET_BITS) as usize);
        *at = Progress { bit, pos, next, made, ..*at };
    }

    /// Defines the string of a code.
    fn define(&mut self, code: usize, offset: usize, length: usize) {
        self.lengths[code] = length as u16;
        self.table[code] = LONG.min(length as u32) << OFFSET_BITS | offset as u32;
    }

    /// Offset and length of the string of a code.
    fn string(&self, code: usize) -> (usize, usize) {
        let entry = self.table[code];
        let length = entry >> OFFSET_BITS;
        let length = if length == LONG { usize::from(self.lengths[code]) } else { length as usize };
        ((entry & OFFSET_MASK) as usize, length)
    }

    /// Writes what was decoded since the last time, as far as it fits.
    fn write(&self, at: &mut Progress, out: &mut [u8]) {
        let n = (at.pos - at.from).min(out.len() - at.written);
        out[at.written..at.written + n].copy_from_slice(&self.window[at.from..at.from + n]);
        at.written += n;
        at.from += n;
    }

    #[cold]
    fn code_error(code: usize, pos: usize, wanted: usize) -> String {
        match code {
            END => format!("LZW data end after {pos} of {wanted} bytes"),
            _ => format!("LZW code {code} after {pos} of {wanted} bytes is not in the table: corrupt data"),
        }
    }
}

/// Copies a string from its earlier offset in the window to `pos`, behind which there are its length and [`STEP`] bytes.
#[inline]
fn copy_string(window: &mut [u8], offset: usize, length: usize, pos: usize) {
    let before = length.min(pos - offset);
    let mut done = 0;
    while done < before {
        window.copy_within(offset + done..offset + done + STEP, pos + done);
        done += STEP;
    }
    // A string that is being defined reaches into itself by its last byte.
    if before < length {
        window[pos + before] = window[pos];
    }
}

/// Compresses one strip.
pub(crate) fn encode(input: &[u8]) -> Result<Vec<u8>, String> {
    weezl::encode::Encoder::with_tiff_size_switch(weezl::BitOrder::Msb, 8)
        .encode(input)
        .map_err(|e| format!("LZW: {e}"))
}

#[cfg(test)]
mod tests;
