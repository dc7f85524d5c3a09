//! Finding and ending what a child has started, wherever it has gone.
//!
//! A process belongs to a run when it descends from the child, is in its session, or carries the run's marker
//! in its environment. One that cleared its environment, left the session and lost its parents is found only
//! while the child lives, which adopts it. Where there is no `/proc`, only the process group is ended, by the
//! caller.

use std::time::{Duration, Instant};

use rustix::process::Pid;

/// The variable whose value marks the processes of one run.
pub(super) const MARKER: &str = "TESTGRAD_RUN";

/// Ends every process of the run but `root` itself, and waits a second at most until they are gone.
pub(super) fn end_all(root: Pid, marker: &str) {
    let patience = Instant::now() + Duration::from_secs(1);
    while end(root, marker) && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends SIGKILL to every living process of the run but `root` itself; whether there was one.
fn end(root: Pid, marker: &str) -> bool {
    #[cfg(target_os = "linux")]
    return linux::end_all(root.as_raw_nonzero().get(), marker);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (root, marker);
        false
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;

    use rustix::process::{Pid, PidfdFlags, Signal, getuid, kill_process, pidfd_open, pidfd_send_signal};

    /// What the kernel says about one process.
    struct Process {
        pid: i32,
        parent: i32,
        session: i32,
        start: u64,
        is_alive: bool,
    }

    pub(super) fn end_all(root: i32, marker: &str) -> bool {
        let processes: Vec<Process> = std::fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?))
            .collect();
        let start = processes.iter().find(|p| p.pid == root).map_or(0, |p| p.start);
        let family = family(root, &processes);
        let mut found = false;
        for process in processes.iter().filter(|p| p.is_alive && p.pid != root && p.start >= start) {
            let is_ours =
                family.contains(&process.pid) || process.session == root || is_marked(process.pid, marker);
            found |= is_ours && end(process);
        }
        found
    }

    /// The process and all that descend from it.
    fn family(root: i32, processes: &[Process]) -> HashSet<i32> {
        let mut family = HashSet::from([root]);
        loop {
            let size = family.len();
            family.extend(
                processes.iter().filter(|p| family.contains(&p.parent)).map(|p| p.pid).collect::<Vec<_>>(),
            );
            if family.len() == size {
                return family;
            }
        }
    }

    fn read(pid: i32) -> Option<Process> {
        // The command in parentheses may hold any bytes, so count from its end; see proc_pid_stat(5).
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Process {
            pid,
            is_alive: !matches!(*fields.first()?, "Z" | "X" | "x"),
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    fn is_marked(pid: i32, marker: &str) -> bool {
        let place = format!("/proc/{pid}");
        if !std::fs::metadata(&place).is_ok_and(|about| about.uid() == getuid().as_raw()) {
            return false;
        }
        let wanted = format!("{}={marker}", super::MARKER);
        std::fs::read(place + "/environ")
            .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
    }

    /// Ends this very process, not another one that has got its number since.
    ///
    /// Where the kernel has no descriptors for processes, nothing holds the number between the look and the
    /// signal; that is a moment.
    fn end(process: &Process) -> bool {
        let Some(pid) = Pid::from_raw(process.pid) else { return false };
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok();
        let is_the_same = read(process.pid).is_some_and(|now| now.is_alive && now.start == process.start);
        is_the_same && signal(pid, descriptor)
    }

    fn signal(pid: Pid, descriptor: Option<OwnedFd>) -> bool {
        match descriptor {
            Some(descriptor) => pidfd_send_signal(descriptor, Signal::KILL).is_ok(),
            None => kill_process(pid, Signal::KILL).is_ok(),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_process_is_ended_with_and_without_a_descriptor() {
            for has_descriptor in [true, false] {
                let mut child = std::process::Command::new("/bin/sleep").arg("60").spawn().unwrap();
                let pid = Pid::from_child(&child);
                let descriptor = has_descriptor.then(|| pidfd_open(pid, PidfdFlags::empty()).unwrap());
                assert!(signal(pid, descriptor));
                assert!(!child.wait().unwrap().success());
            }
        }
    }
}
