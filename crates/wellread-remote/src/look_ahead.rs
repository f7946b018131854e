//! Many looks at once: folders that are going to be looked into, and a set with the folders that most sets of its name have.
//!
//! ```text
//!  list_all     LIST of many folders
//!  find_ahead   HEAD and LIST of an address, LIST of folders below it
//! ```
//!
//! [`look`](crate::look) finds the answers, which are kept.

use crate::link::Link;
use crate::look::{Asked, ask, keep, keep_found, list_request, pages, tell};
use crate::object::Object;
use futures_util::future::{join, join_all};
use object_store::ListResult;
use std::io;

/// Objects of a folder that is listed before anybody knows that it is there, at most: those of a page.
const PAGE: usize = 1000;

/// Lists folders, those of which nothing is known, all at once. A failed listing fails again where the folder is
/// looked at.
pub(crate) fn list_all(link: &'static Link, objects: Vec<Object>) {
    list_unknown(link, objects, usize::MAX);
}

/// As [`list_all`]; of a folder with `most` objects or more nothing is kept.
fn list_unknown(link: &'static Link, objects: Vec<Object>, most: usize) {
    let requests = list_requests(link, objects, most);
    if requests.is_empty() {
        return;
    }
    let answers = link.wait(async move { Ok(join_all(requests).await) });
    keep_all(link, answers.unwrap_or_default(), most);
}

/// A folder, when its listing was asked for, and the answer.
type Listed = (Object, Asked, io::Result<ListResult>);

/// Requests for the listings of folders, those of which nothing is known, until `most` objects of each are there.
fn list_requests(
    link: &'static Link,
    objects: Vec<Object>,
    most: usize,
) -> Vec<impl Future<Output = Listed> + Send + use<>> {
    let is_new = |object: &Object| {
        let (bucket, name) = (object.address.bucket_name(), object.address.to_string());
        link.listings.names(&bucket, &name).is_none() && !link.listings.is_no_folder(&bucket, &name)
    };
    let mut requests = vec![];
    for object in objects.into_iter().filter(is_new) {
        let asked = ask(link, &object);
        if let Ok(request) = pages(link, &object, Some("/"), most) {
            requests.push(async move { (object, asked, request.await) });
        }
    }
    requests
}

/// Keeps what listings said that have fewer than `most` objects: they are whole.
fn keep_all(link: &Link, answers: Vec<Listed>, most: usize) {
    for (object, asked, answer) in answers {
        if let Ok(listed) = answer
            && listed.objects.len() < most
        {
            keep(link, &object, &listed, object.address.is_bucket(), asked);
        }
    }
}

/// Asks what is at an address, and for what lies in folders below it, all at once. A failed request is made again when its answer is
/// needed. So is the listing of a folder with more names than a page has.
pub(crate) fn find_ahead(link: &'static Link, object: &Object, inside: Vec<Object>) {
    let (bucket, name) = (object.address.bucket_name(), object.address.to_string());
    let is_no_folder = link.heads.get(&name).is_some() || link.listings.is_no_folder(&bucket, &name);
    if object.address.is_bucket() || is_no_folder {
        return;
    }
    if link.listings.is_folder(&bucket, &name) {
        let all = std::iter::once(object.clone()).chain(inside).collect();
        list_unknown(link, all, PAGE);
        return;
    }
    let asked = ask(link, object);
    let (Ok(store), Ok(listing)) = (object.bucket(link), list_request(object, link)) else { return };
    let found = tell(object.head_request(link, store), listing);
    let requests = list_requests(link, inside, PAGE);
    let answers = link.wait(async move { Ok(join(found, join_all(requests)).await) });
    let Ok((found, listed)) = answers else { return };
    if let Ok(answer) = found {
        keep_found(link, object, answer, asked);
    }
    keep_all(link, listed, PAGE);
}
