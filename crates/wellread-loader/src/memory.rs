//! Images in RAM, as a store: for arrays that a program already has, for examples and for tests.

use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{
    Block, Error, PixelSink, Request, Result, RowFacts, RowInfo, Scratch, Store, StoreLayout,
    default_answers, unknown_facts,
};

/// Images in RAM. Shapes and pixel types may differ from image to image.
///
/// ```
/// use wellread_image::{PixelType, Shape};
/// use wellread_loader::{Dataset, MemoryStore};
/// let mut store = MemoryStore::new("two dark squares");
/// for name in ["a", "b"] {
///     store.push(name, Shape::plane(8, 8), PixelType::U8, vec![0; 64])?;
/// }
/// let dataset = Dataset::from_store(Box::new(store));
/// assert_eq!((dataset.len(), dataset.name(1)?.as_str()), (2, "b"));
/// # Ok::<(), wellread_store::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    name: PathBuf,
    images: Vec<(ImageMetadata, RowInfo, Vec<u8>)>,
}

impl MemoryStore {
    /// An empty store; errors call it by `name`.
    pub fn new(name: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), images: vec![] }
    }

    /// Appends an image: its name, and `shape.pixels() * dtype.size()` bytes in C order, little-endian.
    ///
    /// # Errors
    /// An empty axis, or bytes that do not match the shape.
    pub fn push(
        &mut self,
        name: impl Into<String>,
        shape: Shape,
        dtype: PixelType,
        pixels: Vec<u8>,
    ) -> Result<()> {
        self.push_with(ImageMetadata::named(name), shape, dtype, pixels)
    }

    /// As [`Self::push`], with all metadata.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_with(
        &mut self,
        metadata: ImageMetadata,
        shape: Shape,
        dtype: PixelType,
        pixels: Vec<u8>,
    ) -> Result<()> {
        let row = self.images.len();
        let bytes = shape.checked_bytes(dtype).map_err(|error| Error::new(&self.name, error).row(row))?;
        if pixels.len() != bytes {
            return Err(Error::new(
                &self.name,
                format_args!("{} bytes were given for {shape} (TCZYX) of {dtype}, not {bytes}", pixels.len()),
            )
            .row(row));
        }
        self.images.push((metadata, RowInfo { shape, dtype }, pixels));
        Ok(())
    }

    fn image(&self, row: usize) -> Result<&(ImageMetadata, RowInfo, Vec<u8>)> {
        self.images.get(row).ok_or_else(|| Error::no_such_row(&self.name, row, self.images.len()))
    }
}

impl Store for MemoryStore {
    default_answers!(remote_path, name, files, files_of, has_checksums, hints, row_hints);
    default_answers!(heads, ranges, scan, check);

    fn format(&self) -> &'static str {
        "memory"
    }

    fn path(&self) -> &Path {
        &self.name
    }

    fn len(&self) -> usize {
        self.images.len()
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        Ok(self.image(row)?.1)
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        Ok(self.image(row)?.0.clone())
    }

    fn layout(&self) -> Result<StoreLayout> {
        Ok(StoreLayout {
            codec: "none".into(),
            pieces: "whole images".into(),
            variant: "arrays in memory".into(),
            ..StoreLayout::default()
        })
    }

    fn read(&self, requests: &[Request], _: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        for (i, request) in requests.iter().enumerate() {
            let info = self.check(request)?;
            let data = &self.image(request.row)?.2;
            sink.put(i, &Block { region: info.shape.full(), data, dtype: info.dtype })?;
        }
        Ok(())
    }
}

impl RowFacts for MemoryStore {
    unknown_facts!(position, grid, file, cut, metadata_rows, unkept, working_bytes);
}
