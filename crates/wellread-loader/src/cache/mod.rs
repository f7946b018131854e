//! The policies for keeping images that have been read, and the cost of each.
//!
//! ```text
//!  loader ──▶ CachedStore ──contains? with_pixels──▶ CacheBackend          hit: one block, in one pass to the batch
//!                  │ miss: whole images, each read by one thread, small ones in one call, into memory of those that make room
//!                  ▼
//!             inner Store ──pixels──▶ CacheBackend::insert
//! ```
//!
//! | policy | keeps | costs |
//! |---|---|---|
//! | `none` | nothing; the operating system's page cache does its part | – |
//! | `memory[:SIZE]` | decoded images, those that came first | their pixels in RAM |
//! | `lru:SIZE` | decoded images, those used last | their pixels in RAM, and one lock per image and batch |
//! | `compressed[:SIZE]` | LZ4-compressed images, those that came first | a third to all of it in RAM; LZ4 in each epoch |
//! | `compressed-lru:SIZE` | LZ4-compressed images, those used last | as `compressed`, and one lock per image and batch |
//! | `file[:SIZE]` | of sets on this machine: decoded images in a memory-mapped file, shared by all processes of the machine and later runs | their pixels on disk; page cache, once for all processes |
//! | `preload[:SIZE]` | as `memory`, filled by a thread of its own from the start on | the same; reads ahead of the training |
//! | `disk:FOLDER:SIZE` | of sets behind a network: bytes as they were fetched, those used last, on a disk of this machine; shared by all of its processes and later runs | the bytes of the set on disk; decoding in each epoch |
//! | `chunked:ROWS[:SIZE]` | as `memory`; a miss reads this many neighbouring rows at once | the same; the first batch waits for more |
//!
//! | module | what it holds |
//! |---|---|
//! | `store` | the store that keeps what was read from another |
//! | `read_through`, `in_flight` | the inner store, and what is kept of it; which rows are being read, by one thread each |
//! | `memory`, `lru`, `compressed`, `mapped` | where images are kept |
//! | `preload` | the thread that fills a cache |
//! | `fingerprint`, `file` | which set a cache file belongs to; how it is made beside other processes |
//!
//! [`CacheReport`] says what a policy came to: bytes, images, hits and misses.

mod compressed;
mod file;
mod fingerprint;
mod in_flight;
mod lru;
mod mapped;
mod memory;
mod preload;
mod read_through;
mod store;

pub use file::leftovers;
pub(crate) use store::CachedStore;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use wellread_store::disk_cache::{self, DiskCacheSpec};
use wellread_store::words::counted;
use wellread_store::{Error, Result, bytes_text, place};

pub use wellread_store::parse_bytes;

/// The policy for keeping images that have been read.
///
/// Limits are bytes. The first read of a row takes the whole image even when a crop is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// Nothing; the operating system's page cache does its part.
    #[default]
    None,
    /// Decoded pixels of whole images, in their own type, shared by all threads. They are kept from the
    /// first read on and for as long as the dataset lives. They take the bytes of all pixels of the rows that were read
    /// (`info`'s `bytes_of_pixels`), up to `limit`. The first images stay. Where every row comes once per
    /// epoch, in any order, that serves the share of the set that fits, which least-recently-used eviction
    /// does not reach.
    Memory {
        /// Bytes of pixels that are kept at most.
        limit: usize,
    },
    /// As [`Cache::Memory`], but an image that does not fit takes the place of those that were used least
    /// recently. It is for orders that come back to rows soon, such as weighted ones.
    Lru {
        /// Bytes of pixels that are kept at most.
        limit: usize,
    },
    /// Images compressed by LZ4 after they were decoded; one that does not become smaller stays as it is.
    Compressed {
        /// Bytes, compressed, that are kept at most.
        limit: usize,
    },
    /// As [`Cache::Compressed`], but those that were used least recently make room, as in [`Cache::Lru`].
    CompressedLru {
        /// Bytes, compressed, that are kept at most.
        limit: usize,
    },
    /// Decoded images in a file that is mapped into memory: shared by all processes that read the same set, and by
    /// later runs. A set that has changed (files, sizes, times of change) gets a new one. Images that other options make of the same
    /// files, such as those of another column, have one of their own.
    File {
        /// Folder of such files; `None` for the user's cache folder.
        folder: Option<PathBuf>,
        /// Bytes of pixels that are kept at most.
        limit: usize,
    },
    /// Bytes of a set behind a network, on a disk of this machine ([`wellread_store::disk_cache`]): ranges of its objects as they were
    /// fetched, those used last. The process uses it from then on for all sets behind a network that it reads.
    Disk(DiskCacheSpec),
    /// As [`Cache::Memory`], filled in storage order by a thread of its own that begins at once, while the training
    /// reads what it needs.
    Preload {
        /// Bytes of pixels that are kept at most.
        limit: usize,
    },
    /// As [`Cache::Memory`], but a miss reads a run of neighbouring rows in one go.
    Chunked {
        /// Rows of a run.
        rows: usize,
        /// Bytes of pixels that are kept at most.
        limit: usize,
    },
}

impl Cache {
    /// Keeps everything.
    pub const MEMORY: Self = Self::Memory { limit: usize::MAX };

    /// The policy's name, as in the table of the module.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Memory { .. } => "memory",
            Self::Lru { .. } => "lru",
            Self::Compressed { .. } => "compressed",
            Self::CompressedLru { .. } => "compressed-lru",
            Self::File { .. } => "file",
            Self::Disk(_) => "disk",
            Self::Preload { .. } => "preload",
            Self::Chunked { .. } => "chunked",
        }
    }

    /// Makes ready what is to be there before the set at an address is opened. It is a cache on disk, which keeps what opening reads as well.
    /// A path of this machine says nothing yet: a table there may name images in a bucket. So
    /// [`Dataset::with_cache`](crate::Dataset::with_cache) looks again once the set is open.
    ///
    /// # Errors
    /// A cache on disk whose folder cannot be used. A cache file for a set behind a network.
    pub fn begin(&self, set: &Path) -> Result<()> {
        if place::is_remote(set) { self.begin_opened(set, true) } else { Ok(()) }
    }

    /// As [`Self::begin`] for an open set, some of which lies behind a network if it `is_remote`.
    ///
    /// # Errors
    /// As [`Self::begin`]; a cache on disk for a set on this machine, of which it would keep nothing.
    pub(crate) fn begin_opened(&self, set: &Path, is_remote: bool) -> Result<()> {
        match self {
            Self::Disk(spec) if is_remote => disk_cache::begin(spec).map(drop),
            Self::Disk(_) => {
                let cause = "lies on this machine, and a cache on disk keeps bytes of sets behind a network";
                let hint = "leave the cache out, or choose file, memory or lru";
                Err(Error::new(set, cause).choice().hint(hint))
            }
            Self::File { .. } if is_remote => {
                let cause = "lies behind a network, and a cache `file` is of files of this machine, by their times of change";
                let hint = "choose disk:FOLDER:SIZE, such as disk:/scratch/wellread:200GiB, or memory or lru";
                Err(Error::new(set, cause).choice().hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Whether images are compressed before they are kept. An image needs room for its pixels until it is.
    pub(crate) const fn compresses(&self) -> bool {
        matches!(self, Self::Compressed { .. } | Self::CompressedLru { .. })
    }

    /// Bytes that are kept at most.
    pub const fn limit(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Disk(spec) => spec.limit as usize,
            Self::Memory { limit }
            | Self::Lru { limit }
            | Self::Compressed { limit }
            | Self::CompressedLru { limit }
            | Self::File { limit, .. }
            | Self::Preload { limit }
            | Self::Chunked { limit, .. } => *limit,
        }
    }
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Self::Disk(spec) = self {
            return write!(f, ":{spec}");
        }
        if let Self::Chunked { rows, .. } = self {
            write!(f, ":{rows}")?;
        }
        match self.limit() {
            0 | usize::MAX => Ok(()),
            limit => write!(f, ":{}", bytes_text(limit as u64)),
        }
    }
}

impl FromStr for Cache {
    type Err = String;

    /// Reads a policy as in the table of the module; SIZE is an amount of memory, such as `512MiB`, `1.5GiB` or plain
    /// bytes. A size alone is that of `memory`.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "disk" {
            return Err("disk needs a folder and a size, as in disk:/scratch/wellread:200GiB".into());
        }
        if let Some(spec) = text.strip_prefix("disk:") {
            return spec.parse().map(Self::Disk);
        }
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        if name.starts_with(|c: char| c.is_ascii_digit()) && parts.clone().next().is_none() {
            return Ok(Self::Memory { limit: limit_of("", name)? });
        }
        // Before a size is read, whose hint would be another size.
        if name == "none" && parts.clone().next().is_some() {
            return Err("none keeps nothing and takes no size".into());
        }
        let rows = match (name, parts.clone().next()) {
            ("chunked", Some(rows)) => {
                parts.next();
                rows.parse::<usize>()
                    .ok()
                    .filter(|&n| n > 0)
                    .ok_or_else(|| format!("{rows:?} is no number of rows (as in chunked:1024)"))?
            }
            ("chunked", None) => return Err("chunked needs a number of rows, as in chunked:1024".into()),
            _ => 0,
        };
        let policy = |size: &str| text.strip_suffix(size).unwrap_or_default();
        let size = parts.next().map(|size| limit_of(policy(size), size)).transpose()?;
        if let Some(more) = parts.next() {
            return Err(format!("{more:?} is one part too many in {text:?}"));
        }
        let limit = size.unwrap_or(usize::MAX);
        match name {
            "none" => Ok(Self::None),
            "memory" => Ok(Self::Memory { limit }),
            "lru" | "compressed-lru" if size.is_none() => {
                Err(format!("{name} needs a size, as in {name}:2GiB"))
            }
            "compressed-lru" => Ok(Self::CompressedLru { limit }),
            "lru" => Ok(Self::Lru { limit }),
            "compressed" => Ok(Self::Compressed { limit }),
            "file" => Ok(Self::File { folder: None, limit }),
            "preload" => Ok(Self::Preload { limit }),
            "chunked" => Ok(Self::Chunked { rows, limit }),
            _ => Err(format!(
                "{name:?} is no cache: none, memory[:SIZE], lru:SIZE, compressed[:SIZE], compressed-lru:SIZE, \
                 file[:SIZE], disk:FOLDER:SIZE, preload[:SIZE] or chunked:ROWS[:SIZE]"
            )),
        }
    }
}

/// Fewer bytes are no size of a cache: a unit was forgotten.
const LEAST_BYTES: usize = 1000;

/// The bytes of a size; `policy` is what stands before it.
fn limit_of(policy: &str, size: &str) -> std::result::Result<usize, String> {
    let bytes = usize::try_from(parse_bytes(size)?).unwrap_or(usize::MAX);
    if bytes < LEAST_BYTES {
        let amount = counted(bytes, "byte");
        return Err(format!("a cache of {amount} holds no image: is {policy}{bytes}GiB meant?"));
    }
    Ok(bytes)
}

/// The content and the counts of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// Bytes that are kept: of RAM or, with [`Cache::File`], of the file.
    pub bytes: usize,
    /// Images that are kept.
    pub images: usize,
    /// Requests (an image, or a run of its channels) that were served from what was kept.
    pub hits: u64,
    /// Images that had to be read from the set.
    pub misses: u64,
}

/// Where images are kept. Methods are called by many threads at once.
pub(crate) trait CacheBackend: Send + Sync {
    /// Runs `work`, which reads what is kept. Fails where that may not have been what was put there.
    fn while_whole(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        work()
    }

    /// Whether the pixels of `row` are there.
    fn contains(&self, row: usize) -> bool;

    /// Hands the pixels of `row` to `each`; `false` when they are not there. `buffer` may be used.
    fn with_pixels(
        &self,
        row: usize,
        buffer: &mut Vec<u8>,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<bool>;

    /// Whether an image of `bytes` may be kept; room for it is taken then.
    fn reserve(&self, bytes: usize) -> bool;

    /// Memory of so many bytes, with whatever is in it, for an image for which room was taken. It is that of one which makes room for it.
    /// `None` where there is none.
    fn reused(&self, bytes: usize) -> Option<Vec<u8>> {
        let _ = bytes;
        None
    }

    /// Gives room back.
    fn release(&self, bytes: usize);

    /// Keeps pixels for which there is room.
    fn insert(&self, row: usize, pixels: Vec<u8>);

    /// Bytes and images that are kept.
    fn size(&self) -> (usize, usize);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        for (text, cache) in [
            ("none", Cache::None),
            ("memory", Cache::MEMORY),
            ("memory:1000", Cache::Memory { limit: 1000 }),
            ("lru:1MiB", Cache::Lru { limit: 1 << 20 }),
            ("compressed-lru:1MiB", Cache::CompressedLru { limit: 1 << 20 }),
            ("compressed", Cache::Compressed { limit: usize::MAX }),
            ("file:3KiB", Cache::File { folder: None, limit: 3072 }),
            ("disk:/a:b:3GiB", Cache::Disk(DiskCacheSpec { folder: "/a:b".into(), limit: 3 << 30 })),
            ("preload", Cache::Preload { limit: usize::MAX }),
            ("chunked:64:2GiB", Cache::Chunked { rows: 64, limit: 2 << 30 }),
        ] {
            assert_eq!(text.parse(), Ok(cache.clone()), "{text}");
            assert_eq!(cache.to_string(), text);
        }
        assert_eq!("512MiB".parse(), Ok(Cache::Memory { limit: 512 << 20 }));
        assert_eq!("lru:1.5k".parse(), Ok(Cache::Lru { limit: 1536 }));
        for (size, meant) in [("lru:2", "lru:2GiB"), ("chunked:64:500", "chunked:64:500GiB"), ("8", "8GiB")] {
            let said = size.parse::<Cache>().unwrap_err();
            assert!(said.contains(&format!("holds no image: is {meant} meant?")), "{said}");
        }
        for size in ["none:5", "none:5GiB", "none:x"] {
            assert_eq!(
                size.parse::<Cache>(),
                Err("none keeps nothing and takes no size".to_owned()),
                "{size}"
            );
        }
        for wrong in [
            "",
            "disk",
            "disk:",
            "disk:/scratch",
            "disk:s3://bucket/a:1GiB",
            "lru",
            "compressed-lru",
            "memory:",
            "memory:x",
            "memory:0",
            "chunked",
            "chunked:0",
            "memory:1:2",
            "9999999999TiB",
        ] {
            assert!(wrong.parse::<Cache>().is_err(), "{wrong}");
        }
    }
}
