//! A storage format in a crate of its own: files `.gray`, each a header of twelve bytes and an image of 8 bits. It is only read.
//!
//! ```text
//! cargo run --release -p wellread --example own_format -- IMAGE.gray
//! ```
//!
//! The header is `GRAY`, then height and width as little-endian numbers of 32 bits. A store with more rows keeps what it knows of
//! each, and [`read`](Store::read) looks at `request.row`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use wellread::store::{
    Block, Format, PixelSink, Request, RowFacts, RowInfo, Scratch, default_answers, register_format,
    unknown_facts,
};
use wellread::{Dataset, Error, ImageMetadata, OpenOptions, PixelType, Result, Shape, Store};

/// First bytes of a file.
const MARK: &[u8] = b"GRAY";
/// Bytes before the pixels.
const HEADER: u64 = 12;

static FORMAT: Format = Format {
    about: "one image of 8 bits in a file (read only)",
    ..Format::read_only("gray", &[".gray"], |probe| probe.head.starts_with(MARK), Gray::open)
};
// Every program that names this crate has the format: `use my_format as _;`.
register_format!(FORMAT);

/// One file, open for reading.
struct Gray {
    path: PathBuf,
    info: RowInfo,
}

impl Gray {
    fn open(path: &Path, _: &OpenOptions) -> Result<Box<dyn Store>> {
        let cannot = |e: std::io::Error| Error::io(path, "cannot read", &e);
        let mut file = File::open(path).map_err(cannot)?;
        let [mut mark, mut height, mut width] = [[0u8; 4]; 3];
        for part in [&mut mark, &mut height, &mut width] {
            file.read_exact(part).map_err(cannot)?;
        }
        let shape = Shape::plane(u32::from_le_bytes(height) as usize, u32::from_le_bytes(width) as usize);
        let info = RowInfo { shape, dtype: PixelType::U8 };
        // Numbers of a file are not trusted: an image takes no more memory than its file has bytes.
        let pixels = shape.checked_bytes(info.dtype).map_err(|e| Error::new(path, e))?;
        let length = file.metadata().map_err(cannot)?.len();
        if mark != MARK || length != HEADER + pixels as u64 {
            let cause = format_args!("{length} bytes are no header and {shape} (TCZYX) pixels");
            return Err(Error::new(path, cause).hint("copy or write the file again"));
        }
        Ok(Box::new(Self { path: path.to_owned(), info }))
    }
}

impl Store for Gray {
    default_answers!(remote_path, name, layout, files_of, has_checksums, hints, row_hints);
    default_answers!(heads, ranges, scan, check);

    fn format(&self) -> &'static str {
        FORMAT.name
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> usize {
        1
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        if row == 0 { Ok(self.info) } else { Err(Error::no_such_row(&self.path, row, 1)) }
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        self.row_info(row)?;
        Ok(ImageMetadata::named(self.path.file_stem().unwrap_or_default().to_string_lossy()))
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(vec![self.path.clone()])
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        for (i, request) in requests.iter().enumerate() {
            let RowInfo { shape, dtype } = self.check(request)?;
            let cannot = |e: std::io::Error| Error::io(&self.path, "cannot read", &e).row(request.row);
            let mut file = File::open(&self.path).map_err(cannot)?;
            file.seek(SeekFrom::Start(HEADER)).map_err(cannot)?;
            scratch.raw.resize(shape.pixels(), 0);
            file.read_exact(&mut scratch.raw).map_err(cannot)?;
            // The whole image: the sink takes the region that was asked for.
            sink.put(i, &Block { region: shape.full(), data: &scratch.raw, dtype })?;
        }
        Ok(())
    }
}

impl RowFacts for Gray {
    unknown_facts!(position, grid, file, cut, metadata_rows, unkept, working_bytes);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("give a file that ends in .gray")?;
    let dataset = Dataset::open(&path)?;
    println!("{}: {} of {} (TCZYX)", dataset.store().format(), dataset.len(), dataset.row_info(0)?.shape);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread::store::{WriteOptions, create, read_image};

    fn write(path: &Path, height: u32, width: u32, pixels: &[u8]) {
        let bytes = [MARK, &height.to_le_bytes(), &width.to_le_bytes(), pixels].concat();
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn an_image_is_recognised_and_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cell.gray");
        write(&path, 2, 3, &[1, 2, 3, 4, 5, 6]);
        let dataset = Dataset::open(&path).unwrap();
        assert_eq!((dataset.store().format(), dataset.len()), ("gray", 1));
        assert_eq!(dataset.name(0).unwrap(), "cell");
        let (info, pixels) = read_image(dataset.store(), 0).unwrap();
        assert_eq!((info.shape, pixels), (Shape::plane(2, 3), vec![1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn a_header_that_does_not_fit_the_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cut.gray");
        write(&path, 2, 3, &[1, 2, 3]);
        let error = Dataset::open(&path).unwrap_err().to_string();
        assert!(error.contains("15 bytes are no header"), "{error}");
        assert!(error.ends_with("(hint: copy or write the file again)"), "{error}");
    }

    #[test]
    fn nothing_is_written_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let error = create(dir.path().join("new.gray"), "gray", &WriteOptions::default()).err().unwrap();
        assert!(error.to_string().contains("only read"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
