//! DuckDB's library, loaded when a database is first opened.
//!
//! ```text
//!  WELLREAD_DUCKDB ────────┐
//!  beside the program      ├─▶ file ──open──▶ version, functions ──▶ the table by which the crate `duckdb` calls DuckDB
//!  the system's            │        (once per process; a program also keeps what went wrong)
//!  a Python's package ─────┘  first in a Python, of that Python
//! ```
//!
//! DuckDB is larger than all else that a build compiles. Most users with `.duckdb` files have its library: in the
//! Python package `duckdb`, which exports the C API, or as `libduckdb` of their system. With their own library the
//! release that wrote a file also reads it. The package's library needs the functions of Python; a program that is no
//! Python loads `libpython` first, which then stays unused.

mod functions;

use libloading::Library;
use std::ffi::{CStr, OsStr, OsString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, OnceLock, PoisonError};
use wellread_store::{Error, Result, python};

/// Names the library, or a Python whose package `duckdb` has it.
const NAMED: &str = "WELLREAD_DUCKDB";
/// The oldest release whose tables are read here as its own reader reads them.
const OLDEST: (u32, u32) = (2, 0);
/// The way to get the library.
const HOW_TO_GET: &str = "pip install duckdb in a virtual environment and set WELLREAD_DUCKDB to its Python, or set it to \
                          the file of libduckdb";
/// The same in a Python.
const HOW_TO_GET_HERE: &str = "pip install duckdb, or set WELLREAD_DUCKDB to the file of libduckdb";

/// The library as a file of the system, where the dynamic linker finds it.
const FILE: &str = if cfg!(windows) {
    "duckdb.dll"
} else if cfg!(target_os = "macos") {
    "libduckdb.dylib"
} else {
    "libduckdb.so"
};

/// The module of the Python package that has the library.
const MODULE: &str = "_duckdb";
/// Prints the file of that module, then the folder, name and version of `libpython`, a line each.
const ASK: &str = "import importlib.util as u, sysconfig as s; f = u.find_spec('_duckdb'); g = s.get_config_var; \
     print(f.origin if f else '', g('LIBDIR') or '', g('INSTSONAME') or g('LDLIBRARY') or '', g('py_version_short'), sep='\\n')";

/// A library that was loaded.
#[derive(Debug)]
struct Loaded {
    version: String,
    table: libduckdb_sys::duckdb_ext_api_v1,
}

/// Why there is none.
#[derive(Clone, Debug)]
struct Missing {
    cause: String,
    hint: String,
}

impl Missing {
    fn new(cause: String) -> Self {
        Self { cause, hint: if python::here().is_some() { HOW_TO_GET_HERE } else { HOW_TO_GET }.to_owned() }
    }
}

/// The functions of the library of this process: the crate `duckdb` has one table of them.
static TABLE: OnceLock<libduckdb_sys::duckdb_ext_api_v1> = OnceLock::new();
/// Its version, once `duckdb` has the table.
static VERSION: OnceLock<String> = OnceLock::new();
/// Why a program has none. In a Python, which lives long, a package may be installed after all: it looks again.
static MISSING: Mutex<Option<Missing>> = Mutex::new(None);

/// Loads the library unless that was done; its version, such as `v2.0.0`.
///
/// # Errors
/// There is no library, or it cannot be used; the error is about `path`, the file that needs it.
pub(crate) fn load(path: &Path) -> Result<&'static str> {
    if let Some(version) = VERSION.get() {
        return Ok(version);
    }
    let failed = |missing: &Missing| Error::new(path, &missing.cause).hint(&missing.hint);
    // One thread looks, others wait for what it finds.
    let mut missing = MISSING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(missing) = missing.as_ref().filter(|_| python::here().is_none()) {
        return Err(failed(missing));
    }
    if let Some(version) = VERSION.get() {
        return Ok(version);
    }
    let loaded = find().map_err(|why| failed(missing.insert(why)))?;
    TABLE.get_or_init(|| loaded.table);
    // SAFETY: `api` follows the contract of an extension's host: it returns the table for the version asked for. The table is
    // filled and never changes.
    let begun = unsafe {
        libduckdb_sys::duckdb_rs_extension_api_init(std::ptr::null_mut(), &raw const ACCESS, "v1.2.0")
    };
    debug_assert_eq!(begun, Ok(true));
    Ok(VERSION.get_or_init(|| loaded.version))
}

/// The access that `duckdb` gets to the table.
static ACCESS: libduckdb_sys::duckdb_extension_access =
    libduckdb_sys::duckdb_extension_access { set_error: None, get_database: None, get_api: Some(api) };

unsafe extern "C" fn api(_: libduckdb_sys::duckdb_extension_info, _: *const c_char) -> *const c_void {
    TABLE.get().map_or(std::ptr::null(), |table| std::ptr::from_ref(table).cast())
}

/// Looks where the library can be, and loads the first that is there.
fn find() -> std::result::Result<Loaded, Missing> {
    if let Some(named) = std::env::var_os(NAMED).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        let is_python = named.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"));
        let file = || if named.is_file() { std::path::absolute(&named).ok() } else { None };
        let loaded = match python::here() {
            _ if !is_python => open(file().as_deref().unwrap_or(&named).as_os_str()),
            Some(find) => of_this_python(find),
            None => of_python(&named),
        };
        return loaded.map_err(|cause| Missing {
            hint: format!(
                "{NAMED} names it: set it to the file of libduckdb, or to a Python that has the package duckdb"
            ),
            ..Missing::new(cause)
        });
    }
    if let Some(find) = python::here() {
        // The library that the user's own `import duckdb` loads.
        return of_this_python(find).or_else(|cause| open(OsStr::new(FILE)).map_err(|_| Missing::new(cause)));
    }
    let beside = std::env::current_exe().ok().map(|program| program.with_file_name(FILE));
    match beside.filter(|path| path.is_file()) {
        Some(path) => open(path.as_os_str()).map_err(Missing::new),
        // A library of the system that cannot be used may be one of several.
        None => open(OsStr::new(FILE)).or_else(|_| of_python(&python::program())).map_err(Missing::new),
    }
}

fn not_found(why: &str) -> String {
    format!("DuckDB's library was not found: {why}")
}

/// The library in the package `duckdb` of the Python that this process is.
fn of_this_python(find: python::FindModule) -> std::result::Result<Loaded, String> {
    let file = find(MODULE).ok_or_else(|| not_found("this Python has no package duckdb"))?;
    open(file.as_os_str())
}

/// The library in the package `duckdb` of another Python.
fn of_python(program: &Path) -> std::result::Result<Loaded, String> {
    let shown = program.display();
    let answer = python::command(program, ASK).stdin(Stdio::null()).output();
    let answer = answer.map_err(|e| not_found(&format!("{shown} does not start: {e}")))?;
    let text = String::from_utf8_lossy(&answer.stdout);
    let lines: Vec<&str> = text.lines().collect();
    let &[library, folder, name, version] = &lines[..] else {
        return Err(not_found(&format!("{shown} does not say where its packages are")));
    };
    if library.is_empty() {
        return Err(not_found(&format!("{shown} has no package duckdb")));
    }
    load_python(Path::new(folder), name, version);
    open(OsStr::new(library))
}

/// Loads `libpython` for all libraries of this process. Where it is not found, DuckDB's does not load, whose error says why.
fn load_python(folder: &Path, name: &str, version: &str) {
    let usual = if cfg!(target_os = "macos") {
        format!("libpython{version}.dylib")
    } else {
        format!("libpython{version}.so.1.0")
    };
    let names: [OsString; 3] = [folder.join(name).into(), folder.join(&usual).into(), usual.into()];
    #[cfg(unix)]
    for name in names.iter().filter(|name| Path::new(name).extension().is_none_or(|e| e != "a")) {
        use libloading::os::unix;
        // SAFETY: Python's library does nothing when it is loaded, and is not unloaded below.
        if let Ok(library) = unsafe { unix::Library::open(Some(name), unix::RTLD_LAZY | unix::RTLD_GLOBAL) } {
            std::mem::forget(library);
            return;
        }
    }
    #[cfg(not(unix))]
    let _ = names;
}

/// Loads the library of a file.
fn open(file: &OsStr) -> std::result::Result<Loaded, String> {
    let shown = Path::new(file).display();
    // SAFETY: DuckDB's library starts no threads and changes nothing outside itself when it is loaded. It is never unloaded.
    let library = unsafe { Library::new(file) };
    let library = library
        .map_err(|e| format!("DuckDB's library cannot be loaded from {shown}: {}", cause(&e, file)))?;
    let lacks =
        |name: &str| format!("{shown} is no library of DuckDB that can be used here: it has no {name}");
    // SAFETY: the function takes nothing and returns a text that stays, which ends with a zero.
    let version = unsafe {
        let version = library.get::<unsafe extern "C" fn() -> *const c_char>("duckdb_library_version");
        let version = version.map_err(|_| lacks("duckdb_library_version"))?;
        CStr::from_ptr(version()).to_string_lossy().into_owned()
    };
    if is_older(&version, OLDEST) {
        let (major, minor) = OLDEST;
        return Err(format!("{shown} is DuckDB {version}; {major}.{minor} or newer is needed"));
    }
    let table = functions::table(&library).map_err(lacks)?;
    std::mem::forget(library);
    Ok(Loaded { version, table })
}

/// The system's message about a library, without the library's name where it repeats it.
fn cause(error: &libloading::Error, file: &OsStr) -> String {
    let text = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let text = text.trim_start_matches(&format!("{}: ", Path::new(file).display()));
    if text.contains("undefined symbol: Py") || text.contains("undefined symbol: _Py") {
        return format!("{text} (it is a Python package's, and that Python's libpython is not there)");
    }
    text.to_owned()
}

/// Whether a version such as `v1.5.6` or `v2.1.0-dev12` is older than `than`; one that says nothing is not.
fn is_older(version: &str, than: (u32, u32)) -> bool {
    let mut numbers =
        version.trim_start_matches('v').split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor) < than,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(is_older("v1.10.0", (2, 0)) && is_older("v0.9.2", (1, 2)) && is_older("1.9.0", (1, 10)));
        assert!(
            !is_older("v2.0.0", (2, 0)) && !is_older("v2.1.0-dev12", (2, 0)) && !is_older("v10.0.1", (2, 0))
        );
        assert!(!is_older("a1b2c3", (2, 0)));
    }

    #[test]
    fn what_is_no_library_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        std::fs::write(&file, "no library").unwrap();
        let error = open(file.as_os_str()).unwrap_err();
        assert!(error.contains("cannot be loaded from") && error.contains(FILE), "{error}");
    }

    #[test]
    fn a_library_of_something_else_is_told_by_what_it_lacks() {
        // The C library of this process.
        #[cfg(target_os = "linux")]
        {
            let error = open(OsStr::new("libc.so.6")).unwrap_err();
            assert!(error.contains("is no library of DuckDB") && error.contains("duckdb_"), "{error}");
        }
    }

    #[test]
    fn a_python_that_is_not_there_is_named() {
        let error = of_python(Path::new("no-such-python")).unwrap_err();
        assert!(error.contains("no-such-python does not start"), "{error}");
    }

    #[test]
    fn the_library_is_loaded_once() {
        let first = load(Path::new("a.duckdb")).unwrap();
        assert!(
            std::ptr::eq(first, load(Path::new("b.duckdb")).unwrap()) && first.starts_with('v'),
            "{first}"
        );
    }
}
