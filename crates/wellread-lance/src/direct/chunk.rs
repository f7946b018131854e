//! A chunk of a page of mini-blocks: a header with sizes, then levels and buffers of values.

use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::little_endian;

/// Buffers and chunk sizes are multiples of this.
pub(super) const ALIGNMENT: usize = 8;

/// The parts of a chunk: number of levels, sizes of the parts, then levels and buffers of values, all aligned.
pub(super) struct Parts<'a> {
    data: &'a [u8],
    /// Number of levels, modulo 65,536.
    pub levels: usize,
    sizes: [usize; 6],
    next: usize,
    at: usize,
}

impl<'a> Parts<'a> {
    /// A chunk with so many parts of levels, and buffers of values.
    pub fn new(data: &'a [u8], levels: usize, buffers: usize, large: bool) -> Result<Self, Fault> {
        let mut sizes = [0; 6];
        let mut at = 0;
        let mut number = |wide: usize| {
            let bytes = data.get(at..at + wide).ok_or(Irregular("a chunk without a header"))?;
            at += wide;
            Ok(little_endian(bytes) as usize)
        };
        let said = number(2)?;
        let parts = sizes.get_mut(..levels + buffers).ok_or(Irregular("a chunk of many buffers"))?;
        for (i, part) in parts.iter_mut().enumerate() {
            *part = number(if large && i >= levels { 4 } else { 2 })?;
        }
        Ok(Self { data, levels: said, sizes, next: 0, at: at.next_multiple_of(ALIGNMENT) })
    }

    pub fn next(&mut self) -> Result<&'a [u8], Fault> {
        let size = self.sizes[self.next];
        let end = self.at.checked_add(size);
        let part = end.and_then(|end| self.data.get(self.at..end));
        self.at = (self.at + size).next_multiple_of(ALIGNMENT);
        self.next += 1;
        part.ok_or(Irregular("a chunk shorter than its parts"))
    }
}
