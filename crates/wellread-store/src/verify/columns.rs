//! Reading the columns beside the images, some at a time: what cannot be read is a problem, as an image is.

use super::{Kind, Problem, Verification, unreadable};
use crate::{Result, Store};

/// Columns that are read at once: a table of profiles has thousands, and all of them may not fit into memory.
const COLUMNS_AT_ONCE: usize = 64;

/// Reads the columns beside the images of `store`, whose values are compared with nothing. Their number, and those that cannot be
/// read, come into `outcome`.
pub fn verify_columns(store: &dyn Store, outcome: &mut Verification) {
    let names = store.hints().feature_names();
    let read = |names: &[String]| -> Result<()> { store.hints().features(names).map(drop) };
    outcome.columns = names.len();
    for some in names.chunks(COLUMNS_AT_ONCE) {
        if read(some).is_ok() {
            continue;
        }
        for name in some {
            if let Err(error) = read(std::slice::from_ref(name)) {
                outcome.problems.push(Problem {
                    row: None,
                    name: Some(name.clone()),
                    kind: Kind::Column,
                    expected_row: None,
                    first_difference: None,
                    problem: format!("the column cannot be read: {}", unreadable(store.path(), &error)),
                });
            }
        }
    }
}
