//! Where commands write their results: files of this machine.

use crate::output::Outcome;
use std::path::Path;
use wellread_store::{Error, place};

/// Refuses an address, such as one of a bucket, as the file `out` of a result.
pub fn check_local(out: &Path) -> Outcome {
    if place::scheme(out).is_none() {
        return Ok(());
    }
    let cause = "is an address, and the result is written to a file of this machine";
    Err(Error::new(out, cause)
        .hint("give --out a local path, and copy the file to the address")
        .choice()
        .into())
}
