//! Figures as data, and their drawing as SVG and PNG.
//!
//! ```text
//!  Figure ─ Section "a" ─ Panel │ Panel │ Panel      small multiples that share rows (formats) or x values
//!         └ Section "b" ─ Panel │ Panel              each panel has its axis and one Mark per slot
//!     └──svg──▶ SVG text ──png──▶ pixels, with the embedded font
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `figure`, `sample` | figures as data; distributions as marks |
//! | `render`, `legend` | the layout of a figure; the legend of a section |
//! | `rows`, `lines`, `scatter` | the kinds of panels |
//! | `titles` | the lines above panels that stand side by side |
//! | `axis`, `marks` | values to pixels; how a single value looks |
//! | [`color`], `style`, `font` | colours of formats; distances and styles of text; how wide text is |
//! | `svg`, `output` | SVG; figures as files |
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
mod titles;

pub use figure::{Axis, Figure, Layout, Mark, Panel, Scale, Section, Series};
pub use sample::{Sample, Spread};
