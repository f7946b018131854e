//! Plain web servers: `http://host/key`, `https://host/key`. Read alone; a folder is what has an index page.

use crate::address::Address;
use crate::ahead::Session;
use crate::attempts::attempts;
use crate::bucket::{Bucket, cannot, without_user};
use crate::environment::once;
use crate::failure::{Fault, retry_after};
use crate::heads::{Head, Version};
use crate::index_page::names;
use crate::link::{Link, link};
use crate::object::Object;
use crate::probe;
use crate::reader::Reader;
use crate::transport::{Transport, all_of, fault_of};
use http::StatusCode;
use object_store::http::HttpBuilder;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wellread_store::place::{
    self, Entry, FetchAhead, File, FileRange, Kind, LinkAbout, Listing, Metadata, Place, count_request,
};

/// Bytes of an index page at most.
const PAGE: usize = 64 << 20;

/// Web servers.
struct Http;

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Http")
    }
}

static HTTP: Http = Http;
wellread_store::register_place!("http", HTTP);
wellread_store::register_place!("https", HTTP);

fn connect(link: &'static Link, address: &Address) -> io::Result<Bucket> {
    let store = HttpBuilder::new()
        .with_url(format!("{}/", address.bucket_name()))
        .with_http_connector(Transport::web(&link.clients))
        .with_retry(once())
        .build()
        .map_err(|e| cannot(&address.bucket_name(), &e))?;
    Ok(Bucket {
        store: Arc::new(store),
        parts: None,
        pages: None,
        who: "none (web servers are asked without)".into(),
        endpoint: without_user(&address.bucket_name()),
        region: None,
    })
}

/// A server's answer about an address.
enum Answer {
    File(Head),
    Folder,
}

impl place::Link for Http {
    fn about(&self, path: &Path) -> io::Result<LinkAbout> {
        probe::about(connect, path)
    }

    fn fetch(&self, ranges: &[FileRange], at_once: usize) -> io::Result<Duration> {
        probe::fetch(connect, ranges, at_once)
    }
}

impl Place for Http {
    fn link(&self) -> Option<&dyn place::Link> {
        Some(self)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let (link, object) = (link()?, Object::of(path, connect)?);
        if object.address.is_bucket() {
            return Ok(Metadata { kind: Kind::Folder, length: 0 });
        }
        let (name, asked) = (object.address.to_string(), link.heads.ask());
        let known = link.heads.get(&name).map(Answer::File);
        let answer = match known {
            Some(known) => known,
            None => ask(link, &object, url(&object)?)?,
        };
        Ok(match answer {
            Answer::File(head) => {
                let length = head.length;
                link.heads.learn(name, head, asked);
                Metadata { kind: Kind::File, length }
            }
            Answer::Folder => Metadata { kind: Kind::Folder, length: 0 },
        })
    }

    fn list(&self, folder: &Path) -> io::Result<Listing> {
        let (link, object) = (link()?, Object::of(folder, connect)?);
        let mut url = url(&object)?;
        let base = format!("{}/", url.path().trim_end_matches('/'));
        url.set_path(&base);
        let (page, base) = page(link, &object, url)?;
        let entries = names(&page, &base).into_iter().map(|(name, is_folder)| {
            Ok(Entry::new(name.into(), if is_folder { Kind::Folder } else { Kind::File }))
        });
        Ok(Box::new(entries.collect::<Vec<_>>().into_iter()))
    }

    fn open(&self, path: &Path) -> io::Result<(File, u64)> {
        let (link, object) = (link()?, Object::of(path, connect)?);
        if object.is_absent(link) {
            let cause = format!("there is no {}", object.address);
            return Err(io::Error::new(io::ErrorKind::NotFound, cause));
        }
        let reader = Reader::open(link, object)?;
        let length = reader.bytes();
        Ok((File::Other(Box::new(reader)), length))
    }

    fn look_anew(&self, path: &Path) {
        if let (Ok(link), Ok(object)) = (link(), Object::of(path, connect)) {
            link.heads.look_anew(&object.address.to_string());
            link.listings.look_anew(&object.address.bucket_name());
        }
    }

    fn ahead(&self, most: Option<u64>) -> Option<Box<dyn FetchAhead>> {
        Some(Box::new(Session::new(link().ok()?, connect, most)))
    }
}

fn url(object: &Object) -> io::Result<reqwest::Url> {
    let address = &object.address;
    let invalid = |cause: String| io::Error::new(io::ErrorKind::InvalidInput, cause);
    let mut url = reqwest::Url::parse(&address.bucket_name())
        .map_err(|e| invalid(format!("the address is none: {e}")))?;
    url.path_segments_mut()
        .map_err(|()| invalid("the address has no path".into()))?
        .clear()
        .extend(address.key.as_ref().split('/').filter(|part| !part.is_empty()));
    Ok(url)
}

/// A request's answer as a fault, where it is none of success.
fn check(answer: reqwest::Response) -> Result<reqwest::Response, Fault> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let message = status.canonical_reason().unwrap_or_default().to_owned();
    let (status, after) = (status.as_u16(), retry_after(answer.headers()));
    Err(Fault::Status { status, code: String::new(), message, region: None, after })
}

/// Asks what lies at an address. Servers send those who ask for a folder on to the address with a slash.
fn ask(link: &'static Link, object: &Object, url: reqwest::Url) -> io::Result<Answer> {
    let bucket = object.bucket(link)?;
    let asked = object.asked("HEAD", &bucket);
    let client = link.clients.web()?;
    let once = move || {
        let request = client.head(url.clone());
        count_request();
        async move {
            let answer = request.send().await.map_err(|e| fault_of(&e.without_url()))?;
            if answer.url().path().ends_with('/') {
                return Ok(Some(Answer::Folder));
            }
            // Programs that serve files need not know this method.
            if matches!(answer.status(), StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED) {
                return Ok(None);
            }
            let answer = check(answer)?;
            let header =
                |name: http::HeaderName| answer.headers().get(name).and_then(|value| value.to_str().ok());
            let length = header(http::header::CONTENT_LENGTH).and_then(|text| text.parse().ok());
            let e_tag = header(http::header::ETAG).map(str::to_owned);
            let version = Version::new(e_tag, 0);
            Ok::<_, Fault>(length.map(|length| Answer::File(Head { length, version })))
        }
    };
    match link.wait(attempts(link, asked, once))? {
        Some(Answer::Folder) => Ok(Answer::Folder),
        Some(Answer::File(head)) if head.version.if_match().is_some() => Ok(Answer::File(head)),
        // Without a length or a tag only the answer to a range tells these.
        _ => object.first(link).map(Answer::File),
    }
}

/// The index page of a folder, and the path that it is at.
fn page(link: &'static Link, object: &Object, url: reqwest::Url) -> io::Result<(String, String)> {
    let bucket = object.bucket(link)?;
    let asked = object.asked("GET the index page of", &bucket);
    let client = link.clients.web()?;
    let once = move || {
        let request = client.get(url.clone());
        count_request();
        async move {
            let answer = check(request.send().await.map_err(|e| fault_of(&e.without_url()))?)?;
            let kind = answer.headers().get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
            if !kind.is_some_and(|kind| kind.starts_with("text/html")) {
                return Err(Fault::Other("the server has no page that lists the folder".into()));
            }
            let path = answer.url().path().to_owned();
            let answer: http::Response<reqwest::Body> = answer.into();
            let page = all_of(answer.into_body(), PAGE).await?;
            Ok((String::from_utf8_lossy(&page).into_owned(), path))
        }
    };
    link.wait(attempts(link, asked, once))
}
