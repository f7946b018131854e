//! Why a request failed: the faults that pass by themselves, and the messages of those that do not.
//!
//! ```text
//!  transport ─ Fault ─▶ object_store, which wraps it ─▶ Fault::of ─▶ attempts: again? ─▶ io::Error
//! ```
//!
//! Only the status, code and message of an answer are kept: bodies of errors may name keys and signed text.

use http::HeaderMap;
use http::header::RETRY_AFTER;
use object_store::client::{HttpError, HttpErrorKind};
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

/// Characters of a server's message that are shown.
const MESSAGE: usize = 200;

/// The advice where nothing is found.
pub(crate) const NOT_FOUND: &str =
    "look at the spelling of bucket and key: `wellread info` of the folder shows what is there";

/// S3's name for a request that was signed at another time than the server's.
const CLOCK: &str = "RequestTimeTooSkewed";

/// The fault of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server answered with an error.
    Status {
        /// Its number.
        status: u16,
        /// The server's name for it, such as `SlowDown`.
        code: String,
        /// The server's message.
        message: String,
        /// The region that the bucket is in, where the server says so.
        region: Option<String>,
        /// How long the server asks to wait (`Retry-After`).
        after: Option<Duration>,
    },
    /// A range was asked for, and the server sent everything.
    NoRanges,
    /// A range was asked for, and the server sent another.
    WrongRange(String),
    /// The object is another one than was opened.
    Replaced,
    /// The store has not copied the object yet.
    Copying,
    /// Fewer bytes came than were announced.
    Short {
        /// Bytes that came.
        got: u64,
        /// Bytes that were asked for.
        expected: u64,
    },
    /// An answer has more bytes than this, which are not read.
    TooLong(usize),
    /// Nothing came for too long.
    Stalled,
    /// Bytes came, but fewer in each second than the least that is waited for.
    Slow {
        /// Bytes that came.
        got: u64,
        /// Bytes that were asked for.
        expected: u64,
    },
    /// No connection.
    Unreachable(String),
    /// The connection was lost.
    Interrupted(String),
    /// The source of credentials failed, by this fault.
    NoCredentials(Box<Self>),
    /// Anything else.
    Other(String),
}

impl Fault {
    /// The fault behind an error of the library, which wraps what the transport said.
    pub(crate) fn of(error: &object_store::Error) -> Self {
        match error {
            object_store::Error::Precondition { .. } => return Self::Replaced,
            object_store::Error::NotFound { .. } => {
                return Self::status(404, String::new(), String::new());
            }
            _ => {}
        }
        let mut link: Option<&(dyn StdError + 'static)> = Some(error);
        while let Some(error) = link {
            if let Some(fault) = error.downcast_ref::<Self>() {
                return fault.clone();
            }
            if let Some(error) = error.downcast_ref::<HttpError>() {
                return Self::of_http(error);
            }
            link = error.source();
        }
        Self::Other(innermost(error))
    }

    fn of_http(error: &HttpError) -> Self {
        if let Some(fault) = error.source().and_then(|source| source.downcast_ref::<Self>()) {
            return fault.clone();
        }
        match error.kind() {
            HttpErrorKind::Timeout => Self::Stalled,
            HttpErrorKind::Connect => Self::Unreachable(innermost(error)),
            HttpErrorKind::Request | HttpErrorKind::Interrupted => Self::Interrupted(innermost(error)),
            _ => Self::Other(innermost(error)),
        }
    }

    /// An answer with an error.
    pub(crate) fn status(status: u16, code: String, message: String) -> Self {
        Self::Status { status, code, message, region: None, after: None }
    }

    /// How long the server asks to wait before the request is made again.
    pub(crate) fn after(&self) -> Option<Duration> {
        match self {
            Self::Status { after, .. } => *after,
            Self::NoCredentials(cause) => cause.after(),
            _ => None,
        }
    }

    /// Whether the same request may succeed later.
    pub(crate) fn passes(&self) -> bool {
        match self {
            // 500 to 504, throttling, a request that the server did not get in time. With 501 it says that it never will.
            Self::Status { status, code, .. } => {
                matches!(status, 408 | 429 | 500 | 502..=504)
                    || matches!(
                        &**code,
                        "SlowDown" | "InternalError" | "RequestTimeout" | "ServiceUnavailable"
                    )
            }
            Self::WrongRange(_)
            | Self::Short { .. }
            | Self::Stalled
            | Self::Slow { .. }
            | Self::Unreachable(_)
            | Self::Interrupted(_) => true,
            Self::NoCredentials(cause) => cause.passes(),
            Self::NoRanges | Self::Replaced | Self::Copying | Self::TooLong(_) | Self::Other(_) => false,
        }
    }

    /// The kind of error that readers tell from others.
    pub(crate) fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Status { status: 404 | 410, .. } => io::ErrorKind::NotFound,
            // All objects are refused then, whatever is wrong with one of them.
            Self::Status { code, .. } if is_expired(code) => io::ErrorKind::Other,
            Self::Status { status: 401 | 403, .. } => io::ErrorKind::PermissionDenied,
            Self::Stalled | Self::Slow { .. } => io::ErrorKind::TimedOut,
            Self::Unreachable(_) => io::ErrorKind::NotConnected,
            Self::Interrupted(_) => io::ErrorKind::ConnectionReset,
            _ => io::ErrorKind::Other,
        }
    }

    /// The advice where something was to be written.
    pub(crate) fn advice_to_write(&self) -> Option<String> {
        match self {
            Self::Status { status: 401 | 403, code, region: None, .. }
                if !is_expired(code) && code != CLOCK =>
            {
                Some("give credentials that may write there".to_owned())
            }
            _ => self.advice(),
        }
    }

    /// The advice.
    pub(crate) fn advice(&self) -> Option<String> {
        let said = match self {
            Self::Status { region: Some(region), .. } => {
                return Some(format!("the bucket is in the region {region}: set AWS_REGION={region}"));
            }
            Self::Status { code, .. } if is_expired(code) => {
                "the credentials have expired: get new ones, and run it again"
            }
            Self::Status { status: 301 | 307, .. } => {
                "the bucket may be in another region or at another endpoint: set AWS_REGION or AWS_ENDPOINT_URL"
            }
            Self::Status { code, .. } if code == CLOCK => {
                "the clock of this machine and the server's differ: set it right"
            }
            Self::Status { status: 401 | 403, .. } => {
                "give credentials that may read it, or set WELLREAD_ANONYMOUS=1 where it is public"
            }
            Self::Status { status: 429 | 503, .. } => {
                "the server asks for fewer requests: set WELLREAD_IN_FLIGHT lower, or try again later"
            }
            Self::Status { .. } if self.passes() => {
                "the fault is the server's: try again later; WELLREAD_ATTEMPTS says how often is tried"
            }
            Self::NoRanges => "the server cannot send parts of files: copy the data to a local folder",
            Self::WrongRange(_) => {
                "the server or a proxy before it does not heed Range headers: reach it without the proxy"
            }
            Self::TooLong(_) => "spread the files over several folders, or give the addresses of the files",
            Self::Replaced | Self::Copying => "open the set again, when whoever writes to it has finished",
            Self::Stalled | Self::Slow { .. } | Self::Short { .. } | Self::Interrupted(_) => {
                "look at the connection; WELLREAD_ATTEMPTS and WELLREAD_TIMEOUT say how long is tried"
            }
            Self::Status { status: 404 | 410, .. } => NOT_FOUND,
            Self::Status { status: 416, .. } => {
                "the object is shorter than when it was opened: open the set again"
            }
            Self::Status { .. } => {
                "the server does not take the request: look at the address, AWS_REGION and the endpoint"
            }
            Self::Unreachable(_) => "look at the endpoint, the connection and the proxy",
            Self::NoCredentials(cause) if matches!(&**cause, Self::Status { code, .. } if is_expired(code)) =>
            {
                return cause.advice();
            }
            Self::NoCredentials(_) => {
                "look at the source of the credentials, or set WELLREAD_ANONYMOUS=1 where the data is public"
            }
            Self::Other(_) => return None,
        };
        Some(said.to_owned())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { status, code, message, .. } => {
                write!(f, "the server answered {status}")?;
                if !code.is_empty() {
                    write!(f, " {code}")?;
                }
                if !message.is_empty() {
                    let shown: String = message.chars().filter(|c| !c.is_control()).take(MESSAGE).collect();
                    write!(f, " ({shown})")?;
                }
                Ok(())
            }
            Self::NoRanges => {
                write!(f, "the server ignores ranges: asked for a part, it sends the whole file")
            }
            Self::WrongRange(range) => write!(f, "the server sent another range than was asked for: {range}"),
            Self::Replaced => write!(f, "it was replaced by another object since it was opened"),
            Self::Copying => write!(f, "the store has not copied it yet"),
            Self::Short { got, expected } => write!(f, "{got} of {expected} bytes came"),
            Self::TooLong(most) => write!(f, "the answer is longer than {most} bytes, the most that is read"),
            Self::Stalled => write!(f, "nothing came for too long"),
            Self::Slow { got, expected } => {
                write!(f, "{got} of {expected} bytes came, too slowly: under 1 KiB a second")
            }
            Self::Unreachable(cause) => write!(f, "no connection: {cause}"),
            Self::Interrupted(cause) => write!(f, "the connection was lost: {cause}"),
            Self::NoCredentials(cause) => write!(f, "no credentials could be had: {cause}"),
            Self::Other(cause) => write!(f, "{cause}"),
        }
    }
}

impl StdError for Fault {}

/// How long a server asks to wait, in seconds; `None` where it does not, or names a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// Whether this is a store's name for credentials that were valid before. Some answer it with 400.
fn is_expired(code: &str) -> bool {
    matches!(code, "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired")
}

/// The advice where nothing is found under a name that looks encoded, such as `a%20b`: names are taken as they are
/// given.
pub(crate) fn advice_on_name(name: &str) -> Option<&'static str> {
    let is_encoded = |three: &[u8]| three[0] == b'%' && three[1..].iter().all(u8::is_ascii_hexdigit);
    let advice = "addresses are given unencoded: write a space, not %20";
    name.as_bytes().windows(3).any(is_encoded).then_some(advice)
}

/// The words of the innermost cause, which neither names the URL (it may carry a signature) nor repeats those around it.
/// Those about JSON that is not as expected name the value, and the file may be one of credentials: only its place is told.
pub(crate) fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    let text = error.to_string();
    match error.downcast_ref::<serde_json::Error>() {
        Some(e) if text.starts_with("invalid") || text.starts_with("unknown") => {
            format!("JSON of another kind is expected at line {} column {}", e.line(), e.column())
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_found_behind_what_wraps_it() {
        let fault = Fault::status(503, "SlowDown".into(), "Please reduce your request rate.".into());
        let http = HttpError::new(HttpErrorKind::Unknown, fault.clone());
        let error = object_store::Error::Generic { store: "S3", source: Box::new(http) };
        assert_eq!(Fault::of(&error), fault);
        assert!(fault.passes());
        assert_eq!(fault.to_string(), "the server answered 503 SlowDown (Please reduce your request rate.)");
        let timeout = HttpError::new(HttpErrorKind::Timeout, io::Error::other("late"));
        let error = object_store::Error::Generic { store: "S3", source: Box::new(timeout) };
        assert_eq!(Fault::of(&error), Fault::Stalled);
    }

    #[test]
    fn what_stays_wrong_is_not_tried_again_and_has_its_kind() {
        for (status, passes, kind) in [
            (403, false, io::ErrorKind::PermissionDenied),
            (404, false, io::ErrorKind::NotFound),
            (416, false, io::ErrorKind::Other),
            (429, true, io::ErrorKind::Other),
            (500, true, io::ErrorKind::Other),
            (501, false, io::ErrorKind::Other),
            (504, true, io::ErrorKind::Other),
        ] {
            let fault = Fault::status(status, String::new(), String::new());
            assert_eq!((fault.passes(), fault.kind()), (passes, kind), "{status}");
        }
        assert!(
            !Fault::TooLong(1).passes() && Fault::TooLong(1).advice().unwrap().contains("several folders")
        );
        assert!(!Fault::Replaced.passes() && !Fault::NoRanges.passes());
        assert!(Fault::Short { got: 1, expected: 2 }.passes());
        let slow = Fault::Slow { got: 1, expected: 2 };
        assert_eq!((slow.passes(), slow.kind()), (true, io::ErrorKind::TimedOut));
        assert!(slow.advice().unwrap().contains("WELLREAD_TIMEOUT"));
    }

    #[test]
    fn expired_credentials_and_faults_of_the_server_have_advice_of_their_own() {
        let advice = |status, code: &str| Fault::status(status, code.into(), String::new()).advice();
        for (status, code) in [(400, "ExpiredToken"), (403, "ExpiredToken"), (400, "TokenRefreshRequired")] {
            assert!(advice(status, code).unwrap().contains("have expired"), "{status} {code}");
            // It is no matter of one object.
            let kind = Fault::status(status, code.into(), String::new()).kind();
            assert_eq!(kind, io::ErrorKind::Other, "{status} {code}");
        }
        for (status, code) in [(500, "InternalError"), (502, ""), (200, "InternalError")] {
            assert!(advice(status, code).unwrap().contains("try again later"), "{status} {code}");
        }
        assert!(advice(403, "AccessDenied").unwrap().contains("WELLREAD_ANONYMOUS"));
        assert!(advice(403, "RequestTimeTooSkewed").unwrap().contains("set it right"));
        let to_write =
            |status, code: &str| Fault::status(status, code.into(), String::new()).advice_to_write();
        assert_eq!(to_write(403, "AccessDenied").unwrap(), "give credentials that may write there");
        for (status, code) in [(403, "ExpiredToken"), (403, "RequestTimeTooSkewed"), (503, "SlowDown")] {
            assert_eq!(to_write(status, code), advice(status, code), "{status} {code}");
        }
        assert!(advice(400, "InvalidRequest").unwrap().contains("look at the address"));
        assert!(advice(501, "NotImplemented").unwrap().contains("does not take the request"));
        assert!(advice(404, "NoSuchKey").unwrap().contains("spelling of bucket and key"));
        assert!(advice(416, "InvalidRange").unwrap().contains("open the set again"));
    }

    #[test]
    fn names_that_look_encoded_are_told_from_others() {
        for (name, is_encoded) in
            [("a%20b", true), ("%2F", true), ("50%", false), ("a %b", false), ("%zz", false)]
        {
            assert_eq!(advice_on_name(name).is_some(), is_encoded, "{name}");
        }
    }

    #[test]
    fn values_of_json_are_not_told() {
        let error = |text: &str| innermost(&serde_json::from_str::<Vec<String>>(text).unwrap_err());
        assert_eq!(error("\"the-secret\""), "JSON of another kind is expected at line 1 column 12");
        assert_eq!(error("["), "EOF while parsing a list at line 1 column 1");
    }

    #[test]
    fn a_message_is_cut_and_has_one_line() {
        let fault = Fault::status(400, "Bad".into(), format!("a\nb{}", "x".repeat(1000)));
        let text = fault.to_string();
        assert!(text.len() < 300 && !text.contains('\n') && text.contains("(ab"), "{text}");
    }
}
