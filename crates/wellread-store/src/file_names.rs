//! File names made from names of images, and names of images from file names.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

/// Longest name in bytes; leaves room for a row number and endings within the 255 bytes that file systems allow.
const MAX: usize = 200;
/// Digits of a row number in a file name, at least.
#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
const DIGITS: usize = 6;

/// Name of the file that says what the images of a folder are called.
pub(crate) const INDEX: &str = "wellread-names.json";

/// How the names of TIFF files end.
pub(crate) const TIFF: &[&str] = &["tif", "tiff"];
/// How the names of the pictures of image folders end.
pub(crate) const PICTURES: &[&str] = &["png", "jpg", "jpeg"];

/// Whether a file's name has one of these endings, in whatever case.
pub(crate) fn ends(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    ending.is_some_and(|ending| endings.contains(&ending.as_str()))
}

/// A file name, or a path, as text. Bytes that are not UTF-8 become `\xFF`, so that names that differ stay
/// different.
pub(crate) fn text(name: &OsStr) -> Cow<'_, str> {
    if let Some(text) = name.to_str() {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02X}")));
    }
    Cow::Owned(text)
}

/// A relative path as text, with `/` between its parts on every system.
pub(crate) fn path_text(path: &Path) -> String {
    path.iter().map(text).collect::<Vec<_>>().join("/")
}

/// A text in which `%41` stands for `A`; as it is where that makes no text.
pub(crate) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        if let (b'%', Some(high), Some(low)) = (byte, digit(at + 1), digit(at + 2)) {
            out.push((high * 16 + low) as u8);
            at += 3;
        } else {
            out.push(byte);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// Names of devices of Windows.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
/// Those of ports, which have a digit behind them.
const PORTS: [&str; 2] = ["com", "lpt"];

/// Whether Windows takes a file or folder of this name for a device, whatever stands behind the first point.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let port = PORTS.iter().find_map(|&port| stem.strip_prefix(port));
    DEVICES.contains(&stem.as_str()) || port.is_some_and(|number| matches!(number.as_bytes(), [b'1'..=b'9']))
}

/// A file name, without ending, for an image's name. Characters that some file system refuses become `_`, and a
/// name that is too long is cut. A name of which nothing is left becomes `image`. One of a device has `_` in front.
pub(crate) fn safe(name: &str) -> String {
    no_device(clean(name))
}

/// The name with `_` in front where it is one of a device.
fn no_device(clean: String) -> String {
    if is_device(&clean) { format!("_{clean}") } else { clean }
}

/// As [`safe`], also where that is the name of a device.
fn clean(name: &str) -> String {
    let mut clean: String = name
        .trim()
        .chars()
        .map(|c| if c.is_control() || r#"/\:*?"<>|"#.contains(c) { '_' } else { c })
        .collect();
    clean.truncate(clean.floor_char_boundary(MAX));
    // Leading dots would hide the file; trailing ones are lost on some systems.
    let visible = clean.trim_end_matches([' ', '.']);
    match visible.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if visible.is_empty() => "image".to_owned(),
        None => visible.to_owned(),
    }
}

/// A file name that sorts by its row: `000012-NAME`.
#[cfg(any(feature = "ome-zarr", feature = "tiff", feature = "image-folder"))]
pub(crate) fn numbered(row: usize, safe: &str) -> String {
    format!("{row:0DIGITS$}-{safe}")
}

/// Whether a file of this name, without ending, was written for an image called `name`. It has its row in front,
/// or, by earlier releases, a number behind. Those kept the names of devices.
#[cfg(feature = "tiff")]
pub(crate) fn is_made_of(stem: &str, name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_made = |safe: &str| {
        let row = stem.strip_suffix(safe).and_then(|rest| rest.strip_suffix('-'));
        let number = stem.strip_prefix(safe).and_then(|rest| rest.strip_prefix('-'));
        stem == safe
            || row.is_some_and(|row| row.len() >= DIGITS && is_number(row))
            || number.is_some_and(is_number)
    };
    let clean = clean(name);
    is_made(&clean) || is_made(&no_device(clean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(text(OsStr::new("aµ")), "aµ");
        assert_eq!(text(OsStr::from_bytes(b"a\xff\xc2.tif")), "a\\xFF\\xC2.tif");
        assert_ne!(text(OsStr::from_bytes(b"a\xff")), text(OsStr::from_bytes(b"a\xfe")));
    }

    #[test]
    fn names_become_safe() {
        for (name, expected) in [
            ("plate/well:A01", "plate_well_A01"),
            ("../x", "_._x"),
            (" .. ", "image"),
            ("", "image"),
            ("a.", "a"),
            (".hidden", "_hidden"),
            ("a\nb\0", "a_b_"),
            ("a\u{301}-µ", "a\u{301}-µ"),
            // Windows has devices of these names.
            ("con", "_con"),
            ("NUL.ome", "_NUL.ome"),
            ("Aux .x", "_Aux .x"),
            ("com1", "_com1"),
            ("lpt0", "lpt0"),
            ("control", "control"),
            ("a.con", "a.con"),
        ] {
            assert_eq!(safe(name), expected, "{name:?}");
        }
        assert_eq!(safe(&"µ".repeat(300)).len(), 200);
        assert_eq!(safe(&format!("x{}", "µ".repeat(300))).len(), 199);
    }

    #[cfg(feature = "tiff")]
    #[test]
    fn what_a_file_was_written_for() {
        assert_eq!(numbered(12, "a"), "000012-a");
        for stem in ["a_b", "000012-a_b", "1234567-a_b", "a_b-1", "a_b-000012"] {
            assert!(is_made_of(stem, "a/b"), "{stem}");
        }
        assert!(["con", "_con", "000012-con", "000012-_con"].iter().all(|stem| is_made_of(stem, "con")));
        for stem in ["a-b", "12-a_b", "x-a_b", "a_b-", "a_b-x", "a_b1", "-a_b", "000012a_b"] {
            assert!(!is_made_of(stem, "a/b"), "{stem}");
        }
    }
}
