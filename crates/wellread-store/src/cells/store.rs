//! A set of images seen cell by cell.
//!
//! ```text
//!  request of a cell ─▶ its box in the image ─┬─ outside ─▶ zeros
//!                                             ├─ label image ─▶ which pixels are the cell's ─┐
//!                                             └─ image ─▶ pixels ────────────────────────────┴▶ Block of the cell
//! ```
//!
//! Long because all of it is one type, which answers all that a store is asked.

use super::cut::{Cutter, WantedBox};
use super::edge::{CellBox, bands, inside, moved};
use super::join::Cells;
use super::labelled::LabelledMasks;
use super::options::{CellOptions, Mask};
use super::own_pixels::OwnPixels;
use crate::outer_rows::ConsumerError;
use crate::{
    Block, CopySink, Discard, EachImage, Error, FormatContext, Hints, OpenOptions, PixelSink, ReadExtent,
    Request, Result, RowHints, RowInfo, Scratch, Store, StoreLayout, check_request, concat, default_answers,
    place, try_alloc,
};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::{Channel, ImageMetadata, PixelType, Region, Shape};

/// Bytes of crops that are read in one call when all of them are.
const SCAN_BYTES: usize = 32 << 20;

/// A store whose rows are cells, cut out of the images of another store. Rows are in the order of the table, without those that
/// cannot be cut out, and so are rows in errors.
pub struct CellsStore {
    pub(super) images: Arc<dyn Store>,
    pub(super) cells: Arc<Cells>,
    /// The label images that are masks.
    pub(super) masks: Option<Arc<dyn Store>>,
    /// Bytes of whole images that are read in one call at most.
    most: usize,
}

/// The state that a thread keeps from read to read.
#[derive(Debug, Default)]
struct Context {
    of_images: FormatContext,
    of_masks: FormatContext,
    cutter: Cutter,
    mask_cutter: Cutter,
    /// Boxes of images and of label images.
    wanted: Vec<WantedBox>,
    wanted_masks: Vec<WantedBox>,
    own: OwnPixels,
    zeros: Vec<u8>,
}

impl CellsStore {
    /// A view of cells that were found before, in these images or in others of the same names, shapes and order. Opens their label
    /// images where these are masks.
    ///
    /// # Errors
    /// Label images that cannot be opened.
    pub fn new(images: Arc<dyn Store>, cells: Arc<Cells>) -> Result<Self> {
        Self::of(images, cells, None)
    }

    /// The same with the label images that are the masks, where they are open.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of(images: Arc<dyn Store>, cells: Arc<Cells>, masks: Option<Arc<dyn Store>>) -> Result<Self> {
        let masks = match &cells.masks {
            None => None,
            Some(named) => {
                let open: Arc<dyn Store> = match masks {
                    Some(open) => open,
                    None => Arc::from(concat::open(&named.path, &OpenOptions::default())?),
                };
                let labels: Arc<dyn Store> =
                    if named.are_binary { Arc::new(LabelledMasks::new(open)) } else { open };
                Some(labels)
            }
        };
        Ok(Self { images, cells, masks, most: usize::MAX })
    }

    /// The cells of a table, or of a set of label images, in these images.
    ///
    /// # Errors
    /// As [`Cells::find`].
    pub fn open(images: Box<dyn Store>, table: &Path, options: &CellOptions) -> Result<Self> {
        let images: Arc<dyn Store> = Arc::from(images);
        let cells = Cells::find(&*images, table, options)?;
        Self::new(images, Arc::new(cells))
    }

    /// The same, but one call of the images' store reads cells of images of at most so many bytes. It is for a store
    /// that always decodes whole images, as a cache does.
    pub fn reading_at_most(mut self, bytes: usize) -> Self {
        self.most = bytes;
        self
    }

    /// The cells.
    pub fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    pub(super) fn cell(&self, row: usize) -> Result<CellBox> {
        let cell = self.cells.boxes.get(row).copied();
        cell.ok_or_else(|| Error::no_such_row(self.path(), row, self.cells.len()))
    }

    /// The image of the cell `row`.
    fn image_info(&self, row: usize, image: usize) -> Result<RowInfo> {
        self.images.row_info(image).map_err(|e| e.of_row(row))
    }

    /// Plans the reads of images and label images; the pixels outside of an image are put at once.
    fn plan(&self, requests: &[Request], context: &mut Context, sink: &mut dyn PixelSink) -> Result<()> {
        let Context { wanted, wanted_masks, own, zeros, .. } = context;
        wanted.clear();
        wanted_masks.clear();
        own.clear();
        for (i, request) in requests.iter().enumerate() {
            let info = check_request(self, request)?;
            let CellBox { image, start } = self.cell(request.row)?;
            let shape = self.image_info(request.row, image)?.shape;
            let Region { start: [t, c, z, y, x], size: [nt, nc, nz, height, width] } = request.region;
            let rows = inside(start[0] + y as i64, height, shape.y());
            let columns = inside(start[1] + x as i64, width, shape.x());
            let is_nothing = rows.is_empty() || columns.is_empty();
            if is_nothing || rows.len() < height || columns.len() < width {
                let in_cell = |range: &Range<usize>, start: i64| {
                    (range.start as i64 - start) as usize..(range.end as i64 - start) as usize
                };
                let seen = (!is_nothing).then(|| [in_cell(&rows, start[0]), in_cell(&columns, start[1])]);
                let size = info.dtype.size();
                let bytes = bands(&request.region, seen.clone()).map(|band| band.pixels() * size).max();
                // Nothing but zeros is ever written to it.
                try_alloc::grow(zeros, bytes.unwrap_or(0))
                    .map_err(|cause| Error::new(self.path(), cause).row(request.row))?;
                for band in bands(&request.region, seen) {
                    let data = &zeros[..band.pixels() * size];
                    sink.put(i, &Block { region: band, data, dtype: info.dtype })?;
                }
            }
            if is_nothing {
                continue;
            }
            let part = |row, start: [usize; 3], size: [usize; 3]| {
                let ([t, c, z], [nt, nc, nz]) = (start, size);
                let region = Region {
                    start: [t, c, z, rows.start, columns.start],
                    size: [nt, nc, nz, rows.len(), columns.len()],
                };
                Request { row, region }
            };
            let channels = (c + nc).min(shape.c()).saturating_sub(c);
            if channels > 0 {
                let part = part(image, [t, c, z], [nt, channels, nz]);
                wanted.push(WantedBox { part, request: i, start });
            }
            if let (Some(masks), Some(found)) = (&self.masks, &self.cells.masks) {
                let row = found.rows.get(image).copied().flatten();
                let row =
                    row.ok_or_else(|| Error::new(&found.path, "a label image is missing").row(request.row))?;
                let info = masks.row_info(row).map_err(|e| e.of_row(request.row))?;
                let Shape([times, _, depth, ..]) = info.shape;
                let along =
                    |length: usize, first: usize, n: usize| if length == 1 { (0, 1) } else { (first, n) };
                let ((t, nt), (z, nz)) = (along(times, t, nt), along(depth, z, nz));
                let part = part(row, [t, 0, z], [nt, 1, nz]);
                own.push(i, &part.region, self.cells.ids[request.row])
                    .map_err(|cause| Error::new(&found.path, cause))?;
                wanted_masks.push(WantedBox { part, request: i, start });
            }
        }
        Ok(())
    }

    /// Reads what was planned.
    fn read_planned(
        &self,
        requests: &[Request],
        context: &mut Context,
        scratch: &mut Scratch,
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        let Context { of_images, of_masks, cutter, mask_cutter, wanted, wanted_masks, own, .. } = context;
        let (wanted, wanted_masks) = (&wanted[..], &wanted_masks[..]);
        let cell_of = |wanted: &[WantedBox], row: usize| {
            wanted.iter().find(|wanted| wanted.part.row == row).map(|wanted| requests[wanted.request].row)
        };
        if let Some(masks) = &self.masks {
            std::mem::swap(&mut scratch.context, of_masks);
            let read = mask_cutter.read(&**masks, wanted_masks, usize::MAX, scratch, &mut |i, cut| {
                let (part, dtype) = (cut.part, cut.block.dtype);
                own.take(wanted_masks[i].request, &part, dtype, cut.pixels()?);
                Ok(())
            });
            std::mem::swap(&mut scratch.context, of_masks);
            ConsumerError::default().outer(read, |row| cell_of(wanted_masks, row))?;
            self.check_labels(requests, wanted_masks, own)?;
        }
        let is_zero = self.mask() == Mask::Zero;
        if is_zero {
            for &WantedBox { request, start, .. } in wanted_masks {
                if let Some((region, data)) = own.of(request) {
                    let region = moved(region, start);
                    sink.mark_unmasked(request, &Block { region, data, dtype: PixelType::U8 });
                }
            }
        }
        let mut of_consumer = ConsumerError::default();
        std::mem::swap(&mut scratch.context, of_images);
        let read = cutter.read(&*self.images, wanted, self.most, scratch, &mut |i, cut| {
            let WantedBox { request, start, .. } = wanted[i];
            let (part, dtype) = (cut.part, cut.block.dtype);
            let region = moved(&part, start);
            if !is_zero && sink.takes_parts() {
                let to = [region.start[3], region.start[4]];
                return of_consumer.keep(sink.put_part(request, cut.block, &part, to));
            }
            let pixels = cut.pixels()?;
            if is_zero {
                own.zero_others(request, &part, dtype, pixels);
            }
            of_consumer.keep(sink.put(request, &Block { region, data: pixels, dtype }))
        });
        std::mem::swap(&mut scratch.context, of_images);
        of_consumer.outer(read, |row| cell_of(wanted, row))?;
        if self.mask() == Mask::Channel {
            for &WantedBox { request, start, part } in wanted_masks {
                self.put_mask(&requests[request], request, start, &part.region, own, sink)?;
            }
        }
        Ok(())
    }

    /// Checks that the label image of each cell that is read whole has a pixel of the cell's number in its box. A table
    /// whose numbers are not those of the label images would give nothing but black crops.
    fn check_labels(&self, requests: &[Request], wanted: &[WantedBox], own: &OwnPixels) -> Result<()> {
        let (Some(masks), Some(found)) = (&self.masks, &self.cells.masks) else { return Ok(()) };
        if !found.has_to_be_seen {
            return Ok(());
        }
        for WantedBox { request: number, part, .. } in wanted {
            let Request { row, region } = requests[*number];
            let planes = masks.row_info(part.row)?.shape;
            let is_whole = region.size[3..] == self.cells.size
                && (part.region.size[0], part.region.size[2]) == (planes.t(), planes.z());
            if is_whole && !own.has_some(*number) {
                return Err(found.no_such_label(
                    &**masks,
                    part.row,
                    &self.name(row)?,
                    row,
                    self.cells.ids[row],
                ));
            }
        }
        Ok(())
    }

    /// The last channel of a cell, where it is asked for: which pixels are its own.
    fn put_mask(
        &self,
        request: &Request,
        number: usize,
        start: [i64; 2],
        mask: &Region,
        own: &mut OwnPixels,
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        let info = self.image_info(request.row, self.cell(request.row)?.image)?;
        let channel = info.shape.c();
        if request.region.start[1] + request.region.size[1] <= channel {
            return Ok(());
        }
        let mut part = request.region;
        (part.start[1], part.size[1]) = (channel, 1);
        part.start[3..].copy_from_slice(&mask.start[3..]);
        part.size[3..].copy_from_slice(&mask.size[3..]);
        let data = own.channel(number, &part, info.dtype).map_err(|cause| Error::new(self.path(), cause))?;
        sink.put(number, &Block { region: moved(&part, start), data, dtype: info.dtype })
    }
}

/// Paths in their order, each once.
fn each_once(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = HashSet::with_capacity(files.len());
    files.retain(|file| seen.insert(file.clone()));
    files
}

impl Store for CellsStore {
    // A cell has the size that its caller asked for, whatever shape its image claims.
    default_answers!(check);

    fn format(&self) -> &'static str {
        self.images.format()
    }

    fn path(&self) -> &Path {
        self.images.path()
    }

    fn remote_path(&self) -> Option<&Path> {
        self.images.remote_path().or_else(|| self.masks.as_ref()?.remote_path())
    }

    fn len(&self) -> usize {
        self.cells.len()
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        let info = self.image_info(row, self.cell(row)?.image)?;
        let Shape([t, c, z, ..]) = info.shape;
        let [height, width] = self.cells.size;
        let channels = c + usize::from(self.mask() == Mask::Channel);
        Ok(RowInfo { shape: Shape([t, channels, z, height, width]), dtype: info.dtype })
    }

    fn name(&self, row: usize) -> Result<String> {
        let image = self.images.name(self.cell(row)?.image).map_err(|e| e.of_row(row))?;
        Ok(format!("{image}/cell-{}", self.cells.ids[row]))
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        let image = self.cell(row)?.image;
        let mut metadata = self.images.metadata(image).map_err(|e| e.of_row(row))?;
        metadata.name = format!("{}/cell-{}", metadata.name, self.cells.ids[row]);
        metadata.id = format!("{}/cell-{}", metadata.id, self.cells.ids[row]);
        if self.mask() == Mask::Channel && metadata.channels.len() == self.image_info(row, image)?.shape.c() {
            metadata.channels.push(Channel { id: "mask".into(), name: "mask".into(), ..Channel::default() });
        }
        Ok(metadata)
    }

    fn layout(&self) -> Result<StoreLayout> {
        self.images.layout()
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = self.images.files()?;
        if let Some(masks) = &self.masks {
            files.extend(masks.files()?);
        }
        if place::is_file(&self.cells.table.path) {
            files.push(self.cells.table.path.clone());
        }
        Ok(each_once(files))
    }

    fn files_of(&self, rows: &[usize]) -> Result<Vec<PathBuf>> {
        let images = rows.iter().map(|&row| Ok(self.cell(row)?.image)).collect::<Result<BTreeSet<_>>>()?;
        let images: Vec<usize> = images.into_iter().collect();
        let mut files = self.images.files_of(&images)?;
        if let (Some(masks), Some(found)) = (&self.masks, &self.cells.masks) {
            let rows = images.iter().filter_map(|&image| found.rows.get(image).copied().flatten());
            files.extend(masks.files_of(&rows.collect::<Vec<_>>())?);
        }
        Ok(each_once(files))
    }

    fn has_checksums(&self) -> bool {
        self.images.has_checksums() && self.masks.as_ref().is_none_or(|masks| masks.has_checksums())
    }

    fn hints(&self) -> Hints<'_> {
        self.own_hints()
    }

    /// Where the image lies, which cells are sorted by; not the image's grid, since a cell begins anywhere in it.
    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        self.cell(row)?;
        Ok(RowHints::new(self, row))
    }

    fn heads(&self, rows: &[usize], _: ReadExtent, wanted: &mut place::WantedRanges) {
        let images = rows.iter().filter_map(|&row| Some(self.cell(row).ok()?.image)).collect::<BTreeSet<_>>();
        let images: Vec<usize> = images.into_iter().collect();
        self.images.heads(&images, ReadExtent::Part, wanted);
        if let (Some(masks), Some(found)) = (&self.masks, &self.cells.masks) {
            let rows = images.iter().filter_map(|&image| found.rows.get(image).copied().flatten());
            masks.heads(&rows.collect::<Vec<_>>(), ReadExtent::Part, wanted);
        }
    }

    fn ranges(&self, requests: &[Request], wanted: &mut place::WantedRanges) -> Result<()> {
        let mut context = Context::default();
        // The plan puts the pixels outside of images.
        self.plan(requests, &mut context, &mut Discard)?;
        let parts = |boxes: &[WantedBox]| boxes.iter().map(|of| of.part).collect::<Vec<_>>();
        if let Some(masks) = &self.masks {
            masks.ranges(&parts(&context.wanted_masks), wanted)?;
        }
        self.images.ranges(&parts(&context.wanted), wanted)
    }

    /// All boxes of a call are one read of the images, in which cells of one image share its pieces.
    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        let mut context = std::mem::take(scratch.context.get::<Context>());
        let planned = self.plan(requests, &mut context, sink);
        let read = planned.and_then(|()| self.read_planned(requests, &mut context, scratch, sink));
        *scratch.context.get::<Context>() = context;
        read
    }

    fn scan(&self, rows: Range<usize>, each: &mut EachImage<'_>) -> Result<()> {
        let (mut scratch, mut pixels) = (Scratch::default(), vec![]);
        let mut first = rows.start;
        while first < rows.end {
            let (mut requests, mut infos, mut bytes) = (vec![], vec![], 0);
            for row in first..rows.end {
                let info = self.row_info(row)?;
                let size = info.shape.checked_bytes(info.dtype);
                let size = size.map_err(|error| Error::new(self.path(), error).row(row))?;
                if row > first && bytes + size > SCAN_BYTES {
                    break;
                }
                requests.push(Request { row, region: info.shape.full() });
                infos.push((info, size));
                bytes += size;
            }
            try_alloc::resize(&mut pixels, bytes)
                .map_err(|cause| Error::new(self.path(), cause).row(first))?;
            let mut rest = pixels.as_mut_slice();
            let mut targets = Vec::with_capacity(infos.len());
            for (info, size) in &infos {
                let (own, others) = rest.split_at_mut(*size);
                targets.push((info.shape.full(), info.dtype, own));
                rest = others;
            }
            self.read(&requests, &mut scratch, &mut CopySink::new(targets))?;
            let mut at = 0;
            for (request, (info, size)) in requests.iter().zip(&infos) {
                each(request.row, *info, &pixels[at..at + size])?;
                at += size;
            }
            first += requests.len();
        }
        Ok(())
    }
}
