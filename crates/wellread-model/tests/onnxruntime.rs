//! ONNX Runtime sessions, where this machine has the library, and the errors where it has not, or has another
//! file of that name.
//!
//! One test, because a process can load one library only, and the failures must come first.

#![cfg(feature = "onnxruntime")]

mod small;

use small::RESNET;
use std::fs;
use std::path::Path;
use wellread_model::Device;
use wellread_model::infer::onnxruntime::{Provider, find_library, inspect, open};
use wellread_model::infer::{Dtype, SessionOptions, candle, onnx_file, weights_file};
use wellread_model::init::Uniform;

#[test]
fn models_run_or_the_reason_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let weights = weights_file(&RESNET, 0, folder.path()).unwrap();
    let model = onnx_file(&RESNET, &weights, folder.path()).unwrap();

    // A library that is missing, no library at all, or another one: an error each time, and no panic.
    let text = folder.path().join("libonnxruntime.so");
    fs::write(&text, "not a library").unwrap();
    for library in [folder.path().join("none.so"), text] {
        let error = inspect(&model, Some(&library), None).unwrap_err();
        let name = library.to_string_lossy();
        assert!(error.to_string().contains(&*name) && error.hint_text().is_some(), "{error}");
    }
    let error = find_library(Some(Path::new("no-such-python")));
    if std::env::var_os("ORT_DYLIB_PATH").is_none() {
        assert!(error.unwrap_err().to_string().contains("no-such-python"));
    }

    let library = match find_library(None) {
        Ok(library) => library,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let none = inspect(&model, Some(&library), Some("features")).unwrap_err();
    assert!(
        none.to_string().contains("has no output \"features\"") && none.to_string().contains("logits"),
        "{none}"
    );
    let file = inspect(&model, Some(&library), Some("logits")).unwrap();
    assert_eq!(file, inspect(&model, Some(&library), None).unwrap());
    assert_eq!((file.input.as_str(), file.output.as_str(), file.dtype), ("images", "logits", Dtype::Float32));
    assert_eq!(file.shape, [None, Some(3), Some(45), Some(70)]);
    assert_eq!(file.images(None).unwrap(), RESNET.input);
    assert!(file.images(Some([3, 224, 224])).unwrap_err().to_string().contains("any x 3 x 45 x 70"));

    let mut uniform = Uniform::new(5, 0);
    let images: Vec<f32> = (0..2 * RESNET.pixels()).map(|_| uniform.next_within(2.0)).collect();
    let options = SessionOptions { threads: 2, ..Default::default() };
    let theirs = open(&model, Some(&library), Provider::Cpu, RESNET.input, &options).unwrap();
    let ours = candle::open(&RESNET, &weights, &options).unwrap();
    let [theirs, ours] = [theirs, ours].map(|mut session| {
        assert!(session.run().is_err() && session.logits().is_err());
        assert!(session.load(&images[1..], 2).is_err());
        session.load(&images, 2).unwrap();
        session.run().unwrap();
        assert!(session.backend().contains("2 threads"), "{}", session.backend());
        assert_eq!(session.output_shape().unwrap(), [2, RESNET.classes]);
        session.logits().unwrap()
    });
    let scale = ours.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    assert_eq!(theirs.len(), ours.len());
    assert!(theirs.iter().zip(&ours).all(|(a, b)| (a - b).abs() < 1e-5 * scale));

    let refused = |provider, file: &Path, options: &SessionOptions, word: &str| {
        let error = open(file, Some(&library), provider, RESNET.input, options).err().unwrap().to_string();
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    };
    let half = SessionOptions { dtype: Dtype::Float16, ..options.clone() };
    refused(Provider::Cpu, &model, &half, "supports: float32");
    refused(Provider::Cuda, &model, &options, "does not run on the CPU");
    // Built without GPUs, or no GPU of that number.
    let gpu = SessionOptions { device: Device::Cuda(99), ..options.clone() };
    refused(Provider::Cuda, &model, &gpu, "");
    refused(Provider::TensorRt, &model, &gpu, "");
    refused(Provider::Cpu, &folder.path().join("none.onnx"), &options, "none.onnx");
    let bytes = fs::read(&model).unwrap();
    for length in [0, 10, bytes.len() / 2] {
        let cut = folder.path().join("cut.onnx");
        fs::write(&cut, &bytes[..length]).unwrap();
        refused(Provider::Cpu, &cut, &options, "cut.onnx");
    }
}
