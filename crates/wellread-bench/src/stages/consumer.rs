//! The consumer of the batches: nothing, a stand-in that takes its time, or a model.

use crate::core::words::number;
use crate::feed::simulate_step;
use crate::model_loop::{model_shape, trained};
use anyhow::{Context as _, Result};
use wellread_loader::Batch;
use wellread_model::{Model, ModelOptions};

/// The work of the loop on a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Consumer {
    /// Nothing: the loader alone.
    Nothing,
    /// Takes so many seconds, as a model on a device of its own would.
    StandIn(f64),
    /// Trains a model of this program on the processor.
    Model(String),
}

/// A consumer with what it needs.
pub(super) enum Step {
    Nothing,
    StandIn(f64),
    Model { name: String, seed: u64, model: Option<Box<dyn Model>> },
}

impl Step {
    /// Before its first batch.
    pub fn new(consumer: &Consumer, seed: u64) -> Self {
        match consumer {
            Consumer::Nothing => Self::Nothing,
            Consumer::StandIn(seconds) => Self::StandIn(*seconds),
            Consumer::Model(name) => Self::Model { name: name.clone(), seed, model: None },
        }
    }

    /// Takes a batch.
    ///
    /// # Errors
    /// A batch that does not fit the model; a model that fails.
    pub fn run(&mut self, batch: &Batch) -> Result<()> {
        match self {
            Self::Nothing => {
                std::hint::black_box(batch.pixels().last());
            }
            Self::StandIn(seconds) => simulate_step(*seconds),
            Self::Model { name, seed, model } => {
                let shape = model_shape(batch.shape())?;
                if model.is_none() {
                    let options =
                        ModelOptions { seed: *seed, in_channels: shape[1], ..ModelOptions::default() };
                    *model = Some(wellread_model::create(name, &options).context("the model")?);
                }
                if let Some(model) = model {
                    trained(&mut **model, batch.pixels(), shape, batch.rows())?;
                }
            }
        }
        Ok(())
    }

    /// In words.
    pub fn about(&self) -> String {
        match self {
            Self::Nothing => "none: the loader alone".to_owned(),
            Self::StandIn(seconds) => format!("a stand-in of {} ms", number(1e3 * seconds)),
            Self::Model { name, model, .. } => {
                let backend = model.as_ref().map_or("", |model| model.backend());
                format!("{name}, training ({backend})")
            }
        }
    }
}
