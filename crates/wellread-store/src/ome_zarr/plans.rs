//! Parsed metadata, by their text: a set of images that are alike parses its metadata once.
//!
//! ```text
//!  zarr.json, .zattrs ──masked──▶ key ──known? no──▶ parse ──▶ Level (which array, which axes)
//!                                  └───yes──────────────────▶   │
//!  zarr.json, .zarray ──behind the level──▶ key ──known? no──▶ resolve ──▶ ArrayPlan
//!                                             └───yes─────────────────────▶
//! ```
//!
//! The files of each image are read all the same, since any of them may differ from the others. Groups mostly differ in the
//! image's name: the values of `"name"` and `"id"` are left out of the key ([`mask`]). Only what could be parsed is kept, so
//! that errors name the file that they are of.

use super::array::ArrayPlan;
use super::group::{GroupText, Level};
use crate::Result;
use crate::text_cache::TextCache;
use std::path::Path;
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Plans of a store's images.
#[derive(Debug, Default)]
pub(super) struct Plans {
    levels: TextCache<KeyedLevel>,
    arrays: TextCache<ArrayPlan>,
    /// How often metadata were parsed: of groups, and of arrays.
    #[cfg(test)]
    parsed: [AtomicUsize; 2],
}

/// A level, and how the keys of its arrays begin.
#[derive(Debug)]
pub(super) struct KeyedLevel {
    pub level: Level,
    /// Zarr version: 2 or 3.
    pub zarr: u8,
    key: Vec<u8>,
}

impl KeyedLevel {
    fn new(level: Level, zarr: u8) -> Self {
        let Level { dataset, axes, complete } = &level;
        let mut key = vec![zarr, u8::from(*complete)];
        match axes {
            None => key.push(u8::MAX),
            Some(axes) => {
                key.push(axes.len() as u8);
                key.extend(axes.iter().map(|&axis| axis as u8));
            }
        }
        key.extend((dataset.len() as u64).to_le_bytes());
        key.extend(dataset.as_bytes());
        Self { level, zarr, key }
    }

    /// The beginning of the key of an array; the text of its metadata follows.
    pub fn key(&self) -> Vec<u8> {
        self.key.clone()
    }
}

impl Plans {
    /// Level `level` of the group in folder `dir`, whose metadata are `text`.
    ///
    /// # Errors
    /// As [`GroupText::parse`] and [`super::group::Group::level`].
    pub fn level(&self, dir: &Path, text: &GroupText, level: usize) -> Result<Arc<KeyedLevel>> {
        let parse = || {
            #[cfg(test)]
            self.parsed[0].fetch_add(1, Ordering::Relaxed);
            Ok(KeyedLevel::new(text.parse(dir)?.level(level)?, text.zarr()))
        };
        match key_of(text) {
            Some(key) => self.levels.get(&key, parse),
            None => parse().map(Arc::new),
        }
    }

    /// The plan of an array of `level`, whose `key` is [`KeyedLevel::key`] with the text of the array's metadata behind it,
    /// read from `file`.
    ///
    /// # Errors
    /// As [`ArrayPlan::resolve`].
    pub fn array(&self, file: &Path, level: &KeyedLevel, key: &[u8]) -> Result<Arc<ArrayPlan>> {
        let text = &key[level.key.len()..];
        self.arrays.get(key, || {
            #[cfg(test)]
            self.parsed[1].fetch_add(1, Ordering::Relaxed);
            ArrayPlan::resolve(file, text, level.zarr, &level.level)
        })
    }
}

/// The key that sets a group's metadata apart from others'; `None` where only parsing does.
fn key_of(text: &GroupText) -> Option<Vec<u8>> {
    let mut key = vec![text.zarr()];
    match text {
        GroupText::V3(text) => mask(text, &mut key)?,
        GroupText::V2 { group, attributes } => {
            let attributes = attributes.as_ref()?;
            if let Some(group) = group {
                mask(group, &mut key)?;
                key.push(0);
            }
            key.push(0);
            mask(attributes, &mut key)?;
        }
    }
    Some(key)
}

/// Appends a JSON text to `key` without the values of `"name"` and `"id"`. `None` where that cannot be.
///
/// Two texts with the same key, of which one is valid JSON, are both valid and of the same level. The parts left out
/// lie between quotes, are text without escapes, and say nothing of the level. A single character, which may be the
/// name of an axis, is not left out. The zero that stands for it is in no valid JSON.
fn mask(text: &[u8], key: &mut Vec<u8>) -> Option<()> {
    if text.contains(&0) {
        return None;
    }
    key.reserve(text.len());
    let (mut from, mut at) = (0, 0);
    while let Some(colon) = text[at..].iter().position(|&byte| byte == b':') {
        let colon = at + colon;
        at = colon + 1;
        if !(text[..colon].ends_with(b"\"name\"") || text[..colon].ends_with(b"\"id\"")) {
            continue;
        }
        let space = text[at..].iter().take_while(|&&byte| byte == b' ').count();
        let Some(value) = text[at + space..].strip_prefix(b"\"") else { continue };
        let Some(length) = value.iter().position(|&byte| byte == b'"') else { continue };
        let value = &value[..length];
        let is_plain = !value.iter().any(|&byte| byte < b' ' || byte == b'\\');
        if length > 1 && is_plain && std::str::from_utf8(value).is_ok() {
            let start = at + space + 1;
            key.extend_from_slice(&text[from..start]);
            key.push(0);
            from = start + length;
            at = from;
        }
    }
    key.extend_from_slice(&text[from..]);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> Option<Vec<u8>> {
        let mut key = vec![];
        mask(text.as_bytes(), &mut key).map(|()| key)
    }

    #[test]
    fn names_and_ids_do_not_tell_groups_apart() {
        let same = |a: &str, b: &str| masked(a) == masked(b);
        assert!(same(r#"{"name":"cell 1","x":1}"#, r#"{"name":"µ-2","x":1}"#));
        assert!(same(r#"{"id": "ab"}"#, r#"{"id": "abc"}"#));
        assert!(same(r#"{"a":{"name":"ab","id":"cd"}}"#, r#"{"a":{"name":"ef","id":"gh"}}"#));
        for (a, b) in [
            // Names that may be an axis, also where they are written otherwise.
            (r#"{"name":"x"}"#, r#"{"name":"y"}"#),
            (r#"{"name":"\u0078"}"#, r#"{"name":"\u0079"}"#),
            // Other keys, and values that are no text.
            (r#"{"path":"00"}"#, r#"{"path":"01"}"#),
            (r#"{"name":10}"#, r#"{"name":11}"#),
            (r#"{"names":"ab"}"#, r#"{"names":"ac"}"#),
            (r#"{"surname":"ab"}"#, r#"{"surname":"ac"}"#),
            // Texts that are like JSON and are none.
            (r#"{"name":"ab"}"#, "{\"name\":\"a\nb\"}"),
            (r#"{"name":"ab"}"#, r#"{"name":"ab"#),
        ] {
            assert!(!same(a, b), "{a} {b}");
        }
        assert_eq!(masked("{\"name\":\"\0\"}"), None);
        let mut latin = vec![];
        mask(b"{\"name\":\"a\xff\"}", &mut latin).unwrap();
        assert_eq!(latin, b"{\"name\":\"a\xff\"}");
    }

    /// Writes a group of Zarr version 2 with its array.
    fn write(dir: &Path, name: &str, dataset: &str, array: &str) {
        std::fs::create_dir_all(dir.join(dataset)).unwrap();
        std::fs::write(dir.join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
        let attributes = format!(
            r#"{{"multiscales": [{{"name": "{name}", "axes": [{{"name": "y"}}, {{"name": "x"}}],
                "datasets": [{{"path": "{dataset}"}}]}}]}}"#
        );
        std::fs::write(dir.join(".zattrs"), attributes).unwrap();
        std::fs::write(dir.join(dataset).join(".zarray"), array).unwrap();
    }

    fn array(side: usize) -> String {
        format!(
            r#"{{"zarr_format": 2, "shape": [{side}, 5], "chunks": [{side}, 5], "dtype": "<u2", "fill_value": 0,
                "order": "C", "compressor": null, "filters": null}}"#
        )
    }

    fn plan(plans: &Plans, dir: &Path) -> Result<Arc<ArrayPlan>> {
        let level = plans.level(dir, &GroupText::read(dir)?, 0)?;
        let file = dir.join(&level.level.dataset).join(".zarray");
        let mut key = level.key();
        key.extend(std::fs::read(&file).unwrap());
        plans.array(&file, &level, &key)
    }

    #[test]
    fn a_thousand_texts_that_are_alike_are_parsed_once() {
        let dir = tempfile::tempdir().unwrap();
        let plans = Plans::default();
        let of = |i: usize| dir.path().join(i.to_string());
        let mut seen = vec![];
        for i in 0..1000 {
            write(&of(i), &format!("image {i}"), "0", &array(4));
            seen.push(plan(&plans, &of(i)).unwrap());
        }
        let parsed = |plans: &Plans| plans.parsed.each_ref().map(|n| n.load(Ordering::Relaxed));
        assert_eq!(parsed(&plans), [1, 1]);
        assert!(seen.iter().all(|plan| Arc::ptr_eq(plan, &seen[0])));
        // Another shape, another place of the array: each is what its own text says.
        write(&of(1000), "image", "0", &array(7));
        assert_eq!(plan(&plans, &of(1000)).unwrap().info.shape.y(), 7);
        assert_eq!(parsed(&plans), [1, 2]);
        write(&of(1001), "image", "s0", &array(4));
        assert_eq!(plan(&plans, &of(1001)).unwrap().dataset, "s0");
        assert_eq!(parsed(&plans), [2, 3]);
    }

    #[test]
    fn broken_metadata_are_an_error_of_their_file() {
        let dir = tempfile::tempdir().unwrap();
        let plans = Plans::default();
        let of = |name: &str| dir.path().join(name);
        write(&of("good"), "ab", "0", &array(4));
        plan(&plans, &of("good")).unwrap();
        for name in ["first", "second"] {
            write(&of(name), "cd", "0", &array(4).replace("\"C\"", "\"Q\""));
            let error = plan(&plans, &of(name)).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(".zarray") && error.contains("order"), "{error}");
        }
        write(&of("third"), "a\u{1}b", "0", &array(4));
        let error = plan(&plans, &of("third")).unwrap_err().to_string();
        assert!(error.contains("third") && error.contains(".zattrs"), "{error}");
        std::fs::write(of("good").join(".zgroup"), r#"{"zarr_format": 3}"#).unwrap();
        let error = plan(&plans, &of("good")).unwrap_err().to_string();
        assert!(error.contains("good") && error.contains(".zgroup"), "{error}");
        assert!(plan(&plans, &of("nowhere")).unwrap_err().to_string().contains("no such folder"));
    }
}
