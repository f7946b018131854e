//! HTTP/1.1 as far as it is needed: requests read, answers written and read.

use std::fmt::Write as _;
use std::io::{self, BufRead, Read as _};

/// Bytes of a head, and of a body, at most.
const HEAD: u64 = 64 << 10;
const BODY: u64 = 1 << 30;

/// Headers by their names, as they came.
pub(crate) type Headers = Vec<(String, String)>;

/// A request.
pub(crate) struct Request {
    pub(crate) method: String,
    /// As it came, the query with it.
    pub(crate) target: String,
    /// Decoded.
    pub(crate) path: String,
    /// Decoded.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Without the length.
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
    /// The length to tell where it is not the body's: of an answer to HEAD.
    pub(crate) length: Option<u64>,
    /// Whether the server that it came from takes no further request over this connection.
    pub(crate) is_last: bool,
}

impl Request {
    /// A header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The value of a name in the query.
    pub(crate) fn asked(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

impl Answer {
    pub(crate) fn text(status: u16, kind: &str, body: String) -> Self {
        let headers = vec![("Content-Type".to_owned(), kind.to_owned())];
        Self { status, headers, body: body.into_bytes(), length: None, is_last: false }
    }

    /// The head with this length; a `Content-Range` is shifted.
    pub(crate) fn head(&self, length: u64, shift: u64) -> String {
        let mut text = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            let shifted =
                (shift > 0 && name.eq_ignore_ascii_case("content-range")).then(|| shifted(value, shift));
            let _ = write!(text, "{name}: {}\r\n", shifted.as_ref().unwrap_or(value));
        }
        // Neither has a body, so that no length may stand there.
        if !matches!(self.status, 100..=199 | 204 | 304) {
            let _ = write!(text, "Content-Length: {length}\r\n");
        }
        text.push_str("\r\n");
        text
    }
}

fn shifted(range: &str, by: u64) -> String {
    let parts = range.strip_prefix("bytes ").and_then(|rest| rest.split_once('-'));
    match parts.and_then(|(first, rest)| Some((first.parse::<u64>().ok()?, rest))) {
        Some((first, rest)) => format!("bytes {}-{rest}", first + by),
        None => range.to_owned(),
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        404 => "Not Found",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Answer",
    }
}

/// A header by its name in lower case.
pub(crate) fn header<'h>(headers: &'h Headers, name: &str) -> Option<&'h str> {
    headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// The first line and the headers; `None` at the end of the connection.
fn read_head(reader: &mut impl BufRead) -> io::Result<Option<(String, Headers)>> {
    let mut left = reader.take(HEAD);
    let mut line = || -> io::Result<String> {
        let mut text = String::new();
        left.read_line(&mut text)?;
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    };
    let first = line()?;
    if first.is_empty() {
        return Ok(None);
    }
    let mut headers = Headers::new();
    loop {
        let text = line()?;
        if text.is_empty() {
            return Ok(Some((first, headers)));
        }
        let (name, value) = text.split_once(':').ok_or_else(|| bad("a header without a colon"))?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
}

/// A body of a known length, or in chunks.
fn read_body(reader: &mut impl BufRead, headers: &Headers) -> io::Result<Vec<u8>> {
    let mut body = vec![];
    if header(headers, "transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked")) {
        loop {
            let mut line = String::new();
            reader.take(HEAD).read_line(&mut line)?;
            let size = line.trim().split(';').next().unwrap_or_default();
            let size = u64::from_str_radix(size, 16).map_err(|_| bad("a chunk without a length"))?;
            if size + body.len() as u64 > BODY {
                return Err(bad("a body that is too long"));
            }
            reader.take(size).read_to_end(&mut body)?;
            // Its end; after the last one there may be trailers.
            loop {
                let mut end = String::new();
                reader.take(HEAD).read_line(&mut end)?;
                if end.trim().is_empty() {
                    break;
                }
            }
            if size == 0 {
                return Ok(body);
            }
        }
    }
    let length: u64 = match header(headers, "content-length") {
        Some(text) => text.parse().map_err(|_| bad("a length that is no number"))?,
        None => 0,
    };
    if length > BODY {
        return Err(bad("a body that is too long"));
    }
    reader.take(length).read_to_end(&mut body)?;
    if body.len() as u64 == length { Ok(body) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The next request of a connection; `None` at its end. A client that waits to be told to send a body is not told: the
/// body comes anyway.
pub(crate) fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let Some((first, headers)) = read_head(reader)? else { return Ok(None) };
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(bad("no request"));
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    };
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect();
    let body = read_body(reader, &headers)?;
    let (method, target, path) = (method.to_owned(), target.to_owned(), decoded(path));
    Ok(Some(Request { method, target, path, query, headers, body }))
}

/// An answer to a request of this method.
pub(crate) fn read_answer(reader: &mut impl BufRead, method: &str) -> io::Result<Answer> {
    loop {
        let (first, mut headers) = read_head(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let status = first.split(' ').nth(1).and_then(|text| text.parse().ok());
        let status: u16 = status.ok_or_else(|| bad("an answer without a status"))?;
        // Headers on the way to the answer.
        if (100..200).contains(&status) {
            continue;
        }
        let length = header(&headers, "content-length").and_then(|text| text.parse().ok());
        let has_none = method == "HEAD" || matches!(status, 204 | 304);
        let ends_with_the_connection =
            length.is_none() && header(&headers, "transfer-encoding").is_none() && !has_none;
        let says_close = header(&headers, "connection").is_some_and(|how| how.eq_ignore_ascii_case("close"));
        let is_last = ends_with_the_connection || says_close;
        let mut body = vec![];
        if ends_with_the_connection {
            reader.take(BODY).read_to_end(&mut body)?;
        } else if !has_none {
            body = read_body(reader, &headers)?;
        }
        // Those of the connection are not those of the other one.
        let own = ["content-length", "transfer-encoding", "connection", "keep-alive"];
        headers.retain(|(name, _)| !own.iter().any(|own| name.eq_ignore_ascii_case(own)));
        return Ok(Answer { status, headers, body, length: length.filter(|_| has_none), is_last });
    }
}

/// Text with its `%XX` as the bytes that they are.
pub(crate) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        let value = hex.filter(|_| byte == b'%').and_then(|two| u8::from_str_radix(two, 16).ok());
        out.push(value.unwrap_or(byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Text with all but letters, numbers and `-_.~/` as `%XX`.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
