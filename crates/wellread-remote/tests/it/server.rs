//! A server that speaks what is needed of S3's language and of a plain web server, and does what a test asks wrongly.
//!
//! One for the process: buckets keep tests apart. A bucket is there from the first look at it.

use crate::copying::{is_copying, take_time};
use crate::gate::{pass, pass_round};
use crate::pages;
use crate::request::{Answer, Request, decoded};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const DATE: &str = "Wed, 21 Oct 2026 07:28:00 GMT";

/// The fault of one answer to a request for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// This status.
    Status(u16, &'static str),
    /// The connection ends in the middle of the body.
    Cut,
    /// The body has half of the bytes, and says so.
    Short,
    /// The body has twice as many bytes, and says so.
    Long,
    /// Nothing comes.
    Stall,
    /// A byte comes now and then.
    Drip,
    /// Another range.
    Range,
    /// The whole object.
    Whole,
    /// The object is another one now.
    Replace,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes and version, by `bucket/key`.
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    /// Parts, by the upload's number.
    uploads: BTreeMap<String, BTreeMap<usize, Vec<u8>>>,
    /// By bucket.
    wrong: HashMap<String, VecDeque<Wrong>>,
    /// Errors after a status of success, by bucket: of copies and of completed uploads.
    late: HashMap<String, VecDeque<&'static str>>,
    /// Method, path and range of all requests.
    log: Vec<(String, String, String)>,
    /// Objects that nobody may remove, by `bucket/key`.
    locked: HashSet<String>,
    versions: u64,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server's URL. The environment leads `s3://` to it from the first call on.
pub(crate) fn url() -> &'static str {
    static URL: LazyLock<String> = LazyLock::new(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        for (name, value) in [
            ("AWS_ENDPOINT_URL", &*url),
            ("STORAGE_EMULATOR_HOST", &*url),
            ("AWS_ACCESS_KEY_ID", "the-key-id"),
            ("AWS_SECRET_ACCESS_KEY", "the-secret"),
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
            ("NO_PROXY", "127.0.0.1"),
            ("no_proxy", "127.0.0.1"),
            ("WELLREAD_ATTEMPTS", "6"),
            // More than all tests together hold back.
            ("WELLREAD_IN_FLIGHT", "256"),
            ("WELLREAD_TIMEOUT", "5"),
            ("WELLREAD_ABORT_TIMEOUT", "600"),
        ] {
            // SAFETY: every test asks for the URL before it does anything else, and nothing here reads the environment past Rust's lock.
            unsafe { std::env::set_var(name, value) };
        }
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                std::thread::spawn(move || serve(connection));
            }
        });
        url
    });
    &URL
}

/// Lets the next answers with bytes of a bucket be wrong.
pub(crate) fn spoil(bucket: &str, wrong: &[Wrong]) {
    state().wrong.insert(bucket.to_owned(), wrong.iter().copied().collect());
}

/// Lets the next copies and completed uploads of a bucket fail after a status of success, as S3 does. `Lost` completes an upload and
/// fails, and `Gone` throws it away.
pub(crate) fn fail_late(bucket: &str, codes: &[&'static str]) {
    state().late.insert(bucket.to_owned(), codes.iter().copied().collect());
}

/// Lets nobody remove an object from now on, as a lock in S3 does.
pub(crate) fn lock(path: &str) {
    state().locked.insert(path.to_owned());
}

/// The next such error.
fn late(request: &Request) -> Option<&'static str> {
    let bucket = request.path.split('/').next().unwrap_or_default();
    state().late.get_mut(bucket)?.pop_front()
}

/// How many wrong answers are still to come.
pub(crate) fn still_wrong(bucket: &str) -> usize {
    state().wrong.get(bucket).map_or(0, VecDeque::len)
}

/// Puts an object where the program does not see it.
pub(crate) fn put(path: &str, bytes: &[u8]) {
    let mut state = state();
    state.versions += 1;
    let version = state.versions;
    state.objects.insert(path.to_owned(), (bytes.to_owned(), version));
}

/// The bytes of an object.
pub(crate) fn get(path: &str) -> Option<Vec<u8>> {
    state().objects.get(path).map(|(bytes, _)| bytes.clone())
}

/// All keys of a bucket that begin with `prefix`.
pub(crate) fn keys(prefix: &str) -> Vec<String> {
    state().objects.keys().filter(|key| key.starts_with(prefix)).cloned().collect()
}

/// Key, bytes and version of all objects of a bucket.
pub(crate) fn objects(bucket: &str) -> Vec<(String, usize, u64)> {
    let state = state();
    let ours = state.objects.iter().filter_map(|(path, (bytes, version))| {
        let key = path.strip_prefix(bucket)?.strip_prefix('/')?;
        Some((key.to_owned(), bytes.len(), *version))
    });
    ours.collect()
}

/// How many uploads were begun and neither completed nor thrown away.
pub(crate) fn open_uploads(bucket: &str) -> usize {
    state().uploads.keys().filter(|id| id.starts_with(bucket)).count()
}

/// Method and range of the requests for a path.
pub(crate) fn requests(path: &str) -> Vec<String> {
    let state = state();
    let ours = state.log.iter().filter(|(_, of, _)| of == path);
    ours.map(|(method, _, range)| format!("{method} {range}").trim_end().to_owned()).collect()
}

/// Method and path of all requests for a bucket: of listings, whose path is the bucket's, a line for each page.
pub(crate) fn all_requests(bucket: &str) -> Vec<String> {
    let state = state();
    let is_of = |path: &str| path.split('/').next() == Some(bucket);
    let ours = state.log.iter().filter(|(_, of, _)| is_of(of));
    ours.map(|(method, of, _)| format!("{method} {}", of.trim_end_matches('/'))).collect()
}

/// Method and path of the requests that change something below a path, in their order.
pub(crate) fn changes(prefix: &str) -> Vec<String> {
    let state = state();
    let ours = state
        .log
        .iter()
        .filter(|(method, of, _)| of.starts_with(prefix) && !matches!(&**method, "GET" | "HEAD"));
    ours.map(|(method, of, _)| format!("{method} {of}")).collect()
}

fn serve(connection: TcpStream) {
    let Ok(mut to) = connection.try_clone() else { return };
    let mut from = BufReader::new(connection);
    while let Ok(Some(request)) = Request::read(&mut from) {
        if !matches!(answer(&request, &mut to), Ok(true)) {
            return;
        }
    }
}

/// Answers a request; whether the connection goes on.
fn answer(request: &Request, to: &mut TcpStream) -> io::Result<bool> {
    let range = request.headers.get("range").cloned().unwrap_or_default();
    let log = (request.method.clone(), request.path.clone(), range);
    state().log.push(log);
    let is_bytes = request.method == "GET" && request.headers.contains_key("range");
    let bucket = request.path.split('/').next().unwrap_or_default().to_owned();
    if !pass_round(&bucket, to) {
        return Ok(false);
    }
    let is_held = is_bytes || request.method == "PUT" && copy_source(request).is_none();
    let passing = if is_held { pass(&bucket, to) } else { None };
    if is_held && passing.is_none() {
        return Ok(false);
    }
    let wrong = if is_bytes { state().wrong.get_mut(&bucket).and_then(VecDeque::pop_front) } else { None };
    let mut answer = match (request.method.as_str(), wrong) {
        (_, Some(Wrong::Status(status, code))) => Answer::error(status, code),
        (_, Some(Wrong::Stall)) => {
            // Longer than anybody waits.
            std::thread::sleep(Duration::from_mins(1));
            return Ok(false);
        }
        ("GET" | "HEAD", wrong) => object(request, wrong),
        ("PUT", _) => store(request),
        ("POST", _) => upload(request),
        ("DELETE", _) => remove(request),
        _ => Answer::error(405, "MethodNotAllowed"),
    };
    if is_copying(request) {
        answer = answer.with("x-ms-copy-status", "pending");
    }
    if request.method == "HEAD" {
        answer.length.get_or_insert(answer.body.len());
        answer.body.clear();
    }
    if wrong == Some(Wrong::Drip) {
        return answer.drip(to).map(|()| false);
    }
    answer.write(to)?;
    Ok(!answer.last)
}

fn object(request: &Request, wrong: Option<Wrong>) -> Answer {
    if request.query.get("list-type").is_some_and(|kind| kind == "2") {
        return pages::list(request);
    }
    if request.method == "HEAD" && request.path.starts_with("web-headless/") {
        return Answer::error(405, "MethodNotAllowed");
    }
    let mut state = state();
    if wrong == Some(Wrong::Replace) {
        state.versions += 1;
        let version = state.versions;
        if let Some(object) = state.objects.get_mut(&request.path) {
            object.0.reverse();
            object.1 = version;
        }
    }
    let Some((bytes, version)) = state.objects.get(&request.path) else {
        drop(state);
        return index(request);
    };
    let tag = format!("\"{version}\"");
    if request.headers.get("if-match").is_some_and(|wanted| *wanted != tag) {
        return Answer::error(412, "PreconditionFailed");
    }
    let told = |answer: Answer| {
        let answer = answer.with("last-modified", DATE);
        // As servers that name no versions.
        if request.path.starts_with("web-untagged/") { answer } else { answer.with("etag", &tag) }
    };
    let whole = || told(Answer::new(200, bytes.clone()));
    if wrong == Some(Wrong::Whole) {
        return whole();
    }
    let Some((start, end)) = request.range(bytes.len()) else { return whole() };
    if start >= end {
        // As servers in Go, which name no versions either.
        let is_sent = bytes.is_empty() && request.path.starts_with("web-untagged/");
        return if is_sent { whole() } else { Answer::error(416, "InvalidRange") };
    }
    let shift = usize::from(wrong == Some(Wrong::Range));
    let range = format!("bytes {}-{}/{}", start + shift, end - 1 + shift, bytes.len() + shift);
    let mut answer = told(Answer::new(206, &bytes[start..end]).with("content-range", range));
    let half = (end - start) / 2;
    match wrong {
        Some(Wrong::Short) => answer.body.truncate(half),
        Some(Wrong::Long) => answer.body.extend_from_within(..),
        Some(Wrong::Cut) => {
            answer.length = Some(end - start);
            answer.body.truncate(half);
            answer.last = true;
        }
        _ => {}
    }
    answer
}

/// The page of a folder, as web servers have it, and the way to it.
fn index(request: &Request) -> Answer {
    let folder = format!("{}/", request.path.trim_end_matches('/'));
    let inside: Vec<_> = keys(&folder);
    // To those who may list some folders alone, S3 does not tell that a key is not there.
    if request.path.starts_with("untold") {
        return Answer::error(403, "AccessDenied");
    }
    if inside.is_empty() {
        return Answer::error(404, "NoSuchKey");
    }
    // Only buckets of the web are walked like this; in S3 a prefix is no object.
    if !folder.starts_with("web") {
        return Answer::error(404, "NoSuchKey");
    }
    if !request.path.ends_with('/') {
        return Answer::new(301, "").with("location", format!("{}/{folder}", url()));
    }
    let mut page = "<html><a href=\"../\">..</a>".to_owned();
    for key in inside {
        let rest = &key[folder.len()..];
        let name = rest.split_once('/').map_or(rest.to_owned(), |(name, _)| format!("{name}/"));
        page += &format!("<a href=\"{name}\">{name}</a>\n");
    }
    Answer::new(200, page).with("content-type", "text/html; charset=utf-8")
}

/// The object that a request copies, by the header of Amazon or Google.
fn copy_source(request: &Request) -> Option<&String> {
    let headers = ["x-amz-copy-source", "x-goog-copy-source"];
    headers.iter().find_map(|name| request.headers.get(*name))
}

fn store(request: &Request) -> Answer {
    if let Some(id) = request.query.get("uploadId") {
        let number = request.query["partNumber"].parse().unwrap();
        let mut state = state();
        let Some(parts) = state.uploads.get_mut(id) else { return Answer::error(404, "NoSuchUpload") };
        parts.insert(number, request.body.clone());
        return Answer::new(200, "").with("etag", format!("\"part-{number}\""));
    }
    if request.headers.contains_key("authorization") && request.path.starts_with("google-") {
        return Answer::error(403, "AccessDenied");
    }
    if let Some(source) = copy_source(request) {
        if let Some(code) = late(request) {
            return Answer::error(200, code);
        }
        let Some(bytes) = get(&decoded(source.trim_start_matches('/'))) else {
            return Answer::error(404, "NoSuchKey");
        };
        take_time(&request.path);
        put(&request.path, &bytes);
        return Answer::new(200, "<CopyObjectResult><ETag>\"copied\"</ETag></CopyObjectResult>");
    }
    put(&request.path, &request.body);
    Answer::new(200, "").with("etag", format!("\"{}\"", state().versions))
}

fn upload(request: &Request) -> Answer {
    let bucket = request.path.split('/').next().unwrap_or_default();
    if request.query.contains_key("uploads") {
        let mut state = state();
        state.versions += 1;
        let id = format!("{bucket}-{}", state.versions);
        state.uploads.insert(id.clone(), BTreeMap::new());
        let text = format!(
            "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
        );
        return Answer::new(200, text);
    }
    let code = late(request);
    if let Some(code) = code.filter(|code| !matches!(*code, "Lost" | "Gone")) {
        return Answer::error(200, code);
    }
    let Some(parts) = request.query.get("uploadId").and_then(|id| state().uploads.remove(id)) else {
        return Answer::error(404, "NoSuchUpload");
    };
    if code == Some("Gone") {
        return Answer::error(404, "NoSuchUpload");
    }
    put(&request.path, &parts.into_values().flatten().collect::<Vec<_>>());
    if code == Some("Lost") {
        return Answer::error(500, "InternalError");
    }
    Answer::new(200, "<CompleteMultipartUploadResult><ETag>\"parts\"</ETag></CompleteMultipartUploadResult>")
}

fn remove(request: &Request) -> Answer {
    match request.query.get("uploadId") {
        Some(id) => drop(state().uploads.remove(id)),
        None if state().locked.contains(&request.path) => return Answer::error(403, "AccessDenied"),
        None => drop(state().objects.remove(&request.path)),
    }
    Answer::new(204, "")
}
