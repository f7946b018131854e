//! The native module of the Python package: bindings, and nothing that Rust users could want too.
//!
//! ```text
//!  wellread/*.py ──options──▶ Dataset, Loader ──▶ Batches ──next──▶ Batch ──DLPack, __array_interface__──▶ torch, JAX, NumPy
//!                                 (wellread)                          └ memory goes back to the pool with the last view
//! ```
//!
//! Imports go one way, from above to below:
//!
//! | layer | module | what it holds |
//! |---|---|---|
//! | work | `loader` | epochs of batches |
//! | | `whole_set`, `writing` | the work of one process of several on a set; sets written by several |
//! | sets | `dataset`, `cells` | a set; cells cut out of it |
//! | parts | `opened`, `reading` | sets opened anew in forked processes; rows read |
//! | | `choices` | the options of a loader, out of a dictionary |
//! | | `arrow` | columns beside images, and sets as streams |
//! | | `batch`, `dlpack` | images in memory as other libraries see them |
//! | base | `pixels`, `lent` | memory of images that arrays of other libraries share; memory that Python lends |
//! | | `stream` | streams as producers write them |
//! | | `formats`, `trace`, `errors` | what this build reads; timelines; errors as exceptions |
//!
//! The Python side checks types, names arguments in its errors and gives defaults. Here values are taken as they are
//! and what the loader refuses is raised. Nothing here calls Python while threads wait for it. The interpreter is
//! released ([`pyo3::Python::detach`]) wherever pixels are read or waited for. An [`std::sync::Arc`] counts memory that
//! other libraries hold views of, and needs no interpreter to give it back.

// Arguments of Python's functions are made for the call, and are the function's own.
#![allow(clippy::needless_pass_by_value)]

mod arrow;
mod batch;
mod cells;
mod choices;
mod dataset;
mod dlpack;
mod errors;
mod formats;
mod lent;
mod loader;
mod opened;
mod pixels;
mod reading;
mod stream;
mod trace;
mod whole_set;
mod writing;

use pyo3::prelude::*;

/// The bindings of `wellread`; use the package, not this module.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Known before there are threads, of which one might ask for it first while another forks.
    wellread::store::process::id();
    wellread::store::python::set_here(file_of_module);
    wellread::store::surface::set(wellread::store::surface::Surface::Python);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<dataset::Dataset>()?;
    module.add_class::<lent::LentMemory>()?;
    module.add_class::<loader::Batches>()?;
    module.add_class::<loader::Loader>()?;
    module.add_class::<trace::Step>()?;
    module.add_function(wrap_pyfunction!(formats::formats, module)?)?;
    module.add_function(wrap_pyfunction!(formats::is_address, module)?)?;
    module.add_function(wrap_pyfunction!(formats::parse_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(formats::misspelt_fields, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::missing_column, module)?)?;
    module.add_class::<whole_set::StatsSum>()?;
    module.add_class::<writing::Parts>()?;
    module.add_function(wrap_pyfunction!(whole_set::marks, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::check_marks, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::remember, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::are_in_other_order, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::row_group, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::checksums, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::check_read, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::expected_sums, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::verify_sums, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::types_of, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::check_one_kind, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::group_rows, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::row_names, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::channel_order, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::channel_order_of, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::partial_stats, module)?)?;
    module.add_function(wrap_pyfunction!(whole_set::finish_stats, module)?)?;
    module.add_function(wrap_pyfunction!(writing::from_images, module)?)?;
    module.add_function(wrap_pyfunction!(writing::with_profiles, module)?)?;
    module.add_function(wrap_pyfunction!(writing::format_of_name, module)?)?;
    module.add_function(wrap_pyfunction!(writing::is_table_format, module)?)?;
    module.add_function(wrap_pyfunction!(writing::write_part, module)?)?;
    module.add_function(wrap_pyfunction!(writing::part_holds, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_start, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace_finish, module)?)?;
    Ok(())
}

/// The file of a Python module, which is not imported.
fn file_of_module(name: &str) -> Option<std::path::PathBuf> {
    Python::attach(|py| {
        let spec = py.import("importlib.util").ok()?.call_method1("find_spec", (name,)).ok()?;
        spec.getattr("origin").ok()?.extract().ok()
    })
}
