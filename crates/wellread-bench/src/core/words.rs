//! Figures in words, as findings tell them.

use wellread_report::Table;
use wellread_store::without_checksum;

/// A format with its codec, as measured: `tiff (uncompressed)`; formats differ by their compression as much as by anything.
pub(crate) fn with_codec(table: &Table, format: &str) -> String {
    let rows = (0..table.rows()).find(|&r| table.str("format", r) == Some(format));
    match rows.and_then(|r| table.str("codec", r)).map(|codec| without_checksum(codec).0) {
        Some("none") => format!("{format} (uncompressed)"),
        Some(codec) if !codec.is_empty() => format!("{format} ({codec})"),
        _ => format.to_owned(),
    }
}

/// A share as text; one that rounds to nothing says so, and one below zero has no sign then.
pub(crate) fn percent(share: f64) -> String {
    match format!("{:.1} %", 100.0 * share).as_str() {
        _ if share > 0.0 && share < 0.001 => "<0.1 %".to_owned(),
        "-0.0 %" => "0.0 %".to_owned(),
        text => text.to_owned(),
    }
}

/// Three significant digits, with thousands separators.
pub(crate) fn number(v: f64) -> String {
    wellread_report::number::significant(v)
}

/// A sentence that begins with a capital letter.
pub(crate) fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The words of the longest sentence of a text, as the check of texts counts them.
#[cfg(test)]
pub(crate) fn words_of_longest_sentence(text: &str) -> usize {
    let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
    let words = text.split(". ").map(|sentence| sentence.split_whitespace().filter(is_word).count());
    words.max().unwrap_or_default()
}

/// A number of workers, which is the label of a series.
pub(crate) fn workers(label: &str) -> String {
    match label {
        "0" => "no workers".to_owned(),
        "1" => "1 worker".to_owned(),
        n => format!("{n} workers"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    #[test]
    fn sentences_begin_with_a_capital_letter() {
        assert_eq!(["one round", "2 rounds", ""].map(capitalized), ["One round", "2 rounds", ""]);
        assert_eq!(words_of_longest_sentence("It waits 2.0 % – at most. So do these"), 5);
    }

    #[test]
    fn shares_that_round_to_nothing_have_no_sign() {
        let shares = [-0.02, -0.0004, -0.0, 0.0, 0.0004, 0.02];
        assert_eq!(shares.map(percent), ["-2.0 %", "0.0 %", "0.0 %", "0.0 %", "<0.1 %", "2.0 %"]);
    }

    /// Checksums compress nothing.
    #[test]
    fn formats_are_named_with_what_compresses() {
        let mut table = Table::new("storage");
        table.push(row![("format", "tiff"), ("codec", "lzw+predictor")]);
        table.push(row![("format", "lance"), ("codec", "none")]);
        table.push(row![("format", "ome-zarr"), ("codec", "crc32c")]);
        table.push(row![("format", "vortex")]);
        assert_eq!(
            ["tiff", "lance", "ome-zarr", "vortex"].map(|format| with_codec(&table, format)),
            ["tiff (lzw+predictor)", "lance (uncompressed)", "ome-zarr (uncompressed)", "vortex"]
        );
    }
}
