//! The machine of a measurement: processor, memory, limits of the container, disk, kernel, build, and its load.
//!
//! [`Environment::capture`] reads it all once, at the start of a benchmark, before the benchmark itself loads the
//! machine. Anything that cannot be known is `None`, never guessed. [`Environment::noise_warnings`] says in
//! words what makes this machine a bad place to measure. No host name, user name or address is recorded, so a
//! result can be published; paths given to [`Environment::capture`] are. A [`Node`] has its host name.
//!
//! | file | what it reads |
//! |---|---|
//! | `cpu` | `/proc/cpuinfo`, `/proc/stat`, `/sys/devices/system/cpu` and `node` |
//! | `system` | kernel, OS, virtual machine, container, control group limits |
//! | `storage` | filesystem and disk under a path |
//! | `git` | commit of a working tree |
//! | `node` | a node of a cluster in a few facts |

mod cpu;
mod git;
mod node;
mod storage;
mod system;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::sys;
pub use cpu::{Cache, Cpu, CpuShares, CpuTimes, own_ticks};
pub use git::GitState;
pub use node::Node;
pub use storage::Storage;
pub use system::{Container, Limits, Memory, Platform};

/// How the measuring program was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// `rustc --version`.
    pub rustc: String,
    /// Target triple.
    pub target: String,
    /// Cargo profile.
    pub profile: String,
    /// Optimisation level.
    pub opt_level: String,
    /// Version of this crate.
    pub version: String,
}

impl Build {
    /// The build of the program that calls this.
    pub fn current() -> Self {
        Self {
            rustc: env!("WELLREAD_BUILD_RUSTC").to_owned(),
            target: env!("WELLREAD_BUILD_TARGET").to_owned(),
            profile: env!("WELLREAD_BUILD_PROFILE").to_owned(),
            opt_level: env!("WELLREAD_BUILD_OPT_LEVEL").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Everything recorded of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Seconds since 1970 (UTC) at which this was captured.
    pub captured_unix_seconds: u64,
    /// Operating system, kernel, virtual machine.
    pub platform: Platform,
    /// The processors.
    pub cpu: Cpu,
    /// Main memory.
    pub memory: Memory,
    /// Limits of the control groups this process is in.
    pub limits: Limits,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Where the processors' time went since the machine started.
    pub since_boot: Option<CpuShares>,
    /// Where it went during the benchmark; set by whoever measured it ([`CpuTimes::since`]).
    pub during_run: Option<CpuShares>,
    /// Filesystems under the paths asked about.
    pub storage: Vec<Storage>,
    /// Commit of the working tree asked about.
    pub git: Option<GitState>,
    /// How the program was built.
    pub build: Build,
}

impl Environment {
    /// Reads everything, with the filesystems under `paths` (of which missing ones are left out).
    pub fn capture<P: AsRef<Path>>(paths: &[P]) -> Self {
        Self::capture_from(&Root::default(), paths)
    }

    fn capture_from<P: AsRef<Path>>(root: &Root, paths: &[P]) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            captured_unix_seconds: now.as_secs(),
            platform: Platform::read(root),
            cpu: Cpu::read(root),
            memory: Memory::read(root),
            limits: Limits::read(root),
            load: load_average(root),
            since_boot: CpuTimes::read(root).and_then(|times| times.since(&CpuTimes::default())),
            during_run: None,
            storage: paths.iter().filter_map(|path| Storage::read(root, path.as_ref())).collect(),
            git: None,
            build: Build::current(),
        }
    }

    /// Adds the commit of the working tree that holds `folder`, if there is one.
    pub fn with_git(mut self, folder: &Path) -> Self {
        self.git = GitState::read(folder);
        self
    }

    /// Processors this process may use, counting affinity and the container's limit; fractions are possible.
    pub fn usable_cores(&self) -> f64 {
        let available = self.cpu.available as f64;
        self.limits.cpus.map_or(available, |limit| limit.min(available))
    }

    /// Memory this process may use in bytes: the machine's or the container's limit.
    pub fn usable_memory(&self) -> Option<u64> {
        match (self.memory.total, self.limits.memory_bytes) {
            (Some(total), Some(limit)) => Some(total.min(limit)),
            (total, limit) => total.or(limit),
        }
    }

    /// Memory that can be had now in bytes: what is free on the machine, and no more than the container's limit.
    pub fn free_memory(&self) -> Option<u64> {
        [self.memory.available, self.limits.memory_bytes].into_iter().flatten().min()
    }

    /// The causes of noisy or hardly comparable measurements on this machine, one sentence each; empty is
    /// good.
    pub fn noise_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some([load, ..]) = self.load
            && load > self.usable_cores() / 2.0
        {
            warnings.push(format!(
                "The machine is busy: load average {load:.2} on {}.",
                cores(self.usable_cores())
            ));
        }
        if let Some(governor) = self.cpu.governor.as_deref().filter(|governor| *governor != "performance") {
            warnings.push(format!(
                "The CPU frequency governor is {governor:?}, not \"performance\": speed changes with load."
            ));
        }
        let (shares, when) = match (&self.during_run, &self.since_boot) {
            (Some(shares), _) => (Some(shares), "during the run"),
            (None, shares) => (shares.as_ref(), "since the machine started"),
        };
        if let Some(steal) = shares.map(|shares| shares.steal).filter(|steal| *steal > 0.01) {
            warnings.push(format!(
                "Other virtual machines took {:.1} % of the processor time {when} (steal).",
                steal * 100.0
            ));
        }
        if let Some(machine) = &self.platform.virtual_machine {
            warnings.push(format!("This is a virtual machine ({machine}): neighbours share its hardware."));
        }
        if let Some(limit) = self.limits.cpus.filter(|limit| *limit < self.cpu.available as f64) {
            warnings.push(format!(
                "The container may use {limit} of {}: the system pauses it when it uses more.",
                cores(self.cpu.available as f64)
            ));
        }
        if self.cpu.boost == Some(true) && self.platform.virtual_machine.is_none() {
            warnings
                .push("CPU boost is on: speed depends on temperature and on how many cores work.".to_owned());
        }
        if self.build.opt_level != "3" && self.build.opt_level != "2" {
            warnings.push(format!(
                "The program was built with opt-level {}: slow on purpose.",
                self.build.opt_level
            ));
        }
        warnings
    }
}

/// So many cores in words: a container may have a part of one.
///
/// ```
/// use wellread_measure::environment::cores;
///
/// assert_eq!([0.5, 1.0, 2.0].map(cores), ["0.5 cores", "1 core", "2 cores"]);
/// ```
pub fn cores(count: f64) -> String {
    format!("{count} core{}", if count == 1.0 { "" } else { "s" })
}

fn load_average(root: &Root) -> Option<[f64; 3]> {
    let text = root.read("proc/loadavg")?;
    let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// Where `/proc`, `/sys` and `/etc` are found: `/` on Linux, or a folder with copies of them in tests.
#[derive(Debug)]
struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from(sys::ROOT))
    }
}

impl Root {
    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// A file's text without the white space at its ends; `None` when unreadable or empty.
    fn read(&self, path: &str) -> Option<String> {
        let text = fs::read(self.path(path)).ok()?;
        let text = String::from_utf8_lossy(&text);
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.parse().ok()
    }

    /// Names in a folder, sorted.
    fn names(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(path))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// Names `PREFIX` + number in a folder.
    fn numbered(&self, path: &str, prefix: &str) -> Vec<String> {
        let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        let mut names = self.names(path);
        names.retain(|name| name.strip_prefix(prefix).is_some_and(is_number));
        names
    }
}

/// The value of a line `NAME<separator>VALUE` in a file of such lines, white space taken off.
fn field<'a>(text: &'a str, name: &str, separator: char) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the given files under it.
    pub(super) fn root_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root(folder.path().to_path_buf());
        (folder, root)
    }

    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn this_machine_has_the_essentials() {
        let environment = Environment::capture(&[std::env::temp_dir()]);
        assert!(environment.cpu.logical >= 1 && environment.cpu.available >= 1);
        assert!(environment.usable_cores() > 0.0);
        assert!(environment.memory.total.unwrap() > 1 << 26);
        assert!(environment.usable_memory().unwrap() > 1 << 20);
        assert!(environment.platform.kernel.is_some() && environment.load.is_some());
        assert_eq!(environment.storage.len(), 1);
        assert!(environment.build.rustc.starts_with("rustc "));
        let text = serde_json::to_string(&environment).unwrap();
        // Readers of JSON may lose the last bit of these shares.
        let without_shares = |environment| Environment { since_boot: None, ..environment };
        let back: Environment = serde_json::from_str(&text).unwrap();
        assert!(back.since_boot.is_some());
        assert_eq!(without_shares(back), without_shares(environment));
    }

    #[test]
    fn a_machine_of_which_nothing_is_known() {
        let (_folder, root) =
            root_with(&[("proc/loadavg", "much"), ("proc/stat", "cpu x"), ("proc/meminfo", "\u{0}")]);
        let environment = Environment::capture_from(&root, &["no/such/path"]);
        assert_eq!(environment.load, None);
        assert_eq!(environment.since_boot, None);
        assert_eq!(environment.memory.total, None);
        assert_eq!(environment.usable_memory(), None);
        assert!(environment.storage.is_empty());
    }

    #[test]
    fn free_memory_is_no_more_than_a_container_may_use() {
        let (_folder, root) = root_with(&[]);
        let mut environment = Environment::capture_from::<&Path>(&root, &[]);
        for (free, limit, expected) in [
            (None, None, None),
            (Some(8), None, Some(8)),
            (None, Some(4), Some(4)),
            (Some(8), Some(4), Some(4)),
            (Some(2), Some(4), Some(2)),
        ] {
            (environment.memory.available, environment.limits.memory_bytes) = (free, limit);
            assert_eq!(environment.free_memory(), expected);
        }
    }

    #[test]
    fn every_warning_has_its_cause() {
        let (_folder, root) = root_with(&[
            ("proc/loadavg", "9.50 1.00 0.50 1/200 999"),
            ("proc/stat", "cpu  900 0 0 0 0 0 0 100 0 0\ncpu0 1 2 3"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
        ]);
        let mut environment = Environment::capture_from::<&Path>(&root, &[]);
        environment.cpu.available = 8;
        environment.limits.cpus = None;
        environment.build.opt_level = "3".into();
        let warned = |environment: &Environment| environment.noise_warnings().join("\n");
        let text = warned(&environment);
        for part in ["load average 9.50 on 8", "powersave", "10.0 %", "since the machine started", "boost"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        environment.during_run = Some(CpuShares { busy: 0.5, io_wait: 0.0, steal: 0.0 });
        environment.cpu.governor = Some("performance".into());
        environment.cpu.boost = Some(false);
        environment.load = Some([3.9, 0.0, 0.0]);
        assert_eq!(warned(&environment), "");
        environment.limits.cpus = Some(2.0);
        environment.platform.virtual_machine = Some("KVM".into());
        environment.build.opt_level = "0".into();
        let text = warned(&environment);
        for part in ["load average 3.90 on 2", "2 of 8 cores", "KVM", "opt-level 0"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
