//! The file of a database: opened and checked before DuckDB is asked, with a clear word about what is wrong with it.

use crate::connection::{Borrowed, failed};
use crate::direct::{Blocks, HEADERS};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use wellread_store::{Error, Result, regular};

/// Opens a file, with a clear word about what DuckDB would say less clearly.
pub(crate) fn check_file(path: &Path) -> Result<File> {
    let (file, length) = regular::open(path).map_err(|e| Error::io(path, "cannot open", &e))?;
    if length == 0 {
        return Err(Error::new(path, "the file is empty"));
    }
    Ok(file)
}

/// Whether a log of changes lies beside a database.
pub(crate) fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push(".wal");
    std::fs::metadata(log).is_ok_and(|meta| meta.len() > 0)
}

/// The blocks of the file, all of which must be there: DuckDB itself notices only those that it reads. `None` where
/// they are of another kind than can be read here.
pub(crate) fn check_length(
    path: &Path,
    file: &Arc<File>,
    connection: &Borrowed<'_>,
) -> Result<Option<Blocks>> {
    let sql = "SELECT block_size, total_blocks FROM pragma_database_size()";
    let (size, blocks): (u64, u64) = connection
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(|e| failed(path, "cannot look at the storage", &e))?;
    let needed = size.saturating_mul(blocks).saturating_add(HEADERS);
    let meta = file.metadata().map_err(|e| Error::io(path, "cannot look at", &e))?;
    if meta.len() < needed {
        return Err(Error::new(
            path,
            format_args!(
                "has {} bytes, its {blocks} blocks need {needed}: the file is truncated",
                meta.len()
            ),
        )
        .hint("copy or write it again"));
    }
    Ok(Blocks::new(Arc::clone(file), size, blocks))
}
