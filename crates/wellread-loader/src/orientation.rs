//! Flips and right-angle turns as three integers.
//!
//! Any of the eight symmetries of a rectangle sends pixel (y, x) of a plane to the linear offset `first + y *
//! row_step + x * column_step` of the turned plane. So turning costs no pass of its own: the pixels are
//! written where they belong.

/// Flips and a quarter turn of a plane, for [`convert_plane`](crate::kernels::convert_plane).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Whether left and right are exchanged.
    pub flip_horizontal: bool,
    /// Whether top and bottom are exchanged.
    pub flip_vertical: bool,
    /// Turns by 90 degrees counter-clockwise, after the flips: 0 to 3.
    pub quarter_turns: u8,
}

/// Where the pixels of a plane go in the turned plane, both in C order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Orientation {
    /// Offset of the pixel (0, 0).
    pub(crate) first: isize,
    /// Step of the offset from one source row to the next.
    pub(crate) row_step: isize,
    /// Step of the offset from one source column to the next: 1 or -1 unless axes are exchanged.
    pub(crate) column_step: isize,
}

impl Orientation {
    /// That of a plane: flips first, then `quarter_turns` counter-clockwise (as `numpy.rot90`).
    pub(crate) fn new([height, width]: [usize; 2], turn: Turn) -> Self {
        let (h, w) = (height as isize, width as isize);
        // Source row y lies at y0 + y * dy after the flips, likewise columns.
        let (y0, dy) = if turn.flip_vertical { (h - 1, -1) } else { (0, 1) };
        let (x0, dx) = if turn.flip_horizontal { (w - 1, -1) } else { (0, 1) };
        match turn.quarter_turns & 3 {
            0 => Self { first: y0 * w + x0, row_step: dy * w, column_step: dx },
            1 => Self { first: (w - 1 - x0) * h + y0, row_step: dy, column_step: -dx * h },
            2 => Self { first: (h - 1 - y0) * w + (w - 1 - x0), row_step: -dy * w, column_step: -dx },
            _ => Self { first: x0 * h + (h - 1 - y0), row_step: -dy, column_step: dx * h },
        }
    }

    /// The same map for a patch whose pixel (0, 0) is pixel (y, x) of the plane.
    pub(crate) const fn at(self, y: usize, x: usize) -> Self {
        Self { first: self.first + y as isize * self.row_step + x as isize * self.column_step, ..self }
    }
}

#[cfg(test)]
mod tests {
    use crate::transform::Placement;

    #[test]
    fn every_symmetry_is_a_bijection_and_agrees_with_composition() {
        let (h, w) = (3usize, 5usize);
        for (fh, fv, turns) in (0..16).map(|i| (i & 1 == 1, i & 2 == 2, (i >> 2) as u8)) {
            let mut image: Vec<Vec<usize>> = (0..h).map(|y| (0..w).map(|x| y * w + x).collect()).collect();
            if fv {
                image.reverse();
            }
            if fh {
                for row in &mut image {
                    row.reverse();
                }
            }
            for _ in 0..turns {
                // numpy.rot90: out[i][j] = in[j][w - 1 - i].
                let (ih, iw) = (image.len(), image[0].len());
                image = (0..iw).map(|i| (0..ih).map(|j| image[j][iw - 1 - i]).collect()).collect();
            }
            let placement = Placement {
                top: 0,
                left: 0,
                height: h,
                width: w,
                flip_horizontal: fh,
                flip_vertical: fv,
                quarter_turns: turns,
                degrees: 0.0,
            };
            let o = placement.orientation();
            let mut got = vec![usize::MAX; h * w];
            for y in 0..h {
                for x in 0..w {
                    let to = o.at(y, x).first;
                    assert_eq!(to, o.first + y as isize * o.row_step + x as isize * o.column_step);
                    got[usize::try_from(to).unwrap()] = y * w + x;
                }
            }
            assert_eq!(got, image.concat());
        }
    }
}
