//! Where a strip can be entered that was not decoded so far, found without decoding it.
//!
//! The length of a string follows from the length of the one before. So lengths alone, without bytes, follow the codes
//! from clear code to clear code in less time than decoding takes (`docs/decisions/0006-own-tiff-decoder.md`). The part
//! before the wanted rows needs no room. So the first read of a few rows decodes little more than these.
//!
//! ```text
//!  strip  | clear code ■ lengths ■ lengths ■ lengths ■ decoded, with the wanted rows |
//!                                                    ↑ the last place at or before them
//! ```

use super::{CLEAR, Decoder, FIRST_FREE, MAX_WIDTH, TABLE, bits_at};

/// Codes behind a full table after which there will be no clear code: few writers go on with the table that they have.
const BEHIND_FULL: usize = 64;

/// How far codes were followed.
struct Followed {
    /// Bits of the input that are read.
    bit: usize,
    /// Bytes that they stand for.
    pos: usize,
    /// The code of the next new string.
    next: usize,
    /// Length of the string before.
    previous: u16,
}

impl Decoder {
    /// Follows the codes of `input` from bit number `bit` on, as [`Decoder::decode_from`] would. It gives the last
    /// place at or before decoded byte `wanted` at which that could start: numbers of the bit and of the byte. Calls
    /// `cleared` with each place that it comes by. Where codes cannot be followed it ends: decoding from there tells
    /// why.
    pub(in super::super) fn skim(
        &mut self,
        input: &[u8],
        bit: usize,
        wanted: usize,
        cleared: &mut dyn FnMut(usize, usize),
    ) -> (usize, usize) {
        let end = input.len() * 8;
        let mut at = Followed { bit, pos: 0, next: FIRST_FREE, previous: 0 };
        let mut place = (bit, 0);
        let mut width = 9u32;
        let mut fresh = true;
        let mut behind_full = 0;
        while at.pos <= wanted {
            if !fresh {
                match width {
                    9 => self.follow::<9, 6>(input, &mut at),
                    10 => self.follow::<10, 5>(input, &mut at),
                    11 => self.follow::<11, 5>(input, &mut at),
                    _ => self.follow::<12, 4>(input, &mut at),
                }
            }
            if at.bit + width as usize > end || at.pos > wanted {
                break;
            }
            let code = (bits_at(input, at.bit) >> (64 - width)) as usize & (TABLE - 1);
            at.bit += width as usize;
            if code == CLEAR {
                if !fresh {
                    place = (at.bit, at.pos);
                    cleared(at.bit, at.pos);
                }
                at.next = FIRST_FREE;
                width = 9;
                fresh = true;
                behind_full = 0;
                continue;
            }
            let is_new = code == at.next && at.next < TABLE;
            let length = if is_new { at.previous + 1 } else { self.lengths[code] };
            // The end code has no length.
            if length == 0 || code > at.next || fresh && code >= CLEAR {
                break;
            }
            if fresh {
                fresh = false;
            } else if at.next < TABLE {
                self.lengths[at.next] = at.previous + 1;
                at.next += 1;
                if at.next + 1 >= 1 << width && width < MAX_WIDTH {
                    width += 1;
                }
            } else {
                behind_full += 1;
                if behind_full > BEHIND_FULL {
                    break;
                }
            }
            at.pos += usize::from(length);
            at.previous = length;
        }
        place
    }

    /// Follows codes of `W` bits, `N` from one load, while all are defined, the width does not change, and the end is not near.
    #[inline(never)]
    fn follow<const W: usize, const N: usize>(&mut self, input: &[u8], at: &mut Followed) {
        const { assert!(W <= MAX_WIDTH as usize && N * W <= 57) };
        let limit = if W == MAX_WIDTH as usize { TABLE } else { (1 << W) - 1 };
        let Followed { mut bit, mut pos, mut next, mut previous } = *at;
        let groups = (limit - 1).saturating_sub(next) / N;
        let lengths = &mut *self.lengths;
        'groups: for _ in 0..groups {
            let Some(bytes) = input.get(bit >> 3..).and_then(<[u8]>::first_chunk::<8>) else { break };
            let bits = u64::from_be_bytes(*bytes) << (bit & 7);
            for i in 0..N {
                let code = (bits >> (64 - W * (i + 1))) as usize & ((1 << W) - 1);
                let length = lengths[code & (TABLE - 1)];
                if code >= next || length == 0 {
                    bit += W * i;
                    break 'groups;
                }
                lengths[next & (TABLE - 1)] = previous + 1;
                previous = length;
                next += 1;
                pos += usize::from(length);
            }
            bit += W * N;
        }
        *at = Followed { bit, pos, next, previous };
    }
}
