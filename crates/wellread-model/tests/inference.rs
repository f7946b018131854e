//! Inference against plain implementations from the definitions, in double precision, on networks of reduced depth
//! and size. Weights, ONNX files and sessions are given what they must refuse.

mod plain;
mod small;

use sha2::{Digest, Sha256};
use small::RESNET;
use std::fs;
use std::path::Path;
use wellread_model::Device;
use wellread_model::infer::{
    Architecture, Dtype, Session, SessionOptions, architecture, candle, onnx_file, resnet50, vit_b_16,
    weights_file,
};
use wellread_model::init::Uniform;

/// A transformer of two layers.
const VIT: Architecture = Architecture {
    name: "small-vit",
    about: "for tests",
    input: [3, 72, 80],
    classes: 33,
    build: |arch| {
        vit_b_16::transformer(
            arch,
            vit_b_16::Sizes { patch: 8, width: 128, heads: 2, mlp: 200, layers: plain::VIT_LAYERS },
        )
    },
};

fn images(arch: &Architecture, batch: usize) -> Vec<f32> {
    let mut uniform = Uniform::new(5, 0);
    (0..batch * arch.pixels()).map(|_| uniform.next_within(2.0)).collect()
}

fn open(arch: &Architecture, weights: &Path, threads: usize) -> Box<dyn Session> {
    candle::open(arch, weights, &SessionOptions { threads, ..Default::default() }).unwrap()
}

fn logits(session: &mut dyn Session, images: &[f32], batch: usize) -> Vec<f32> {
    session.load(images, batch).unwrap();
    session.run().unwrap();
    session.logits().unwrap()
}

#[test]
fn sessions_compute_what_the_definitions_say() {
    type Plain = fn(&plain::State, &plain::Image) -> Vec<f64>;
    let folder = tempfile::tempdir().unwrap();
    for (arch, plain) in [(RESNET, plain::resnet as Plain), (VIT, plain::vit)] {
        let weights = weights_file(&arch, 1, folder.path()).unwrap();
        let images = images(&arch, 2);
        let ours = logits(&mut *open(&arch, &weights, 2), &images, 2);
        let state = plain::read(&weights);
        for (image, ours) in images.chunks_exact(arch.pixels()).zip(ours.chunks_exact(arch.classes)) {
            let expected = plain(&state, &plain::Image::new(arch.input, image));
            assert_eq!(expected.len(), arch.classes);
            let scale = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            for (class, (a, b)) in ours.iter().zip(&expected).enumerate() {
                let difference = (f64::from(*a) - b).abs();
                assert!(difference < 1e-5 * scale, "{} class {class}: {a}, not {b}", arch.name);
            }
        }
    }
}

#[test]
fn logits_depend_neither_on_threads_nor_on_the_rest_of_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    for arch in [RESNET, VIT] {
        let weights = weights_file(&arch, 2, folder.path()).unwrap();
        let images = images(&arch, 3);
        let all = logits(&mut *open(&arch, &weights, 1), &images, 3);
        assert_eq!(all, logits(&mut *open(&arch, &weights, 5), &images, 3));
        // One session, batches of other sizes one after the other.
        let mut session = open(&arch, &weights, 2);
        for (image, expected) in images.chunks_exact(arch.pixels()).zip(all.chunks_exact(arch.classes)) {
            assert_eq!(logits(&mut *session, image, 1), expected);
        }
        assert_eq!(logits(&mut *session, &images, 3), all);
    }
}

#[test]
fn seeded_weights_are_the_same_on_every_platform() {
    let folder = tempfile::tempdir().unwrap();
    let path = weights_file(architecture("resnet50").unwrap(), 0, folder.path()).unwrap();
    assert_eq!(path.file_name().unwrap(), "resnet50-seed0.safetensors");
    let sum = Sha256::digest(fs::read(&path).unwrap());
    // The first half of `sha256sum resnet50-seed0.safetensors`.
    assert_eq!(u128::from_be_bytes(sum[..16].try_into().unwrap()), 0xd6a6_c748_cd26_c2a2_1b13_a51d_3e61_aeee);
    // An existing file is left as it is, another seed is another file, and nothing else lies about.
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    weights_file(architecture("resnet50").unwrap(), 0, folder.path()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
    let other = weights_file(&RESNET, 1, folder.path()).unwrap();
    assert_ne!(fs::read(weights_file(&RESNET, 2, folder.path()).unwrap()).unwrap(), fs::read(other).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn architectures_have_torchvisions_parameters() {
    // Numbers that torchvision documents for its weights.
    for (name, expected) in [("resnet50", 25_557_032), ("vit_b_16", 86_567_656)] {
        let parameters = architecture(name).unwrap().network().unwrap().parameters();
        let trainable = parameters.iter().filter(|p| !p.shape.is_empty() && !p.name.contains("running_"));
        assert_eq!(trainable.map(|p| p.shape.iter().product::<usize>()).sum::<usize>(), expected, "{name}");
    }
    let error = architecture("resnet51").unwrap_err();
    assert!(error.to_string().contains("resnet50, vit_b_16"), "{error}");
}

#[test]
fn other_sizes_of_images_are_taken_where_the_architecture_can() {
    let resnet = architecture("resnet50").unwrap();
    assert_eq!(resnet.with_input([3, 64, 96]).unwrap().pixels(), 3 * 64 * 96);
    assert!(resnet.with_input([1, 64, 64]).unwrap_err().to_string().contains("3 channels"));
    assert!(resnet.with_input([3, 0, 64]).unwrap_err().to_string().contains("too small"));
    assert!(resnet.with_input([3, usize::MAX, 64]).unwrap_err().to_string().contains("too large"));
    let error = architecture("vit_b_16").unwrap().with_input([3, 64, 64]).unwrap_err();
    assert!(error.to_string().contains("224 x 224"), "{error}");
}

#[test]
fn weights_that_do_not_fit_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let good = fs::read(weights_file(&RESNET, 0, folder.path()).unwrap()).unwrap();
    let path = folder.path().join("bad.safetensors");
    let refused = |bytes: &[u8], words: &[&str]| {
        fs::write(&path, bytes).unwrap();
        let error = candle::open(&RESNET, &path, &SessionOptions::default()).err().unwrap().to_string();
        for word in words.iter().chain(&["bad.safetensors"]) {
            assert!(error.contains(word), "{word:?} is not in {error:?}");
        }
    };
    // Cut off anywhere, or nothing at all.
    for length in [0, 7, 8, 100, 5000, good.len() / 2, good.len() - 1] {
        refused(&good[..length], &[]);
    }
    // A header that claims to be huge.
    refused(&[&u64::MAX.to_le_bytes()[..], &good[8..]].concat(), &[]);
    let header = u64::from_le_bytes(good[..8].try_into().unwrap()) as usize;
    let text = String::from_utf8(good[8..8 + header].to_vec()).unwrap();
    let with_header =
        |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &good[8 + header..]].concat();
    refused(&with_header(&text.replacen("fc.bias", "fc.bia5", 1)), &["fc.bias is missing"]);
    refused(&with_header(&text.replacen("[64,3,7,7]", "[64,7,3,7]", 1)), &["conv1.weight", "[64, 7, 3, 7]"]);
    // An infinity and a NaN in the last parameter of the file.
    for bad in [f32::INFINITY, f32::NAN] {
        let mut bytes = good.clone();
        let at = bytes.len() - 4;
        bytes[at..].copy_from_slice(&bad.to_le_bytes());
        refused(&bytes, &["has", "at position"]);
    }
    // Another network's weights have surplus parameters and lack others.
    let other = fs::read(weights_file(&VIT, 0, folder.path()).unwrap()).unwrap();
    refused(&other, &["conv1.weight is missing"]);
    let deeper =
        Architecture { build: |arch| resnet50::bottlenecks(arch, [1, 1, 1, 2]), name: "deeper", ..RESNET };
    let deeper = fs::read(weights_file(&deeper, 0, folder.path()).unwrap()).unwrap();
    refused(&deeper, &["has no parameter layer4.1"]);
    let error = candle::open(&RESNET, Path::new("no/such.file"), &SessionOptions::default()).err().unwrap();
    assert!(error.to_string().contains("no/such.file"));
}

#[test]
fn sessions_refuse_what_they_cannot_do() {
    let folder = tempfile::tempdir().unwrap();
    let weights = weights_file(&RESNET, 0, folder.path()).unwrap();
    for dtype in [Dtype::Float16, Dtype::Bfloat16] {
        let options = SessionOptions { dtype, ..Default::default() };
        let error = candle::open(&RESNET, &weights, &options).err().unwrap().to_string();
        assert!(error.contains(dtype.name()) && error.contains("supports: float32"), "{error}");
    }
    let options = SessionOptions { device: Device::Cuda(99), ..Default::default() };
    let error = candle::open(&RESNET, &weights, &options).err().unwrap();
    assert!(error.to_string().contains("cuda:99"), "{error}");
    let mut session = open(&RESNET, &weights, 1);
    assert!(session.run().is_err() && session.logits().is_err());
    assert!(session.load(&[0.0; 17], 1).unwrap_err().to_string().contains("17 pixels"));
    assert!(session.load(&[], 0).is_err());
    session.load(&images(&RESNET, 1), 1).unwrap();
    assert!(session.logits().is_err(), "logits of a run that never was");
}

#[test]
fn onnx_files_hold_the_weights_and_say_what_goes_in() {
    let folder = tempfile::tempdir().unwrap();
    for (arch, operator, count) in [(RESNET, "Conv", 17), (VIT, "LayerNormalization", 5)] {
        let weights = weights_file(&arch, 0, folder.path()).unwrap();
        let path = onnx_file(&arch, &weights, folder.path()).unwrap();
        let model = plain::onnx(&fs::read(&path).unwrap());
        assert_eq!(model.opset, 17);
        assert_eq!(model.input, ("images".into(), arch.input.map(|a| a as u64).to_vec()));
        assert_eq!(model.output, ("logits".into(), vec![arch.classes as u64]));
        assert_eq!(model.operators.iter().filter(|o| *o == operator).count(), count);
        // Every name that a node reads is there before it, and every name is given once.
        let mut known: Vec<&str> = model.constants.keys().map(String::as_str).collect();
        known.push("images");
        for (reads, gives) in &model.nodes {
            assert!(reads.iter().all(|name| known.contains(&name.as_str())), "{reads:?}");
            assert!(gives.iter().all(|name| !known.contains(&name.as_str())), "{gives:?}");
            known.extend(gives.iter().map(String::as_str));
        }
        assert!(known.contains(&"logits"));
        for (name, (shape, values)) in plain::read(&weights) {
            let Some((dims, bytes)) = model.constants.get(&name) else {
                assert!(name.ends_with("num_batches_tracked"), "{name} is not in the file");
                continue;
            };
            // Linear layers of tokens are turned.
            let turned = shape.iter().rev().map(|&a| a as u64).eq(dims.iter().copied());
            assert!(turned || shape.iter().map(|&a| a as u64).eq(dims.iter().copied()), "{name}: {dims:?}");
            let stored: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
            let mut expected: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            if shape.len() == 2 && name != "fc.weight" && name != "heads.head.weight" {
                let (rows, columns) = (shape[0], shape[1]);
                expected = (0..rows * columns).map(|i| expected[i % rows * columns + i / rows]).collect();
            }
            assert!(stored == expected, "{name} has other values");
        }
        // Made once; again when the weights are newer.
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        // Some time ago: times of files may be told in steps that are longer than this test.
        for (file, seconds) in [(&weights, 20), (&path, 10)] {
            let then = std::time::SystemTime::now() - std::time::Duration::from_secs(seconds);
            fs::File::options().append(true).open(file).unwrap().set_modified(then).unwrap();
        }
        let first = modified(&path);
        onnx_file(&arch, &weights, folder.path()).unwrap();
        assert_eq!(modified(&path), first);
        fs::File::options()
            .append(true)
            .open(&weights)
            .unwrap()
            .set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(5))
            .unwrap();
        onnx_file(&arch, &weights, folder.path()).unwrap();
        assert_ne!(modified(&path), first);
        // And when it was cut short, whatever its date.
        let whole = fs::read(&path).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        fs::File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
        onnx_file(&arch, &weights, folder.path()).unwrap();
        assert!(fs::read(&path).unwrap() == whole);
    }
}

#[test]
#[cfg(all(target_os = "linux", not(feature = "portable")))]
fn what_a_killed_process_left_goes_when_the_file_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let part = |mark: &str| folder.path().join(format!("{}-seed3.safetensors.{mark}.part", RESNET.name));
    // No process has this number here; in another container one may have it.
    let dead = part(&wellread_trace::process::process_mark(u32::MAX));
    let elsewhere = [part(&format!("{}.another", u32::MAX)), part(&u32::MAX.to_string())];
    let other = folder.path().join("notes.7.part");
    for path in elsewhere.iter().chain([&dead, &other]) {
        fs::write(path, "half").unwrap();
    }
    weights_file(&RESNET, 3, folder.path()).unwrap();
    assert!(!dead.exists() && other.exists() && elsewhere.iter().all(|path| path.exists()));
}
