//! What the processes below a worker have used so far, read from `/proc`.
//!
//! Source: proc_pid_stat(5), and the kernel's documentation, scheduler/sched-stats, on `schedstat`.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// One look at all processes below a worker.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Processor time of all of them, also of those that are gone.
    pub(super) cpu: Duration,
    /// Memory that they hold, what several hold together counted for each.
    pub(super) memory_bytes: u64,
    /// For each thread, how long it was ready to run and had no processor.
    waits: HashMap<i32, Duration>,
}

/// Looks at all that descends from `root`, and at nothing of `root` but the time of the children it reaped.
pub(super) fn look(root: i32) -> Look {
    let mut look = Look::default();
    if let Some(stat) = Stat::read(root) {
        look.cpu += stat.reaped;
    }
    let mut places = children(root);
    while let Some(pid) = places.pop() {
        let Some(stat) = Stat::read(pid) else { continue };
        look.cpu += stat.own + stat.reaped;
        look.memory_bytes += stat.memory_bytes;
        places.extend(children(pid));
        for thread in numbers(&format!("/proc/{pid}/task")) {
            look.waits.extend(wait_of(pid, thread));
        }
    }
    look
}

/// Sends SIGKILL to the children of a process, to none that has got the number of one since.
pub(super) fn kill_children(parent: i32) {
    for pid in children(parent) {
        let handle = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        if let Some(handle) = handle
            && children(parent).contains(&pid)
        {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }
}

struct Stat {
    own: Duration,
    reaped: Duration,
    memory_bytes: u64,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        // The command in parentheses may hold any bytes, so count from its end.
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let tick_ms = 1000 / rustix::param::clock_ticks_per_second().max(1);
        let ticks = |a: usize, b: usize| Some(Duration::from_millis((number(a)? + number(b)?) * tick_ms));
        Some(Self {
            own: ticks(11, 12)?,
            reaped: ticks(13, 14)?,
            memory_bytes: number(21)? * rustix::param::page_size() as u64,
        })
    }
}

fn wait_of(pid: i32, thread: i32) -> Option<(i32, Duration)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
    let nanoseconds = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some((thread, Duration::from_nanos(nanoseconds)))
}

fn children(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    for thread in numbers(&format!("/proc/{pid}/task")) {
        match std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")) {
            Ok(text) => {
                found.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()))
            }
            Err(_) => return children_by_parent(pid),
        }
    }
    found
}

/// The same on a kernel that keeps no list of children.
fn children_by_parent(parent: i32) -> Vec<i32> {
    let parent_of = |pid: i32| -> Option<i32> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        String::from_utf8_lossy(&stat).rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    numbers("/proc").into_iter().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

fn numbers(directory: &str) -> Vec<i32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Counts the time of a run: elapsed time, less what its threads waited for a processor.
///
/// So a run takes as long on a busy machine as on an idle one. Of threads that wait at the same time the longest
/// wait counts.
#[derive(Debug)]
pub(super) struct Clock {
    started: Instant,
    looked: Instant,
    waited: Duration,
    waits: HashMap<i32, Duration>,
}

impl Clock {
    pub(super) fn start() -> Self {
        let now = Instant::now();
        Self { started: now, looked: now, waited: Duration::ZERO, waits: HashMap::new() }
    }

    /// Takes off what was waited since the last look; how much that was.
    pub(super) fn allow_for(&mut self, look: &Look, now: Instant) -> Duration {
        let waited = look
            .waits
            .iter()
            .map(|(thread, wait)| wait.saturating_sub(self.waits.get(thread).copied().unwrap_or_default()));
        let most = waited.max().unwrap_or_default();
        let most = most.min(now.saturating_duration_since(self.looked));
        self.waited += most;
        self.looked = now;
        self.waits.clone_from(&look.waits);
        most
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The time that counts.
    pub(super) fn counted(&self) -> Duration {
        self.elapsed().saturating_sub(self.waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_and_its_children_are_seen() {
        let mut child =
            std::process::Command::new("/bin/sh").args(["-c", "/bin/sleep 60 & wait"]).spawn().unwrap();
        let own = std::process::id().cast_signed();
        let grandchildren = || children(child.id().cast_signed());
        while grandchildren().is_empty() {}
        assert!(children(own).contains(&child.id().cast_signed()));
        let sleep = grandchildren();
        assert_eq!(children_by_parent(child.id().cast_signed()), sleep);
        assert!(look(child.id().cast_signed()).memory_bytes > 0);
        for pid in sleep {
            rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        }
        child.wait().unwrap();
    }

    #[test]
    fn time_without_a_processor_does_not_count() {
        let mut clock = Clock::start();
        let later = clock.started + Duration::from_secs(3);
        let look = Look {
            waits: HashMap::from([(1, Duration::from_secs(1)), (2, Duration::from_secs(2))]),
            ..Look::default()
        };
        clock.allow_for(&look, later);
        assert_eq!(clock.waited, Duration::from_secs(2));
        clock.allow_for(&look, later + Duration::from_secs(1));
        assert_eq!(clock.waited, Duration::from_secs(2));
        let much = Look { waits: HashMap::from([(1, Duration::from_secs(60))]), ..Look::default() };
        clock.allow_for(&much, later + Duration::from_secs(2));
        assert_eq!(clock.waited, Duration::from_secs(3));
    }
}
