//! The libraries of CUDA, cuDNN and TensorRT that pip installs beside ONNX Runtime.
//!
//! ```text
//! …/site-packages/onnxruntime/capi/libonnxruntime.so ─▶ …/site-packages/nvidia/*/lib ─▶ beside ─▶ preload
//!                                                       …/site-packages/tensorrt_libs
//! ```
//!
//! The linker does not look there, and ONNX Runtime's providers name no folders. Its Python package therefore loads
//! them first (`onnxruntime.preload_dlls`), or `import torch` does. This program imports neither.

use std::path::{Path, PathBuf};

/// The libraries that providers need, each behind those that it needs itself.
const LIBRARIES: [&str; 11] = [
    "libcudart",
    "libnvJitLink",
    "libnvrtc",
    "libcublasLt",
    "libcublas",
    "libcurand",
    "libcufft",
    "libcudnn",
    "libnvinfer",
    "libnvinfer_plugin",
    "libnvonnxparser",
];

/// Loads for good the libraries that lie beside ONNX Runtime's. The linker looks for those that are not there or do not
/// load: the provider then says which one it lacks.
pub(super) fn preload(library: &Path) {
    #[cfg(target_os = "linux")]
    for path in beside(library) {
        use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
        // SAFETY: loading runs the library's initialisers. It is a file of the Python environment whose ONNX Runtime
        // runs, which loads the same one itself. It stays loaded, so nothing of it dangles.
        if let Ok(loaded) = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) } {
            std::mem::forget(loaded);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = library;
}

/// The hint where a provider does not find the libraries that it needs.
pub(super) fn lacking(said: &str) -> Option<&'static str> {
    if !said.contains("cannot open shared object file") {
        None
    } else if said.contains("libcuda.so") {
        Some("this machine has no NVIDIA driver; choose --provider cpu")
    } else {
        Some("pip install 'onnxruntime-gpu[cuda,cudnn]' for that Python, or choose --provider cpu")
    }
}

/// Paths of the libraries in the environment of `library`, in the order in which they are to be loaded.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn beside(library: &Path) -> Vec<PathBuf> {
    // onnxruntime/capi/libonnxruntime.so
    let Some(packages) = library.ancestors().nth(3) else { return Vec::new() };
    let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<_> =
        entries(packages.join("nvidia")).map(|package| package.path().join("lib")).collect();
    folders.push(packages.join("tensorrt_libs"));
    let mut files: Vec<_> = folders.into_iter().flat_map(entries).map(|file| file.path()).collect();
    files.sort();
    let is_version = |file: &Path, name: &str| {
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        let version = file.strip_prefix(name).and_then(|rest| rest.strip_prefix(".so."));
        version.is_some_and(|version| version.parse::<u32>().is_ok())
    };
    LIBRARIES
        .iter()
        .flat_map(|name| files.iter().filter(move |file| is_version(file, name)))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_pip_are_found_in_the_order_that_they_need() {
        let folder = tempfile::tempdir().unwrap();
        let packages = folder.path().join("lib/python3.12/site-packages");
        for file in [
            "onnxruntime/capi/libonnxruntime.so.1.30.0",
            "nvidia/cudnn/lib/libcudnn.so.9",
            "nvidia/cudnn/lib/libcudnn_graph.so.9",
            "nvidia/cu13/lib/libcublas.so.13",
            "nvidia/cu13/lib/libcublasLt.so.13",
            "nvidia/cu13/lib/libcudart.so.13",
            "nvidia/cu13/lib/libcudart.so",
            "nvidia/cu13/lib/libcudart_static.a",
            "nvidia/cu13/include/cuda.h",
            "tensorrt_libs/libnvonnxparser.so.10",
            "tensorrt_libs/libnvinfer.so.10",
            "tensorrt_libs/libnvinfer_builder_resource.so.10.16.1",
        ] {
            let path = packages.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = beside(&packages.join("onnxruntime/capi/libonnxruntime.so.1.30.0"));
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(&packages).unwrap().to_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "nvidia/cu13/lib/libcudart.so.13",
                "nvidia/cu13/lib/libcublasLt.so.13",
                "nvidia/cu13/lib/libcublas.so.13",
                "nvidia/cudnn/lib/libcudnn.so.9",
                "tensorrt_libs/libnvinfer.so.10",
                "tensorrt_libs/libnvonnxparser.so.10",
            ]
        );
        // None of them is a library: nothing is loaded, and nothing fails.
        preload(&packages.join("onnxruntime/capi/libonnxruntime.so.1.30.0"));
        assert!(beside(Path::new("libonnxruntime.so")).is_empty());
    }
    #[test]
    fn a_library_that_is_missing_is_told_with_what_helps() {
        let failed =
            |name| format!("Failed to load library x.so with error: {name}: cannot open shared object file");
        assert!(lacking(&failed("libcublasLt.so.13")).unwrap().contains("onnxruntime-gpu[cuda,cudnn]"));
        assert!(lacking(&failed("libcuda.so.1")).unwrap().contains("no NVIDIA driver"));
        assert_eq!(lacking("CUDA failure 100: no CUDA-capable device is detected"), None);
    }
}
