//! Metadata of all groups and arrays below a group in one file: `consolidated_metadata` in `zarr.json`, `.zmetadata` of Zarr v2.
//!
//! ```text
//!  remote   group ──one file──▶ Consolidated: texts by path ──▶ metadata of images, without a request each
//!  here       nothing is read: the files themselves are the truth, and cost no round trip
//!  written    texts of images ──Collected──▶ the group's file, where they are no more than 16 MiB
//! ```
//!
//! A program that changes an image consolidates its group's metadata again, as for every reader of Zarr. Metadata that
//! they do not name are looked for in their own files. Consolidated metadata that cannot be parsed count as absent: the
//! files themselves give the error.
//!
//! Specifications: <https://github.com/zarr-developers/zarr-specs/pull/309>, and
//! <https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html> for Zarr v2; as zarr-python reads and writes both.

use super::group::{Group, GroupText};
use super::metadata_file::{parse, read_if_exists};
use crate::ahead::Fetching;
use crate::file_names::path_text;
use crate::{Result, place};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file of Zarr v2.
pub(super) const ZMETADATA: &str = ".zmetadata";
/// The field of `zarr.json`.
const FIELD: &str = "consolidated_metadata";
/// Bytes of the longest file that is read as one: a text of JSON takes several times as much while it is parsed.
pub(super) const LONGEST: u64 = 64 << 20;
/// Bytes of metadata that are written into one file: of about 8,000 images. A reader takes all of it, whichever images it wants.
const MAX_METADATA_BYTES: usize = 16 << 20;

/// Images whose files are asked for at once.
const IMAGES_AT_ONCE: usize = 256;

/// Metadata files below a folder, as one file tells them.
#[derive(Debug, Default)]
pub(super) struct Consolidated {
    root: PathBuf,
    /// Texts by their paths from there, such as `A/1/0/zarr.json`.
    texts: HashMap<String, Vec<u8>>,
}

impl Consolidated {
    /// The metadata of the group at `root`, where it lies behind a network and has some; else nothing.
    pub fn of(root: &Path) -> Self {
        let texts = if place::is_remote(root) { texts_of(root) } else { None };
        Self { root: root.to_owned(), texts: texts.unwrap_or_default() }
    }

    /// The text of a metadata file.
    pub fn text(&self, file: &Path) -> Option<&[u8]> {
        if self.texts.is_empty() {
            return None;
        }
        let below = file.strip_prefix(&self.root).ok()?;
        self.texts.get(&path_text(below)).map(Vec::as_slice)
    }

    /// The metadata of the group in folder `dir`: as they are known, or else read.
    ///
    /// # Errors
    /// As [`GroupText::read`].
    pub fn read(&self, dir: &Path) -> Result<GroupText> {
        self.group(dir).map_or_else(|| GroupText::read(dir), Ok)
    }

    /// The metadata of the group in folder `dir`, known or read.
    ///
    /// # Errors
    /// As [`Group::load`].
    pub fn load(&self, dir: &Path) -> Result<Group> {
        self.read(dir)?.parse(dir)
    }

    /// The metadata of the group in folder `dir`, if they are known.
    fn group(&self, dir: &Path) -> Option<GroupText> {
        let text = |file: &str| self.text(&dir.join(file)).map(<[u8]>::to_vec);
        if let Some(text) = text("zarr.json") {
            return Some(GroupText::V3(text));
        }
        let (group, attributes) = (text(".zgroup"), text(".zattrs"));
        (group.is_some() || attributes.is_some()).then_some(GroupText::V2 { group, attributes })
    }

    /// Whether the metadata of the group in folder `dir` are known.
    pub fn has(&self, dir: &Path) -> bool {
        ["zarr.json", ".zgroup", ".zattrs"].iter().any(|file| self.text(&dir.join(file)).is_some())
    }
}

/// Reads and takes apart what is consolidated at `root`.
fn texts_of(root: &Path) -> Option<HashMap<String, Vec<u8>>> {
    let parsed = |name: &str| -> Option<Map<String, Value>> {
        let file = root.join(name);
        if place::metadata(&file).ok()?.length > LONGEST {
            return None;
        }
        parse(&file, &read_if_exists(&file).ok()??).ok()
    };
    if let Some(mut group) = parsed("zarr.json") {
        let Some(Value::Object(mut consolidated)) = group.remove(FIELD) else { return None };
        let Some(Value::Object(nodes)) = consolidated.remove("metadata") else { return None };
        let of_node = |(path, node): (String, Value)| {
            let path = path.trim_matches('/');
            let file = if path.is_empty() { "zarr.json".to_owned() } else { format!("{path}/zarr.json") };
            (file, node.to_string().into_bytes())
        };
        let own = ("zarr.json".to_owned(), Value::Object(group).to_string().into_bytes());
        return Some(nodes.into_iter().map(of_node).chain([own]).collect());
    }
    let Some(Value::Object(files)) = parsed(ZMETADATA)?.remove("metadata") else { return None };
    Some(files.into_iter().map(|(file, text)| (file, text.to_string().into_bytes())).collect())
}

/// Metadata files of an image, with their texts; paths begin at the image's group.
pub(super) type Texts = Vec<(String, String)>;

/// Metadata of the images that are written, until they are put into one file.
#[derive(Debug, Default)]
pub(super) struct Collected(Mutex<Images>);

#[derive(Debug, Default)]
struct Images {
    /// By row.
    of: BTreeMap<usize, Texts>,
    bytes: usize,
}

impl Collected {
    /// Adds those of image `row`. Once they are too many none are kept any more.
    pub fn add(&self, row: usize, texts: &[(String, String)]) {
        let mut images = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        images.bytes =
            images.bytes.saturating_add(texts.iter().map(|(file, text)| file.len() + text.len()).sum());
        if images.bytes > MAX_METADATA_BYTES {
            images.of.clear();
        } else {
            images.of.insert(row, texts.to_vec());
        }
    }

    /// Adds those of images in `folder` that an interrupted run has written: `files` of each group.
    pub fn add_written(&self, folder: &Path, groups: &[String], files: &[&str]) {
        let images = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_too_much = images.bytes > MAX_METADATA_BYTES;
        let missing: Vec<usize> = (0..groups.len()).filter(|row| !images.of.contains_key(row)).collect();
        drop(images);
        if is_too_much {
            return;
        }
        let path = |row: usize, file: &str| folder.join(&groups[row]).join(file);
        for rows in missing.chunks(IMAGES_AT_ONCE) {
            let paths: Vec<PathBuf> =
                rows.iter().flat_map(|&row| files.iter().map(move |file| path(row, file))).collect();
            let _held = Fetching::of(folder, None)
                .map(|mut fetching| fetching.first_bytes(paths.iter().map(PathBuf::as_path)));
            for &row in rows {
                let text = |file: &&str| -> Option<(String, String)> {
                    let bytes = read_if_exists(&path(row, file)).ok()??;
                    Some(((*file).to_owned(), String::from_utf8(bytes).ok()?))
                };
                let Some(texts) = files.iter().map(text).collect::<Option<Texts>>() else { return };
                self.add(row, &texts);
            }
        }
    }

    /// Those of all images, whose groups are `groups`; `None` where they are too many, or where those of one are not known.
    pub fn all(&self, groups: &[String]) -> Option<Texts> {
        let images = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = vec![];
        for (row, group) in groups.iter().enumerate() {
            let texts = images.of.get(&row)?;
            all.extend(texts.iter().map(|(file, text)| (format!("{group}/{file}"), text.clone())));
        }
        Some(all)
    }
}

/// `zarr.json` of a group, with the metadata files below it.
pub(super) fn v3(group: &Value, below: &[(String, String)]) -> String {
    let nodes =
        below.iter().filter_map(|(file, text)| Some((file.strip_suffix("/zarr.json")?, text.as_str())));
    let mut text = group.to_string();
    // The next field is the object's last one.
    text.pop();
    text.push_str(r#","consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":"#);
    push_object(&mut text, nodes);
    text.push_str("}}");
    text
}

/// `.zmetadata`, with the metadata files of a group and below it.
pub(super) fn v2(files: &[(String, String)]) -> String {
    let mut text = "{\"zarr_consolidated_format\":1,\"metadata\":".to_owned();
    push_object(&mut text, files.iter().map(|(file, text)| (file.as_str(), text.as_str())));
    text.push('}');
    text
}

/// Appends an object of fields whose values are JSON.
fn push_object<'t>(text: &mut String, fields: impl Iterator<Item = (&'t str, &'t str)>) {
    text.push('{');
    for (i, (name, value)) in fields.enumerate() {
        if i > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(files: &[(&str, Value)]) -> Texts {
        files.iter().map(|(file, value)| ((*file).to_owned(), value.to_string())).collect()
    }

    #[test]
    fn what_is_written_has_the_fields_that_zarr_asks_for() {
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}});
        let below = texts(&[
            ("0/zarr.json", json!({"node_type": "group"})),
            ("0/0/zarr.json", json!({"shape": [2]})),
        ]);
        let written: Value = serde_json::from_str(&v3(&group, &below)).unwrap();
        let nodes = json!({"0": {"node_type": "group"}, "0/0": {"shape": [2]}});
        let consolidated = json!({"kind": "inline", "must_understand": false, "metadata": nodes});
        assert_eq!(written[FIELD], consolidated);
        assert_eq!((&written["zarr_format"], &written["attributes"]["a"]), (&json!(3), &json!(1)));
        let files = texts(&[(".zgroup", json!({"zarr_format": 2})), ("a\"b/.zattrs", json!({}))]);
        let written: Value = serde_json::from_str(&v2(&files)).unwrap();
        let metadata = json!({".zgroup": {"zarr_format": 2}, "a\"b/.zattrs": {}});
        assert_eq!(written, json!({"zarr_consolidated_format": 1, "metadata": metadata}));
    }

    #[test]
    fn what_is_consolidated_is_found_by_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
        let below = texts(&[
            ("a/b/zarr.json", json!({"node_type": "group"})),
            ("a/b/0/zarr.json", json!({"shape": [2]})),
        ]);
        std::fs::write(dir.path().join("zarr.json"), v3(&group, &below)).unwrap();
        assert!(
            !Consolidated::of(dir.path()).has(&dir.path().join("a/b")),
            "files of this machine are read themselves"
        );
        let of = |dir: &Path| Consolidated { root: dir.to_owned(), texts: texts_of(dir).unwrap_or_default() };
        let found = of(dir.path());
        let at = |path: &str| dir.path().join(path);
        assert!(found.has(&at("a/b")) && !found.has(&at("a")) && !found.has(Path::new("elsewhere/a/b")));
        assert_eq!(found.text(&at("a/b/0/zarr.json")), Some(&br#"{"shape":[2]}"#[..]));
        let Some(GroupText::V3(own)) = found.group(dir.path()) else { panic!("the group itself") };
        assert_eq!(own, group.to_string().into_bytes());
        // Without it, or with what is none, there is nothing.
        for text in [
            group.to_string(),
            "{".into(),
            r#"{"consolidated_metadata": 3}"#.into(),
            r#"{"consolidated_metadata": {}}"#.into(),
        ] {
            std::fs::write(dir.path().join("zarr.json"), text).unwrap();
            assert!(!of(dir.path()).has(&at("a/b")));
        }
        std::fs::remove_file(dir.path().join("zarr.json")).unwrap();
        let files = texts(&[("a/.zattrs", json!({"x": 1})), ("a/0/.zarray", json!({"shape": [3]}))]);
        std::fs::write(dir.path().join(ZMETADATA), v2(&files)).unwrap();
        let found = of(dir.path());
        assert_eq!(found.text(&at("a/0/.zarray")), Some(&br#"{"shape":[3]}"#[..]));
        let Some(GroupText::V2 { group: None, attributes: Some(text) }) = found.group(&at("a")) else {
            panic!("the group of Zarr v2")
        };
        assert_eq!(text, br#"{"x":1}"#);
    }

    #[test]
    fn too_much_is_not_collected() {
        let collected = Collected::default();
        let small = texts(&[("zarr.json", json!({}))]);
        let groups = ["0".to_owned(), "1".to_owned()];
        collected.add(1, &small);
        assert_eq!(collected.all(&groups), None, "one is missing");
        collected.add(0, &small);
        let all = collected.all(&groups).unwrap();
        assert_eq!(
            all.iter().map(|(file, _)| file.as_str()).collect::<Vec<_>>(),
            ["0/zarr.json", "1/zarr.json"]
        );
        collected.add(2, &[("zarr.json".into(), " ".repeat(MAX_METADATA_BYTES))]);
        assert_eq!(collected.all(&groups), None);
        collected.add(0, &small);
        collected.add(1, &small);
        assert_eq!(collected.all(&groups), None, "nor later on");
    }
}
