//! A request made again until it succeeds, cannot, or was made often enough.
//!
//! ```text
//!  once ─▶ a fault that passes ─▶ wait 0.1 s, 0.2 s … 15 s, each between half and all of it ─▶ once …
//!     │                          └ as long as the server asks (Retry-After), a minute at most ─┘
//!     └──▶ any other, or the last attempt ─▶ an error that says what was asked, how often, why, and what to do
//! ```

use crate::failure::{Fault, advice_on_name};
use crate::link::Link;
use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The first wait; each is twice the one before.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(15);
/// The longest wait that a server may ask for.
const ASKED_FOR: Duration = Duration::from_mins(1);
/// How often a connection is tried that nobody answers: a wrong address is likelier than a server that comes back.
const MAX_CONNECTS: u32 = 5;

/// The request, for errors.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Such as `GET bytes 0-99 of s3://bucket/key`.
    pub(crate) what: String,
    /// Where the credentials are from.
    pub(crate) who: String,
}

/// Makes a request until it succeeds or has failed for good. No more of them run at once than the process may have in flight;
/// those that wait before they are made again do not count.
pub(crate) async fn attempts<T, F>(link: &Link, asked: Asked, once: impl FnMut() -> F + Send) -> io::Result<T>
where
    F: Future<Output = Result<T, Fault>> + Send,
{
    until_it_succeeds(link, Some(&link.in_flight), asked, once).await
}

/// As [`attempts`], however many the process may have in flight.
pub(crate) async fn bare_attempts<T, F>(
    link: &Link,
    asked: Asked,
    once: impl FnMut() -> F + Send,
) -> io::Result<T>
where
    F: Future<Output = Result<T, Fault>> + Send,
{
    until_it_succeeds(link, None, asked, once).await
}

async fn until_it_succeeds<T, F>(
    link: &Link,
    in_flight: Option<&Semaphore>,
    asked: Asked,
    mut once: impl FnMut() -> F + Send,
) -> io::Result<T>
where
    F: Future<Output = Result<T, Fault>> + Send,
{
    let start = Instant::now();
    let mut count = Count::default();
    loop {
        let permit = match in_flight {
            Some(in_flight) => Some(in_flight.acquire().await.map_err(io::Error::other)?),
            None => None,
        };
        let result = once().await;
        drop(permit);
        let fault = match result {
            Ok(value) => return Ok(value),
            Err(fault) => fault,
        };
        if !count.is_made_again(&fault, link.limits.attempts) {
            let failed = Failed { asked, made: count.made, seconds: start.elapsed().as_secs_f64(), fault };
            return Err(io::Error::new(failed.fault.kind(), failed));
        }
        tokio::time::sleep(wait(count.made, fault.after())).await;
    }
}

/// The attempts of a request that have failed.
#[derive(Debug, Default)]
struct Count {
    made: u32,
    /// Those since the last one for which there was a connection.
    unconnected: u32,
}

impl Count {
    /// Counts one more; whether the request is made again, `most` times in all.
    fn is_made_again(&mut self, fault: &Fault, most: u32) -> bool {
        self.made += 1;
        // A server that has answered is at its address, and comes back.
        self.unconnected = if is_unreachable(fault) { self.unconnected + 1 } else { 0 };
        fault.passes() && self.made < most && self.unconnected < MAX_CONNECTS
    }
}

fn is_unreachable(fault: &Fault) -> bool {
    match fault {
        Fault::Unreachable(_) => true,
        Fault::NoCredentials(cause) => is_unreachable(cause),
        _ => false,
    }
}

/// How long to wait after so many attempts, where the server asks for `after`. Nobody comes back sooner than it asks, and not all at
/// once.
fn wait(made: u32, after: Option<Duration>) -> Duration {
    let own = pause(made);
    after.map_or(own, |after| own.max(after.min(ASKED_FOR) + pause(1)))
}

/// The longest wait after so many attempts.
fn longest(made: u32) -> Duration {
    FIRST.saturating_mul(1 << made.saturating_sub(1).min(20)).min(LONGEST)
}

/// How long to wait after so many attempts. Half of it is random, so that those who failed together do not come back together.
fn pause(made: u32) -> Duration {
    // A new state is random.
    let random = RandomState::new().hash_one(made) as f64 / u64::MAX as f64;
    longest(made).mul_f64(0.5 + 0.5 * random)
}

/// A request that has failed for good.
#[derive(Debug)]
struct Failed {
    asked: Asked,
    made: u32,
    seconds: f64,
    fault: Fault,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.asked.what, self.fault)?;
        if self.made > 1 {
            write!(f, ", after {} attempts in {:.1} s", self.made, self.seconds)?;
        }
        if let Fault::Status { status: 400..=499, .. } | Fault::NoCredentials(_) = self.fault {
            write!(f, "; credentials: {}", self.asked.who)?;
        }
        if let Fault::Status { status: 404 | 410, .. } = self.fault
            && let Some(advice) = advice_on_name(&self.asked.what)
        {
            write!(f, "; {advice}")?;
        }
        let is_written =
            ["PUT ", "POST ", "DELETE ", "COPY "].iter().any(|verb| self.asked.what.starts_with(verb));
        let advice = if is_written { self.fault.advice_to_write() } else { self.fault.advice() };
        match advice {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failed {}

/// Whether an error of [`attempts`] is that the object was replaced.
pub(crate) fn is_replaced(error: &io::Error) -> bool {
    fault(error) == Some(&Fault::Replaced)
}

/// Whether an error of [`attempts`] is that the store has not copied the object yet.
pub(crate) fn is_copying(error: &io::Error) -> bool {
    fault(error) == Some(&Fault::Copying)
}

/// Whether an error of [`attempts`] is that an upload is not there, as one is not that was completed before. Azure then knows none of the
/// blocks.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    match fault(error) {
        Some(Fault::Status { status, code, .. }) => *status == 404 || code == "InvalidBlockList",
        _ => false,
    }
}

/// The fault in an error of [`attempts`].
fn fault(error: &io::Error) -> Option<&Fault> {
    Some(&error.get_ref()?.downcast_ref::<Failed>()?.fault)
}

/// The number of the server's answer, where an error of [`attempts`] is one.
pub(crate) fn status(error: &io::Error) -> Option<u16> {
    match fault(error)? {
        Fault::Status { status, .. } => Some(*status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::retry_after;
    use crate::link::ATTEMPTS;
    use http::HeaderMap;
    use http::header::RETRY_AFTER;

    #[test]
    fn waits_double_up_to_the_longest() {
        for (made, most) in [(1, 0.1), (2, 0.2), (5, 1.6), (9, 15.0), (60, 15.0)] {
            let waited = pause(made).as_secs_f64();
            assert!(waited >= most / 2.0 && waited <= most, "{made}: {waited}");
        }
    }

    #[test]
    fn a_minute_of_throttling_is_outlasted_by_the_shortest_waits() {
        let shortest: Duration = (1..ATTEMPTS).map(|made| longest(made) / 2).sum();
        assert!(shortest > Duration::from_mins(1), "{shortest:?}");
        assert!(shortest < Duration::from_secs(70), "and not by much: {shortest:?}");
    }

    #[test]
    fn servers_may_ask_for_a_longer_wait() {
        let asked = |text: &'static str| {
            retry_after(&[(RETRY_AFTER, http::HeaderValue::from_static(text))].into_iter().collect())
        };
        assert_eq!((asked("7"), asked(" 0 ")), (Some(Duration::from_secs(7)), Some(Duration::ZERO)));
        assert_eq!((asked("Wed, 21 Oct 2026 07:28:00 GMT"), asked("-1")), (None, None));
        assert_eq!(retry_after(&HeaderMap::new()), None);
        for (made, after, least, most) in [
            (1, Some(7), 7.05, 7.1),
            (1, Some(3600), 60.05, 60.1),
            (1, Some(0), 0.05, 0.1),
            (9, Some(1), 7.5, 15.0),
            (1, None, 0.05, 0.1),
        ] {
            let waited = wait(made, after.map(Duration::from_secs)).as_secs_f64();
            assert!(waited >= least && waited <= most, "{made} {after:?}: {waited}");
        }
        let fault = Fault::Status {
            status: 503,
            code: String::new(),
            message: String::new(),
            region: None,
            after: asked("7"),
        };
        assert_eq!(fault.after(), asked("7"));
        assert_eq!(Fault::NoCredentials(Box::new(fault)).after(), asked("7"));
        assert_eq!(Fault::Stalled.after(), None);
    }

    #[test]
    fn errors_say_what_was_asked_how_often_why_and_what_to_do() {
        let asked = Asked { what: "GET bytes 0-9 of s3://b/k".into(), who: "none (anonymous)".into() };
        for (status, advice) in
            [(400, "look at the address"), (404, "look at the spelling"), (416, "open the set")]
        {
            let fault = Fault::status(status, String::new(), String::new());
            let text = Failed { asked: asked.clone(), made: 1, seconds: 0.0, fault }.to_string();
            assert!(text.starts_with("GET bytes 0-9 of s3://b/k: the server answered 4"), "{text}");
            assert!(text.contains("; credentials: none (anonymous); ") && text.contains(advice), "{text}");
        }
        let fault = Fault::status(503, "SlowDown".into(), String::new());
        let failed = Failed { asked: asked.clone(), made: 3, seconds: 1.25, fault };
        assert_eq!(
            failed.to_string(),
            "GET bytes 0-9 of s3://b/k: the server answered 503 SlowDown, after 3 attempts in 1.2 s; the server asks for fewer \
             requests: set WELLREAD_IN_FLIGHT lower, or try again later"
        );
        let fault = Fault::status(403, "AccessDenied".into(), String::new());
        let failed = Failed { asked: asked.clone(), made: 1, seconds: 0.0, fault };
        let error = io::Error::new(failed.fault.kind(), failed);
        assert!(error.to_string().contains("; credentials: none (anonymous);"), "{error}");
        assert_eq!((status(&error), is_replaced(&error)), (Some(403), false));
        let what = "PUT part 1 of s3://b/k".to_owned();
        let fault = Fault::status(403, "AccessDenied".into(), String::new());
        let asked = Asked { what, ..asked };
        let failed = Failed { asked: asked.clone(), made: 1, seconds: 0.0, fault };
        assert_eq!(
            failed.to_string(),
            "PUT part 1 of s3://b/k: the server answered 403 AccessDenied; credentials: none (anonymous); give credentials that may \
             write there"
        );
        let gone = |status, code: &str| {
            let fault = Fault::status(status, code.to_owned(), String::new());
            is_gone(&io::Error::other(Failed { asked: asked.clone(), made: 2, seconds: 0.0, fault }))
        };
        assert!(gone(404, "NoSuchUpload") && gone(400, "InvalidBlockList"));
        assert!(!gone(400, "InvalidPart") && !gone(500, "") && !is_gone(&io::Error::other("no")));
    }

    #[test]
    fn a_server_that_is_lost_for_a_moment_is_waited_for() {
        let unreachable = || Fault::Unreachable(String::new());
        let made = |faults: &mut dyn Iterator<Item = Fault>| {
            let mut count = Count::default();
            faults.take_while(|fault| count.is_made_again(fault, 14)).count() + 1
        };
        assert_eq!(made(&mut std::iter::repeat_with(unreachable)), 5);
        assert_eq!(made(&mut std::iter::repeat_with(|| Fault::NoCredentials(Box::new(unreachable())))), 5);
        assert_eq!(made(&mut std::iter::repeat_with(|| Fault::Stalled)), 14);
        assert_eq!(made(&mut std::iter::repeat_with(|| Fault::Replaced)), 1);
        // It answered before.
        let mut faults = std::iter::repeat_n(Fault::Stalled, 6).chain(std::iter::repeat_with(unreachable));
        assert_eq!(made(&mut faults), 11);
    }
}
