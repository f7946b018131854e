//! One model on the CPU, from Rust alone: the median time of a forward pass.
//!
//! `cargo run --release -p wellread-model --example infer -- resnet50 4 2 20 FOLDER candle`. The arguments are the
//! model, images per batch, threads, passes, folder of the seeded weights, and `candle` or, with the feature of that
//! name, `onnxruntime`. ONNX Runtime's library is at `ORT_DYLIB_PATH`, or in the environment of `python3`. With
//! `FOLDER/images.f32` (raw float32, NCHW) these images are taken, and the logits go to `FOLDER/logits.f32`.
//! `benches/inference.py` compares it with PyTorch.

use std::path::{Path, PathBuf};
use std::time::Instant;
use wellread_model::infer::{self, Architecture, Session, SessionOptions};
use wellread_model::{Error, Result};

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let mut word = |default: &str| words.next().unwrap_or_else(|| default.to_owned());
    let name = word("resnet50");
    let mut number = |default| {
        word(default).parse::<usize>().map_err(|e| Error::new(format_args!("not a whole number: {e}")))
    };
    let (batch, threads, passes) = (number("1")?, number("2")?, number("20")?.max(1));
    let folder = PathBuf::from(word("results"));
    let arch = infer::architecture(&name)?;
    let weights = infer::weights_file(arch, 0, &folder)?;
    let options = SessionOptions { threads, ..Default::default() };
    let mut session = open(&word("candle"), arch, &weights, &options)?;
    let given = std::fs::read(folder.join("images.f32")).ok();
    let images = match &given {
        Some(bytes) => bytes.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect(),
        None => vec![0.5; batch * arch.pixels()],
    };
    session.load(&images, batch)?;
    let mut seconds = Vec::with_capacity(passes);
    for pass in 0..passes + 3 {
        let start = Instant::now();
        session.run()?;
        if pass >= 3 {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    if given.is_some() {
        let bytes: Vec<u8> = session.logits()?.into_iter().flat_map(f32::to_le_bytes).collect();
        let path = folder.join("logits.f32");
        std::fs::write(&path, bytes)
            .map_err(|e| Error::new(format_args!("cannot write {}: {e}", path.display())))?;
    }
    seconds.sort_by(f64::total_cmp);
    println!("{:.3} ms  {name} x {batch}, {}", seconds[seconds.len() / 2] * 1e3, session.backend());
    Ok(())
}

fn open(
    backend: &str,
    arch: &Architecture,
    weights: &Path,
    options: &SessionOptions,
) -> Result<Box<dyn Session>> {
    match backend {
        "candle" => infer::candle::open(arch, weights, options),
        #[cfg(feature = "onnxruntime")]
        "onnxruntime" => {
            use infer::onnxruntime::{Provider, open};
            let folder = weights.parent().unwrap_or(Path::new("."));
            let model = infer::onnx_file(arch, weights, folder)?;
            open(&model, None, Provider::Cpu, arch.input, options)
        }
        other => Err(Error::new(format_args!("this build has no backend {other:?}"))),
    }
}
