//! The keys that make rows belong together, and the groups of rows that follow. Keys are their names, given
//! keys, or columns of the table.

use super::permutation::Permutation;
use super::rows::Rows;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use wellread_store::row_location::path_of_set;
use wellread_store::words::{counted, counted_with};
use wellread_store::{Error, Result, Store, features};

/// The keys that make rows belong together.
#[derive(Clone)]
pub enum Grouping {
    /// The part of the row's name before the first occurrence of this text; the whole name without one.
    NamePrefix(String),
    /// A function of the row's name.
    Name(Arc<dyn Fn(&str) -> String + Send + Sync>),
    /// Where the row's pixels lie: cells that are cut out of one image belong together, and planes of one.
    Position,
    /// One key for every row of the dataset.
    Keys(Arc<[String]>),
    /// The values of columns that stand beside the images ([`wellread_store::Hints::features`]), such as `Metadata_Plate` and
    /// `Metadata_Well`: rows belong together that agree in all of them. A null is a value of its own.
    Columns(Arc<[String]>),
}

impl fmt::Debug for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NamePrefix(separator) => f.debug_tuple("NamePrefix").field(separator).finish(),
            Self::Name(_) => f.write_str("Name(function)"),
            Self::Position => f.write_str("Position"),
            Self::Keys(keys) => write!(f, "Keys({} rows)", keys.len()),
            Self::Columns(names) => f.debug_tuple("Columns").field(names).finish(),
        }
    }
}

impl Grouping {
    /// By the part of the name before the first `separator`, such as `_`.
    pub fn name_prefix(separator: impl Into<String>) -> Self {
        Self::NamePrefix(separator.into())
    }

    /// By a function of the name.
    pub fn by_name(key: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::Name(Arc::new(key))
    }

    /// By a table: one key per row of the dataset.
    pub fn keys(keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Keys(keys.into_iter().map(Into::into).collect())
    }

    /// By columns that stand beside the images: the plate and the well, say.
    pub fn columns(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Columns(names.into_iter().map(Into::into).collect())
    }

    /// The keys of a store's rows. Reads columns whole, names one by one when they are asked for.
    pub(crate) fn of<'a>(&'a self, store: &'a dyn Store) -> Result<GroupKeys<'a>> {
        let keys = match self {
            Self::NamePrefix(_) | Self::Name(_) | Self::Position => None,
            Self::Keys(keys) => {
                if keys.len() != store.len() {
                    return Err(Error::new(
                        path_of_set(store),
                        format_args!(
                            "{} given for {}",
                            counted_with(keys.len(), "group key", ["was", "were"]),
                            counted(store.len(), store.hints().thing())
                        ),
                    )
                    .hint("give one key for every row of the dataset, also for rows that are left out"));
                }
                Some(Cow::Borrowed(&keys[..]))
            }
            Self::Columns(names) => Some(Cow::Owned(features::group_keys(store, names)?)),
        };
        Ok(GroupKeys { grouping: self, store, keys })
    }
}

/// The key of each row of a store.
pub(crate) struct GroupKeys<'a> {
    grouping: &'a Grouping,
    store: &'a dyn Store,
    /// Where they are not made from names.
    keys: Option<Cow<'a, [String]>>,
}

impl GroupKeys<'_> {
    pub(crate) fn get(&self, row: usize) -> Result<Cow<'_, str>> {
        if let Some(keys) = &self.keys {
            return Ok(Cow::Borrowed(&keys[row]));
        }
        if let Grouping::Position = self.grouping {
            return Ok(Cow::Owned(self.store.row_hints(row)?.position().to_string()));
        }
        let name = self.store.name(row)?;
        Ok(Cow::Owned(match self.grouping {
            Grouping::NamePrefix(separator) => match name.split_once(separator) {
                Some((prefix, _)) => prefix.to_owned(),
                None => name,
            },
            Grouping::Name(key) => key(&name),
            Grouping::Position | Grouping::Keys(_) | Grouping::Columns(_) => {
                unreachable!("these have other keys")
            }
        }))
    }

    /// Whether a row has no value in one of the columns, or none was given as its key.
    fn lacks_value(&self, row: usize) -> bool {
        let keys = self.keys.as_ref();
        keys.is_some_and(|keys| features::key_values(&keys[row]).iter().any(Option::is_none))
    }
}

/// Rows by group. Groups are numbered as they first appear, rows of a group stay in order.
#[derive(Debug)]
pub(crate) struct Groups {
    rows: Vec<usize>,
    /// Where each group starts, and one more for the end.
    starts: Vec<usize>,
}

impl Groups {
    pub(crate) fn new(grouping: &Grouping, rows: &Rows, store: &dyn Store) -> Result<Self> {
        Self::by(&grouping.of(store)?, rows)
    }

    /// The same of classes, where a row without a value is of none.
    ///
    /// # Errors
    /// Also rows without a value in a column, or whose key is none.
    pub(crate) fn of_classes(grouping: &Grouping, rows: &Rows, store: &dyn Store) -> Result<Self> {
        let keys = grouping.of(store)?;
        let classes = Self::by(&keys, rows)?;
        let all = (0..classes.len()).map(|class| classes.get(class));
        let without: Vec<&[usize]> = all.filter(|of_class| keys.lacks_value(of_class[0])).collect();
        let Some(first) = without.first() else { return Ok(classes) };
        let count = without.iter().map(|of_class| of_class.len()).sum();
        let of = match grouping {
            Grouping::Columns(names) => format!("in {}", names.join(", ")),
            _ => "as their key".to_owned(),
        };
        let cause = format!(
            "of {}, {} no value {of}, and so no class",
            counted(rows.len(), store.hints().thing()),
            counted_with(count, "row", ["has", "have"])
        );
        Err(Error::new(path_of_set(store), cause)
            .row(first[0])
            .choice()
            .hint("take only the rows that have one (rows=)"))
    }

    fn by(keys: &GroupKeys<'_>, rows: &Rows) -> Result<Self> {
        let mut groups: Vec<Vec<usize>> = vec![];
        let mut known: HashMap<String, usize> = HashMap::new();
        for i in 0..rows.len() {
            let row = rows.get(i);
            let key = keys.get(row)?;
            let group = known.get(&*key).copied().unwrap_or_else(|| {
                known.insert(key.into_owned(), groups.len());
                groups.push(vec![]);
                groups.len() - 1
            });
            groups[group].push(row);
        }
        Ok(Self::of(&groups))
    }

    pub(crate) fn of(groups: &[Vec<usize>]) -> Self {
        let mut starts = vec![0];
        starts.extend(groups.iter().scan(0, |end, group| {
            *end += group.len();
            Some(*end)
        }));
        Self { rows: groups.concat(), starts }
    }

    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of a group.
    pub(crate) fn get(&self, group: usize) -> &[usize] {
        &self.rows[self.starts[group]..self.starts[group + 1]]
    }

    /// Rows of all groups, one group after the other.
    pub(crate) fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Where each group starts in [`Self::rows`], and one more for the end.
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }
}

/// One epoch's order of groups.
#[derive(Debug)]
pub(crate) struct GroupedEpoch {
    permutation: Permutation,
    /// Positions at which the groups end.
    ends: Vec<usize>,
}

impl GroupedEpoch {
    pub(crate) fn new(groups: &Groups, seed: u64, epoch: u64) -> Self {
        let permutation = Permutation::new(groups.len(), seed, epoch);
        let mut end = 0;
        let ends = (0..groups.len())
            .map(|i| {
                end += groups.get(permutation.at(i)).len();
                end
            })
            .collect();
        Self { permutation, ends }
    }

    pub(crate) fn row(&self, groups: &Groups, position: usize) -> usize {
        let i = self.ends.partition_point(|&end| end <= position);
        let rows = groups.get(self.permutation.at(i));
        rows[rows.len() - (self.ends[i] - position)]
    }
}
