//! The surroundings that all clouds need: environment variables, files at home, and whether this is a machine of a
//! cloud.

use crate::link::Link;
use http::StatusCode;
use object_store::{BackoffConfig, RetryConfig};
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// How long a machine's own metadata server may take to answer, where nothing else is said. It is on the machine, or there is none.
const METADATA: Duration = Duration::from_secs(1);

/// How long a metadata server may take, by the variable in which that cloud's own programs look for the seconds.
pub(crate) fn metadata_limit(name: &str) -> Duration {
    let seconds = variable(name).and_then(|text| text.trim().parse().ok());
    seconds.filter(|seconds: &f64| (0.05..1e6).contains(seconds)).map_or(METADATA, Duration::from_secs_f64)
}

/// A variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Settings of a cloud that its own programs take from variables whose names begin with `prefix`; those that the library knows.
/// One that is empty is not set, as those programs have it: a container often has a token of no characters.
pub(crate) fn cloud_settings<K: FromStr>(prefix: &'static str) -> impl Iterator<Item = (K, String)> {
    std::env::vars_os().filter_map(move |(name, text)| {
        let (name, text) = (name.into_string().ok()?, text.into_string().ok()?);
        let is_set = name.starts_with(prefix) && !text.trim().is_empty();
        let key = is_set.then(|| name.to_ascii_lowercase().parse().ok())??;
        Some((key, text))
    })
}

/// The first of some variables that is set; its name and what it says.
pub(crate) fn first_of<'a>(names: &[&'a str]) -> Option<(&'a str, String)> {
    names.iter().find_map(|name| Some((*name, variable(name)?)))
}

/// Credentials in a variable, without what files that they are read from have around them. No header takes other characters
/// than these.
pub(crate) fn credential(name: &str) -> io::Result<Option<String>> {
    let text = variable(name).map(|text| cleaned(name, &text)).transpose()?;
    // A file may have had a line break alone.
    Ok(text.filter(|text| !text.is_empty()))
}

fn cleaned(name: &str, text: &str) -> io::Result<String> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    let cause = format!(
        "{name} has spaces, line breaks or characters past ASCII in it, which no credentials have: set it anew"
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, cause))
}

/// Whether a variable says yes.
pub(crate) fn is_on(name: &str) -> bool {
    variable(name).is_some_and(|text| matches!(&*text.to_ascii_lowercase(), "1" | "true" | "yes" | "on"))
}

/// Whether requests are not to be signed, whatever credentials there are.
pub(crate) fn is_anonymous() -> bool {
    crate::settings::get().anonymous || is_on("WELLREAD_ANONYMOUS")
}

/// The user's own folder.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| !home.as_os_str().is_empty())
}

/// Requests are repeated here ([`crate::attempts`]), not by the library.
pub(crate) fn once() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 0, retry_timeout: Duration::from_mins(3) }
}

/// The text that a metadata server answers with; the error's kind says where it has none.
pub(crate) async fn said(request: reqwest::RequestBuilder, limit: Duration) -> io::Result<String> {
    let answer = request.timeout(limit).send().await.map_err(io::Error::other)?;
    let status = answer.status();
    if status == StatusCode::NOT_FOUND {
        return Err(io::ErrorKind::NotFound.into());
    }
    if !status.is_success() {
        return Err(io::Error::other(status.to_string()));
    }
    answer.text().await.map_err(io::Error::other)
}

/// Whether a metadata server answers.
pub(crate) fn answers(
    link: &'static Link,
    method: reqwest::Method,
    url: &str,
    header: (&'static str, &'static str),
    limit: Duration,
) -> bool {
    let Ok(client) = link.clients.signed(url.split_once(':').map(|(scheme, _)| scheme)) else { return false };
    let request = client.request(method, url).header(header.0, header.1).timeout(limit);
    let answer = link.wait(async move { request.send().await.map_err(io::Error::other) });
    answer.is_ok_and(|answer| answer.status().is_success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_without_what_surrounds_them() {
        for (text, expected) in [("AKIA/+=", "AKIA/+="), (" key\r\n", "key"), ("key\n", "key"), ("\n", "")] {
            assert_eq!(cleaned("NAME", text).unwrap(), expected, "{text:?}");
        }
        for text in ["the\nsecret", "the secret", "thé-secret"] {
            let error = cleaned("NAME", text).unwrap_err().to_string();
            assert!(error.starts_with("NAME has ") && !error.contains("secret"), "{error}");
        }
    }
}
