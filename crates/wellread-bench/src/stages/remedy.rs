//! The advice about each stage.
//!
//! ```text
//!  Diagnosis::worth_a_remedy ─▶ name of a stage ─▶ remedy: words for people
//! ```

/// The advice about a stage that binds.
pub fn remedy(stage: &str) -> &'static str {
    match stage {
        "storage" => {
            "fewer bytes (a stronger codec: wellread advise), more workers to keep the disk busy, a faster disk, or a cache that \
             outlives the run (cache=\"file\")"
        }
        "fetching" => {
            "more requests at once (--in-flight), fewer and smaller reads (wellread advise), a cache on a local disk \
             (cache=\"disk:FOLDER:SIZE\"), more workers on an idle link"
        }
        "decoding" => {
            "more workers, a format or codec that decodes faster (wellread advise), or decoded images in memory \
             (cache=\"memory\")"
        }
        "copying" => {
            "fewer bytes per pixel in batches (output float16 or as stored), smaller crops, larger batches"
        }
        _ => "nothing about the data: loading hides behind the model",
    }
}
