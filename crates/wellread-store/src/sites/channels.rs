//! The channels of a site: from files beside its images, from the file itself, from its name.

use super::layout::Details;
use wellread_image::Channel;

/// The channels in order. `values` are those of the names, `called` what people call them, `own` what the site's first file says
/// of its channels.
pub(super) fn named(
    values: &[String],
    called: &[String],
    details: &Details,
    own: &[Channel],
) -> Vec<Channel> {
    let channel = |(value, called): (&String, &String)| {
        let known = details.channels.iter().find(|(id, _)| same_number(id, value));
        let mut channel = known.map(|(_, channel)| channel.clone()).unwrap_or_default();
        if channel.name.is_empty() {
            channel.name.clone_from(called);
        }
        if channel.id.is_empty() {
            channel.id.clone_from(called);
        }
        channel
    };
    let mut channels: Vec<Channel> = values.iter().zip(called).map(channel).collect();
    // The first file's own channels hold for all only where there is but one.
    if details.channels.is_empty()
        && let ([own], [channel]) = (own, &mut channels[..])
    {
        *channel = Channel { name: channel.name.clone(), id: channel.id.clone(), ..own.clone() };
    }
    channels
}

/// Whether both are the same, or the same number: `2` and `02`.
fn same_number(a: &str, b: &str) -> bool {
    a == b || matches!((a.parse::<u64>(), b.parse::<u64>()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_beside_goes_before_names() {
        let texts = |all: [&str; 2]| all.map(str::to_owned);
        let known =
            Channel { id: "ch2".into(), name: "AGP".into(), emission_um: Some(0.6), ..Channel::default() };
        let details = Details { channels: vec![("2".to_owned(), known.clone())], ..Details::default() };
        let found = named(&texts(["02", "3"]), &texts(["ch02", "ch3"]), &details, &[]);
        assert_eq!(found[0], known);
        assert_eq!((found[1].name.as_str(), found[1].id.as_str()), ("ch3", "ch3"));
        let own = [Channel { name: "x".into(), emission_um: Some(0.5), ..Channel::default() }];
        let one = named(&["DAPI".to_owned()], &["DAPI".to_owned()], &Details::default(), &own);
        assert_eq!((one[0].name.as_str(), one[0].emission_um), ("DAPI", Some(0.5)));
    }
}
