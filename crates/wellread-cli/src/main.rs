//! The `wellread` program: see the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Without a path of its own, which no system of today lacks, the program is found as the shell found it.
    let program = std::env::current_exe().map_or_else(|_| "wellread".into(), Into::into);
    wellread_cli::run(vec![program], std::env::args_os()).into()
}
