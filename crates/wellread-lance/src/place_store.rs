//! A folder of a place, such as one in a bucket, as the object store that Lance asks for. It holds Lance's manifests,
//! its data files where its own decoders read them, and all that it writes.
//!
//! ```text
//!  Lance ──get, list, put──▶ PlaceStore ──a thread that may wait──▶ wellread_store::place ──▶ s3://…, https://…
//! ```
//!
//! So requests, credentials and retries are those of every other format. Keys are counted from the dataset's folder. A
//! file that was opened stays open: it is one version of the object, and a replacement meanwhile is an error.

use crate::new_file::{NewFile, Parts, put_result};
use crate::waiting::{failed, waiting};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::ready;
use futures::stream::{self, BoxStream, StreamExt as _};
use lance_core::Result as LanceResult;
use lance_io::object_store::{ObjectStore as LanceStore, ObjectStoreParams, ObjectStoreRegistry, uri_to_url};
use object_store::path::Path as Key;
use object_store::{
    Attributes, CopyOptions, Error as StoreError, Extensions, GetOptions, GetResult, GetResultPayload,
    ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result,
};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use wellread_store::place::{self, File, Kind, MAX_GAP};

/// The address that Lance gets, with a scheme that it does not know. It would take a known one for the file system, or
/// give it rules of its own.
const ADDRESS: &str = "wellread://place";
/// Requests of Lance at once; places have a limit of their own.
const AT_ONCE: usize = 64;
/// Files that are kept open at most. They hold an address and a version, no connection.
const KEPT: usize = 1 << 12;

/// The store that a dataset's folder is in, and the folder's key there.
///
/// # Errors
/// A path that Lance does not take.
pub(crate) async fn store_of(
    registry: &Arc<ObjectStoreRegistry>,
    folder: &str,
) -> LanceResult<(Arc<LanceStore>, Key)> {
    if !place::is_remote(Path::new(folder)) {
        let params = ObjectStoreParams::default();
        return LanceStore::from_uri_and_params(Arc::clone(registry), folder, &params).await;
    }
    let store: Arc<dyn ObjectStore> = Arc::new(PlaceStore::new(Path::new(folder)));
    // Its listings are sorted, and a failed request was repeated as often as its place holds right. Over gaps
    // between ranges Lance reads on as places do.
    let block = Some(MAX_GAP as usize);
    let store = LanceStore::new(store, uri_to_url(ADDRESS)?, block, None, false, true, AT_ONCE, 0, None);
    Ok((Arc::new(store), Key::default()))
}

/// A value that nobody looks at.
fn unknown<T: Default>() -> T {
    T::default()
}

fn meta(location: Key, size: u64) -> ObjectMeta {
    ObjectMeta { location, last_modified: unknown(), size, e_tag: None, version: None }
}

fn unsupported<T>(what: &'static str) -> Result<T> {
    Err(StoreError::NotSupported { source: what.into() })
}

/// A folder of a place.
#[derive(Clone, Debug)]
pub(crate) struct PlaceStore(Arc<Folder>);

impl PlaceStore {
    fn new(root: &Path) -> Self {
        Self(Arc::new(Folder { root: root.to_owned(), open: Mutex::default() }))
    }
}

impl fmt::Display for PlaceStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.root.display())
    }
}

#[derive(Debug)]
struct Folder {
    root: PathBuf,
    open: Mutex<HashMap<Key, Arc<OpenFile>>>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    length: u64,
}

/// Some bytes, which of the file they are, and how many that has.
type FetchedRange = (Bytes, Range<u64>, u64);

impl Folder {
    fn path(&self, key: &Key) -> PathBuf {
        key.parts().fold(self.root.clone(), |path, part| path.join(part.as_ref()))
    }

    /// The file of a key. No lock is waited for: in a forked process its holder may not be there.
    fn file(&self, key: &Key) -> io::Result<Arc<OpenFile>> {
        if let Ok(open) = self.open.try_lock()
            && let Some(file) = open.get(key)
        {
            return Ok(Arc::clone(file));
        }
        let (file, length) = place::open(&self.path(key))?;
        let file = Arc::new(OpenFile { file, length });
        if let Ok(mut open) = self.open.try_lock() {
            if open.len() >= KEPT {
                open.clear();
            }
            open.insert(key.clone(), Arc::clone(&file));
        }
        Ok(file)
    }

    fn get(&self, key: &Key, options: &GetOptions) -> io::Result<FetchedRange> {
        let open = self.file(key)?;
        let length = open.length;
        let range = match &options.range {
            _ if options.head => 0..0,
            None => 0..length,
            Some(range) => range.as_range(length).map_err(io::Error::other)?,
        };
        let mut bytes = vec![];
        open.file.peek_after(range.start, range.end - range.start, &mut bytes)?;
        Ok((bytes.into(), range, length))
    }

    fn put(&self, key: &Key, payload: &PutPayload, only_new: bool) -> io::Result<()> {
        let path = self.path(key);
        if only_new {
            // Another process may have put it there since the folder was listed.
            place::of(&path).look_anew(&path);
            if place::exists(&path) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
        }
        let mut file = NewFile::create(&path)?;
        file.take(0, payload.clone())?;
        file.finish(1)
    }

    /// The direct entries of a folder, files and folders, each in order; empty where there is none.
    fn entries(&self, folder: &Key) -> io::Result<(Vec<Key>, Vec<Key>)> {
        let (mut files, mut folders) = (vec![], vec![]);
        let listing = match place::list(&self.path(folder)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((files, folders)),
            listing => listing?,
        };
        for entry in listing {
            let entry = entry?;
            let key = folder.clone().join(&*entry.name().to_string_lossy());
            match entry.kind()? {
                Kind::File => files.push(key),
                Kind::Folder => folders.push(key),
                Kind::Symlink | Kind::Other => {}
            }
        }
        files.sort();
        folders.sort();
        Ok((files, folders))
    }

    /// The files in a folder and below it, in order.
    fn below(&self, folder: &Key) -> io::Result<Vec<Key>> {
        let (mut found, mut left) = (vec![], vec![folder.clone()]);
        while let Some(folder) = left.pop() {
            let (files, folders) = self.entries(&folder)?;
            found.extend(files);
            left.extend(folders);
        }
        found.sort();
        Ok(found)
    }

    fn meta(&self, key: Key) -> io::Result<ObjectMeta> {
        let length = place::metadata(&self.path(&key))?.length;
        Ok(meta(key, length))
    }

    async fn meta_of(self: Arc<Self>, key: Key) -> Result<ObjectMeta> {
        let asked = key.clone();
        waiting(move || self.meta(asked)).await.map_err(|e| failed(&key, e))
    }
}

#[async_trait]
impl ObjectStore for PlaceStore {
    async fn put_opts(&self, location: &Key, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let only_new = match options.mode {
            PutMode::Overwrite => false,
            PutMode::Create => true,
            PutMode::Update(_) => return unsupported("files of places are not changed"),
        };
        let (folder, key) = (Arc::clone(&self.0), location.clone());
        let put = waiting(move || folder.put(&key, &payload, only_new)).await;
        put.map(|()| put_result()).map_err(|e| failed(location, e))
    }

    async fn put_multipart_opts(
        &self,
        location: &Key,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let path = self.0.path(location);
        let file = waiting(move || NewFile::create(&path)).await.map_err(|e| failed(location, e))?;
        Ok(Box::new(Parts::new(location.clone(), file)))
    }

    async fn get_opts(&self, location: &Key, options: GetOptions) -> Result<GetResult> {
        let has_conditions = options.if_match.is_some()
            || options.if_none_match.is_some()
            || options.if_modified_since.is_some()
            || options.if_unmodified_since.is_some()
            || options.version.is_some();
        if has_conditions {
            return unsupported("files of places are read without conditions");
        }
        let (folder, key, is_head) = (Arc::clone(&self.0), location.clone(), options.head);
        let (bytes, range, length) = match waiting(move || folder.get(&key, &options)).await {
            Ok((bytes, range, length)) => (Ok(bytes), range, length),
            // Told by the body: a request that fails Lance makes four times, and the place has made it often enough.
            Err(e) if !is_head && e.kind() != io::ErrorKind::NotFound => (Err(failed(location, e)), 0..0, 0),
            Err(e) => return Err(failed(location, e)),
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::once(ready(bytes)).boxed()),
            meta: meta(location.clone(), length),
            range,
            attributes: Attributes::default(),
            extensions: Extensions::default(),
        })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Key>>) -> BoxStream<'static, Result<Key>> {
        let folder = Arc::clone(&self.0);
        let remove = move |location: Result<Key>| {
            let folder = Arc::clone(&folder);
            async move {
                let key = location?;
                let path = folder.path(&key);
                let removed = waiting(move || place::of(&path).remove_file(&path)).await;
                match removed {
                    Ok(()) => Ok(key),
                    Err(e) => Err(failed(&key, e)),
                }
            }
        };
        locations.then(remove).boxed()
    }

    /// Lengths are asked for as they are wanted: of the versions of a dataset Lance takes the first.
    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (folder, prefix) = (Arc::clone(&self.0), prefix.cloned().unwrap_or_default());
        let listing = Arc::clone(&folder);
        let keys = async move {
            let below = prefix.clone();
            match waiting(move || listing.below(&below)).await {
                Ok(keys) => keys.into_iter().map(Ok).collect::<Vec<_>>(),
                Err(e) => vec![Err(failed(&prefix, e))],
            }
        };
        let meta_of = move |key: Result<Key>| {
            let folder = Arc::clone(&folder);
            async move { folder.meta_of(key?).await }
        };
        stream::once(keys).flat_map(stream::iter).then(meta_of).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        let (folder, prefix) = (Arc::clone(&self.0), prefix.cloned().unwrap_or_default());
        let below = prefix.clone();
        let listed = waiting(move || {
            let (files, common_prefixes) = folder.entries(&below)?;
            let objects = files.into_iter().map(|key| folder.meta(key)).collect::<io::Result<_>>()?;
            Ok(ListResult { common_prefixes, objects, extensions: Extensions::default() })
        });
        listed.await.map_err(|e| failed(&prefix, e))
    }

    async fn copy_opts(&self, _: &Key, _: &Key, _: CopyOptions) -> Result<()> {
        unsupported("Lance copies no files of places")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::wait;
    use lance_core::Error as LanceError;
    use object_store::ObjectStoreExt as _;

    /// Waits for a request of the store of a local folder, which is a place as any other.
    fn asked<T>(call: impl Future<Output = Result<T>>) -> wellread_store::Result<T> {
        wait(Path::new("set"), "cannot read", async { call.await.map_err(LanceError::from) })
    }

    #[test]
    fn what_is_put_is_listed_in_order_and_read_in_parts() {
        let dir = tempfile::tempdir().unwrap();
        let store = PlaceStore::new(dir.path());
        for name in ["b", "a", "c"] {
            place::create_folder(&dir.path().join("_versions/old")).unwrap();
            let key = Key::from("_versions").join(name);
            asked(store.put(&key, vec![0_u8, 1, 2, 3].into())).unwrap();
        }
        asked(store.put(&Key::from("_versions/old/d"), vec![9_u8].into())).unwrap();
        let listed: Vec<_> = asked(async {
            Ok(store
                .list(Some(&Key::from("_versions")))
                .map(|one| one.map(|m| (m.location, m.size)))
                .collect()
                .await)
        })
        .unwrap();
        let listed: Vec<_> = listed.into_iter().collect::<Result<_>>().unwrap();
        let names = [("a", 4), ("b", 4), ("c", 4), ("old/d", 1)];
        assert_eq!(listed, names.map(|(name, size)| (Key::from(format!("_versions/{name}")), size)));
        let level = asked(store.list_with_delimiter(Some(&Key::from("_versions")))).unwrap();
        assert_eq!((level.objects.len(), level.common_prefixes), (3, vec![Key::from("_versions/old")]));
        let none = asked(async { Ok(store.list(Some(&Key::from("no"))).collect::<Vec<_>>().await.len()) });
        assert_eq!(none.unwrap(), 0);
        let key = Key::from("_versions/a");
        assert_eq!(&asked(store.get_range(&key, 1..3)).unwrap()[..], [1, 2]);
        assert_eq!(asked(store.head(&key)).unwrap().size, 4);
        assert!(asked(store.get_range(&key, 4..5)).is_err());
        asked(store.delete(&key)).unwrap();
        assert!(!place::exists(&dir.path().join("_versions/a")));
        assert!(asked(store.head(&Key::from("no"))).unwrap_err().to_string().contains("missing"));
    }

    #[test]
    fn what_is_there_is_not_put_anew_where_that_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let store = PlaceStore::new(dir.path());
        let new = || PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        asked(store.put_opts(&Key::from("a"), vec![1_u8].into(), new())).unwrap();
        let again =
            asked(async { Ok(store.put_opts(&Key::from("a"), vec![2_u8].into(), new()).await) }).unwrap();
        assert!(matches!(again, Err(StoreError::AlreadyExists { .. })), "{again:?}");
        assert_eq!(place::read(&dir.path().join("a")).unwrap(), [1]);
    }
}
