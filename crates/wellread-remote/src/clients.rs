//! The HTTP clients of a process, each made when the first of its requests is.

use crate::failure::innermost;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);

/// A client for `http`, and one that takes `https` too. The certificates of the machine, which `https` needs, take longer to read
/// than a request does.
#[derive(Debug, Default)]
struct Pair {
    plain: OnceLock<reqwest::Client>,
    any: OnceLock<reqwest::Client>,
}

/// The clients of a process.
#[derive(Debug)]
pub(crate) struct Clients {
    stall: Duration,
    has_proxy: bool,
    signed: Pair,
    uploading: Pair,
    web: OnceLock<reqwest::Client>,
}

impl Clients {
    /// `stall` is how long nothing may come.
    pub(crate) fn new(stall: Duration) -> Self {
        Self {
            stall,
            has_proxy: has_proxy(),
            signed: Pair::default(),
            uploading: Pair::default(),
            web: OnceLock::new(),
        }
    }

    /// How long nothing may come, or be taken.
    pub(crate) fn stall(&self) -> Duration {
        self.stall
    }

    /// For requests that follow no redirect, as signed ones: their signature is for one host.
    pub(crate) fn signed(&self, scheme: Option<&str>) -> io::Result<&reqwest::Client> {
        self.of_pair(&self.signed, scheme == Some("http"), |client| client.read_timeout(self.stall))
    }

    /// For signed requests that send an object. The client would count its wait for an answer from the first byte that it sends.
    /// So it has no limit: the caller gives up. The same goes for copies by the server.
    pub(crate) fn uploading(&self, scheme: &str) -> io::Result<&reqwest::Client> {
        self.of_pair(&self.uploading, scheme == "http", |client| client)
    }

    /// For plain servers, which may redirect, also from `http` to `https`.
    pub(crate) fn web(&self) -> io::Result<&reqwest::Client> {
        made(&self.web, |client| {
            client.read_timeout(self.stall).redirect(reqwest::redirect::Policy::limited(10))
        })
    }

    fn of_pair<'a>(
        &self,
        pair: &'a Pair,
        is_plain: bool,
        with: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> io::Result<&'a reqwest::Client> {
        let unredirected = |client| with(client).redirect(reqwest::redirect::Policy::none());
        // A proxy may want `https`.
        if is_plain && !self.has_proxy {
            return made(&pair.plain, |client| unredirected(client).tls_built_in_root_certs(false));
        }
        made(&pair.any, unredirected)
    }
}

fn made(
    client: &OnceLock<reqwest::Client>,
    with: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> io::Result<&reqwest::Client> {
    if let Some(client) = client.get() {
        return Ok(client);
    }
    let cannot = |e| io::Error::other(format!("no HTTP client can be made: {}", innermost(&e)));
    let made = with(builder()).build().map_err(cannot)?;
    Ok(client.get_or_init(|| made))
}

/// Whether the environment names a proxy.
fn has_proxy() -> bool {
    ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"].iter().any(|name| std::env::var_os(name).is_some())
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("wellread/", env!("CARGO_PKG_VERSION")))
        .http1_only()
        .connect_timeout(CONNECT)
        // The bytes asked for, not those that a compressed answer has there.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
}
