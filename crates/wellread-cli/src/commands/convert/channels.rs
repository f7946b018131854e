//! Sets that become one, and have other channels at the same numbers.
//!
//! ```text
//!   b.parquet: DNA ER     c.parquet: AGP DNA ─▶ one set, in which channel 0 is DNA or AGP: said once
//! ```

use wellread_store::Store;

/// In a sentence, which two of the sets that `source` is put together from have other channels, by the first image of each; `None`
/// where they agree, or have no names.
pub(in crate::commands) fn mixed(source: &dyn Store) -> Option<String> {
    let names = |row: usize| -> Option<Vec<String>> {
        // What cannot be read is told when it is converted.
        let channels = source.metadata(row).ok()?.channels;
        let names: Vec<String> = channels.into_iter().map(|channel| channel.name).collect();
        names.iter().any(|name| !name.is_empty()).then_some(names)
    };
    let mut first: Option<(String, Vec<String>)> = None;
    for part in source.hints().set_parts() {
        let Some(there) = part.rows.first().and_then(|rows| names(rows.start)) else { continue };
        match &first {
            None => first = Some((part.name, there)),
            Some((name, own)) if *own != there => {
                return Some(format!(
                    "channels are {own:?} in {name}, and {there:?} in {}: taken by number they are mixed, and by name each image's own are taken",
                    part.name
                ));
            }
            Some(_) => {}
        }
    }
    None
}
