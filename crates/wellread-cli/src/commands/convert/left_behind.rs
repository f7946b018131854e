//! The facts of a source that `convert` says before it begins: what is in no target, and what may be taken for something else.
//!
//! ```text
//!  source ──▶ labels, settings of display, metadata, zeros of missing files ──▶ a note each, and a field of the result
//!         └─▶ channels that differ, a mask that is added ──▶ a note each
//! ```

use super::features::Note;
use super::layouts::display_settings_of;
use wellread_store::labels::{self, Labels};
use wellread_store::words::{counted, counted_with};
use wellread_store::{Missing, SiteTable, Store, mixed_channels, registry, unkept};

/// Parts of a source that no conversion keeps.
pub(super) struct LeftBehind {
    /// Label images beside the images.
    pub labels: Option<Labels>,
    /// Settings about the look of images, in sentences.
    pub display_settings: Vec<String>,
    /// Metadata for which there is no place.
    pub metadata: Vec<&'static str>,
    /// Planes that are written as 0, since their files are not there, and how many images these are of.
    pub zeros: [usize; 2],
}

impl LeftBehind {
    /// That of a source, every row of which was looked into before: that is what it tells of.
    pub fn of(source: &dyn Store, missing: Missing) -> Self {
        let sites = source.hints().sites.filter(|_| missing == Missing::Zero).map(SiteTable::summary);
        Self {
            zeros: sites.map_or([0; 2], |sites| [sites.planes_missing, sites.incomplete]),
            labels: labels::beside(source),
            display_settings: display_settings_of(source),
            metadata: unkept::of_first_images(source),
        }
    }

    /// A note on each.
    pub fn notes(&self, source: &dyn Store) -> Vec<Note> {
        let mut notes = vec![];
        if let Some(labels) = &self.labels {
            notes.push(format!("note: labels of {} are left out: {labels}", counted(labels.images, "image")));
        }
        notes.extend(self.display_settings.iter().map(|what| format!("note: {what}")));
        if !self.metadata.is_empty() {
            // Parts of several formats have no format together.
            let format = registry::format_named(source.format()).map_or("each format", |format| format.name);
            notes.push(format!(
                "note: {} are left out: wellread has no place for what {format} says there",
                self.metadata.join(", ")
            ));
        }
        let [planes, images] = self.zeros;
        if planes > 0 {
            notes.push(format!(
                "note: {} of {} written as 0, since the files are not there (--missing skip leaves such images out)",
                counted(planes, "plane"),
                counted_with(images, "image", if planes == 1 { ["is"; 2] } else { ["are"; 2] })
            ));
        }
        notes.into_iter().map(Note::Warn).collect()
    }
}

/// Notes on what is converted and may be taken for something else: channels that differ from image to image, and a mask among stains.
pub(super) fn notes_of_unlike_channels(source: &dyn Store, adds_mask: bool) -> Vec<Note> {
    let mixed = mixed_channels::find(source, None, None, mixed_channels::MAX_IMAGES);
    let mut notes: Vec<Note> = mixed.map(|mixed| Note::Warn(format!("note: {mixed}"))).into_iter().collect();
    if adds_mask {
        notes.push(Note::Warn(
            "note: the mask becomes a channel of 0 and 1 like the stains, and loaders of the stored crops scale and normalise it like them"
                .to_owned(),
        ));
    }
    notes
}
