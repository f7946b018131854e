//! Which process writes an unfinished output, as the output's name says it, and whether that process runs.
//!
//! ```text
//!  NUMBER.NAMESPACE ──▶ is NAMESPACE ours? ──no──▶ Unknown: another machine, container or boot; its number says nothing here
//!                            └────────yes───▶ /proc/NUMBER ──▶ Running or Ended (also a zombie)
//! ```
//!
//! The namespace is a hash of the machine's boot and of the process's PID namespace. A lock would tell more, but network file systems
//! keep locks to one machine, or have none. Forked processes keep them beyond their holder's end.
//!
//! Only Linux lists processes and namespaces. Elsewhere all are unknown.

use kernel::pid_namespace;

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It runs.
    Running,
    /// It has ended.
    Ended,
    /// It cannot be seen from here.
    Unknown,
}

/// How names of unfinished outputs call a process that is seen from here, by its number.
pub fn process_mark(id: u32) -> String {
    format!("{id}.{}", pid_namespace().unwrap_or_default())
}

/// The state of the process of this mark.
pub fn state_of_mark(mark: &str) -> ProcessState {
    let Some((id, of)) = mark.split_once('.') else { return ProcessState::Unknown };
    if pid_namespace().is_none_or(|here| here != of) {
        return ProcessState::Unknown;
    }
    state_of_id(id)
}

/// The state of the process of this number, of those that are seen from here.
pub fn state_of_id(id: &str) -> ProcessState {
    kernel::state_of_id(id)
}

/// The kernel's list of processes.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod kernel {
    use super::ProcessState;
    use std::path::Path;

    pub(super) fn state_of_id(id: &str) -> ProcessState {
        if !Path::new("/proc/self").exists() {
            return ProcessState::Unknown;
        }
        let process = |id: u32| Path::new("/proc").join(id.to_string());
        let is_running = id.parse::<u32>().is_ok_and(|id| !has_ended(&process(id)));
        if is_running { ProcessState::Running } else { ProcessState::Ended }
    }

    /// Whether a process is not there, or has ended and only waits for its parent to ask how (a zombie). One that was just killed does so.
    fn has_ended(process: &Path) -> bool {
        let Ok(stat) = std::fs::read(process.join("stat")) else { return !process.exists() };
        let text = String::from_utf8_lossy(&stat);
        // The state follows the name, in which anything may be.
        let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        // Its first thread may have ended before others.
        let threads = || std::fs::read_dir(process.join("task")).map_or(0, Iterator::count);
        matches!(state, Some('Z' | 'X')) && threads() <= 1
    }

    /// Where numbers of processes mean what they mean here; `None` where the system does not say. Asked each time, since forked
    /// processes may be elsewhere.
    pub(super) fn pid_namespace() -> Option<String> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
        let both = format!("{} {}", boot.trim(), namespace.display());
        Some(format!("{:08x}", hash(both.as_bytes()) >> 32))
    }

    /// FNV-1a, 64 bits.
    fn hash(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

/// Other systems have no such list.
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
mod kernel {
    use super::ProcessState;

    pub(super) fn state_of_id(_: &str) -> ProcessState {
        ProcessState::Unknown
    }

    pub(super) fn pid_namespace() -> Option<String> {
        None
    }
}

#[cfg(all(test, target_os = "linux", not(feature = "portable")))]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_process_that_only_waits_for_its_parent_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let id = child.id().to_string();
        assert_eq!(state_of_id(&id), ProcessState::Running);
        child.kill().unwrap();
        // Nobody asks for its end before it is seen.
        let ended = (0..6000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            state_of_id(&id) == ProcessState::Ended
        });
        assert!(ended && Path::new("/proc").join(&id).exists());
        child.wait().unwrap();
        assert_eq!(state_of_id(&id), ProcessState::Ended);
    }

    #[test]
    fn a_process_of_another_namespace_is_not_taken_for_one_of_the_same_number_here() {
        let own = process_mark(std::process::id());
        let (id, namespace) = own.split_once('.').unwrap();
        assert_eq!((id, namespace.len()), (std::process::id().to_string().as_str(), 8));
        assert_eq!(state_of_mark(&own), ProcessState::Running);
        // No process has this number.
        assert_eq!(state_of_mark(&process_mark(4_294_967_294)), ProcessState::Ended);
        let other = if namespace == "00000000" { "00000001" } else { "00000000" };
        for mark in [format!("4294967294.{other}"), format!("{id}.{other}"), "4294967294".into(), "1.".into()]
        {
            assert_eq!(state_of_mark(&mark), ProcessState::Unknown, "{mark}");
        }
        assert_eq!(
            [state_of_id(id), state_of_id("4294967294"), state_of_id("x")],
            [ProcessState::Running, ProcessState::Ended, ProcessState::Ended]
        );
    }
}

#[cfg(all(test, any(not(target_os = "linux"), feature = "portable")))]
mod tests_of_other_systems {
    use super::*;

    /// So that nobody's unfinished output is removed.
    #[test]
    fn without_a_list_of_processes_the_state_of_each_is_unknown() {
        let own = process_mark(std::process::id());
        assert_eq!(own, format!("{}.", std::process::id()));
        for mark in [own.as_str(), "4294967294.", "4294967294.00000001", "4294967294"] {
            assert_eq!(state_of_mark(mark), ProcessState::Unknown, "{mark}");
        }
        assert_eq!(state_of_id("4294967294"), ProcessState::Unknown);
    }
}
