//! The values of some columns in one row as one text, for people and for maps by key.
//!
//! ```text
//!  values of a row, each a text or null ──key_of──▶ key ──key_values──▶ the same values
//!                                                    └──key_in_words──▶ for people
//! ```
//!
//! Equal values have equal keys, and others have other keys, whatever letters are in them.

/// The text of [`super::keys`] for these values, of which `None` is a null.
pub fn key_of(values: &[Option<String>]) -> String {
    // Separated by what no name has, so that "a", "bc" differs from "ab", "c".
    let text = |value: &Option<String>| value.as_deref().map_or_else(|| NULL.to_owned(), escaped);
    values.iter().map(text).collect::<Vec<_>>().join(SEPARATOR)
}

/// The values that a text of [`super::keys`] is made of.
pub fn key_values(key: &str) -> Vec<Option<String>> {
    key.split(SEPARATOR).map(|value| (value != NULL).then(|| unescaped(value))).collect()
}

/// A text of [`super::keys`] for people.
pub fn key_in_words(key: &str) -> String {
    let values = key_values(key).into_iter().map(|value| value.unwrap_or_else(|| "null".to_owned()));
    values.collect::<Vec<_>>().join(", ")
}

/// The mark of a null in [`super::keys`].
const NULL: &str = "\0";
/// The separator between the values of several columns in [`super::keys`].
const SEPARATOR: &str = "\u{1f}";
/// The escape in front of a letter that stands for [`SEPARATOR`], [`NULL`] or itself in a value.
const ESCAPE: char = '\u{1b}';

/// A value in which neither [`SEPARATOR`] nor [`NULL`] is.
fn escaped(value: &str) -> String {
    if !value.contains(['\u{1f}', '\0', ESCAPE]) {
        return value.to_owned();
    }
    let mut out = String::with_capacity(value.len() + 1);
    for c in value.chars() {
        match c {
            '\u{1f}' => out.extend([ESCAPE, 's']),
            '\0' => out.extend([ESCAPE, 'n']),
            ESCAPE => out.extend([ESCAPE, 'e']),
            c => out.push(c),
        }
    }
    out
}

/// The value that [`escaped`] was given.
fn unescaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            ESCAPE => match chars.next() {
                Some('s') => '\u{1f}',
                Some('n') => '\0',
                _ => ESCAPE,
            },
            c => c,
        });
    }
    out
}

/// Values, of which none is null, as one text.
pub(crate) fn joined(values: &[String]) -> String {
    values.iter().map(|value| escaped(value)).collect::<Vec<_>>().join(SEPARATOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_apart() {
        let values = [Some("a".to_owned()), None, Some(String::new())];
        assert_eq!(key_values(&key_of(&values)), values);
        // Also where a value holds what stands between them.
        let odd = [Some("a\u{1f}b\u{1b}s".to_owned()), Some("\0".to_owned()), None];
        assert_eq!(key_values(&key_of(&odd)), odd);
        assert_eq!(key_in_words(&key_of(&values[..2])), "a, null");
    }
}
