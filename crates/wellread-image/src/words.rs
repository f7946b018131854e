//! Numbers and lists of things in sentences.

use std::borrow::Borrow;

/// So many things in words, one of them in the singular: `1 image`, `2 images`, `3 batches`.
///
/// ```
/// use wellread_image::words::counted;
///
/// assert_eq!([0, 1, 2].map(|n| counted(n, "image")), ["0 images", "1 image", "2 images"]);
/// ```
pub fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {}", plural(thing)) }
}

/// The same with the verb that goes with it, in the singular and in the plural: `1 image is`, `2 images are`.
pub fn counted_with(count: usize, thing: &str, [one, several]: [&str; 2]) -> String {
    format!("{} {}", counted(count, thing), if count == 1 { one } else { several })
}

/// How many there are, in words: `there is 1 image`, `there are 2 images`.
pub fn there_are(count: usize, thing: &str) -> String {
    format!("there {} {}", if count == 1 { "is" } else { "are" }, counted(count, thing))
}

/// Several of a thing: `images`, `batches`, `processes`, `epochs`.
pub fn plural(thing: &str) -> String {
    let takes_es = ["ch", "sh", "s", "x"].iter().any(|end| thing.ends_with(end)) && !thing.ends_with("epoch");
    let ending = if takes_es { "es" } else { "s" };
    format!("{thing}{ending}")
}

/// Names in a list, at most `most` of them: `a, b, c …` where there are more.
///
/// ```
/// use wellread_image::words::first_few;
///
/// assert_eq!([1, 2, 3].map(|most| first_few(&["a", "b"], most)), ["a …", "a, b", "a, b"]);
/// ```
pub fn first_few<S: Borrow<str>>(names: &[S], most: usize) -> String {
    let more = if names.len() > most { " …" } else { "" };
    format!("{}{more}", names[..names.len().min(most)].join(", "))
}

/// The first names of a list, at most `most` of them, and how many more there are. `between` stands between names, and `and` before
/// the number.
///
/// ```
/// use wellread_image::words::first_and_more;
///
/// assert_eq!(first_and_more(&["a", "b", "c"], 2, [", ", " and"]), "a, b and 1 more");
/// assert_eq!(first_and_more(&["a 1, 2", "b", "c"], 1, ["; ", "; and"]), "a 1, 2; and 2 more");
/// ```
pub fn first_and_more<S: Borrow<str>>(names: &[S], most: usize, [between, and]: [&str; 2]) -> String {
    let first = names[..names.len().min(most)].join(between);
    let more = names.len().saturating_sub(most);
    if more > 0 { format!("{first}{and} {more} more") } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_say_how_many_more_names_there_are() {
        let names = ["a", "b", "c"];
        assert_eq!(
            [1, 2, 3, 4].map(|most| first_and_more(&names, most, ["; ", "; and"])),
            ["a; and 2 more", "a; b; and 1 more", "a; b; c", "a; b; c"]
        );
        assert_eq!(first_and_more(&names.map(str::to_owned), 2, [", ", " and"]), "a, b and 1 more");
        assert_eq!(first_and_more::<String>(&[], 2, [", ", " and"]), "");
    }

    #[test]
    fn lists_end_after_a_few_names() {
        let names = ["a", "b", "c"];
        assert_eq!(
            [0, 1, 2, 3, 4].map(|most| first_few(&names, most)),
            [" …", "a …", "a, b …", "a, b, c", "a, b, c"]
        );
        assert_eq!(first_few::<String>(&[], 2), "");
    }

    #[test]
    fn one_thing_is_in_the_singular() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "image")), ["0 images", "1 image", "2 images"]);
        assert_eq!([1, 3].map(|n| counted(n, "batch")), ["1 batch", "3 batches"]);
        assert_eq!([1, 3].map(|n| counted(n, "epoch")), ["1 epoch", "3 epochs"]);
        assert_eq!([1, 3].map(|n| counted(n, "process")), ["1 process", "3 processes"]);
        assert_eq!([1, 2].map(|n| counted_with(n, "run", ["was", "were"])), ["1 run was", "2 runs were"]);
        assert_eq!([1, 0].map(|n| there_are(n, "row")), ["there is 1 row", "there are 0 rows"]);
    }
}
