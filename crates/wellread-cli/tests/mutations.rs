//! The fuzz targets of engines, run with random inputs: without libFuzzer, nightly or a second build of the engines.
//!
//! `WELLREAD_MUTATIONS=N` runs N inputs of each kind.

// Links the engines.
use wellread as _;

// The crates of fuzz targets are no members of the workspace; their code is compiled in here under their names.
extern crate self as wellread_fuzz;
#[path = "../../../fuzz/engines/src/lib.rs"]
mod engines;
#[path = "../../../fuzz/src/lib.rs"]
mod stores;
pub use stores::{file, folder, patch, read_all};

/// Numbers that follow from a seed ([splitmix64](https://prng.di.unimi.it/splitmix64.c)).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn inputs() -> u64 {
    std::env::var("WELLREAD_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

/// An input of a few patches: flipped bits, small numbers, large numbers, noise.
fn input(seed: u64) -> Vec<u8> {
    let random = &mut Random(seed);
    let mut data = vec![random.next() as u8];
    for _ in 0..=random.below(4) {
        data.extend((random.next() as u32).to_le_bytes());
        let patch = match random.below(4) {
            0 => vec![random.next() as u8],
            1 => (random.below(300) as u32).to_le_bytes().to_vec(),
            2 => vec![0xff; 1 + random.below(8) as usize],
            _ => (0..=random.below(40)).map(|_| random.next() as u8).collect(),
        };
        data.push(patch.len() as u8);
        data.extend(patch);
    }
    data
}

fn run(format: &str, target: fn(&[u8])) {
    if !wellread_store::formats().iter().any(|f| f.name == format) {
        println!("skipped: {format} is not in this build");
        return;
    }
    // As it is, it must be readable.
    (0..4).for_each(|which| target(&[which]));
    for seed in 0..inputs() {
        let data = input(seed);
        let outcome = std::panic::catch_unwind(|| target(&data));
        assert!(outcome.is_ok(), "{format}: input {seed} panics: {data:?}");
    }
}

#[test]
fn patched_lance_datasets() {
    run("lance", engines::lance);
}

#[test]
fn patched_duckdb_databases() {
    run("duckdb", engines::duckdb);
}

#[test]
fn patched_vortex_files() {
    run("vortex", engines::vortex);
}
