//! Whether a TIFF file was written here. It is asked of each file before a folder of them is replaced, because microscopes write folders of
//! TIFF files too, which are nowhere else.
//!
//! The writer of this crate has named itself in the tag `Software` of every page from its first version on. So the header and the
//! first directory of each file are read, by one or two reads of at most 64 KiB.

use super::ifd::{FileView, Header, read_chain, tag};
use super::listing::NAMING;
use crate::entries::{Entry, EntryRole};
use crate::{Error, Result, name_index, place};
use std::path::Path;

/// The beginning of `Software` in files of this crate.
const SOFTWARE: &[u8] = b"wellread ";
/// Bytes of the smallest header. Where there are fewer, there is no image that could be lost.
const MIN_HEADER_BYTES: u64 = 8;

/// The role of a file in a folder of TIFF files.
pub(super) fn belongs(entry: &Entry) -> EntryRole {
    if entry.name == name_index::FILE {
        return EntryRole::Yes;
    }
    if !NAMING.has_ending(&entry.name) {
        return EntryRole::No;
    }
    if is_own(&entry.path).unwrap_or(false) { EntryRole::Yes } else { EntryRole::OfOthers }
}

/// Whether this crate wrote a file, or there is no image in it.
///
/// # Errors
/// It cannot be read, or is damaged.
fn is_own(path: &Path) -> Result<bool> {
    let (file, length) = place::open(path).map_err(|e| Error::io(path, "cannot open", &e))?;
    if length < MIN_HEADER_BYTES {
        return Ok(true);
    }
    let mut window = vec![];
    let mut view = FileView::new(path, &file, length, &mut window);
    let header = Header::read(&mut view)?;
    first_is_own(&mut view, header)
}

/// Whether the first directory names this crate.
fn first_is_own(view: &mut FileView<'_>, header: Header) -> Result<bool> {
    let mut own = None;
    let read = read_chain(view, header, |view, ifd| {
        own = Some(ifd.text_starts_with(view, tag::SOFTWARE, SOFTWARE)?);
        Err(view.error("one directory is enough"))
    });
    own.map_or_else(|| read.map(|()| false), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ImageView, WriteOptions};
    use wellread_image::{ImageMetadata, PixelType, Shape};

    fn look(path: &Path) -> EntryRole {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        belongs(&Entry { name, path: path.to_owned(), is_folder: false, kind: place::Kind::File })
    }

    #[test]
    fn only_what_names_wellread_is_its_own() {
        let dir = tempfile::tempdir().unwrap();
        for variant in ["ome", "plain"] {
            let path = dir.path().join(format!("{variant}.tif"));
            let options = WriteOptions { variant: Some(variant.into()), ..WriteOptions::default() };
            let mut writer = crate::create(&path, "tiff", &options).unwrap();
            let metadata = ImageMetadata::named("a");
            let (shape, dtype) = (Shape::plane(3, 4), PixelType::U8);
            for _ in 0..2 {
                writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[5; 12] }).unwrap();
            }
            writer.finish().unwrap();
            assert_eq!(look(&path), EntryRole::Yes, "{variant}");
            // As if another program had written it.
            let mut bytes = std::fs::read(&path).unwrap();
            let marks: Vec<_> =
                bytes.windows(9).enumerate().filter(|(_, w)| *w == SOFTWARE).map(|(i, _)| i).collect();
            for at in marks {
                bytes[at] = b'W';
            }
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(look(&path), EntryRole::OfOthers, "{variant}");
            std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
            assert_eq!(look(&path), EntryRole::OfOthers, "{variant}");
        }
        let put = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            look(&path)
        };
        assert_eq!(put("raw.tif", b"an image of somebody"), EntryRole::OfOthers);
        assert_eq!(put("none.tif", b""), EntryRole::Yes);
        assert_eq!(put(name_index::FILE, b"{}"), EntryRole::Yes);
        assert_eq!(put("notes.txt", b""), EntryRole::No);
    }
}
