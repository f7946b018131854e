//! Statistics whose channels have names, in the order of the channels of a set's images.
//!
//! ```text
//!   statistics: DNA ER AGP          the first image: ER AGP DNA
//!        └────────────── by name ──────────┘ ──▶ numbers of ER, AGP, DNA; other images follow the first by name
//! ```

use super::channel_names::{ChannelNames, Delivered};
use super::compose::Transform;
use super::error::TransformError;
use super::groups::GroupNormalize;
use super::steps::{Normalize, Scale};
use std::sync::Arc;

/// Numbers at their places, as means and standard deviations or ends of ranges; of a channel without, those that change nothing.
fn in_image_order(places: &[Option<usize>], first: &[f32], second: &[f32]) -> [Vec<f32>; 2] {
    let of = |numbers: &[f32], none: f32| {
        let number = |place: &Option<usize>| place.and_then(|at| numbers.get(at).copied()).unwrap_or(none);
        places.iter().map(number).collect::<Vec<f32>>()
    };
    [of(first, 0.0), of(second, 1.0)]
}

impl Transform {
    /// Whether it scales or normalises by statistics whose channels have names.
    pub(crate) fn has_named_statistics(&self) -> bool {
        let normalizes = match &self.normalize {
            Some(Normalize::Channels(_)) => true,
            Some(Normalize::Groups(groups)) => groups.names().iter().any(ChannelNames::is_any),
            _ => false,
        };
        normalizes || matches!(self.scale, Scale::Channels(_))
    }

    /// Whether any channel of its statistics has a name.
    fn are_statistics_named(&self) -> bool {
        let normalizes = match &self.normalize {
            Some(Normalize::Channels(of)) => of.names.is_any(),
            Some(Normalize::Groups(groups)) => groups.names().iter().any(ChannelNames::is_any),
            _ => false,
        };
        normalizes || matches!(&self.scale, Scale::Channels(of) if of.names.is_any())
    }

    /// The same with statistics in the order of the channels of the first image, which are called `there`. Where its channels go by
    /// number, those of other images follow its names.
    ///
    /// # Errors
    /// A channel that the statistics do not have.
    pub(crate) fn with_statistics_of(mut self, there: &[String]) -> Result<Self, TransformError> {
        let mask = self.mask(there.len());
        // Images of one channel have no order to follow: names tell nothing where the statistics have none.
        let follows = there.len() > 1 || self.are_statistics_named();
        let numbers = self.channels.clone().unwrap_or_else(|| (0..there.len()).collect());
        let own = ChannelNames::new(there.iter().cloned().map(Some));
        let chosen = self.channel_names.clone();
        let channels = numbers.iter().enumerate().filter(|&(_, &number)| Some(number) != mask);
        let channels = channels.map(|(i, &number)| match &chosen {
            Some(names) => (number, names.get(i).map(String::as_str)),
            None => (number, own.name(number)),
        });
        let images = Delivered { stored: there.len(), channels: channels.collect() };
        self.normalize = match self.normalize {
            Some(Normalize::Channels(of)) => {
                let places = of.names.positions(&of.path, &images)?;
                let [mean, std] = in_image_order(&places, &of.mean, &of.std);
                Some(Normalize::Stored { mean, std })
            }
            Some(Normalize::Groups(groups)) => {
                let each = groups.names().iter().map(|names| names.positions(groups.path(), &images));
                let places = each.collect::<Result<Vec<_>, _>>()?;
                Some(Normalize::Groups(Arc::new(groups.in_image_order(there.len(), &places))))
            }
            other => other,
        };
        self.scale = match self.scale {
            Scale::Channels(of) => {
                let places = of.names.positions(&of.path, &images)?;
                let [low, high] = in_image_order(&places, &of.low, &of.high);
                Scale::Stored { low, high }
            }
            other => other,
        };
        if chosen.is_none() && follows {
            let names: Option<Vec<String>> =
                numbers.iter().map(|&number| own.name(number).map(str::to_owned)).collect();
            self.statistics_names = names.map(Into::into);
        }
        Ok(self)
    }
}

impl GroupNormalize {
    /// The same with each group's numbers at these places of images of so many channels.
    fn in_image_order(&self, channels: usize, places: &[Vec<Option<usize>>]) -> Self {
        let [means, stds] = self.numbers();
        let own = self.channels();
        let (mut mean, mut std) = (vec![], vec![]);
        for (group, places) in places.iter().enumerate() {
            let of = group * own..(group + 1) * own;
            let [m, s] = in_image_order(places, &means[of.clone()], &stds[of]);
            mean.extend(m);
            std.extend(s);
        }
        self.with_numbers(channels, [mean, std])
    }
}

#[cfg(test)]
mod tests {
    use super::super::channel_names::ChannelNormalize;
    use super::*;
    use std::path::Path;

    fn named(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn transform(names: &[Option<&str>]) -> Transform {
        let names = ChannelNames::new(names.iter().map(|name| name.map(str::to_owned)));
        let mean = vec![1.0, 2.0, 3.0];
        let of = ChannelNormalize::new(Path::new("s.json"), names, [mean.clone(), mean]);
        Transform::default().normalize_with(Normalize::Channels(Arc::new(of)))
    }

    fn means(transform: Transform, there: &[&str]) -> Vec<f32> {
        match transform.with_statistics_of(&named(there)).unwrap().normalize {
            Some(Normalize::Stored { mean, std }) if mean.len() == std.len() => mean,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn numbers_go_by_names() {
        let all = [Some("DNA"), Some("ER"), Some("AGP")];
        assert_eq!(means(transform(&all), &["ER", "AGP", "DNA"]), [2.0, 3.0, 1.0]);
        assert_eq!(means(transform(&all), &["AGP"]), [3.0]);
        // Channels that are not delivered need none.
        let er = transform(&all).named_channels([("ER", 1)]);
        assert_eq!(means(er, &["RNA", "ER"]), [0.0, 2.0]);
        // By number where there is no name.
        assert_eq!(means(transform(&all), &["", "", ""]), [1.0, 2.0, 3.0]);
        assert_eq!(means(transform(&[None, Some("ER"), None]), &["a", "ER", "c"]), [1.0, 2.0, 3.0]);
        // Images may have more channels than the statistics, where those channels are not delivered.
        let two = transform(&all).channels([0, 2]);
        assert_eq!(means(two, &["", "", "", ""]), [1.0, 0.0, 3.0, 0.0]);
        let kept = transform(&all).with_statistics_of(&named(&["ER", "DNA"])).unwrap();
        assert_eq!(kept.statistics_names.as_deref(), Some(named(&["ER", "DNA"]).as_slice()));
    }

    /// Images of one channel each may be called otherwise where the statistics are of all of them, and have no name.
    #[test]
    fn images_of_one_channel_follow_names_that_the_statistics_have() {
        let of =
            |own: Option<&str>, there: &str| transform(&[own]).with_statistics_of(&named(&[there])).unwrap();
        assert_eq!(of(None, "DNA").statistics_names, None);
        assert_eq!(of(Some("DNA"), "DNA").statistics_names.as_deref(), Some(named(&["DNA"]).as_slice()));
    }

    #[test]
    fn other_names_are_refused() {
        let all = [Some("DNA"), Some("ER"), Some("AGP")];
        let error = transform(&all).with_statistics_of(&named(&["DNA", "RNA"])).unwrap_err();
        assert_eq!(error.cause, "s.json has no statistics of the channel \"RNA\": it has DNA, ER, AGP");
        let error = transform(&all).with_statistics_of(&named(&["", "", "", ""])).unwrap_err();
        let of = "s.json has statistics of 3 channels (DNA, ER, AGP), but the images have";
        assert_eq!(error.cause, format!("{of} 4 channels without names"));
        // Images of one channel each may be of any of the three.
        let error = transform(&all).with_statistics_of(&named(&[""])).unwrap_err();
        assert_eq!(error.cause, format!("{of} 1 channel without a name"));
        assert!(error.hint.contains("opened for these statistics"), "{}", error.hint);
        let some = [Some("DNA"), None, None];
        let error = transform(&some).with_statistics_of(&named(&["DNA", "RNA"])).unwrap_err();
        let of = "s.json has statistics of 3 channels (DNA, one without a name, one without a name)";
        assert_eq!(error.cause, format!("{of}, but the images have 2 channels"));
    }
}
