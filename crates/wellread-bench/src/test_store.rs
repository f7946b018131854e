//! A set in memory for tests that says what files it has and how long a read takes. There is a place for tests that has a link.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_loader::MemoryStore;
use wellread_store::place::{self, File, FileRange, Link, LinkAbout, Listing, Metadata, Place};
use wellread_store::{
    Hints, ImageView, PageCache, PixelSink, Request, Result, Scratch, Store, WriteOptions, create,
    default_answers, delegate_store,
};

/// Images in memory.
pub(crate) struct TestStore {
    /// The images.
    pub inner: MemoryStore,
    /// The file of a row, where there is one for each.
    pub path_of: Option<fn(usize) -> PathBuf>,
    /// How long reading an image takes, whatever else the machine does: it sleeps.
    pub each: Duration,
    /// The decoded pixels that it says it keeps.
    pub pages: Option<&'static dyn PageCache>,
}

impl TestStore {
    /// So many squares of `side` pixels, each filled with its number, without files; a read takes no time.
    pub fn squares(images: u8, side: usize) -> Result<Self> {
        let mut inner = MemoryStore::new("set");
        for i in 0..images {
            inner.push(format!("{i}"), Shape::plane(side, side), PixelType::U8, vec![i; side * side])?;
        }
        Ok(Self { inner, path_of: None, each: Duration::ZERO, pages: None })
    }
}

impl Store for TestStore {
    delegate_store!(self => self.inner; path, remote_path, len, row_info, name, metadata);
    delegate_store!(self => self.inner; layout, has_checksums, row_hints, heads, ranges, check);
    default_answers!(scan);

    fn format(&self) -> &'static str {
        "test"
    }
    fn hints(&self) -> Hints<'_> {
        Hints { page_cache: self.pages, ..self.inner.hints() }
    }
    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.path_of.map_or(vec![], |path_of| (0..self.len()).map(path_of).collect()))
    }
    fn files_of(&self, rows: &[usize]) -> Result<Vec<PathBuf>> {
        Ok(self.path_of.map_or(vec![], |path_of| rows.iter().copied().map(path_of).collect()))
    }
    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        if !self.each.is_zero() {
            std::thread::sleep(self.each * requests.len() as u32);
        }
        self.inner.read(requests, scratch, sink)
    }
}

/// Decoded pixels that a store says it keeps, 1 MiB at most. How often they were forgotten is counted.
pub(crate) struct Pages(AtomicUsize);

impl Pages {
    /// Never forgotten so far.
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// How often they were forgotten.
    pub(crate) fn forgotten(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl PageCache for Pages {
    fn max_bytes(&self) -> usize {
        1 << 20
    }

    fn keep_at_most(&self, _: usize) {}

    fn forget_all(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The scheme of addresses of this machine's files as if they lay behind a link.
const SCHEME: &str = "wellread-linked";
/// The server at the other end of the link, and how long it takes for any answer.
pub(crate) const ENDPOINT: &str = "https://linked";
pub(crate) const LATENCY: Duration = Duration::from_millis(1);

/// The place of such addresses.
#[derive(Debug)]
struct Linked;

static LINKED: Linked = Linked;
wellread_store::register_place!("wellread-linked", LINKED);

/// A table in `folder`, `load_data.csv`, of images behind the link; and the folder of these images on this machine.
pub(crate) fn linked(folder: &Path, images: usize) -> [PathBuf; 2] {
    let (table, here) = (folder.join("load_data.csv"), folder.join("images"));
    let plain = WriteOptions { variant: Some("plain".into()), ..WriteOptions::default() };
    let mut writer = create(&here, "tiff", &plain).unwrap();
    let shape = Shape::plane(8, 8);
    for row in 0..images {
        let metadata = ImageMetadata::named(format!("image-{row:02}"));
        let pixels = vec![row as u8; shape.pixels()];
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels })
            .unwrap();
    }
    writer.finish().unwrap();
    let is_image =
        |path: &PathBuf| path.extension().is_some_and(|ending| ending == "tif" || ending == "tiff");
    let entries = std::fs::read_dir(&here).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(is_image).collect();
    files.sort();
    assert_eq!(files.len(), images);
    let mut text = "FileName_OrigDNA,PathName_OrigDNA,Metadata_Well\n".to_owned();
    for (row, file) in files.iter().enumerate() {
        let name = file.file_name().unwrap().to_string_lossy();
        writeln!(text, "{name},{SCHEME}://{},A{:02}", here.display(), row + 1).unwrap();
    }
    std::fs::write(&table, text).unwrap();
    [table, here]
}

fn local(path: &Path) -> &Path {
    let inside = path.to_str().and_then(|text| text.strip_prefix(SCHEME)?.strip_prefix("://"));
    inside.map_or(path, Path::new)
}

/// An error for what the link does not lead to.
fn check(path: &Path) -> io::Result<()> {
    if place::scheme(path) == Some(SCHEME) {
        return Ok(());
    }
    Err(io::Error::other(format!("{} does not lie behind the link", path.display())))
}

impl Place for Linked {
    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        place::metadata(local(path))
    }

    fn list(&self, folder: &Path) -> io::Result<Listing> {
        place::list(local(folder))
    }

    fn open(&self, path: &Path) -> io::Result<(File, u64)> {
        place::open(local(path))
    }

    fn link(&self) -> Option<&dyn Link> {
        Some(self)
    }
}

impl Link for Linked {
    fn about(&self, path: &Path) -> io::Result<LinkAbout> {
        check(path)?;
        Ok(LinkAbout {
            endpoint: ENDPOINT.to_owned(),
            region: None,
            credentials: "none".to_owned(),
            in_flight: 8,
        })
    }

    fn fetch(&self, ranges: &[FileRange], _: usize) -> io::Result<Duration> {
        ranges.iter().try_for_each(|one| check(&one.path))?;
        Ok(LATENCY)
    }
}
