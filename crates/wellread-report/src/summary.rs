//! `summary.json`: everything about a benchmark that is not a table row, in one JSON document.

use crate::{Error, Result, staged};
use serde_json::Value;
use std::path::Path;

/// Name of the file in a results folder.
pub const FILE_NAME: &str = "summary.json";

/// Writes `summary` as readable JSON to `path`, whole or not at all.
pub fn write(path: impl AsRef<Path>, summary: &Value) -> Result<()> {
    let path = path.as_ref();
    let mut text = serde_json::to_string_pretty(summary).map_err(|e| Error::new(path, e))?;
    text.push('\n');
    staged::write(path, text.as_bytes())
}

/// Reads a summary.
///
/// # Errors
/// Unreadable file, or no JSON object in it.
pub fn read(path: impl AsRef<Path>) -> Result<Value> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, "cannot read", &e))?;
    let bad = |cause: &dyn std::fmt::Display| {
        Error::new(path, format_args!("is no summary that can be read: {cause}"))
            .hint("give a folder that `wellread bench --out` wrote; a damaged one is made again by running the benchmark")
    };
    match serde_json::from_slice(&bytes) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(bad(&"it holds no JSON object")),
        Err(e) => Err(bad(&e)),
    }
}
