//! Random numbers as a function of (seed, epoch, row, its occurrence in the epoch, purpose): no state, so no order of
//! asking matters.
//!
//! The mixing function is the finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014). Its values are part
//! of wellread's promise that a seed gives the same batches in every release.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scrambles 64 bits; a bijection.
pub(crate) const fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One key for several numbers; their order matters.
pub(crate) const fn key(parts: [u64; 3]) -> u64 {
    mix(mix(mix(parts[0]) ^ parts[1]) ^ parts[2])
}

/// A keyed 64-bit hash of numbers and texts, the same in every release: splits and saved states hold on to it.
/// Not for secrets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) const fn new(key: u64) -> Self {
        Self(key)
    }

    pub(crate) const fn number(&mut self, n: u64) {
        self.0 = mix(self.0.rotate_left(23) ^ mix(n));
    }

    pub(crate) fn numbers(&mut self, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|n| self.number(n));
    }

    pub(crate) fn text(&mut self, text: &str) {
        for part in text.as_bytes().chunks(8) {
            let mut bytes = [0; 8];
            bytes[..part.len()].copy_from_slice(part);
            self.number(u64::from_le_bytes(bytes));
        }
        // So that zeros at the end, and where one text ends and the next begins, count.
        self.number(text.len() as u64);
    }

    pub(crate) const fn finish(self) -> u64 {
        mix(self.0)
    }
}

/// The purpose of a drawn number. Each purpose has its own stream, so that switching one transform on leaves
/// the draws of all others as they were.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    CropY = 1,
    CropX = 2,
    FlipHorizontal = 3,
    FlipVertical = 4,
    Turns = 5,
    Degrees = 6,
    CropArea = 7,
    CropRatio = 8,
    Brightness = 9,
    Contrast = 10,
    Gamma = 11,
    PhotonNoise = 12,
    GaussianNoise = 13,
    Dropout = 14,
}

/// The draws of one row in one epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) const fn new(seed: u64, epoch: u64, row: usize) -> Self {
        Self(key([seed, epoch, row as u64]))
    }

    /// The draws of the row where its epoch has it more than once, told apart by `occurrence`; 0 is the row itself.
    pub(crate) const fn of_occurrence(self, occurrence: u64) -> Self {
        // The first number keeps them apart from those of crops.
        if occurrence == 0 { self } else { Self(key([0x6f63_6375_7273, self.0, occurrence])) }
    }

    /// The draws of one of several crops of the row; crop 0 is the row itself.
    pub(crate) const fn of_crop(self, crop: usize) -> Self {
        if crop == 0 { self } else { Self(mix(self.0 ^ mix(crop as u64))) }
    }

    const fn bits(self, purpose: Purpose) -> u64 {
        self.nth(purpose, 0).0
    }

    /// Number `i` of several draws for one purpose, such as one per channel.
    pub(crate) const fn nth(self, purpose: Purpose, i: u64) -> Drawn {
        let number = (purpose as u64).wrapping_add(i << 8);
        Drawn(mix(self.0 ^ number.wrapping_mul(GOLDEN)))
    }

    /// A whole number in `0..n`, uniform to within `n / 2^64`.
    pub(crate) const fn below(self, purpose: Purpose, n: usize) -> usize {
        ((self.bits(purpose) as u128 * n as u128) >> 64) as usize
    }

    /// A number in `[0, 1)`, a multiple of 2^-53.
    pub(crate) const fn unit(self, purpose: Purpose) -> f64 {
        self.nth(purpose, 0).unit()
    }
}

/// 64 random bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn(pub(crate) u64);

impl Drawn {
    /// A number in `[0, 1)`, a multiple of 2^-53.
    pub(crate) const fn unit(self) -> f64 {
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_uniform_and_independent_of_each_other() {
        let (mut counts, mut pairs) = ([0u32; 7], [0u32; 4]);
        let n = 70_000;
        for row in 0..n {
            let draws = Draws::new(1, 2, row);
            counts[draws.below(Purpose::CropY, 7)] += 1;
            let (a, b) = (draws.unit(Purpose::FlipHorizontal), draws.unit(Purpose::FlipVertical));
            assert!((0.0..1.0).contains(&a));
            pairs[usize::from(a < 0.5) * 2 + usize::from(b < 0.5)] += 1;
        }
        // Six standard deviations of a binomial count.
        assert!(counts.iter().all(|&c| (c as f64 - n as f64 / 7.0).abs() < 6.0 * 93.0), "{counts:?}");
        assert!(pairs.iter().all(|&c| (c as f64 - n as f64 / 4.0).abs() < 6.0 * 115.0), "{pairs:?}");
    }

    #[test]
    fn seed_epoch_and_row_each_matter() {
        let bits = |s, e, r| Draws::new(s, e, r).bits(Purpose::CropY);
        let all = [bits(1, 2, 3), bits(2, 1, 3), bits(1, 3, 2), bits(3, 2, 1), bits(0, 0, 0)];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        // So do its occurrence and the number of the crop, apart and together.
        let row = Draws::new(1, 2, 3);
        let each = |n: usize| (row.of_occurrence(n as u64 % 50).of_crop(n / 50)).bits(Purpose::CropY);
        let all: std::collections::HashSet<u64> = (0..2500).map(each).collect();
        assert_eq!((all.len(), each(0)), (2500, row.bits(Purpose::CropY)));
        // Pinned: a change here changes every user's batches.
        assert_eq!(bits(0, 0, 0), 0x958a_0b69_7d6c_d4b3);
        assert_eq!(Draws::new(0, 0, 0).of_occurrence(1).bits(Purpose::CropY), 0x9729_f93a_6cf8_9498);
    }
}
