//! Logarithm, exponential, power and normal deviates that vectorise, and give the same bits at every vector width.
//!
//! Polynomials in `f32`, accurate to a few units of the last place of the result, which is enough for pixels. The
//! C library's functions are not vectorised and differ from system to system.

#![allow(clippy::inline_always, clippy::excessive_precision)]

/// Base-2 logarithm of a positive, normal number.
#[inline(always)]
pub(crate) fn log2(x: f32) -> f32 {
    // x = m * 2^e with m between sqrt(1/2) and sqrt(2).
    let bits = x.to_bits() as i32;
    let exponent = bits.wrapping_sub(0x3f35_04f3) >> 23;
    let m = f32::from_bits(bits.wrapping_sub(exponent << 23) as u32);
    let t = (m - 1.0) / (m + 1.0);
    let t2 = t * t;
    // 2 / ln 2 times the series of the inverse hyperbolic tangent.
    let series = 0.412_198_6 + t2 * (0.320_598_9 + t2 * 0.262_308_2);
    t * (2.885_390_1 + t2 * (0.961_796_7 + t2 * (0.577_078 + t2 * series))) + exponent as f32
}

/// 2 to the power of `x`, held within the range of normal numbers.
#[inline(always)]
pub(crate) fn exp2(x: f32) -> f32 {
    // Adding it leaves no room for a fraction: rounds to a whole number, found in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = if x < -126.0 { -126.0 } else { x };
    let x = if x > 127.0 { 127.0 } else { x };
    let rounded = x + ROUND;
    let whole = rounded.to_bits().wrapping_sub(ROUND.to_bits());
    let f = x - (rounded - ROUND);
    // Taylor's series of 2^f, f within a half.
    let high = 1.333_355_8e-3 + f * (1.540_353e-4 + f * 1.525_273_4e-5);
    let low = 0.240_226_51 + f * (5.550_410_9e-2 + f * (9.618_129_1e-3 + f * high));
    let power = 1.0 + f * (std::f32::consts::LN_2 + f * low);
    f32::from_bits(power.to_bits().wrapping_add(whole << 23))
}

/// `x` to the power of `exponent`, a positive number; negative `x` are taken as 0.
#[inline(always)]
pub(crate) fn pow(x: f32, exponent: f32) -> f32 {
    let power = exp2(exponent * log2(x));
    let power = if x < f32::MIN_POSITIVE { 0.0 } else { power };
    let power = if x == f32::INFINITY { x } else { power };
    if x.is_nan() { x } else { power }
}

/// Random numbers of one purpose, numbered: the key and the number give the bits, in any order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream([u32; 2]);

/// Normal deviates that are made together.
pub(crate) const NORMALS_PER_BLOCK: usize = 32;

impl Stream {
    pub(crate) const fn new(key: u64) -> Self {
        Self([key as u32, (key >> 32) as u32])
    }

    /// 32 well mixed bits: two finalisers (of Wellons' "triple32" family) with the key's halves between.
    #[inline(always)]
    fn bits(self, number: u32) -> u32 {
        let mut x = number.wrapping_mul(0x9e37_79b9) ^ self.0[0];
        for half in [self.0[1], 0] {
            x ^= x >> 16;
            x = x.wrapping_mul(0x21f0_aaad);
            x ^= x >> 15;
            x = x.wrapping_mul(0x735a_2d97);
            x ^= x >> 15;
            x = x.wrapping_add(half);
        }
        x
    }

    /// Standard normal deviates number `32 * block` to `32 * block + 31`, by the method of Box and Muller.
    #[inline(always)]
    pub(crate) fn normals(self, block: u64) -> [f32; NORMALS_PER_BLOCK] {
        const HALF: usize = NORMALS_PER_BLOCK / 2;
        // Blocks beyond 2^26 (images of 2^31 pixels) repeat the numbers under another key.
        let stream = Self([self.0[0] ^ (block >> 26) as u32, self.0[1]]);
        let first = (block as u32).wrapping_mul(NORMALS_PER_BLOCK as u32);
        let mut out = [0f32; NORMALS_PER_BLOCK];
        let (cosines, sines) = out.split_at_mut(HALF);
        for i in 0..HALF {
            let number = first.wrapping_add(2 * i as u32);
            let (a, b) = (stream.bits(number), stream.bits(number.wrapping_add(1)));
            // In (0, 1], multiples of 2^-24.
            let u = ((a >> 8) + 1) as i32 as f32 * (1.0 / 16_777_216.0);
            // -2 ln u.
            let square = -1.386_294_4 * log2(u);
            let radius = (if square > 0.0 { square } else { 0.0 }).sqrt();
            // The angle: a quadrant and an eighth of a turn to either side.
            let x =
                ((b & 0xff_ffff) as i32 - 0x80_0000) as f32 * (std::f32::consts::FRAC_PI_2 / 16_777_216.0);
            let x2 = x * x;
            let sine = x * (1.0 + x2 * (-1.666_666_7e-1 + x2 * (8.333_333_8e-3 + x2 * -1.984_127e-4)));
            let low = 4.166_666_8e-2 + x2 * (-1.388_888_9e-3 + x2 * 2.480_158_7e-5);
            let cosine = 1.0 + x2 * (-0.5 + x2 * low);
            let quadrant = b >> 30;
            let (c, s) = if quadrant & 1 == 0 { (cosine, sine) } else { (-sine, cosine) };
            let sign = if quadrant & 2 == 0 { radius } else { -radius };
            cosines[i] = sign * c;
            sines[i] = sign * s;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_those_of_the_library() {
        for i in 1..200_000 {
            let x = i as f32 / 100_000.0;
            assert!((f64::from(log2(x)) - f64::from(x).log2()).abs() < 2e-6, "{x}");
            for exponent in [0.2f32, 0.5, 1.0, 1.7, 4.0] {
                let expected = f64::from(x).powf(f64::from(exponent));
                let error = (f64::from(pow(x, exponent)) - expected).abs();
                assert!(error <= 4e-6 * expected.max(0.01), "{x}^{exponent} {error:e}");
            }
        }
        assert_eq!([pow(0.0, 0.5), pow(-3.0, 2.0), pow(1.0, 3.3)], [0.0, 0.0, 1.0]);
        assert!(pow(f32::NAN, 2.0).is_nan());
        assert_eq!((pow(f32::INFINITY, 0.5), pow(f32::NEG_INFINITY, 0.5)), (f32::INFINITY, 0.0));
    }

    #[test]
    fn deviates_are_normal_and_independent() {
        let n = 1u64 << 16;
        let stream = Stream::new(0x0123_4567_89ab_cdef);
        let (mut moments, mut tails, mut neighbours) = ([0f64; 4], 0u32, 0f64);
        let mut before = 0f64;
        for block in 0..n {
            for v in stream.normals(block) {
                let v = f64::from(v);
                for (p, m) in moments.iter_mut().enumerate() {
                    *m += v.powi(p as i32 + 1);
                }
                tails += u32::from(v.abs() > 3.0);
                neighbours += v * before;
                before = v;
            }
        }
        let total = (n * NORMALS_PER_BLOCK as u64) as f64;
        // Six standard errors of each.
        let bound = |variance: f64| 6.0 * (variance / total).sqrt();
        assert!((moments[0] / total).abs() < bound(1.0), "{moments:?}");
        assert!((moments[1] / total - 1.0).abs() < bound(2.0), "{moments:?}");
        assert!((moments[2] / total).abs() < bound(15.0), "{moments:?}");
        assert!((moments[3] / total - 3.0).abs() < bound(96.0), "{moments:?}");
        assert!((neighbours / total).abs() < bound(1.0), "{neighbours}");
        assert!((f64::from(tails) / total - 0.002_699_8).abs() < bound(0.0027), "{tails}");
        // Another key, another sequence, without correlation.
        let other = Stream::new(0x0123_4567_89ab_cdee);
        let sum: f64 = (0..n)
            .flat_map(|b| stream.normals(b).into_iter().zip(other.normals(b)))
            .map(|(a, b)| f64::from(a) * f64::from(b))
            .sum();
        assert!((sum / total).abs() < bound(1.0), "{sum}");
    }
}
