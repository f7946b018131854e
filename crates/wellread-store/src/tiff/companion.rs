//! `*.companion.ome`: OME-XML in a file of its own, and which TIFF files it describes.
//!
//! ```text
//!  set.companion.ome ──read, parsed once──▶ Companion: images, the files that it names ──Companions──▶ the description of a file
//! ```
//!
//! Files may say themselves whose they are (`BinaryOnly/@MetadataFile`). Those that say nothing are found by their name in the
//! companion (`TiffData/UUID/@FileName`), as Bio-Formats finds them.

use super::ome::{Described, SharedDescription, beside, last_part, read_companion};
use crate::{Error, Result, place};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::ome_xml::{self, OmeImage, WellSample};

/// A companion.
#[derive(Debug)]
pub(crate) struct Companion {
    /// Where it lies.
    path: PathBuf,
    /// The images of its OME-XML.
    images: Vec<SharedDescription>,
    /// The files that it names, sorted.
    pub(crate) files: Vec<PathBuf>,
    /// How many images it describes, and the first file that it names, those that are left out among them. Names of images are made
    /// of these, so that no name depends on which images are there.
    pub(crate) count: usize,
    first: PathBuf,
    /// Where on a plate images were taken, by their IDs; none where it has no plate.
    wells: HashMap<String, WellSample>,
}

impl Companion {
    /// Reads a companion.
    ///
    /// # Errors
    /// A file that cannot be read, or is no OME-XML of images.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let xml = read_companion(path)?;
        let images = ome_xml::read(&xml).map_err(|e| {
            Error::new(path, e)
                .hint("repair it, or move it elsewhere: the TIFF files are then read without it")
        })?;
        let (count, wells) = (images.len(), wells_of(&xml, &images));
        let mut images: Vec<SharedDescription> = images.into_iter().map(SharedDescription::new).collect();
        for (number, image) in images.iter_mut().enumerate().filter(|_| count > 1) {
            if image.name().trim().is_empty() {
                image.call(number);
            }
        }
        let files = files_of(path, &images);
        let first = first_of(path, &images, &files);
        Ok(Self { path: path.to_owned(), images, files, count, first, wells })
    }

    /// Leaves out images of which a file is not there, and says which file each lacks.
    pub(crate) fn leave_out_incomplete(&mut self) -> Vec<String> {
        let is_absent = |file: &&PathBuf| !place::exists(file);
        let absent: HashSet<PathBuf> = self.files.iter().filter(is_absent).cloned().collect();
        let mut said = vec![];
        if absent.is_empty() {
            return said;
        }
        let Self { path, images, files, .. } = self;
        images.retain(|image| {
            let lacking = image.files().find(|name| absent.contains(&beside(path, name)));
            said.extend(lacking.map(|file| format!("{} has no {file}", image.name())));
            lacking.is_none()
        });
        *files = files_of(path, images);
        said
    }
}

/// Where on a plate the images were taken. Where two have one ID, nothing tells which of them a well means.
fn wells_of(xml: &str, images: &[OmeImage]) -> HashMap<String, WellSample> {
    let mut wells = ome_xml::well_samples(xml);
    if wells.is_empty() {
        return wells;
    }
    let mut images_of: HashMap<&str, usize> = HashMap::new();
    for image in images {
        *images_of.entry(image.metadata.id.as_str()).or_default() += 1;
    }
    wells.retain(|id, sample| {
        let images = images_of.get(id.as_str()).copied().unwrap_or(0);
        if images > 1 {
            *sample = WellSample::default();
        }
        images > 0
    });
    wells
}

/// The files that images of a companion name, each once, sorted.
fn files_of(path: &Path, images: &[SharedDescription]) -> Vec<PathBuf> {
    let named: BTreeSet<&str> = images.iter().flat_map(SharedDescription::files).collect();
    let files: BTreeSet<PathBuf> = named.into_iter().map(|name| beside(path, name)).collect();
    files.into_iter().collect()
}

/// The first file that images of a companion name, whether it is there or not. Their folders count where one of `files` is in a folder
/// below.
fn first_of(path: &Path, images: &[SharedDescription], files: &[PathBuf]) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let is_below = files.iter().any(|file| file.parent() != Some(folder));
    let at = |name: &str| folder.join(if is_below { name } else { last_part(name) });
    images.iter().flat_map(SharedDescription::files).map(at).min().unwrap_or_default()
}

/// The descriptions that companions have of files.
#[derive(Debug, Default)]
pub(super) struct Companions {
    of_files: HashMap<PathBuf, Arc<Companion>>,
    /// Whether one of them has a plate.
    pub(super) have_wells: bool,
}

impl Companions {
    /// Those of these companions; where several describe a file, the first counts.
    pub(super) fn new(companions: impl IntoIterator<Item = Companion>) -> Self {
        let mut all = Self::default();
        for companion in companions.into_iter().map(Arc::new) {
            all.have_wells |= !companion.wells.is_empty();
            for file in &companion.files {
                all.of_files.entry(file.clone()).or_insert_with(|| Arc::clone(&companion));
            }
        }
        all
    }

    /// Reads those at these paths.
    ///
    /// # Errors
    /// As [`Companion::read`].
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self> {
        let companions = paths.iter().map(|path| Companion::read(path)).collect::<Result<Vec<_>>>()?;
        Ok(Self::new(companions))
    }

    /// Whether none describes a file.
    pub(super) fn is_empty(&self) -> bool {
        self.of_files.is_empty()
    }

    /// The images of the companion that describes a file, where one does.
    pub(super) fn of(&self, file: &Path) -> Option<Described<'_>> {
        let Companion { path, images, count, first, .. } = self.of_files.get(file)?.as_ref();
        Some(Described { images, path, first, count: *count })
    }

    /// Where on a plate an image was taken: the one of this number, of the companion that describes a file.
    pub(super) fn well_of(&self, file: &Path, image: usize) -> Option<&WellSample> {
        let companion = self.of_files.get(file)?;
        companion.wells.get(companion.images.get(image)?.id())
    }
}
