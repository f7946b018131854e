//! Addresses as users give them: those that no place reads, and the parts that must not be shown.
//!
//! ```text
//!  https://me:word@host/a.tif?sig=…  ──refused──▶ why, and what to do, before any request is made
//!                                    ──shown────▶ https://host/a.tif, for errors
//! ```

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// Scheme and rest of an address.
fn split(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_one = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (!scheme.is_empty() && scheme.chars().all(is_one)).then_some((scheme, rest))
}

fn is_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Name and password before the host, with their `@`. `container@account` of Azure is none.
fn user(text: &str) -> Option<Range<usize>> {
    let (scheme, rest) = split(text)?;
    let host = rest.split(['/', '?', '#']).next()?;
    let end = if let Some(at) = host.rfind('@') {
        at + 1
    } else {
        // A password may have a slash in it: the text behind the colon is no port then.
        let (_, port) = host.split_once(':').filter(|_| !host.starts_with('['))?;
        if port.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        rest.rfind('@')? + 1
    };
    let start = scheme.len() + "://".len();
    (is_web(scheme) || rest[..end].contains(':')).then_some(start..start + end)
}

/// The query of a web address, with its `?`. A `?` without a `=` behind it is one of a pattern or a name.
fn query(text: &str) -> Option<Range<usize>> {
    let (scheme, _) = split(text).filter(|(scheme, _)| is_web(scheme))?;
    let start = scheme.len() + text[scheme.len()..].find('?')?;
    text[start..].split('/').next()?.contains('=').then_some(start..text.len())
}

/// The reason why no place reads an address, and the advice: one that holds a password or a signature.
pub fn refused(path: &Path) -> Option<(&'static str, &'static str)> {
    let text = path.to_str()?;
    if user(text).is_some() {
        return Some((
            "addresses with a name or password before the host are not read",
            "leave out what stands before the @, and give credentials by the environment where the place takes them",
        ));
    }
    if query(text).is_some() {
        return Some((
            "presigned addresses, and others with a query (?name=value), are not read",
            "give the s3://, gs:// or az:// address and credentials by the environment, or an https:// address without a query",
        ));
    }
    None
}

/// A path as it may be shown: an address without name, password and query.
pub fn shown(path: &Path) -> Cow<'_, Path> {
    // Most paths are no address.
    let Some(text) = path.to_str().filter(|text| text.contains("://")) else { return Cow::Borrowed(path) };
    let (user, query) = (user(text), query(text));
    if user.is_none() && query.is_none() {
        return Cow::Borrowed(path);
    }
    let user = user.unwrap_or(0..0);
    let end = query.map_or(text.len(), |query| query.start).max(user.end);
    Cow::Owned(format!("{}{}", &text[..user.start], &text[user.end..end]).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_refused_and_not_shown() {
        for (address, without) in [
            ("https://me:word@host/a.tif", "https://host/a.tif"),
            ("HTTP://me@host:80", "HTTP://host:80"),
            ("http://me:wo/r@d@host/a", "http://host/a"),
            ("s3://key:secret@bucket/a", "s3://bucket/a"),
            ("https://host/a b.tif?X-Amz-Signature=1/2", "https://host/a b.tif"),
            ("https://me:word@host/a?sv=1&sig=2", "https://host/a"),
        ] {
            assert_eq!(shown(Path::new(address)), Path::new(without));
            let (cause, hint) = refused(Path::new(address)).unwrap();
            assert!(cause.contains("are not read") && hint.contains("environment"), "{cause} {hint}");
        }
    }

    #[test]
    fn all_others_are_as_they_are() {
        for address in [
            "a.tif",
            "/data/me@host/a?b=c.tif",
            "/data/x://me:word@host",
            "abfs://container@account.dfs.core.windows.net/a",
            "s3://bucket/a@2x.png",
            "s3://bucket/plate?/a=b.tif",
            "http://host:80/a@2x.png",
            "http://[::1]:80/a@b",
            "http://host/plate?/x=1/a.tif",
        ] {
            assert_eq!(shown(Path::new(address)), Path::new(address));
            assert_eq!(refused(Path::new(address)), None, "{address}");
        }
    }
}
