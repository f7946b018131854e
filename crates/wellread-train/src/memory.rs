//! How much memory a run will take, told before it is taken.

use crate::config::Config;
use crate::net::{Unet, UnetSpec};
use anyhow::{Result, ensure};
use std::path::Path;
use wellread_measure::Environment;

/// The network of the configuration, for images of one channel.
pub fn spec(config: &Config) -> UnetSpec {
    let model = &config.model;
    UnetSpec {
        dimensions: model.dimensions,
        c_in: 1,
        c_out: 1,
        width: model.width,
        depth: model.depth,
        norm: model.norm,
    }
}

/// Refuses a step on `pixels` pixels (those of a batch) that would not fit in memory.
///
/// # Errors
/// With how much it would take.
pub fn check(spec: &UnetSpec, pixels: f64) -> Result<()> {
    let free = Environment::capture::<&Path>(&[]).free_memory();
    refuse(spec.training_bytes(pixels), free, spec.width)
}

fn refuse(bytes: f64, available: Option<u64>, width: usize) -> Result<()> {
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    // Counting must not overflow either, whatever the machine has.
    let most = available.map_or(f64::MAX, |bytes| bytes as f64).min((1u64 << 46) as f64);
    ensure!(
        bytes <= most,
        "a step of this network takes about {:.1} GiB of memory, {:.1} GiB are available: choose a smaller model.width \
         (now {width}), training.batch_size, data.patch or inference.tile",
        gib(bytes),
        gib(most)
    );
    Ok(())
}

/// Makes a network after checking that a step on `pixels` pixels fits in memory.
///
/// # Errors
/// As [`check`]; sizes that make no sense.
pub fn network(spec: UnetSpec, pixels: f64, seed: u64) -> Result<Unet> {
    check(&spec, pixels)?;
    Unet::new(spec, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Network, NormKind};

    #[test]
    fn estimates_count_what_is_made_and_absurd_widths_are_refused() {
        let spec = UnetSpec { dimensions: 2, c_in: 1, c_out: 1, width: 8, depth: 2, norm: NormKind::Batch };
        for spec in [spec, UnetSpec { dimensions: 3, norm: NormKind::None, ..spec }] {
            let net = Unet::new(spec, 0).unwrap();
            let made: usize = net.params().filter(|p| p.learnt).map(|p| p.values.len()).sum();
            assert_eq!(spec.parameters(), made as f64);
        }
        let error = check(&UnetSpec { width: usize::MAX / 1024, ..spec }, 65_536.0).unwrap_err().to_string();
        assert!(error.contains("model.width"), "{error}");
        assert!(refuse(2e9, Some(1 << 30), 8).is_err() && refuse(2e9, Some(1 << 34), 8).is_ok());
    }
}
