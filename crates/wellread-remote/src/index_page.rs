//! Index pages of web servers: the names in a folder are what its page links to, directly below itself.

use std::collections::BTreeMap;

/// Names that an index page at the path `base` (of the URL, with a slash at the end) links to. It says whether each is a folder.
pub(crate) fn names(page: &str, base: &str) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    let lower = page.to_ascii_lowercase();
    let mut at = 0;
    while let Some(next) = lower[at..].find("href=") {
        at += next + "href=".len();
        let rest = &page[at..];
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
        let Some(target) = rest[1..].split(quote).next() else { continue };
        if let Some((name, is_folder)) = name(target, base) {
            found.insert(name, is_folder);
        }
    }
    found
}

/// The name that a link leads to, if that lies directly in the folder.
fn name(target: &str, base: &str) -> Option<(String, bool)> {
    let target = target.split(['?', '#']).next().unwrap_or_default();
    let inside = if target.starts_with('/') {
        below(target, base)?
    } else if let Some(inside) = target.strip_prefix("./") {
        // Apache puts this before names with a colon, which would be an address without it.
        inside
    } else {
        Some(target).filter(|target| !target.contains(':'))?
    };
    let (inside, is_folder) = inside.strip_suffix('/').map_or((inside, false), |name| (name, true));
    if inside.contains('/') {
        return None;
    }
    let name = decoded(&inside.replace("&amp;", "&"))?;
    let is_name = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    is_name.then_some((name, is_folder))
}

/// The part of a path below a folder's. Servers encode other characters than the client does, so names are compared decoded.
fn below<'a>(path: &'a str, base: &str) -> Option<&'a str> {
    let mut rest = path;
    for folder in base.split_inclusive('/').filter(|part| part.ends_with('/')) {
        let (own, behind) = rest.split_at(rest.find('/')? + 1);
        if bytes_of(&own.replace("&amp;", "&")) != bytes_of(folder) {
            return None;
        }
        rest = behind;
    }
    Some(rest)
}

/// Text with `%20` and its kin resolved.
fn decoded(text: &str) -> Option<String> {
    String::from_utf8(bytes_of(text)).ok()
}

fn bytes_of(text: &str) -> Vec<u8> {
    let (bytes, mut out, mut at) = (text.as_bytes(), vec![], 0);
    while at < bytes.len() {
        let hex = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_directly_below_are_names() {
        let page = r#"<a href="../">up</a> <A HREF='a%20b.tif'>a b.tif</a> <a href="plate/">plate/</a> <a href="?C=N;O=D">Name</a>
            <a href="/data/set/c&amp;d.png">c</a> <a href="/other/e.png">e</a> <a href="https://elsewhere/f.png">f</a>
            <a href="x/y.tif">deep</a> <a href="./g.tif">g</a> <a href=h.tif>h</a> <a href="">self</a> <a href="/data/set/">self</a>"#;
        let found = names(page, "/data/set/");
        let found: Vec<_> = found.iter().map(|(name, is_folder)| (name.as_str(), *is_folder)).collect();
        assert_eq!(found, [("a b.tif", false), ("c&d.png", false), ("g.tif", false), ("plate", true)]);
    }

    #[test]
    fn names_may_have_a_colon() {
        let page = r#"<a href="./10:30.tif">a</a> <a href="/set/11:30/">b</a> <a href="12%3A30.tif">c</a>
            <a href="mailto:d.tif">d</a> <a href="https://elsewhere/e.tif">e</a>"#;
        let found = names(page, "/set/");
        let found: Vec<_> = found.iter().map(|(name, is_folder)| (name.as_str(), *is_folder)).collect();
        assert_eq!(found, [("10:30.tif", false), ("11:30", true), ("12:30.tif", false)]);
    }

    #[test]
    fn absolute_links_are_compared_decoded() {
        let page = r#"<a href="/plate%20%281%29/a.tif">a</a> <a href="/plate (1)/b.tif">b</a> <a href="/plate%20(1)/c%20d/">c d</a>
            <a href="/plate%20%282%29/e.tif">e</a> <a href="/plate%20(1)%2Ff.tif">f</a> <a href="/">top</a>"#;
        let found = names(page, "/plate%20(1)/");
        let found: Vec<_> = found.iter().map(|(name, is_folder)| (name.as_str(), *is_folder)).collect();
        assert_eq!(found, [("a.tif", false), ("b.tif", false), ("c d", true)]);
        assert_eq!(names(r#"<a href="/r&amp;d/a.tif">"#, "/r&d/"), BTreeMap::from([("a.tif".into(), false)]));
    }

    #[test]
    fn broken_pages_name_nothing() {
        for page in ["", "href=", "href=\"", "<a href=\"%zz%\">", "href=\"%ff\""] {
            let found = names(page, "/");
            assert!(found.len() <= 1, "{page}: {found:?}");
        }
        assert_eq!(decoded("%C3%A4%2"), Some("ä%2".into()));
        assert_eq!(decoded("%ff"), None);
    }
}
