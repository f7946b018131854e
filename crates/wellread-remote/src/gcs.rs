//! Google Cloud Storage: `gs://bucket/key`.
//!
//! The credentials are found as Google's own programs do: a service account, `GOOGLE_APPLICATION_CREDENTIALS`,
//! the file of `gcloud auth application-default login`, the machine. Where there is none, requests are not
//! signed.

use crate::address::Address;
use crate::bucket::Bucket;
use crate::cloud::Cloud;
use crate::credentials::explained;
use crate::environment::{
    answers, cloud_settings, first_of, home, is_anonymous, is_on, metadata_limit, once, variable,
};
use crate::link::Link;
use crate::transport::Transport;
use object_store::gcp::GoogleCloudStorageBuilder;
use std::io;
use std::path::PathBuf;

static GCS: Cloud = Cloud(connect);
wellread_store::register_place!("gs", GCS);

/// Variables that name credentials.
const NAMED: [&str; 5] = [
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
];

fn connect(link: &'static Link, address: &Address) -> io::Result<Bucket> {
    let mut builder = GoogleCloudStorageBuilder::new();
    if let Some(file) = variable("SERVICE_ACCOUNT") {
        builder = builder.with_service_account_path(file);
    }
    builder = cloud_settings("GOOGLE_")
        .fold(builder, |builder, (key, text)| builder.with_config(key, text))
        .with_bucket_name(&address.bucket)
        .with_http_connector(Transport::signed(&link.clients))
        .with_retry(once());
    // The library would look for it at home alone.
    if first_of(&NAMED).is_none()
        && let Some(file) = login()
    {
        builder = builder.with_application_credentials(file.to_string_lossy());
    }
    let mut endpoint = "https://storage.googleapis.com".to_owned();
    let emulator = variable("STORAGE_EMULATOR_HOST");
    if let Some(host) = &emulator {
        let url = if host.contains("://") { host.clone() } else { format!("http://{host}") };
        url.trim_end_matches('/').clone_into(&mut endpoint);
        builder = builder.with_base_url(&endpoint);
    }
    let who = match who(link, emulator.is_some()) {
        Ok(who) => who,
        Err(why) => {
            // The library's requests that write ask for a token all the same. The transport leaves out an empty one.
            builder = builder.with_skip_signature(true).with_bearer_token("");
            why.to_owned()
        }
    };
    let built = builder.clone().build();
    let built = built.and_then(|store| builder.with_credentials(explained(store.credentials())).build());
    Bucket::of(built, address, who, (&endpoint, None))
}

/// Where credentials are from; or why there are none.
fn who(link: &'static Link, is_emulator: bool) -> Result<String, &'static str> {
    if is_anonymous() || is_on("GOOGLE_SKIP_SIGNATURE") {
        return Err("none, as was asked for (anonymous)");
    }
    if let Some((name, _)) = first_of(&NAMED) {
        return Ok(format!("the environment ({name})"));
    }
    if is_emulator {
        return Err("none, for an emulator (STORAGE_EMULATOR_HOST)");
    }
    if login().is_some() {
        return Ok("what gcloud auth application-default login left".into());
    }
    let server = variable("GCE_METADATA_HOST").unwrap_or_else(|| "metadata.google.internal".into());
    let url = format!("http://{server}/computeMetadata/v1/instance/service-accounts/default/email");
    let limit = metadata_limit("GCE_METADATA_TIMEOUT");
    if answers(link, reqwest::Method::GET, &url, ("metadata-flavor", "Google"), limit) {
        return Ok("the service account of this machine (metadata server)".into());
    }
    Err("none were found in environment, ~/.config/gcloud and machine (anonymous)")
}

/// The file that a login has left.
fn login() -> Option<PathBuf> {
    let folder = if let Some(folder) = variable("CLOUDSDK_CONFIG") {
        PathBuf::from(folder)
    } else if cfg!(windows) {
        PathBuf::from(variable("APPDATA")?).join("gcloud")
    } else {
        home()?.join(".config/gcloud")
    };
    Some(folder.join("application_default_credentials.json")).filter(|file| file.is_file())
}
