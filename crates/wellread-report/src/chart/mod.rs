//! Figures as data, and their drawing as SVG and PNG.
//!
//! ```text
//!  Figure ─ Section "a" ─ Panel │ Panel │ Panel      small multiples that share rows (formats) or x values
//!         └ Section "b" ─ Panel │ Panel              each panel has its axis and one Mark per slot
//!     └──svg──▶ SVG text ──png──▶ pixels, with the embedded font
//! ```
//!
//! A slot that could not be measured says why in its place ([`Mark::Unavailable`]). Layout measures every text
//! it sets: nothing overlaps or is clipped, whatever the names and magnitudes.

mod axis;
pub mod color;
mod figure;
mod font;
mod legend;
mod lines;
mod marks;
mod output;
mod render;
mod rows;
mod sample;
mod scatter;
mod style;
pub(crate) mod svg;

pub use figure::{Axis, Figure, Layout, Mark, Panel, Scale, Section, Series};
pub use sample::{Sample, Spread};
