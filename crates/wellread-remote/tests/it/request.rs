//! HTTP/1.1 as far as the tests' server needs it: requests read, answers written.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The bucket whose link is slow: the largest object in one request takes longer than a silent server is waited for.
pub(crate) const SLOW: &str = "slow-link/";

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Decoded, without the slash at its beginning.
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The next one of a connection; `None` at its end.
    pub(crate) fn read(from: &mut BufReader<TcpStream>) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let query = pairs.map(|(key, value)| (decoded(key), decoded(&value.replace('+', " ")))).collect();
        let mut headers = BTreeMap::new();
        loop {
            let mut header = String::new();
            from.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let path = decoded(path.trim_start_matches('/'));
        let mut body = vec![0; length];
        if path.starts_with(SLOW) {
            for step in body.chunks_mut(256 << 10) {
                from.read_exact(step)?;
                std::thread::sleep(Duration::from_millis(100));
            }
        } else {
            from.read_exact(&mut body)?;
        }
        Ok(Some(Self { method: method.to_owned(), path, query, headers, body }))
    }

    /// First byte and the one behind the last of the range that is asked for, of an object of `length` bytes.
    pub(crate) fn range(&self, length: usize) -> Option<(usize, usize)> {
        let (first, last) = self.headers.get("range")?.strip_prefix("bytes=")?.split_once('-')?;
        if first.is_empty() {
            return Some((length.saturating_sub(last.parse().ok()?), length));
        }
        Some((first.parse().ok()?, last.parse::<usize>().ok()?.saturating_add(1).min(length)))
    }
}

pub(crate) fn decoded(text: &str) -> String {
    let (bytes, mut out, mut at) = (text.as_bytes(), vec![], 0);
    while at < bytes.len() {
        if bytes[at] == b'%' {
            out.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap());
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap()
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Bytes of the body as the header has them, where it lies or the body is left out.
    pub(crate) length: Option<usize>,
    /// Whether the connection ends with it.
    pub(crate) last: bool,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![], body: body.into(), length: None, last: false }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// As S3 has errors.
    pub(crate) fn error(status: u16, code: &str) -> Self {
        let body = format!(
            "<Error><Code>{code}</Code><Message>as the test has it</Message><Key>secret</Key></Error>"
        );
        Self::new(status, body)
    }

    /// Sends a byte of the body at a time, until the other end has enough of it.
    pub(crate) fn drip(mut self, to: &mut TcpStream) -> io::Result<()> {
        let body = std::mem::take(&mut self.body);
        self.length.get_or_insert(body.len());
        self.write(to)?;
        for byte in body {
            std::thread::sleep(Duration::from_millis(50));
            to.write_all(&[byte])?;
        }
        Ok(())
    }

    pub(crate) fn write(&self, to: &mut TcpStream) -> io::Result<()> {
        let mut text = format!("HTTP/1.1 {} -\r\n", self.status);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("content-length: {}\r\n\r\n", self.length.unwrap_or(self.body.len()));
        to.write_all(text.as_bytes())?;
        to.write_all(&self.body)?;
        to.flush()
    }
}
