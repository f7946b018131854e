//! Orders: each row once, what tells them apart, what they are pinned to.

use super::*;
use crate::MemoryStore;
use proptest::prelude::*;
use wellread_image::{PixelType, Shape};

/// `n` images of one pixel, named by number.
pub(crate) fn numbered(n: usize) -> MemoryStore {
    let mut store = MemoryStore::new("numbered");
    for i in 0..n {
        store.push(i.to_string(), Shape::plane(1, 1), PixelType::U8, vec![0]).unwrap();
    }
    store
}

fn orders(n: usize) -> [Order; 5] {
    let by = Grouping::keys((0..n).map(|i| (i * i % 5).to_string()));
    [
        Order::Sequential,
        Order::Random,
        Order::Block { rows: 7, window: 3 },
        Order::Grouped(by.clone()),
        Order::Mixed { by, window: 2 },
    ]
}

proptest! {
    #[test]
    fn every_selected_row_comes_once(n in 1usize..150, step in 1usize..4, seed: u64, epoch in 0u64..4) {
        let store = numbered(n);
        let some: Vec<usize> = (0..n).rev().step_by(step).collect();
        for order in orders(n) {
            for rows in [Rows::All(n), Rows::Some(some.clone().into())] {
                let mut expected: Vec<usize> = (0..rows.len()).map(|i| rows.get(i)).collect();
                let order = RowOrder::new(&order, rows, &store).unwrap();
                let epoch = EpochOrder::new(&order, seed, epoch, &[]);
                let mut got: Vec<usize> = (0..order.len()).map(|p| epoch.row(&order, p)).collect();
                prop_assert_eq!(epoch.row(&order, order.len()), got[0]);
                expected.sort_unstable();
                got.sort_unstable();
                prop_assert_eq!(got, expected);
            }
        }
    }
}

#[test]
fn fingerprints_tell_orders_apart() {
    let store = numbered(30);
    let print = |order: &Order, rows| RowOrder::new(order, rows, &store).unwrap().fingerprint();
    let mut all = orders(30).to_vec();
    all.push(Order::Mixed { by: Grouping::keys((0..30).map(|i| (i * i % 5).to_string())), window: 3 });
    all.push(Order::Block { rows: 7, window: 4 });
    all.push(Order::Weighted { weights: vec![1.0; 30].into(), images: None });
    all.push(Order::Weighted { weights: (0..30).map(f64::from).collect(), images: None });
    for images in [None, Some(60)] {
        all.push(Order::Balanced { by: Grouping::keys((0..30).map(|i| (i % 4).to_string())), images });
    }
    let prints: Vec<u64> = all.iter().map(|order| print(order, Rows::All(30))).collect();
    for (i, a) in prints.iter().enumerate() {
        assert!(prints[i + 1..].iter().all(|b| a != b), "{:?}", all[i]);
    }
    assert_eq!(print(&all[1], Rows::All(30)), prints[1]);
    let selected: Arc<[usize]> = (1..30).collect();
    assert_ne!(print(&all[1], Rows::Some(selected)), prints[1]);
    let local = |order, every| RowOrder::local(order, Rows::All(30), &store, every).unwrap().fingerprint();
    let locals = [local(&all[0], 0), local(&all[1], 0), local(&all[1], 1), local(&all[1], 2)];
    for (i, a) in locals.iter().enumerate() {
        assert!(!prints.contains(a) && locals[i + 1..].iter().all(|b| a != b), "{i}");
    }
}

/// A change here changes the order of every user's images, and the meaning of saved states: then
/// `LoaderState`'s version has to rise.
#[test]
fn orders_stay_what_they_are() {
    let store = numbered(1000);
    let by = Grouping::keys((0..1000).map(|i| (i % 20).to_string()));
    let pinned: [(Order, [usize; 4]); 5] = [
        (Order::Random, [945, 41, 590, 555]),
        (Order::Block { rows: 30, window: 4 }, [255, 177, 298, 440]),
        (Order::Grouped(by.clone()), [8, 28, 48, 996]),
        (Order::Weighted { weights: (0..1000).map(f64::from).collect(), images: None }, [596, 576, 619, 925]),
        (Order::Balanced { by, images: None }, [517, 908, 154, 759]),
    ];
    let rows = |order| {
        let order = RowOrder::new(order, Rows::All(1000), &store).unwrap();
        let epoch = EpochOrder::new(&order, 42, 1, &[]);
        [0, 1, 2, 999].map(|p| epoch.row(&order, p))
    };
    let got: Vec<_> = pinned.iter().map(|(order, _)| rows(order)).collect();
    assert_eq!(got, pinned.map(|(_, rows)| rows));
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let store = numbered(3);
    let refusal = |order| RowOrder::new(&order, Rows::All(3), &store).unwrap_err().to_string();
    assert!(refusal(Order::Block { rows: 0, window: 1 }).contains("blocks of 0 rows"));
    assert!(refusal(Order::Block { rows: 1, window: 0 }).contains("window of 0 blocks"));
    assert!(refusal(Order::Mixed { by: Grouping::Position, window: 0 }).contains("window of 0 groups"));
    let by = Grouping::name_prefix("_");
    assert!(refusal(Order::Balanced { by, images: Some(0) }).contains("epoch of 0 images"));
    let columns = refusal(Order::Grouped(Grouping::columns(["Metadata_Well"])));
    assert!(columns.contains("Metadata_Well"), "{columns}");
    for order in &orders(3)[3..] {
        let error = RowOrder::local(order, Rows::All(3), &store, 0).unwrap_err().to_string();
        assert!(error.contains("nodes cannot have a part"), "{error}");
    }
}
