//! How long each phase took and how much memory it needed, as JSON lines for `wellread tasks`.
//!
//! ```text
//! begin("full_training") … begin("first_epoch") … end() … end()     spans nest
//! sample("batch_forward", s) … flush()                               repeated phases, all samples in order
//! ```
//!
//! A line is one write, so that what a killed process leaves is whole lines. Peaks are the kernel's high-water mark: it is
//! read and set back at each begin and end. Each span keeps the largest it saw, so that nested spans are exact.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;
use wellread_measure::memory::{PeakGuard, Scope, resident};

/// Bytes as MB of 10^6 bytes, as everywhere in the results of `wellread tasks`.
fn megabytes(bytes: f64) -> f64 {
    bytes / 1e6
}

/// A phase that has begun.
struct Span {
    name: String,
    begin: Instant,
    resident: Option<u64>,
    peak: Option<u64>,
}

/// Repeated phases since the last flush.
struct Samples {
    name: &'static str,
    seconds: Vec<f64>,
    warm_up: usize,
}

/// Where phases are reported.
pub struct Phases {
    file: Option<File>,
    spans: Vec<Span>,
    watch: Option<PeakGuard>,
    samples: Vec<Samples>,
}

impl Phases {
    /// Reports to the file at `path`, or to nobody.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let open = |path: &Path| {
            let file = File::options().create(true).append(true).open(path);
            file.with_context(|| format!("cannot open the file of phases {}", path.display()))
        };
        Ok(Self { file: path.map(open).transpose()?, spans: vec![], watch: None, samples: vec![] })
    }

    fn line(&mut self, value: &Value) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(format!("{value}\n").as_bytes()).context("cannot write to the file of phases")
    }

    /// Reads the peak since the last look into all open spans and sets it back.
    fn look(&mut self) {
        if let Some(watch) = self.watch.take() {
            let peak = watch.stop();
            // A mark that could not be set back counts only if it rose meanwhile.
            if let Some(bytes) = peak.bytes.filter(|_| peak.is_exact()) {
                for span in &mut self.spans {
                    span.peak = span.peak.max(Some(bytes));
                }
            }
        }
        self.watch = Some(PeakGuard::start(Scope::Process));
    }

    /// Begins a phase.
    pub fn begin(&mut self, name: &str) {
        self.look();
        let resident = resident().ok().map(|r| r.total);
        self.spans.push(Span { name: name.to_owned(), begin: Instant::now(), resident, peak: resident });
    }

    /// Ends the phase begun last, and reports it.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn end(&mut self) -> Result<()> {
        let elapsed = self.spans.last().map(|span| span.begin.elapsed().as_secs_f64());
        self.look();
        let (Some(span), Some(elapsed)) = (self.spans.pop(), elapsed) else { return Ok(()) };
        let mut line = Map::new();
        line.insert("phase".into(), span.name.into());
        line.insert("elapsed_seconds".into(), elapsed.into());
        if let (Some(before), Some(now)) = (span.resident, resident().ok()) {
            line.insert("memory_delta_mb".into(), megabytes(now.total as f64 - before as f64).into());
        }
        if let Some(peak) = span.peak {
            line.insert("peak_memory_mb".into(), megabytes(peak as f64).into());
        }
        self.line(&line.into())
    }

    /// Does `work` as a phase. One that fails is not reported.
    ///
    /// # Errors
    /// Those of `work`; a file that cannot be written.
    pub fn phase<T>(&mut self, name: &str, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.begin(name);
        let depth = self.spans.len();
        match work(self) {
            Ok(value) => {
                self.end()?;
                Ok(value)
            }
            Err(error) => {
                self.spans.truncate(depth - 1);
                Err(error)
            }
        }
    }

    /// Notes how long a repeated phase took this time; the first `warm_up` of all are no steady state.
    pub fn sample(&mut self, name: &'static str, seconds: f64, warm_up: usize) {
        match self.samples.iter_mut().find(|s| s.name == name) {
            Some(samples) => samples.seconds.push(seconds),
            None => self.samples.push(Samples { name, seconds: vec![seconds], warm_up }),
        }
    }

    /// Makes every sample noted so far, of whatever phase, warm-up; before they are reported.
    pub fn warm_up_so_far(&mut self) {
        for samples in &mut self.samples {
            samples.warm_up = samples.seconds.len();
        }
    }

    /// Takes the last sample back.
    pub fn unsample(&mut self, name: &str) {
        if let Some(samples) = self.samples.iter_mut().find(|s| s.name == name) {
            samples.seconds.pop();
        }
    }

    /// Does `work` as one of a repeated phase, and as the phase `first` the first time.
    ///
    /// # Errors
    /// Those of `work`; a file that cannot be written.
    pub fn repeated<T>(
        &mut self,
        name: &'static str,
        first: &str,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let known = self.samples.iter().any(|samples| samples.name == name);
        let begin = Instant::now();
        if known {
            let value = work()?;
            self.sample(name, begin.elapsed().as_secs_f64(), 0);
            return Ok(value);
        }
        let value = self.phase(first, |_| work())?;
        self.sample(name, begin.elapsed().as_secs_f64(), 1);
        Ok(value)
    }

    /// Reports the samples noted so far.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        let mut lines = vec![];
        for samples in self.samples.iter_mut().filter(|s| !s.seconds.is_empty()) {
            lines.push(json!({
                "samples": samples.name,
                "seconds": std::mem::take(&mut samples.seconds),
                // Said once: lines of one name are joined.
                "warm_up": std::mem::take(&mut samples.warm_up),
            }));
        }
        lines.iter().try_for_each(|line| self.line(line))
    }

    /// Reports facts.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn info(&mut self, info: &Value) -> Result<()> {
        self.line(&json!({ "info": info }))
    }

    /// Reports how good the result is.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn final_metrics(&mut self, metrics: &Map<String, Value>) -> Result<()> {
        self.line(&json!({ "final_metrics": metrics }))
    }

    /// Names a file that the report shows.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn artifact(&mut self, kind: &str, path: &Path) -> Result<()> {
        self.line(&json!({ "artifact": { "kind": kind, "path": path } }))
    }

    /// Says why the process ends early.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn error(&mut self, text: &str) -> Result<()> {
        self.flush()?;
        self.line(&json!({ "error": text }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_and_samples_are_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("phases.jsonl");
        let mut phases = Phases::open(Some(&path)).unwrap();
        phases.begin("total_training");
        let held = phases.phase("data_setup", |_| Ok(std::hint::black_box(vec![1u8; 64 << 20]))).unwrap();
        drop(held);
        assert!(phases.phase::<()>("configuration", |_| anyhow::bail!("no")).is_err());
        for i in 0..3 {
            phases.sample("batch_forward", f64::from(i), 1);
            phases.flush().unwrap();
        }
        phases.end().unwrap();
        phases.error("it broke").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["phase"], "data_setup");
        if let Some(peak) = lines[0]["peak_memory_mb"].as_f64() {
            assert!(
                peak >= megabytes(f64::from(64 << 20))
                    && lines[4]["peak_memory_mb"].as_f64().unwrap() >= peak
            );
        }
        let warm: Vec<_> = lines[1..4].iter().map(|line| line["warm_up"].as_u64().unwrap()).collect();
        assert_eq!((warm, &lines[2]["seconds"]), (vec![1, 0, 0], &json!([1.0])));
        assert_eq!((&lines[4]["phase"], &lines[5]["error"]), (&json!("total_training"), &json!("it broke")));
        assert_eq!(megabytes(-2_500_000.0), -2.5);
    }

    #[test]
    fn what_was_noted_becomes_warm_up_and_what_follows_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("phases.jsonl");
        let mut phases = Phases::open(Some(&path)).unwrap();
        for round in 0..2 {
            for i in 0..3 {
                phases.sample("batch_step", f64::from(i), 1);
            }
            if round == 0 {
                phases.warm_up_so_far();
            }
            phases.flush().unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let warm: Vec<_> = lines.iter().map(|line| line["warm_up"].as_u64()).collect();
        assert_eq!(warm, [Some(3), Some(0)]);
    }
}
