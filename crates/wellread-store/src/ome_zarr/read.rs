//! Reading: requests to chunk files to blocks.
//!
//! ```text
//!  request ─ grid ─▶ chunks ─▶ files, kept open ─▶ whole chunk, or the pieces of a shard ─▶ decoded, put in order ─▶ sink
//!                                   └─ none there ─▶ the fill value
//! ```

use super::array::ArrayPlan;
use super::chunk_codecs::Kind;
use super::codec::ChunkCodec;
use super::grid::{block_region, covering, for_each_index, part_inside};
use super::native::Decoders;
use super::order::Reorder;
use super::shard::{Piece, ShardCodec, at_once, fetch, joint_reads};
use super::store::OmeZarrStore;
use crate::open_files::OpenFile;
use crate::stamp::written;
use crate::stored_type::Unfit;
use crate::surface::option_as;
use crate::{Block, Error, PixelSink, Request, Result, Scratch, Store, place, try_alloc};
use std::io::ErrorKind;
use std::path::PathBuf;
use wellread_image::Region;

/// The state that a reading thread keeps between calls.
#[derive(Default)]
struct Context {
    decoders: Decoders,
    file: PathBuf,
    key: String,
    pieces: Vec<Piece>,
    /// Pixels that are stored in another type.
    converted: Vec<u8>,
}

impl Context {
    /// Writes the path of the chunk at `at` into `self.file`.
    fn name(&mut self, array_dir: PathBuf, plan: &ArrayPlan, at: [usize; 5]) {
        plan.key(at, &mut self.key);
        self.file = array_dir;
        self.file.push(&self.key);
    }
}

impl OmeZarrStore {
    /// Reads what each request needs.
    ///
    /// # Errors
    /// A request beyond its image. A chunk that is missing, damaged, or written to since it was first read.
    pub(super) fn read_requests(
        &self,
        requests: &[Request],
        scratch: &mut Scratch,
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        let Scratch { raw, decoded, pixels, context, .. } = scratch;
        let mut buffers = Buffers { raw, decoded, pixels };
        let context = context.get::<Context>();
        requests.iter().enumerate().try_for_each(|(i, request)| {
            self.check(request)
                .and_then(|_| self.read_row(i, request, context, &mut buffers, sink))
                .map_err(|e| e.row(request.row))
        })
    }

    /// Reads what one request needs of one row.
    fn read_row(
        &self,
        request: usize,
        Request { row, region }: &Request,
        context: &mut Context,
        buffers: &mut Buffers<'_>,
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        let plan = self.plan(*row)?;
        let entry = self.rows.row(*row)?;
        if !self.is_zero && self.absent.contains(row) {
            return Err(Error::new(
                self.rows.path_of(entry),
                "the field is not there, though the metadata name it",
            )
            .row(*row)
            .hint(format_args!(
                "{} leaves such fields out, {} reads them as 0",
                option_as("missing", "skip"),
                option_as("missing", "zero")
            )));
        }
        let (first, last) = covering(region, &plan.chunk);
        let array_dir = || self.rows.path_of(entry).join(&plan.dataset);
        for_each_index(first, last, |at| {
            let linear = (0..5).fold(0, |n, a| n * plan.grid[a] + at[a]);
            let opened = self.files.get((*row, linear), || {
                context.name(array_dir(), plan, at);
                place::open(&context.file)
            });
            let file = match opened {
                Ok(file) => Some(file),
                Err(e) if e.kind() == ErrorKind::NotFound => None,
                Err(e) => return Err(Error::io(&context.file, "cannot open", &e)),
            };
            let chunk = block_region(at, &plan.chunk);
            let mut out = Output { request, plan, wanted: region, sink: &mut *sink };
            let result = match (file.as_deref(), &plan.codecs.kind) {
                (None, _) if self.absent.contains(row) => {
                    out.spread(&chunk, &[0u8; 16][..plan.stored.size()], context, buffers)
                }
                (None, _) => out.fill(&chunk, context, buffers),
                (Some(file), Kind::Chunk(codec)) => match read_whole(file, buffers.raw) {
                    Ok(length) => {
                        // The raw bytes are lent beside the buffers that they are decoded into.
                        let raw = std::mem::take(buffers.raw);
                        let reorder = plan.codecs.reorder;
                        let result = out.decode(&raw[..length], codec, reorder, &chunk, context, buffers);
                        *buffers.raw = raw;
                        result
                    }
                    Err(e) => {
                        context.name(array_dir(), plan, at);
                        Err(Failure::Sink(Error::io(&context.file, "cannot read", &e)))
                    }
                },
                (Some(file), Kind::Shard(codec)) => {
                    let shard = ShardOf { codec, file, origin: chunk.start, key: (*row, linear) };
                    self.read_shard(shard, &mut out, context, buffers)
                }
            };
            let is_other = match file.as_deref() {
                Some(file) => self.stamps.is_other((*row, linear), &file.file),
                None => self.stamps.has((*row, linear)),
            };
            let result = if is_other { Err(Failure::Written) } else { result };
            result.map_err(|failure| match failure {
                Failure::Written => {
                    context.name(array_dir(), plan, at);
                    written(&context.file)
                }
                Failure::Chunk(cause) => {
                    context.name(array_dir(), plan, at);
                    Error::new(&context.file, format_args!("the chunk cannot be decoded: {cause}"))
                        .hint("the file is truncated or corrupt; copy or write the image again")
                }
                Failure::Missing => {
                    context.name(array_dir(), plan, at);
                    Error::new(
                        &context.file,
                        "a chunk is missing of an image that was written with all of them",
                    )
                    .hint("copy or write the image again")
                }
                Failure::Unfit(unfit) => {
                    context.name(array_dir(), plan, at);
                    unfit.error(&context.file)
                }
                Failure::Sink(error) => error,
            })
        })
    }

    fn read_shard(
        &self,
        shard: ShardOf<'_>,
        out: &mut Output<'_, '_>,
        context: &mut Context,
        buffers: &mut Buffers<'_>,
    ) -> std::result::Result<(), Failure> {
        let ShardOf { codec, file: OpenFile { file, length, .. }, origin, key } = shard;
        let length = *length;
        let index = self.shard_indices.get(key, || codec.read_index(file, length))?;
        // The part of the request inside this shard, in the shard's own coordinates.
        let part = part_inside(out.wanted, origin, &out.plan.chunk);
        let (first, last) = covering(&part, &codec.inner);
        let region_of = |at: [usize; 5]| Region {
            start: std::array::from_fn(|a| origin[a] + at[a] * codec.inner[a]),
            size: codec.inner,
        };
        let mut pieces = std::mem::take(&mut context.pieces);
        pieces.clear();
        for_each_index(first, last, |at| match codec.piece(&index, at, length)? {
            Some(piece) => {
                pieces.push(piece);
                Ok(())
            }
            None => out.fill(&region_of(at), context, buffers),
        })?;
        let mut next = 0;
        let reads = joint_reads(&mut pieces);
        for reads in at_once(&reads, file) {
            let bytes = reads.iter().map(|(start, end, _)| (end - start) as usize).sum();
            try_alloc::grow(buffers.raw, bytes)?;
            fetch(file, reads, &mut buffers.raw[..bytes])
                .map_err(|e| Failure::Chunk(format!("cannot read: {e}")))?;
            let raw = std::mem::take(buffers.raw);
            let mut before = 0;
            for &(start, end, count) in reads {
                for piece in &pieces[next..next + count] {
                    let at = before + (piece.offset - start) as usize;
                    let raw = &raw[at..at + piece.length as usize];
                    let region = region_of(piece.at);
                    out.decode(raw, &codec.codec, codec.reorder, &region, context, buffers)?;
                }
                before += (end - start) as usize;
                next += count;
            }
            *buffers.raw = raw;
        }
        context.pieces = pieces;
        Ok(())
    }
}

/// A shard being read: its file, its first pixel in the image, and its key in the cache of indices.
#[derive(Clone, Copy)]
struct ShardOf<'a> {
    codec: &'a ShardCodec,
    file: &'a OpenFile,
    origin: [usize; 5],
    key: (usize, usize),
}

struct Buffers<'a> {
    raw: &'a mut Vec<u8>,
    decoded: &'a mut Vec<u8>,
    pixels: &'a mut Vec<u8>,
}

/// A chunk's own fault (its file is added by the caller), or somebody else's.
enum Failure {
    Chunk(String),
    /// There is no chunk where there must be one.
    Missing,
    /// The chunk's file is another than at its first read.
    Written,
    /// Its values are no pixels.
    Unfit(Unfit),
    Sink(Error),
}

impl From<String> for Failure {
    fn from(cause: String) -> Self {
        Self::Chunk(cause)
    }
}

/// Where decoded chunks of one request go.
struct Output<'a, 's> {
    request: usize,
    plan: &'a ArrayPlan,
    wanted: &'a Region,
    sink: &'s mut dyn PixelSink,
}

impl Output<'_, '_> {
    /// Decodes one (inner) chunk that lies at `region` and hands it on.
    fn decode(
        &mut self,
        raw: &[u8],
        codec: &ChunkCodec,
        reorder: Option<Reorder>,
        region: &Region,
        context: &mut Context,
        buffers: &mut Buffers<'_>,
    ) -> std::result::Result<(), Failure> {
        let pixel = self.plan.stored.size();
        let expected = region.pixels() * pixel;
        let data = codec.decode(raw, expected, pixel, &mut context.decoders, buffers.decoded)?;
        let data = match reorder {
            None => data,
            Some(reorder) => {
                try_alloc::grow(buffers.pixels, expected)?;
                reorder.apply(pixel, data, &mut buffers.pixels[..expected]);
                &buffers.pixels[..expected]
            }
        };
        self.put(region, data, &mut context.converted)
    }

    /// Hands on values of the stored type that lie at `region`.
    fn put(
        &mut self,
        region: &Region,
        data: &[u8],
        converted: &mut Vec<u8>,
    ) -> std::result::Result<(), Failure> {
        let data = self.plan.stored.pixels(data, region, self.wanted, converted).map_err(Failure::Unfit)?;
        let block = Block { region: *region, data, dtype: self.plan.info.dtype };
        self.sink.put(self.request, &block).map_err(Failure::Sink)
    }

    /// Hands on the fill value for what the request wants of a chunk that does not exist.
    fn fill(
        &mut self,
        chunk: &Region,
        context: &mut Context,
        buffers: &mut Buffers<'_>,
    ) -> std::result::Result<(), Failure> {
        if self.plan.complete {
            return Err(Failure::Missing);
        }
        let plan = self.plan;
        self.spread(chunk, &plan.fill[..plan.stored.size()], context, buffers)
    }

    /// Hands on one value for what the request wants of a chunk.
    fn spread(
        &mut self,
        chunk: &Region,
        value: &[u8],
        context: &mut Context,
        buffers: &mut Buffers<'_>,
    ) -> std::result::Result<(), Failure> {
        let Some(region) = chunk.intersection(self.wanted) else { return Ok(()) };
        let bytes = region.pixels() * value.len();
        try_alloc::grow(buffers.pixels, bytes)?;
        let pixels = &mut buffers.pixels[..bytes];
        pixels.chunks_exact_mut(value.len()).for_each(|pixel| pixel.copy_from_slice(value));
        self.put(&region, pixels, &mut context.converted)
    }
}

/// Reads a file into the start of `buffer`, which grows as needed but never shrinks; returns the number of bytes.
fn read_whole(file: &OpenFile, buffer: &mut Vec<u8>) -> std::io::Result<usize> {
    let length = usize::try_from(file.length).unwrap_or(usize::MAX);
    if buffer.len() < length {
        buffer.try_reserve_exact(length - buffer.len()).map_err(|_| ErrorKind::OutOfMemory)?;
        buffer.resize(length, 0);
    }
    file.file.read_exact_at(&mut buffer[..length], 0)?;
    Ok(length)
}
