//! The option `--layout` of `convert` has two meanings. Two of its names, which no layout of a source has, choose the
//! layout of the target. The others say how the source's files make images, and what of the source's layout is not converted.

use crate::commands::OpenArgs;
use wellread_store::{Store, registry};

/// The two ways of OME-Arrow in Parquet.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum LayoutArg {
    /// One table with a nested column.
    Nested,
    /// A folder of tables: images, chunks, index.
    Dataset,
}

/// The layout of the target, where `--layout` names one.
pub fn of_target(open: &OpenArgs) -> Option<LayoutArg> {
    match open.sites.layout.as_deref() {
        Some("nested") => Some(LayoutArg::Nested),
        Some("dataset") => Some(LayoutArg::Dataset),
        _ => None,
    }
}

/// How the source is opened.
pub fn of_source(open: &OpenArgs) -> OpenArgs {
    let mut open = open.clone();
    if of_target(&open).is_some() {
        open.sites.layout = None;
    }
    open
}

/// Settings of files about the look of their images, which are not converted.
pub fn display_settings_of(source: &dyn Store) -> Vec<String> {
    let has_display_settings =
        registry::formats().iter().any(|f| f.name == source.format() && f.has_display_settings);
    let layout = has_display_settings.then(|| source.layout().ok()).flatten();
    layout.map_or_else(Vec::new, |layout| layout.lost_display_settings())
}
