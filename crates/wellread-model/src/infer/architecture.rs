//! The definition of an architecture: images in, numbers out, and the network between them.

use super::network::Network;
use crate::{Error, Result};

/// A model that can be measured: its input, its output, its construction.
#[derive(Clone, Debug)]
pub struct Architecture {
    /// Name as in `--model`, which is torchvision's.
    pub name: &'static str,
    /// One line for help texts.
    pub about: &'static str,
    /// Channels, rows and columns of an image.
    pub input: [usize; 3],
    /// Numbers per image that come out.
    pub classes: usize,
    /// Builds the network for `input` and `classes`.
    pub build: fn(&Architecture) -> Result<Network>,
}

impl Architecture {
    /// The network.
    ///
    /// # Errors
    /// An `input` that the architecture cannot take.
    pub fn network(&self) -> Result<Network> {
        (self.build)(self)
    }

    /// The same architecture for images of `[channels, height, width]`.
    ///
    /// # Errors
    /// Images that it cannot take: other than three channels, too small or, for ViT, of another size.
    pub fn with_input(&self, input: [usize; 3]) -> Result<Self> {
        /// Rows or columns beyond which sizes of arrays could overflow.
        const MAX_SIDE: usize = 1 << 15;
        let [channels, height, width] = input;
        if channels != self.input[0] {
            return Err(Error::new(format_args!(
                "{} reads images of {} channels, not {channels}",
                self.name, self.input[0]
            )));
        }
        if height > MAX_SIDE || width > MAX_SIDE {
            return Err(Error::new(format_args!(
                "images of {height} x {width} pixels are too large: {MAX_SIDE} at most a side"
            )));
        }
        let changed = Self { input, ..self.clone() };
        changed.network()?;
        Ok(changed)
    }

    /// Floats per image.
    pub fn pixels(&self) -> usize {
        self.input.iter().product()
    }
}
