//! Whether all images of a set have the channels of the first.

use wellread_image::Channel;
use wellread_store::Store;
use wellread_store::words::counted;

/// Images whose channels are not called as those of the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Others {
    /// How many have the same channels in another order.
    pub moved: usize,
    /// How many have others.
    pub unlike: usize,
    /// The first of each, if there is one.
    pub first: [Option<OtherChannels>; 2],
}

/// An image whose channels are not called as those of the first.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct OtherChannels {
    /// The image.
    pub image: String,
    /// Names of its channels.
    pub channels: Vec<String>,
}

/// Those of the first `rows` images whose channels have other names than `own`, the names of the first image.
pub(super) fn others(store: &dyn Store, rows: usize, own: &[Channel]) -> Others {
    let mut others = Others::default();
    let own: Vec<&str> = own.iter().map(|channel| channel.name.as_str()).collect();
    let rows = if own.iter().all(|name| name.is_empty()) { 0 } else { rows };
    let sorted = |names: &[&str]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names.join("\n")
    };
    // What cannot be read is for `verify`.
    for (row, metadata) in (1..rows).filter_map(|row| Some((row, store.metadata(row).ok()?))) {
        let there: Vec<&str> = metadata.channels.iter().map(|channel| channel.name.as_str()).collect();
        if there == own {
            continue;
        }
        let is_moved = sorted(&there) == sorted(&own);
        *(if is_moved { &mut others.moved } else { &mut others.unlike }) += 1;
        others.first[usize::from(!is_moved)].get_or_insert_with(|| OtherChannels {
            image: store.name(row).unwrap_or_else(|_| format!("row {row}")),
            channels: there.iter().map(|&name| name.to_owned()).collect(),
        });
    }
    others
}

/// Sentences about them, none where there are none. `first` is the name of the first image.
pub(super) fn say_others(others: &Others, first: &str) -> Vec<String> {
    let say = |count: usize, one: Option<&OtherChannels>, how: &str| {
        let OtherChannels { image, channels } = one?;
        let images = counted(count, "image");
        Some(format!("{images} {how} ({image} has {}; {first} has those above)", channels.join(", ")))
    };
    let [moved, unlike] = others.first.each_ref().map(Option::as_ref);
    let all = [
        say(others.moved, moved, "with these channels in another order: take them by name"),
        say(others.unlike, unlike, "with channels of other names"),
    ];
    all.into_iter().flatten().collect()
}
