//! Numbers packed to a few bits each, 1,024 at a time: how a chunk of them is made up, of levels and of values.

use wellread_store::direct::Fault::{self, Irregular};

/// Values that are packed together.
pub(super) const PACK: usize = 1024;

/// The number of bits of a packed chunk of `count` values, and its words. The number stands first, then come 1,024
/// values in as many bits.
pub(super) fn packed<T: bytemuck::Pod + Into<u64>>(
    data: &[u8],
    count: usize,
) -> Result<(usize, &[T]), Fault> {
    let words: &[T] = bytemuck::try_cast_slice(data).map_err(|_| Irregular("packed values not aligned"))?;
    let (&bits, packed) = words.split_first().ok_or(Irregular("packed values without a header"))?;
    let bits = usize::try_from(bits.into()).unwrap_or(usize::MAX);
    let size = size_of::<T>();
    if bits > size * 8 || size_of_val(packed) * 8 != bits * PACK || count > PACK {
        return Err(Irregular("packed values that do not fill their chunk"));
    }
    Ok((bits, packed))
}
