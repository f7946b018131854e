//! Single-cell crops: a view of a set of images whose rows are cells, cut out of them by a table of positions.
//!
//! ```text
//!  TABLE (Parquet, CSV) ─┐ columns ─ positions: x, y of each cell ─┐
//!  label image ─ centroids ┘         keys: its image ──────────────┤
//!                                                                  ├─▶ Cells ─▶ CellsStore ─▶ Block … of cells
//!  images ─ names, columns, shapes, pixel sizes ───────────────────┘              │ one read of the inner store:
//!                                                                                 ▼ boxes of cells, joined by image
//!                                                                              inner Store
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `options` | [`CellOptions`]: size, columns, edge, unit, mask; the words of each choice |
//! | `table` | the table of cells, read from a file |
//! | `sqlite`, `sqlite_column` | databases of CellProfiler: objects with the columns of their images (feature `sqlite`) |
//! | `centroids`, `sums`, `pieces`, `classes` | a label image as a table of cells, by area and centroid of each label; binary masks and maps of classes, which are none |
//! | `components`, `labelled` | connected components; binary masks as label images of theirs |
//! | `positions` | which columns hold positions and labels, and their values in pixels |
//! | `cell_positions` | what a table says of each cell: image, position in pixels, number |
//! | `keys` | which image a cell is of |
//! | `telling`, `usable` | names of columns that tell images, and images by names; which columns of a table do, for hints |
//! | `unshared` | whether rows of one image are of one plate, well and site, as far as the table alone says |
//! | `pairs`, `folders`, `numbers`, `name_numbers` | which label image is of which image: by columns, names and their folders, by the numbers in names |
//! | `edge` | the box of a cell, and what of it lies outside of the image |
//! | `found` | [`CellsReport`]: what was left out, counted, with the first few |
//! | `mask_rows` | which label image is the mask of each image |
//! | `centres` | whether the numbers of cells are those of the labels at their positions |
//! | `join` | [`Cells`]: all of that for one table and one set |
//! | `identity` | which crops they are, in numbers, for what is kept of them |
//! | `own_pixels` | which pixels of a crop are the cell's |
//! | `cut` | boxes of many cells, read in one call, each piece decoded once |
//! | `store`, `hints`, `columns` | [`CellsStore`], how it is read best, and the columns beside its cells |
//!
//! A cell's box has the pixel that its centre lies in at index `size / 2`. Pixel `i` reaches from `i - 0.5` to `i + 0.5`, as
//! CellProfiler and scikit-image count. So the box of a cell starts at `floor(y + 0.5) - height / 2`.

mod cell_positions;
mod centres;
mod centroids;
mod classes;
mod columns;
mod components;
mod cut;
mod edge;
mod folders;
mod found;
mod hints;
mod identity;
mod join;
mod keys;
mod labelled;
mod mask_rows;
mod name_numbers;
mod numbers;
mod options;
mod own_pixels;
mod pairs;
mod pieces;
mod positions;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sqlite_column;
mod store;
mod sums;
mod table;
mod telling;
mod unshared;
mod usable;

pub use found::{CellsReport, CountedNames};
pub use join::{CellSource, Cells};
pub use numbers::{ByNumbers, by_numbers};
pub use options::{CellOptions, Edge, Mask, Unit, Unmatched};
pub use pairs::{agree_in_order, pair};
pub use store::CellsStore;
pub use table::file_and_table;
