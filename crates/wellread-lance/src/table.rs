//! A Lance dataset as a table of images: its rows, columns and files, and reading some columns of some rows.
//!
//! The plan of a set of columns in a fragment is worked out once and kept: the pages, the open file, Lance's
//! reader. So a read is looking rows up and reading their bytes.

mod by_engine;
mod ends;
mod plan;
mod ranges;

use crate::bridge::import_schema;
use crate::dataset::{self, DATA, Dataset, Latest};
use crate::direct::{self, CheckedPages, Direct, Input};
use crate::rows::DatasetRows;
use crate::runtime::wait;
use crate::{dataset_folder, footer};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use lance_core::datatypes::{Field, Schema};
use lance_encoding::decoder::ColumnInfo;
use lance_file::version::ConcreteFileVersion;
use lance_table::format::Manifest;
use plan::{DataFile, Fragment, FragmentPlan, Plan};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use wellread_image::ome_arrow::{self, field};
use wellread_store::ahead::HeldBytes;
use wellread_store::direct::{Plans, Stop, TestedVersion, UNREADABLE, handed_on, rest_by_library};
use wellread_store::guard::guarded;
use wellread_store::place::WantedRanges;
use wellread_store::table::{Columns, EachRow, ImageTable, Rows};
use wellread_store::words::counted;
use wellread_store::{Error, FormatContext, OpenOptions, Result, StoreLayout};

/// Name of the format.
pub(crate) const NAME: &str = "lance";

/// Fragments that are asked, at most, whether they all have one value in a column.
const FRAGMENTS_ASKED: usize = 16;

/// The newest release whose datasets were read here as Lance reads them, as their manifest names it.
static RELEASE: TestedVersion = TestedVersion::new("was written by Lance", "14.0");
/// The newest format of their data files.
static FORMAT: TestedVersion = TestedVersion::new("has data files of Lance's format", "2.2");

/// A Lance dataset, open for reading.
pub(crate) struct LanceTable {
    /// As it was given.
    path: PathBuf,
    /// The dataset's own folder.
    folder: PathBuf,
    dataset: Dataset,
    schema: SchemaRef,
    fragments: Vec<Fragment>,
    rows: DatasetRows,
    /// By the columns asked for.
    plans: Plans<Arc<Plan>>,
    /// Whether it is of versions whose pages were read here as Lance reads them.
    is_tested: bool,
    /// Whether a release wrote it whose pages were followed here as Lance follows them.
    is_followed: bool,
    /// The ends of its first data files, where these are remote: metadata are read from there in many small parts.
    _ends: [HeldBytes; 2],
}

impl LanceTable {
    /// Opens the dataset at `path`, or a table of the LanceDB folder there.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        let folder = dataset_folder::dataset(path, options.table.as_deref())?;
        let folder =
            wellread_store::place::canonical(&folder).map_err(|e| Error::io(path, "cannot open", &e))?;
        let address = folder.to_str().ok_or_else(|| {
            Error::new(path, "Lance cannot open a path that is not valid UTF-8").hint("rename the folder")
        })?;
        let what = "cannot open the dataset";
        let latest = wait(path, what, Latest::of(address))?;
        let early_ends = ends::with_manifest(&folder, latest.manifest_file());
        let dataset = wait(path, what, latest.read())?;
        let schema = schema_of(path, dataset.schema())?;
        let fragments = dataset.manifest().fragments.to_vec();
        // Written over by `overlays`, which no release of Lance writes unless it is asked to.
        if fragments.iter().any(|f| !f.overlays.is_empty()) {
            return Err(Error::new(
                path,
                "has cells that other files write over, which this build does not read",
            )
            .hint("rewrite its fragments with Lance: dataset.optimize.compact_files()"));
        }
        let ends = ends::ends_ahead(&folder, &fragments);
        let rows = wait(path, "cannot read the fragments", dataset.rows())?;
        let fragments =
            fragments.into_iter().map(|lance| Fragment { lance, files: OnceLock::new() }).collect();
        let is_followed = is_of_tested_release(path, dataset.manifest());
        let is_tested = is_tested(path, dataset.manifest());
        let (path, plans) = (path.to_owned(), Plans::new(usize::MAX));
        Ok(Self {
            path,
            folder,
            dataset,
            schema,
            fragments,
            rows,
            plans,
            is_tested,
            is_followed,
            _ends: [early_ends, ends],
        })
    }

    /// The plan for reading `columns`.
    fn plan(&self, columns: &Columns) -> Result<Arc<Plan>> {
        self.plans.get(columns, || {
            let ids = columns.iter().map(|path| self.field_id(path)).collect::<Result<Vec<_>>>()?;
            let projection = self.dataset.schema().project_by_ids(&ids, true);
            let schema = schema_of(&self.path, &projection)?;
            let fragments = self.fragments.iter().map(|_| FragmentPlan::default()).collect();
            Ok(Arc::new(Plan { columns: columns.into(), projection, schema, fragments }))
        })
    }

    /// The field at the end of a path of names.
    fn field_id(&self, path: &[String]) -> Result<i32> {
        let mut fields = &self.dataset.schema().fields;
        let mut id = None;
        for name in path {
            let field = fields.iter().find(|f| f.name == *name).ok_or_else(|| {
                Error::new(&self.path, format_args!("the table has no column {}", path.join(".")))
            })?;
            id = Some(field.id);
            fields = &field.children;
            // Lists are passed through.
            if let [element] = fields.as_slice()
                && !field.logical_type.is_struct()
            {
                fields = &element.children;
            }
        }
        id.ok_or_else(|| Error::new(&self.path, "no column was named"))
    }

    /// Data files of a fragment that lie in the dataset's folder.
    fn data_files<'a>(&self, fragment: &'a Fragment) -> Result<&'a [DataFile]> {
        if let Some(files) = fragment.files.get() {
            return Ok(files);
        }
        let mut files = vec![];
        for file in fragment.lance.files.iter().filter(|f| f.base_id.is_none()) {
            // Files of format 0.1 have other metadata, which only Lance reads.
            if matches!(file.file_version(), Ok(ConcreteFileVersion::V1)) {
                continue;
            }
            let file_path = self.folder.join(DATA).join(&file.path);
            if file.file_major_version >= 2 && !footer::is_plausible(&file_path) {
                let what = "cannot read the metadata of a data file: its footer names places outside of it";
                return Err(Error::new(&self.path, what)
                    .hint("the dataset is probably corrupt or incomplete; copy or write it again"));
            }
            let metadata = wait(&self.path, "cannot read the metadata of a data file", async {
                dataset::metadata(&self.dataset.scheduler(file).await?).await
            })?;
            let pairs = file.fields.iter().zip(file.column_indices.iter());
            let columns =
                pairs.filter_map(|(id, column)| Some((*id, usize::try_from(*column).ok()?))).collect();
            let input = Input::open(&file_path).ok().map(Arc::new);
            let checked_pages = CheckedPages::new(&metadata.column_infos);
            files.push(DataFile { name: file.path.clone(), input, metadata, columns, checked_pages });
        }
        Ok(fragment.files.get_or_init(|| files))
    }

    /// The one value of a field in all rows of the dataset, as it is stored, as far as the pages' metadata tells.
    fn only_value(&self, field: i32) -> Option<Vec<u8>> {
        let mut only = None;
        for fragment in &self.fragments {
            let files = self.data_files(fragment).ok()?;
            let (file, column) = files.iter().find_map(|f| Some((f, *f.columns.get(&field)?)))?;
            let column = file.metadata.column_infos.get(column)?;
            let value = direct::only_value(file.input.as_ref()?, column, fragment.lance.physical_rows?)?;
            if only.get_or_insert_with(|| value.clone()) != &value {
                return None;
            }
        }
        only
    }

    /// The reader of this crate for a fragment; `None` where Lance has to read it.
    fn direct<'a>(&self, plan: &'a Plan, index: usize) -> Option<&'a Direct> {
        let make = || {
            let fragment = &self.fragments[index];
            // The metadata of files of the oldest format differs.
            if !self.is_tested || fragment.lance.files.iter().any(|f| f.file_major_version < 2) {
                return None;
            }
            let files = self.data_files(fragment).ok()?;
            let locate = |id: i32| -> Option<(Arc<Input>, Arc<ColumnInfo>)> {
                let (file, column) = files.iter().find_map(|f| Some((f, *f.columns.get(&id)?)))?;
                Some((file.input.clone()?, Arc::clone(file.metadata.column_infos.get(column)?)))
            };
            let rows = fragment.lance.physical_rows?;
            Direct::new(&plan.columns, &plan.schema, &plan.projection.fields, rows, &locate)
        };
        plan.fragments[index].direct.get_or_init(make).as_ref()
    }
}

/// Lance's schema in the Arrow types of this workspace.
fn schema_of(path: &Path, schema: &Schema) -> Result<SchemaRef> {
    // Types that Lance does not know make it panic.
    let ours =
        guarded(path, "cannot read the schema", || import_schema(&arrow_schema_58::Schema::from(schema)))?;
    Ok(Arc::new(ours))
}

impl ImageTable for LanceTable {
    fn format(&self) -> &'static str {
        NAME
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn types_are_trusted(&self) -> bool {
        self.dataset.schema().metadata.contains_key(ome_arrow::FILE_WRITER_KEY)
    }

    fn is_constant(&self, columns: &Columns) -> bool {
        let is_leaf = |id: i32| self.dataset.schema().field_by_id(id).is_some_and(|f| f.children.is_empty());
        self.is_tested
            && self.fragments.len() <= FRAGMENTS_ASKED
            && columns.iter().all(|path| {
                let id = self.field_id(path).ok().filter(|&id| is_leaf(id));
                id.is_some_and(|id| self.only_value(id).is_some())
            })
    }

    fn layout(&self) -> Result<StoreLayout> {
        let version = self.dataset.manifest().data_storage_format.version;
        let mut layout = StoreLayout { variant: format!("Lance {version}"), ..StoreLayout::default() };
        let Some(fragment) = self.fragments.first() else { return Ok(layout) };
        let files = self.data_files(fragment)?;
        let pixels = self.dataset.schema().fields_pre_order().filter(|f| f.name == field::PIXELS);
        let columns = pixels.filter_map(|f| {
            let id = leaf(f).id;
            files.iter().find_map(|f| f.metadata.column_infos.get(*f.columns.get(&id)?))
        });
        let encodings: Vec<_> = columns.filter_map(|c| direct::encoding(c)).collect();
        // A list that is empty in every row is constant.
        let stored = encodings.iter().find(|e| *e != "constant").or(encodings.first());
        layout.codec = stored.cloned().unwrap_or_default();
        layout.pieces = counted(self.fragments.len(), "fragment");
        Ok(layout)
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = vec![];
        for fragment in self.dataset.manifest().fragments.iter() {
            for file in &fragment.files {
                if file.base_id.is_some() {
                    return Err(Error::new(
                        &self.path,
                        "has data files outside of its folder, which cannot be listed",
                    ));
                }
                files.push(self.folder.join(DATA).join(&file.path));
            }
            if let Some(deleted) = &fragment.deletion_file {
                let name = format!("{}-{}-{}", fragment.id, deleted.read_version, deleted.id);
                let folder = self.folder.join("_deletions");
                let found = [".arrow", ".bin"].map(|ending| folder.join(format!("{name}{ending}")));
                files.extend(found.into_iter().filter(|path| wellread_store::place::exists(path)));
            }
        }
        if let Some(name) = self.dataset.manifest_name() {
            files.push(self.folder.join("_versions").join(name));
        }
        Ok(files)
    }

    fn read(
        &self,
        rows: Rows<'_>,
        columns: &Columns,
        context: &mut FormatContext,
        each: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let plan = self.plan(columns)?;
        let _tails = self.open_ahead(&rows);
        let ReadMemory { positions, direct: memory } = context.get();
        self.rows.stretches(&rows, positions, |index, positions| {
            let Some(direct) = self.direct(&plan, index) else {
                return self.read_by_engine(&plan, index, positions, each);
            };
            let read = direct.read(positions, memory, each);
            // A fault of a network is no damage: Lance, which asks again, gives its error.
            if let Err(Stop::Irregular(_, why)) = read
                && direct.has_prefixes()
                && !(why == UNREADABLE && wellread_store::place::is_remote(&self.path))
            {
                return Err(self.damaged(why));
            }
            rest_by_library(read, each, |done, each| {
                self.read_by_engine(&plan, index, &positions[done..], each)
            })
        })
    }

    fn read_pieces(
        &self,
        rows: &[usize],
        columns: &Columns,
        context: &mut FormatContext,
        each: &mut EachRow<'_>,
    ) -> Result<usize> {
        let plan = self.plan(columns)?;
        let _tails = self.open_ahead(&Rows::Chosen(rows));
        let ReadMemory { positions, direct: memory } = context.get();
        let mut done = 0;
        // Ends with an error, or with none where the rest is left to others.
        let read = self.rows.stretches(&Rows::Chosen(rows), positions, |index, positions| {
            let direct = self.direct(&plan, index).filter(|direct| direct.has_pieces()).ok_or(None)?;
            let read = direct.read_pieces(positions, memory, &mut |row| {
                each(done, row)?;
                done += 1;
                Ok(())
            });
            read.map_err(Stop::refusal)
        });
        handed_on(done, read)
    }

    fn heads(&self, rows: &[usize], columns: &Columns, wanted: &mut WantedRanges) {
        self.heads_of(rows, columns, wanted);
    }

    fn first_look(&self, index: &Columns, pieces: &Columns, wanted: &mut WantedRanges) {
        self.first_look_of(index, pieces, wanted);
    }

    fn ranges(&self, rows: &[usize], columns: &Columns, wanted: &mut WantedRanges) -> Result<()> {
        self.ranges_of(rows, columns, wanted)
    }
}

/// Memory of a read, used again for the next one.
#[derive(Debug, Default)]
struct ReadMemory {
    positions: Vec<u32>,
    /// That of [`Direct`].
    direct: FormatContext,
}

/// Whether a dataset is of versions whose pages were read here as Lance reads them; if not, a note says so.
fn is_tested(path: &Path, manifest: &Manifest) -> bool {
    let files = manifest.fragments.iter().flat_map(|fragment| &fragment.files);
    let newest = files.map(|file| (file.file_major_version, file.file_minor_version)).max();
    is_of_tested_release(path, manifest)
        && newest.is_none_or(|(major, minor)| FORMAT.covers(path, &format!("{major}.{minor}")))
}

/// Whether a tested release wrote a dataset, or another library; if not, a note says so.
fn is_of_tested_release(path: &Path, manifest: &Manifest) -> bool {
    // Other libraries count as they like.
    let writer = manifest.writer_version.as_ref().filter(|writer| writer.library == "lance");
    writer.is_none_or(|writer| RELEASE.covers(path, &writer.version))
}

/// The leaf below lists.
fn leaf(field: &Field) -> &Field {
    field.children.first().map_or(field, leaf)
}

#[cfg(test)]
mod tests;
