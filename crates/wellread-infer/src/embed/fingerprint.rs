//! The sources of a table, in a line: the set, the model to the byte, and all choices that its values depend on. A run
//! goes on only with what has the same.

use super::options::{EmbedOptions, ModelName};
use crate::protocol::Opened;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use wellread_model::infer::onnx::external_files;
use wellread_store::{Error, Result};

/// The model, as the table tells of it.
#[derive(Clone, Debug)]
pub(super) struct ModelRecord {
    /// Its name, as given.
    pub name: String,
    /// SHA-256 of its file; of a user's own class that of the file of its code, where there is one.
    pub sha256: Option<String>,
    /// SHA-256 of the sums of the files of its external data; `None` where an ONNX file has none.
    pub data: Option<String>,
    /// Its backend, in words.
    pub backend: String,
}

impl ModelRecord {
    /// Reads the file, and those of its external data.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn new(options: &EmbedOptions, file: Option<&Path>, opened: &Opened) -> Result<Self> {
        let file = file.or(opened.source.as_deref());
        let sha256 = file.map(sha256_of).transpose()?;
        let onnx = file.filter(|_| matches!(options.model, ModelName::Onnx(_)));
        let data = onnx.map(data_sum).transpose()?.flatten();
        Ok(Self { name: options.model.to_string(), sha256, data, backend: opened.backend.clone() })
    }
}

/// The line.
pub(super) fn fingerprint(
    options: &EmbedOptions,
    model: &ModelRecord,
    [images, batch, part]: [usize; 3],
    device: &str,
) -> String {
    let EmbedOptions {
        output, pool, transform, skip, allow_nan, columns, layout, source, frameworks, ..
    } = options;
    let said: Value = json!({
        "set": source, "images": images, "batch": batch, "part": part,
        "model": model.name, "sha256": model.sha256, "data": model.data, "output": output, "pool": pool.name(),
        "transform": format!("{transform:?}"), "skip": skip, "allow_nan": allow_nan,
        "columns": columns, "features": layout.name(),
        "device": device, "provider": frameworks.provider, "dtype": frameworks.dtype,
        "wellread": env!("CARGO_PKG_VERSION"),
    });
    said.to_string()
}

/// SHA-256 of a file, in hexadecimal.
fn sha256_of(path: &Path) -> Result<String> {
    let failed = |e: std::io::Error| Error::io(path, "cannot read the model", &e);
    let mut file = File::open(path).map_err(failed)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => break,
            n => hasher.update(&buffer[..n]),
        }
    }
    Ok(hexadecimal(hasher))
}

/// One sum of all files that hold tensors of an ONNX file.
fn data_sum(model: &Path) -> Result<Option<String>> {
    let files = external_files(model).map_err(|e| Error::new(model, e))?;
    if files.is_empty() {
        return Ok(None);
    }
    let mut hasher = Sha256::new();
    for file in &files {
        hasher.update(sha256_of(file)?);
    }
    Ok(Some(hexadecimal(hasher)))
}

fn hexadecimal(hasher: Sha256) -> String {
    hasher.finalize().iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::super::features::Pool;
    use super::super::options::ModelName;
    use super::super::table::FeatureLayout;
    use super::*;
    use crate::config::Config;
    use wellread_loader::Transform;

    fn options() -> EmbedOptions {
        EmbedOptions {
            model: ModelName::Onnx("m.onnx".into()),
            weights: None,
            output: None,
            pool: Pool::None,
            transform: Transform::default().scale_to_unit(),
            batch_size: 4,
            workers: 0,
            skip: false,
            allow_nan: false,
            columns: None,
            layout: FeatureLayout::Columns,
            out: "out.parquet".into(),
            overwrite: false,
            resume: false,
            part_rows: 8,
            source: json!({ "path": "set" }),
            frameworks: Config::default(),
        }
    }

    #[test]
    fn whatever_changes_a_value_is_another_table() {
        let model = |sha: &str| ModelRecord {
            name: "m.onnx".to_owned(),
            sha256: Some(sha.to_owned()),
            data: None,
            backend: "onnxruntime".to_owned(),
        };
        let of = |options: &EmbedOptions| fingerprint(options, &model("a"), [12, 4, 8], "cpu");
        let first = of(&options());
        assert!(!first.contains('\n'), "a journal's first line");
        // Choices that change only the speed or the target.
        let same =
            EmbedOptions { workers: 3, out: "b.parquet".into(), resume: true, overwrite: true, ..options() };
        assert_eq!(of(&same), first);
        let changes: [fn(&mut EmbedOptions); 9] = [
            |o| o.output = Some("features".into()),
            |o| o.pool = Pool::Mean,
            |o| o.transform = Transform::default(),
            |o| o.skip = true,
            |o| o.allow_nan = true,
            |o| o.columns = Some(vec![]),
            |o| o.layout = FeatureLayout::List,
            |o| o.source = json!({ "path": "other" }),
            |o| o.frameworks.provider = Some("cuda".into()),
        ];
        for change in changes {
            let mut other = options();
            change(&mut other);
            assert_ne!(of(&other), first, "{other:?}");
        }
        assert_ne!(fingerprint(&options(), &model("b"), [12, 4, 8], "cpu"), first);
        let with_data = ModelRecord { data: Some("a".to_owned()), ..model("a") };
        assert_ne!(fingerprint(&options(), &with_data, [12, 4, 8], "cpu"), first);
        assert_ne!(fingerprint(&options(), &model("a"), [13, 4, 8], "cpu"), first);
        assert_ne!(fingerprint(&options(), &model("a"), [12, 4, 12], "cpu"), first);
        assert_ne!(fingerprint(&options(), &model("a"), [12, 4, 8], "cuda"), first);
    }

    #[test]
    fn a_file_is_known_by_its_sum() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("m.onnx");
        std::fs::write(&file, "abc").unwrap();
        let options = EmbedOptions { model: ModelName::BuiltIn("resnet50".into()), ..options() };
        let record = ModelRecord::new(&options, Some(&file), &Opened::default()).unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(record.sha256.as_deref(), Some(sum));
        let of_code = Opened { source: Some(file), ..Opened::default() };
        assert_eq!(ModelRecord::new(&options, None, &of_code).unwrap().sha256.as_deref(), Some(sum));
        assert_eq!(ModelRecord::new(&options, None, &Opened::default()).unwrap().sha256, None);
        assert!(ModelRecord::new(&options, Some(&dir.path().join("no")), &Opened::default()).is_err());
    }

    #[test]
    fn weights_beside_an_onnx_file_are_part_of_the_model() {
        let field =
            |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8][..], content].concat();
        let entry = [field(1, b"location"), field(2, b"m.onnx.data")].concat();
        // The last field says that the data are in another file.
        let tensor = [field(13, &entry), vec![14 << 3, 1]].concat();
        let dir = tempfile::tempdir().unwrap();
        let (file, data) = (dir.path().join("m.onnx"), dir.path().join("m.onnx.data"));
        std::fs::write(&file, field(7, &field(5, &tensor))).unwrap();
        let line = || {
            let record = ModelRecord::new(&options(), Some(&file), &Opened::default())?;
            Ok::<_, Error>(fingerprint(&options(), &record, [12, 4, 8], "cpu"))
        };
        assert!(line().unwrap_err().to_string().contains("m.onnx.data"));
        std::fs::write(&data, "weights").unwrap();
        let first = line().unwrap();
        assert_eq!(line().unwrap(), first);
        std::fs::write(&data, "weighty").unwrap();
        assert_ne!(line().unwrap(), first);
    }
}
