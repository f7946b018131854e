//! A new Lance dataset: its data files, and the version that makes them one.
//!
//! ```text
//!  batches ──DataFileWriter──▶ data/NAME.lance ──▶ fragment
//!  fragments ──commit──▶ _transactions/0-ID.txn, _versions/…manifest
//! ```

use crate::dataset::DATA;
use crate::place_store::store_of;
use arrow_array_58::RecordBatch;
use lance_core::datatypes::Schema;
use lance_core::{Error, Result};
use lance_file::version::ConcreteFileVersion;
use lance_file::versions::create_writer;
use lance_file::writer::{FileWriter, FileWriterOptions};
use lance_io::object_store::ObjectStore;
use lance_table::feature_flags::apply_feature_flags;
use lance_table::format::{DataFile, DataStorageFormat, Fragment, ManifestBuildConfig, pb};
use lance_table::io::commit::{
    CommitHandler, ConditionalPutCommitHandler, ManifestNamingScheme, write_manifest_file_to_path,
};
use lance_table::transaction::{Operation, Transaction};
use object_store::path::Path;
use prost::Message;
use std::num::NonZero;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// Version of the file format that is written: the latest that Lance calls stable.
const FILE_FORMAT: ConcreteFileVersion = ConcreteFileVersion::V2_2;
/// The folder of transactions.
const TRANSACTIONS: &str = "_transactions";

/// A place where no dataset is yet.
pub(crate) struct NewDataset {
    store: Arc<ObjectStore>,
    base: Path,
}

/// A data file that is being written.
pub(crate) struct DataFileWriter {
    name: String,
    writer: FileWriter,
    rows: u64,
}

impl NewDataset {
    /// In a folder, which need not be there.
    ///
    /// # Errors
    /// A path that Lance does not take.
    pub async fn at(folder: &str) -> Result<Self> {
        let (store, base) = store_of(&Arc::default(), folder).await?;
        Ok(Self { store, base })
    }

    /// Begins a data file.
    ///
    /// # Errors
    /// A file that cannot be made; a schema that Lance cannot write.
    pub async fn data_file(&self, schema: &Schema) -> Result<DataFileWriter> {
        let name = format!("{}.lance", Uuid::new_v4().simple());
        let output = self.store.create(&self.base.clone().join(DATA).join(name.as_str())).await?;
        let writer = create_writer(FILE_FORMAT, output, schema.clone(), FileWriterOptions::default())?;
        Ok(DataFileWriter { name, writer, rows: 0 })
    }

    /// Makes the first version of the dataset, which has these fragments.
    ///
    /// # Errors
    /// A dataset that is there; files that cannot be written.
    pub async fn commit(&self, schema: &Schema, fragments: &[Fragment]) -> Result<()> {
        let operation = Operation::Overwrite {
            schema: schema.clone(),
            fragments: fragments.to_vec(),
            config_upsert_values: None,
            initial_bases: None,
        };
        let transaction = Transaction::new(0, operation, None);
        let record = pb::Transaction::try_from(&transaction)?;
        let name = format!("{}-{}.txn", transaction.read_version, transaction.uuid);
        let path = self.base.clone().join(TRANSACTIONS).join(name.as_str());
        self.store.put(&path, &record.encode_to_vec()).await?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let config = ManifestBuildConfig {
            auto_set_feature_flags: true,
            timestamp_nanos: now,
            use_stable_row_ids: false,
            use_legacy_format: None,
            storage_format: Some(DataStorageFormat::new(FILE_FORMAT)),
            disable_transaction_file: false,
            migration_next_row_id: None,
            activate_non_reusable_field_ids: false,
            spilled_row_lineage: Arc::default(),
        };
        let (mut manifest, _) = transaction.build_manifest(None, vec![], &name, &config)?;
        manifest.update_max_field_id();
        apply_feature_flags(&mut manifest, false, false)?;
        manifest.update_max_fragment_id();
        let committed = ConditionalPutCommitHandler.commit(
            &mut manifest,
            None,
            &self.base,
            &self.store,
            write_manifest_file_to_path,
            ManifestNamingScheme::V2,
            Some(record.into()),
        );
        committed.await.map(|_| ()).map_err(Error::from)
    }
}

impl DataFileWriter {
    /// Adds rows. Gives the rows and bytes that the file has.
    ///
    /// # Errors
    /// A batch cannot be encoded or written.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<(u64, u64)> {
        self.writer.write_batch(batch).await?;
        self.rows += batch.num_rows() as u64;
        Ok((self.rows, self.writer.tell().await?))
    }

    /// Completes the file. Gives the fragment that it is.
    ///
    /// # Errors
    /// A file cannot be written.
    pub async fn finish(mut self) -> Result<Fragment> {
        let (fields, columns) = self
            .writer
            .field_id_to_column_indices()
            .iter()
            .map(|&(field, column)| (field as i32, column as i32))
            .unzip();
        let written = self.writer.finish().await?;
        let size = NonZero::new(written.size_bytes);
        let mut fragment = Fragment::new(0);
        fragment.files.push(DataFile::new(self.name, fields, columns, FILE_FORMAT, size, None));
        fragment.physical_rows = usize::try_from(written.num_rows).ok();
        Ok(fragment)
    }
}
