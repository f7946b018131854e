//! Memory order of a chunk: from any order of axes to the T C Z Y X that a [`crate::Block`] has.

/// How a chunk lies in memory, when that is not TCZYX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reorder {
    shape: [usize; 5],
    /// Distance in pixels between neighbours along each TCZYX axis in the stored order.
    strides: [usize; 5],
}

impl Reorder {
    /// For a chunk of `shape` (TCZYX) stored with the axes in `order`, slowest first. `None` when the bytes
    /// are in TCZYX order already; axes of length one do not matter.
    pub fn new(shape: [usize; 5], order: &[usize]) -> Option<Self> {
        let longer: Vec<usize> = order.iter().copied().filter(|&a| shape[a] > 1).collect();
        if longer.is_sorted() {
            return None;
        }
        let mut strides = [0; 5];
        let mut stride = 1;
        for &axis in longer.iter().rev() {
            strides[axis] = stride;
            stride *= shape[axis];
        }
        Some(Self { shape, strides })
    }

    /// Copies `source` into `target` in TCZYX order; both hold exactly one chunk, of pixels of so many bytes.
    pub fn apply(&self, pixel: usize, source: &[u8], target: &mut [u8]) {
        match pixel {
            1 => self.copy::<1>(source, target),
            2 => self.copy::<2>(source, target),
            4 => self.copy::<4>(source, target),
            _ => self.copy::<8>(source, target),
        }
    }

    fn copy<const N: usize>(&self, source: &[u8], target: &mut [u8]) {
        let (source, _) = source.as_chunks::<N>();
        let (target, _) = target.as_chunks_mut::<N>();
        let [nt, nc, nz, ny, nx] = self.shape;
        let [st, sc, sz, sy, sx] = self.strides;
        let mut rows = target.chunks_exact_mut(nx);
        for t in 0..nt {
            for c in 0..nc {
                for z in 0..nz {
                    for y in 0..ny {
                        let start = t * st + c * sc + z * sz + y * sy;
                        let Some(row) = rows.next() else { return };
                        if sx == 1 {
                            row.copy_from_slice(&source[start..start + nx]);
                        } else {
                            for (x, pixel) in row.iter_mut().enumerate() {
                                *pixel = source[start + x * sx];
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_single_axes_does_not_matter() {
        assert_eq!(Reorder::new([1, 1, 1, 4, 5], &[0, 2, 1, 3, 4]), None);
        assert_eq!(Reorder::new([1, 1, 1, 1, 5], &[4, 3, 2]), None);
        assert!(Reorder::new([1, 2, 3, 1, 1], &[2, 1, 3, 4]).is_some());
    }

    #[test]
    fn columns_become_rows() {
        let reorder = Reorder::new([1, 1, 1, 2, 3], &[4, 3]).unwrap();
        // Stored x-major: (y0,y1) of x0, of x1, of x2.
        let source: Vec<u8> = [0u16, 10, 1, 11, 2, 12].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut target = vec![0; 12];
        reorder.apply(2, &source, &mut target);
        let expected: Vec<u8> = [0u16, 1, 2, 10, 11, 12].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(target, expected);
    }
}
