//! From images to parts: batches through the model, in the order of the set.
//!
//! ```text
//!  Loader ─▶ batch ─▶ Extractor ─▶ Features ─▶ PartWriter ─ whole ─▶ told by its number
//!              └ rows that cannot be read, or whose features are no numbers: left out, in the same part
//! ```

use super::extractor::Extractor;
use super::features::Features;
use super::options::EmbedOptions;
use super::outcome::Event;
use super::parts::PartWriter;
use super::ready::with_hint;
use crate::source::{Unreadable, reason};
use anyhow::{Result, anyhow, ensure};
use std::path::Path;
use wellread_loader::{Batch, Batches, Dataset, Loader};
use wellread_store::Error;

/// A run of images, in the order of the set.
pub(super) struct Work<'a> {
    pub options: &'a EmbedOptions,
    pub dataset: &'a Dataset,
    /// Where parts are written.
    pub folder: &'a Path,
    /// The function that is called after each part that is whole.
    pub whole: &'a dyn Fn(usize) -> Result<()>,
    /// The image behind the last one: that of the set, or of a part.
    pub end: usize,
    /// Images of a part, a multiple of the batch.
    pub part: usize,
    /// The first image that is neither in a part nor left out; the first one of a part when it begins.
    pub next: usize,
    pub tell: &'a dyn Fn(&Event<'_>),
}

impl Work<'_> {
    /// Does all from part `first` on.
    ///
    /// # Errors
    /// An image that cannot be read or whose features are no numbers, unless those are left out. The model's error. A
    /// disk that is full.
    pub fn all(
        &mut self,
        loader: &Loader,
        batch: usize,
        first: usize,
        extractor: &mut Extractor,
    ) -> Result<()> {
        let mut part = PartWriter::new(self.folder, &self.options.out, first);
        if self.next < self.end {
            let mut batches = loader.iter_at(0, self.next / batch);
            while let Some(found) = batches.next() {
                let found = found.map_err(|error| with_hint(error, self.options.skip))?;
                // The loader reads ahead, into what is another's part.
                if found.rows().first().is_some_and(|&first| first >= self.end) {
                    break;
                }
                part = self.take(&found, batch, part, &batches, extractor)?;
                if self.next >= self.end {
                    break;
                }
            }
            part = self.leave_out_until(self.end, &[], part, &batches)?;
        }
        self.advance(self.end.div_ceil(self.part), part).map(drop)
    }

    /// The features of a batch. Batches are whole in the order of the set, but for images that were left out.
    fn take(
        &mut self,
        found: &Batch,
        batch: usize,
        part: PartWriter,
        batches: &Batches,
        extractor: &mut Extractor,
    ) -> Result<PartWriter> {
        let rows = found.rows();
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else { return Ok(part) };
        ensure!(first >= self.next && last < self.end, "rows {first} to {last} come out of order");
        let features = extractor.features(found.pixels(), rows.len())?;
        self.options.layout.check(features.width)?;
        let end = ((first / batch + 1) * batch).min(self.end);
        let part = self.leave_out_until(first, &[], part, batches)?;
        let part = self.advance(first / self.part, part)?;
        let part = self.put(rows, &features, part)?;
        let part = self.leave_out_until(end, rows, part, batches)?;
        self.advance(end / self.part, part)
    }

    /// Writes features of images, of which those must be numbers.
    fn put(&self, rows: &[usize], features: &Features, mut part: PartWriter) -> Result<PartWriter> {
        let bad: Vec<(usize, usize, f32)> =
            if self.options.allow_nan { Vec::new() } else { features.not_finite().collect() };
        if bad.is_empty() {
            part.put(rows, features)?;
            return Ok(part);
        }
        for &(image, feature, value) in &bad {
            let row = rows[image];
            let name = self.dataset.name(row).unwrap_or_default();
            let reason = format!("feature {feature} that the model gave for it is {value}");
            if !self.options.skip {
                return Err(Error::new(
                    self.dataset.store().path(),
                    format_args!("image {name:?}: {reason}"),
                )
                .row(row)
                .hint("--allow-nan keeps such features, --on-error skip leaves the image out")
                .into());
            }
            part.leave_out(Unreadable { row, name, reason });
        }
        let kept: Vec<usize> = (0..rows.len()).filter(|image| bad.iter().all(|(b, ..)| b != image)).collect();
        if !kept.is_empty() {
            let rows: Vec<usize> = kept.iter().map(|&image| rows[image]).collect();
            part.put(&rows, &features.only(&kept))?;
        }
        Ok(part)
    }

    /// Notes that the images before `end` could not be read that are not among `rows`.
    ///
    /// # Errors
    /// As of [`reason_of`]; a part that cannot be written.
    fn leave_out_until(
        &mut self,
        end: usize,
        rows: &[usize],
        mut part: PartWriter,
        batches: &Batches,
    ) -> Result<PartWriter> {
        let from = self.next;
        for row in (from..end).filter(|row| !rows.contains(row)) {
            part = self.advance(row / self.part, part)?;
            let listed = batches.skipped().rows().iter().find(|(skipped, _)| *skipped == row);
            let reason = reason_of(self.dataset.store().path(), listed.map(|(_, error)| error))?;
            let name = self.dataset.name(row).unwrap_or_default();
            part.leave_out(Unreadable { row, name, reason });
        }
        self.next = self.next.max(end);
        (self.tell)(&Event::Images(end.saturating_sub(from)));
        Ok(part)
    }

    /// Finishes parts until `number` is the one that is written.
    fn advance(&self, number: usize, mut part: PartWriter) -> Result<PartWriter> {
        while part.number < number {
            let done = part.number;
            part.finish()?;
            (self.whole)(done)?;
            part = PartWriter::new(self.folder, &self.options.out, done + 1);
        }
        Ok(part)
    }
}

/// The reason why an image of the set at `set` is left out, by the error that is `listed` for it. Only the first ones of very
/// many are listed.
///
/// # Errors
/// A link or a server failed: the image may be as good as any other.
fn reason_of(set: &Path, listed: Option<&Error>) -> Result<String> {
    match listed {
        None => Ok("it cannot be read, as many before it".to_owned()),
        Some(error) if error.is_of_link() => Err(anyhow!("{error}")),
        Some(error) => Ok(reason(set, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use wellread_store::place::{File, Listing, Metadata, Place};

    /// A place where nothing is.
    #[derive(Debug)]
    struct Nothing;

    impl Place for Nothing {
        fn metadata(&self, _: &Path) -> io::Result<Metadata> {
            Err(io::ErrorKind::NotFound.into())
        }
        fn list(&self, _: &Path) -> io::Result<Listing> {
            Err(io::ErrorKind::NotFound.into())
        }
        fn open(&self, _: &Path) -> io::Result<(File, u64)> {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    static NOTHING: Nothing = Nothing;
    wellread_store::register_place!("nothing", NOTHING);

    #[test]
    fn an_image_is_not_left_out_for_a_server_that_fails() {
        let of = |path: &str, kind: io::ErrorKind| Error::io(path, "cannot read", &kind.into());
        let reason_of = |listed: Option<&Error>| reason_of(Path::new("set"), listed);
        let late = reason_of(Some(&of("nothing://b/a.tif", io::ErrorKind::TimedOut))).unwrap_err();
        assert!(late.to_string().starts_with("nothing://b/a.tif: cannot read: "), "{late}");
        for (path, kind) in
            [("nothing://b/a.tif", io::ErrorKind::InvalidData), ("set/a.tif", io::ErrorKind::TimedOut)]
        {
            assert!(reason_of(Some(&of(path, kind))).unwrap().contains("cannot read: "), "{path}");
        }
        // The row and the folder of the set stand before it.
        let cut = Error::new("set/a.tif", "is cut off").row(1).hint("copy it again");
        assert_eq!(reason_of(Some(&cut)).unwrap(), "a.tif: is cut off");
        assert_eq!(reason_of(None).unwrap(), "it cannot be read, as many before it");
    }
}
