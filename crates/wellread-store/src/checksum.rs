//! SHA-256 of pixels, per image: the measure of "read correctly" everywhere in wellread.
//!
//! A row's digest is over its pixels in C order (T, C, Z, Y, X), little-endian, in its own pixel type. It
//! is the output of `numpy.ascontiguousarray(image).tobytes()` on a little-endian machine. Two sets hold the same
//! images exactly when their lists of digests agree, whatever their formats.

use crate::store::RowsAhead;
use crate::{Error, Result, RowInfo, Scratch, Store};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_image::PixelType;

/// Digest and identity of one image. Serialises as in `expected.json` of the golden sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageChecksum {
    /// Image index.
    #[serde(alias = "row_id")]
    pub row: usize,
    /// Image name.
    pub name: String,
    /// Size along T, C, Z, Y, X.
    pub shape_tczyx: [usize; 5],
    /// Pixel type by its NumPy name.
    pub dtype: String,
    /// SHA-256 of the pixels, lower-case hexadecimal.
    pub sha256: String,
}

impl ImageChecksum {
    /// Number of pixels.
    pub fn pixels(&self) -> u64 {
        self.shape_tczyx.iter().map(|&n| n as u64).product()
    }

    /// Bytes of the pixels; 0 for a pixel type that this build does not know.
    pub fn bytes(&self) -> u64 {
        self.pixels() * self.dtype.parse::<PixelType>().map_or(0, PixelType::size) as u64
    }
}

/// The result for a row, as text: tasks on other machines hand it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SentRow {
    /// It was read.
    Read(ImageChecksum),
    /// It could not be.
    Failed {
        /// The file.
        path: String,
        /// The row that the error names.
        row: Option<usize>,
        /// Why.
        cause: String,
        /// The advice.
        hint: Option<String>,
        /// Whether another attempt may succeed.
        #[serde(default)]
        may_pass: bool,
    },
}

impl From<Result<ImageChecksum>> for SentRow {
    fn from(result: Result<ImageChecksum>) -> Self {
        match result {
            Ok(sum) => Self::Read(sum),
            Err(error) => Self::Failed {
                path: error.path().to_string_lossy().into_owned(),
                row: error.row_index(),
                cause: error.cause().to_owned(),
                hint: error.hint_text().map(str::to_owned),
                may_pass: error.may_pass(),
            },
        }
    }
}

impl SentRow {
    /// The result for the row.
    ///
    /// # Errors
    /// That of the row, where it could not be read.
    pub fn received(self) -> Result<ImageChecksum> {
        match self {
            Self::Read(sum) => Ok(sum),
            Self::Failed { path, row, cause, hint, may_pass } => {
                let error = Error::new(path, cause);
                let error = if may_pass { error.passing() } else { error };
                let error = row.into_iter().fold(error, Error::row);
                Err(hint.into_iter().fold(error, crate::Error::hint))
            }
        }
    }
}

/// SHA-256 of bytes as lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Digest of one row; `pixels` is a buffer reused between calls.
pub fn image(
    store: &dyn Store,
    row: usize,
    scratch: &mut Scratch,
    pixels: &mut Vec<u8>,
) -> Result<ImageChecksum> {
    let info = crate::read_region(store, row, &store.row_info(row)?.shape.full(), scratch, pixels)?;
    of(store, row, info, pixels)
}

fn of(store: &dyn Store, row: usize, info: RowInfo, pixels: &[u8]) -> Result<ImageChecksum> {
    Ok(ImageChecksum {
        row,
        name: store.name(row)?,
        shape_tczyx: info.shape.0,
        dtype: info.dtype.name().to_owned(),
        sha256: sha256_hex(pixels),
    })
}

/// Digests of all rows in row order, with `jobs` threads; `done` is called once per finished row.
///
/// Failing rows stay in the list as errors, so that a caller can name every corrupt row.
pub fn all(store: &dyn Store, jobs: usize, done: &(dyn Fn() + Sync)) -> Vec<Result<ImageChecksum>> {
    of_rows(store, (0, store.len()), jobs, done)
}

/// As [`all`], of the rows from the first of two up to, and without, the second. Those of all ranges one after the other are those of the
/// set.
pub fn of_rows(
    store: &dyn Store,
    (first_row, end_row): (usize, usize),
    jobs: usize,
    done: &(dyn Fn() + Sync),
) -> Vec<Result<ImageChecksum>> {
    let end_row = end_row.min(store.len());
    let count = end_row.saturating_sub(first_row);
    let next = AtomicUsize::new(first_row);
    let results = Mutex::new(Vec::with_capacity(count));
    // Neighbouring rows share pages and chunks, and some stores a query: hand them out in groups.
    let group = store.hints().rows_per_read.max(16);
    crate::threads::share(jobs.clamp(1, count.max(1)), || {
        let (mut scratch, mut pixels) = (Scratch::default(), Vec::new());
        loop {
            let start = next.fetch_add(group, Ordering::Relaxed);
            if start >= end_row {
                return;
            }
            let end = (start + group).min(end_row);
            let mut first = start;
            if store.hints().rows_per_read > 1 {
                // Ends at the first row that fails; from there on each is read by itself.
                let _ = store.scan(start..end, &mut |row, info, pixels| {
                    let sum = of(store, row, info, pixels)?;
                    results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((row, Ok(sum)));
                    first = row + 1;
                    done();
                    Ok(())
                });
            }
            let mut ahead = RowsAhead::new(store, end);
            for row in first..end {
                ahead.before(row);
                let result = image(store, row, &mut scratch, &mut pixels).map_err(|e| e.row(row));
                results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((row, result));
                done();
            }
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(row, _)| *row);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Whether each image can be told by its name.
pub fn has_unique_names(images: &[ImageChecksum]) -> bool {
    let mut seen = HashSet::new();
    images.iter().all(|image| seen.insert(&image.name))
}

/// Reads a list of expected digests: a JSON list, or an object with the list under `images`.
///
/// # Errors
/// Unreadable file or JSON of another form.
pub fn read_expected(path: &Path) -> Result<Vec<ImageChecksum>> {
    let text = std::fs::read(path).map_err(|e| Error::io(path, "cannot read the expected checksums", &e))?;
    let wrong = |cause: &dyn std::fmt::Display| {
        Error::new(path, format_args!("is no list of expected checksums: {cause}"))
            .hint("give what `wellread checksum --json` prints, or an expected.json of a golden set")
    };
    let images = match serde_json::from_slice::<serde_json::Value>(&text).map_err(|e| wrong(&e))? {
        serde_json::Value::Object(mut object) => {
            object.remove("images").ok_or_else(|| wrong(&"the object has no \"images\""))?
        }
        list => list,
    };
    serde_json::from_value(images).map_err(|e| wrong(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_lists_of_checksums_say_what_they_lack() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("expected.json");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_expected(&path).map_err(|e| e.to_string())
        };
        let sum =
            r#"{"row_id": 3, "name": "a", "shape_tczyx": [1, 1, 1, 2, 2], "dtype": "uint8", "sha256": "00"}"#;
        let list = read(&format!("[{sum}]")).unwrap();
        assert_eq!((list.len(), list[0].row, list[0].name.as_str()), (1, 3, "a"));
        assert_eq!(read(&format!(r#"{{"images": [{sum}], "more": 1}}"#)), Ok(list));
        for (text, said) in [
            ("{}", "the object has no \"images\""),
            (r#"[{"row": 1}]"#, "missing field `name`"),
            (r#"{"images": 7}"#, "expected a sequence"),
            ("a.tif 00", "expected value at line 1"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said) && !error.contains("untagged"), "{error}");
        }
    }

    #[test]
    fn rows_that_are_sent_arrive_as_they_were() {
        let sum = ImageChecksum {
            row: 3,
            name: "a".into(),
            shape_tczyx: [1, 1, 1, 2, 2],
            dtype: "uint8".into(),
            sha256: "00".into(),
        };
        let failed = Error::new("set/a.tif", "the strip is damaged").row(3).hint("copy it again");
        let said = failed.to_string();
        let sent: Vec<SentRow> = [Ok(sum.clone()), Err(failed)].map(SentRow::from).into();
        let text = serde_json::to_string(&sent).unwrap();
        let read: Vec<SentRow> = serde_json::from_str(&text).unwrap();
        let [first, second] = <[SentRow; 2]>::try_from(read).unwrap().map(SentRow::received);
        assert_eq!(first.unwrap(), sum);
        let second = second.unwrap_err();
        assert_eq!((second.to_string(), second.may_pass()), (said, false));
        // A fault of a server is no fault of the image.
        let fault = std::io::Error::from(std::io::ErrorKind::TimedOut);
        let text =
            serde_json::to_string(&SentRow::from(Err(Error::io("a.tif", "cannot read", &fault)))).unwrap();
        let read: SentRow = serde_json::from_str(&text).unwrap();
        assert!(read.received().unwrap_err().may_pass());
    }
}
