//! The processors: their model, their clocks, and the use of their time.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Root, field};

/// The processors of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Model name.
    pub model: Option<String>,
    /// Logical processors of the machine.
    pub logical: usize,
    /// Physical cores: fewer than logical processors with simultaneous multithreading.
    pub physical: Option<usize>,
    /// Logical processors this process may use (affinity and whole cores of a container's limit).
    pub available: usize,
    /// NUMA nodes.
    pub numa_nodes: Option<usize>,
    /// Caches seen by the first processor.
    pub caches: Vec<Cache>,
    /// Vector instruction sets found, of those that matter to image code.
    pub vector_extensions: Vec<String>,
    /// Frequency governor of the first processor ("performance", "powersave", …).
    pub governor: Option<String>,
    /// Whether boost (turbo) is allowed.
    pub boost: Option<bool>,
    /// Highest frequency of the first processor right now and as its limit, in MHz.
    pub mhz: Option<u64>,
    /// Highest frequency it may reach, in MHz.
    pub max_mhz: Option<u64>,
}

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// Level, from 1.
    pub level: u64,
    /// "Data", "Instruction" or "Unified".
    pub kind: String,
    /// Size in bytes.
    pub bytes: u64,
    /// The logical processors that share it, as the kernel writes them ("0-7").
    pub shared_by: Option<String>,
}

const CPU: &str = "sys/devices/system/cpu";

impl Cpu {
    pub(super) fn read(root: &Root) -> Self {
        let info = root.read("proc/cpuinfo").unwrap_or_default();
        let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let processors = root.numbered(CPU, "cpu");
        let cores: BTreeSet<String> = processors
            .iter()
            .filter_map(|cpu| root.read(&format!("{CPU}/{cpu}/topology/thread_siblings_list")))
            .collect();
        let megahertz =
            |name: &str| root.number(&format!("{CPU}/cpu0/cpufreq/{name}")).map(|kilohertz| kilohertz / 1000);
        let nodes = root.numbered("sys/devices/system/node", "node").len();
        Self {
            // The keys of x86 and most ARM kernels, of POWER, and of some ARM boards.
            model: ["model name", "cpu", "Model", "Hardware"]
                .iter()
                .find_map(|name| field(&info, name, ':'))
                .map(str::to_owned),
            logical: processors.len().max(available),
            physical: (!cores.is_empty()).then_some(cores.len()),
            available,
            numa_nodes: (nodes > 0).then_some(nodes),
            caches: caches(root),
            vector_extensions: vector_extensions(&info),
            governor: root.read(&format!("{CPU}/cpu0/cpufreq/scaling_governor")),
            boost: boost(root),
            mhz: megahertz("scaling_cur_freq")
                .or_else(|| field(&info, "cpu MHz", ':')?.parse::<f64>().ok().map(|mhz| mhz as u64)),
            max_mhz: megahertz("cpuinfo_max_freq"),
        }
    }
}

fn caches(root: &Root) -> Vec<Cache> {
    let folder = format!("{CPU}/cpu0/cache");
    root.numbered(&folder, "index")
        .iter()
        .filter_map(|index| {
            let read = |name: &str| root.read(&format!("{folder}/{index}/{name}"));
            Some(Cache {
                level: read("level")?.parse().ok()?,
                kind: read("type")?,
                bytes: kibi_size(&read("size")?)?,
                shared_by: read("shared_cpu_list"),
            })
        })
        .collect()
}

/// "512K" or "32M" in bytes.
fn kibi_size(text: &str) -> Option<u64> {
    let factor = match text.as_bytes().last()? {
        b'K' => 1 << 10,
        b'M' => 1 << 20,
        b'G' => 1 << 30,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(factor)
}

fn vector_extensions(info: &str) -> Vec<String> {
    const KNOWN: [&str; 14] = [
        "sse4_2",
        "avx",
        "avx2",
        "fma",
        "avx512f",
        "avx512bw",
        "avx512vl",
        "avx512vbmi",
        "avx512_fp16",
        "amx_tile",
        "asimd",
        "sve",
        "sve2",
        "rvv",
    ];
    let flags = ["flags", "Features"].iter().find_map(|name| field(info, name, ':')).unwrap_or_default();
    let found: BTreeSet<&str> = flags.split_whitespace().collect();
    KNOWN.iter().filter(|name| found.contains(**name)).map(ToString::to_string).collect()
}

/// AMD and ARM drivers say whether boost is on, Intel's whether it is off.
fn boost(root: &Root) -> Option<bool> {
    let on = root.number(&format!("{CPU}/cpufreq/boost")).map(|flag| flag == 1);
    on.or_else(|| root.number(&format!("{CPU}/intel_pstate/no_turbo")).map(|flag| flag == 0))
}

/// Ticks, of all processors together, below which a share of them says nothing.
const MIN_TICKS: f64 = 20.0;

/// Time of all processors together since the machine started, in kernel ticks (usually 10 ms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    busy: u64,
    idle: u64,
    io_wait: u64,
    steal: u64,
}

/// Where the processors' time went between two moments; shares of all time, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// Working, for whatever process.
    pub busy: f64,
    /// Idle with a disk request outstanding.
    pub io_wait: f64,
    /// Wanted by this virtual machine and given by the host to another.
    pub steal: f64,
}

impl CpuTimes {
    /// The counters now; `None` where there are none.
    pub fn now() -> Option<Self> {
        Self::read(&Root::default())
    }

    pub(super) fn read(root: &Root) -> Option<Self> {
        let text = root.read("proc/stat")?;
        // cpu user nice system idle iowait irq softirq steal guest guest_nice; guest is part of user.
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
        (ticks.len() >= 4).then(|| Self {
            busy: [0, 1, 2, 5, 6].into_iter().map(at).fold(0, u64::saturating_add),
            idle: at(3),
            io_wait: at(4),
            steal: at(7),
        })
    }

    /// Shares of the time since an earlier reading; `None` when no tick has passed.
    pub fn since(&self, earlier: &Self) -> Option<CpuShares> {
        let ticks = self.ticks_since(earlier);
        let total = ticks.all();
        (total > 0.0).then(|| CpuShares {
            busy: ticks.busy as f64 / total,
            io_wait: ticks.io_wait as f64 / total,
            steal: ticks.steal as f64 / total,
        })
    }

    /// Share of all time since an earlier reading in which the processors worked for others than the process that
    /// used `own` ticks of it. `None` when fewer than 20 ticks have passed, of which one says too much.
    pub fn busy_by_others(&self, earlier: &Self, own: u64) -> Option<f64> {
        let ticks = self.ticks_since(earlier);
        let total = ticks.all();
        // The kernel counts the ticks of all and those of a process in different ways: less than nothing is nothing.
        (total >= MIN_TICKS).then(|| ticks.busy.saturating_sub(own) as f64 / total)
    }

    fn ticks_since(&self, earlier: &Self) -> Self {
        // The kernel's io_wait may step back by a little (proc_stat(5)).
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            idle: self.idle.saturating_sub(earlier.idle),
            io_wait: self.io_wait.saturating_sub(earlier.io_wait),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    fn all(&self) -> f64 {
        [self.busy, self.idle, self.io_wait, self.steal].into_iter().map(|ticks| ticks as f64).sum()
    }
}

/// Ticks of processors that this process has used since it started, and with it its children that have ended and were
/// waited for, and theirs. `None` where the system does not say.
pub fn own_ticks() -> Option<u64> {
    own_in_stat(&Root::default().read("proc/self/stat")?)
}

/// `PID (NAME) STATE …`, in which utime, stime, cutime and cstime are fields 14 to 17; the name may hold spaces and
/// brackets.
fn own_in_stat(stat: &str) -> Option<u64> {
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
    let ticks: Vec<u64> = fields.map(|field| field.parse().ok()).collect::<Option<_>>()?;
    (ticks.len() == 4).then(|| ticks.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::super::tests::root_with;
    use super::*;

    #[test]
    fn an_x86_server() {
        let (_folder, root) = root_with(&[
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: AMD EPYC 9R14\ncpu MHz\t\t: 3699.97\nflags\t\t: fpu avx avx2 avx512f hypervisor\n",
            ),
            ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n"),
            ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-1\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "0"),
            ("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4500000"),
            ("sys/devices/system/cpu/cpu0/cache/index3/level", "3"),
            ("sys/devices/system/cpu/cpu0/cache/index3/type", "Unified"),
            ("sys/devices/system/cpu/cpu0/cache/index3/size", "32768K"),
            ("sys/devices/system/cpu/cpu0/cache/index0/level", "1"),
            ("sys/devices/system/node/node0/cpulist", "0-1"),
        ]);
        let cpu = Cpu::read(&root);
        assert_eq!(cpu.model.as_deref(), Some("AMD EPYC 9R14"));
        assert_eq!((cpu.physical, cpu.numa_nodes, cpu.boost), (Some(1), Some(1), Some(false)));
        assert_eq!((cpu.mhz, cpu.max_mhz), (Some(3699), Some(4500)));
        assert_eq!(cpu.vector_extensions, ["avx", "avx2", "avx512f"]);
        // index0 lacks its size, so it is left out.
        assert_eq!(
            cpu.caches,
            [Cache { level: 3, kind: "Unified".into(), bytes: 32 << 20, shared_by: None }]
        );
    }

    #[test]
    fn sizes_and_turbo() {
        assert_eq!(kibi_size("48K"), Some(48 << 10));
        assert_eq!(kibi_size("2M"), Some(2 << 20));
        assert_eq!(kibi_size("123"), Some(123));
        for damaged in ["", "K", "-1K", "99999999999999999999K", "18446744073709551615G"] {
            assert_eq!(kibi_size(damaged), None, "{damaged}");
        }
        let (_folder, root) = root_with(&[("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")]);
        assert_eq!(boost(&root), Some(true));
    }

    #[test]
    fn shares_of_time() {
        let (_folder, root) =
            root_with(&[("proc/stat", "cpu  100 50 50 600 100 0 0 100 40 0\ncpu0 0 0 0 0\n")]);
        let times = CpuTimes::read(&root).unwrap();
        let shares = times.since(&CpuTimes::default()).unwrap();
        assert_eq!((shares.busy, shares.io_wait, shares.steal), (0.2, 0.1, 0.1));
        assert_eq!(times.since(&times), None);
        // 200 of 1,000 ticks were work: 150 of them for us.
        assert_eq!(times.busy_by_others(&CpuTimes::default(), 150), Some(0.05));
        assert_eq!(times.busy_by_others(&CpuTimes::default(), 5_000), Some(0.0));
        assert_eq!(times.busy_by_others(&times, 0), None);
        let (_folder, root) = root_with(&[("proc/stat", "cpu  1 2 3\n")]);
        assert_eq!(CpuTimes::read(&root), None);
    }

    #[test]
    fn own_time_is_that_of_the_process_and_its_children() {
        let stat = "7 (a b) c) R 1 7 7 0 -1 4194304 100 0 0 0 11 12 13 14 20 0 1 0 100 0 0";
        assert_eq!(own_in_stat(stat), Some(50));
        assert_eq!(own_in_stat("7 (a) R 1 7 7 0 -1 4194304 100 0 0 0 11 12"), None);
        assert_eq!(own_in_stat(""), None);
    }
}
