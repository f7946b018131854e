//! Masks as sets of images of 0 and 1, for any labels. A pixel that is not 0 (or not above 0, in floats) is
//! 1.
//!
//! Done while pieces pass by, so that rotations and elastic deformations interpolate between background and
//! foreground, not between labels.

use wellread_image::PixelType;
use wellread_store::{
    Block, PixelSink, Request, Result, RowInfo, Scratch, Store, default_answers, delegate_store,
};

/// A store of labels, as one of 0 and 1.
pub struct BinaryStore(pub Box<dyn Store>);

/// Writes 0 or 1 for each pixel of a block.
fn binary(block: &Block<'_>, into: &mut Vec<u8>) {
    let (data, dtype) = (block.data, block.dtype);
    into.clear();
    if dtype.is_float() {
        into.extend((0..data.len() / dtype.size()).map(|i| u8::from(dtype.value_at(data, i) > 0.0)));
    } else {
        into.extend(
            data.chunks_exact(dtype.size()).map(|pixel| u8::from(pixel.iter().any(|&byte| byte != 0))),
        );
    }
}

struct Sink<'a> {
    inner: &'a mut dyn PixelSink,
    pixels: Vec<u8>,
}

impl PixelSink for Sink<'_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        binary(block, &mut self.pixels);
        self.inner.put(request, &Block { region: block.region, data: &self.pixels, dtype: PixelType::U8 })
    }

    fn mark_unmasked(&mut self, request: usize, unmasked: &Block<'_>) {
        self.inner.mark_unmasked(request, unmasked);
    }
}

impl Store for BinaryStore {
    delegate_store!(self => self.0; format, path, remote_path, len, name, metadata);
    delegate_store!(self => self.0; layout, files, files_of, has_checksums, hints, row_hints, heads, ranges);
    // Row by row, since a scan of the inner store tells its own pixel type.
    default_answers!(scan);

    fn check(&self, request: &Request) -> Result<RowInfo> {
        self.0.check(request)?;
        self.row_info(request.row)
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        Ok(RowInfo { dtype: PixelType::U8, ..self.0.row_info(row)? })
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        self.0.read(requests, scratch, &mut Sink { inner: sink, pixels: vec![] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::Shape;
    use wellread_loader::MemoryStore;
    use wellread_store::read_image;

    #[test]
    fn every_label_is_one() {
        let mut store = MemoryStore::new("labels");
        let bytes = |labels: [u16; 4]| labels.iter().flat_map(|l| l.to_le_bytes()).collect::<Vec<u8>>();
        store.push("a", Shape::plane(2, 2), PixelType::U16, bytes([0, 1, 256, 7])).unwrap();
        let floats = [0.0f32, -0.0, 0.5, f32::NAN].iter().flat_map(|v| v.to_le_bytes()).collect();
        store.push("b", Shape::plane(2, 2), PixelType::F32, floats).unwrap();
        let store = BinaryStore(Box::new(store));
        assert_eq!(read_image(&store, 0).unwrap().1, [0, 1, 1, 1]);
        assert_eq!(read_image(&store, 1).unwrap().1, [0, 0, 1, 0]);
    }
}
