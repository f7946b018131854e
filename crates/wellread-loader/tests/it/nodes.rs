//! Nodes that have a part of the set each: neighbouring rows, equal batches, and epochs that go on with other nodes.

use crate::support::{TestStore, images};
use proptest::prelude::*;
use wellread_image::{PixelType, Shape};
use wellread_loader::{Batches, Dataset, Grouping, Loader, LoaderBuilder, LoaderState, Order, Uneven};

fn dataset(n: usize) -> Dataset {
    TestStore::new(images(n, Shape::plane(2, 2), PixelType::U8)).dataset()
}

/// Nodes with equally many ranks, which take batches of so many rows; nodes that divide the whole where they have no parts.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    nodes: usize,
    ranks: usize,
    batch_size: usize,
    pad: bool,
}

fn cluster() -> impl Strategy<Value = Cluster> {
    (1usize..4, 1usize..3, 1usize..6, any::<bool>()).prop_map(|(nodes, ranks, batch_size, pad)| Cluster {
        nodes,
        ranks,
        batch_size,
        pad,
    })
}

impl Cluster {
    fn world(self) -> usize {
        self.nodes * self.ranks
    }

    /// Loaders of all ranks.
    fn loaders(self, builder: &LoaderBuilder, reshard_every: Option<u64>) -> Vec<Loader> {
        let uneven = if self.pad { Uneven::Pad } else { Uneven::DropLast };
        let of = |rank| {
            let builder = builder.clone().batch_size(self.batch_size).shard(rank, self.world(), uneven);
            match reshard_every {
                None => builder.build().unwrap(),
                Some(every) => builder.shard_local(self.nodes, every).build().unwrap(),
            }
        };
        (0..self.world()).map(of).collect()
    }
}

fn orders() -> [Order; 3] {
    [Order::Sequential, Order::Random, Order::Block { rows: 4, window: 3 }]
}

/// The rows of a step of all ranks, rank by rank; none at the end.
fn step(all: &mut [Batches]) -> Vec<Vec<usize>> {
    all.iter_mut().filter_map(Iterator::next).map(|batch| batch.unwrap().rows().to_vec()).collect()
}

fn sorted(mut rows: Vec<usize>) -> Vec<usize> {
    rows.sort_unstable();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// All ranks have equally many batches of equally many rows, and together each row once. Fewer rows than there are
    /// ranks may be left out or come again. A node's rows are its own.
    #[test]
    fn ranks_have_equal_batches_and_nodes_have_parts(
        n in 12usize..70, order in 0usize..3, cluster in cluster(), every in prop::option::of(0u64..3), drop_last: bool,
        seed: u64, epoch in 0u64..4,
    ) {
        let full = cluster.batch_size * cluster.world();
        prop_assume!(!drop_last || n >= full);
        let dataset = dataset(n);
        let builder = Loader::builder(&dataset).order(orders()[order].clone()).seed(seed).drop_last(drop_last);
        let loaders = cluster.loaders(&builder, every);
        let mut ranks: Vec<Batches> = loaders.iter().map(|loader| loader.iter_at(epoch, 0)).collect();
        let mut of_nodes = vec![vec![]; cluster.nodes];
        loop {
            let batches = step(&mut ranks);
            if batches.is_empty() {
                break;
            }
            prop_assert_eq!(batches.len(), cluster.world(), "a rank has no batch where others have");
            prop_assert!(batches.iter().all(|rows| rows.len() == batches[0].len()));
            for (rank, rows) in batches.iter().enumerate() {
                of_nodes[rank / cluster.ranks].extend_from_slice(rows);
            }
        }
        for (rank, loader) in loaders.iter().enumerate() {
            prop_assert_eq!(loader.len(), loaders[0].len());
            let own = loader.rows(epoch);
            prop_assert!(own.iter().all(|row| of_nodes[rank / cluster.ranks].contains(row)));
        }
        let all = sorted(of_nodes.concat());
        let mut distinct = all.clone();
        distinct.dedup();
        let least = match (drop_last, cluster.pad) {
            (true, _) => n - n % full,
            (false, true) => n,
            (false, false) => n - n % cluster.world(),
        };
        prop_assert_eq!(distinct.len(), least);
        prop_assert!(all.len() - distinct.len() < cluster.world() && (cluster.pad || all.len() == distinct.len()));
        if every == Some(0) && !cluster.pad {
            let mut end = 0;
            for rows in of_nodes {
                let rows = sorted(rows);
                if let (Some(&first), Some(&last)) = (rows.first(), rows.last()) {
                    prop_assert!(first >= end, "the parts of nodes follow each other");
                    prop_assert!(last - first < rows.len() + full, "a run of rows, but for what is left out");
                    end = last + 1;
                }
            }
        }
    }

    /// Two interruptions, each followed by other numbers of everything. Each row comes once over all runs, but for what the
    /// last step repeats or leaves out to be even.
    #[test]
    fn an_epoch_goes_on_with_other_nodes(
        n in 12usize..70, order in 0usize..3, clusters in [cluster(), cluster(), cluster()], stops in [0usize..6, 0..6],
        every in prop::option::of(0u64..3), seed: u64, epoch in 0u64..4,
    ) {
        let dataset = dataset(n);
        let builder = Loader::builder(&dataset).order(orders()[order].clone()).seed(seed);
        let mut got = vec![];
        let mut state: Option<LoaderState> = None;
        for (i, cluster) in clusters.iter().enumerate() {
            let loaders = cluster.loaders(&builder, every);
            let mut ranks: Vec<Batches> = match &state {
                None => loaders.iter().map(|loader| loader.iter_at(epoch, 0)).collect(),
                Some(state) => loaders.iter().map(|loader| loader.resume(state).unwrap()).collect(),
            };
            for _ in 0..stops.get(i).copied().unwrap_or(usize::MAX) {
                let batches = step(&mut ranks);
                if batches.is_empty() {
                    break;
                }
                prop_assert_eq!(batches.len(), cluster.world());
                prop_assert!(batches.iter().all(|rows| rows.len() == batches[0].len()));
                got.extend(batches.concat());
            }
            let states: Vec<_> = ranks.iter().map(Batches::state).collect();
            prop_assert!(states.windows(2).all(|s| s[0] == s[1]), "ranks in step are at the same place");
            for (loader, batches) in loaders.iter().zip(&ranks) {
                let (epoch, position) = batches.progress();
                let since = loader.state_since(state.as_ref(), epoch, position).unwrap();
                prop_assert!(since == batches.state());
            }
            state = Some(LoaderState::from_json(&states[0].to_json()).unwrap());
        }
        let most = clusters.iter().map(|cluster| cluster.world()).max().unwrap_or(1);
        let mut distinct = sorted(got.clone());
        distinct.dedup();
        prop_assert!(n - distinct.len() < most, "{} of {} rows", distinct.len(), n);
        // Only the step that ends the epoch may repeat rows.
        prop_assert!(got.len() - distinct.len() < most);
        if clusters.iter().all(|cluster| !cluster.pad) {
            prop_assert_eq!(got.len(), distinct.len());
        }
        if clusters.iter().all(|cluster| cluster.pad) {
            prop_assert_eq!(distinct.len(), n);
        }
    }

    /// With the same nodes an interruption changes nothing.
    #[test]
    fn an_epoch_goes_on_as_it_was(
        n in 12usize..70, order in 0usize..3, cluster in cluster(), stop in 0usize..8, seed: u64, every in 0u64..3,
    ) {
        let dataset = dataset(n);
        let builder = Loader::builder(&dataset).order(orders()[order].clone()).seed(seed);
        for loader in cluster.loaders(&builder, Some(every)) {
            let stop = stop.min(loader.len());
            let rows = |batches: Batches| -> Vec<usize> { batches.flat_map(|b| b.unwrap().rows().to_vec()).collect() };
            let (whole, mut begun) = (loader.rows(2), loader.iter_at(2, 0));
            let first = begun.by_ref().take(stop).map(|batch| batch.unwrap().len()).sum::<usize>();
            prop_assert_eq!(&rows(loader.iter_at(2, stop)), &whole[first..]);
            prop_assert_eq!(&rows(loader.resume(&begun.state()).unwrap()), &whole[first..]);
        }
    }
}

#[test]
fn nodes_that_cannot_be_are_refused() {
    let dataset = dataset(20);
    let builder = Loader::builder(&dataset).shard(1, 4, Uneven::DropLast);
    let refusal = |builder: LoaderBuilder| builder.build().unwrap_err().to_string();
    assert!(refusal(builder.clone().shard_local(3, 0)).contains("4 ranks on 3 nodes are not equally many"));
    assert!(refusal(builder.clone().shard_local(0, 0)).contains("on 0 nodes"));
    let grouped = builder.clone().grouped(Grouping::name_prefix("_"), 1).shard_local(2, 0);
    assert!(refusal(grouped).contains("nodes cannot have a part of it each"));
    assert_eq!(builder.shard_local(2, 0).build().unwrap().len(), 1);
}

#[test]
fn states_of_the_other_kind_are_refused() {
    let dataset = dataset(20);
    let whole = Loader::builder(&dataset).shuffle(5);
    let (whole, parts) = (whole.clone().build().unwrap(), whole.shard_local(1, 0).build().unwrap());
    for (from, to) in [(&whole, &parts), (&parts, &whole)] {
        let error = to.resume(&from.iter().state()).unwrap_err();
        assert!(error.to_string().contains("another order"), "{error}");
        assert!(error.to_string().contains("kind of shard"), "{error}");
    }
    assert!(!whole.iter().state().to_json().contains("deals"));
}
