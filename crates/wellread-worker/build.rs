//! Puts the sources of the Python worker (`python/wellread/_bench`) into the program, so that
//! what measures frameworks works wherever there is a Python: see `src/sources.rs`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let root = manifest.join("../../python/wellread/_bench");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let mut code = String::from("&[\n");
    for file in files {
        let name =
            file.strip_prefix(&root).expect("it was found there").to_str().expect("our names are ASCII");
        let path = file.to_str().expect("the folder of the sources has a name in UTF-8");
        writeln!(code, "({name:?}, include_str!({path:?})),").expect("a string takes any text");
    }
    code.push(']');
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    std::fs::write(out.join("worker_sources.rs"), code).expect("cargo's folder can be written");
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
