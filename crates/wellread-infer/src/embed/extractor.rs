//! A model in its process, which is given batches and gives outputs.

use super::features::{Features, Pool};
use super::model::Chosen;
use super::options::EmbedOptions;
use crate::protocol::Opened;
use crate::runner::FrameworkRunner;
use crate::shared::Shared;
use anyhow::{Result, anyhow, ensure};

/// The model.
pub(super) struct Extractor {
    runner: FrameworkRunner,
    /// Channels, rows, columns.
    input: [usize; 3],
    /// Images of a batch, where the model takes no other number: shorter ones are filled up.
    fixed: Option<usize>,
    pool: Pool,
    /// Memory that is shared with the process, and images of the batch that it was made for.
    shared: Option<(usize, Shared)>,
    filled: Vec<f32>,
    /// Numbers that came out per image.
    outputs: Option<usize>,
}

impl Extractor {
    /// Starts the process.
    ///
    /// # Errors
    /// A model that cannot be opened there.
    pub fn start(chosen: &Chosen, input: [usize; 3], options: &EmbedOptions) -> Result<Self> {
        let runner = chosen.start(input, options)?;
        let (fixed, pool) = (chosen.batch(), options.pool);
        Ok(Self { runner, input, fixed, pool, shared: None, filled: Vec::new(), outputs: None })
    }

    /// The opened model.
    ///
    /// # Errors
    /// Nothing was, the last time that the process was started.
    pub fn opened(&self) -> Result<&Opened> {
        self.runner.opened.as_ref().map_err(|why| anyhow!("{why}"))
    }

    /// Features of `count` images, pixel after pixel as they are in a batch.
    ///
    /// # Errors
    /// The model's error. Outputs that are no features. An end of the process.
    pub fn features(&mut self, images: &[f32], count: usize) -> Result<Features> {
        let [c, h, w] = self.input;
        let pixels = c * h * w;
        ensure!(
            count > 0 && images.len() == count * pixels,
            "a batch of {count} images has {} numbers",
            images.len()
        );
        let batch = self.fixed.map_or(count, |fixed| fixed.max(count));
        let images = if batch == count {
            images
        } else {
            self.filled.clear();
            self.filled.extend_from_slice(images);
            for _ in count..batch {
                self.filled.extend_from_slice(&images[(count - 1) * pixels..]);
            }
            &self.filled
        };
        let kept = self.shared.take().filter(|(of, _)| *of == batch);
        let mut shared = if let Some((_, mut shared)) = kept {
            shared.put(images)?;
            self.runner.step()?;
            shared
        } else {
            let shared = Shared::new(images, batch, self.outputs)?;
            self.runner.prepare(&shared, [batch, c, h, w]).0?;
            shared
        };
        let (axes, values) = self.runner.outputs(&mut shared)?;
        self.shared = Some((batch, shared));
        self.outputs = Some(values.len() / batch);
        Features::of(&axes, values, (batch, count), self.pool)
    }
}
