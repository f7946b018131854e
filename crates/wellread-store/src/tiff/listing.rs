//! Which TIFF files a path stands for: itself, or those of a folder and of the folders directly inside it.
//!
//! A folder that also holds images of another format is refused, because reading only some of its images
//! would go unnoticed. Tables without images, such as profile tables, may lie beside the images.

use crate::registry::Probe;
use crate::tiff::ifd::Header;
use crate::{Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Endings of the names of TIFF files.
const ENDINGS: [&str; 2] = [".tif", ".tiff"];
/// Endings of other images, as files or folders.
const OTHERS: [&str; 9] =
    [".png", ".jpg", ".jpeg", ".zarr", ".lance", ".vortex", ".duckdb", ".ome-arrow-dataset", ".parquet"];

/// Whether a name ends like a TIFF file's.
pub(super) fn is_tiff_name(name: &str) -> bool {
    ends_with_any(name, &ENDINGS)
}

fn ends_with_any(name: &str, endings: &[&str]) -> bool {
    endings.iter().any(|e| {
        name.len() >= e.len() && name.as_bytes()[name.len() - e.len()..].eq_ignore_ascii_case(e.as_bytes())
    })
}

/// Whether a probe is of a TIFF file, or of a folder with TIFF files in it or in a folder of it.
pub(super) fn recognise(probe: &Probe) -> bool {
    if !probe.is_dir {
        return Header::recognise(&probe.head);
    }
    if probe.entries_ending(&ENDINGS).next().is_some() {
        return true;
    }
    // Folders of other formats are not looked into.
    let folder = |name: &&String| !name.starts_with('.') && !name.contains('.');
    probe.entries.iter().filter(folder).take(16).any(|name| {
        let listing = std::fs::read_dir(probe.path.join(name)).ok();
        listing
            .is_some_and(|mut l| l.any(|e| e.is_ok_and(|e| e.file_name().to_str().is_some_and(is_tiff_name))))
    })
}

/// The files of a folder by their paths relative to it, sorted by bytes.
///
/// # Errors
/// No TIFF file, images of other formats beside them, or a folder that cannot be listed.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Found::default();
    list(folder, Path::new(""), true, &mut found)?;
    let Found { mut tiff, other } = found;
    tiff.sort_unstable_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    let Some(first) = tiff.first() else {
        return Err(Error::new(folder, "there is no TIFF file (.tif, .tiff) in the folder")
            .hint("give the folder that holds the images, or the folder above it"));
    };
    if let Some(other) = other {
        return Err(Error::new(
            folder,
            format_args!(
                "the folder mixes image formats: {} is TIFF, {} is not",
                first.display(),
                other.display()
            ),
        )
        .hint("keep one format in a folder, or open a single file"));
    }
    Ok(tiff)
}

#[derive(Default)]
struct Found {
    tiff: Vec<PathBuf>,
    /// The first image of another format.
    other: Option<PathBuf>,
}

fn list(folder: &Path, below: &Path, descend: bool, found: &mut Found) -> Result<()> {
    let place = folder.join(below);
    let fault = |e: std::io::Error| Error::io(&place, "cannot list the folder", &e);
    for entry in std::fs::read_dir(&place).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if text.starts_with('.') {
            continue;
        }
        let kind = entry.file_type().map_err(fault)?;
        let is_dir = kind.is_dir() || kind.is_symlink() && entry.path().is_dir();
        let path = below.join(&name);
        if !is_dir && is_tiff_name(&text) {
            found.tiff.push(path);
        } else if ends_with_any(&text, &OTHERS) {
            let parquet = ends_with_any(&text, &[".parquet"]);
            if found.other.is_none() && (!parquet || is_dir || parquet_holds_images(&entry.path())) {
                found.other = Some(path);
            }
        } else if is_dir && descend {
            list(folder, &path, false, found)?;
        }
    }
    Ok(())
}

/// Whether a Parquet file has an OME-Arrow column: one with a field `pixels_meta`, named in the footer.
fn parquet_holds_images(path: &Path) -> bool {
    const LONGEST: u64 = 16 << 20;
    let footer = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut tail = [0u8; 8];
        file.seek(SeekFrom::End(-8))?;
        file.read_exact(&mut tail)?;
        let size = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        let size = size.min(len - 8).min(LONGEST);
        file.seek(SeekFrom::Start(len - 8 - size))?;
        let mut footer = vec![0; size as usize];
        file.read_exact(&mut footer)?;
        Ok(footer)
    };
    let wanted = b"pixels_meta";
    footer().is_ok_and(|footer| footer.windows(wanted.len()).any(|w| w == wanted))
}
