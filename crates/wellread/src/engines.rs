//! Storage engines that are large to compile: one crate and one feature each, linked here and nowhere else.
//!
//! A crate that is linked registers its formats ([`wellread_store::register_format!`]); one that is not is named by
//! `wellread doctor` and in errors ([`wellread_store::absent_format!`]).

#[cfg(feature = "duckdb")]
use wellread_duckdb as _;
#[cfg(feature = "lance")]
use wellread_lance as _;
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
