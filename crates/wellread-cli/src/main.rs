//! The `wellread` program: see the library of this crate.

mod out_of_memory;

use std::process::ExitCode;

fn main() -> ExitCode {
    out_of_memory::prepare();
    wellread_cli::run().into()
}
