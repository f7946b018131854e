//! Puts the Python sources that this program carries into it, so that what measures frameworks and branches works
//! wherever there is a Python: see `src/sources.rs`. They are in `python`: links to `python/wellread/_bench` and `_tasks`
//! of the repository, files in a package of this crate.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Folder of the sources, and the file of this build that lists them.
const PACKAGES: [(&str, &str); 2] = [("_bench", "worker_sources.rs"), ("_tasks", "task_sources.rs")];

fn main() {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    for (folder, list) in PACKAGES {
        let root = manifest.join("python").join(folder);
        println!("cargo::rerun-if-changed={}", root.display());
        std::fs::write(out.join(list), code(&root)).expect("cargo's folder can be written");
    }
}

/// Name and text of each file below `root`, as Rust.
fn code(root: &Path) -> String {
    let mut files = Vec::new();
    collect(root, &mut files);
    files.sort();
    let mut code = String::from("&[\n");
    for file in files {
        let name =
            file.strip_prefix(root).expect("it was found there").to_str().expect("our names are ASCII");
        let path = file.to_str().expect("the folder of the sources has a name in UTF-8");
        writeln!(code, "({name:?}, include_str!({path:?})),").expect("a string takes any text");
    }
    code.push(']');
    code
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("a folder of sources can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "py") {
            files.push(path);
        }
    }
}
