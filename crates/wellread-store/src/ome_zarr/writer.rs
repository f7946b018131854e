//! Writing: one group per image, in a folder or alone, staged until complete.
//!
//! With several jobs, and behind a network, images are compressed and written by several threads ([`crate::image_writers`]).

use super::consolidated::{Collected, Texts};
use super::encode::{Compressor, Encoder, check_view, failed};
use super::layout::image_name;
use super::series::{NewSeries, is_target, write_columns};
use super::write_metadata::{Chunking, DATASET, Version, files};
use crate::finished::Finished;
use crate::format::holds_one;
use crate::image_writers::{ImageWriters, WriteImage};
use crate::set_names::{Listing, SetNames, moved};
use crate::staged::Staged;
use crate::{Error, ImageView, Result, StoreWriter, WriteOptions, place};
use arrow_array::RecordBatch;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::{ImageMetadata, PixelType, Region, Shape};

/// Planes up to this many bytes are one chunk by default: one read, one decompression.
const WHOLE_PLANE: usize = 4 << 20;
/// Larger planes are cut into equal tiles of at most this many pixels a side.
const TILE: usize = 1024;
/// Most chunks a shard may have: its index (16 bytes each) is built in memory.
const MAX_SHARD_CHUNKS: usize = 1 << 20;

/// Writes OME-Zarr images.
pub(super) struct OmeZarrWriter {
    /// Before the staged folder, so that they end before it is removed.
    writers: ImageWriters<GroupWriter>,
    staged: Option<Staged>,
    target: PathBuf,
    /// The target is one image group, not a folder of them.
    single: bool,
    /// Where it is a group of several.
    series: Option<NewSeries>,
    /// Columns beside the images of a folder, or in the group of one image.
    beside: Option<RecordBatch>,
    names: SetNames,
    /// Images given so far.
    count: usize,
    settings: WriteSettings,
}

/// How images are written, the same for all of a set.
#[derive(Debug, Clone)]
struct WriteSettings {
    version: Version,
    compressor: Compressor,
    checksums: bool,
    chunk: Option<[usize; 5]>,
    shard: Option<[usize; 5]>,
    /// The collector of the metadata of each image, where one file is to have those of all.
    collected: Option<Arc<Collected>>,
}

/// Writes one image as a group.
struct GroupWriter {
    settings: WriteSettings,
    encoder: Encoder,
    /// Named in errors.
    target: PathBuf,
}

impl WriteImage for GroupWriter {
    fn write(&mut self, row: usize, image: &ImageView<'_>, path: &Path) -> Result<()> {
        self.settings.write(row, image, path, &mut self.encoder, &self.target)
    }
}

impl OmeZarrWriter {
    /// Starts a new set at `path`: if the name ends in `.zarr` one image group, or a series of several where that is known. Else
    /// it is a folder of groups. Columns of one image are in its group, so that other readers find the image where they expect it.
    ///
    /// # Errors
    /// An existing target (without `overwrite`), or options that OME-Zarr does not have.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        let wrong = |cause: String| Error::new(path, cause).choice();
        let version = match options.variant.as_deref() {
            None | Some("0.5") => Version::V05,
            Some("0.4") => Version::V04,
            Some(other) => {
                return Err(wrong(format!("OME-Zarr {other:?} cannot be written; there are 0.4 and 0.5")));
            }
        };
        if options.shard.is_some() && version == Version::V04 {
            return Err(wrong("OME-Zarr 0.4 has no shards".to_owned()).hint("write variant 0.5"));
        }
        for sizes in [options.chunk, options.shard].into_iter().flatten() {
            if sizes.contains(&0) {
                return Err(wrong(format!("a chunk or shard of {} is empty", Shape(sizes)))
                    .hint("give five positive numbers T,C,Z,Y,X"));
            }
        }
        let compressor = Compressor::new(options.compression).map_err(wrong)?;
        let (checksums, chunk, shard) = (options.checksums, options.chunk, options.shard);
        let columns = options.features.clone();
        let images = columns.as_ref().map_or(options.images, RecordBatch::num_rows);
        let is_series = is_target(path) && images > 1;
        let single = is_target(path) && !is_series;
        let (series, beside) =
            if is_series { (Some(NewSeries::new(columns)), None) } else { (None, columns) };
        let collected = series.as_ref().map(NewSeries::collected);
        let settings = WriteSettings { version, compressor, checksums, chunk, shard, collected };
        let staged = Staged::folder(path, options, single)?;
        staged.create_dir()?;
        let (of_thread, target) = (settings.clone(), path.to_owned());
        let writers = ImageWriters::new(&staged, options.jobs, options.memory, move || {
            let (settings, target) = (of_thread.clone(), target.clone());
            let encoder = settings.encoder().map_err(failed(&target))?;
            Ok(GroupWriter { settings, encoder, target })
        });
        let names = SetNames::new(Listing { ending: ".zarr", sorts_ending: true, name_of: image_name });
        let (staged, target) = (Some(staged), path.to_owned());
        Ok(Self { writers, staged, target, single, series, beside, names, count: 0, settings })
    }

    fn staged(&self) -> Result<&Staged> {
        self.staged.as_ref().ok_or_else(|| Error::new(&self.target, "the writer is finished"))
    }
}

impl StoreWriter for OmeZarrWriter {
    fn write(&mut self, image: &ImageView<'_>) -> Result<()> {
        let row = self.count;
        let folder = self.staged()?.path().to_owned();
        // An image that is refused here is none of the set.
        check_view(&self.target, image).map_err(|e| e.row(row))?;
        let dir = if self.single {
            if row > 0 {
                return Err(holds_one(&self.target, ".zarr", "ome-zarr"));
            }
            folder
        } else if let Some(series) = &mut self.series {
            folder.join(series.next(&image.metadata.name))
        } else {
            let name = &image.metadata.name;
            self.names.next(&folder, "", name, name).map_err(|e| e.row(row))?
        };
        self.count += 1;
        self.writers.write(row, image, dir)
    }

    fn complete(&self) -> usize {
        self.staged.as_ref().map_or(0, Staged::complete)
    }

    fn skip(&mut self, metadata: &ImageMetadata) -> Result<()> {
        let folder = self.staged()?.path().to_owned();
        self.count += 1;
        if let Some(series) = &mut self.series {
            series.next(&metadata.name);
            return Ok(());
        }
        self.names.next(&folder, "", &metadata.name, &metadata.name).map(drop)
    }

    fn adopt(&mut self, metadata: &ImageMetadata, from: &Path) -> Result<()> {
        if self.single {
            return Err(holds_one(&self.target, ".zarr", "ome-zarr"));
        }
        let folder = self.staged()?.path().to_owned();
        let to = match &mut self.series {
            Some(series) => folder.join(series.next(&metadata.name)),
            None => self.names.next(&folder, "", &metadata.name, &metadata.name)?,
        };
        moved(from, &to, &self.target)?;
        let row = self.count;
        self.count += 1;
        self.staged()?.completed(row)
    }

    fn complete_output(mut self: Box<Self>) -> Result<Finished> {
        self.writers.join()?;
        if self.count == 0 {
            return Err(Error::new(&self.target, "there is no image to write"));
        }
        let Some(staged) = self.staged.take() else {
            return Err(Error::new(&self.target, "was completed before"));
        };
        if let Some(series) = &self.series {
            series.finish(staged.path(), self.settings.version, &self.target)?;
        }
        if let Some(columns) = &self.beside {
            let (below, groups) = if self.single { (None, vec![String::new()]) } else { self.names.files() };
            let folder = below.map_or_else(|| staged.path().to_owned(), |below| staged.path().join(below));
            write_columns(&folder, groups, columns, &self.target)?;
        }
        let is_one = self.single || self.series.is_some();
        if is_one { Ok(staged.finished()) } else { self.names.finish(staged) }
    }
}

impl WriteSettings {
    fn encoder(&self) -> std::result::Result<Encoder, String> {
        Encoder::new(self.compressor, self.version == Version::V04, self.checksums)
    }

    /// Writes image `row` as a group into `dir`; errors speak of `target`.
    fn write(
        &self,
        row: usize,
        image: &ImageView<'_>,
        dir: &Path,
        encoder: &mut Encoder,
        target: &Path,
    ) -> Result<()> {
        let chunking = self.chunking(image, target)?;
        let array = dir.join(DATASET);
        make_dir(&array, target)?;
        let metadata = files(self.version, image, &chunking, self.compressor, self.checksums);
        let texts: Texts = metadata.into_iter().map(|(name, value)| (name, value.to_string())).collect();
        for (name, text) in &texts {
            write_file(&dir.join(name), text.as_bytes(), target)?;
        }
        if let Some(collected) = &self.collected {
            collected.add(row, &texts);
        }
        let piece = chunking.shard.unwrap_or(chunking.chunk);
        let counts: [usize; 5] = std::array::from_fn(|a| image.shape.0[a].div_ceil(piece[a]));
        let mut shard = vec![];
        let mut made = PathBuf::new();
        for number in 0..counts.iter().product() {
            let mut at = [0; 5];
            let mut rest: usize = number;
            for a in (0..5).rev() {
                at[a] = rest % counts[a];
                rest /= counts[a];
            }
            let [t, c, z, y, x] = at;
            let folder = match self.version {
                Version::V04 => array.join(format!("{t}/{c}/{z}/{y}")),
                Version::V05 => array.join(format!("c/{t}/{c}/{z}/{y}")),
            };
            if folder != made {
                make_dir(&folder, target)?;
                made.clone_from(&folder);
            }
            let region = Region { start: std::array::from_fn(|a| at[a] * piece[a]), size: piece };
            let bytes = if chunking.shard.is_some() {
                encoder.encode_shard(image, &region, &chunking.chunk, &mut shard).map_err(failed(target))?;
                &shard
            } else {
                encoder.encode(image, &region).map_err(failed(target))?
            };
            write_file(&folder.join(x.to_string()), bytes, target)?;
        }
        Ok(())
    }

    fn chunking(&self, image: &ImageView<'_>, target: &Path) -> Result<Chunking> {
        let shape = image.shape.0;
        let chunk = match self.chunk {
            Some(chunk) => std::array::from_fn(|a| chunk[a].min(shape[a])),
            None => default_chunk(image.shape, image.dtype),
        };
        let Some(shard) = self.shard else { return Ok(Chunking { chunk, shard: None }) };
        // A shard as large as an axis may stand for the whole axis: it is rounded up to whole chunks.
        let shard: [usize; 5] = std::array::from_fn(|a| {
            if shard[a] >= shape[a] { shape[a].div_ceil(chunk[a]) * chunk[a] } else { shard[a] }
        });
        let whole = (0..5).all(|a| shard[a].is_multiple_of(chunk[a]));
        let chunks: usize = (0..5).map(|a| shard[a] / chunk[a]).product();
        if !whole || chunks > MAX_SHARD_CHUNKS {
            return Err(Error::new(
                target,
                format_args!(
                    "a shard of {} cannot be made of whole chunks of {} (at most {MAX_SHARD_CHUNKS})",
                    Shape(shard),
                    Shape(chunk)
                ),
            )
            .choice()
            .hint("choose a shard whose sides are multiples of the chunk's"));
        }
        Ok(Chunking { chunk, shard: Some(shard) })
    }
}

/// One plane, or equal tiles of it when it is large.
fn default_chunk(shape: Shape, dtype: PixelType) -> [usize; 5] {
    let [_, _, _, y, x] = shape.0;
    if y.saturating_mul(x).saturating_mul(dtype.size()) <= WHOLE_PLANE {
        return [1, 1, 1, y, x];
    }
    let side = |n: usize| n.div_ceil(n.div_ceil(TILE));
    [1, 1, 1, side(y), side(x)]
}

fn make_dir(dir: &Path, target: &Path) -> Result<()> {
    place::create_folder(dir).map_err(|e| Error::io(target, "cannot make a folder in it", &e))
}

fn write_file(file: &Path, bytes: &[u8], target: &Path) -> Result<()> {
    place::write(file, bytes).map_err(|e| Error::io(target, "cannot write", &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_chunks_are_planes_or_equal_tiles() {
        let chunk = |y, x| default_chunk(Shape([2, 3, 4, y, x]), PixelType::U16);
        assert_eq!(chunk(1080, 1080), [1, 1, 1, 1080, 1080]);
        assert_eq!(chunk(2160, 2560), [1, 1, 1, 720, 854]);
        assert_eq!(chunk(1, 10_000_000), [1, 1, 1, 1, 1024]);
    }
}
