//! How the table is laid out: columns of the set, named as pycytominer names metadata, then the features.
//!
//! ```text
//!  set:   name, Metadata_Well, compound            Columns            batch: rows of those, and of features
//!  table: Metadata_name, Metadata_Well, Metadata_compound, embedding_0000, embedding_0001 …
//!                                            or with FeatureLayout::List  embedding: list of F numbers
//! ```

use anyhow::{Context as _, Result, ensure};
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;
use wellread_store::{Error, Renamed, Store, features};

/// The prefix of names of metadata.
const METADATA: &str = "Metadata_";
/// The column of the images' names.
const NAME: &str = "Metadata_name";
/// The features in one column; in several, what their names begin with.
pub(super) const FEATURES: &str = "embedding";
/// Name of a list's numbers.
const ELEMENT: &str = "element";
/// Most features that get a column each: a footer says some hundred bytes of each in every group of rows.
const MAX_COLUMNS: usize = 1 << 14;

/// How features lie in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeatureLayout {
    /// A column for each, as pycytominer takes them.
    #[default]
    Columns,
    /// One column of lists.
    List,
}

impl FeatureLayout {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Columns, Self::List];

    /// Name of `--features`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Columns => "columns",
            Self::List => "list",
        }
    }

    /// Checks that so many features may be laid out.
    ///
    /// # Errors
    /// Too many for a column each.
    pub(super) fn check(self, width: usize) -> Result<()> {
        ensure!(
            self == Self::List || width <= MAX_COLUMNS,
            "the model gives {width} features per image, too many for a column each: {MAX_COLUMNS} at most (hint: \
             --features list writes one column of lists, --pool mean takes the mean of feature maps)"
        );
        ensure!(i32::try_from(width).is_ok(), "the model gives {width} features per image, too many");
        Ok(())
    }
}

impl FromStr for FeatureLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|layout| layout.name() == text);
        found.ok_or_else(|| format!("{text:?} is no way to lay out features; there are columns and list"))
    }
}

/// The columns of a set as metadata: the names of all images but those `left_out`, then the others. It also has which of these have another
/// name than their own, with [`METADATA`] before it.
///
/// # Errors
/// A column that the set does not have; columns that cannot be read.
pub(super) fn metadata(
    store: &dyn Store,
    wanted: Option<&[String]>,
    left_out: &HashSet<usize>,
) -> wellread_store::Result<(RecordBatch, Vec<Renamed>)> {
    let failed =
        |e: &dyn std::fmt::Display| Error::new(store.path(), format_args!("cannot take the columns: {e}"));
    let hints = store.hints();
    let there = hints.feature_names();
    let names = wanted.map_or_else(|| there.clone(), <[String]>::to_vec);
    check_columns(store, &there, &names)?;
    // One that cannot be read need not have a name that can.
    let name = |row| if left_out.contains(&row) { Ok(None) } else { store.name(row).map(Some) };
    let images: StringArray = (0..store.len()).map(name).collect::<wellread_store::Result<_>>()?;
    let mut fields = vec![Field::new(NAME, DataType::Utf8, true)];
    let mut columns: Vec<ArrayRef> = vec![Arc::new(images)];
    let mut renamed = Vec::new();
    if let Some(beside) = hints.features(&names)? {
        // Parquet has no times in seconds. Durations are numbers there, and Arrow's schema in the file says so.
        let beside = features::without_seconds(&beside).map_err(|e| failed(&e))?;
        let mut taken: HashSet<String> = [NAME.to_owned()].into();
        let own: HashSet<&String> = names.iter().filter(|name| name.starts_with(METADATA)).collect();
        for (field, column) in beside.schema().fields().iter().zip(beside.columns()) {
            let plain = metadata_name(field.name());
            let mut name = plain.clone();
            // A name that another column has anyway stays that one's.
            while taken.contains(&name) || (plain != *field.name() && own.contains(&name)) {
                name.push_str("_y");
            }
            taken.insert(name.clone());
            if name != plain {
                renamed.push(Renamed { from: field.name().clone(), to: name.clone() });
            }
            fields.push(field.as_ref().clone().with_name(name).with_nullable(true));
            columns.push(Arc::clone(column));
        }
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|e| failed(&e))?;
    Ok((batch, renamed))
}

/// Checks that the set has these columns, each of which is named once.
///
/// # Errors
/// It has not.
pub(super) fn check_columns(
    store: &dyn Store,
    there: &[String],
    wanted: &[String],
) -> wellread_store::Result<()> {
    let missing = wanted.iter().find(|name| !there.contains(name));
    missing.map_or(Ok(()), |name| Err(features::no_column(store, name, there)))
}

/// A column's name in the table.
fn metadata_name(name: &str) -> String {
    if name.starts_with(METADATA) { name.to_owned() } else { format!("{METADATA}{name}") }
}

/// The names of the columns of features.
fn feature_names(width: usize) -> Vec<String> {
    let digits = width.saturating_sub(1).to_string().len().max(4);
    (0..width).map(|i| format!("{FEATURES}_{i:0digits$}")).collect()
}

/// The field of features in one column.
pub(super) fn list_field(width: usize) -> Field {
    Field::new(FEATURES, DataType::FixedSizeList(element(), width as i32), false)
}

fn element() -> FieldRef {
    Arc::new(Field::new(ELEMENT, DataType::Float32, false))
}

/// Features of images, `width` numbers each, as one column.
pub(super) fn list(values: Vec<f32>, width: usize) -> Result<ArrayRef> {
    let values: ArrayRef = Arc::new(Float32Array::from(values));
    Ok(Arc::new(FixedSizeListArray::try_new(element(), width as i32, values, None)?))
}

/// How numbers of one column are written: their lowest bytes, then the next ones, which pack better so.
pub(super) fn list_properties() -> parquet::file::properties::WriterPropertiesBuilder {
    let path = [FEATURES, "list", ELEMENT].map(str::to_owned).to_vec();
    numbers(base(), &path.into())
}

fn base() -> parquet::file::properties::WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_created_by(format!("wellread version {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
}

fn numbers(
    properties: parquet::file::properties::WriterPropertiesBuilder,
    path: &ColumnPath,
) -> parquet::file::properties::WriterPropertiesBuilder {
    properties
        .set_column_dictionary_enabled(path.clone(), false)
        .set_column_encoding(path.clone(), Encoding::BYTE_STREAM_SPLIT)
        .set_column_statistics_enabled(path.clone(), EnabledStatistics::Chunk)
}

/// The table: the columns beside images, and so many features of each.
pub(super) struct Table {
    metadata: RecordBatch,
    layout: FeatureLayout,
    width: usize,
    schema: SchemaRef,
}

impl Table {
    /// Lays it out.
    pub fn new(metadata: RecordBatch, layout: FeatureLayout, width: usize) -> Self {
        let mut fields: Vec<Field> = metadata.schema().fields().iter().map(|f| f.as_ref().clone()).collect();
        match layout {
            FeatureLayout::List => fields.push(list_field(width)),
            FeatureLayout::Columns => {
                fields.extend(
                    feature_names(width).iter().map(|name| Field::new(name, DataType::Float32, false)),
                );
            }
        }
        Self { metadata, layout, width, schema: Arc::new(Schema::new(fields)) }
    }

    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// How it is written, with these words beside it.
    pub fn properties(&self, words: Vec<KeyValue>) -> WriterProperties {
        let properties = match self.layout {
            FeatureLayout::List => list_properties(),
            FeatureLayout::Columns => {
                let names = feature_names(self.width).into_iter();
                names.fold(base(), |properties, name| numbers(properties, &ColumnPath::from(vec![name])))
            }
        };
        properties.set_key_value_metadata(Some(words)).build()
    }

    /// Some rows of it: those of these images, whose features follow one another.
    ///
    /// # Errors
    /// An image that there is not; another number of features.
    pub fn batch(&self, rows: &UInt64Array, features: &[f32]) -> Result<RecordBatch> {
        ensure!(features.len() == rows.len() * self.width, "features are missing");
        let there = self.metadata.num_rows() as u64;
        ensure!(
            rows.values().iter().all(|&row| row < there),
            "there are {there} images, and a row names another"
        );
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for column in self.metadata.columns() {
            columns.push(arrow_select::take::take(column, rows, None)?);
        }
        match self.layout {
            FeatureLayout::List => columns.push(list(features.to_vec(), self.width)?),
            FeatureLayout::Columns => columns.extend((0..self.width).map(|at| {
                let column = features.iter().skip(at).step_by(self.width).copied();
                Arc::new(Float32Array::from_iter_values(column)) as ArrayRef
            })),
        }
        RecordBatch::try_new(self.schema(), columns).context("cannot put columns and features side by side")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{DurationSecondType, Float32Type};
    use arrow_array::{DurationSecondArray, Int64Array};
    use wellread_image::{PixelType, Shape};
    use wellread_loader::{Dataset, MemoryStore};

    fn set() -> Dataset {
        let mut store = MemoryStore::new("set");
        for name in ["a", "b", "c"] {
            store.push(name, Shape([1, 1, 1, 1, 1]), PixelType::U8, vec![0]).unwrap();
        }
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("Metadata_Well", Arc::new(StringArray::from(vec![Some("A01"), None, Some("A03")]))),
            ("dose", Arc::new(Int64Array::from(vec![1, 2, 3]))),
            ("name", Arc::new(Int64Array::from(vec![7, 8, 9]))),
            ("Metadata_dose", Arc::new(DurationSecondArray::from(vec![4, 5, 6]))),
        ];
        let columns = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        );
        Dataset::from_store(Box::new(store)).with_columns(columns.unwrap()).unwrap()
    }

    #[test]
    fn a_name_that_is_nearly_that_of_a_column_is_told() {
        let set = set();
        let wanted = ["Metadata_Wel".to_owned()];
        let chosen = check_columns(set.store(), &set.store().hints().feature_names(), &wanted).unwrap_err();
        let groups = features::keys(set.store(), &wanted).unwrap_err();
        for said in [chosen, groups].map(|error| error.to_string()) {
            assert!(said.contains("has no column \"Metadata_Wel\" (hint: is it \"Metadata_Well\""), "{said}");
            assert!(said.contains("? it has 4 columns beside the images: "), "{said}");
        }
    }

    fn none_left_out() -> HashSet<usize> {
        HashSet::new()
    }

    fn names(schema: &Schema) -> Vec<&str> {
        schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    #[test]
    fn columns_of_the_set_are_metadata_and_none_is_lost() {
        let set = set();
        let (columns, renamed) = metadata(set.store(), None, &none_left_out()).unwrap();
        assert_eq!(
            names(columns.schema_ref()),
            ["Metadata_name", "Metadata_Well", "Metadata_dose_y", "Metadata_name_y", "Metadata_dose"]
        );
        let renamed: Vec<_> = renamed.iter().map(|r| (r.from.as_str(), r.to.as_str())).collect();
        assert_eq!(renamed, [("dose", "Metadata_dose_y"), ("name", "Metadata_name_y")]);
        assert_eq!(columns.column(0).as_string::<i32>().value(2), "c");
        let waits = columns.column(4).as_primitive::<DurationSecondType>();
        assert_eq!(waits.values(), &[4, 5, 6], "durations stay what they are");
        let (some, _) = metadata(set.store(), Some(&["dose".to_owned()]), &none_left_out()).unwrap();
        assert_eq!(names(some.schema_ref()), ["Metadata_name", "Metadata_dose"]);
        let (none, _) = metadata(set.store(), Some(&[]), &[1].into()).unwrap();
        assert_eq!((none.num_columns(), none.num_rows()), (1, 3));
        assert_eq!(none.column(0).null_count(), 1, "an image that is left out needs no name");
        let error = metadata(set.store(), Some(&["dosis".to_owned()]), &none_left_out()).unwrap_err();
        assert!(error.is_choice() && error.to_string().contains("Metadata_Well, dose"), "{error}");
    }

    #[test]
    fn features_stand_behind_the_metadata_of_their_image() {
        let (columns, _) = metadata(set().store(), Some(&["dose".to_owned()]), &none_left_out()).unwrap();
        let rows = UInt64Array::from(vec![2, 0]);
        let features = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let table = Table::new(columns.clone(), FeatureLayout::Columns, 3);
        let batch = table.batch(&rows, &features).unwrap();
        assert_eq!(
            names(batch.schema_ref()),
            ["Metadata_name", "Metadata_dose", "embedding_0000", "embedding_0001", "embedding_0002"]
        );
        assert_eq!(batch.column(0).as_string::<i32>().value(0), "c");
        assert_eq!(batch.column(3).as_primitive::<Float32Type>().values(), &[2.0, 5.0]);
        let table = Table::new(columns, FeatureLayout::List, 3);
        let batch = table.batch(&rows, &features).unwrap();
        assert_eq!(names(batch.schema_ref()), ["Metadata_name", "Metadata_dose", "embedding"]);
        let second = batch.column(2).as_fixed_size_list().value(1);
        assert_eq!(second.as_primitive::<Float32Type>().values(), &[4.0, 5.0, 6.0]);
        assert!(table.batch(&UInt64Array::from(vec![3]), &features[..3]).is_err());
        assert!(table.batch(&rows, &features[..3]).is_err());
    }

    #[test]
    fn names_of_features_sort_as_their_numbers() {
        assert_eq!(feature_names(2), ["embedding_0000", "embedding_0001"]);
        assert_eq!(feature_names(10_001)[10_000], "embedding_10000");
        assert_eq!(feature_names(10_001)[7], "embedding_00007");
        assert!(
            FeatureLayout::Columns
                .check(MAX_COLUMNS + 1)
                .unwrap_err()
                .to_string()
                .contains("--features list")
        );
        FeatureLayout::List.check(MAX_COLUMNS + 1).unwrap();
    }
}
