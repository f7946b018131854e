//! Rows split into disjoint parts, such as training, validation and test: by a keyed hash of the row's name, or
//! of its group.
//!
//! Which part a row belongs to depends on its own name and the seed only. So a row stays in its part when others
//! are appended, left out or stored in another order or format. A group, a well say, lies in one part.
//!
//! A set that is put together with others may get its name in front of its images' names. By names they then lie in other parts
//! than in the set alone, so groups serve there.

use super::Dataset;
use crate::draw::{Digest, key};
use crate::order::Grouping;
use wellread_store::row_location::path_of_set;
use wellread_store::{Error, Result};

impl Dataset {
    /// Splits the rows into parts of about these fractions of all, by a hash of each row's name. With a
    /// grouping it hashes the row's group: rows of a group are in one part. Rows stay in order. The rest of the
    /// fractions to 1 is in no part.
    ///
    /// ```
    /// # use wellread_image::{PixelType, Shape};
    /// use wellread_loader::{Dataset, Grouping, Loader, MemoryStore};
    /// # let mut store = MemoryStore::new("example");
    /// # for i in 0..400 {
    /// #     store.push(format!("well{}_{i}", i / 4), Shape::plane(1, 1), PixelType::U8, vec![0])?;
    /// # }
    /// # let dataset = Dataset::from_store(Box::new(store));
    /// let parts = dataset.split(&[0.8, 0.1, 0.1], Some(&Grouping::name_prefix("_")), 42)?;
    /// let training = Loader::builder(&dataset).rows(parts[0].clone()).shuffle(1).build()?;
    /// # assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), 400);
    /// # Ok::<(), wellread_store::Error>(())
    /// ```
    ///
    /// Parts are as large as chance makes them: with 1,000 names or groups, a tenth is 10 % ± 1 %.
    ///
    /// Names of sets that are put together may begin with the name of their set
    /// ([`wellread_store::Hints::names_begin_with_parts`]). Without a grouping, a row's part then differs from that of its set alone.
    ///
    /// # Errors
    /// Fractions that are not positive or exceed 1 together; names or columns that cannot be read.
    pub fn split(&self, fractions: &[f64], by: Option<&Grouping>, seed: u64) -> Result<Vec<Vec<usize>>> {
        let store = self.store();
        let sum: f64 = fractions.iter().sum();
        // Rounding of 0.7 + 0.2 + 0.1 is forgiven.
        if fractions.is_empty() || !fractions.iter().all(|f| *f > 0.0) || sum.is_nan() || sum > 1.0 + 1e-9 {
            let cause = format_args!("cannot split into fractions {fractions:?}");
            return Err(Error::new(path_of_set(store), cause)
                .hint("give positive numbers that are at most 1 together, such as 0.8, 0.1, 0.1"));
        }
        // Where each part ends, in parts of 2^64; a sum of 1 ends after the last hash.
        let ends: Vec<u128> = fractions
            .iter()
            .scan(0.0, |end, fraction| {
                *end += fraction;
                Some(if *end > 1.0 - 1e-9 { 1 << 64 } else { (*end * 2f64.powi(64)) as u128 })
            })
            .collect();
        let keys = by.map(|grouping| grouping.of(store)).transpose()?;
        let mut parts = vec![vec![]; fractions.len()];
        for row in 0..store.len() {
            let mut digest = Digest::new(key([seed, 0x0073_706c_6974, 0]));
            match &keys {
                Some(keys) => digest.text(&keys.get(row)?),
                None => digest.text(&store.name(row)?),
            }
            let hash = u128::from(digest.finish());
            if let Some(part) = ends.iter().position(|&end| hash < end) {
                parts[part].push(row);
            }
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;
    use std::collections::HashSet;
    use wellread_image::{PixelType, Shape};

    fn dataset(names: impl Iterator<Item = String>) -> Dataset {
        let mut store = MemoryStore::new("split");
        for name in names {
            store.push(name, Shape::plane(1, 1), PixelType::U8, vec![0]).unwrap();
        }
        Dataset::from_store(Box::new(store))
    }

    #[test]
    fn parts_are_disjoint_complete_and_of_their_size() {
        let all = dataset((0..10_000).map(|i| format!("image {i}")));
        let parts = all.split(&[0.8, 0.1, 0.1], None, 1).unwrap();
        let rows: HashSet<usize> = parts.iter().flatten().copied().collect();
        assert_eq!((rows.len(), parts.iter().map(Vec::len).sum::<usize>()), (10_000, 10_000));
        // Six standard deviations of binomial counts.
        for (part, expected, deviation) in
            [(&parts[0], 8000, 40), (&parts[1], 1000, 30), (&parts[2], 1000, 30)]
        {
            assert!(part.len().abs_diff(expected) < 6 * deviation, "{}", part.len());
            assert!(part.is_sorted());
        }
        assert_ne!(all.split(&[0.8, 0.1, 0.1], None, 2).unwrap(), parts);
        // A part of the whole alone is the same part.
        assert_eq!(all.split(&[0.8], None, 1).unwrap()[0], parts[0]);
        // Pinned: a change here would mix everyone's training and test sets.
        assert_eq!(parts[1][..4], PINNED);
    }

    const PINNED: [usize; 4] = [10, 31, 32, 47];

    #[test]
    fn appending_and_reordering_move_no_row_to_another_part() {
        let name = |i: usize| format!("image {i}");
        let few = dataset((0..500).map(name)).split(&[0.5, 0.5], None, 7).unwrap();
        let more = dataset((0..900).map(name)).split(&[0.5, 0.5], None, 7).unwrap();
        let backwards = dataset((0..500).rev().map(name)).split(&[0.5, 0.5], None, 7).unwrap();
        for part in 0..2 {
            let old: Vec<usize> = more[part].iter().copied().filter(|&row| row < 500).collect();
            assert_eq!(old, few[part]);
            let turned: Vec<usize> = backwards[part].iter().rev().map(|row| 499 - row).collect();
            assert_eq!(turned, few[part]);
        }
    }

    #[test]
    fn groups_lie_in_one_part() {
        let wells = dataset((0..3000).map(|i| format!("well{}_{i}", i % 300)));
        let parts = wells.split(&[0.6, 0.4], Some(&Grouping::name_prefix("_")), 3).unwrap();
        let wells: Vec<HashSet<usize>> =
            parts.iter().map(|part| part.iter().map(|row| row % 300).collect()).collect();
        assert!(wells[0].is_disjoint(&wells[1]));
        assert_eq!(wells[0].len() + wells[1].len(), 300);
        assert!(wells[0].len().abs_diff(180) < 52);
    }

    #[test]
    fn fractions_that_make_no_sense_are_refused() {
        let few = dataset((0..3).map(|i| i.to_string()));
        for fractions in [&[][..], &[0.0], &[-0.1, 0.5], &[f64::NAN], &[0.9, 0.2], &[f64::INFINITY]] {
            let text = few.split(fractions, None, 0).unwrap_err().to_string();
            assert!(text.contains("cannot split"), "{text}");
        }
        assert_eq!(few.split(&[0.7, 0.2, 0.1], None, 0).unwrap().iter().map(Vec::len).sum::<usize>(), 3);
    }
}
