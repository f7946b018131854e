//! Files of metadata: read if they are there, and parsed.

use crate::{Error, Result, place};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;

/// The bytes of a metadata file, or `None` when it does not exist.
pub(super) fn read_if_exists(file: &Path) -> Result<Option<Vec<u8>>> {
    let mut bytes = vec![];
    Ok(read_after_if_exists(file, &mut bytes)?.then_some(bytes))
}

/// Puts the bytes of a metadata file behind those of `bytes`; false when it does not exist.
pub(super) fn read_after_if_exists(file: &Path, bytes: &mut Vec<u8>) -> Result<bool> {
    match place::read_after(file, bytes) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io(file, "cannot read the metadata", &e)),
    }
}

/// Numbers that JSON does not have, as Python's `json` writes them.
const BARE: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// Parses a metadata file. Numbers of [`BARE`] count as the texts that Zarr has for them: zarr-python writes attributes with them.
pub(super) fn parse<T: DeserializeOwned>(file: &Path, bytes: &[u8]) -> Result<T> {
    let parsed = serde_json::from_slice(bytes);
    let parsed = parsed.or_else(|error| match quoted(bytes) {
        Some(text) => serde_json::from_slice(&text),
        None => Err(error),
    });
    parsed.map_err(|e| malformed(file, e))
}

/// A metadata file as it is, where it is there and can be parsed.
pub(super) fn value_of(file: &Path) -> Option<Value> {
    parse(file, &read_if_exists(file).ok()??).ok()
}

/// The text with quotes around numbers of [`BARE`]; `None` where it has none.
fn quoted(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut text, mut from) = (vec![], 0);
    let (mut at, mut is_inside) = (0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        if let Some(word) = BARE.into_iter().find(|word| !is_inside && rest.starts_with(word)) {
            text.extend_from_slice(&bytes[from..at]);
            text.push(b'"');
            text.extend_from_slice(word);
            text.push(b'"');
            at += word.len();
            from = at;
            continue;
        }
        match bytes[at] {
            b'"' => is_inside = !is_inside,
            b'\\' if is_inside => at += 1,
            _ => {}
        }
        at += 1;
    }
    text.extend_from_slice(&bytes[from..]);
    (from > 0).then_some(text)
}

/// The error of a metadata file that cannot be parsed.
pub(super) fn malformed(file: &Path, cause: impl std::fmt::Display) -> Error {
    Error::new(file, format_args!("malformed Zarr metadata: {cause}"))
        .hint("the file is truncated or corrupt; copy or write the image again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_that_json_does_not_have_are_texts() {
        let file = Path::new(".zattrs");
        let text = br#"{"a": [NaN, -Infinity,Infinity], "NaN \" NaN": "NaN, Infinity", "b": 1}"#;
        let expected = json!({"a": ["NaN", "-Infinity", "Infinity"], "NaN \" NaN": "NaN, Infinity", "b": 1});
        assert_eq!(parse::<Value>(file, text).unwrap(), expected);
        for damaged in [r#"{"a": NaN"#, r#"{"a": NaNs}"#, r#"{"a": nan}"#, r#"{"a": "NaN}"#, "{", ""] {
            let error = parse::<Value>(file, damaged.as_bytes()).unwrap_err();
            assert!(error.cause().contains("malformed Zarr metadata"), "{damaged}: {error}");
        }
    }
}
