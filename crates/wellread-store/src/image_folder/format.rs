//! PNG and JPEG as a format.

use super::layout::{self, NAMING};
use super::{splits, store, text_chunk, writer};
use crate::entries::{self, Entry, EntryRole};
use crate::{Format, name_index, place};

/// PNG and JPEG files, folders and class folders.
pub static FORMAT: Format = Format {
    name: NAMING.name,
    about: "PNG and JPEG: files, folders, and class folders as ImageNet is laid out",
    endings: NAMING.endings,
    set_ending: "",
    is_folder: false,
    holds_images: |_| true,
    parts: &[],
    inner_folders: &[],
    foreign_entry: |folder| entries::foreign_by_look(folder, belongs),
    keeps_features: false,
    features_beside: false,
    join_parts: None,
    own_columns: |_| false,
    names_tell: splits::tells,
    keeps_durations: false,
    keeps_seconds: true,
    keeps_zoned_nanoseconds: true,
    keeps_zones: true,
    holds_bare_pixels: false,
    has_checksums: true,
    has_tables: true,
    has_columns: false,
    has_levels: false,
    has_display_settings: false,
    uses_tune: |_| false,
    cannot_resume: None,
    engine: || Ok("png 0.18, zune-jpeg 0.5".to_owned()),
    recognise: layout::recognise,
    open: |path, options| Ok(Box::new(store::ImageFolder::open(path, options)?)),
    create: |path, options| Ok(Box::new(writer::PngWriter::create(path, options)?)),
};

/// Bytes of the smallest header of a picture. Where there are fewer, there is none that could be lost.
const MIN_HEADER_BYTES: u64 = 8;

/// The role of a file in a folder of pictures. Those written here have their name in a text chunk, the first bytes of
/// which are read; the others may be the only copy.
fn belongs(entry: &Entry) -> EntryRole {
    if entry.name == name_index::FILE {
        return EntryRole::Yes;
    }
    if !NAMING.has_ending(&entry.name) {
        return EntryRole::No;
    }
    let is_short = || place::metadata(&entry.path).is_ok_and(|there| there.length < MIN_HEADER_BYTES);
    if is_short() || text_chunk::is_in(&entry.path) { EntryRole::Yes } else { EntryRole::OfOthers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_classes_and_splits_and_not_what_a_file_says() {
        let of_names = ["class", "label", "split"].map(str::to_owned);
        assert_eq!(of_names.clone().map(|name| (FORMAT.names_tell)(&name, &of_names)), [true; 3]);
        let of_file = ["class", "label", "class_name", "dose"].map(str::to_owned);
        let told = of_file.clone().map(|name| (FORMAT.names_tell)(&name, &of_file));
        assert_eq!(told, [true, false, false, false]);
        assert!(!(crate::tiff::FORMAT.names_tell)("class", &of_names));
    }

    use crate::{ImageView, WriteOptions};
    use wellread_image::{ImageMetadata, PixelType, Shape};

    #[test]
    fn only_pictures_with_the_chunk_are_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.png");
        let look = |path: &std::path::Path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            belongs(&Entry { name, path: path.to_owned(), is_folder: false, kind: place::Kind::File })
        };
        let mut writer = crate::create(&path, "image-folder", &WriteOptions::default()).unwrap();
        let metadata = ImageMetadata::named("a");
        let (shape, dtype) = (Shape::plane(3, 4), PixelType::U8);
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &[5; 12] }).unwrap();
        writer.finish().unwrap();
        assert_eq!(look(&path), EntryRole::Yes);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(8).position(|w| w == b"wellread").unwrap();
        bytes[at] = b'W';
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(look(&path), EntryRole::OfOthers);
        let put = |name: &str, bytes: &[u8]| {
            std::fs::write(dir.path().join(name), bytes).unwrap();
            look(&dir.path().join(name))
        };
        assert_eq!(put("b.jpg", b"\xff\xd8\xff\xe0 a photograph"), EntryRole::OfOthers);
        assert_eq!(put("none.png", b""), EntryRole::Yes);
        assert_eq!(put(name_index::FILE, b"{}"), EntryRole::Yes);
        assert_eq!(put("notes.txt", b""), EntryRole::No);
    }
}
