//! Sites that the two sides of a join count from other numbers: OME-Zarr mostly from 0, CellProfiler and JUMP from 1.
//!
//! ```text
//!  table:  A01 1, A01 2 ─┐
//!                        ├─▶ site 1 of the table would be joined to the second site of A01: refused
//!  images: A01 0, A01 1 ─┘
//! ```

use super::{Comparison, as_written, key_at};
use crate::surface::option;
use crate::{Error, Result};
use arrow_array::{Array, ArrayRef};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Endings of names of columns that number the sites of a well.
const SITES: [&str; 2] = ["site", "field"];

/// Refuses a join by columns of a table, `path`, whose sites begin at 1 where those of the images begin at 0, or the
/// reverse. More sites must agree once they are counted alike. Values of the other columns that one side alone has do not
/// count, and only `rows` of the table do. `by` is the option that names the columns.
///
/// # Errors
/// Such sites.
pub(super) fn refuse_shifted(
    path: &Path,
    (names, columns, rows): (&[String], &[ArrayRef], impl Iterator<Item = usize>),
    (their_names, theirs): (&[String], &[ArrayRef]),
    compared: &Comparison,
    by: &'static str,
) -> Result<()> {
    let at = site_column(their_names).filter(|&at| at < columns.len() && at < theirs.len());
    let Some(at) = at else { return Ok(()) };
    let others = compared.without(at);
    let own = sites(columns, at, &others, rows);
    let of_images = sites(theirs, at, &others, 0..theirs[at].len());
    let (mut as_they_are, mut from_one, mut from_zero) = (0, 0, 0);
    let mut ranges: [Option<[i64; 2]>; 2] = [None; 2];
    for (key, own) in &own {
        let Some(images) = of_images.get(key) else { continue };
        for &number in own {
            as_they_are += usize::from(images.contains(&number));
            from_one += usize::from(images.contains(&number.saturating_sub(1)));
            from_zero += usize::from(images.contains(&number.saturating_add(1)));
        }
        for (range, numbers) in ranges.iter_mut().zip([own, images]) {
            for &number in numbers {
                let [first, last] = range.unwrap_or([number; 2]);
                *range = Some([first.min(number), last.max(number)]);
            }
        }
    }
    let [Some([first, last]), Some([their_first, their_last])] = ranges else { return Ok(()) };
    let (alike, [of_table, to_images]) = match (first, their_first) {
        (1, 0) => (from_one, ["subtract 1 from", "add 1 to"]),
        (0, 1) => (from_zero, ["add 1 to", "subtract 1 from"]),
        _ => return Ok(()),
    };
    if alike <= as_they_are {
        return Ok(());
    }
    let (name, their_name) = (&names[at], &their_names[at]);
    let cause = format_args!(
        "column {name:?} counts sites from {first} to {last}, and the images' column {their_name:?} from {their_first} to \
         {their_last}: rows would be joined to other sites"
    );
    Err(Error::new(path, cause)
        .hint(format_args!(
            "{of_table} the numbers of the table, or {to_images} those of the images; or name other columns that tell the image ({})",
            option(by)
        ))
        .choice())
}

/// The doubt about a join of cells in which all sites agree, in words. Sites of the images begin at 0, those that have cells at 1,
/// and all would agree as well if the table counted from 1. `has_cells` are the images that have some.
pub(crate) fn doubtful(
    (names, columns): (&[String], &[ArrayRef]),
    compared: &Comparison,
    has_cells: &[bool],
) -> Option<String> {
    let at = site_column(names).filter(|&at| at < columns.len())?;
    let others = compared.without(at);
    let all = sites(columns, at, &others, 0..columns[at].len());
    let rows = (0..columns[at].len().min(has_cells.len())).filter(|&row| has_cells[row]);
    let with_cells = sites(columns, at, &others, rows);
    let first = |sites: &HashMap<String, HashSet<i64>>| sites.values().flatten().copied().min();
    if (first(&all), first(&with_cells)) != (Some(0), Some(1)) {
        return None;
    }
    let is_open = with_cells.iter().all(|(key, own)| {
        all.get(key).is_some_and(|all| own.iter().all(|site| all.contains(&site.saturating_sub(1))))
    });
    is_open.then(|| {
        format!(
            "no cell is of site 0, where column {:?} of the images begins (if the table counts sites from 1, its cells \
             are of others)",
            names[at]
        )
    })
}

/// The column that numbers the sites of a well.
fn site_column(names: &[String]) -> Option<usize> {
    let is_site = |name: &String| SITES.iter().any(|site| name.to_ascii_lowercase().ends_with(site));
    names.iter().position(is_site)
}

/// The numbers in column `at` by the values of the other columns, which are compared as `others` says.
fn sites(
    columns: &[ArrayRef],
    at: usize,
    others: &Comparison,
    rows: impl Iterator<Item = usize>,
) -> HashMap<String, HashSet<i64>> {
    let rest = columns.iter().enumerate().filter(|(column, _)| *column != at);
    let rest: Vec<ArrayRef> = rest.map(|(_, column)| Arc::clone(column)).collect();
    let mut found: HashMap<String, HashSet<i64>> = HashMap::new();
    for row in rows {
        let number = key_at(&columns[at], row).and_then(|value| as_written(&value).parse().ok());
        if let (Some(number), Some(key)) = (number, others.key(&rest, row)) {
            found.entry(key).or_default().insert(number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, Int64Array, StringArray};

    /// Wells and sites of a table and of images.
    fn refused(table: &[(&str, f64)], images: &[(&str, i64)]) -> Option<String> {
        let own: [ArrayRef; 2] = [
            Arc::new(table.iter().map(|(well, _)| Some(*well)).collect::<StringArray>()),
            Arc::new(Float64Array::from(table.iter().map(|(_, site)| *site).collect::<Vec<_>>())),
        ];
        let theirs: [ArrayRef; 2] = [
            Arc::new(images.iter().map(|(well, _)| Some(*well)).collect::<StringArray>()),
            Arc::new(Int64Array::from(images.iter().map(|(_, site)| *site).collect::<Vec<_>>())),
        ];
        let names = ["Well", "Site"].map(str::to_owned);
        let their_names = ["Metadata_Well", "Metadata_Site"].map(str::to_owned);
        let compared = Comparison::of(Path::new("t"), (&names, &own), (&their_names, &theirs)).unwrap();
        let table = (&names[..], &own[..], 0..table.len());
        refuse_shifted(Path::new("t"), table, (&their_names, &theirs), &compared, "cells.by")
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn sites_that_begin_at_other_numbers_are_refused() {
        let images = [("A01", 0), ("A01", 1), ("B02", 0), ("B02", 1)];
        let error = refused(&[("A01", 1.0), ("A01", 2.0), ("C03", 0.0)], &images).unwrap();
        for words in [
            "\"Site\" counts sites from 1 to 2, and the images' column \"Metadata_Site\" from 0 to 1",
            "subtract 1 from the numbers of the table",
        ] {
            assert!(error.contains(words), "{error}");
        }
        let from_one = [("A01", 1), ("A01", 2), ("A01", 3)];
        let error = refused(&[("A01", 0.0), ("A01", 1.0), ("A01", 2.0)], &from_one).unwrap();
        assert!(
            error.contains("from 0 to 2") && error.contains("add 1 to the numbers of the table"),
            "{error}"
        );
        // One site of each well: nothing would be joined.
        assert!(refused(&[("A01", 1.0), ("B02", 1.0)], &[("A01", 0), ("B02", 0)]).is_some());
    }

    /// Wells and sites of images, and which of them have cells.
    fn doubted(images: &[(&str, i64, bool)]) -> Option<String> {
        let columns: [ArrayRef; 2] = [
            Arc::new(images.iter().map(|(well, ..)| Some(*well)).collect::<StringArray>()),
            Arc::new(Int64Array::from(images.iter().map(|(_, site, _)| *site).collect::<Vec<_>>())),
        ];
        let names = ["Metadata_Well", "Metadata_Site"].map(str::to_owned);
        let compared = Comparison::of(Path::new("t"), (&names, &columns), (&names, &columns)).unwrap();
        let has_cells: Vec<bool> = images.iter().map(|(.., has)| *has).collect();
        doubtful((&names, &columns), &compared, &has_cells)
    }

    #[test]
    fn sites_without_the_first_one_are_doubted() {
        let of = |has: [bool; 3]| [("A01", 0, has[0]), ("A01", 1, has[1]), ("A01", 2, has[2])];
        for has in [[false, true, true], [false, true, false]] {
            let said = doubted(&of(has)).unwrap();
            assert!(said.contains("no cell is of site 0, where column \"Metadata_Site\""), "{said}");
        }
        for has in [[true, true, true], [true, false, false], [false, false, true], [false; 3]] {
            assert_eq!(doubted(&of(has)), None, "{has:?}");
        }
        // Another well has a cell of the first site, or no image of it.
        let first = |site: i64, has: bool| [&of([false, true, true])[..], &[("B02", site, has)]].concat();
        assert_eq!(doubted(&first(0, true)), None);
        assert_eq!(doubted(&first(3, true)), None);
        assert!(doubted(&first(3, false)).is_some());
        assert_eq!(doubted(&[("A01", 1, true), ("A01", 2, true)]), None);
    }

    #[test]
    fn sites_that_are_not_there_are_no_other_count() {
        let images = [("A01", 0), ("A01", 1), ("A01", 2)];
        // No cell is in the first site, and one site is not in the set.
        assert_eq!(refused(&[("A01", 1.0), ("A01", 2.0)], &images), None);
        assert_eq!(refused(&[("A01", 0.0), ("A01", 1.0), ("A01", 3.0)], &images), None);
        assert_eq!(refused(&[("A01", 1.0), ("A01", 2.0)], &[("A01", 0), ("A01", 2)]), None);
        assert_eq!(refused(&[("B02", 1.0)], &images), None);
        assert_eq!(refused(&[("A01", 2.0), ("A01", 3.0)], &images), None);
    }
}
