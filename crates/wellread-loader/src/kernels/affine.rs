//! The factor and summand of the pass over the pixels.

/// The operation on each value: `value as f32 * scale + offset`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    /// Factor.
    pub scale: f32,
    /// Summand. Negative zero, not zero, is the neutral one: `-0.0 + -0.0` is `-0.0`.
    pub offset: f32,
}

impl Affine {
    /// Changes nothing, not even the sign of zero.
    pub const IDENTITY: Self = Self { scale: 1.0, offset: -0.0 };
}
