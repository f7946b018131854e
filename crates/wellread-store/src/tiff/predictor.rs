//! Predictors (TIFF tag 317): changes of samples before compression that are undone after.
//!
//! * 2, horizontal differencing (TIFF 6.0, section 14). Each sample is stored as the difference from the
//!   sample of the same channel one pixel to the left. It has the sample's own width, and wraps.
//! * 3, floating point (Adobe Photoshop TIFF Technical Note 3): the bytes of a row are sorted by
//!   significance, most significant plane first. Then they are differenced byte by byte.
//!
//! Everything works in place on little-endian samples of whole rows.

use super::endian::Endian;

/// Horizontal differencing.
pub(super) const HORIZONTAL: u16 = 2;
/// Floating-point predictor.
pub(super) const FLOAT: u16 = 3;

macro_rules! accumulate {
    ($row:expr, $stride:expr, $t:ty) => {{
        const N: usize = size_of::<$t>();
        let step = $stride * N;
        if $stride == 1 {
            let mut sum: $t = 0;
            for sample in $row.chunks_exact_mut(N) {
                sum = sum.wrapping_add(<$t>::from_le_bytes(sample.try_into().expect("whole sample")));
                sample.copy_from_slice(&sum.to_le_bytes());
            }
        } else {
            for at in (step..$row.len() / N * N).step_by(N) {
                let left =
                    <$t>::from_le_bytes($row[at - step..at - step + N].try_into().expect("whole sample"));
                let here = <$t>::from_le_bytes($row[at..at + N].try_into().expect("whole sample"));
                $row[at..at + N].copy_from_slice(&here.wrapping_add(left).to_le_bytes());
            }
        }
    }};
}

macro_rules! difference {
    ($row:expr, $stride:expr, $t:ty) => {{
        const N: usize = size_of::<$t>();
        let step = $stride * N;
        for at in (step..$row.len() / N * N).step_by(N).rev() {
            let left = <$t>::from_le_bytes($row[at - step..at - step + N].try_into().expect("whole sample"));
            let here = <$t>::from_le_bytes($row[at..at + N].try_into().expect("whole sample"));
            $row[at..at + N].copy_from_slice(&here.wrapping_sub(left).to_le_bytes());
        }
    }};
}

/// Undoes horizontal differencing in `data`, rows of `row_bytes`; `stride` samples per pixel of `size` bytes.
pub(super) fn undo_horizontal(data: &mut [u8], row_bytes: usize, stride: usize, size: usize) {
    for row in data.chunks_mut(row_bytes) {
        match size {
            1 => accumulate!(row, stride, u8),
            2 => accumulate!(row, stride, u16),
            4 => accumulate!(row, stride, u32),
            _ => accumulate!(row, stride, u64),
        }
    }
}

/// Does horizontal differencing; see [`undo_horizontal`].
pub(super) fn do_horizontal(data: &mut [u8], row_bytes: usize, stride: usize, size: usize) {
    for row in data.chunks_mut(row_bytes) {
        match size {
            1 => difference!(row, stride, u8),
            2 => difference!(row, stride, u16),
            4 => difference!(row, stride, u32),
            _ => difference!(row, stride, u64),
        }
    }
}

/// Undoes the floating-point predictor; the result is little-endian whatever the file is.
pub(super) fn undo_float(data: &mut [u8], row_bytes: usize, stride: usize, size: usize, spare: &mut Vec<u8>) {
    for row in data.chunks_exact_mut(row_bytes) {
        accumulate!(row, stride, u8);
        spare.clear();
        spare.extend_from_slice(row);
        let samples = row_bytes / size;
        for (i, sample) in row.chunks_exact_mut(size).enumerate() {
            for (byte, out) in sample.iter_mut().rev().enumerate() {
                *out = spare[byte * samples + i];
            }
        }
    }
}

/// Turns samples of `size` bytes from the file's byte order to little-endian (or back).
pub(super) fn to_little_endian(data: &mut [u8], size: usize, endian: Endian) {
    if endian == Endian::Little {
        return;
    }
    match size {
        2 => data.chunks_exact_mut(2).for_each(|s| s.swap(0, 1)),
        4 => data.chunks_exact_mut(4).for_each(<[u8]>::reverse),
        8 => data.chunks_exact_mut(8).for_each(<[u8]>::reverse),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn horizontal_by_hand() {
        // Two rows of two RGB pixels.
        let mut data = [1, 2, 3, 1, 1, 1, 10, 20, 30, 255, 0, 1];
        undo_horizontal(&mut data, 6, 3, 1);
        assert_eq!(data, [1, 2, 3, 2, 3, 4, 10, 20, 30, 9, 20, 31]);
    }

    #[test]
    fn float_by_hand() {
        // 1.0f32 = 3f800000, 2.0f32 = 40000000: byte planes 3f 40 | 80 00 | 00 00 | 00 00, differenced.
        let mut data = [0x3f, 0x01, 0x40, 0x80, 0x00, 0x00, 0x00, 0x00];
        undo_float(&mut data, 8, 1, 4, &mut vec![]);
        assert_eq!(data[..4], 1f32.to_le_bytes());
        assert_eq!(data[4..], 2f32.to_le_bytes());
    }

    proptest! {
        #[test]
        fn horizontal_round_trips(
            data in prop::collection::vec(any::<u8>(), 0..2000), stride in 1usize..5, log in 0u32..4, pixels in 1usize..9,
        ) {
            let size = 1 << log;
            let row = stride * size * pixels;
            let mut changed = data.clone();
            do_horizontal(&mut changed, row, stride, size);
            undo_horizontal(&mut changed, row, stride, size);
            prop_assert_eq!(changed, data);
        }
    }
}
