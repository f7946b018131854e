//! The model: the images that it takes, whether those of a set fit it, and the start of its process.
//!
//! ```text
//!  ModelName ─ find ─▶ Chosen: axes ─ fit(images) ─▶ start ─▶ FrameworkRunner
//! ```

use super::options::{EmbedOptions, ModelName};
use crate::backend::{self, CALLABLE};
use crate::config::Config;
use crate::launch::{in_python, in_rust};
use crate::protocol::{Axes, Inspect, Open, Request};
use crate::runner::FrameworkRunner;
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use std::path::PathBuf;
use wellread_model::infer;
use wellread_worker::Worker;

/// A model that was found.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    name: ModelName,
    /// The shape that it takes; for a user's own model nobody knows before it is called.
    axes: Axes,
    /// File of its weights, or of the model itself.
    pub file: Option<PathBuf>,
}

impl Chosen {
    /// Finds it.
    ///
    /// # Errors
    /// A file that is not there or is no model.
    pub fn find(options: &EmbedOptions) -> Result<Self> {
        let open = Axes { batch: None, image: [None; 3] };
        let (axes, file) = match &options.model {
            ModelName::Onnx(path) => {
                ensure!(path.is_file(), "--model {}: there is no such file", path.display());
                (axes_of(path.clone(), options)?, Some(path.clone()))
            }
            ModelName::BuiltIn(name) => {
                let channels = infer::architecture(name)?.input[0];
                if let Some(file) = &options.weights {
                    ensure!(file.is_file(), "--weights {}: there is no such file", file.display());
                }
                (Axes { image: [Some(channels), None, None], ..open }, options.weights.clone())
            }
            ModelName::Python(_) => (open, None),
        };
        Ok(Self { name: options.model.clone(), axes, file })
    }

    /// Images of a batch, where it takes no other number.
    pub fn batch(&self) -> Option<usize> {
        self.axes.batch.filter(|&batch| batch > 0)
    }

    /// Checks that it takes images of these channels, rows and columns.
    ///
    /// # Errors
    /// It does not; the message has both shapes, and a change that would make the images fit.
    pub fn fit(&self, set: &str, images: [usize; 3]) -> Result<()> {
        let refused = |takes: String, wanted: [Option<usize>; 3]| {
            let [c, h, w] = images;
            anyhow!(
                "{} takes images of {takes} (channels, rows, columns), and those of {set} are {c} x {h} x {w}{}",
                self.name,
                advice(images, wanted)
            )
        };
        let fixed = self.axes.image;
        if fixed.iter().zip(images).any(|(axis, length)| axis.is_some_and(|axis| axis != length)) {
            let lengths = fixed.map(|axis| axis.map_or_else(|| "any".to_owned(), |n| n.to_string()));
            return Err(refused(lengths.join(" x "), fixed));
        }
        if let ModelName::BuiltIn(name) = &self.name {
            let architecture = infer::architecture(name)?;
            if let Err(why) = architecture.with_input(images) {
                let [c, h, w] = architecture.input;
                let refused = refused(format!("such as {c} x {h} x {w}"), architecture.input.map(Some));
                bail!("{refused}; {why}");
            }
        }
        Ok(())
    }

    /// Draws weights of an architecture where none are given.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn draw_weights(&mut self, options: &EmbedOptions) -> Result<()> {
        if let (ModelName::BuiltIn(name), None) = (&self.name, &self.file) {
            let Config { seed, model_dir, .. } = &options.frameworks;
            let drawn = infer::weights_file(infer::architecture(name)?, *seed, model_dir);
            self.file = Some(drawn.context("--model-dir PATH names another folder for weights")?);
        }
        Ok(())
    }

    /// Starts its process and opens it there.
    ///
    /// # Errors
    /// The error of the process; that it cannot be started.
    pub fn start(&self, images: [usize; 3], options: &EmbedOptions) -> Result<FrameworkRunner> {
        let config = &options.frameworks;
        let open = Open {
            threads: config.threads,
            device: config.device.clone(),
            dtype: config.dtype.clone(),
            model: self.name.to_string(),
            input: images,
            ..Open::default()
        };
        let named = |name: &str| backend::named(name).with_context(|| format!("this build has no {name}"));
        let (backend, launch, open) = match &self.name {
            ModelName::Onnx(_) => {
                let open = Open {
                    onnx: self.file.clone(),
                    output: options.output.clone(),
                    provider: config.provider.clone(),
                    library: config.onnxruntime.clone(),
                    python: Some(wellread_worker::python(config.python.as_deref())),
                    ..open
                };
                (named("onnxruntime")?, in_rust(config), open)
            }
            ModelName::BuiltIn(_) => {
                (named("candle")?, in_rust(config), Open { weights: self.file.clone(), ..open })
            }
            ModelName::Python(_) => (&CALLABLE as &'static dyn backend::Backend, in_python(config), open),
        };
        let framework = backend.name().to_owned();
        let open = Open { framework, ..open };
        let runner = FrameworkRunner::start_with(backend, launch, String::new(), Ok(open));
        match &runner.opened {
            Ok(_) => Ok(runner),
            Err(why) => bail!("{why}"),
        }
    }
}

/// The axes that an ONNX file leaves open. A file may be anything, so a process is asked that may crash or
/// hang.
fn axes_of(file: PathBuf, options: &EmbedOptions) -> Result<Axes> {
    let config: &Config = &options.frameworks;
    let named = format!("--model {}", file.display());
    let asked = Inspect {
        file,
        wanted: None,
        output: options.output.clone(),
        library: config.onnxruntime.clone(),
        python: wellread_worker::python(config.python.as_deref()),
    };
    let mut worker = Worker::start(&in_rust(config))?;
    let answer = worker.ask_first(&serde_json::to_value(Request::Axes(asked))?).context(named)?;
    Ok(serde_json::from_value(answer)?)
}

/// Which options would bring images to what is wanted, as the end of a sentence.
fn advice([c, h, w]: [usize; 3], [channels, rows, columns]: [Option<usize>; 3]) -> String {
    let mut options = Vec::new();
    if let Some(wanted) = channels.filter(|&wanted| wanted != c) {
        let some: Vec<_> = (0..wanted.min(16)).map(|i| (i % c.max(1)).to_string()).collect();
        let more = if wanted > some.len() { " …" } else { "" };
        options.push(format!("--channels {}{more}", some.join(",")));
    }
    let (rows, columns) = (rows.unwrap_or(h), columns.unwrap_or(w));
    if (rows, columns) != (h, w) {
        options.push(format!("--resize {rows}x{columns}"));
        if rows <= h && columns <= w {
            let last = options.pop().unwrap_or_default();
            options.push(format!("{last} or --crop {rows}x{columns}"));
        }
    }
    if options.is_empty() { String::new() } else { format!(" (hint: {})", options.join(", and ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(batch: Option<usize>, image: [Option<usize>; 3]) -> Chosen {
        Chosen { name: ModelName::Onnx("m.onnx".into()), axes: Axes { batch, image }, file: None }
    }

    #[test]
    fn images_that_do_not_fit_are_told_what_would() {
        let fixed = chosen(Some(4), [Some(3), Some(224), Some(224)]);
        assert_eq!((fixed.batch(), chosen(Some(0), [None; 3]).batch()), (Some(4), None));
        fixed.fit("set", [3, 224, 224]).unwrap();
        chosen(None, [None, Some(8), None]).fit("set", [5, 8, 9]).unwrap();
        let said = fixed.fit("set", [5, 1080, 1080]).unwrap_err().to_string();
        assert!(said.contains("m.onnx takes images of 3 x 224 x 224"), "{said}");
        assert!(said.contains("those of set are 5 x 1080 x 1080"), "{said}");
        assert!(said.contains("--channels 0,1,2, and --resize 224x224 or --crop 224x224"), "{said}");
        let said = chosen(None, [Some(3), None, None]).fit("set", [1, 8, 8]).unwrap_err().to_string();
        assert!(said.contains("3 x any x any") && said.ends_with("(hint: --channels 0,0,0)"), "{said}");
        let said = chosen(None, [None, Some(16), None]).fit("set", [1, 8, 8]).unwrap_err().to_string();
        assert!(said.ends_with("(hint: --resize 16x8)"), "{said}");
    }

    #[test]
    fn an_architecture_says_which_images_it_takes() {
        let name = ModelName::BuiltIn("vit_b_16".to_owned());
        let axes = Axes { batch: None, image: [Some(3), None, None] };
        let said = Chosen { name, axes, file: None }.fit("set", [3, 64, 64]).unwrap_err().to_string();
        assert!(said.contains("--resize 224x224") && said.contains("3 x 64 x 64"), "{said}");
    }
}
