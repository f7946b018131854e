//! From stored images to what a model takes: options of `wellread embed`.

use crate::commands::parse_crop;
use crate::output::{Failure, Outcome};
use std::path::PathBuf;
use std::str::FromStr;
use wellread_image::ImageMetadata;
use wellread_infer::source::{DEVIATION, MEAN};
use wellread_loader::{Normalize, Scale, Skipped, Transform};
use wellread_store::surface::option;
use wellread_store::words::counted;
use wellread_store::{Store, masks};

/// Steps that prepare images for the model, in this order.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct InputArgs {
    /// Take the maximum over depth, so that images have one plane per channel.
    #[arg(help_heading = "Images", long)]
    max_projection: bool,
    /// Channels to take, by number or by name, such as 0,1,1 or DNA,ER; by default all. Pictures have red, green and
    /// blue.
    #[arg(help_heading = "Images", long, value_name = "CHANNEL[,CHANNEL…]", value_delimiter = ',')]
    channels: Option<Vec<String>>,
    /// Take the centre, of this size, such as 64x96, or 64 for a square.
    #[arg(help_heading = "Images", long, value_name = "HxW", value_parser = parse_crop)]
    crop: Option<(usize, usize)>,
    /// Resize to this size, such as 64x96, or 64 for a square; shrinking takes averages.
    #[arg(help_heading = "Images", long, value_name = "HxW", value_parser = parse_crop)]
    resize: Option<(usize, usize)>,
    /// Scaling: unit, the default, maps the range of the pixel type to [0, 1]; floats keep their values. none keeps values, a number
    /// multiplies them.
    /// percentiles:LOW:HIGH, such as percentiles:1:99, maps these percentiles of each channel of each image to [0, 1].
    #[arg(help_heading = "Images", long, value_name = "SCALE")]
    scale: Option<ScaleArg>,
    /// Then normalise: imagenet takes the means and deviations of ImageNet (three channels), FILE those of `wellread
    /// stats --out`. Leave --scale out with FILE: its statistics are of stored values.
    #[arg(help_heading = "Images", long, value_name = "imagenet|FILE.json")]
    normalize: Option<PathBuf>,
}

/// How values are scaled.
#[derive(Clone, Debug, Default, PartialEq)]
enum ScaleArg {
    #[default]
    Unit,
    None,
    By(f32),
    Percentiles(f32, f32),
}

impl FromStr for ScaleArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = |text: &str| text.parse::<f32>().ok().filter(|p| (0.0..=100.0).contains(p));
        let unknown = || {
            format!(
                "{text:?} is no way to scale; write unit, none, a factor such as 0.001, or percentiles:1:99"
            )
        };
        match text {
            "unit" => Ok(Self::Unit),
            "none" => Ok(Self::None),
            _ => match text.strip_prefix("percentiles:").and_then(|rest| rest.split_once(':')) {
                Some((low, high)) => match (percent(low), percent(high)) {
                    (Some(low), Some(high)) if low < high => Ok(Self::Percentiles(low, high)),
                    _ => Err(unknown()),
                },
                None => match text.parse::<f32>() {
                    Ok(factor) if factor.is_finite() && factor != 0.0 => Ok(Self::By(factor)),
                    _ => Err(unknown()),
                },
            },
        }
    }
}

impl InputArgs {
    /// Whether channels are taken by number: those that are asked for by name, or normalised by a file, go by their names.
    pub fn takes_by_number(&self) -> bool {
        (self.channels.is_none() || self.numbers().is_some())
            && self.normalize.as_ref().is_none_or(|by| by.as_os_str() == "imagenet")
    }

    /// The channels that are asked for, where all are asked for by number.
    pub fn numbers(&self) -> Option<Vec<usize>> {
        self.channels.as_ref()?.iter().map(|text| text.trim().parse().ok()).collect()
    }

    /// The channels that are taken and scaled or normalised like stains, and are masks by their names.
    pub fn scaled_masks(&self, store: &dyn Store) -> Vec<String> {
        if self.scale == Some(ScaleArg::None) && self.normalize.is_none() {
            return vec![];
        }
        let is_taken = |(number, name): &(usize, String)| {
            let is_it = |text: &String| text.trim() == name || text.trim().parse::<usize>() == Ok(*number);
            self.channels.as_ref().is_none_or(|channels| channels.iter().any(is_it))
        };
        masks::channels(store).into_iter().filter(is_taken).map(|(_, name)| name).collect()
    }

    /// As the loader's transform, for the images of this set.
    ///
    /// # Errors
    /// Channels that the first image does not have; a file of statistics that cannot be read.
    pub fn transform(&self, store: &dyn Store) -> Outcome<Transform> {
        let mut transform = Transform::default();
        if self.max_projection {
            transform = transform.max_projection();
        }
        if let Some(channels) = &self.channels {
            transform = Self::chosen(transform, channels, store)?;
        }
        if let Some((height, width)) = self.crop {
            transform = transform.crop(height, width);
        }
        if let Some((height, width)) = self.resize {
            transform = transform.resize(height, width);
        }
        let is_of_stats = self.normalize.as_ref().is_some_and(|file| file.as_os_str() != "imagenet");
        if is_of_stats && !matches!(self.scale, None | Some(ScaleArg::None)) {
            return Err(Failure::Usage(format!(
                "{} FILE is for stored values; leave {} out",
                option("normalize"),
                option("scale")
            )));
        }
        transform = match self.scale.clone().unwrap_or_default() {
            // Statistics are of values as stored.
            ScaleArg::Unit if is_of_stats => transform,
            ScaleArg::Unit => transform.scale_to_unit(),
            ScaleArg::None => transform,
            ScaleArg::By(factor) => transform.scale(factor),
            ScaleArg::Percentiles(low, high) => transform.scale_with(Scale::Percentiles { low, high }),
        };
        match &self.normalize {
            None => Ok(transform),
            Some(name) if name.as_os_str() == "imagenet" => Ok(transform.normalize(MEAN, DEVIATION)),
            Some(file) => Ok(transform.normalize_with(Normalize::from_stats(file)?)),
        }
    }

    /// Takes these channels: by number where all are numbers, by name where all are names.
    fn chosen(transform: Transform, wanted: &[String], store: &dyn Store) -> Outcome<Transform> {
        let numbers: Option<Vec<usize>> = wanted.iter().map(|text| text.trim().parse().ok()).collect();
        if let Some(numbers) = numbers {
            // An image that cannot be looked into is for the loader to tell of.
            let count = store.row_info(0).map_or(usize::MAX, |info| info.shape.c());
            if numbers.iter().any(|&number| number >= count) {
                return Err(Failure::Usage(format!(
                    "--channels {}: the first image of {} has {}; numbers count from 0",
                    wanted.join(","),
                    store.path().display(),
                    counted(count, "channel")
                )));
            }
            return Ok(transform.channels(numbers));
        }
        let there = first_described(store)?.channels;
        let named: Option<Vec<(&str, usize)>> = wanted
            .iter()
            .map(|name| {
                let name = name.trim();
                Some((name, there.iter().position(|channel| channel.name == name)?))
            })
            .collect();
        named.map(|named| transform.named_channels(named)).ok_or_else(|| {
            let names: Vec<_> = there.iter().map(|channel| channel.name.as_str()).collect();
            let has = if names.is_empty() {
                "its channels have no names; give their numbers".to_owned()
            } else {
                format!("it has {}", names.join(", "))
            };
            Failure::Usage(format!(
                "--channels {}: {} has no such channels: {has}",
                wanted.join(","),
                store.path().display()
            ))
        })
    }
}

/// The description of the first image that can be looked into. The error of one that cannot is for the loader to tell
/// of: it may be left out.
///
/// # Errors
/// That of the first image, where there is no other or where a server does not answer.
fn first_described(store: &dyn Store) -> wellread_store::Result<ImageMetadata> {
    store.metadata(0).or_else(|error| {
        let tried = if error.is_of_link() { 0 } else { store.len().min(Skipped::LISTED) };
        (1..tried).find_map(|row| store.metadata(row).ok()).ok_or(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::{PixelType, Shape};
    use wellread_loader::MemoryStore;

    #[test]
    fn channels_have_names_although_the_first_picture_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let set = dir.path().join("set");
        let options = wellread_store::WriteOptions::default();
        let mut writer = wellread_store::create(&set, "image-folder", &options).unwrap();
        let shape = Shape([1, 3, 1, 8, 8]);
        for name in ["a", "b"] {
            let metadata = ImageMetadata::named(name);
            let pixels = vec![7; shape.pixels()];
            let dtype = PixelType::U8;
            writer
                .write(&wellread_store::ImageView { metadata: &metadata, shape, dtype, pixels: &pixels })
                .unwrap();
        }
        writer.finish().unwrap();
        let transform = |channel: &str| {
            let store = wellread_store::open(&set, &wellread_store::OpenOptions::default()).unwrap();
            let input = InputArgs { channels: Some(vec![channel.to_owned()]), ..InputArgs::default() };
            input.transform(&*store).map(|transform| format!("{transform:?}")).ok()
        };
        let whole = transform("Blue").unwrap();
        std::fs::write(set.join("a.png"), "no picture").unwrap();
        assert_eq!(transform("Blue"), Some(whole));
        assert_eq!(transform("Violet"), None);
    }

    #[test]
    fn ways_to_scale_are_told_apart() {
        let parse = str::parse::<ScaleArg>;
        assert_eq!(parse("unit"), Ok(ScaleArg::Unit));
        assert_eq!(parse("none"), Ok(ScaleArg::None));
        assert_eq!(parse("0.5"), Ok(ScaleArg::By(0.5)));
        assert_eq!(parse("percentiles:1:99.5"), Ok(ScaleArg::Percentiles(1.0, 99.5)));
        for wrong in ["percentiles:99:1", "percentiles:1", "0", "inf", "big"] {
            assert!(parse(wrong).unwrap_err().contains("percentiles:1:99"), "{wrong}");
        }
    }

    #[test]
    fn a_scale_that_is_asked_for_beside_statistics_is_refused() {
        let mut store = MemoryStore::new("set");
        store.push("a", Shape::plane(1, 1), PixelType::U8, vec![0]).unwrap();
        let refused = |scale: Option<ScaleArg>| {
            let input = InputArgs { scale, normalize: Some("no/stats.json".into()), ..InputArgs::default() };
            match input.transform(&store) {
                Err(Failure::Usage(why)) => Some(why),
                // The file of statistics is looked for.
                _ => None,
            }
        };
        let said =
            format!("{} FILE is for stored values; leave {} out", option("normalize"), option("scale"));
        assert_eq!(refused(Some(ScaleArg::Unit)), Some(said.clone()));
        assert_eq!(refused(Some(ScaleArg::By(0.5))), Some(said));
        assert_eq!(refused(None), None);
        // It says what is so anyway.
        assert_eq!(refused(Some(ScaleArg::None)), None);
    }
}
