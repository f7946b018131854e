//! Azure Blob Storage: `az://container/key` of the account in the environment, `abfs://container@account.dfs.core.windows.net/key`.
//!
//! The credentials are found by the variables of Azure's own programs, a connection string among them, and then at the machine. Where
//! there are none, requests are not signed, as public containers have it.

use crate::address::Address;
use crate::bucket::{Bucket, cannot};
use crate::cloud::Cloud;
use crate::credentials::explained;
use crate::environment::{
    answers, cloud_settings, first_of, is_anonymous, is_on, metadata_limit, once, variable,
};
use crate::link::Link;
use crate::transport::Transport;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder, split_sas};
use std::io;

static AZURE: Cloud = Cloud(connect);
wellread_store::register_place!("az", AZURE);
wellread_store::register_place!("abfs", AZURE);
wellread_store::register_place!("abfss", AZURE);

/// Variables of which any says who asks.
const NAMED: [&str; 12] = [
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_USE_AZURE_CLI",
    "IDENTITY_ENDPOINT",
    "MSI_ENDPOINT",
];

fn connect(link: &'static Link, address: &Address) -> io::Result<Bucket> {
    let mut builder = cloud_settings("AZURE_")
        .fold(MicrosoftAzureBuilder::new(), |builder, (key, text)| builder.with_config(key, text))
        .with_http_connector(Transport::signed(&link.clients))
        .with_retry(once());
    if let Some(url) = variable("IDENTITY_ENDPOINT") {
        builder = builder.with_msi_endpoint(url);
    }
    let connection = variable("AZURE_STORAGE_CONNECTION_STRING").map(|text| Connection::parse(&text));
    if let Some(account) = variable("AZURE_STORAGE_ACCOUNT") {
        builder = builder.with_account(account);
    }
    if let Some(key) = variable("AZURE_STORAGE_KEY") {
        builder = builder.with_access_key(key);
    }
    let has_keys =
        connection.as_ref().is_some_and(|connection| connection.key.is_some() || connection.sas.is_some());
    if let Some(connection) = connection {
        builder = connection.given_to(builder).map_err(|e| cannot(&address.bucket_name(), &e))?;
    }
    // `container@account.dfs.core.windows.net` names the account as well.
    builder = if address.bucket.contains('@') {
        builder.with_url(format!("abfss://{}/", address.bucket))
    } else {
        builder.with_container_name(&address.bucket)
    };
    let server = variable("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    let server = server.unwrap_or_else(|| "http://169.254.169.254".into());
    let identities = format!("{}/metadata/identity/oauth2/token", server.trim_end_matches('/'));
    let who = if is_anonymous() || is_on("AZURE_SKIP_SIGNATURE") {
        Err("none, as was asked for (anonymous)")
    } else if has_keys {
        Ok("the environment (AZURE_STORAGE_CONNECTION_STRING)".to_owned())
    } else if let Some((name, _)) = first_of(&NAMED) {
        Ok(format!("the environment ({name})"))
    } else if is_on("AZURE_STORAGE_USE_EMULATOR") {
        Ok("those of the emulator (AZURE_STORAGE_USE_EMULATOR)".to_owned())
    } else if has_identity(link, &identities) {
        builder = builder.with_msi_endpoint(identities);
        Ok("the identity of this machine (instance metadata)".to_owned())
    } else {
        Err("none were found in environment and machine (anonymous)")
    };
    let who = match who {
        Ok(who) => who,
        Err(why) => {
            builder = builder.with_skip_signature(true);
            why.to_owned()
        }
    };
    let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint).unwrap_or_else(|| {
        let account = builder.get_config_value(&AzureConfigKey::AccountName);
        endpoint_of(&address.bucket, account.as_deref())
    });
    let built = builder.clone().build();
    let built = built.and_then(|store| builder.with_credentials(explained(store.credentials())).build());
    Bucket::of(built, address, who, (&endpoint, None))
}

/// Where requests for a container go, if no endpoint is set: to the account in its name, or else to the one that is set.
fn endpoint_of(container: &str, account: Option<&str>) -> String {
    let Some((_, host)) = container.split_once('@') else {
        return format!("https://{}.blob.core.windows.net", account.unwrap_or_default());
    };
    match host.split_once('.').and_then(|(account, rest)| Some((account, rest.strip_prefix("dfs.")?))) {
        Some((account, domain)) => format!("https://{account}.blob.{domain}"),
        None => format!("https://{host}"),
    }
}

/// Whether this machine has an identity, for which its metadata server has tokens. One without an identity has a metadata server all the
/// same, and reads public containers.
fn has_identity(link: &'static Link, identities: &str) -> bool {
    let mut url = format!("{identities}?api-version=2019-08-01&resource=https%3A%2F%2Fstorage.azure.com");
    // A machine may have several.
    if let Some(client) = variable("AZURE_CLIENT_ID") {
        url += "&client_id=";
        url += &client;
    }
    let limit = metadata_limit("AZURE_METADATA_SERVICE_TIMEOUT");
    answers(link, reqwest::Method::GET, &url, ("metadata", "true"), limit)
}

/// The parts of a connection string: `AccountName=…;AccountKey=…;BlobEndpoint=…`. Not to be shown.
#[derive(Default)]
struct Connection {
    account: Option<String>,
    key: Option<String>,
    sas: Option<String>,
    endpoint: Option<String>,
}

impl Connection {
    fn parse(text: &str) -> Self {
        let mut connection = Self::default();
        let (mut protocol, mut suffix) = (None, None);
        for (key, value) in text.split(';').filter_map(|pair| pair.split_once('=')) {
            let value = Some(value.trim().to_owned());
            match &*key.trim().to_ascii_lowercase() {
                "accountname" => connection.account = value,
                "accountkey" => connection.key = value,
                "sharedaccesssignature" => connection.sas = value,
                "blobendpoint" => connection.endpoint = value,
                "defaultendpointsprotocol" => protocol = value,
                "endpointsuffix" => suffix = value,
                _ => {}
            }
        }
        if let (None, Some(account), Some(suffix)) = (&connection.endpoint, &connection.account, suffix) {
            let protocol = protocol.as_deref().unwrap_or("https");
            connection.endpoint = Some(format!("{protocol}://{account}.blob.{suffix}"));
        }
        connection
    }

    fn given_to(self, mut builder: MicrosoftAzureBuilder) -> object_store::Result<MicrosoftAzureBuilder> {
        if let Some(account) = self.account {
            builder = builder.with_account(account);
        }
        if let Some(key) = self.key {
            builder = builder.with_access_key(key);
        }
        if let Some(sas) = self.sas {
            builder = builder.with_sas_authorization(split_sas(&sas)?);
        }
        if let Some(endpoint) = self.endpoint {
            builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
        }
        Ok(builder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_strings_are_read_in_their_parts() {
        let text =
            "DefaultEndpointsProtocol=https;AccountName=lab;AccountKey=a==;EndpointSuffix=core.windows.net";
        let connection = Connection::parse(text);
        assert_eq!((connection.account.as_deref(), connection.key.as_deref()), (Some("lab"), Some("a==")));
        assert_eq!(connection.endpoint.as_deref(), Some("https://lab.blob.core.windows.net"));
        let emulator = Connection::parse("AccountName=dev;BlobEndpoint=http://127.0.0.1:10000/dev;");
        assert_eq!(emulator.endpoint.as_deref(), Some("http://127.0.0.1:10000/dev"));
        assert!(Connection::parse("nothing").account.is_none());
    }

    #[test]
    fn the_account_in_a_name_tells_where_requests_go() {
        for (container, account, url) in [
            ("images", Some("lab"), "https://lab.blob.core.windows.net"),
            ("images@own.dfs.core.windows.net", Some("lab"), "https://own.blob.core.windows.net"),
            ("images@own.blob.core.windows.net", None, "https://own.blob.core.windows.net"),
            ("images@own.dfs.fabric.microsoft.com", None, "https://own.blob.fabric.microsoft.com"),
        ] {
            assert_eq!(endpoint_of(container, account), url, "{container}");
        }
    }
}
