//! A node of a cluster in a few facts, which every row that was measured on it has.

use super::{Cpu, Memory, Root, cores, field};
use serde::{Deserialize, Serialize};

/// A node of a cluster. It alone has a host name, and is recorded only where the nodes of a cluster were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Its host name.
    pub host: Option<String>,
    /// Model of its processors.
    pub cpu: Option<String>,
    /// Logical processors that a process may use there.
    pub cores: usize,
    /// Its main memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Names of its NVIDIA GPUs.
    pub gpus: Vec<String>,
}

impl Node {
    /// The machine that this process runs on.
    pub fn here() -> Self {
        Self::read(&Root::default())
    }

    fn read(root: &Root) -> Self {
        let cpu = Cpu::read(root);
        Self {
            host: root.read("proc/sys/kernel/hostname"),
            cpu: cpu.model,
            cores: cpu.available,
            memory_bytes: Memory::read(root).total,
            gpus: gpus(root),
        }
    }

    /// The kind of node, in words: nodes of one kind differ by their names only. Memory is in whole GiB, since what a
    /// kernel keeps for itself differs by a little.
    pub fn kind(&self) -> String {
        let memory = self.memory_bytes.map_or_else(
            || "memory unknown".to_owned(),
            |bytes| format!("{:.0} GiB", bytes as f64 / f64::from(1 << 30)),
        );
        let cpu = self.cpu.as_deref().unwrap_or("processor unknown");
        let gpus = if self.gpus.is_empty() { "no GPU".to_owned() } else { self.gpus.join(" + ") };
        format!("{cpu}, {}, {memory}, {gpus}", cores(self.cores as f64))
    }
}

/// The GPUs that NVIDIA's driver knows.
fn gpus(root: &Root) -> Vec<String> {
    let folder = "proc/driver/nvidia/gpus";
    let entries = std::fs::read_dir(root.path(folder)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let text = root.read(&format!("{folder}/{}/information", entry.file_name().to_str()?))?;
            Some(field(&text, "Model", ':')?.to_owned())
        })
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::super::tests::root_with;
    use super::*;

    #[test]
    fn nodes_of_one_kind_differ_by_their_names_only() {
        let (_folder, root) = root_with(&[
            ("proc/sys/kernel/hostname", "node-7\n"),
            ("proc/cpuinfo", "model name\t: Fast 9000\n"),
            ("proc/meminfo", "MemTotal: 67108864 kB\n"),
            ("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H100\nIRQ: 1\n"),
            ("proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: \t\t NVIDIA H100\n"),
        ]);
        let node = Node { cores: 8, ..Node::read(&root) };
        assert_eq!((node.host.as_deref(), node.memory_bytes), (Some("node-7"), Some(64 << 30)));
        assert_eq!(node.kind(), "Fast 9000, 8 cores, 64 GiB, NVIDIA H100 + NVIDIA H100");
        let memory_bytes = Some((64 << 30) - (4 << 20));
        let other = Node { host: Some("node-8".into()), memory_bytes, ..node.clone() };
        assert_eq!(other.kind(), node.kind());
        assert_ne!(Node { cores: 4, ..other }.kind(), node.kind());
        assert_eq!(
            Node { cores: 1, ..Node::default() }.kind(),
            "processor unknown, 1 core, memory unknown, no GPU"
        );
        assert_eq!(Node::default().kind(), "processor unknown, 0 cores, memory unknown, no GPU");
    }

    #[test]
    fn this_machine_is_a_node() {
        let node = Node::here();
        assert!(node.cores >= 1 && node == Node::here(), "{node:?}");
    }
}
