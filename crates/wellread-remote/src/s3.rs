//! Amazon S3 and all that speaks its language: `s3://bucket/key`.
//!
//! The credentials are found as AWS's own programs do: the environment, a web identity, the profile in `~/.aws`, the
//! container, the machine. Where there is none, requests are not signed, as public buckets have it.

use crate::address::Address;
use crate::attempts::{Asked, attempts};
use crate::aws_files::Profile;
use crate::bucket::Bucket;
use crate::cloud::Cloud;
use crate::credentials::explained;
use crate::environment::{
    cloud_settings, credential, first_of, is_anonymous, is_on, metadata_limit, once, said, variable,
};
use crate::failure::{Fault, retry_after};
use crate::link::Link;
use crate::transport::{Transport, fault_of};
use http::{HeaderMap, StatusCode};
use object_store::aws::AmazonS3Builder;
use std::io;
use wellread_store::place::count_request;
use wellread_store::surface::option_as;

static S3: Cloud = Cloud(connect);
wellread_store::register_place!("s3", S3);

/// The source of credentials: the store's provider, and its name in words.
enum CredentialSource {
    /// The builder finds it by itself.
    Found(String),
    /// Keys of the environment or a profile: id, secret, token, source.
    Keys(String, String, Option<String>, String),
    /// Nobody.
    Anonymous(&'static str),
}

fn connect(link: &'static Link, address: &Address) -> io::Result<Bucket> {
    let profile = Profile::load()?;
    let mut builder = cloud_settings("AWS_")
        .fold(AmazonS3Builder::new(), |builder, (key, text)| builder.with_config(key, text))
        .with_bucket_name(&address.bucket)
        .with_http_connector(Transport::signed(&link.clients))
        .with_retry(once())
        // One request each: not all servers know the other, and few objects are removed.
        .with_disable_bulk_delete(true);
    let mut endpoint =
        first_of(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]).map(|(_, url)| url);
    if endpoint.is_none()
        && let Some(url) = profile.get("endpoint_url")
    {
        endpoint = Some(url.to_owned());
        builder = builder.with_endpoint(url);
    }
    let mut region = first_of(&["AWS_REGION", "AWS_DEFAULT_REGION"]).map(|(_, region)| region);
    if region.is_none() {
        region = match (profile.get("region"), &endpoint) {
            (Some(region), _) => Some(region.to_owned()),
            (None, Some(_)) => None,
            (None, None) => region_of(link, &address.bucket)?,
        };
        if let Some(region) = &region {
            builder = builder.with_region(region);
        }
    }
    let who = match credential_source(link, &profile)? {
        CredentialSource::Found(who) => who,
        CredentialSource::Keys(id, secret, token, who) => {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret);
            if let Some(token) = token {
                builder = builder.with_token(token);
            }
            who
        }
        CredentialSource::Anonymous(why) => {
            builder = builder.with_skip_signature(true);
            why.to_owned()
        }
    };
    let at = region.as_deref().unwrap_or("us-east-1");
    let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{at}.amazonaws.com"));
    let built = builder.clone().build();
    let built = built.and_then(|store| builder.with_credentials(explained(store.credentials())).build());
    Bucket::of(built, address, who, (&endpoint, region))
}

fn credential_source(link: &'static Link, profile: &Profile) -> io::Result<CredentialSource> {
    if is_anonymous() || is_on("AWS_SKIP_SIGNATURE") {
        return Ok(CredentialSource::Anonymous("none, as was asked for (anonymous)"));
    }
    if let Some(id) = credential("AWS_ACCESS_KEY_ID")? {
        let who = "the environment (AWS_ACCESS_KEY_ID)".to_owned();
        let token = credential("AWS_SESSION_TOKEN")?;
        return Ok(match credential("AWS_SECRET_ACCESS_KEY")? {
            Some(secret) => CredentialSource::Keys(id, secret, token, who),
            None => CredentialSource::Found(who),
        });
    }
    if variable("AWS_WEB_IDENTITY_TOKEN_FILE").is_some() && variable("AWS_ROLE_ARN").is_some() {
        return Ok(CredentialSource::Found("the web identity in AWS_WEB_IDENTITY_TOKEN_FILE".into()));
    }
    if let Some(id) = profile.get("aws_access_key_id") {
        let secret = profile.get("aws_secret_access_key").ok_or_else(|| {
            let cause = format!("the {} has a key and no secret (aws_secret_access_key)", profile.who());
            io::Error::new(io::ErrorKind::InvalidInput, cause)
        })?;
        let token = profile.get("aws_session_token").map(str::to_owned);
        return Ok(CredentialSource::Keys(id.to_owned(), secret.to_owned(), token, profile.who()));
    }
    if let Some(by) = profile.fetched_by() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, fetched(profile, by)));
    }
    let container = ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"];
    if let Some((name, _)) = first_of(&container) {
        return Ok(CredentialSource::Found(format!("the container ({name})")));
    }
    let server = variable("AWS_METADATA_ENDPOINT").unwrap_or_else(|| "http://169.254.169.254".into());
    let is_asked = !is_on("AWS_EC2_METADATA_DISABLED");
    if is_asked && has_role(link, server.trim_end_matches('/')) {
        return Ok(CredentialSource::Found("the role of this machine (instance metadata)".into()));
    }
    Ok(CredentialSource::Anonymous("none were found in environment, ~/.aws and machine (anonymous)"))
}

/// Whether this machine has a role. One without a role has a metadata server all the same, and reads public buckets.
fn has_role(link: &'static Link, server: &str) -> bool {
    let scheme = server.split_once(':').map(|(scheme, _)| scheme);
    let Ok(client) = link.clients.signed(scheme) else { return false };
    let token = client.put(format!("{server}/latest/api/token"));
    let token = token.header("x-aws-ec2-metadata-token-ttl-seconds", "60");
    let role = client.get(format!("{server}/latest/meta-data/iam/security-credentials/"));
    let limit = metadata_limit("AWS_METADATA_SERVICE_TIMEOUT");
    let has_role = link.wait(async move {
        let token = said(token, limit).await?;
        io::Result::Ok(match said(role.header("x-aws-ec2-metadata-token", token), limit).await {
            Ok(role) => !role.trim().is_empty(),
            // Another failure may pass. The first request that is signed says so if it does not.
            Err(e) => e.kind() != io::ErrorKind::NotFound,
        })
    });
    has_role.unwrap_or(false)
}

/// The advice about a profile whose credentials AWS's own programs fetch.
fn fetched(profile: &Profile, by: &str) -> String {
    let (who, name) = (profile.who(), profile.name());
    let login = if by == "SSO" { format!("aws sso login --profile {name} && ") } else { String::new() };
    format!(
        "the {who} has its credentials by {by}, which wellread does not ask. Put them into the environment: \
         {login}eval \"$(aws configure export-credentials --profile {name} --format env)\" (a public bucket needs none: \
         {}, or WELLREAD_ANONYMOUS=1)",
        option_as("anonymous", "true")
    )
}

/// The region of a bucket of Amazon's, which any of their servers tells to anybody; `None` where it does not.
fn region_of(link: &'static Link, bucket: &str) -> io::Result<Option<String>> {
    let url = format!("https://s3.amazonaws.com/{bucket}");
    let client = link.clients.signed(None)?;
    let what = format!("HEAD {url}, the question for the bucket's region (AWS_REGION is not set)");
    let asked = Asked { what, who: "none (anybody may ask)".into() };
    let once = move || {
        let request = client.head(&url);
        count_request();
        async move {
            let answer = request.send().await.map_err(|e| fault_of(&e.without_url()))?;
            told_region(answer.status(), answer.headers())
        }
    };
    link.wait(attempts(link, asked, once))
}

/// The region in an answer. Those to private buckets and buckets elsewhere have it, too. A server that fails may tell it later.
fn told_region(status: StatusCode, headers: &HeaderMap) -> Result<Option<String>, Fault> {
    if let Some(region) = headers.get("x-amz-bucket-region").and_then(|region| region.to_str().ok()) {
        return Ok(Some(region.to_owned()));
    }
    let message = status.canonical_reason().unwrap_or_default().to_owned();
    let (status, after) = (status.as_u16(), retry_after(headers));
    let fault = Fault::Status { status, code: String::new(), message, region: None, after };
    if fault.passes() { Err(fault) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};
    use std::time::Duration;

    #[test]
    fn a_server_that_fails_is_asked_again_for_the_region() {
        let told = |status, region: Option<&'static str>| {
            let region = region.map(|region| ("x-amz-bucket-region", region));
            let headers = region.into_iter().chain([("retry-after", "3")]);
            let headers =
                headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            told_region(StatusCode::from_u16(status).unwrap(), &headers.collect())
        };
        for status in [200, 301, 400, 403, 503] {
            assert_eq!(told(status, Some("eu-central-1")), Ok(Some("eu-central-1".to_owned())), "{status}");
        }
        assert_eq!((told(403, None), told(404, None)), (Ok(None), Ok(None)));
        for status in [500, 503] {
            let fault = told(status, None).unwrap_err();
            assert_eq!((fault.passes(), fault.after()), (true, Some(Duration::from_secs(3))), "{status}");
        }
    }
}
