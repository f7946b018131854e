//! The name of an image in its PNG file: a text chunk (`iTXt`) behind the header.
//!
//! The chunk's keyword is `wellread`, its text is JSON, such as `{"name":"plate 1/A01"}`: PNG's texts have no zero
//! bytes, and JSON escapes them. Other programs show it among the file's texts.
//!
//! Specification: <https://www.w3.org/TR/png-3/#11iTXt>.

use crate::place;
use serde::Deserialize;
use std::io::Write;
use std::path::Path;

/// Signature and header chunk, which every PNG file begins with.
const HEAD: usize = 8 + 25;
/// Length, kind and CRC of a chunk.
const FRAME: usize = 12;
/// Keyword, and no compression, language or translated keyword.
const KEYWORD: &[u8] = b"wellread\0\0\0\0\0";
/// The longest chunk that is looked at.
const MAX_CHUNK_BYTES: u64 = 16 << 20;

#[derive(Deserialize)]
struct Text {
    name: String,
}

/// Writes a PNG file on, with the name behind its header.
pub(super) struct WithName<W> {
    to: W,
    /// Bytes of the header still to come.
    head: usize,
    chunk: Vec<u8>,
}

impl<W: Write> WithName<W> {
    pub fn new(to: W, name: &str) -> Self {
        let text = serde_json::json!({ "name": name }).to_string();
        let mut chunk = vec![0; 4];
        chunk.extend([b"iTXt", KEYWORD, text.as_bytes()].concat());
        match u32::try_from(chunk.len() - 8) {
            Ok(length) if u64::from(length) <= MAX_CHUNK_BYTES => {
                chunk[..4].copy_from_slice(&length.to_be_bytes());
                let crc = libdeflater::crc32(&chunk[4..]);
                chunk.extend(crc.to_be_bytes());
            }
            // A name that nobody reads is left to the index of names.
            _ => chunk.clear(),
        }
        Self { to, head: HEAD, chunk }
    }
}

impl<W: Write> Write for WithName<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.head == 0 {
            return self.to.write(bytes);
        }
        let taken = self.to.write(&bytes[..bytes.len().min(self.head)])?;
        self.head -= taken;
        if self.head == 0 {
            self.to.write_all(&self.chunk)?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Whether a PNG file begins as those do that are written here: with the chunk behind its header.
pub(super) fn is_in(path: &Path) -> bool {
    let Ok((file, _)) = place::open(path) else { return false };
    let mut head = [0; HEAD + FRAME - 4 + KEYWORD.len()];
    file.peek_exact_at(&mut head, 0).is_ok()
        && head.starts_with(b"\x89PNG\r\n\x1a\n")
        && head[HEAD + 4..HEAD + 8] == *b"iTXt"
        && head.ends_with(KEYWORD)
}

/// The name that a PNG file carries. `None` for files of other writers and for such as cannot be read: that shows when
/// their pixels are.
pub(super) fn name_in(path: &Path) -> Option<String> {
    let (file, file_length) = place::open(path).ok()?;
    let mut head = [0; HEAD + FRAME - 4];
    file.peek_exact_at(&mut head, 0).ok()?;
    let (length, kind) = head[HEAD..].split_at(4);
    let length = u64::from(u32::from_be_bytes(length.try_into().ok()?));
    if !head.starts_with(b"\x89PNG\r\n\x1a\n") || kind != b"iTXt" || length > MAX_CHUNK_BYTES {
        return None;
    }
    let mut text = vec![];
    let start = head.len() as u64;
    file.peek_after(start, length.min(file_length.saturating_sub(start)), &mut text).ok()?;
    let text: Text = serde_json::from_slice(text.strip_prefix(KEYWORD)?).ok()?;
    Some(text.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::png_encoder::Picture;
    use png::{BitDepth, ColorType, DeflateCompression, EncodingError};

    const PICTURE: Picture =
        Picture { width: 3, height: 2, color: ColorType::Grayscale, depth: BitDepth::Eight };

    /// A disk with room for so many bytes.
    struct Small(usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let room = self.0.min(bytes.len());
            self.0 -= room;
            if room == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(room) }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_known_as_such() {
        let mut whole = vec![];
        let named = WithName::new(&mut whole, "a");
        PICTURE.encode(named, DeflateCompression::FdeflateUltraFast, &[7; 6]).unwrap();
        // Also where the last chunk alone does not fit.
        for room in [0, 20, HEAD, HEAD + 10, HEAD + 60, whole.len() - 1] {
            let named = WithName::new(Small(room), "a");
            match PICTURE.encode(named, DeflateCompression::FdeflateUltraFast, &[7; 6]) {
                Err(EncodingError::IoError(e)) => {
                    assert_eq!(e.kind(), std::io::ErrorKind::StorageFull, "{room}");
                }
                other => panic!("{room} of {}: {other:?}", whole.len()),
            }
        }
    }

    #[test]
    fn the_name_stands_behind_the_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.png");
        for name in ["plate 1/\0\"µ\n", "", &"x".repeat(4096)] {
            let mut bytes = vec![];
            let pixels: Vec<u8> = (0..6).collect();
            let named = WithName::new(&mut bytes, name);
            PICTURE.encode(named, DeflateCompression::FdeflateUltraFast, &pixels).unwrap();
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(name_in(&path).as_deref(), Some(name));
            let read = image::load_from_memory(&bytes).unwrap();
            assert_eq!(read.as_bytes(), pixels);
            // Any length of the rest gives a name or none, and no panic.
            for length in 0..bytes.len().min(80) {
                std::fs::write(&path, &bytes[..length]).unwrap();
                assert!(name_in(&path).is_none_or(|found| found == name));
            }
        }
    }
}
