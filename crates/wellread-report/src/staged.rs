//! Result files that appear whole or not at all: written beside their place, renamed when complete. The place is where links lead to:
//! a link stays, and the file that it leads to is replaced.

use crate::{Error, Result};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes `target` through `fill`; an error or a crash leaves what was there before. Makes missing parents.
///
/// # Errors
/// The error of `fill`. A folder or file that cannot be written. A link that leads nowhere.
pub fn write_with(
    target: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut std::fs::File>) -> Result<(), String>,
) -> Result<()> {
    let place = through_links(target)?;
    let parent = match place.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let io = |e: &std::io::Error| Error::io(target, "cannot write", e);
    std::fs::create_dir_all(parent).map_err(|e| Error::io(parent, "cannot make the folder", &e))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".wellread-partial-");
    #[cfg(unix)]
    {
        // Temporary files are private by default; results are not (the umask still applies).
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(parent).map_err(|e| io(&e))?;
    let mut out = BufWriter::new(file.as_file_mut());
    fill(&mut out).map_err(|cause| Error::writing(target, &cause))?;
    out.flush().map_err(|e| io(&e))?;
    drop(out);
    file.as_file().sync_all().map_err(|e| io(&e))?;
    file.persist(&place).map_err(|e| io(&e.error))?;
    Ok(())
}

/// The target of `target` if it is a link: output goes there, so that all who have the link's target see it.
fn through_links(target: &Path) -> Result<PathBuf> {
    if !target.symlink_metadata().is_ok_and(|there| there.is_symlink()) {
        return Ok(target.to_owned());
    }
    target.canonicalize().map_err(|_| {
        let to = target.read_link().unwrap_or_default();
        Error::new(target, format_args!("is a link to {}, which leads to no file or folder", to.display()))
            .hint("name the place itself, or remove the link")
    })
}

/// Writes `bytes` to `target`, whole or not at all.
///
/// # Errors
/// A folder or file that cannot be written.
pub fn write(target: &Path, bytes: &[u8]) -> Result<()> {
    write_with(target, |out| out.write_all(bytes).map_err(|e| e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_keeps_the_old_file_and_leaves_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("sub/file.txt");
        write(&target, b"old").unwrap();
        let failed = write_with(&target, |out| {
            out.write_all(b"half").unwrap();
            Err("out of ideas".to_owned())
        });
        assert!(failed.unwrap_err().to_string().contains("out of ideas"));
        // As Parquet's writer says it.
        let full = write_with(&target, |_| Err("External: No space left on device (os error 28)".to_owned()));
        let said = full.unwrap_err().to_string();
        assert!(
            said.contains("cannot write: No space left") && said.contains("hint: free some space"),
            "{said}"
        );
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        write(&target, b"new").unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(target.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    #[cfg(unix)]
    fn what_a_link_leads_to_is_replaced_and_the_link_stays() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let [disk, work] = ["disk", "work"].map(|name| dir.path().join(name));
        std::fs::create_dir(&disk).unwrap();
        std::fs::create_dir(&work).unwrap();
        std::fs::write(disk.join("report.csv"), b"old").unwrap();
        for name in ["report.csv", "none.csv"] {
            symlink(Path::new("../disk").join(name), work.join(name)).unwrap();
        }
        write(&work.join("report.csv"), b"new").unwrap();
        assert_eq!(std::fs::read(disk.join("report.csv")).unwrap(), b"new");
        let error = write(&work.join("none.csv"), b"new").unwrap_err().to_string();
        assert!(
            error.contains("is a link to ../disk/none.csv") && error.contains("remove the link"),
            "{error}"
        );
        for name in ["report.csv", "none.csv"] {
            assert!(work.join(name).symlink_metadata().unwrap().is_symlink(), "{name}");
        }
        assert_eq!(std::fs::read_dir(&disk).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(&work).unwrap().count(), 2);
    }
}
