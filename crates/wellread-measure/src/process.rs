//! Programs that are measured from outside.

use crate::sys;
use std::ffi::OsStr;
use std::process::Child;
use std::time::Duration;

/// The first `count` of the processors that this thread may run on. `None` where it may run on no more than these
/// anyhow, and where the system does not say.
pub fn first_processors(count: usize) -> Option<Vec<usize>> {
    let mut all = sys::affinity().ok()?;
    if all.len() <= count {
        return None;
    }
    all.truncate(count);
    Some(all)
}

/// Does something with the calling thread kept to these processors, as is whatever it starts meanwhile; afterwards the
/// thread may run where it might before. Where the system has no such call, the thread runs where it likes.
pub fn on_processors<T>(processors: &[usize], work: impl FnOnce() -> T) -> T {
    struct RestoreAffinity(Option<Vec<usize>>);
    impl Drop for RestoreAffinity {
        fn drop(&mut self) {
            if let Some(before) = &self.0 {
                // It was possible a moment ago.
                let _ = sys::set_affinity(before);
            }
        }
    }
    let before = sys::affinity().ok().filter(|_| sys::set_affinity(processors).is_ok());
    let _restore = RestoreAffinity(before);
    work()
}

/// Ends a child that leads a process group of its own
/// ([`process_group(0)`](std::os::unix::process::CommandExt::process_group)), and with it whatever it started, and
/// waits for it. Where there are no such groups (Windows) the child alone.
pub fn end(child: &mut Child) {
    sys::kill_group(child.id());
    // It may have ended by itself: then there is nothing to kill, and its status is waited for all the same.
    let _ = child.kill();
    let _ = child.wait();
}

/// Ends a process group by its leader, without waiting. Where there are no such groups (Windows) nothing.
pub fn end_group(leader: u32) {
    sys::kill_group(leader);
}

/// Ends every process that has this variable with this value in its environment. It also ends those that have left
/// the group of the process that set it. Elsewhere than on Linux none.
pub fn end_marked(name: &str, value: &OsStr) {
    // One that is found may have started another meanwhile.
    const ROUNDS: usize = 8;
    let mark = [name.as_bytes(), b"=", value.as_encoded_bytes()].concat();
    for _ in 0..ROUNDS {
        let marked = processes_with_environment_entry(&mark);
        if marked.is_empty() {
            return;
        }
        marked.into_iter().for_each(sys::kill);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Has the kernel end this process before any other when memory runs out: a measurement may be lost, nothing else. Elsewhere
/// than on Linux nothing.
pub fn prefer_as_oom_victim(pid: u32) {
    sys::prefer_as_oom_victim(pid);
}

/// The other processes with this entry in their environment.
fn processes_with_environment_entry(mark: &[u8]) -> Vec<u32> {
    let processes = sys::processes().unwrap_or_default().into_iter();
    let marked = processes.filter(|pid| *pid != std::process::id()).filter(|pid| {
        // Processes that have ended, and those of other users, have none to read.
        let environment = sys::proc_file(&format!("{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark)
    });
    marked.collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    #[cfg(not(feature = "portable"))]
    #[test]
    fn a_child_inherits_the_processors() {
        let all = sys::affinity().unwrap();
        let first = &all[..1];
        let said = on_processors(first, || {
            Command::new("sh").args(["-c", "grep Cpus_allowed_list /proc/self/status"]).output().unwrap()
        });
        let said = String::from_utf8(said.stdout).unwrap();
        assert_eq!(said.trim().rsplit('\t').next().unwrap(), first[0].to_string());
        assert_eq!(sys::affinity().unwrap(), all);
        assert_eq!(first_processors(all.len()), None);
        if all.len() > 1 {
            assert_eq!(first_processors(1).as_deref(), Some(first));
        }
    }

    #[test]
    fn what_a_child_started_ends_with_it() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & wait"]).stdout(Stdio::piped()).process_group(0);
        let mut child = shell.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        end(&mut child);
        // The pipe is at its end once nobody holds it any more, `sleep` included.
        assert_eq!(out.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}
