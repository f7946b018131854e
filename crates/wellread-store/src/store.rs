//! The `Store` trait: how pixels leave a format. [`crate::write`] has the way into one; [`crate::hints`] has the facts
//! that only make reading faster, or stand beside the pixels.
//!
//! Reading is push, not pull. The store decodes a piece (a strip, tile, chunk, page slice) and gives it to a [`PixelSink`] as a
//! [`Block`]. This may borrow straight from a memory map. The sink takes the pixels that its region needs. So the same reader fills
//! native arrays ([`CopySink`]) and, in `wellread-loader`, scaled floats in a batch slot, without an intermediate image.

use crate::ahead::Fetching;
use crate::hints::{Hints, RowHints};
use crate::place::{PrefetchGuard, WantedRanges};
pub use crate::request::{Request, RowInfo};
use crate::{Error, Result, StoreLayout};
use std::any::Any;
use std::path::Path;
use wellread_image::{ImageMetadata, PixelType, Region, clip_runs};

/// Rows of a scan that are asked for before they are read, and how many of them together.
pub(crate) const ROWS_AHEAD: usize = 64;
const ROWS_TOGETHER: usize = 16;
/// The same of rows of which only heads are asked for.
const HEADS_TOGETHER: usize = 64;

/// How much of an image is going to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadExtent {
    /// All of it: small files may be wanted whole.
    Whole,
    /// Some of it, or nobody knows how much.
    Part,
}

/// A decoded piece of one image: a box of pixels in C order, contiguous, little-endian.
///
/// The box may exceed the requested region and even the image (padded edge chunks); sinks clip it.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Where the piece lies in its image.
    pub region: Region,
    /// The pixels: `region.pixels() * dtype.size()` bytes, of any alignment.
    pub data: &'a [u8],
    /// Pixel type, equal to the row's [`RowInfo::dtype`].
    pub dtype: PixelType,
}

/// Receives decoded pieces. The two methods with a body are right in every sink, also in one that wraps another. A part is
/// copied there before it is put.
pub trait PixelSink {
    /// Takes what it needs of `block`, a piece of the row asked for by request number `request`.
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()>;

    /// Whether [`Self::put_part`] takes pixels from where they lie, without a copy in between.
    fn takes_parts(&self) -> bool {
        false
    }

    /// As [`Self::put`], of a block of another image: `part`, which lies inside of the block, is a piece of the row that was asked
    /// for. Its first row and column are those of `to` there.
    fn put_part(&mut self, request: usize, block: &Block<'_>, part: &Region, to: [usize; 2]) -> Result<()> {
        let size = block.dtype.size();
        let mut data = vec![0; part.pixels() * size];
        clip_runs(&block.region, part, |from, at, n| {
            data[at * size..(at + n) * size].copy_from_slice(&block.data[from * size..(from + n) * size]);
        });
        let mut region = *part;
        region.start[3..].copy_from_slice(&to);
        self.put(request, &Block { region, data: &data, dtype: block.dtype })
    }

    /// Says which pixels of a request a mask left in: a block of one channel of `u8`, 1 there. The others are put as 0. One time point or
    /// plane serves all of them. A sink that wraps another hands it on. One that corrects no pixels does nothing.
    fn mark_unmasked(&mut self, request: usize, unmasked: &Block<'_>);
}

/// Buffers a reader reuses between calls, one set per thread, so that steady state allocates nothing.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Raw bytes as read from the file.
    pub raw: Vec<u8>,
    /// Decompressed bytes.
    pub decoded: Vec<u8>,
    /// Pixels after conversion to the row's dtype.
    pub pixels: Vec<u8>,
    /// Indices of requests, in the order in which they are read.
    pub order: Vec<usize>,
    /// Anything else that a format keeps from read to read.
    pub context: FormatContext,
}

/// A format's own state beside the buffers of a [`Scratch`], of a type of its own: decompressors, more buffers. A
/// loader hands them from one epoch's threads to the next one's. The state of another format is replaced.
#[derive(Debug, Default)]
pub struct FormatContext(Option<Box<dyn Any + Send>>);

impl FormatContext {
    /// The kept state, or its default.
    pub fn get<T: Any + Send + Default>(&mut self) -> &mut T {
        if !self.0.as_ref().is_some_and(|kept| kept.is::<T>()) {
            self.0 = Some(Box::<T>::default());
        }
        self.0.as_mut().and_then(|kept| kept.downcast_mut()).expect("made just now")
    }
}

/// The function that [`Store::scan`] calls with row, shape and type, and the whole image's native pixels in C order.
pub type EachImage<'a> = dyn FnMut(usize, RowInfo, &[u8]) -> Result<()> + 'a;

/// A set of images in some format, open for reading.
///
/// Opening reads footers, headers and directory listings, never pixels. All methods may be called from many threads at once.
///
/// Hints for reading a set well come whole, in [`Hints`] and [`RowHints`]. No method has a default that
/// a store could forget when it wraps another. [`default_answers!`](crate::default_answers) writes those to which it has no better
/// answer.
/// Two methods have a body, and no store replaces it: [`Self::is_empty`] follows from [`Self::len`], and
/// [`Self::bytes_on_disk`] from [`Self::files`], also in a store that wraps another.
pub trait Store: Send + Sync {
    /// The format's name as in [`crate::Format::name`].
    fn format(&self) -> &'static str;

    /// The opened path.
    fn path(&self) -> &Path;

    /// A remote path of this set (see [`crate::place`]); `None` where all files are local. It is [`Self::path`] if that is remote.
    /// Else it is one of the files, as of a local table of images in a bucket. Ask this of an open set, and not its path.
    fn remote_path(&self) -> Option<&Path>;

    /// Number of images.
    fn len(&self) -> usize;

    /// Whether there is no image.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shape and pixel type of a row.
    fn row_info(&self, row: usize) -> Result<RowInfo>;

    /// Name of a row: from its metadata, or its file name without extension.
    fn name(&self, row: usize) -> Result<String>;

    /// Everything known about a row beside its pixels.
    fn metadata(&self, row: usize) -> Result<ImageMetadata>;

    /// How pixels are kept.
    fn layout(&self) -> Result<StoreLayout>;

    /// Files that hold the pixels (for size on disk and for dropping them from the page cache).
    fn files(&self) -> Result<Vec<std::path::PathBuf>>;

    /// Those of [`Self::files`] that some rows are read from, each once: all of them where the format does not know better.
    ///
    /// # Errors
    /// As [`Self::files`]; a row that is not there or cannot be looked into.
    fn files_of(&self, rows: &[usize]) -> Result<Vec<std::path::PathBuf>>;

    /// Bytes of [`Self::files`].
    ///
    /// # Errors
    /// A file that is not there or cannot be looked at.
    fn bytes_on_disk(&self) -> Result<u64> {
        self.files()?.iter().try_fold(0, |sum, file| {
            let meta = crate::place::metadata(file).map_err(|e| Error::io(file, "cannot look at", &e))?;
            Ok(sum + meta.length)
        })
    }

    /// Whether the pixels of this set have checksums, as far as its first files or its pages' headers show. Without
    /// them, damage that can still be decoded is not seen.
    fn has_checksums(&self) -> bool;

    /// How the set is read best, what is kept of it and what stands beside it; a store that wraps another hands on the other's.
    fn hints(&self) -> Hints<'_>;

    /// How a row is read best; a store that wraps another hands on the other's, of the other's row.
    ///
    /// # Errors
    /// A row that is not there, where it has to be looked for. Formats need not look: a later request then gives the error.
    fn row_hints(&self, row: usize) -> Result<RowHints<'_>>;

    /// Reads every request, handing decoded pieces to `sink` in any order. Pieces of one request cover its
    /// region completely, each pixel at least once.
    ///
    /// # Errors
    /// The first failing row, named in the error. Requests out of range or not fitting their row are errors.
    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()>;

    /// Adds what has to be read before [`Self::ranges`] can tell where the pixels of some rows lie, such as the headers of their
    /// files. It adds what is known without reading. `extent` says how much of each image is going to be read. For remote places;
    /// formats that say nothing are read all the same, more slowly.
    fn heads(&self, rows: &[usize], extent: ReadExtent, wanted: &mut WantedRanges);

    /// Adds the bytes of files that [`Self::read`] is going to read for these requests. The index of their positions is
    /// read, if it was not yet.
    ///
    /// # Errors
    /// The index of their positions cannot be read; requests out of range may be errors, too.
    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()>;

    /// Reads rows `rows` in storage order, calling `each(row, info, pixels)` with the whole image in C order.
    fn scan(&self, rows: std::ops::Range<usize>, each: &mut EachImage<'_>) -> Result<()>;

    /// Checks a request against the row's shape, and against what the store knows of the row's bytes. Callers ask before they
    /// reserve memory for the pixels. A store that wraps another asks that one too: a damaged shape must not cost gigabytes.
    fn check(&self, request: &Request) -> Result<RowInfo>;
}

/// [`Store::scan`] of one image after the other, asked for ahead where they are remote.
pub fn scan_ahead<S: Store + ?Sized>(
    store: &S,
    rows: std::ops::Range<usize>,
    each: &mut EachImage<'_>,
) -> Result<()> {
    let (mut scratch, mut pixels) = (Scratch::default(), Vec::new());
    let mut ahead = RowsAhead::new(store, rows.end);
    for row in rows {
        ahead.before(row);
        let info = store.row_info(row)?;
        read_region(store, row, &info.shape.full(), &mut scratch, &mut pixels)?;
        each(row, info, &pixels)?;
    }
    Ok(())
}

/// A request against the row's shape: [`Store::check`] where a store knows no more of the row's bytes. [`Store::read`] of a store
/// that wraps another asks no more than this: the inner store's own read asks the rest.
pub fn check_request<S: Store + ?Sized>(store: &S, request: &Request) -> Result<RowInfo> {
    if request.row >= store.len() {
        return Err(Error::no_such_row(store.path(), request.row, store.len()));
    }
    let info = store.row_info(request.row)?;
    if !request.region.fits(info.shape) {
        return Err(Error::new(
            store.path(),
            format_args!(
                "the region {:?}+{:?} (TCZYX) does not fit the image of {}",
                request.region.start, request.region.size, info.shape
            ),
        )
        .row(request.row));
    }
    Ok(info)
}

/// A request's region, its row's pixel type, and where its pixels go.
type CopyTarget<'a> = (Region, PixelType, &'a mut [u8]);

/// Copies native pixels of each request into its own slice of caller-given memory.
pub struct CopySink<'a> {
    targets: Vec<CopyTarget<'a>>,
}

impl<'a> CopySink<'a> {
    /// One target per request, in the order of requests: its region, the row's pixel type, and
    /// `region.pixels() * dtype.size()` bytes.
    pub fn new(targets: Vec<CopyTarget<'a>>) -> Self {
        for (region, dtype, out) in &targets {
            assert_eq!(out.len(), region.pixels() * dtype.size(), "CopySink target of wrong length");
        }
        Self { targets }
    }
}

impl PixelSink for CopySink<'_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        let (region, dtype, out) = &mut self.targets[request];
        debug_assert_eq!(*dtype, block.dtype);
        let size = dtype.size();
        clip_runs(&block.region, region, |b, r, n| {
            out[r * size..(r + n) * size].copy_from_slice(&block.data[b * size..(b + n) * size]);
        });
        Ok(())
    }

    fn mark_unmasked(&mut self, _: usize, _: &Block<'_>) {}
}

/// Asks for rows that are looked at one after the other before they are, of remote sets; of others it does nothing.
pub struct RowsAhead<'a, S: ?Sized> {
    store: &'a S,
    fetching: Option<Fetching>,
    /// How many are looked at.
    end: usize,
    /// Which row of the store each of them is, where it is one.
    row: Box<dyn Fn(usize) -> Option<usize> + 'a>,
    /// Whether nobody wants their pixels.
    are_heads: bool,
    /// Those whose heads, and whose pixels, are asked for next.
    next: [usize; 2],
    held: Vec<(usize, Vec<PrefetchGuard>)>,
}

impl<'a, S: Store + ?Sized> RowsAhead<'a, S> {
    /// Heads and pixels of the first `count` rows.
    pub fn new(store: &'a S, count: usize) -> Self {
        Self::of_rows(store, count, Some)
    }

    /// Heads and pixels of `count` rows, `row(i)` each.
    pub fn of_rows(store: &'a S, count: usize, row: impl Fn(usize) -> Option<usize> + 'a) -> Self {
        Self { are_heads: false, ..Self::of_heads(store, count, row) }
    }

    /// The heads alone of the first `count` rows: of those whose shape is looked at.
    pub fn of_first_heads(store: &'a S, count: usize) -> Self {
        Self::of_heads(store, count, Some)
    }

    /// The heads alone of `count` rows, `row(i)` each.
    pub fn of_heads(store: &'a S, count: usize, row: impl Fn(usize) -> Option<usize> + 'a) -> Self {
        Self::heads_by(store, fetching_of(store), count, row)
    }

    /// As [`Self::of_heads`], asked for by `fetching`; `None` asks for nothing.
    pub fn heads_by(
        store: &'a S,
        fetching: Option<Fetching>,
        count: usize,
        row: impl Fn(usize) -> Option<usize> + 'a,
    ) -> Self {
        Self { store, fetching, end: count, row: Box::new(row), are_heads: true, next: [0; 2], held: vec![] }
    }

    /// To be called before each of them, in order.
    pub fn before(&mut self, at: usize) {
        let Self { store, fetching: Some(fetching), end, row, are_heads, next, held } = self else { return };
        held.retain(|(held, _)| *held >= at);
        let (stages, together) = if *are_heads { (1, HEADS_TOGETHER) } else { (2, ROWS_TOGETHER) };
        for (stage, distance) in [2 * ROWS_AHEAD, ROWS_AHEAD].into_iter().take(stages).enumerate() {
            next[stage] = next[stage].max(at);
            while next[stage] < (*end).min(at + distance) && (next[stage] == at || !fetching.is_full()) {
                let mut wanted = WantedRanges::default();
                let after = (*end).min(next[stage] + together);
                let rows: Vec<usize> = (next[stage]..after).filter_map(&**row).collect();
                if stage == 0 {
                    let extent = if *are_heads { ReadExtent::Part } else { ReadExtent::Whole };
                    store.heads(&rows, extent, &mut wanted);
                } else {
                    let whole =
                        |row: usize| Some(Request { row, region: store.row_info(row).ok()?.shape.full() });
                    // A failure here is repeated and reported where it is read.
                    let _ =
                        store.ranges(&rows.into_iter().filter_map(whole).collect::<Vec<_>>(), &mut wanted);
                }
                if *are_heads {
                    wanted.shorten();
                }
                held.push((after - 1, fetching.fetch(&wanted)));
                next[stage] = after;
            }
        }
    }
}

/// The reader that asks for bytes of a set ahead, where some of it is remote.
fn fetching_of<S: Store + ?Sized>(store: &S) -> Option<Fetching> {
    Fetching::of(store.remote_path()?, None)
}

/// Reads a region of one row into `out` (resized to fit), native pixels in C order.
pub fn read_region<S: Store + ?Sized>(
    store: &S,
    row: usize,
    region: &Region,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<RowInfo> {
    let request = Request { row, region: *region };
    let info = store.check(&request)?;
    let bytes = info.shape.checked_bytes(info.dtype).map_err(|e| Error::new(store.path(), e).row(row))?;
    let wanted = region.pixels() * info.dtype.size();
    debug_assert!(wanted <= bytes);
    out.clear();
    out.try_reserve_exact(wanted).map_err(|_| {
        Error::new(store.path(), format_args!("not enough memory for an image of {wanted} bytes")).row(row)
    })?;
    out.resize(wanted, 0);
    let mut sink = CopySink::new(vec![(*region, info.dtype, out.as_mut_slice())]);
    // All of its pieces at once, where the set is remote.
    let mut wanted = WantedRanges::default();
    let mut fetching = fetching_of(store);
    let _held = fetching.as_mut().map(|fetching| {
        let _ = store.ranges(&[request], &mut wanted);
        fetching.fetch(&wanted)
    });
    store.read(&[request], scratch, &mut sink)?;
    Ok(info)
}

/// Reads one whole image, native pixels in C order.
pub fn read_image<S: Store + ?Sized>(store: &S, row: usize) -> Result<(RowInfo, Vec<u8>)> {
    if row >= store.len() {
        return Err(Error::no_such_row(store.path(), row, store.len()));
    }
    let info = store.row_info(row)?;
    let mut out = Vec::new();
    read_region(store, row, &info.shape.full(), &mut Scratch::default(), &mut out)?;
    Ok((info, out))
}
