//! Whether all images of a set have the channels of the first.

use wellread_image::{Channel, ImageMetadata};
use wellread_store::Store;
use wellread_store::words::counted;

/// First images behind a network that are looked at where the first of all has no names: each look may be a request.
const MAX_REMOTE: usize = 8;

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

    /// Looks at an image, and passes over one that cannot be read: `verify` tells of it. Returns what it has read.
    pub(super) fn look_at(&mut self, store: &dyn Store, row: usize) -> Option<ImageMetadata> {
        // Where the first has no names, hardly any set has some.
        let is_beyond_remote_sample = row >= MAX_REMOTE && store.remote_path().is_some();
        if row == 0 || is_beyond_remote_sample && !are_named(&self.own) {
            return None;
        }
        let metadata = store.metadata(row).ok()?;
        let there: Vec<String> = metadata.channels.iter().map(|channel| channel.name.clone()).collect();
        // An image of fewer channels has those that it has at the numbers of the first.
        let are_alike = match (are_named(&self.own), are_named(&there)) {
            (true, true) => there.iter().zip(&self.own).all(|(name, own)| name == own),
            (own, other) => own == other,
        };
        if are_alike {
            return Some(metadata);
        }
        // A name that several channels have tells none of them apart.
        let is_once =
            |names: &[String], name: &String| names.iter().filter(|other| *other == name).count() == 1;
        let is_own = |name: &String| !name.is_empty() && is_once(&there, name) && is_once(&self.own, name);
        let is_moved = are_named(&there) && there.iter().all(is_own);
        *(if is_moved { &mut self.moved } else { &mut self.unlike }) += 1;
        self.first[usize::from(!is_moved)].get_or_insert_with(|| OtherChannels {
            image: store.name(row).unwrap_or_else(|_| format!("row {row}")),
            channels: there,
        });
        Some(metadata)
    }
}

fn are_named(names: &[String]) -> bool {
    !names.iter().all(String::is_empty)
}

/// Whether they are the same names, in whatever order.
fn are_reordered(one: &[String], other: &[String]) -> bool {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names
    };
    sorted(one) == sorted(other)
}

/// Names of channels in words; those that are empty are said to be.
fn listed(channels: &[String]) -> String {
    if !are_named(channels) {
        return "no names".to_owned();
    }
    let names =
        channels.iter().map(|name| if name.is_empty() { "one without a name" } else { name.as_str() });
    names.collect::<Vec<&str>>().join(", ")
}

/// Sentences about them, none where there are none. `first` is the name of the first image, and `thing` one of them in a word.
pub(super) fn say_others(others: &Others, first: &str, thing: &str) -> Vec<String> {
    let own = if are_named(&others.own) { "those above" } else { "no names" };
    let [moved, unlike] = others.first.each_ref().map(Option::as_ref);
    let say = |count: usize, one: Option<&OtherChannels>, descriptions: [&str; 2]| {
        let OtherChannels { image, channels } = one?;
        let how = descriptions[usize::from(are_reordered(channels, &others.own))];
        let images = counted(count, thing);
        Some(format!("{images} {how} ({image} has {}; {first} has {own})", listed(channels)))
    };
    let descriptions_of_moved = [
        "with some of these channels at other numbers: take them by name",
        "with these channels in another order: take them by name",
    ];
    let descriptions_of_unlike = [
        "with channels of other names",
        "with these channels in another order, and no names that tell them apart",
    ];
    let all =
        [say(others.moved, moved, descriptions_of_moved), say(others.unlike, unlike, descriptions_of_unlike)];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::{PixelType, Shape};
    use wellread_loader::MemoryStore;

    #[test]
    fn channels_without_names_are_said_to_have_none() {
        let say = |channels: &[&str]| {
            let channels = channels.iter().map(|&name| name.to_owned()).collect();
            let one = OtherChannels { image: "b".to_owned(), channels };
            let own = vec!["DNA".to_owned()];
            say_others(
                &Others { own, unlike: 1, first: [None, Some(one)], ..Others::default() },
                "a",
                "image",
            )
        };
        let said = |has: &str| {
            vec![format!("1 image with channels of other names (b has {has}; a has those above)")]
        };
        assert_eq!(say(&[""]), said("no names"));
        assert_eq!(say(&[]), said("no names"));
        assert_eq!(say(&["DNA", ""]), said("DNA, one without a name"));
    }

    #[test]
    fn channels_are_compared_with_those_of_the_first() {
        let look = |images: &[&[&str]]| {
            let mut store = MemoryStore::new("set");
            for (row, names) in images.iter().enumerate() {
                let of = |name: &&str| Channel { name: (*name).to_owned(), ..Channel::default() };
                let channels: Vec<Channel> = names.iter().map(of).collect();
                let shape = Shape([1, channels.len(), 1, 1, 1]);
                let pixels = vec![0; channels.len()];
                let metadata = ImageMetadata { channels, ..ImageMetadata::named(format!("i{row}")) };
                store.push_with(metadata, shape, PixelType::U8, pixels).unwrap();
            }
            let mut others = Others::beside(&store.metadata(0).unwrap().channels);
            for row in 0..images.len() {
                others.look_at(&store, row);
            }
            ((others.moved, others.unlike), say_others(&others, "i0", "image").join("; "))
        };
        // Fewer channels are no other names.
        assert_eq!(look(&[&["DNA", "ER"], &["DNA"]]), ((0, 0), String::new()));
        let (counts, said) = look(&[&["DNA", "ER"], &["ER"]]);
        assert_eq!(counts, (1, 0));
        assert!(
            said.contains("some of these channels at other numbers: take them by name (i1 has ER; "),
            "{said}"
        );
        let (counts, said) = look(&[&["DNA", "ER"], &["ER", "DNA"], &["RNA", "ER"]]);
        assert_eq!(counts, (1, 1));
        assert!(
            said.contains("in another order: take them by name") && said.contains("other names (i2"),
            "{said}"
        );
        // No name says which of two channels is meant.
        let (counts, said) = look(&[&["A", "B", "A"], &["A", "A", "B"]]);
        assert_eq!(counts, (0, 1));
        assert!(said.contains("no names that tell them apart") && !said.contains("by name"), "{said}");
        // The first has no names.
        assert_eq!(look(&[&["", ""], &[""]]), ((0, 0), String::new()));
        let (counts, said) = look(&[&["", ""], &["DNA", "ER"], &["ER", "DNA"]]);
        assert_eq!(counts, (0, 2));
        assert_eq!(said, "2 images with channels of other names (i1 has DNA, ER; i0 has no names)");
    }
}
