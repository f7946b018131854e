//! Integration tests of places behind a network, against a server of our own: one binary.

// Linked for the places that it registers.
use wellread_remote as _;

mod ahead;
mod copying;
mod credentials;
mod describing;
mod disk_cache;
mod faults;
mod formats;
mod gate;
mod half;
mod loading;
mod opening;
mod pages;
mod placed;
mod replacing;
mod request;
mod rounds;
mod server;
#[path = "../../../wellread-store/tests/it/place_sets.rs"]
mod sets;
mod web;
mod writing;
