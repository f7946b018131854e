//! Seeded initial weights.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood 2014, <https://doi.org/10.1145/2660193.2660195>), written
//! here. So a seed gives the same weights on every platform and with every version of every library. Each
//! parameter has a stream of its own, so that adding a layer leaves the others' weights as they were.

/// A stream of uniform numbers.
#[derive(Clone, Debug)]
pub struct Uniform {
    state: u64,
}

impl Uniform {
    /// Stream number `stream` of `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut start = Self { state: seed };
        let mixed = start.next_u64();
        Self { state: mixed ^ stream.wrapping_mul(0xd134_2543_de82_ef95) }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `[-bound, bound)`, from 24 random bits.
    pub fn next_within(&mut self, bound: f32) -> f32 {
        let unit = (self.next_u64() >> 40) as f32 / (1u32 << 24) as f32;
        (2.0 * unit - 1.0) * bound
    }
}

/// `count` weights of a convolution or linear layer with `fan_in` inputs per output, uniform in
/// `±1 / sqrt(fan_in)`: PyTorch's default for weights and biases of both.
pub fn default_weights(seed: u64, stream: u64, count: usize, fan_in: usize) -> Vec<f32> {
    let bound = (1.0 / fan_in as f64).sqrt() as f32;
    let mut uniform = Uniform::new(seed, stream);
    (0..count).map(|_| uniform.next_within(bound)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_is_splitmix64() {
        // First outputs for state 1234567, as published with the reference implementation.
        let mut uniform = Uniform { state: 1_234_567 };
        let first: Vec<u64> = (0..3).map(|_| uniform.next_u64()).collect();
        assert_eq!(first, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn weights_fill_the_interval_and_depend_on_seed_and_stream() {
        let weights = default_weights(7, 0, 20_000, 9);
        let bound = 1.0 / 3.0;
        assert!(weights.iter().all(|w| (-bound..=bound).contains(w)));
        let mean = weights.iter().sum::<f32>() / weights.len() as f32;
        let variance = weights.iter().map(|w| w * w).sum::<f32>() / weights.len() as f32;
        assert!(mean.abs() < 0.01 && (variance - bound * bound / 3.0).abs() < 0.001);
        assert_eq!(weights, default_weights(7, 0, 20_000, 9));
        assert_ne!(weights, default_weights(8, 0, 20_000, 9));
        assert_ne!(weights, default_weights(7, 1, 20_000, 9));
    }
}
