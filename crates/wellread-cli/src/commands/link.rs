//! Options of all commands that open sets: the link to buckets and web servers.

use std::sync::OnceLock;
use wellread_loader::cache::parse_bytes;

/// The choices, for processes that this one starts.
static CHOSEN: OnceLock<LinkArgs> = OnceLock::new();

/// The link to sets in buckets and on web servers.
#[derive(clap::Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Sets in buckets")]
pub struct LinkArgs {
    /// Requests at once; by default 128, or the value of WELLREAD_IN_FLIGHT.
    #[arg(long, global = true, value_name = "REQUESTS", value_parser = clap::value_parser!(u16).range(1..=4096))]
    in_flight: Option<u16>,
    /// Most bytes that a loader fetches ahead; by default 256MiB, or the value of WELLREAD_LINK_BYTES. Less than 16MiB counts as 16MiB.
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_bytes)]
    link_bytes: Option<u64>,
    /// Send unsigned requests even if there are credentials; for public buckets.
    #[arg(long, global = true, overrides_with = "anonymous")]
    anonymous: bool,
}

impl LinkArgs {
    /// Chooses, before any address is opened.
    pub fn set(self) {
        let _ = CHOSEN.set(self);
        let Self { in_flight, link_bytes, anonymous } = self;
        let link = wellread::Link { in_flight: in_flight.map(usize::from), link_bytes, anonymous };
        if link != wellread::Link::default() {
            link.set();
        }
    }

    /// The same as variables of the environment.
    fn variables(self) -> Vec<(&'static str, String)> {
        let numbers = [
            ("WELLREAD_IN_FLIGHT", self.in_flight.map(u64::from)),
            ("WELLREAD_LINK_BYTES", self.link_bytes),
            ("WELLREAD_ANONYMOUS", self.anonymous.then_some(1)),
        ];
        numbers.into_iter().filter_map(|(name, value)| Some((name, value?.to_string()))).collect()
    }
}

/// The choices for the link of this process, as variables of the environment of another one.
pub fn environment() -> Vec<(&'static str, String)> {
    CHOSEN.get().map_or_else(Vec::new, |chosen| chosen.variables())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_told_to_another_process_and_what_is_left_out_is_not() {
        let link = LinkArgs { in_flight: Some(4), link_bytes: None, anonymous: true };
        let told = [("WELLREAD_IN_FLIGHT", "4"), ("WELLREAD_ANONYMOUS", "1")];
        assert_eq!(link.variables(), told.map(|(name, value)| (name, value.to_owned())));
        let nothing = LinkArgs { in_flight: None, link_bytes: None, anonymous: false };
        assert!(nothing.variables().is_empty());
    }
}
