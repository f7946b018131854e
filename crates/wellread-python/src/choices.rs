//! A loader's choices: the dictionary that the package makes of its arguments, and the builder's calls for it.

use crate::lent::LentMemory;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread::store::cells::CellOptions;
use wellread::store::features::key_of;
use wellread::{
    Crop, Dataset, Error, Field, Filter, GroupFields, Grouping, Jitter, LoaderBuilder, Noise, Normalize,
    OnError, Order, Output, Pairing, Resize, Result, RightAngles, Scale, TargetKind, Targets, Transform,
    Uneven,
};

/// All choices, each under its name. A choice that is `None` stays at the loader's default.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Choices {
    batch_size: usize,
    workers: usize,
    prefetch: Option<usize>,
    memory: Option<usize>,
    lent: Option<Py<LentMemory>>,
    seed: u64,
    epoch: u64,
    drop_last: bool,
    rank: usize,
    world_size: usize,
    uneven: String,
    /// Nodes that have a part of the set each, and epochs after which they get others.
    nodes: Option<usize>,
    reshard_every: u64,
    skip: bool,
    rows: Option<Vec<usize>>,
    crops_per_image: usize,
    dtype: String,
    order: OrderChoice,
    transform: TransformChoice,
    /// Views of each row by that transform, or one by each of the recipes.
    views: usize,
    recipes: Option<Vec<TransformChoice>>,
    targets: Option<TargetChoice>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TargetChoice {
    kind: String,
    channels: Option<Vec<usize>>,
    channel_names: Option<Vec<String>>,
    dtype: Option<String>,
    scale: Option<ScaleChoice>,
    pairing: Option<String>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct OrderChoice {
    kind: String,
    block_rows: usize,
    window: usize,
    prefix: Option<String>,
    columns: Option<Vec<String>>,
    keys: Option<Vec<Option<String>>>,
    weights: Option<Vec<f64>>,
    images: Option<usize>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TransformChoice {
    project: bool,
    channels: Option<Vec<usize>>,
    channel_names: Option<Vec<String>>,
    crop: Option<[usize; 2]>,
    /// Share of the shorter side.
    crop_square: Option<f32>,
    random_crop: Option<[usize; 2]>,
    /// Range of the area and of the proportion.
    random_resized: Option<([f32; 2], [f32; 2])>,
    illumination: Option<IlluminationChoice>,
    flip: [f32; 2],
    turns: String,
    resize: Option<[usize; 2]>,
    resize_filter: String,
    rotate: f32,
    scale: Option<ScaleChoice>,
    /// Brightness, contrast, gamma, and whether per channel.
    jitter: (f32, f32, f32, bool),
    /// Photon and Gaussian.
    noise: (f32, f32),
    normalize: Option<NormalizeChoice>,
    channel_dropout: f32,
}

/// Flat field and dark field.
#[derive(FromPyObject)]
enum IlluminationChoice {
    Of(PathBuf, Option<PathBuf>),
    /// The fields of each channel, by its name.
    Named(Vec<(String, (PathBuf, Option<PathBuf>))>),
}

#[derive(FromPyObject)]
enum ScaleChoice {
    By(f32),
    Unit(UnitScale),
    Range(Vec<f32>, Vec<f32>),
    /// `("percentiles", low, high)`.
    Percentiles(#[expect(dead_code, reason = "tells the tuples apart")] String, f32, f32),
}

/// The word "unit".
struct UnitScale;

impl FromPyObject<'_, '_> for UnitScale {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match object.extract::<String>()?.as_str() {
            "unit" => Ok(Self),
            _ => Err(pyo3::exceptions::PyValueError::new_err("the word is \"unit\"")),
        }
    }
}

#[derive(FromPyObject)]
enum NormalizeChoice {
    Given(Vec<f32>, Vec<f32>),
    /// `("stored", mean, std)`: in units of stored values.
    Stored(#[expect(dead_code, reason = "tells the tuples apart")] String, Vec<f32>, Vec<f32>),
    /// "image", or the file that `wellread stats --out` wrote.
    Named(PathBuf),
}

/// Whether a path is a pattern of illumination fields, and no file is called so.
fn is_pattern(path: &Path) -> bool {
    GroupFields::is_pattern(&path.to_string_lossy()) && !path.exists()
}

/// The value of a word among those that there are.
fn word<T: Clone>(choice: &str, given: &str, known: &[(&str, T)]) -> Result<T> {
    let found = known.iter().find(|(name, _)| *name == given).map(|(_, value)| value.clone());
    found.ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
        Error::new(choice, format_args!("{given:?} is not one of {}", names.join(", ")))
    })
}

impl Choices {
    /// Whether batches are in memory that Python lends.
    pub(crate) fn is_lent(&self) -> bool {
        self.lent.is_some()
    }

    /// The row that others are compared with.
    pub(crate) fn first_row(&self) -> usize {
        self.rows.as_ref().and_then(|rows| rows.first().copied()).unwrap_or(0)
    }

    /// Whether rows that cannot be read are left out.
    pub(crate) fn skips(&self) -> bool {
        self.skip
    }

    /// Makes the builder's calls. `targets` is the set that the choices of targets are about.
    pub(crate) fn apply(self, builder: LoaderBuilder, targets: Option<&Dataset>) -> Result<LoaderBuilder> {
        let uneven = [("pad", Uneven::Pad), ("drop", Uneven::DropLast)];
        let mut builder = builder
            .batch_size(self.batch_size)
            .workers(self.workers)
            .order(self.order.order()?)
            .seed(self.seed)
            .epoch(self.epoch)
            .drop_last(self.drop_last)
            .shard(self.rank, self.world_size, word("uneven", &self.uneven, &uneven)?)
            .on_error(if self.skip { OnError::Skip } else { OnError::Raise })
            .crops_per_image(self.crops_per_image)
            .output(self.dtype.parse::<Output>().map_err(|why| Error::new("dtype", why))?);
        let transform = self.transform.transform()?;
        builder = match self.recipes {
            None => builder.views(self.views),
            Some(recipes) => {
                // A field is for all views: it is read once.
                let (illumination, fields) = (&transform.illumination, &transform.fields);
                let of = |recipe: TransformChoice| -> Result<Transform> {
                    let (illumination, fields) = (illumination.clone(), fields.clone());
                    Ok(Transform { illumination, fields, ..recipe.transform()? })
                };
                builder.recipes(recipes.into_iter().map(of).collect::<Result<Vec<_>>>()?)
            }
        };
        builder = builder.transform(transform);
        if let Some((choice, set)) = self.targets.zip(targets) {
            builder = builder.targets(choice.targets(set)?);
        }
        if let Some(rows) = self.rows {
            builder = builder.rows(rows);
        }
        if let Some(nodes) = self.nodes {
            builder = builder.shard_local(nodes, self.reshard_every);
        }
        if let Some(prefetch) = self.prefetch {
            builder = builder.prefetch(prefetch);
        }
        if let Some(memory) = self.memory {
            builder = builder.memory(memory);
        }
        if let Some(lent) = self.lent {
            builder = builder.batch_memory(Arc::clone(&lent.get().0) as _);
        }
        Ok(builder)
    }
}

/// The choices of single-cell crops.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct CellChoice {
    x: Option<String>,
    y: Option<String>,
    size: [usize; 2],
    by: Vec<String>,
    edge: String,
    unit: String,
    unmatched: String,
    mask: String,
    masks: Option<PathBuf>,
    label_masks: bool,
    label: Option<String>,
}

impl CellChoice {
    pub(crate) fn options(self) -> Result<CellOptions> {
        /// A choice by its word; the package has looked that it is one.
        fn chosen<T: std::str::FromStr<Err = String>>(name: &str, text: &str) -> Result<T> {
            text.parse().map_err(|why| Error::new(name, why))
        }
        Ok(CellOptions {
            edge: chosen("edge", &self.edge)?,
            unit: chosen("unit", &self.unit)?,
            unmatched: chosen("unmatched", &self.unmatched)?,
            mask: chosen("mask", &self.mask)?,
            x: self.x,
            y: self.y,
            size: self.size,
            by: self.by,
            masks: self.masks,
            label_masks: self.label_masks,
            label: self.label,
        })
    }
}

/// The grouping of rows, where there is one: by columns, or by one key per row, which has the form of a column's.
pub(crate) fn grouping(columns: Option<Vec<String>>, keys: Option<Vec<Option<String>>>) -> Option<Grouping> {
    match (columns, keys) {
        (Some(columns), _) => Some(Grouping::columns(columns)),
        (None, Some(keys)) => Some(Grouping::keys(keys.into_iter().map(|key| key_of(&[key])))),
        (None, None) => None,
    }
}

impl OrderChoice {
    fn order(self) -> Result<Order> {
        let Self { prefix, columns, keys, images, .. } = self;
        let by = || {
            let prefix = || Grouping::name_prefix(prefix.unwrap_or_else(|| "_".to_owned()));
            grouping(columns, keys).unwrap_or_else(prefix)
        };
        Ok(match self.kind.as_str() {
            "sequential" => Order::Sequential,
            "shuffle" => Order::Random,
            "block" => Order::Block { rows: self.block_rows, window: self.window },
            "block-positions" => Order::Mixed { by: Grouping::Position, window: self.window },
            "block-groups" => Order::Mixed { by: by(), window: self.window },
            "grouped" => Order::Grouped(by()),
            "balanced" => Order::Balanced { by: by(), images },
            "weighted" => Order::Weighted { weights: self.weights.unwrap_or_default().into(), images },
            other => return Err(Error::new("order", format_args!("there is no order {other:?}"))),
        })
    }
}

impl ScaleChoice {
    fn scale(self) -> Scale {
        match self {
            Self::Unit(_) => Scale::Unit,
            Self::By(factor) => Scale::By(factor),
            Self::Range(low, high) => Scale::Range { low, high },
            Self::Percentiles(_, low, high) => Scale::Percentiles { low, high },
        }
    }
}

impl TargetChoice {
    fn targets(self, set: &Dataset) -> Result<Targets> {
        let kinds = [("labels", TargetKind::Labels), ("image", TargetKind::Image)];
        let mut targets = match word("target_kind", &self.kind, &kinds)? {
            TargetKind::Labels => Targets::labels(set),
            TargetKind::Image => Targets::image(set),
        };
        targets = match (self.channels, self.channel_names) {
            (Some(channels), Some(names)) => {
                targets.named_channels(names.iter().map(String::as_str).zip(channels))
            }
            (Some(channels), None) => targets.channels(channels),
            (None, _) => targets,
        };
        if let Some(dtype) = self.dtype {
            let output = dtype.parse::<Output>().map_err(|why| Error::new("target_dtype", why))?;
            targets = targets.output(output);
        }
        if let Some(pairing) = self.pairing {
            let known = [("order", Pairing::Order), ("names", Pairing::Names)];
            targets = targets.pairing(word("pairing", &pairing, &known)?);
        }
        Ok(targets.scale(self.scale.map_or(Scale::None, ScaleChoice::scale)))
    }
}

impl TransformChoice {
    fn transform(self) -> Result<Transform> {
        let turns = [
            ("none", RightAngles::None),
            ("half", RightAngles::HalfTurns),
            ("quarter", RightAngles::QuarterTurns),
            ("fitting", RightAngles::Fitting),
        ];
        let filters =
            [("area", Filter::Area), ("bilinear", Filter::Bilinear), ("antialias", Filter::Antialias)];
        let filter = word("resize_filter", &self.resize_filter, &filters)?;
        let crop = match (self.random_resized, self.random_crop, self.crop, self.crop_square) {
            (Some((scale, ratio)), ..) => Crop::RandomResized { scale, ratio },
            (None, Some([height, width]), ..) => Crop::Random { height, width },
            (None, None, Some([height, width]), _) => Crop::Center { height, width },
            (None, None, None, Some(share)) => Crop::CenterSquare { share },
            (None, None, None, None) => Crop::None,
        };
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let (illumination, fields) = match self.illumination {
            None => (None, None),
            Some(IlluminationChoice::Named(channels)) => {
                let channels =
                    channels.into_iter().map(|(name, (flat, dark))| (name, text(flat), dark.map(text)));
                (None, Some(GroupFields::by_name(channels)))
            }
            Some(IlluminationChoice::Of(flat, dark))
                if is_pattern(&flat) || dark.as_deref().is_some_and(is_pattern) =>
            {
                (None, Some(GroupFields::new(text(flat), dark.map(text))))
            }
            Some(IlluminationChoice::Of(flat, dark)) => {
                (Some(Arc::new(Field::open(flat, dark.as_deref())?)), None)
            }
        };
        let fields = fields.transpose();
        let fields = fields.map_err(|e| Error::new("illumination", e.cause).hint(e.hint))?.map(Arc::new);
        let (brightness, contrast, gamma, per_channel) = self.jitter;
        let (photon, gaussian) = self.noise;
        Ok(Transform {
            project: self.project,
            channels: self.channels,
            channel_names: self.channel_names.map(Into::into),
            crop,
            illumination,
            fields,
            flip_horizontal: self.flip[0],
            flip_vertical: self.flip[1],
            right_angles: word("turns", &self.turns, &turns)?,
            resize: self.resize.map(|[height, width]| Resize { height, width, filter }),
            max_degrees: self.rotate,
            scale: self.scale.map_or(Scale::None, ScaleChoice::scale),
            jitter: Jitter { brightness, contrast, gamma, per_channel },
            noise: Noise { photon, gaussian },
            normalize: match self.normalize {
                None => None,
                Some(NormalizeChoice::Given(mean, std)) => Some(Normalize::Given { mean, std }),
                Some(NormalizeChoice::Stored(_, mean, std)) => Some(Normalize::Stored { mean, std }),
                Some(NormalizeChoice::Named(name)) if name.as_os_str() == "image" => {
                    Some(Normalize::PerImage)
                }
                Some(NormalizeChoice::Named(path)) => Some(Normalize::from_stats(path)?),
            },
            channel_dropout: self.channel_dropout,
            // As the set says.
            is_last_mask: false,
            is_cut: false,
            statistics_names: None,
        })
    }
}
