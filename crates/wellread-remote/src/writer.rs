//! A new object: uploaded in parts while it is written, there once it was flushed, and not at all where it was not.
//!
//! ```text
//!  write ─▶ first part (kept: headers are written again) │ part │ part │ current ─▶ PutPart, four at once
//!  flush ─▶ small: one PUT          large: the last part, then the first, then Complete
//!  drop without flush ─▶ Abort
//! ```

use crate::attempts::{Asked, attempts, is_gone};
use crate::bucket::Bucket;
use crate::failure::Fault;
use crate::heads::Head;
use crate::link::Link;
use crate::object::Object;
use crate::uploads::{self, COMPLETING};
use bytes::Bytes;
use futures_util::future::join;
use object_store::multipart::{MultipartStore, PartId};
use object_store::{ObjectStoreExt as _, PutPayload};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Arc;
use tokio::task::JoinHandle;
use wellread_store::place::{self, shutdown};

/// Bytes of a part. S3 has 10,000 of them, so an object has 156 GiB at most.
pub(crate) const PART: usize = 16 << 20;
/// Bytes that a connection takes at a time: so it is known that an upload goes on.
const STEP: usize = 64 << 10;
/// Parts of an object on their way at once.
const AT_ONCE: usize = 4;
/// Parts of an object at most.
const PARTS: usize = 10_000;

/// Parts that are on their way.
struct MultipartUpload {
    id: String,
    store: Arc<dyn MultipartStore>,
    running: VecDeque<(usize, JoinHandle<io::Result<PartId>>)>,
    done: Vec<(usize, PartId)>,
    /// Number of the next part.
    next: usize,
    /// The object that was there when the parts were begun, or why none is known.
    before: Result<Head, io::ErrorKind>,
}

/// An object being written.
pub(crate) struct Upload {
    link: &'static Link,
    object: Object,
    bucket: Arc<Bucket>,
    first: Vec<u8>,
    current: Vec<u8>,
    position: u64,
    length: u64,
    begun: Option<MultipartUpload>,
    /// Whether something was written since it was there last.
    dirty: bool,
    /// Whether it was completed in parts, so that nothing can be changed any more.
    complete: bool,
    /// Whether a part could not be sent, whose bytes are gone.
    broken: bool,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload")
            .field("object", &self.object.address)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Upload {
    /// Begins an object; no request is made yet but for the credentials.
    pub(crate) fn new(link: &'static Link, object: Object) -> io::Result<Self> {
        let bucket = object.bucket(link)?;
        link.heads.forget(&object.address.to_string());
        Ok(Self {
            link,
            object,
            bucket,
            first: vec![],
            current: vec![],
            position: 0,
            length: 0,
            begun: None,
            dirty: true,
            complete: false,
            broken: false,
        })
    }

    fn asked(&self, verb: &str) -> Asked {
        self.object.asked(verb, &self.bucket)
    }

    /// An object of which a part is lost is never completed.
    fn check(&self) -> io::Result<()> {
        shutdown::check()?;
        if self.broken { Err(io::Error::other("an earlier part could not be written")) } else { Ok(()) }
    }

    /// Sends `bytes` as part `number` without waiting for it.
    fn send(&mut self, bytes: Vec<u8>, number: usize) -> io::Result<()> {
        if number >= PARTS {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "an object has 156 GiB at most"));
        }
        if self.begun.is_none() {
            self.begun = Some(self.begin()?);
        }
        let asked = self.asked(&format!("PUT part {number} of"));
        let (link, key) = (self.link, self.object.address.key.clone());
        let Some(begun) = &mut self.begun else { return Ok(()) };
        if begun.running.len() >= AT_ONCE {
            begun.settle_one(link)?;
        }
        let (store, id) = (begun.store.clone(), begun.id.clone());
        let payload = payload(bytes);
        let task = link.start(async move {
            attempts(link, asked, || {
                let (store, key, id, payload) = (store.clone(), key.clone(), id.clone(), payload.clone());
                async move { store.put_part(&key, &id, number, payload).await.map_err(|e| Fault::of(&e)) }
            })
            .await
        });
        begun.running.push_back((number, task));
        Ok(())
    }

    fn begin(&self) -> io::Result<MultipartUpload> {
        let Some(store) = self.bucket.parts.clone() else {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "files of this size cannot be written there",
            ));
        };
        let (link, asked, key) = (self.link, self.asked("POST"), self.object.address.key.clone());
        let uploads = store.clone();
        let head = self.object.head_request(link, self.bucket.clone());
        let (id, before) = link.wait(async move {
            let id = attempts(link, asked, || {
                let (store, key) = (uploads.clone(), key.clone());
                async move { store.create_multipart(&key).await.map_err(|e| Fault::of(&e)) }
            });
            Ok(join(id, head).await)
        })?;
        let (id, before) = (id?, before.map_err(|e| e.kind()));
        let key = self.object.address.key.clone();
        // The end waits for this one, and must not throw it away.
        if !shutdown::is_awaited() {
            uploads::note(uploads::UnfinishedUpload { store: store.clone(), key, id: id.clone() });
        }
        Ok(MultipartUpload { id, store, running: VecDeque::new(), done: vec![], next: 1, before })
    }

    /// All of it in one request.
    fn put(&self) -> io::Result<()> {
        let (link, asked) = (self.link, self.asked("PUT"));
        let (bucket, key) = (self.bucket.clone(), self.object.address.key.clone());
        let payload = payload(self.first.clone());
        link.wait(async move {
            attempts(link, asked, || {
                let (bucket, key, payload) = (bucket.clone(), key.clone(), payload.clone());
                async move { bucket.store.put(&key, payload).await.map(drop).map_err(|e| Fault::of(&e)) }
            })
            .await
        })
    }

    /// Makes the parts an object.
    fn finish(&mut self) -> io::Result<()> {
        let current = std::mem::take(&mut self.current);
        let next = self.begun.as_ref().map_or(1, |begun| begun.next);
        if !current.is_empty() {
            self.send(current, next)?;
        }
        let first = std::mem::take(&mut self.first);
        self.send(first, 0)?;
        let (link, asked, key) =
            (self.link, self.asked("POST the parts of"), self.object.address.key.clone());
        let Some(begun) = &mut self.begun else { return Ok(()) };
        while !begun.running.is_empty() {
            begun.settle_one(link)?;
        }
        begun.done.sort_unstable_by_key(|(number, _)| *number);
        let parts: Vec<_> = begun.done.iter().map(|(_, part)| part.clone()).collect();
        let (store, id) = (begun.store.clone(), begun.id.clone());
        let completed = link.wait(async move {
            attempts(link, asked, || {
                let (store, key, id, parts) = (store.clone(), key.clone(), id.clone(), parts.clone());
                async move {
                    store.complete_multipart(&key, &id, parts).await.map(drop).map_err(|e| Fault::of(&e))
                }
            })
            .await
        });
        match completed {
            // An answer that was lost: the upload is gone, and the object is there.
            Err(e) if is_gone(&e) => match self.object.head(link) {
                Ok(head) if is_ours(&begun.before, &head, self.length) => Ok(()),
                _ => Err(e),
            },
            completed => completed,
        }
    }
}

/// Bytes to be sent, in steps.
fn payload(bytes: Vec<u8>) -> PutPayload {
    let mut rest = Bytes::from(bytes);
    let steps = std::iter::from_fn(|| {
        let step = rest.split_to(rest.len().min(STEP));
        (!step.is_empty()).then_some(step)
    });
    steps.collect()
}

/// Whether the object that is there now, `length` bytes long, is the one that was uploaded: not the one that was there before.
fn is_ours(before: &Result<Head, io::ErrorKind>, now: &Head, length: u64) -> bool {
    let is_another = match before {
        Ok(before) => !before.version.is(&now.version),
        Err(kind) => *kind == io::ErrorKind::NotFound,
    };
    now.length == length && is_another
}

impl MultipartUpload {
    /// Waits for the part that is on its way longest.
    fn settle_one(&mut self, link: &'static Link) -> io::Result<()> {
        let Some((number, task)) = self.running.pop_front() else { return Ok(()) };
        let part = link.wait(async move { task.await.map_err(io::Error::other)? })?;
        self.done.push((number, part));
        Ok(())
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let unsupported = |what: &str| Err(io::Error::new(io::ErrorKind::Unsupported, what.to_owned()));
        self.check()?;
        if self.complete {
            return unsupported("the object is complete, and cannot be changed any more");
        }
        let at = self.position as usize;
        let n = if at <= self.first.len() && at < PART {
            let n = bytes.len().min(PART - at);
            let over = n.min(self.first.len() - at);
            self.first[at..at + over].copy_from_slice(&bytes[..over]);
            self.first.extend_from_slice(&bytes[over..n]);
            n
        } else if self.position == self.length {
            let n = bytes.len().min(PART - self.current.len());
            self.current.extend_from_slice(&bytes[..n]);
            n
        } else {
            return unsupported("of an object only the beginning can be written again");
        };
        (self.position, self.dirty) = (self.position + n as u64, true);
        self.length = self.length.max(self.position);
        if self.current.len() == PART {
            let part = std::mem::replace(&mut self.current, Vec::with_capacity(PART));
            let number = self.begun.as_ref().map_or(1, |begun| begun.next);
            // Until it is on its way.
            self.broken = true;
            self.send(part, number)?;
            self.broken = false;
            if let Some(begun) = &mut self.begun {
                begun.next += 1;
            }
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        let _completing = COMPLETING.begin();
        self.check()?;
        if !self.dirty {
            return Ok(());
        }
        let link = self.link;
        let _changing = link.listings.changing(self.object.address.bucket_name());
        if self.begun.is_none() && self.current.is_empty() {
            self.put()?;
        } else {
            self.broken = true;
            self.finish()?;
            (self.broken, self.complete) = (false, true);
            if let Some(begun) = &self.begun {
                uploads::forget(&begun.id);
            }
        }
        self.dirty = false;
        self.link.heads.forget(&self.object.address.to_string());
        Ok(())
    }
}

impl Seek for Upload {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        let position = position.filter(|&position| position <= self.length);
        self.position = position.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // The threads of another process are not here.
        if self.complete || !self.link.is_own() {
            return;
        }
        let Some(begun) = self.begun.take() else { return };
        for (_, task) in &begun.running {
            task.abort();
        }
        uploads::forget(&begun.id);
        let key = self.object.address.key.clone();
        let link = self.link;
        let abort = async move {
            let abort = begun.store.abort_multipart(&key, &begun.id);
            let _ = tokio::time::timeout(link.limits.abort, abort).await;
            io::Result::Ok(())
        };
        // A thread that is to stop drops it, and the store charges for parts that stay.
        let _ = place::to_its_end(|| link.wait(abort));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::Version;

    #[test]
    fn an_object_that_was_there_before_is_not_the_one_that_was_uploaded() {
        let head = |length, tag: &str| Head { length, version: Version::new(Some(tag.to_owned()), 0) };
        let (old, new) = (head(7, "old"), head(7, "new"));
        let (none, refused) = (Err(io::ErrorKind::NotFound), Err(io::ErrorKind::PermissionDenied));
        assert!(is_ours(&none, &new, 7) && is_ours(&Ok(old.clone()), &new, 7));
        assert!(!is_ours(&Ok(old.clone()), &old, 7) && !is_ours(&none, &new, 8));
        assert!(!is_ours(&refused, &new, 7), "nobody knows what was there");
    }
}
