//! Options of all commands that open sets: the link to buckets and web servers.

use wellread_loader::cache::parse_bytes;

/// The link to sets in buckets and on web servers.
#[derive(clap::Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Sets in buckets")]
pub struct LinkArgs {
    /// Requests at once; by default 64, or the value of WELLREAD_IN_FLIGHT.
    #[arg(long, global = true, value_name = "REQUESTS", value_parser = clap::value_parser!(u16).range(1..=4096))]
    in_flight: Option<u16>,
    /// Most bytes that a loader fetches ahead; by default 256MiB, or the value of WELLREAD_LINK_BYTES.
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_bytes)]
    link_bytes: Option<u64>,
    /// Send unsigned requests even if there are credentials; for public buckets.
    #[arg(long, global = true, overrides_with = "anonymous")]
    anonymous: bool,
}

impl LinkArgs {
    /// Chooses, before any address is opened.
    pub fn set(self) {
        let Self { in_flight, link_bytes, anonymous } = self;
        let link = wellread::Link { in_flight: in_flight.map(usize::from), link_bytes, anonymous };
        if link != wellread::Link::default() {
            link.set();
        }
    }
}
