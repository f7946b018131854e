//! Whether all images of a set have the channels of the first.

use wellread_image::Channel;
use wellread_store::Store;
use wellread_store::words::counted;

/// Images whose channels are not called as those of the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Others {
    /// Names of the channels of the first image.
    own: Vec<String>,
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

impl Others {
    /// None yet, beside the channels of the first image.
    pub(super) fn beside(own: &[Channel]) -> Self {
        Self { own: own.iter().map(|channel| channel.name.clone()).collect(), ..Self::default() }
    }

    /// Looks at an image, and passes over one that cannot be read: `verify` tells of it.
    pub(super) fn look_at(&mut self, store: &dyn Store, row: usize) {
        if row == 0 || self.own.iter().all(String::is_empty) {
            return;
        }
        let Ok(metadata) = store.metadata(row) else { return };
        let there: Vec<String> = metadata.channels.into_iter().map(|channel| channel.name).collect();
        if there == self.own {
            return;
        }
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names
        };
        let is_moved = sorted(&there) == sorted(&self.own);
        *(if is_moved { &mut self.moved } else { &mut self.unlike }) += 1;
        self.first[usize::from(!is_moved)].get_or_insert_with(|| OtherChannels {
            image: store.name(row).unwrap_or_else(|_| format!("row {row}")),
            channels: there,
        });
    }
}

/// Names of channels in words; those that are empty are said to be.
fn listed(channels: &[String]) -> String {
    if channels.iter().all(String::is_empty) {
        return "no names".to_owned();
    }
    let names =
        channels.iter().map(|name| if name.is_empty() { "one without a name" } else { name.as_str() });
    names.collect::<Vec<&str>>().join(", ")
}

/// Sentences about them, none where there are none. `first` is the name of the first image.
pub(super) fn say_others(others: &Others, first: &str) -> Vec<String> {
    let say = |count: usize, one: Option<&OtherChannels>, how: &str| {
        let OtherChannels { image, channels } = one?;
        let images = counted(count, "image");
        Some(format!("{images} {how} ({image} has {}; {first} has those above)", listed(channels)))
    };
    let [moved, unlike] = others.first.each_ref().map(Option::as_ref);
    let all = [
        say(others.moved, moved, "with these channels in another order: take them by name"),
        say(others.unlike, unlike, "with channels of other names"),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_without_names_are_said_to_have_none() {
        let say = |channels: &[&str]| {
            let channels = channels.iter().map(|&name| name.to_owned()).collect();
            let one = OtherChannels { image: "b".to_owned(), channels };
            say_others(&Others { unlike: 1, first: [None, Some(one)], ..Others::default() }, "a")
        };
        let said = |has: &str| {
            vec![format!("1 image with channels of other names (b has {has}; a has those above)")]
        };
        assert_eq!(say(&[""]), said("no names"));
        assert_eq!(say(&[]), said("no names"));
        assert_eq!(say(&["DNA", ""]), said("DNA, one without a name"));
    }
}
