//! Damage as disks, copies and careless programs do it, by seed: the same seed always gives the same damage.
//!
//! | damage | as by |
//! |---|---|
//! | a bit flipped | memory, an old disk |
//! | a byte, a few bytes written over | a program that writes to the wrong place |
//! | cut off at the end | a copy that was interrupted |
//! | bytes taken out, bytes put in | a copy as text |
//! | two blocks changed over, a block written twice, a block of zeros | a file system after a crash |

/// Numbers that follow from a seed ([splitmix64](https://prng.di.unimi.it/splitmix64.c)).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not zero.
    pub fn below(&mut self, n: u64) -> u64 {
        self.number() % n
    }
}

/// The names of the kinds of damage, as [`damage`] numbers them.
pub const KINDS: [&str; 9] =
    ["bit", "byte", "bytes", "cut", "taken out", "put in", "changed over", "written twice", "zeros"];

/// Damages `bytes`, which are not empty; which of [`KINDS`] it was.
///
/// The damaged bytes differ from the former ones, unless these were one byte again and again.
pub fn damage(bytes: &mut Vec<u8>, random: &mut Random) -> usize {
    let before = bytes.clone();
    // Half of all is single bits: the most common damage.
    let kind = if random.below(2) == 0 { 0 } else { random.below(KINDS.len() as u64) as usize };
    for _ in 0..20 {
        once(bytes, kind, random);
        if *bytes != before {
            break;
        }
    }
    kind
}

fn once(bytes: &mut Vec<u8>, kind: usize, random: &mut Random) {
    let length = bytes.len();
    let at = random.below(length as u64) as usize;
    // Short ones and long ones are as frequent.
    let some = 1 << random.below(u64::from(length.ilog2()) + 1).min(12);
    let n = (1 + random.below(some) as usize).min(length - at);
    let other = random.below((length - n + 1) as u64) as usize;
    match kind {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.number() as u8,
        2 => bytes[at..at + n].iter_mut().for_each(|byte| *byte = random.number() as u8),
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..at + n)),
        5 => drop(bytes.splice(at..at, (0..n).map(|_| random.number() as u8)).collect::<Vec<_>>()),
        6 => (0..n.min(at.abs_diff(other))).for_each(|i| bytes.swap(at + i, other + i)),
        7 => bytes.copy_within(at..at + n, other),
        _ => bytes[at..at + n].fill(0),
    }
}
