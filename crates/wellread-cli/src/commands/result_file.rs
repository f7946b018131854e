//! Where commands write their results: files and folders of this machine.
//!
//! ```text
//!  --out PATH ─▶ a path of the file system: taken as it is
//!             └─▶ an address, such as s3://…: wrong usage, before anything is read
//! ```

use clap::builder::{PathBufValueParser, TypedValueParser};
use std::path::PathBuf;
use wellread_store::place;

/// The parser of an option that names a file or folder of results. It refuses an address, such as one of a bucket.
pub fn local_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(checked)
}

fn checked(path: PathBuf) -> Result<PathBuf, String> {
    if place::scheme(&path).is_none() {
        return Ok(path);
    }
    let hint = "give a local path, and copy the result to the address";
    Err(format!("it is an address, and results are written to this machine (hint: {hint})"))
}

#[cfg(test)]
mod tests {
    use super::checked;
    use std::path::PathBuf;

    #[test]
    fn addresses_are_refused_and_paths_are_taken_as_they_are() {
        for address in ["s3://bucket/a.json", "gs://b/results", "https://host/a"] {
            let said = checked(address.into()).unwrap_err();
            assert!(said.starts_with("it is an address"), "{address}: {said}");
        }
        for path in ["results", "a/b.json", "-", "/tmp/s3:/b", r"C:\results"] {
            assert_eq!(checked(path.into()), Ok(PathBuf::from(path)));
        }
    }
}
