//! Result files that appear whole or not at all: written beside their place, renamed when complete.

use crate::{Error, Result};
use std::io::{BufWriter, Write};
use std::path::Path;

/// Writes `target` through `fill`; an error or a crash leaves what was there before. Makes missing parents.
///
/// # Errors
/// What `fill` says; a folder or file that cannot be written.
pub fn write_with(
    target: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut std::fs::File>) -> Result<(), String>,
) -> Result<()> {
    let parent = match target.parent() {
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
    file.persist(target).map_err(|e| io(&e.error))?;
    Ok(())
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
}
