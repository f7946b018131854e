//! The names of a set's files, taken apart by the patterns of a layout.
//!
//! ```text
//!  P1/Images/r01c01f01p01-ch2sk1fk1fl1.tiff
//!   │ {plate}/Images/r{row}c{col}f{site}p{z}-ch{channel}…
//!   ▼
//!  Named { axes: time 1, channel 2, z 01 · fields: plate P1, row 01, col 01, site 01 · name: P1/Images/r01c01f01 }
//! ```
//!
//! A site is called as its files are, without what tells them apart.

use super::files::FileText;
use super::layout::{Layout, Role};
use super::pattern::{Memory, Part, Pattern};
use std::ops::Range;
use std::path::Path;

/// The parts of a file's name.
pub(super) struct Named {
    /// Values of the axes T, C and Z; empty where the name has none.
    pub axes: [String; 3],
    /// The channel as people call it: with the letters before its number, such as `ch2`.
    pub channel: String,
    /// Values of the matcher's [`Matcher::fields`].
    pub fields: Vec<String>,
    /// Folders below the opened one that the pattern does not speak of.
    pub folder: String,
    /// The part that the files of the site have in common.
    pub name: String,
}

/// Patterns, ready to be held against names.
pub(super) struct Matcher {
    patterns: Vec<Pattern>,
    /// Names of all fields that are no axes, each once.
    pub fields: Vec<String>,
    /// Whether it is a layout of this crate.
    pub preset: Option<&'static Layout>,
}

impl Matcher {
    /// The matcher of a layout.
    pub fn of_layout(layout: &'static Layout) -> Self {
        // The test of layouts parses them all.
        let patterns = layout.patterns.iter().filter_map(|text| Pattern::parse(text).ok()).collect();
        Self::new(patterns, Some(layout))
    }

    /// The matcher of a pattern.
    ///
    /// # Errors
    /// The error in the pattern, in words.
    pub fn of_pattern(text: &str) -> Result<Self, String> {
        Ok(Self::new(vec![Pattern::parse(text)?], None))
    }

    fn new(patterns: Vec<Pattern>, preset: Option<&'static Layout>) -> Self {
        let mut fields: Vec<String> = vec![];
        for field in patterns.iter().flat_map(Pattern::fields) {
            match Role::of(field) {
                Role::Axis(_) => {}
                _ if fields.iter().any(|known| known == field) => {}
                _ => fields.push(field.to_owned()),
            }
        }
        Self { patterns, fields, preset }
    }

    /// Whether a file is one that the layout's microscope writes beside the images.
    pub fn passes_over(&self, file: &FileText) -> bool {
        let name = file.end(0, false).map_or("", |(name, _)| name);
        self.preset.is_some_and(|layout| (layout.passes_over)(name))
    }

    /// The parts of a file's name; `None` where no pattern fits it.
    pub fn named(&self, file: &FileText, memory: &mut Memory) -> Option<Named> {
        // Endings of names are in no layout, and may be in a pattern that was given.
        let endings: &[bool] = if self.preset.is_some() { &[false] } else { &[false, true] };
        for pattern in &self.patterns {
            for &with_ending in endings {
                let Some((text, below)) = file.end(pattern.folders(), with_ending) else { continue };
                if let Some(spans) = pattern.spans(text, memory) {
                    let folder = file.rest(pattern.folders());
                    return Some(self.read(pattern, text, &spans, below.unwrap_or(0), folder));
                }
            }
        }
        None
    }

    fn read(
        &self,
        pattern: &Pattern,
        text: &str,
        spans: &[Range<usize>],
        below: usize,
        folder: &str,
    ) -> Named {
        let mut named = Named {
            axes: <[String; 3]>::default(),
            channel: String::new(),
            fields: vec![String::new(); self.fields.len()],
            folder: folder.to_owned(),
            name: String::new(),
        };
        let mut before = "";
        for (part, span) in pattern.parts().iter().zip(spans) {
            let value = &text[span.clone()];
            match part {
                Part::Text(literal) => before = literal,
                Part::Field { name, role, .. } if !name.is_empty() => {
                    match role {
                        Role::Axis(axis) => value.clone_into(&mut named.axes[*axis]),
                        _ => {
                            if let Some(at) = self.fields.iter().position(|field| field == name) {
                                value.clone_into(&mut named.fields[at]);
                            }
                        }
                    }
                    if *role == Role::Axis(1) {
                        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
                        let letters = if is_number { letters_at_end(before) } else { "" };
                        named.channel = format!("{letters}{value}");
                    }
                    before = "";
                }
                _ => before = "",
            }
        }
        named.name = self.name(pattern, text, spans, below, folder);
        named
    }

    /// The part that the files of a site have in common, folders below the opened one included.
    fn name(
        &self,
        pattern: &Pattern,
        text: &str,
        spans: &[Range<usize>],
        below: usize,
        folder: &str,
    ) -> String {
        let mut names: Vec<String> = if folder.is_empty() { vec![] } else { vec![folder.to_owned()] };
        let mut start = 0;
        let folders = text.matches('/').count();
        for (at, component) in text.split('/').enumerate() {
            let end = start + component.len();
            if start >= below {
                let parts = pattern.parts().iter().zip(spans);
                let inside = parts.filter(|(_, span)| span.start < end && span.end > start);
                let is_axis = |part: &Part| matches!(part, Part::Field { role, .. } if role.is_axis());
                if at == folders {
                    names.push(self.common(text, inside, start..end));
                } else if !inside.clone().any(|(part, _)| is_axis(part)) {
                    names.push(component.to_owned());
                }
            }
            start = end + 1;
        }
        names.retain(|name| !name.is_empty());
        names.join("/")
    }

    /// The rest of a file's name without axes and separators, up to the last field that tells sites apart.
    fn common<'p>(
        &self,
        text: &str,
        parts: impl Iterator<Item = (&'p Part, &'p Range<usize>)>,
        within: Range<usize>,
    ) -> String {
        let mut out = String::new();
        let (mut keep, mut letters, mut left_out) = (0, 0, false);
        for (part, span) in parts {
            let value = &text[span.start.max(within.start)..span.end.min(within.end)];
            let tells = match part {
                Part::Field { name, role, .. } => match role {
                    Role::Axis(_) => false,
                    Role::Other => self.preset.is_none() && !name.is_empty(),
                    _ => true,
                },
                _ => false,
            };
            match part {
                Part::Text(_) => {
                    // "a_{channel}_b" leaves "a_b".
                    let twice =
                        value.chars().next().filter(|&c| left_out && "_-. ".contains(c) && out.ends_with(c));
                    out.push_str(&value[twice.map_or(0, char::len_utf8)..]);
                    letters = letters_at_end(value).len();
                    left_out = false;
                }
                _ if tells => {
                    out.push_str(value);
                    (keep, letters, left_out) = (out.len(), 0, false);
                }
                _ => {
                    // The letters before a number go with it.
                    out.truncate(out.len().saturating_sub(letters).max(keep));
                    (letters, left_out) = (0, true);
                }
            }
        }
        out.truncate(keep);
        if out.matches('(').count() > out.matches(')').count() {
            out.push(')');
        }
        out
    }

    /// Further facts of the images in a folder.
    pub fn details(&self, folder: &Path) -> Option<super::layout::Details> {
        self.preset.and_then(|layout| (layout.details)(folder))
    }
}

/// The letters that a text ends with.
fn letters_at_end(text: &str) -> &str {
    let letters = text.bytes().rev().take_while(u8::is_ascii_alphabetic).count();
    &text[text.len() - letters..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(matcher: &Matcher, root: &str, below: &str) -> Option<(String, String, [String; 3], Vec<String>)> {
        let named = matcher.named(&FileText::at(root, below), &mut Memory::default())?;
        Some((named.name, named.channel, named.axes, named.fields))
    }

    fn preset(name: &str, root: &str, below: &str) -> Option<(String, String, [String; 3], Vec<String>)> {
        let layout = super::super::layouts::LAYOUTS.iter().find(|layout| layout.name == name).unwrap();
        of(&Matcher::of_layout(layout), root, below)
    }

    #[expect(clippy::unnecessary_wraps, reason = "compared with an option")]
    fn expected(
        name: &str,
        channel: &str,
        axes: [&str; 3],
        fields: &[&str],
    ) -> Option<(String, String, [String; 3], Vec<String>)> {
        let fields = fields.iter().map(|&field| field.to_owned()).collect();
        Some((name.to_owned(), channel.to_owned(), axes.map(str::to_owned), fields))
    }

    #[test]
    fn files_of_harmony() {
        let file = "r01c02f03p04-ch5sk6fk1fl1.tiff";
        let fields = ["", "", "01", "02", "03", "1", "1"];
        assert_eq!(
            preset("harmony", "/data/jump", file),
            expected("r01c02f03", "ch5", ["6", "5", "04"], &fields)
        );
        // Fields in the order of the patterns: plate, measurement, row, col, site, kinetic, flim.
        let fields = ["BR1", "2020-Measurement1", "01", "02", "03", "1", "1"];
        assert_eq!(
            preset("harmony", "/data/BR1__2020-Measurement1/Images", file),
            expected("r01c02f03", "ch5", ["6", "5", "04"], &fields)
        );
        let fields = ["BR1", "", "01", "02", "03", "1", "1"];
        assert_eq!(
            preset("harmony", "/data", &format!("b/BR1/Images/{file}")),
            expected("b/BR1/Images/r01c02f03", "ch5", ["6", "5", "04"], &fields)
        );
        // Harmony 3, which has a record for each channel.
        let fields = ["", "", "02", "07", "01", "1", "1"];
        assert_eq!(
            preset("harmony", "/data", "r02c07f01p03rc2-ch1sk1fk1fl1.tiff"),
            expected("r02c07f01", "rc2", ["1", "2", "03"], &fields)
        );
        for other in ["r01c02f03p04-ch5sk6fk1fl1-010.ome.tiff", "r01c02f03p04-ch5.tiff", "x.tif"] {
            assert_eq!(preset("harmony", "/data", other), None, "{other}");
        }
    }

    #[test]
    fn files_of_other_microscopes() {
        let fields = ["my_plate", "A01", "12"];
        let axes = ["3", "1", "2"];
        assert_eq!(
            preset("imagexpress", "/d", "x/TimePoint_3/ZStep_2/my_plate_A01_s12_w1AB-12.tif"),
            expected("x/my_plate_A01_s12", "w1", axes, &fields)
        );
        assert_eq!(
            preset("imagexpress", "/d", "P_A01_w2.TIF"),
            expected("P_A01", "w2", ["", "2", ""], &["P", "A01", ""])
        );
        assert_eq!(
            preset("cellvoyager", "/d", "AS_1_B12_T0003F004L01A02Z05C06.tif"),
            expected("AS_1_B12_F004", "C06", ["0003", "06", "05"], &["AS_1", "B12", "004", "01"])
        );
        assert_eq!(
            preset("incell", "/d", "A - 01(fld 2 wv DAPI - DAPI).tif"),
            expected("A - 01(fld 2)", "DAPI - DAPI", ["", "DAPI - DAPI", ""], &["A", "01", "2"])
        );
        assert_eq!(
            preset("incell", "/d", "B - 3(fld 2 wv Cy3 - Cy3 z 7).tif").unwrap().2,
            ["", "Cy3 - Cy3", "7"].map(str::to_owned)
        );
        assert_eq!(
            preset("cellomics", "/d", "AS_09125_050116030001_D03f00d1.tif"),
            expected(
                "AS_09125_050116030001_D03f00",
                "d1",
                ["", "1", ""],
                &["AS_09125_050116030001", "D03", "00"]
            )
        );
    }

    #[test]
    fn files_by_a_pattern() {
        let matcher = Matcher::of_pattern("{well}_01_*_{site}_{channel}_001.tif").unwrap();
        assert_eq!(
            of(&matcher, "/nf1/images", "B7_01_1_3_DAPI_001.tif"),
            expected("B7_01_3", "DAPI", ["", "DAPI", ""], &["B7", "3"])
        );
        let matcher = Matcher::of_pattern("{plate}/c{channel}/{well}-{dose}").unwrap();
        assert_eq!(
            of(&matcher, "/a", "b/P1/c2/A01-0.5.tif"),
            expected("b/P1/A01-0.5", "c2", ["", "2", ""], &["P1", "A01", "0.5"])
        );
        assert_eq!(
            of(&matcher, "/P1/c2", "A01-7.png"),
            expected("A01-7", "c2", ["", "2", ""], &["P1", "A01", "7"])
        );
    }
}
