//! A set and a model that is open: all that the features of its images take.
//!
//! ```text
//!  set ─▶ Dataset ─▶ Loader ─┐
//!  model ─ fits? ─ process ──┴─▶ Ready ─▶ features of any part; Described, for who puts parts together elsewhere
//! ```

use super::extractor::Extractor;
use super::fingerprint::{ModelRecord, fingerprint};
use super::model::Chosen;
use super::options::EmbedOptions;
use super::table::check_columns;
use crate::source::{PREFETCH_BATCHES, TO_PLANES, no_planes};
use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use wellread_loader::{Dataset, Loader, OnError};
use wellread_store::colors::Colors;
use wellread_store::surface::option;
use wellread_store::{Error, Store};

/// The opened set and model, in words that can be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// The sources of the table, in a line: parts of the same line belong to one table.
    pub made_of: String,
    /// Images of the set.
    pub images: usize,
    /// Images of a part.
    pub part: usize,
    /// The backend that runs the model, in words.
    pub backend: String,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// SHA-256 of the model's file, where it has one.
    pub sha256: Option<String>,
}

/// A set and a model that is open.
pub(super) struct Ready {
    pub dataset: Dataset,
    pub loader: Loader,
    pub extractor: Extractor,
    pub model: ModelRecord,
    pub notes: Vec<String>,
    /// Images of a batch.
    pub batch: usize,
    /// Images of a part, a multiple of the batch.
    pub part: usize,
    /// The sources of the table, in a line.
    pub made_of: String,
}

impl Ready {
    /// Opens the model for the images of a set.
    ///
    /// # Errors
    /// A model that cannot be opened or does not fit the images.
    pub fn open(dataset: Dataset, options: &EmbedOptions) -> Result<Self> {
        let mut chosen = Chosen::find(options)?;
        let batch = chosen.batch().unwrap_or_else(|| options.batch_size.min(dataset.len().max(1)));
        let loader = Loader::builder(&dataset)
            .batch_size(batch)
            .transform(options.transform.clone())
            .workers(options.workers)
            .prefetch(PREFETCH_BATCHES.max(options.workers))
            .on_error(if options.skip { OnError::Skip } else { OnError::Raise })
            .build()
            .map_err(|error| with_hint(error, options.skip))?;
        let input = planes(&dataset, &loader)?;
        chosen.fit(&dataset.store().path().display().to_string(), input)?;
        chosen.draw_weights(options)?;
        let extractor = Extractor::start(&chosen, input, options)?;
        let opened = extractor.opened()?;
        let notes = opened.notes.clone();
        let model = ModelRecord::new(options, chosen.file.as_deref(), opened)?;
        let part = options.part_rows.div_ceil(batch).saturating_mul(batch);
        let made_of = fingerprint(options, &model, [dataset.len(), batch, part], &opened.device_type);
        Ok(Self { dataset, loader, extractor, model, notes, batch, part, made_of })
    }

    /// The opened set and model.
    pub fn describe(&self) -> Described {
        Described {
            made_of: self.made_of.clone(),
            images: self.dataset.len(),
            part: self.part,
            backend: self.model.backend.clone(),
            notes: self.notes.clone(),
            sha256: self.model.sha256.clone(),
        }
    }
}

/// The images of a set, which has the columns that are asked for.
///
/// # Errors
/// It has not.
pub(super) fn dataset_of(store: Box<dyn Store>, options: &EmbedOptions) -> Result<Dataset> {
    // Among pictures, grey ones may lie among coloured ones.
    let store: Box<dyn Store> = if store.format() == "image-folder" && options.transform.channels.is_none() {
        Box::new(Colors::new(store))
    } else {
        store
    };
    if let Some(columns) = &options.columns {
        check_columns(&*store, &store.hints().feature_names(), columns)?;
    }
    Ok(Dataset::from_store(store))
}

/// Channels, rows and columns of the images that the loader delivers.
fn planes(dataset: &Dataset, loader: &Loader) -> Result<[usize; 3]> {
    let shape = loader.image_shape();
    let [t, c, z, y, x] = shape.0;
    if t != 1 || z != 1 {
        let hint = if t == 1 {
            format!("{} takes the maximum over depth", option("max_projection"))
        } else {
            TO_PLANES.to_owned()
        };
        return Err(no_planes(dataset.store().path(), &shape).hint(hint).into());
    }
    Ok([c, y, x])
}

/// The error of an image that cannot be read, with what else can be done. A wrong choice stays one, and says that itself.
pub(super) fn with_hint(error: Error, skip: bool) -> anyhow::Error {
    if skip || error.is_choice() || error.row_index().is_none() {
        return error.into();
    }
    anyhow!("{error}; --on-error skip leaves out images that cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its exit code is that of other commands.
    #[test]
    fn a_wrong_choice_about_an_image_stays_one() {
        let error = || Error::new("plate", "has no such level").row(1);
        let refused = with_hint(error().choice(), false);
        assert!(refused.downcast_ref::<Error>().is_some_and(Error::is_choice), "{refused}");
        assert!(with_hint(error(), false).to_string().contains("--on-error skip"));
    }
}
