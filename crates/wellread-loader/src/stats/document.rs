//! Statistics as a file: what `wellread stats --out` writes and [`Stats::open`] reads.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use wellread_store::{Error, Result};

/// The file's own name of its format.
pub(super) const FORMAT: &str = "wellread-stats";
/// The advice about a file that is none.
pub(super) const HINT: &str = "give a file that `wellread stats PATH --out FILE` wrote";
/// The newest version that this build writes and reads.
pub(super) const VERSION: u32 = 1;
/// That of files of groups, which an older build would take for those of a whole set.
pub(super) const GROUPS_VERSION: u32 = 2;
/// Largest file that is read whatever it begins with: a thousand times what that of a whole set is. One of thousands of plates
/// or wells is larger, and names its format first.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Bytes at the beginning of a larger file among which it names its format.
const HEAD_BYTES: u64 = 4096;

/// Statistics of a set of images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Always `wellread-stats`.
    pub format: String,
    /// Version of this form.
    pub version: u32,
    /// Number of images.
    pub images: u64,
    /// Pixel type, by its NumPy name.
    pub dtype: String,
    /// Largest error of percentiles, relative to their value; 0 when they are exact.
    pub percentile_error: f64,
    /// Images whose channels are in another order than in the first: they are counted by name.
    #[serde(default)]
    pub reordered: u64,
    /// Images whose channels are not called as in the first, where that makes channels go by number. Values of several stains may be
    /// counted as one channel. Where the first has no names: those with names, of up to 10,000 that were looked at.
    #[serde(default)]
    pub other_names: u64,
    /// One per channel.
    pub channels: Vec<ChannelStats>,
}

/// Statistics of one channel, of its finite values, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChannelStats {
    /// Its number, from 0.
    pub channel: usize,
    /// Its name, where all images that have the channel call it the same.
    #[serde(default)]
    pub name: Option<String>,
    /// Finite values.
    pub count: u64,
    /// Values that are no numbers; part of nothing else here.
    pub nan: u64,
    /// Infinite values; part of nothing else here.
    pub infinite: u64,
    /// Mean; like all below, absent where there is no finite value.
    pub mean: Option<f64>,
    /// Population standard deviation.
    pub std: Option<f64>,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// In ascending order.
    pub percentiles: Vec<Percentile>,
    /// Counts of values.
    pub histogram: Option<Histogram>,
}

/// A value that a share of all values lies below, interpolated as NumPy does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// 0 to 100.
    pub percent: f64,
    /// The value.
    pub value: f64,
}

/// Counts of values in bins of equal width; the last bin includes its upper end. There are 256 or fewer. Bins of
/// types of more than 16 bits are about 0.2 % of the largest value wide, or wider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Lower end of the first bin.
    pub low: f64,
    /// Upper end of the last bin.
    pub high: f64,
    /// One per bin.
    pub counts: Vec<u64>,
}

impl Stats {
    /// Reads the file that `wellread stats --out` writes.
    ///
    /// # Errors
    /// A file that cannot be read, is none of statistics, or is of a newer version.
    pub fn open(path: &Path) -> Result<Self> {
        let value = document(path)?;
        if let Some(by) = columns_of(&value) {
            return Err(Error::new(path, format_args!("holds statistics for each {by}, not of a whole set"))
                .hint("normalize takes it as it is; for anything else compute them of the whole set: `wellread stats` without `--by`"));
        }
        if value["version"].as_u64().is_none_or(|version| version > u64::from(VERSION)) {
            return Err(Error::new(
                path,
                format_args!("its version is {}, this build knows up to {VERSION}", value["version"]),
            )
            .hint("update wellread, or compute the statistics again"));
        }
        serde_json::from_value(value)
            .map_err(|e| Error::new(path, format_args!("is no file of statistics: {e}")).hint(HINT))
    }

    /// Whether `path` is a file of statistics, of whatever version.
    pub fn is_file(path: &Path) -> bool {
        document(path).is_ok()
    }
}

/// The content of a file of statistics, of any version.
pub(super) fn document(path: &Path) -> Result<serde_json::Value> {
    document_within(path, MAX_FILE_BYTES)
}

/// The same, where larger files than `most` bytes must begin with the name of the format.
fn document_within(path: &Path, most: u64) -> Result<serde_json::Value> {
    let read = |e: std::io::Error| Error::io(path, "cannot read", &e);
    let size = std::fs::metadata(path).map_err(read)?.len();
    if size > most && !names_format_first(path).map_err(read)? {
        return Err(Error::new(path, format_args!("{size} bytes are too many for statistics")).hint(HINT));
    }
    let bytes = std::fs::read(path).map_err(read)?;
    let value: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|e| Error::new(path, format_args!("is no file of statistics: {e}")).hint(HINT))?;
    if value["format"] == FORMAT {
        return Ok(value);
    }
    Err(Error::new(path, "is no file of statistics").hint(HINT))
}

/// Whether a file names the format at its beginning.
fn names_format_first(path: &Path) -> std::io::Result<bool> {
    let mut head = vec![];
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head.windows(FORMAT.len()).any(|part| part == FORMAT.as_bytes()))
}

/// The columns whose groups a file is of; `None` where it is of a whole set.
pub(super) fn columns_of(document: &serde_json::Value) -> Option<String> {
    let by = document["by"].as_array()?;
    Some(by.iter().filter_map(serde_json::Value::as_str).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_files_are_read_where_they_name_the_format_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats.json");
        let read = |text: &str, most: u64| {
            std::fs::write(&path, text).unwrap();
            document_within(&path, most)
        };
        let stats = "{\n  \"format\": \"wellread-stats\",\n  \"version\": 2,\n  \"by\": [\"Plate\"],\n  \"groups\": []\n}\n";
        assert_eq!(columns_of(&read(stats, 10).unwrap()).as_deref(), Some("Plate"));
        let other = "{\"images\": [1, 2, 3]}";
        let error = read(other, 10).unwrap_err().to_string();
        assert!(error.contains("21 bytes are too many"), "{error}");
        let error = read(other, 100).unwrap_err().to_string();
        assert!(error.contains("is no file of statistics"), "{error}");
        // It may be anywhere in a small one, and only at the beginning of a large one.
        let late = format!("{{\"by\": [{}\"Well\"], \"format\": \"wellread-stats\"}}", " ".repeat(5000));
        assert!(read(&late, 10_000).is_ok() && read(&late, 1000).is_err());
    }
}
