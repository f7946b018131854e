//! The treatment of rows that cannot be read.

use std::fmt;
use wellread_store::Error;
use wellread_store::words::counted;

/// The treatment of a row that cannot be read, or does not fit the others in shape or type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Its batch comes as an error that names it. The iteration may go on with the next batch.
    #[default]
    Raise,
    /// It is left out: its batch is shorter by one image, and the others are as they would have been. A batch
    /// without any image left is not delivered. With several ranks, which must have equally many, it comes as an error that
    /// ends the iteration. [`Batches::skipped`](crate::Batches::skipped) tells which rows
    /// and why.
    ///
    /// An illumination field that cannot be read is no fault of an image: its error comes out.
    ///
    /// A store that is gone altogether ends the iteration, and its last error comes out. That is after 1,000
    /// images in a row that cannot be read, or an epoch without a single one that can. A process that takes turns with others
    /// and has none tries some of theirs.
    Skip,
}

/// Images of a batch that could not be read, where they are skipped: index in the batch, and why.
pub(crate) type Failed = Vec<(usize, Error)>;

/// Rows that an iteration has left out.
#[derive(Debug, Default)]
pub struct Skipped {
    count: usize,
    first: Vec<(usize, Error)>,
}

impl Skipped {
    /// Rows listed at most.
    pub const LISTED: usize = 1000;

    pub(crate) fn push(&mut self, row: usize, error: Error) {
        self.count += 1;
        if self.first.len() < Self::LISTED {
            self.first.push((row, error));
        }
    }

    /// How many images were left out.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The first [`Self::LISTED`] of them, in the order of the epoch: row and error.
    pub fn rows(&self) -> &[(usize, Error)] {
        &self.first
    }
}

impl fmt::Display for Skipped {
    /// `3 images skipped, the first: …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} skipped", counted(self.count, "image"))?;
        match self.first.first() {
            Some((_, error)) => write!(f, ", the first: {error}"),
            None => Ok(()),
        }
    }
}
