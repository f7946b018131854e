//! The entry at an address of a bucket, and the entries of a folder, by as few round trips as possible.
//!
//! ```text
//!  find   known object? · known folder? ── yes ─▶ no request
//!         └ a name as folders have it ─▶ HEAD and LIST at once    most are folders, whose listing is wanted next
//!         └ another one ───────────────▶ both ends, then LIST     most are objects, whose ends are wanted next
//!  names  listed not long ago? ── yes ─▶ no request; else LIST
//!  list_below                   LIST of a folder and all below it, a thousand objects a request
//! ```
//!
//! A listing tells lengths and versions of objects too, so that opening them takes no request.

use crate::attempts::attempts;
use crate::heads::{self, Head, MAX_KNOWN, Version};
use crate::link::Link;
use crate::listings::{self, Names};
use crate::object::Object;
use futures_util::future::{Either, select};
use object_store::list::PaginatedListOptions;
use object_store::path::Path as Key;
use object_store::{Extensions, ListResult, ObjectMeta};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;
use std::pin::pin;
use std::sync::Arc;

/// When a listing was asked for, for its names and for the facts of its objects.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    names: listings::Asked,
    head: heads::Asked,
}

/// To be called before a listing is asked for.
pub(crate) fn ask(link: &Link, object: &Object) -> Asked {
    Asked { names: link.listings.ask(&object.address.bucket_name()), head: link.heads.ask() }
}

/// The entry at an address.
#[derive(Debug)]
pub(crate) enum Found {
    Object(Head),
    Folder,
}

/// The entry at an address; `None` where there is none. An object goes before a folder of its name.
pub(crate) fn find(link: &'static Link, object: &Object) -> io::Result<Option<Found>> {
    let name = object.address.to_string();
    let bucket = object.address.bucket_name();
    if link.listings.is_folder(&bucket, &name) {
        return Ok(Some(Found::Folder));
    }
    if object.address.is_bucket() {
        // One that can be listed is there, whatever is in it.
        listed(link, object)?;
        return Ok(Some(Found::Folder));
    }
    if let Some(head) = link.heads.get(&name) {
        return Ok(Some(Found::Object(head)));
    }
    let is_likely_a_folder = object.address.key.filename().is_some_and(wellread_store::is_called_as_folder);
    if is_likely_a_folder && !link.listings.is_no_folder(&bucket, &name) {
        return object_and_folder(link, object);
    }
    let refused = match object.ends(link) {
        Ok(head) => return Ok(Some(Found::Object(head))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) if is_refused(&e) => Some(e),
        Err(e) => return Err(e),
    };
    if link.listings.is_no_folder(&bucket, &name) {
        return refused.map_or(Ok(None), Err);
    }
    let asked = ask(link, object);
    let listed = link.wait(list_request(object, link)?);
    let is_told = match &listed {
        Ok(listed) => has_entries(listed),
        Err(why) => is_unknown(why),
    };
    match refused {
        Some(refused) if !is_told => Err(refused),
        _ => Ok(keep(link, object, &listed?, true, asked).map(|_| Found::Folder)),
    }
}

/// Whether the store refuses to tell of an object. It does so of one that is not there, where not all of the bucket may be listed.
pub(crate) fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Whether something lies in a folder. A user who may list that folder alone is refused where no object has its name.
/// Then this tells.
fn has_entries(listed: &ListResult) -> bool {
    !listed.objects.is_empty() || !listed.common_prefixes.is_empty()
}

/// Whether a listing failed for another reason than that it is refused as well. Then nobody knows, and a writer must not take
/// the refusal for a free place.
fn is_unknown(why: &io::Error) -> bool {
    !is_refused(why)
}

/// Asks for the object and for what lies in the folder at once.
fn object_and_folder(link: &'static Link, object: &Object) -> io::Result<Option<Found>> {
    let asked = ask(link, object);
    let head = object.head_request(link, object.bucket(link)?);
    let answer = link.wait(tell(head, list_request(object, link)?))?;
    Ok(keep_found(link, object, answer, asked))
}

/// Keeps what both requests said.
pub(crate) fn keep_found(link: &Link, object: &Object, answer: Answer, asked: Asked) -> Option<Found> {
    match answer {
        Answer::Object(head) => {
            link.heads.learn(object.address.to_string(), head.clone(), asked.head);
            Some(Found::Object(head))
        }
        Answer::Inside(listed) => keep(link, object, &listed, true, asked).map(|_| Found::Folder),
    }
}

/// The answer to one of both requests.
pub(crate) enum Answer {
    Object(Head),
    Inside(ListResult),
}

/// The object, if there is one: then the listing is not waited for.
pub(crate) async fn tell(
    head: impl Future<Output = io::Result<Head>> + Send,
    listing: impl Future<Output = io::Result<ListResult>> + Send,
) -> io::Result<Answer> {
    let (head, listing) = match select(pin!(head), pin!(listing)).await {
        Either::Left((Ok(head), _)) => return Ok(Answer::Object(head)),
        Either::Left((head, listing)) => (head, listing.await),
        Either::Right((listing, head)) => (head.await, listing),
    };
    match (head, listing) {
        (Err(e), listing) if e.kind() == io::ErrorKind::NotFound => listing.map(Answer::Inside),
        (Err(e), Ok(listed)) if is_refused(&e) && has_entries(&listed) => Ok(Answer::Inside(listed)),
        (Err(e), Err(why)) if is_refused(&e) && is_unknown(&why) => Err(why),
        // An answer to HEAD has no body: that credentials have expired is said to the listing alone.
        (Err(e), Err(why)) if [&e, &why].iter().all(|e| e.kind() == io::ErrorKind::Other) => Err(why),
        (head, _) => head.map(Answer::Object),
    }
}

/// The names in a folder; `None` where there is no such folder.
pub(crate) fn names(link: &'static Link, object: &Object) -> io::Result<Option<Arc<Names>>> {
    let (bucket, name) = (object.address.bucket_name(), object.address.to_string());
    if let Some(names) = link.listings.names(&bucket, &name) {
        return Ok(Some(names));
    }
    if link.listings.is_no_folder(&bucket, &name) {
        return Ok(None);
    }
    listed(link, object)
}

/// Lists a folder.
fn listed(link: &'static Link, object: &Object) -> io::Result<Option<Arc<Names>>> {
    let asked = ask(link, object);
    let listed = link.wait(list_request(object, link)?)?;
    Ok(keep(link, object, &listed, object.address.is_bucket(), asked))
}

/// Lists a folder and all below it, and keeps the names in each of its folders.
pub(crate) fn list_below(link: &'static Link, object: &Object) -> io::Result<()> {
    let asked = ask(link, object);
    let metas = below(link, object, MAX_KNOWN + 1)?;
    // No more would be kept.
    if metas.len() > MAX_KNOWN {
        return Ok(());
    }
    for (folder, inside) in folders_of(&object.address.key, metas) {
        keep(link, &object.with_key(folder), &inside, false, asked);
    }
    Ok(())
}

/// The objects below a folder, `most` of them at most.
pub(crate) fn below(link: &'static Link, object: &Object, most: usize) -> io::Result<Vec<ObjectMeta>> {
    let listed = link.wait(pages(link, object, None, most)?)?;
    Ok(listed.objects)
}

/// The request for all pages of a listing, until `most` objects are there. A page that fails is asked for again, and not those before it.
pub(crate) fn pages(
    link: &'static Link,
    object: &Object,
    delimiter: Option<&'static str>,
    most: usize,
) -> io::Result<impl Future<Output = io::Result<ListResult>> + Send + use<>> {
    let bucket = object.bucket(link)?;
    let asked = object.asked("LIST", &bucket);
    let prefix = (!object.address.is_bucket()).then(|| format!("{}/", object.address.key));
    Ok(async move {
        let (mut all, mut next) = (nothing(), None::<String>);
        loop {
            let page = attempts(link, asked.clone(), || {
                let (bucket, prefix, page_token) = (bucket.clone(), prefix.clone(), next.clone());
                async move {
                    let delimiter = delimiter.map(Cow::Borrowed);
                    let options =
                        PaginatedListOptions { delimiter, page_token, ..PaginatedListOptions::default() };
                    bucket.page(prefix.as_deref(), options).await
                }
            })
            .await?;
            all.objects.extend(page.result.objects);
            all.common_prefixes.extend(page.result.common_prefixes);
            next = page.page_token.filter(|token| !token.is_empty());
            if next.is_none() || all.objects.len() >= most {
                break;
            }
        }
        all.objects.truncate(most);
        all.common_prefixes.sort_unstable();
        all.common_prefixes.dedup();
        Ok(all)
    })
}

/// A listing without entries.
fn nothing() -> ListResult {
    ListResult { common_prefixes: vec![], objects: vec![], extensions: Extensions::default() }
}

/// The entries of each folder from `top` on, of all objects below that.
fn folders_of(top: &Key, metas: Vec<ObjectMeta>) -> HashMap<Key, ListResult> {
    let mut folders: HashMap<Key, ListResult> = HashMap::new();
    for meta in metas {
        let mut inside = parent(&meta.location);
        let mut is_new = !folders.contains_key(&inside);
        folders.entry(inside.clone()).or_insert_with(nothing).objects.push(meta);
        // The folders above it that were not met yet.
        while is_new && inside != *top && !inside.as_ref().is_empty() {
            let above = parent(&inside);
            is_new = !folders.contains_key(&above);
            folders.entry(above.clone()).or_insert_with(nothing).common_prefixes.push(inside);
            inside = above;
        }
    }
    // Markers of folders, as some consoles make, are no objects in the folder above.
    let known: HashSet<Key> = folders.keys().cloned().collect();
    for inside in folders.values_mut() {
        inside.objects.retain(|meta| meta.size > 0 || !known.contains(&meta.location));
    }
    folders
}

/// The folder that a key lies in.
fn parent(key: &Key) -> Key {
    let parts: Vec<_> = key.parts().collect();
    parts.into_iter().rev().skip(1).collect::<Vec<_>>().into_iter().rev().collect()
}

/// The request for what lies directly in a folder, of the whole bucket where no key is given.
pub(crate) fn list_request(
    object: &Object,
    link: &'static Link,
) -> io::Result<impl Future<Output = io::Result<ListResult>> + Send + use<>> {
    pages(link, object, Some("/"), usize::MAX)
}

/// Keeps what a listing said; `None` where nothing lies there.
pub(crate) fn keep(
    link: &Link,
    object: &Object,
    listed: &ListResult,
    is_alone: bool,
    asked: Asked,
) -> Option<Arc<Names>> {
    let mut names = Names::new();
    for prefix in &listed.common_prefixes {
        let Some(name) = prefix.filename() else { continue };
        names.entry(name.to_owned()).or_default().is_folder = true;
    }
    for meta in &listed.objects {
        // A marker of the folder itself, as some consoles make.
        let Some(name) = meta.location.filename().filter(|_| meta.location != object.address.key) else {
            continue;
        };
        let head = Head { length: meta.size, version: Version::of(meta) };
        link.heads.learn(object.address.with_key(meta.location.clone()).to_string(), head, asked.head);
        names.entry(name.to_owned()).or_default().is_object = true;
    }
    if names.is_empty() && !object.address.is_bucket() && listed.objects.is_empty() {
        return None;
    }
    let names = Arc::new(names);
    let (bucket, name) = (object.address.bucket_name(), object.address.to_string());
    link.listings.keep(&bucket, &name, Arc::clone(&names), is_alone, asked.names);
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_a_list_of_all_below_have_what_lies_directly_in_them() {
        let meta = |key: &str, size| ObjectMeta {
            location: Key::from(key),
            last_modified: std::time::UNIX_EPOCH.into(),
            size,
            e_tag: None,
            version: None,
        };
        let metas = vec![
            meta("k/a.zarr", 0),
            meta("k/a.zarr/0/c/0/0", 7),
            meta("k/a.zarr/zarr.json", 5),
            meta("k/b", 0),
        ];
        let found = folders_of(&Key::from("k"), metas);
        let names = |folder: &str| {
            let inside = &found[&Key::from(folder)];
            let objects: Vec<_> = inside.objects.iter().map(|meta| meta.location.to_string()).collect();
            let folders: Vec<_> = inside.common_prefixes.iter().map(ToString::to_string).collect();
            (objects, folders)
        };
        let of = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        // The marker of a folder is no object.
        assert_eq!(names("k"), (of(&["k/b"]), of(&["k/a.zarr"])));
        assert_eq!(names("k/a.zarr"), (of(&["k/a.zarr/zarr.json"]), of(&["k/a.zarr/0"])));
        assert_eq!(names("k/a.zarr/0"), (of(&[]), of(&["k/a.zarr/0/c"])));
        assert_eq!(names("k/a.zarr/0/c/0"), (of(&["k/a.zarr/0/c/0/0"]), of(&[])));
        assert_eq!(found.len(), 5);
    }
}
