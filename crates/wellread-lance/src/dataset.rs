//! One version of a Lance dataset: its manifest, and the files that it names.
//!
//! Lance's crate `lance` is left out, with the query planner, the indices and the text search that it brings. The
//! needed parts of it are here, on the crates below it: the latest version, the deleted rows, and the places of data
//! files. [`crate::fragment`] reads them, [`crate::writer`] writes them.

use crate::place_store::store_of;
use crate::rows::DatasetRows;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use lance_core::datatypes::Schema;
use lance_core::{Error, Result};
use lance_file::reader::{CachedFileMetadata, FileReader};
use lance_file::version::ConcreteFileVersion;
use lance_file::versions::v1;
use lance_io::object_store::{ObjectStore, ObjectStoreRegistry};
use lance_io::scheduler::{FileScheduler, ScanScheduler, SchedulerConfig};
use lance_table::feature_flags::ensure_can_read_manifest;
use lance_table::format::{DataFile, Fragment, Manifest, populate_manifest_schema_dictionaries};
use lance_table::io::commit::{CommitHandler, ConditionalPutCommitHandler, ManifestLocation};
use lance_table::io::deletion::read_deletion_file;
use lance_table::io::manifest::read_manifest;
use object_store::path::Path;
use std::pin::pin;
use std::sync::Arc;

/// The folder of data files.
pub(crate) const DATA: &str = "data";

/// How the error of a dataset ends that lies in a bucket and has files elsewhere.
pub(crate) const OUTSIDE: &str = "which is read of a dataset in a local folder alone";

/// Fragments whose deleted rows are read at once.
const FRAGMENTS_AT_ONCE: usize = 64;

/// The latest version of a dataset, whose manifest is not read yet.
pub(crate) struct Latest {
    store: Arc<ObjectStore>,
    registry: Arc<ObjectStoreRegistry>,
    base: Path,
    location: ManifestLocation,
}

impl Latest {
    /// That of the dataset in a folder.
    ///
    /// # Errors
    /// No version there.
    pub async fn of(folder: &str) -> Result<Self> {
        let registry = Arc::new(ObjectStoreRegistry::default());
        let (store, base) = store_of(&registry, folder).await?;
        let location = ConditionalPutCommitHandler.resolve_latest_location(&base, &store).await?;
        Ok(Self { store, registry, base, location })
    }

    /// Name of the manifest's file, and its bytes, where they are known.
    pub fn manifest_file(&self) -> Option<(&str, u64)> {
        self.location.path.filename().zip(self.location.size)
    }

    /// The version, by its manifest.
    ///
    /// # Errors
    /// A manifest that is damaged, or that needs what this release of Lance does not know.
    pub async fn read(self) -> Result<Dataset> {
        let Self { store, registry, base, location } = self;
        let mut manifest = read_manifest(&store, &location.path, location.size).await?;
        ensure_can_read_manifest(&manifest)?;
        let reader = store.open(&location.path).await?;
        populate_manifest_schema_dictionaries(&mut manifest, reader.as_ref()).await?;
        Ok(Dataset { store, registry, base, manifest, location })
    }
}

/// A version of a dataset.
pub(crate) struct Dataset {
    store: Arc<ObjectStore>,
    registry: Arc<ObjectStoreRegistry>,
    base: Path,
    manifest: Manifest,
    location: ManifestLocation,
}

impl Dataset {
    /// The latest version of the dataset in a folder.
    ///
    /// # Errors
    /// As [`Latest::of`] and [`Latest::read`].
    pub async fn open(folder: &str) -> Result<Self> {
        Latest::of(folder).await?.read().await
    }

    /// The rows of all fragments.
    ///
    /// # Errors
    /// Files that tell of them and cannot be read.
    pub async fn rows(&self) -> Result<DatasetRows> {
        let of_fragments = stream::iter(self.manifest.fragments.iter()).map(|fragment| async move {
            let deleted = self.deleted_rows(fragment).await?;
            Ok::<_, Error>((self.physical_rows(fragment).await?, deleted))
        });
        let mut of_fragments = pin!(of_fragments.buffered(FRAGMENTS_AT_ONCE));
        let mut rows = DatasetRows::default();
        while let Some((physical, deleted)) = of_fragments.try_next().await? {
            rows.push(physical, deleted);
        }
        Ok(rows)
    }

    /// Columns, with the numbers by which data files name them.
    pub const fn schema(&self) -> &Schema {
        &self.manifest.schema
    }

    /// The manifest of the version.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Name of the manifest's file.
    pub fn manifest_name(&self) -> Option<&str> {
        self.location.path.filename()
    }

    /// Rows of a fragment, deleted ones too.
    ///
    /// # Errors
    /// A fragment without files; a file that cannot be read.
    async fn physical_rows(&self, fragment: &Fragment) -> Result<usize> {
        // Writers that did not yet note their version noted wrong numbers of rows.
        if self.manifest.writer_version.is_some()
            && let Some(rows) = fragment.physical_rows
        {
            return Ok(rows);
        }
        let file = fragment
            .files
            .first()
            .ok_or_else(|| Error::not_found(format!("fragment {} does not contain any data", fragment.id)))?;
        if file.file_version()? == ConcreteFileVersion::V1 {
            return Ok(self.oldest(fragment, file).await?.len());
        }
        Ok(usize::try_from(metadata(&self.scheduler(file).await?).await?.num_rows).unwrap_or(usize::MAX))
    }

    /// Rows of a fragment that are deleted, in ascending order.
    ///
    /// # Errors
    /// A deletion file that cannot be read.
    async fn deleted_rows(&self, fragment: &Fragment) -> Result<Vec<u32>> {
        let Some(deletions) = &fragment.deletion_file else { return Ok(vec![]) };
        let base = self.root(deletions.base_id)?.0;
        let rows = read_deletion_file(fragment.id, deletions, &base, &self.store).await?;
        Ok(rows.to_sorted_iter().collect())
    }

    /// A data file, open for reading.
    ///
    /// # Errors
    /// A file that is not there.
    pub async fn scheduler(&self, file: &DataFile) -> Result<FileScheduler> {
        let config = SchedulerConfig::max_bandwidth(&self.store);
        let scheduler = ScanScheduler::new(Arc::clone(&self.store), config);
        scheduler.open_file(&self.path_of(file)?, &file.file_size_bytes).await
    }

    /// A data file of the first format, open for reading.
    ///
    /// # Errors
    /// A file that is not there or damaged.
    pub async fn oldest(&self, fragment: &Fragment, file: &DataFile) -> Result<v1::reader::FileReader> {
        let (first, last) = (file.fields.first().copied(), file.fields.iter().max().copied());
        v1::reader::FileReader::try_new_with_fragment_id(
            &self.store,
            &self.path_of(file)?,
            self.schema().clone(),
            u32::try_from(fragment.id).unwrap_or(u32::MAX),
            first.unwrap_or(0),
            last.unwrap_or(0),
            None,
        )
        .await
    }

    /// Where a data file is.
    fn path_of(&self, file: &DataFile) -> Result<Path> {
        let (root, is_dataset) = self.root(file.base_id)?;
        let folder = if is_dataset { root.join(DATA) } else { root };
        Ok(folder.join(file.path.as_str()))
    }

    /// A folder that files of the dataset are in: its own, or one that the manifest names by a number. And whether it is
    /// a dataset, whose data files have a folder of their own.
    fn root(&self, number: Option<u32>) -> Result<(Path, bool)> {
        let Some(number) = number else { return Ok((self.base.clone(), true)) };
        let base = self.manifest.base_paths.get(&number).ok_or_else(|| {
            Error::invalid_input(format!("the manifest has no base path of number {number}"))
        })?;
        // Keys of a place are counted from the dataset's folder.
        if !self.store.is_local() {
            return Err(Error::invalid_input(format!("files of it lie in {}, {OUTSIDE}", base.path)));
        }
        Ok((base.extract_path(Arc::clone(&self.registry))?, base.is_dataset_root))
    }
}

/// The metadata of a data file of a format since 2.0.
///
/// # Errors
/// A file that is damaged.
pub(crate) async fn metadata(file: &FileScheduler) -> Result<Arc<CachedFileMetadata>> {
    Ok(Arc::new(FileReader::read_all_metadata(file).await?))
}
