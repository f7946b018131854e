//! A saved state gives exactly the images that were not yet delivered, whoever goes on.

use crate::support::{TestStore, bits, images};
use proptest::prelude::*;
use wellread_image::{PixelType, Shape};
use wellread_loader::{Batches, Dataset, Grouping, Loader, LoaderBuilder, LoaderState, Order, Uneven};

fn dataset(n: usize) -> Dataset {
    TestStore::new(images(n, Shape::plane(6, 6), PixelType::U8)).dataset()
}

fn orders(n: usize) -> Vec<Order> {
    let by = Grouping::name_prefix("_");
    vec![
        Order::Sequential,
        Order::Random,
        Order::Block { rows: 4, window: 3 },
        Order::Grouped(by.clone()),
        Order::Weighted { weights: (1..=n).map(|w| w as f64).collect(), images: Some(n + 7) },
        Order::Balanced { by, images: None },
    ]
}

#[derive(Clone, Copy, Debug)]
struct Run {
    batch_size: usize,
    workers: usize,
    prefetch: usize,
    world: usize,
}

fn run() -> impl Strategy<Value = Run> {
    (1usize..9, 0usize..3, 1usize..5, 1usize..4).prop_map(|(batch_size, workers, prefetch, world)| Run {
        batch_size,
        workers,
        prefetch,
        world,
    })
}

impl Run {
    /// Loaders of all ranks.
    fn loaders(self, builder: &LoaderBuilder, uneven: Uneven) -> Vec<Loader> {
        let builder =
            builder.clone().batch_size(self.batch_size).workers(self.workers).prefetch(self.prefetch);
        (0..self.world).map(|rank| builder.clone().shard(rank, self.world, uneven).build().unwrap()).collect()
    }
}

/// The position in the epoch's order of each image of a step of all ranks is known. So the images of the ranks in turn
/// are the order.
fn step(all: &mut [wellread_loader::Batches]) -> Vec<usize> {
    all.iter_mut().filter_map(Iterator::next).flat_map(|b| b.unwrap().rows().to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Two interruptions, each followed by other numbers of everything. The epoch is as if there had been none. Only
    /// the images that the last step of several ranks repeats or leaves out to be even differ.
    #[test]
    fn interrupted_epochs_are_whole(
        n in 20usize..60, order in 0usize..6, pad: bool, seed: u64, epoch in 0u64..3, runs in [run(), run(), run()], stops in [0usize..6, 0..6],
    ) {
        let dataset = dataset(n);
        let builder = Loader::builder(&dataset).order(orders(n)[order].clone()).seed(seed).random_crop(4, 4);
        let expected = builder.clone().build().unwrap().rows(epoch);
        let mut got = vec![];
        let mut state: Option<LoaderState> = None;
        for (i, run) in runs.iter().enumerate() {
            let uneven = if pad { Uneven::Pad } else { Uneven::DropLast };
            let loaders = run.loaders(&builder, uneven);
            let mut ranks: Vec<_> = match &state {
                None => loaders.iter().map(|loader| loader.iter_at(epoch, 0)).collect(),
                Some(state) => loaders.iter().map(|loader| loader.resume(state).unwrap()).collect(),
            };
            for _ in 0..stops.get(i).copied().unwrap_or(usize::MAX) {
                let images = step(&mut ranks);
                if images.is_empty() {
                    break;
                }
                got.extend(images);
            }
            let states: Vec<_> = ranks.iter().map(Batches::state).collect();
            prop_assert!(states.windows(2).all(|s| s[0] == s[1]), "ranks in step are at the same place");
            let json = states[0].to_json();
            state = Some(LoaderState::from_json(&json).unwrap());
            prop_assert!(state.as_ref() == Some(&states[0]));
            prop_assert!(loaders.iter().skip(usize::from(i == 0) * 9).all(|loader| loader.epoch() == epoch + 1));
        }
        let most = runs.iter().map(|run| run.world).max().unwrap_or(1);
        if pad {
            prop_assert!(got.len() >= expected.len() && got.len() < expected.len() + most);
            prop_assert_eq!(&got[..expected.len()], &expected[..]);
        } else {
            // Only the step that ends the epoch leaves images out: fewer than there are ranks in it.
            prop_assert!(got.len() <= expected.len() && expected.len() - got.len() < most);
            prop_assert_eq!(&got[..], &expected[..got.len()]);
        }
    }
}

/// The pixels too, and batches read ahead do not count.
#[test]
fn the_rest_is_bit_identical() {
    let dataset = dataset(40);
    for workers in [0, 2] {
        let builder = Loader::builder(&dataset).batch_size(4).shuffle(5).random_crop(3, 3).flip(0.5, 0.5);
        let loader = builder.clone().workers(workers).prefetch(8).build().unwrap();
        let expected: Vec<_> = loader.iter_at(3, 0).map(|batch| bits(&batch.unwrap())).collect();
        for taken in 0..=10 {
            let mut batches = loader.iter_at(3, 0);
            assert_eq!(batches.by_ref().take(taken).count(), taken);
            let state = batches.state();
            assert_eq!((state.position(), state.epoch()), (4 * taken as u64, 3));
            let other = builder.clone().workers(2 - workers).build().unwrap();
            let resumed = other.resume(&state).unwrap();
            assert_eq!(resumed.position(), taken);
            let rest: Vec<_> = resumed.map(|batch| bits(&batch.unwrap())).collect();
            assert_eq!(rest, expected[taken..]);
            assert_eq!(other.epoch(), 4);
        }
    }
}

#[test]
fn states_of_other_sets_are_refused() {
    let (few, many) = (dataset(20), dataset(21));
    let builder = Loader::builder(&few).shuffle(5);
    let state = builder.clone().build().unwrap().iter().state();
    let refusal = |builder: LoaderBuilder| builder.build().unwrap().resume(&state).unwrap_err().to_string();
    assert!(refusal(Loader::builder(&many).shuffle(5)).contains("other images"));
    assert!(refusal(builder.clone().shuffle(6)).contains("seed 5, and this one is 6"));
    assert!(refusal(builder.clone().sequential()).contains("another order"));
    assert!(refusal(builder.clone().rows([1, 2])).contains("another order or choice of rows"));
    let mut renamed = images(0, Shape::plane(6, 6), PixelType::U8);
    for i in 0..20 {
        renamed.push(format!("other {i}"), Shape::plane(6, 6), PixelType::U8, vec![0; 36]).unwrap();
    }
    let renamed = TestStore::new(renamed).dataset();
    assert!(refusal(Loader::builder(&renamed).shuffle(5)).contains("other images"));
    // Each name of a few images counts.
    let three = |last: &str| {
        let mut store = images(0, Shape::plane(6, 6), PixelType::U8);
        for name in ["a", "b", last] {
            store.push(name, Shape::plane(6, 6), PixelType::U8, vec![0; 36]).unwrap();
        }
        Loader::builder(&TestStore::new(store).dataset()).build().unwrap()
    };
    let of_three = three("c").iter().state();
    assert!(three("c").resume(&of_three).is_ok());
    assert!(three("d").resume(&of_three).unwrap_err().to_string().contains("other images"));
    // Another recipe is no other order.
    assert_eq!(builder.crop(2, 2).build().unwrap().resume(&state).unwrap().remaining(), 2);
}
