//! Object stores as a place: S3, Google Cloud Storage and Azure differ in how a bucket is connected to, and in nothing else.
//!
//! A folder is there as long as an object lies below it. Renaming copies, what lies deepest first. Metadata of an image and of a set lie
//! further out, so that nobody takes a part for the whole. The list of a set's parts goes first, for the same reason.

use crate::ahead::Session;
use crate::failure::{NOT_FOUND, advice_on_name};
use crate::heads::Head;
use crate::link::{Link, link};
use crate::listings::Names;
use crate::look::{self, Found, is_refused};
use crate::look_ahead;
use crate::object::{Connect, Object};
use crate::probe;
use crate::reader::Reader;
use crate::rewrite::{copy, remove, rewrite};
use crate::uploads::{self, COMPLETING};
use crate::writer::Upload;
use object_store::path::Path as Key;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellread_store::parted::LIST;
use wellread_store::place::{
    self, Entry, FetchAhead, File, FileRange, Kind, LinkAbout, Listing, Metadata, Place, Writer, shutdown,
};
use wellread_store::threads;

/// Objects that are copied or removed at once.
const AT_ONCE: usize = 32;

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
        match look::find(link, &object)? {
            Some(Found::Object(head)) => Ok(Metadata { kind: Kind::File, length: head.length }),
            Some(Found::Folder) => Ok(Metadata { kind: Kind::Folder, length: 0 }),
            None => Err(not_found(link, &object)),
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Listing> {
        let (link, object) = (link()?, self.object(folder)?);
        let Some(names) = look::names(link, &object)? else { return Err(not_found(link, &object)) };
        Ok(entries(&names))
    }

    fn tells_names(&self) -> bool {
        true
    }

    fn list_ahead(&self, folders: &[PathBuf]) {
        let Ok(link) = link() else { return };
        let objects = folders.iter().filter_map(|folder| self.object(folder).ok());
        look_ahead::list_all(link, objects.collect());
    }

    fn list_all_ahead(&self, folder: &Path) {
        let (Ok(link), Ok(object)) = (link(), self.object(folder)) else { return };
        // A failed listing fails again when its folders are looked into.
        let _ = look::list_below(link, &object);
    }

    fn look_ahead(&self, path: &Path, folders: &[PathBuf]) {
        let (Ok(link), Ok(object)) = (link(), self.object(path)) else { return };
        let inside = folders.iter().filter_map(|folder| self.object(folder).ok());
        look_ahead::find_ahead(link, &object, inside.collect());
    }

    fn listed(&self, folder: &Path) -> Option<Listing> {
        let (link, object) = (link().ok()?, self.object(folder).ok()?);
        let names = link.listings.names(&object.address.bucket_name(), &object.address.to_string())?;
        Some(entries(&names))
    }

    fn open(&self, path: &Path) -> io::Result<(File, u64)> {
        let (link, object) = (link()?, self.object(path)?);
        if object.address.is_bucket() {
            return Err(io::Error::other("it is a bucket, not a file"));
        }
        if object.is_absent(link) {
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
        match known(link, &object) {
            Ok(Some(_)) => files.push(PathBuf::new()),
            Ok(None) => {}
            Err(e) if is_refused(&e) && !files.is_empty() => {}
            Err(e) => return Err(e),
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
        if (uploads::is_any() || COMPLETING.is_any())
            && let Ok(link) = link()
        {
            uploads::abandon(link);
            COMPLETING.wait(link.limits.abort);
        }
    }

    fn finish_before_end(&self, work: &mut dyn FnMut()) -> io::Result<()> {
        shutdown::run_awaited(&COMPLETING, work)
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
        let _completing = COMPLETING.begin();
        let refused = match known(link, &from) {
            Ok(Some(head)) => {
                shutdown::check()?;
                copy(link, &from, &to, head.length)?;
                return remove(link, &from);
            }
            Ok(None) => None,
            Err(e) if is_refused(&e) => Some(e),
            Err(e) => return Err(e),
        };
        let mut moved = vec![];
        for (key, length) in below(link, &from)? {
            let inside = key.as_ref().strip_prefix(from.address.key.as_ref()).unwrap_or_default();
            let target = Key::parse(format!("{}{inside}", to.address.key)).map_err(io::Error::other)?;
            moved.push((from.with_key(key), to.with_key(target), length));
        }
        if moved.is_empty() {
            return Err(refused.unwrap_or_else(|| not_found(link, &from)));
        }
        // An object that is written over cannot be restored.
        let is_new = below(link, &to)?.is_empty();
        // Nothing is replaced yet: a set that is there stays whole.
        shutdown::check()?;
        // A listed part that is not there yet is reported as missing. Without the list, the parts that are there would
        // be the set.
        let is_list = |object: &Object| object.address.key.filename() == Some(LIST);
        let depth = |object: &Object| {
            if is_list(object) { usize::MAX } else { object.address.key.parts_count() }
        };
        let mut depths: Vec<usize> = moved.iter().map(|(from, ..)| depth(from)).collect();
        depths.sort_unstable_by_key(|&depth| std::cmp::Reverse(depth));
        depths.dedup();
        // The threads below do not know what this one does. Objects that go through this machine ask, too.
        let is_awaited = shutdown::is_awaited();
        let copied = depths.iter().try_for_each(|&level| {
            let level: Vec<_> = moved.iter().filter(|(from, ..)| depth(from) == level).collect();
            threads::for_each(AT_ONCE, &level, |(from, to, length)| {
                shutdown::run_as_awaited(is_awaited, || {
                    // Half of a set is removed again, unless the other half of it is that of another.
                    if is_new {
                        shutdown::check()?;
                    }
                    copy(link, from, to, *length)
                })
            })
        });
        match copied {
            Ok(()) => threads::for_each(AT_ONCE, &moved, |(from, ..)| remove(link, from)),
            // Objects that could not all be moved are at their former place.
            Err(e) if is_new => {
                let _ =
                    place::to_its_end(|| threads::for_each(AT_ONCE, &moved, |(_, to, _)| remove(link, to)));
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

/// Names in a folder as entries of a listing.
fn entries(names: &Names) -> Listing {
    let mut entries = Vec::with_capacity(names.len());
    for (name, named) in names {
        let kinds = [(named.is_folder, Kind::Folder), (named.is_object, Kind::File)];
        let kinds = kinds.into_iter().filter(|(is_one, _)| *is_one);
        entries.extend(kinds.map(|(_, kind)| Ok(Entry::new(name.into(), kind))));
    }
    Box::new(entries.into_iter())
}

/// Whether a listing of not long ago says that nothing is there, and nothing else tells otherwise.
fn is_lacking(link: &'static Link, object: &Object) -> bool {
    let name = object.address.to_string();
    link.listings.lacks(&object.address.bucket_name(), &name) && link.heads.get(&name).is_none()
}

/// The known head of an object, asked for if need be; `None` where there is none.
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
        format!("there is no key {key} in {bucket} (credentials: {who}){advice}; {NOT_FOUND}")
    };
    io::Error::new(io::ErrorKind::NotFound, cause)
}

/// All keys below a folder, with their bytes.
fn below(link: &'static Link, object: &Object) -> io::Result<Vec<(Key, u64)>> {
    let metas = look::below(link, object, usize::MAX)?;
    Ok(metas.into_iter().map(|meta| (meta.location, meta.size)).collect())
}
