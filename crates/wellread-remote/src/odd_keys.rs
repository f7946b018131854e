//! Keys that no address names, such as `a//b`, or those with a line break, as a Mac's `Icon` files have. The library refuses a whole page
//! of a listing for one of them, so they are taken out of the page before it reads it.

use bytes::Bytes;
use http::Method;
use object_store::path::Path as Key;
use std::io::{self, Write as _};
use std::sync::Once;

/// Tags of the entries in a listing, and of the key in each: of S3 and Google, then of Azure.
const ENTRIES: [(&str, &str); 4] =
    [("Contents", "Key"), ("CommonPrefixes", "Prefix"), ("Blob", "Name"), ("BlobPrefix", "Name")];

/// Whether a request asks for a listing.
pub(crate) fn is_listing(method: &Method, query: Option<&str>) -> bool {
    let mut pairs = query.unwrap_or_default().split('&');
    *method == Method::GET && pairs.any(|pair| matches!(pair, "list-type=2" | "comp=list"))
}

/// A page of a listing without such keys. The first of a process is noted on standard error.
pub(crate) fn left_out(page: Bytes) -> Bytes {
    static NOTED: Once = Once::new();
    let Some((kept, key)) = std::str::from_utf8(&page).ok().and_then(without) else { return page };
    NOTED.call_once(|| {
        let key = key.escape_debug();
        let note = format!(
            "note: keys as {key} are left out: no address has empty names, dots or line breaks between its slashes"
        );
        let _ = writeln!(io::stderr(), "{note}");
    });
    kept.into()
}

/// The page without such keys, and the first of them; `None` where it has none.
fn without(page: &str) -> Option<(String, String)> {
    let (mut first, mut kept): (Option<String>, Option<String>) = (None, None);
    for (tag, name) in ENTRIES {
        let text = kept.as_deref().unwrap_or(page);
        if let Some((text, key)) = without_entries(text, tag, name) {
            first.get_or_insert(key);
            kept = Some(text);
        }
    }
    kept.zip(first)
}

fn without_entries(text: &str, tag: &str, name: &str) -> Option<(String, String)> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let (mut kept, mut first, mut rest, mut whole) = (String::new(), None, text, text);
    while let Some((_, behind)) = rest.split_once(&open) {
        let Some((entry, after)) = behind.split_once(&close) else { break };
        if let Some(key) = key_of(entry, name).filter(|key| is_odd(key)) {
            let before = whole.len() - behind.len() - open.len();
            kept.push_str(&whole[..before]);
            first.get_or_insert(key);
            whole = after;
        }
        rest = after;
    }
    first.map(|first| (kept + whole, first))
}

/// The key in an entry.
fn key_of(entry: &str, name: &str) -> Option<String> {
    let (_, behind) = entry.split_once(&format!("<{name}>"))?;
    behind.split_once("</").map(|(key, _)| with_characters(key))
}

/// Text with those characters that stand in it by their numbers, such as the line break `&#13;`. No key is odd for any that stand by
/// names.
fn with_characters(text: &str) -> String {
    let mut parts = text.split("&#");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some((number, behind)) = part.split_once(';')
            && let Some(character) = character(number)
        {
            whole.push(character);
            whole.push_str(behind);
        } else {
            whole.push_str("&#");
            whole.push_str(part);
        }
    }
    whole
}

/// The character of a number, which is one of sixteen digits where an `x` stands before it.
fn character(number: &str) -> Option<char> {
    let number = match number.strip_prefix('x') {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    char::from_u32(number.ok()?)
}

/// Whether no address names a key. One that begins with a slash would be read as that without it.
fn is_odd(key: &str) -> bool {
    key.starts_with('/') || Key::parse(key).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_an_address_are_taken_out() {
        let contents = |key: &str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
        let prefix = |key: &str| format!("<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>");
        let page =
            |entries: &[String]| format!("<R><Name>b</Name><Prefix>k//</Prefix>{}</R>", entries.concat());
        let good = [contents("k/a"), contents("k/"), prefix("k/b/"), contents("..k/.a &amp; b")];
        assert_eq!(without(&page(&good)), None);
        let odd = ["k//c", "/d", "k/./e", "k/../f", "k//"].map(contents);
        let mut all = vec![odd[0].clone(), good[0].clone(), odd[1].clone(), odd[2].clone(), good[1].clone()];
        all.extend([prefix("k//"), good[2].clone(), odd[3].clone(), good[3].clone(), odd[4].clone()]);
        assert_eq!(without(&page(&all)), Some((page(&good), "k//c".to_owned())));
        let blob = |name: &str| format!("<Blob><Name>{name}</Name></Blob>");
        let folder = |name: &str| format!("<BlobPrefix><Name>{name}</Name></BlobPrefix>");
        let page = |entries: &[String]| format!("<Blobs>{}</Blobs>", entries.concat());
        let kept = page(&[blob("a"), folder("b/")]);
        let all = page(&[folder("//"), blob("a"), blob("c//d"), folder("b/")]);
        assert_eq!(without(&all), Some((kept, "c//d".to_owned())));
        assert_eq!(without("<Contents><Key>a//b"), None);
    }

    #[test]
    fn line_breaks_are_found_by_their_numbers_too() {
        let page = |key: &str| format!("<Contents><Key>{key}</Key></Contents>");
        for key in ["k/Icon&#13;", "k/Icon&#xD;", "k/Icon&#xd;", "k/Icon\r", "k/a&#10;b"] {
            let odd = without(&(page("k/a") + &page(key) + &page("k/z"))).map(|(kept, _)| kept);
            assert_eq!(odd, Some(page("k/a") + &page("k/z")), "{key}");
        }
        for key in ["k/&amp;#13;", "k/a&#32;b", "k/a&#x20ac;", "k/a&#b", "k/&#;", "k/&quot;"] {
            assert_eq!(without(&page(key)), None, "{key}");
        }
        assert_eq!(with_characters("a&#66;c&#x64;&#;&#e"), "aBcd&#;&#e");
    }

    #[test]
    fn listings_are_told_from_other_requests() {
        assert!(is_listing(&Method::GET, Some("list-type=2&prefix=a")));
        assert!(is_listing(&Method::GET, Some("restype=container&comp=list")));
        assert!(!is_listing(&Method::GET, Some("prefix=list-type=2")) && !is_listing(&Method::GET, None));
        assert!(!is_listing(&Method::PUT, Some("comp=list")));
    }
}
