//! Moving finished output to its place: to a name at which nothing is, or with the access of what it replaces.

use std::io;
use std::path::Path;

/// Renames a file or folder to a name at which nothing is.
pub(super) fn move_new(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_file() && std::fs::hard_link(from, to).map_or_else(exists, |()| Ok(true))? {
        return std::fs::remove_file(from);
    }
    // A folder never takes the place of a file or of a folder with something in it.
    if to.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    std::fs::rename(from, to).map_err(|e| if is_taken(&e) { io::ErrorKind::AlreadyExists.into() } else { e })
}

/// Whether something at the new name made renaming fail.
pub(super) fn is_taken(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, IsADirectory, NotADirectory};
    matches!(error.kind(), AlreadyExists | DirectoryNotEmpty | IsADirectory | NotADirectory)
}

/// An error of linking that says that something is there; `false` for others, such as of file systems without links.
fn exists(error: io::Error) -> io::Result<bool> {
    if error.kind() == io::ErrorKind::AlreadyExists { Err(error) } else { Ok(false) }
}

/// Gives `new` the mode of `old`, whose place it takes, and owner and group as far as the system lets it. Output that a
/// group shares stays shared, and private output stays private. The owner of a folder may always write to it. Nothing
/// is done where one is a file and the other a folder.
#[cfg(unix)]
pub(super) fn keep_access(old: &Path, new: &Path) {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
    let (Ok(was), Ok(is)) = (old.symlink_metadata(), new.symlink_metadata()) else { return };
    let both = |kind: fn(&std::fs::Metadata) -> bool| kind(&was) && kind(&is);
    if !both(std::fs::Metadata::is_file) && !both(std::fs::Metadata::is_dir) {
        return;
    }
    let has_group = was.gid() == is.gid() || chown(new, None, Some(was.gid())).is_ok();
    let has_owner = was.uid() == is.uid() || chown(new, Some(was.uid()), None).is_ok();
    let mode = mode_of(was.mode(), was.is_dir(), has_owner, has_group);
    let _ = std::fs::set_permissions(new, std::fs::Permissions::from_mode(mode));
}

#[cfg(not(unix))]
pub(super) fn keep_access(_: &Path, _: &Path) {}

/// The mode of what replaces something of mode `was`, by whether it has the same owner and group. Another group has the rights of
/// everybody.
#[cfg(unix)]
fn mode_of(was: u32, is_folder: bool, has_owner: bool, has_group: bool) -> u32 {
    let all = if is_folder && has_owner && has_group { 0o7777 } else { 0o777 };
    let mode = (was & all) | if is_folder { 0o700 } else { 0 };
    if has_group { mode } else { (mode & !0o070) | ((mode & 0o007) << 3) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::{Existing, Staged};
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn rights_go_to_nobody_who_had_none() {
        for (was, is_folder, has_owner, has_group, is) in [
            (0o042_770, true, true, true, 0o2770),
            (0o042_770, true, true, false, 0o700),
            (0o042_775, true, true, false, 0o755),
            (0o042_770, true, false, true, 0o770),
            (0o040_555, true, true, true, 0o755),
            (0o100_640, false, true, true, 0o640),
            (0o104_755, false, true, true, 0o755),
        ] {
            let mode = mode_of(was, is_folder, has_owner, has_group);
            assert_eq!(mode, is, "{was:o} {has_owner} {has_group}: {mode:o}");
        }
    }

    #[test]
    fn what_replaces_something_has_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        let [folder, file] = ["set", "file"].map(|name| dir.path().join(name));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&file, b"old").unwrap();
        for (path, mode) in [(&folder, 0o2750), (&file, 0o600)] {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        let staged = Staged::new(&folder, Existing::Replaced).unwrap();
        std::fs::write(staged.create_dir().unwrap().join("a.tif"), b"II*\0").unwrap();
        staged.commit().unwrap();
        super::super::write(&file, b"new").unwrap();
        assert_eq!([mode(&folder), mode(&file)], [0o2750, 0o600]);
        assert!(folder.join("a.tif").exists());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        // A file in place of a folder has that of any new file.
        let plain = dir.path().join("plain");
        std::fs::write(&plain, b"").unwrap();
        super::super::write(&folder, b"a file").unwrap();
        assert_eq!(mode(&folder), mode(&plain));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    }
}
