//! From values to pixels: domains, scales and ticks whose labels do not touch.

use super::figure::{Axis, Mark, Panel, Scale};
use crate::number::{self, Unit};

/// Log axes cover at least this many decades, so that at least two of 1, 2, 5, 10 … are on them.
const MIN_DECADES: f64 = 0.95;
/// [`Scale::Auto`] is logarmithic when the largest value is over this many times the smallest.
const AUTO_RATIO: f64 = 40.0;

/// An axis with its domain, ready to place values on `[0, length]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScaledAxis {
    pub log: bool,
    pub unit: Unit,
    /// Whether only whole numbers are ticks.
    whole: bool,
    /// Ends of the domain: values, or their decimal logarithms.
    low: f64,
    high: f64,
    pub length: f64,
}

/// A tick: its place and its label.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub at: f64,
    pub label: String,
}

/// Something that must fit: its value, and the pixels it needs beyond it.
pub(super) type LabelExtent = (f64, f64);

/// All finite values that a mark shows.
pub(super) fn values(mark: &Mark) -> Vec<f64> {
    let all = match mark {
        Mark::Nothing | Mark::Unavailable(_) => vec![],
        Mark::Value(e) => vec![e.value, e.low, e.high],
        Mark::Stack { parts, .. } => vec![0.0, parts.iter().map(|p| p.1.max(0.0)).sum()],
        Mark::Spread(s) => s.values(),
        Mark::Sample(sample) => sample.spread.values(),
    };
    all.into_iter().filter(|v| v.is_finite()).collect()
}

/// Whether the axis of these panels is logarithmic.
pub(super) fn is_log(axis: &Axis, panels: &[&Panel]) -> bool {
    let marks = || panels.iter().flat_map(|p| &p.marks);
    let values: Vec<f64> = marks().flat_map(values).collect();
    let stacked = marks().any(|m| matches!(m, Mark::Stack { .. }));
    match axis.scale {
        // Zero has no place on such an axis.
        Scale::Log => !stacked && !values.is_empty() && values.iter().all(|v| *v > 0.0),
        Scale::Linear => false,
        Scale::Auto => {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(0.0, f64::max);
            !stacked && low > 0.0 && high / low > AUTO_RATIO
        }
    }
}

impl ScaledAxis {
    /// An axis of `length` pixels on which every value lies, and has the pixels it needs beyond it.
    pub fn new(axis: &Axis, log: bool, values: &[f64], needs: &[LabelExtent], length: f64) -> Self {
        let length = length.max(1.0);
        let references = axis.references.iter().map(|r| r.0);
        let mut placed = Self { log, unit: axis.unit, whole: axis.whole, low: 0.0, high: 1.0, length };
        if log {
            let logs = || {
                values
                    .iter()
                    .copied()
                    .chain(references.clone())
                    .filter(|v| *v > 0.0 && v.is_finite())
                    .map(f64::log10)
            };
            let (mut low, mut high) =
                (logs().fold(f64::INFINITY, f64::min), logs().fold(f64::NEG_INFINITY, f64::max));
            if low > high {
                (low, high) = (-1.0, 0.0);
            }
            let missing = (MIN_DECADES - (high - low)).max(0.0) / 2.0;
            let margin = (high - low) * 0.06;
            (placed.low, placed.high) = (low - missing - margin, high + missing + margin);
        } else {
            let all = || {
                values
                    .iter()
                    .copied()
                    .chain(references.clone())
                    .chain(axis.at_least)
                    .filter(|v| v.is_finite())
            };
            placed.low = all().fold(0.0, f64::min).max(-f64::MAX / 4.0);
            placed.high = all().fold(0.0, f64::max).min(f64::MAX / 4.0);
            if placed.low < 0.0 {
                placed.low -= (placed.high - placed.low) * 0.04;
            }
            if placed.high <= placed.low {
                placed.high = placed.low + 1.0;
            }
        }
        let base = placed.low;
        let mut end = placed.high;
        for &(value, pixels) in needs {
            let value = if !log {
                value
            } else if value > 0.0 {
                value.log10()
            } else {
                base
            };
            // At most 70 % of the axis is given to a label: text wider than that is shortened by its writer.
            let room = (length - pixels).max(length * 0.3);
            if value.is_finite() {
                end = end.max(base + (value - base) * length / room);
            }
        }
        placed.high = if end.is_finite() { end } else { placed.high };
        placed
    }

    /// The place of a value; values off the axis are at its ends.
    pub fn at(&self, value: f64) -> f64 {
        let v = if !self.log {
            value
        } else if value > 0.0 {
            value.log10()
        } else {
            self.low
        };
        let share = (v - self.low) / (self.high - self.low);
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) * self.length }
    }

    /// The unit that all labels of this axis share, and its size in base units: `("ms", 1e-3)`.
    pub fn shared_unit(&self) -> (String, f64) {
        if self.log {
            return match self.unit {
                // Each label has its own prefix.
                Unit::Seconds | Unit::Bytes => (String::new(), 1.0),
                unit => (unit.axis_name(1.0), unit.scaled_for(1.0).factor),
            };
        }
        let largest = self.low.abs().max(self.high.abs());
        let factor = self.unit.scaled_for(largest).factor;
        let name = self.unit.axis_name(largest);
        let shown = largest / factor;
        let (word, more) = match self.unit {
            _ if (1e-2..2e6).contains(&shown) => return (name, factor),
            Unit::PerSecond(_) if (2e6..2e9).contains(&shown) => ("million ".to_owned(), 1e6),
            Unit::PerSecond(_) if (2e9..2e12).contains(&shown) => ("billion ".to_owned(), 1e9),
            _ => {
                let power = shown.log10().floor();
                (format!("10{} ", number::superscript(&format!("{power:.0}"))), 10f64.powf(power))
            }
        };
        (format!("{word}{name}").trim_end().to_owned(), factor * more)
    }

    /// Ticks as dense as labels allow; `extent` is the room a label takes along the axis.
    pub fn ticks(&self, extent: impl Fn(&str) -> f64) -> Vec<Tick> {
        if self.log { self.log_ticks(extent) } else { self.linear_ticks(extent) }
    }

    fn linear_ticks(&self, extent: impl Fn(&str) -> f64) -> Vec<Tick> {
        let (_, factor) = self.shared_unit();
        let (low, high) = (self.low / factor, self.high / factor);
        let first = ((high - low) / 60.0).log10().floor();
        for power in 0..6 {
            for (mantissa, extra) in [(1.0, 0), (2.0, 0), (2.5, 1), (5.0, 0)] {
                let exponent = first + f64::from(power);
                let step = mantissa * 10f64.powf(exponent);
                let (from, to) = ((low / step).ceil(), (high / step).floor());
                let between = self.whole && (step * factor).fract() != 0.0;
                if !step.is_finite() || step <= 0.0 || to - from > 60.0 || between {
                    continue;
                }
                let decimals = (-exponent as i64 + extra).clamp(0, 12) as usize;
                let labels = (0..=(to - from).max(0.0) as i64).map(|i| {
                    let value = (from + i as f64) * step;
                    Tick { at: self.at(value * factor), label: number::tick(value, decimals) }
                });
                let ticks: Vec<_> = labels.collect();
                if ticks.len() <= 7 && apart(&ticks, &extent) {
                    return ticks;
                }
            }
        }
        vec![]
    }

    fn log_ticks(&self, extent: impl Fn(&str) -> f64) -> Vec<Tick> {
        let decades = (self.low.ceil() as i32, self.high.floor() as i32);
        let tick = |mantissa: f64, power: i32| {
            let value = mantissa * 10f64.powi(power);
            (value.is_finite() && value > 0.0)
                .then(|| Tick { at: self.at(value), label: self.log_label(mantissa, power) })
        };
        let inside = |t: &Tick| t.at > 0.0 && t.at < self.length;
        for mantissas in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0]] {
            let all =
                (decades.0 - 1..=decades.1).flat_map(|p| mantissas.iter().filter_map(move |m| tick(*m, p)));
            let ticks: Vec<_> = all.filter(inside).collect();
            if ticks.len() <= 7 && apart(&ticks, &extent) {
                return ticks;
            }
        }
        for step in 1..=400 {
            let all =
                (decades.0..=decades.1).filter(|p| p.rem_euclid(step) == 0).filter_map(|p| tick(1.0, p));
            let ticks: Vec<_> = all.collect();
            if apart(&ticks, &extent) {
                return ticks;
            }
        }
        vec![]
    }

    fn log_label(&self, mantissa: f64, power: i32) -> String {
        let value = mantissa * 10f64.powi(power);
        let scaled = self.unit.scaled_for(value);
        let shown = value / scaled.factor;
        let number = if (9.9e-4..1.1e6).contains(&shown) {
            let decimals = if shown < 0.99 { (-shown.log10()).ceil() as usize } else { 0 };
            number::tick(shown, decimals)
        } else {
            let exponent = (shown / mantissa).log10().round();
            let power = format!("10{}", number::superscript(&format!("{exponent:.0}")));
            if mantissa == 1.0 { power } else { format!("{mantissa}·{power}") }
        };
        match self.unit {
            Unit::Seconds | Unit::Bytes => format!("{number}\u{a0}{}", scaled.symbol),
            _ => number,
        }
    }
}

/// Whether no two labels come closer than 10 pixels.
fn apart(ticks: &[Tick], extent: impl Fn(&str) -> f64) -> bool {
    ticks
        .windows(2)
        .all(|t| (t[1].at - t[0].at).abs() >= extent(&t[0].label).midpoint(extent(&t[1].label)) + 10.0)
}

/// Title and unit of an axis: `throughput (images/s, log scale)`.
pub(super) fn axis_title(title: &str, unit: &str, log: bool) -> String {
    let inside: Vec<_> =
        [unit, if log { "log scale" } else { "" }].into_iter().filter(|s| !s.is_empty()).collect();
    if inside.is_empty() { title.to_owned() } else { format!("{title} ({})", inside.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Estimate;
    use proptest::prelude::*;

    fn scaled(unit: Unit, log: bool, values: &[f64]) -> ScaledAxis {
        ScaledAxis::new(&Axis::new("t", unit), log, values, &[], 300.0)
    }

    fn labels(p: &ScaledAxis) -> Vec<String> {
        p.ticks(|l| l.chars().count() as f64 * 6.5).into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn ticks_are_round_and_in_the_right_unit() {
        let p = scaled(Unit::Seconds, false, &[0.0042]);
        assert_eq!(p.shared_unit(), ("ms".to_owned(), 1e-3));
        assert_eq!(labels(&p), ["0", "1", "2", "3", "4"]);
        let p = scaled(Unit::PerSecond("images"), false, &[64_200.0]);
        assert_eq!(labels(&p), ["0", "20,000", "40,000", "60,000"]);
        let p = scaled(Unit::PerSecond("images"), false, &[3.2e7]);
        assert_eq!(p.shared_unit().0, "million images/s");
        let p = scaled(Unit::Seconds, true, &[2e-5, 0.3]);
        assert_eq!(
            labels(&p),
            ["100 µs".replace(' ', "\u{a0}"), "1\u{a0}ms".into(), "10\u{a0}ms".into(), "100\u{a0}ms".into()]
        );
        let p = scaled(Unit::PerSecond("x"), true, &[120.0, 130.0]);
        assert!(labels(&p).len() >= 2, "{:?}", labels(&p));
    }

    #[test]
    fn an_axis_with_zero_is_not_logarithmic() {
        let of = |values: &[f64]| {
            let marks = values.iter().map(|v| Mark::Value(Estimate::exact(*v))).collect();
            let axis = Axis::new("t", Unit::Seconds).scale(Scale::Log);
            let panel = Panel { title: String::new(), axis, marks };
            is_log(&panel.axis, &[&panel])
        };
        assert_eq!([of(&[0.1, 2.0]), of(&[0.0, 2.0]), of(&[])], [true, false, false]);
    }

    #[test]
    fn whole_numbers_have_no_ticks_between() {
        for (last, expected) in
            [(1.0, vec!["0", "1"]), (2.0, vec!["0", "1", "2"]), (29.0, vec!["0", "5", "10"])]
        {
            let axis = Axis { whole: true, ..Axis::new("epoch", Unit::Plain("")) };
            let placed = ScaledAxis::new(&axis, false, &[last], &[], 300.0);
            let labels = labels(&placed);
            assert_eq!(labels[..expected.len()], expected, "{labels:?}");
            assert!(labels.iter().all(|l| l.parse::<u32>().is_ok()), "{labels:?}");
        }
    }

    #[test]
    fn values_with_labels_fit() {
        let p = ScaledAxis::new(
            &Axis::new("t", Unit::Seconds),
            false,
            &[1.0, 0.9],
            &[(1.0, 50.0), (0.9, 120.0)],
            300.0,
        );
        assert!(p.at(1.0) + 50.0 <= 300.01 && p.at(0.9) + 120.0 <= 300.01);
    }

    proptest! {
        #[test]
        fn any_values_have_a_place(values in prop::collection::vec(any::<f64>(), 0..6), log: bool, need in 0.0..500.0f64) {
            let needs: Vec<_> = values.iter().map(|v| (*v, need)).collect();
            for unit in [Unit::Seconds, Unit::Bytes, Unit::Fraction, Unit::PerSecond("x"), Unit::Plain("")] {
                let p = ScaledAxis::new(&Axis::new("t", unit), log, &values, &needs, 200.0);
                for v in &values {
                    prop_assert!((0.0..=200.0).contains(&p.at(*v)));
                }
                let ticks = p.ticks(|l| l.chars().count() as f64 * 6.0);
                prop_assert!(ticks.len() < 60);
                for t in ticks {
                    prop_assert!((0.0..=200.0).contains(&t.at) && t.label.len() < 40, "{t:?}");
                }
            }
        }
    }
}
