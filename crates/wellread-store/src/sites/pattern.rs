//! Patterns of file names: which part of a name says what.
//!
//! ```text
//!  r{row}c{col}f{site}p{z}-ch{channel}sk{time}…      parts: text, fields, and what may be anything
//!  r01c02f03p01-ch2sk1fk1fl1                         row=01 col=02 site=03 z=01 channel=2 time=1
//! ```
//!
//! | in a pattern | stands for |
//! |---|---|
//! | text | itself, in capital and small letters as written |
//! | `{name}` | one character or more, but no `/`: digits as far as they go, else letters as far as they go, else as few as fit |
//! | `{name:d}`, `{name:a}` | digits; letters |
//! | `{name:w}`, `{name:rw}` | a well such as `A01`; one with its row behind its column, such as `01A` |
//! | `{name:3}`, `{name:3d}` | exactly three characters; three digits |
//! | `{:d}` | the same without a name: it must be there and says nothing |
//! | `*`, `…` | anything, also nothing, but no `/` |
//! | `/` | a folder: the pattern is held against the end of the path, as many folders as it names |
//!
//! Each place in a name is tried once for each part, so that no pattern takes long on any name.

use super::layout::Role;
use std::ops::Range;

/// Most parts of a pattern.
const MOST_PARTS: usize = 64;

/// Longest text that is matched: no path is longer.
const MOST_TEXT: usize = 1 << 14;

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    parts: Vec<Part>,
    /// How many `/` it has.
    folders: usize,
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Text that stands for itself.
    Text(String),
    /// Anything.
    Any,
    /// A field; its name is empty where it says nothing.
    Field { name: String, role: Role, class: Class, width: Option<usize> },
}

/// Which characters a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Any,
    Digits,
    Letters,
    Well,
    /// A well with its row behind its column, such as `01A`.
    TurnedWell,
}

/// The pattern for wells such as `01A` instead of those such as `A01`. `None` where it has no wells.
pub(super) fn turned_wells(pattern: &str) -> Option<String> {
    let turned = pattern.replace("{well}", "{well:rw}").replace("{well:w}", "{well:rw}");
    (turned != pattern).then_some(turned)
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The error in it, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = vec![];
        let mut literal = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            let part = match c {
                '*' | '…' => Part::Any,
                '{' => {
                    let end = rest.find('}').ok_or("a { is not closed by a }")?;
                    let inside = &rest[..end];
                    rest = &rest[end + 1..];
                    field(inside, &parts)?
                }
                '}' => return Err("a } closes no {".to_owned()),
                // Written on Windows.
                '\\' => {
                    literal.push('/');
                    continue;
                }
                c => {
                    literal.push(c);
                    continue;
                }
            };
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            // Two in a row are one.
            if part != Part::Any || parts.last() != Some(&Part::Any) {
                parts.push(part);
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        if parts.len() > MOST_PARTS {
            return Err(format!("it has more than {MOST_PARTS} parts"));
        }
        if !parts.iter().any(|part| matches!(part, Part::Field { name, .. } if !name.is_empty())) {
            return Err("it has no field, such as {channel}".to_owned());
        }
        let folders = parts.iter().map(|part| match part {
            Part::Text(text) => text.matches('/').count(),
            _ => 0,
        });
        Ok(Self { folders: folders.sum(), parts })
    }

    /// Its parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// How many folders it names, beside the file.
    pub fn folders(&self) -> usize {
        self.folders
    }

    /// Names of its fields.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Field { name, .. } if !name.is_empty() => Some(name.as_str()),
            _ => None,
        })
    }

    /// Where in `text` each part is, where the pattern fits all of it.
    pub fn spans(&self, text: &str, memory: &mut Memory) -> Option<Vec<Range<usize>>> {
        if text.len() > MOST_TEXT {
            return None;
        }
        // A well is one such as A01 if the name has one in that place.
        let mut ends = vec![0; self.parts.len()];
        if !(self.tried(text, true, memory, &mut ends)
            || self.names_wells() && self.tried(text, false, memory, &mut ends))
        {
            return None;
        }
        let mut at = 0;
        Some(ends.into_iter().map(|end| std::mem::replace(&mut at, end)..end).collect())
    }

    /// Whether it has a field for wells whose characters are left open.
    fn names_wells(&self) -> bool {
        self.parts.iter().any(is_open_well)
    }

    fn tried(&self, text: &str, strict: bool, memory: &mut Memory, ends: &mut [usize]) -> bool {
        memory.strict = strict;
        memory.failed.clear();
        memory.failed.resize((self.parts.len() * (text.len() + 1)).div_ceil(64), 0);
        self.fits(text, 0, 0, memory, ends)
    }

    /// Whether the parts from `part` on fit the text from `at` on; their ends are noted.
    fn fits(&self, text: &str, part: usize, at: usize, memory: &mut Memory, ends: &mut [usize]) -> bool {
        let Some(this) = self.parts.get(part) else { return at == text.len() };
        let bit = part * (text.len() + 1) + at;
        if memory.failed[bit / 64] & (1 << (bit % 64)) != 0 {
            return false;
        }
        let strict = memory.strict;
        let mut goes_on = |length: usize| {
            text.is_char_boundary(at + length) && {
                ends[part] = at + length;
                self.fits(text, part + 1, at + length, memory, ends)
            }
        };
        let rest = &text[at..];
        // No part but text goes beyond a folder.
        let most = rest.find('/').unwrap_or(rest.len());
        let run = |is: fn(&u8) -> bool| rest.as_bytes()[..most].iter().take_while(|byte| is(byte)).count();
        let found = match this {
            Part::Text(literal) => rest.starts_with(literal.as_str()) && goes_on(literal.len()),
            Part::Any => (0..=most).any(goes_on),
            Part::Field { class, width: Some(width), .. } => {
                let taken =
                    rest[..most].char_indices().map(|(start, c)| start + c.len_utf8()).nth(*width - 1);
                taken.is_some_and(|length| class.is(&rest[..length]) && goes_on(length))
            }
            Part::Field { class: Class::Digits, .. } => (1..=run(u8::is_ascii_digit)).rev().any(goes_on),
            Part::Field { class: Class::Letters, .. } => {
                (1..=run(u8::is_ascii_alphabetic)).rev().any(goes_on)
            }
            Part::Field { class: class @ (Class::Well | Class::TurnedWell), .. } => {
                wells(*class, &rest[..most]).any(goes_on)
            }
            well @ Part::Field { .. } if strict && is_open_well(well) => {
                wells(Class::Well, &rest[..most]).any(goes_on)
            }
            Part::Field { class: Class::Any, .. } => {
                let preferred = [run(u8::is_ascii_digit), run(u8::is_ascii_alphabetic)];
                preferred.into_iter().filter(|&length| length > 0).chain(1..=most).any(goes_on)
            }
        };
        if !found {
            memory.failed[bit / 64] |= 1 << (bit % 64);
        }
        found
    }
}

/// The part for what stands between braces.
fn field(inside: &str, before: &[Part]) -> Result<Part, String> {
    let (name, kind) = inside.split_once(':').unwrap_or((inside, ""));
    let name = name.trim();
    if name.is_empty() && kind.is_empty() {
        return Err("{} has no name; * stands for anything".to_owned());
    }
    if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Err(format!("{name:?} is no name of a field: letters, digits and _ are"));
    }
    let is_there = |part: &Part| matches!(part, Part::Field { name: other, .. } if other == name);
    if !name.is_empty() && before.iter().any(is_there) {
        return Err(format!(
            "the field {{{name}}} is there twice; * stands for a part that need not be read again"
        ));
    }
    let digits = kind.bytes().take_while(u8::is_ascii_digit).count();
    let width = match &kind[..digits] {
        "" => None,
        number => match number.parse() {
            Ok(width) if (1..=255).contains(&width) => Some(width),
            _ => return Err(format!("{{{inside}}}: {number} is no length from 1 to 255")),
        },
    };
    let class = match &kind[digits..] {
        "" => Class::Any,
        "d" => Class::Digits,
        "a" => Class::Letters,
        "w" => Class::Well,
        "rw" => Class::TurnedWell,
        other => {
            return Err(format!(
                "{{{inside}}}: {other:?} is none of d (digits), a (letters), w (a well: A01), rw (a well: 01A)"
            ));
        }
    };
    Ok(Part::Field { name: name.to_owned(), role: Role::of(name), class, width })
}

/// Whether a part is a field for wells whose characters are left open.
fn is_open_well(part: &Part) -> bool {
    matches!(part, Part::Field { name, class: Class::Any, width: None, .. } if name == "well")
}

/// Lengths of the wells of a class that a text begins with, the longest first.
fn wells(class: Class, text: &str) -> impl Iterator<Item = usize> {
    let is_well = move |n: &usize| text.is_char_boundary(*n) && class.is(&text[..*n]);
    (2..=text.len().min(5)).rev().filter(is_well)
}

impl Class {
    /// Whether a text that is not empty has such characters alone.
    fn is(self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Digits => text.bytes().all(|byte| byte.is_ascii_digit()),
            Self::Letters => text.bytes().all(|byte| byte.is_ascii_alphabetic()),
            Self::Well => super::natural::well(text).is_some(),
            Self::TurnedWell => super::natural::is_turned_well(text),
        }
    }
}

/// The memory of matching, kept from name to name.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// A bit for each part and place that were tried in vain.
    failed: Vec<u64>,
    /// Whether a field for wells must be one.
    strict: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> Option<Vec<(String, String)>> {
        let pattern = Pattern::parse(pattern).unwrap();
        let spans = pattern.spans(text, &mut Memory::default())?;
        let fields = pattern.parts.iter().zip(spans).filter_map(|(part, span)| match part {
            Part::Field { name, .. } if !name.is_empty() => Some((name.clone(), text[span].to_owned())),
            _ => None,
        });
        Some(fields.collect())
    }

    #[expect(clippy::unnecessary_wraps, reason = "compared with an option")]
    fn fields(all: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn fields_are_found_between_text() {
        assert_eq!(
            found("r{row}c{col}f{site}p{z}-ch{channel}sk{time}…tiff", "r01c12f03p01-ch2sk10fk1fl1.tiff"),
            fields(&[
                ("row", "01"),
                ("col", "12"),
                ("site", "03"),
                ("z", "01"),
                ("channel", "2"),
                ("time", "10")
            ])
        );
        assert_eq!(
            found("{plate}_{well}_s{site}_w{channel}*", "my_plate_A01_s12_w1A2B"),
            fields(&[("plate", "my_plate"), ("well", "A01"), ("site", "12"), ("channel", "1")])
        );
        assert_eq!(found("{row}{col}", "AB07"), fields(&[("row", "AB"), ("col", "07")]));
        assert_eq!(found("{well}{rest}", "A01b"), fields(&[("well", "A01"), ("rest", "b")]));
        assert_eq!(
            found("{a:2}{b:1d}-*", "µm1-"),
            fields(&[("a", "µm"), ("b", "1")]),
            "lengths count characters"
        );
        assert_eq!(
            found("{channel}.{x}", "DAPI (405).tif"),
            fields(&[("channel", "DAPI (405)"), ("x", "tif")])
        );
    }

    #[test]
    fn folders_are_parts_and_fields_stay_within_one() {
        assert_eq!(
            found("{plate}/Images/c{channel}", "P1/Images/c2"),
            fields(&[("plate", "P1"), ("channel", "2")])
        );
        assert_eq!(found("{plate}c{channel}", "P1/Images/c2"), None);
        assert_eq!(Pattern::parse(r"{plate}\Images/c{channel}").unwrap().folders(), 2);
    }

    #[test]
    fn classes_hold_to_their_characters() {
        assert_eq!(found("{a:d}{b}", "12x"), fields(&[("a", "12"), ("b", "x")]));
        assert_eq!(found("{a:d}", "12x"), None);
        assert_eq!(found("{a:a}{b:d}", "xy3"), fields(&[("a", "xy"), ("b", "3")]));
        assert_eq!(found("{p}_{w:w}_{:d}", "a_b_C03_77"), fields(&[("p", "a_b"), ("w", "C03")]));
        assert_eq!(found("{p}_{w:w}", "a_b_C3x"), None);
        assert_eq!(
            found("{well:rw}*s{site}", "03C_x_s7"),
            fields(&[("well", "03C"), ("site", "7")]),
            "the row is behind the column"
        );
        assert_eq!(found("{well:rw}_{a}", "C03_x"), None);
        assert_eq!(turned_wells("{well}_{a}*").as_deref(), Some("{well:rw}_{a}*"));
        assert_eq!(turned_wells("{row}{col}_{a}"), None);
        assert_eq!(found("{a:3d}", "1234"), None);
    }

    #[test]
    fn wrong_patterns_say_what_is_wrong() {
        for (pattern, why) in [
            ("a{b", "not closed"),
            ("a}b", "closes no"),
            ("abc*", "no field"),
            ("{a}{a}", "there twice"),
            ("{}", "no name"),
            ("{a:0}", "no length"),
            ("{a:x}", "none of d"),
            ("{a b}", "no name of a field"),
        ] {
            let error = Pattern::parse(pattern).unwrap_err();
            assert!(error.contains(why), "{pattern}: {error}");
        }
        assert!(Pattern::parse(&"{:d}-".repeat(40)).unwrap_err().contains("parts"));
    }

    #[test]
    fn no_pattern_takes_long() {
        let pattern = "{a}{b}{c}{d}{e}{f}{g}{h}{i}{j}{k}{l}{m}{n}*{o}*{p}*{q}*!";
        assert_eq!(found(pattern, &"ab1".repeat(80)), None);
    }
}
