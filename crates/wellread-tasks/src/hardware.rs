//! The state of the machine before and during a task: clocks, load, temperature, and the time that others took.

use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wellread_measure::environment::{CpuTimes, Environment, own_ticks};

/// How long is looked who is at work before a task begins.
const LOAD_PROBE_TIME: Duration = Duration::from_millis(250);
/// Share of the processors' time that others may take before that is worth a warning.
const MAX_BUSY_SHARE: f64 = 0.15;
/// Share of the processors' time that the host may give to other machines.
const MAX_STEAL_SHARE: f64 = 0.02;

/// The state of the machine; `None` is what it does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Highest frequency of the first processor, in MHz.
    pub cpu_mhz: Option<u64>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Highest temperature of any sensor, in °C.
    pub temperature_c: Option<f64>,
    /// Share of the processors' time that others used just before the task, 0 to 1.
    pub busy_before: Option<f64>,
    /// Share of the processors' time that others than the task used during it, 0 to 1.
    pub busy_by_others: Option<f64>,
    /// Share of the processors' time that the host gave to other machines during the task, 0 to 1.
    pub steal: Option<f64>,
    /// The GPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
}

/// The state of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its name.
    pub name: String,
    /// Clock of its processors, in MHz.
    pub mhz: Option<f64>,
    /// Temperature in °C.
    pub temperature_c: Option<f64>,
    /// Share of the time in which it worked, 0 to 1.
    pub busy: Option<f64>,
    /// Memory in use, in MB.
    pub memory_mb: Option<f64>,
}

impl State {
    /// The state now, before a task; takes a quarter of a second.
    pub fn before() -> Self {
        let earlier = CpuTimes::now();
        std::thread::sleep(LOAD_PROBE_TIME);
        let shares = CpuTimes::now().zip(earlier).and_then(|(now, earlier)| now.since(&earlier));
        Self { busy_before: shares.map(|shares| shares.busy), ..Self::now() }
    }

    /// The state now: clocks, load, temperature, GPUs.
    pub fn now() -> Self {
        let environment = Environment::capture::<&Path>(&[]);
        Self {
            cpu_mhz: environment.cpu.mhz,
            load: environment.load,
            temperature_c: temperature(Path::new("/sys/class")),
            gpus: gpus(),
            ..Self::default()
        }
    }

    /// The causes of doubtful figures of a task; empty is good.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let percent = |share: f64| 100.0 * share;
        if let Some(busy) = self.busy_before.filter(|busy| *busy > MAX_BUSY_SHARE) {
            warnings.push(format!(
                "other programs used {:.0} % of the processors just before it began",
                percent(busy)
            ));
        }
        if let Some(busy) = self.busy_by_others.filter(|busy| *busy > MAX_BUSY_SHARE) {
            warnings
                .push(format!("other programs used {:.0} % of the processors while it ran", percent(busy)));
        }
        if let Some(steal) = self.steal.filter(|steal| *steal > MAX_STEAL_SHARE) {
            warnings.push(format!("other machines took {:.1} % of the processors (steal)", percent(steal)));
        }
        for gpu in &self.gpus {
            if let Some(busy) = gpu.busy.filter(|busy| *busy > MAX_BUSY_SHARE) {
                warnings.push(format!(
                    "other programs used the GPU {} {:.0} % of the time just before it began",
                    gpu.name,
                    percent(busy)
                ));
            }
        }
        warnings
    }
}

/// Counts what the processors do from now on.
pub struct CpuMonitor(Option<(CpuTimes, u64)>);

impl CpuMonitor {
    /// Begins.
    pub fn start() -> Self {
        Self(CpuTimes::now().zip(own_ticks()))
    }

    /// Puts into a state what others than this program and the processes it has ended used meanwhile, and steal.
    pub fn stop(self, state: &mut State) {
        let Some((times, own)) = self.0 else { return };
        let Some((now, own_now)) = CpuTimes::now().zip(own_ticks()) else { return };
        state.steal = now.since(&times).map(|shares| shares.steal);
        state.busy_by_others = now.busy_by_others(&times, own_now.saturating_sub(own));
    }
}

/// The states before and after all runs in words: names and values.
pub fn facts(states: &[&State]) -> Vec<(String, String)> {
    let range = |of: &dyn Fn(&State) -> Option<f64>, digits: usize, unit: &str| -> Option<String> {
        let values: Vec<f64> = states.iter().copied().filter_map(of).collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let [low, high] = [low, values.into_iter().fold(low, f64::max)].map(|v| format!("{v:.digits$}"));
        Some(if low == high { format!("{low}{unit}") } else { format!("{low}–{high}{unit}") })
    };
    let percent = |share: Option<f64>| share.map(|share| 100.0 * share);
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut add = |name: String, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    add("processor clock".into(), range(&|s| s.cpu_mhz.map(|mhz| mhz as f64), 0, " MHz"));
    add("load average".into(), range(&|s| s.load.map(|load| load[0]), 1, ""));
    add("temperature".into(), range(&|s| s.temperature_c, 0, " °C"));
    add("used by others before runs".into(), range(&|s| percent(s.busy_before), 0, " %"));
    add("used by others during runs".into(), range(&|s| percent(s.busy_by_others), 0, " %"));
    add("steal during runs".into(), range(&|s| percent(s.steal), 1, " %"));
    let gpus = states.iter().map(|state| state.gpus.len()).max().unwrap_or(0);
    for at in 0..gpus {
        let Some(name) = states.iter().find_map(|state| Some(state.gpus.get(at)?.name.clone())) else {
            continue;
        };
        let parts = [
            range(&|s| s.gpus.get(at)?.mhz, 0, " MHz"),
            range(&|s| s.gpus.get(at)?.temperature_c, 0, " °C"),
            range(&|s| s.gpus.get(at)?.memory_mb, 0, " MB in use"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        add(format!("GPU {at}: {name}"), Some(parts.join(", ")).filter(|text| !text.is_empty()));
    }
    facts
}

/// Whether this machine has an NVIDIA GPU that its driver knows.
pub fn has_gpu() -> bool {
    Path::new("/dev/nvidia0").exists() || !gpus().is_empty()
}

/// The highest temperature of thermal zones and sensors, in °C.
fn temperature(class: &Path) -> Option<f64> {
    let folders = |kind: &str| std::fs::read_dir(class.join(kind)).into_iter().flatten().flatten();
    let zones = folders("thermal").map(|zone| zone.path().join("temp"));
    let sensors = folders("hwmon").flat_map(|device| {
        let files = std::fs::read_dir(device.path()).into_iter().flatten().flatten();
        files.map(|file| file.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("temp") && name.ends_with("_input")
        })
    });
    let millidegrees = zones
        .chain(sensors)
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<f64>().ok());
    // Sensors that are not connected say 0, or less than nothing.
    millidegrees.map(|t| t / 1000.0).filter(|t| (1.0..150.0).contains(t)).reduce(f64::max)
}

fn gpus() -> Vec<Gpu> {
    let mut asked = Command::new("nvidia-smi");
    asked.args([
        "--query-gpu=name,clocks.sm,temperature.gpu,utilization.gpu,memory.used",
        "--format=csv,noheader,nounits",
    ]);
    let output = asked.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else { return Vec::new() };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(gpu).collect()
}

/// A line of nvidia-smi; numbers that a GPU does not tell are `[N/A]`.
fn gpu(line: &str) -> Option<Gpu> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let name = fields.first().filter(|name| !name.is_empty() && fields.len() == 5)?;
    let number = |at: usize| fields[at].parse::<f64>().ok().filter(|n| n.is_finite());
    Some(Gpu {
        name: (*name).to_owned(),
        mhz: number(1),
        temperature_c: number(2),
        busy: number(3).map(|percent| percent / 100.0),
        memory_mb: number(4).map(|mebibytes| mebibytes * 1.048_576),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_sensor_counts() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("thermal/thermal_zone0/temp", "45000\n"),
            ("thermal/thermal_zone1/temp", "-274000\n"),
            ("hwmon/hwmon0/temp1_input", "61500\n"),
            ("hwmon/hwmon0/fan1_input", "99000\n"),
            ("hwmon/hwmon1/temp1_input", "broken\n"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        assert_eq!(temperature(dir.path()), Some(61.5));
        assert_eq!(temperature(&dir.path().join("none")), None);
    }

    #[test]
    fn lines_of_nvidia_smi() {
        let known = gpu("NVIDIA H200, 1980, 34, 50, 1000").unwrap();
        assert_eq!((known.name.as_str(), known.mhz, known.busy), ("NVIDIA H200", Some(1980.0), Some(0.5)));
        assert_eq!(gpu("NVIDIA X, [N/A], 30, [N/A], 7").unwrap().busy, None);
        assert_eq!(gpu("No devices were found"), None);
    }

    #[test]
    fn a_busy_machine_is_a_warning() {
        assert!(State::default().warnings().is_empty());
        let gpu = Gpu { name: "X".into(), busy: Some(0.9), ..Gpu::default() };
        let busy = State { busy_before: Some(0.6), steal: Some(0.1), gpus: vec![gpu], ..State::default() };
        let said = busy.warnings().join("; ");
        assert!(said.contains("60 %") && said.contains("10.0 %") && said.contains("GPU X 90 %"), "{said}");
        let later = State { busy_by_others: Some(0.4), ..State::default() };
        assert!(
            later.warnings()[0].contains("40 % of the processors while it ran"),
            "{:?}",
            later.warnings()
        );
        assert!(State { busy_by_others: Some(0.1), ..later }.warnings().is_empty());
    }

    #[test]
    fn states_are_facts() {
        let state = |mhz, load, busy| State {
            cpu_mhz: Some(mhz),
            load: Some([load; 3]),
            busy_by_others: busy,
            ..State::default()
        };
        let (before, after) = (state(2000, 0.5, Some(0.25)), state(3000, 0.5, None));
        let facts = facts(&[&before, &after]);
        let of = |name: &str| facts.iter().find(|fact| fact.0 == name).map(|fact| fact.1.as_str());
        assert_eq!(of("processor clock"), Some("2000–3000 MHz"));
        assert_eq!(of("load average"), Some("0.5"));
        assert_eq!(of("used by others during runs"), Some("25 %"));
        assert_eq!((of("temperature"), facts.len()), (None, 3));
    }

    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn what_a_child_used_is_not_by_others() {
        let mut state = State::default();
        let (before, watch) = (own_ticks().unwrap(), CpuMonitor::start());
        let used =
            Command::new("sh").args(["-c", "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done"]).status();
        assert!(used.unwrap().success());
        assert!(own_ticks().unwrap() > before, "the child's time is counted");
        watch.stop(&mut state);
        assert!(state.busy_by_others.is_some_and(|share| (0.0..=1.0).contains(&share)), "{state:?}");
    }
}
