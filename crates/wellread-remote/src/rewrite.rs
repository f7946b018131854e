//! Objects moved and changed, for which object stores have no request: copies, by the server where it can, else through this machine.

use crate::attempts::{attempts, is_copying};
use crate::failure::Fault;
use crate::link::Link;
use crate::object::{Object, whole};
use crate::sending::{copy_limit, while_copied};
use crate::writer::{PART, Upload};
use object_store::ObjectStoreExt as _;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};
use wellread_store::place;

/// The most bytes that S3 copies in one request.
const COPIED: u64 = 5 << 30;

/// Time between two looks at an object that the store copies after its answer.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// How long such a copy may take.
const LONGEST: Duration = Duration::from_hours(1);

/// Copies an object of `length` bytes.
pub(crate) fn copy(link: &'static Link, from: &Object, to: &Object, length: u64) -> io::Result<()> {
    if length > COPIED {
        return rewrite(link, from, to, None);
    }
    let bucket = from.bucket(link)?;
    let asked = from.asked("COPY of", &bucket);
    let (source, target) = (from.address.key.clone(), to.address.key.clone());
    let limit = copy_limit(link.limits.stall, length);
    let _changing = link.listings.changing(to.address.bucket_name());
    link.heads.forget(&to.address.to_string());
    let copied = link.wait(async move {
        attempts(link, asked, || {
            let (bucket, source, target) = (bucket.clone(), source.clone(), target.clone());
            async move {
                let copied = while_copied(limit, bucket.store.copy(&source, &target)).await;
                copied.ok_or(Fault::Stalled)?.map_err(|e| Fault::of(&e))
            }
        })
        .await
    });
    // Asked for meanwhile, it was the object before.
    link.heads.forget(&to.address.to_string());
    match copied {
        Err(e) if is_copying(&e) => wait_for_copy(link, to, e),
        copied => copied,
    }
}

/// Waits for an object that the store copies after its answer. Its source must stay until then.
fn wait_for_copy(link: &'static Link, to: &Object, mut error: io::Error) -> io::Result<()> {
    let begun = Instant::now();
    while is_copying(&error) && begun.elapsed() < LONGEST {
        link.wait(async move {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            io::Result::Ok(())
        })?;
        match to.head(link) {
            Ok(_) => return Ok(()),
            Err(e) => error = e,
        }
    }
    Err(error)
}

/// Copies an object through this machine, part by part, with some of its bytes changed. The target may be the object itself: it is
/// what it was until the last part is there.
pub(crate) fn rewrite(
    link: &'static Link,
    from: &Object,
    to: &Object,
    change: Option<(u64, &[u8])>,
) -> io::Result<()> {
    let head = from.head(link)?;
    let (offset, bytes) = change.unwrap_or((0, &[]));
    let end = offset.checked_add(bytes.len() as u64).filter(|&end| end <= head.length);
    let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut upload = Upload::new(link, to.clone())?;
    let mut start = 0;
    while start < head.length {
        let stop = head.length.min(start + PART as u64);
        let mut piece = Vec::with_capacity((stop - start) as usize);
        for (part, _) in
            from.get(link, place::requests(std::slice::from_ref(&(start..stop))), Some(&head.version))?
        {
            piece.extend_from_slice(&whole(part));
        }
        let (first, last) = (offset.max(start), end.min(stop));
        if first < last {
            let changed = &bytes[(first - offset) as usize..(last - offset) as usize];
            piece[(first - start) as usize..(last - start) as usize].copy_from_slice(changed);
        }
        upload.write_all(&piece)?;
        start = stop;
    }
    upload.flush()
}

/// Removes an object. One that is not there is fine.
pub(crate) fn remove(link: &'static Link, object: &Object) -> io::Result<()> {
    let bucket = object.bucket(link)?;
    let (asked, key) = (object.asked("DELETE", &bucket), object.address.key.clone());
    let _changing = link.listings.changing(object.address.bucket_name());
    link.heads.forget(&object.address.to_string());
    let removed = link.wait(async move {
        attempts(link, asked, || {
            let (bucket, key) = (bucket.clone(), key.clone());
            async move { bucket.store.delete(&key).await.map_err(|e| Fault::of(&e)) }
        })
        .await
    });
    link.heads.forget(&object.address.to_string());
    match removed {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
