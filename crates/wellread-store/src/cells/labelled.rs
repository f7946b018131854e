//! Binary masks seen as label images: the connected components of each are its labels.
//!
//! ```text
//!  masks ─ row, whole ─▶ components ─▶ labels of the image, the latest of them kept ─▶ Block
//! ```
//!
//! A component may reach beyond any region that is asked for, so that an image is read and labelled whole.

use super::components::labelled;
use crate::place::WantedRanges;
use crate::{
    Block, Error, Hints, PageCache, PixelSink, ReadExtent, Request, Result, RowCut, RowFacts, RowHints,
    RowInfo, Scratch, Store, check_request, default_answers, delegate_store, read_region, unknown_facts,
};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellread_image::PixelType;

/// Bytes of labels that are kept.
const KEPT: usize = 64 << 20;

/// Bytes for a pixel, from above, that the runs of an image take while it is labelled.
const RUNS: usize = 16;

/// A set of binary masks as label images of type uint32.
pub(super) struct LabelledMasks {
    masks: Arc<dyn Store>,
    kept: Mutex<Kept>,
}

/// Labels of whole images, those that were asked for last behind the others.
#[derive(Debug)]
struct Kept {
    images: VecDeque<(usize, Arc<Vec<u8>>)>,
    bytes: usize,
    most: usize,
}

impl Kept {
    fn get(&mut self, row: usize) -> Option<Arc<Vec<u8>>> {
        let at = self.images.iter().position(|(kept, _)| *kept == row)?;
        let found = self.images.remove(at)?;
        let labels = Arc::clone(&found.1);
        self.images.push_back(found);
        Some(labels)
    }

    fn put(&mut self, row: usize, labels: &Arc<Vec<u8>>) {
        // Another thread may have been as fast.
        if self.images.iter().all(|(kept, _)| *kept != row) {
            self.bytes += labels.len();
            self.images.push_back((row, Arc::clone(labels)));
        }
        self.keep_at_most(self.most);
    }

    fn keep_at_most(&mut self, most: usize) {
        self.most = most;
        while self.bytes > most {
            let Some((_, first)) = self.images.pop_front() else { return };
            self.bytes -= first.len();
        }
    }
}

impl LabelledMasks {
    pub fn new(masks: Arc<dyn Store>) -> Self {
        Self { masks, kept: Mutex::new(Kept { images: VecDeque::new(), bytes: 0, most: KEPT }) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The labels of a whole image.
    fn labels(&self, row: usize, scratch: &mut Scratch) -> Result<Arc<Vec<u8>>> {
        if let Some(labels) = self.kept().get(row) {
            return Ok(labels);
        }
        let info = self.masks.row_info(row)?;
        let mut pixels = vec![];
        read_region(&*self.masks, row, &info.shape.full(), scratch, &mut pixels)?;
        let labels = labelled(info.shape, info.dtype, &pixels);
        let labels = Arc::new(labels.map_err(|cause| Error::new(self.path(), cause).row(row))?);
        self.kept().put(row, &labels);
        Ok(labels)
    }

    /// Rows that are asked for, those that follow each other once.
    fn rows(requests: &[Request]) -> Vec<usize> {
        let mut rows: Vec<usize> = requests.iter().map(|request| request.row).collect();
        rows.dedup();
        rows
    }
}

impl Store for LabelledMasks {
    delegate_store!(self => self.masks; format, path, remote_path, len, name, metadata, layout, files, files_of, has_checksums);
    default_answers!(scan);

    fn check(&self, request: &Request) -> Result<RowInfo> {
        self.masks.check(request)?;
        self.row_info(request.row)
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        Ok(RowInfo { dtype: PixelType::U32, ..self.masks.row_info(row)? })
    }

    fn hints(&self) -> Hints<'_> {
        Hints { page_cache: Some(self), ..self.masks.hints() }
    }

    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        self.masks.row_hints(row)?;
        Ok(RowHints::new(self, row))
    }

    fn heads(&self, rows: &[usize], _: ReadExtent, wanted: &mut WantedRanges) {
        self.masks.heads(rows, ReadExtent::Whole, wanted);
    }

    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        let whole = Self::rows(requests).into_iter().map(|row| {
            let region = self.masks.row_info(row)?.shape.full();
            Ok(Request { row, region })
        });
        self.masks.ranges(&whole.collect::<Result<Vec<_>>>()?, wanted)
    }

    /// Each block is a whole image, of which sinks take what was asked for.
    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        let mut last: Option<(usize, Arc<Vec<u8>>)> = None;
        for (i, request) in requests.iter().enumerate() {
            let info = check_request(self, request)?;
            let labels = match last.take().filter(|(row, _)| *row == request.row) {
                Some((_, labels)) => labels,
                None => self.labels(request.row, scratch)?,
            };
            sink.put(i, &Block { region: info.shape.full(), data: labels.as_slice(), dtype: info.dtype })?;
            last = Some((request.row, labels));
        }
        Ok(())
    }
}

impl PageCache for LabelledMasks {
    fn max_bytes(&self) -> usize {
        self.masks.hints().page_cache_bytes().saturating_add(self.kept().most)
    }

    /// Labels before the pixels that they are of.
    fn keep_at_most(&self, bytes: usize) {
        let labels = KEPT.min(bytes);
        self.kept().keep_at_most(labels);
        self.masks.hints().limit_page_cache(bytes - labels);
    }

    fn forget_all(&self) {
        let mut kept = self.kept();
        kept.images.clear();
        kept.bytes = 0;
        drop(kept);
        self.masks.hints().forget_pages();
    }
}

impl RowFacts for LabelledMasks {
    // An image is labelled whole, whatever pieces its mask has.
    unknown_facts!(grid);

    fn position(&self, row: usize) -> u64 {
        self.masks.row_hints(row).map_or(u64::MAX, RowHints::position)
    }

    fn file(&self, row: usize) -> Option<PathBuf> {
        self.masks.row_hints(row).ok().and_then(RowHints::file)
    }

    fn cut(&self, row: usize) -> Option<RowCut> {
        self.masks.row_hints(row).ok().and_then(RowHints::cut)
    }

    fn metadata_rows(&self, row: usize) -> usize {
        self.masks.row_hints(row).map_or(1, RowHints::metadata_rows)
    }

    fn unkept(&self, row: usize) -> Vec<&'static str> {
        self.masks.row_hints(row).map_or_else(|_| vec![], RowHints::unkept)
    }

    fn working_bytes(&self, row: usize) -> Result<usize> {
        let info = self.row_info(row)?;
        let labels = info.shape.checked_bytes(info.dtype).unwrap_or(usize::MAX / 64);
        let runs = labels / info.dtype.size() * RUNS;
        // The mask itself has no more bytes than twice its labels.
        let own = labels.saturating_mul(3).saturating_add(runs);
        Ok(self.masks.row_hints(row)?.working_bytes()?.saturating_add(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use wellread_image::{ImageMetadata, Shape};

    /// Two masks that say something of everything, and of each row something else.
    struct Told;

    impl Store for Told {
        default_answers!(remote_path, name, layout, files, files_of, has_checksums, hints, row_hints);
        default_answers!(heads, ranges, scan, check);

        fn format(&self) -> &'static str {
            "told"
        }
        fn path(&self) -> &Path {
            Path::new("masks")
        }
        fn len(&self) -> usize {
            2
        }
        fn row_info(&self, _: usize) -> Result<RowInfo> {
            Ok(RowInfo { shape: Shape::plane(2, 3), dtype: PixelType::U8 })
        }
        fn metadata(&self, row: usize) -> Result<ImageMetadata> {
            Ok(ImageMetadata::named(format!("mask-{row}")))
        }
        fn read(&self, _: &[Request], _: &mut Scratch, _: &mut dyn PixelSink) -> Result<()> {
            Ok(())
        }
    }

    const CUT: RowCut = RowCut { start: [4, -5], whole: [60, 70] };

    impl RowFacts for Told {
        fn position(&self, row: usize) -> u64 {
            7 - row as u64
        }
        fn grid(&self, _: usize) -> Option<[usize; 2]> {
            Some([1, 2])
        }
        fn file(&self, row: usize) -> Option<PathBuf> {
            Some(PathBuf::from(format!("mask-{row}.tif")))
        }
        fn cut(&self, _: usize) -> Option<RowCut> {
            Some(CUT)
        }
        fn metadata_rows(&self, row: usize) -> usize {
            row + 2
        }
        fn unkept(&self, _: usize) -> Vec<&'static str> {
            vec!["filters"]
        }
        fn working_bytes(&self, _: usize) -> Result<usize> {
            Ok(100)
        }
    }

    #[test]
    fn labels_hand_on_the_facts_of_their_masks() {
        let labels = LabelledMasks::new(Arc::new(Told));
        let hints = labels.row_hints(1).unwrap();
        assert_eq!((hints.position(), hints.file()), (6, Some(PathBuf::from("mask-1.tif"))));
        assert_eq!((hints.cut(), hints.metadata_rows(), hints.unkept()), (Some(CUT), 3, vec!["filters"]));
        // Labelled whole: three times 24 bytes of labels, and runs of 16 bytes for each of six pixels.
        assert_eq!((hints.grid(), hints.working_bytes().unwrap()), (None, 100 + 3 * 24 + 6 * 16));
    }

    #[test]
    fn labels_that_were_asked_for_last_are_kept() {
        let mut kept = Kept { images: VecDeque::new(), bytes: 0, most: 20 };
        let labels = |row: u8| Arc::new(vec![row; 8]);
        kept.put(0, &labels(0));
        kept.put(1, &labels(1));
        kept.put(1, &labels(1));
        assert_eq!((kept.bytes, kept.get(0).map(|found| found[0])), (16, Some(0)));
        kept.put(2, &labels(2));
        assert!(kept.get(1).is_none() && kept.get(0).is_some() && kept.get(2).is_some());
        // One that is larger than all that may be kept.
        kept.put(3, &Arc::new(vec![0; 21]));
        assert_eq!((kept.bytes, kept.images.len()), (0, 0));
        kept.put(4, &labels(4));
        kept.keep_at_most(7);
        assert_eq!((kept.bytes, kept.images.len(), kept.most), (0, 0, 7));
    }
}
