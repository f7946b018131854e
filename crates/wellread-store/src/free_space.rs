//! How much a disk of this machine still takes.

use std::path::Path;

/// Bytes that a user may still write to the disk of a folder; `None` where the system does not say.
#[cfg(unix)]
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    // Systems count in numbers of several widths.
    fn number(n: impl TryInto<u64>) -> u64 {
        n.try_into().unwrap_or(u64::MAX)
    }
    let name = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes()).ok()?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the name ends with a zero byte, and there is room for the answer.
    let failed = unsafe { libc::statvfs(name.as_ptr(), found.as_mut_ptr()) } != 0;
    // SAFETY: numbers alone, which were zero and may have been written over.
    let found = unsafe { found.assume_init() };
    (!failed).then(|| number(found.f_bavail).saturating_mul(number(found.f_frsize)))
}

#[cfg(not(unix))]
pub(crate) fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    #[test]
    fn a_folder_has_room_and_none_has_not() {
        let dir = tempfile::tempdir().unwrap();
        assert!(super::free_bytes(dir.path()).is_some_and(|free| free > 0));
        assert_eq!(super::free_bytes(&dir.path().join("none")), None);
        assert_eq!(super::free_bytes(std::path::Path::new("a\0b")), None);
    }
}
