//! Units of length and time: OME-Zarr spells them out, OME-XML has symbols.

/// Unit names of OME-Zarr (UDUNITS-2) and the symbols of OME-XML.
const UNITS: [(&str, &str); 19] = [
    ("angstrom", "Å"),
    ("picometer", "pm"),
    ("nanometer", "nm"),
    ("micrometer", "µm"),
    ("millimeter", "mm"),
    ("centimeter", "cm"),
    ("decimeter", "dm"),
    ("meter", "m"),
    ("kilometer", "km"),
    ("inch", "in"),
    ("foot", "ft"),
    ("second", "s"),
    ("millisecond", "ms"),
    ("microsecond", "µs"),
    ("nanosecond", "ns"),
    ("picosecond", "ps"),
    ("minute", "min"),
    ("hour", "h"),
    ("day", "d"),
];

/// OME-XML's symbol of a unit that OME-Zarr spells out; unknown units as they are.
pub(super) fn symbol(unit: &str) -> &str {
    UNITS.iter().find(|(name, _)| *name == unit).map_or(unit, |(_, symbol)| symbol)
}

/// OME-Zarr's spelling of a unit symbol; unknown units as they are.
pub(super) fn unit_name(symbol: &str) -> &str {
    // U+03BC (Greek mu) is a common stand-in for U+00B5 (micro sign).
    let symbol = if symbol == "\u{3bc}m" { "µm" } else { symbol };
    UNITS.iter().find(|(_, s)| *s == symbol).map_or(symbol, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_names_and_symbols() {
        for (name, s) in UNITS {
            assert_eq!((symbol(name), unit_name(s)), (s, name));
        }
    }
}
