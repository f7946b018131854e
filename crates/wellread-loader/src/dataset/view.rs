//! Sets made of other sets: some rows of one, several one after the other.
//!
//! ```text
//!  set ──select(rows)──▶ Subset of its store, caches included
//!  sets ──concat───────▶ Concat of their stores, caches included
//! ```
//!
//! Nothing is read and nothing copied. A cache of such a set lies over it, and those of the sets beneath stay theirs.

use super::{Dataset, View, options_key_of};
use crate::cache::{Cache, CacheReport};
use crate::draw::{Digest, key};
use std::sync::Arc;
use wellread_store::cells::CellsReport;
use wellread_store::colors::Colors;
use wellread_store::concat::Concat;
use wellread_store::row_location::path_of_set;
use wellread_store::subset::Subset;
use wellread_store::words::{counted, there_are};
use wellread_store::{Error, OpenOptions, Result, RowInfo, SetPart, Store};

impl View {
    /// The same, of sets that are opened anew.
    pub fn reopened(&self) -> Result<Dataset> {
        Ok(match self {
            Self::Rows(set, rows) => Dataset::of_rows(set.reopened()?, rows.clone()),
            Self::Sets(sets) => {
                Dataset::of_sets(sets.iter().map(Dataset::reopened).collect::<Result<Vec<_>>>()?)
            }
        })
    }

    pub fn sets(&self) -> &[Dataset] {
        match self {
            Self::Rows(set, _) => std::slice::from_ref(set),
            Self::Sets(sets) => sets,
        }
    }

    pub fn cells_report(&self) -> Option<&CellsReport> {
        match self {
            Self::Rows(set, _) => set.cells_report(),
            Self::Sets(_) => None,
        }
    }

    /// See [`Dataset::kept_info`]; `whole` is the set that is made.
    pub fn kept_info(&self, whole: &Dataset, row: usize) -> Result<RowInfo> {
        whole.check(row)?;
        match self {
            Self::Rows(set, rows) => set.kept_info(rows[row]),
            Self::Sets(sets) => {
                let mut left = row;
                for set in sets {
                    if left < set.len() {
                        return set.kept_info(left);
                    }
                    left -= set.len();
                }
                whole.row_info(row)
            }
        }
    }

    pub fn kept_rows(&self) -> usize {
        self.sets().iter().map(Dataset::kept_rows).fold(0, usize::saturating_add)
    }

    pub fn kept_at_once(&self) -> usize {
        self.sets().iter().map(Dataset::kept_at_once).max().unwrap_or(usize::MAX)
    }

    pub fn is_cached(&self) -> bool {
        self.sets().iter().any(Dataset::is_cached)
    }

    pub fn caches(&self) -> Vec<Cache> {
        self.sets().iter().flat_map(Dataset::caches).collect()
    }

    /// See [`Dataset::made_by`].
    pub fn made_by(&self) -> String {
        match self {
            Self::Rows(set, rows) => {
                let mut digest = Digest::new(key([0x0072_6f77_7300, 0, 0]));
                digest.numbers(rows.iter().map(|&row| row as u64));
                format!("rows {:016x} of ({})", digest.finish(), set.made_by())
            }
            Self::Sets(sets) => {
                let each: Vec<String> = sets.iter().map(Dataset::made_by).collect();
                format!("({})", each.join(") and ("))
            }
        }
    }

    /// The sums of what the caches beneath say.
    pub fn cache_report(&self) -> CacheReport {
        let mut sum = CacheReport::default();
        for report in self.sets().iter().map(Dataset::cache_report) {
            sum.bytes += report.bytes;
            sum.images += report.images;
            sum.hits += report.hits;
            sum.misses += report.misses;
        }
        sum
    }
}

impl Dataset {
    /// Opens several paths as one set: files, folders, patterns such as `plates/*.parquet`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_all(paths: Vec<std::path::PathBuf>, options: &OpenOptions) -> Result<Self> {
        let options = options.clone();
        let options_key = options_key_of(&options);
        Ok(Self { options_key, ..Self::from_fn(move || wellread_store::open_all(&paths, &options))? })
    }

    /// As [`Self::open_all`], of pictures as red, green and blue: see [`Colors`].
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_in_color(paths: Vec<std::path::PathBuf>, options: &OpenOptions) -> Result<Self> {
        let options = options.clone();
        // Other pixels of the same files: caches tell them apart by this.
        let options_key = Some(format!("in color {options:?}").into());
        let open = move || -> Result<Box<dyn Store>> {
            Ok(Box::new(Colors::new(wellread_store::open_all(&paths, &options)?)))
        };
        Ok(Self { options_key, ..Self::from_fn(open)? })
    }

    /// Some rows of this set, in this order, as a set; a row given twice comes twice. Nothing is read.
    ///
    /// ```
    /// # use wellread_image::{PixelType, Shape};
    /// # use wellread_loader::{Dataset, MemoryStore};
    /// # let mut store = MemoryStore::new("example");
    /// # for name in ["a", "b", "c"] {
    /// #     store.push(name, Shape::plane(1, 1), PixelType::U8, vec![0])?;
    /// # }
    /// # let dataset = Dataset::from_store(Box::new(store));
    /// let two = dataset.select([2, 0])?;
    /// assert_eq!((two.len(), two.name(0)?.as_str()), (2, "c"));
    /// # Ok::<(), wellread_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// A row that there is not.
    pub fn select(&self, rows: impl Into<Vec<usize>>) -> Result<Self> {
        let rows = rows.into();
        if let Some(row) = rows.iter().find(|&&row| row >= self.len()) {
            let there = there_are(self.len(), self.store().hints().thing());
            return Err(Error::new(
                path_of_set(self.store()),
                format_args!("row {row} was selected, but {there}"),
            )
            .hint("rows are counted from 0")
            .choice());
        }
        Ok(Self::of_rows(self.clone(), rows))
    }

    /// Whether it is some rows of a set, as a filter leaves them.
    pub(crate) fn is_of_rows(&self) -> bool {
        self.view.as_deref().is_some_and(|view| matches!(view, View::Rows(..)))
    }

    /// The rows that hold an image, as a set: a table may have nulls in their place. Looks at every row's shape.
    ///
    /// # Errors
    /// The error of a row beside that it is null.
    pub fn without_nulls(&self) -> Result<Self> {
        let rows = Subset::not_null(self.store())?;
        if rows.len() == self.len() { Ok(self.clone()) } else { self.select(rows) }
    }

    /// These sets as one: rows of the first, then of the next. They may be of several formats, and images of several shapes, as within a
    /// set; a column that some lack is null there.
    ///
    /// # Errors
    /// No set.
    pub fn concat(sets: &[Self]) -> Result<Self> {
        match sets {
            [] => Err(Error::new("", "no set was given to put together").hint("give at least one").choice()),
            [set] => Ok(set.clone()),
            sets => Ok(Self::of_sets(sets.to_vec())),
        }
    }

    fn of_rows(set: Self, rows: Vec<usize>) -> Self {
        let store = Subset::of(Arc::clone(&set.store), rows.clone());
        Self::viewed(Arc::new(store), View::Rows(set, rows))
    }

    fn of_sets(sets: Vec<Self>) -> Self {
        let store = Concat::of(sets.iter().map(|set| Arc::clone(&set.store)).collect());
        Self::viewed(Arc::new(store), View::Sets(sets))
    }

    fn viewed(store: Arc<dyn Store>, view: View) -> Self {
        Self { view: Some(Arc::new(view)), ..Self::bare(store) }
    }

    /// The sets that this one is put together from, with their rows: none where it is one set. Some rows of such a set
    /// ([`Self::select`]) and cells cut out of its images ([`Self::cells`]) stay of their parts.
    pub fn parts(&self) -> Vec<SetPart> {
        self.store().hints().set_parts()
    }

    /// A weight for each row, so that the parts ([`Self::parts`]) are drawn in these shares whatever the numbers of their rows: for
    /// [`Order::Weighted`](crate::Order::Weighted). Within a part each row is as likely as any other.
    ///
    /// # Errors
    /// Another number of shares than of parts, a share that is negative or not finite, none above 0.
    pub fn part_weights(&self, shares: &[f64]) -> Result<Vec<f64>> {
        let parts = self.parts();
        let refuse = |cause: String| Error::new(path_of_set(self.store()), cause).choice();
        if parts.len() != shares.len() {
            let cause =
                format!("{} given for {}", counted(shares.len(), "share"), counted(parts.len(), "part"));
            return Err(refuse(cause).hint(if parts.is_empty() {
                "use it on a set made of several (a + b)"
            } else {
                "give one for each set that was put together"
            }));
        }
        if let Some(bad) = shares.iter().find(|share| !(share.is_finite() && **share >= 0.0)) {
            return Err(refuse(format!("{bad} is no share of a part")).hint("give 0 or a positive number"));
        }
        let has_rows = |(part, share): (&SetPart, &f64)| part.count() > 0 && *share > 0.0;
        if !parts.iter().zip(shares).any(has_rows) {
            return Err(refuse("no part with images has a share above 0".to_owned()));
        }
        let mut weights = vec![0.0; self.len()];
        for (part, share) in parts.iter().zip(shares) {
            let each = share / part.count().max(1) as f64;
            for rows in part.rows.clone() {
                weights[rows].fill(each);
            }
        }
        Ok(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;
    use wellread_image::{PixelType, Shape};

    fn set(name: &str, images: &[&str]) -> Dataset {
        let mut store = MemoryStore::new(name);
        for (i, image) in images.iter().enumerate() {
            store.push(*image, Shape::plane(1, 1), PixelType::U8, vec![i as u8]).unwrap();
        }
        Dataset::from_store(Box::new(store))
    }

    fn part(name: &str, rows: &[(usize, usize)]) -> SetPart {
        SetPart { name: name.to_owned(), rows: rows.iter().map(|&(start, end)| start..end).collect() }
    }

    #[test]
    fn views_of_views_read_the_rows_that_they_name() {
        let [a, b] = [set("P1", &["x", "y"]), set("P2", &["x", "z", "w"])];
        let both = Dataset::concat(&[a.clone(), b]).unwrap();
        let names: Vec<String> = (0..5).map(|row| both.name(row).unwrap()).collect();
        assert_eq!(names, ["P1/x", "P1/y", "P2/x", "P2/z", "P2/w"]);
        assert_eq!(both.parts()[1], part("P2", &[(2, 5)]));
        let some = both.select([4, 0, 3]).unwrap();
        let are_named_by_parts = |set: &Dataset| set.store().hints().names_begin_with_parts();
        assert!(are_named_by_parts(&both) && are_named_by_parts(&some) && !are_named_by_parts(&a));
        let read = |set: &Dataset| (0..set.len()).map(|row| set.read(row).unwrap().1[0]).collect::<Vec<_>>();
        assert_eq!(read(&some), [2, 0, 1]);
        assert_eq!(read(&some.select([2, 2]).unwrap()), [1, 1]);
        assert_eq!(read(&some.reopened().unwrap()), [2, 0, 1]);
        let cached = some.with_cache(&Cache::Memory { limit: 1 << 20 }).unwrap();
        assert!(cached.is_cached() && are_named_by_parts(&cached));
        // One set with images has nothing beside it to be told apart from. A set of sets keeps the names that it has.
        let alone = Dataset::concat(&[a.clone(), set("none", &[])]).unwrap();
        assert_eq!((alone.name(0).unwrap().as_str(), are_named_by_parts(&alone)), ("x", false));
        let nested = Dataset::concat(&[both.clone(), set("none", &[])]).unwrap();
        assert_eq!((nested.name(0).unwrap().as_str(), are_named_by_parts(&nested)), ("P1/x", true));
        assert_eq!(read(&cached), [2, 0, 1]);
        assert_eq!(read(&cached.reopened().unwrap()), [2, 0, 1]);
        assert_eq!(cached.cache_report().images, 3);
        assert!(both.select([5]).unwrap_err().to_string().contains("row 5 was selected"));
        assert!(Dataset::concat(&[]).is_err());
        assert!(a.parts().is_empty());
    }

    #[test]
    fn parts_are_drawn_in_their_shares() {
        let both = Dataset::concat(&[set("a", &["1"]), set("b", &["2", "3", "4", "5"])]).unwrap();
        assert_eq!(both.part_weights(&[1.0, 2.0]).unwrap(), [1.0, 0.5, 0.5, 0.5, 0.5]);
        // Some rows stay of their parts, also of one of which nothing is left.
        let some = both.select([4, 0, 2]).unwrap();
        assert_eq!(some.parts(), [part("a", &[(1, 2)]), part("b", &[(0, 1), (2, 3)])]);
        assert_eq!(some.part_weights(&[1.0, 1.0]).unwrap(), [0.5, 1.0, 0.5]);
        let cached = some.with_cache(&Cache::Memory { limit: 1 << 20 }).unwrap();
        assert_eq!(cached.reopened().unwrap().part_weights(&[1.0, 1.0]).unwrap(), [0.5, 1.0, 0.5]);
        let alone = both.select([1, 2]).unwrap();
        assert_eq!(alone.parts(), [part("a", &[]), part("b", &[(0, 2)])]);
        assert_eq!(alone.part_weights(&[1.0, 3.0]).unwrap(), [1.5, 1.5]);
        assert!(alone.part_weights(&[1.0, 0.0]).unwrap_err().to_string().contains("no part with images"));
        let single = set("a", &["1"]).part_weights(&[1.0]).unwrap_err().to_string();
        assert!(
            single.contains("1 share given for 0 parts (hint: use it on a set made of several (a + b))"),
            "{single}"
        );
        for shares in [&[1.0][..], &[1.0, -1.0], &[f64::NAN, 1.0], &[0.0, 0.0]] {
            assert!(both.part_weights(shares).unwrap_err().is_choice(), "{shares:?}");
        }
    }
}
