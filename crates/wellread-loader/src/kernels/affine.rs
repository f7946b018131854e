//! The factor and summand of the pass over the pixels.

/// The operation on each value: `value as f32 * scale + offset`. With a pivot, `(value - pivot) as f32 * scale + offset`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    /// Factor.
    pub scale: f32,
    /// Summand. Negative zero, not zero, is the neutral one: `-0.0 + -0.0` is `-0.0`.
    pub offset: f32,
    /// Subtracted first, in `f64`; 0 for none. Only values of more than 16 bits have one: kernels of others ignore it.
    pub pivot: f64,
}

/// Summands above this cancel so many digits of `f32` that wide values are given a pivot. Below it the error is at most 2e-6.
const LARGE: f64 = 16.0;

impl Affine {
    /// Changes nothing, not even the sign of zero.
    pub const IDENTITY: Self = Self { scale: 1.0, offset: -0.0, pivot: 0.0 };

    /// `value * scale + offset` for values of more than 16 bits. Where the summand is large, values near its root are
    /// what remains when the leading digits cancel. Then the root is subtracted first. `None` where it is not large.
    pub(crate) fn with_pivot(scale: f64, offset: f64) -> Option<Self> {
        let pivot = -offset / scale;
        (offset.abs() > LARGE && pivot.is_finite()).then_some(Self {
            scale: scale as f32,
            offset: -0.0,
            pivot,
        })
    }

    /// The operation on a float.
    #[inline(always)]
    pub(crate) fn of(self, value: f32) -> f32 {
        value * self.scale + self.offset
    }

    /// The operation with a pivot on a value.
    #[inline(always)]
    pub(crate) fn of_wide(self, value: f64) -> f32 {
        (value - self.pivot) as f32 * self.scale + self.offset
    }

    /// The operation on floats in place.
    #[inline(always)]
    pub(crate) fn apply(self, floats: &mut [f32]) {
        if self.pivot == 0.0 {
            for v in floats {
                *v = self.of(*v);
            }
        } else {
            for v in floats {
                *v = self.of_wide(f64::from(*v));
            }
        }
    }
}
