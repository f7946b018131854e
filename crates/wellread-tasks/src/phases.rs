//! The reports of the process of a task: JSON lines in the file that `WELLREAD_PHASES` names.
//!
//! ```text
//!  {"phase":"data_setup","elapsed_seconds":0.4,"peak_memory_mb":812}      a phase has ended
//!  {"samples":"batch_loading","seconds":[0.02,0.01],"warm_up":1}          repeated phases, all samples in order
//!  {"info":{"num_batches":100}}   {"final_metrics":{"val_dice":0.83}}     {"artifact":{"kind":"overlay","path":"x.png"}}
//!  {"error":"what, where, what to do"}                                    before it exits with another code than 0
//! ```
//!
//! The file comes from a program that may have been killed while it wrote. A line that is not understood is left out
//! with a note, never an error. Times are seconds, memory is MB of 10^6 bytes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

/// Most bytes of the file that are read.
const MAX_BYTES: u64 = 256 << 20;
/// Longest line.
const MAX_LINE_BYTES: usize = 32 << 20;
/// Most notes about lines that are not understood.
const MAX_NOTES: usize = 5;

/// The variable that names the file.
pub const VARIABLE: &str = "WELLREAD_PHASES";

/// A phase that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// How long it took, in seconds.
    pub elapsed_seconds: f64,
    /// Memory of the process afterwards, less that before, in MB; null in the results when it is not known.
    #[serde(default)]
    pub memory_delta_mb: Option<f64>,
    /// Largest memory of the process meanwhile, in MB; null in the results when it is not known.
    #[serde(default)]
    pub peak_memory_mb: Option<f64>,
    /// Largest memory of the GPU meanwhile, in MB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_gpu_memory_mb: Option<f64>,
}

/// All samples of a repeated phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// In the order measured, in seconds.
    pub seconds: Vec<f64>,
    /// How many of the first are warm-up: compilation, autotuning, cold caches.
    pub warm_up: usize,
}

impl Samples {
    /// The samples after the warm-up.
    pub fn steady(&self) -> &[f64] {
        self.seconds.get(self.warm_up..).unwrap_or_default()
    }
}

/// A file of the task that the report shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// `loss_curve` (CSV) or `overlay` (PNG).
    pub kind: String,
    /// Where it is.
    pub path: String,
}

/// Everything that was said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseReport {
    /// Phases by name, in the order in which they ended.
    pub phases: Vec<(String, Phase)>,
    /// Repeated phases by name.
    pub samples: Vec<(String, Samples)>,
    /// Numbers of batches, images and the like.
    pub info: Map<String, Value>,
    /// Losses and scores at the end.
    pub final_metrics: Map<String, Value>,
    /// Files to show.
    pub artifacts: Vec<Artifact>,
    /// The error, in the program's words.
    pub error: Option<String>,
    /// The lines that were not understood.
    pub notes: Vec<String>,
}

impl PhaseReport {
    /// A phase by name.
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|(known, _)| known == name).map(|(_, phase)| phase)
    }

    /// A repeated phase by name.
    pub fn samples(&self, name: &str) -> Option<&Samples> {
        self.samples.iter().find(|(known, _)| known == name).map(|(_, samples)| samples)
    }

    /// Whether no phase was reported.
    pub fn is_silent(&self) -> bool {
        self.phases.is_empty() && self.samples.is_empty()
    }

    /// Reads the file; one that is not there says nothing.
    pub fn read(path: &Path) -> Self {
        let mut said = Self::default();
        let Ok(file) = std::fs::File::open(path) else { return said };
        let mut reader = BufReader::new(file.take(MAX_BYTES));
        let mut missed = 0;
        for number in 1.. {
            let mut line = Vec::new();
            let read = (&mut reader).take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut line);
            let whole = line.last() == Some(&b'\n');
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    said.notes.push(format!("the phases could not be read to their end: {error}"));
                    break;
                }
            }
            let text = String::from_utf8_lossy(&line);
            if text.trim().is_empty() {
                continue;
            }
            if let Err(why) = said.line(text.trim()) {
                missed += 1;
                if missed <= MAX_NOTES {
                    let torn =
                        if whole { "" } else { " (the last line is torn: the program ended while it wrote)" };
                    said.notes.push(format!("line {number} of the phases was left out: {why}{torn}"));
                }
            }
        }
        if missed > MAX_NOTES {
            said.notes.push(format!("{missed} lines of the phases were left out in all"));
        }
        said
    }

    fn line(&mut self, text: &str) -> Result<(), String> {
        let value = parse(text)?;
        let Value::Object(mut fields) = value else { return Err("it is no JSON object".to_owned()) };
        if let Some(name) = fields.get("phase") {
            let name = name.as_str().filter(|name| !name.trim().is_empty());
            let name = name.ok_or("its phase has no name")?.to_owned();
            let seconds = fields.get("elapsed_seconds").filter(|value| !value.is_null());
            let seconds = seconds.ok_or_else(|| format!("phase {name} has no elapsed_seconds"))?;
            let time = seconds.as_f64().filter(|s| is_time(*s));
            let megabytes = |name: &str| fields.get(name).and_then(Value::as_f64).filter(|mb| mb.is_finite());
            let phase = Phase {
                elapsed_seconds: time.ok_or_else(|| {
                    format!("phase {name}: elapsed_seconds is {seconds}, which is no time in seconds")
                })?,
                memory_delta_mb: megabytes("memory_delta_mb"),
                peak_memory_mb: megabytes("peak_memory_mb"),
                peak_gpu_memory_mb: megabytes("peak_gpu_memory_mb"),
            };
            // Said twice, the last is meant.
            self.phases.retain(|(known, _)| *known != name);
            self.phases.push((name, phase));
        } else if let Some(name) = fields.get("samples") {
            let name = name.as_str().ok_or("its samples have no name")?.to_owned();
            let values = fields.get("seconds").and_then(Value::as_array);
            let values = values.ok_or_else(|| format!("samples {name} have no list of seconds"))?;
            let seconds: Option<Vec<f64>> =
                values.iter().map(|value| value.as_f64().filter(|s| is_time(*s))).collect();
            let seconds = seconds.ok_or_else(|| format!("samples {name} hold what is no time"))?;
            let warm_up = fields.get("warm_up").and_then(Value::as_u64).unwrap_or(0) as usize;
            let at = self.samples.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                self.samples.push((name, Samples::default()));
                self.samples.len() - 1
            });
            let samples = &mut self.samples[at].1;
            samples.seconds.extend(seconds);
            samples.warm_up = samples.warm_up.max(warm_up);
        } else if let Some(Value::Object(info)) = fields.get_mut("info") {
            self.info.append(info);
        } else if let Some(Value::Object(metrics)) = fields.get_mut("final_metrics") {
            self.final_metrics.append(metrics);
        } else if let Some(artifact) = fields.remove("artifact") {
            let artifact = serde_json::from_value(artifact);
            self.artifacts.push(artifact.map_err(|_| "an artifact has a kind and a path")?);
        } else if let Some(error) = fields.get("error").and_then(Value::as_str) {
            self.error = Some(error.trim().to_owned());
        }
        Ok(())
    }
}

/// JSON, and the words that Python writes for numbers that JSON does not have.
fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).or_else(|error| {
        let plain = text.replace("-Infinity", "null").replace("Infinity", "null").replace("NaN", "null");
        serde_json::from_str(&plain).map_err(|_| format!("it is not JSON ({error})"))
    })
}

fn is_time(seconds: f64) -> bool {
    seconds.is_finite() && seconds >= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &[u8]) -> PhaseReport {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        PhaseReport::read(file.path())
    }

    #[test]
    fn lines_are_joined_and_unknown_keys_ignored() {
        let said = said(
            b"{\"phase\":\"data_setup\",\"elapsed_seconds\":0.5,\"peak_memory_mb\":12.5,\"mood\":\"good\"}\n\
              {\"samples\":\"batch_loading\",\"seconds\":[3,1],\"warm_up\":1}\n\
              {\"hello\":1}\n\
              {\"samples\":\"batch_loading\",\"seconds\":[1.5]}\n\
              {\"info\":{\"num_batches\":3}}\n{\"info\":{\"batch_size\":2}}\n\
              {\"final_metrics\":{\"val_dice\":0.8,\"loss\":NaN}}\n\
              {\"artifact\":{\"kind\":\"overlay\",\"path\":\"a.png\"}}\n\
              {\"error\":\" no data \"}\n",
        );
        assert_eq!(said.notes, [""; 0]);
        assert_eq!(said.phase("data_setup").unwrap().peak_memory_mb, Some(12.5));
        let samples = said.samples("batch_loading").unwrap();
        assert_eq!((samples.seconds.len(), samples.steady()), (3, &[1.0, 1.5][..]));
        assert_eq!((said.info.len(), said.final_metrics["loss"].is_null()), (2, true));
        assert_eq!((said.artifacts[0].kind.as_str(), said.error.as_deref()), ("overlay", Some("no data")));
    }

    #[test]
    fn what_is_torn_or_wrong_is_left_out_and_said() {
        let said = said(
            b"{\"phase\":\"a\",\"elapsed_seconds\":-1}\n{\"phase\":\"b\",\"elapsed_seconds\":1e999}\n\xff\xfe\n[1]\n\
              {\"samples\":\"s\",\"seconds\":[1,\"x\"]}\n{\"samples\":\"s\",\"seconds\":7}\n\
              {\"phase\":\"ok\",\"elapsed_seconds\":2}\n{\"phase\":\"torn\",\"elapsed_sec",
        );
        assert_eq!(said.phases.len(), 1);
        assert!(said.samples.is_empty());
        assert!(said.notes.len() == MAX_NOTES + 1, "{:?}", said.notes);
        assert!(said.notes.last().unwrap().starts_with("7 lines"), "{:?}", said.notes);
        let torn = self::said(b"{\"phase\":\"torn\",\"elapsed_sec");
        assert!(torn.notes[0].contains("line 1") && torn.notes[0].contains("torn"), "{:?}", torn.notes);
        assert_eq!(PhaseReport::read(Path::new("/nowhere/at/all")), PhaseReport::default());
    }

    #[test]
    fn a_warm_up_longer_than_the_samples_leaves_none() {
        let said = said(b"{\"samples\":\"s\",\"seconds\":[1],\"warm_up\":18446744073709551615}\n");
        assert_eq!(said.samples("s").unwrap().steady(), [0.0; 0]);
    }
}
