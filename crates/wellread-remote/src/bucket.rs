//! A bucket as this process talks to it: the store, and the identity it has there.

use crate::address::Address;
use crate::failure::Fault;
use object_store::ObjectStore;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::multipart::MultipartStore;
use std::fmt;
use std::io;
use std::sync::Arc;

/// A bucket, a container, or a server.
pub(crate) struct Bucket {
    /// Requests for objects, each made once: the caller repeats them.
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Uploads in parts, where there are any.
    pub(crate) parts: Option<Arc<dyn MultipartStore>>,
    /// Listings by their pages, where there are any.
    pub(crate) pages: Option<Arc<dyn PaginatedListStore>>,
    /// Where the credentials are from, in words: `the environment`, `profile lab of ~/.aws/credentials`. Never what they are.
    pub(crate) who: String,
    /// Where requests go.
    pub(crate) endpoint: String,
    /// The region, where there are any and it is known.
    pub(crate) region: Option<String>,
}

impl Bucket {
    /// A bucket of a cloud at an endpoint, which takes uploads in parts and lists by pages.
    ///
    /// # Errors
    /// The builder's error.
    pub(crate) fn of<S: ObjectStore + MultipartStore + PaginatedListStore>(
        built: object_store::Result<S>,
        address: &Address,
        who: String,
        (endpoint, region): (&str, Option<String>),
    ) -> io::Result<Self> {
        let store = Arc::new(built.map_err(|e| cannot(&address.bucket_name(), &e))?);
        let endpoint = without_user(endpoint);
        let (parts, pages) = (store.clone(), store.clone());
        Ok(Self { store, parts: Some(parts), pages: Some(pages), who, endpoint, region })
    }

    /// A page of a listing, asked for once.
    pub(crate) async fn page(
        &self,
        prefix: Option<&str>,
        options: PaginatedListOptions,
    ) -> Result<PaginatedListResult, Fault> {
        let Some(pages) = &self.pages else { return Err(Fault::Other("it cannot be listed".into())) };
        pages.list_paginated(prefix, options).await.map_err(|e| Fault::of(&e))
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the store, whose builder may show more than it should.
        f.debug_struct("Bucket").field("who", &self.who).finish_non_exhaustive()
    }
}

/// A server's address without name, password and query, which may hold secrets.
pub(crate) fn without_user(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = host.rsplit('@').next().unwrap_or(host);
    path.map_or_else(|| format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"))
}

/// An error of making a store. Its text has no secret: builders name the key of a setting, not its value.
pub(crate) fn cannot(bucket: &str, error: &object_store::Error) -> io::Error {
    let cause = crate::failure::innermost(error);
    io::Error::new(io::ErrorKind::InvalidInput, format!("cannot connect to {bucket}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_in_an_endpoint_is_not_shown() {
        for (url, shown) in [
            ("http://127.0.0.1:9000/", "http://127.0.0.1:9000"),
            ("https://me:word@host/path?sig=x", "https://host/path"),
            ("host", "https://host"),
        ] {
            assert_eq!(without_user(url), shown);
        }
    }
}
