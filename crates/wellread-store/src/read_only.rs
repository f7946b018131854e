//! A format that is only read: four facts make one, and it names those that differ from the rest.

use crate::entries;
use crate::format::{Format, OpenOptions};
use crate::probe::Probe;
use crate::{Error, Result, Store};
use std::path::Path;

impl Format {
    /// A format that is only read: its name, the endings of its files, how to know it, and how to open it.
    ///
    /// It is a file of images without columns, tables, levels or checksums. A format that has some of these names them before
    /// the rest. [`create`](crate::create) is an error, and no folder of this format is replaced.
    ///
    /// ```
    /// use wellread_store::{Error, Format};
    ///
    /// static FORMAT: Format = Format {
    ///     about: "slides of the old scanner",
    ///     is_folder: true,
    ///     ..Format::read_only(
    ///         "slides",
    ///         &[".slide"],
    ///         |probe| probe.entries.iter().any(|name| name == "slide.ini"),
    ///         |path, _| Err(Error::new(path, "no slide in this example")),
    ///     )
    /// };
    /// wellread_store::register_format!(FORMAT);
    /// assert!(wellread_store::formats().iter().any(|format| format.name == "slides" && format.is_folder));
    /// ```
    pub const fn read_only(
        name: &'static str,
        endings: &'static [&'static str],
        recognise: fn(&Probe) -> bool,
        open: fn(&Path, &OpenOptions) -> Result<Box<dyn Store>>,
    ) -> Self {
        Self {
            name,
            about: "read only",
            endings,
            set_ending: "",
            is_folder: false,
            holds_images: |_| true,
            parts: &[],
            inner_folders: &[],
            foreign_entry: first_entry,
            keeps_features: false,
            features_beside: false,
            join_parts: None,
            own_columns: |_| false,
            names_tell: |_, _| false,
            keeps_durations: false,
            keeps_seconds: false,
            keeps_zoned_nanoseconds: false,
            keeps_zones: false,
            holds_bare_pixels: false,
            has_checksums: false,
            has_tables: false,
            has_columns: false,
            has_levels: false,
            has_display_settings: false,
            uses_tune: |_| false,
            cannot_resume: Some("it is only read"),
            engine: || Ok("only read".to_owned()),
            recognise,
            open,
            create: |path, _| {
                let error = Error::new(path, "the format that was asked for is only read");
                Err(error.hint("choose another format to write").choice())
            },
        }
    }
}

/// An entry of a folder that nothing here can write again, so that it is not replaced.
fn first_entry(folder: &Path) -> Result<Option<String>> {
    Ok(entries::list(folder)?.into_iter().next().map(|entry| entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriteOptions;

    static FORMAT: Format = Format::read_only(
        "slides",
        &[".slide"],
        |probe| probe.is_dir,
        |path, _| Err(Error::new(path, "none")),
    );

    #[test]
    fn it_writes_nothing_and_says_so() {
        let error = (FORMAT.create)(Path::new("a.slide"), &WriteOptions::default()).err().unwrap();
        assert!(error.is_choice());
        let expected =
            "a.slide: the format that was asked for is only read (hint: choose another format to write)";
        assert_eq!(error.to_string(), expected);
        assert_eq!(FORMAT.cannot_resume, Some("it is only read"));
    }

    #[test]
    fn no_folder_of_it_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!((FORMAT.foreign_entry)(dir.path()).unwrap(), None);
        std::fs::write(dir.path().join("slide.ini"), b"").unwrap();
        assert_eq!((FORMAT.foreign_entry)(dir.path()).unwrap(), Some("slide.ini".to_owned()));
    }
}
