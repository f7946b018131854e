//! Whether all images of a set have the channels of the first.

use wellread_image::Channel;
use wellread_store::Store;
use wellread_store::words::counted;

/// Among this many first rows, the number with the channels of the first in another order, and the number with others.
pub(super) fn others(store: &dyn Store, rows: usize, own: &[Channel]) -> [usize; 2] {
    let (mut moved, mut unlike) = (0, 0);
    let own: Vec<&str> = own.iter().map(|channel| channel.name.as_str()).collect();
    let rows = if own.iter().all(|name| name.is_empty()) { 0 } else { rows };
    let sorted = |names: &[&str]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names.join("\n")
    };
    // What cannot be read is for `verify`.
    for metadata in (1..rows).filter_map(|row| store.metadata(row).ok()) {
        let there: Vec<&str> = metadata.channels.iter().map(|channel| channel.name.as_str()).collect();
        if there == own {
            continue;
        }
        if sorted(&there) == sorted(&own) {
            moved += 1;
        } else {
            unlike += 1;
        }
    }
    [moved, unlike]
}

/// Lines about these numbers of images, if there are any.
pub(super) fn say_others([moved, unlike]: [usize; 2]) -> Vec<String> {
    let say = |count: usize, how: &str| (count > 0).then(|| format!("{} {how}", counted(count, "image")));
    let all = [
        say(moved, "with these channels in another order: take them by name"),
        say(unlike, "with channels of other names"),
    ];
    all.into_iter().flatten().collect()
}
