//! Sets of synthetic cells with masks, and tasks on them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wellread_image::synthetic::{Kind, Spec, image};
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_model::init::Uniform;
use wellread_store::{ImageView, WriteOptions, create};
use wellread_train::net::{Network, Tensor};
use wellread_train::phases::Phases;
use wellread_train::task::{Mode, Task};

/// A folder with `images` and `masks` (TIFF), and room for outputs.
pub struct World {
    pub folder: TempDir,
}

impl World {
    /// `count` images of cells, `shape` TCZYX; the masks are called `NAME_mask`.
    pub fn new(count: u64, shape: [usize; 5]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec { kind: Kind::Cells, shape: Shape(shape), dtype: PixelType::U16, seed: 3 };
        let options = WriteOptions::default();
        let mut images = create(folder.path().join("images"), "tiff", &options).unwrap();
        let mut masks = create(folder.path().join("masks"), "tiff", &options).unwrap();
        for row in 0..count {
            let made = image(&spec, row).unwrap();
            let view = |metadata, shape, pixels| ImageView { metadata, shape, dtype: PixelType::U16, pixels };
            images.write(&view(&made.metadata, spec.shape, &made.pixels)).unwrap();
            let labels: Vec<u8> = made.mask.unwrap().iter().flat_map(|l| l.to_le_bytes()).collect();
            let [t, _, z, y, x] = shape;
            let named = ImageMetadata::named(format!("{}_mask", made.metadata.name));
            masks.write(&view(&named, Shape([t, 1, z, y, x]), &labels)).unwrap();
        }
        images.finish().unwrap();
        masks.finish().unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A task of small networks on the images, with further overrides.
    pub fn task(&self, experiment: &str, out: &str, overrides: &[&str]) -> Task {
        let mut all: Vec<String> = vec![
            format!("data.images={}", self.path("images").display()),
            "data.validation=[]".into(),
            "data.patch=[32, 32]".into(),
            "data.patches_per_image=2".into(),
            "data.workers=1".into(),
            "model.width=4".into(),
            "model.depth=2".into(),
            "training.epochs=2".into(),
            "training.batch_size=2".into(),
            "training.threads=2".into(),
        ];
        if experiment.ends_with("segmentation") {
            all.push(format!("data.masks={}", self.path("masks").display()));
        }
        all.extend(overrides.iter().map(|&o| o.to_owned()));
        Task {
            mode: Mode::Train,
            branch: "main".into(),
            experiment: experiment.into(),
            trainer: "cpu".into(),
            max_epochs: None,
            batch_size: None,
            checkpoint_path: None,
            data_path: None,
            overrides: all,
            seed: 5,
            worktree: self.folder.path().to_owned(),
            search: vec![],
            output_dir: self.path(out),
        }
    }

    /// Runs a task; gives its lines of phases.
    pub fn run(&self, task: &Task) -> Result<Vec<Value>, String> {
        let path = self.path("phases.jsonl");
        let _ = std::fs::remove_file(&path);
        let mut phases = Phases::open(Some(&path)).unwrap();
        wellread_train::run(task, &mut phases).map_err(|e| format!("{e:#}"))?;
        Ok(lines(&path))
    }
}

pub fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The final metrics among lines of phases.
pub fn metrics(lines: &[Value]) -> &Value {
    &lines.iter().find(|line| line.get("final_metrics").is_some()).unwrap()["final_metrics"]
}

/// A tensor of numbers between -1 and 1.
pub fn random(shape: [usize; 5], seed: u64) -> Tensor {
    let mut uniform = Uniform::new(seed, 9);
    Tensor::new((0..shape.iter().product()).map(|_| uniform.next_within(1.0)).collect(), shape).unwrap()
}

/// The name of each learnt parameter, and the relative error of its gradient. The slope of the loss along the gradient should be its
/// length.
pub fn slope_errors<N: Network + Clone>(net: &N, loss: impl Fn(&mut N) -> f64) -> Vec<(String, f64)> {
    let mut errors = vec![];
    for (index, param) in net.params().enumerate().filter(|(_, param)| param.learnt) {
        // Along the gradient itself: the slope there is the gradient's length.
        let length = param.gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        if length < 1e-5 {
            // A bias before normalisation changes nothing.
            continue;
        }
        let direction: Vec<f32> = param.gradient.iter().map(|g| (f64::from(*g) / length) as f32).collect();
        let at = |step: f32| {
            let mut moved = net.clone();
            let values = &mut moved.params_mut().nth(index).unwrap().values;
            values.iter_mut().zip(&direction).for_each(|(v, d)| *v += step * d);
            loss(&mut moved)
        };
        let error = |step: f32| ((at(step) - at(-step)) / (2.0 * f64::from(step)) / length - 1.0).abs();
        let error = [1e-3, 3e-4, 1e-4].map(error).into_iter().fold(f64::MAX, f64::min);
        errors.push((param.name.clone(), error));
    }
    errors
}
