//! Programs that are measured from outside.

use crate::sys;
use std::process::Child;

/// The first `count` of the processors that this thread may run on; `None` where it may run on no more than these
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
    struct Restore(Option<Vec<usize>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            if let Some(before) = &self.0 {
                // It was possible a moment ago.
                let _ = sys::set_affinity(before);
            }
        }
    }
    let before = sys::affinity().ok().filter(|_| sys::set_affinity(processors).is_ok());
    let _restore = Restore(before);
    work()
}

/// Ends a child that leads a process group of its own
/// ([`process_group(0)`](std::os::unix::process::CommandExt::process_group)), and with it whatever it started, and
/// waits for it. Elsewhere than on Linux the child alone.
pub fn end(child: &mut Child) {
    sys::kill_group(child.id());
    // It may have ended by itself: then there is nothing to kill, and its status is waited for all the same.
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

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
