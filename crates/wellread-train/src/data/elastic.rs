//! Elastic deformation (Simard et al. 2003) of an image and its target alike.
//!
//! Displacements are drawn from a normal distribution at points on a grid and interpolated between them. Beyond the edge
//! the image continues as its edge pixel. Drawn from (seed, epoch, row, occurrence) alone.

use rayon::prelude::*;
use wellread_model::init::Uniform;

/// Displacements of every pixel of a plane.
pub struct Field {
    height: usize,
    width: usize,
    /// Where the value of each pixel comes from: row, column.
    from: Vec<[f32; 2]>,
}

/// A number of a standard normal distribution (Box and Muller 1958).
fn normal(uniform: &mut Uniform) -> f32 {
    let a = f64::from(uniform.next_within(0.5)) + 0.5;
    let b = f64::from(uniform.next_within(std::f32::consts::PI));
    ((-2.0 * (1.0 - a).max(1e-9).ln()).sqrt() * b.cos()) as f32
}

impl Field {
    /// Displacements of standard deviation `amplitude` at points `spacing` pixels apart.
    pub fn draw([height, width]: [usize; 2], amplitude: f32, spacing: usize, mut uniform: Uniform) -> Self {
        let [rows, columns] = [height, width].map(|n| n / spacing + 2);
        let grid: Vec<[f32; 2]> =
            (0..rows * columns).map(|_| [(); 2].map(|()| amplitude * normal(&mut uniform))).collect();
        let mut from = Vec::with_capacity(height * width);
        for y in 0..height {
            let (cell_y, part_y) = (y / spacing, (y % spacing) as f32 / spacing as f32);
            for x in 0..width {
                let (cell_x, part_x) = (x / spacing, (x % spacing) as f32 / spacing as f32);
                let at = |dy: usize, dx: usize| grid[(cell_y + dy) * columns + cell_x + dx];
                let corners = [at(0, 0), at(0, 1), at(1, 0), at(1, 1)];
                let between = |axis: usize| {
                    let above = corners[0][axis] * (1.0 - part_x) + corners[1][axis] * part_x;
                    let below = corners[2][axis] * (1.0 - part_x) + corners[3][axis] * part_x;
                    above * (1.0 - part_y) + below * part_y
                };
                from.push([y as f32 + between(0), x as f32 + between(1)]);
            }
        }
        Self { height, width, from }
    }

    /// Deforms a row of planes in place, interpolating bilinearly.
    pub fn apply(&self, planes: &mut [f32]) {
        let (h, w) = (self.height, self.width);
        planes.par_chunks_exact_mut(h * w).for_each(|plane| {
            let straight = plane.to_vec();
            for (to, [y, x]) in plane.iter_mut().zip(&self.from) {
                let (y, x) = (y.clamp(0.0, (h - 1) as f32), x.clamp(0.0, (w - 1) as f32));
                let (top, left) = (y as usize, x as usize);
                let (bottom, right) = ((top + 1).min(h - 1), (left + 1).min(w - 1));
                let (down, along) = (y - top as f32, x - left as f32);
                let at = |y: usize, x: usize| straight[y * w + x];
                let above = at(top, left) * (1.0 - along) + at(top, right) * along;
                let below = at(bottom, left) * (1.0 - along) + at(bottom, right) * along;
                *to = above * (1.0 - down) + below * down;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_without_amplitude_and_a_ramp_moves_by_the_displacement() {
        let (h, w) = (20, 30);
        let ramp: Vec<f32> = (0..h * w).map(|i| (i % w) as f32).collect();
        let mut still = ramp.clone();
        Field::draw([h, w], 0.0, 7, Uniform::new(1, 1)).apply(&mut still);
        assert_eq!(still, ramp);
        let field = Field::draw([h, w], 3.0, 7, Uniform::new(1, 1));
        let mut moved = ramp;
        field.apply(&mut moved);
        for (value, [_, x]) in moved.iter().zip(&field.from) {
            assert!((value - x.clamp(0.0, (w - 1) as f32)).abs() < 1e-4);
        }
        let far = field.from.iter().enumerate().map(|(i, [_, x])| (x - (i % w) as f32).abs());
        assert!((1.0..15.0).contains(&far.fold(0.0, f32::max)));
    }
}
