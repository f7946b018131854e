//! Every level, type, output, alignment and orientation against one line of scalar code.

use super::*;
use crate::Placement;
use crate::dtype::Output;
use crate::orientation::Orientation;
use crate::simd::Level;
use proptest::prelude::*;
use wellread_image::PixelType;

fn widened(dtype: PixelType, bytes: &[u8]) -> f32 {
    match dtype {
        PixelType::U8 => bytes[0] as f32,
        PixelType::I8 => bytes[0] as i8 as f32,
        PixelType::U16 => u16::from_le_bytes(bytes.try_into().unwrap()) as f32,
        PixelType::I16 => i16::from_le_bytes(bytes.try_into().unwrap()) as f32,
        PixelType::U32 => u32::from_le_bytes(bytes.try_into().unwrap()) as f32,
        PixelType::I32 => i32::from_le_bytes(bytes.try_into().unwrap()) as f32,
        PixelType::F32 => f32::from_le_bytes(bytes.try_into().unwrap()),
        PixelType::F64 => f64::from_le_bytes(bytes.try_into().unwrap()) as f32,
    }
}

/// The value less the pivot, where its type has one.
fn shifted(dtype: PixelType, bytes: &[u8], pivot: f64) -> f32 {
    if dtype.size() <= 2 || pivot == 0.0 {
        return widened(dtype, bytes);
    }
    (dtype.value_at(bytes, 0) - pivot) as f32
}

/// The bytes that one pixel becomes.
fn one(dtype: PixelType, bytes: &[u8], a: Affine, output: Output) -> Vec<u8> {
    let product = std::hint::black_box(shifted(dtype, bytes, a.pivot) * a.scale);
    let value = product + a.offset;
    match output {
        Output::F32 => value.to_le_bytes().to_vec(),
        Output::F16 => half::f16::from_f32_const(value).to_le_bytes().to_vec(),
        Output::BF16 => half::bf16::from_f32_const(value).to_le_bytes().to_vec(),
        Output::Stored => bytes.to_vec(),
    }
}

/// Equal to the bit, but for which NaN it is.
fn same(output: Output, a: &[u8], b: &[u8]) -> bool {
    let nan = |x: &[u8]| match output {
        Output::F32 => f32::from_le_bytes(x.try_into().unwrap()).is_nan(),
        Output::F16 => half::f16::from_le_bytes(x.try_into().unwrap()).is_nan(),
        Output::BF16 => half::bf16::from_le_bytes(x.try_into().unwrap()).is_nan(),
        Output::Stored => false,
    };
    a == b || nan(a) && nan(b)
}

const OUTPUTS: [Output; 4] = [Output::F32, Output::F16, Output::BF16, Output::Stored];

/// Memory aligned for every type, as batches are.
fn aligned(bytes: usize) -> Vec<u64> {
    vec![0xa5a5_a5a5_a5a5_a5a5; bytes.div_ceil(8)]
}

fn an_affine() -> impl Strategy<Value = Affine> {
    let scale = prop_oneof![Just(1.0f32), Just(1.0 / 255.0), -2.0f32..2.0];
    let offset = prop_oneof![Just(-0.0f32), -1.0f32..1.0];
    let pivot = prop_oneof![Just(0.0f64), -1e9..1e9];
    (scale, offset, pivot).prop_map(|(scale, offset, pivot)| Affine { scale, offset, pivot })
}

proptest! {
    /// Every level, type, alignment and length gives the bits of the scalar formula, NaN included.
    #[test]
    fn levels_agree_to_the_bit(
        bytes in prop::collection::vec(any::<u8>(), 0..2100), shift in 0usize..8, affine in an_affine(),
    ) {
        for dtype in PixelType::ALL {
            let data = &bytes[shift.min(bytes.len())..];
            let n = data.len() / dtype.size();
            let data = &data[..n * dtype.size()];
            for (level, output) in Level::available().into_iter().flat_map(|l| OUTPUTS.map(|o| (l, o))) {
                let size = output.dtype(dtype).size();
                let mut memory = aligned(n * size);
                let out = &mut bytemuck::cast_slice_mut(&mut memory)[..n * size];
                convert_plane(level, dtype, data, [1, n], Turn::default(), affine, output, out);
                for (o, b) in out.chunks_exact(size).zip(data.chunks_exact(dtype.size())) {
                    let expected = one(dtype, b, affine, output);
                    prop_assert!(same(output, o, &expected), "{level:?} {dtype} {output:?} {b:?}");
                }
            }
        }
    }

    /// Patches inside larger rows, in every orientation, land where the orientation says and nowhere else.
    #[test]
    fn patches_land_where_they_belong(
        size in prop_oneof![3 => (1usize..40, 1usize..40), 1 => (60usize..140, 60usize..140)], extra in 0usize..5,
        flip_horizontal: bool, flip_vertical: bool, quarter_turns in 0u8..4,
        y in 0usize..3, x in 0usize..3, below in 0usize..3, right in 0usize..3,
        dtype in prop::sample::select(&PixelType::ALL[..]), output in prop::sample::select(&OUTPUTS[..]),
        affine in an_affine(), seed: u64,
    ) {
        let (rows, columns) = size;
        let (height, width) = (y + rows + below, x + columns + right);
        let placement = Placement {
            top: 0, left: 0, height, width, flip_horizontal, flip_vertical, quarter_turns, degrees: 0.0,
        };
        let to = placement.orientation().at(y, x);
        let stride = columns + extra;
        let (pixel, size) = (dtype.size(), output.dtype(dtype).size());
        let noise = (0..rows * stride * pixel).map(|i| (crate::draw::mix(seed ^ i as u64) >> 32) as u8);
        let data: Vec<u8> = noise.collect();
        let patch = Patch { data: &data, dtype, rows, columns, stride };
        let mut memory = aligned(height * width * size);
        let expected: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
        for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            let at = to.at(r, c).first as usize * size;
            let from = (r * stride + c) * pixel;
            expected[at..at + size].copy_from_slice(&one(dtype, &data[from..from + pixel], affine, output));
        }
        for level in Level::available() {
            let mut memory = aligned(height * width * size);
            let plane: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
            let whole = height * width * size;
            convert_patch(level, &patch, to, affine, output, &mut plane[..whole]);
            for (i, (got, expected)) in plane.chunks(size).zip(expected.chunks(size)).enumerate() {
                prop_assert!(got == expected || same(output, got, expected), "{level:?} number {i}");
            }
        }
    }
}

#[test]
fn identity_keeps_negative_zero() {
    let mut out = [1.0f32];
    convert(PixelType::F32, &(-0.0f32).to_le_bytes(), Affine::IDENTITY, &mut out);
    assert_eq!(out[0].to_bits(), (-0.0f32).to_bits());
}

#[test]
fn large_and_tiny_planes_of_every_type() {
    for (rows, columns) in [(8, 8), (1, 1), (1, 4096), (4096, 1), (1030, 517), (4096, 4096)] {
        // The largest have only the types that microscopes write: each is 16 million pixels.
        let types =
            if rows * columns < 1 << 24 { &PixelType::ALL[..] } else { &[PixelType::U8, PixelType::U16] };
        for &dtype in types {
            let pixel = dtype.size();
            let data: Vec<u8> =
                (0..rows * columns * pixel).map(|i| crate::draw::mix(i as u64) as u8).collect();
            let turn = Turn { flip_horizontal: false, flip_vertical: true, quarter_turns: 1 };
            let to = Orientation::new([rows, columns], turn);
            for output in OUTPUTS {
                let size = output.dtype(dtype).size();
                let mut memory = aligned(rows * columns * size);
                let plane: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut memory)[..rows * columns * size];
                convert_plane(
                    Level::detect(),
                    dtype,
                    &data,
                    [rows, columns],
                    turn,
                    Affine::IDENTITY,
                    output,
                    plane,
                );
                for i in (0..rows * columns).step_by(1 + rows * columns / 5_000) {
                    let at = to.at(i / columns, i % columns).first as usize * size;
                    let expected = one(dtype, &data[i * pixel..][..pixel], Affine::IDENTITY, output);
                    assert!(
                        same(output, &plane[at..at + size], &expected),
                        "{dtype} {output:?} {rows}x{columns}"
                    );
                }
            }
        }
    }
}
