//! Names that resemble one that is not there.

use wellread_report::words::first_and_more;

/// Most names that a message lists.
const MAX_LISTED_NAMES: usize = 8;

/// The names that resemble `name` most, nearest first: at most `most`, none that is altogether different.
pub fn nearest<'n>(name: &str, names: &'n [String], most: usize) -> Vec<&'n str> {
    let mut ranked: Vec<(usize, &str)> = names
        .iter()
        .map(|other| (strsim::levenshtein(&name.to_lowercase(), &other.to_lowercase()), other.as_str()))
        .filter(|(distance, other)| {
            // A part of a long name, such as the end of a branch's, counts as near.
            let contained = !name.is_empty() && (other.contains(name) || name.contains(other));
            contained || *distance <= name.chars().count().max(other.chars().count()) / 2
        })
        .collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked.dedup_by_key(|(_, other)| *other);
    ranked.into_iter().take(most).map(|(_, other)| other).collect()
}

/// The names for a message: all when they are few, else the nearest and how many more there are.
pub fn listed(name: &str, names: &[String]) -> String {
    if names.len() <= MAX_LISTED_NAMES {
        return names.join(", ");
    }
    let near = nearest(name, names, MAX_LISTED_NAMES);
    let others = names.iter().map(String::as_str).filter(|other| !near.contains(other));
    let nearest_first: Vec<&str> = near.iter().copied().chain(others).collect();
    first_and_more(&nearest_first, MAX_LISTED_NAMES, [", ", " and"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first_and_strangers_not_at_all() {
        let names: Vec<String> = ["main", "feature/fast-loader", "maine", "zzzzzzzz"].map(Into::into).into();
        assert_eq!(nearest("mian", &names, 3), ["main"]);
        assert_eq!(nearest("fast-loader", &names, 3), ["feature/fast-loader"]);
        let many: Vec<String> = (0..20).map(|i| format!("experiment{i}")).collect();
        let text = listed("experiment17", &many);
        assert!(text.starts_with("experiment17, ") && text.ends_with(" and 12 more"), "{text}");
    }
}
