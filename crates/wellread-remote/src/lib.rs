//! Places where images lie on the other side of a network: S3, Google Cloud Storage, Azure Blob Storage and HTTP servers.
//!
//! ```text
//!  s3 · gcs · azure            a scheme each: how its store is built, who the caller is (credentials, by their source's name)
//!      │ bucket::of(address)     one per bucket of this process
//!      ▼
//!  cloud: the Place  ── metadata, list ──▶ heads    what listings and answers said: length, ETag
//!      │ open                                 │   listings   which names folders have
//!      ▼                                      ▼
//!  reader ── ranges: near ones joined, long ones cut ──▶ attempts ──▶ transport ──▶ the server
//!  writer ── parts, the first one last ───────────────▶    again after faults, with backoff
//!  probe ── the same ranges, bare: what the link gives at best ─────────────▶
//!
//!  ahead ── pieces, asked for in order, kept within a bound; the reader looks there first
//!  byte_limit ─ how many of their bytes are on their way at once
//!
//!  http    the same reader over plain servers, read alone; folders are what an index page links to
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `s3`, `gcs`, `azure`, `http` | a scheme each |
//! | `cloud`, `bucket`, `address` | object stores as a place; a bucket as this process talks to it; an address in its parts |
//! | `credentials`, `aws_files`, `environment`, `settings` | who the caller is; what is set outside of the program, and by it |
//! | `look`, `look_ahead` | what lies at an address and in folders; many looks at once |
//! | `listings`, `heads` | what is known of folders, and of objects |
//! | `index_page`, `odd_keys` | names in pages of web servers; keys that no address names |
//! | `reader`, `object`, `ranges` | an open object; requests for one; parts of what they fetched |
//! | `ahead`, `pieces`, `byte_limit`, `disk_cache` | bytes asked for ahead, and kept; their bound; those kept on disk |
//! | `writer`, `sending`, `uploads`, `rewrite` | new objects; how long one is waited for; unfinished ones; objects moved and changed |
//! | `transport`, `clients`, `pace`, `attempts`, `failure` | one request; the HTTP clients; the least rate; requests again; why they fail |
//! | [`link`] | what a process has once for all places |
//! | `probe` | the link, measured |
//!
//! All of it is synchronous at the border: requests run in one small runtime of the process ([`link`]), which a forked
//! process makes anew. An open file is pinned to the object's ETag: a replacement since is an error, never a mixture.
//!
//! A program has these places once this crate is linked (`docs/decisions/0041-places.md`, `docs/decisions/0044-remote-places.md`).
//! Environment variables that it knows beside each cloud's own:
//!
//! | variable | meaning |
//! |---|---|
//! | `WELLREAD_ANONYMOUS` | `1`: requests are not signed |
//! | `WELLREAD_ATTEMPTS` | how often a request is made before it has failed (16) |
//! | `WELLREAD_TIMEOUT` | seconds without a byte, or with less than 1 KiB for each, after which a request is made anew (30) |
//! | `WELLREAD_ABORT_TIMEOUT` | seconds that the removal of an unfinished upload may take, and without an answer in that of all output on a signal (10) |
//! | `AWS_METADATA_SERVICE_TIMEOUT`, `GCE_METADATA_TIMEOUT`, `AZURE_METADATA_SERVICE_TIMEOUT` | seconds that the metadata server of a machine may take (1) |
//! | `WELLREAD_IN_FLIGHT` | requests at once (128) |
//! | `WELLREAD_DISK_CACHE` | `FOLDER:SIZE`: ranges are kept on a disk of this machine ([`wellread_store::disk_cache`]) |
//! | `WELLREAD_LINK_BYTES` | bytes that a reader's requests ahead may hold until they are read, such as 256MiB, which is the default; at least 16 MiB |
//!
//! A program may set `WELLREAD_ANONYMOUS`, `WELLREAD_IN_FLIGHT` and `WELLREAD_LINK_BYTES` by [`set`], too, which then counts.

mod address;
mod ahead;
mod attempts;
mod aws_files;
mod azure;
mod bucket;
mod byte_limit;
mod clients;
mod cloud;
mod credentials;
mod disk_cache;
mod environment;
mod failure;
mod gcs;
mod heads;
mod http;
mod index_page;
mod link;
mod listings;
mod look;
mod look_ahead;
mod object;
mod odd_keys;
mod pace;
mod pieces;
mod probe;
mod ranges;
mod reader;
mod rewrite;
mod s3;
mod sending;
mod settings;
mod transport;
mod uploads;
mod writer;

pub use settings::{Settings, set};
