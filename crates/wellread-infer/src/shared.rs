//! Images and logits between this program and a worker: files in shared memory. They are written and read here as
//! files, so that a full one is an error and not a signal.

use anyhow::{Context as _, Result, ensure};
use shared_file::SharedFile;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::PathBuf;

/// Outputs per image that there is room for, where the model does not say how many it has.
const DEFAULT_CLASSES: usize = 1 << 16;

/// The two files of a batch size. They go when this is dropped.
pub(crate) struct Shared {
    images: SharedFile,
    logits: SharedFile,
}

impl Shared {
    /// Makes the files and writes the images.
    ///
    /// # Errors
    /// Shared memory that is full, and no room elsewhere.
    pub fn new(images: &[f32], batch: usize, classes: Option<usize>) -> Result<Self> {
        Self::in_first_of(SharedFile::KINDS, images, batch, classes)
    }

    /// As [`Self::new`], by the first of these that have room: containers have little shared memory.
    fn in_first_of(
        kinds: &[fn() -> Result<SharedFile>],
        images: &[f32],
        batch: usize,
        classes: Option<usize>,
    ) -> Result<Self> {
        let mut failed = None;
        for kind in kinds {
            match Self::made(*kind, images, batch, classes) {
                Ok(made) => return Ok(made),
                // The error told is that of the first: the others stand in for it.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.context("there is no place for images")?)
    }

    fn made(
        kind: fn() -> Result<SharedFile>,
        images: &[f32],
        batch: usize,
        classes: Option<usize>,
    ) -> Result<Self> {
        let mut this = Self { images: kind()?, logits: kind()? };
        this.put(images)?;
        // Zeros, so that the room is there when the worker writes.
        let zeros = vec![0u8; 4 << 10];
        let mut left = batch.saturating_mul(classes.unwrap_or(DEFAULT_CLASSES)).saturating_mul(4);
        while left > 0 {
            let part = left.min(zeros.len());
            this.logits.file().write_all(&zeros[..part]).with_context(full)?;
            left -= part;
        }
        Ok(this)
    }

    /// Writes other images to the same place.
    ///
    /// # Errors
    /// Shared memory that is full.
    pub fn put(&mut self, images: &[f32]) -> Result<()> {
        self.images.file().rewind()?;
        self.images.file().write_all(bytemuck::cast_slice(images)).with_context(full)
    }

    /// Outputs of this shape that a worker wrote.
    ///
    /// # Errors
    /// More than there is room for.
    pub fn logits(&mut self, shape: &[usize]) -> Result<Vec<f32>> {
        let count = shape.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis));
        let room = usize::try_from(self.logits.file().metadata()?.len())? / 4;
        let count = count.filter(|&count| count <= room);
        ensure!(count.is_some(), "the outputs have shape {shape:?}, for which there is no room");
        let mut values = vec![0f32; count.unwrap_or(0)];
        self.logits.file().rewind()?;
        self.logits.file().read_exact(bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    pub fn images_path(&self) -> PathBuf {
        self.images.path()
    }

    pub fn logits_path(&self) -> PathBuf {
        self.logits.path()
    }
}

fn full() -> String {
    "the batch does not fit in shared memory".to_owned()
}

#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod shared_file {
    use anyhow::{Context as _, Result};
    use std::fs::File;
    use std::os::fd::AsRawFd as _;
    use std::path::PathBuf;

    /// Where files are in memory.
    const SHARED_MEMORY_FOLDER: &str = "/dev/shm";

    /// A file without a name, which goes with this process however that ends. Others find it among this process's files.
    pub(super) struct SharedFile(pub File);

    impl SharedFile {
        /// Ways to make one, the best first.
        pub const KINDS: &[fn() -> Result<Self>] = &[Self::in_memory, Self::elsewhere];

        fn in_memory() -> Result<Self> {
            let file = tempfile::tempfile_in(SHARED_MEMORY_FOLDER);
            file.map(Self).context("cannot make a temporary file for images")
        }

        /// In the folder for temporary files, whose contents the kernel keeps in memory while there is room.
        pub fn elsewhere() -> Result<Self> {
            tempfile::tempfile().map(Self).context("cannot make a temporary file for images")
        }

        pub fn file(&mut self) -> &mut File {
            &mut self.0
        }

        pub fn path(&self) -> PathBuf {
            format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
        }
    }
}

#[cfg(any(not(target_os = "linux"), feature = "portable"))]
mod shared_file {
    use anyhow::{Context as _, Result};
    use std::fs::File;
    use std::path::PathBuf;
    use tempfile::NamedTempFile;

    /// A temporary file, which stays behind when the process is killed.
    pub(super) struct SharedFile(NamedTempFile);

    impl SharedFile {
        /// Ways to make one.
        pub const KINDS: &[fn() -> Result<Self>] = &[Self::named];

        fn named() -> Result<Self> {
            let file = tempfile::Builder::new().prefix("wellread-infer-").tempfile();
            file.map(Self).context("cannot make a temporary file for images")
        }

        pub fn file(&mut self) -> &mut File {
            self.0.as_file_mut()
        }

        pub fn path(&self) -> PathBuf {
            self.0.path().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_logits_pass() {
        let mut shared = Shared::new(&[1.0, 2.0], 2, Some(3)).unwrap();
        shared.put(&[3.0, 4.0]).unwrap();
        let bytes = std::fs::read(shared.images_path()).unwrap();
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&bytes), [3.0, 4.0]);
        let values: Vec<u8> = (0..6u8).flat_map(|v| f32::from(v).to_le_bytes()).collect();
        std::fs::write(shared.logits_path(), values).unwrap();
        assert_eq!(shared.logits(&[2, 3]).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(shared.logits(&[2, 4]).unwrap_err().to_string().contains("no room"));
        assert!(shared.logits(&[usize::MAX, 2]).is_err());
    }

    /// Shared memory may be as small as 64 MiB, as it is in containers.
    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn images_lie_elsewhere_where_shared_memory_is_full() {
        let full: fn() -> Result<SharedFile> =
            || Ok(SharedFile(std::fs::File::options().write(true).open("/dev/full")?));
        let refused = Shared::in_first_of(&[full], &[1.0, 2.0], 2, Some(3)).err().unwrap();
        assert!(refused.to_string().contains("does not fit in shared memory"), "{refused}");
        let shared = Shared::in_first_of(&[full, SharedFile::elsewhere], &[1.0, 2.0], 2, Some(3)).unwrap();
        let bytes = std::fs::read(shared.images_path()).unwrap();
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&bytes), [1.0, 2.0]);
    }

    #[test]
    #[cfg(any(not(target_os = "linux"), feature = "portable"))]
    fn files_with_names_go_with_their_owner() {
        let shared = Shared::new(&[1.0], 1, Some(1)).unwrap();
        let places = [shared.images_path(), shared.logits_path()];
        assert!(places.iter().all(|place| place.is_file()), "{places:?}");
        drop(shared);
        assert!(places.iter().all(|place| !place.exists()), "{places:?}");
    }
}
