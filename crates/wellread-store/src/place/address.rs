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

/// Names in a query that sign an address of a bucket or choose a version, and beginnings of such names.
const OF_BUCKETS: [&str; 6] =
    ["awsaccesskeyid", "generation", "googleaccessid", "sig", "signature", "versionid"];
const OF_BUCKETS_BEGIN: [&str; 2] = ["x-amz-", "x-goog-"];

/// The query of an address, with its `?`. A `?` without a `=` behind it is one of a pattern or a name. So is one in a bucket,
/// unless names behind it are those of signed addresses: keys have `=` in folders such as `plate=P1`.
fn query(text: &str) -> Option<Range<usize>> {
    let (scheme, rest) = split(text)?;
    if is_web(scheme) {
        let start = scheme.len() + text[scheme.len()..].find('?')?;
        return text[start..].split('/').next()?.contains('=').then_some(start..text.len());
    }
    let is_signed = |query: &str| {
        query.split('&').filter_map(|pair| pair.split_once('=')).any(|(name, _)| {
            let name = name.to_ascii_lowercase();
            OF_BUCKETS.contains(&name.as_str())
                || OF_BUCKETS_BEGIN.iter().any(|begin| name.starts_with(begin))
        })
    };
    let before = text.len() - rest.len();
    let start =
        rest.match_indices('?').find(|(at, _)| is_signed(&rest[at + 1..])).map(|(at, _)| before + at)?;
    Some(start..text.len())
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
        let is_of_web = split(text).is_some_and(|(scheme, _)| is_web(scheme));
        let hint = if is_of_web {
            "give the s3://, gs:// or az:// address and credentials by the environment, or an https:// address without a query"
        } else {
            "leave out the ? and what stands behind it, and give credentials by the environment"
        };
        return Some(("presigned addresses, and others with a query (?name=value), are not read", hint));
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
            ("s3://bucket/a.tif?X-Amz-Algorithm=AWS4&X-Amz-Signature=1/2", "s3://bucket/a.tif"),
            ("s3://bucket/plate?/a.tif?x-amz-signature=1", "s3://bucket/plate?/a.tif"),
            ("s3://bucket/a.tif?versionId=3", "s3://bucket/a.tif"),
            ("gs://bucket/a.tif?Expires=1&GoogleAccessId=me&Signature=2", "gs://bucket/a.tif"),
            ("az://container/a.tif?sv=2024&sr=b&sig=2%2F", "az://container/a.tif"),
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
            "s3://bucket/plate=P?_site=1&2.tif",
            "http://host:80/a@2x.png",
            "http://[::1]:80/a@b",
            "http://host/plate?/x=1/a.tif",
        ] {
            assert_eq!(shown(Path::new(address)), Path::new(address));
            assert_eq!(refused(Path::new(address)), None, "{address}");
        }
    }
}
