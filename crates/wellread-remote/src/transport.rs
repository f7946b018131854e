//! The HTTP client under all places. object_store's requests go through the one client of the process, and wrong
//! answers of servers become a [`Fault`] here, before anybody takes them for data.

use crate::clients::Clients;
use crate::failure::{Fault, innermost, retry_after};
use crate::odd_keys::{is_listing, left_out};
use crate::sending::{Sending, is_copying, while_sent};
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, LOCATION, RANGE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tokio::time::timeout;
use wellread_store::place::{count_received, count_request};

/// Bytes of an error's body that are looked at.
const ERROR_BODY: usize = 64 << 10;
/// Bytes of a page of a listing at most: Azure's have 5,000 names.
const LISTING: usize = 64 << 20;
/// The header of S3's requests for copies.
const COPY_SOURCE: &str = "x-amz-copy-source";
/// The header in which Azure says how far a copy is.
const COPY_STATUS: &str = "x-ms-copy-status";

/// Gives stores of object_store the clients of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transport {
    clients: &'static Clients,
    is_web: bool,
}

impl Transport {
    /// For the requests of a cloud.
    pub(crate) fn signed(clients: &'static Clients) -> Self {
        Self { clients, is_web: false }
    }

    /// For those of a web server.
    pub(crate) fn web(clients: &'static Clients) -> Self {
        Self { clients, is_web: true }
    }

    /// Sends an object, or a part of one. It takes as long as the link needs, while the link takes more of it.
    async fn upload(
        &self,
        mut request: reqwest::Request,
        body: HttpRequestBody,
    ) -> Result<HttpResponse, Fault> {
        let client = self.clients.uploading(request.url().scheme());
        let client = client.map_err(|e| Fault::Other(e.to_string()))?;
        let (length, stall) = (body.content_length() as u64, self.clients.stall());
        let sending = Arc::new(Sending::new(stall, length, Instant::now()));
        request.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| length.into());
        let taken = Arc::clone(&sending);
        let body = body.map_frame(move |frame| {
            taken.took(frame.data_ref().map_or(0, Bytes::len) as u64, Instant::now());
            frame
        });
        *request.body_mut() = Some(reqwest::Body::wrap(body));
        count_request();
        let answer = while_sent(&sending, client.execute(request)).await.ok_or(Fault::Stalled)?;
        let answer: http::Response<reqwest::Body> = answer.map_err(|e| fault_of(&e.without_url()))?.into();
        let (parts, body) = answer.into_parts();
        let read = async {
            if parts.status.is_success() {
                all_of(body, ERROR_BODY).await
            } else {
                Err(refused(parts.status, &parts.headers, body).await)
            }
        };
        let body = timeout(stall, read).await.unwrap_or(Err(Fault::Stalled))?;
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(*self))
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let asked = parts.headers.get(RANGE).and_then(|range| asked_range(range.to_str().ok()?));
        let is_early = is_answered_early(&parts.method, parts.uri.query(), &parts.headers);
        let is_listing = is_listing(&parts.method, parts.uri.query());
        let url = reqwest::Url::parse(&parts.uri.to_string())
            .map_err(|e| HttpError::new(HttpErrorKind::Request, e))?;
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        if has_empty_token(request.headers()) {
            request.headers_mut().remove(AUTHORIZATION);
        }
        if body.content_length() > 0 && request.method() == Method::PUT {
            return self.upload(request, body).await.map_err(wrap);
        }
        if body.content_length() > 0 {
            *request.body_mut() = Some(reqwest::Body::wrap(body));
        } else if request.method() == Method::PUT || request.method() == Method::POST {
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let scheme = request.url().scheme();
        let client = if self.is_web {
            self.clients.web()
        } else if is_copying() {
            self.clients.uploading(scheme)
        } else {
            self.clients.signed(Some(scheme))
        };
        let client = client.map_err(|e| wrap(Fault::Other(e.to_string())))?;
        count_request();
        let response = client.execute(request).await.map_err(of_client)?;
        let response: http::Response<reqwest::Body> = response.into();
        let (parts, body) = response.into_parts();
        if !parts.status.is_success() {
            return Err(wrap(refused(parts.status, &parts.headers, body).await));
        }
        if let Some(fault) = copy_fault(&parts.headers) {
            return Err(wrap(fault));
        }
        if let Some(asked) = asked {
            check_range(asked, parts.status, &parts.headers).map_err(wrap)?;
        }
        if is_early {
            let body = told_late(parts.status, body).await.map_err(wrap)?;
            return Ok(HttpResponse::from_parts(parts, body.into()));
        }
        if is_listing {
            let page = all_of(body, LISTING).await.map_err(wrap)?;
            return Ok(HttpResponse::from_parts(parts, left_out(page).into()));
        }
        let counted = body.map_err(of_client).map_frame(|frame| {
            count_received(frame.data_ref().map_or(0, Bytes::len));
            frame
        });
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(counted)))
    }
}

fn wrap(fault: Fault) -> HttpError {
    // A kind that the library does not act upon.
    HttpError::new(HttpErrorKind::Unknown, fault)
}

/// An error of the client, without the URL.
fn of_client(error: reqwest::Error) -> HttpError {
    let error = error.without_url();
    HttpError::new(HttpErrorKind::Unknown, fault_of(&error))
}

/// The fault behind an error of the client.
pub(crate) fn fault_of(error: &reqwest::Error) -> Fault {
    if error.is_connect() {
        return Fault::Unreachable(innermost(error));
    }
    if error.is_timeout() {
        return Fault::Stalled;
    }
    let mut link = error.source();
    while let Some(source) = link {
        if source.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::TimedOut) {
            return Fault::Stalled;
        }
        link = source.source();
    }
    if error.is_redirect() || error.is_builder() {
        return Fault::Other(innermost(error));
    }
    Fault::Interrupted(innermost(error))
}

/// Whether a request would be signed with a token that has no characters, as one of nobody is.
fn has_empty_token(headers: &HeaderMap) -> bool {
    headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes().trim_ascii_end() == b"Bearer")
}

/// The fault in an answer that is none of success.
async fn refused(status: StatusCode, headers: &HeaderMap, body: reqwest::Body) -> Fault {
    if status == StatusCode::PRECONDITION_FAILED {
        return Fault::Replaced;
    }
    let text = match Limited::new(body, ERROR_BODY).collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Err(_) => String::new(),
    };
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let code = between(&text, "<Code>", "</Code>").or_else(|| header("x-ms-error-code")).unwrap_or_default();
    let message = between(&text, "<Message>", "</Message>").or_else(|| json_message(&text));
    let mut message = message.unwrap_or_else(|| status.canonical_reason().unwrap_or_default().to_owned());
    // Its details repeat what was signed.
    if code == "SignatureDoesNotMatch" || code == "AuthenticationFailed" {
        "the signature is not the one that the server computes: look at key and secret"
            .clone_into(&mut message);
    }
    // A region is of use where the request went to another one.
    let is_elsewhere = matches!(status.as_u16(), 301 | 307 | 308)
        || code == "AuthorizationHeaderMalformed"
        || code == "IllegalLocationConstraintException";
    let region = header("x-amz-bucket-region").filter(|_| is_elsewhere);
    if is_elsewhere && region.is_none() && headers.contains_key(LOCATION) && message.is_empty() {
        "it sends to another address".clone_into(&mut message);
    }
    Fault::Status { status: status.as_u16(), code, message, region, after: retry_after(headers) }
}

/// Whether an answer may be an error though its status is one of success. S3 begins to answer copies and completed
/// uploads before they are done.
fn is_answered_early(method: &Method, query: Option<&str>, headers: &HeaderMap) -> bool {
    match *method {
        Method::PUT => headers.contains_key(COPY_SOURCE),
        Method::POST => query.is_some_and(|query| query.contains("uploadId=")),
        _ => false,
    }
}

/// The body of such an answer, unless it is an error.
async fn told_late(status: StatusCode, body: reqwest::Body) -> Result<Bytes, Fault> {
    let bytes = all_of(body, ERROR_BODY).await?;
    let fault = late_error(status, &String::from_utf8_lossy(&bytes));
    fault.map_or(Ok(bytes), Err)
}

/// All of a body, which may have `most` bytes.
pub(crate) async fn all_of(body: reqwest::Body, most: usize) -> Result<Bytes, Fault> {
    let body = Limited::new(body, most).collect().await;
    let body = body.map_err(|e| match e.downcast::<reqwest::Error>() {
        Ok(e) => fault_of(&e.without_url()),
        Err(_) => Fault::TooLong(most),
    })?;
    let bytes = body.to_bytes();
    count_received(bytes.len());
    Ok(bytes)
}

/// The error in the body of an answer of success.
fn late_error(status: StatusCode, text: &str) -> Option<Fault> {
    let part = |start: &str, end: &str| between(text, start, end).unwrap_or_default();
    text.contains("<Error")
        .then(|| Fault::status(status.as_u16(), part("<Code>", "</Code>"), part("<Message>", "</Message>")))
}

/// The fault of an object that Azure has not copied yet, or could not copy. Its answers say so beside a status of
/// success.
fn copy_fault(headers: &HeaderMap) -> Option<Fault> {
    match headers.get(COPY_STATUS)?.to_str().ok()? {
        "success" => None,
        "pending" => Some(Fault::Copying),
        other => Some(Fault::Other(format!("the store could not copy the object: {other}"))),
    }
}

/// Google's message in JSON.
fn json_message(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let error = value.get("error")?;
    error.get("message").or(Some(error))?.as_str().map(str::to_owned)
}

fn between(text: &str, start: &str, end: &str) -> Option<String> {
    let from = text.find(start)? + start.len();
    let length = text[from..].find(end)?;
    Some(text[from..from + length].trim().to_owned())
}

/// First and last byte of `bytes=0-99`; `None` of other ranges.
fn asked_range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Whether the answer holds the requested range, or the part of it that exists.
fn check_range(asked: (u64, u64), status: StatusCode, headers: &HeaderMap) -> Result<(), Fault> {
    // Some servers, as those in Go, answer with all of an object that has no bytes. Others say that it has no such range.
    if status == StatusCode::OK && headers.get(CONTENT_LENGTH).is_some_and(|length| length == "0") {
        return Err(Fault::status(416, String::new(), "the object is empty".to_owned()));
    }
    if status != StatusCode::PARTIAL_CONTENT {
        return Err(Fault::NoRanges);
    }
    let text = headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok()).unwrap_or("none");
    let wrong = || Fault::WrongRange(format!("bytes {}-{} became {text}", asked.0, asked.1));
    let (range, size) =
        text.strip_prefix("bytes ").and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
    let (first, last) = range.split_once('-').ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let (first, last, size) = (number(first)?, number(last)?, number(size)?);
    let end = asked.1.min(size.saturating_sub(1));
    if (first, last) == (asked.0, end) { Ok(()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_answers_are_those_asked_for() {
        let check = |status: u16, text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, text.parse().unwrap());
            check_range(asked_range("bytes=10-19").unwrap(), StatusCode::from_u16(status).unwrap(), &headers)
        };
        assert_eq!(check(206, "bytes 10-19/100"), Ok(()));
        assert_eq!(check(206, "bytes 10-14/15"), Ok(()));
        assert_eq!(check(200, "bytes 10-19/100"), Err(Fault::NoRanges));
        for wrong in ["bytes 11-19/100", "bytes 10-18/100", "bytes 0-9/100", "none", "bytes 10-19/*"] {
            assert!(matches!(check(206, wrong), Err(Fault::WrongRange(_))), "{wrong}");
        }
        assert_eq!(asked_range("bytes=-5"), None);
    }

    #[test]
    fn an_object_without_bytes_has_no_range() {
        let check = |length: &'static str| {
            let headers = [(CONTENT_LENGTH, HeaderValue::from_static(length))].into_iter().collect();
            check_range((0, 9), StatusCode::OK, &headers).unwrap_err()
        };
        assert!(matches!(check("0"), Fault::Status { status: 416, .. }), "{}", check("0"));
        assert_eq!(check("100"), Fault::NoRanges);
    }

    #[test]
    fn errors_in_answers_of_success_are_found() {
        let error = "<?xml version=\"1.0\"?>\n\n<Error><Code>InternalError</Code><Message>Try again.</Message></Error>";
        let fault = late_error(StatusCode::OK, error).unwrap();
        assert_eq!(fault, Fault::status(200, "InternalError".into(), "Try again.".into()));
        assert!(fault.passes());
        let other = late_error(StatusCode::OK, "<Error><Code>AccessDenied</Code></Error>").unwrap();
        assert!(!other.passes());
        let done = "<CopyObjectResult><ETag>\"a\"</ETag></CopyObjectResult>";
        assert_eq!(late_error(StatusCode::OK, done), None);
    }

    #[test]
    fn a_body_that_is_too_long_is_no_lost_connection() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = |most| runtime.block_on(all_of(reqwest::Body::from("123456789"), most));
        assert_eq!((&read(9).unwrap()[..], read(8)), (&b"123456789"[..], Err(Fault::TooLong(8))));
    }

    #[test]
    fn only_copies_and_completed_uploads_are_answered_early() {
        let (mut copy, none) = (HeaderMap::new(), HeaderMap::new());
        copy.insert(COPY_SOURCE, "/b/k".parse().unwrap());
        assert!(is_answered_early(&Method::PUT, None, &copy));
        assert!(is_answered_early(&Method::POST, Some("uploadId=7"), &none));
        assert!(!is_answered_early(&Method::PUT, Some("partNumber=1&uploadId=7"), &none));
        assert!(!is_answered_early(&Method::POST, Some("uploads"), &none));
        assert!(!is_answered_early(&Method::GET, None, &copy));
    }

    #[test]
    fn a_token_without_characters_is_told_from_others() {
        for (value, is_empty) in [("Bearer ", true), ("Bearer", true), ("Bearer a", false), ("AWS4 a", false)]
        {
            let headers = [(AUTHORIZATION, HeaderValue::from_static(value))].into_iter().collect();
            assert_eq!(has_empty_token(&headers), is_empty, "{value}");
        }
        assert!(!has_empty_token(&HeaderMap::new()));
    }

    #[test]
    fn objects_that_are_not_copied_are_faults() {
        let fault = |status: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(COPY_STATUS, http::HeaderValue::from_static(status));
            copy_fault(&headers)
        };
        assert_eq!((copy_fault(&HeaderMap::new()), fault("success")), (None, None));
        assert_eq!(fault("pending"), Some(Fault::Copying));
        assert!(fault("failed").unwrap().to_string().contains("could not copy the object: failed"));
    }

    #[test]
    fn messages_are_found_in_xml_and_json() {
        assert_eq!(
            between("<a><Code> NoSuchKey </Code></a>", "<Code>", "</Code>").as_deref(),
            Some("NoSuchKey")
        );
        assert_eq!(between("<Code>", "<Code>", "</Code>"), None);
        assert_eq!(json_message(r#"{"error": {"code": 403, "message": "no"}}"#).as_deref(), Some("no"));
        assert_eq!(json_message(r#"{"error": "no"}"#).as_deref(), Some("no"));
        assert_eq!(json_message("no"), None);
    }
}
