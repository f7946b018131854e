//! Kernel, operating system, virtual machine, container, memory, and the control groups' limits.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Root, field};

/// The system the process runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// "linux", "macos", …
    pub os: String,
    /// The distribution's own name, for example "Debian GNU/Linux 13 (trixie)".
    pub distribution: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Processor architecture.
    pub architecture: String,
    /// Set when this is a virtual machine: its maker and product, or just that it is one.
    pub virtual_machine: Option<String>,
    /// Set when this is a container.
    pub container: Option<Container>,
}

/// Kinds of container told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Container {
    /// Docker.
    Docker,
    /// Podman, or another that leaves its mark.
    Podman,
    /// A pod of Kubernetes.
    Kubernetes,
}

impl Platform {
    pub(super) fn read(root: &Root) -> Self {
        let release = root.read("etc/os-release").unwrap_or_default();
        Self {
            os: std::env::consts::OS.to_owned(),
            distribution: field(&release, "PRETTY_NAME", '=').map(|name| name.trim_matches('"').to_owned()),
            kernel: root.read("proc/sys/kernel/osrelease"),
            architecture: std::env::consts::ARCH.to_owned(),
            virtual_machine: virtual_machine(root),
            container: container(root),
        }
    }
}

/// x86 processors have a flag for it; elsewhere only what the firmware says of itself is known.
fn virtual_machine(root: &Root) -> Option<String> {
    const MAKERS: [&str; 10] = [
        "QEMU",
        "KVM",
        "VMware",
        "VirtualBox",
        "Xen",
        "Microsoft Corporation",
        "Amazon EC2",
        "Google",
        "Parallels",
        "Firecracker",
    ];
    let info = root.read("proc/cpuinfo").unwrap_or_default();
    let flagged =
        field(&info, "flags", ':').is_some_and(|flags| flags.split_whitespace().any(|f| f == "hypervisor"));
    let maker = root.read("sys/class/dmi/id/sys_vendor");
    let product = root.read("sys/class/dmi/id/product_name");
    let name = [maker, product].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let kind = root.read("sys/hypervisor/type");
    // Bare-metal machines of the same makers exist: on x86 the flag decides.
    let named = MAKERS.iter().any(|maker| name.contains(maker)) && !name.contains("metal");
    let x86 = !info.is_empty() && field(&info, "flags", ':').is_some();
    (flagged || kind.is_some() || (!x86 && named)).then(|| {
        let known = [Some(name), kind].into_iter().flatten().find(|text| !text.is_empty());
        known.unwrap_or_else(|| "hypervisor not named".to_owned())
    })
}

fn container(root: &Root) -> Option<Container> {
    let groups = root.read("proc/1/cgroup").unwrap_or_default();
    if groups.contains("kubepods") || root.path("var/run/secrets/kubernetes.io").exists() {
        Some(Container::Kubernetes)
    } else if root.path(".dockerenv").exists() || groups.contains("docker") {
        Some(Container::Docker)
    } else if root.path("run/.containerenv").exists() {
        Some(Container::Podman)
    } else {
        None
    }
}

/// Main memory in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// In all.
    pub total: Option<u64>,
    /// Free, or free to be taken from the page cache.
    pub available: Option<u64>,
    /// Swap space.
    pub swap: Option<u64>,
    /// Transparent huge pages: "always", "madvise" or "never".
    pub huge_pages: Option<String>,
}

impl Memory {
    pub(super) fn read(root: &Root) -> Self {
        let info = root.read("proc/meminfo").unwrap_or_default();
        let bytes =
            |name| field(&info, name, ':')?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024);
        // The choice in force is the one in brackets: "always [madvise] never".
        let choices = root.read("sys/kernel/mm/transparent_hugepage/enabled");
        let chosen = choices.as_deref().and_then(|text| text.split_once('[')?.1.split_once(']'));
        Self {
            total: bytes("MemTotal"),
            available: bytes("MemAvailable"),
            swap: bytes("SwapTotal"),
            huge_pages: chosen.map(|(choice, _)| choice.to_owned()),
        }
    }
}

/// The limits by the control groups of this process: the tightest from its own group up to the root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Processors' worth of time, for example 1.5; `None` without a limit.
    pub cpus: Option<f64>,
    /// Memory in bytes, page cache included; `None` without a limit.
    pub memory_bytes: Option<u64>,
}

impl Limits {
    pub(super) fn read(root: &Root) -> Self {
        let mut limits = Self::default();
        for line in root.read("proc/self/cgroup").unwrap_or_default().lines() {
            // "ID:CONTROLLERS:PATH"; version 2 has ID 0 and no controllers.
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            if controllers.is_empty() {
                for group in groups(root, "sys/fs/cgroup", path) {
                    limits.tighten(cpu_max(root, &group), root.number(&format!("{group}/memory.max")));
                }
            }
            for controller in controllers.split(',') {
                for group in groups(root, &format!("sys/fs/cgroup/{controller}"), path) {
                    match controller {
                        "cpu" => limits.tighten(cpu_quota(root, &group), None),
                        "memory" => {
                            limits.tighten(None, root.number(&format!("{group}/memory.limit_in_bytes")));
                        }
                        _ => {}
                    }
                }
            }
        }
        limits
    }

    fn tighten(&mut self, cpus: Option<f64>, memory: Option<u64>) {
        // Version 1 writes "no limit" as the largest multiple of a page.
        const NO_LIMIT: u64 = 1 << 62;
        self.cpus = [self.cpus, cpus].into_iter().flatten().min_by(f64::total_cmp);
        let memory = memory.filter(|bytes| *bytes < NO_LIMIT);
        self.memory_bytes = [self.memory_bytes, memory].into_iter().flatten().min();
    }
}

/// The folders of a group and all above it that exist under a mount. In a container the path may name a group
/// of the host that is not visible: then the mount itself is the group.
fn groups(root: &Root, mount: &str, path: &str) -> Vec<String> {
    // Paths such as "/../other" occur in namespaces; only plain names are followed.
    let names: PathBuf =
        Path::new(path).components().filter(|part| matches!(part, Component::Normal(_))).collect();
    names
        .ancestors()
        .map(|group| Path::new(mount).join(group).to_string_lossy().into_owned())
        .filter(|group| root.path(group).is_dir())
        .collect()
}

/// Version 2: "QUOTA PERIOD" in microseconds, or "max PERIOD".
fn cpu_max(root: &Root, group: &str) -> Option<f64> {
    let text = root.read(&format!("{group}/cpu.max"))?;
    let (quota, period) = text.split_once(' ')?;
    share(quota.parse().ok()?, period.parse().ok()?)
}

/// Version 1: a quota of -1 is no limit.
fn cpu_quota(root: &Root, group: &str) -> Option<f64> {
    let quota = root.read(&format!("{group}/cpu.cfs_quota_us"))?.parse().ok()?;
    share(quota, root.read(&format!("{group}/cpu.cfs_period_us"))?.parse().ok()?)
}

fn share(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::super::tests::root_with;
    use super::*;

    #[test]
    fn limits_of_version_2_are_the_tightest_on_the_way_up() {
        let (_folder, root) = root_with(&[
            ("proc/self/cgroup", "0::/pod/box\n"),
            ("sys/fs/cgroup/pod/box/cpu.max", "max 100000"),
            ("sys/fs/cgroup/pod/box/memory.max", "8589934592"),
            ("sys/fs/cgroup/pod/cpu.max", "150000 100000"),
            ("sys/fs/cgroup/pod/memory.max", "4294967296"),
            ("sys/fs/cgroup/memory.max", "max"),
        ]);
        assert_eq!(Limits::read(&root), Limits { cpus: Some(1.5), memory_bytes: Some(4 << 30) });
    }

    #[test]
    fn limits_of_version_1_and_of_hidden_groups() {
        let (_folder, root) = root_with(&[
            ("proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n3:freezer:/\nnonsense\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"),
        ]);
        assert_eq!(Limits::read(&root), Limits { cpus: Some(0.5), memory_bytes: Some(1 << 30) });
        let (_folder, root) = root_with(&[
            ("proc/self/cgroup", "5:memory:/../..\n4:cpu:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"),
        ]);
        assert_eq!(Limits::read(&root), Limits::default());
    }

    #[test]
    fn machines_and_containers_are_told_apart() {
        let (_folder, root) = root_with(&[
            ("proc/cpuinfo", "flags\t: fpu hypervisor\n"),
            ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n"),
            ("sys/class/dmi/id/product_name", "c7a.large\n"),
            ("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n"),
            (".dockerenv", ""),
        ]);
        let platform = Platform::read(&root);
        assert_eq!(platform.virtual_machine.as_deref(), Some("Amazon EC2 c7a.large"));
        assert_eq!(platform.distribution.as_deref(), Some("Debian GNU/Linux 13 (trixie)"));
        assert_eq!(platform.container, Some(Container::Docker));

        let (_folder, root) = root_with(&[
            ("proc/cpuinfo", "flags\t: fpu\n"),
            ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n"),
            ("sys/class/dmi/id/product_name", "c7a.metal-48xl\n"),
            ("proc/1/cgroup", "0::/kubepods/burstable/pod1\n"),
        ]);
        let platform = Platform::read(&root);
        assert_eq!((platform.virtual_machine, platform.container), (None, Some(Container::Kubernetes)));

        let (_folder, root) =
            root_with(&[("proc/cpuinfo", "flags : hypervisor\n"), ("run/.containerenv", "")]);
        let platform = Platform::read(&root);
        assert_eq!(platform.virtual_machine.as_deref(), Some("hypervisor not named"));
        assert_eq!(platform.container, Some(Container::Podman));
    }

    #[test]
    fn memory_of_the_machine() {
        let (_folder, root) = root_with(&[
            (
                "proc/meminfo",
                "MemTotal:        2048 kB\nMemAvailable:  999999999999999999999 kB\nSwapTotal: 0 kB\n",
            ),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ]);
        let memory = Memory::read(&root);
        assert_eq!((memory.total, memory.available, memory.swap), (Some(2 << 20), None, Some(0)));
        assert_eq!(memory.huge_pages.as_deref(), Some("madvise"));
    }
}
