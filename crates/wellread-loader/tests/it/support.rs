//! A store in memory that can be slow, broken, or hand over its pixels in awkward pieces.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wellread_image::{PixelType, Region, Shape};
use wellread_loader::{Dataset, MemoryStore};
use wellread_store::{
    Block, Error, Hints, ImageView, NumberedSink, PixelSink, Request, Result, RowFacts, RowInfo, Scratch,
    Store, WriteOptions, default_answers, delegate_store, unknown_facts,
};

/// The fault of a [`TestStore`] for the readers of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    Fail,
    /// Fails as engines do that read all rows at once: without a row.
    Unnamed,
    Panic,
    /// Delivers all but the last row of pixels.
    Short,
    /// Delivers another pixel type than declared.
    WrongType,
}

/// Images in memory, delivered in chunks that exceed image and region, with faults and delays.
pub struct TestStore {
    pub inner: MemoryStore,
    /// Chunk size along T, C, Z, Y, X; `None` delivers whole images.
    pub chunk: Option<[usize; 5]>,
    pub faults: Vec<(usize, Fault)>,
    /// Longest delay before each block, drawn from the row and a counter.
    pub delay: Duration,
    pub blocks: Arc<AtomicUsize>,
    /// Called at each read, on the reading thread.
    pub on_read: fn(),
    /// Rows by position on disk run backwards.
    pub backwards: bool,
    /// See [`Hints::rows_per_read`], and how many reads there were.
    pub rows_per_read: usize,
    pub reads: Arc<AtomicUsize>,
}

impl TestStore {
    pub fn new(inner: MemoryStore) -> Self {
        Self {
            inner,
            chunk: None,
            faults: vec![],
            delay: Duration::ZERO,
            blocks: Arc::default(),
            on_read: || {},
            backwards: false,
            rows_per_read: 1,
            reads: Arc::default(),
        }
    }

    pub fn dataset(self) -> Dataset {
        Dataset::from_store(Box::new(self))
    }

    fn put_chunks(
        &self,
        chunk: [usize; 5],
        i: usize,
        request: &Request,
        info: RowInfo,
        pixels: &[u8],
        sink: &mut dyn PixelSink,
    ) -> Result<()> {
        let size = info.dtype.size();
        let grid: [usize; 5] = std::array::from_fn(|a| info.shape.0[a].div_ceil(chunk[a]));
        let mut data = vec![];
        for n in 0..grid.iter().product() {
            let (mut n, mut start) = (n, [0; 5]);
            for a in (0..5).rev() {
                start[a] = n % grid[a] * chunk[a];
                n /= grid[a];
            }
            let region = Region { start, size: chunk };
            if !region.intersects(&request.region) {
                continue;
            }
            // Padding of edge chunks is filled with a value that must never show.
            data.clear();
            data.resize(region.pixels() * size, 0xa5);
            wellread_image::clip_runs(&region, &info.shape.full(), |b, r, n| {
                data[b * size..(b + n) * size].copy_from_slice(&pixels[r * size..(r + n) * size]);
            });
            self.before_block(request.row);
            sink.put(i, &Block { region, data: &data, dtype: info.dtype })?;
        }
        Ok(())
    }

    fn before_block(&self, row: usize) {
        let n = self.blocks.fetch_add(1, Ordering::Relaxed);
        if !self.delay.is_zero() {
            let part = (row * 7919 + n * 104_729) % 100;
            std::thread::sleep(self.delay * part as u32 / 100);
        }
    }
}

impl Store for TestStore {
    delegate_store!(self => self.inner; path, remote_path, len, name, metadata, layout, files, files_of);
    delegate_store!(self => self.inner; row_info, has_checksums, heads, ranges, check);
    default_answers!(row_hints, scan);

    fn format(&self) -> &'static str {
        "test"
    }
    fn hints(&self) -> Hints<'_> {
        Hints { rows_per_read: self.rows_per_read, ..self.inner.hints() }
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        (self.on_read)();
        self.reads.fetch_add(1, Ordering::Relaxed);
        assert!(requests.is_sorted_by_key(|r| self.position(r.row)), "requests out of order");
        for (i, request) in requests.iter().enumerate() {
            let info = self.check(request)?;
            let fault = self.faults.iter().find(|(row, _)| *row == request.row).map(|(_, fault)| *fault);
            match fault {
                Some(Fault::Fail) => {
                    return Err(Error::new(self.path(), "the chunk does not decode").row(request.row));
                }
                Some(Fault::Unnamed) => {
                    return Err(Error::new(self.path(), "the engine failed"));
                }
                Some(Fault::Panic) => panic!("a defect in a reader"),
                Some(Fault::Short) => {
                    let mut region = request.region;
                    region.size[3] -= 1;
                    let data = vec![0; region.pixels() * info.dtype.size()];
                    sink.put(i, &Block { region, data: &data, dtype: info.dtype })?;
                    continue;
                }
                Some(Fault::WrongType) => {
                    let data = vec![0; request.region.pixels()];
                    sink.put(i, &Block { region: request.region, data: &data, dtype: PixelType::I8 })?;
                    continue;
                }
                None => {}
            }
            if let Some(chunk) = self.chunk {
                let (_, pixels) = wellread_store::read_image(&self.inner, request.row)?;
                self.put_chunks(chunk, i, request, info, &pixels, sink)?;
            } else {
                self.before_block(request.row);
                let mut numbered = NumberedSink { numbers: &[i], sink: &mut *sink };
                self.inner.read(std::slice::from_ref(request), scratch, &mut numbered)?;
            }
        }
        Ok(())
    }
}

impl RowFacts for TestStore {
    unknown_facts!(file, cut, metadata_rows, unkept, working_bytes);

    fn position(&self, row: usize) -> u64 {
        if self.backwards { u64::MAX - row as u64 } else { row as u64 }
    }
    fn grid(&self, _: usize) -> Option<[usize; 2]> {
        self.chunk.map(|chunk| [chunk[3], chunk[4]])
    }
}

/// Whether this process runs nothing but the test of this path. If not, the test is run so, in a process of its own: no
/// other test has threads there, and a signal ends it alone.
#[cfg(unix)]
pub fn is_alone(test: &str) -> bool {
    const ALONE: &str = "WELLREAD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    // A path that no test has runs none, which is no failure.
    assert!(output.status.success() && said.contains("1 passed"), "{:?}: {said}", output.status);
    false
}

/// Pixels that look random but are the same each time; floats are finite.
pub fn pixels(shape: Shape, dtype: PixelType, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(shape.pixels() * dtype.size());
    for _ in 0..shape.pixels() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match dtype {
            PixelType::F32 => out.extend(((state as i32) as f32 / 1e9).to_le_bytes()),
            PixelType::F64 => out.extend(((state as i32) as f64 / 1e9).to_le_bytes()),
            _ => out.extend(&state.to_le_bytes()[..dtype.size()]),
        }
    }
    out
}

/// `n` images of one shape and type, named `A_0`, `B_1`, `C_2`, `A_3` …
pub fn images(n: usize, shape: Shape, dtype: PixelType) -> MemoryStore {
    let mut store = MemoryStore::new("test-images");
    for i in 0..n {
        let group = ["A", "B", "C"][i % 3];
        store.push(format!("{group}_{i}"), shape, dtype, pixels(shape, dtype, i as u64 + 1)).unwrap();
    }
    store
}

/// The images of a store in a Parquet file of small pages and row groups, opened.
pub fn parquet(path: &Path, store: &MemoryStore, features: Option<arrow_array::RecordBatch>) -> Dataset {
    written(path, "parquet", store, &WriteOptions { features, ..WriteOptions::default() })
}

/// The images of a store in a set of any format, opened.
pub fn written(path: &Path, format: &str, store: &MemoryStore, options: &WriteOptions) -> Dataset {
    let mut writer = wellread_store::create(path, format, options).unwrap();
    for row in 0..store.len() {
        let (info, pixels) = wellread_store::read_image(store, row).unwrap();
        let metadata = store.metadata(row).unwrap();
        let RowInfo { shape, dtype } = info;
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
    }
    writer.finish().unwrap();
    Dataset::open(path).unwrap()
}

/// Shape, rows and pixels of a batch, to be compared bit by bit.
pub type Bits = (Vec<usize>, Vec<usize>, Vec<u32>);

/// See [`Bits`].
pub fn bits(batch: &wellread_loader::Batch) -> Bits {
    (batch.shape().to_vec(), batch.rows().to_vec(), batch.pixels().iter().map(|v| v.to_bits()).collect())
}
