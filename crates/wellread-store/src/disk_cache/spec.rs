//! Which folder a cache is in and how large it may become: `FOLDER:SIZE`.

use crate::amount::{bytes_text, parse_bytes};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A folder and the bytes that may lie in it. Read and written as `/scratch/wellread:200GiB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCacheSpec {
    /// The folder; it is made if it is not there.
    pub folder: PathBuf,
    /// Bytes at most.
    pub limit: u64,
}

impl fmt::Display for DiskCacheSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.folder.display(), bytes_text(self.limit))
    }
}

impl FromStr for DiskCacheSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A folder may have colons.
        let (folder, size) =
            text.rsplit_once(':').filter(|(folder, _)| !folder.is_empty()).ok_or_else(|| {
                format!("{text:?} is no folder and size of a cache on disk, as in /scratch/wellread:200GiB")
            })?;
        if folder.contains("://") {
            return Err(format!("{folder} is no folder of this machine, where a cache on disk lies"));
        }
        Ok(Self { folder: folder.into(), limit: parse_bytes(size)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_written() {
        for (text, folder, limit) in [("/a/b:2GiB", "/a/b", 2 << 30), ("c:/x:1MiB", "c:/x", 1 << 20)] {
            let spec = DiskCacheSpec { folder: folder.into(), limit };
            assert_eq!((text.parse(), spec.to_string()), (Ok(spec.clone()), text.to_owned()));
        }
        for wrong in ["", "/a", ":1GiB", "/a:", "/a:much", "/a:0", "s3://b/c:1GiB"] {
            assert!(wrong.parse::<DiskCacheSpec>().is_err(), "{wrong}");
        }
    }
}
