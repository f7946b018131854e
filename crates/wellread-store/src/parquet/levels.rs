//! Repetition and definition levels, checked against what the images' shapes say they must be.
//!
//! Levels say where one image or chunk ends and the next begins. Shapes say it too, and shapes are read
//! first; so levels are never expanded. Their runs are walked and compared with the few places where
//! something must start. Also here: the [`Runs`] of the RLE/bit-packed hybrid that levels and dictionary
//! indices share ([specification](https://parquet.apache.org/docs/file-format/data-pages/encodings/)).

/// The stream of levels that `page` begins with, and the bytes behind it. In data pages of version 1 it is its
/// length in four bytes, then so many bytes. `None` where the page ends before the stream does.
pub(super) fn split_stream(page: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = page.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// One run of the RLE/bit-packed hybrid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run<'a> {
    /// `count` times the same value.
    Repeat { value: u32, count: usize },
    /// `count` values packed at the stream's bit width, least significant bit first.
    Packed { bytes: &'a [u8], count: usize },
}

impl Run<'_> {
    /// Number of values.
    pub fn count(&self) -> usize {
        match *self {
            Self::Repeat { count, .. } | Self::Packed { count, .. } => count,
        }
    }
}

/// Iterates over runs until `left` values have been seen. `None` inside means that the bytes ended early.
#[derive(Clone, Debug)]
pub(super) struct Runs<'a> {
    bytes: &'a [u8],
    width: u32,
    left: usize,
}

impl<'a> Runs<'a> {
    /// Runs of `count` values of `width` bits (0 to 32).
    pub fn new(bytes: &'a [u8], width: u32, count: usize) -> Self {
        debug_assert!(width <= 32);
        Self { bytes, width, left: count }
    }

    /// Bytes that are still to be read.
    pub fn rest(&self) -> usize {
        self.bytes.len()
    }

    fn read(&mut self) -> Option<Run<'a>> {
        let (mut header, mut shift) = (0u64, 0);
        loop {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            header |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
            if shift > 35 {
                return None;
            }
        }
        let n = usize::try_from(header >> 1).ok()?;
        if header & 1 == 0 {
            let size = self.width.div_ceil(8) as usize;
            let (value, rest) = self.bytes.split_at_checked(size)?;
            self.bytes = rest;
            let mut padded = [0; 4];
            padded[..size].copy_from_slice(value);
            let count = n.min(self.left);
            // A run of nothing would never end the stream.
            (count > 0).then_some(Run::Repeat { value: u32::from_le_bytes(padded), count })
        } else {
            // The last group may be cut off after the bytes that its values need.
            let count = n.checked_mul(8)?.min(self.left);
            let declared = n.checked_mul(self.width as usize)?;
            let needed = (count as u64 * u64::from(self.width)).div_ceil(8) as usize;
            let (bytes, rest) = self.bytes.split_at(declared.min(self.bytes.len()));
            self.bytes = rest;
            (count > 0 && bytes.len() >= needed).then_some(Run::Packed { bytes, count })
        }
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = Option<Run<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let run = self.read();
        self.left = run.map_or(0, |run| self.left - run.count());
        Some(run)
    }
}

/// The value at `index` of bytes packed at `width` bits.
#[inline]
pub(super) fn packed_at(bytes: &[u8], width: u32, index: usize) -> u32 {
    let bit = index * width as usize;
    let mut word = [0; 8];
    let from = (bit / 8).min(bytes.len());
    let n = (bytes.len() - from).min(8);
    word[..n].copy_from_slice(&bytes[from..from + n]);
    ((u64::from_le_bytes(word) >> (bit % 8)) & ((1u64 << width) - 1)) as u32
}

/// The start of a row or a piece of it within a page, and the value that its first level entry must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// Index of the level entry in the page.
    pub at: usize,
    /// Repetition level: 0 for the start of a row, 1 for that of a further piece.
    pub rep: u32,
    /// Whether the row is null or has no pieces: one entry of levels without a value.
    pub empty: bool,
}

/// Bits of a level up to `max`.
pub(super) const fn level_width(max: i16) -> u32 {
    16 - (max as u16).leading_zeros()
}

/// Checks both level streams of a page of `count` entries against `starts` (ascending).
///
/// `true` means that entry for entry everything is as the shapes say. Rows and pieces start where they must,
/// and every entry that is not an empty row has a value.
pub(super) fn agree(rep: &[u8], def: &[u8], count: usize, max: (i16, i16), starts: &[Start]) -> bool {
    let (max_rep, max_def) = (max.0 as u32, max.1 as u32);
    let rep_starts = starts.iter().map(|s| (s.at, Some(s.rep)));
    let def_starts = starts.iter().filter(|s| s.empty).map(|s| (s.at, None));
    stream_agrees(Runs::new(rep, level_width(max.0), count), level_width(max.0), max_rep, rep_starts)
        && (max_def == 0
            || stream_agrees(
                Runs::new(def, level_width(max.1), count),
                level_width(max.1),
                max_def,
                def_starts,
            ))
}

/// Whether every entry equals `usual` but those at `special` places: these equal the given level, or (`None`)
/// are any level below `usual`.
fn stream_agrees(
    runs: Runs<'_>,
    width: u32,
    usual: u32,
    mut special: impl Iterator<Item = (usize, Option<u32>)>,
) -> bool {
    let fits = |value: u32, level: Option<u32>| level.map_or(value < usual, |level| value == level);
    let mut next = special.next();
    let mut at = 0;
    for run in runs {
        match run {
            None => return false,
            Some(Run::Repeat { value, count }) => {
                // One comparison for everything up to the next special place.
                let end = at + count;
                while at < end {
                    match next {
                        Some((place, level)) if place == at => {
                            if !fits(value, level) {
                                return false;
                            }
                            next = special.next();
                            at += 1;
                        }
                        _ if value != usual => return false,
                        _ => at = next.map_or(end, |(place, _)| place.min(end)),
                    }
                }
            }
            Some(Run::Packed { bytes, count }) => {
                for i in 0..count {
                    let value = packed_at(bytes, width, i);
                    let right = match next {
                        Some((place, level)) if place == at => {
                            next = special.next();
                            fits(value, level)
                        }
                        _ => value == usual,
                    };
                    if !right {
                        return false;
                    }
                    at += 1;
                }
            }
        }
    }
    next.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Encodes as the hybrid, each run of `lengths` packed or repeated as told; packed runs are padded.
    fn encode(values: &[u32], width: u32, lengths: &[(usize, bool)]) -> Vec<u8> {
        let mut out = vec![];
        let mut rest = values;
        let mut lengths = lengths.iter().cycle();
        while !rest.is_empty() {
            let &(length, packed) = lengths.next().unwrap();
            if packed || rest[0] != *rest.get(length - 1).unwrap_or(&rest[0]) {
                let groups = length.div_ceil(8).min(rest.len().div_ceil(8));
                let (now, later) = rest.split_at((groups * 8).min(rest.len()));
                out.push((groups as u8) << 1 | 1);
                let mut bits = vec![0u8; groups * width as usize];
                for (i, v) in now.iter().enumerate() {
                    for b in 0..width as usize {
                        let at = i * width as usize + b;
                        bits[at / 8] |= ((v >> b & 1) as u8) << (at % 8);
                    }
                }
                out.extend(bits);
                rest = later;
            } else {
                let n = rest.iter().take(length).take_while(|v| **v == rest[0]).count();
                out.push((n as u8) << 1);
                out.extend(&rest[0].to_le_bytes()[..width.div_ceil(8) as usize]);
                rest = &rest[n..];
            }
        }
        out
    }

    fn expand(bytes: &[u8], width: u32, count: usize) -> Option<Vec<u32>> {
        let mut out = vec![];
        for run in Runs::new(bytes, width, count) {
            match run? {
                Run::Repeat { value, count } => out.extend(std::iter::repeat_n(value, count)),
                Run::Packed { bytes, count } => out.extend((0..count).map(|i| packed_at(bytes, width, i))),
            }
        }
        Some(out)
    }

    fn some_runs() -> impl Strategy<Value = Vec<(usize, bool)>> {
        prop::collection::vec((1usize..60, any::<bool>()), 1..6)
    }

    proptest! {
        #[test]
        fn runs_give_back_what_was_encoded(
            width in 0u32..=32,
            raw in prop::collection::vec(any::<u32>(), 1..200),
            lengths in some_runs(),
        ) {
            let values: Vec<u32> = raw.iter().map(|v| (u64::from(*v) & ((1u64 << width) - 1)) as u32).collect();
            let bytes = encode(&values, width, &lengths);
            prop_assert_eq!(expand(&bytes, width, values.len()), Some(values));
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..99), width in 0u32..=32) {
            if let Some(values) = expand(&bytes, width, 1000) {
                prop_assert_eq!(values.len(), 1000);
            }
        }

        /// Levels made from starts agree with them; any one entry changed, and they no longer do.
        #[test]
        fn levels_agree_only_with_their_starts(
            rows in prop::collection::vec((any::<bool>(), 0usize..40), 1..12),
            lengths in some_runs(),
            change in any::<prop::sample::Index>(),
        ) {
            let (mut rep, mut def, mut starts) = (vec![], vec![], vec![]);
            for (first, length) in rows {
                let start = u32::from(!first && length > 0);
                starts.push(Start { at: rep.len(), rep: start, empty: length == 0 });
                rep.push(start);
                def.push(if length == 0 { 2 } else { 7 });
                rep.extend(std::iter::repeat_n(2, length.saturating_sub(1)));
                def.resize(rep.len(), 7);
            }
            let check = |rep: &[u32], def: &[u32]| {
                let (r, d) = (encode(rep, 2, &lengths), encode(def, 3, &lengths));
                agree(&r, &d, rep.len(), (2, 7), &starts)
            };
            prop_assert!(check(&rep, &def));
            let at = change.index(rep.len());
            let (was_rep, was_def) = (rep[at], def[at]);
            rep[at] = (was_rep + 1) % 3;
            prop_assert!(!check(&rep, &def));
            rep[at] = was_rep;
            def[at] = if was_def == 7 { 6 } else { 7 };
            prop_assert!(!check(&rep, &def));
        }
    }
}
