//! JPEG in four inks as red, green and blue, with the values of Pillow's `convert("RGB")`.
//!
//! ```text
//! YCCK ──Y, Cb, Cr to R, G, B (JFIF, as libjpeg rounds)──┐
//! CMYK, stored inverted as Adobe does ───────────────────┴▶ cyan, magenta, yellow, black ──▶ R = (255 - C) (255 - K) / 255
//! ```
//!
//! Pillow takes every JPEG of four colours for one of Adobe's, which stores 255 less the ink, whether the file says so or
//! not. Colour profiles are not applied, by either.

/// Bits after the point of [`fixed`].
const BITS: u32 = 16;

/// A factor of the conversion as a whole number of 2^-16.
const fn fixed(factor: f64) -> i32 {
    (factor * (1 << BITS) as f64 + 0.5) as i32
}

/// Converts interleaved pixels of four bytes, as stored, to interleaved pixels of three. Both slices hold the same number of
/// pixels.
pub(super) fn to_rgb(stored: &[u8], is_ycck: bool, rgb: &mut [u8]) {
    let (stored, _) = stored.as_chunks::<4>();
    let (rgb, _) = rgb.as_chunks_mut::<3>();
    for (to, &[a, b, c, k]) in rgb.iter_mut().zip(stored) {
        // Inks as Pillow has them: 255 is full. `k` is stored inverted, so it is what the black lets through.
        let inks = if is_ycck { ycc_to_rgb(a, b, c) } else { [a, b, c].map(|stored| 255 - stored) };
        *to = inks.map(|ink| k - share(ink, k));
    }
}

/// libjpeg's conversion. It gives as red, green and blue of a YCCK file the values that an RGB file would hold. They are 255
/// less cyan as stored, and so cyan itself.
fn ycc_to_rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let half = 1 << (BITS - 1);
    let red = y + ((fixed(1.40200) * cr + half) >> BITS);
    let green = y + ((-fixed(0.34414) * cb - fixed(0.71414) * cr + half) >> BITS);
    let blue = y + ((fixed(1.77200) * cb + half) >> BITS);
    [red, green, blue].map(|value| value.clamp(0, 255) as u8)
}

/// `a * b / 255`, rounded; not more than either.
fn share(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    (((product >> 8) + product) >> 8) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pillow: `Image.frombytes("CMYK", (5, 1), bytes(255 - v for v in stored)).convert("RGB").tobytes()`.
    #[test]
    fn inks_become_colours_as_in_pillow() {
        let stored = [
            [255, 255, 255, 255],
            [0, 255, 255, 255],
            [10, 200, 90, 128],
            [255, 255, 255, 0],
            [77, 33, 250, 201],
        ];
        let mut rgb = [0; 15];
        to_rgb(stored.as_flattened(), false, &mut rgb);
        assert_eq!(rgb, [255, 255, 255, 0, 255, 255, 5, 100, 45, 0, 0, 0, 61, 26, 197]);
    }

    #[test]
    fn a_share_is_rounded_and_never_more_than_the_whole() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                let exact = (f64::from(a) * f64::from(b) / 255.0).round() as u8;
                assert_eq!(share(a, b), exact, "{a} {b}");
                assert!(share(a, b) <= b);
            }
        }
    }

    #[test]
    fn ycck_without_chroma_is_grey() {
        let mut rgb = [0; 6];
        // Y is 255 less the ink of all three.
        to_rgb(&[0, 128, 128, 255, 200, 128, 128, 100], true, &mut rgb);
        assert_eq!(rgb, [255, 255, 255, 22, 22, 22]);
    }
}
