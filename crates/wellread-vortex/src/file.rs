//! The open file: mapped into memory, its end marker checked, its footer read.
//!
//! The file is mapped, other than the project's own formats. A Vortex array has to be whole to be opened and is as
//! large as its writer made it: with the library's defaults, 8,192 images. Only the pages of a mapped array that hold
//! the wanted rows are ever read. A file that is cut short under its map would end the process by a signal.
//! `wellread_store::mapping` puts zeros in place of the lost part, and no read counts before the file was found whole
//! after it ([`OpenFile::while_whole`]). In a place other than the file system there is nothing to map: there its
//! ranges are read ([`crate::remote`]).

use crate::remote::{Segments, Source};
use crate::session::{Session, reading};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vortex::buffer::ByteBuffer;
use vortex::file::{EOF_SIZE, MAGIC_BYTES, OpenOptionsSessionExt, VERSION, VortexFile};
use vortex::io::runtime::BlockingRuntime;
use wellread_image::ome_arrow::field;
use wellread_store::ahead::HeldBytes;
use wellread_store::direct::TestedVersion;
use wellread_store::mapping::{self, Mapping};
use wellread_store::place::{self, File};
use wellread_store::stamp::{Stamp, unless_written};
use wellread_store::{Error, Result};

/// The newest version of the file format whose values were copied as they lie; it is all that a file says of who wrote it.
static FORMAT: TestedVersion = TestedVersion::new("has Vortex's file format", "1");

/// The advice about a file that is not whole.
const TRUNCATED: &str = "the file is truncated or corrupt; copy or write it again";

/// A Vortex file open for reading.
pub(crate) struct OpenFile {
    pub path: PathBuf,
    pub vortex: VortexFile,
    /// Bytes when it was opened.
    pub length: u64,
    /// Whether it is of a version whose values were copied as they lie, past the library.
    pub is_tested: bool,
    file: Arc<File>,
    /// The whole file, in the file system.
    map: Option<Arc<Mapping>>,
    /// Its end, of a remote file.
    _tail: HeldBytes,
    stamp: Option<Stamp>,
}

/// The mapped bytes, as what buffers of the library refer to.
struct Owner(Arc<Mapping>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl OpenFile {
    /// Opens `path` and reads its footer.
    ///
    /// # Errors
    /// No such file. No Vortex file, or one of a newer version. A footer that cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let meta = place::metadata(path).map_err(|e| Error::io(path, "cannot open", &e))?;
        if !meta.is_regular() {
            return Err(Error::new(path, "is not a regular file").hint("a set in Vortex is one file"));
        }
        let (file, length) = place::open(path).map_err(|e| Error::io(path, "cannot open", &e))?;
        if length < (MAGIC_BYTES.len() + EOF_SIZE) as u64 {
            return Err(
                Error::new(path, format_args!("a file of {length} bytes is no Vortex file")).hint(TRUNCATED)
            );
        }
        let stamp = Stamp::when_opened(&file);
        let file = Arc::new(file);
        let mut tail = HeldBytes::default();
        let (map, (version, vortex)) = if let Some(local) = file.local() {
            let map = Mapping::of(local).map_err(|e| Error::io(path, "cannot map into memory", &e))?;
            let map = Arc::new(map);
            let opened = while_whole(Some(&*map), &file, path, (length, stamp), || open_mapped(path, &map))?;
            (Some(map), opened)
        } else {
            tail = HeldBytes::of_end(path, length);
            (None, open_remote(path, &file, length)?)
        };
        // Every image takes some bytes; this bounds buffers that are sized by the number of rows.
        if vortex.row_count() > length.saturating_mul(8) {
            let cause = format_args!("{} rows in {length} bytes are not possible", vortex.row_count());
            return Err(Error::new(path, cause).hint(TRUNCATED));
        }
        // The library refuses newer formats than its own above: this takes effect once it reads the next.
        let is_tested = FORMAT.covers(path, &version.to_string());
        Ok(Self { path: path.to_owned(), vortex, length, is_tested, file, map, _tail: tail, stamp })
    }

    /// Its segments as ranges of the file, where it is not mapped.
    pub fn segments(&self) -> Option<Segments> {
        let specs = Arc::clone(self.vortex.footer().segment_map());
        self.map.is_none().then(|| Segments::new(Arc::clone(&self.file), specs))
    }

    /// Runs `work`, which reads the file. Fails where the file became shorter than it was mapped, or was written to: then
    /// the bytes are not the file's.
    pub fn while_whole<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        while_whole(self.map.as_deref(), &self.file, &self.path, (self.length, self.stamp), work)
    }
}

/// Checks the ends of a mapped file and reads its footer; also its version.
fn open_mapped(path: &Path, map: &Arc<Mapping>) -> Result<(u16, VortexFile)> {
    let bytes = (**map).as_ref();
    let version = check_ends(path, bytes, &bytes[bytes.len().saturating_sub(EOF_SIZE)..])?;
    let buffer = ByteBuffer::from(Bytes::from_owner(Owner(Arc::clone(map))));
    let vortex = reading(path, "cannot read the footer", || {
        Ok(Session::reading().session.open_options().include_metadata().open_buffer(buffer)?)
    })?;
    Ok((version, vortex))
}

/// As [`open_mapped`], for a file whose ranges are read.
fn open_remote(path: &Path, file: &Arc<File>, length: u64) -> Result<(u16, VortexFile)> {
    let (mut head, mut end) = ([0; MAGIC_BYTES.len()], [0; EOF_SIZE]);
    let read = file.peek_exact_at(&mut head, 0);
    let read = read.and_then(|()| file.peek_exact_at(&mut end, length - EOF_SIZE as u64));
    read.map_err(|e| Error::io(path, "cannot read", &e))?;
    let version = check_ends(path, &head, &end)?;
    let source = Arc::new(Source { file: Arc::clone(file), length });
    let vortex = reading(path, "cannot read the footer", || {
        let Session { runtime, session } = Session::reading();
        let opening = session.open_options().include_metadata().with_file_size(length).open(source);
        Ok(runtime.block_on(opening)?)
    })?;
    Ok((version, vortex))
}

fn while_whole<T>(
    map: Option<&Mapping>,
    file: &File,
    path: &Path,
    (length, stamp): (u64, Option<Stamp>),
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    mapping::before_reading();
    let result = work();
    if let (Some(map), Some(file)) = (map, file.local()) {
        map.check(file, path, length).map_err(|error| {
            error.hint("do not write to a file that is being read: write beside it and rename; open it again")
        })?;
    }
    unless_written(stamp, file, path, result)
}

/// Checks the marks at both ends and the version, which the library words as corruption; returns the version. `end` are
/// the last [`EOF_SIZE`] bytes.
fn check_ends(path: &Path, head: &[u8], end: &[u8]) -> Result<u16> {
    if !head.starts_with(&MAGIC_BYTES) {
        return Err(
            Error::new(path, "the file does not start like Vortex").hint("check the path and the format")
        );
    }
    if !end.ends_with(&MAGIC_BYTES) {
        return Err(
            Error::new(path, "the file does not end like Vortex: its footer is missing").hint(TRUNCATED)
        );
    }
    let version = u16::from_le_bytes([end[0], end[1]]);
    if version > VERSION {
        return Err(Error::new(
            path,
            format_args!(
                "is written in version {version} of the Vortex file format; this build reads {VERSION}"
            ),
        )
        .hint("update wellread, or write the file again with an older Vortex"));
    }
    Ok(version)
}

/// Whether a Vortex file has a column built like images, one with a field `pixels_meta`.
pub(crate) fn holds_images(path: &Path) -> bool {
    OpenFile::open(path).is_ok_and(|file| {
        file.vortex.dtype().as_struct_fields_opt().is_some_and(|fields| {
            fields.fields().any(|column| {
                column
                    .as_struct_fields_opt()
                    .is_some_and(|c| c.names().iter().any(|n| n.as_ref() == field::PIXELS_META))
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_the_library_writes_were_tested_and_newer_ones_were_not() {
        let covers = |version: u16| FORMAT.covers(Path::new("a.vortex"), &version.to_string());
        assert!(covers(VERSION) && !covers(VERSION + 1));
    }
}
