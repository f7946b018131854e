//! From `TiffData` blocks to the page of each plane.
//!
//! The blocks say "from plane (t, c, z) on, n planes lie in pages i, i+1, …". [`PlaneMap`] keeps them as
//! runs over the plane's index in dimension order, so its memory is bounded by the XML. That holds
//! however many planes a (perhaps hostile) header declares.

use super::{OmeImage, OmeXmlError, TiffData};
use crate::Shape;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// In which order the planes of an image follow each other; the fastest axis after X and Y comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DimensionOrder {
    /// Z fastest, then C, then T: what most writers choose.
    Xyzct,
    /// Z fastest, then T, then C.
    Xyztc,
    /// C fastest, then Z, then T: ImageJ's order.
    Xyczt,
    /// C fastest, then T, then Z.
    Xyctz,
    /// T fastest, then Z, then C.
    Xytzc,
    /// T fastest, then C, then Z.
    Xytcz,
}

impl DimensionOrder {
    /// All six.
    pub const ALL: [Self; 6] = [Self::Xyzct, Self::Xyztc, Self::Xyczt, Self::Xyctz, Self::Xytzc, Self::Xytcz];

    /// The name in OME-XML, such as `XYZCT`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xyzct => "XYZCT",
            Self::Xyztc => "XYZTC",
            Self::Xyczt => "XYCZT",
            Self::Xyctz => "XYCTZ",
            Self::Xytzc => "XYTZC",
            Self::Xytcz => "XYTCZ",
        }
    }

    /// Positions in a shape (0 = T, 1 = C, 2 = Z), fastest first.
    const fn axes(self) -> [usize; 3] {
        match self {
            Self::Xyzct => [2, 1, 0],
            Self::Xyztc => [2, 0, 1],
            Self::Xyczt => [1, 2, 0],
            Self::Xyctz => [1, 0, 2],
            Self::Xytzc => [0, 2, 1],
            Self::Xytcz => [0, 1, 2],
        }
    }

    /// Index of plane (t, c, z) among the planes of an image of `shape`; the inverse of [`Self::plane_position`].
    pub const fn plane_index(self, t: usize, c: usize, z: usize, shape: Shape) -> usize {
        let [fast, middle, slow] = self.axes();
        let at = [t, c, z];
        at[fast] + shape.0[fast] * (at[middle] + shape.0[middle] * at[slow])
    }

    /// (t, c, z) of the plane with this index; the inverse of [`Self::plane_index`].
    pub const fn plane_position(self, index: usize, shape: Shape) -> (usize, usize, usize) {
        let [fast, middle, slow] = self.axes();
        let mut at = [0; 3];
        at[fast] = index % shape.0[fast];
        at[middle] = index / shape.0[fast] % shape.0[middle];
        at[slow] = index / shape.0[fast] / shape.0[middle];
        (at[0], at[1], at[2])
    }
}

impl fmt::Display for DimensionOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no dimension order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown dimension order; known: XYZCT, XYZTC, XYCZT, XYCTZ, XYTZC, XYTCZ")]
pub struct UnknownOrder;

impl FromStr for DimensionOrder {
    type Err = UnknownOrder;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|o| o.name().eq_ignore_ascii_case(text.trim())).ok_or(UnknownOrder)
    }
}

/// Where the pixels of one plane lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneSource<'a> {
    /// The file, relative to the one that holds the XML; `None`: that one itself.
    pub file: Option<&'a str>,
    /// Page (top-level IFD) in that file, counting from 0.
    pub ifd: usize,
    /// Which sample of the page's pixels; 0 unless several channels share a page.
    pub sample: usize,
}

/// `len` planes from the key's index on, in pages from `ifd` on.
#[derive(Clone, Copy, Debug)]
struct Run {
    len: usize,
    ifd: usize,
    /// Index into `PlaneMap::files`.
    file: Option<usize>,
}

/// The page of every plane of one image. Made by [`OmeImage::ifd_of_planes`].
#[derive(Clone, Debug)]
pub struct PlaneMap {
    order: DimensionOrder,
    /// The image's shape, but with one C index for each `Channel` element instead of each sample.
    pages: Shape,
    /// For every index of the image's C axis: channel element, and sample within it.
    channel_of_c: Vec<(usize, usize)>,
    /// Runs by first plane index; they do not overlap.
    runs: BTreeMap<usize, Run>,
    files: Vec<String>,
}

impl PlaneMap {
    /// The place of plane (t, c, z) of the image. `None` if the file holds no such plane, as happens when an
    /// acquisition was stopped early, or if the position is outside of the image.
    pub fn source(&self, t: usize, c: usize, z: usize) -> Option<PlaneSource<'_>> {
        let &(channel, sample) = self.channel_of_c.get(c)?;
        if t >= self.pages.t() || z >= self.pages.z() {
            return None;
        }
        let index = self.order.plane_index(t, channel, z, self.pages);
        let (&start, run) = self.runs.range(..=index).next_back()?;
        let offset = index - start;
        (offset < run.len).then(|| PlaneSource {
            file: run.file.map(|f| self.files[f].as_str()),
            ifd: run.ifd.saturating_add(offset),
            sample,
        })
    }

    /// (t, c, z) of the first plane, in dimension order, that lies in no page; `None` when all are there.
    pub fn first_missing(&self) -> Option<(usize, usize, usize)> {
        let mut next = 0;
        for (&start, run) in &self.runs {
            if start > next {
                break;
            }
            next = start + run.len;
        }
        (next < self.pages.planes()).then(|| {
            let (t, channel, z) = self.order.plane_position(next, self.pages);
            let c = self.channel_of_c.iter().position(|&(e, _)| e == channel).unwrap_or(channel);
            (t, c, z)
        })
    }

    /// The other files that hold planes, in order of appearance.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Replaces whatever `start..start + run.len` held: as in other readers, the last block wins.
    fn assign(&mut self, start: usize, run: Run) {
        let end = start + run.len;
        let overlapped: Vec<usize> = self
            .runs
            .range(..end)
            .rev()
            .take_while(|&(&s, old)| s + old.len > start)
            .map(|(&s, _)| s)
            .collect();
        for old_start in overlapped {
            let Some(old) = self.runs.remove(&old_start) else { continue };
            if old_start < start {
                self.runs.insert(old_start, Run { len: start - old_start, ..old });
            }
            let old_end = old_start + old.len;
            if old_end > end {
                let ifd = old.ifd.saturating_add(end - old_start);
                self.runs.insert(end, Run { len: old_end - end, ifd, ..old });
            }
        }
        self.runs.insert(start, run);
    }

    /// Number of unassigned planes from `start` on.
    fn gap(&self, start: usize) -> usize {
        if let Some((&s, run)) = self.runs.range(..=start).next_back()
            && s + run.len > start
        {
            return 0;
        }
        let end = self.runs.range(start..).next().map_or(self.pages.planes(), |(&s, _)| s);
        end - start
    }
}

impl OmeImage {
    /// Resolves the `TiffData` blocks by the rules of the OME-TIFF specification.
    ///
    /// No block at all counts as one without attributes. Absent `First*` and `IFD` are 0. An absent
    /// `PlaneCount` is 1 where `IFD` is given, and otherwise the number of pages of the block's file.
    /// `pages_of` gives that number, called with `None` for this file, else with the name. Its answer `None`
    /// means unknown: then the block ends where the next one begins. A block's UUID that equals the file's
    /// own, or a block without UUID, means this file. Positions counted from 1 (some writers) are recognised
    /// by exceeding the axis.
    ///
    /// # Errors
    /// [`OmeXmlError::Plane`], naming the attribute: a position outside the image, or a block that points to
    /// another file without naming it.
    pub fn ifd_of_planes(
        &self,
        pages_of: impl Fn(Option<&str>) -> Option<usize>,
    ) -> Result<PlaneMap, OmeXmlError> {
        let [t, _, z, y, x] = self.shape.0;
        let mut map = PlaneMap {
            order: self.dimension_order,
            pages: Shape([t, self.samples_per_pixel.len(), z, y, x]),
            channel_of_c: (self.samples_per_pixel.iter().enumerate())
                .flat_map(|(channel, &samples)| (0..samples.min(self.shape.c())).map(move |s| (channel, s)))
                .take(self.shape.c())
                .collect(),
            runs: BTreeMap::new(),
            files: Vec::new(),
        };
        if self.without_pages {
            return Ok(map);
        }
        let implied = [TiffData::default()];
        let blocks = if self.planes.is_empty() { &implied[..] } else { &self.planes[..] };
        let base = OneBased::of(blocks, map.pages);
        let mut file_index = BTreeMap::new();
        let mut open = Vec::new();
        for block in blocks {
            let start = base.plane_of(block, &map)?;
            let file = self.file_of(block)?.map(|name| {
                *file_index.entry(name).or_insert_with(|| {
                    map.files.push(name.to_owned());
                    map.files.len() - 1
                })
            });
            let ifd = block.ifd.unwrap_or(0);
            // Writers that mean "all" put 0.
            let count = block.plane_count.filter(|&n| n > 0).or(block.ifd.map(|_| 1));
            match count {
                Some(n) => {
                    let len = n.min(map.pages.planes() - start);
                    map.assign(start, Run { len, ifd, file });
                }
                None => open.push((start, ifd, file)),
            }
        }
        // Blocks without an end give way to those that name their planes, and to each other's beginnings.
        let mut starts: Vec<usize> = open.iter().map(|&(start, ..)| start).collect();
        starts.sort_unstable();
        for &(start, ifd, file) in open.iter().rev() {
            let pages = pages_of(file.map(|f| map.files[f].as_str()));
            let mut len = map.gap(start);
            if let Some(n) = pages {
                len = len.min(n.saturating_sub(ifd));
            } else if let Some(&next) = starts.get(starts.partition_point(|&s| s <= start)) {
                len = len.min(next - start);
            }
            if len > 0 {
                map.assign(start, Run { len, ifd, file });
            }
        }
        Ok(map)
    }

    /// The other file that a block points to; `None`: this one.
    fn file_of<'a>(&self, block: &'a TiffData) -> Result<Option<&'a str>, OmeXmlError> {
        let own = |uuid: &str| self.file_uuid.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(uuid));
        match (&block.uuid, &block.file_name) {
            (Some(uuid), _) if own(uuid) => Ok(None),
            (_, Some(name)) if !name.is_empty() => Ok(Some(name)),
            (Some(uuid), _) if self.file_uuid.is_some() => Err(OmeXmlError::Plane {
                attribute: "TiffData/UUID/@FileName",
                value: String::new(),
                cause: format!("the pages are in another file ({uuid}), whose name is not given"),
            }),
            _ => Ok(None),
        }
    }
}

/// Whether the blocks of an image count T, C and Z from 1 instead of 0.
struct OneBased(bool);

impl OneBased {
    fn firsts(block: &TiffData) -> [usize; 3] {
        [block.first_t, block.first_c, block.first_z]
    }

    fn of(blocks: &[TiffData], pages: Shape) -> Self {
        let no_zero = blocks.iter().all(|b| Self::firsts(b).iter().all(|&n| n >= 1));
        let beyond = blocks.iter().any(|b| Self::firsts(b).iter().zip(pages.0).any(|(&n, len)| n == len));
        Self(no_zero && beyond)
    }

    /// Index of the block's first plane, once that is known to lie inside the image.
    fn plane_of(&self, block: &TiffData, map: &PlaneMap) -> Result<usize, OmeXmlError> {
        let first = Self::firsts(block);
        let mut at = [0; 3];
        for axis in 0..3 {
            at[axis] = first[axis] - usize::from(self.0);
            let length = map.pages.0[axis];
            if at[axis] >= length {
                return Err(OmeXmlError::Plane {
                    attribute: ["TiffData/@FirstT", "TiffData/@FirstC", "TiffData/@FirstZ"][axis],
                    value: first[axis].to_string(),
                    cause: format!("the image has only {length} along this axis"),
                });
            }
        }
        Ok(map.order.plane_index(at[0], at[1], at[2], map.pages))
    }
}
