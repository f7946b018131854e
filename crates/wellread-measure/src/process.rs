//! Programs that are measured from outside.

use crate::sys;
use std::process::Child;

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
