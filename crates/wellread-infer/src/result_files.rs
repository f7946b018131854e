//! The files of a run: `benchmark_results_YYYYmmdd_HHMMSS.csv`, and beside it the same with all samples as JSON. Both are
//! written whole after every configuration, so that an interrupted run keeps what it has.

use crate::results::{Row, Run};
use anyhow::{Context as _, Result, anyhow};
use jiff::{ToSpan as _, Zoned};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use wellread_report::staged;
use wellread_store::staged::{MadeFolder, Reserved};

/// The table of the run that is going on, once it has a row.
static INTERRUPTED_TABLE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The table of the present run, if it has a row: for the message when it is interrupted.
pub fn interrupted_table() -> Option<PathBuf> {
    INTERRUPTED_TABLE.try_lock().ok()?.clone()
}

/// The two files of a run. Without a row they go again, also when the program is interrupted.
#[derive(Debug)]
pub struct Files {
    csv: PathBuf,
    json: PathBuf,
    reserved: Reserved,
    /// Goes after the table, where nothing was kept in it.
    _made: MadeFolder,
}

/// Makes the folder if need be and finds a name that nobody has. Writes an empty table there, so that a folder that cannot
/// be written is told before anything is measured.
///
/// # Errors
/// A folder that cannot be made or written.
pub fn begin(folder: &Path) -> Result<Files> {
    let hint = || "nothing was measured; --output-dir names another folder".to_owned();
    let made = MadeFolder::new(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))
        .with_context(hint)?;
    let mut time = Zoned::now();
    let (csv, reserved) = loop {
        let name = time.strftime("benchmark_results_%Y%m%d_%H%M%S.csv").to_string();
        let path = folder.join(name);
        match Reserved::new(&path) {
            Ok(reserved) => break (path, reserved),
            // Another run began in the same second.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => time = time.checked_add(1.second())?,
            Err(e) => {
                return Err(e).with_context(|| format!("cannot write {}", path.display())).with_context(hint);
            }
        }
    };
    staged::write(&csv, header()?.as_bytes()).with_context(hint)?;
    let json = csv.with_extension("json");
    Ok(Files { csv, json, reserved, _made: made })
}

impl Files {
    /// The table.
    pub fn csv(&self) -> &Path {
        &self.csv
    }

    /// The same with all samples.
    pub fn json(&self) -> &Path {
        &self.json
    }

    /// Writes both.
    ///
    /// # Errors
    /// A folder that cannot be written any more.
    pub fn write(&mut self, run: &Run) -> Result<()> {
        staged::write(&self.csv, &table(run.rows())?)?;
        self.reserved.keep();
        *INTERRUPTED_TABLE.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.csv.clone());
        staged::write(&self.json, &serde_json::to_vec(run)?)?;
        Ok(())
    }
}

fn header() -> Result<String> {
    let text = String::from_utf8(table(std::iter::once(&Row::default()))?)?;
    let line = text.lines().next().context("a table has a header")?;
    Ok(format!("{line}\n"))
}

fn table<'r>(rows: impl Iterator<Item = &'r Row>) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row)?;
    }
    writer.into_inner().map_err(|e| anyhow!("cannot write the table: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::results::{Record, Status};
    use wellread_measure::Environment;
    use wellread_report::Table;

    /// The columns of upstream, in its order.
    const UPSTREAM: &str = "framework,model,device,device_type,batch_size,input_shape,dtype,latency_p50_ms,latency_p95_ms,latency_p99_ms,latency_mean_ms,latency_std_ms,latency_min_ms,latency_max_ms,throughput_ips,memory_mb,compilation_time_ms,timestamp,git_commit";

    #[test]
    fn columns_begin_with_those_of_upstream_and_rows_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("results/raw");
        let mut files = begin(&folder).unwrap();
        assert!(std::fs::read_to_string(files.csv()).unwrap().starts_with(UPSTREAM));
        assert_eq!(Table::read_csv(files.csv()).unwrap().rows(), 0);
        let second = begin(&folder).unwrap();
        assert_ne!(files.csv(), second.csv());
        let empty = second.csv().to_owned();
        drop(second);
        assert!(!empty.exists());
        // A folder that was made for nothing goes with it.
        drop(begin(&dir.path().join("other/raw")).unwrap());
        assert!(!dir.path().join("other").exists() && folder.exists());
        let rows = [
            Row {
                framework: "pytorch".into(),
                input_shape: "(3, 224, 224)".into(),
                latency_p50_ms: Some(1.5),
                status: Status::Ok,
                ..Row::default()
            },
            Row { reason: Some("line \"one\",\nline two".into()), ..Row::default() },
        ];
        let records = rows.iter().map(|row| Record { row: row.clone(), ..Record::default() }).collect();
        let (config, environment) = (Config::default(), Environment::capture::<&Path>(&[]));
        let (csv, json) = (files.csv().to_owned(), files.json().to_owned());
        let run = Run { config, environment, records, unreadable: Vec::new(), csv, json };
        files.write(&run).unwrap();
        drop(files);
        let table = Table::read_csv(&run.csv).unwrap();
        assert_eq!((table.rows(), table.columns().len()), (2, header().unwrap().split(',').count()));
        assert_eq!([0, 1].map(|row| table.str("framework", row)), [Some("pytorch"), None]);
        assert_eq!([0, 1].map(|row| table.f64("latency_p50_ms", row)), [Some(1.5), None]);
        assert_eq!([0, 1].map(|row| table.str("reason", row)), [None, Some("line \"one\",\nline two")]);
        let back: Run = serde_json::from_slice(&std::fs::read(&run.json).unwrap()).unwrap();
        assert_eq!(back.records, run.records);
    }

    /// Each of upstream's columns has its value, as pandas reads it in upstream's programs.
    #[test]
    fn every_column_of_upstream_has_its_value() {
        let row = Row {
            framework: "jax".into(),
            model: "vit_b_16".into(),
            device: "cuda:1".into(),
            device_type: "cuda".into(),
            batch_size: 8,
            input_shape: "(3, 224, 224)".into(),
            dtype: "float16".into(),
            latency_p50_ms: Some(2.5),
            latency_p95_ms: Some(3.5),
            latency_p99_ms: Some(4.5),
            latency_mean_ms: Some(2.75),
            latency_std_ms: Some(0.25),
            latency_min_ms: Some(2.125),
            latency_max_ms: Some(5.5),
            throughput_ips: Some(3200.5),
            memory_mb: Some(512.75),
            compilation_time_ms: Some(1500.25),
            timestamp: "2025-01-01T12:00:00".into(),
            git_commit: Some("abc123".into()),
            status: Status::Ok,
            ..Row::default()
        };
        let text = String::from_utf8(table(std::iter::once(&row)).unwrap()).unwrap();
        let values = "jax,vit_b_16,cuda:1,cuda,8,\"(3, 224, 224)\",float16,2.5,3.5,4.5,2.75,0.25,2.125,5.5,\
                      3200.5,512.75,1500.25,2025-01-01T12:00:00,abc123,ok,";
        assert!(text.lines().nth(1).unwrap().starts_with(values), "{text}");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let text = format!("{:#}", begin(&file.join("raw")).unwrap_err());
        assert!(text.contains("--output-dir") && text.contains("file"), "{text}");
    }
}
