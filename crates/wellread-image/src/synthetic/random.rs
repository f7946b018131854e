//! Random numbers that are the same on every platform, and smooth noise for textures.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// ChaCha8, keyed by seed and row; streams of the same key are independent.
pub(super) struct Random(ChaCha8Rng);

impl Random {
    pub(super) fn new(seed: u64, row: u64, stream: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&row.to_le_bytes());
        key[16..24].copy_from_slice(b"wellread");
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(stream);
        Self(rng)
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// Uniform in `[0, 1)`.
    pub(super) fn unit(&mut self) -> f32 {
        (self.0.next_u32() >> 8) as f32 / (1u32 << 24) as f32
    }

    /// Uniform in `[low, high)`.
    pub(super) fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f32) -> bool {
        self.unit() < probability
    }

    /// Uniform in `0..n`; `n` must not be 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u64::from(self.0.next_u32()) * n as u64) >> 32) as usize
    }

    /// Mean 0, standard deviation 1.
    pub(super) fn normal(&mut self) -> f32 {
        normal(self.0.next_u64())
    }

    /// A random direction (unit vector).
    pub(super) fn direction(&mut self) -> [f32; 2] {
        loop {
            let (x, y) = (self.between(-1.0, 1.0), self.between(-1.0, 1.0));
            let square = x * x + y * y;
            if (0.01..1.0).contains(&square) {
                let length = square.sqrt();
                return [x / length, y / length];
            }
        }
    }
}

/// A normal variate from 64 random bits: the sum of four uniform ones, scaled; its tails end at 3.5 sigma.
pub(super) fn normal(bits: u64) -> f32 {
    const MASK: u64 = 0xffff;
    let sum = (bits & MASK) + (bits >> 16 & MASK) + (bits >> 32 & MASK) + (bits >> 48);
    // Four times a variance of 1/12 is 1/3.
    const SQRT_3: f32 = 1.732_050_8;
    (sum as f32 - 2.0 * MASK as f32) * (SQRT_3 / MASK as f32)
}

/// Smooth noise in `[0, 1)`: random values on a lattice, interpolated. Repeats every [`Lattice::SIDE`] units.
pub(super) struct Lattice(Vec<f32>);

impl Lattice {
    const SIDE: usize = 64;

    pub(super) fn new(random: &mut Random) -> Self {
        Self((0..Self::SIDE * Self::SIDE).map(|_| random.unit()).collect())
    }

    /// Value at a point; coordinates may be negative down to -4096.
    #[inline]
    pub(super) fn at(&self, x: f32, y: f32) -> f32 {
        const SHIFT: f32 = 4096.0;
        const MASK: usize = Lattice::SIDE - 1;
        let (x, y) = (x + SHIFT, y + SHIFT);
        let (ix, iy) = (x as u32, y as u32);
        let (fx, fy) = (x - ix as f32, y - iy as f32);
        let ease = |f: f32| f * f * (3.0 - 2.0 * f);
        let (sx, sy) = (ease(fx), ease(fy));
        let (x0, y0) = (ix as usize & MASK, (iy as usize & MASK) * Self::SIDE);
        let (x1, y1) = ((x0 + 1) & MASK, (y0 + Self::SIDE) & (Self::SIDE * Self::SIDE - 1));
        let values = &self.0[..Self::SIDE * Self::SIDE];
        let top = values[y0 | x0] + sx * (values[y0 | x1] - values[y0 | x0]);
        let bottom = values[y1 | x0] + sx * (values[y1 | x1] - values[y1 | x0]);
        top + sy * (bottom - top)
    }

    /// Ridges (a network of thin lines) in `[0, 1]`: 1 where the noise crosses its middle.
    #[inline]
    pub(super) fn ridge(&self, x: f32, y: f32) -> f32 {
        (1.0 - 3.0 * (self.at(x, y) - 0.5).abs()).max(0.0)
    }
}
