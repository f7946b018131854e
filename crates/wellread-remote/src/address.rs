//! An address in its parts: `s3://bucket/plate/a.tif` is scheme, bucket and key.

use object_store::path::Path as Key;
use std::io;
use std::path::Path;
use wellread_store::place;

/// Where something lies, as each cloud's API has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The part before `://`.
    pub(crate) scheme: String,
    /// Bucket, container (with an account, `container@account.…`), or host and port.
    pub(crate) bucket: String,
    /// The object's key; empty for the bucket itself.
    pub(crate) key: Key,
}

impl Address {
    /// The parts of an address. Slashes at the end and doubled ones do not count.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        let text = path.to_str().ok_or_else(|| invalid("the address is no Unicode text"))?;
        if let Some((cause, hint)) = place::refused(path) {
            return Err(invalid(&format!("{cause}; {hint}")));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| invalid("it is no address"))?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(invalid("the address names no bucket or host"));
        }
        let parts: Vec<_> = key.split('/').filter(|part| !part.is_empty()).collect();
        if parts.iter().any(|part| matches!(*part, "." | "..")) {
            return Err(invalid(
                "addresses have no `.` and no `..` in them: write the whole address without these",
            ));
        }
        let key = Key::parse(parts.join("/")).map_err(|e| invalid(&format!("the key is none: {e}")))?;
        Ok(Self { scheme: scheme.to_owned(), bucket: bucket.to_owned(), key })
    }

    /// Whether it is a whole bucket.
    pub(crate) fn is_bucket(&self) -> bool {
        self.key.as_ref().is_empty()
    }

    /// Another key of the same bucket.
    pub(crate) fn with_key(&self, key: Key) -> Self {
        Self { key, ..self.clone() }
    }

    /// The name of its bucket, which no other bucket has.
    pub(crate) fn bucket_name(&self) -> String {
        format!("{}://{}", self.scheme, self.bucket)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}/{}", self.scheme, self.bucket, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_three_parts() {
        let of = |path: &str| {
            Address::of(Path::new(path)).map(|a| (a.scheme.clone(), a.bucket.clone(), a.key.to_string()))
        };
        let parts =
            |scheme: &str, bucket: &str, key: &str| (scheme.to_owned(), bucket.to_owned(), key.to_owned());
        assert_eq!(of("s3://b/p/a b%.tif").unwrap(), parts("s3", "b", "p/a b%.tif"));
        assert_eq!(of("s3://b//p/").unwrap(), parts("s3", "b", "p"));
        assert_eq!(of("s3://b").unwrap(), parts("s3", "b", ""));
        assert_eq!(of("http://h:80/a").unwrap(), parts("http", "h:80", "a"));
        for wrong in
            ["a", "s3://", "s3:///a", "s3://b/../a", "s3://b/./a", "http://me:word@h/a", "http://h/a?b=c"]
        {
            assert_eq!(of(wrong).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{wrong}");
        }
        let address = Address::of(Path::new("s3://b/p/a")).unwrap();
        assert_eq!((address.to_string(), address.bucket_name()), ("s3://b/p/a".into(), "s3://b".into()));
        assert!(!address.is_bucket() && Address::of(Path::new("s3://b/")).unwrap().is_bucket());
    }
}
