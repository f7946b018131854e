//! Rows in the errors of a set that is read through another one.
//!
//! ```text
//!  set ── rows of the inner set ─▶ inner store ─▶ its error: row of the inner set ── outer ─▶ row of the set
//!   ▲                                  │ blocks
//!   └── error of the sink, as it is ◀──┴─ keep ─▶ sink
//! ```
//!
//! The consumer of the pixels counts in rows of the outer set, if at all: its errors pass through the inner store
//! unchanged.

use crate::{Block, Error, PixelSink, Result};
use wellread_image::Region;

/// The error of who takes pixels, kept apart from those of the store that delivers them.
#[derive(Debug, Default)]
pub(crate) struct ConsumerError(Option<Error>);

impl ConsumerError {
    /// Keeps an error; the inner store's own in its place is of no further use.
    pub fn keep(&mut self, taken: Result<()>) -> Result<()> {
        taken.map_err(|error| {
            let instead = Error::new(error.path(), error.cause());
            self.0.get_or_insert(error);
            instead
        })
    }

    /// The result of a read of the inner store. It is the error that was kept, or the store's with the row that `row_of`
    /// gives for its own.
    pub fn outer(self, read: Result<()>, row_of: impl FnOnce(usize) -> Option<usize>) -> Result<()> {
        match self.0 {
            Some(error) => Err(error),
            None => read.map_err(|error| error.of_outer_row(row_of)),
        }
    }
}

/// A sink whose errors are kept apart.
struct KeptSink<'a> {
    sink: &'a mut dyn PixelSink,
    error: ConsumerError,
}

impl PixelSink for KeptSink<'_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        self.error.keep(self.sink.put(request, block))
    }

    fn takes_parts(&self) -> bool {
        self.sink.takes_parts()
    }

    fn put_part(&mut self, request: usize, block: &Block<'_>, part: &Region, to: [usize; 2]) -> Result<()> {
        self.error.keep(self.sink.put_part(request, block, part, to))
    }

    fn mark_unmasked(&mut self, request: usize, unmasked: &Block<'_>) {
        self.sink.mark_unmasked(request, unmasked);
    }
}

/// Reads an inner store by `read`, whose errors then name rows by `row_of`; errors of `sink` stay as they are.
pub(crate) fn renumbered(
    sink: &mut dyn PixelSink,
    read: impl FnOnce(&mut dyn PixelSink) -> Result<()>,
    row_of: impl FnOnce(usize) -> Option<usize>,
) -> Result<()> {
    let mut kept = KeptSink { sink, error: ConsumerError::default() };
    let read = read(&mut kept);
    kept.error.outer(read, row_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::{PixelType, Region};

    /// Refuses all pixels, as of row 1.
    struct Refusing;

    impl PixelSink for Refusing {
        fn put(&mut self, _: usize, _: &Block<'_>) -> Result<()> {
            Err(Error::new("s", "reading was cancelled").row(1).hint("h").choice())
        }

        fn mark_unmasked(&mut self, _: usize, _: &Block<'_>) {}
    }

    #[test]
    fn errors_of_the_store_alone_are_renumbered() {
        let of_store = |_: &mut dyn PixelSink| Err(Error::new("f", "is damaged").row(1));
        let error = renumbered(&mut Refusing, of_store, |row| Some(row + 10)).unwrap_err();
        assert_eq!(error.to_string(), "f: row 11: is damaged");
        let through = |sink: &mut dyn PixelSink| {
            let region = Region { start: [0; 5], size: [1; 5] };
            let put = sink.put(0, &Block { region, data: &[0], dtype: PixelType::U8 });
            put.map_err(|error| error.row(7))
        };
        let error = renumbered(&mut Refusing, through, |row| Some(row + 10)).unwrap_err();
        assert_eq!(
            (error.to_string(), error.is_choice()),
            ("s: row 1: reading was cancelled (hint: h)".to_owned(), true)
        );
    }
}
