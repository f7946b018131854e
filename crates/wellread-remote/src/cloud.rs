//! Object stores as a place: S3, Google Cloud Storage and Azure differ in how a bucket is connected to, and in nothing else.
//!
//! A folder is there as long as an object lies below it. Renaming copies, what lies deepest first: metadata of an image and of a set lie
//! further out, so that nobody takes a part for the whole.

use crate::ahead::Session;
use crate::attempts::attempts;
use crate::bucket::Bucket;
use crate::failure::{Fault, advice_on_name};
use crate::heads::{Head, Version};
use crate::link::{Link, link};
use crate::object::{Connect, Object};
use crate::probe;
use crate::reader::Reader;
use crate::rewrite::{copy, remove, rewrite};
use crate::uploads;
use crate::writer::Upload;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::ListResult;
use object_store::path::Path as Key;
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wellread_store::place::{
    self, Entry, FetchAhead, File, FileRange, Kind, LinkAbout, Listing, Metadata, Place, Writer,
};
use wellread_store::threads;

/// Objects that are copied or removed at once.
const AT_ONCE: usize = 16;

/// An object store by how its buckets are connected to.
pub(crate) struct Cloud(pub(crate) Connect);

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cloud")
    }
}

impl Cloud {
    fn object(&self, path: &Path) -> io::Result<Object> {
        Object::of(path, self.0)
    }
}

impl place::Link for Cloud {
    fn about(&self, path: &Path) -> io::Result<LinkAbout> {
        probe::about(self.0, path)
    }

    fn fetch(&self, ranges: &[FileRange], at_once: usize) -> io::Result<Duration> {
        probe::fetch(self.0, ranges, at_once)
    }
}

impl Place for Cloud {
    fn link(&self) -> Option<&dyn place::Link> {
        Some(self)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let (link, object) = (link()?, self.object(path)?);
        if is_lacking(link, &object) {
            return Err(not_found(link, &object));
        }
        if let Some(head) = known(link, &object)? {
            return Ok(Metadata { kind: Kind::File, length: head.length });
        }
        if is_folder(link, &object)? {
            return Ok(Metadata { kind: Kind::Folder, length: 0 });
        }
        Err(not_found(link, &object))
    }

    fn list(&self, folder: &Path) -> io::Result<Listing> {
        let (link, object) = (link()?, self.object(folder)?);
        let bucket = object.address.bucket_name();
        let asked = link.listings.ask(&bucket);
        let listed = list(link, &object)?;
        let mut names = HashSet::new();
        let mut entries = Vec::with_capacity(listed.common_prefixes.len() + listed.objects.len());
        for prefix in &listed.common_prefixes {
            let Some(name) = prefix.filename() else { continue };
            names.insert(name.to_owned());
            entries.push(Ok(Entry::new(name.into(), Kind::Folder)));
        }
        for meta in &listed.objects {
            // A marker of the folder itself, as some consoles make.
            let Some(name) = meta.location.filename().filter(|_| meta.location != object.address.key) else {
                continue;
            };
            let head = Head { length: meta.size, version: Version::of(meta) };
            link.heads.learn(object.address.with_key(meta.location.clone()).to_string(), head);
            names.insert(name.to_owned());
            entries.push(Ok(Entry::new(name.into(), Kind::File)));
        }
        if entries.is_empty() && !object.address.is_bucket() && listed.objects.is_empty() {
            return Err(not_found(link, &object));
        }
        link.listings.keep(&bucket, &object.address.to_string(), names, asked);
        Ok(Box::new(entries.into_iter()))
    }

    fn open(&self, path: &Path) -> io::Result<(File, u64)> {
        let (link, object) = (link()?, self.object(path)?);
        if object.address.is_bucket() {
            return Err(io::Error::other("it is a bucket, not a file"));
        }
        if is_lacking(link, &object) {
            return Err(not_found(link, &object));
        }
        let reader = Reader::open(link, object)?;
        let length = reader.bytes();
        Ok((File::Other(Box::new(reader)), length))
    }

    fn files_below(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let (link, object) = (link()?, self.object(path)?);
        let prefix = object.address.key.as_ref();
        let inside = |(key, _): (Key, u64)| {
            key.as_ref().strip_prefix(prefix).map(|inside| PathBuf::from(inside.trim_start_matches('/')))
        };
        let mut files: Vec<PathBuf> = below(link, &object)?.into_iter().filter_map(inside).collect();
        // A file and a folder may have one name here.
        if known(link, &object)?.is_some() {
            files.push(PathBuf::new());
        }
        Ok(files)
    }

    fn look_anew(&self, path: &Path) {
        if let (Ok(link), Ok(object)) = (link(), self.object(path)) {
            link.heads.look_anew(&object.address.to_string());
            link.listings.look_anew(&object.address.bucket_name());
        }
    }

    fn ahead(&self, most: Option<u64>) -> Option<Box<dyn FetchAhead>> {
        Some(Box::new(Session::new(link().ok()?, self.0, most)))
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn abandon(&self) {
        uploads::close();
        if uploads::is_any()
            && let Ok(link) = link()
        {
            uploads::abandon(link);
        }
    }

    fn create(&self, path: &Path) -> io::Result<Writer> {
        let object = self.object(path)?;
        if object.address.is_bucket() {
            return Err(io::Error::other("it is a bucket, not a file"));
        }
        Ok(Writer::Other(Box::new(Upload::new(link()?, object)?)))
    }

    fn patch(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let object = self.object(path)?;
        rewrite(link()?, &object, &object, Some((offset, bytes)))
    }

    /// Folders are there by what lies in them.
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.object(path).map(drop)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (link, from, to) = (link()?, self.object(from)?, self.object(to)?);
        if from.address.bucket_name() != to.address.bucket_name() {
            return Err(io::Error::new(io::ErrorKind::CrossesDevices, "it is another bucket"));
        }
        if let Some(head) = known(link, &from)? {
            copy(link, &from, &to, head.length)?;
            return remove(link, &from);
        }
        let mut moved = vec![];
        for (key, length) in below(link, &from)? {
            let inside = key.as_ref().strip_prefix(from.address.key.as_ref()).unwrap_or_default();
            let target = Key::parse(format!("{}{inside}", to.address.key)).map_err(io::Error::other)?;
            moved.push((from.with_key(key), to.with_key(target), length));
        }
        if moved.is_empty() {
            return Err(not_found(link, &from));
        }
        // What is written over cannot be had back.
        let is_new = below(link, &to)?.is_empty();
        let depth = |object: &Object| object.address.key.parts_count();
        let mut depths: Vec<usize> = moved.iter().map(|(from, ..)| depth(from)).collect();
        depths.sort_unstable_by_key(|&depth| std::cmp::Reverse(depth));
        depths.dedup();
        let copied = depths.iter().try_for_each(|&level| {
            let level: Vec<_> = moved.iter().filter(|(from, ..)| depth(from) == level).collect();
            threads::for_each(AT_ONCE, &level, |(from, to, length)| copy(link, from, to, *length))
        });
        match copied {
            Ok(()) => threads::for_each(AT_ONCE, &moved, |(from, ..)| remove(link, from)),
            // What could not be moved as a whole is where it was.
            Err(e) if is_new => {
                let _ = threads::for_each(AT_ONCE, &moved, |(_, to, _)| remove(link, to));
                Err(e)
            }
            Err(e) => Err(e),
        }
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let (link, object) = (link()?, self.object(path)?);
        // The store does not say whether there was one.
        if known(link, &object)?.is_none() {
            return Err(not_found(link, &object));
        }
        remove(link, &object)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let (link, object) = (link()?, self.object(path)?);
        if object.address.is_bucket() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no bucket is emptied"));
        }
        let all: Vec<_> = below(link, &object)?.into_iter().map(|(key, _)| object.with_key(key)).collect();
        threads::for_each(AT_ONCE, &all, |object| remove(link, object))
    }
}

/// Whether a listing of not long ago says that nothing is there, and nothing else tells otherwise.
fn is_lacking(link: &'static Link, object: &Object) -> bool {
    let name = object.address.to_string();
    link.listings.lacks(&object.address.bucket_name(), &name) && link.heads.get(&name).is_none()
}

/// What is known of an object, asked for if need be; `None` where there is none.
fn known(link: &'static Link, object: &Object) -> io::Result<Option<Head>> {
    if object.address.is_bucket() {
        return Ok(None);
    }
    if let Some(head) = link.heads.get(&object.address.to_string()) {
        return Ok(Some(head));
    }
    match object.head(link) {
        Ok(head) => Ok(Some(head)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn not_found(link: &'static Link, object: &Object) -> io::Error {
    let who = object.bucket(link).map_or_else(|_| "none".into(), |bucket| bucket.who.clone());
    let cause = if object.address.is_bucket() {
        format!("the bucket {} holds nothing that can be seen; credentials: {who}", object.address.bucket)
    } else {
        let (key, bucket) = (&object.address.key, &object.address.bucket);
        let advice = advice_on_name(key.as_ref()).map(|advice| format!("; {advice}")).unwrap_or_default();
        format!("there is no key {key} in {bucket}; credentials: {who}{advice}")
    };
    io::Error::new(io::ErrorKind::NotFound, cause)
}

/// What a listing of a folder comes to; `of` asks for it once, of the whole bucket where no key is given.
fn listed<T, F>(
    link: &'static Link,
    object: &Object,
    of: impl Fn(Arc<Bucket>, Option<Key>) -> F + Send + Sync + 'static,
) -> io::Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Fault>> + Send + 'static,
{
    let bucket = object.bucket(link)?;
    let asked = object.asked("LIST", &bucket);
    let key = (!object.address.is_bucket()).then(|| object.address.key.clone());
    link.wait(async move { attempts(link, asked, || of(bucket.clone(), key.clone())).await })
}

/// Whether anything lies below a prefix; a bucket that can be listed is a folder.
fn is_folder(link: &'static Link, object: &Object) -> io::Result<bool> {
    listed(link, object, |bucket, key| async move {
        let first = bucket.store.list(key.as_ref()).next().await.transpose().map_err(|e| Fault::of(&e))?;
        Ok(key.is_none() || first.is_some())
    })
}

/// What lies directly in a folder.
fn list(link: &'static Link, object: &Object) -> io::Result<ListResult> {
    listed(link, object, |bucket, key| async move {
        bucket.store.list_with_delimiter(key.as_ref()).await.map_err(|e| Fault::of(&e))
    })
}

/// All keys below a folder, with their bytes.
fn below(link: &'static Link, object: &Object) -> io::Result<Vec<(Key, u64)>> {
    listed(link, object, |bucket, key| async move {
        let listing = bucket.store.list(key.as_ref()).map_ok(|meta| (meta.location, meta.size));
        listing.try_collect().await.map_err(|e| Fault::of(&e))
    })
}
