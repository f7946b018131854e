//! OME's units of length (`UnitsLength` of the 2016-06 schema).

/// SI-prefixed metres, then the other convertible units of the schema: symbol and length in micrometres.
const UNITS: [(&str, f64); 33] = [
    ("Ym", 1e30),
    ("Zm", 1e27),
    ("Em", 1e24),
    ("Pm", 1e21),
    ("Tm", 1e18),
    ("Gm", 1e15),
    ("Mm", 1e12),
    ("km", 1e9),
    ("hm", 1e8),
    ("dam", 1e7),
    ("m", 1e6),
    ("dm", 1e5),
    ("cm", 1e4),
    ("mm", 1e3),
    ("µm", 1.0),
    ("nm", 1e-3),
    ("pm", 1e-6),
    ("fm", 1e-9),
    ("am", 1e-12),
    ("zm", 1e-15),
    ("ym", 1e-18),
    ("Å", 1e-4),
    ("thou", 25.4),
    ("li", 25400.0 / 12.0),
    ("in", 25400.0),
    ("ft", 304_800.0),
    ("yd", 914_400.0),
    ("mi", 1_609_344_000.0),
    ("ua", 149_597_870_700e6),
    ("ly", 9.460_730_472_580_8e21),
    ("pc", 3.085_677_581_491_367e22),
    ("pt", 25400.0 / 72.0),
    ("pixel", f64::NAN),
];

/// The schema's symbol for a unit of length. It knows the spellings met in files of any format (`um`, `micron`,
/// `micrometer`, a Greek instead of a micro sign …). It is `None` for anything else.
pub fn canonical_unit(unit: &str) -> Option<&'static str> {
    let unit = unit.trim();
    let alias = match unit {
        "um" | "\u{3bc}m" | "micron" | "microns" | "micrometer" | "micrometers" | "micrometre" => "µm",
        "nanometer" | "nanometers" | "nanometre" => "nm",
        "millimeter" | "millimeters" | "millimetre" => "mm",
        "centimeter" | "centimeters" | "centimetre" => "cm",
        "meter" | "meters" | "metre" => "m",
        "picometer" | "picometers" | "picometre" => "pm",
        "angstrom" | "angstroms" | "A" | "\u{212b}" => "Å",
        "inch" | "inches" => "in",
        "pixels" => "pixel",
        "reference frame" => return Some("reference frame"),
        other => other,
    };
    UNITS.iter().map(|&(symbol, _)| symbol).find(|&symbol| symbol == alias)
}

/// Units of time (`UnitsTime`) that experiments are measured in, with the spellings met in files.
const TIME_UNITS: [(&str, &[&str]); 8] = [
    ("s", &["second", "seconds", "sec"]),
    ("ms", &["millisecond", "milliseconds", "msec"]),
    ("µs", &["us", "\u{3bc}s", "microsecond", "microseconds"]),
    ("ns", &["nanosecond", "nanoseconds"]),
    ("ps", &["picosecond", "picoseconds"]),
    ("min", &["minute", "minutes"]),
    ("h", &["hour", "hours"]),
    ("d", &["day", "days"]),
];

/// The schema's symbol for a unit of time; `None` for anything else.
pub fn canonical_time_unit(unit: &str) -> Option<&'static str> {
    let unit = unit.trim();
    let found = TIME_UNITS.iter().find(|(symbol, others)| *symbol == unit || others.contains(&unit));
    found.map(|(symbol, _)| *symbol)
}

/// A length in micrometres; `None` if the unit is unknown or has no fixed length (`pixel`).
pub fn micrometres(value: f64, unit: &str) -> Option<f64> {
    let symbol = canonical_unit(unit)?;
    let (_, factor) = UNITS.iter().find(|&&(known, _)| known == symbol)?;
    // Dividing by a whole number is exact where multiplying by its inverse is not: 461 nm are 0.461 µm.
    let length = if *factor < 1.0 { value / (1.0 / factor).round() } else { value * factor };
    length.is_finite().then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_convert() {
        assert_eq!(micrometres(461.0, "nm"), Some(0.461));
        assert_eq!(micrometres(0.65, "\u{3bc}m"), Some(0.65));
        assert_eq!(micrometres(5190.0, "Å"), Some(0.519));
        assert_eq!(micrometres(2.0, "mm"), Some(2000.0));
        assert_eq!(micrometres(1.0, "pixel"), None);
        assert_eq!(micrometres(1.0, "furlong"), None);
        assert_eq!(canonical_unit("micrometer"), Some("µm"));
        assert_eq!(
            ["s", " minutes ", "\u{3bc}s", "m", ""].map(canonical_time_unit),
            [Some("s"), Some("min"), Some("µs"), None, None]
        );
    }
}
