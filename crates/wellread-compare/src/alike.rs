//! Two files of one table each, whose names are not those of known tables: they are compared where their columns fit.
//!
//! ```text
//!  table of A, table of B ─▶ the same keys and headline? ─▶ both under one name, else the names of files that are known
//! ```

use crate::results::{Results, file_names, is_known};
use crate::series;
use wellread_report::Table;

/// Both sides with their tables under one name: the known one, else that of B. `None` where they are compared as they are.
pub(crate) fn under_one_name(a: &Results, b: &Results) -> Option<[Results; 2]> {
    let ([of_a], [of_b]) = (a.tables.as_slice(), b.tables.as_slice()) else { return None };
    let (name_a, name_b) = (of_a.name(), of_b.name());
    let are_known = is_known(name_a) && is_known(name_b);
    if name_a == name_b || are_known || !are_alike(of_a, of_b) {
        return None;
    }
    let name = if is_known(name_a) { name_a } else { name_b };
    Some([a, b].map(|side| renamed(side, name)))
}

/// Whether tables have configurations of the same columns, and the same headline.
fn are_alike(a: &Table, b: &Table) -> bool {
    let (of_a, of_b) = (series::keys(a, a), series::keys(b, b));
    // A key with several values that one side lacks tells all of its configurations apart.
    let are_of_both = series::keys(a, b).iter().all(|key| of_a.contains(key) && of_b.contains(key));
    let headline = |table: &Table| {
        let quantities = series::quantities(table, table, &[]).unwrap_or_default();
        quantities.into_iter().next().map(|quantity| quantity.column)
    };
    let own = headline(a);
    of_a.iter().any(|key| of_b.contains(key)) && are_of_both && own.is_some() && own == headline(b)
}

fn renamed(side: &Results, name: &str) -> Results {
    let mut side = side.clone();
    for table in &mut side.tables {
        if let Some(floor) = side.noise_floors.remove(table.name()) {
            side.noise_floors.insert(name.to_owned(), floor);
        }
        *table = std::mem::take(table).named(name);
    }
    side
}

/// The names of the tables of both sides.
pub(crate) fn names(a: &Results, b: &Results) -> String {
    let list = |results: &Results| results.tables.iter().map(Table::name).collect::<Vec<_>>().join(", ");
    format!("{} in A and {} in B", list(a), list(b))
}

/// The error of two sides without a table in common.
pub(crate) fn nothing_in_common(a: &Results, b: &Results) -> String {
    format!(
        "nothing to compare: {} and {} have no table in common; there are {} (hint: give results of one benchmark. A file is told by \
         its name or by its columns; known names are {})",
        a.label,
        b.label,
        names(a, b),
        file_names()
    )
}
