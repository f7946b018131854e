//! A set in memory for tests that says what files it has and how long a read takes.

use std::path::PathBuf;
use std::time::Duration;
use wellread_image::{PixelType, Shape};
use wellread_loader::MemoryStore;
use wellread_store::{PixelSink, Request, Result, Scratch, Store, delegate_store};

/// Images in memory.
pub(crate) struct TestStore {
    /// The images.
    pub inner: MemoryStore,
    /// The file of a row, where there is one for each.
    pub path_of: Option<fn(usize) -> PathBuf>,
    /// How long reading an image takes, whatever else the machine does: it sleeps.
    pub each: Duration,
}

impl TestStore {
    /// So many squares of `side` pixels, each filled with its number, without files; a read takes no time.
    pub fn squares(images: u8, side: usize) -> Result<Self> {
        let mut inner = MemoryStore::new("set");
        for i in 0..images {
            inner.push(format!("{i}"), Shape::plane(side, side), PixelType::U8, vec![i; side * side])?;
        }
        Ok(Self { inner, path_of: None, each: Duration::ZERO })
    }
}

impl Store for TestStore {
    delegate_store!(self => self.inner; path, len, row_info, metadata);
    delegate_store!(self => self.inner; layout, has_checksums, hints, row_hints);

    fn format(&self) -> &'static str {
        "test"
    }
    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.path_of.map_or(vec![], |path_of| (0..self.len()).map(path_of).collect()))
    }
    fn files_of(&self, rows: &[usize]) -> Result<Vec<PathBuf>> {
        Ok(self.path_of.map_or(vec![], |path_of| rows.iter().copied().map(path_of).collect()))
    }
    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        if !self.each.is_zero() {
            std::thread::sleep(self.each * requests.len() as u32);
        }
        self.inner.read(requests, scratch, sink)
    }
}
