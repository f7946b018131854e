//! The font of the figures: subsets of DejaVu Sans that travel with the program, and how wide text is in it.
//!
//! Layout measures text with the font that the PNG is drawn with. In a browser without DejaVu Sans the
//! fallbacks (Verdana, Arial) are as wide or narrower, so what fits here fits there.

use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};
use std::collections::HashMap;
use std::sync::OnceLock;

/// DejaVu Sans: Latin, Greek, punctuation, arrows and mathematical signs.
pub(crate) const REGULAR: &[u8] = include_bytes!("../../fonts/DejaVuSans-subset.ttf");
/// The same of DejaVu Sans Bold.
pub(crate) const BOLD: &[u8] = include_bytes!("../../fonts/DejaVuSans-Bold-subset.ttf");
/// The value of `font-family`, the most like the embedded one first.
pub(crate) const FAMILY: &str = "DejaVu Sans, Verdana, Arial, sans-serif";

/// How a text is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Style {
    /// Size in pixels.
    pub size: f64,
    /// Bold or regular.
    pub bold: bool,
}

impl Style {
    /// Regular text of a size in pixels.
    pub const fn regular(size: f64) -> Self {
        Self { size, bold: false }
    }

    /// Bold text of a size in pixels.
    pub const fn bold(size: f64) -> Self {
        Self { size, bold: true }
    }

    /// The width of `text` in pixels. Characters the font does not have count as one em, the widest they are
    /// in any fallback.
    pub fn width(self, text: &str) -> f64 {
        let advances = advances(self.bold);
        text.chars().map(|c| advances.get(&c).copied().unwrap_or(1.0)).sum::<f64>() * self.size
    }

    /// `text`, shortened with an ellipsis to fit `width`.
    pub fn fit(self, text: &str, width: f64) -> String {
        if self.width(text) <= width {
            return text.to_owned();
        }
        let room = width - self.width("…");
        let kept = self.prefix(text, room);
        if kept == 0 && room < 0.0 {
            return String::new();
        }
        format!("{}…", text[..kept].trim_end())
    }

    /// `text` in lines no wider than `width`, broken at spaces, or inside words longer than a line.
    pub fn wrap(self, text: &str, width: f64) -> Vec<String> {
        let mut lines = vec![];
        let mut line = String::new();
        for word in text.split_whitespace() {
            let mut word = word;
            let joined = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if self.width(&joined) <= width {
                line = joined;
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            while self.width(word) > width {
                // At least one character goes on each line, so this ends.
                let first = word.chars().next().map_or(0, char::len_utf8);
                let cut = self.prefix(word, width).max(first);
                lines.push(word[..cut].to_owned());
                word = &word[cut..];
                if word.is_empty() {
                    break;
                }
            }
            word.clone_into(&mut line);
        }
        if !line.is_empty() {
            lines.push(line);
        }
        lines
    }

    /// Length in bytes of the longest prefix that fits `width`.
    fn prefix(self, text: &str, width: f64) -> usize {
        let advances = advances(self.bold);
        let mut used = 0.0;
        for (at, c) in text.char_indices() {
            used += advances.get(&c).copied().unwrap_or(1.0) * self.size;
            if used > width {
                return at;
            }
        }
        text.len()
    }
}

/// Advance widths in em of every character of a face.
fn advances(bold: bool) -> &'static HashMap<char, f64> {
    static FACES: [OnceLock<HashMap<char, f64>>; 2] = [OnceLock::new(), OnceLock::new()];
    FACES[usize::from(bold)].get_or_init(|| {
        let font = FontRef::new(if bold { BOLD } else { REGULAR }).expect("the embedded font is whole");
        let metrics = font.glyph_metrics(Size::new(1.0), LocationRef::default());
        let advance = |(code, glyph)| Some((char::from_u32(code)?, f64::from(metrics.advance_width(glyph)?)));
        font.charmap().mappings().filter_map(advance).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sign_the_figures_use_is_in_the_font() {
        for bold in [false, true] {
            for c in "aZ09 ,.−×µ±≤≥→←…–·%²³⁻⁹₂°()éßñµαΩ\u{a0}∞≈✓●▲".chars()
            {
                assert!(advances(bold).contains_key(&c), "{c:?} is missing");
            }
        }
    }

    #[test]
    fn wrapped_and_fitted_text_is_never_too_wide() {
        let style = Style::regular(11.0);
        let text = "a short tail and averyveryverylongwordwithoutanyspaces_like_a_path/or/so, 数字 end";
        for width in [1.0, 12.0, 40.0, 90.0, 300.0] {
            let lines = style.wrap(text, width);
            assert_eq!(
                lines.concat().replace(' ', ""),
                text.replace(' ', ""),
                "wrapping to {width} loses text"
            );
            for line in &lines {
                assert!(style.width(line) <= width || line.chars().count() == 1, "{line:?} at {width}");
            }
            assert!(style.width(&style.fit(text, width)) <= width);
        }
        assert_eq!(style.fit("abc", 100.0), "abc");
        assert!(style.wrap("  ", 10.0).is_empty());
    }
}
