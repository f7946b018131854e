//! Rearranging samples: packed bits to whole bytes, interleaved channels to planes.

/// Makes `buffer` at least `n` long.
pub(super) fn grow(buffer: &mut Vec<u8>, n: usize) -> Result<(), String> {
    if buffer.len() < n {
        buffer
            .try_reserve(n - buffer.len())
            .map_err(|_| format!("not enough memory for {n} bytes of pixels"))?;
        buffer.resize(n, 0);
    }
    Ok(())
}

/// From `samples` interleaved channels to one plane after the other.
pub(super) fn separate(data: &[u8], samples: usize, size: usize, out: &mut Vec<u8>) -> Result<(), String> {
    fn typed<const N: usize>(data: &[u8], samples: usize, out: &mut [u8]) {
        let plane = data.len() / samples;
        for (sample, out) in out.chunks_exact_mut(plane).enumerate() {
            let from = data[sample * N..].chunks(samples * N);
            for (to, from) in out.chunks_exact_mut(N).zip(from) {
                to.copy_from_slice(&from[..N]);
            }
        }
    }
    grow(out, data.len())?;
    let out = &mut out[..data.len()];
    match size {
        1 => typed::<1>(data, samples, out),
        2 => typed::<2>(data, samples, out),
        4 => typed::<4>(data, samples, out),
        _ => typed::<8>(data, samples, out),
    }
    Ok(())
}

/// Samples of 1 to 15 bits, most significant bit first, rows on byte boundaries: to one byte each, or two for
/// more than 8 bits.
pub(super) fn unpack(
    data: &[u8],
    row_bytes: usize,
    per_row: usize,
    bits: u16,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let size = if bits < 8 { 1 } else { 2 };
    grow(out, data.len() / row_bytes * per_row * size)?;
    for (row, out) in data.chunks_exact(row_bytes).zip(out.chunks_exact_mut(per_row * size)) {
        let (mut buffer, mut have) = (0u32, 0u16);
        let mut bytes = row.iter();
        for sample in out.chunks_exact_mut(size) {
            while have < bits {
                buffer = buffer << 8 | u32::from(bytes.next().copied().unwrap_or(0));
                have += 8;
            }
            have -= bits;
            let value = (buffer >> have) & ((1 << bits) - 1);
            sample.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bits_unpack() {
        let mut out = vec![];
        unpack(&[0b1010_0000, 0b0110_0000], 1, 3, 1, &mut out).unwrap();
        assert_eq!(out[..6], [1, 0, 1, 0, 1, 1]);
        let mut out = vec![];
        unpack(&[0xAB, 0xCD, 0xEF], 3, 2, 12, &mut out).unwrap();
        assert_eq!(out[..4], [0xBC, 0x0A, 0xEF, 0x0D]);
    }

    #[test]
    fn channels_separate() {
        let mut out = vec![];
        separate(&[1, 2, 3, 4, 5, 6], 3, 1, &mut out).unwrap();
        assert_eq!(out, [1, 4, 2, 5, 3, 6]);
        let mut out = vec![];
        separate(&[1, 2, 3, 4, 5, 6, 7, 8], 2, 2, &mut out).unwrap();
        assert_eq!(out, [1, 2, 5, 6, 3, 4, 7, 8]);
    }
}
