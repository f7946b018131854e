//! The table while it is made: parts in a folder beside its place, then one file.
//!
//! ```text
//!  check_out, complete ─▶ UnfinishedTable::begin ─▶ which parts are left ─▶ … completed(part) … ─▶ finish: joined, moved to its place
//!                                                                                      └▶ give_up: kept for --resume
//! ```

use super::fingerprint::ModelRecord;
use super::join::{Joined, MADE_OF, Parts, look_at};
use super::options::EmbedOptions;
use super::outcome::{Event, Summary};
use super::parts;
use super::since::is_later;
use super::table::metadata;
use anyhow::Result;
use parquet::file::metadata::KeyValue;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use wellread_store::staged::{self, Existing, MadeFolder, Reserved, Staged};
use wellread_store::{Error, Store, place};

/// The file in the folder of parts that becomes the table.
const JOINED: &str = "table.parquet";

/// Endings of names of tables that are no Parquet.
const OTHER_ENDINGS: [&str; 14] = [
    "csv", "tsv", "txt", "json", "xlsx", "arrow", "feather", "sqlite", "db", "duckdb", "lance", "vortex",
    "zarr", "h5",
];

/// Refuses what cannot become the table, before anything is computed.
pub(super) fn check_out(options: &EmbedOptions) -> Result<(), Error> {
    let out = &options.out;
    if place::is_remote(out) {
        return Err(Error::new(out, "the table is written on this machine, not to an address")
            .choice()
            .hint("write a file here, then copy it"));
    }
    if out.is_dir() {
        return Err(Error::new(out, "is a folder, and the table is a file")
            .choice()
            .hint(format_args!("name a file in it: --out {}", out.join("profiles.parquet").display())));
    }
    let ending = out.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if OTHER_ENDINGS.contains(&ending.as_str()) {
        return Err(Error::new(out, format_args!("ends in .{ending}, and the table is Parquet"))
            .choice()
            .hint("name a file that ends in .parquet"));
    }
    if !options.overwrite && !options.resume && out.symlink_metadata().is_ok() {
        return Err(Error::new(out, "already exists").hint("choose another name or pass --overwrite"));
    }
    // A table that is complete is looked at alone.
    let may_be_complete = options.resume && !options.overwrite && out.symlink_metadata().is_ok();
    if may_be_complete { Ok(()) } else { check_folder(out) }
}

/// Refuses a folder that takes no file, before a model is opened, which may take long. Leaves nothing there.
fn check_folder(out: &Path) -> Result<(), Error> {
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    let made = MadeFolder::new(folder).map_err(|e| Error::io(folder, "cannot make the folder", &e))?;
    let probe = folder.join(format!(".wellread-probe-{}", staged::process_mark(std::process::id())));
    let written = match Reserved::new(&probe) {
        // Another thread tries it just now.
        Err(e) if e.kind() != ErrorKind::AlreadyExists => {
            Err(Error::io(folder, "cannot write to the folder", &e))
        }
        _ => Ok(()),
    };
    drop(made);
    written
}

/// The content of an existing table, where it is the one that this command would write and may stay.
pub(super) fn complete(
    options: &EmbedOptions,
    made_of: &str,
    store: &dyn Store,
) -> Result<Option<Joined>, Error> {
    let out = &options.out;
    if !options.resume || options.overwrite || out.symlink_metadata().is_err() {
        return Ok(None);
    }
    match look_at(out) {
        Some((found, joined)) if found == made_of => {
            let rows: Vec<usize> = (0..store.len()).collect();
            if is_later(out, store, &rows) {
                return Ok(Some(joined));
            }
            Err(Error::new(out, "is complete, but images that it is of were written since")
                .hint("--overwrite writes it anew, or choose another name"))
        }
        Some(_) => Err(Error::new(out, "is complete, but of other images, another model or other options")
            .hint("--overwrite writes it anew, or choose another name")),
        None => Err(Error::new(out, "already exists, and no `wellread embed` has written it")
            .hint("choose another name or pass --overwrite")),
    }
}

/// The result, in words for the caller.
pub(super) fn summary(
    found: Joined,
    model: &ModelRecord,
    options: &EmbedOptions,
    resumed: usize,
    seconds: f64,
) -> Summary {
    Summary {
        images: found.rows,
        features: found.width,
        left_out: found.left_out,
        resumed,
        complete: false,
        seconds,
        backend: model.backend.clone(),
        sha256: model.sha256.clone(),
        out: options.out.clone(),
    }
}

/// The table while it is made.
pub(super) struct UnfinishedTable {
    staged: Staged,
    /// Where the parts are.
    pub folder: PathBuf,
    /// Its sources, in a line.
    made_of: String,
    images: usize,
    part: usize,
}

impl UnfinishedTable {
    /// Begins it, or goes on with what a run of the same line has left. `part` is the number of images of a part.
    ///
    /// # Errors
    /// A table is there. An earlier run's parts have another line, or are being written.
    pub fn begin(
        options: &EmbedOptions,
        made_of: &str,
        [images, part]: [usize; 2],
        tell: &dyn Fn(&Event<'_>),
    ) -> Result<Self> {
        if !options.resume {
            // An earlier run's parts are not wanted any more.
            let left = staged::part(&options.out);
            drop(Staged::new(&options.out, Existing::from_overwrite(options.overwrite))?);
            if let Some(left) = left.filter(|left| !left.exists()) {
                tell(&Event::Discarded(&left));
            }
        }
        let staged = Staged::resumable(&options.out, Existing::from_overwrite(options.overwrite), made_of)?;
        let folder = staged.path().to_owned();
        Ok(Self { staged, folder, made_of: made_of.to_owned(), images, part })
    }

    /// How many parts there will be.
    pub fn count(&self) -> usize {
        self.images.div_ceil(self.part)
    }

    /// Images of so many parts, from the first on.
    pub fn images_of_first(&self, parts: usize) -> usize {
        parts.saturating_mul(self.part).min(self.images)
    }

    /// Images of one part.
    pub fn images_of(&self, part: usize) -> usize {
        self.images_of_first(part.saturating_add(1)).saturating_sub(self.images_of_first(part))
    }

    /// Whether a part is later than all files of its images.
    fn is_of_these_images(&self, store: &dyn Store, part: usize) -> bool {
        let end = self.images_of_first(part.saturating_add(1));
        let rows: Vec<usize> = (self.images_of_first(part)..end).collect();
        is_later(&parts::path_of(&self.folder, part), store, &rows)
    }

    /// The first part that is to be computed, by who computes one after the other.
    pub fn first_left(&self, store: &dyn Store) -> usize {
        let whole = parts::whole(&self.folder, self.staged.complete().min(self.count()));
        (0..whole).take_while(|&part| self.is_of_these_images(store, part)).count()
    }

    /// All parts that are to be computed, by those who do so in any order.
    pub fn left(&self, store: &dyn Store) -> Vec<usize> {
        let noted: HashSet<usize> = self.staged.journal().map_or_else(HashSet::new, |journal| {
            journal.lines().iter().filter_map(|line| line.parse().ok()).collect()
        });
        let is_there = |&part: &usize| {
            noted.contains(&part)
                && parts::is_whole(&self.folder, part)
                && self.is_of_these_images(store, part)
        };
        (0..self.count()).filter(|part| !is_there(part)).collect()
    }

    /// Notes that a part is whole.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn completed(&self, part: usize) -> Result<()> {
        Ok(self.staged.completed(part)?)
    }

    /// Puts the parts together and moves the table to its place.
    ///
    /// # Errors
    /// Parts that are damaged or missing; a disk that is full. The parts are kept.
    pub fn finish(
        self,
        options: &EmbedOptions,
        store: &dyn Store,
        model: &ModelRecord,
        tell: &dyn Fn(&Event<'_>),
    ) -> Result<Joined> {
        match self.join(options, store, model, tell) {
            Ok(joined) => {
                self.staged.commit_file(JOINED)?;
                Ok(joined)
            }
            Err(error) => {
                self.give_up(options);
                Err(error)
            }
        }
    }

    fn join(
        &self,
        options: &EmbedOptions,
        store: &dyn Store,
        model: &ModelRecord,
        tell: &dyn Fn(&Event<'_>),
    ) -> Result<Joined> {
        let all =
            Parts { folder: &self.folder, number: self.count(), images: self.images, target: &options.out };
        let found = all.look()?;
        let left_out = found.left_out.iter().map(|image| image.row).collect();
        let (columns, renamed) = metadata(store, options.columns.as_deref(), &left_out)?;
        if !renamed.is_empty() {
            tell(&Event::Renamed(&renamed));
        }
        let words = words(options, store, model, &self.made_of);
        all.join(found, &self.folder.join(JOINED), columns, options.layout, words)
    }

    /// Leaves the parts for a later run, if there is one at all.
    pub fn give_up(self, options: &EmbedOptions) {
        let nothing = !(0..self.count()).any(|part| parts::is_whole(&self.folder, part));
        drop(self);
        if nothing {
            // Nothing to go on with.
            drop(Staged::new(&options.out, Existing::from_overwrite(options.overwrite)));
        }
    }
}

/// The file's metadata about itself.
fn words(options: &EmbedOptions, store: &dyn Store, model: &ModelRecord, made_of: &str) -> Vec<KeyValue> {
    let pair = |key: &str, value: &str| KeyValue::new(format!("wellread.{key}"), value.to_owned());
    let mut words = vec![
        KeyValue::new(MADE_OF.to_owned(), made_of.to_owned()),
        pair("version", env!("CARGO_PKG_VERSION")),
        pair("command", &options.frameworks.command),
        pair("set", &store.path().to_string_lossy()),
        pair("model", &model.name),
        pair("backend", &model.backend),
        pair("transform", &format!("{:?}", options.transform)),
        pair("pool", options.pool.name()),
    ];
    words.extend(model.sha256.as_deref().map(|sum| pair("model.sha256", sum)));
    words.extend(options.output.as_deref().map(|name| pair("model.output", name)));
    words
}
