//! Which configurations are left out first where there is no time for all.
//!
//! ```text
//!  keys of every variant ─▶ how much each tells ─▶ its place among those of its format, framework and reader
//! ```

use super::measurement::Keys;

/// The operations that storage is read for, the most telling first: without these a short run would have no
/// figures of reading.
const OPERATIONS: [&str; 5] = ["read_all", "read_random", "write", "open", "read_files"];

/// How little a configuration tells: reading whole from the page cache tells most, cold files come after all else.
fn weight(keys: &Keys) -> usize {
    let of = |column: &str| keys.iter().find(|(name, _)| *name == column).map(|(_, cell)| cell.text());
    let operation = of("operation").and_then(|name| OPERATIONS.iter().position(|known| *known == name));
    let cold = of("cache").is_some_and(|cache| cache == "cold" || cache == "direct");
    operation.unwrap_or(0) + if cold { OPERATIONS.len() } else { 0 }
}

/// Which configurations are the last to be left out. The most telling of each format, or framework and reader, comes
/// first, then the second, so that the same formats are in every table.
pub(super) fn ranks(keys: &[(Keys, bool)]) -> Vec<usize> {
    let mut seen: Vec<(Vec<String>, usize)> = Vec::new();
    let mut rank = |(keys, _): &(Keys, bool)| {
        let of = ["format", "framework", "loader"];
        let who: Vec<String> =
            keys.iter().filter(|(name, _)| of.contains(name)).map(|(_, cell)| cell.text()).collect();
        if let Some((_, count)) = seen.iter_mut().find(|(known, _)| *known == who) {
            *count += 1;
            return *count;
        }
        seen.push((who, 0));
        0
    };
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&at| weight(&keys[at].0));
    let mut ranks = vec![0; keys.len()];
    for at in order {
        ranks[at] = rank(&keys[at]);
    }
    ranks
}

#[cfg(test)]
mod tests;
