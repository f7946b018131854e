//! Output that is whole and not yet at its place. A writer returns it, and its checker moves or discards it.
//!
//! ```text
//!  StoreWriter::complete_output ──▶ Finished ──path()──▶ read back, checked ──commit()──▶ at its place
//!                                                                         └──discard()─▶ gone
//! ```
//!
//! How output lies beside its place is [`crate::staged`]'s affair, and known here as an [`Output`].

use crate::process::ProcessOwned;
use crate::{Error, Result};
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// Output under a temporary name. Dropped, it goes or is kept as its owner has it.
pub trait Output: Debug + Send {
    /// Removes it, also where it could be gone on with.
    fn remove(&self);

    /// Keeps what is before image `row`, to be gone on with when this is dropped. False, and nothing is changed, where that cannot be.
    fn keep_before(&self, row: usize) -> bool;
}

/// Output with the way to its place.
trait Pending: Send {
    fn commit(self: Box<Self>) -> Result<()>;
    fn output(&self) -> &dyn Output;
}

struct WithCommit<O, C> {
    output: O,
    commit: C,
}

impl<O: Output, C: FnOnce(O) -> Result<()> + Send> Pending for WithCommit<O, C> {
    fn commit(self: Box<Self>) -> Result<()> {
        let Self { output, commit } = *self;
        commit(output)
    }

    fn output(&self) -> &dyn Output {
        &self.output
    }
}

/// Output that is whole and not yet at its place, so that it can be read before anybody takes it for done.
///
/// Dropped without [`Finished::commit`], it goes as a [`Staged`](crate::staged::Staged) does: a resumable one is kept. It is of the
/// process that wrote it: a forked one leaves it alone.
#[must_use = "it is not at its place before `commit`"]
pub struct Finished {
    path: PathBuf,
    pending: ProcessOwned<Box<dyn Pending>>,
}

impl Finished {
    /// The output at `path`, which `commit` moves to its place.
    pub fn new<O: Output + 'static>(
        output: O,
        path: PathBuf,
        commit: impl FnOnce(O) -> Result<()> + Send + 'static,
    ) -> Self {
        let pending: Box<dyn Pending> = Box::new(WithCommit { output, commit });
        Self { path, pending: ProcessOwned::new(pending) }
    }

    /// Where a reader finds it now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves it to its place.
    ///
    /// # Errors
    /// As [`Staged::commit`](crate::staged::Staged::commit); another process wrote it.
    pub fn commit(self) -> Result<()> {
        let Self { path, pending } = self;
        let Some(pending) = pending.take() else {
            return Err(Error::new(path, "was written by another process, from which this one was forked")
                .hint("complete it in that process"));
        };
        pending.commit()
    }

    /// Strikes out image `row` and all after it, so that a later run goes on with those before it once this is dropped. False, and
    /// nothing is changed, where that cannot be.
    pub fn keep_before(&self, row: usize) -> bool {
        self.pending.is_own() && self.pending.output().keep_before(row)
    }

    /// Removes it, also where it could be gone on with.
    pub fn discard(self) {
        if self.pending.is_own() {
            self.pending.output().remove();
        }
    }
}

impl Debug for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finished")
            .field("path", &self.path)
            .field("staged", &self.pending.output())
            .finish_non_exhaustive()
    }
}
