//! Amounts of memory and of disk, as users write them.

/// Reads an amount, such as `512MiB`, `1.5GiB`, `2G` or plain bytes: a number of bytes, at least 1.
///
/// ```
/// assert_eq!(wellread_store::parse_bytes("1.5KiB"), Ok(1536));
/// assert!(wellread_store::parse_bytes("much").is_err());
/// ```
///
/// # Errors
/// Anything else.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().to_ascii_lowercase();
    let shift = match unit.as_str() {
        "" | "b" => 0,
        "k" | "kb" | "ki" | "kib" => 10,
        "m" | "mb" | "mi" | "mib" => 20,
        "g" | "gb" | "gi" | "gib" => 30,
        "t" | "tb" | "ti" | "tib" => 40,
        _ if !number.is_empty() => return Err(format!("{text:?}: unknown unit; use KiB, MiB or GiB")),
        _ => 0,
    };
    let bytes = number.parse::<f64>().ok().map(|n| n * (1u64 << shift) as f64);
    bytes
        .filter(|n| (1.0..1e18).contains(n))
        .map(|n| n as u64)
        .ok_or_else(|| format!("{text:?} is no amount of memory; write 512MiB or 1GiB"))
}

/// An amount as it is read, in the largest unit that divides it.
pub fn bytes_text(bytes: u64) -> String {
    let units = ["", "KiB", "MiB", "GiB", "TiB"];
    let unit = (bytes.trailing_zeros() as usize / 10).min(units.len() - 1);
    if bytes == 0 { "0".to_owned() } else { format!("{}{}", bytes >> (10 * unit), units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_written() {
        for (bytes, text) in [(1, "1"), (1536, "1536"), (2 << 20, "2MiB"), (3 << 40, "3TiB")] {
            assert_eq!((parse_bytes(text), bytes_text(bytes)), (Ok(bytes), text.to_owned()));
        }
        for same in ["2M", "2mb", "2 Mi", "2MiB", "2048k", "2097152B"] {
            assert_eq!(parse_bytes(same), Ok(2 << 20), "{same}");
        }
        assert_eq!(bytes_text(0), "0");
        for wrong in ["", "0", "x", "5x", "5MBB", "5MiiB", "5i", "9999999999TiB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
