//! Numbers of things in sentences.

/// So many things in words, one of them in the singular: `1 image`, `2 images`, `3 batches`.
pub fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ if thing.ends_with("ch") || thing.ends_with('s') => format!("{count} {thing}es"),
        _ => format!("{count} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_in_the_singular() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "image")), ["0 images", "1 image", "2 images"]);
        assert_eq!([1, 3].map(|n| counted(n, "batch")), ["1 batch", "3 batches"]);
        assert_eq!([1, 3].map(|n| counted(n, "process")), ["1 process", "3 processes"]);
    }
}
