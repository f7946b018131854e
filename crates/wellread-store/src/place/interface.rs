//! The interface of a place: the questions and the answers.

use super::ahead::FetchAhead;
use super::file::{File, Writer};
use super::link::Link;
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{DirEntry, FileType};
use std::io;
use std::path::{Path, PathBuf};

/// The kind of an entry. [`super::metadata`] gives the kind of a link's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, in a listing.
    Symlink,
    /// A pipe, a device.
    Other,
}

impl From<FileType> for Kind {
    fn from(of: FileType) -> Self {
        if of.is_file() {
            Self::File
        } else if of.is_dir() {
            Self::Folder
        } else if of.is_symlink() {
            Self::Symlink
        } else {
            Self::Other
        }
    }
}

/// The facts of a file or folder that need no opening. Links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Its kind.
    pub kind: Kind,
    /// Bytes of a file.
    pub length: u64,
}

impl Metadata {
    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.kind == Kind::Folder
    }

    /// Whether it is a regular file.
    pub fn is_regular(&self) -> bool {
        self.kind == Kind::File
    }
}

/// The identity of a folder, the same for every way to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// Device and number.
    Numbers(u64, u64),
    /// The path without links.
    Path(PathBuf),
}

/// One name in a folder.
#[derive(Debug)]
pub struct Entry(EntryOf);

#[derive(Debug)]
enum EntryOf {
    Local(DirEntry),
    Other(OsString, Kind),
}

impl Entry {
    /// A name that a listing gave with its kind.
    pub fn new(name: OsString, kind: Kind) -> Self {
        Self(EntryOf::Other(name, kind))
    }

    /// An entry of the file system.
    pub(super) fn local(entry: DirEntry) -> Self {
        Self(EntryOf::Local(entry))
    }

    /// The name, without the folder.
    pub fn name(&self) -> OsString {
        match &self.0 {
            EntryOf::Local(entry) => entry.file_name(),
            EntryOf::Other(name, _) => name.clone(),
        }
    }

    /// Its kind; a symbolic link is [`Kind::Symlink`]. Most file systems say so in the listing, without another look.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn kind(&self) -> io::Result<Kind> {
        match &self.0 {
            EntryOf::Local(entry) => entry.file_type().map(Kind::from),
            EntryOf::Other(_, kind) => Ok(*kind),
        }
    }
}

/// Names in a folder, as they come.
pub type Listing = Box<dyn Iterator<Item = io::Result<Entry>> + Send>;

/// A place where bytes lie. A missing entry is [`io::ErrorKind::NotFound`], which readers treat apart from other
/// errors. A place that is read alone leaves the second half as it is.
pub trait Place: Send + Sync + Debug {
    /// The entry at `path`, links followed.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// The entries of a folder, in no order, with no more about each than the listing gives.
    fn list(&self, folder: &Path) -> io::Result<Listing>;

    /// Whether listing a folder costs about what looking for one name in it does, and leaves none out. Then names are looked for in
    /// listings.
    fn tells_names(&self) -> bool {
        false
    }

    /// Lists folders that are going to be looked into, many at once, where that saves waiting. A failed listing fails
    /// again when they are.
    fn list_ahead(&self, folders: &[PathBuf]) {
        let _ = folders;
    }

    /// Lists a folder and all below it, where that takes fewer requests than listing each of its folders. It is for those who are going to
    /// look into all of them. A failed listing fails again when they do.
    fn list_all_ahead(&self, folder: &Path) {
        let _ = folder;
    }

    /// Looks at `path`, and lists these folders below it, all at once, where that saves waiting. A folder with a great many names need
    /// not be listed. A failed look fails again when its answer is needed.
    fn look_ahead(&self, path: &Path, folders: &[PathBuf]) {
        let _ = (path, folders);
    }

    /// The entries of a folder that was listed not long ago, without asking anew. `None` where it was not, or where nothing is kept of
    /// it.
    fn listed(&self, folder: &Path) -> Option<Listing> {
        let _ = folder;
        None
    }

    /// Opens a regular file for reading, without waiting; also its length in bytes. Anything but a file is an
    /// error.
    fn open(&self, path: &Path) -> io::Result<(File, u64)>;

    /// A reader's way to ask for bytes before they are read. No more than `most` are held, or a bound of the place's own. It is
    /// `None` where that gains nothing.
    fn ahead(&self, most: Option<u64>) -> Option<Box<dyn FetchAhead>> {
        let _ = most;
        None
    }

    /// Takes nothing that was said of `path` before, and of what lies below it, for what is there now. A set is about to be opened
    /// or written.
    fn look_anew(&self, path: &Path) {
        let _ = path;
    }

    /// The whole path without links.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// The identity of a folder.
    fn identity(&self, folder: &Path) -> io::Result<Identity> {
        self.canonical(folder).map(Identity::Path)
    }

    /// All files at `path` and below it, by their paths from there, in no order; none where nothing is.
    fn files_below(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let there = match self.metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            there => there?,
        };
        if !there.is_folder() {
            return Ok(vec![PathBuf::new()]);
        }
        let (mut found, mut folders) = (vec![], vec![PathBuf::new()]);
        while let Some(folder) = folders.pop() {
            for entry in self.list(&path.join(&folder))? {
                let entry = entry?;
                let inside = folder.join(entry.name());
                if entry.kind()? == Kind::Folder { folders.push(inside) } else { found.push(inside) }
            }
        }
        Ok(found)
    }

    /// The link that it lies behind, to be measured; `None` of places on this machine.
    fn link(&self) -> Option<&dyn Link> {
        None
    }

    /// Whether sets can be written here: the methods below.
    fn is_writable(&self) -> bool {
        false
    }

    /// Creates a file, or empties one, for writing.
    fn create(&self, path: &Path) -> io::Result<Writer> {
        let _ = path;
        Err(read_only())
    }

    /// Writes over some bytes of a file that is there.
    fn patch(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let _ = (path, offset, bytes);
        Err(read_only())
    }

    /// Creates a folder and those above it that are missing. One that is there is fine.
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(read_only())
    }

    /// Gives a file or folder another name, at which there is nothing or a file that is replaced. In a place that is not
    /// on this machine a folder may be there as well, and its files are replaced.
    ///
    /// A folder that cannot be moved at once is moved file by file, since a reader may open the set meanwhile:
    ///
    /// 1. [`crate::parted::LIST`] is there before every other file. A part that it names and that is not there yet is an
    ///    error. Without it, the parts that are there would be taken for the set.
    /// 2. Files of deeper folders follow before those above, so that the metadata of the set come last.
    /// 3. All files are there before one goes from its former name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(read_only())
    }

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(read_only())
    }

    /// Removes a folder and all that is in it.
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(read_only())
    }

    /// Throws away what this process has begun to write here and not completed, and completes nothing afterwards: for the moment before
    /// it ends.
    fn abandon(&self) {}

    /// Runs `work`, whose steps belong together: [`Self::abandon`] waits for it, and it is completed all the same. Where that was called
    /// before, it is an error, and nothing is run.
    fn finish_before_end(&self, work: &mut dyn FnMut()) -> io::Result<()> {
        work();
        Ok(())
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "nothing can be written there")
}

/// A scheme that the project knows and this build has no place for; made by [`absent_place!`](crate::absent_place).
#[derive(Clone, Copy, Debug)]
pub struct AbsentPlace {
    /// The scheme before `://`, in lower case.
    pub scheme: &'static str,
    /// How to get it, in words.
    pub how_to_get: &'static str,
}

/// A [`Place`] and the scheme of its addresses, such as `s3`; made by [`register_place!`](crate::register_place).
pub struct Registration {
    /// The scheme before `://`, in lower case.
    pub scheme: &'static str,
    /// The place.
    pub place: &'static dyn Place,
}
