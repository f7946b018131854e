//! Colours: one per format, the same in every figure, told apart with any colour vision, in light and in dark.
//!
//! The palettes started from Okabe and Ito's. A search moved them that keeps every pair distinguishable
//! (distance in OKLab) in normal, protanope and deuteranope vision as simulated by Machado et al. (2009). A test
//! repeats the check. Colour is never the only sign: every mark is also named.

use std::fmt::Write;

/// Formats with a colour of their own, and it: (name, on light, on dark).
const FORMATS: [(&str, &str, &str); 10] = [
    ("parquet", "#0B50AF", "#227DC2"),
    ("parquet-default", "#5C1030", "#A51E5A"),
    ("parquet-duckdb", "#34C9FF", "#8FF9FF"),
    ("ome-arrow-dataset", "#110587", "#A862FF"),
    ("lance", "#B33C01", "#DC481E"),
    ("vortex", "#AB6AC9", "#DA9CDE"),
    ("duckdb", "#E0B81B", "#FFF056"),
    ("tiff", "#0DB692", "#04E291"),
    ("ome-zarr", "#D07D00", "#E19821"),
    ("image-folder", "#765E74", "#969C8A"),
];

/// Colours of all other names, chosen by a hash of the name.
const OTHERS: [(&str, &str); 5] = [
    ("#882255", "#D45A94"),
    ("#7A4A1E", "#C08A5A"),
    ("#2F5D3A", "#7FA87F"),
    ("#4F6D8F", "#A9C1DD"),
    ("#8A8A00", "#C9C96A"),
];

/// Number of series colours.
pub(crate) const SLOTS: usize = FORMATS.len() + OTHERS.len();

/// The formats with a colour of their own, in the order of every figure.
pub fn known_formats() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|f| f.0)
}

/// The colour slot of a format or any other series.
pub fn slot(name: &str) -> usize {
    if let Some(known) = FORMATS.iter().position(|f| f.0 == name) {
        return known;
    }
    // FNV-1a: the same on every machine and in every version.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    FORMATS.len() + (hash % OTHERS.len() as u64) as usize
}

/// The colour of a slot on light and on dark ground, as `#RRGGBB`.
fn series(slot: usize) -> (&'static str, &'static str) {
    match FORMATS.get(slot) {
        Some(&(_, light, dark)) => (light, dark),
        None => OTHERS[(slot - FORMATS.len()) % OTHERS.len()],
    }
}

/// A colour by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Text and whiskers.
    Ink,
    /// Secondary text.
    Soft,
    /// Axis lines.
    Axis,
    /// Grid lines.
    Grid,
    /// The ground.
    Paper,
    /// A series.
    Series(usize),
    /// Parts of a stack after the first.
    Part(usize),
    /// Text on a series' colour.
    OnSeries(usize),
    /// Text on a part.
    OnPart(usize),
}

const BLACK: &str = "#000000";
const WHITE: &str = "#FFFFFF";
const PARTS: [(&str, &str); 3] = [("#C9CDD3", "#4A505A"), ("#E4E6E9", "#33373F"), ("#9AA1AB", "#6B7280")];

impl Paint {
    /// The colour on light and on dark ground.
    fn colors(self) -> (&'static str, &'static str) {
        // Black has more contrast than white from this luminance on.
        let on = |ground: &str| if luminance(ground) > 0.179 { BLACK } else { WHITE };
        match self {
            Self::Ink => ("#1A1D21", "#ECEEF1"),
            Self::Soft => ("#565D66", "#A7AEB8"),
            Self::Axis => ("#6B727C", "#8B929C"),
            Self::Grid => ("#E3E6EA", "#2F343C"),
            Self::Paper => (WHITE, "#16191E"),
            Self::Series(slot) => series(slot),
            Self::Part(i) => PARTS[i % PARTS.len()],
            Self::OnSeries(slot) => (on(series(slot).0), on(series(slot).1)),
            Self::OnPart(i) => (on(PARTS[i % PARTS.len()].0), on(PARTS[i % PARTS.len()].1)),
        }
    }

    fn class(self) -> String {
        match self {
            Self::Ink => "ink".into(),
            Self::Soft => "soft".into(),
            Self::Axis => "axis".into(),
            Self::Grid => "grid".into(),
            Self::Paper => "paper".into(),
            Self::Series(slot) => format!("s{slot}"),
            Self::Part(i) => format!("p{}", i % PARTS.len()),
            Self::OnSeries(slot) => format!("os{slot}"),
            Self::OnPart(i) => format!("op{}", i % PARTS.len()),
        }
    }

    /// Attributes that fill with this colour.
    pub fn fill(self) -> String {
        format!("class=\"f-{}\" fill=\"{}\"", self.class(), self.colors().0)
    }

    /// Attributes that draw lines in this colour.
    pub fn stroke(self) -> String {
        format!("class=\"k-{}\" stroke=\"{}\"", self.class(), self.colors().0)
    }

    /// Attributes that fill with this colour and outline in another.
    pub fn outlined(self, line: Self, width: f64) -> String {
        format!(
            "class=\"f-{} k-{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{width}\"",
            self.class(),
            line.class(),
            self.colors().0,
            line.colors().0
        )
    }
}

/// Style rules that turn every figure below `scope` dark.
pub(crate) fn dark_css(scope: &str) -> String {
    let mut paints = vec![Paint::Ink, Paint::Soft, Paint::Axis, Paint::Grid, Paint::Paper];
    paints.extend((0..SLOTS).flat_map(|s| [Paint::Series(s), Paint::OnSeries(s)]));
    paints.extend((0..PARTS.len()).flat_map(|p| [Paint::Part(p), Paint::OnPart(p)]));
    let mut css = String::new();
    for paint in paints {
        let (class, dark) = (paint.class(), paint.colors().1);
        writeln!(css, "{scope} .f-{class}{{fill:{dark}}}{scope} .k-{class}{{stroke:{dark}}}")
            .expect("to a string");
    }
    css
}

/// Linear red, green and blue of `#RRGGBB`.
fn linear(color: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let v = color.get(at..at + 2).and_then(|h| u8::from_str_radix(h, 16).ok()).unwrap_or(0);
        let v = f64::from(v) / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    })
}

/// Relative luminance as WCAG defines it.
fn luminance(color: &str) -> f64 {
    let [r, g, b] = linear(color);
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

#[cfg(test)]
mod tests {
    use super::*;

    type Matrix = [[f64; 3]; 3];
    const NORMAL: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    const PROTANOPE: Matrix =
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]];
    const DEUTERANOPE: Matrix =
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]];

    fn times(m: &Matrix, v: [f64; 3]) -> [f64; 3] {
        [0, 1, 2].map(|i| (0..3).map(|k| m[i][k] * v[k]).sum::<f64>())
    }

    fn oklab(rgb: [f64; 3]) -> [f64; 3] {
        let lms = times(
            &[
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ],
            rgb.map(|v| v.clamp(0.0, 1.0)),
        );
        times(
            &[
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ],
            lms.map(f64::cbrt),
        )
    }

    #[test]
    fn formats_are_told_apart_with_any_colour_vision() {
        for vision in [NORMAL, PROTANOPE, DEUTERANOPE] {
            for dark in [false, true] {
                let seen: Vec<_> = FORMATS
                    .iter()
                    .map(|f| (f.0, oklab(times(&vision, linear(if dark { f.2 } else { f.1 })))))
                    .collect();
                for (i, a) in seen.iter().enumerate() {
                    for b in &seen[..i] {
                        let distance = (0..3).map(|k| (a.1[k] - b.1[k]).powi(2)).sum::<f64>().sqrt();
                        assert!(distance > 0.08, "{} and {}: {distance:.3}, dark: {dark}", a.0, b.0);
                    }
                }
            }
        }
    }

    #[test]
    fn text_is_readable_on_what_it_stands_on() {
        let contrast = |a: &str, b: &str| {
            let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
            a.max(b) / a.min(b)
        };
        let mut pairs = vec![(Paint::Ink, Paint::Paper), (Paint::Soft, Paint::Paper)];
        pairs.extend((0..SLOTS).map(|s| (Paint::OnSeries(s), Paint::Series(s))));
        pairs.extend((0..PARTS.len()).map(|p| (Paint::OnPart(p), Paint::Part(p))));
        for (text, ground) in pairs {
            let (t, g) = (text.colors(), ground.colors());
            assert!(contrast(t.0, g.0) >= 4.5, "{text:?} on light {ground:?}: {}", contrast(t.0, g.0));
            assert!(contrast(t.1, g.1) >= 4.5, "{text:?} on dark {ground:?}: {}", contrast(t.1, g.1));
        }
    }

    #[test]
    fn a_name_keeps_its_colour() {
        assert_eq!(slot("parquet"), 0);
        assert_eq!(slot("image-folder"), 9);
        // Each in a colour of its own, however alike the names.
        let slots = ["parquet", "parquet-default", "parquet-duckdb"].map(slot);
        assert_eq!(slots, [0, 1, 2]);
        assert_eq!(slot("something else"), slot("something else"));
        assert!((FORMATS.len()..SLOTS).contains(&slot("")));
    }
}
