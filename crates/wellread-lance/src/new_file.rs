//! A file of a place that Lance writes in parts.
//!
//! ```text
//!  Lance ──part 0, part 2, part 1 …──▶ Parts ──in order──▶ NewFile ──▶ wellread_store::place
//! ```
//!
//! Lance sends parts at once and completes the file at last. A place takes bytes in order, and cuts them as its store wants them.

use crate::waiting::{failed, waiting};
use async_trait::async_trait;
use futures::FutureExt as _;
use object_store::path::Path as Key;
use object_store::{Extensions, MultipartUpload, PutPayload, PutResult, Result, UploadPart};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread_store::place::{self, Writer};

/// A file that is there once it is finished, and nowhere if it is dropped before.
#[derive(Debug)]
pub(crate) struct NewFile {
    /// `None` once it was finished or given up.
    writer: Option<Writer>,
    /// Parts that came before those in front of them.
    early: BTreeMap<usize, PutPayload>,
    /// The part that is written next.
    next: usize,
}

impl NewFile {
    pub fn create(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            place::create_folder(folder)?;
        }
        Ok(Self { writer: Some(place::create(path)?), early: BTreeMap::new(), next: 0 })
    }

    /// Takes a part by its number, counted from 0, and writes those that are next.
    pub fn take(&mut self, number: usize, part: PutPayload) -> io::Result<()> {
        self.early.insert(number, part);
        while let Some(part) = self.early.remove(&self.next) {
            let Some(writer) = &mut self.writer else { return Err(given_up()) };
            if let Err(error) = part.iter().try_for_each(|bytes| writer.write_all(bytes)) {
                self.writer = None;
                return Err(error);
            }
            self.next += 1;
        }
        Ok(())
    }

    /// Completes the file of so many parts.
    pub fn finish(&mut self, parts: usize) -> io::Result<()> {
        let mut writer = self.writer.take().filter(|_| self.next == parts).ok_or_else(given_up)?;
        writer.flush()
    }
}

/// All that is told of a file that is there.
pub(crate) fn put_result() -> PutResult {
    PutResult { e_tag: None, version: None, extensions: Extensions::default() }
}

fn given_up() -> io::Error {
    io::Error::other("an earlier part of the file could not be written")
}

/// The parts of a file, as Lance sends them.
#[derive(Debug)]
pub(crate) struct Parts {
    key: Key,
    file: Arc<Mutex<NewFile>>,
    /// Parts that were sent.
    sent: usize,
}

impl Parts {
    pub fn new(key: Key, file: NewFile) -> Self {
        Self { key, file: Arc::new(Mutex::new(file)), sent: 0 }
    }
}

fn lock(file: &Mutex<NewFile>) -> MutexGuard<'_, NewFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl MultipartUpload for Parts {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (file, key, number) = (Arc::clone(&self.file), self.key.clone(), self.sent);
        self.sent += 1;
        let part =
            async move { waiting(move || lock(&file).take(number, data)).await.map_err(|e| failed(&key, e)) };
        part.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let (file, parts) = (Arc::clone(&self.file), self.sent);
        waiting(move || lock(&file).finish(parts)).await.map_err(|e| failed(&self.key, e))?;
        Ok(put_result())
    }

    async fn abort(&mut self) -> Result<()> {
        let file = Arc::clone(&self.file);
        let given_up = waiting(move || {
            drop(lock(&file).writer.take());
            Ok(())
        });
        given_up.await.map_err(|e| failed(&self.key, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data/a");
        let mut file = NewFile::create(&path).unwrap();
        for (number, byte) in [(2, 2_u8), (0, 0), (1, 1)] {
            file.take(number, vec![byte].into()).unwrap();
        }
        file.finish(3).unwrap();
        assert_eq!(place::read(&path).unwrap(), [0, 1, 2]);
        assert!(file.finish(3).is_err() && file.take(3, vec![3_u8].into()).is_err());
    }

    #[test]
    fn a_file_that_lacks_a_part_is_not_finished() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = NewFile::create(&dir.path().join("a")).unwrap();
        file.take(1, vec![1_u8].into()).unwrap();
        assert!(file.finish(2).is_err());
    }
}
