//! Image and target get the same crops, flips, turns and deformations.

use crate::support::World;
use proptest::prelude::*;
use wellread_train::data::{Normal, Pairs, Patches};
use wellread_train::experiment;
use wellread_train::{Config, Mode};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_set_that_is_its_own_target_stays_so(
        height in 8usize..30, width in 8usize..30, workers in 0usize..3, epoch in 0u64..5, degrees in 0u8..30,
        elastic in 0u8..4, batch in 1usize..5, seed in any::<u64>(),
    ) {
        let world = World::new(2, [1, 1, 1, 33, 41]);
        let overrides = [
            format!("data.patch=[{height}, {width}]"),
            format!("data.workers={workers}"),
            format!("augment.rotate_degrees={degrees}"),
            format!("augment.elastic={elastic}"),
            format!("training.batch_size={batch}"),
            "data.target_channel=0".to_owned(),
            "data.normalize=none".to_owned(),
        ];
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        let task = world.task("im2im/labelfree", "out", &overrides);
        let (_, config) = Config::of_task(&task).unwrap();
        let labelfree = experiment::named("im2im/labelfree").unwrap();
        let pairs = Pairs::open(&config, labelfree, seed, Mode::Train).unwrap();
        let normal = Normal::of(&pairs, false, config.data.normalize, None).unwrap();
        let patches = Patches::new(&pairs, &config, seed, false).unwrap();
        let (mut count, mut seen) = (0, vec![]);
        for raw in patches.epoch(epoch) {
            let (images, targets) = patches.tensors(&raw.unwrap(), &normal).unwrap();
            prop_assert_eq!(&images, &targets);
            count += images.shape[0];
            seen.extend(images.data.chunks_exact(height * width).map(<[f32]>::to_vec));
        }
        prop_assert_eq!(count, 4);
        // The patches of one image are not all the same.
        prop_assert!(seen.windows(2).any(|pair| pair[0] != pair[1]));
    }
}
