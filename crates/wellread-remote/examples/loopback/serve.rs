//! A folder as S3 would show it: its folders are buckets, files below them are objects.

use crate::http::{Answer, Request, encoded};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Keys of a page of a listing at most.
const PAGE: usize = 1000;

/// The answer to a request.
pub(crate) fn answer(root: &Path, request: &Request) -> Answer {
    let (bucket, key) = request
        .path
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or((request.path.trim_start_matches('/'), ""));
    let Some(file) = within(root, bucket, key) else { return refused(400, "InvalidURI") };
    let folder = root.join(bucket);
    if bucket.is_empty() || !folder.is_dir() {
        return refused(404, "NoSuchBucket");
    }
    match (request.method.as_str(), key) {
        ("GET", "") if request.asked("location").is_some() => {
            Answer::text(200, "application/xml", "<LocationConstraint>us-east-1</LocationConstraint>".into())
        }
        ("GET", "") => list(&folder, bucket, request).unwrap_or_else(|_| refused(500, "InternalError")),
        ("HEAD", "") => Answer::text(200, "application/xml", String::new()),
        ("GET" | "HEAD", _) => object(&file, request).unwrap_or_else(|_| refused(404, "NoSuchKey")),
        _ => refused(405, "MethodNotAllowed"),
    }
}

fn refused(status: u16, code: &str) -> Answer {
    Answer::text(status, "application/xml", format!("<Error><Code>{code}</Code></Error>"))
}

/// The file of a key, which lies in its bucket.
fn within(root: &Path, bucket: &str, key: &str) -> Option<PathBuf> {
    let inside = Path::new(bucket).join(key);
    let is_plain = inside.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain.then(|| root.join(inside))
}

/// Length, tag and time of a file.
struct About {
    length: u64,
    tag: String,
    seconds: u64,
}

fn about(meta: &fs::Metadata) -> About {
    let since =
        meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let tag = format!("\"{:x}-{:x}\"", since.as_nanos(), meta.len());
    About { length: meta.len(), tag, seconds: since.as_secs() }
}

fn object(path: &Path, request: &Request) -> io::Result<Answer> {
    let mut file = File::open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Ok(refused(404, "NoSuchKey"));
    }
    let About { length, tag, seconds } = about(&meta);
    if request
        .header("if-match")
        .is_some_and(|wanted| wanted != "*" && wanted.trim_matches('"') != tag.trim_matches('"'))
    {
        return Ok(refused(412, "PreconditionFailed"));
    }
    let mut headers = vec![
        ("ETag".to_owned(), tag),
        ("Last-Modified".to_owned(), date(seconds)),
        ("Accept-Ranges".to_owned(), "bytes".to_owned()),
        ("Content-Type".to_owned(), "application/octet-stream".to_owned()),
    ];
    let (mut status, mut start, mut end) = (200, 0, length);
    if let Some(range) = request.header("range") {
        let Some(found) = wanted(range, length) else { return Ok(refused(416, "InvalidRange")) };
        (status, (start, end)) = (206, found);
        headers.push(("Content-Range".to_owned(), format!("bytes {start}-{}/{length}", end - 1)));
    }
    let mut body = vec![];
    if request.method == "GET" {
        body = vec![0; usize::try_from(end - start).unwrap_or(usize::MAX)];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut body)?;
    }
    Ok(Answer { status, headers, body, length: Some(end - start), is_last: false })
}

/// Start and end of `bytes=a-b`, `bytes=a-`, `bytes=-n` in an object of this length.
fn wanted(range: &str, length: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (start, end) = if first.is_empty() {
        (length.saturating_sub(last.parse().ok()?), length)
    } else if last.is_empty() {
        (first.parse().ok()?, length)
    } else {
        (first.parse().ok()?, last.parse::<u64>().ok()?.saturating_add(1).min(length))
    };
    (start < end).then_some((start, end))
}

/// A page of a listing, of either version.
fn list(folder: &Path, bucket: &str, request: &Request) -> io::Result<Answer> {
    let prefix = request.asked("prefix").unwrap_or_default();
    let delimiter = request.asked("delimiter").unwrap_or_default();
    let after = ["continuation-token", "start-after", "marker"].iter().find_map(|name| request.asked(name));
    let most = request.asked("max-keys").and_then(|n| n.parse().ok()).unwrap_or(PAGE).min(PAGE);
    // No key that begins with the prefix lies outside of its last folder.
    let start = prefix.rsplit_once('/').map_or("", |(start, _)| start);
    let mut keys = vec![];
    if let Some(start) = within(folder, start, "").or_else(|| start.is_empty().then(|| folder.to_owned())) {
        below(&start, folder, delimiter == "/", prefix, &mut keys)?;
    }
    keys.sort_unstable();
    let show = |text: &str| {
        if request.asked("encoding-type") == Some("url") { encoded(text) } else { escaped(text) }
    };
    let (mut contents, mut prefixes, mut entries, mut last) = (String::new(), BTreeSet::new(), 0, None);
    let mut is_cut = false;
    for key in keys.iter().filter(|key| key.starts_with(prefix)) {
        let inside = &key[prefix.len()..];
        let common = (!delimiter.is_empty())
            .then(|| inside.find(delimiter).map(|at| &key[..prefix.len() + at + delimiter.len()]))
            .flatten();
        let entry = common.unwrap_or(key);
        if prefixes.contains(entry) || after.is_some_and(|after| entry <= after) {
            continue;
        }
        if entries == most {
            is_cut = true;
            break;
        }
        entries += 1;
        last = Some(entry);
        if let Some(common) = common {
            prefixes.insert(common);
            continue;
        }
        let About { length, tag, seconds } = about(&fs::metadata(folder.join(key))?);
        let _ = write!(
            contents,
            "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{length}</Size>\
             <StorageClass>STANDARD</StorageClass></Contents>",
            show(key),
            instant(seconds),
            escaped(&tag)
        );
    }
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <Name>{}</Name><Prefix>{}</Prefix><MaxKeys>{most}</MaxKeys><KeyCount>{entries}</KeyCount><IsTruncated>{is_cut}</IsTruncated>",
        escaped(bucket),
        show(prefix)
    );
    if request.asked("encoding-type") == Some("url") {
        text.push_str("<EncodingType>url</EncodingType>");
    }
    if let Some(last) = last.filter(|_| is_cut) {
        let token = escaped(last);
        let _ = write!(
            text,
            "<NextContinuationToken>{token}</NextContinuationToken><NextMarker>{token}</NextMarker>"
        );
    }
    text.push_str(&contents);
    for common in prefixes {
        let _ = write!(text, "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", show(common));
    }
    text.push_str("</ListBucketResult>");
    Ok(Answer::text(200, "application/xml", text))
}

/// Keys below a folder. With a delimiter one is enough that tells that something lies in a folder.
fn below(at: &Path, bucket: &Path, is_flat: bool, prefix: &str, keys: &mut Vec<String>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(at) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let Some(key) = path.strip_prefix(bucket).ok().and_then(Path::to_str) else { continue };
        if !entry.file_type()?.is_dir() {
            keys.push(key.to_owned());
        } else if is_flat && key.starts_with(prefix) {
            keys.push(format!("{key}/"));
        } else {
            below(&path, bucket, is_flat, prefix, keys)?;
        }
    }
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Year, month and day, and the seconds of the day.
fn civil(seconds: u64) -> (u64, u64, u64, u64) {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_month, rest)
}

/// As headers have it.
fn date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day, rest) = civil(seconds);
    let weekday = DAYS[(seconds / 86_400 % 7) as usize];
    let name = MONTHS[(month as usize - 1) % 12];
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{weekday}, {day:02} {name} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

/// As listings have it.
fn instant(seconds: u64) -> String {
    let (year, month, day, rest) = civil(seconds);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_ranges() {
        assert_eq!(date(1_792_567_680), "Wed, 21 Oct 2026 07:28:00 GMT");
        assert_eq!(instant(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(wanted("bytes=2-5", 10), Some((2, 6)));
        assert_eq!(wanted("bytes=2-50", 10), Some((2, 10)));
        assert_eq!((wanted("bytes=-3", 10), wanted("bytes=7-", 10)), (Some((7, 10)), Some((7, 10))));
        assert_eq!((wanted("bytes=10-11", 10), wanted("bytes=a", 10)), (None, None));
    }
}
