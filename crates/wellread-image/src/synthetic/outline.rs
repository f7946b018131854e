//! Closed curves around a centre, as a table of radii by direction.
//!
//! The direction is the "diamond angle". It runs from 0 to 4 around the circle as the usual angle does from 0
//! to 2 pi. It needs a division instead of an arc tangent.

use super::random::{Lattice, Random};

const ENTRIES: usize = 64;

/// A star-shaped closed curve around the origin.
pub(super) struct Outline {
    /// One entry more than directions, so that interpolation needs no wrap.
    radii: [f32; ENTRIES + 1],
    /// Largest radius.
    pub(super) reach: f32,
}

/// Position of a direction in the tables of all outlines, by its diamond angle.
#[derive(Clone, Copy)]
pub(super) struct DiamondAngle {
    index: usize,
    fraction: f32,
}

impl DiamondAngle {
    #[inline]
    pub(super) fn of(x: f32, y: f32) -> Self {
        let sum = x.abs() + y.abs();
        let p = if sum > 0.0 { x / sum } else { 1.0 };
        let angle = if y >= 0.0 { 1.0 - p } else { 3.0 + p };
        let at = angle * (ENTRIES as f32 / 4.0);
        let index = (at as usize).min(ENTRIES - 1);
        Self { index, fraction: at - index as f32 }
    }
}

/// The direction (unit vector) of a diamond angle.
fn direction(angle: f32) -> [f32; 2] {
    let (x, y) = if angle < 2.0 {
        (1.0 - angle, 1.0 - (1.0 - angle).abs())
    } else {
        (angle - 3.0, (angle - 3.0).abs() - 1.0)
    };
    let length = (x * x + y * y).sqrt();
    [x / length, y / length]
}

fn cross(a: [f32; 2], b: [f32; 2]) -> f32 {
    a[0] * b[1] - a[1] * b[0]
}

fn dot(a: [f32; 2], b: [f32; 2]) -> f32 {
    a[0] * b[0] + a[1] * b[1]
}

impl Outline {
    fn from_radius(mut radius: impl FnMut([f32; 2]) -> f32) -> Self {
        let mut radii = [0.0; ENTRIES + 1];
        for (k, slot) in radii[..ENTRIES].iter_mut().enumerate() {
            *slot = radius(direction(4.0 * k as f32 / ENTRIES as f32)).max(0.5);
        }
        radii[ENTRIES] = radii[0];
        let reach = radii.iter().fold(0.0f32, |a, &b| a.max(b));
        Self { radii, reach }
    }

    /// Radius in a direction.
    #[inline]
    pub(super) fn radius(&self, at: DiamondAngle) -> f32 {
        let r = self.radii[at.index];
        r + at.fraction * (self.radii[at.index + 1] - r)
    }

    /// An ellipse with half axes `long` (along `axis`) and `short`, uneven by a few percent, perhaps dented.
    pub(super) fn nucleus(
        random: &mut Random,
        lattice: &Lattice,
        axis: [f32; 2],
        long: f32,
        short: f32,
    ) -> Self {
        let offset = [random.between(0.0, 60.0), random.between(0.0, 60.0)];
        let dent = random.direction();
        let depth = if random.chance(0.15) { random.between(0.1, 0.3) } else { 0.0 };
        let unevenness = random.between(0.06, 0.22);
        Self::from_radius(|u| {
            let (along, across) = (dot(u, axis) / long, cross(axis, u) / short);
            let ellipse = 1.0 / (along * along + across * across).sqrt();
            let uneven =
                1.0 + unevenness * (lattice.at(offset[0] + 1.2 * u[0], offset[1] + 1.2 * u[1]) - 0.5);
            let near = 5.0 * (1.0 - dot(u, dent));
            ellipse * uneven * (1.0 - depth / (1.0 + near * near))
        })
    }

    /// A spread cell: corners where it holds on to the glass, hollow edges between them; never inside `nucleus`.
    pub(super) fn spread_cell(
        random: &mut Random,
        nucleus: &Self,
        axis: [f32; 2],
        size: f32,
        stretch: f32,
    ) -> Self {
        let corners = 4 + random.below(3);
        let turn = random.unit();
        let points: Vec<[f32; 2]> = (0..corners)
            .map(|k| {
                let place = (k as f32 + turn + random.between(-0.28, 0.28)) * 4.0 / corners as f32;
                let u = direction((place + 4.0) % 4.0);
                let mut length = size * random.between(0.75, 1.2);
                if random.chance(0.16) {
                    length *= random.between(1.25, 1.8);
                }
                let (along, across) = (dot(u, axis) * stretch, cross(axis, u) / stretch);
                let p = [along * length, across * length];
                [p[0] * axis[0] - p[1] * axis[1], p[0] * axis[1] + p[1] * axis[0]]
            })
            .collect();
        let hollow = random.between(0.0, 0.22);
        let mut index = 0;
        let mut outline = Self::from_radius(|u| {
            let mut radius = 0.0;
            for k in 0..corners {
                let (p, q) = (points[k], points[(k + 1) % corners]);
                // u * r = p + s * (q - p)
                let edge = [q[0] - p[0], q[1] - p[1]];
                let denominator = cross(u, edge);
                if denominator.abs() < 1e-6 {
                    continue;
                }
                let (r, s) = (cross(p, edge) / denominator, cross(p, u) / denominator);
                if r > radius && (-0.001..=1.001).contains(&s) {
                    radius = r * (1.0 - hollow * 4.0 * s * (1.0 - s));
                }
            }
            let floor = nucleus.radii[index] * 1.18 + 0.06 * size;
            index += 1;
            radius.max(floor)
        });
        outline.smooth();
        outline.smooth();
        if random.chance(0.12) {
            // A retraction fibre: one thin, long tip.
            let tip = random.below(ENTRIES - 1) + 1;
            outline.radii[tip] *= random.between(1.3, 1.9);
            outline.reach = outline.reach.max(outline.radii[tip]);
        }
        outline
    }

    /// Makes it larger or smaller.
    pub(super) fn scale(&mut self, factor: f32) {
        for radius in &mut self.radii {
            *radius = (*radius * factor).max(0.5);
        }
        self.reach = self.radii.iter().fold(0.0f32, |a, &b| a.max(b));
    }

    /// Rounds off corners, leaving long tips.
    fn smooth(&mut self) {
        let sharp = self.radii;
        for k in 0..ENTRIES {
            let before = sharp[(k + ENTRIES - 1) % ENTRIES];
            self.radii[k] = 0.25 * before + 0.5 * sharp[k] + 0.25 * sharp[k + 1];
        }
        self.radii[ENTRIES] = self.radii[0];
    }

    /// A cell that has rounded up, as in division or death.
    pub(super) fn round_cell(nucleus: &Self, size: f32) -> Self {
        let mut index = 0;
        Self::from_radius(|_| {
            let floor = nucleus.radii[index] * 1.15;
            index += 1;
            size.max(floor)
        })
    }
}
