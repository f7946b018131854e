//! Tests of the limits of a loader.

use super::*;
use std::collections::BTreeSet;
use std::path::Path;
use wellread_measure::limits::Bandwidth;

fn bandwidth(bytes_per_second: f64) -> Bandwidth {
    Bandwidth { bytes_per_second, slowest: bytes_per_second, fastest: bytes_per_second, passes: 3, bytes: 1 }
}

#[test]
fn limits_grow_with_threads_up_to_the_cores() {
    let limits = Limits { reading: Some(1000.0), codec: Some(1500.0), disk: Some(10.0), link: None };
    let at = |workers| -> Vec<(&str, f64)> {
        limits.at(workers, 2, Some(1200.0)).iter().map(|l| (l.name, l.rate)).collect()
    };
    assert_eq!(at(0), [("kernel", 1200.0), ("read", 1000.0), ("codec", 1500.0), ("disk", 10.0)]);
    assert_eq!(at(2), [("kernel", 1200.0), ("read", 2000.0), ("codec", 3000.0), ("disk", 10.0)]);
    assert_eq!(at(4), at(2));
    // Writing batches alone binds nothing.
    let crops = Limits::default().at(1, 2, Some(1e6));
    assert_eq!(crops.iter().map(|l| (l.name, l.binds)).collect::<Vec<_>>(), [("kernel", false)]);
    // A link does not grow with threads.
    let of_link = Limits { link: Some(50.0), ..Limits::default() }.at(4, 2, Some(1e6));
    let of_link: Vec<_> = of_link.iter().map(|l| (l.name, l.rate, l.binds)).collect();
    assert_eq!(of_link, [("kernel", 1e6, true), ("link", 50.0, true)]);
}

#[test]
fn the_pages_name_what_binds_as_the_table_does() {
    let limits = Limits { reading: Some(1.0), codec: Some(1.0), disk: Some(1.0), link: Some(1.0) };
    let all = limits.at(1, 1, Some(1.0));
    assert_eq!(all.len(), NAMES.len());
    let in_words = |l: &Limit| NAMES.iter().find(|n| n.0 == l.name).map(|n| n.1);
    let binding = all.iter().filter(|l| l.binds).filter_map(in_words);
    let values: BTreeSet<String> = binding.chain([NOT_VALID]).map(str::to_owned).collect();
    assert_eq!(values.len(), 4);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let lines = |page: &str| -> Vec<String> {
        std::fs::read_to_string(docs.join(page)).unwrap().lines().map(str::to_owned).collect()
    };
    let cell = |line: &String| Some(line.strip_prefix("| ")?.split_once(" |")?.0.replace('`', ""));
    let how_to = lines("howto/bottleneck.md");
    let table = how_to.iter().skip_while(|line| !line.starts_with("| `bound_by` |")).skip(2);
    let told: BTreeSet<String> = table.map_while(cell).collect();
    assert_eq!(told, values);
    let columns = lines("result-columns.md");
    let column = columns.iter().find(|line| line.starts_with("| `bound_by` |")).unwrap();
    assert!(values.iter().all(|value| column.contains(&format!("`{value}`"))), "{column}");
}

#[test]
fn figures_are_shares_of_both_copies() {
    let copy = CopyLimits { one_thread: bandwidth(1e9), all_threads: bandwidth(2e9), threads: 2 };
    let share = |rate, device| -> Vec<(String, Option<f64>)> {
        let cells = shares(rate, 1e6, 2, &copy, device).into_iter();
        cells.map(|(name, cell)| (name, cell.as_f64())).collect()
    };
    // Two of many threads are not compared with what all of them copy, and more than there are with no more.
    let many = CopyLimits { one_thread: bandwidth(1e9), all_threads: bandwidth(6e9), threads: 16 };
    let of_many = [1, 2, 4, 16, 32].map(|threads| share_of_copy(1500.0, 1e6, threads, &many));
    assert_eq!(of_many, [1.5, 0.75, 0.375, 0.25, 0.25]);
    let named = |name: &str, share| (name.to_owned(), share);
    assert_eq!(share(Some(500.0), None), [named("share_of_copy", Some(0.25))]);
    let both = [named("share_of_copy", Some(0.25)), named("share_of_device_copy", Some(0.05))];
    assert_eq!(share(Some(500.0), Some(1e10)), both);
    assert_eq!(share(None, Some(1e10)).iter().filter(|cell| cell.1.is_some()).count(), 0);
}
