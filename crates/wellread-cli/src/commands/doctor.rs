//! `wellread doctor`; with `--data` see [`super::diagnosis`].

use crate::output::{Outcome, Ui};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellread_bench::machine::{Moment, facts};
use wellread_measure::environment::Environment;
use wellread_measure::path_text;
use wellread_model::infer::candle::DEVICES as CANDLE_DEVICES;
use wellread_worker::question::{ask, ask_python};

/// Looks at the machine, the storage engines of this build, and the frameworks of the Python on the PATH.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wellread doctor
  wellread doctor --python venv/bin/python --json
  wellread doctor --data plate.parquet
  wellread doctor --data plate.parquet --step-ms 40 --workers 4 --batch-size 32")]
pub struct Args {
    /// Python to check; by default that of WELLREAD_PYTHON, of wellread's own environment, or python3.
    #[arg(long, conflicts_with = "data")]
    python: Option<PathBuf>,
    #[command(flatten)]
    diagnosis: super::diagnosis::Args,
}

/// How long a program that is asked may take. A Python on a network drive, or on a busy machine, takes many seconds.
const PROBE_TIMEOUT: Duration = Duration::from_mins(1);

/// Asks a Python for the versions of packages without importing them (importing PyTorch takes seconds). `wellread` may also lie on
/// the path without being installed, which the records of packages do not tell. Its version is then in its native module alone.
const PACKAGES: &str = r#"
import importlib.machinery, importlib.metadata as m, importlib.util, json, platform, sys
def on_path(p):
    s = importlib.util.find_spec(p)
    native = s and s.origin and importlib.machinery.PathFinder.find_spec(p + "._native", s.submodule_search_locations)
    return "on the path, not installed as a package" if native else None
def v(p):
    try: return m.version(p)
    except m.PackageNotFoundError: return on_path(p) if p == "wellread" else None
names = ["wellread", "torch", "torchvision", "torch-tensorrt", "jax", "flax", "onnxruntime", "numpy", "pyarrow", "ome-arrow", "tifffile", "zarr", "ome-zarr", "pylance", "lancedb", "vortex-data", "duckdb"]
print(json.dumps({"program": sys.executable, "python": platform.python_version(), **{n: v(n) for n in names}}))
"#;

pub fn run(args: &Args, ui: Ui) -> Outcome {
    if let Some(data) = &args.diagnosis.data {
        return args.diagnosis.trace.record(ui, || super::diagnosis::run(&args.diagnosis, data, ui));
    }
    args.diagnosis.check_unused()?;
    super::note_machine_leftovers(ui);
    let found = Found::look(args.python.as_deref());
    if ui.json {
        return ui.document(&found.document());
    }
    found.say_build(ui);
    found.say_machine(ui);
    found.say_inference(ui);
    found.say_python(ui);
    Ok(())
}

/// The things that this build, the machine and a Python have. Each that was asked for may be an error: why it is not there.
struct Found {
    formats: Vec<Value>,
    absent: Vec<Value>,
    models: Vec<Value>,
    environment: Environment,
    /// The path of the Python that was asked, as it says; the name that was asked for where it says nothing.
    program: String,
    /// Versions of its packages.
    python: Result<Value, String>,
    /// The library of ONNX Runtime.
    library: Result<PathBuf, String>,
    gpu: Result<String, String>,
}

impl Found {
    fn look(python: Option<&Path>) -> Self {
        let environment = Environment::capture(&[Path::new(".")]);
        let formats = wellread_store::formats()
            .iter()
            .filter_map(|f| Some(json!({ "name": f.name, "about": f.about, "engine": (f.engine)().ok()? })))
            .collect();
        let absent = wellread_store::registry::missing_formats()
            .iter()
            .map(|(name, how_to_get)| json!({ "name": name, "how_to_get": how_to_get }))
            .collect();
        let models =
            wellread_model::models().iter().map(|m| json!({ "name": m.name, "about": m.about })).collect();
        let asked = wellread_worker::python(python).to_string_lossy().into_owned();
        let mut packages = ask_python(&asked, PACKAGES, &[], PROBE_TIMEOUT)
            .and_then(|text| serde_json::from_str::<Value>(&text).map_err(|e| e.to_string()));
        let program = packages.as_mut().ok().and_then(program_of).unwrap_or(asked);
        let library = wellread_infer::backend::onnxruntime::find(None, python).map_err(|e| format!("{e:#}"));
        let gpu = ask(
            "nvidia-smi",
            &["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
            PROBE_TIMEOUT,
        );
        Self { formats, absent, models, environment, program, python: packages, library, gpu }
    }

    fn document(&self) -> Value {
        json!({
            "wellread": env!("CARGO_PKG_VERSION"),
            "formats": self.formats,
            "formats_missing": self.absent,
            "models": self.models,
            "machine": self.environment,
            "warnings": self.environment.noise_warnings(),
            "candle_devices": CANDLE_DEVICES,
            "python": self.python.as_ref().ok(),
            "python_program": self.program,
            "python_missing": self.python.as_ref().err(),
            "onnxruntime_library": self.library.as_deref().ok().map(path_text::text),
            "onnxruntime_library_missing": self.library.as_ref().err(),
            "gpu": self.gpu.as_ref().ok(),
            "gpu_missing": self.gpu.as_ref().err(),
        })
    }

    fn say_build(&self, ui: Ui) {
        ui.say(format!("wellread {}\n\nStorage formats of this build", env!("CARGO_PKG_VERSION")));
        for format in &self.formats {
            ui.say(format!("  ok       {:<19}{}", text(&format["name"]), text(&format["engine"])));
        }
        for format in &self.absent {
            ui.say(format!("  missing  {:<19}{}", text(&format["name"]), text(&format["how_to_get"])));
        }
        if !wellread_store::registry::absent_formats().is_empty() {
            ui.say(format!("           {HOW_TO_BUILD}"));
        }
        ui.say("\nModels of this build");
        for model in &self.models {
            ui.say(format!("  ok       {:<14}{}", text(&model["name"]), text(&model["about"])));
        }
    }

    fn say_machine(&self, ui: Ui) {
        ui.say("\nMachine");
        for line in aligned(&facts(&self.environment, Moment::Now)) {
            ui.say(line);
        }
        for warning in self.environment.noise_warnings() {
            ui.say(format!("  note     {warning}"));
        }
        ui.say("\nDevices");
        match &self.gpu {
            Ok(gpu) => gpu.trim().lines().for_each(|line| ui.say(format!("  ok       {line}"))),
            Err(why) => {
                ui.say(format!(
                    "  missing  NVIDIA GPU ({why}); models run on the CPU. With a GPU: install its driver"
                ));
            }
        }
    }

    fn say_inference(&self, ui: Ui) {
        ui.say("\nInference (for infer --framework candle, onnxruntime)");
        let gpus = if CANDLE_DEVICES.contains(&"cuda") {
            "candle's on NVIDIA GPUs"
        } else {
            "GPUs need a build with the cargo feature `cuda`"
        };
        ui.say(format!("  ok       candle        wellread's own kernels on the CPU; {gpus}"));
        match &self.library {
            Ok(path) => ui.say(format!("  ok       onnxruntime   {}", path.display())),
            Err(why) => ui.say(format!("  missing  onnxruntime   {why}")),
        }
    }

    fn say_python(&self, ui: Ui) {
        ui.say(
            "\nPython (for infer, for bench --framework and for comparing with its libraries; wellread needs none)",
        );
        match &self.python {
            Ok(Value::Object(found)) => {
                ui.say(format!("           program        {}", self.program));
                for (name, version) in found {
                    match version.as_str() {
                        Some(version) => ui.say(format!("  ok       {name:<15}{version}")),
                        None => {
                            ui.say(format!("  missing  {name:<15}{}", how_to_install(&self.program, name)));
                        }
                    }
                }
            }
            Ok(_) => ui.say("  missing  the answer of Python was not understood"),
            Err(why) => {
                let program = &self.program;
                ui.say(format!(
                    "  missing  {program} ({why}); install Python 3.10 or newer, or pass --python"
                ));
            }
        }
    }
}

/// Facts in lines, their values below each other.
fn aligned(facts: &[(&str, String)]) -> Vec<String> {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    facts.iter().map(|(name, value)| format!("           {name:<width$}  {value}")).collect()
}

/// How a format that this build lacks is had.
const HOW_TO_BUILD: &str = "in a clone of wellread: `make install` builds all of them; one: cargo install --locked --path \
     crates/wellread-cli --features FEATURE";

/// Takes the path of the Python out of its answer, which has the versions of packages beside it.
fn program_of(answer: &mut Value) -> Option<String> {
    let program = answer.as_object_mut()?.remove("program")?;
    program.as_str().filter(|path| !path.is_empty()).map(str::to_owned)
}

/// How a Python has a package. Each of these is in Python's package index, but for wellread itself. The `pip` on the PATH may be
/// that of another Python.
fn how_to_install(program: &str, package: &str) -> String {
    let quote = if program.contains(char::is_whitespace) { "\"" } else { "" };
    let what = match package {
        "wellread" => ". (in a clone of wellread)",
        "torch-tensorrt" => "torch-tensorrt (with an NVIDIA GPU only)",
        name => name,
    };
    format!("{quote}{program}{quote} -m pip install {what}")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_installed_by_the_python_that_was_asked() {
        let mut answer = json!({ "program": "/venv/bin/python", "python": "3.12.1", "torch": null });
        let program = program_of(&mut answer).unwrap();
        assert_eq!(answer, json!({ "python": "3.12.1", "torch": null }));
        assert_eq!(how_to_install(&program, "torch"), "/venv/bin/python -m pip install torch");
        let own = how_to_install("/my venv/bin/python", "wellread");
        assert_eq!(own, "\"/my venv/bin/python\" -m pip install . (in a clone of wellread)");
        // A Python that is embedded in another program does not know its path.
        assert_eq!(program_of(&mut json!({ "program": "", "python": "3.12.1" })), None);
        assert_eq!(program_of(&mut json!([])), None);
    }

    #[test]
    fn values_of_long_names_stand_apart() {
        let facts = [("cpu", "EPYC".to_owned()), ("commit of the working folder", "1a2b".to_owned())];
        assert_eq!(
            aligned(&facts),
            [
                "           cpu                           EPYC",
                "           commit of the working folder  1a2b"
            ]
        );
    }
}
