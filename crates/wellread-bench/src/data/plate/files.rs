//! The files of a generated plate.
//!
//! ```text
//!  images/PLATE__…-Measurement1/Images/r01c01f01p01-ch1sk1fk1fl1.tiff … Index.xml     harmony
//!  images/PLATE_A01_s1_w1.tif …                                                     imagexpress
//!  images/PLATE_A01_s1_DNA.tiff … load_data.csv                                     load-data
//!  images/PLATE.zarr/A/1/0 …                                                        hcs-zarr
//!  masks/r01c01f01_mask.tiff …
//! ```

use super::hcs;
use super::layout::PlateLayout;
use super::spec::PlateSpec;
use super::wells::Site;
use anyhow::{Result, bail};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use wellread_image::synthetic::{self, SyntheticImage};
use wellread_image::{ImageMetadata, PhysicalSize, PixelType, Shape};
use wellread_store::{Compression, Error, ImageView, WriteOptions, place, registry};

/// Folder of the images.
const IMAGES: &str = "images";
/// Folder of the label images.
pub(super) const MASKS: &str = "masks";
/// The table of files.
const LOAD_DATA: &str = "load_data.csv";
/// Versions of OME-Zarr, the one without a choice first.
const VERSIONS: [&str; 2] = ["0.5", "0.4"];

/// The files of a plate being written.
pub(super) struct Files<'s> {
    spec: &'s PlateSpec,
    /// Where all is written, and where it will be.
    folder: &'s Path,
    target: &'s Path,
    /// Folder of the images below that.
    images: PathBuf,
    /// Channels and pixel sizes of every image.
    about: ImageMetadata,
    options: WriteOptions,
    /// Whether label images, which no microscope writes, get checksums.
    mask_checksums: bool,
}

impl<'s> Files<'s> {
    /// Makes the folders in `folder`; errors speak of `target`.
    ///
    /// # Errors
    /// As the system says; a version that OME-Zarr does not have.
    pub fn begin(
        spec: &'s PlateSpec,
        folder: &'s Path,
        target: &'s Path,
        given: &WriteOptions,
    ) -> Result<Self> {
        let name = &spec.name;
        let images = PathBuf::from(match spec.layout {
            PlateLayout::Harmony => format!("{IMAGES}/{name}__2026-01-05T09_30_00-Measurement1/Images"),
            PlateLayout::ImageXpress | PlateLayout::LoadData => IMAGES.to_owned(),
            PlateLayout::HcsZarr => format!("{IMAGES}/{name}.zarr"),
        });
        // The metadata of a channel do not depend on the size of images.
        let small = synthetic::Spec { shape: Shape([1, spec.channels, 1, 1, 1]), ..spec.image() };
        let about = synthetic::image(&small, 0)?.metadata;
        let mut options = WriteOptions { jobs: 1, overwrite: false, ..given.clone() };
        if spec.layout == PlateLayout::HcsZarr {
            let version = options.variant.get_or_insert_with(|| VERSIONS[0].to_owned());
            if !VERSIONS.contains(&version.as_str()) {
                bail!("OME-Zarr {version:?} cannot be written; there are 0.4 and 0.5");
            }
        } else if options.variant.is_none() {
            // As microscopes write them: nothing but the plane, and no checksum, for which a strip must be read whole.
            options.variant = Some("bare".to_owned());
            options.checksums = false;
        }
        let mask_checksums = given.checksums;
        let files = Self { spec, folder, target, images, about, options, mask_checksums };
        let root = folder.join(&files.images);
        place::create_folder(&root).map_err(|e| files.cannot("make a folder", &e))?;
        if spec.masks {
            std::fs::create_dir(folder.join(MASKS)).map_err(|e| files.cannot("make a folder", &e))?;
        }
        if spec.layout == PlateLayout::HcsZarr {
            let version = files.options.variant.as_deref().unwrap_or(VERSIONS[0]);
            hcs::write_groups(&root, spec, version).map_err(|e| files.cannot("write the plate", &e))?;
        }
        Ok(files)
    }

    /// The path below the plate's folder that opens the images.
    pub fn opened(&self) -> PathBuf {
        match self.spec.layout {
            PlateLayout::Harmony | PlateLayout::ImageXpress => PathBuf::from(IMAGES),
            PlateLayout::LoadData => Path::new(IMAGES).join(LOAD_DATA),
            PlateLayout::HcsZarr => self.images.clone(),
        }
    }

    /// Writes the files of a site, and its label image. Several threads may, each another site.
    ///
    /// # Errors
    /// As the formats' writers say.
    pub fn write(&self, index: usize, site: Site, made: &SyntheticImage) -> Result<()> {
        // A writer looks for what killed ones left beside its target: in a folder of thousands of files that would take long.
        let scratch = self.folder.join(format!(".site-{index}"));
        std::fs::create_dir(&scratch).map_err(|e| self.cannot("make a folder", &e))?;
        let Self { spec, .. } = self;
        let [y, x] = spec.pixels;
        let root = self.folder.join(&self.images);
        if spec.layout == PlateLayout::HcsZarr {
            let mut metadata = made.metadata.clone();
            metadata.name = spec.layout.stem(&spec.name, site);
            let target = root.join(&metadata.name);
            let view = ImageView {
                metadata: &metadata,
                shape: spec.shape(),
                dtype: spec.dtype,
                pixels: &made.pixels,
            };
            self.put(&scratch.join("image.zarr"), "ome-zarr", &self.options, &view, &target)?;
        } else {
            let planes = made.pixels.chunks_exact((y * x * spec.dtype.size()).max(1));
            for (channel, pixels) in planes.enumerate() {
                let name = spec.layout.file(&spec.name, site, channel, &self.channel(channel));
                let metadata = ImageMetadata::named(name.rsplit_once('.').map_or(&*name, |(stem, _)| stem));
                let view =
                    ImageView { metadata: &metadata, shape: Shape::plane(y, x), dtype: spec.dtype, pixels };
                self.put(&scratch.join(&name), "tiff", &self.options, &view, &root.join(&name))?;
            }
        }
        if let (true, Some(mask)) = (spec.masks, &made.mask) {
            let bytes: Vec<u8> = mask.iter().flat_map(|label| label.to_le_bytes()).collect();
            let target = self.folder.join(MASKS).join(self.mask(site));
            if let Some(folder) = target.parent() {
                place::create_folder(folder).map_err(|e| self.cannot("make a folder", &e))?;
            }
            let options = WriteOptions {
                compression: Compression::Zstd(3),
                variant: Some("plain".to_owned()),
                checksums: self.mask_checksums,
                chunk: None,
                shard: None,
                ..self.options.clone()
            };
            let metadata = ImageMetadata::named(self.mask(site));
            let view = ImageView {
                metadata: &metadata,
                shape: Shape::plane(y, x),
                dtype: PixelType::U16,
                pixels: &bytes,
            };
            self.put(&scratch.join("mask.tiff"), "tiff", &options, &view, &target)?;
        }
        std::fs::remove_dir(&scratch).map_err(|e| self.cannot("remove a folder", &e))?;
        Ok(())
    }

    /// Writes an image to `scratch` and moves it to `target`.
    fn put(
        &self,
        scratch: &Path,
        format: &str,
        options: &WriteOptions,
        image: &ImageView<'_>,
        target: &Path,
    ) -> Result<()> {
        let mut writer = registry::create(scratch, format, options)?;
        writer.write(image)?;
        writer.finish()?;
        std::fs::rename(scratch, target).map_err(|e| self.cannot("move a file into place", &e).into())
    }

    /// Name of the label image of a site, which begins with the name of its image, or is it.
    fn mask(&self, site: Site) -> String {
        let PlateSpec { layout, name, channels, .. } = self.spec;
        let stem = layout.stem(name, site);
        match (layout, channels) {
            (PlateLayout::HcsZarr, _) => format!("{stem}.tiff"),
            // One file has nothing in common with others: such a site is called by its plate, well and number.
            (PlateLayout::LoadData, 1) => {
                format!("{name}/{}/{}.tiff", site.well.name(), layout.site_number(site.field))
            }
            _ => format!("{stem}_mask.tiff"),
        }
    }

    /// Writes what lies beside the images.
    ///
    /// # Errors
    /// As the system says.
    pub fn finish(&self) -> Result<()> {
        let (name, text) = match self.spec.layout {
            PlateLayout::Harmony => ("Index.xml", self.index()?),
            PlateLayout::LoadData => (LOAD_DATA, self.load_data()?),
            PlateLayout::ImageXpress | PlateLayout::HcsZarr => return Ok(()),
        };
        let path = self.folder.join(&self.images).join(name);
        std::fs::write(&path, text).map_err(|e| self.cannot("write a file", &e).into())
    }

    /// The name of a channel in names of files and columns.
    fn channel(&self, channel: usize) -> String {
        self.about.channels.get(channel).map_or_else(|| format!("C{channel}"), |c| c.name.replace(' ', ""))
    }

    /// `Index.xml` of Harmony: an entry for each file.
    fn index(&self) -> Result<String> {
        let PlateSpec { name, size, pixels: [height, width], .. } = self.spec;
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
        writeln!(
            xml,
            "<EvaluationInputData xmlns=\"http://www.perkinelmer.com/PEHH/HarmonyV5\" Version=\"1\">"
        )?;
        writeln!(
            xml,
            "<Plates><Plate><PlateID>{name}</PlateID><Name>{name}</Name><PlateRows>{}</PlateRows>\
             <PlateColumns>{}</PlateColumns></Plate></Plates>",
            size.rows(),
            size.columns()
        )?;
        writeln!(xml, "<Images Version=\"1\">")?;
        let metres = |size: Option<&PhysicalSize>| size.map_or(1.0, |size| size.value) * 1e-6;
        let x = metres(self.about.physical_size_x.as_ref());
        let y = metres(self.about.physical_size_y.as_ref());
        for index in 0..self.spec.sites() {
            let site = self.spec.site(index);
            let (row, column, field) = (site.well.row + 1, site.well.column + 1, site.field + 1);
            for (channel, about) in self.about.channels.iter().enumerate() {
                let nanometres = |um: Option<f64>| (um.unwrap_or(0.5) * 1000.0).round();
                let number = channel + 1;
                writeln!(
                    xml,
                    "<Image Version=\"1\"><id>{row:02}{column:02}K1F{field}P1R{number}</id><State>Ok</State>\
                     <URL>{}</URL><Row>{row}</Row><Col>{column}</Col><FieldID>{field}</FieldID><PlaneID>1</PlaneID>\
                     <TimepointID>1</TimepointID><ChannelID>{number}</ChannelID><FlimID>1</FlimID>\
                     <ChannelName>{}</ChannelName><ImageResolutionX Unit=\"m\">{x:E}</ImageResolutionX>\
                     <ImageResolutionY Unit=\"m\">{y:E}</ImageResolutionY><ImageSizeX>{width}</ImageSizeX>\
                     <ImageSizeY>{height}</ImageSizeY>\
                     <MainExcitationWavelength Unit=\"nm\">{}</MainExcitationWavelength>\
                     <MainEmissionWavelength Unit=\"nm\">{}</MainEmissionWavelength></Image>",
                    self.spec.layout.file(name, site, channel, ""),
                    about.name,
                    nanometres(about.excitation_um),
                    nanometres(about.emission_um)
                )?;
            }
        }
        xml.push_str("</Images>\n</EvaluationInputData>\n");
        Ok(xml)
    }

    /// `load_data.csv` of CellProfiler: a line for each site. Files lie beside it, so that it may be moved with them.
    fn load_data(&self) -> Result<String> {
        let spec = self.spec;
        let channels: Vec<String> = (0..spec.channels).map(|channel| self.channel(channel)).collect();
        let mut csv = String::new();
        for channel in &channels {
            write!(csv, "FileName_Orig{channel},PathName_Orig{channel},")?;
        }
        csv.push_str("Metadata_Plate,Metadata_Well,Metadata_Site,Metadata_Compound,Metadata_Dose\n");
        for index in 0..spec.sites() {
            let site = spec.site(index);
            for (number, channel) in channels.iter().enumerate() {
                write!(csv, "{},.,", spec.layout.file(&spec.name, site, number, channel))?;
            }
            let (well, treatment) = (site.well, site.well.treatment());
            let number = spec.layout.site_number(site.field);
            writeln!(
                csv,
                "{},{},{number},{},{}",
                spec.name,
                well.name(),
                treatment.compound,
                treatment.dose
            )?;
        }
        Ok(csv)
    }

    fn cannot(&self, what: &str, error: &std::io::Error) -> Error {
        Error::io(self.target, &format!("cannot {what}"), error)
    }
}
