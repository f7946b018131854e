//! Numbers as people read them: three significant digits, SI prefixes, thousands separators, real minus signs.

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds, shown as ns, µs, ms, s or min.
    Seconds,
    /// Bytes, shown as B, kB, MB … (powers of 1,000).
    Bytes,
    /// A share from 0 to 1, shown in percent.
    Fraction,
    /// A number that already is in percent.
    Percent,
    /// Things per second; the text is what is counted, such as `images`.
    PerSecond(&'static str),
    /// Any other unit, such as `bits/pixel`; empty for a pure number.
    Plain(&'static str),
}

/// A unit with its prefix: numbers are divided by `factor` and followed by `symbol`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    /// The size of one of this unit in base units.
    pub factor: f64,
    /// How it is written: `ms`.
    pub symbol: &'static str,
}

const TIMES: &[Scaled] = &[
    Scaled { factor: 1e-9, symbol: "ns" },
    Scaled { factor: 1e-6, symbol: "µs" },
    Scaled { factor: 1e-3, symbol: "ms" },
    Scaled { factor: 1.0, symbol: "s" },
];
const SIZES: &[Scaled] = &[
    Scaled { factor: 1.0, symbol: "B" },
    Scaled { factor: 1e3, symbol: "kB" },
    Scaled { factor: 1e6, symbol: "MB" },
    Scaled { factor: 1e9, symbol: "GB" },
    Scaled { factor: 1e12, symbol: "TB" },
];

impl Unit {
    /// The prefix that shows `magnitude` as a number from 1 to 999, or the nearest there is.
    pub fn scaled_for(self, magnitude: f64) -> Scaled {
        let pick = |all: &[Scaled]| {
            if magnitude == 0.0 {
                return all.iter().find(|s| s.factor == 1.0).copied().unwrap_or(all[0]);
            }
            // 999.5 would be printed as 1,000 of the smaller unit.
            all.iter().rev().find(|s| magnitude.abs() >= s.factor * 0.9995).copied().unwrap_or(all[0])
        };
        match self {
            Self::Seconds => pick(TIMES),
            Self::Bytes => pick(SIZES),
            Self::Fraction => Scaled { factor: 0.01, symbol: "%" },
            Self::Percent => Scaled { factor: 1.0, symbol: "%" },
            Self::PerSecond(_) => Scaled { factor: 1.0, symbol: "/s" },
            Self::Plain(symbol) => Scaled { factor: 1.0, symbol },
        }
    }

    /// The number with its unit: `1.23 ms`, `12,300/s`, `4.1 %`.
    pub fn format(self, value: f64) -> String {
        let scaled = self.scaled_for(value);
        let shown = value / scaled.factor;
        let number = match self {
            // Digits beyond a hundredth of a percent are never meant.
            Self::Fraction | Self::Percent if shown != 0.0 && shown.abs() < 0.01 => "<0.01".to_owned(),
            Self::Fraction | Self::Percent if shown.abs() < 1.0 => tick(shown, 2),
            _ => significant(shown),
        };
        match (self, scaled.symbol) {
            (_, "") => number,
            (Self::PerSecond(_), s) => format!("{number}{s}"),
            (_, s) => format!("{number}\u{a0}{s}"),
        }
    }

    /// The name of the unit for an axis whose largest value is `max`: `ms`, `images/s`, `%`.
    pub fn axis_name(self, max: f64) -> String {
        match self {
            Self::PerSecond(what) => format!("{what}/s"),
            _ => self.scaled_for(max).symbol.to_owned(),
        }
    }
}

/// `value` with three significant digits and thousands separators; very large and very small numbers in
/// scientific notation.
pub fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return if value.is_nan() {
            "n/a"
        } else if value > 0.0 {
            "∞"
        } else {
            "−∞"
        }
        .to_owned();
    }
    let magnitude = value.abs();
    let digits = if (1e-3..1e12).contains(&magnitude) {
        // Rounding may add a digit (9.999 → 10.0), so the decade is that of the rounded number.
        let decade: i32 =
            format!("{magnitude:.2e}").split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
        let decimals = usize::try_from(2 - decade).unwrap_or(0);
        let step = 10f64.powi((decade - 2).max(0));
        let rounded = if decade > 2 { (magnitude / step).round() * step } else { magnitude };
        separated(&format!("{rounded:.decimals$}"))
    } else {
        let text = format!("{magnitude:.2e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{mantissa}×10{}", superscript(exponent))
    };
    if value < 0.0 { format!("−{digits}") } else { digits }
}

/// An integer with thousands separators.
pub fn count(value: i64) -> String {
    let digits = separated(&value.unsigned_abs().to_string());
    if value < 0 { format!("−{digits}") } else { digits }
}

/// `value` with just the decimals it needs (at most `decimals`), for the ticks of an axis.
pub(crate) fn tick(value: f64, decimals: usize) -> String {
    let digits = separated(&format!("{:.decimals$}", value.abs()));
    if value < 0.0 { format!("−{digits}") } else { digits }
}

pub(crate) fn superscript(exponent: &str) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(c),
    };
    exponent.chars().map(digit).collect()
}

/// Commas between groups of three digits of the whole part.
fn separated(digits: &str) -> String {
    let (whole, rest) = digits.find('.').map_or((digits, ""), |dot| digits.split_at(dot));
    let mut out = String::with_capacity(digits.len() + whole.len() / 3);
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1.00"),
            (9.999, "10.0"),
            (99.95, "100"),
            (999.6, "1,000"),
            (12_345.0, "12,300"),
            (-1_234_567.0, "−1,230,000"),
            (0.012_345, "0.0123"),
            (0.000_012, "1.20×10⁻⁵"),
            (3.2e15, "3.20×10¹⁵"),
            (f64::INFINITY, "∞"),
            (f64::NAN, "n/a"),
        ] {
            assert_eq!(significant(value), text, "{value}");
        }
    }

    #[test]
    fn units_choose_their_prefix() {
        assert_eq!(Unit::Seconds.format(0.001_234), "1.23\u{a0}ms");
        assert_eq!(Unit::Seconds.format(0.000_999_9), "1.00\u{a0}ms");
        assert_eq!(Unit::Seconds.format(4.2e-8), "42.0\u{a0}ns");
        assert_eq!(Unit::Seconds.format(0.0), "0\u{a0}s");
        assert_eq!(Unit::Fraction.format(1e-9), "<0.01\u{a0}%");
        assert_eq!(Unit::Fraction.format(0.004_41), "0.44\u{a0}%");
        assert_eq!(Unit::Bytes.format(1_536.0), "1.54\u{a0}kB");
        assert_eq!(Unit::Fraction.format(0.043), "4.30\u{a0}%");
        assert_eq!(Unit::PerSecond("images").format(64_180.0), "64,200/s");
        assert_eq!(Unit::Plain("").format(2.0), "2.00");
        assert_eq!(Unit::PerSecond("images").axis_name(5.0), "images/s");
        assert_eq!(count(-1_234_567), "−1,234,567");
        assert_eq!(count(i64::MIN), "−9,223,372,036,854,775,808");
    }
}
