//! Storage engines and places that are large to compile: one crate and one feature each, linked here and nowhere else.
//!
//! A crate that is linked registers its formats ([`wellread_store::register_format!`]) or places
//! ([`wellread_store::register_place!`]); one that is not is named by `wellread doctor` and in errors
//! ([`wellread_store::absent_format!`], [`wellread_store::absent_place!`]).

#[cfg(feature = "duckdb")]
use wellread_duckdb as _;
#[cfg(feature = "lance")]
use wellread_lance as _;
#[cfg(feature = "remote")]
use wellread_remote as _;
#[cfg(feature = "vortex")]
use wellread_vortex as _;

#[cfg(not(feature = "duckdb"))]
wellread_store::absent_format!("duckdb", [".duckdb", ".ddb"], "duckdb");
#[cfg(not(feature = "duckdb"))]
wellread_store::absent_format!("parquet-duckdb", [], "duckdb");
#[cfg(not(feature = "lance"))]
wellread_store::absent_format!("lance", [".lance", ".lancedb"], "lance");
#[cfg(not(feature = "vortex"))]
wellread_store::absent_format!("vortex", [".vortex"], "vortex");
#[cfg(not(feature = "remote"))]
mod without_remote {
    wellread_store::absent_place!("s3", "remote");
    wellread_store::absent_place!("gs", "remote");
    wellread_store::absent_place!("az", "remote");
    wellread_store::absent_place!("abfs", "remote");
    wellread_store::absent_place!("abfss", "remote");
    wellread_store::absent_place!("http", "remote");
    wellread_store::absent_place!("https", "remote");
}

/// Hands on what is chosen for the link; whether it counts.
#[cfg(feature = "remote")]
pub(crate) fn set_link(in_flight: Option<usize>, link_bytes: Option<u64>, anonymous: bool) -> bool {
    wellread_remote::set(wellread_remote::Settings { in_flight, link_bytes, anonymous })
}

/// There is no link.
#[cfg(not(feature = "remote"))]
pub(crate) fn set_link(_: Option<usize>, _: Option<u64>, _: bool) -> bool {
    false
}
