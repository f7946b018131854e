//! The `wellread` program: see the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    wellread_cli::run(std::env::args_os()).into()
}
