//! The `wellread` program: see the library of this crate.

mod out_of_memory;

use std::process::ExitCode;

fn main() -> ExitCode {
    out_of_memory::prepare();
    // Without a path of its own, which no system of today lacks, the program is found as the shell found it.
    let program = std::env::current_exe().map_or_else(|_| "wellread".into(), Into::into);
    wellread_cli::run(vec![program], std::env::args_os()).into()
}
