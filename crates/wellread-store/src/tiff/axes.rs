//! Index of T, C and Z in lists of axes.

pub(super) const T: usize = 0;
pub(super) const C: usize = 1;
pub(super) const Z: usize = 2;
