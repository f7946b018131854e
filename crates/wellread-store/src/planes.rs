//! A set seen plane by plane. Every (image, t, c, z) becomes a row of its own, of shape 1 x 1 x 1 x Y x X.
//!
//! Single planes of stacks: they feed 2D models, and make batches of sets whose images differ in T, C or Z.
//! Only each image's shape is read when the view is made.

use crate::each_row;
use crate::place::WantedRanges;
use crate::{
    Block, EachImage, FeatureTable, Hints, PixelSink, ReadExtent, Request, Result, RowHints, RowInfo,
    Scratch, Store, check_request, default_answers, delegate_columns, delegate_store,
};
use arrow_array::RecordBatch;
use std::ops::Range;
use std::path::PathBuf;
use wellread_image::{ImageMetadata, Region, Shape};

/// A store whose rows are the planes of another store's rows, in the order image, T, C, Z.
pub struct PlaneStore {
    inner: Box<dyn Store>,
    /// First plane row of each image, and the total at the end.
    first: Vec<usize>,
    shapes: Vec<RowInfo>,
}

impl PlaneStore {
    /// Makes the view. Reads every image's shape, no pixels.
    pub fn new(inner: Box<dyn Store>) -> Result<Self> {
        let mut first = Vec::with_capacity(inner.len() + 1);
        let mut shapes = Vec::with_capacity(inner.len());
        let mut total = 0;
        for info in each_row::infos(&*inner, inner.len()) {
            let info = info?;
            first.push(total);
            shapes.push(info);
            total += info.shape.planes();
        }
        first.push(total);
        Ok(Self { inner, first, shapes })
    }

    /// Number of images whose planes these are.
    pub fn images(&self) -> usize {
        self.shapes.len()
    }

    /// Image of a plane row.
    fn image(&self, row: usize) -> Result<usize> {
        if row >= self.len() {
            return Err(crate::Error::no_such_row(self.path(), row, self.len()));
        }
        Ok(self.locate(row).0)
    }

    /// Image and (t, c, z) of a plane row.
    fn locate(&self, row: usize) -> (usize, [usize; 3]) {
        let image = self.first.partition_point(|&f| f <= row) - 1;
        let [_, c, z, _, _] = self.shapes[image].shape.0;
        let plane = row - self.first[image];
        (image, [plane / (c * z), plane / z % c, plane % z])
    }

    /// A request of a plane, as one of its image.
    fn image_request(&self, request: &Request) -> Result<Request> {
        let image = self.image(request.row)?;
        let mut region = request.region;
        region.start[..3].copy_from_slice(&self.locate(request.row).1);
        Ok(Request { row: image, region })
    }
}

/// Moves blocks from the image's coordinates to the plane's.
struct ShiftSink<'a> {
    origins: Vec<[usize; 3]>,
    sink: &'a mut dyn PixelSink,
}

impl PixelSink for ShiftSink<'_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        let plane_bytes = block.region.size[3] * block.region.size[4] * block.dtype.size();
        let [t, c, z] = self.origins[request];
        let [nt, nc, nz, ..] = block.region.size;
        let [t0, c0, z0, y0, x0] = block.region.start;
        // Blocks of chunked formats may hold neighbouring planes as well: pass on the one asked for.
        let (Some(dt), Some(dc), Some(dz)) = (t.checked_sub(t0), c.checked_sub(c0), z.checked_sub(z0)) else {
            return Ok(());
        };
        if dt >= nt || dc >= nc || dz >= nz {
            return Ok(());
        }
        let at = ((dt * nc + dc) * nz + dz) * plane_bytes;
        let region =
            Region { start: [0, 0, 0, y0, x0], size: [1, 1, 1, block.region.size[3], block.region.size[4]] };
        self.sink.put(request, &Block { region, data: &block.data[at..at + plane_bytes], dtype: block.dtype })
    }

    fn mark_unmasked(&mut self, request: usize, unmasked: &Block<'_>) {
        self.sink.mark_unmasked(request, unmasked);
    }
}

impl Store for PlaneStore {
    delegate_store!(self => self.inner; format, path, remote_path, layout, files, has_checksums);
    default_answers!(name);

    fn len(&self) -> usize {
        self.first.last().copied().unwrap_or(0)
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        let info = self.shapes[self.image(row)?];
        Ok(RowInfo { shape: Shape::plane(info.shape.y(), info.shape.x()), dtype: info.dtype })
    }

    fn check(&self, request: &Request) -> Result<RowInfo> {
        let info = check_request(self, request)?;
        self.inner.check(&self.image_request(request)?)?;
        Ok(info)
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        self.row_info(row)?;
        let (image, [t, c, z]) = self.locate(row);
        let mut metadata = self.inner.metadata(image)?;
        let shape = self.shapes[image].shape;
        if shape.planes() > 1 {
            metadata.name = format!("{}/t{t}c{c}z{z}", metadata.name);
            metadata.id = format!("{}/t{t}c{c}z{z}", metadata.id);
        }
        metadata.channels = metadata.channels.into_iter().skip(c).take(1).collect();
        Ok(metadata)
    }

    fn files_of(&self, rows: &[usize]) -> Result<Vec<PathBuf>> {
        let images = rows.iter().map(|&row| self.image(row)).collect::<Result<Vec<_>>>()?;
        self.inner.files_of(&images)
    }

    fn hints(&self) -> Hints<'_> {
        // The mask of an image is one of its planes, and the last channel of the others is none.
        Hints { columns: Some(self), sites: None, parts: None, is_last_mask: false, ..self.inner.hints() }
    }

    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        self.inner.row_hints(self.image(row)?)
    }

    fn scan(&self, rows: Range<usize>, each: &mut EachImage<'_>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.row_info(rows.end - 1)?;
        let images = self.locate(rows.start).0..self.locate(rows.end - 1).0 + 1;
        self.inner.scan(images, &mut |image, info, pixels| {
            let plane = Shape::plane(info.shape.y(), info.shape.x());
            let info = RowInfo { shape: plane, dtype: info.dtype };
            let planes = pixels.chunks_exact(plane.pixels() * info.dtype.size());
            for (row, plane) in (self.first[image]..).zip(planes).filter(|(row, _)| rows.contains(row)) {
                each(row, info, plane)?;
            }
            Ok(())
        })
    }

    /// Only some planes of an image are read.
    fn heads(&self, rows: &[usize], extent: ReadExtent, wanted: &mut WantedRanges) {
        for &row in rows {
            let Ok(image) = self.image(row) else { continue };
            let [t, c, z, ..] = self.shapes[image].shape.0;
            let extent = if t * c * z == 1 { extent } else { ReadExtent::Part };
            self.inner.heads(&[image], extent, wanted);
        }
    }

    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        let inner = requests.iter().map(|request| self.image_request(request));
        self.inner.ranges(&inner.collect::<Result<Vec<_>>>()?, wanted)
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        let mut inner = Vec::with_capacity(requests.len());
        let mut origins = Vec::with_capacity(requests.len());
        for request in requests {
            check_request(self, request)?;
            inner.push(self.image_request(request)?);
            origins.push(self.locate(request.row).1);
        }
        self.inner.read(&inner, scratch, &mut ShiftSink { origins, sink })
    }
}

impl FeatureTable for PlaneStore {
    delegate_columns!(self => self.inner; feature_names, columns_left_out, columns_renamed, columns_in_utc);
    delegate_columns!(self => self.inner; has_row_numbers);

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        let images = (0..self.len()).map(|row| Some(self.locate(row).0 as u64));
        crate::features::of_rows(&*self.inner, names, images)
    }
}
